"""The canonical dump of a base and the digests made from it.

Two bases with the same digest hold the same documents, read the same way, with the same asserted edges and
settings. Row numbers, generations and times are no part of it; nor are locations part of the digest, so that a
folder added on two machines gives one digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

from clew.core.types import ParsedDocument, ParsedNode


def dump_line(**fields: object) -> str:
    """Return one line of a dump: JSON with sorted names and nothing optional in its form."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def dump_document(document: ParsedDocument) -> Iterator[str]:
    """Yield a document's lines: itself, then its nodes in reading order. Notes are no part of it."""
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
    return dump_line(
        node=id,
        kind=node.kind,
        text=node.text,
        parent=node.parent,
        name=node.name,
        level=node.level,
        page=node.page,
        span=node.span,
        boxes=[[box.page, box.x0, box.y0, box.x1, box.y1] for box in node.boxes],
    )


def dump_edge(edge: Sequence[str]) -> str:
    """Return the line of an edge: source, relation, target, owner."""
    return dump_line(edge=list(edge))


def dump_setting(name: str, value: str) -> str:
    """Return the line of a setting."""
    return dump_line(setting=name, value=value)


def hash_lines(lines: Iterable[str]) -> bytes:
    """Return the hash of some lines, 16 bytes."""
    made = hashlib.blake2b(digest_size=16)
    for one in lines:
        made.update(one.encode("utf-8", "surrogatepass"))
        made.update(b"\n")
    return made.digest()


def document_stamp(key: str) -> int:
    """Return the number of 63 bits by which arrays recognise the document with this key."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little") >> 1
