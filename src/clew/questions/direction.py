"""Which way round a question means a relation: "Does Ann report to Bo?" is not "Does Bo report to Ann?", and "Who
reports to Ann?" is not "Who does Ann report to?".

Read off the order of the names, the function words and endings of words around them, how the relation's own words are
used, and how like the question the judge finds the plan read either way. Where one end is asked for, the word that
asks stands for its name. Fitted on questions as they were asked, those of two names also with these exchanged (``clew
train plans``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import is_stop_term, stem
from clew.questions.closed_words import ASKING
from clew.questions.plans import (
    COUNT,
    LIST,
    YES_NO,
    Edge,
    GraphPlan,
    Kind,
    Same,
    say_plan,
    type_unknowns,
)
from clew.triples.linking.relation_words import verbalise_relation

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.questions.catalogue import GraphCatalogue
    from clew.questions.names import NameMatch
    from clew.questions.text import QuestionText

#: Letters at the start of two words that have one root, and those of an ending.
_ROOT, _ENDING = 4, 2
_OWNER = re.compile(r"['’]s\b")
#: What makes a relation's name passive, in English and German; the words that tell who does something to whom.
_BY = frozenset({"by", "von"})
_VOICE = ("by", "of")
#: Endings of a relation's name: of verbs, and of those who do something ("director").
_ENDINGS = ("ed", "s", "er", "or")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question asks for an end of a relation: its words from ``first`` to before ``last``."""

    first: int
    last: int


def turn_plan(plan: GraphPlan) -> GraphPlan | None:
    """Return a plan over one relation with its ends exchanged: whether it holds between two names, or what has it to
    one; None for any other plan."""
    edges = [each for each in plan.statements if isinstance(each, Edge)]
    if len(edges) != 1 or plan.asked_property:
        return None
    (edge,) = edges
    is_plain = not (edge.quantifier or edge.repeated or edge.more_tails) and len(edge.relations) == 1
    if not is_plain or {type(edge.head), type(edge.tail)} != {int, str}:
        return None
    others = [each for each in plan.statements if each is not edge]
    turned = Edge(edge.tail, edge.relations, edge.head)
    if plan.operation == YES_NO:
        is_known = len(others) == 1 and isinstance(others[0], Same) and not others[0].denied
        return replace(plan, statements=(*others, turned)) if is_known else None
    is_asked = plan.operation in (LIST, COUNT) and all(isinstance(each, Kind) for each in others)
    return replace(plan, statements=(turned,)) if is_asked else None


def say_ways(plans: Sequence[GraphPlan], catalogue: GraphCatalogue) -> list[str]:
    """Return a plan and the turned one in words. What is asked for has no type there, as in a graph without types:
    the two ways are to differ in nothing else."""
    return [
        say_plan(plan, type_unknowns(plan, catalogue) if plan.operation == YES_NO else {}) for plan in plans
    ]


def name_ends(plan: GraphPlan) -> tuple[str, str, str]:
    """Return the head, the relation and the tail of a plan that :func:`turn_plan` turns, "" for what is asked for."""
    known = next((each.name for each in plan.statements if isinstance(each, Same)), "")
    (edge,) = (each for each in plan.statements if isinstance(each, Edge))
    head, tail = (known if isinstance(term, int) else term for term in (edge.head, edge.tail))
    return head, edge.relations[0], tail


def find_ends(
    question: QuestionText, names: Sequence[NameMatch], head: str, tail: str
) -> tuple[NameMatch | Place, NameMatch | Place] | None:
    """Return where a question names the two ends of a relation, or asks for the one that is ""; None where it does
    not name what it has to."""
    ends: list[NameMatch | Place] = []
    for wanted in (head, tail):
        own = [match for match in names if match.name == wanted]
        if not wanted:
            asking = (place for place, word in enumerate(question.words) if word.text in ASKING)
            start = next(asking, None)
            ends.append(Place(0, 0) if start is None else Place(start, start + 1))
        elif own:
            ends.append(max(own, key=lambda match: match.likeness))
        else:
            return None
    first, second = ends
    return None if first.first < second.last and second.first < first.last else (first, second)


def stands_first(ends: tuple[NameMatch | Place, NameMatch | Place]) -> bool:
    """Return whether the first of two ends stands before the second; what nothing asks for stands before all."""
    return (ends[0].last, ends[0].first) < (ends[1].last, ends[1].first)


