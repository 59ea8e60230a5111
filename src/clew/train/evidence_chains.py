"""Chains of gold passages in the order in which they lead to the answer, and the steps of a guide made of them.

MDR is trained on supporting facts in the order of the hops, and the KGP paper's guide on "given these, which next?"
(Wang et al., AAAI 2024, Supplementary 8.1, Listing 1). The order comes from:

| data            | order                                                                                    |
|-----------------|------------------------------------------------------------------------------------------|
| 2WikiMultihopQA | its gold triples: the passage of each head; a comparison's strands in both orders |
| MuSiQue         | its decomposition                                                                        |
| comparisons     | both orders                                                                              |
| other questions | last is the passage with the answer, else the one that another passage names |

An example whose order is unclear has no chain; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.text import normalise_name, title_names

if TYPE_CHECKING:
    from clew.evaluate.examples import Example, Paragraph


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A gold passage: title and text of its paragraph, and its supporting sentences (all, if the data names none)."""

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
    """Return the chains of an example: one, or two in opposite orders for a comparison.

    There is none without two gold passages, without an answer, or without a clear order.
    """
    gold = gold_passages(example)
    if len(gold) < 2 or not example.answers:
        return ()
    return tuple(
        EvidenceChain(example.id, example.question, example.answers[0], example.question_type, order)
        for order in _passage_orders(example, gold)
    )


def gold_passages(example: Example) -> tuple[GoldPassage, ...]:
    """Return the gold passages of an example in the order of its support."""
    sentences: dict[Paragraph, set[int]] = {}
    for support in example.support:
        for paragraph in example.corpus:
            if paragraph.title == support.title and (
                support.sentence is not None or not support.text or support.text in paragraph.text
            ):
                sentence_numbers = sentences.setdefault(paragraph, set())
                if support.sentence is not None and support.sentence < len(paragraph.sentences):
                    sentence_numbers.add(support.sentence)
                break
    return tuple(
        GoldPassage(
            paragraph.title,
            paragraph.text,
            " ".join(paragraph.sentences[n].strip() for n in sorted(sentence_numbers)) or paragraph.text,
        )
        for paragraph, sentence_numbers in sentences.items()
    )


_Order = tuple[GoldPassage, ...]


def _passage_orders(example: Example, gold: _Order) -> list[_Order]:
    if example.chain and all(len(link) == 3 for link in example.chain):
        return _orders_by_triples(example, gold)
    if example.chain:
        return [gold]  # MuSiQue's support is in the order of its decomposition
    if example.question_type == "comparison":
        return [gold, gold[::-1]]
    last = _last_passage(example, gold)
    return [] if last is None else [(*(passage for passage in gold if passage != last), last)]


def _last_passage(example: Example, gold: _Order) -> GoldPassage | None:
    """Return the last passage of a chain: the one with the answer, else the one that another passage names."""
    answers = [normalise_name(answer) for answer in example.answers]
    for texts in ([passage.facts for passage in gold], [passage.text for passage in gold]):
        holders = [
            passage
            for passage, text in zip(gold, texts, strict=True)
            if any(_contains_name(text, answer) for answer in answers)
        ]
        if len(holders) == 1:
            return holders[0]
    named = [
        passage
        for passage in gold
        if any(_mentions_title(other, passage) for other in gold if other != passage)
    ]
    return named[0] if len(named) == 1 else None


def _contains_name(text: str, name: str) -> bool:
    return bool(name) and f" {name} " in f" {normalise_name(text)} "


def _mentions_title(passage: GoldPassage, other: GoldPassage) -> bool:
    return any(_contains_name(passage.text, name) for name in title_names(other.title))


def _orders_by_triples(example: Example, gold: _Order) -> list[_Order]:
    triples = example.chain
    passages = _passages_of_triples(triples, gold)
    if passages is None:
        return []
    if "comparison" not in example.question_type:
        return [tuple(dict.fromkeys(passages))]
    strands = [[passages[n] for n in strand] for strand in _split_strands(triples)]
    orders = (strands, strands[::-1]) if len(strands) > 1 else (strands,)
    return [tuple(dict.fromkeys(passage for strand in order for passage in strand)) for order in orders]


def _passages_of_triples(triples: Sequence[Sequence[str]], gold: _Order) -> list[GoldPassage] | None:
    """Return the passage of each triple, None where triples and gold passages cannot be matched."""
    passage_of_triple: dict[int, GoldPassage] = {}
    for number, (head, _, tail) in enumerate(triples):
        matching = [passage for passage in gold if normalise_name(head) in title_names(passage.title)]
        if len(matching) > 1:  # two films of one name: the passage of this triple also says its tail
            matching = [passage for passage in matching if _contains_name(passage.text, normalise_name(tail))]
        if len(matching) == 1:
            passage_of_triple[number] = matching[0]
    # The head has another name (an alias, a maiden name): match by the tail, or take the only passage left.
    for number, (_, _, tail) in enumerate(triples):
        unused = [passage for passage in gold if passage not in passage_of_triple.values()]
        supporting = [passage for passage in unused if _contains_name(passage.facts, normalise_name(tail))]
        if number not in passage_of_triple and len(supporting) == 1:
            passage_of_triple[number] = supporting[0]
    unused = [passage for passage in gold if passage not in passage_of_triple.values()]
    open_numbers = [number for number in range(len(triples)) if number not in passage_of_triple]
    if len(unused) == len(open_numbers) == 1:
        passage_of_triple[open_numbers[0]] = unused.pop()
    return (
        [passage_of_triple[n] for n in range(len(triples))]
        if not unused and len(passage_of_triple) == len(triples)
        else None
    )


def _split_strands(triples: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return the numbers of the triples grouped by strand: a triple continues the strand that has its head."""
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


@dataclass(frozen=True, slots=True)
class GuideStep:
    """A training example of a guide: the question, the supporting facts so far, joined by spaces, and the next
    ones."""

    question: str
    evidence: str
    next_evidence: str


def guide_steps(example: Example) -> Iterator[GuideStep]:
    """Yield the steps of the example's chains without duplicates.

    No step asks for the first fact: in the paper's data, as in its walk, TF-IDF finds it.
    """
    unique_steps: dict[GuideStep, None] = {}
    for chain in evidence_chains(example):
        facts = [passage.facts for passage in chain.passages]
        for number in range(1, len(facts)):
            unique_steps[GuideStep(chain.question, " ".join(facts[:number]), facts[number])] = None
    yield from unique_steps
