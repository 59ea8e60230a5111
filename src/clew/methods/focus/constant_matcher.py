"""The constants of a question as nodes of a graph, "almost" (4StepFocus: Boer et al., 2024, Algorithm 3): several
candidates each, with how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.core.protocols import EntityLinker, PropertyGraph, Trail
from clew.core.types import LinkedEntity

#: Candidates that a constant keeps at the most.
CANDIDATES = 10
#: What is spelled less like a name than this is something else.
LEAST = 0.75
#: A node whose name only means nearly the same, from this score on
#: (:class:`clew.triples.linking.nearest_names.NearestNames`).
ALIKE = 0.6
#: Candidates this much less sure than the best are not it.
SPREAD = 0.12


@dataclass(frozen=True, slots=True)
class ConstantMatcher:
    """Links the names of a question to nodes.

    A name that is written with a capital or a digit is the name of one thing: where nodes are called so, only they
    are candidates. A word in lower case describes ("green"): then nodes of its type whose names mean nearly the same
    are candidates as well ("light green"), each with its score, which ranks what is found by them lower. The paper
    takes the one best node, and names the products that this loses as its problem (Section 4).

    ``linker`` looks names up by spelling; ``meaning``, where there is an encoder, by the vectors of names within a
    type as well. It is asked only for words that describe and for names that spelling does not find: the names of a
    type would have to be embedded for it.
    """

    linker: EntityLinker
    meaning: EntityLinker | None = None

    def link(
        self,
        graph: PropertyGraph,
        types: Mapping[str, Sequence[str]],
        context: str,
        trail: Trail,
    ) -> dict[str, tuple[LinkedEntity, ...]]:
        """Return the candidates of each name, best first, none where the graph has none; ``types`` are the names
        with the types that their nodes may have. Raises ModelError, RemoteError."""
        found = _linked(self.linker, graph, types, context, trail)
        if self.meaning is not None and not graph.is_mounted:
            more = {name: some for name, some in types.items() if is_description(name) or not found[name]}
            found |= _linked(self.meaning, graph, more, context, trail)
        return found


def _linked(
    linker: EntityLinker,
    graph: PropertyGraph,
    types: Mapping[str, Sequence[str]],
    context: str,
    trail: Trail,
) -> dict[str, tuple[LinkedEntity, ...]]:
    together: dict[tuple[str, ...], list[str]] = {}
    for name, some in types.items():
        together.setdefault(tuple(some), []).append(name)
    found = {}
    for kinds, names in together.items():
        linked = linker.link(graph, names, context, CANDIDATES, trail, kinds)
        found.update({name: plausible_candidates(name, one) for name, one in zip(names, linked, strict=True)})
    return found


def is_description(name: str) -> bool:
    """Return whether a name is words in lower case, which describe; a capital or a digit names one thing."""
    return not any(letter.isupper() or letter.isdigit() for letter in name)


def property_test_for(value: str) -> str:
    """Return how a property is compared with a value that a triple gives: "green" is also said of what is light
    green; a name or a number is that alone."""
    return "says" if is_description(value) else "="


def plausible_candidates(name: str, linked: Sequence[LinkedEntity]) -> tuple[LinkedEntity, ...]:
    """Return which candidates for a name count, best first."""
    good = [one for one in linked if one.score >= (ALIKE if _by_meaning(one) else LEAST)]
    if not good:
        return ()
    if is_description(name):
        return tuple(good)
    spelled = [one for one in good if not _by_meaning(one)] or good
    if any(_called(one) for one in spelled):
        spelled = [one for one in spelled if _called(one)]
    return tuple(one for one in spelled if one.score >= spelled[0].score - SPREAD)


def _by_meaning(one: LinkedEntity) -> bool:
    return one.reason.startswith("meaning")


def _called(one: LinkedEntity) -> bool:
    """Return whether a node is called just so, or but for a qualifier of its own."""
    return one.reason.startswith(("name", "alias"))
