"""Self-consistency over chains (Wang et al., ICLR 2023, as Su et al., 2024, use it in Section 3.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

from clew.core.text import normalise
from clew.triples.language.chain import Chain, Term, Triple
from clew.triples.language.typed_chain import TypedChain


def normal_form(chain: Chain) -> Chain:
    """Return the chain as it is compared: case, spaces and full stops do not count, and unknowns are numbered in
    the order in which they come up."""
    numbers: dict[int, str] = {}
    for triple in chain.triples:
        for number in triple.unknowns:
            numbers.setdefault(number, f"#{len(numbers) + 1}")
    triples = tuple(
        Triple(_plain(one.head.fill(numbers)), normalise(one.relation), _plain(one.tail.fill(numbers)))
        for one in chain.triples
    )
    answer = None if chain.answer is None else int(numbers[chain.answer][1:])
    return Chain(triples, answer)


def rank_by_agreement(chains: Sequence[Chain]) -> list[Chain]:
    """Return the chains, one of each normal form, the form that most of them have first; of equals the earliest.

    The first is what self-consistency chooses; the others are what to try where it cannot be filled.
    """
    forms = [normal_form(chain) for chain in chains]
    first = dict(zip(reversed(forms), reversed(chains), strict=True))
    # Counter keeps the order of first sight among equals.
    return [first[form] for form, _ in Counter(forms).most_common()]


def _plain(term: Term) -> Term:
    return Term(normalise(term.text).rstrip("."))


#: Unknowns up to which every numbering is tried.
_TRIED = 6


def typed_normal_form(chain: TypedChain) -> tuple[str, ...]:
    """Return what a question as typed triples says, as it is compared: its statements in order of the alphabet, with
    what :func:`normal_form` leaves out, under that numbering of its unknowns that puts them first in it.

    So the order of statements and the numbers say nothing. Wishes are left out: every sample words them differently.
    """
    answer = chain.chain.answer or 1
    others = [number for number in _unknowns(chain) if number != answer]
    orders = permutations(others) if len(others) < _TRIED else [tuple(others)]
    return min(
        _said(chain, {number: place for place, number in enumerate((answer, *order), 1)}) for order in orders
    )


def rank_typed_by_agreement(chains: Sequence[TypedChain]) -> list[TypedChain]:
    """Return the questions, one of each form, in the order of :func:`agreed`."""
    forms = [typed_normal_form(chain) for chain in chains]
    first = dict(zip(reversed(forms), reversed(chains), strict=True))
    return [first[form] for form, _ in Counter(forms).most_common()]


def _unknowns(chain: TypedChain) -> tuple[int, ...]:
    """Return the unknowns in the order in which they come up."""
    found = [number for triple in chain.chain.triples for number in triple.unknowns]
    found += [*chain.types, *(one.unknown for one in chain.conditions)]
    return tuple(dict.fromkeys(found))


def _said(chain: TypedChain, numbers: Mapping[int, int]) -> tuple[str, ...]:
    filled = {number: f"#{place}" for number, place in numbers.items()}
    triples = tuple(
        Triple(_plain(one.head.fill(filled)), normalise(one.relation), _plain(one.tail.fill(filled)))
        for one in chain.chain.triples
    )
    plain = TypedChain(Chain(triples, 1), quantifiers=chain.quantifiers)
    said = [plain.statement(place) for place in range(len(triples))]
    for number, types in chain.types.items():
        said.append(f"{filled[number]} : {' or '.join(sorted(map(normalise, types)))}")
    for name, types in chain.constant_types.items():
        said.append(f"{normalise(name)} : {' or '.join(sorted(map(normalise, types)))}")
    for one in chain.conditions:
        unknown = numbers[one.unknown]
        said.append(normalise(str(replace(one, unknown=unknown))))
    return tuple(sorted(said))


def best_filling(fillings: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the chain that was answered from, of the ``filling`` of each step ``filled``; None where there is none.

    A chain counts as it was filled last, and of several the best is taken (``worth``, as the method ``chain`` does),
    the first of equals.
    """
    tried = {one["chain"]: one for one in fillings}.values()
    return max(tried, key=lambda one: list(one["worth"]), default=None)


# MERGED: What the steps of a trail tell of the chains that were tried.
