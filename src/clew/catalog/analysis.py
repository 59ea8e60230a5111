"""The KGP paper's analyses: of graphs (Tables 2 and 4, Figures 5 and 9), and of the walk over them (6, 7 and 10).

What is measured of a question is on disk before the next one: an analysis that was killed goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.catalog.evaluation import Asked, Bench, bases
from clew.catalog.graphs import GRAPHS
from clew.catalog.methods import METHODS
from clew.catalog.recipe import Recipe, make, parse
from clew.catalog.runs import Folder, evaluate, facts_of, folder_of
from clew.errors import UsageError, unknown
from clew.evaluate.metrics import metric
from clew.evaluate.quality import Quality, averaged, quality
from clew.evaluate.running import RunFile
from clew.evaluate.statistics import interval

if TYPE_CHECKING:
    from clew.evaluate.reporting import Run
    from clew.evaluate.running import Progress
    from clew.types import Usage

    #: A point of a figure: its knob, and what was measured there; intervals under ``intervals``.
    Point = Mapping[str, Any]
    Series = Mapping[str, Sequence[Point]]

#: What makes each graph denser (the knobs of Table 6; ours for mentions), and the values that are tried.
KNOBS: dict[str, tuple[str, tuple[float, ...]]] = {
    "keywords": ("n", (1, 2, 3, 5, 10, 20, 50)),
    "mentions": ("common", (0, 2, 5, 10, 20, 50, 200)),
    "knn": ("k", (1, 2, 5, 10, 20, 50, 100)),
    "entities": ("prior", (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)),
}
#: The walk that is analysed: the paper's, which without a language model is its "w/o LM" (Supplementary 8.2).
WALK = "kgp-paper"
BRANCHES = tuple(range(1, 11))
#: Passages, or paths, that every method of the paper retrieves (Supplementary 8.2).
BUDGET = 30
#: What a walk finds. The others need a model's answer to mean something.
FOUND = ("SF-EM", "SF-coverage", "recall@5")
ANSWERED = ("F1", "EM", "accuracy")
LATENCY = "walk-seconds"


@dataclass(frozen=True, slots=True)
class Work:
    """What the analyses of one data set share: the questions, the models, where results go, who is told."""

    data: Asked
    bench: Bench
    out: Path
    workers: int = 1
    progress: Callable[[str], Progress] = lambda stage: lambda done, total: None
    foreseen: Callable[[str, Usage], None] | None = None

    @property
    def folder(self) -> Folder:
        """The folder of what walks and other methods answered."""
        return folder_of(self.out, self.data)

    @property
    def graph_folder(self) -> Folder:
        """The folder of what was measured of graphs, whatever the language model."""
        return Folder(self.folder.path.with_name(f"{self.folder.path.name}-graphs"))

    def runs(self, recipes: Sequence[str]) -> list[Run]:
        """Return the runs of some recipes after running what is missing of them. Raises UsageError."""
        evaluate(
            self.out,
            self.data,
            recipes,
            self.bench,
            workers=self.workers,
            progress=self.progress,
            foreseen=self.foreseen,
        )
        return self.folder.runs(recipes)


def knobs(graphs: Sequence[str]) -> dict[Recipe, tuple[str, float]]:
    """Return each graph at each value of its knob. Raises UsageError for a graph without one."""
    for name in graphs:
        if name not in KNOBS:
            raise UsageError(f"no knob is known for the graph '{name}'", f"Known: {', '.join(KNOBS)}")
    return {make(name, {KNOBS[name][0]: value}): (name, value) for name in graphs for value in KNOBS[name][1]}


def possible_graphs(work: Work) -> tuple[list[str], dict[str, str]]:
    """Return the graphs that can be built over the first question's base, and why the others cannot."""
    from clew import catalog

    found, missing = [], {}
    with bases(work.data, work.bench, work.progress("corpus")) as base_of:
        base = base_of(work.data.examples[0])
        for name in KNOBS:
            try:
                catalog.graph(name, base, encoder=work.bench.encoder)
            except UsageError as error:
                missing[name] = str(error)
            else:
                found.append(name)
    return found, missing


def graph_qualities(work: Work, graphs: Sequence[str]) -> dict[str, list[dict[str, float]]]:
    """Return for each graph its mean quality at each value of its knob, over the questions with gold evidence.

    Raises UsageError for a graph without a knob, and for one that cannot be built: ``knn`` without an encoder,
    ``entities`` where no passage was annotated.
    """
    from clew import catalog

    tried = knobs(graphs)
    asked = [example for example in work.data.examples if example.pieces]
    if not asked:
        raise UsageError(f"no question of {work.data.name} names its evidence", "Graphs are measured by it")
    target = RunFile(work.graph_folder.path / "measured.jsonl")
    tell = work.progress("graphs")

    with bases(work.data, work.bench, work.progress("corpus")) as base_of:
        digest = "" if work.data.corpus == "question" else base_of(work.data.examples[0]).digest()
        work.graph_folder.claim(facts_of(work.data, replace(work.bench, llm=None), digest))
        known = _measured(target)
        for count, example in enumerate(asked, 1):
            lacking = [recipe for recipe in tried if str(recipe) not in known.get(example.id, {})]
            if lacking:
                base = base_of(example)
                snapshot, seeding = base.snapshot(), catalog.retriever("tfidf", base)
                found = {
                    str(recipe): quality(
                        example,
                        snapshot,
                        catalog.graph(str(recipe), base, encoder=work.bench.encoder),
                        seeding,
                    )
                    for recipe in lacking
                }
                target.append([{"id": example.id, "graphs": {key: asdict(q) for key, q in found.items()}}])
                known.setdefault(example.id, {}).update(found)
            tell(count, len(asked))

    series: dict[str, list[dict[str, float]]] = {name: [] for name in graphs}
    for recipe, (name, value) in tried.items():
        means = averaged([known[example.id][str(recipe)] for example in asked])
        series[name].append({"knob": value, "questions": len(asked), **means})
    return series


