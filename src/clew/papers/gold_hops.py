"""Gold decompositions: the hops of a question as its data set gives them, with the answers masked.

| data            | hops                                                                                          |
|-----------------|-----------------------------------------------------------------------------------------------|
| 2WikiMultihopQA | its gold triples; a head that is the tail of a triple before it is that triple's unknown       |
| MuSiQue         | its sub-questions, of which many are ``head >> relation`` already; ``#1`` is the first answer  |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.text import title_names
from clew.methods.chain.text_source import rule_question
from clew.methods.chain.unknowns import Hop
from clew.triples.language.chain import Chain, Term, Triple

if TYPE_CHECKING:
    from clew.evaluate.examples import Example


@dataclass(frozen=True, slots=True)
class GoldHop:
    """One hop: what asks for the unknown ``number``, and ``gold``, what that is.

    ``asks`` is a triple whose tail is the unknown, or a sub-question in words.
    """

    number: int
    statement: Triple | Term
    gold: str

    @property
    def required_unknowns(self) -> tuple[int, ...]:
        """The numbers of the unknowns that must be known before it can be asked."""
        return (self.statement.head if isinstance(self.statement, Triple) else self.statement).unknowns

    def query(self, values: Mapping[int, str]) -> str:
        """Return what a retriever is asked: the sub-question, or the question that ``chain`` makes of a triple by
        rule.

        >>> Hop(2, Triple(Term("#1"), "country", Term("#2")), "Peru").query({1: "Lima"})
        'Where Lima: country?'
        """
        filled = self.statement.fill(values)
        return rule_question(Hop(filled, (), self.number)) if isinstance(filled, Triple) else filled.text


def gold_hops(example: Example) -> tuple[GoldHop, ...]:
    """Return the gold hops of a question in their order, none where its data set gives none."""
    if not example.chain:
        return ()
    if all(len(link) == 3 for link in example.chain):
        chain, gold = gold_chain(example)
        return tuple(GoldHop(number, one, gold[number]) for number, one in enumerate(chain.triples, 1))
    made = []
    for number, (asked, answer) in enumerate(example.chain, 1):
        head, divider, relation = (part.strip() for part in asked.partition(">>"))
        asks = Triple(Term(head), relation, Term(f"#{number}")) if divider else Term(head)
        made.append(GoldHop(number, asks, answer))
    return tuple(made)


def gold_chain(example: Example) -> tuple[Chain, dict[int, str]]:
    """Return the gold triples of a question of 2WikiMultihopQA with the tails masked, and what each unknown is.

    Strands that are compared end in ``#answer``; in a plain comparison no strand goes on from another.
    """
    known: dict[str, int] = {}
    gold: dict[int, str] = {}
    triples = []
    for number, (head, relation, tail) in enumerate(example.chain, 1):
        before = next((known[name] for name in title_names(head) if name in known), None)
        triples.append(Triple(Term(f"#{before}" if before else head), relation, Term(f"#{number}")))
        gold[number] = tail
        if example.question_type != "comparison":
            known |= dict.fromkeys(title_names(tail), number)
    compared = "comparison" in example.question_type
    return Chain(tuple(triples), None if compared else len(triples)), gold
