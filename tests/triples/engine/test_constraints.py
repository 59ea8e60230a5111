"""Quantifiers, negation, predicates, contradictions and explanations on films, with answers worked by hand.

film      director  actors            year        genre
Alien     Scott     Weaver, Hurt      1979        horror
Gladiator Scott     Crowe, Hurt       2000-05-05  drama
Tenet     Nolan     Pattinson         2020        drama, thriller
Gran      Eastwood  Eastwood          2008        drama
Silent    Nolan     -                 -           horror
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clew.store.store import Store
from clew.triples.engine.constraint_scores import constraint_scores
from clew.triples.engine.patterns import (
    ANY_DIRECTION,
    Constant,
    Pattern,
    Predicate,
    TypedTriple,
    Variable,
    along,
)
from clew.triples.engine.relaxation import find_conflict, relax, why_not
from clew.triples.engine.substitution import substitute
from clew.triples.language.chain import NOT, ONLY, at_least, at_most, exactly
from link_graphs import graph_of

VARIABLES = ("film", "other", "who", "actor", "kind")
FILMS = {
    "Alien": ("Scott", ["Weaver", "Hurt"], {"year": 1979, "note": "In space"}),
    "Gladiator": ("Scott", ["Crowe", "Hurt"], {"year": "2000-05-05", "note": ["Rome", "Swords, sandals"]}),
    "Tenet": ("Nolan", ["Pattinson"], {"year": 2020}),
    "Gran": ("Eastwood", ["Eastwood"], {"year": 2008, "note": "Torino"}),
    "Silent": ("Nolan", [], {}),
}
GENRES = {
    "Alien": ["horror"],
    "Gladiator": ["drama"],
    "Tenet": ["drama", "thriller"],
    "Gran": ["drama"],
    "Silent": ["horror"],
}


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    triples, nodes = [], {}
    for film, (director, actors, properties) in FILMS.items():
        nodes[film] = {"types": ["film"], "properties": properties}
        triples.append((film, "directed by", director))
        triples += [(film, "stars", actor) for actor in actors]
        triples += [(film, "genre", genre) for genre in GENRES[film]]
        for person in (director, *actors):
            nodes[person] = {"types": ["person"]}
    with Store.open(tmp_path_factory.mktemp("base"), create=True) as base:
        yield graph_of(base, triples, **nodes)


def names(graph, rows) -> list[str]:
    return [entity.name for entity in graph.entities(rows)]


def row(graph, name: str) -> int:
    return int(graph.rows([f"g:{name}"])[0])


def constant_in(graph, name: str) -> Constant:
    return Constant(name, (row(graph, name),))


def pattern_over(graph, triples, target="film", constants=(), predicates=(), **options) -> Pattern:
    """A pattern in which some terms are variables, and only ``film`` has a type."""
    terms = {end for triple in triples for end in (triple.head, triple.tail)} | {target}
    known = [constant.name for constant in constants]
    return Pattern(
        target,
        tuple(
            Variable(name, ("film",) if name == "film" else ()) for name in sorted(terms) if name in VARIABLES
        ),
        (
            *constants,
            *(
                constant_in(graph, name)
                for name in sorted(terms)
                if name not in VARIABLES and name not in known
            ),
        ),
        tuple(triples),
        tuple(predicates),
        **options,
    )


BY, STARS, GENRE = along("directed by"), along("stars"), along("genre")


@pytest.mark.parametrize(
    ("quantifier", "expected"),
    [
        (NOT, ["Silent"]),
        (at_least(1), ["Alien", "Gladiator", "Gran", "Tenet"]),
        (at_least(2), ["Alien", "Gladiator"]),
        (at_most(1), ["Gran", "Silent", "Tenet"]),
        (exactly(1), ["Gran", "Tenet"]),
        (exactly(0), ["Silent"]),
    ],
)
def test_films_by_how_many_people_star_in_them(films, quantifier, expected) -> None:
    pattern = pattern_over(films, [TypedTriple("film", STARS, "who", quantifier)])
    assert names(films, substitute(films, pattern).rows) == expected


@pytest.mark.parametrize(
    ("quantifier", "expected"),
    [
        (NOT, ["Gran", "Silent", "Tenet"]),  # none of those who are in Alien
        (ONLY, ["Alien"]),  # Gladiator has Crowe besides
        (at_least(1), ["Alien", "Gladiator"]),
        (at_least(2), ["Alien"]),
    ],
)
def test_tails_are_counted_among_the_candidates_that_other_triples_leave(films, quantifier, expected) -> None:
    pattern = pattern_over(
        films, [TypedTriple("Alien", STARS, "who"), TypedTriple("film", STARS, "who", quantifier)]
    )
    assert names(films, substitute(films, pattern).rows) == expected


def test_not_between_connected_terms_is_checked_for_each_pair(films) -> None:
    # Films whose director does not act in them: Gran falls out.
    pattern = pattern_over(films, [TypedTriple("film", BY, "who"), TypedTriple("film", STARS, "who", NOT)])
    assert names(films, substitute(films, pattern).rows) == ["Alien", "Gladiator", "Silent", "Tenet"]
    # Directors, asked the other way: Eastwood has directed no film without acting in it.
    pattern = pattern_over(
        films, [TypedTriple("film", BY, "who"), TypedTriple("film", STARS, "who", NOT)], "who"
    )
    assert names(films, substitute(films, pattern).rows) == ["Nolan", "Scott"]


def test_negation_of_a_known_constant_and_of_a_missing_one(films) -> None:
    pattern = pattern_over(
        films, [TypedTriple("film", BY, "Scott"), TypedTriple("film", STARS, "Crowe", NOT)]
    )
    assert names(films, substitute(films, pattern).rows) == ["Alien"]
    nobody = (Constant("Nobody", ()),)
    pattern = pattern_over(
        films, [TypedTriple("film", BY, "Scott"), TypedTriple("film", STARS, "Nobody", NOT)], constants=nobody
    )
    assert names(films, substitute(films, pattern).rows) == ["Alien", "Gladiator"]
    pattern = pattern_over(
        films, [TypedTriple("film", BY, "Scott"), TypedTriple("film", STARS, "Nobody")], constants=nobody
    )
    assert substitute(films, pattern).is_empty


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (("year", "=", 2020), ["Tenet"]),
        (("year", "=", "1979"), ["Alien"]),
        (("year", "<", 2000), ["Alien"]),
        (("year", "<=", 2008), ["Alien", "Gladiator", "Gran"]),
        # Gladiator is of a day in May 2000, against which a bare year is the whole year.
        (("year", ">", 2000), ["Gran", "Tenet"]),
        (("year", ">", "1999"), ["Gladiator", "Gran", "Tenet"]),
        (("year", ">=", 2000), ["Gladiator", "Gran", "Tenet"]),
        (("year", "<", 2001), ["Alien", "Gladiator"]),
        (("year", "<=", 2000), ["Alien", "Gladiator"]),
        (("year", "=", 2000), ["Gladiator"]),
        (("year", "=", "2000-05-05"), ["Gladiator"]),
        (("year", "=", "2000-01-01"), []),
        (("year", ">", "2000-01-01"), ["Gladiator", "Gran", "Tenet"]),
        (("year", ">", 2000.1), ["Gladiator", "Gran", "Tenet"]),
        (("year", "between", 1999, 2000), ["Gladiator"]),
        (("year", "between", "2000-05-06", 2000), []),
        (("year", ">=", "2000-05-05"), ["Gladiator", "Gran", "Tenet"]),
        (("year", "between", 1979, 2001), ["Alien", "Gladiator"]),
        (("note", "contains", "sandals"), ["Gladiator"]),
        (("note", "contains", "ROM"), ["Gladiator"]),
        (("note", "=", "in space"), ["Alien"]),
        (("note", "=", "space"), []),
        (("note", "contains", "space torino"), []),  # no match runs over the end of a text
        (("colour", "=", "red"), []),
    ],
)
def test_predicates_on_properties(films, test, expected) -> None:
    predicate = Predicate("film", *test)
    assert names(films, substitute(films, pattern_over(films, [], predicates=[predicate])).rows) == expected
    negated = Predicate("film", *test, negated=True)  # type: ignore[misc]
    rest = names(films, substitute(films, pattern_over(films, [], predicates=[negated])).rows)
    assert sorted(rest + expected) == sorted(FILMS)
    # A graph without columns is asked for its nodes, and says the same.
    assert (
        names(
            films, substitute(GraphWithoutArrays(films), pattern_over(films, [], predicates=[predicate])).rows
        )
        == expected
    )


class GraphWithoutArrays:
    """The same graph without its arrays, as a mounted one."""

    def __init__(self, graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str):
        return getattr(self._graph, name)

    def adjacency(self, relation, inverse=False):
        return None

    def property_values(self, property):
        return None


def test_a_graph_without_arrays_gives_the_same_answers(films) -> None:
    triples = [
        TypedTriple("film", BY, "who"),
        TypedTriple("other", BY, "who"),
        TypedTriple("other", STARS, "actor"),
        TypedTriple("film", STARS, "actor"),
        TypedTriple("film", ANY_DIRECTION, "Hurt"),
        TypedTriple("other", GENRE, "drama"),
    ]
    for extra in (
        [],
        [TypedTriple("film", GENRE, "kind", exactly(1))],
        [TypedTriple("other", STARS, "who", NOT)],
    ):
        pattern = pattern_over(films, triples + extra)
        substitution = substitute(GraphWithoutArrays(films), pattern)
        assert (
            names(films, substitution.rows)
            == names(films, substitute(films, pattern).rows)
            == ["Alien", "Gladiator"]
        )


def test_the_weakest_of_contradictory_constraints_is_relaxed(films) -> None:
    # Nolan has no film with Hurt; thrillers of 2020 agree with Nolan.
    by = TypedTriple("film", BY, "Nolan", weight=0.9)
    stars = TypedTriple("film", STARS, "Hurt", weight=0.4)
    genre = TypedTriple("film", GENRE, "thriller", weight=0.8)
    year = Predicate("film", "year", "=", 2020, weight=0.2)
    pattern = pattern_over(films, [by, stars, genre], predicates=[year])
    assert substitute(films, pattern).is_empty
    relaxed = relax(films, pattern)
    assert names(films, relaxed.rows) == ["Tenet"]
    # Year and star contradict each other, and year is the weaker; then star and genre do.
    assert all(len(conflict) == 2 and stars in conflict for conflict in relaxed.conflicts)
    assert relaxed.relaxed[-1] is stars
    whole = relax(films, pattern_over(films, [by, genre]))
    assert (whole.relaxed, whole.conflicts, names(films, whole.rows)) == ((), (), ["Tenet"])
    conflict = find_conflict(films, pattern_over(films, [by, stars]))
    assert set(conflict) == {by, stars}
    none = relax(films, pattern_over(films, [by], answer_rows=np.array([row(films, "Hurt")])))
    assert [item for item in none.relaxed if isinstance(item, Variable)] and names(films, none.rows) == [
        "Hurt"
    ]


def test_a_wrong_type_is_relaxed_too(films) -> None:
    pattern = Pattern(
        "x",
        (Variable("x", ("planet",), weight=0.1),),
        (constant_in(films, "Scott"),),
        (TypedTriple("x", BY, "Scott"),),
    )
    relaxed = relax(films, pattern)
    assert names(films, relaxed.rows) == ["Alien", "Gladiator"]
    assert [item.name for item in relaxed.relaxed] == ["x"]


def test_why_a_film_is_no_answer(films) -> None:
    by, stars = TypedTriple("film", BY, "who"), TypedTriple("film", STARS, "Hurt")
    more = TypedTriple("other", BY, "who")
    genre = TypedTriple("other", GENRE, "horror")
    pattern = pattern_over(films, [by, stars, more, genre])
    assert names(films, substitute(films, pattern).rows) == ["Alien", "Gladiator"]
    assert why_not(films, pattern, row(films, "Alien")).constraints == ()
    tenet = why_not(films, pattern, row(films, "Tenet"))  # Nolan made a horror film, but Hurt is not in Tenet
    assert tenet.constraints == (stars,) and tenet.alone
    gran = why_not(films, pattern, row(films, "Gran"))  # no Hurt, and Eastwood made no horror film
    assert stars in gran.constraints and not gran.alone and len(gran.constraints) == 2
    fenced = pattern_over(films, [by], answer_rows=np.array([row(films, "Alien")]))
    assert why_not(films, fenced, row(films, "Tenet")).restricted
    person = why_not(films, pattern, row(films, "Weaver"))
    assert len(person.constraints) > 1 and not person.restricted


def test_constraint_scores_of_each_row(films) -> None:
    actor = Constant("Actor", (row(films, "Hurt"), row(films, "Pattinson")), (1.0, 0.6))
    stars = TypedTriple("film", STARS, "Actor")
    by = TypedTriple("film", BY, "who")
    horror = TypedTriple("other", GENRE, "horror")
    more = TypedTriple("other", BY, "who")
    no_crowe = TypedTriple("film", STARS, "Crowe", NOT)
    late = Predicate("film", "year", ">", 1990)
    pattern = pattern_over(films, [stars, by, more, horror, no_crowe], constants=(actor,), predicates=[late])
    every = films.rows([f"g:{item}" for item in ("Alien", "Gladiator", "Tenet", "Gran", "Silent", "Weaver")])
    assert constraint_scores(films, pattern, every).tolist() == [
        # stars, by, more, horror, no Crowe, late, a film
        [1.0, 1, 1, 1, 1, 0, 1],  # Alien
        [1.0, 1, 1, 1, 0, 1, 1],  # Gladiator
        [0.6, 1, 1, 1, 1, 1, 1],  # Tenet
        [0.0, 1, 1, 0, 1, 1, 1],  # Gran
        [0.0, 1, 1, 1, 1, 0, 1],  # Silent
        [0.0, 0, 0, 0, 1, 0, 0],  # Weaver
    ]


def test_a_constant_is_the_same_candidate_in_all_its_triples(films) -> None:
    # Eastwood or Hurt: Gran stars and is by Eastwood; no film stars Hurt and is by Hurt.
    either = (Constant("Either", (row(films, "Eastwood"), row(films, "Hurt"))),)
    pattern = pattern_over(
        films, [TypedTriple("film", STARS, "Either"), TypedTriple("film", BY, "Either")], constants=either
    )
    assert names(films, substitute(films, pattern).rows) == ["Gran"]
    apart = pattern_over(
        films,
        [
            TypedTriple("film", STARS, "Either"),
            TypedTriple("other", BY, "Either"),
            TypedTriple("film", BY, "Scott"),
        ],
        constants=either,
    )
    assert substitute(films, apart).is_empty  # Scott's films have Hurt, and Hurt has directed nothing


def test_a_pattern_belongs_to_one_graph(films, tmp_path: Path) -> None:
    with Store.open(tmp_path / "base", create=True) as base:
        other = graph_of(base, [("Zodiac", "directed by", "Fincher")], Zodiac={"types": ["film"]})
        pattern = pattern_over(other, [TypedTriple("film", BY, "Fincher")])
        assert names(other, substitute(other, pattern).rows) == ["Zodiac"]
    pattern = pattern_over(films, [TypedTriple("film", BY, "Scott")])
    assert names(films, substitute(films, pattern).rows) == ["Alien", "Gladiator"]