def read_cues(
    question: QuestionText, ends: tuple[NameMatch | Place, NameMatch | Place], relation: str
) -> set[str]:
    """Return what of a question's words may say which of two ends is the head of a relation, each by itself and with
    the form of the relation's name."""
    first, second = ends if stands_first(ends) else reversed(ends)
    label = verbalise_relation(relation).casefold().split() or [""]
    context = _Context(question, first, second)
    cues = {"order", *_cues_of_places(context)}
    has_root = False
    for place in context.outside:
        word, side = question.words[place], context.side_of(place)
        behind = context.write(place + 1)
        if not word.is_content:
            cues.add(f"has {word.text}")
        elif any(_have_one_root(word.text, each) for each in label):
            form = "as in label" if word.text in label else word.text[-_ENDING:]
            cues |= {"root", f"root {side}", f"root {form}", f"root {side} {form}", f"root, then {behind}"}
            cues |= {f"root {side}, then {behind}", f"root behind {context.write(place - 1)}"}
            has_root = True
        else:
            cues |= {f"other {side}", f"other {side} {word.text[-_ENDING:]}", f"other {side}, then {behind}"}
    words = {question.words[place].text for place in context.outside}
    voice = (*(word in words for word in _VOICE), *context.owners, has_root)
    cues |= {f"voice {voice}", f"voice {voice}, start {context.write(0)}"}
    form = _form_of(label)
    return cues | {f"{cue} | {form}" for cue in cues}


@dataclass(frozen=True, slots=True)
class _Context:
    """The words around two names of a question."""

    question: QuestionText
    first: NameMatch | Place
    second: NameMatch | Place

    @property
    def outside(self) -> list[int]:
        """The places of the words outside the names."""
        names = (self.first, self.second)
        places = range(len(self.question.words))
        return [place for place in places if not any(each.first <= place < each.last for each in names)]

    @property
    def owners(self) -> tuple[bool, bool]:
        """Whether each name has an apostrophe and s."""
        words, text = self.question.words, self.question.text
        owns = [_OWNER.match(text, words[name.last - 1].end) for name in (self.first, self.second)]
        return owns[0] is not None, owns[1] is not None

    def write(self, place: int) -> str:
        """Return a function word as it is, of another word the ending, "^" where a name or nothing stands."""
        if place not in self.outside:
            return "^"
        word = self.question.words[place]
        return f"-{word.text[-_ENDING:]}" if word.is_content else word.text

    def side_of(self, place: int) -> str:
        """Return where a word stands beside the names."""
        return "before" if place < self.first.first else "between" if place < self.second.first else "behind"


def _cues_of_places(context: _Context) -> set[str]:
    """Return the words at places beside the names, and some of them together."""
    first, second = context.first, context.second
    owns_first, owns_second = context.owners
    words = {
        "start": context.write(0),
        "next": context.write(1),
        "before first": context.write(first.first - 1),
        "behind first": "'s" if owns_first else context.write(first.last),
        "two before second": context.write(second.first - 2),
        "before second": context.write(second.first - 1),
        "behind second": "'s" if owns_second else context.write(second.last),
    }
    pairs = [
        ("behind first", "before second"),
        ("start", "before second"),
        ("two before second", "before second"),
    ]
    return {
        *(f"{place} {word}" for place, word in words.items()),
        *(f"{left} {words[left]}, {right} {words[right]}" for left, right in pairs),
    }


def _form_of(label: Sequence[str]) -> str:
    """Return the form of a relation's name: passive, a noun with "of", with another function word at its end, or its
    ending."""
    if _BY.intersection(label):
        return "by"
    if is_stop_term(stem(label[-1])):
        return "of" if label[-1] == "of" else "preposition"
    return next((ending for ending in _ENDINGS if label[-1].endswith(ending)), "plain")


def _have_one_root(first: str, second: str) -> bool:
    return min(len(first), len(second)) >= _ROOT and first[:_ROOT] == second[:_ROOT]


@dataclass(frozen=True, slots=True)
class DirectionScorer:
    """The weights of cues, for a head that stands before the tail, and of the judge's three likenesses: one for
    relations between two names, one for those of which one end is asked for."""

    cues: Mapping[str, float]
    likeness: Floats

    def score(self, cues: Iterable[str], likeness: Floats, *, is_head_first: bool) -> float:
        """Return how likely the head is meant as the head, from 0 to 1. ``likeness`` (2, 3) is the judge's, of the
        plan as it is and of the turned one."""
        order = 1.0 if is_head_first else -1.0
        # A cue says nothing by itself: it says which of the two names is which.
        total = order * math.fsum(self.cues.get(cue, 0.0) for cue in cues)
        total += float((likeness[0] - likeness[1]) @ self.likeness)
        return 1 / (1 + math.exp(-total))

    def to_arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return its arrays by name, which begins with ``name``."""
        return {
            f"{name}_cues": np.array(list(self.cues)),
            f"{name}_weights": np.array([*self.cues.values(), *self.likeness]),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray], name: str) -> DirectionScorer:
        """Return the scorer of the arrays that :meth:`to_arrays` gives."""
        weights = arrays[f"{name}_weights"]
        return cls(
            dict(zip(arrays[f"{name}_cues"].tolist(), weights[:-3].tolist(), strict=True)), weights[-3:]
        )
