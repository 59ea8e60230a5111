"""``clew graph query``: SPARQL over a graph, with the results in tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.options import Json, Kb
from clew.app.cli.output import print_code, print_grid, print_json, print_line, print_note, show_progress
from clew.core.errors import UsageError
from clew.core.text import shorten

if TYPE_CHECKING:
    from clew.store.graphs.sparql_query import QueryResult
    from clew.store.sparql.mount_options import Term

#: Seconds after which the progress of building a store is shown.
_PATIENCE = 2.0
#: Characters of a cell; --json prints values as a whole.
_CELL = 80


def query(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="The graph's name.", show_default=False)],
    text: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="The query; @FILE reads it from a file, - from standard input.",
            show_default=False,
        ),
    ],
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="Print at most N solutions, or triples.")
    ] = 50,
    timeout: Annotated[
        float | None,
        typer.Option(min=0.001, metavar="SECONDS", help="Give up after this time.", show_default="no limit"),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Run a SPARQL query over a graph: SELECT, ASK, CONSTRUCT or DESCRIBE.

    Nodes are shown by their names and ids. Relations are r:NAME; values of properties are p:NAME as text, n:NAME as
    numbers and d:NAME as days. A node also has clew:name, clew:alias, clew:type, clew:id and clew:text. A space in a
    name is %20. These prefixes are declared already.

      clew graph query films 'SELECT ?film { ?film r:directed%20by ?x . ?x clew:name "Ada Pell" }'

      clew graph query films 'SELECT ?genre (COUNT(*) AS ?films) { ?film r:genre ?genre } GROUP BY ?genre'

    The first query over a graph builds a store beside it, which takes seconds to minutes for millions of edges. A
    mounted graph is queried where it is, in its own terms. Needs pyoxigraph, the extra rdf of clew.
    """
    written = _read_query(text)
    with clew.open(kb) as base:
        result = base.graphs.query(
            graph, written, limit=limit, timeout=timeout, progress=_late_progress(graph)
        )
    for warning in result.warnings:
        print_note(f"note: {warning}")
    if as_json:
        print_json(result.to_dict())
    elif result.answer is not None:
        print_line("yes" if result.answer else "no")
    elif result.triples is not None:
        print_code(result.to_ntriples().removesuffix("\n"))
    else:
        _print_table(result)
    if not as_json and result.more:
        print_note("... there are more; see --limit")


def _read_query(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the query in {text[1:]} cannot be read ({error})") from error


def _late_progress(graph: str) -> Callable[[int, int], None]:
    """Return a receiver of progress that shows it only where the work takes more than a few seconds."""
    started, show = time.monotonic(), show_progress(f"Preparing {graph} for SPARQL, once")
    shown = False

    def show_late(done: int, total: int) -> None:
        nonlocal shown
        shown = shown or time.monotonic() - started > _PATIENCE
        if shown:
            show(done, total)

    return show_late


def _print_table(result: QueryResult) -> None:
    cells = [
        [_format_cell(result, solution.get(name)) for name in result.variables]
        for solution in result.solutions
    ]
    print_grid(result.variables, cells, _CELL, "no results")


def _format_cell(result: QueryResult, term: Term | None) -> str:
    """Return a term for people: a node as its name and id, a relation as its name, a number without an exponent."""
    from clew.store.graphs.rdf_view import name_of

    if term is None:
        return ""
    value = term["value"]
    if term["type"] == "uri":
        node = result.nodes.get(value)
        if node is None:
            return shorten(name_of(value) or value, _CELL)
        external_id = node.id.partition(":")[2]
        return shorten(node.name if node.name == external_id else f"{node.name} ({node.id})", _CELL)
    if term["type"] == "literal" and term.get("datatype", "").endswith("#double"):
        value = str(float(value)).removesuffix(".0")
    return shorten(value, _CELL)
