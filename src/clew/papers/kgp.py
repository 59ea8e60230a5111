"""The experiments of Knowledge Graph Prompting (Wang et al., AAAI 2024), and the page of them.

- Graph statistics and quality (Section 3.3; Tables 2 and 4, Figures 5 and 9). A walk can reach the neighbours of a
  question's seed passages in one hop. SF-EM is 1 if seeds and neighbours have all gold evidence; precision is the
  share of them that has any. As a graph grows denser, SF-EM rises and precision falls; the better graph has the
  higher curve.
- Performance and latency against density (Figures 6 and 10), and against the branching factor (Figure 7): of the walk
  that a language model guides, or without one of the walk "w/o LM".
- The main comparison of methods (Table 1), and of the guides of the walk (Table 3).

Each measured question is written to disk before the next one, so an interrupted analysis continues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.component import Recipe, make_recipe, parse_recipe
from clew.core.errors import UsageError
from clew.core.types import Question
from clew.evaluate.corpora import GoldEvidence
from clew.evaluate.metrics import parse_metric
from clew.evaluate.run_folder import grade_folder, run_facts
from clew.evaluate.runner import RunFile
from clew.evaluate.setup import open_stores
from clew.evaluate.statistics import bootstrap_interval
from clew.graph.passages import compute_statistics, passage_rows
from clew.knowledge_base import registry
from clew.knowledge_base.registry import REGISTRY
from clew.papers import figures
from clew.papers.page import (
    Section,
    command_line,
    data_facts,
    environment_table,
    points_table,
    runs_table,
    write_json,
    write_page,
)

if TYPE_CHECKING:
    from clew.core.protocols import Graph, Retriever, Snapshot
    from clew.evaluate.examples import Example
    from clew.evaluate.report import Run
    from clew.evaluate.run_folder import Experiment
    from clew.evaluate.setup import EvaluationSettings

    #: A point of a figure: its parameter and its measures, with intervals under ``intervals``.
    Point = Mapping[str, Any]
    Series = Mapping[str, Sequence[Point]]

#: TF-IDF seeds of the paper's traverser (Supplementary 8.2).
SEED_COUNT = 10


@dataclass(frozen=True, slots=True)
class GraphQuality:
    """The size and quality of one graph over one question's corpus. The field names are keys of ``measured.jsonl``.

    ``words`` is the mean length of a passage, ``neighbours`` the mean degree. ``reached`` counts the seeds and their
    neighbours; ``sf_em``, ``coverage`` and ``precision`` are measured over these.
    """

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
    """Return the quality of ``graph`` for a question with gold evidence."""
    hits = seeding.retrieve(Question(example.question), seeds)
    seed_rows = snapshot.rows([hit.node.id for hit in hits])
    neighbour_rows = [graph.neighbours(int(row)) for row in seed_rows]
    reached = np.unique(np.concatenate([seed_rows, *neighbour_rows])) if len(seed_rows) else seed_rows
    gold = GoldEvidence(example)
    node_pieces = [gold.matching_pieces(node) for node in snapshot.nodes(reached)]
    pieces_found = frozenset[int]().union(*node_pieces)
    piece_count = len(example.pieces)
    statistics = compute_statistics(snapshot, graph)
    rows = passage_rows(snapshot)
    return GraphQuality(
        len(snapshot.documents()),
        statistics.nodes,
        float(snapshot.postings("text").lengths(rows).mean()) if len(rows) else 0.0,
        statistics.edges,
        statistics.density,
        statistics.mean_degree,
        len(reached),
        float(len(pieces_found) == piece_count),
        len(pieces_found) / piece_count,
        sum(map(bool, node_pieces)) / len(node_pieces) if node_pieces else 0.0,
    )


def average_quality(qualities: Sequence[GraphQuality]) -> dict[str, float]:
    """Return the mean of each column over questions, as in the paper's tables and figures."""
    return {
        column.name: float(np.mean([getattr(quality, column.name) for quality in qualities]))
        for column in fields(GraphQuality)
    }


