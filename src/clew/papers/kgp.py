"""How good a graph of passages is for a question (KGP paper, Section 3.3, Figure 5; Figure 9), and how large.

The neighbours of a question's seed passages are what a walk can reach in one hop. SF-EM asks whether they and the
seeds hold every piece of gold evidence, precision how many of them hold any: as a graph grows denser the first
rises and the second falls, and the better graph is the one whose curve lies higher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import UsageError
from clew.core.recipe import Recipe, make_recipe, parse_recipe
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.metrics import parse_metric
from clew.evaluate.report import Run, build_table, format_table
from clew.evaluate.run_folder import (
    Experiment,
    grade_folder,
    run_facts,
)
from clew.evaluate.runner import RunFile
from clew.evaluate.setup import EvaluationSettings, open_stores
from clew.evaluate.statistics import bootstrap_interval
from clew.graph.passages import passage_rows
from clew.graph.statistics import compute_statistics
from clew.knowledge_base.registry.components import REGISTRY
from clew.papers import figures as drawing
from clew.papers.page import (
    Section,
    command_line,
    data_facts,
    environment_table,
    points_table,
    write_json,
    write_page,
)

if TYPE_CHECKING:
    from clew.core.protocols import Graph, Retriever, Snapshot
    from clew.evaluate.examples import Example

#: Seeds by TF-IDF, as many as the paper's traverser has (Supplementary 8.2).
SEED_COUNT = 10


@dataclass(frozen=True, slots=True)
class GraphQuality:
    """One graph over one question's corpus of ``documents`` with ``passages`` of ``words`` words (means: Tables 2
    and 4). ``neighbours`` counts those of a node on average, ``reached`` the
    seeds and their neighbours together; ``sf_em``, ``coverage`` and ``precision`` are of these."""

    documents: int
    passages: int
    words: float
    edges: int
    density: float
    neighbours: float
    reached: int
    sf_em: float
    coverage: float
    precision: float


def measure_graph_quality(
    example: Example, snapshot: Snapshot, graph: Graph, seeding: Retriever, seeds: int = SEED_COUNT
) -> GraphQuality:
    """Return the quality of ``graph`` for a question that has gold evidence."""
    from clew.core.types import Question

    hits = seeding.retrieve(Question(example.question), seeds)
    start = snapshot.rows([hit.node.id for hit in hits])
    near = [graph.neighbours(int(row)) for row in start]
    reached = np.unique(np.concatenate([start, *near])) if len(start) else start
    gold = GoldEvidence(example)
    held = [gold.matching_pieces(node) for node in snapshot.nodes(reached)]
    found = frozenset[int]().union(*held)
    wanted = len(example.pieces)
    size = compute_statistics(snapshot, graph)
    return GraphQuality(
        len(snapshot.documents()),
        size.nodes,
        mean_passage_words(snapshot),
        size.edges,
        size.density,
        size.mean_degree,
        len(reached),
        float(len(found) == wanted),
        len(found) / wanted,
        sum(map(bool, held)) / len(held) if held else 0.0,
    )


def mean_passage_words(snapshot: Snapshot) -> float:
    """Return the mean number of indexed words of passages and table rows, 0 where there are none."""
    rows = passage_rows(snapshot)
    return float(snapshot.postings("text").lengths(rows).mean()) if len(rows) else 0.0


def average_quality(measured: Sequence[GraphQuality]) -> dict[str, float]:
    """Return the means over questions, as the paper's tables and figures give them."""
    return {
        one.name: float(np.mean([getattr(of, one.name) for of in measured])) for one in fields(GraphQuality)
    }


if TYPE_CHECKING:
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


def graphs_by_knob(graphs: Sequence[str]) -> dict[Recipe, tuple[str, float]]:
    """Return each graph at each value of its knob. Raises UsageError for a graph without one."""
    for name in graphs:
        if name not in KNOBS:
            raise UsageError(f"no knob is known for the graph '{name}'", f"Known: {', '.join(KNOBS)}")
    return {
        make_recipe(name, {KNOBS[name][0]: value}): (name, value)
        for name in graphs
        for value in KNOBS[name][1]
    }


