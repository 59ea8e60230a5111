"""What the columns of a table are, by their names; and what a row of such columns says.

Known are Neo4j's export headers (``:ID``, ``:LABEL``, ``:START_ID``, ``:END_ID``, ``:TYPE``, ``name:string``,
``year:int``, ``tags:string[]``, ``:ID(Space)``; Neo4j Operations Manual, "Import", header format) and the names that
people give such columns, as in STaRK and in tables of triples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from clew.core.errors import UnreadableFile
from clew.core.protocols import GraphSink
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
_LISTED = ";"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its role, what a property in it is called, how its cells are read, and its space of ids."""

    role: str
    key: str
    kind: str = ""
    is_list: bool = False
    space: str = ""


def edge_columns(header: Sequence[str]) -> list[Column] | None:
    """Return the columns of an edge table, None where this is the header of none: head, relation and tail."""
    return _edges(tuple(header))


def node_columns(header: Sequence[str]) -> list[Column] | None:
    """Return the columns of a node table, None where this is the header of none: an id and something else."""
    return _nodes(tuple(header))


# A JSON line has its header in itself, and there are few of them among millions of lines.
@lru_cache(maxsize=4096)
def _edges(header: tuple[str, ...]) -> list[Column] | None:
    return _columns(header, _EDGE, (HEAD, RELATION, TAIL))


@lru_cache(maxsize=4096)
def _nodes(header: tuple[str, ...]) -> list[Column] | None:
    found = _columns(header, _NODE, (ID,))
    return found if found and len(found) > 1 else None


def _columns(header: Sequence[str], known: Mapping[str, str], needed: Sequence[str]) -> list[Column] | None:
    columns: list[Column | None] = []
    taken: set[str] = set()
    for cell in header:
        one = _neo4j(cell.strip())
        if one is not None and one.role != IGNORED and one.role in taken:
            one = replace(one, role=PROPERTY)
        if one is not None and one.role in {NAME, ALIASES, TEXT} and one.role not in known:
            one = replace(one, role=PROPERTY)
        taken.update({one.role} if one is not None else ())
        columns.append(one)
    for role, words in known.items():
        if role in taken:
            continue
        # The first word of the list that is there: a table with "type" and "relation" has its relation in the latter.
        for word in words.split():
            places = [
                n for n, cell in enumerate(header) if columns[n] is None and cell.strip().lower() == word
            ]
            if places:
                columns[places[0]] = Column(role, header[places[0]].strip(), is_list=role == ALIASES)
                break
    roles = {one.role for one in columns if one is not None}
    if not roles.issuperset(needed) or (taken & {HEAD, TAIL} and ID in needed):
        return None
    return [one or Column(PROPERTY, header[n].strip()) for n, one in enumerate(columns)]


def _neo4j(cell: str) -> Column | None:
    if found := _NEO4J.fullmatch(cell):
        name, field, space = found.groups()
        return Column(_NEO4J_ROLES[field.upper()], name, is_list=field.upper() == "LABEL", space=space or "")
    if found := _TYPED.fullmatch(cell):
        name, kind, several = found.groups()
        role = next((r for r in (NAME, ALIASES, TEXT) if name.lower() in _NODE[r].split()[:2]), PROPERTY)
        return Column(role, name, kind.lower(), bool(several) or role == ALIASES)
    return None


def row_reader(
    columns: Sequence[Column], sink: GraphSink, typed: bool = False
) -> Callable[[Sequence[Any]], None]:
    """Return what gives a row of such a table to ``sink``, and raises BadRow. ``typed``: cells have their types."""
    edges = HEAD in {one.role for one in columns}
    return (_Edges if edges else _Nodes)(columns, sink, typed).take


class _Rows:
    def __init__(self, columns: Sequence[Column], sink: GraphSink, typed: bool) -> None:
        self._columns, self._sink, self._typed = columns, sink, typed
        self._width = len(columns)
        self._places = {one.role: n for n, one in enumerate(columns) if one.role not in {PROPERTY, IGNORED}}
        self._more = [(n, one) for n, one in enumerate(columns) if one.role == PROPERTY]

    def _check(self, cells: Sequence[Any]) -> None:
        if len(cells) != self._width:
            raise BadRow(f"{len(cells)} cells instead of {self._width}")

    def _id(self, cells: Sequence[Any], role: str) -> str:
        place = self._places[role]
        found = read_identifier(cells[place], role)
        space = self._columns[place].space
        return f"{space}/{found}" if space else found

    def _properties(self, cells: Sequence[Any]) -> dict[str, Any]:
        found = ((one.key, read_value(cells[n], one, self._typed)) for n, one in self._more)
        return {key: one for key, one in found if one is not None}


