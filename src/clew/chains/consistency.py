"""Self-consistency over chains (Wang et al., ICLR 2023, as Su et al., 2024, use it in Section 3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from clew.chains.terms import Chain, Term, Triple
from clew.text import normalise


def normal_form(chain: Chain) -> Chain:
    """Return the chain as it is compared: case, spaces and full stops do not count, and unknowns are numbered in
    the order in which they come up."""
    numbers: dict[int, str] = {}
    for triple in chain.triples:
        for number in triple.unknowns:
            numbers.setdefault(number, f"#{len(numbers) + 1}")
    triples = tuple(
        Triple(_plain(one.head.filled(numbers)), normalise(one.relation), _plain(one.tail.filled(numbers)))
        for one in chain.triples
    )
    answer = None if chain.answer is None else int(numbers[chain.answer][1:])
    return Chain(triples, answer)


def agreed(chains: Sequence[Chain]) -> list[Chain]:
    """Return the chains, one of each normal form, the form that most of them have first; of equals the earliest.

    The first is what self-consistency chooses; the others are what to try where it cannot be filled.
    """
    forms = [normal_form(chain) for chain in chains]
    first = dict(zip(reversed(forms), reversed(chains), strict=True))
    # Counter keeps the order of first sight among equals.
    return [first[form] for form, _ in Counter(forms).most_common()]


def _plain(term: Term) -> Term:
    return Term(normalise(term.text).rstrip("."))
