"""Patterns answered by trying every assignment of rows to terms: the engine's oracle."""

from __future__ import annotations

import numpy as np

from clew.core.arrays import DirectedEdges
from clew.core.protocols import PropertyGraph
from clew.store.graphs import array_builder
from clew.store.graphs.arrays import GraphArrays
from clew.store.graphs.imported_graph import ImportedGraph
from clew.store.graphs.tables import StoredGraph
from clew.triples.engine.patterns import Pattern, TypedTriple, connected_terms
from clew.triples.language.chain import NOT, Quantifier

Edges = set[tuple[int, str, int]]


def graph_of_edges(edges: Edges, types: dict[int, set[str]], size: int) -> PropertyGraph:
    """The graph of ``edges`` as it is opened from arrays, without a base around it."""
    relations = sorted({relation for _, relation, _ in edges})
    directions: dict[str, list[DirectedEdges]] = {"out": [], "in": []}
    for relation in relations:
        pairs = sorted((h, t) for h, r, t in edges if r == relation)
        both_ways = array_builder._both_directions(np.array(pairs, dtype=np.uint32), size)  # type: ignore[attr-defined]
        for direction, directed in zip(directions, both_ways, strict=True):
            directions[direction].append(directed)
    kinds = sorted({type for types_of_row in types.values() for type in types_of_row})
    rows = [[row for row in range(size) if kind in types[row]] for kind in kinds]
    arrays = {
        "ids": np.empty(0, dtype=np.uint8),
        "ids.starts": np.zeros(size + 1, dtype=np.int64),
        "types.rows": np.array([row for rows_of_kind in rows for row in rows_of_kind], dtype=np.uint32),
        "types.starts": np.cumsum([0, *map(len, rows)]),
    }
    content = {"relations": dict.fromkeys(relations), "types": kinds, "places": {}, "any": {}, "columns": {}}
    merged = array_builder._merge_relations(directions["out"], size)  # type: ignore[attr-defined]
    for key, prefix, by_direction in (
        ("any", "any.", merged),
        ("places", "", directions),
    ):
        for direction, directed in by_direction.items():
            parts, content[key][direction] = array_builder.concatenate_relations(directed)
            arrays |= {f"{prefix}{direction}.{part}": array for part, array in parts.items()}
    stored = StoredGraph(1, "g", "", size, len(edges), {})
    return ImportedGraph(None, stored, GraphArrays(content, arrays), None)


def pairs(edges: Edges, triple: TypedTriple) -> set[tuple[int, int]]:
    """The pairs of rows that a triple's relations join."""
    joined = set()
    for directed in triple.relations:
        forwards = {(h, t) for h, r, t in edges if directed.relation in (None, r)}
        joined |= {(t, h) for h, t in forwards} if directed.inverse else forwards
    return joined


def domain(pattern: Pattern, name: str, types: dict[int, set[str]], size: int) -> list[int]:
    """The rows that a term can be by itself, ascending."""
    for constant in pattern.constants:
        if constant.name == name:
            return sorted(set(constant.rows))
    variable = pattern.variable(name)
    rows = set(range(size)) if variable.rows is None else set(map(int, variable.rows))
    if name == pattern.target and pattern.answer_rows is not None:
        rows &= set(map(int, pattern.answer_rows))
    rows -= set(variable.excluded)
    return sorted(row for row in rows if not variable.types or types[row] & set(variable.types))


def answers(pattern: Pattern, edges: Edges, types: dict[int, set[str]], size: int) -> set[int]:
    """The target's row in every assignment of which all triples hold. Terms that are only counted have sets of their
    own; an edge denied between two terms that others join is denied of each assignment."""
    return values(pattern, pattern.target, edges, types, size, required=True)


def values(  # noqa: C901 - one definition in one place
    pattern: Pattern, asked: str, edges: Edges, types: dict[int, set[str]], size: int, required: bool = False
) -> set[int]:
    """The rows of the term ``asked`` over all assignments; ``required``: every term that is not only counted must
    have a row, else only those connected to ``asked``."""
    names = [term.name for term in (*pattern.variables, *pattern.constants)]  # type: ignore[attr-defined]
    connected = connected_terms(pattern.triples, names)
    constants = {constant.name for constant in pattern.constants}
    counted = {name for name in constants if only_counted(pattern, name)}
    for triple in pattern.triples:
        if triple.quantifier is not None and triple.tail not in constants:
            separate = not {triple.head, pattern.target} & connected[triple.tail]
            counted |= connected[triple.tail] if separate else set()
    terms = [name for name in names if name in connected[asked] or (required and name not in counted)]
    domains = {name: domain(pattern, name, types, size) for name in terms}
    joined = {id(triple): pairs(edges, triple) for triple in pattern.triples}
    checked = []  # triples that hold or not of each assignment
    for triple in pattern.triples:
        if triple.head not in terms:
            continue
        inner = triple.tail in connected[triple.head] and triple.head != triple.tail
        if triple.quantifier is None or (triple.quantifier == NOT and inner):
            checked.append(triple)
        elif triple.head == triple.tail:
            domains[triple.head] = [
                row for row in domains[triple.head] if (row, row) not in joined[id(triple)]
            ]
        else:
            own = set(domain(pattern, triple.tail, types, size))
            tails = own if triple.tail in constants else values(pattern, triple.tail, edges, types, size)
            domains[triple.head] = [
                row
                for row in domains[triple.head]
                if fits(triple.quantifier, {t for h, t in joined[id(triple)] if h == row}, tails)
            ]
    rows = set()

    def assign(assignment: dict[str, int]) -> None:
        for triple in checked:
            pair = assignment.get(triple.head), assignment.get(triple.tail)
            if None not in pair and (pair in joined[id(triple)]) != (triple.quantifier is None):
                return
        if len(assignment) == len(domains):
            rows.add(assignment[asked])
            return
        name = next(name for name in domains if name not in assignment)
        for row in domains[name]:
            if name != asked or row not in rows:
                assign(assignment | {name: row})

    assign({})
    return rows


def only_counted(pattern: Pattern, name: str) -> bool:
    """Whether every triple that names a term counts it as its tail: then there need not be one."""
    naming = [triple for triple in pattern.triples if name in (triple.head, triple.tail)]
    return bool(naming) and all(t.quantifier is not None and t.head != name for t in naming)


def fits(quantifier: Quantifier, reached: set[int], tails: set[int]) -> bool:
    """Whether a head reaches as many of ``tails`` as a quantifier says."""
    most = len(reached) if quantifier.most is None else quantifier.most
    within = quantifier.least <= len(reached & tails) <= most
    return within and not (quantifier.only and reached - tails)
