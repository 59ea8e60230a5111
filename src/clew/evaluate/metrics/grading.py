"""Acc: answers graded by a language model (KGP paper, Section 5.1 and Listing 5).

As in the paper, the model sees one reference answer; here it is the canonical one. Deviations: a missing answer is
wrong, and so is any answer to an unanswerable question, both without asking the model; a reply that is no verdict is
an error, never a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.errors import BadCompletion
from clew.core.prompts.replies import undress_value
from clew.core.types import Usage

if TYPE_CHECKING:
    from clew.core.prompts.templates import Template
    from clew.core.protocols import LanguageModel
    from clew.evaluate.examples import Example

# "Return: 1", as in the prompt's examples, or the digit alone.
_VERDICT = re.compile(r"\s*(?:[*_]*[^\W\d_]+[*_\s]*[:：][*_\s]*)?([01])\s*(?:\([^()]*\))?\.?\s*")
#: "..., so I return: 1"
_RETURNED = re.compile(r"\breturn\W{1,3}([01])\W*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AnswerToGrade:
    """An answer to grade; ``abstained`` as in :class:`~clew.core.types.Answer`."""

    example: Example
    answer: str
    abstained: bool = False


@dataclass(frozen=True, slots=True)
class Grade:
    """1 for right, 0 for wrong, or None: ``problem`` then says why there is no grade."""

    value: float | None
    problem: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Grader:
    """Grades answers with ``model`` and the prompt ``grade`` (``clew.core.prompts.load_prompt("grade")``)."""

    model: LanguageModel
    template: Template

    def grade(self, answered: Sequence[AnswerToGrade]) -> list[Grade]:
        """Return a grade each, in order, with one batch of calls. Raises ModelError where the model fails."""
        grades = [_grade_without_model(answer) for answer in answered]
        open_positions = [number for number, grade in enumerate(grades) if grade is None]
        replies = self.model.complete(
            [
                self.template.render(
                    question=answered[number].example.question,
                    answer=reference_answer(answered[number].example),
                    prediction=answered[number].answer,
                )
                for number in open_positions
            ]
        )
        verdicts = dict(
            zip(
                open_positions, (_grade_from_reply(reply.text, reply.usage) for reply in replies), strict=True
            )
        )
        return [verdicts[number] if grade is None else grade for number, grade in enumerate(grades)]


def read_verdict(reply: str) -> float:
    """Return 1.0 or 0.0 from a grading reply. Raises BadCompletion for anything but a verdict.

    >>> read_verdict("Return: 1")
    1.0
    """
    text = undress_value(reply)
    match = _VERDICT.fullmatch(text) or _RETURNED.search(text)
    if match is None:
        raise BadCompletion(f"the grading model said neither 0 nor 1: {reply.strip()[:80]!r}")
    return float(match[1])


def reference_answer(example: Example) -> str:
    """Return the answer that the grading model compares with: the canonical one, or all entities of a list."""
    return ", ".join(example.answers if example.answer_type == "entities" else example.answers[:1])


def _grade_without_model(answered: AnswerToGrade) -> Grade | None:
    example = answered.example
    if example.answer_type == "unanswerable":
        return Grade(float(answered.abstained))
    if not example.answers:
        return Grade(None, "the data has no answer to grade by")
    if answered.abstained or not answered.answer.strip():
        return Grade(0.0)
    return None


def _grade_from_reply(reply: str, usage: Usage) -> Grade:
    try:
        return Grade(read_verdict(reply), usage=usage)
    except BadCompletion as error:
        return Grade(None, error.problem, usage)
