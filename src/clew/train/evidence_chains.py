"""The order in which gold passages lead to the answer, for training encoders and guides.

MDR is trained on supporting facts in the order of the hops, and the KGP paper's guide on "given these, which
next?" (Wang et al., AAAI 2024, Supplementary 8.1, Listing 1). Where the order comes from:

| data            | order                                                                                       |
|-----------------|---------------------------------------------------------------------------------------------|
| 2WikiMultihopQA | its gold triples: a passage stands where its subject is the head of a triple; the strands of a comparison in both orders |
| MuSiQue         | its decomposition                                                                           |
| comparisons     | both orders                                                                                 |
| others, bridge  | the passage that holds the answer is last; where none or several do, the one that another names |

An example whose order cannot be told has no chain: nothing is guessed.
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from clew.core.errors import unknown_name_error
from clew.core.text import normalise_name, title_names
from clew.evaluate.corpora import shuffle_paragraphs

if TYPE_CHECKING:
    from clew.evaluate.examples import Example, Paragraph


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A gold passage: its paragraph, and the sentences of it that support the answer (all, if none is named)."""

    title: str
    text: str
    facts: str


@dataclass(frozen=True, slots=True)
class EvidenceChain:
    """A question with its gold passages in the order in which they lead to the answer."""

    example: str
    question: str
    answer: str
    question_type: str
    passages: tuple[GoldPassage, ...]


def evidence_chains(example: Example) -> tuple[EvidenceChain, ...]:
    """Return the orders of an example's gold passages: one, or two where two strands are compared, or none.

    None: no two gold passages, no answer, or no order that can be told.
    """
    gold = gold_passages(example)
    if len(gold) < 2 or not example.answers:
        return ()
    return tuple(
        EvidenceChain(example.id, example.question, example.answers[0], example.question_type, order)
        for order in _orders(example, gold)
    )


def gold_passages(example: Example) -> tuple[GoldPassage, ...]:
    """Return the paragraphs of the corpus that hold support, in the order in which support names them."""
    sentences: dict[Paragraph, set[int]] = {}
    for support in example.support:
        for paragraph in example.corpus:
            if paragraph.title == support.title and (
                support.sentence is not None or not support.text or support.text in paragraph.text
            ):
                held = sentences.setdefault(paragraph, set())
                if support.sentence is not None and support.sentence < len(paragraph.sentences):
                    held.add(support.sentence)
                break
    return tuple(
        GoldPassage(
            paragraph.title,
            paragraph.text,
            " ".join(paragraph.sentences[n].strip() for n in sorted(held)) or paragraph.text,
        )
        for paragraph, held in sentences.items()
    )


_Order = tuple[GoldPassage, ...]


def _orders(example: Example, gold: _Order) -> list[_Order]:
    if example.chain and all(len(link) == 3 for link in example.chain):
        return _by_triples(example, gold)
    if example.chain:
        return [gold]  # a decomposition: support already follows it
    if example.question_type == "comparison":
        return [gold, gold[::-1]]
    last = _last(example, gold)
    return [] if last is None else [(*(one for one in gold if one != last), last)]


def _last(example: Example, gold: _Order) -> GoldPassage | None:
    """Return the passage to which the others lead, by the answer, or else by being the one that is named."""
    answers = [normalise_name(answer) for answer in example.answers]
    for texts in ([one.facts for one in gold], [one.text for one in gold]):
        holders = [
            one
            for one, text in zip(gold, texts, strict=True)
            if any(_holds(text, answer) for answer in answers)
        ]
        if len(holders) == 1:
            return holders[0]
    named = [one for one in gold if any(_names(other, one) for other in gold if other != one)]
    return named[0] if len(named) == 1 else None


def _holds(text: str, name: str) -> bool:
    return bool(name) and f" {name} " in f" {normalise_name(text)} "


def _names(passage: GoldPassage, other: GoldPassage) -> bool:
    return any(_holds(passage.text, name) for name in title_names(other.title))


def _by_triples(example: Example, gold: _Order) -> list[_Order]:
    triples = example.chain
    passages = _subjects(triples, gold)
    if passages is None:
        return []
    if "comparison" not in example.question_type:
        return [tuple(dict.fromkeys(passages))]
    strands = [[passages[n] for n in strand] for strand in _strands(triples)]
    orders = (strands, strands[::-1]) if len(strands) > 1 else (strands,)
    return [tuple(dict.fromkeys(one for strand in order for one in strand)) for order in orders]


def _subjects(triples: Sequence[Sequence[str]], gold: _Order) -> list[GoldPassage] | None:
    """Return the passage of each triple, or None where triples and gold passages do not match up."""
    found: dict[int, GoldPassage] = {}
    for number, (head, _, tail) in enumerate(triples):
        matching = [one for one in gold if normalise_name(head) in title_names(one.title)]
        if len(matching) > 1:  # two films of one name: the passage of this triple also says its tail
            matching = [one for one in matching if _holds(one.text, normalise_name(tail))]
        if len(matching) == 1:
            found[number] = matching[0]
    # A head under another name (an alias, a maiden name): by the tail, or because only it is left.
    for number, (_, _, tail) in enumerate(triples):
        left = [one for one in gold if one not in found.values()]
        saying = [one for one in left if _holds(one.facts, normalise_name(tail))]
        if number not in found and len(saying) == 1:
            found[number] = saying[0]
    left = [one for one in gold if one not in found.values()]
    missing = [number for number in range(len(triples)) if number not in found]
    if len(left) == len(missing) == 1:
        found[missing[0]] = left.pop()
    return [found[n] for n in range(len(triples))] if not left and len(found) == len(triples) else None


def _strands(triples: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the numbers of the triples, strand by strand: a triple goes on where its head was a tail before."""
    strands: list[list[int]] = []
    for number, triple in enumerate(triples):
        head = normalise_name(triple[0])
        for strand in strands:
            if any(head in (normalise_name(triples[n][0]), normalise_name(triples[n][2])) for n in strand):
                strand.append(number)
                break
        else:
            strands.append([number])
    return strands


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
                {"title": one.title, "text": one.text}
                for one in shuffle_paragraphs(example.id, others, seed)[:negatives]
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


# MERGED: Files to train from: ordered passages for encoders, instructions for guides (KGP paper, Supplementary 8.1).
