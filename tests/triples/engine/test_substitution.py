"""Substitution against trying everything, and Algorithm 2 as printed against what it should say."""

from __future__ import annotations

from dataclasses import replace

import clew.focus.several as engine_several
import numpy as np
import pytest
from clew.focus.several import substitute_all, substitute_rows
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import clew.triples.engine.candidates as engine_candidates
import clew.triples.engine.edges as engine_edges
import clew.triples.engine.edges as engine_lookup
import clew.triples.engine.fixpoint as engine_fixpoint
import focus_brute as brute
from clew.core.errors import UsageError
from clew.triples.engine.patterns import (
    ANY_DIRECTION,
    Constant,
    DirectedRelation,
    Pattern,
    TypedTriple,
    Variable,
    along,
)
from clew.triples.engine.substitution import substitute
from clew.triples.language.typed_chain import NOT, ONLY, Quantifier, at_least, at_most, exactly

SIZE = 6


rows_of = st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=3, unique=True)
ways = st.lists(
    st.builds(DirectedRelation, st.sampled_from(["r", "s", None]), st.booleans()),
    min_size=1,
    max_size=2,
    unique=True,
).map(tuple)
counts = st.sampled_from([None, None, None, None, NOT, ONLY, at_least(2), at_most(1), exactly(1)])
#: Terms of which a pattern is made, those of ``cd`` constants: which are joined is drawn.
POOLS = ["xc", "xcd", "xyc", "xycd", "xyz", "xyzc", "xyzw", "xyzcd", "xyzwc"]


@st.composite
def cases(draw, counting: bool = False):
    edge = st.tuples(st.integers(0, SIZE - 1), st.sampled_from("rst"), st.integers(0, SIZE - 1))
    edges = draw(st.sets(edge, min_size=1, max_size=30))
    types = {row: draw(st.sets(st.sampled_from(["a", "b"]), max_size=2)) for row in range(SIZE)}
    end = st.sampled_from(draw(st.sampled_from(POOLS)))
    joined = draw(st.lists(st.tuples(end, end), min_size=1, max_size=6))
    triples = [
        TypedTriple(head, draw(ways), tail, draw(counts) if counting else None) for head, tail in joined
    ]
    triples = [
        replace(one, quantifier=NOT) if one.quantifier is not None and one.head == one.tail else one
        for one in triples
    ]
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
    pattern = Pattern(target, tuple(variables), tuple(constants), tuple(triples), answer_rows=allowed)
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
        for name, got in found.candidates.items():  # a superset of the exact values of every other term
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
    edges, types, pattern = case
    joins = brute.components(pattern.triples, [one.name for one in (*pattern.variables, *pattern.constants)])
    # What is counted among what the head's own triples lead to has a test of its own.
    triples = tuple(
        replace(one, count=NOT) if one.count and one.tail in joins[one.head] and one.tail not in "cd" else one
        for one in pattern.triples
    )
    check((edges, types, replace(pattern, triples=triples)))


@SETTINGS
@given(cases())
def test_so_they_are_where_triples_are_put_off_and_pairs_are_marked_in_a_table(case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            engine_fixpoint, "_MOST", 0.0
        )  # whatever is left, a triple of a cycle waits for the join
        patch.setattr(engine_candidates, "_FEW", 0)  # rows that may answer are tested, not begun with
        patch.setattr(engine_lookup, "_MANY", 0)
        patch.setattr(engine_lookup, "_FEW", 1 << 20)
        patch.setattr(engine_lookup, "_ROOM", 0)  # too small a table: pairs fall together
        check(case)


def test_what_says_something_of_constants_alone_holds_or_nothing_does() -> None:
    # 0 -> 1 and 1 -> 2; of constants that are counted as tails too, which by themselves need not be there.
    graph = brute.opened({(0, "r", 1), (1, "r", 2)}, {row: set() for row in range(3)}, 3)

    def rows(*triples: TypedTriple) -> list[int] | None:
        constants = (Constant("c", (0,)), Constant("d", (1, 2)))
        variables = (Variable("x"), Variable("y"))
        found = substitute(graph, Pattern("x", variables, constants, triples)).rows
        return None if found is None else found.tolist()

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


def printed(neighbours, triples: list[tuple[str, str]], constants: dict[str, int]) -> dict[str, set[int]]:
    """Algorithm 2 as it is printed, over one relation: ``neighbours[True]`` are those that an edge leads to."""
    return transcribed(neighbours, triples, constants, lambda head, tail: (head, tail))


def corrected(neighbours, triples: list[tuple[str, str]], constants: dict[str, int]) -> dict[str, set[int]]:
    """Algorithm 2 with line 14 narrowing the tail's set, and line 19 the head's."""
    return transcribed(neighbours, triples, constants, lambda head, tail: (tail, head))


