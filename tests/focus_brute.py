"""Patterns answered by trying every assignment of rows to terms."""

from __future__ import annotations

import numpy as np

from clew.core.protocols import PropertyGraph
from clew.store.graphs import array_builder as making
from clew.store.graphs.arrays import DirectedEdges, GraphArrays
from clew.store.graphs.imported_graph import ImportedGraph
from clew.store.graphs.packing import StoredGraph
from clew.triples.engine.patterns import Pattern, TypedTriple, connected_terms
from clew.triples.language.typed_chain import NOT, Quantifier

Edges = set[tuple[int, str, int]]


def opened(edges: Edges, types: dict[int, set[str]], size: int) -> PropertyGraph:
    """The graph of some edges as it is opened from arrays, without a base around it."""
    relations = sorted({relation for _, relation, _ in edges})
    ways: dict[str, list[DirectedEdges]] = {"out": [], "in": []}
    for relation in relations:
        pairs = sorted((h, t) for h, r, t in edges if r == relation)
        both = making._both_ways(np.array(pairs, dtype=np.uint32), size)
        for way, one in zip(ways, both, strict=True):
            ways[way].append(one)
    kinds = sorted({type for some in types.values() for type in some})
    rows = [[row for row in range(size) if kind in types[row]] for kind in kinds]
    arrays = {
        "ids": np.empty(0, dtype=np.uint8),
        "ids.starts": np.zeros(size + 1, dtype=np.int64),
        "types.rows": np.array([row for some in rows for row in some], dtype=np.uint32),
        "types.starts": np.cumsum([0, *map(len, rows)]),
    }
    content = {"relations": dict.fromkeys(relations), "types": kinds, "places": {}, "any": {}, "columns": {}}
    merged = making._merged(ways["out"], size)
    for key, prefix, every in (
        ("any", "any.", {"out": [merged[0]], "in": [merged[1]]}),
        ("places", "", ways),
    ):
        for way, some in every.items():
            made, content[key][way] = making._joined(some)
            arrays |= {f"{prefix}{way}.{part}": one for part, one in made.items()}
    return ImportedGraph(
        None, StoredGraph(1, "g", "", size, len(edges), {}), GraphArrays(content, arrays), None
    )


def pairs(edges: Edges, triple: TypedTriple) -> set[tuple[int, int]]:
    """The pairs of rows that a triple's ways join."""
    found = set()
    for way in triple.relations:
        some = {(h, t) for h, r, t in edges if way.relation in (None, r)}
        found |= {(t, h) for h, t in some} if way.inverse else some
    return found


def domain(pattern: Pattern, name: str, types: dict[int, set[str]], size: int) -> list[int]:
    for constant in pattern.constants:
        if constant.name == name:
            return sorted(set(constant.rows))
    one = pattern.variable(name)
    found = set(range(size)) if one.rows is None else set(map(int, one.rows))
    if name == pattern.target and pattern.answer_rows is not None:
        found &= set(map(int, pattern.answer_rows))
    return sorted(row for row in found - set(one.excluded) if not one.types or types[row] & set(one.types))


def answers(pattern: Pattern, edges: Edges, types: dict[int, set[str]], size: int) -> set[int]:
    """The rows of the target: of every assignment of which all triples hold. Terms that are only counted have sets of
    their own; what is denied between two terms is denied of each assignment."""
    return values(pattern, pattern.target, edges, types, size, required=True)


def values(  # noqa: C901 - one definition in one place
    pattern: Pattern, asked: str, edges: Edges, types: dict[int, set[str]], size: int, required: bool = False
) -> set[int]:
    names = [one.name for one in (*pattern.variables, *pattern.constants)]
    joins = connected_terms(pattern.triples, names)
    constants = {one.name for one in pattern.constants}
    counted = {name for name in constants if only_counted(pattern, name)}
    for one in pattern.triples:
        if one.quantifier is not None and one.tail not in constants:
            counted |= set() if {one.head, pattern.target} & joins[one.tail] else joins[one.tail]
    terms = [name for name in names if name in joins[asked] or (required and name not in counted)]
    domains = {name: domain(pattern, name, types, size) for name in terms}
    joined = {id(one): pairs(edges, one) for one in pattern.triples}
    between = []
    for one in pattern.triples:
        if one.head not in terms:
            continue
        if one.quantifier is None or (
            one.quantifier == NOT and one.tail in joins[one.head] and one.head != one.tail
        ):
            between.append(one)
        elif one.head == one.tail:
            domains[one.head] = [row for row in domains[one.head] if (row, row) not in joined[id(one)]]
        else:
            given = domain(pattern, one.tail, types, size)
            tails = set(given) if one.tail in constants else values(pattern, one.tail, edges, types, size)
            domains[one.head] = [
                row
                for row in domains[one.head]
                if fits(one.quantifier, {t for h, t in joined[id(one)] if h == row}, tails)
            ]
    found = set()

    def assign(of: dict[str, int]) -> None:
        for one in between:
            pair = of.get(one.head), of.get(one.tail)
            if None not in pair and (pair in joined[id(one)]) != (one.quantifier is None):
                return
        if len(of) == len(domains):
            found.add(of[asked])
            return
        name = next(one for one in domains if one not in of)
        for row in domains[name]:
            if name != asked or row not in found:
                assign(of | {name: row})

    assign({})
    return found


def only_counted(pattern: Pattern, name: str) -> bool:
    """Whether a term is named by triples, and by each as what it counts: then there need not be one."""
    naming = [one for one in pattern.triples if name in (one.head, one.tail)]
    return bool(naming) and all(one.quantifier is not None and one.head != name for one in naming)


def fits(count: Quantifier, every: set[int], tails: set[int]) -> bool:
    """Whether the tails of a head are as many as a count says."""
    most = len(every) if count.most is None else count.most
    return count.least <= len(every & tails) <= most and not (count.only and every - tails)
