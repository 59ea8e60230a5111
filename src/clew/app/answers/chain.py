"""The chain that an answer rests on: its triples, and for each unknown its values and where they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clew.app.answers.view import StepView
from clew.core.errors import ClewError
from clew.triples.language.chain import Limits, parse_chain
from clew.triples.language.consistency import best_filling

_SOURCES = {"kg": "a graph", "text": "the documents", "model": "the model's memory"}


@dataclass(frozen=True, slots=True)
class HopView:
    """A triple of a chain: head, relation and tail as they are written."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True, slots=True)
class UnknownView:
    """An unknown of a chain: its values and the source that gave them; ``conflicts`` holds each other source with the
    values that it gave instead."""

    name: str
    values: tuple[str, ...] = ()
    source: str = ""
    conflicts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChainView:
    """A chain as far as it was filled. ``answer`` is the unknown that answers the question, such as ``#2``."""

    hops: tuple[HopView, ...]
    unknowns: Mapping[str, UnknownView]
    answer: str = ""


def view_chain(steps: Sequence[StepView]) -> ChainView | None:
    """Return the chain that was answered from, None where the trail has none."""
    filling = best_filling(step.detail["filling"] for step in steps if step.name == "filled")
    if filling is None:
        return None
    try:
        chain = parse_chain(filling["chain"], Limits(1, 1_000))
    except ClewError:  # the chain of another method, which this diagram does not know
        return None
    values = filling["values"]
    sources, conflicts = _sources(steps, values), _conflicts(steps)
    unknowns = {
        name: UnknownView(
            name, tuple(values.get(name, ())), sources.get(name, ""), tuple(conflicts.get(name, ()))
        )
        for name in (f"#{number}" for number in chain.unknowns)
    }
    hops = tuple(HopView(str(triple.head), triple.relation, str(triple.tail)) for triple in chain.triples)
    return ChainView(hops, unknowns, "" if chain.answer is None else f"#{chain.answer}")


def _sources(steps: Sequence[StepView], values: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the source of each unknown's values: the first that gave one of them, else the model's memory."""
    sources: dict[str, str] = {}
    for step in steps:
        name = step.detail.get("unknown")
        if step.name == "fill" and set(step.detail.get("values", ())) & set(values.get(name or "", ())):
            graph, source = step.detail.get("graph"), str(step.detail["source"])
            sources.setdefault(str(name), f"the graph {graph}" if graph else _SOURCES.get(source, source))
    return dict.fromkeys(values, "the model's memory") | sources


def _conflicts(steps: Sequence[StepView]) -> dict[str, list[tuple[str, str]]]:
    """Return for each unknown the sources that disagree, each with its values."""
    conflicts: dict[str, list[tuple[str, str]]] = {}
    for step in steps:
        name = step.detail.get("unknown")
        if step.name == "conflict" and name is not None:
            other = step.detail["also"]
            source = _SOURCES.get(other["source"], other["source"])
            conflicts.setdefault(name, []).append((source, "; ".join(other["values"])))
    return conflicts
