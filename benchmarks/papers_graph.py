"""A generated citation graph of MAG's shape, and patterns to ask it: for :mod:`focus_engine`.

    python benchmarks/papers_graph.py FOLDER --edges 20000000   # writes nodes.csv and edges.csv

Papers with short texts and a year, authors, institutions and fields of study, a tenth as many nodes as edges; degrees
follow a power law (:func:`graph_import.generate`). Everything comes from the seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from clew.core.protocols import PropertyGraph
from clew.triples.engine.patterns import Constant, Pattern, TypedTriple, Variable, along
from graph_import import generate

CITES, WRITES, TOPIC, AT = "cites", "writes", "has topic", "affiliated with"
#: Patterns by the number of their triples: relations, and the terms at both ends. Capitals are constants, those in
#: HUBS are drawn from the 0.1 % of nodes with most edges; ``x`` is asked for.
FORMS: dict[str, list[tuple[str, str, str]]] = {
    "1: papers of an author": [("A", WRITES, "x")],
    "1: papers of a field (hub)": [("x", TOPIC, "F")],
    "2: papers of an author in a field (hub)": [("A", WRITES, "x"), ("x", TOPIC, "F")],
    "2: papers in two fields (both hubs)": [("x", TOPIC, "F"), ("x", TOPIC, "G")],
    "2: co-authors": [("A", WRITES, "p"), ("x", WRITES, "p")],
    "3: papers in a field (hub) by people at an institution (hub)": [
        ("x", TOPIC, "F"), ("y", WRITES, "x"), ("y", AT, "I"),
    ],
    "3: papers that cite a paper and one of an author": [("x", CITES, "P"), ("x", CITES, "p"), ("A", WRITES, "p")],
    "3: triangle, papers that cite one that cites a hub they cite": [
        ("x", CITES, "p"), ("p", CITES, "H"), ("x", CITES, "H"),
    ],
    "4: triangle of variables in a field": [
        ("x", CITES, "p"), ("p", CITES, "q"), ("x", CITES, "q"), ("A", WRITES, "x"),
    ],
    "4: self-citations at an institution (hub)": [
        ("y", WRITES, "x"), ("x", CITES, "p"), ("y", WRITES, "p"), ("y", AT, "I"),
    ],
    "4: papers in a field (hub) that cite one in a field (hub) by people at an institution": [
        ("x", TOPIC, "F"), ("x", CITES, "p"), ("p", TOPIC, "G"), ("A", WRITES, "p"),
    ],
}  # fmt: skip
HUBS = "FGHI"
_KINDS = {
    "A": (WRITES, False),
    "F": (TOPIC, True),
    "G": (TOPIC, True),
    "H": (CITES, True),
    "I": (AT, True),
    "P": (CITES, True),
}
_TYPES = {
    CITES: ("paper", "paper"),
    WRITES: ("author", "paper"),
    TOPIC: ("paper", "field"),
    AT: ("author", "institution"),
}


def patterns(graph: PropertyGraph, number: int, seed: int) -> Iterator[tuple[str, Pattern]]:
    """Yield ``number`` patterns of each form, with its name. Constants have an edge of their relation; constants of
    one pattern are drawn by themselves, so some patterns have no answer; hubs in proportion to their edges."""
    draw = np.random.default_rng(seed)
    drawn = {name: _ends(graph, *kind, hub=name in HUBS) for name, kind in _KINDS.items()}
    for form, triples in FORMS.items():
        terms = sorted({end for head, _, tail in triples for end in (head, tail)})
        types = {
            end: kind
            for head, relation, tail in triples
            for end, kind in zip((head, tail), _TYPES[relation], strict=True)
        }
        for _ in range(number):
            yield (
                form,
                Pattern(
                    "x",
                    tuple(Variable(term, (types[term],)) for term in terms if term.islower()),
                    tuple(
                        Constant(term, (int(draw.choice(drawn[term][0], p=drawn[term][1])),))
                        for term in terms
                        if term.isupper()
                    ),
                    tuple(TypedTriple(head, along(relation), tail) for head, relation, tail in triples),
                ),
            )


def _ends(
    graph: PropertyGraph, relation: str, inverse: bool, hub: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows with an edge of a relation, any as likely as another; with ``hub`` those with most, one in a
    thousand of all nodes, as likely as they have edges."""
    edges = graph.adjacency(relation, inverse)
    assert edges is not None
    degrees = np.diff(edges.starts)
    rows = np.arange(graph.size) if edges.heads is None else np.asarray(edges.heads)
    if not hub:
        return rows[degrees > 0], None
    most = max(1, min(graph.size // 1000, int((degrees > 0).sum()) // 10))
    first = np.argsort(-degrees, kind="stable")[:most]
    return rows[first], degrees[first] / degrees[first].sum()


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    print("clew graph add", *generate(chosen.folder, chosen.edges, chosen.seed))


if __name__ == "__main__":
    main()
