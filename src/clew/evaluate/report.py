"""Tables of runs: means with intervals, paired differences, ranks; and how a run's questions failed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clew.core.errors import UsageError, unknown_name_error
from clew.evaluate.examples import Result
from clew.evaluate.metrics import Metric, parse_metric
from clew.evaluate.statistics import Difference, Estimate, bootstrap_interval, mean_ranks, paired_difference

TableFormat = Literal["markdown", "latex", "csv", "json"]
#: Methods that are named after what their encoder was trained for.
TRAINED_METHODS = ("dpr", "mdr")
#: How a failed question failed, worst first.
Failure = Literal["error", "not retrieved", "chain wrong", "abstained", "alias", "misread"]
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

    @property
    def method(self) -> str:
        """The recipe, and whether it lacks the encoder that it is about: MDR with another one is no MDR."""
        name = self.recipe.partition("(")[0]
        if name in TRAINED_METHODS and self.facts.get("objective") != name:
            return f"{self.recipe} (untrained)"
        return self.recipe

    def values(self, measured: Metric) -> dict[str, float]:
        """Return the measure of each question that has one."""
        found = ((name, measured.measure(result)) for name, result in self.results.items())
        return {name: float(value) for name, value in found if value is not None}


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of the table, and its difference to the baseline over the questions that both answered."""

    estimate: Estimate
    difference: Difference | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are runs; ``cells[run][metric]``. ``ranks`` holds each recipe's mean rank over data set x metric."""

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
    """Return the table of several runs; ranks are by the metrics ``ranked_by`` (all, if None).

    Raises UsageError for a baseline or metric that is not there.
    """
    measured = [parse_metric(name) for name in metrics]
    recipes = {run.recipe for run in runs}
    if baseline and baseline not in recipes:
        raise unknown_name_error("baseline", baseline, recipes)
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
        against = paired_difference([values[name] for name in both], [others[name] for name in both], seed)
    return Cell(bootstrap_interval([values[name] for name in sorted(values)], seed), against)


def format_table(made: Table, form: TableFormat) -> str:
    """Return the table as Markdown, LaTeX (booktabs), CSV or JSON, with what was compared (:func:`compared_on`)."""
    if form == "json":
        return json.dumps(_shape(made), indent=2, ensure_ascii=False)
    header, rows = table_rows(made, "{:.6g}" if form == "csv" else "")
    said = describe_conditions(made)
    if form == "csv":
        stream = io.StringIO()
        told = [said[run.dataset] for run in made.runs]
        csv.writer(stream, lineterminator="\n").writerows(
            [[*header, "compared on"], *([*row, one] for row, one in zip(rows, told, strict=True))]
        )
        return stream.getvalue()
    if form == "latex":
        lines = [" & ".join(map(_escaped, row)) + r" \\" for row in [header, *rows]]
        columns = "ll" + "r" * (len(header) - 2)
        inner = "\n".join([lines[0], r"\midrule", *lines[1:]])
        notes = "".join(f"% {dataset}: {one}\n" for dataset, one in said.items())
        return f"{notes}\\begin{{tabular}}{{{columns}}}\n\\toprule\n{inner}\n\\bottomrule\n\\end{{tabular}}\n"
    notes = "".join(f"- {dataset}: {one}\n" for dataset, one in said.items())
    return f"{markdown_table(header, rows)}\n{notes}"


def table_rows(made: Table, number: str = "") -> tuple[list[str], list[list[str]]]:
    """Return the table's header and rows as text; figures with intervals, or by the format ``number`` alone."""
    header = ["data", "recipe", "questions", "errors", *(one.name for one in made.metrics)]
    header += ["rank"] if made.ranks else []
    rows = [
        [
            run.dataset,
            run.method,
            str(len(run.results)),
            str(len(run.errors)),
            *(_figure(cells[one.name], number) for one in made.metrics),
            *([f"{made.ranks[run.recipe]:.2f}" if run.recipe in made.ranks else ""] if made.ranks else []),
        ]
        for run, cells in zip(made.runs, made.cells, strict=True)
    ]
    return header, rows


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]]) + "\n"


def describe_conditions(made: Table) -> dict[str, str]:
    """Return for each data set what its runs share, in words: data, base, models, versions."""
    return {run.dataset: "; ".join(_said(run.facts)) for run in made.runs}


def _said(facts: Mapping[str, Any]) -> Iterator[str]:
    for key, words in _FACTS.items():
        if facts.get(key) is not None and facts[key] != "":
            yield words.format(facts[key])


#: How the facts of a run are said below a table.
_FACTS = {
    "data": "{}",
    "data_digest": "sha256 {:.12}",
    "questions": "{} questions",
    "seed": "seed {}",
    "triples": "{} triples",
    "passages": "a {} a passage",
    "sentences": "{} sentences a question",
    "base_digest": "base {:.12}",
    "encoder": "encoder {}",
    "llm": "model {}",
    "clew": "clew {}",
    "python": "Python {}",
}


def _figure(cell: Cell, number: str) -> str:
    one = cell.estimate
    if not one.count:
        return ""
    if number:
        return number.format(one.mean)
    said = f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"
    if cell.difference is not None:
        said += f" ({cell.difference.mean:+.3f}, p {cell.difference.p:.3f})"
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
    one, against = cell.estimate, cell.difference
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


def classify_failures(run: Run) -> dict[str, Failure]:
    """Return how each question failed that has an answer and was not answered exactly.

    ``not retrieved``: of the gold evidence nothing was among what the reader was given. ``chain wrong``: some
    of it was, and the hop from there to the rest went elsewhere. ``alias``: the answer holds the gold one, or
    nearly is it, so that it may be right. ``misread``: all evidence was there. Of answers that are known by id alone
    (STaRK) the first one of the list is the answer.
    """
    exact, first, covered = parse_metric("EM"), parse_metric("Hit@1"), parse_metric("SF-coverage")
    kinds: dict[str, Failure] = dict.fromkeys(run.errors, "error")
    for name, result in run.results.items():
        by_id = result.example.answer_type == "entities" and exact.measure(result) is None
        if (first if by_id else exact).measure(result) in {1.0, None}:
            continue
        held = covered.measure(result)
        if is_near_match(result):
            kinds[name] = "alias"
        elif held is not None and held < 1:
            kinds[name] = "chain wrong" if held else "not retrieved"
        else:
            kinds[name] = "abstained" if result.abstained else "misread"
    return kinds


def is_near_match(result: Result) -> bool:
    """Return whether an answer holds the gold one, or nearly is it, so that it may be right."""
    return (
        parse_metric("accuracy").measure(result) == 1 or (parse_metric("F1").measure(result) or 0) >= ALIAS_F1
    )


def compare_runs(one: Run, other: Run, by: str) -> list[tuple[str, float, float]]:
    """Return the questions of which the measures differ, with both, the largest difference first.

    Raises UsageError for runs over different data sets.
    """
    if one.dataset != other.dataset:
        raise UsageError(
            f"runs over different data: '{one.dataset}' and '{other.dataset}'", "Name two of one"
        )
    measured = parse_metric(by)
    left, right = one.values(measured), other.values(measured)
    both = [(name, left[name], right[name]) for name in left if name in right and left[name] != right[name]]
    return sorted(both, key=lambda row: (-abs(row[1] - row[2]), row[0]))