#: The parameter that makes each graph denser (Table 6; ours for mentions), and its values in the experiments.
KNOBS: dict[str, tuple[str, tuple[float, ...]]] = {
    "keywords": ("n", (1, 2, 3, 5, 10, 20, 50)),
    "mentions": ("common", (0, 2, 5, 10, 20, 50, 200)),
    "knn": ("k", (1, 2, 5, 10, 20, 50, 100)),
    "entities": ("prior", (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)),
}
#: The walk of the analyses: guided by a language model (KGP-T5 and KGP-LLaMA), or the paper's "w/o LM"
#: (Supplementary 8.2).
WALK_WITH_MODEL, WALK = "kgp-paper(guide=generated)", "kgp-paper"
BRANCHES = tuple(range(1, 11))
#: Passages or paths that every method of the paper retrieves (Supplementary 8.2).
BUDGET = 30
#: Metrics of what a walk finds, and of answers, which are reported only with a language model.
EVIDENCE_METRICS = ("SF-EM", "SF-coverage", "recall@5")
ANSWER_METRICS = ("F1", "EM", "accuracy")
LATENCY_METRIC = "walk-seconds"


def default_walk(settings: EvaluationSettings) -> str:
    """Return the walk of the analyses that the given models allow."""
    return WALK if settings.llm is None else WALK_WITH_MODEL


def graphs_by_knob(graphs: Sequence[str]) -> dict[Recipe, tuple[str, float]]:
    """Return the recipe of each graph at each value of its parameter, with (graph, value).

    A graph may have other options: ``knn(vectors=NAME)``. Raises UsageError for one without an entry in
    :data:`KNOBS`.
    """
    recipes = {graph: parse_recipe(graph) for graph in graphs}
    for recipe in recipes.values():
        if recipe.name not in KNOBS:
            raise UsageError(f"no knob is known for the graph '{recipe.name}'", f"Known: {', '.join(KNOBS)}")
    return {
        recipe.with_options(**{KNOBS[recipe.name][0]: value}): (graph, value)
        for graph, recipe in recipes.items()
        for value in KNOBS[recipe.name][1]
    }


def find_buildable_graphs(experiment: Experiment) -> tuple[list[str], dict[str, str]]:
    """Return the graphs that can be built over the first question's corpus, and the problems of the others.

    With a second encoder the graph ``knn`` comes twice: KNN-ST beside KNN-MDR.
    """
    buildable, problems = [], {}
    beside = experiment.settings.beside
    graphs = [*KNOBS, *([str(make_recipe("knn", {"vectors": beside.name}))] if beside else [])]
    with open_stores(experiment.questions, experiment.settings, experiment.progress("corpus")) as store_for:
        store = store_for(experiment.questions.examples[0])
        for name in graphs:
            try:
                registry.build_graph(name, store, encoder=experiment.settings.encoder)
            except UsageError as error:
                problems[name] = str(error)
            else:
                buildable.append(name)
    return buildable, problems


