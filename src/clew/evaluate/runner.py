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

from clew.core.errors import UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Usage
from clew.evaluate.examples import Result
from clew.evaluate.metrics.grading import AnswerToGrade
from clew.evaluate.records import (
    answer_record,
    read_result,
)

if TYPE_CHECKING:
    from clew.core.protocols import Method
    from clew.evaluate.examples import Example
    from clew.evaluate.metrics.grading import Grader

#: Answers that are graded with one batch of calls: what a kill loses at the most.
_GRADED_AT_ONCE = 16
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
                    "usage": made.usage.to_dict(),
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
