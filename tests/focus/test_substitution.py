"""Substitution against trying everything, and Algorithm 2 as printed against what it should say."""

from __future__ import annotations

from pathlib import Path

import focus_brute as brute
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from link_graphs import graph_of

from clew.errors import UsageError
from clew.focus import (
    EITHER,
    NOT,
    ONLY,
    Constant,
    Pattern,
    TypedTriple,
    Variable,
    Way,
    along,
    at_least,
    at_most,
    exactly,
    substitute,
)
from clew.kb import KnowledgeBase

SIZE = 6


@pytest.fixture
def base(tmp_path: Path):
    with KnowledgeBase.open(tmp_path / "base", create=True) as opened:
        yield opened


rows_of = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=3, unique=True)
ways = st.lists(
    st.builds(Way, st.sampled_from(["r", "s", None]), st.booleans()), min_size=1, max_size=2, unique=True
).map(tuple)
counts = st.sampled_from([None, None, None, None, NOT, ONLY, at_least(2), at_most(1), exactly(1)])
SHAPES = {
    "chain": [("c", "x"), ("x", "y"), ("y", "z")],
    "star": [("x", "c"), ("x", "d"), ("y", "x")],
    "triangle": [("x", "y"), ("y", "z"), ("z", "x")],
    "square": [("x", "y"), ("y", "z"), ("z", "w"), ("w", "x")],
    "twice": [("x", "y"), ("y", "x"), ("y", "c")],
    "loop": [("x", "x"), ("x", "y"), ("y", "y")],
    "with a tail": [("x", "y"), ("y", "z"), ("z", "x"), ("z", "w"), ("w", "d")],
    "shared constant": [("x", "c"), ("y", "c"), ("x", "y")],
    "apart": [("x", "c"), ("y", "z")],
}


@st.composite
def cases(draw, counting: bool = False):
    edge = st.tuples(st.integers(0, SIZE - 1), st.sampled_from("rst"), st.integers(0, SIZE - 1))
    edges = draw(st.sets(edge, min_size=1, max_size=30))
    types = {row: draw(st.sets(st.sampled_from(["a", "b"]), max_size=2)) for row in range(SIZE)}
    shape = draw(st.sampled_from(sorted(SHAPES)))
    triples = []
    for head, tail in SHAPES[shape]:
        if draw(st.booleans()):
            head, tail = tail, head
        count = draw(counts) if counting else None
        if head == tail and count is not None:
            count = NOT
        triples.append(TypedTriple(head, draw(ways), tail, count))
    names = sorted({end for one in triples for end in (one.head, one.tail)} | {"x"})
    variables, constants = [], []
    for name in names:
        if name in "cd":
            constants.append(Constant(name, tuple(draw(rows_of))))
            continue
        rows = np.array(draw(rows_of)) if draw(st.integers(0, 5)) == 0 else None
        out = tuple(draw(rows_of)) if draw(st.integers(0, 3)) == 0 else ()
        kinds = tuple(draw(st.sampled_from([(), (), ("a",), ("a", "b"), ("none",)])))
        variables.append(Variable(name, kinds, rows, out))
    allowed = np.array(draw(rows_of)) if draw(st.integers(0, 5)) == 0 else None
    target = draw(st.sampled_from([one.name for one in variables]))
    pattern = Pattern(target, tuple(variables), tuple(constants), tuple(triples), answers=allowed)
    return edges, types, pattern


def check(case) -> None:
    edges, types, pattern = case
    edges = edges | {(SIZE, r, SIZE + 1) for r in "rst"}  # every relation occurs
    types, size = types | {SIZE: set(), SIZE + 1: set()}, SIZE + 2
    graph = brute.opened(edges, types, size)
    try:
        found = substitute(graph, pattern)
    except UsageError as error:
        assert "wait for each other" in str(error)
        return
    rows = set(range(size)) if found.rows is None else set(found.rows.tolist())
    assert rows == brute.answers(pattern, edges, types, size)
    if rows and not any(one.count for one in pattern.triples):
        for name, got in found.sets.items():  # a superset of the exact values of every other term
            exact = brute.values(pattern, name, edges, types, size)
            assert got is None or exact <= set(got.tolist())


SETTINGS = settings(max_examples=60, deadline=None)


@SETTINGS
@given(cases())
def test_the_targets_rows_are_those_that_trying_everything_finds(case) -> None:
    check(case)


@SETTINGS
@given(cases(counting=True))
def test_so_they_are_where_triples_count_or_deny(case) -> None:
    joins = brute.components(case[2].triples, [one.name for one in (*case[2].variables, *case[2].constants)])
    # What is counted among what the head's own triples lead to has a test of its own.
    assume(
        all(t.count in (None, NOT) or t.tail not in joins[t.head] or t.tail in "cd" for t in case[2].triples)
    )
    check(case)