def _measured(target: RunFile) -> dict[str, dict[str, Quality]]:
    """Return what is known of each question and graph. Raises UsageError for a file that is something else."""
    known: dict[str, dict[str, Quality]] = {}
    for record in target.records():
        try:
            made = {recipe: Quality(**held) for recipe, held in record["graphs"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{target.path} holds no measures of graphs", "Name another folder: --out DIR"
            ) from error
        known.setdefault(record["id"], {}).update(made)
    return known


def statistics(series: Series) -> list[dict[str, Any]]:
    """Return the columns of Tables 2 and 4 for each graph with its usual knob: means over questions."""
    rows = []
    for name, points in series.items():
        usual = GRAPHS.parts[name].options[KNOBS[name][0]]
        (point,) = [point for point in points if point["knob"] == usual]
        columns = ("questions", "documents", "passages", "words", "edges", "density", "neighbours")
        rows.append(
            {"graph": str(make(name, {KNOBS[name][0]: usual})), **{key: point[key] for key in columns}}
        )
    return rows


def density_recipes(graphs: Sequence[str], walk: str = WALK) -> list[str]:
    """Return ``walk`` over each graph at each value of its knob. Raises UsageError."""
    recipe = _walk(walk)
    return [str(recipe.with_options(graph=graph)) for graph in knobs(graphs)]


def density(work: Work, graphs: Sequence[str], walk: str = WALK) -> dict[str, list[Point]]:
    """Return for each graph what ``walk`` finds over it, and how fast, at each value of its knob (Figures 6, 10).

    The latency is the seconds a question spends on choosing which neighbours to visit, as in the paper's Section
    5.3. Raises UsageError as :func:`graph_qualities` does, and for a recipe that walks no graph.
    """
    sizes = graph_qualities(work, graphs)
    runs = iter(work.runs(density_recipes(graphs, walk)))
    return {
        name: [
            {"neighbours": point["neighbours"], "density": point["density"], "knob": point["knob"]}
            | _point(next(runs), work.bench)
            for point in points
        ]
        for name, points in sizes.items()
    }


def branching(
    work: Work, walk: str = WALK, budget: int = BUDGET, branches: Sequence[int] = BRANCHES
) -> list[Point]:
    """Return what ``walk`` finds with each branching factor at the same budget of paths (Figure 7).

    Raises UsageError for a recipe that walks no graph.
    """
    runs = work.runs(branching_recipes(walk, budget, branches))
    return [
        {"branch": branch, "seeds": seeds(budget, branch)} | _point(run, work.bench)
        for branch, run in zip(branches, runs, strict=True)
    ]


def branching_recipes(
    walk: str = WALK, budget: int = BUDGET, branches: Sequence[int] = BRANCHES
) -> list[str]:
    """Return ``walk`` with each branching factor at the same budget. Raises UsageError."""
    recipe = _walk(walk)
    return [
        str(recipe.with_options(branch=branch, seeds=seeds(budget, branch), budget=budget))
        for branch in branches
    ]


def seeds(budget: int, branch: int) -> int:
    """Return how many seeds a budget of paths is for: their quotient rounded half up, and never 0."""
    return max(1, math.floor(budget / branch + 0.5))


def _walk(recipe: str) -> Recipe:
    """Return a recipe that has a graph, seeds and a branching factor."""
    found = parse(recipe)
    if found.name not in METHODS.parts:
        raise unknown("recipe", found.name, METHODS.parts)
    if "graph" not in METHODS.parts[found.name].options:
        raise UsageError(f"'{found.name}' walks no graph", "Name a walk: kgp-paper, kgp")
    METHODS.complete(found)
    return found


def _point(run: Run, bench: Bench) -> dict[str, Any]:
    """Return the means of a run, with their 95 % bootstrap intervals. Raises UsageError where all of it failed."""
    if not run.results:
        problem = next(iter(run.errors.values()), "it was asked none")
        raise UsageError(f"'{run.recipe}' answered no question: {problem}")
    names = (*FOUND, *(ANSWERED if bench.llm else ()), LATENCY)
    estimates = {name: interval(list(run.values(metric(name)).values())) for name in names}
    held = {name: one for name, one in estimates.items() if one.count}
    return {
        "recipe": run.recipe,
        "questions": len(run.results),
        "errors": len(run.errors),
        **{name: one.mean for name, one in held.items()},
        "intervals": {name: [one.low, one.high] for name, one in held.items()},
    }
