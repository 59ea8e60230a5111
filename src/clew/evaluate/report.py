"""Tables of runs: means with intervals, paired differences and ranks; and the classes of a run's failures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clew.core.errors import UsageError, unknown_name_error
from clew.core.text import escape_formula
from clew.evaluate.examples import Result
from clew.evaluate.metrics import Metric, parse_metric
from clew.evaluate.statistics import Difference, Estimate, bootstrap_interval, mean_ranks, paired_difference

TableFormat = Literal["markdown", "latex", "csv", "json"]
#: Methods that are named after the training objective of their encoder.
TRAINED_METHODS = ("dpr", "mdr")
#: The classes of failed questions, worst first.
Failure = Literal["error", "not retrieved", "chain wrong", "abstained", "alias", "misread"]
#: From this F1 on, an answer that is no exact match is taken for an alias of the gold answer.
ALIAS_F1 = 0.6


@dataclass(frozen=True, slots=True)
class Run:
    """One recipe on one data set: results and errors by question id, and the facts of its ``run.json``."""

    dataset: str
    recipe: str
    results: Mapping[str, Result]
    errors: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def method(self) -> str:
        """The recipe, marked "(untrained)" if it is DPR or MDR with an encoder that was not trained for it."""
        name = self.recipe.partition("(")[0]
        if name in TRAINED_METHODS and self.facts.get("objective") != name:
            return f"{self.recipe} (untrained)"
        return self.recipe

    def values(self, metric: Metric) -> dict[str, float]:
        """Return the metric of each question for which it is defined, by question id."""
        values = ((name, metric.measure(result)) for name, result in self.results.items())
        return {name: float(value) for name, value in values if value is not None}


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of the table, and its difference to the baseline over the questions that both runs answered."""

    estimate: Estimate
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table with one row per run: ``cells[run][metric name]``. ``ranks`` has each recipe's mean rank over all pairs
    of data set and metric."""

    runs: Sequence[Run]
    metrics: Sequence[Metric]
    cells: Sequence[Mapping[str, Cell]]
    ranks: Mapping[str, float]
    baseline: str = ""


def build_table(
    runs: Sequence[Run],
    metrics: Iterable[str],
    baseline: str = "",
    seed: int = 0,
    ranked_by: Sequence[str] | None = None,
) -> Table:
    """Return the table of several runs. Ranks use the metrics ``ranked_by`` (all, if None).

    Raises UsageError for an unknown baseline or metric.
    """
    parsed_metrics = [parse_metric(name) for name in metrics]
    recipes = {run.recipe for run in runs}
    if baseline and baseline not in recipes:
        raise unknown_name_error("baseline", baseline, recipes)
    baseline_runs = {run.dataset: run for run in runs if run.recipe == baseline}
    rows = [
        {
            metric.name: _build_cell(run, metric, baseline_runs.get(run.dataset), seed)
            for metric in parsed_metrics
        }
        for run in runs
    ]
    cells_to_rank: list[dict[str, float]] = []
    better: list[int] = []
    for dataset in dict.fromkeys(run.dataset for run in runs):
        for metric in parsed_metrics:
            if ranked_by is not None and metric.name not in ranked_by:
                continue
            means = {
                run.recipe: row[metric.name].estimate.mean
                for run, row in zip(runs, rows, strict=True)
                if run.dataset == dataset and row[metric.name].estimate.count
            }
            if means:
                cells_to_rank.append(means)
                better.append(metric.better)
    return Table(runs, parsed_metrics, rows, mean_ranks(cells_to_rank, better), baseline)


def _build_cell(run: Run, metric: Metric, baseline: Run | None, seed: int) -> Cell:
    values = run.values(metric)
    difference = None
    if baseline is not None and baseline is not run:
        baseline_values = baseline.values(metric)
        common = sorted(values.keys() & baseline_values.keys())
        difference = paired_difference(
            [values[name] for name in common], [baseline_values[name] for name in common], seed
        )
    return Cell(bootstrap_interval([values[name] for name in sorted(values)], seed), difference)


def format_table(table: Table, form: TableFormat) -> str:
    """Return the table as Markdown, LaTeX (booktabs), CSV or JSON, with its conditions
    (:func:`describe_conditions`)."""
    if form == "json":
        return json.dumps(_table_to_dict(table), indent=2, ensure_ascii=False)
    header, rows = table_rows(table, "{:.6g}" if form == "csv" else "")
    conditions = describe_conditions(table)
    if form == "csv":
        stream = io.StringIO()
        row_conditions = [conditions[run.dataset] for run in table.runs]
        records = [[*header, "compared on"]]
        records += [[*row, condition] for row, condition in zip(rows, row_conditions, strict=True)]
        csv.writer(stream, lineterminator="\n").writerows(map(escape_formula, cells) for cells in records)
        return stream.getvalue()
    if form == "latex":
        lines = [" & ".join(map(_escape_latex, row)) + r" \\" for row in [header, *rows]]
        columns = "ll" + "r" * (len(header) - 2)
        inner = "\n".join([lines[0], r"\midrule", *lines[1:]])
        notes = "".join(f"% {dataset}: {condition}\n" for dataset, condition in conditions.items())
        return f"{notes}\\begin{{tabular}}{{{columns}}}\n\\toprule\n{inner}\n\\bottomrule\n\\end{{tabular}}\n"
    notes = "".join(f"- {dataset}: {condition}\n" for dataset, condition in conditions.items())
    return f"{markdown_table(header, rows)}\n{notes}"


def table_rows(table: Table, number: str = "") -> tuple[list[str], list[list[str]]]:
    """Return header and rows as text: figures with intervals, or only the means in the format ``number``."""
    header = ["data", "recipe", "questions", "errors", *(metric.name for metric in table.metrics)]
    header += ["rank"] if table.ranks else []
    rows = [
        [
            run.dataset,
            run.method,
            str(len(run.results)),
            str(len(run.errors)),
            *(_format_cell(cells[metric.name], number) for metric in table.metrics),
            *([f"{table.ranks[run.recipe]:.2f}" if run.recipe in table.ranks else ""] if table.ranks else []),
        ]
        for run, cells in zip(table.runs, table.cells, strict=True)
    ]
    return header, rows


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]]) + "\n"


def describe_conditions(table: Table) -> dict[str, str]:
    """Return the conditions that the runs of each data set share: data, base, models, versions."""
    return {run.dataset: "; ".join(_condition_texts(run.facts)) for run in table.runs}


def _condition_texts(facts: Mapping[str, Any]) -> Iterator[str]:
    for key, template in _CONDITION_TEMPLATES.items():
        if facts.get(key) is not None and facts[key] != "":
            yield template.format(facts[key])


#: The texts below a table for the facts of a run, by key of ``run.json``.
_CONDITION_TEMPLATES = {
    "data": "{}",
    "data_digest": "sha256 {:.12}",
    "questions": "{} questions",
    "seed": "seed {}",
    "triples": "{} triples",
    "passages": "a {} a passage",
    "sentences": "{} sentences a question",
    "documents": "{} documents a question",
    "articles": "whole articles, sha256 {:.12}",
    "beside": "vectors of {} beside",
    "base_digest": "base {:.12}",
    "encoder": "encoder {}",
    "llm": "model {}",
    "clew": "clew {}",
    "python": "Python {}",
}


def _format_cell(cell: Cell, number: str) -> str:
    estimate = cell.estimate
    if not estimate.count:
        return ""
    if number:
        return number.format(estimate.mean)
    text = f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"
    if cell.difference is not None:
        text += f" ({cell.difference.mean:+.3f}, p {cell.difference.p:.3f})"
    return text


def _escape_latex(text: str) -> str:
    for character in "\\&%$#_{}":
        text = text.replace(character, "\\" + character if character != "\\" else r"\textbackslash ")
    return text


def _table_to_dict(table: Table) -> dict[str, Any]:
    return {
        "baseline": table.baseline or None,
        "ranks": dict(table.ranks),
        "runs": [
            {
                "dataset": run.dataset,
                "recipe": run.recipe,
                "questions": len(run.results),
                "errors": len(run.errors),
                "facts": dict(run.facts),
                "metrics": {name: _cell_to_dict(cell) for name, cell in cells.items()},
            }
            for run, cells in zip(table.runs, table.cells, strict=True)
        ],
    }


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    estimate, difference = cell.estimate, cell.difference
    if not estimate.count:
        return {"questions": 0}
    shape: dict[str, Any] = {
        "mean": estimate.mean,
        "low": estimate.low,
        "high": estimate.high,
        "questions": estimate.count,
    }
    if difference is not None and difference.count:
        shape["against"] = {
            "mean": difference.mean,
            "low": difference.low,
            "high": difference.high,
            "p": difference.p,
            "questions": difference.count,
        }
    return shape


def classify_failures(run: Run) -> dict[str, Failure]:
    """Return the class of failure of each question that has a gold answer and was not answered exactly.

    ``not retrieved``: the reader was given none of the gold evidence. ``chain wrong``: it was given some of it, and a
    hop went elsewhere. ``misread``: it was given all of it. ``alias``: the answer contains the gold one or is close
    to it, so that it may be right. Where answers are known by id alone (STaRK), the first hit is taken as the answer.
    """
    exact_match, hit_at_1, coverage = parse_metric("EM"), parse_metric("Hit@1"), parse_metric("SF-coverage")
    kinds: dict[str, Failure] = dict.fromkeys(run.errors, "error")
    for name, result in run.results.items():
        known_by_id = result.example.answer_type == "entities" and exact_match.measure(result) is None
        if (hit_at_1 if known_by_id else exact_match).measure(result) in {1.0, None}:
            continue
        share = coverage.measure(result)
        if is_near_match(result):
            kinds[name] = "alias"
        elif share is not None and share < 1:
            kinds[name] = "chain wrong" if share else "not retrieved"
        else:
            kinds[name] = "abstained" if result.abstained else "misread"
    return kinds


def is_near_match(result: Result) -> bool:
    """Return whether an answer contains the gold one or has an F1 of at least :data:`ALIAS_F1`."""
    return (
        parse_metric("accuracy").measure(result) == 1 or (parse_metric("F1").measure(result) or 0) >= ALIAS_F1
    )


def compare_runs(first: Run, second: Run, metric_name: str) -> list[tuple[str, float, float]]:
    """Return (question id, first value, second value) where the metric differs, the largest difference first.

    Raises UsageError for runs over different data sets.
    """
    if first.dataset != second.dataset:
        raise UsageError(
            f"runs over different data: '{first.dataset}' and '{second.dataset}'",
            "Name two runs over the same data set",
        )
    metric = parse_metric(metric_name)
    left, right = first.values(metric), second.values(metric)
    differing = [
        (name, left[name], right[name]) for name in left if name in right and left[name] != right[name]
    ]
    return sorted(differing, key=lambda row: (-abs(row[1] - row[2]), row[0]))
