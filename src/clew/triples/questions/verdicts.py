"""Questions for a yes or no about one edge: "Did Ada Pell direct Kismet?", "Is Kismet a comedy?".

Two names and a relation between them are looked for. "Yes" is that edge. "No" is said only where the first name has
the relation to something else: what a graph does not know at all, it does not deny.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.values import EITHER, POLAR
from clew.triples.language.chain import Chain, Condition, Term, Triple, TypedChain
from clew.triples.language.wordings import OWN_VALUE
from clew.triples.questions.paths import CERTAIN_NAME, NAMES_RELATION, expected_directions
from clew.triples.questions.words import GENERIC, PERSON_WORDS

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.triples.questions.names import NameMatch
    from clew.triples.questions.paths import PathSpace, QuestionWords

#: A second name less plausible than this is taken for a word.
_MIN_PLAUSIBILITY = 0.2
#: What speaks for a relation for each tenfold number of edges that it has at the second name.
_PER_EDGES = 0.01
_COPULAS = frozenset("is are was were".split())
_BETWEEN = frozenset("a an the also one of in from by".split())


@dataclass(frozen=True, slots=True)
class Verdict:
    """A yes or no: the two names, the directed relation from the first to the second, and whether the edge is there.
    ``left_out`` are words that nothing stands for."""

    first: NameMatch
    second: NameMatch
    directed: int
    is_yes: bool
    left_out: tuple[str, ...]

    def write(self, space: PathSpace) -> TypedChain:
        """Return the edge as typed triples; for "no" those that are there instead."""
        name, unknown = Term(self.first.name, is_name=True), Term("#1")
        ends = (unknown, name) if self.directed % 2 else (name, unknown)
        triple = Triple(ends[0], space.relations[self.directed // 2], ends[1])
        own = (Condition(1, OWN_VALUE, "=", self.second.name),) if self.is_yes else ()
        return TypedChain(Chain((triple,), 1), conditions=own)


def find_verdict(
    question: str, asked: QuestionWords, names: Sequence[NameMatch], space: PathSpace
) -> Verdict | None:
    """Return the yes or no to a question about one edge; None where it asks for none, or the graph cannot say."""
    if not POLAR.search(question) or EITHER.search(question):
        return None
    verdicts: list[tuple[float, Verdict]] = []
    for first in names:
        if first.plausibility < CERTAIN_NAME:
            continue
        for second in names:
            if second.plausibility >= _MIN_PLAUSIBILITY and not second.overlaps(first):
                verdicts += _judge(question, asked, first, second, space)
    if not verdicts:
        return None
    fewest = min(len(verdict.left_out) for _, verdict in verdicts)
    usable = [item for item in verdicts if len(item[1].left_out) == fewest]
    # Of several relations that may be meant, one edge is enough for a yes; the best-named one says no.
    return max(usable, key=lambda item: (item[1].is_yes, item[0]))[1]


def _judge(
    question: str, asked: QuestionWords, first: NameMatch, second: NameMatch, space: PathSpace
) -> list[tuple[float, Verdict]]:
    """Return what each relation that may be meant between two names says, with how well it is named."""
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
        left = _left_out(question, asked, (first, second), affinity, directed, space)
        score = named + _PER_EDGES * math.log10(1 + uses)
        verdicts.append((score, Verdict(first, second, directed, is_yes, left)))
    return verdicts


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
    question: str,
    asked: QuestionWords,
    names: tuple[NameMatch, NameMatch],
    affinity: Floats,
    directed: int,
    space: PathSpace,
) -> tuple[str, ...]:
    left = []
    for place, word in enumerate(asked.words):
        if any(name.first <= place < name.last for name in names):
            continue
        is_capital = place > 0 and question[word.start].isupper() and len(word.text) > 1
        is_wording = not word.is_content or word.text in GENERIC or word.text in PERSON_WORDS
        if (is_wording and not is_capital) or affinity[place, directed // 2] >= NAMES_RELATION:
            continue
        if space.has_types and asked.type_affinities[place].max(initial=0.0) >= NAMES_RELATION:
            continue
        left.append(word.text)
    return tuple(dict.fromkeys(left))
