"""The columns of node and edge tables: their roles, which their names tell, and the values of their cells.

Known are the headers of Neo4j's exports (``:ID``, ``:LABEL``, ``:START_ID``, ``:END_ID``, ``:TYPE``, ``name:string``,
``year:int``, ``tags:string[]``, ``:ID(Space)``; Neo4j Operations Manual, "Import", header format) and the
names that such columns usually have, as in STaRK and in tables of triples.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from clew.core.arrays import TextSpans
from clew.core.errors import UnreadableFile
from clew.core.protocols import ColumnSink, GraphSink, NodeColumns
from clew.core.text import clean_names
from clew.parse.graphs.files import BadRow

HEAD, RELATION, TAIL = "head", "relation", "tail"
ID, TYPES, NAME, ALIASES, TEXT, PROPERTY, IGNORED = "id", "types", "name", "aliases", "text", "property", ""

_EDGE = {
    HEAD: "head h subject subj s source src from start head_id subject_id source_id from_id start_id",
    RELATION: "relation rel r predicate pred p relationship relation_type edge_type property type label",
    TAIL: "tail t object obj o target dst to end tail_id object_id target_id to_id end_id",
}
_NODE = {
    ID: "id node_id identifier key qid node entity_id",
    TYPES: "types type node_type labels kind category",
    NAME: "name title label node_name",
    ALIASES: "aliases alias synonyms alt_names also_known_as",
    TEXT: "text description abstract summary content",
}
_NEO4J = re.compile(r"([^:]*):(ID|START_ID|END_ID|LABEL|TYPE|IGNORE)(?:\(([^)]*)\))?", re.IGNORECASE)
_NEO4J_ROLES = {
    "ID": ID,
    "START_ID": HEAD,
    "END_ID": TAIL,
    "LABEL": TYPES,
    "TYPE": RELATION,
    "IGNORE": IGNORED,
}
_TYPED = re.compile(
    r"(.+):(int|long|short|byte|float|double|boolean|string|char|date|localtime|time|localdatetime|datetime|"
    r"duration|point)(\[\])?",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][-+]?\d+)?")
_LIST_SEPARATOR = ";"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its role, its name as a property, the type of its cells, and the space that its ids belong to."""

    role: str
    key: str
    kind: str = ""
    is_list: bool = False
    space: str = ""


def edge_columns(header: Sequence[str]) -> list[Column] | None:
    """Return the columns of an edge table, None for a header without head, relation and tail."""
    return _edges(tuple(header))


def node_columns(header: Sequence[str]) -> list[Column] | None:
    """Return the columns of a node table, None for a header without an id and another column."""
    return _nodes(tuple(header))


def columns_of_kind(header: Sequence[str], kind: str) -> list[Column] | None:
    """Return the columns of a header, None where it is that of no table of the ``kind``."""
    if kind != "nodes" and (columns := edge_columns(header)):
        return columns
    return node_columns(header) if kind != "edges" else None


# Each JSON line has a header of its own, but few different ones occur in millions of lines.
@lru_cache(maxsize=4096)
def _edges(header: tuple[str, ...]) -> list[Column] | None:
    return _assign_roles(header, _EDGE, (HEAD, RELATION, TAIL))


@lru_cache(maxsize=4096)
def _nodes(header: tuple[str, ...]) -> list[Column] | None:
    columns = _assign_roles(header, _NODE, (ID,))
    return columns if columns and len(columns) > 1 else None


def _assign_roles(
    header: Sequence[str], names_of: Mapping[str, str], needed: Sequence[str]
) -> list[Column] | None:
    """Return the columns of a header, None where a needed role is missing; ``names_of`` has the names by role."""
    columns: list[Column | None] = []
    assigned: set[str] = set()
    for cell in header:
        column = _neo4j_column(cell.strip())
        if column is not None:
            is_repeated = column.role != IGNORED and column.role in assigned
            is_foreign = column.role in {NAME, ALIASES, TEXT} and column.role not in names_of
            if is_repeated or is_foreign:
                column = replace(column, role=PROPERTY)
            assigned.add(column.role)
        columns.append(column)
    for role, names in names_of.items():
        if role in assigned:
            continue
        # The first of the names counts: in a table with "type" and "relation", the latter is the relation.
        for name in names.split():
            places = [
                n for n, cell in enumerate(header) if columns[n] is None and cell.strip().lower() == name
            ]
            if places:
                columns[places[0]] = Column(role, header[places[0]].strip(), is_list=role == ALIASES)
                break
    roles = {column.role for column in columns if column is not None}
    if not roles.issuperset(needed) or (assigned & {HEAD, TAIL} and ID in needed):
        return None
    return [column or Column(PROPERTY, header[n].strip()) for n, column in enumerate(columns)]