def find_buildable_graphs(work: Experiment) -> tuple[list[str], dict[str, str]]:
    """Return the graphs that can be built over the first question's base, and why the others cannot."""
    from clew.knowledge_base import registry as catalog

    found, missing = [], {}
    with open_stores(work.questions, work.settings, work.progress("corpus")) as base_of:
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
    from clew.knowledge_base import registry as catalog

    tried = graphs_by_knob(graphs)
    asked = [example for example in work.questions.examples if example.pieces]
    if not asked:
        raise UsageError(
            f"no question of {work.questions.name} names its evidence", "Graphs are measured by it"
        )
    target = RunFile(work.graph_folder.path / "measured.jsonl")
    tell = work.progress("graphs")

    with open_stores(work.questions, work.settings, work.progress("corpus")) as base_of:
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
        usual = REGISTRY.component("graph", name).options[KNOBS[name][0]]
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
    if "graph" not in REGISTRY.component("recipe", found.name).options:
        raise UsageError(f"'{found.name}' walks no graph", "Name a walk: kgp-paper, kgp")
    REGISTRY.complete("recipe", found)
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


_STATISTICS = {
    "graph": "graph",
    "questions": "questions",
    "documents": "documents",
    "passages": "passages",
    "words a passage": "words",
    "edges": "edges",
    "density": "density",
    "neighbours": "neighbours",
}
_QUALITY = {
    "graph": "graph",
    "knob": "knob",
    "neighbours": "neighbours",
    "density": "density",
    "SF-EM": "sf_em",
    "covered": "coverage",
    "precision": "precision",
}


def graph_sections(work: Experiment, graphs: Sequence[str]) -> tuple[Section, Section]:
    """Return the statistics of graphs (Tables 2 and 4) and their quality (Figures 5 and 9). Raises UsageError."""
    series = measure_graphs(work, graphs)
    sizes = graph_statistics(series)
    counts = points_table(_STATISTICS, sizes)
    write_json(work.graph_folder, "statistics", {"graphs": sizes})
    (work.graph_folder.path / "statistics.md").write_text(counts, encoding="utf-8")
    write_json(work.graph_folder, "quality", {"graphs": series})
    alone = replace(work, settings=replace(work.settings, llm=None))
    command = command_line("graphs", [alone], _named(graphs))
    counted = Section(
        f"Graph statistics of {work.questions.title}",
        "Means over questions (paper: Tables 2 and 4). Edges are distinct and undirected, density is their share "
        "of all pairs of passages, words are those of the text index.",
        command,
        counts,
    )
    drawn = Section(
        f"Graph quality of {work.questions.title}",
        "What 10 TF-IDF seeds and their neighbours hold (paper: Figures 5 and 9): SF-EM is the share of questions "
        "of which they hold all gold evidence, precision the share of them that hold any. The knob is the number "
        "of keywords (keywords), the commonest name that joins (mentions), the number of neighbours (knn), the "
        "prior threshold (entities).",
        command,
        points_table(_QUALITY, _flat(series)),
        drawing.draw_graph_quality(series, _title(work), work.graph_folder.path / "quality"),
    )
    return counted, drawn


def density_section(work: Experiment, graphs: Sequence[str], walk: str = WALK) -> Section:
    """Return performance and latency against density (Figures 6 and 10). Raises UsageError."""
    series = measure_density(work, graphs, walk)
    measure = "F1" if work.settings.llm else "SF-EM"
    write_json(work.folder, "density", {"walk": walk, "graphs": series})
    shown = {"graph": "graph", "knob": "knob", "neighbours": "neighbours", "density": "density"}
    return Section(
        f"Performance and latency against density, {work.questions.title}",
        f"The walk `{walk}` over each graph at each value of its knob (paper: Figures 6 and 10). SF-EM asks for "
        "all gold evidence among the passages on the paths that are found. walk-seconds is what a question spends "
        "on choosing which neighbours to visit, on the machine that this ran on.",
        command_line("density", [work], [*_named(graphs), "--recipe", walk]),
        points_table(shown | _measures(work), _flat(series)),
        drawing.draw_density(series, measure, _title(work), work.folder.path / "density"),
    )


def branching_section(work: Experiment, walk: str = WALK, budget: int = BUDGET) -> Section:
    """Return performance against the branching factor at a constant budget (Figure 7). Raises UsageError."""
    found = measure_branching(work, walk, budget)
    measures = ["SF-EM", "SF-coverage", *(ANSWER_METRICS if work.settings.llm else ())]
    write_json(work.folder, "branching", {"walk": walk, "budget": budget, "points": found})
    return Section(
        f"Branching factor, {work.questions.title}",
        f"The walk `{walk}` with a budget of {budget} paths, from {budget} / branch seeds (paper: Figure 7).",
        command_line("branching", [work], ["--budget", str(budget), "--recipe", walk]),
        points_table({"branch": "branch", "seeds": "seeds"} | _measures(work), found),
        drawing.draw_branching(found, measures, _title(work), work.folder.path / "branching"),
    )


def _measures(work: Experiment) -> dict[str, str]:
    names = (
        *EVIDENCE_METRICS,
        *(ANSWER_METRICS if work.settings.llm else ()),
        LATENCY_METRIC,
        "questions",
        "errors",
    )
    return {name: name for name in names}


