"""Ranked answers: as they are printed, written to files, and why something is none."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from clew.cli.output import console
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.types import Answer, Checked, Exclusion, RankedAnswer

#: Forms of a file of ranked answers, by the ending of its name.
FORMS = (".csv", ".json")
_LINE = 100


def print_ranked(ranked: Sequence[RankedAnswer], most: int) -> None:
    """Print the first ``most`` answers of a ranked list: what each meets, by which triples, and what it misses."""
    out = console()
    firm = sum(one.firm for one in ranked)
    out.print(Text.assemble(("Ranked", "bold"), (f"  {firm} meet all constraints that were kept", "dim")))
    for number, one in enumerate(ranked[:most], 1):
        mark = ("", "") if one.firm else ("  only fills the list up", "yellow")
        out.print(
            Text.assemble(
                f"{number:>3}. ", (one.name, "bold"), (f"  {one.hit.node.id}  {one.by}", "dim"), mark
            )
        )
        for check in one.checks:
            out.print(Padding(_check(check), (0, 0, 0, 5)))
    if len(ranked) > most:
        out.print(
            Text(f"     and {len(ranked) - most} more; see them with --k, or --out FILE.csv", style="dim")
        )


def print_given_up(answer: Answer) -> None:
    """Print the constraints of the question that an answer does not rest on, and why."""
    out, dropped, gone = console(), dict[str, str](), dict[str, None]()
    for step in answer.trail:
        dropped |= step.detail.get("dropped", {}) if step.name == "prepare" else {}
        gone |= dict.fromkeys(step.detail.get("given up", ()))
    unknown = [check.text for check in answer.ranked[0].checks if check.met is None]
    for text in unknown:
        if text in dropped:
            out.print(Text.assemble(("Not looked up: ", "yellow"), text, (f"  {dropped[text]}", "dim")))
    for text in gone:
        out.print(
            Text.assemble(("Given up: ", "yellow"), text, ("  nothing meets it with the others", "dim"))
        )


def _check(check: Checked) -> Text:
    if check.met is None:
        return Text.assemble(("? ", "dim"), (check.text, "dim"), ("  ranks, does not filter", "dim"))
    if check.met == 0:
        return Text.assemble(("✗ ", "red"), check.text)
    shown = "; ".join(" ".join(hit.node.text.split()) for hit in check.hits[:2])
    sure = f" ({check.met:.2f})" if check.met < 1 else ""
    return Text.assemble(("✓ ", "green"), check.text, sure, (f"  {shown[:_LINE]}" if shown else "", "dim"))


def print_exclusions(excluded: Sequence[Exclusion]) -> None:
    """Print why things are no answers."""
    out = console()
    for one in excluded:
        out.print(Text.assemble(("Why not ", "bold"), (f"{one.name}?", "bold"), (f"  {one.id}", "dim")))
        if one.answers:
            out.print(Padding(Text("It is an answer: it meets all constraints."), (0, 0, 0, 2)))
        elif one.restricted:
            out.print(Padding(Text(f"Whatever the constraints: {one.restricted}."), (0, 0, 0, 2)))
        else:
            how = (
                "Each of these drops it, and without any one of them it would be an answer:"
                if one.alone and len(one.constraints) > 1
                else "This drops it:"
                if len(one.constraints) == 1
                else "All of these would have to go:"
            )
            out.print(Padding(Text(how), (0, 0, 0, 2)))
            for text in one.constraints:
                out.print(Padding(Text(text, style="bold"), (0, 0, 0, 4)))
        for check in one.checks:
            out.print(Padding(_check(check), (0, 0, 0, 5)))


def check_form(path: Path) -> None:
    """Raise UsageError for a file that ranked answers cannot be written to."""
    if path.suffix.lower() not in FORMS:
        raise UsageError(f"'{path.name}' is neither .csv nor .json", "Such as --out answers.csv")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"no folder {path.absolute().parent}")


def write_ranked(path: Path, answer: Answer) -> None:
    """Write a ranked list: as CSV a line for each answer and a column for each constraint, or the answer as JSON."""
    from clew.shapes import answer_shape

    if path.suffix.lower() == ".json":
        path.write_text(
            json.dumps(answer_shape(answer), ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
        )
        return
    constraints = list(dict.fromkeys(check.text for one in answer.ranked for check in one.checks))
    names = ["rank", "name", "id", "score", "by", "meets_all", *constraints, "missed", "evidence", "text"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        for rank, one in enumerate(answer.ranked, 1):
            met = {check.text: check.met for check in one.checks}
            evidence = dict.fromkeys(hit.node.text for check in one.checks for hit in check.hits)
            row: list[Any] = [rank, one.name, one.hit.node.id, round(one.hit.score, 6), one.by, one.firm]
            row += ["" if met.get(text) is None else met[text] for text in constraints]
            writer.writerow([*row, "; ".join(one.missed), "; ".join(evidence), one.hit.node.text])
