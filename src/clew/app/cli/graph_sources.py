"""``clew graph add``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import clew
from clew.app.cli.command_group import EXIT_BUDGET, EXIT_FAILED, EXIT_INTERRUPTED
from clew.app.cli.models import announce_text_destination, configured_model, confirm_cost
from clew.app.cli.options import BudgetCalls, BudgetMoney, BudgetTokens, Documents, Json, Kb, Llm
from clew.app.cli.output import format_cost, format_count, format_duration, print_json, print_note
from clew.app.cli.progress import progress_display
from clew.core.errors import UnreadableFile

if TYPE_CHECKING:
    from clew.knowledge_base.extraction import ExtractionReport, Staleness
    from clew.knowledge_base.ingest.graphs import GraphReport


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
    from clew.parse.graphs.reader import GraphReadOptions

    options = GraphReadOptions(
        form,
        tuple(columns.split(",")) if columns else (),
        header,
        "",
        tuple(language.lower().split(",")),
        tuple(one.strip() for one in answers.split(",") if one.strip()) if answers else (),
    )
    with clew.open(kb, create=True) as base, progress_display(quiet=as_json) as progress:
        try:
            report = base.graphs.add(
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

    return report.graph.to_dict() | {
        "outcome": report.outcome,
        "skipped": report.bad,
        "bad_rows": list(report.bad_rows),
        "left_out": report.left_out,
        "named_by_edges_alone": report.undescribed,
        "seconds": round(report.seconds, 3),
    }


def mount(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it is called.", show_default=False)],
    place: Annotated[
        str,
        typer.Argument(
            metavar="URL|FOLDER",
            help="The endpoint's URL, or the folder of an Oxigraph store.",
            show_default=False,
        ),
    ],
    language: Annotated[
        str, typer.Option(metavar="LANGUAGES", help="Languages of names, the preferred first: de,en.")
    ] = "en",
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Wait this long for an answer.")] = 60.0,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", help="Wait this long between two questions.")
    ] = 0.0,
    type_property: Annotated[
        str | None,
        typer.Option(
            metavar="IRI",
            help="The property that gives a node's type.",
            show_default="rdf:type; P31 of a Wikibase",
        ),
    ] = None,
    lookup: Annotated[
        str,
        typer.Option(
            metavar="SEARCH",
            help="What finds names that are spelled differently: wikidata, virtuoso or qlever (the search of such an "
            "endpoint), scan (looks at every label: slow beyond some hundred thousand), labels (nothing: equal names "
            "alone), auto (tries them, scan for small stores).",
        ),
    ] = "auto",
    titles: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A table from titles to ids, asked first for names: two columns (or .gz), or WikiMapper's index.",
            show_default=False,
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Mount a SPARQL 1.1 endpoint or an RDF store as a graph, read-only: nothing is copied, it is asked when needed.

    What it says of itself (its types, its properties and their labels, its search) is asked now and kept; mount it
    again to ask again. Names are looked up as rdfs:label and skos:altLabel, in the languages given. Every question
    about the graph of an endpoint goes to that server. A store's folder is one that Oxigraph made (oxigraph load).

      clew graph mount films http://localhost:7878/query

      clew graph mount kg https://example.org/sparql --language de,en --interval 1

      clew graph mount wikidata https://query.wikidata.org/sparql --titles index_enwiki.db

      clew graph mount local path/to/store

      clew graph remove films       unmounts it
    """
    from clew.store.sparql.mount_options import MountOptions

    usual = MountOptions()
    options = MountOptions(
        tuple(language.lower().split(",")),
        timeout,
        interval,
        type_property or usual.type_property,
        lookup=lookup,
        titles=str(titles) if titles else "",
    )
    with clew.open(kb, create=True) as base:
        graph = base.graphs.mount(name, place, options)
        types, relations, service = graph.types(), graph.relations(), graph.lookup.service
    if as_json:
        shape = {"graph": name, "url": place, "types": dict(types), "relations": sorted(relations)}
        print_json(shape | {"lookup": service})
    else:
        found = f"{format_count(len(types), 'type')}, {format_count(len(relations), 'relation')}"
        print(f"mounted {name}: {found}; names by {service}")


#: Unreadable replies that are listed; --json lists all.
MAX_LISTED_REPLIES = 10


