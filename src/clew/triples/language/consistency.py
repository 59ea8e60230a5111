"""Self-consistency over chains: the form that most samples agree on comes first.

Wang et al. (ICLR 2023), as Su et al. (NAACL 2024) use it in Section 3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

from clew.core.text import normalise
from clew.triples.language.chain import Chain, Term, Triple, TypedChain

#: With fewer unknowns than this, besides the answer, every numbering of them is compared.
_MAX_PERMUTED = 6


def normal_form(chain: Chain) -> Chain:
    """Return the chain in the form in which chains are compared: without differences of case, spaces and full stops,
    and with unknowns numbered in the order in which they come up."""
    numbers: dict[int, str] = {}
    for triple in chain.triples:
        for number in triple.unknowns:
            numbers.setdefault(number, f"#{len(numbers) + 1}")
    triples = tuple(_normalise_triple(triple, numbers) for triple in chain.triples)
    return Chain(triples, None if chain.answer is None else int(numbers[chain.answer][1:]))


def rank_by_agreement(chains: Sequence[Chain]) -> list[Chain]:
    """Return one chain of each normal form, the form of most chains first, of equally many the earliest.

    Self-consistency chooses the first; the others are tried where it cannot be filled.
    """
    forms = [normal_form(chain) for chain in chains]
    earliest = dict(zip(reversed(forms), reversed(chains), strict=True))
    # Counter keeps the order of first occurrence among equals.
    return [earliest[form] for form, _ in Counter(forms).most_common()]


def typed_normal_form(chain: TypedChain) -> tuple[str, ...]:
    """Return the statements of a typed chain in the form in which typed chains are compared, in alphabetical order.

    Unknowns are numbered in the way that makes the statements smallest, so neither the order of statements nor the
    numbers matter. Preferences are left out: every sample words them differently.
    """
    answer = chain.chain.answer or 1
    others = [number for number in _unknowns(chain) if number != answer]
    orders = permutations(others) if len(others) < _MAX_PERMUTED else [tuple(others)]
    return min(
        _statements(chain, {number: place for place, number in enumerate((answer, *order), 1)})
        for order in orders
    )


def rank_typed_by_agreement(chains: Sequence[TypedChain]) -> list[TypedChain]:
    """Return one typed chain of each form, in the order of :func:`rank_by_agreement`."""
    forms = [typed_normal_form(chain) for chain in chains]
    earliest = dict(zip(reversed(forms), reversed(chains), strict=True))
    return [earliest[form] for form, _ in Counter(forms).most_common()]


def best_filling(fillings: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the filling of the chain that was answered from, of the ``filling`` of each step "filled"; None where
    there is none.

    Of several fillings of a chain the last counts, and of several chains the one with the highest ``worth``, of
    equals the first, as in the method ``chain``.
    """
    last = {filling["chain"]: filling for filling in fillings}
    return max(last.values(), key=lambda filling: list(filling["worth"]), default=None)


def _normalise_triple(triple: Triple, numbers: Mapping[int, str]) -> Triple:
    head, tail = (Term(normalise(term.fill(numbers).text).rstrip(".")) for term in (triple.head, triple.tail))
    return replace(triple, head=head, relation=normalise(triple.relation), tail=tail)


def _unknowns(chain: TypedChain) -> tuple[int, ...]:
    """Return the unknowns in the order in which they come up."""
    in_triples = [number for triple in chain.chain.triples for number in triple.unknowns]
    in_conditions = [condition.unknown for condition in chain.conditions]
    return tuple(dict.fromkeys([*in_triples, *chain.types, *in_conditions]))


def _statements(chain: TypedChain, numbers: Mapping[int, int]) -> tuple[str, ...]:
    """Return the normalised statements, sorted, with unknowns renumbered."""
    names = {number: f"#{place}" for number, place in numbers.items()}
    triples = tuple(_normalise_triple(triple, names) for triple in chain.chain.triples)
    plain = TypedChain(Chain(triples, 1), quantifiers=chain.quantifiers)
    statements = [plain.statement(place) for place in range(len(triples))]
    for number, types in chain.types.items():
        statements.append(f"{names[number]} : {' or '.join(sorted(map(normalise, types)))}")
    for name, types in chain.constant_types.items():
        statements.append(f"{normalise(name)} : {' or '.join(sorted(map(normalise, types)))}")
    for condition in chain.conditions:
        statements.append(normalise(str(replace(condition, unknown=numbers[condition.unknown]))))
    return tuple(sorted(statements))
