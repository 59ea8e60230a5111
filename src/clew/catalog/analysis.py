"""The KGP paper's analysis of graphs: their quality against their density (Figures 5 and 9, Tables 2, 4 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from clew.catalog.evaluation import Asked, Bench, bases
from clew.catalog.recipe import Recipe, make
from clew.errors import UsageError
from clew.evaluate.quality import Quality, averaged, quality

if TYPE_CHECKING:
    from clew.evaluate.running import Progress

#: What makes each graph denser (the knobs of Table 6; ours for mentions), and the values that are tried.
KNOBS: dict[str, tuple[str, tuple[int, ...]]] = {
    "keywords": ("n", (1, 2, 3, 5, 10, 20, 50)),
    "mentions": ("common", (0, 2, 5, 10, 20, 50, 200)),
    "knn": ("k", (1, 2, 5, 10, 20, 50, 100)),
}


def graph_qualities(
    data: Asked, graphs: Sequence[str], bench: Bench, progress: Callable[[str], Progress] | None = None
) -> dict[str, list[dict[str, float]]]:
    """Return for each graph its mean quality at each value of its knob, over the questions with gold evidence.

    Raises UsageError for a graph without a knob, and where ``knn`` has no encoder.
    """
    from clew import catalog

    for name in graphs:
        if name not in KNOBS:
            raise UsageError(f"no knob is known for the graph '{name}'", f"Known: {', '.join(KNOBS)}")
    tell = progress or (lambda stage: lambda done, total: None)
    asked = [example for example in data.examples if example.pieces]
    measured: dict[Recipe, list[Quality]] = {
        make(name, {KNOBS[name][0]: value}): [] for name in graphs for value in KNOBS[name][1]
    }
    with bases(data, bench, tell("corpus")) as base_of:
        for count, example in enumerate(asked, 1):
            base = base_of(example)
            snapshot = base.snapshot()
            seeding = catalog.retriever("tfidf", base)
            for recipe, found in measured.items():
                graph = catalog.graph(str(recipe), base, encoder=bench.encoder)
                found.append(quality(example, snapshot, graph, seeding))
            tell("graphs")(count, len(asked))
    series: dict[str, list[dict[str, float]]] = {name: [] for name in graphs}
    for recipe, found in measured.items():
        knob = recipe.option(KNOBS[recipe.name][0])
        series[recipe.name].append({"knob": float(str(knob)), "questions": len(found), **averaged(found)})
    return series
