"""Writes compound files and Outlook messages, independently of the reader: each storage is a balanced tree."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from datetime import UTC, datetime

Tree = Mapping[str, "bytes | Tree"]
_END, _FREE, _NONE = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF


def write_compound_file(tree: Tree) -> bytes:
    """Return a compound file of version 3 with these storages (mappings) and streams (bytes)."""
    entries: list[list[object]] = [["Root Entry", 5, _NONE, _NONE, _NONE, _END, 0]]
    streams: list[tuple[int, bytes]] = []

    def add(storage: Tree, parent: int) -> None:
        names = sorted(storage, key=lambda name: (len(name), name.upper()))
        entries[parent][4] = add_names(storage, names)

    def add_names(storage: Tree, names: list[str]) -> int:
        """Add the entries of these names; return the number of the one in the middle, which the others hang on."""
        if not names:
            return _NONE
        middle = len(names) // 2
        content = storage[names[middle]]
        number = len(entries)
        kind = 2 if isinstance(content, bytes) else 1
        entries.append([names[middle], kind, _NONE, _NONE, _NONE, 0, 0])
        if isinstance(content, bytes):
            streams.append((number, content))
        else:
            add(content, number)
        entries[number][2] = add_names(storage, names[:middle])
        entries[number][3] = add_names(storage, names[middle + 1 :])
        return number

    add(tree, 0)
    sectors: list[bytes] = []
    table: list[int] = []

    def add_chain(data: bytes) -> int:
        first = len(sectors)
        pieces = [data[start : start + 512].ljust(512, b"\0") for start in range(0, len(data), 512)]
        for number, piece in enumerate(pieces):
            sectors.append(piece)
            table.append(_END if number == len(pieces) - 1 else first + number + 1)
        return first if pieces else _END

    mini, mini_table = b"", []
    for number, content in streams:
        entries[number][6] = len(content)
        if len(content) >= 4096:
            entries[number][5] = add_chain(content)
            continue
        entries[number][5] = len(mini_table) if content else _END
        count = -(-len(content) // 64)
        mini_table += [len(mini_table) + place + 1 for place in range(count - 1)] + [_END] * bool(count)
        mini += content.ljust(count * 64, b"\0")
    entries[0][5], entries[0][6] = add_chain(mini), len(mini)
    mini_start = add_chain(struct.pack(f"<{len(mini_table)}I", *mini_table)) if mini_table else _END
    mini_count = -(-len(mini_table) * 4 // 512)
    directory = b""
    for name, kind, left, right, child, first, size in entries:
        raw = str(name).encode("utf-16-le") + b"\0\0"
        directory += raw.ljust(64, b"\0") + struct.pack("<HBB", len(raw), kind, 1)
        directory += (
            struct.pack("<3I", left, right, child) + bytes(16 + 4 + 16) + struct.pack("<IQ", first, size)
        )
    start = add_chain(directory)
    blocks = -(-(len(table) + 1 + len(table) // 127) // 128)
    where = [len(sectors) + place for place in range(blocks)]
    table += [0xFFFFFFFD] * blocks
    table += [_FREE] * (blocks * 128 - len(table))
    for place in range(blocks):
        sectors.append(struct.pack("<128I", *table[place * 128 : place * 128 + 128]))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16)
    header += struct.pack("<HHHHH6xIIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, blocks, start, 0, 4096, mini_start,
                          mini_count, _END, 0, where[0])  # fmt: skip
    header += struct.pack("<108I", *(where[1:] + [_FREE] * (109 - len(where)))[:108])
    return header + b"".join(sectors)


def _text(number: int, text: str) -> tuple[str, bytes]:
    return f"__substg1.0_{number:04X}001F", text.encode("utf-16-le")


def _properties(header: int, times: Mapping[int, datetime], pages: Mapping[int, int]) -> bytes:
    entries = b"".join(
        struct.pack("<IIII", number << 16 | 0x03, 6, page, 0) for number, page in pages.items()
    )
    for number, moment in times.items():
        since = moment - datetime(1601, 1, 1, tzinfo=UTC)
        ticks = (since.days * 86_400 + since.seconds) * 10_000_000
        entries += struct.pack("<IIQ", number << 16 | 0x40, 6, ticks)
    return bytes(header) + entries


def message_tree(
    subject: str,
    *,
    body: str = "",
    html: bytes = b"",
    rtf: bytes = b"",
    attachments: Mapping[str, bytes | Tree] = {},
    header: int = 32,
    kind: str = "IPM.Note",
    encoding: str = "",
    pages: Mapping[int, int] = {},
) -> dict[str, bytes | Tree]:
    """Return the streams of a message; an attachment that is a tree is a message itself. With an encoding its texts
    are of 8 bits; ``pages`` are the properties that state code pages, by number."""
    tree: dict[str, bytes | Tree] = {
        "__properties_version1.0": _properties(
            header, {0x0039: datetime(2024, 5, 3, 12, 5, tzinfo=UTC)}, pages
        ),
        **dict(
            [
                _text(0x001A, kind),
                _text(0x0037, subject),
                _text(0x0C1A, "Ines Calder"),
                _text(0x5D01, "ines@example.org"),
                _text(0x0E04, "Jory Penhallow; Wenna"),
            ]
        ),
        "__nameid_version1.0": {"__substg1.0_00020102": b""},
        "__recip_version1.0_#00000000": {"__properties_version1.0": bytes(8)},
    }
    if body:
        tree |= dict([_text(0x1000, body)])
    if html:
        tree["__substg1.0_10130102"] = html
    if rtf:
        tree["__substg1.0_10090102"] = rtf
    for number, (name, content) in enumerate(attachments.items()):
        inner: dict[str, bytes | Tree] = {"__properties_version1.0": bytes(8), **dict([_text(0x3707, name)])}
        inner["__substg1.0_37010102" if isinstance(content, bytes) else "__substg1.0_3701000D"] = content
        tree[f"__attach_version1.0_#{number:08X}"] = inner
    return _in_bytes(tree, encoding) if encoding else tree


def _in_bytes(tree: Tree, encoding: str) -> dict[str, bytes | Tree]:
    """Return streams with the texts of a message and of the names of its attachments in 8 bits."""
    changed: dict[str, bytes | Tree] = {}
    for name, content in tree.items():
        if isinstance(content, bytes) and name.endswith("001F"):
            changed[f"{name[:-4]}001E"] = content.decode("utf-16-le").encode(encoding)
        else:
            is_file = name.startswith("__attach") and not isinstance(content, bytes)
            changed[name] = _in_bytes(content, encoding) if is_file else content
    return changed
