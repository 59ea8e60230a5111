"""``clew graph add``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.group import EXIT_FAILED
from clew.cli.options import Json, Kb

if TYPE_CHECKING:
    from clew.ingest import GraphReport


def add(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files that together hold one graph.", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What it is called.", show_default="the file's name")
    ] = None,
    nodes: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A table of nodes. Repeat for several.", show_default=False),
    ] = None,
    edges: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A table of edges. Repeat for several.", show_default=False),
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORM",
            help="csv, tsv, jsonl, parquet, ntriples, turtle, rdfxml or stark.",
            show_default="by the file's name",
        ),
    ] = "",
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="What the columns of a table are: head,relation,tail for edges; id,type,name,aliases,text for "
            "nodes; others are properties.",
            show_default="by the first row, else head,relation,tail",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first row names the columns.", show_default="look"
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            metavar="LANGUAGES",
            help="Languages of names and texts in RDF, the preferred first (de,en); * for any.",
        ),
    ] = "en",
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="TYPES",
            help="Types of the nodes that may answer a question: paper,author.",
            show_default="as STaRK declares them, else all",
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out rows that make no sense; they are counted and named."),
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Add a knowledge graph: triples, tables of nodes and edges, JSON lines, Parquet, RDF or STaRK's.

    A table with three columns holds head, relation, tail. Tables with a header may have types, names, aliases, texts
    and properties: columns are known by their names (id, type, name, text; head, relation, tail), also as Neo4j
    exports them (:ID, :LABEL, :START_ID, :END_ID, :TYPE, name:string). JSON lines are triples, nodes and edges, or
    triples extracted from passages. Files may be compressed (.gz, .bz2, .xz). A folder or zip archive holds one of
    STaRK's processed knowledge bases, as they are published; nothing in its pickles is run.

    A row that makes no sense is named with its line, and nothing is added; --skip-bad leaves such rows out. A file
    that did not change is not read again; a changed one replaces the graph of that name.

      clew graph add films.tsv

      clew graph add --nodes people.csv --edges knows.csv --name people

      clew graph add export.nt.gz --language de,en

      clew graph add prime/processed.zip --name prime

      clew graph schema films       its types and relations, with examples
    """
    import clew
    from clew.cli.output import print_note, print_json
    from clew.cli.progress import progress_display
    from clew.errors import UnreadableFile
    from clew.triples import Options

    options = Options(
        form,
        tuple(columns.split(",")) if columns else (),
        header,
        "",
        tuple(language.lower().split(",")),
        tuple(one.strip() for one in answers.split(",") if one.strip()) if answers else (),
    )
    with clew.open(kb, create=True) as base, progress_display(quiet=as_json) as progress:
        try:
            report = base.add_graph(
                files or (),
                name=name,
                nodes=nodes or (),
                edges=edges or (),
                options=options,
                skip_bad=skip_bad,
                progress=progress,
            )
        except UnreadableFile as error:
            print_note(f"clew: {error.problem}")
            if error.hint:
                print_note(f"      {error.hint}")
            raise typer.Exit(EXIT_FAILED) from None
    for row in report.bad_rows:
        print_note(f"clew: skipped: {row}")
    if as_json:
        print_json(_report_shape(report))
    else:
        _print_report(report)


def _print_report(report: GraphReport) -> None:
    from clew.cli.output import format_count, format_duration

    graph = report.graph
    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    print(f"{report.outcome} {graph.name}: {sizes} in {format_duration(report.seconds)}")
    if report.bad:
        print(f"  {format_count(report.bad, 'bad row')} skipped")
    if report.undescribed:
        print(f"  {format_count(report.undescribed, 'node')} named by edges alone")
    for reason, number in sorted(report.left_out.items()):
        print(f"  left out: {number:,} {reason}")


def _report_shape(report: GraphReport) -> dict[str, Any]:
    from clew.shapes import graph_to_dict

    return graph_to_dict(report.graph) | {
        "outcome": report.outcome,
        "skipped": report.bad,
        "bad_rows": list(report.bad_rows),
        "left_out": report.left_out,
        "named_by_edges_alone": report.undescribed,
        "seconds": round(report.seconds, 3),
    }