def _neo4j_column(cell: str) -> Column | None:
    """Return the column of a cell of Neo4j's headers, None for another one."""
    if match := _NEO4J.fullmatch(cell):
        name, field, space = match.groups()
        return Column(_NEO4J_ROLES[field.upper()], name, is_list=field.upper() == "LABEL", space=space or "")
    if match := _TYPED.fullmatch(cell):
        name, kind, brackets = match.groups()
        role = next((r for r in (NAME, ALIASES, TEXT) if name.lower() in _NODE[r].split()[:2]), PROPERTY)
        return Column(role, name, kind.lower(), bool(brackets) or role == ALIASES)
    return None


def row_reader(
    columns: Sequence[Column], sink: GraphSink, typed: bool = False
) -> Callable[[Sequence[Any]], None]:
    """Return a function that adds a row of a table to ``sink``, and raises BadRow. ``typed``: cells have types."""
    is_edge_table = HEAD in {column.role for column in columns}
    return (_EdgeTable if is_edge_table else _NodeTable)(columns, sink, typed).read_row


def batch_reader(
    columns: Sequence[Column], sink: GraphSink
) -> Callable[[Sequence[Sequence[str]]], bool] | None:
    """Return a function that adds many rows of texts to ``sink`` at once, None where the sink or the columns do not
    allow it.

    The function returns False, and adds nothing, where one of the rows is bad or unusual: they are then to be read
    one by one. Each row must have as many cells as there are columns.
    """
    roles = [column.role for column in columns]
    keys = [column.key for column in columns if column.role == PROPERTY]
    if not isinstance(sink, ColumnSink) or len(set(keys)) < len(keys):
        return None
    if HEAD not in roles:
        return partial(_read_nodes, columns, sink)
    return partial(_read_triples, roles, sink) if are_triples(columns) else None


def are_triples(columns: Sequence[Column]) -> bool:
    """Return whether a table has a head, a relation and a tail, and nothing else."""
    has_spaces = any(column.space for column in columns)
    return not has_spaces and sorted(column.role for column in columns) == sorted((HEAD, RELATION, TAIL))


def _read_triples(roles: Sequence[str], sink: ColumnSink, rows: Sequence[Sequence[str]]) -> bool:
    cells = dict(zip(roles, zip(*rows, strict=True), strict=True))
    columns = [_strip_identifiers(cells[role]) for role in (HEAD, RELATION, TAIL)]
    if not all(columns):
        return False
    sink.add_edges(*map(TextSpans.from_texts, columns))
    return True


def _strip_identifiers(cells: Sequence[str]) -> list[str]:
    """Return cells without white space around them; none if one is empty or has several lines."""
    identifiers = [cell.strip() for cell in cells]
    names = [] if "\n" in "".join(identifiers) else clean_names(identifiers)
    return list(names) if all(names) else []


def _read_nodes(columns: Sequence[Column], sink: ColumnSink, rows: Sequence[Sequence[str]]) -> bool:
    cells = list(zip(*rows, strict=True))
    fields: dict[str, Any] = {}
    properties: dict[str, list[Any]] = {}
    for column, texts in zip(columns, cells, strict=True):
        if column.role == ID:
            fields["ids"] = _strip_identifiers(texts)
            if not fields["ids"]:
                return False
            if column.space:
                fields["ids"] = [f"{column.space}/{id}" for id in fields["ids"]]
        elif column.role in {TYPES, ALIASES}:
            lists = lru_cache(maxsize=4096)(partial(read_texts, split=column.is_list))
            fields[column.role] = [lists(text) for text in texts]
        elif column.role in {NAME, TEXT}:
            fields[f"{column.role}s"] = [text.strip() for text in texts]
        elif column.role == PROPERTY:
            values = lru_cache(maxsize=4096)(partial(read_value, column=column, typed=False))
            try:
                properties[column.key] = [values(text) for text in texts]
            except BadRow:
                return False
    return sink.add_nodes(NodeColumns(properties=properties, **fields))


class _TableReader:
    def __init__(self, columns: Sequence[Column], sink: GraphSink, typed: bool) -> None:
        self._columns, self._sink, self._typed = columns, sink, typed
        self._width = len(columns)
        self._places = {
            column.role: n for n, column in enumerate(columns) if column.role not in {PROPERTY, IGNORED}
        }
        self._property_columns = [(n, column) for n, column in enumerate(columns) if column.role == PROPERTY]

    def _check_width(self, cells: Sequence[Any]) -> None:
        if len(cells) != self._width:
            raise BadRow(f"{len(cells)} cells instead of {self._width}")

    def _id(self, cells: Sequence[Any], role: str) -> str:
        place = self._places[role]
        identifier = read_identifier(cells[place], role)
        space = self._columns[place].space
        return f"{space}/{identifier}" if space else identifier

    def _properties(self, cells: Sequence[Any]) -> dict[str, Any]:
        values = (
            (column.key, read_value(cells[n], column, self._typed)) for n, column in self._property_columns
        )
        return {key: value for key, value in values if value is not None}