def measure_graphs(experiment: Experiment, graphs: Sequence[str]) -> dict[str, list[dict[str, float]]]:
    """Return the mean quality of each graph at each value of its parameter, over the questions with gold evidence.

    Raises UsageError for a graph that cannot be built: ``knn`` without an encoder, ``entities`` without annotated
    passages.
    """
    recipes = graphs_by_knob(graphs)
    examples = [example for example in experiment.questions.examples if example.pieces]
    if not examples:
        raise UsageError(
            f"no question of {experiment.questions.name} names its evidence", "Graphs are measured by it"
        )
    target = RunFile(experiment.graph_folder.path / "measured.jsonl")
    report = experiment.progress("graphs")

    with open_stores(experiment.questions, experiment.settings, experiment.progress("corpus")) as store_for:
        digest = (
            ""
            if experiment.questions.corpus == "question"
            else store_for(experiment.questions.examples[0]).digest()
        )
        experiment.graph_folder.claim(
            run_facts(experiment.questions, replace(experiment.settings, llm=None), digest)
        )
        measured = _read_measured(target)
        for count, example in enumerate(examples, 1):
            missing = [recipe for recipe in recipes if str(recipe) not in measured.get(example.id, {})]
            if missing:
                store = store_for(example)
                snapshot, seed_retriever = store.snapshot(), registry.build_retriever("tfidf", store)
                new = {
                    str(recipe): measure_graph_quality(
                        example,
                        snapshot,
                        registry.build_graph(str(recipe), store, encoder=experiment.settings.encoder),
                        seed_retriever,
                    )
                    for recipe in missing
                }
                target.append([{"id": example.id, "graphs": {key: asdict(q) for key, q in new.items()}}])
                measured.setdefault(example.id, {}).update(new)
            report(count, len(examples))

    series: dict[str, list[dict[str, float]]] = {name: [] for name in graphs}
    for recipe, (name, value) in recipes.items():
        means = average_quality([measured[example.id][str(recipe)] for example in examples])
        series[name].append({"knob": value, "questions": len(examples), **means})
    return series