def transcribed(neighbours, triples, constants, narrowed) -> dict[str, set[int]]:
    every = {row for way in neighbours.values() for row in way}
    substitute = {end: set(every) for pair in triples for end in pair if end not in constants}
    while True:
        before = {name: set(rows) for name, rows in substitute.items()}
        for head, tail in triples:
            if head in constants:
                substitute[tail] &= neighbours[True][constants[head]]
            elif tail in constants:
                substitute[head] &= neighbours[False][constants[tail]]
            else:
                line14, line19 = narrowed(head, tail)
                substitute[line14] &= {t for h in substitute[head] for t in neighbours[True][h]}
                substitute[line19] &= {h for t in substitute[tail] for h in neighbours[False][t]}
        if substitute == before:
            return substitute


def test_algorithm_2_as_printed_finds_nothing_on_a_chain_and_corrected_what_the_engine_finds() -> None:
    # 0 -> 1 -> 2 and 3 -> 4: what follows what follows 0 is 2.
    edges = {(0, "r", 1), (1, "r", 2), (3, "r", 4)}
    neighbours = {
        True: {row: {t for h, _, t in edges if h == row} for row in range(5)},
        False: {row: {h for h, _, t in edges if t == row} for row in range(5)},
    }
    triples = [("start", "x"), ("x", "y")]
    assert printed(neighbours, triples, {"start": 0})["y"] == set()
    assert corrected(neighbours, triples, {"start": 0}) == {"x": {1}, "y": {2}}
    graph = brute.opened(edges, {row: set() for row in range(5)}, 5)
    pattern = Pattern(
        "y",
        (Variable("x"), Variable("y")),
        (Constant("start", (0,)),),
        tuple(TypedTriple(head, along("r"), tail) for head, tail in triples),
    )
    found = substitute(graph, pattern)
    assert {name: rows.tolist() for name, rows in found.candidates.items()} == {
        "start": [0],
        "x": [1],
        "y": [2],
    }


def test_a_fixpoint_alone_keeps_what_no_triangle_holds_and_the_join_drops_it() -> None:
    # A ring of six: every node has a follower and is followed, but there is no triangle; with 0 -> 1 -> 2 -> 0 one.
    ring = {(row, "r", (row + 1) % 6) for row in range(6)}
    three = (("x", "y"), ("y", "z"), ("z", "x"))
    pattern = Pattern(
        "x",
        tuple(Variable(one) for one in "xyz"),
        triples=tuple(TypedTriple(head, along("r"), tail) for head, tail in three),
    )
    types = {row: set() for row in range(6)}
    neighbours = {
        True: {row: {(row + 1) % 6} for row in range(6)},
        False: {row: {(row - 1) % 6} for row in range(6)},
    }
    assert corrected(neighbours, list(three), {})["x"] == set(range(6))
    assert substitute(brute.opened(ring, types, 6), pattern).rows.tolist() == []
    assert substitute(brute.opened(ring | {(2, "r", 0)}, types, 6), pattern).rows.tolist() == [0, 1, 2]


@pytest.mark.parametrize("chunk", [1, 7])
def test_memory_is_bounded_by_looking_at_a_few_edges_at_a_time(chunk: int, monkeypatch) -> None:
    rng = np.random.default_rng(5)
    edges = {(int(h), "r", int(t)) for h, t in rng.integers(0, 40, (300, 2))}
    graph = brute.opened(edges, {row: set() for row in range(40)}, 40)
    pattern = Pattern(
        "x",
        tuple(Variable(one) for one in "xyzw"),
        triples=tuple(
            TypedTriple(head, along("r"), tail)
            for head, tail in [("x", "y"), ("y", "z"), ("z", "w"), ("w", "x")]
        ),
    )
    whole = substitute(graph, pattern).rows.tolist()
    monkeypatch.setattr(engine_lookup, "_FEW", -1)  # pair after pair, never all edges
    assert substitute(graph, pattern).rows.tolist() == whole
    monkeypatch.setattr(engine_edges, "CHUNK", chunk)
    assert substitute(graph, pattern).rows.tolist() == whole
    assert 0 < len(whole) <= 40


def test_what_nothing_restricts_is_every_node_and_not_written_down() -> None:
    graph = brute.opened({(0, "r", 1)}, {0: {"a"}, 1: set(), 2: {"a"}}, 3)
    assert substitute(graph, Pattern("x", (Variable("x"),))).rows is None
    assert substitute(graph, Pattern("x", (Variable("x", ("a",)),))).rows.tolist() == [0, 2]
    assert substitute(graph, Pattern("x", (Variable("x"),), answer_rows=np.array([2, 1]))).rows.tolist() == [
        1,
        2,
    ]