class _EdgeTable(_TableReader):
    def read_row(self, cells: Sequence[Any]) -> None:
        """Add an edge."""
        self._check_width(cells)
        head, tail = self._id(cells, HEAD), self._id(cells, TAIL)
        self._sink.add_edge(head, self._id(cells, RELATION), tail, self._properties(cells))


class _NodeTable(_TableReader):
    def read_row(self, cells: Sequence[Any]) -> None:
        """Add a node. A second row for a node is a bad row, since nothing says which of the two is right."""
        self._check_width(cells)
        id = self._id(cells, ID)
        if self._sink.has_node(id):
            raise BadRow(f"the node '{id}' was given before")
        fields: dict[str, Any] = {}
        for role in (TYPES, ALIASES):
            if role in self._places:
                place = self._places[role]
                fields[role] = read_texts(cells[place], split=self._columns[place].is_list)
        for role in (NAME, TEXT):
            if role in self._places and cells[self._places[role]] is not None:
                fields[role] = str(cells[self._places[role]]).strip()
        self._sink.add_node(id, **fields, properties=self._properties(cells))


def read_identifier(cell: object, role: str) -> str:
    """Return an id, or the name of a relation. Raises BadRow, which names the ``role``, for any other value."""
    identifier = cell.strip() if isinstance(cell, str) else _whole_number_text(cell, role)
    if not identifier:
        raise BadRow(f"the {role} is empty")
    if "\n" in identifier:
        raise BadRow(f"the {role} has more than one line; is a quotation mark never closed?")
    if not identifier.isascii():
        try:
            identifier.encode()
        except UnicodeEncodeError:
            raise BadRow(f"the {role} holds half a character") from None
    return identifier


def _whole_number_text(cell: object, role: str) -> str:
    """Return a whole number as text, "" for a missing one. Tables with gaps have their whole numbers as floats."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, bool) or not isinstance(cell, int):
        raise BadRow(f"the {role} is no text or whole number")
    return str(cell)


def read_texts(cell: object, split: bool = False) -> list[str]:
    """Return types or aliases: a list of texts, or one text, which ``split`` divides at semicolons."""
    if cell is None:
        return []
    if isinstance(cell, str):
        texts = cell.split(_LIST_SEPARATOR) if split else [cell]
    elif isinstance(cell, (list, tuple)) and all(isinstance(text, str) for text in cell):
        texts = list(cell)
    else:
        raise BadRow("types and aliases are a text or a list of texts")
    return [text.strip() for text in texts if text.strip()]


def read_value(cell: Any, column: Column, typed: bool) -> Any:
    """Return the value of a property, None for an empty cell. Raises BadRow for one that its header excludes."""
    if typed or not isinstance(cell, str):
        return to_json_value(cell)
    cell = cell.strip()
    if not cell:
        return None
    if column.is_list:
        values = (_parse_cell(part.strip(), column) for part in cell.split(_LIST_SEPARATOR))
        return [value for value in values if value is not None]
    return _parse_cell(cell, column)


def _parse_cell(cell: str, column: Column) -> Any:
    """Return the value of a text. Without a type in the header, a number as clew writes it is a number."""
    try:
        if column.kind in {"int", "long", "short", "byte"}:
            return int(cell)
        if column.kind in {"float", "double"}:
            return float(cell)
    except ValueError:
        raise BadRow(f"{column.key} is '{cell[:40]}', not a number") from None
    if column.kind == "boolean":
        if cell.lower() not in {"true", "false"}:
            raise BadRow(f"{column.key} is '{cell[:40]}', not true or false")
        return cell.lower() == "true"
    if not column.kind:
        # Only a number that is written back as it was: 0.10 and 1.50e3 stay texts, and are compared as numbers.
        if _WHOLE.fullmatch(cell) and str(int(cell)) == cell:
            return int(cell)
        if _DECIMAL.fullmatch(cell) and str(float(cell)) == cell:
            return float(cell)
    return cell


def to_json_value(value: Any) -> Any:
    """Return a typed value as a JSON scalar or a list of scalars; times as ISO 8601, nested values as JSON text."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)) and not any(isinstance(part, (list, tuple, dict)) for part in value):
        parts = map(to_json_value, value)
        return [part for part in parts if part is not None] or None
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    if isinstance(value, bytes):
        raise BadRow("a property is binary data")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def unknown_columns_error(path: str, header: Sequence[str], wanted: str = "") -> UnreadableFile:
    """Return the error for a table that has the columns of neither nodes nor edges."""
    shown = ", ".join(cell.strip()[:30] for cell in header[:8])
    return UnreadableFile(
        f"{path}: it does not say which columns are {wanted or 'the nodes or edges'} ({shown})",
        "Name its columns: --columns head,relation,tail for edges, --columns id,type,name,text for nodes",
    )
