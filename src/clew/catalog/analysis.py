"""The KGP paper's analyses: of graphs (Tables 2 and 4, Figures 5 and 9), and of the walk over them (6, 7 and 10).

What is measured of a question is on disk before the next one: an analysis that was killed goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.catalog.evaluation import QuestionSet, EvaluationSettings, open_bases
from clew.catalog.graphs import GRAPHS
from clew.catalog.methods import METHODS
from clew.catalog.recipe import Recipe, make_recipe, parse_recipe
from clew.catalog.runs import RunFolder, evaluate_recipes, run_facts, folder_for
from clew.errors import UsageError, unknown_name_error
from clew.evaluate.metrics import parse_metric
from clew.evaluate.quality import GraphQuality, average_quality, measure_graph_quality
from clew.evaluate.running import RunFile
from clew.evaluate.statistics import bootstrap_interval

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
EVIDENCE_METRICS = ("SF-EM", "SF-coverage", "recall@5")
ANSWER_METRICS = ("F1", "EM", "accuracy")
LATENCY_METRIC = "walk-seconds"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the analyses of one data set share: the questions, the models, where results go, who is told."""

    questions: QuestionSet
    settings: EvaluationSettings
    out: Path
    workers: int = 1
    progress: Callable[[str], Progress] = lambda stage: lambda done, total: None
    report_estimate: Callable[[str, Usage], None] | None = None

    @property
    def folder(self) -> RunFolder:
        """The folder of what walks and other methods answered."""
        return folder_for(self.out, self.questions)

    @property
    def graph_folder(self) -> RunFolder:
        """The folder of what was measured of graphs, whatever the language model."""
        return RunFolder(self.folder.path.with_name(f"{self.folder.path.name}-graphs"))

    def run(self, recipes: Sequence[str]) -> list[Run]:
        """Return the runs of some recipes after running what is missing of them. Raises UsageError."""
        evaluate_recipes(
            self.out,
            self.questions,
            recipes,
            self.settings,
            workers=self.workers,
            progress=self.progress,
            report_estimate=self.report_estimate,
        )
        return self.folder.load_runs(recipes)


def graphs_by_knob(graphs: Sequence[str]) -> dict[Recipe, tuple[str, float]]:
    """Return each graph at each value of its knob. Raises UsageError for a graph without one."""
    for name in graphs:
        if name not in KNOBS:
            raise UsageError(f"no knob is known for the graph '{name}'", f"Known: {', '.join(KNOBS)}")
    return {make_recipe(name, {KNOBS[name][0]: value}): (name, value) for name in graphs for value in KNOBS[name][1]}


def find_buildable_graphs(work: Experiment) -> tuple[list[str], dict[str, str]]:
    """Return the graphs that can be built over the first question's base, and why the others cannot."""
    from clew import catalog

    found, missing = [], {}
    with open_bases(work.questions, work.settings, work.progress("corpus")) as base_of:
        base = base_of(work.questions.examples[0])
        for name in KNOBS:
            try:
                catalog.build_graph(name, base, encoder=work.settings.encoder)
            except UsageError as error:
                missing[name] = str(error)
            else:
                found.append(name)
    return found, missing


def measure_graphs(work: Experiment, graphs: Sequence[str]) -> dict[str, list[dict[str, float]]]:
    """Return for each graph its mean quality at each value of its knob, over the questions with gold evidence.

    Raises UsageError for a graph without a knob, and for one that cannot be built: ``knn`` without an encoder,
    ``entities`` where no passage was annotated.
    """
    from clew import catalog

    tried = graphs_by_knob(graphs)
    asked = [example for example in work.questions.examples if example.pieces]
    if not asked:
        raise UsageError(f"no question of {work.questions.name} names its evidence", "Graphs are measured by it")
    target = RunFile(work.graph_folder.path / "measured.jsonl")
    tell = work.progress("graphs")

    with open_bases(work.questions, work.settings, work.progress("corpus")) as base_of:
        digest = "" if work.questions.corpus == "question" else base_of(work.questions.examples[0]).digest()
        work.graph_folder.claim(run_facts(work.questions, replace(work.settings, llm=None), digest))
        known = _measured(target)
        for count, example in enumerate(asked, 1):
            lacking = [recipe for recipe in tried if str(recipe) not in known.get(example.id, {})]
            if lacking:
                base = base_of(example)
                snapshot, seeding = base.snapshot(), catalog.build_retriever("tfidf", base)
                found = {
                    str(recipe): measure_graph_quality(
                        example,
                        snapshot,
                        catalog.build_graph(str(recipe), base, encoder=work.settings.encoder),
                        seeding,
                    )
                    for recipe in lacking
                }
                target.append([{"id": example.id, "graphs": {key: asdict(q) for key, q in found.items()}}])
                known.setdefault(example.id, {}).update(found)
            tell(count, len(asked))

    series: dict[str, list[dict[str, float]]] = {name: [] for name in graphs}
    for recipe, (name, value) in tried.items():
        means = average_quality([known[example.id][str(recipe)] for example in asked])
        series[name].append({"knob": value, "questions": len(asked), **means})
    return series


