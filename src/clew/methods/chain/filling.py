"""Filling the unknowns of a chain (Su et al., NAACL 2024, Section 3.2): one loop for every source of knowledge.

Algorithms 1 and 2 are the same but for where a value comes from: while there are hops that can be asked, ask for all
of them at once. Deviations, each on purpose:

- an unknown keeps every value that was found for it, and the next hop is asked with them: a graph with all, a text
  with the first few;
- a triple whose tail is known and whose head is not may be asked as well: a graph and a text know both directions;
- the sources take turns hop by hop: what a later source fills may open a hop that an earlier one knows. In the paper
  each source has one turn for the whole chain, so a hop that only the graph knows stays open after one that only the
  text knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from clew.methods.chain.likeness import same_value
from clew.methods.chain.values import Hop, FilledChain, Filling
from clew.protocols import Trail
from clew.types import Question, Step

#: Values of each side that are compared before two sources are said to disagree.
_COMPARED = 20
#: Values that a step of the trail shows.
SHOWN_VALUES = 10


class KnowledgeSource(Protocol):
    """Somewhere that unknowns can be looked up."""

    @property
    def name(self) -> str:
        """What it is called in a recipe: ``kg``, ``text``."""
        ...

    def fill(self, question: Question, asks: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return for each hop what was found, None where it is not known. Raises ModelError, RemoteError."""
        ...


def fill_in_order(filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail) -> None:
    """Fill each hop with the first source, in their order, that knows it (the paper's global order).

    Raises what a source raises; what was filled before stays.
    """
    while not trail.should_stop():
        asks = filled.open_hops()
        for source in sources:
            left = [ask for ask in asks if ask.unknown in filled.unfilled]
            if not left or trail.should_stop():
                break
            for ask, found in zip(left, source.fill(question, left, trail), strict=True):
                if found is not None:
                    filled.add(ask.unknown, found)
        if not any(ask.unknown in filled.fillings for ask in asks):
            break


def fill_by_hop(filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail) -> None:
    """Fill each hop with the source that is surest of it, all having been asked; equals by their order.

    What the others say stays beside it, so that sources that disagree show (:func:`conflicts`). The paper's future
    work; it costs as many questions as there are sources and hops.
    """
    while not trail.should_stop():
        asks = filled.open_hops()
        if not asks:
            break
        said = [source.fill(question, asks, trail) for source in sources]
        for ask, answers in zip(asks, zip(*said, strict=True), strict=True):
            known = [found for found in answers if found is not None]
            for found in sorted(known, key=lambda one: -one.score):
                filled.add(ask.unknown, found)
        if all(ask.unknown in filled.unfilled for ask in asks):
            break


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that say different things of an unknown; ``one`` is what the chain went on with."""

    unknown: int
    used: Filling
    other: Filling


def find_conflicts(filled: FilledChain) -> list[Conflict]:
    """Return where sources disagree: no value of the one is like a value of the other."""
    return [
        Conflict(number, found[0], other)
        for number, found in sorted(filled.fillings.items())
        for other in found[1:]
        if not values_agree(found[0], other)
    ]


def values_agree(one: Filling, other: Filling) -> bool:
    """Return whether two sources have a value in common, however each writes it."""
    theirs = [candidate.value for candidate in other.values(_COMPARED)]
    return any(same_value(mine.value, value) for mine in one.values(_COMPARED) for value in theirs)


def record_conflicts(filled: FilledChain, trail: Trail) -> None:
    """Enter into the trail where sources disagree, both with their evidence."""
    for one in find_conflicts(filled):
        sides = [
            {"source": side.graph or side.source, "values": [value.value for value in side.values(SHOWN_VALUES)]}
            for side in (one.used, one.other)
        ]
        hits = tuple(dict.fromkeys((*one.used.candidates[0].hits, *one.other.candidates[0].hits)))
        trail.add(Step("conflict", {"unknown": f"#{one.unknown}", "taken": sides[0], "also": sides[1]}, hits))
