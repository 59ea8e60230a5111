"""Runs a method over the questions of a data set, one JSON line for each, and continues where it was stopped."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.chains.told import best_filling
from clew.errors import UsageError
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.focused import focus_record, given_answers
from clew.evaluate.metrics import Result
from clew.evaluate.metrics.grade import AnswerToGrade
from clew.shapes import usage_to_dict
from clew.trail import TrailRecorder
from clew.types import Question, Usage

if TYPE_CHECKING:
    from clew.evaluate.examples import Example
    from clew.evaluate.metrics.grade import Grader
    from clew.protocols import Method
    from clew.types import Answer

#: Answers that are graded with one batch of calls: what a kill loses at the most.
_GRADED_AT_ONCE = 16
#: The steps of a trail that answer; all others retrieve.
READ_STEP = "read"
#: Gives the method that answers a question, over the corpus that it is asked of.
MethodFor = Callable[["Example"], "Method"]
#: Gives what a method is asked for a question of a data set: its words, the part of the corpus, its triples.
QuestionFor = Callable[["Example"], Question]
#: Told of each question that ended: how many have, of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of results: a JSON line for each question, in the order in which they ended.

    A last line that a kill cut short is dropped; everything before it counts.
    """

    path: Path

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records that are whole. Raises UsageError for a file that is something else."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    record = json.loads(line)
                    record["id"]
                except (ValueError, KeyError, TypeError) as error:
                    raise UsageError(f"{self.path}, line {number}: not a result of clew eval") from error
                yield record

    @property
    def grades(self) -> RunFile:
        """The file of what a grading model said of these results."""
        return RunFile(self.path.with_suffix(".grades.jsonl"))

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Write records after the whole ones, each on disk before the next is made."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        size = self.whole_size()
        with self.path.open("ab") as stream:
            stream.truncate(size)
            for record in records:
                stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())

    def whole_size(self) -> int:
        """Return how many bytes hold whole lines."""
        if not self.path.exists():
            return 0
        return self.path.read_bytes().rfind(b"\n") + 1


def answer_questions(
    examples: Sequence[Example],
    method_for: MethodFor,
    target: RunFile,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    question_for: QuestionFor = lambda example: Question(example.question),
) -> int:
    """Answer the questions that ``target`` does not have yet; return how many were asked.

    A question whose answering fails is recorded as an error, with what was said, and asked again by the next
    run; it never counts as a wrong answer. ``workers`` questions are asked at once.
    """
    done = {record["id"] for record in target.records() if "error" not in record}
    waiting = [example for example in examples if example.id not in done]
    with ThreadPoolExecutor(max_workers=workers) as pool:
        records = (
            pool.map(lambda one: _answered(one, method_for, question_for), waiting)
            if workers > 1
            else (_answered(one, method_for, question_for) for one in waiting)
        )
        target.append(_counted(records, len(examples) - len(waiting), len(examples), progress))
    return len(waiting)


