"""Match the constants of a question to nodes of a graph, "almost" (4StepFocus: Boer et al., 2024, Algorithm 3):
several candidates each, with how sure they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.core.protocols import EntityLinker, PropertyGraph, Trail
from clew.core.text import parse_number
from clew.core.types import LinkedEntity

#: Candidates that a constant keeps at most.
MAX_CANDIDATES = 10
#: A node whose name is spelled less like the constant is another thing.
LEAST = 0.75
#: The lowest score of a node whose name means nearly the same
#: (:class:`clew.triples.linking.nearest_names.NearestNames`).
LEAST_BY_MEANING = 0.6
#: Candidates of a name that are this much less sure than the best do not count.
SPREAD = 0.12


@dataclass(frozen=True, slots=True)
class ConstantMatcher:
    """Links the constants of a question to nodes.

    A number, a day or an identifier stands for the nodes that are called so, and for nothing like it: 1889 is not
    1989 (:func:`is_identifier`).

    A constant with a capital or a digit is the name of one thing: if nodes have the name, only they are candidates. A
    word in lower case describes ("green"): then nodes of its type whose names mean nearly the same are candidates too
    ("light green"), each with its score, which lowers the rank of what is found by them. The paper takes the one best
    node, and names the products that this loses as a problem (Section 4).

    ``linker`` looks constants up by spelling; ``meaning``, if there is an encoder, by the vectors of names within a
    type as well. ``meaning`` is only asked for descriptions and for names that spelling does not find, since it may
    embed the names of a whole type.
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
        """Return the candidates of each constant, best first, none if the graph has none. ``types`` are the constants
        with the types that their nodes may have. Raises ModelError, RemoteError."""
        linked = _link(self.linker, graph, types, context, trail)
        if self.meaning is not None and not graph.is_mounted:
            asked = {
                name: of_name
                for name, of_name in types.items()
                if is_description(name) or not (linked[name] or is_identifier(name))
            }
            linked |= _link(self.meaning, graph, asked, context, trail)
        return linked


def _link(
    linker: EntityLinker,
    graph: PropertyGraph,
    types: Mapping[str, Sequence[str]],
    context: str,
    trail: Trail,
) -> dict[str, tuple[LinkedEntity, ...]]:
    """Link the constants of the same types together."""
    by_types: dict[tuple[str, ...], list[str]] = {}
    for name, of_name in types.items():
        by_types.setdefault(tuple(of_name), []).append(name)
    candidates = {}
    for wanted, names in by_types.items():
        linked = linker.link(graph, names, context, MAX_CANDIDATES, trail, wanted)
        for name, entities in zip(names, linked, strict=True):
            if is_identifier(name):
                entities = _keep_called(graph, name, entities)
            candidates[name] = plausible_candidates(name, entities)
    return candidates


def is_identifier(name: str) -> bool:
    """Return whether a constant is a number, a day or one word with a digit, of which nothing is a near name.

    >>> is_identifier("1889"), is_identifier("-2.5"), is_identifier("libc6"), is_identifier("Blade Runner 2049")
    (True, True, True, False)
    """
    is_word = len(name.split()) == 1 and any(letter.isdigit() for letter in name)
    return is_word or not math.isnan(parse_number(name))


def _keep_called(graph: PropertyGraph, name: str, linked: Sequence[LinkedEntity]) -> tuple[LinkedEntity, ...]:
    """Return the candidates whose name, alias or id equals a constant without case and punctuation, unless both are
    numbers that differ: -5 is not 5."""
    called = set(graph.find_by_name(name).tolist())
    number = parse_number(name)
    return tuple(
        entity
        for entity in linked
        if entity.row in called
        and (
            math.isnan(number) or math.isnan(parse_number(entity.name)) or parse_number(entity.name) == number
        )
    )


def is_description(name: str) -> bool:
    """Return whether a constant is words in lower case, which describe; a capital or a digit names one thing."""
    return not any(letter.isupper() or letter.isdigit() for letter in name)


def property_test_for(value: str) -> str:
    """Return the test of a property with a triple's value: the description "green" is also said of light green; a
    name or a number has to be equal."""
    return "says" if is_description(value) else "="


def plausible_candidates(name: str, linked: Sequence[LinkedEntity]) -> tuple[LinkedEntity, ...]:
    """Return the candidates for a constant that count, best first."""
    candidates = [
        entity for entity in linked if entity.score >= (LEAST_BY_MEANING if _by_meaning(entity) else LEAST)
    ]
    if not candidates or is_description(name):
        return tuple(candidates)
    spelled = [entity for entity in candidates if not _by_meaning(entity)] or candidates
    # The name or an alias itself, perhaps with a qualifier of the node's own.
    named = [entity for entity in spelled if entity.reason.startswith(("name", "alias"))] or spelled
    return tuple(entity for entity in named if entity.score >= named[0].score - SPREAD)


def _by_meaning(entity: LinkedEntity) -> bool:
    return entity.reason.startswith("meaning")
