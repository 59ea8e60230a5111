"""JSON lines: triples, nodes and edges, Neo4j's export (``apoc.export.json``), and triples extracted from text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from clew.core.protocols import GraphSink
from clew.parse.graphs.columns import (
    ALIASES,
    HEAD,
    ID,
    NAME,
    PROPERTY,
    RELATION,
    TAIL,
    TEXT,
    TYPES,
    edge_columns,
    node_columns,
    read_identifier,
    read_texts,
    to_json_value,
)
from clew.parse.graphs.files import BadRow, RowErrors, empty_file_error, open_graph_file
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions

#: The type of the nodes for passages that triples were extracted from. An edge names its passage in the property of
#: this name, and the passage's title in the property ``title``.
PASSAGE = "passage"


def _read_json_lines(
    path: Path,
    sink: GraphSink,
    options: GraphReadOptions,
    errors: RowErrors,
    report_progress: Callable[[int], None],
) -> None:
    """Read JSON lines. Raises UnreadableFile, BadRows."""
    with open_graph_file(path, report_progress) as file:
        is_empty = True
        for number, line in enumerate(file.read_lines(errors), 1):
            if not line.strip():
                continue
            is_empty = False
            try:
                _read_line(json.loads(line), sink, partial(errors.add, path, number))
            except BadRow as error:
                errors.add(path, number, str(error))
            except json.JSONDecodeError as error:
                errors.add(path, number, f"is not JSON ({error.msg} at character {error.colno})")
            except RecursionError:
                errors.add(path, number, "is nested too deeply")
            except ValueError:  # Python reads no integers of thousands of digits
                errors.add(path, number, "has a number of too many digits")
        if is_empty and not errors.count:
            raise empty_file_error(path)


def _read_line(value: Any, sink: GraphSink, add_error: Callable[[str], None]) -> None:
    if isinstance(value, list):
        _read_triple(value, sink, None)
    elif not isinstance(value, dict):
        raise BadRow("is neither an object nor a triple")
    elif isinstance(value.get("triples"), list):
        _read_extraction(value, sink, add_error)
    elif value.get("type") == "relationship" and isinstance(value.get("start"), dict):
        _read_exported_edge(value, sink)
    elif value.get("type") == "node" and isinstance(value.get("labels", []), list) and "id" in value:
        fields = {key: field for key, field in value.items() if key not in {"type", "labels"}}
        _read_node(fields | {"types": value.get("labels", [])}, sink)
    else:
        _read_object(value, sink)


def _read_triple(parts: list[Any], sink: GraphSink, properties: Mapping[str, Any] | None) -> None:
    if len(parts) not in {3, 4}:
        raise BadRow(f"a triple has {len(parts)} parts")
    if len(parts) == 4:
        if not isinstance(parts[3], dict):
            raise BadRow("the fourth part of a triple is its properties, an object")
        properties = _json_values(parts[3])
    head, relation, tail = map(read_identifier, parts[:3], (HEAD, RELATION, TAIL))
    sink.add_edge(head, relation, tail, properties)


def _read_object(fields: dict[str, Any], sink: GraphSink) -> None:
    """Read an edge or a node; which of the two, and which field is what, its keys tell like a table's header."""
    keys = list(fields)
    if columns := edge_columns(keys):
        key_of = {column.role: key for column, key in zip(columns, keys, strict=True)}
        head, relation, tail = (
            read_identifier(fields[key_of[role]], role) for role in (HEAD, RELATION, TAIL)
        )
        properties = {
            key: fields[key] for column, key in zip(columns, keys, strict=True) if column.role == PROPERTY
        }
        nested = properties.pop("properties", None)
        properties |= nested if isinstance(nested, dict) else {}
        sink.add_edge(head, relation, tail, _json_values(properties))
    elif node_columns([*keys, "name"]):
        _read_node(fields, sink)
    else:
        raise BadRow("is neither an edge (head, relation, tail) nor a node (id)")


