"""``clew about``: everything said of a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.options import Documents, Graphs, Json, Kb, Where, limit_option, print_rest
from clew.app.cli.output import format_count, print_json, print_line
from clew.core.text import shorten

if TYPE_CHECKING:
    from clew.knowledge_base.name_profile import NameCount, NameProfile, Statement

#: Characters of a printed sentence; --json prints it as a whole.
_WIDTH = 400


def about(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A person, company, place or term.")],
    documents: Documents = None,
    where: Where = "",
    graph: Graphs = None,
    limit: Annotated[int, limit_option("sentences")] = 50,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Print everything that your documents and graphs say of a name.

    Each sentence and table row with the name is quoted with its document and page, in the order of the dates in them
    (or in the heading above); those without a date come last. Then: other names, what it occurs with and in how many
    passages, and its triples. A name that is written nearly so is offered, never taken.

      clew about "Hesper Marrable"

      clew about Hirer -d contract.pdf       in this contract, with what the short name stands for

      clew about "net debt" --json           a term; every sentence
    """
    with clew.open(kb) as base:
        profile = base.about(name, documents=documents, where=where, graphs=graph)
    if as_json:
        print_json(profile.to_dict())
    elif not profile:
        print_line(f"Nothing here is called '{name}'.")
        if profile.suggestions:
            print_line(f"Did you mean: {_counts(profile.suggestions)}?")
    else:
        _print_profile(profile, limit)


def _print_profile(profile: NameProfile, limit: int) -> None:
    shown = profile.statements[: limit or None]
    documents = len({statement.node.document for statement in profile.statements})
    print_line(
        f"{profile.name}: {format_count(len(profile.statements), 'statement')} in "
        f"{format_count(documents, 'document')}"
    )
    sources: dict[str, list[str]] = {}
    for alias in profile.aliases:
        sources.setdefault(alias.name, []).append(alias.source)
    for other, places in sources.items():
        print_line(f"also called {other} ({', '.join(dict.fromkeys(places))})")
    if profile.longer:
        print_line(f"longer names, perhaps of others: {_counts(profile.longer)}")
    heading = ""
    for statement in shown:
        period = _period(statement)
        if period != heading:
            heading = period
            print_line("", heading)
        print_line(f"  “{_cut(statement)}”")
        print_line(f"    {statement.place}")
    print_rest(len(profile.statements), limit)
    if profile.companions:
        print_line("", f"occurs with {_counts(profile.companions)}")
    for entry in profile.entries:
        print_line("", f"graph {entry.graph}: {entry.entity.name}")
        for triples in entry.triples:
            ends = ", ".join(end.name for end in triples.ends)
            more = (
                f", and {triples.total - len(triples.ends):,} more"
                if triples.total > len(triples.ends)
                else ""
            )
            mark = "  (of which it is the object)" if triples.inverse else ""
            print_line(f"  {triples.relation}: {ends}{more}{mark}")


def _period(statement: Statement) -> str:
    if statement.date is None:
        return "without a date"
    return statement.date_text + (" (heading)" if statement.date_from == "heading" else "")


def _cut(statement: Statement) -> str:
    """Return a sentence in one line, a long one around the name."""
    text = " ".join(statement.text.split())
    if len(text) <= _WIDTH:
        return text
    place = max(text.find(statement.form), 0)
    start = max(0, place - _WIDTH // 2)
    return ("…" if start else "") + shorten(text[start:], _WIDTH)


def _counts(names: Sequence[NameCount]) -> str:
    return ", ".join(f"{item.name} ({item.passages:,})" if item.passages else item.name for item in names)
