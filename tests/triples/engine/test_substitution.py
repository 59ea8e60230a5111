"""Substitution against two oracles: every assignment tried, and the paper's Algorithm 2 on Python sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import clew.triples.engine.candidates as engine_candidates
import clew.triples.engine.edges as engine_edges
import clew.triples.engine.substitution as engine_fixpoint
import focus_brute as brute
from clew.core.errors import UsageError
from clew.triples.engine import reference
from clew.triples.engine.patterns import (
    ANY_DIRECTION,
    Constant,
    DirectedRelation,
    Pattern,
    TypedTriple,
    Variable,
    along,
    connected_terms,
)
from clew.triples.engine.substitution import substitute
from clew.triples.language.chain import NOT, ONLY, Quantifier, at_least, at_most, exactly

SIZE = 6

rows_of = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=3, unique=True)
relations = st.lists(
    st.builds(DirectedRelation, st.sampled_from(["r", "s", None]), st.booleans()),
    min_size=1,
    max_size=2,
    unique=True,
).map(tuple)
quantifiers = st.sampled_from([None, None, None, None, NOT, ONLY, at_least(2), at_most(1), exactly(1)])
#: Terms of which a pattern is made, those of ``cd`` constants; which of them are joined is drawn.
POOLS = ["xc", "xcd", "xyc", "xycd", "xyz", "xyzc", "xyzw", "xyzcd", "xyzwc"]
EDGES = st.sets(
    st.tuples(st.integers(0, SIZE - 1), st.sampled_from("rst"), st.integers(0, SIZE - 1)),
    min_size=1,
    max_size=30,
)


@st.composite
def cases(draw, quantified: bool = False):
    """A graph (edges, types of its rows) and a pattern over it."""
    edges = draw(EDGES)
    types = {row: draw(st.sets(st.sampled_from(["a", "b"]), max_size=2)) for row in range(SIZE)}
    end = st.sampled_from(draw(st.sampled_from(POOLS)))
    ends = draw(st.lists(st.tuples(end, end), min_size=1, max_size=6))
    triples = [
        TypedTriple(head, draw(relations), tail, draw(quantifiers) if quantified else None)
        for head, tail in ends
    ]
    triples = [
        replace(triple, quantifier=NOT) if triple.quantifier and triple.head == triple.tail else triple
        for triple in triples
    ]
    names = sorted({end for triple in triples for end in (triple.head, triple.tail)} | {"x"})
    variables, constants = [], []
    for name in names:
        if name in "cd":
            constants.append(Constant(name, tuple(draw(rows_of))))
            continue
        rows = np.array(draw(rows_of)) if draw(st.integers(0, 5)) == 0 else None
        excluded = tuple(draw(rows_of)) if draw(st.integers(0, 3)) == 0 else ()
        kinds = tuple(draw(st.sampled_from([(), (), ("a",), ("a", "b"), ("none",)])))
        variables.append(Variable(name, kinds, rows, excluded))
    allowed = np.array(draw(rows_of)) if draw(st.integers(0, 5)) == 0 else None
    target = draw(st.sampled_from([variable.name for variable in variables]))
    pattern = Pattern(target, tuple(variables), tuple(constants), tuple(triples), answer_rows=allowed)
    return edges, types, pattern


def check(case) -> None:
    """Assert that the target's rows are those that trying every assignment finds."""
    edges, types, pattern = case
    edges = edges | {(SIZE, r, SIZE + 1) for r in "rst"}  # every relation occurs
    types, size = types | {SIZE: set(), SIZE + 1: set()}, SIZE + 2
    graph = brute.graph_of_edges(edges, types, size)
    try:
        substitution = substitute(graph, pattern)
    except UsageError as error:
        assert "circular quantifiers" in str(error)
        return
    rows = set(range(size)) if substitution.rows is None else set(substitution.rows.tolist())
    assert rows == brute.answers(pattern, edges, types, size)
    if rows and not any(triple.quantifier for triple in pattern.triples):
        for name, candidates in substitution.candidates.items():  # a superset of the exact values
            exact = brute.values(pattern, name, edges, types, size)
            assert candidates is None or exact <= set(candidates.tolist())