def _read_node(fields: dict[str, Any], sink: GraphSink) -> None:
    keys = list(fields)
    columns = node_columns([*keys, ""]) or []
    key_of = {column.role: key for column, key in zip(columns, keys, strict=False) if column.role != PROPERTY}
    id = read_identifier(fields[key_of[ID]], ID)
    if sink.has_node(id):
        raise BadRow(f"the node '{id}' was given before")
    properties = {key: value for key, value in fields.items() if key not in key_of.values()}
    nested = properties.pop("properties", None)
    if nested is not None and not isinstance(nested, dict):
        raise BadRow("properties are an object")
    properties |= nested or {}
    texts: dict[str, str] = {}
    for role in (NAME, TEXT):
        # A node that Neo4j exports has its name among the properties.
        value = fields[key_of[role]] if role in key_of else properties.pop(role, None)
        if value is not None and not isinstance(value, (str, int, float)):
            raise BadRow(f"the {role} is no text")
        texts[role] = "" if value is None else _check_text(str(value).strip(), role)
    sink.add_node(
        id,
        types=read_texts(fields.get(key_of.get(TYPES, ""))),
        name=texts[NAME],
        aliases=read_texts(fields.get(key_of.get(ALIASES, ""))),
        text=texts[TEXT],
        properties=_json_values(properties),
    )


def _read_exported_edge(fields: dict[str, Any], sink: GraphSink) -> None:
    """Read an edge of Neo4j's export."""
    ends = [end.get("id") if isinstance(end, dict) else None for end in (fields["start"], fields.get("end"))]
    head, relation, tail = map(
        read_identifier, (ends[0], fields.get("label"), ends[1]), (HEAD, RELATION, TAIL)
    )
    properties = fields.get("properties")
    sink.add_edge(head, relation, tail, _json_values(properties) if isinstance(properties, dict) else None)


def _read_extraction(fields: dict[str, Any], sink: GraphSink, add_error: Callable[[str], None]) -> None:
    """Read the triples that a model extracted from a passage, in the form of HippoRAG's published files.

    These have ``title``, ``text``, ``entities`` and ``triples``. Each edge names its passage, a node with the text
    and without a name, and the passage's title. A malformed triple is a bad row of its own; the others are taken.
    """
    title, text = str(fields.get("title", "")), str(fields.get("text", ""))
    hashed = f"{title}\n{text}".encode("utf-8", "surrogatepass")
    passage = f"{PASSAGE}/{hashlib.blake2b(hashed, digest_size=8).hexdigest()}"
    provenance = {PASSAGE: passage} | ({"title": _check_text(title, "title")} if title else {})
    for triple in fields["triples"]:
        try:
            if not isinstance(triple, list) or len(triple) != 3:
                raise BadRow(f"not head, relation, tail: {json.dumps(triple, ensure_ascii=False)[:80]}")
            _read_triple(triple, sink, provenance)
        except BadRow as error:
            add_error(str(error))
    entities = fields.get("entities", [])
    for entity in entities if isinstance(entities, list) else []:
        is_name = isinstance(entity, str) and entity.strip()
        if is_name and not sink.has_node(_check_text(entity.strip(), "entity")):
            sink.add_node(entity.strip())
    if not sink.has_node(passage):
        sink.add_node(
            passage,
            types=[PASSAGE],
            text=_check_text(text, "text"),
            properties={"title": _check_text(title, "title")},
        )


def _json_values(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return properties as JSON scalars and lists of them, without empty ones. Raises BadRow."""
    values = {key: to_json_value(value) for key, value in properties.items()}
    for key, value in values.items():
        for text in [key, *(value if isinstance(value, list) else [value])]:
            if isinstance(text, str):
                _check_text(text, key)
    return {key: value for key, value in values.items() if value is not None}


def _check_text(text: str, what: str) -> str:
    """Return a text that UTF-8 can hold. Raises BadRow for half a character, which JSON's escapes can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadRow(f"the {what.encode('ascii', 'replace').decode()} holds half a character") from None
    return text


FORMATS = (GraphFormat("jsonl", _read_json_lines, (".jsonl", ".ndjson")),)
