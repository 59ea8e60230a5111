"""Training of which way round a question means a relation.

The questions are those of one relation, over graphs or written for this: of yes or no with two names, each as it was
asked and with its names exchanged, when the relation is meant the other way; and those that ask for one end. Whole
domains are held out for the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from clew.questions.linear import log_odds
from clew.questions.names import NameMatch, NameScorer, find_names
from clew.questions.plans import YES_NO, Edge, GraphPlan, Same, run_plan, say_plan
from clew.questions.text import QuestionText
from clew.train.plan_data import Domain, PlanSource, fit_logistic, read_source
from clew.train.plan_judge import JudgeExample
from clew.train.sentence_questions import read_lines

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, PlanJudge

#: A cue of fewer questions than this is none; the weights are held to be as small as so many questions would.
_LEAST, _DECAY = 12, 6.0
#: Likenesses differ by hundredths.
_SCALE = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class DirectionQuestion:
    """A question about one relation: its cues, the plan and the turned one in words (``sentences``), whether the
    plan's head stands first, whether the plan is what is meant, and whether it asks for one end."""

    domain: str
    question: str
    sentences: tuple[str, str]
    cues: frozenset[str]
    is_head_first: bool
    is_meant: bool
    is_asked: bool = False

    def for_judge(self) -> JudgeExample:
        """Return what a judge is trained on."""
        right = np.array([self.is_meant, not self.is_meant])
        gold = self.sentences[0 if self.is_meant else 1]
        return JudgeExample(self.question, self.sentences, np.zeros(2), right, gold)


@dataclass(frozen=True, slots=True, eq=False)
class DirectionExample:
    """A question about one relation, and the judge's ``likeness`` (2, 3) of its plan and of the turned one."""

    question: DirectionQuestion
    likeness: Floats


def compare_ways(
    questions: Sequence[DirectionQuestion], judge: PlanJudge, progress: Callable[[int, int], None]
) -> list[DirectionExample]:
    """Return the questions with what a judge finds."""
    examples = []
    for number, each in enumerate(questions):
        progress(number, len(questions))
        examples.append(DirectionExample(each, judge.compare(each.question, each.sentences)))
    return examples


def prepare_directions(source: PlanSource, encoder: Encoder, names: NameScorer) -> list[DirectionQuestion]:
    """Return the questions of a source about one relation, those with two names also with these exchanged."""
    questions: list[DirectionQuestion] = []
    with Domain(source, encoder) as domain:
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
            first, second = say_ways((plan, turned), domain.catalogue)
            cues = frozenset(read_cues(text, ends, relation))
            own = DirectionQuestion(
                question.domain, text.text, (first, second), cues, stands_first(ends), True, is_asked
            )
            questions += [own] if is_asked else [own, _exchange_names(own, text, ends)]
    return questions


def read_directions(file: Path) -> list[DirectionQuestion]:
    """Return the questions of a file of JSON lines: ``relation``, ``head``, ``tail``, the ``domain``, and a
    ``question`` of yes or no that means just that and has both names. Raises UsageError."""
    questions: list[DirectionQuestion] = []
    for row in read_lines(file):
        if not {"relation", "head", "tail", "question", "domain"} <= row.keys():
            raise UsageError(f"no questions about relations in {file}", "See: clew train plans --help")
        head, relation, tail = row["head"], row["relation"], row["tail"]
        text = QuestionText(row["question"])
        ends = find_ends(text, [*_find_spellings(text, head), *_find_spellings(text, tail)], head, tail)
        if ends is not None:
            first, second = (
                say_plan(GraphPlan((Same(1, known), edge), YES_NO), {1: ""})
                for known, edge in ((head, Edge(1, (relation,), tail)), (tail, Edge(1, (relation,), head)))
            )
            cues = frozenset(read_cues(text, ends, relation))
            own = DirectionQuestion(row["domain"], text.text, (first, second), cues, stands_first(ends), True)
            questions += [own, _exchange_names(own, text, ends)]
    return questions


