"""Gold decompositions: the hops of a question from its data set, with the answers replaced by unknowns.

| data            | hops                                                                                          |
|-----------------|-----------------------------------------------------------------------------------------------|
| 2WikiMultihopQA | its gold triples; a head that is the tail of a triple before it is that triple's unknown       |
| MuSiQue         | its sub-questions, of which many are ``head >> relation`` already; ``#1`` is the first answer  |
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.errors import UsageError
from clew.core.text import title_names
from clew.methods.chain.text_source import rule_question
from clew.methods.chain.unknowns import Hop
from clew.triples.language.chain import Chain, Term, Triple

if TYPE_CHECKING:
    from clew.evaluate.examples import Example


@dataclass(frozen=True, slots=True)
class GoldHop:
    """One gold hop: the statement with the unknown ``number``, and its ``gold`` answer.

    ``statement`` is a triple whose tail is the unknown, or a sub-question in words.
    """

    number: int
    statement: Triple | Term
    gold: str

    @property
    def required_unknowns(self) -> tuple[int, ...]:
        """The numbers of the unknowns that need a value before the hop can be searched."""
        return (self.statement.head if isinstance(self.statement, Triple) else self.statement).unknowns

    def query(self, values: Mapping[int, str]) -> str:
        """Return the query of the hop: the sub-question, or the question that ``chain`` makes of a triple by rule.

        >>> GoldHop(2, Triple(Term("#1"), "country", Term("#2")), "Peru").query({1: "Lima"})
        'Where Lima: country?'
        """
        filled = self.statement.fill(values)
        return rule_question(Hop(filled, (), self.number)) if isinstance(filled, Triple) else filled.text


def gold_hops(example: Example) -> tuple[GoldHop, ...]:
    """Return the gold hops of a question in order, none where its data set has no decomposition."""
    if not example.chain:
        return ()
    if all(len(link) == 3 for link in example.chain):
        chain, gold = gold_chain(example)
        return tuple(GoldHop(number, triple, gold[number]) for number, triple in enumerate(chain.triples, 1))
    hops = []
    for number, (statement, answer) in enumerate(example.chain, 1):
        head, divider, relation = (part.strip() for part in statement.partition(">>"))
        parsed = Triple(Term(head), relation, Term(f"#{number}")) if divider else Term(head)
        hops.append(GoldHop(number, parsed, answer))
    return tuple(hops)


def gold_chain(example: Example) -> tuple[Chain, dict[int, str]]:
    """Return the gold triples of a 2WikiMultihopQA question with unknowns for the tails, and the answer of each
    unknown.

    A comparison has no final unknown. In a plain comparison no triple continues from another one.
    """
    unknown_of_name: dict[str, int] = {}
    gold: dict[int, str] = {}
    triples = []
    for number, (head, relation, tail) in enumerate(example.chain, 1):
        previous = next(
            (unknown_of_name[name] for name in title_names(head) if name in unknown_of_name), None
        )
        triples.append(Triple(Term(f"#{previous}" if previous else head), relation, Term(f"#{number}")))
        gold[number] = tail
        if example.question_type != "comparison":
            unknown_of_name |= dict.fromkeys(title_names(tail), number)
    is_comparison = "comparison" in example.question_type
    return Chain(tuple(triples), None if is_comparison else len(triples)), gold


def make_exemplars(examples: Sequence[Example], number: int, seed: int) -> list[dict[str, str]]:
    """Return few-shot exemplars for ``chain``, ``fewshot`` and ``cot``, made of training questions drawn at random:
    their gold triples as chain, the same filled, and the answer with a sentence for each triple.

    The paper's are drawn so, and their chains written by hand (Su et al., NAACL 2024, Section 4.1). Questions whose
    gold hops are no triples are passed over. Raises UsageError where there are fewer than ``number`` others.
    """
    fit = [
        example
        for example in examples
        if example.answers and gold_hops(example) and all(_has_triple(hop) for hop in gold_hops(example))
    ]
    if len(fit) < number:
        raise UsageError(f"{number} exemplars are requested and {len(fit)} questions have gold triples")
    exemplars = []
    for example in random.Random(seed).sample(fit, number):
        hops = gold_hops(example)
        gold = {hop.number: hop.gold for hop in hops}
        triples = tuple(hop.statement for hop in hops if isinstance(hop.statement, Triple))
        chain = Chain(triples, None if "comparison" in example.question_type else len(triples))
        filled = [triple.fill(gold) for triple in triples]
        sentences = [f"{triple.head.text}: {triple.relation} {triple.tail.text}." for triple in filled]
        exemplars.append(
            {
                "question": example.question,
                "chain": str(chain),
                "filled": "; ".join([*map(str, filled), f"final answer: {example.answers[0]}"]),
                "answer": example.answers[0],
                "thought": f"{' '.join(sentences)} So the answer is: {example.answers[0]}.",
            }
        )
    return exemplars


def _has_triple(hop: GoldHop) -> bool:
    return isinstance(hop.statement, Triple)
