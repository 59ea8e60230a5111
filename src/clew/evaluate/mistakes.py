"""Why the method ``chain`` was wrong: the error classes of Su et al. (NAACL 2024, Appendix H), told from its trail.

In the paper people sorted 87 errors by hand; here a rule does, so that every run can be counted. What it goes by, the
first that holds:

| class               | when                                                                                       |
|---------------------|--------------------------------------------------------------------------------------------|
| false negative      | no exact match, but F1 of 0.6 or more, the gold answer within the answer, the same date or number in other words, or a grading model said that it is right |
| reasoning chain     | no chain could be written, or it does not fit the gold one: another number of hops, or a constant of the gold one that is in none of its triples |
| unfilled            | the chain fits, but an unknown of it has no value                                          |
| knowledge retrieval | the chain fits and is filled, but the gold answer of some hop is among no unknown's values   |
| final answer        | every hop got its gold answer, and the end is wrong                                        |
| undecided           | the data set has no gold chain to compare with (Bamboogle, FEVER), and all was filled       |

The paper counts what was not filled as knowledge retrieval. Heuristics: a chain that says the same in more or fewer
hops than the gold one counts as wrong, and one with wrong relations between the right constants as right, so that its
error counts as knowledge retrieval. A sub-question in words is compared by the words that it shares with a triple.
A name within a longer one counts as the same (``Paris`` and ``Paris, Texas``). ``errors.jsonl`` is there to be read.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from clew.chains import Chain, Limits, Triple, parse_chain
from clew.evaluate.decomposed import GoldHop, gold_hops
from clew.evaluate.metrics import Result, parse_metric
from clew.evaluate.reporting import is_near_match
from clew.methods.chain.likeness import same_value, mentions_name
from clew.text import query_terms

Mistake = Literal[
    "false negative", "reasoning chain", "unfilled", "knowledge retrieval", "final answer", "undecided"
]
MISTAKES: tuple[Mistake, ...] = get_args(Mistake)
_ANY = Limits(1, 99)
#: Answers that are no names: only the whole of them is right.
_WHOLE = {"label", "yes/no"}


def classify_mistake(result: Result, filling: Mapping[str, Any] | None) -> Mistake | None:
    """Return the class of a question's error, None where the answer is exactly right.

    ``filling`` is what the record of a run keeps of the chain: ``chain`` with its unknowns, ``values`` of each
    (``{"#1": ["Lima"]}``); None where no chain was written.
    """
    if parse_metric("EM").measure(result) in {1.0, None}:
        return None
    if _as_good(result):
        return "false negative"
    if filling is None:
        return "reasoning chain"
    chain, values = parse_chain(filling["chain"], _ANY), filling["values"]
    gold = gold_hops(result.example)
    if gold and not chain_fits(chain, gold):
        return "reasoning chain"
    if any(not values.get(f"#{number}") for number in chain.unknowns):
        return "unfilled"
    if not gold:
        return "undecided"
    every = [value for some in values.values() for value in some]
    right = all(any(same_value(value, hop.gold) for value in every) for hop in gold)
    return "final answer" if right else "knowledge retrieval"


def _as_good(result: Result) -> bool:
    if result.abstained:
        return False
    if result.grade == 1 or is_near_match(result):
        return True
    example = result.example
    return example.answer_type not in _WHOLE and any(same_value(result.answer, one) for one in example.answers)


def chain_fits(chain: Chain, gold: Sequence[GoldHop]) -> bool:
    """Return whether a chain has as many hops as the gold one, and all that the gold one begins with.

    >>> from clew.chains import Term
    >>> asked = [Hop(1, Triple(Term("Kismet (1920 film)"), "director", Term("#1")), "Louis J. Gasnier")]
    >>> fits(parse("Kismet >> directed by >> #1; final answer: #1", _ANY), asked)
    True
    """
    if len(chain.triples) != len(gold):
        return False
    return all(hop.required_unknowns or any(_about(triple, hop) for triple in chain.triples) for hop in gold)


def _about(triple: Triple, hop: GoldHop) -> bool:
    """Return whether a triple has the constant that a gold hop begins with."""
    constants = [term.text for term in (triple.head, triple.tail) if term.unknown is None]
    if isinstance(hop.statement, Triple):
        head = hop.statement.head.text
        return any(mentions_name(one, head) or mentions_name(head, one) for one in constants)
    words = set(query_terms(hop.statement.text))
    return any(words & set(query_terms(one)) for one in constants)