def extract(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What the graph is called.", show_default=False)
    ],
    llm: Llm = None,
    documents: Documents = None,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Extract a graph from the documents: a language model writes down the triples of every passage.

    What it finds in a passage is kept with the document, so a passage is asked about once: stopped, it continues, and
    after more documents were added, run it again. Every triple says which passage it is from. What a removed document
    said leaves the graph with it. What it will take is said first, and before a model is asked you are.

    A reply that cannot be read is named, and its passage asked about again next time (exit status 1).

      clew graph extract notes --llm ollama:llama3.1

      clew graph extract notes          brings it up to date, where no passage is new

      clew graph show notes "Maria Hale"
    """
    from clew.knowledge_base.extraction import GraphExtraction
    from clew.knowledge_base.ingest.report import Event

    # No cache: what is found is kept in the base, and a reply that made no sense must not come again from there.
    model = configured_model(
        llm, budget_calls=budget_calls, budget_tokens=budget_tokens, budget_money=budget_money, cache=False
    )
    with clew.open(kb) as base:
        work = GraphExtraction(base, name, model, documents)
        ahead = work.estimate()
        if ahead.passages and model is not None:
            what = f"{format_count(ahead.passages, 'passage')} to read by {ahead.maker}"
            confirm_cost([what], ahead.usage, yes, as_json)
            announce_text_destination("the passages", model)
        with progress_display(quiet=as_json) as show:
            try:
                report = work.run(lambda done, total: show(Event("extract", done, total)))
            except KeyboardInterrupt:
                print_note("clew: stopped; what was found so far is kept. To continue, run it again")
                raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        print_json(_shape(report))
    else:
        _print(report)
    if report.stopped:
        print_note(f"clew: {report.stopped}; {report.left:,} passages are left. To continue, run it again")
        raise typer.Exit(EXIT_BUDGET)
    if report.unreadable:
        raise typer.Exit(EXIT_FAILED)


def describe_staleness(name: str, behind: Staleness) -> str:
    """Return in what an extracted graph is behind its documents, and what brings it up to date; "" for nothing."""
    parts = [f"{format_count(behind.gone, 'document')} gone"] if behind.gone else []
    parts += [f"{format_count(behind.new, 'document')} new"] if behind.new else []
    return f"behind its documents ({', '.join(parts)}); run: clew graph extract {name}" if parts else ""


def _print(report: ExtractionReport) -> None:

    graph = report.graph
    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    print(f"{report.outcome} {graph.name}: {sizes} in {format_duration(report.seconds)}")
    print(
        f"  {format_count(report.passages, 'passage')} read"
        + (f" ({spent})" if (spent := format_cost(report.usage)) else "")
    )
    if report.incomplete:
        print(f"  {format_count(report.incomplete, 'triple')} left out: a part is empty")
    if report.cut:
        print(
            f"  {format_count(report.cut, 'reply')} as long as a reply may get: triples at the end may be missing"
        )
    for one in report.unreadable[:MAX_LISTED_REPLIES]:
        print(f"  not read: {one.document} ({one.passage}): {one.problem}")
    if len(report.unreadable) > MAX_LISTED_REPLIES:
        print(f"  and {len(report.unreadable) - MAX_LISTED_REPLIES:,} more: --json lists all")
    if report.unreadable:
        print(f"  {format_count(len(report.unreadable), 'reply')} made no sense; to ask again, run it again")


def _shape(report: ExtractionReport) -> dict[str, Any]:

    return report.graph.to_dict() | {
        "outcome": report.outcome,
        "passages": report.passages,
        "unreadable": [asdict(one) for one in report.unreadable],
        "incomplete": report.incomplete,
        "cut": report.cut,
        "left": report.left,
        "usage": asdict(report.usage),
        "stopped": report.stopped or None,
        "seconds": round(report.seconds, 3),
    }


def encode(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)],
    names: Annotated[
        bool, typer.Option("--names", help="The names of nodes alone: they help to find what a name means.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Every node, not only those of the types that may answer.")
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Make the vectors of a graph's nodes, so that all of them are searched by meaning (retrievers vss, multi-vss).

    Without this, a question embeds what it needs: at most 500 nodes that are best by words. Stopped, it continues
    where it was; the vectors go with the graph.

      clew graph encode films

      clew ask "Which film is about a labyrinth?" --retriever vss
    """
    with clew.open(kb) as base:
        announce_text_destination("texts of nodes", base.encoding.encoder())
        missing, seconds = base.graphs.estimate_encoding(name, names=names, every=every)
        if missing:
            print_note(
                f"{format_count(missing, 'vector')} to make"
                + (f", about {format_duration(seconds)}" if seconds else "")
            )
        with progress_display(quiet=as_json) as show:
            try:
                made = base.graphs.encode(name, names=names, every=every, progress=show)
            except KeyboardInterrupt:
                print_note(
                    f"clew: stopped; the vectors made so far are kept. To continue: clew graph encode {name}"
                )
                raise typer.Exit(EXIT_INTERRUPTED) from None
        encoder = base.encoding.name
    if as_json:
        print_json({"graph": name, "encoder": encoder, "encoded": made})
    else:
        print(f"{name}: {format_count(made, 'vector')} made by {encoder}")


# MERGED: ``clew graph mount``.
# MERGED: ``clew graph extract``.
# MERGED: ``clew graph encode``.
