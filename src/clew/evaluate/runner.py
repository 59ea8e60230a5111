"""Answers the questions of a data set and grades the answers, one JSON line each, and continues interrupted runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from clew.core.errors import UsageError
from clew.core.protocols import Method
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Usage
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics.grading import AnswerToGrade, Grader
from clew.evaluate.records import answer_record, read_result

#: Answers that are graded in one batch of model calls; an interrupt loses at most that many grades.
_GRADING_BATCH = 16
#: Returns the method that answers an example, built over its corpus.
MethodFor = Callable[["Example"], "Method"]
#: Returns the question of an example: its text, its scope within the corpus, its triples.
QuestionFor = Callable[["Example"], Question]
#: Receives the number of finished questions and their total.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file of results: one JSON line per question, in the order in which they finished.

    A last line that an interrupt cut short is ignored and overwritten.
    """

    path: Path

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the complete records. Raises UsageError for a file that holds something else."""
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
        """The file with the grades of these results."""
        return RunFile(self.path.with_suffix(".grades.jsonl"))

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Append records, each flushed to disk before the next one is taken from the iterator."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The size of the complete lines in bytes.
        size = 0 if not self.path.exists() else self.path.read_bytes().rfind(b"\n") + 1
        with self.path.open("ab") as stream:
            stream.truncate(size)
            for record in records:
                stream.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())


def answer_questions(
    examples: Sequence[Example],
    method_for: MethodFor,
    target: RunFile,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    question_for: QuestionFor = lambda example: Question(example.question),
    elsewhere: Callable[[Sequence[Example]], Iterator[dict[str, Any]]] | None = None,
) -> int:
    """Answer the questions that have no answer in ``target`` yet; return their number.

    A question that fails is recorded with its error, never as a wrong answer, and the next run asks it again.
    ``workers`` questions are answered concurrently. ``elsewhere`` answers them in place of ``method_for``: it yields
    a record for each question.
    """
    answered_ids = {record["id"] for record in target.records() if "error" not in record}
    waiting = [example for example in examples if example.id not in answered_ids]
    with ThreadPoolExecutor(max_workers=workers) as pool:
        records: Iterable[dict[str, Any]]
        if elsewhere is not None:
            records = elsewhere(waiting)
        elif workers > 1:
            records = pool.map(lambda example: answer_example(example, method_for, question_for), waiting)
        else:
            records = (answer_example(example, method_for, question_for) for example in waiting)
        target.append(_report_progress(records, len(examples) - len(waiting), len(examples), progress))
    return len(waiting)


def _report_progress(
    records: Iterable[dict[str, Any]], done: int, total: int, progress: Progress | None
) -> Iterator[dict[str, Any]]:
    for count, record in enumerate(records, done + 1):
        yield record
        if progress:
            progress(count, total)


def grade_answers(
    examples: Sequence[Example], target: RunFile, grader: Grader, progress: Progress | None = None
) -> Usage:
    """Grade the answers of ``target`` that have no grade yet (Acc); return the usage of the grading model.

    A reply that is no verdict is recorded as a problem without a grade, and the next run asks again.
    """
    graded = _read_grades(target)
    ungraded = [
        AnswerToGrade(result.example, result.answer, result.abstained)
        for id, result in read_results(examples, target)[0].items()
        if graded.get(id, (None, None))[0] != result.answer
    ]
    usages: list[Usage] = []

    def records() -> Iterator[dict[str, Any]]:
        for start in range(0, len(ungraded), _GRADING_BATCH):
            batch = ungraded[start : start + _GRADING_BATCH]
            for answer, grade in zip(batch, grader.grade(batch), strict=True):
                usages.append(grade.usage)
                yield {
                    "id": answer.example.id,
                    "answer": answer.answer,
                    "grade": grade.value,
                    "problem": grade.problem,
                    "grader": grader.model.name,
                    "usage": grade.usage.to_dict(),
                }

    target.grades.append(_report_progress(records(), 0, len(ungraded), progress))
    return sum(usages, Usage())


def _read_grades(target: RunFile) -> dict[str, tuple[str, float]]:
    """Return (graded answer, grade) by question id; an answer that changed since is not graded."""
    return {
        record["id"]: (record["answer"], record["grade"])
        for record in target.grades.records()
        if record["grade"] is not None
    }


def answer_example(example: Example, method_for: MethodFor, question_for: QuestionFor) -> dict[str, Any]:
    """Answer a question and return its record, which has the error if there was any."""
    started = time.perf_counter()
    try:
        method = method_for(example)
        question = question_for(example)
        # Building the corpus of a question, and a graph over it, does not count as answering time.
        started = time.perf_counter()
        with threadpool_limits(1, user_api="blas"):  # as KnowledgeBase.ask does
            answer = method.answer(question, TrailRecorder())
    # Any error is caught here, and only here: a run of hours must not end because of one question.
    except Exception as error:  # noqa: BLE001
        problem = f"{type(error).__name__}: {error}"
        return {"id": example.id, "error": problem, "seconds": round(time.perf_counter() - started, 4)}
    return answer_record(example, answer, time.perf_counter() - started)


def read_results(
    examples: Iterable[Example], target: RunFile
) -> tuple[dict[str, Result], dict[str, str], list[str]]:
    """Return the results and the errors by question id, and the ids of the questions without a record."""
    records = {record["id"]: record for record in target.records()}
    grades = _read_grades(target)
    results: dict[str, Result] = {}
    errors: dict[str, str] = {}
    missing: list[str] = []
    for example in examples:
        record = records.get(example.id)
        if record is None:
            missing.append(example.id)
        elif "error" in record:
            errors[example.id] = record["error"]
        else:
            result = read_result(example, record)
            graded_answer, value = grades.get(example.id, (None, None))
            results[example.id] = replace(result, grade=value if graded_answer == result.answer else None)
    return results, errors, missing