SETTINGS = settings(max_examples=60, deadline=None)


@pytest.mark.slow
@SETTINGS
@given(cases())
def test_the_targets_rows_are_those_that_trying_everything_finds(case) -> None:
    check(case)


@pytest.mark.slow
@SETTINGS
@given(cases(quantified=True))
def test_the_same_holds_for_quantified_and_negated_triples(case) -> None:
    edges, types, pattern = case
    names = [term.name for term in (*pattern.variables, *pattern.constants)]
    connected = connected_terms(pattern.triples, names)
    # A count of what the head's own triples lead to has a test of its own.
    triples = tuple(
        replace(triple, quantifier=NOT)
        if triple.quantifier and triple.tail in connected[triple.head] and triple.tail not in "cd"
        else triple
        for triple in pattern.triples
    )
    check((edges, types, replace(pattern, triples=triples)))


@pytest.mark.slow
@SETTINGS
@given(cases())
def test_the_same_holds_for_deferred_triples_and_for_pairs_looked_up_by_hash(case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_fixpoint, "_DEFERRED_SHARE", 0.0)  # every triple of a cycle waits for the join
        patch.setattr(engine_candidates, "_LISTED_ANSWERS", 0)  # answer rows are tested, never listed
        patch.setattr(engine_edges, "_MIN_PAIRS", 0)
        patch.setattr(engine_edges, "_MAX_MARKED", 1 << 20)
        patch.setattr(engine_edges, "_SPARE_BITS", 0)  # too small a table: hashes of pairs collide
        check(case)


@pytest.mark.slow
@SETTINGS
@given(EDGES, st.data())
def test_without_cycles_the_engine_finds_what_the_papers_algorithm_finds(edges, data) -> None:
    # A random tree of variables; a constant hangs from some of them.
    names = ["x", "y", "z", "w"][: data.draw(st.integers(1, 4))]
    drawn = [
        (data.draw(st.sampled_from(names[:place])), data.draw(st.sampled_from("rst")), name)
        for place, name in enumerate(names)
        if place
    ]
    for place, name in enumerate(names):
        if place == 0 or data.draw(st.booleans()):
            drawn.append((name, data.draw(st.sampled_from("rst")), data.draw(st.integers(0, SIZE - 1))))
    triples = [(t, e, h) if data.draw(st.booleans()) else (h, e, t) for h, e, t in drawn]
    edges = edges | {(SIZE, r, SIZE + 1) for r in "rst"}
    expected = by_algorithm_2(triples, {name: range(SIZE + 2) for name in names}, edges)

    constants = sorted({end for h, _, t in triples for end in (h, t) if isinstance(end, int)})
    pattern = Pattern(
        "x",
        tuple(Variable(name) for name in names),
        tuple(Constant(str(row), (row,)) for row in constants),
        tuple(TypedTriple(str(h), along(e), str(t)) for h, e, t in triples),
    )
    graph = brute.graph_of_edges(edges, {row: set() for row in range(SIZE + 2)}, SIZE + 2)
    candidates = substitute(graph, pattern).candidates
    if not all(expected.values()):  # no answer at all: the engine then leaves nothing to any term
        expected = {name: set() for name in names}
    assert {name: set(candidates[name].tolist()) for name in names} == expected


@pytest.mark.slow
@SETTINGS
@given(cases())
def test_with_cycles_the_engine_keeps_no_more_than_the_papers_algorithm(case) -> None:
    edges, _, pattern = case
    triples = [
        (triple.head, "r", triple.tail)
        for triple in pattern.triples
        if "c" not in (triple.head, triple.tail) and "d" not in (triple.head, triple.tail)
    ]
    assume(triples)
    names = sorted({end for h, _, t in triples for end in (h, t)})
    edges = edges | {(SIZE, "r", SIZE + 1)}
    expected = by_algorithm_2(triples, {name: range(SIZE + 2) for name in names}, edges)
    bare = Pattern(
        names[0],
        tuple(Variable(name) for name in names),
        triples=tuple(TypedTriple(h, along(e), t) for h, e, t in triples),
    )
    graph = brute.graph_of_edges(edges, {row: set() for row in range(SIZE + 2)}, SIZE + 2)
    assert set(substitute(graph, bare).rows.tolist()) <= expected[names[0]]


