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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.text import normalise_name, title_names

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
