"""The walk of an answer as a graph (Knowledge Graph Prompting, Figures 19 and 20): seeds on the left, the neighbours
that were chosen to the right of each, and the paths that lead to the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from clew.app.answers.view import AnswerView, Evidence, HitView, StepView

#: Nodes that are drawn; the evidence and the paths to it are always among them.
MAX_NODES = 80
#: Sizes in the drawing's own units, which are pixels unless it is made smaller.
WIDTH, HEIGHT, GAP, COLUMN, MARGIN = 236, 42, 8, 356, 8


@dataclass(frozen=True, slots=True)
class WalkEdge:
    """An edge that was followed to ``target``. ``via`` names it, ``score`` is the target's; ``chosen``: it is on a
    path to the evidence; ``line`` is its curve as an SVG path."""

    source: str
    target: str
    via: str
    score: float
    chosen: bool = False
    line: str = ""


@dataclass(slots=True)
class WalkNode:
    """A node of the walk.

    ``citation`` is its number among the evidence, 0 for none; ``chosen``: it is on a path to the evidence.
    ``considered`` and ``followed`` count its neighbours that were looked at and walked to; ``expected`` holds what a
    model wrote of the evidence to look for next. ``x`` and ``y`` are its top left corner.
    """

    id: str
    column: int
    score: float
    citation: int = 0
    chosen: bool = False
    seed: bool = False
    considered: int | None = None
    followed: int = 0
    expected: list[str] = field(default_factory=list)
    row: float = 0.0
    x: float = 0.0
    y: float = 0.0


@dataclass(frozen=True, slots=True)
class Walk:
    """The drawing: nodes column by column from top to bottom, and the edges between them. ``left_out`` counts the
    nodes that are not drawn."""

    nodes: tuple[WalkNode, ...]
    edges: tuple[WalkEdge, ...]
    width: float
    height: float
    left_out: int = 0

    def edges_into(self, id: str) -> list[WalkEdge]:
        """Return the edges by which a node was reached."""
        return [edge for edge in self.edges if edge.target == id]


def draw_walk(view: AnswerView) -> Walk | None:
    """Return the walk in an answer's trail, or None where nothing was reached from something else."""
    nodes, edges = _collect(view.steps, view.evidence)
    if not edges:
        return None
    _add_expansions(view.steps, nodes)
    numbers = {item.node.id: item.number for item in reversed(view.evidence)}
    on_path = {id for item in view.evidence for id in item.path}
    path_edges = {pair for item in view.evidence for pair in pairwise(item.path)}
    for node in nodes.values():
        node.citation = numbers.get(node.id, 0)
        node.chosen = node.id in on_path
    drawn = _select(list(nodes.values()))
    inside = {pair: edge for pair, edge in edges.items() if edge.source in drawn and edge.target in drawn}
    columns = _lay_out(drawn, list(inside.values()))
    lines = [
        replace(edge, chosen=pair in path_edges, line=_curve(drawn[edge.source], drawn[edge.target]))
        for pair, edge in inside.items()
    ]
    rows = max(len(column) for column in columns)
    return Walk(
        tuple(node for column in columns for node in column),
        # The edges on a path to the evidence are drawn last, over the others.
        tuple(sorted(lines, key=lambda edge: edge.chosen)),
        2 * MARGIN + COLUMN * (len(columns) - 1) + WIDTH,
        2 * MARGIN + rows * (HEIGHT + GAP) - GAP,
        len(nodes) - len(drawn),
    )


def _collect(
    steps: Sequence[StepView], evidence: Sequence[Evidence]
) -> tuple[dict[str, WalkNode], dict[tuple[str, str], WalkEdge]]:
    """Return the nodes and edges of all paths in a trail, in the order in which they come up."""
    nodes: dict[str, WalkNode] = {}
    edges: dict[tuple[str, str], WalkEdge] = {}

    def add_edges(hit: HitView) -> None:
        for depth, (source, target) in enumerate(pairwise(hit.path)):
            via = hit.via[depth] if depth < len(hit.via) else ""
            edges.setdefault((source, target), WalkEdge(source, target, via, hit.score))

    for step in steps:
        for hit in step.hits:
            path = hit.path or (hit.node.id,)
            for depth, id in enumerate(path):
                nodes.setdefault(id, WalkNode(id, depth, hit.score if depth == len(path) - 1 else 0.0))
            if step.name == "seed":
                nodes[hit.node.id].seed = True
            add_edges(hit)
    for item in evidence:
        for depth, pair in enumerate(pairwise(item.path)):
            for column, id in enumerate(pair, depth):
                nodes.setdefault(id, WalkNode(id, column, item.score))
        add_edges(item)
    return nodes, edges


def _add_expansions(steps: Sequence[StepView], nodes: Mapping[str, WalkNode]) -> None:
    """Note at each node how many of its neighbours were looked at, and what was expected of them."""
    for step in steps:
        for path in step.detail.get("paths") or () if step.name == "expand" else ():
            node = nodes.get(path["path"][-1])
            if node is None:
                continue
            node.considered = (node.considered or 0) + path["considered"]
            node.followed += path["chosen"]
            if path.get("expected"):
                node.expected.append(str(path["expected"]))


def _select(nodes: Sequence[WalkNode]) -> dict[str, WalkNode]:
    """Return the nodes that are drawn, by id: those on paths to the evidence, then seeds, then the others; in their
    old order."""
    by_worth = sorted(range(len(nodes)), key=lambda n: (not nodes[n].chosen, not nodes[n].seed, n))
    return {nodes[n].id: nodes[n] for n in sorted(by_worth[:MAX_NODES])}


def _lay_out(nodes: Mapping[str, WalkNode], edges: Sequence[WalkEdge]) -> list[list[WalkNode]]:
    """Place the nodes; return them by columns. In its column each stands near the nodes that lead to it."""
    columns: dict[int, list[WalkNode]] = {}
    for node in nodes.values():
        columns.setdefault(node.column, []).append(node)
    sources: dict[str, list[WalkNode]] = {}
    for edge in edges:
        sources.setdefault(edge.target, []).append(nodes[edge.source])

    def mean_row(node: WalkNode) -> float:
        rows = [source.row for source in sources.get(node.id, ())]
        return sum(rows) / len(rows) if rows else 0.0

    ordered = [columns[number] for number in sorted(columns)]
    for number, column in enumerate(ordered):
        if number:
            column.sort(key=mean_row)
        for row, node in enumerate(column):
            node.row = row
            node.x = MARGIN + number * COLUMN
            node.y = MARGIN + row * (HEIGHT + GAP)
    return ordered


def _curve(source: WalkNode, target: WalkNode) -> str:
    """Return the SVG path of an edge: from right to left, or around the side within a column."""
    start, end = source.y + HEIGHT / 2, target.y + HEIGHT / 2
    if source.x < target.x:
        x0, x1 = source.x + WIDTH, target.x
        bend = (x1 - x0) / 2
        return f"M{x0:g} {start:g}C{x0 + bend:g} {start:g} {x1 - bend:g} {end:g} {x1:g} {end:g}"
    x0, x1 = source.x + WIDTH, target.x + WIDTH
    out = max(x0, x1) + min(70.0, 24 + abs(end - start) / 8)
    return f"M{x0:g} {start:g}C{out:g} {start:g} {out:g} {end:g} {x1:g} {end:g}"
