"""Ranked answers: as they are printed, written to files, and why something is none."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from clew.app.cli.output import make_console
from clew.core.errors import UsageError
from clew.core.types import ConstraintSummary

if TYPE_CHECKING:
    from clew.core.types import Answer, ConstraintCheck, Exclusion

#: Forms of a file of ranked answers, by the ending of its name.
OUTPUT_FORMATS = (".csv", ".json")
_LINE = 100
#: What a formula of a spreadsheet begins with.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def print_ranked(answer: Answer, most: int) -> None:
    """Print the first ``most`` answers of a ranked list: what each meets, by which triples, and what it misses."""
    ranked = answer.ranking
    out = make_console()
    total = answer.constraints.matching if answer.constraints else 0
    said = f"{total:,} meet all constraints that were kept" if total else "nothing restricts what may answer"
    listed = sum(one.meets_all for one in ranked)
    if listed < total:
        said += f"; the first {listed} are listed"
    out.print(Text.assemble(("Ranked", "bold"), (f"  {said}", "dim")))
    for number, one in enumerate(ranked[:most], 1):
        mark = ("", "") if one.meets_all else ("  only fills the list up", "yellow")
        out.print(
            Text.assemble(
                f"{number:>3}. ", (one.name, "bold"), (f"  {one.hit.node.id}  {one.ranked_by}", "dim"), mark
            )
        )
        for check in one.checks:
            out.print(Padding(_check(check), (0, 0, 0, 5)))
    if len(ranked) > most:
        out.print(
            Text(f"     and {len(ranked) - most} more; see them with --k, or --out FILE.csv", style="dim")
        )


def print_relaxed_constraints(answer: Answer) -> None:
    """Print the constraints of the question that an answer does not rest on, and why."""
    out = make_console()
    constraints = answer.constraints or ConstraintSummary("")
    for text, why in constraints.dropped.items():
        out.print(Text.assemble(("Not looked up: ", "yellow"), text, (f"  {why}", "dim")))
    for text in constraints.relaxed:
        out.print(
            Text.assemble(("Given up: ", "yellow"), text, ("  nothing meets it with the others", "dim"))
        )


def _check(check: ConstraintCheck) -> Text:
    if check.satisfaction is None:
        said = "  not known; it ranks, and drops nothing"
        if check.hits:
            said = f"  not known, but mentioned: {' '.join(check.hits[0].node.text.split())}"[:_LINE]
        return Text.assemble(("? ", "dim"), (check.text, "dim"), (said, "dim"))
    if check.satisfaction == 0:
        return Text.assemble(("✗ ", "red"), check.text)
    shown = "; ".join(" ".join(hit.node.text.split()) for hit in check.hits[:2])
    sure = f" ({check.satisfaction:.2f})" if check.satisfaction < 1 else ""
    return Text.assemble(("✓ ", "green"), check.text, sure, (f"  {shown[:_LINE]}" if shown else "", "dim"))


def print_exclusions(excluded: Sequence[Exclusion]) -> None:
    """Print why things are no answers."""
    out = make_console()
    for one in excluded:
        out.print(Text.assemble(("Why not ", "bold"), (f"{one.name}?", "bold"), (f"  {one.id}", "dim")))
        if one.is_answer:
            open_ = any(check.satisfaction is None for check in one.checks)
            said = "all that the graph can hold" if open_ else "all constraints"
            out.print(Padding(Text(f"It is an answer: it meets {said}."), (0, 0, 0, 2)))
        elif one.restriction:
            out.print(Padding(Text(f"Whatever the constraints: {one.restriction}."), (0, 0, 0, 2)))
        else:
            how = (
                "Each of these drops it, and without any one of them it would be an answer:"
                if one.each_alone and len(one.constraints) > 1
                else "This drops it:"
                if len(one.constraints) == 1
                else "All of these would have to go:"
            )
            out.print(Padding(Text(how), (0, 0, 0, 2)))
            for text in one.constraints:
                out.print(Padding(Text(text, style="bold"), (0, 0, 0, 4)))
        for check in one.checks:
            out.print(Padding(_check(check), (0, 0, 0, 5)))


def check_output_file(path: Path) -> None:
    """Raise UsageError for a file that ranked answers cannot be written to."""
    if path.suffix.lower() not in OUTPUT_FORMATS:
        raise UsageError(f"'{path.name}' is neither .csv nor .json", "Such as --out answers.csv")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"no folder {path.absolute().parent}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder")


def write_answer_file(path: Path, answer: Answer) -> None:
    """Write a ranked list: as CSV a line for each answer and a column for each constraint, or the answer as JSON."""
    if path.suffix.lower() == ".json":
        path.write_text(json.dumps(answer.to_dict(), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        return
    constraints = list(dict.fromkeys(check.text for one in answer.ranking for check in one.checks))
    names = ["rank", "name", "id", "score", "by", "meets_all", *constraints, "missed", "evidence", "text"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([_cell(name) for name in names])
        for rank, one in enumerate(answer.ranking, 1):
            met = {check.text: check.satisfaction for check in one.checks}
            evidence = dict.fromkeys(hit.node.text for check in one.checks for hit in check.hits)
            row: list[Any] = [
                rank,
                one.name,
                one.hit.node.id,
                round(one.hit.score, 6),
                one.ranked_by,
                one.meets_all,
            ]
            row += ["" if met.get(text) is None else met[text] for text in constraints]
            row += ["; ".join(one.missed_constraints), "; ".join(evidence), one.hit.node.text]
            writer.writerow([_cell(value) for value in row])


def _cell(value: Any) -> Any:
    """Return a value as a cell that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in _FORMULA else value