class _Edges(_Rows):
    def take(self, cells: Sequence[Any]) -> None:
        """Give an edge."""
        self._check(cells)
        head, tail = self._id(cells, HEAD), self._id(cells, TAIL)
        self._sink.add_edge(head, self._id(cells, RELATION), tail, self._properties(cells))


class _Nodes(_Rows):
    def take(self, cells: Sequence[Any]) -> None:
        """Give a node. One that was given before is a bad row: which of the two holds?"""
        self._check(cells)
        id = self._id(cells, ID)
        if self._sink.has_node(id):
            raise BadRow(f"the node '{id}' was given before")
        said: dict[str, Any] = {}
        for role in (TYPES, ALIASES):
            if role in self._places:
                said[role] = read_texts(
                    cells[self._places[role]], split=self._columns[self._places[role]].is_list
                )
        for role in (NAME, TEXT):
            if role in self._places and cells[self._places[role]] is not None:
                said[role] = str(cells[self._places[role]]).strip()
        self._sink.add_node(id, **said, properties=self._properties(cells))


def read_identifier(given: object, what: str) -> str:
    """Return an id, or the name of a relation. Raises BadRow for what cannot be one."""
    found = given.strip() if isinstance(given, str) else _number(given, what)
    if not found:
        raise BadRow(f"the {what} is empty")
    if "\n" in found:
        raise BadRow(f"the {what} has more than one line; is a quotation mark never closed?")
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            raise BadRow(f"the {what} holds half a character") from None
    return found


def _number(given: object, what: str) -> str:
    """Return a whole number as text, also one that a table with a gap has made a fraction of."""
    if given is None or (isinstance(given, float) and math.isnan(given)):
        return ""
    if isinstance(given, float) and given.is_integer():
        return str(int(given))
    if isinstance(given, bool) or not isinstance(given, int):
        raise BadRow(f"the {what} is no text or whole number")
    return str(given)


def read_texts(given: object, split: bool = False) -> list[str]:
    """Return types or aliases: a list of texts, or one text, which ``split`` divides at semicolons."""
    if given is None:
        return []
    if isinstance(given, str):
        return [one.strip() for one in (given.split(_LISTED) if split else [given]) if one.strip()]
    if isinstance(given, (list, tuple)) and all(isinstance(one, str) for one in given):
        return [one.strip() for one in given if one.strip()]
    raise BadRow("types and aliases are a text or a list of texts")


def read_value(cell: Any, column: Column, typed: bool) -> Any:
    """Return a property's value, None for an empty cell. Raises BadRow for one that is not what its header says."""
    if typed or not isinstance(cell, str):
        return to_json_value(cell)
    cell = cell.strip()
    if not cell:
        return None
    if column.is_list:
        return [one for part in cell.split(_LISTED) if (one := _read(part.strip(), column)) is not None]
    return _read(cell, column)


def _read(cell: str, column: Column) -> Any:
    """Return one value of a cell. Without a type in the header, what is written like a number is one."""
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
        if _WHOLE.fullmatch(cell):
            return int(cell)
        if _DECIMAL.fullmatch(cell):
            return float(cell)
    return cell


def to_json_value(given: Any) -> Any:
    """Return a typed value as a JSON scalar or a list of them; times as ISO 8601, what is nested as JSON."""
    if given is None or isinstance(given, (str, int)):
        return given
    if isinstance(given, float):
        return given if math.isfinite(given) else None
    if isinstance(given, (list, tuple)) and not any(isinstance(one, (list, tuple, dict)) for one in given):
        return [one for part in given if (one := to_json_value(part)) is not None] or None
    if isinstance(given, (list, tuple, dict)):
        import json

        return json.dumps(given, ensure_ascii=False, sort_keys=True, default=str)
    if isinstance(given, bytes):
        raise BadRow("a property is binary data")
    return given.isoformat() if hasattr(given, "isoformat") else str(given)


def unknown_columns_error(path: str, header: Sequence[str], wanted: str = "") -> UnreadableFile:
    """Return the error for a table whose columns say neither nodes nor edges."""
    shown = ", ".join(cell.strip()[:30] for cell in header[:8])
    return UnreadableFile(
        f"{path}: it does not say which columns are {wanted or 'the nodes or edges'} ({shown})",
        "Name its columns: --columns head,relation,tail for edges, --columns id,type,name,text for nodes",
    )
