"""Tables of runs: means with intervals, paired differences, ranks; and how a run's questions failed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clew.errors import UsageError, unknown
from clew.evaluate.metrics import Metric, Result, metric
from clew.evaluate.statistics import Difference, Estimate, difference, interval, mean_ranks

Format = Literal["markdown", "latex", "csv", "json"]
#: How a failed question failed, worst first.
Failure = Literal["error", "not retrieved", "abstained", "alias", "misread"]
#: Accuracy and F1 from which on an answer that is no exact match is taken for an alias of the gold answer.
ALIAS_F1 = 0.6


@dataclass(frozen=True, slots=True)
class Run:
    """One method on one data set: results by question, errors by question, and what was run."""

    dataset: str
    recipe: str
    results: Mapping[str, Result]
    errors: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def values(self, measured: Metric) -> dict[str, float]:
        """Return the measure of each question that has one."""
        found = ((name, measured.measure(result)) for name, result in self.results.items())
        return {name: float(value) for name, value in found if value is not None}


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of the table, and its difference to the baseline over the questions that both answered."""

    estimate: Estimate
    against: Difference | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are runs; ``cells[run][metric]``. ``ranks`` holds each recipe's mean rank over data set x metric."""

    runs: Sequence[Run]
    metrics: Sequence[Metric]
    cells: Sequence[Mapping[str, Cell]]
    ranks: Mapping[str, float]
    baseline: str = ""


def table(
    runs: Sequence[Run],
    metrics: Iterable[str],
    baseline: str = "",
    seed: int = 0,
    ranked_by: Sequence[str] | None = None,
) -> Table:
    """Return the table of several runs; ranks are by the metrics ``ranked_by`` (all, if None).

    Raises UsageError for a baseline or metric that is not there.
    """
    measured = [metric(name) for name in metrics]
    recipes = {run.recipe for run in runs}
    if baseline and baseline not in recipes:
        raise unknown("baseline", baseline, recipes)
    bases = {run.dataset: run for run in runs if run.recipe == baseline}
    rows = [{one.name: _cell(run, one, bases.get(run.dataset), seed) for one in measured} for run in runs]
    ranked: list[dict[str, float]] = []
    better: list[int] = []
    for dataset in dict.fromkeys(run.dataset for run in runs):
        for one in measured:
            if ranked_by is not None and one.name not in ranked_by:
                continue
            held = {
                run.recipe: row[one.name].estimate.mean
                for run, row in zip(runs, rows, strict=True)
                if run.dataset == dataset and row[one.name].estimate.count
            }
            if held:
                ranked.append(held)
                better.append(one.better)
    return Table(runs, measured, rows, mean_ranks(ranked, better), baseline)


def _cell(run: Run, measured: Metric, base: Run | None, seed: int) -> Cell:
    values = run.values(measured)
    against = None
    if base is not None and base is not run:
        others = base.values(measured)
        both = sorted(values.keys() & others.keys())
        against = difference([values[name] for name in both], [others[name] for name in both], seed)
    return Cell(interval([values[name] for name in sorted(values)], seed), against)


def written(made: Table, form: Format) -> str:
    """Return the table as Markdown, LaTeX (booktabs), CSV or JSON."""
    if form == "json":
        return json.dumps(_shape(made), indent=2, ensure_ascii=False)
    header = ["data", "recipe", "questions", "errors", *(one.name for one in made.metrics), "rank"]
    rows = [
        [
            run.dataset,
            run.recipe,
            str(len(run.results)),
            str(len(run.errors)),
            *(_figure(cells[one.name], form) for one in made.metrics),
            f"{made.ranks[run.recipe]:.2f}" if run.recipe in made.ranks else "",
        ]
        for run, cells in zip(made.runs, made.cells, strict=True)
    ]
    if form == "csv":
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerows([header, *rows])
        return stream.getvalue()
    if form == "latex":
        lines = [" & ".join(map(_escaped, row)) + r" \\" for row in [header, *rows]]
        columns = "ll" + "r" * (len(header) - 2)
        inner = "\n".join([lines[0], r"\midrule", *lines[1:]])
        return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{inner}\n\\bottomrule\n\\end{{tabular}}\n"
    return markdown(header, rows)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]]) + "\n"


def _figure(cell: Cell, form: Format) -> str:
    one = cell.estimate
    if not one.count:
        return ""
    if form == "csv":
        return f"{one.mean:.6g}"
    said = f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"
    if cell.against is not None:
        said += f" ({cell.against.mean:+.3f}, p {cell.against.p:.3f})"
    return said


def _escaped(text: str) -> str:
    for character in "\\&%$#_{}":
        text = text.replace(character, "\\" + character if character != "\\" else r"\textbackslash ")
    return text


def _shape(made: Table) -> dict[str, Any]:
    return {
        "baseline": made.baseline or None,
        "ranks": dict(made.ranks),
        "runs": [
            {
                "dataset": run.dataset,
                "recipe": run.recipe,
                "questions": len(run.results),
                "errors": len(run.errors),
                "facts": dict(run.facts),
                "metrics": {name: _cell_shape(cell) for name, cell in cells.items()},
            }
            for run, cells in zip(made.runs, made.cells, strict=True)
        ],
    }


def _cell_shape(cell: Cell) -> dict[str, Any]:
    one, against = cell.estimate, cell.against
    if not one.count:
        return {"questions": 0}
    shape: dict[str, Any] = {"mean": one.mean, "low": one.low, "high": one.high, "questions": one.count}
    if against is not None and against.count:
        shape["against"] = {
            "mean": against.mean,
            "low": against.low,
            "high": against.high,
            "p": against.p,
            "questions": against.count,
        }
    return shape


def failures(run: Run) -> dict[str, Failure]:
    """Return how each question failed that has an answer and was not answered exactly.

    ``not retrieved``: some gold evidence was not among what the reader was given. ``alias``: the answer holds
    the gold one, or nearly is it, so that it may be right. ``misread``: all evidence was there.
    """
    exact, near, holds, found = metric("EM"), metric("F1"), metric("accuracy"), metric("SF-EM")
    kinds: dict[str, Failure] = dict.fromkeys(run.errors, "error")
    for name, result in run.results.items():
        if exact.measure(result) in {1.0, None}:
            continue
        if holds.measure(result) == 1 or (near.measure(result) or 0) >= ALIAS_F1:
            kinds[name] = "alias"
        elif found.measure(result) == 0:
            kinds[name] = "not retrieved"
        else:
            kinds[name] = "abstained" if result.abstained else "misread"
    return kinds


def compared(one: Run, other: Run, by: str) -> list[tuple[str, float, float]]:
    """Return the questions of which the measures differ, with both, the largest difference first.

    Raises UsageError for runs over different data sets.
    """
    if one.dataset != other.dataset:
        raise UsageError(
            f"runs over different data: '{one.dataset}' and '{other.dataset}'", "Name two of one"
        )
    measured = metric(by)
    left, right = one.values(measured), other.values(measured)
    both = [(name, left[name], right[name]) for name in left if name in right and left[name] != right[name]]
    return sorted(both, key=lambda row: (-abs(row[1] - row[2]), row[0]))