def _find_spellings(question: QuestionText, name: str) -> list[NameMatch]:
    """Return where a name stands in a question, word by word."""
    wanted = [word.text for word in QuestionText(name).words]
    words = [word.text for word in question.words]
    return [
        NameMatch(first, first + len(wanted), name, np.zeros(0, dtype=np.int64), frozenset(), 1.0)
        for first in range(len(words) - len(wanted) + 1)
        if words[first : first + len(wanted)] == wanted
    ]


def _exchange_names(
    own: DirectionQuestion, question: QuestionText, ends: tuple[NameMatch | Place, NameMatch | Place]
) -> DirectionQuestion:
    """Return a question with its names exchanged, so that the turned plan is meant."""
    (start, stop), (next_start, next_stop) = sorted(
        (question.words[end.first].start, question.words[end.last - 1].end) for end in ends
    )
    written = question.text
    exchanged = (
        written[:start] + written[next_start:next_stop] + written[stop:next_start] + written[start:stop]
        + written[next_stop:]
    )  # fmt: skip
    return replace(own, question=exchanged, is_head_first=not own.is_head_first, is_meant=False)


def fit_directions(examples: Sequence[DirectionExample]) -> DirectionScorer:
    """Return what questions give."""
    counts = Counter(cue for each in examples for cue in each.question.cues)
    cues = sorted(cue for cue, count in counts.items() if count >= _LEAST)
    columns = {cue: number for number, cue in enumerate(cues)}
    rows = np.zeros((len(examples), len(cues) + 3))
    for row, each in zip(rows, examples, strict=True):
        own = [columns[cue] for cue in each.question.cues if cue in columns]
        row[own] = 1.0 if each.question.is_head_first else -1.0
        row[-3:] = _SCALE * (each.likeness[0] - each.likeness[1])
    # Without a constant: what speaks for one way speaks as much against the other, so that all rows can speak for.
    rows *= np.array([[1.0 if each.question.is_meant else -1.0] for each in examples])
    weights = fit_logistic(rows, np.ones(len(rows), dtype=bool), _DECAY)
    return DirectionScorer(dict(zip(cues, weights[:-3].tolist(), strict=True)), _SCALE * weights[-3:])


def temper_directions(scorer: DirectionScorer, unseen: Sequence[DirectionExample]) -> DirectionScorer:
    """Return a scorer as sure as questions allow which neither it nor the judge has seen: the judge is surer of those
    that it was trained on."""
    if not unseen:
        return scorer
    odds = [[(1 if each.question.is_meant else -1) * log_odds(_score(scorer, each))] for each in unseen]
    share = float(fit_logistic(np.array(odds), np.ones(len(odds), dtype=bool))[0])
    return DirectionScorer(
        {cue: share * weight for cue, weight in scorer.cues.items()}, share * scorer.likeness
    )


def _score(scorer: DirectionScorer, example: DirectionExample) -> float:
    own = example.question
    return scorer.score(own.cues, example.likeness, is_head_first=own.is_head_first)


def measure_directions(
    known: Sequence[DirectionExample], unseen: Sequence[DirectionExample]
) -> dict[str, Any]:
    """Return how often the way is read rightly of graphs that nothing has ``known``, and where it is said with 80 %;
    how sure the scorer is comes of the other ones of these."""
    scorer = fit_directions(known)
    right = sure = of_sure = 0
    for domain in sorted({each.question.domain for each in unseen}):
        own = temper_directions(scorer, [each for each in unseen if each.question.domain != domain])
        for each in unseen:
            if each.question.domain == domain:
                chance = _score(own, each)
                is_right = (chance > 0.5) == each.question.is_meant
                right += is_right
                of_sure += max(chance, 1 - chance) >= 0.8
                sure += is_right and max(chance, 1 - chance) >= 0.8
    return {"questions": len(unseen), "right": right, "of 80 % and more": of_sure, "of these right": sure}
