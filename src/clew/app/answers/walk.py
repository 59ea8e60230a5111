"""The walk of an answer as a graph (Knowledge Graph Prompting, Figures 19 and 20): seeds on the left, to the right of
each what was chosen among its neighbours, and the paths that lead to the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

#: Nodes that are drawn; the evidence and the paths to it are always among them.
MAX_NODES = 80
#: Sizes in the drawing's own units, which are pixels unless it is made smaller.
WIDTH, HEIGHT, GAP, COLUMN, MARGIN = 236, 42, 8, 356, 8


@dataclass(frozen=True, slots=True)
class WalkEdge:
    """How a node was reached: from which, by what, with what score. ``chosen``: it leads on to evidence."""

    source: str
    target: str
    via: str
    score: float
    chosen: bool = False
    line: str = ""


@dataclass(slots=True)
class WalkNode:
    """A node of the walk. ``cite`` is its number among the evidence, 0 for none; ``chosen``: it is on a path to some.
    ``considered`` and ``taken`` count the neighbours that were looked at and followed from here, and ``expected`` are
    the texts that a model wrote of what to look for next."""

    id: str
    column: int
    score: float
    cite: int = 0
    chosen: bool = False
    seed: bool = False
    considered: int | None = None
    taken: int = 0
    expected: list[str] = field(default_factory=list)
    row: float = 0.0
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class Walk:
    """The drawing: nodes column by column from top to bottom, and the ways between them."""

    places: tuple[WalkNode, ...]
    ways: tuple[WalkEdge, ...]
    width: float
    height: float
    left_out: int = 0

    def into(self, id: str) -> list[WalkEdge]:
        """Return the ways by which a node was reached."""
        return [way for way in self.ways if way.target == id]


def draw_walk(answer: Mapping[str, Any]) -> Walk | None:
    """Return the walk in an answer's trail, or None where nothing was reached from something else."""
    places, ways = _collected(answer["trail"], answer["evidence"])
    if not ways:
        return None
    _tell_expansions(answer["trail"], places)
    numbers = {hit["id"]: number for number, hit in reversed(list(enumerate(answer["evidence"], 1)))}
    on_path = {id for hit in answer["evidence"] for id in hit["path"]}
    steps = {pair for hit in answer["evidence"] for pair in pairwise(hit["path"])}
    for place in places.values():
        place.cite = numbers.get(place.id, 0)
        place.chosen = place.id in on_path
    kept = _kept(list(places.values()))
    columns = _laid_out(kept, [way for way in ways.values() if way.source in kept and way.target in kept])
    drawn = tuple(
        WalkEdge(
            way.source, way.target, way.via, way.score, pair in steps, _line(kept[pair[0]], kept[pair[1]])
        )
        for pair, way in ways.items()
        if way.source in kept and way.target in kept
    )
    ordered = tuple(place for column in columns for place in column)
    rows = max(len(column) for column in columns)
    return Walk(
        ordered,
        # What was chosen is drawn last, over the others.
        tuple(sorted(drawn, key=lambda way: way.chosen)),
        2 * MARGIN + COLUMN * (len(columns) - 1) + WIDTH,
        2 * MARGIN + rows * (HEIGHT + GAP) - GAP,
        len(places) - len(kept),
    )


def _collected(
    trail: Sequence[Mapping[str, Any]], evidence: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, WalkNode], dict[tuple[str, str], WalkEdge]]:
    """Return the nodes and ways of all paths in a trail, in the order in which they came up."""
    places: dict[str, WalkNode] = {}
    ways: dict[tuple[str, str], WalkEdge] = {}
    for step in trail:
        for hit in step["hits"]:
            path = hit["path"] or [hit["id"]]
            for depth, id in enumerate(path):
                if id not in places:
                    places[id] = WalkNode(id, depth, hit["score"] if depth == len(path) - 1 else 0.0)
            if step["name"] == "seed":
                places[hit["id"]].seed = True
            for depth, pair in enumerate(pairwise(path)):
                via = hit["via"][depth] if depth < len(hit["via"]) else ""
                ways.setdefault(pair, WalkEdge(*pair, via, hit["score"]))
    for hit in evidence:
        for depth, pair in enumerate(pairwise(hit["path"])):
            for place, id in enumerate(pair, depth):
                places.setdefault(id, WalkNode(id, place, hit["score"]))
            ways.setdefault(
                pair, WalkEdge(*pair, hit["via"][depth] if depth < len(hit["via"]) else "", hit["score"])
            )
    return places, ways


def _tell_expansions(trail: Sequence[Mapping[str, Any]], places: Mapping[str, WalkNode]) -> None:
    """Enter at each node what was looked at from there."""
    for step in trail:
        told = step["detail"].get("paths") if step["name"] == "expand" else None
        for one in told or ():
            place = places.get(one["path"][-1])
            if place is None:
                continue
            place.considered = (place.considered or 0) + one["considered"]
            place.taken += one["chosen"]
            if one.get("expected"):
                place.expected.append(str(one["expected"]))


def _kept(places: Sequence[WalkNode]) -> dict[str, WalkNode]:
    """Return the nodes that are drawn, by id: those that matter most, in their old order."""
    worth = sorted(range(len(places)), key=lambda n: (not places[n].chosen, not places[n].seed, n))
    chosen = sorted(worth[:MAX_NODES])
    return {places[n].id: places[n] for n in chosen}


def _laid_out(places: Mapping[str, WalkNode], ways: Sequence[WalkEdge]) -> list[list[WalkNode]]:
    """Place the nodes; return them by columns. In a column each stands near what leads to it."""
    columns: dict[int, list[WalkNode]] = {}
    for place in places.values():
        columns.setdefault(place.column, []).append(place)
    ordered = [columns[number] for number in sorted(columns)]
    near: dict[str, list[WalkNode]] = {}
    for way in ways:
        near.setdefault(way.target, []).append(places[way.source])
    for number, column in enumerate(ordered):
        if number:
            column.sort(key=lambda place: _middle([one.row for one in near.get(place.id, ())]))
        for row, place in enumerate(column):
            place.row = row
            place.x = MARGIN + number * COLUMN
            place.y = MARGIN + row * (HEIGHT + GAP)
    return ordered


def _middle(rows: Sequence[float]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _line(source: WalkNode, target: WalkNode) -> str:
    """Return the path of a way, as SVG has it: from right to left, or around the side within a column."""
    start, end = source.y + HEIGHT / 2, target.y + HEIGHT / 2
    if source.x < target.x:
        x0, x1 = source.x + WIDTH, target.x
        bend = (x1 - x0) / 2
        return f"M{x0:g} {start:g}C{x0 + bend:g} {start:g} {x1 - bend:g} {end:g} {x1:g} {end:g}"
    x0, x1 = source.x + WIDTH, target.x + WIDTH
    out = max(x0, x1) + min(70.0, 24 + abs(end - start) / 8)
    return f"M{x0:g} {start:g}C{out:g} {start:g} {out:g} {end:g} {x1:g} {end:g}"