def test_patterns_that_make_no_sense_are_refused() -> None:
    graph = brute.opened({(0, "r", 1)}, {0: set(), 1: set()}, 2)
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
    with pytest.raises(UsageError, match="among its own tails"):
        Pattern("x", (x,), (), (TypedTriple("x", ANY_DIRECTION, "x", at_least(2)),))
    waiting = (TypedTriple("x", ANY_DIRECTION, "y", NOT), TypedTriple("y", ANY_DIRECTION, "x", NOT))
    with pytest.raises(UsageError, match="wait for each other"):
        substitute(graph, Pattern("x", (x, y), (), waiting))


@SETTINGS
@given(cases(), st.integers(0, 2**32))
def test_many_patterns_at_once_are_each_by_itself(case, seed: int) -> None:
    edges, types, pattern = case
    rng = np.random.default_rng(seed)
    graph = brute.opened(edges | {(SIZE, r, SIZE + 1) for r in "rst"}, types | {6: set(), 7: set()}, SIZE + 2)

    def some() -> np.ndarray:
        return rng.choice(SIZE, rng.integers(0, 4), replace=False)

    several = [
        replace(
            pattern,
            constants=tuple(replace(one, rows=tuple(some().tolist())) for one in pattern.constants),
            variables=tuple(
                replace(one, rows=None if one.rows is None else some(), without=tuple(some().tolist()))
                for one in pattern.variables
            ),
        )
        for _ in range(4)
    ]
    several.append(replace(pattern, triples=pattern.triples[:1]))
    together = substitute_all(graph, several)
    for one, found in zip(several, together, strict=True):
        alone = substitute(graph, one)
        assert {k: v if v is None else v.tolist() for k, v in found.candidates.items()} == {
            k: v if v is None else v.tolist() for k, v in alone.candidates.items()
        }


def in_columns(pattern: Pattern, starts: list[list[int]], out: list[int]) -> list[Pattern]:
    """One pattern for each row of the columns, as `substitute` takes them."""
    return [
        replace(
            pattern,
            constants=tuple(
                Constant(one.name, (row,) if row >= 0 else ())
                for one, row in zip(pattern.constants, rows, strict=True)
            ),
            variables=tuple(
                replace(one, excluded=(*one.excluded, away)) if one.name == "x" and away >= 0 else one
                for one in pattern.variables
            ),
        )
        for rows, away in zip(zip(*starts, strict=True), out, strict=True)
    ]


@SETTINGS
@given(cases(counting=True), st.data())
def test_columns_of_constants_are_answered_as_patterns_one_by_one(case, data) -> None:
    edges, types, pattern = case
    assume(pattern.constants)
    edges = edges | {(SIZE, r, SIZE + 1) for r in "rst"}
    graph = brute.opened(edges, types | {SIZE: set(), SIZE + 1: set()}, SIZE + 2)
    number = data.draw(st.integers(1, 5))
    column = st.lists(st.integers(-1, SIZE + 1), min_size=number, max_size=number)
    starts, out = [data.draw(column) for _ in pattern.constants], data.draw(column)
    constants = {one.name: np.array(rows) for one, rows in zip(pattern.constants, starts, strict=True)}
    try:
        wanted = [substitute(graph, one).rows for one in in_columns(pattern, starts, out)]
    except UsageError as error:
        assert "wait for each other" in str(error)
        return
    if any(rows is None for rows in wanted):
        with pytest.raises(UsageError, match="nothing restricts"):
            substitute_rows(graph, pattern, constants, {"x": np.array(out)})
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_several, "TOGETHER", 2)  # several times a few together
        found = substitute_rows(graph, pattern, constants, {"x": np.array(out)})
    assert len(found) == number
    assert [found.of(n).tolist() for n in range(number)] == [rows.tolist() for rows in wanted]


def test_columns_that_do_not_fit_are_refused() -> None:
    graph = brute.opened({(0, "r", 1)}, {0: set(), 1: set()}, 2)
    pattern = Pattern(
        "x", (Variable("x"),), (Constant("c", ()), Constant("d", ())), (TypedTriple("c", along("r"), "x"),)
    )
    row = np.array([0])
    with pytest.raises(UsageError, match="no column"):
        substitute_rows(graph, pattern, {})
    with pytest.raises(UsageError, match="no constant named 'x'"):
        substitute_rows(graph, pattern, {"x": row})
    with pytest.raises(UsageError, match="no variable named 'c'"):
        substitute_rows(graph, pattern, {"c": row}, {"c": row})
    with pytest.raises(UsageError, match="different lengths"):
        substitute_rows(graph, pattern, {"c": row, "d": np.array([0, 1])})
    none = substitute_rows(graph, pattern, {"c": row[:0], "d": row[:0]})
    assert len(none) == 0
    assert none.rows.tolist() == []
