"""Training of which way round a question means a relation.

The questions are those of one relation, over graphs or written for this: of yes or no with two names, each as it was
asked and with its names exchanged, when the relation is meant the other way; and those that ask for one end. Whole
domains are held out for the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import UsageError
from clew.questions.direction import (
    DirectionScorer,
    Place,
    find_ends,
    name_ends,
    read_cues,
    say_ways,
    stands_first,
    turn_plan,
)
from clew.questions.names import NameMatch, NameScorer, find_names
from clew.questions.plans import YES_NO, Edge, GraphPlan, Same, run_plan, say_plan
from clew.questions.text import QuestionText
from clew.train.plan_data import Domain, PlanSource, fit_logistic, read_source
from clew.train.plan_fitting import FOLDS
from clew.train.sentence_questions import read_lines

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import PlanJudge

#: A cue of fewer questions than this is none; the weights are held to be as small as so many questions would.
_LEAST, _DECAY = 12, 6.0
#: Likenesses differ by hundredths.
_SCALE = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class DirectionExample:
    """A question about one relation: its cues, the judge's ``likeness`` (2, 3) of the plan and of the turned one,
    whether the plan's head stands first, whether the plan is what is meant, and whether it asks for one end."""

    domain: str
    cues: frozenset[str]
    likeness: Floats
    is_head_first: bool
    is_meant: bool
    is_asked: bool = False


def prepare_directions(source: PlanSource, judge: PlanJudge, names: NameScorer) -> list[DirectionExample]:
    """Return the questions of a source about one relation, those with two names also with these exchanged."""
    examples: list[DirectionExample] = []
    with Domain(source, judge.encoder) as domain:
        for question in read_source(source):
            plan, turned = question.plan, question.plan and turn_plan(question.plan)
            if plan is None or turned is None:
                continue
            outcomes = [run_plan(domain.graph, each) for each in (plan, turned)]
            if any(rows is None for rows in outcomes):
                continue
            is_asked = plan.operation != YES_NO
            if not is_asked and all(len(rows) for rows in outcomes if rows is not None):
                continue  # The relation holds both ways.
            text, (head, relation, tail) = QuestionText(question.question), name_ends(plan)
            ends = find_ends(text, find_names(domain.catalogue, text, names), head, tail)
            if ends is None:
                continue
            sentences = say_ways((plan, turned), domain.catalogue)
            if is_asked:
                cues = frozenset(read_cues(text, ends, relation))
                likeness = judge.compare(text.text, sentences)
                examples.append(
                    DirectionExample(question.domain, cues, likeness, stands_first(ends), True, True)
                )
            else:
                examples += _measure_both(question.domain, text, ends, relation, sentences, judge)
    return examples


def read_directions(file: Path, judge: PlanJudge) -> list[DirectionExample]:
    """Return the questions of a file of JSON lines: ``relation``, ``head``, ``tail``, the ``domain``, and a
    ``question`` of yes or no that means just that and has both names. Raises UsageError."""
    examples: list[DirectionExample] = []
    for row in read_lines(file):
        if not {"relation", "head", "tail", "question", "domain"} <= row.keys():
            raise UsageError(f"no questions about relations in {file}", "See: clew train plans --help")
        head, relation, tail = row["head"], row["relation"], row["tail"]
        text = QuestionText(row["question"])
        ends = find_ends(text, [*_find_spellings(text, head), *_find_spellings(text, tail)], head, tail)
        if ends is not None:
            plans = [
                GraphPlan((Same(1, known), edge), YES_NO)
                for known, edge in ((head, Edge(1, (relation,), tail)), (tail, Edge(1, (relation,), head)))
            ]
            sentences = [say_plan(plan, {1: ""}) for plan in plans]
            examples += _measure_both(row["domain"], text, ends, relation, sentences, judge)
    return examples


def _find_spellings(question: QuestionText, name: str) -> list[NameMatch]:
    """Return where a name stands in a question, word by word."""
    wanted = [word.text for word in QuestionText(name).words]
    words = [word.text for word in question.words]
    return [
        NameMatch(first, first + len(wanted), name, np.zeros(0, dtype=np.int64), frozenset(), 1.0)
        for first in range(len(words) - len(wanted) + 1)
        if words[first : first + len(wanted)] == wanted
    ]


def _measure_both(
    domain: str,
    question: QuestionText,
    ends: tuple[NameMatch | Place, NameMatch | Place],
    relation: str,
    sentences: Sequence[str],
    judge: PlanJudge,
) -> list[DirectionExample]:
    """Return a question and the one with its names exchanged; ``sentences`` say the plan that it means and the turned
    one."""
    cues = frozenset(read_cues(question, ends, relation))
    (start, stop), (next_start, next_stop) = sorted(
        (question.words[end.first].start, question.words[end.last - 1].end) for end in ends
    )
    written = question.text
    exchanged = (
        written[:start] + written[next_start:next_stop] + written[stop:next_start] + written[start:stop]
        + written[next_stop:]
    )  # fmt: skip
    is_first = ends[0].first < ends[1].first
    return [
        DirectionExample(domain, cues, judge.compare(asked, sentences), is_first == is_meant, is_meant)
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
    # Without a constant: what speaks for one way speaks as much against the other, so that all rows can speak for.
    rows *= np.array([[1.0 if each.is_meant else -1.0] for each in examples])
    weights = fit_logistic(rows, np.ones(len(rows), dtype=bool), _DECAY)
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