def _read_measured(target: RunFile) -> dict[str, dict[str, GraphQuality]]:
    """Return the measured qualities by question id and graph recipe. Raises UsageError for another kind of file."""
    measured: dict[str, dict[str, GraphQuality]] = {}
    for record in target.records():
        try:
            qualities = {recipe: GraphQuality(**columns) for recipe, columns in record["graphs"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{target.path} holds no measures of graphs", "Name another folder: --out DIR"
            ) from error
        measured.setdefault(record["id"], {}).update(qualities)
    return measured


def graph_statistics(series: Series) -> list[dict[str, Any]]:
    """Return the columns of Tables 2 and 4 for each graph with its default parameter: means over questions."""
    rows = []
    for name, points in series.items():
        recipe = parse_recipe(name)
        knob = KNOBS[recipe.name][0]
        default_value = REGISTRY.component("graph", recipe.name).options[knob]
        (point,) = [point for point in points if point["knob"] == default_value]
        columns = ("questions", "documents", "passages", "words", "edges", "density", "neighbours")
        rows.append(
            {
                "graph": str(recipe.with_options(**{knob: default_value})),
                **{key: point[key] for key in columns},
            }
        )
    return rows


def density_recipes(graphs: Sequence[str], walk: str) -> list[str]:
    """Return ``walk`` over each graph at each value of its parameter. Raises UsageError."""
    recipe = parse_recipe(walk)
    return [str(recipe.with_options(graph=graph)) for graph in graphs_by_knob(graphs)]


def measure_density(experiment: Experiment, graphs: Sequence[str], walk: str) -> dict[str, list[Point]]:
    """Return the performance and latency of ``walk`` over each graph at each value of its parameter (Figures 6, 10).

    The latency is the time in seconds spent choosing neighbours, per question, as in the paper's Section 5.3. Raises
    UsageError as :func:`measure_graphs` does, and for a recipe that walks no graph.
    """
    sizes = measure_graphs(experiment, graphs)
    runs = iter(experiment.run(density_recipes(graphs, walk)))
    return {
        name: [
            {"neighbours": point["neighbours"], "density": point["density"], "knob": point["knob"]}
            | _run_point(next(runs), experiment.settings)
            for point in points
        ]
        for name, points in sizes.items()
    }


def measure_branching(
    experiment: Experiment, walk: str, budget: int = BUDGET, branches: Sequence[int] = BRANCHES
) -> list[Point]:
    """Return the performance of ``walk`` with each branching factor at the same budget of paths (Figure 7).

    Raises UsageError for a recipe that walks no graph.
    """
    runs = experiment.run(branching_recipes(walk, budget, branches))
    return [
        {"branch": branch, "seeds": seed_count(budget, branch)} | _run_point(run, experiment.settings)
        for branch, run in zip(branches, runs, strict=True)
    ]


def branching_recipes(walk: str, budget: int = BUDGET, branches: Sequence[int] = BRANCHES) -> list[str]:
    """Return ``walk`` with each branching factor at the same budget. Raises UsageError."""
    recipe = parse_recipe(walk)
    return [
        # The budget of a walk counts its seeds too.
        str(
            recipe.with_options(
                branch=branch, seeds=(seeds := seed_count(budget, branch)), budget=seeds * (1 + branch)
            )
        )
        for branch in branches
    ]


def seed_count(budget: int, branch: int) -> int:
    """Return the number of seeds for a budget of paths: budget / branch rounded half up, at least 1."""
    return max(1, math.floor(budget / branch + 0.5))


def _run_point(run: Run, settings: EvaluationSettings) -> dict[str, Any]:
    """Return the means of a run with 95 % bootstrap intervals. Raises UsageError for a run without an answer."""
    if not run.results:
        problem = next(iter(run.errors.values()), "it was asked none")
        raise UsageError(f"'{run.recipe}' answered no question: {problem}")
    names = (*EVIDENCE_METRICS, *(ANSWER_METRICS if settings.llm else ()), LATENCY_METRIC)
    estimates = {name: bootstrap_interval(list(run.values(parse_metric(name)).values())) for name in names}
    defined = {name: estimate for name, estimate in estimates.items() if estimate.count}
    return {
        "recipe": run.recipe,
        "questions": len(run.results),
        "errors": len(run.errors),
        **{name: estimate.mean for name, estimate in defined.items()},
        "intervals": {name: [estimate.low, estimate.high] for name, estimate in defined.items()},
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


def graph_sections(experiment: Experiment, graphs: Sequence[str]) -> tuple[Section, Section]:
    """Return the statistics of graphs (Tables 2 and 4) and their quality (Figures 5 and 9). Raises UsageError."""
    series = measure_graphs(experiment, graphs)
    statistics = graph_statistics(series)
    table = points_table(_STATISTICS, statistics)
    write_json(experiment.graph_folder, "statistics", {"graphs": statistics})
    (experiment.graph_folder.path / "statistics.md").write_text(table, encoding="utf-8")
    write_json(experiment.graph_folder, "quality", {"graphs": series})
    without_model = replace(experiment, settings=replace(experiment.settings, llm=None))
    options = [word for name in graphs for word in ("--graph", name)]
    command = command_line("graphs", [without_model], options)
    statistics_section = Section(
        f"Graph statistics of {experiment.questions.title}",
        "Means over questions (paper: Tables 2 and 4). Edges are distinct and undirected, density is their share "
        "of all pairs of passages, words are those of the text index.",
        command,
        table,
    )
    quality_section = Section(
        f"Graph quality of {experiment.questions.title}",
        "Gold evidence among 10 TF-IDF seeds and their neighbours (paper: Figures 5 and 9): SF-EM is the share of "
        "questions for which they have all of it, precision the share of them that has any. The knob is the number "
        "of keywords (keywords), the largest number of passages that a name may join (mentions), the number of "
        "neighbours (knn), the prior threshold (entities).",
        command,
        points_table(_QUALITY, _flatten(series)),
        figures.draw_graph_quality(series, _title(experiment), experiment.graph_folder.path / "quality"),
    )
    return statistics_section, quality_section


def density_section(experiment: Experiment, graphs: Sequence[str]) -> Section:
    """Return performance and latency against density (Figures 6 and 10). Raises UsageError."""
    walk = default_walk(experiment.settings)
    series = measure_density(experiment, graphs, walk)
    measure = "F1" if experiment.settings.llm else "SF-EM"
    write_json(experiment.folder, "density", {"walk": walk, "graphs": series})
    columns = {"graph": "graph", "knob": "knob", "neighbours": "neighbours", "density": "density"}
    return Section(
        f"Performance and latency against density, {experiment.questions.title}",
        f"The walk `{walk}` over each graph at each value of its knob (paper: Figures 6 and 10). SF-EM is the share "
        "of questions with all gold evidence on the paths. walk-seconds is the time spent choosing neighbours, per "
        "question, on the machine of this run.",
        "",
        points_table(columns | _measure_columns(experiment), _flatten(series)),
        figures.draw_density(series, measure, _title(experiment), experiment.folder.path / "density"),
    )


def branching_section(experiment: Experiment) -> Section:
    """Return performance against the branching factor at a constant budget (Figure 7). Raises UsageError."""
    walk = default_walk(experiment.settings)
    points = measure_branching(experiment, walk)
    measures = ["SF-EM", "SF-coverage", *(ANSWER_METRICS if experiment.settings.llm else ())]
    write_json(experiment.folder, "branching", {"walk": walk, "budget": BUDGET, "points": points})
    return Section(
        f"Branching factor, {experiment.questions.title}",
        f"The walk `{walk}` with a budget of {BUDGET} paths, from {BUDGET} / branch seeds (paper: Figure 7).",
        "",
        points_table({"branch": "branch", "seeds": "seeds"} | _measure_columns(experiment), points),
        figures.draw_branching(points, measures, _title(experiment), experiment.folder.path / "branching"),
    )


def _measure_columns(experiment: Experiment) -> dict[str, str]:
    names = (
        *EVIDENCE_METRICS,
        *(ANSWER_METRICS if experiment.settings.llm else ()),
        LATENCY_METRIC,
        "questions",
        "errors",
    )
    return {name: name for name in names}


def _flatten(series: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    return [{"graph": name, **point} for name, points in series.items() for point in points]


def _title(experiment: Experiment) -> str:
    count = len(experiment.questions.examples)
    return f"{experiment.questions.title}, {count} question{'s' * (count != 1)}"


#: Columns of the main table. Ranks use the answers with a language model, as in Table 1, else the evidence.
TABLE_1_ANSWERS = ("Acc", "EM", "F1")
TABLE_1_EVIDENCE = ("SF-EM", "recall@5", "MRR")
TABLE_1_COSTS = ("seconds",)
TITLE = "Knowledge Graph Prompting: the paper's analyses"


def table_1_recipes(settings: EvaluationSettings) -> list[str]:
    """Return the recipes of Table 1 that the models allow, with 30 passages each (Supplementary 8.2), then ours.

    With a language model all use the paper's reading prompt. DPR and MDR search with the given encoder, whatever it
    was trained for.
    """
    retrievers = [*(["knn"] if settings.encoder else []), "tfidf", "bm25"]
    reader = "paper" if settings.llm else "extractive"
    reading = [f"read(k=30, reader={reader}, retriever={name})" for name in retrievers]
    reading += [f"{name}(reader={reader})" for name in ("dpr", "mdr")] if settings.encoder else []
    walks = ["kgp-paper"]
    walks += ["kgp-paper(graph=knn, guide=encoder)"] if settings.encoder else []
    walks += ["kgp-paper(guide=generated)"] if settings.llm else []
    reasoning = ["ircot(reader=paper)"] if settings.llm else []
    from_memory = ["none"] if settings.llm else []
    return [*from_memory, *reading, *reasoning, *walks, f"kgp(reader={reader})", f"golden(reader={reader})"]


def table_3_recipes(settings: EvaluationSettings, graphs: Sequence[str]) -> list[str]:
    """Return the walks of Table 3, which differ only in their guide: without a language model, with the given one
    (LLaMA, T5), and with the encoder (MDR).

    The graph is the paper's TAGME graph, ``entities``, where passages are annotated, else the first of ``graphs``.
    """
    graph = "entities" if "entities" in graphs else graphs[0]
    guides = [
        "question",
        *(["generated"] if settings.llm else []),
        *(["encoder"] if settings.encoder else []),
    ]
    walks = (
        parse_recipe(WALK).with_options(graph=parse_recipe(graph), guide=parse_recipe(guide))
        for guide in guides
    )
    return [str(walk) for walk in walks]


def guides_section(experiment: Experiment, graphs: Sequence[str]) -> Section:
    """Return the comparison of guides over one graph (Table 3). Raises UsageError."""
    recipes = table_3_recipes(experiment.settings, graphs)
    metrics = [*(TABLE_1_ANSWERS if experiment.settings.llm else ()), *TABLE_1_EVIDENCE, *TABLE_1_COSTS]
    missing = [
        *([] if experiment.settings.llm else ["a language model (--llm)"]),
        *([] if experiment.settings.encoder else ["an encoder (--encoder)"]),
        *([] if "entities" in graphs else ["the TAGME graph (clew eval annotate)"]),
    ]
    return Section(
        f"Guides of the walk, {experiment.questions.title}",
        'The same walk with different guides (paper: Table 3): `question` is its "w/o LM", `generated` a language '
        "model, `encoder` MDR." + (f" Not at hand: {'; '.join(missing)}." if missing else ""),
        command_line("run", [experiment], [word for recipe in recipes for word in ("--recipe", recipe)]),
        runs_table(experiment.folder.load_runs(recipes), metrics),
    )


def write_kgp_page(experiments: Sequence[Experiment]) -> tuple[Path, Path]:
    """Run the paper's experiments over each data set, write ``page.md`` and ``page.html``, and return their paths.

    Finished parts are not run again. All experiments share their settings and ``out``. Raises UsageError.
    """
    settings, out = experiments[0].settings, experiments[0].out
    recipes = table_1_recipes(settings)
    runs: list[Run] = []
    parts: list[str] = []
    for experiment in experiments:
        graphs, problems = find_buildable_graphs(experiment)
        sections = [*graph_sections(experiment, graphs)]
        # All recipes in one run, so that the corpus of a question is built and encoded only once.
        walk, guides = default_walk(settings), table_3_recipes(settings, graphs)
        experiment.run(
            [*dict.fromkeys([*recipes, *guides, *density_recipes(graphs, walk), *branching_recipes(walk)])]
        )
        if settings.llm is not None:
            grade_folder(experiment.folder, settings.llm, experiment.progress, [*recipes, *guides])
        runs += experiment.folder.load_runs(recipes)
        sections += [guides_section(experiment, graphs)]
        sections += [density_section(experiment, graphs), branching_section(experiment)]
        parts += [
            f"## {experiment.questions.title}",
            data_facts(experiment, {f"the graph `{name}`": problem for name, problem in problems.items()}),
        ]
        parts += [section.to_markdown(out) for section in sections]
    text = (
        "\n\n".join(
            [
                f"# {TITLE}",
                environment_table(experiments, command_line("paper kgp", experiments)),
                _methods_section(experiments, runs).to_markdown(out),
                *parts,
            ]
        )
        + "\n"
    )
    return write_page(out, text, TITLE)


def _methods_section(experiments: Sequence[Experiment], runs: Sequence[Run]) -> Section:
    settings = experiments[0].settings
    ranking_metrics = TABLE_1_ANSWERS if settings.llm else TABLE_1_EVIDENCE
    metrics = [*dict.fromkeys([*ranking_metrics, *TABLE_1_EVIDENCE, *TABLE_1_COSTS])]
    omissions = [
        *([] if settings.llm else ["None, IRCoT and a generated guide (they need --llm)"]),
        *([] if settings.encoder else ["KNN, DPR and MDR (they need --encoder)"]),
    ]
    return Section(
        "Methods",
        f"Means with 95 % bootstrap intervals; ranks by {', '.join(ranking_metrics)} over the data sets "
        "(paper: Table 1). Each method gives 30 passages or paths to read; every passage of a path counts."
        + (f" Left out: {'; '.join(omissions)}." if omissions else ""),
        command_line(
            "run",
            experiments,
            [word for recipe in table_1_recipes(settings) for word in ("--recipe", recipe)],
        ),
        runs_table(runs, metrics, ranked_by=ranking_metrics),
    )
