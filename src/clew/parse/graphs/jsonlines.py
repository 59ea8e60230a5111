"""JSON lines: triples, nodes and edges, Neo4j's export (``apoc.export.json``), and triples extracted from text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from clew.core.protocols import GraphSink
from clew.parse.graphs.columns import (
    HEAD,
    RELATION,
    TAIL,
    edge_columns,
    node_columns,
    read_identifier,
    read_texts,
    to_json_value,
)
from clew.parse.graphs.files import BadRow, GraphFile, RowErrors

#: The type of the nodes that stand for the passages that triples were extracted from, and the property of an edge
#: that names its passage; its property ``title`` is what the passage is called.
PASSAGE = "passage"


def read_json_lines(source: GraphFile, sink: GraphSink, faults: RowErrors) -> None:
    """Read JSON lines. Raises UnreadableFile, BadRows."""
    for number, line in enumerate(source.read_lines(faults), 1):
        if not line.strip():
            continue
        try:
            _take(json.loads(line), sink, partial(faults.add, source.path, number))
        except BadRow as error:
            faults.add(source.path, number, str(error))
        except json.JSONDecodeError as error:
            faults.add(source.path, number, f"is not JSON ({error.msg} at character {error.colno})")
        except RecursionError:
            faults.add(source.path, number, "is nested too deeply")


def _take(given: Any, sink: GraphSink, wrong: Callable[[str], None]) -> None:
    if isinstance(given, list):
        _triple(given, sink, None)
    elif not isinstance(given, dict):
        raise BadRow("is neither an object nor a triple")
    elif isinstance(given.get("triples"), list):
        _extraction(given, sink, wrong)
    elif given.get("type") == "relationship" and isinstance(given.get("start"), dict):
        _exported_edge(given, sink)
    elif given.get("type") == "node" and isinstance(given.get("labels", []), list) and "id" in given:
        said = {key: one for key, one in given.items() if key not in {"type", "labels"}}
        _node(said | {"types": given.get("labels", [])}, sink)
    else:
        _object(given, sink)


def _triple(given: list[Any], sink: GraphSink, properties: Mapping[str, Any] | None) -> None:
    if len(given) not in {3, 4}:
        raise BadRow(f"a triple has {len(given)} parts")
    if len(given) == 4:
        if not isinstance(given[3], dict):
            raise BadRow("the fourth part of a triple is its properties, an object")
        properties = _scalars(given[3])
    head, relation, tail = map(read_identifier, given[:3], (HEAD, RELATION, TAIL))
    sink.add_edge(head, relation, tail, properties)


def _object(given: dict[str, Any], sink: GraphSink) -> None:
    keys = list(given)
    if columns := edge_columns(keys):
        role = {one.role: key for one, key in zip(columns, keys, strict=True)}
        head, relation, tail = (read_identifier(given[role[one]], one) for one in (HEAD, RELATION, TAIL))
        more = {key: given[key] for one, key in zip(columns, keys, strict=True) if one.role == "property"}
        nested = more.pop("properties", None)
        sink.add_edge(head, relation, tail, _scalars(more | (nested if isinstance(nested, dict) else {})))
    elif node_columns([*keys, "name"]):
        _node(given, sink)
    else:
        raise BadRow("is neither an edge (head, relation, tail) nor a node (id)")


def _node(given: dict[str, Any], sink: GraphSink) -> None:
    keys = list(given)
    columns = node_columns([*keys, ""]) or []
    role = {one.role: key for one, key in zip(columns, keys, strict=False) if one.role != "property"}
    id = read_identifier(given[role["id"]], "id")
    if sink.has_node(id):
        raise BadRow(f"the node '{id}' was given before")
    more = {key: one for key, one in given.items() if key not in role.values()}
    nested = more.pop("properties", None)
    if nested is not None and not isinstance(nested, dict):
        raise BadRow("properties are an object")
    more |= nested or {}
    said: dict[str, str] = {}
    for one in ("name", "text"):
        # What Neo4j exports has its name among the properties.
        found = given[role[one]] if one in role else more.pop(one, None)
        if found is not None and not isinstance(found, (str, int, float)):
            raise BadRow(f"the {one} is no text")
        said[one] = "" if found is None else _whole(str(found).strip(), one)
    sink.add_node(
        id,
        types=read_texts(given.get(role.get("types", ""))),
        aliases=read_texts(given.get(role.get("aliases", ""))),
        properties=_scalars(more),
        **said,  # type: ignore[arg-type]
    )


def _exported_edge(given: dict[str, Any], sink: GraphSink) -> None:
    end = given.get("end")
    ends = [one.get("id") if isinstance(one, dict) else None for one in (given["start"], end)]
    properties = given.get("properties")
    head, relation, tail = map(
        read_identifier, (ends[0], given.get("label"), ends[1]), (HEAD, RELATION, TAIL)
    )
    sink.add_edge(head, relation, tail, _scalars(properties) if isinstance(properties, dict) else None)


def _extraction(given: dict[str, Any], sink: GraphSink, wrong: Callable[[str], None]) -> None:
    """Take what a model extracted of a passage, in the form of HippoRAG's published files: ``title``, ``text``,
    ``entities``, ``triples``. Each edge names its passage, a node that holds the text and has no name, and the
    passage's title. What is no triple is a bad row of its own; the others of the passage are taken."""
    title, text = str(given.get("title", "")), str(given.get("text", ""))
    said = f"{title}\n{text}".encode("utf-8", "surrogatepass")
    passage = f"{PASSAGE}/{hashlib.blake2b(said, digest_size=8).hexdigest()}"
    provenance = {PASSAGE: passage} | ({"title": _whole(title, "title")} if title else {})
    for one in given["triples"]:
        try:
            if not isinstance(one, list) or len(one) != 3:
                raise BadRow(f"not head, relation, tail: {json.dumps(one, ensure_ascii=False)[:80]}")
            _triple(one, sink, provenance)
        except BadRow as error:
            wrong(str(error))
    entities = given.get("entities", [])
    for one in entities if isinstance(entities, list) else []:
        if isinstance(one, str) and one.strip() and not sink.has_node(_whole(one.strip(), "entity")):
            sink.add_node(one.strip())
    if not sink.has_node(passage):
        sink.add_node(
            passage, types=[PASSAGE], text=_whole(text, "text"), properties={"title": _whole(title, "title")}
        )


def _scalars(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for key, one in given.items():
        kept = to_json_value(one)
        for text in [key, *(kept if isinstance(kept, list) else [kept])]:
            if isinstance(text, str):
                _whole(text, key)
        found[key] = kept
    return {key: one for key, one in found.items() if one is not None}


def _whole(text: str, what: str) -> str:
    """Return a text that UTF-8 can hold. Raises BadRow for half a character, which JSON's escapes can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadRow(f"the {what.encode('ascii', 'replace').decode()} holds half a character") from None
    return text
