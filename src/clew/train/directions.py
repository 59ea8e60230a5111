"""Training of which way round a question means a relation between two names.

The questions are those of yes or no with two names and one relation, each as it was asked and with its names
exchanged: then the relation is meant the other way. Whole graphs are held out for the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.questions.direction import DirectionScorer, find_ends, name_ends, read_cues, turn_plan
from clew.questions.names import NameScorer, find_names
from clew.questions.plans import GraphPlan, run_plan, say_plan, type_unknowns
from clew.questions.text import QuestionText
from clew.train.plan_data import Domain, PlanQuestion, PlanSource, fit_logistic, read_source
from clew.train.plan_fitting import FOLDS

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import PlanJudge
    from clew.questions.catalogue import GraphCatalogue

#: A cue of fewer questions than this is none; the weights are held to be as small as so many questions would.
_LEAST, _DECAY = 8, 10.0
#: Likenesses differ by hundredths.
_SCALE = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class DirectionExample:
    """A question with two names: its cues, the judge's ``likeness`` (2, 3) of the plan and of the turned one, whether
    the plan's head stands first, and whether the plan is what is meant."""

    domain: str
    cues: frozenset[str]
    likeness: Floats
    is_head_first: bool
    is_meant: bool


def prepare_directions(source: PlanSource, judge: PlanJudge, names: NameScorer) -> list[DirectionExample]:
    """Return the questions of a source about a relation between two names, each also with its names exchanged."""
    examples: list[DirectionExample] = []
    with Domain(source, judge.encoder) as domain:
        for question in read_source(source):
            plan, turned = question.plan, question.plan and turn_plan(question.plan)
            if plan is None or turned is None:
                continue
            outcomes = [run_plan(domain.graph, each) for each in (plan, turned)]
            if any(rows is None for rows in outcomes) or all(
                len(rows) for rows in outcomes if rows is not None
            ):
                continue  # The relation holds both ways.
            examples += _measure_both(domain.catalogue, question, (plan, turned), judge, names)
    return examples


def _measure_both(
    catalogue: GraphCatalogue,
    question: PlanQuestion,
    plans: tuple[GraphPlan, GraphPlan],
    judge: PlanJudge,
    names: NameScorer,
) -> list[DirectionExample]:
    text = QuestionText(question.question)
    head, relation, tail = name_ends(plans[0])
    ends = find_ends(find_names(catalogue, text, names), head, tail)
    if ends is None:
        return []
    cues = frozenset(read_cues(text, ends, relation))
    sentences = [say_plan(plan, type_unknowns(plan, catalogue)) for plan in plans]
    (start, stop), (next_start, next_stop) = sorted(
        (text.words[end.first].start, text.words[end.last - 1].end) for end in ends
    )
    written = text.text
    exchanged = (
        written[:start] + written[next_start:next_stop] + written[stop:next_start] + written[start:stop]
        + written[next_stop:]
    )  # fmt: skip
    is_first = ends[0].first < ends[1].first
    return [
        DirectionExample(
            question.domain, cues, judge.compare(asked, sentences), is_first == is_meant, is_meant
        )
        for asked, is_meant in ((written, True), (exchanged, False))
    ]


def fit_directions(examples: Sequence[DirectionExample]) -> DirectionScorer:
    """Return what questions give."""
    counts = Counter(cue for each in examples for cue in each.cues)
    cues = sorted(cue for cue, count in counts.items() if count >= _LEAST)
    columns = {cue: number for number, cue in enumerate(cues)}
    rows = np.zeros((len(examples), len(cues) + 3))
    for row, each in zip(rows, examples, strict=True):
        own = [columns[cue] for cue in each.cues if cue in columns]
        row[own] = 1.0 if each.is_head_first else -1.0
        row[-3:] = _SCALE * (each.likeness[0] - each.likeness[1])
    meant = np.array([each.is_meant for each in examples])
    # Without a constant: what speaks for one way speaks as much against the other.
    weights = fit_logistic(np.vstack([rows, -rows]), np.concatenate([meant, ~meant]), _DECAY)
    return DirectionScorer(dict(zip(cues, weights[:-3].tolist(), strict=True)), _SCALE * weights[-3:])


def measure_directions(examples: Sequence[DirectionExample]) -> dict[str, Any]:
    """Return how often the way is read rightly of graphs that were held out, and where it is said with 80 %."""
    domains = sorted({each.domain for each in examples})
    right = sure = of_sure = 0
    for fold in range(FOLDS):
        held_out = {domain for number, domain in enumerate(domains) if number % FOLDS == fold}
        scorer = fit_directions([each for each in examples if each.domain not in held_out])
        for each in examples:
            if each.domain in held_out:
                chance = scorer.score(each.cues, each.likeness, is_head_first=each.is_head_first)
                is_right = (chance > 0.5) == each.is_meant
                right += is_right
                of_sure += max(chance, 1 - chance) >= 0.8
                sure += is_right and max(chance, 1 - chance) >= 0.8
    return {"questions": len(examples), "right": right, "of 80 % and more": of_sure, "of these right": sure}
