"""Questions for a yes or no about one edge: "Did Ada Pell direct Kismet?", "Was Kismet released before 1940?".

Two names and a relation between them are looked for, a name and a comparison with a number that its relation leads
to, or two names and a third that both are joined to ("Did Ada Pell and Joel Marsh act in the same film?"). "Yes" is
that edge. "No" is said only where the first name has the relation to something else: what a graph does
not know at all, it does not deny.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.number_comparisons import find_comparisons
from clew.core.text import parse_number
from clew.core.values import EITHER, POLAR
from clew.triples.language.chain import Chain, Condition, Term, Triple, TypedChain
from clew.triples.language.wordings import OWN_VALUE
from clew.triples.questions.conditions import places_of, write_condition
from clew.triples.questions.paths import CERTAIN_NAME, NAMES_RELATION, expected_directions

if TYPE_CHECKING:
    from clew.core.number_comparisons import NumberComparison
    from clew.triples.questions.names import NameMatch
    from clew.triples.questions.paths import PathSpace, QuestionWords

#: A second name less plausible than this is taken for a word.
_MIN_PLAUSIBILITY = 0.2
#: What speaks for a relation for each tenfold number of edges that it has at the second name.
_PER_EDGES = 0.01
#: Numbers of a name beyond these are not compared.
_MOST_VALUES = 20
#: Words that ask for a third thing that two names are joined to, and those of them that name no relation.
_SHARED = frozenset("same together".split())
_ANY_RELATION = frozenset("together worked work working collaborate collaborated".split())
_COPULAS = frozenset("is are was were".split())
_BETWEEN = frozenset("a an the also one of in from by".split())


@dataclass(frozen=True, slots=True)
class Verdict:
    """A yes or no about the edges of a name along a relation. ``triples`` lead to the edge, for "no" to those that
    are there instead; ``left_out`` are words that nothing stands for; ``score``: how well the relation is named."""

    name: str
    relation: str
    is_yes: bool
    triples: TypedChain
    left_out: tuple[str, ...]
    score: float


def find_verdict(
    question: str, asked: QuestionWords, names: Sequence[NameMatch], space: PathSpace
) -> Verdict | None:
    """Return the yes or no to a question about one edge; None where it asks for none, or the graph cannot say."""
    if not POLAR.search(question) or EITHER.search(question):
        return None
    verdicts: list[Verdict] = []
    comparisons = find_comparisons(question)
    for first in names:
        if first.plausibility < CERTAIN_NAME:
            continue
        for comparison in comparisons:
            verdicts += _compare(question, asked, first, comparison, space)
        for second in names:
            if second.plausibility >= _MIN_PLAUSIBILITY and not second.overlaps(first):
                verdicts += _judge(question, asked, first, second, space)
                verdicts += _share(question, asked, first, second, space)
    # Of several relations that may be meant, one edge is enough for a yes; the best-named one says no.
    return max(verdicts, key=lambda each: (-len(each.left_out), each.is_yes, each.score), default=None)


def _compare(
    question: str, asked: QuestionWords, name: NameMatch, comparison: NumberComparison, space: PathSpace
) -> list[Verdict]:
    """Return what the numbers that a name leads to say to a comparison, for each relation that may be meant."""
    places = places_of(comparison, asked)
    if places & set(range(name.first, name.last)):
        return []
    affinity = asked.affinities.copy()
    affinity[name.first : name.last] = 0
    usable = [
        directed
        for directed in sorted(space.at_rows(name.rows))
        if not directed % 2 and space.leads_to_numbers[directed] and not space.is_property(directed)
    ]
    of_time = [directed for directed in usable if "time" in space.labels[directed // 2].kinds]
    verdicts = []
    for directed in usable:
        label = space.relations[directed // 2]
        named = float(affinity[:, directed // 2].max(initial=0.0))
        if named < NAMES_RELATION and not (comparison.is_year and of_time == [directed]):
            continue
        reached = space.graph.neighbours(name.rows, label)[1][:_MOST_VALUES]
        numbers = [parse_number(entity.name) for entity in space.graph.entities(reached)]
        known = [number for number in numbers if not math.isnan(number)]
        if known:
            is_yes = any(map(comparison.holds, known))
            triple = Triple(Term(name.name, is_name=True), label, Term("#1"))
            conditions = (write_condition(comparison, 1, OWN_VALUE),) if is_yes else ()
            written = TypedChain(Chain((triple,), 1), conditions=conditions)
            covered = {*range(name.first, name.last), *places}
            left = _left_out(question, asked, covered, directed // 2, space)
            verdicts.append(Verdict(name.name, label, is_yes, written, left, named))
    return verdicts


def _judge(
    question: str, asked: QuestionWords, first: NameMatch, second: NameMatch, space: PathSpace
) -> list[Verdict]:
    """Return what each relation that may be meant between two names says."""
    affinity = asked.affinities.copy()
    for name in (first, second):
        affinity[name.first : name.last] = 0
    is_kind = _says_kind(asked, first, second)
    from_second = space.at_rows(second.rows)
    leaving = space.at_rows(first.rows)
    wanted = expected_directions(asked, first, affinity, space)
    opposite = expected_directions(asked, second, affinity, space)
    verdicts = []
    for directed in sorted(leaving):
        relation, is_backwards = directed // 2, bool(directed % 2)
        named = float(affinity[:, relation].max(initial=0.0))
        is_named = named >= NAMES_RELATION
        if space.is_property(directed) or not (is_named or (is_kind and not is_backwards)):
            continue
        if directed ^ 1 not in from_second and not (is_named and second.plausibility >= CERTAIN_NAME):
            continue
        if directed ^ 1 in leaving:  # modules import modules: the order of the words says which imports which
            actual = -1 if is_backwards else 1
            if wanted[relation] == -actual or opposite[relation] == actual:
                continue
            if wanted[relation] != actual and opposite[relation] != -actual:
                continue
        elif directed in from_second:  # both have it in the same direction
            continue
        label = space.relations[relation]
        reached = space.graph.neighbours(first.rows, label, is_backwards)[1]
        is_yes = bool(np.isin(second.rows, reached).any())
        uses = len(space.graph.neighbours(second.rows, label, not is_backwards)[1])
        covered = {*range(first.first, first.last), *range(second.first, second.last)}
        left = _left_out(question, asked, covered, relation, space)
        score = named + _PER_EDGES * math.log10(1 + uses)
        triples = _write_edge(first, label, is_backwards, second.name if is_yes else "")
        verdicts.append(Verdict(first.name, label, is_yes, triples, left, score))
    return verdicts


def _share(
    question: str, asked: QuestionWords, first: NameMatch, second: NameMatch, space: PathSpace
) -> list[Verdict]:
    """Return whether something has edges to both names, along a relation that the question names, or along any where
    it asks for work together."""
    texts = {word.text for word in asked.words}
    between = [word.text for word in asked.words[first.last : second.first]]
    if not texts & _SHARED or between != ["and"] or second.plausibility < CERTAIN_NAME:
        return []
    affinity = asked.affinities.copy()
    for name in (first, second):
        affinity[name.first : name.last] = 0
    leaving = [{hop // 2 for hop in space.at_rows(name.rows) if hop % 2} for name in (first, second)]
    joining = sorted(leaving[0] | leaving[1])
    named = [each for each in joining if affinity[:, each].max(initial=0.0) >= NAMES_RELATION]
    relations = named or (joining if texts & _ANY_RELATION else [])
    if not (leaving[0].intersection(relations) and leaving[1].intersection(relations)):
        return []
    reached = [
        np.concatenate(
            [space.graph.neighbours(name.rows, space.relations[each], True)[1] for each in relations]
        )
        for name in (first, second)
    ]
    is_yes = bool(np.isin(reached[0], reached[1]).any())
    label = " or ".join(space.relations[each] for each in relations)
    joined = (first, second) if is_yes else (first,)
    triples = tuple(Triple(Term("#1"), label, Term(name.name, is_name=True)) for name in joined)
    covered = {place for name in (first, second) for place in range(name.first, name.last)}
    covered |= {place for place, word in enumerate(asked.words) if word.text in _SHARED | _ANY_RELATION}
    left = _left_out(question, asked, covered, relations[0], space)
    return [Verdict(first.name, label, is_yes, TypedChain(Chain(triples, 1)), left, 1.0)]


def _write_edge(name: NameMatch, relation: str, is_backwards: bool, other: str) -> TypedChain:
    """Return the edges of a name along a relation, with ``other`` that to another name alone."""
    constant, unknown = Term(name.name, is_name=True), Term("#1")
    ends = (unknown, constant) if is_backwards else (constant, unknown)
    conditions = (Condition(1, OWN_VALUE, "=", other),) if other else ()
    return TypedChain(Chain((Triple(ends[0], relation, ends[1]),), 1), conditions=conditions)


def _says_kind(asked: QuestionWords, first: NameMatch, second: NameMatch) -> bool:
    """Return whether a question asks what kind of thing a name is: "Is Kismet a comedy?"."""
    between = asked.words[first.last : second.first]
    return (
        asked.words[0].text in _COPULAS
        and 0 < first.first < second.first
        and all(word.text in _BETWEEN for word in asked.words[1 : first.first])
        and all(word.text in _BETWEEN for word in between)
    )


def _left_out(
    question: str, asked: QuestionWords, covered: set[int], relation: int, space: PathSpace
) -> tuple[str, ...]:
    """Return the content words that neither the ``covered`` places, a relation nor a type stands for."""
    left = [
        word.text
        for place, word in enumerate(asked.words)
        if place not in covered
        and not asked.is_wording(place, question)
        and not asked.names_part(place, [relation], space)
    ]
    return tuple(dict.fromkeys(left))