def by_algorithm_2(triples, candidates, edges: brute.Edges, as_printed: bool = False) -> dict[str, set[int]]:
    """The candidates that Algorithm 2 leaves, with the paper's ``neighbors(v, e, sign)`` over a set of edges."""

    def neighbours(nodes: np.ndarray, relation: str, sign: str) -> np.ndarray:
        near, far = ("head", "tail") if sign == "-" else ("tail", "head")
        ends = [{"head": head, "tail": tail} for head, r, tail in edges if r == relation]
        return np.unique([end[far] for end in ends if end[near] in nodes.tolist()]).astype(np.int64)

    arrays = {name: np.array(sorted(rows), dtype=np.int64) for name, rows in candidates.items()}
    left, _ = reference.substitute(triples, arrays, neighbours, as_printed)
    return {name: set(rows.tolist()) for name, rows in left.items()}


def test_a_chain_comes_out_empty_by_algorithm_2_as_printed_and_right_as_corrected() -> None:
    # 0 -> 1 -> 2 and 3 -> 4: two steps from 0 is 2.
    edges = {(0, "r", 1), (1, "r", 2), (3, "r", 4)}
    triples, every = [(0, "r", "x"), ("x", "r", "y")], {"x": range(5), "y": range(5)}
    assert by_algorithm_2(triples, every, edges, as_printed=True)["y"] == set()
    assert by_algorithm_2(triples, every, edges) == {"x": {1}, "y": {2}}

    graph = brute.graph_of_edges(edges, {row: set() for row in range(5)}, 5)
    pattern = Pattern(
        "y",
        (Variable("x"), Variable("y")),
        (Constant("start", (0,)),),
        (TypedTriple("start", along("r"), "x"), TypedTriple("x", along("r"), "y")),
    )
    candidates = substitute(graph, pattern).candidates
    assert {name: rows.tolist() for name, rows in candidates.items()} == {"start": [0], "x": [1], "y": [2]}


def test_a_fixpoint_alone_keeps_what_no_triangle_holds_and_the_join_drops_it() -> None:
    # A ring of six: every node has a successor and a predecessor, but there is no triangle; 2 -> 0 makes one.
    ring = {(row, "r", (row + 1) % 6) for row in range(6)}
    triangle = (("x", "y"), ("y", "z"), ("z", "x"))
    pattern = Pattern(
        "x",
        tuple(Variable(name) for name in "xyz"),
        triples=tuple(TypedTriple(head, along("r"), tail) for head, tail in triangle),
    )
    fixpoint = by_algorithm_2(
        [(head, "r", tail) for head, tail in triangle], {name: range(6) for name in "xyz"}, ring
    )
    assert fixpoint["x"] == set(range(6))
    types = {row: set() for row in range(6)}
    assert substitute(brute.graph_of_edges(ring, types, 6), pattern).rows.tolist() == []
    closed = brute.graph_of_edges(ring | {(2, "r", 0)}, types, 6)
    assert substitute(closed, pattern).rows.tolist() == [0, 1, 2]


