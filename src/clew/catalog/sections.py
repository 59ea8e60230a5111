"""The analyses of :mod:`clew.catalog.analysis` as sections of a page: tables and figures in the run's folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.catalog.analysis import (
    ANSWER_METRICS,
    BUDGET,
    EVIDENCE_METRICS,
    LATENCY_METRIC,
    WALK,
    Experiment,
    measure_branching,
    measure_density,
    measure_graphs,
    graph_statistics,
)
from clew.evaluate import drawing
from clew.evaluate.page import Section, points_table
from clew.evaluate.reporting import build_table, format_table

if TYPE_CHECKING:
    from clew.catalog.runs import RunFolder
    from clew.evaluate.reporting import Run

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
    names = (*EVIDENCE_METRICS, *(ANSWER_METRICS if work.settings.llm else ()), LATENCY_METRIC, "questions", "errors")
    return {name: name for name in names}


def _named(graphs: Sequence[str]) -> list[str]:
    return [word for name in graphs for word in ("--graph", name)]


def _flat(series: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    return [{"graph": name, **point} for name, held in series.items() for point in held]


def write_json(folder: RunFolder, name: str, shape: Mapping[str, Any]) -> None:
    """Write what an analysis found as ``name.json`` into its folder, with the facts of the run."""
    facts = {key: value for key, value in folder.facts.items() if key != "recipes"}
    text = json.dumps(facts | dict(shape), indent=2, ensure_ascii=False)
    (folder.path / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _title(work: Experiment) -> str:
    count = len(work.questions.examples)
    return f"{work.questions.title}, {count} question{'s' * (count != 1)}"


def run_command(work: Experiment, recipes: Sequence[str]) -> str:
    """Return the command line that runs recipes over the questions of an analysis."""
    return command_line("run", [work], [word for recipe in recipes for word in ("--recipe", recipe)])


def runs_table(
    runs: Sequence[Run],
    metrics: Sequence[str],
    baseline: str = "",
    ranked_by: Sequence[str] | None = None,
) -> str:
    """Return the Markdown table of some runs."""
    return format_table(build_table(runs, metrics, baseline, ranked_by=ranked_by), "markdown")


def command_line(name: str, works: Sequence[Experiment], more: Sequence[str] = ()) -> str:
    """Return the command line that makes an analysis of data sets that share all else."""
    data, bench = works[0].questions, works[0].settings
    words = [word for work in works for word in ("--data", work.questions.data)]
    words += ["--corpus", data.corpus]
    # A paper's page has the passages of the paper.
    words += [] if name.startswith("paper ") else ["--passages", bench.passages]
    words += ["--sentences", str(bench.sentences)]
    words += [word for one in data.pool for word in ("--pool", one)]
    words += [word for place in bench.graphs for word in ("--graph", place)]
    words += ["--gold-triples"] if data.triples else []
    return add_shared_options(name, words, works[0], more)


def add_shared_options(name: str, words: Sequence[str], work: Experiment, more: Sequence[str] = ()) -> str:
    """Return the command line ``clew eval NAME`` with options of its own, and those that every analysis has: which
    questions are drawn, the models, where results go."""
    data, bench = work.questions, work.settings
    words = ["clew", "eval", *name.split(), *words]
    words += [] if data.limit is None else ["--limit", str(data.limit)]
    words += ["--seed", str(data.seed)]
    words += ["--llm", bench.llm_name] if bench.llm else []
    # Said even where there is none: without it, the command would take the one that comes with clew.
    words += ["--encoder", bench.encoder_name if bench.encoder else "none"]
    return shlex.join([*words, *more, "--out", str(work.out)])
