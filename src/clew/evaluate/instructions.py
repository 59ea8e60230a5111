"""Files to train from: ordered passages for encoders, instructions for guides (KGP paper, Supplementary 8.1).

All are JSON lines and written in the order of the examples, so that the same data makes the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clew.errors import unknown_name_error
from clew.evaluate.chains import evidence_chains
from clew.evaluate.corpora import shuffle_paragraphs

if TYPE_CHECKING:
    from clew.evaluate.examples import Example

INSTRUCTION = "What evidence do we need to answer the question given the current evidence?"
"""The instruction of Listing 1."""

Form = Literal["instruction", "prefix"]


def chain_records(example: Example, negatives: int = 2, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield one record for each order of the example's gold passages.

    ``passages`` are in order, each with ``title``, ``text`` and ``facts`` (its supporting sentences);
    ``negatives`` are paragraphs of the same corpus that hold no gold evidence, drawn by the seed and the
    question's id. DPR pairs the question with every passage; MDR with the first, and the question and what
    came before with the next (Supplementary 8.2).
    """
    for chain in evidence_chains(example):
        gold = {(one.title, one.text) for one in chain.passages}
        others = [one for one in example.corpus if (one.title, one.text) not in gold]
        yield {
            "id": chain.example,
            "question": chain.question,
            "answer": chain.answer,
            "type": chain.question_type,
            "passages": [
                {"title": one.title, "text": one.text, "facts": one.facts} for one in chain.passages
            ],
            "negatives": [
                {"title": one.title, "text": one.text} for one in shuffle_paragraphs(example.id, others, seed)[:negatives]
            ],
        }


@dataclass(frozen=True, slots=True)
class GuideStep:
    """What a guide learns: the question, the supporting facts so far (one space between), and the next ones."""

    question: str
    evidence: str
    next_evidence: str


def guide_steps(example: Example) -> Iterator[GuideStep]:
    """Yield each step of the example's chains once. The first fact is given, not asked for: in the paper's
    data, as in its walk, it comes from TF-IDF."""
    found: dict[GuideStep, None] = {}
    for chain in evidence_chains(example):
        facts = [one.facts for one in chain.passages]
        for number in range(1, len(facts)):
            found[GuideStep(chain.question, " ".join(facts[:number]), facts[number])] = None
    yield from found


def instruction_records(example: Example, form: Form = "instruction") -> Iterator[dict[str, str]]:
    """Yield what a guide is tuned on: the question with the evidence so far, and the evidence that is next.

    ``instruction`` is Listing 1 (LLaMA): ``instruction``, ``input``, ``output``. ``prefix`` is the form for
    T5: ``input`` starts with the instruction.
    """
    yield from map(_FORMS[form], guide_steps(example))


_FORMS: dict[str, Callable[[GuideStep], dict[str, str]]] = {
    "instruction": lambda step: {
        "instruction": INSTRUCTION,
        "input": f"{step.question} {step.evidence}",
        "output": step.next_evidence,
    },
    "prefix": lambda step: {
        "input": f"{INSTRUCTION} {step.question} {step.evidence}",
        "output": step.next_evidence,
    },
}


def write_chains(path: Path, examples: Iterable[Example], negatives: int = 2, seed: int = 0) -> int:
    """Write ordered passages of all examples whose order can be told; return the number of lines."""
    return _write(path, (one for example in examples for one in chain_records(example, negatives, seed)))


def write_instructions(path: Path, examples: Iterable[Example], form: str = "instruction") -> int:
    """Write instruction data; return the number of lines. Raises UsageError for an unknown form."""
    if form not in _FORMS:
        raise unknown_name_error("form of instruction data", form, _FORMS)
    chosen: Form = "prefix" if form == "prefix" else "instruction"
    return _write(path, (one for example in examples for one in instruction_records(example, chosen)))


def _write(path: Path, records: Iterable[dict[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as stream:
        for count, record in enumerate(records, 1):  # noqa: B007
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
    return count