def test_triples_of_constants_alone_must_hold_or_there_is_no_answer() -> None:
    # 0 -> 1 and 1 -> 2. A constant that is only counted as a tail need not be there.
    graph = brute.graph_of_edges({(0, "r", 1), (1, "r", 2)}, {row: set() for row in range(3)}, 3)

    def rows(*triples: TypedTriple) -> list[int] | None:
        constants = (Constant("c", (0,)), Constant("d", (1, 2)))
        variables = (Variable("x"), Variable("y"))
        substitution = substitute(graph, Pattern("x", variables, constants, triples))
        return None if substitution.rows is None else substitution.rows.tolist()

    r = along("r")
    others = TypedTriple("x", r, "c", NOT)
    assert rows(others) == [0, 1, 2]
    assert rows(TypedTriple("c", r, "d"), others) == [0, 1, 2]
    assert rows(TypedTriple("c", r, "d"), TypedTriple("c", r, "d", NOT), others) == []
    assert rows(TypedTriple("c", r, "d"), TypedTriple("d", r, "c", NOT), others) == [0, 1, 2]
    assert rows(TypedTriple("d", r, "c"), others) == []
    assert rows(TypedTriple("c", r, "c"), others) == []
    assert rows(TypedTriple("c", r, "y", at_least(1)), others) == [0, 1, 2]
    assert rows(TypedTriple("c", r, "y", at_least(2))) == []
    assert rows(TypedTriple("c", r, "y", at_least(2)), others) == []


@pytest.mark.parametrize("chunk", [1, 7])
def test_a_few_edges_at_a_time_give_the_same_answers(chunk: int, monkeypatch) -> None:
    rng = np.random.default_rng(5)
    edges = {(int(h), "r", int(t)) for h, t in rng.integers(0, 40, (300, 2))}
    graph = brute.graph_of_edges(edges, {row: set() for row in range(40)}, 40)
    square = [("x", "y"), ("y", "z"), ("z", "w"), ("w", "x")]
    pattern = Pattern(
        "x",
        tuple(Variable(name) for name in "xyzw"),
        triples=tuple(TypedTriple(head, along("r"), tail) for head, tail in square),
    )
    expected = substitute(graph, pattern).rows.tolist()
    monkeypatch.setattr(engine_edges, "_MAX_MARKED", -1)  # pairs are looked up one by one, never all edges
    assert substitute(graph, pattern).rows.tolist() == expected
    monkeypatch.setattr(engine_edges, "CHUNK_EDGES", chunk)
    assert substitute(graph, pattern).rows.tolist() == expected
    assert 0 < len(expected) <= 40


def test_an_unrestricted_target_is_every_node_and_not_listed() -> None:
    graph = brute.graph_of_edges({(0, "r", 1)}, {0: {"a"}, 1: set(), 2: {"a"}}, 3)
    assert substitute(graph, Pattern("x", (Variable("x"),))).rows is None
    assert substitute(graph, Pattern("x", (Variable("x", ("a",)),))).rows.tolist() == [0, 2]
    restricted = Pattern("x", (Variable("x"),), answer_rows=np.array([2, 1]))
    assert substitute(graph, restricted).rows.tolist() == [1, 2]


def test_patterns_that_make_no_sense_are_refused() -> None:
    graph = brute.graph_of_edges({(0, "r", 1)}, {0: set(), 1: set()}, 2)
    x, y = Variable("x"), Variable("y")
    with pytest.raises(UsageError, match="Did you mean 'r'"):
        substitute(graph, Pattern("x", (x, y), (), (TypedTriple("x", along("rr"), "y"),)))
    with pytest.raises(UsageError, match="same name"):
        Pattern("x", (x, x))
    with pytest.raises(UsageError, match="no variable named 'z'"):
        Pattern("z", (x,))
    with pytest.raises(UsageError, match="no term named 'z'"):
        Pattern("x", (x,), (), (TypedTriple("x", ANY_DIRECTION, "z"),))
    with pytest.raises(UsageError, match="at least 3"):
        Pattern("x", (x, y), (), (TypedTriple("x", ANY_DIRECTION, "y", Quantifier(3, 2)),))
    with pytest.raises(UsageError, match="its own tails"):
        Pattern("x", (x,), (), (TypedTriple("x", ANY_DIRECTION, "x", at_least(2)),))
    circular = (TypedTriple("x", ANY_DIRECTION, "y", NOT), TypedTriple("y", ANY_DIRECTION, "x", NOT))
    with pytest.raises(UsageError, match="circular quantifiers"):
        substitute(graph, Pattern("x", (x, y), (), circular))