def _measured(target: RunFile) -> dict[str, dict[str, GraphQuality]]:
    """Return what is known of each question and graph. Raises UsageError for a file that is something else."""
    known: dict[str, dict[str, GraphQuality]] = {}
    for record in target.records():
        try:
            made = {recipe: GraphQuality(**held) for recipe, held in record["graphs"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{target.path} holds no measures of graphs", "Name another folder: --out DIR"
            ) from error
        known.setdefault(record["id"], {}).update(made)
    return known


def graph_statistics(series: Series) -> list[dict[str, Any]]:
    """Return the columns of Tables 2 and 4 for each graph with its usual knob: means over questions."""
    rows = []
    for name, points in series.items():
        usual = GRAPHS.components[name].options[KNOBS[name][0]]
        (point,) = [point for point in points if point["knob"] == usual]
        columns = ("questions", "documents", "passages", "words", "edges", "density", "neighbours")
        rows.append(
            {"graph": str(make_recipe(name, {KNOBS[name][0]: usual})), **{key: point[key] for key in columns}}
        )
    return rows


def density_recipes(graphs: Sequence[str], walk: str = WALK) -> list[str]:
    """Return ``walk`` over each graph at each value of its knob. Raises UsageError."""
    recipe = _walk(walk)
    return [str(recipe.with_options(graph=graph)) for graph in graphs_by_knob(graphs)]


def measure_density(work: Experiment, graphs: Sequence[str], walk: str = WALK) -> dict[str, list[Point]]:
    """Return for each graph what ``walk`` finds over it, and how fast, at each value of its knob (Figures 6, 10).

    The latency is the seconds a question spends on choosing which neighbours to visit, as in the paper's Section
    5.3. Raises UsageError as :func:`graph_qualities` does, and for a recipe that walks no graph.
    """
    sizes = measure_graphs(work, graphs)
    runs = iter(work.run(density_recipes(graphs, walk)))
    return {
        name: [
            {"neighbours": point["neighbours"], "density": point["density"], "knob": point["knob"]}
            | _point(next(runs), work.settings)
            for point in points
        ]
        for name, points in sizes.items()
    }


def measure_branching(
    work: Experiment, walk: str = WALK, budget: int = BUDGET, branches: Sequence[int] = BRANCHES
) -> list[Point]:
    """Return what ``walk`` finds with each branching factor at the same budget of paths (Figure 7).

    Raises UsageError for a recipe that walks no graph.
    """
    runs = work.run(branching_recipes(walk, budget, branches))
    return [
        {"branch": branch, "seeds": seed_count(budget, branch)} | _point(run, work.settings)
        for branch, run in zip(branches, runs, strict=True)
    ]


def branching_recipes(
    walk: str = WALK, budget: int = BUDGET, branches: Sequence[int] = BRANCHES
) -> list[str]:
    """Return ``walk`` with each branching factor at the same budget. Raises UsageError."""
    recipe = _walk(walk)
    return [
        str(recipe.with_options(branch=branch, seeds=seed_count(budget, branch), budget=budget))
        for branch in branches
    ]


def seed_count(budget: int, branch: int) -> int:
    """Return how many seeds a budget of paths is for: their quotient rounded half up, and never 0."""
    return max(1, math.floor(budget / branch + 0.5))


def _walk(recipe: str) -> Recipe:
    """Return a recipe that has a graph, seeds and a branching factor."""
    found = parse_recipe(recipe)
    if found.name not in METHODS.components:
        raise unknown_name_error("recipe", found.name, METHODS.components)
    if "graph" not in METHODS.components[found.name].options:
        raise UsageError(f"'{found.name}' walks no graph", "Name a walk: kgp-paper, kgp")
    METHODS.fill_defaults(found)
    return found


def _point(run: Run, bench: EvaluationSettings) -> dict[str, Any]:
    """Return the means of a run, with their 95 % bootstrap intervals. Raises UsageError where all of it failed."""
    if not run.results:
        problem = next(iter(run.errors.values()), "it was asked none")
        raise UsageError(f"'{run.recipe}' answered no question: {problem}")
    names = (*EVIDENCE_METRICS, *(ANSWER_METRICS if bench.llm else ()), LATENCY_METRIC)
    estimates = {name: bootstrap_interval(list(run.values(parse_metric(name)).values())) for name in names}
    held = {name: one for name, one in estimates.items() if one.count}
    return {
        "recipe": run.recipe,
        "questions": len(run.results),
        "errors": len(run.errors),
        **{name: one.mean for name, one in held.items()},
        "intervals": {name: [one.low, one.high] for name, one in held.items()},
    }
