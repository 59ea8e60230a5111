"""The canonical dump of a knowledge base, and the digests made from it.

Two bases with the same digest have the same documents, parsed the same way, with the same graphs and
settings. Row numbers, generations and times are not part of the dump; locations are not part of the digest, so that
adding a folder on two machines gives the same digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from clew.core.types import ParsedDocument, ParsedNode


def dump_line(**fields: object) -> str:
    """Return one line of a dump: JSON with sorted keys in its only possible form."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def dump_document(document: ParsedDocument) -> Iterator[str]:
    """Yield the lines of a document: its own, then its nodes in reading order. Notes are not part of it."""
    yield dump_line(
        document=document.key,
        title=document.title,
        media_type=document.media_type,
        parser=document.parser,
        pages=document.pages,
        text=document.text,
    )
    for position, node in enumerate(document.nodes):
        yield dump_node(f"{document.key}:{position}", node)


def dump_node(id: str, node: ParsedNode) -> str:
    """Return the line of one node."""
    cells = {"cells": [box and box.to_list() for box in node.cells]} if node.cells else {}
    return dump_line(
        node=id,
        kind=node.kind,
        text=node.text,
        parent=node.parent,
        name=node.name,
        level=node.level,
        page=node.page,
        span=node.span,
        boxes=[box.to_list() for box in node.boxes],
        **cells,
    )


def dump_setting(name: str, value: str) -> str:
    """Return the line of a setting."""
    return dump_line(setting=name, value=value)


def hash_lines(lines: Iterable[str]) -> bytes:
    """Return the hash of lines, 16 bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for line in lines:
        digest.update(line.encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
    return digest.digest()


def document_stamp(key: str) -> int:
    """Return the number of 63 bits by which arrays recognise the document with this key."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little") >> 1
