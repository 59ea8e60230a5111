"""Which way round a question means a relation between two names: "Does Ann report to Bo?" is not "Does Bo report to
Ann?".

Read off the order of the names, the function words and endings of words around them, how the relation's own words are
used, and how like the question the judge finds the plan read either way. Fitted on questions as they were asked and
with their names exchanged (``clew train plans``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.questions.plans import YES_NO, Edge, GraphPlan, Same
from clew.triples.linking.relation_words import verbalise_relation

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.questions.names import NameMatch
    from clew.questions.text import QuestionText, Word

#: Letters at the start of two words that have one root, and those of an ending.
_ROOT, _ENDING = 4, 2
_OWNER = re.compile(r"['’]s\b")


def turn_plan(plan: GraphPlan) -> GraphPlan | None:
    """Return a plan that asks whether one relation holds between two names, with its ends exchanged; None for any
    other plan."""
    same = [each for each in plan.statements if isinstance(each, Same) and not each.denied]
    edges = [each for each in plan.statements if isinstance(each, Edge)]
    if plan.operation != YES_NO or len(plan.statements) != 2 or not same or not edges:
        return None
    (edge,) = edges
    is_plain = not (edge.quantifier or edge.repeated or edge.more_tails) and len(edge.relations) == 1
    if not is_plain or {type(edge.head), type(edge.tail)} != {int, str}:
        return None
    return replace(plan, statements=(same[0], Edge(edge.tail, edge.relations, edge.head)))


def name_ends(plan: GraphPlan) -> tuple[str, str, str]:
    """Return the head, the relation and the tail of a plan that :func:`turn_plan` turns."""
    (known,) = (each.name for each in plan.statements if isinstance(each, Same))
    (edge,) = (each for each in plan.statements if isinstance(each, Edge))
    head, tail = (known if isinstance(term, int) else term for term in (edge.head, edge.tail))
    return head, edge.relations[0], tail


def find_ends(names: Sequence[NameMatch], head: str, tail: str) -> tuple[NameMatch, NameMatch] | None:
    """Return where a question names the two ends of a relation, None where it does not name both."""
    ends = []
    for wanted in (head, tail):
        own = [match for match in names if match.name == wanted]
        if not own:
            return None
        ends.append(max(own, key=lambda match: match.likeness))
    return None if ends[0].overlaps(ends[1]) else (ends[0], ends[1])


def read_cues(question: QuestionText, names: tuple[NameMatch, NameMatch], relation: str) -> set[str]:
    """Return what of a question's words may say which of two names is the head of a relation."""
    words = question.words
    first, second = sorted(names, key=lambda match: match.first)
    label = verbalise_relation(relation).casefold().split() or [""]
    kind = "by" if "by" in label else label[-1][-_ENDING:]
    around = {
        "before first": first.first - 1,
        "behind first": first.last,
        "two before second": second.first - 2,
        "before second": second.first - 1,
        "behind second": second.last,
        "start": 0,
    }
    outside = [
        place for place in range(len(words)) if not any(each.first <= place < each.last for each in names)
    ]
    cues = {"order", f"label {kind}"}
    cues |= {f"{name} {_write(words[place])}" for name, place in around.items() if place in outside}
    if _OWNER.match(question.text, words[first.last - 1].end):
        cues |= {"owner", f"owner, label {kind}"}
    for place in outside:
        word = words[place]
        if not word.is_content:
            cues |= {f"has {word.text}", f"has {word.text}, label {kind}"}
        elif any(_have_one_root(word.text, each) for each in label):
            side = "before" if place < first.first else "between" if place < second.first else "behind"
            form = "as in label" if word.text in label else word.text[-_ENDING:]
            cues |= {
                "root",
                f"root {side}",
                f"root {form}",
                f"root {form}, label {kind}",
                f"root {side} {form}",
            }
    if "root" not in cues:
        cues.add(f"no root, label {kind}")
    return cues


def _write(word: Word) -> str:
    return f"-{word.text[-_ENDING:]}" if word.is_content else word.text


def _have_one_root(first: str, second: str) -> bool:
    return min(len(first), len(second)) >= _ROOT and first[:_ROOT] == second[:_ROOT]


@dataclass(frozen=True, slots=True)
class DirectionScorer:
    """The weights of cues, for a head that stands before the tail, and of the judge's three likenesses."""

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

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return its arrays by name."""
        return {
            "direction_cues": np.array(list(self.cues)),
            "direction_weights": np.array([*self.cues.values(), *self.likeness]),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> DirectionScorer:
        """Return the scorer of the arrays that :meth:`to_arrays` gives."""
        weights = arrays["direction_weights"]
        return cls(
            dict(zip(arrays["direction_cues"].tolist(), weights[:-3].tolist(), strict=True)), weights[-3:]
        )