def _counted(
    records: Iterable[dict[str, Any]], done: int, total: int, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    for count, record in enumerate(records, done + 1):
        yield record
        if progress:
            progress(count, total)


def grade_answers(
    examples: Sequence[Example], target: RunFile, grader: Grader, progress: Progress | None = None
) -> Usage:
    """Grade the answers of ``target`` that have no grade yet (Acc); return what that cost.

    A reply that is no verdict is kept with the problem and no grade, and asked again by the next run.
    """
    known = _grades(target)
    waiting = [
        AnswerToGrade(one.example, one.answer, one.abstained)
        for name, one in read_results(examples, target)[0].items()
        if known.get(name, (None, None))[0] != one.answer
    ]
    spent: list[Usage] = []

    def records() -> Iterator[dict[str, Any]]:
        for start in range(0, len(waiting), _GRADED_AT_ONCE):
            batch = waiting[start : start + _GRADED_AT_ONCE]
            for one, made in zip(batch, grader.grade(batch), strict=True):
                spent.append(made.usage)
                yield {
                    "id": one.example.id,
                    "answer": one.answer,
                    "grade": made.value,
                    "problem": made.problem,
                    "grader": grader.model.name,
                    "usage": usage_to_dict(made.usage),
                }

    target.grades.append(_counted(records(), 0, len(waiting), progress))
    return sum(spent, Usage())


def _grades(target: RunFile) -> dict[str, tuple[str, float]]:
    """Return the answers that were graded, and their grades, by question."""
    return {
        record["id"]: (record["answer"], record["grade"])
        for record in target.grades.records()
        if record["grade"] is not None
    }


def _answered(example: Example, method_for: MethodFor, question_of: QuestionFor) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        method = method_for(example)
        question = question_of(example)
        # Making the base of a question's own corpus, and a graph over it, is no part of answering.
        started = time.perf_counter()
        answer = method.answer(question, TrailRecorder())
    # The one place where any error is caught: a run of hours does not end because of one question.
    except Exception as error:  # noqa: BLE001
        said = f"{type(error).__name__}: {error}"
        return {"id": example.id, "error": said, "seconds": round(time.perf_counter() - started, 4)}
    return answer_record(example, answer, time.perf_counter() - started)


def answer_record(example: Example, answer: Answer, seconds: float) -> dict[str, Any]:
    """Return what is kept of an answer: ``hits`` is what was given to read, ``evidence`` what it rests on.

    ``walk_seconds`` is the time of choosing which neighbours to visit (the latency of the KGP paper's Figures 6
    and 10), None where no graph was walked. ``given`` says of each answer that was given for true which gold it is.
    """
    gold = GoldEvidence(example)
    return {
        "id": example.id,
        "answer": answer.text,
        "abstained": answer.abstained,
        "reader": answer.reader,
        "recipe": answer.recipe,
        "hits": [
            {
                "id": hit.node.id,
                "document": hit.node.document_name,
                "page": hit.node.page,
                "score": hit.score,
                "path": list(hit.path),
                "gold": sorted(gold.matching_pieces(hit.node)),
            }
            for hit in answer.context
        ],
        "evidence": [hit.node.id for hit in answer.evidence],
        "cited": [sorted(gold.matching_pieces(hit.node)) for hit in answer.evidence],
        **given_answers(example, answer),
        "usage": usage_to_dict(answer.usage),
        "retrieval": usage_to_dict(retrieval_usage(answer)),
        "steps": [step.name for step in answer.trail],
        **_filling(answer),
        **focus_record(answer),
        "walk_seconds": _walk_seconds(answer),
        "seconds": round(seconds, 4),
    }


def retrieval_usage(answer: Answer) -> Usage:
    """Return what finding the evidence cost: of all steps but those that read it.

    As in the D3 paper (Section 5) retrieval and answering are counted apart; what Self-Ask asks itself belongs to
    retrieval, as in its Table 2, where MonoT5, which calls no model, has the calls of Self-Ask alone.
    """
    return sum((step.usage for step in answer.trail if step.name != READ_STEP), Usage())


def _filling(answer: Answer) -> dict[str, Any]:
    """Return as ``filling`` the chain that was answered from and what was found for its unknowns."""
    found = best_filling(step.detail["filling"] for step in answer.trail if step.name == "filled")
    return {} if found is None else {"filling": found}


def _walk_seconds(answer: Answer) -> float | None:
    if not any(step.name == "seed" for step in answer.trail):
        return None
    return round(sum(step.seconds for step in answer.trail if step.name == "expand"), 6)


def read_result(example: Example, record: Mapping[str, Any]) -> Result:
    """Return a record as what the metrics measure. Raises UsageError for a record of an error."""
    if "error" in record:
        raise UsageError(f"question {example.id} failed: {record['error']}")
    # Older runs did not tell retrieval apart, and kept the seconds of a walk with what it held.
    retrieval = Usage(**record["retrieval"]) if "retrieval" in record else None
    walk_seconds = (
        record["walk_seconds"] if "walk_seconds" in record else (record["walk"] or {}).get("seconds")
    )
    return Result(
        example,
        record["answer"],
        record["abstained"],
        [frozenset(hit["gold"]) for hit in record["hits"]],
        [frozenset(held) for held in record["cited"]],
        Usage(**record["usage"]),
        record["seconds"],
        walk_seconds=walk_seconds,
        retrieval=retrieval,
        answer_pieces=[frozenset(held) for held in record["given"]] if "given" in record else None,
    )


def read_results(
    examples: Iterable[Example], target: RunFile
) -> tuple[dict[str, Result], dict[str, str], list[str]]:
    """Return the results by question, the errors by question, and the questions that were not asked."""
    records = {record["id"]: record for record in target.records()}
    grades = _grades(target)
    found: dict[str, Result] = {}
    errors: dict[str, str] = {}
    missing: list[str] = []
    for example in examples:
        record = records.get(example.id)
        if record is None:
            missing.append(example.id)
        elif "error" in record:
            errors[example.id] = record["error"]
        else:
            made = read_result(example, record)
            graded, value = grades.get(example.id, (None, None))
            found[example.id] = replace(made, grade=value if graded == made.answer else None)
    return found, errors, missing