def _named(graphs: Sequence[str]) -> list[str]:
    return [word for name in graphs for word in ("--graph", name)]


def _flat(series: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    return [{"graph": name, **point} for name, held in series.items() for point in held]


def _title(work: Experiment) -> str:
    count = len(work.questions.examples)
    return f"{work.questions.title}, {count} question{'s' * (count != 1)}"


#: Columns of the main table, and by which of them methods are ranked: with a language model as in Table 1.
TABLE_1_ANSWERS = ("Acc", "EM", "F1")
TABLE_1_EVIDENCE = ("SF-EM", "recall@5", "MRR")
TABLE_1_COSTS = ("seconds",)
TITLE = "Knowledge Graph Prompting: the paper's analyses"


def table_1_recipes(bench: EvaluationSettings) -> list[str]:
    """Return the recipes of Table 1 that the models allow, 30 passages each (Supplementary 8.2), then ours.

    With a language model all are read by the paper's prompt. DPR and MDR search with whatever encoder is given.
    """
    retrievers = [*(["knn"] if bench.encoder else []), "tfidf", "bm25"]
    reader = "paper" if bench.llm else "extractive"
    read = [f"read(k=30, reader={reader}, retriever={name})" for name in retrievers]
    read += [f"{name}(reader={reader})" for name in ("dpr", "mdr")] if bench.encoder else []
    walks = ["kgp-paper"]
    walks += ["kgp-paper(graph=knn, guide=encoder)"] if bench.encoder else []
    walks += ["kgp-paper(guide=generated)"] if bench.llm else []
    asked = ["ircot(reader=paper)"] if bench.llm else []
    first = ["none"] if bench.llm else []
    return [*first, *read, *asked, *walks, f"kgp(reader={reader})", f"golden(reader={reader})"]


def write_kgp_page(works: Sequence[Experiment]) -> tuple[Path, Path]:
    """Run what the paper ran over each data set and write ``page.md`` and ``page.html``; return them.

    What is there already is not run again. All works have the same models and the same ``out``. Raises UsageError.
    """
    bench, out = works[0].settings, works[0].out
    recipes = table_1_recipes(bench)
    runs: list[Run] = []
    parts: list[str] = []
    for work in works:
        graphs, missing = find_buildable_graphs(work)
        sections = [*graph_sections(work, graphs)]
        # All at once, so that the base of a question is made, and encoded, one time for all of them.
        work.run([*dict.fromkeys([*recipes, *density_recipes(graphs), *branching_recipes()])])
        if bench.llm is not None:
            grade_folder(work.folder, bench.llm, work.progress, recipes)
        runs += work.folder.load_runs(recipes)
        sections += [density_section(work, graphs), branching_section(work)]
        parts += [
            f"## {work.questions.title}",
            data_facts(work, {f"the graph `{name}`": why for name, why in missing.items()}),
        ]
        parts += [section.to_markdown(out) for section in sections]
    text = (
        "\n\n".join(
            [
                f"# {TITLE}",
                environment_table(works, command_line("paper kgp", works)),
                _main(works, runs).to_markdown(out),
                *parts,
            ]
        )
        + "\n"
    )
    return write_page(out, text, TITLE)


def _main(works: Sequence[Experiment], runs: Sequence[Run]) -> Section:
    bench = works[0].settings
    ranked = TABLE_1_ANSWERS if bench.llm else TABLE_1_EVIDENCE
    metrics = [*dict.fromkeys([*ranked, *TABLE_1_EVIDENCE, *TABLE_1_COSTS])]
    left_out = [
        *([] if bench.llm else ["None, IRCoT and a generated guide (they need --llm)"]),
        *([] if bench.encoder else ["KNN, DPR and MDR (they need --encoder)"]),
    ]
    return Section(
        "Methods",
        f"Means with 95 % bootstrap intervals; ranks by {', '.join(ranked)} over the data sets (paper: Table 1). "
        "Each method gives 30 passages or paths to read; every passage of a path counts."
        + (f" Left out: {'; '.join(left_out)}." if left_out else ""),
        command_line(
            "run", works, [word for recipe in table_1_recipes(bench) for word in ("--recipe", recipe)]
        ),
        format_table(build_table(runs, metrics, ranked_by=ranked), "markdown"),
    )


# MERGED: The KGP paper's analyses: of graphs (Tables 2 and 4, Figures 5 and 9), and of the walk over them (6,
# 7 and 10).
# MERGED: The analyses of :mod:`clew.papers.kgp` as sections of a page: tables and figures in the run's folder.
# MERGED: The KGP paper's experiments over data sets of one's own, and the page of them.
