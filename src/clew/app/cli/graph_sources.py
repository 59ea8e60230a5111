"""``clew graph add``, ``edit``, ``mount``, ``extract`` and ``encode``: where graphs come from."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import clew
from clew.app.cli.command_group import EXIT_BUDGET, EXIT_FAILED, interruptible
from clew.app.cli.options import (
    BudgetCalls,
    BudgetMoney,
    BudgetTokens,
    Documents,
    Json,
    Kb,
    Llm,
    On,
    announce_text_destination,
    cluster_session,
    configured_model,
    confirm_cost,
    option,
)
from clew.app.cli.output import (
    format_cost,
    format_count,
    format_duration,
    print_json,
    print_line,
    print_note,
    progress_display,
)
from clew.core.errors import UnreadableFile, UsageError

if TYPE_CHECKING:
    from clew.knowledge_base.extraction import ExtractionReport, Staleness
    from clew.knowledge_base.ingest.graphs import GraphReport


#: Nodes and edges that were not there to be removed, of which so many are listed.
MAX_LISTED_MISSING = 20
#: Unreadable replies that are listed; --json lists all.
MAX_LISTED_REPLIES = 10


SkipBad: TypeAlias = Annotated[
    bool, typer.Option("--skip-bad", help="Skip rows that cannot be read; they are counted and listed.")
]


def add(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files that together hold one graph.", show_default=False),
    ] = None,
    name: Annotated[str | None, option("NAME", "The graph's name.", default="the file's name")] = None,
    nodes: Annotated[list[Path] | None, option("FILE", "A file with nodes. Repeat for several.")] = None,
    edges: Annotated[list[Path] | None, option("FILE", "A file with edges. Repeat for several.")] = None,
    form: Annotated[
        str,
        option(
            "FORM",
            "The format: bibtex, csl-json, zotero-rdf, csv, tsv, jsonl, parquet, ntriples, turtle, rdfxml or "
            "stark.",
            "--format",
            default="by the file's name",
        ),
    ] = "",
    columns: Annotated[
        str | None,
        option(
            "NAMES",
            "The meaning of a table's columns: head,relation,tail for edges; id,type,name,aliases,text for "
            "nodes; other names are properties.",
            default="by the first row, else head,relation,tail",
        ),
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header", help="Whether the first row names the columns.", show_default="detected"
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            metavar="LANGUAGES",
            help="Languages of names and texts in RDF, the preferred one first (de,en); * for any.",
        ),
    ] = "en",
    answers: Annotated[
        str | None,
        option(
            "TYPES",
            "The types of nodes that can be answers: paper,author.",
            default="as STaRK declares them, else all",
        ),
    ] = None,
    skip_bad: SkipBad = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Add a knowledge graph from files: CSV, TSV, JSON lines, Parquet, RDF, or a knowledge base of STaRK.

    A table with three columns holds head, relation and tail. A table with a header can also hold types, names,
    aliases, texts and properties; columns are recognised by name (id, type, name, text; head, relation, tail), also
    as Neo4j exports them (:ID, :LABEL, :START_ID, :END_ID, :TYPE, name:string). JSON lines hold triples, nodes and
    edges, or triples extracted from passages. Files may be compressed (.gz, .bz2, .xz). A folder or zip archive can
    hold a processed knowledge base of STaRK as published; code in its pickles is never run.

    If a row cannot be read, clew prints its line number and adds nothing; --skip-bad skips such rows instead. An
    unchanged file is not read again; a changed file replaces its graph. Where another file's graph has the name,
    nothing is added: --name gives a name of its own, or replaces the graph of that name.

      clew graph add films.tsv

      clew graph add --nodes people.csv --edges knows.csv --name people

      clew graph add export.nt.gz --language de,en

      clew graph add prime/processed.zip --name prime

      clew graph add library.bib       works, authors and what they cite, from Zotero, JabRef, ...

      clew graph schema films       its types and relations, with examples
    """
    from clew.parse.graphs.formats import GraphReadOptions
    from clew.questions.reading import open_catalogue

    options = GraphReadOptions(
        form,
        tuple(columns.split(",")) if columns else (),
        header,
        "",
        tuple(language.lower().split(",")),
        tuple(type.strip() for type in (answers or "").split(",") if type.strip()),
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
            _print_unreadable(error)
            raise typer.Exit(EXIT_FAILED) from None
        started = time.perf_counter()
        catalogue = open_catalogue(base.store.snapshot().graph(report.graph.name))
        seconds = time.perf_counter() - started
    for row in report.bad_rows:
        print_note(f"clew: skipped: {row}")
    if as_json:
        print_json(_import_to_dict(report))
        return
    _print_import(report)
    if report.outcome != "unchanged":
        relations = format_count(len(catalogue.relations), "relation")
        print_line(
            f"  plain questions: {relations} read by name in {format_duration(seconds)}; nothing is trained"
        )


def _print_unreadable(error: UnreadableFile) -> None:
    print_note(f"clew: {error.problem}")
    if error.hint:
        print_note(f"      {error.hint}")


def _print_import(report: GraphReport) -> None:
    graph = report.graph
    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    print_line(f"{report.outcome} {graph.name}: {sizes} in {format_duration(report.seconds)}")
    if report.bad:
        print_line(f"  {format_count(report.bad, 'bad row')} skipped")
    if report.undescribed:
        print_line(f"  {format_count(report.undescribed, 'node')} named by edges alone")
    for reason, number in sorted(report.left_out.items()):
        print_line(f"  left out: {number:,} {reason}")


def _import_to_dict(report: GraphReport) -> dict[str, Any]:
    return report.graph.to_dict() | {
        "outcome": report.outcome,
        "skipped": report.bad,
        "bad_rows": list(report.bad_rows),
        "left_out": report.left_out,
        "named_by_edges_alone": report.undescribed,
        "seconds": round(report.seconds, 3),
    }


def edit(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)],
    add: Annotated[
        list[Path] | None, option("FILE", "A file with edges or nodes to add. Repeat for several.", "--add")
    ] = None,
    remove: Annotated[
        list[Path] | None,
        option("FILE", "A file with edges or nodes to remove. Repeat for several.", "--remove"),
    ] = None,
    remove_node: Annotated[
        list[str] | None,
        option("ID", "A node to remove, with its edges. Repeat for several.", "--remove-node"),
    ] = None,
    form: Annotated[
        str, option("FORM", "The format of the files.", "--format", default="by their names")
    ] = "",
    columns: Annotated[
        str | None,
        option(
            "NAMES",
            "The meaning of the columns of tables, as for clew graph add.",
            default="by the first row, else head,relation,tail",
        ),
    ] = None,
    skip_bad: SkipBad = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Add edges and nodes to a graph, and remove some, without reading the graph again.

    Files have the formats of clew graph add: triples, tables of nodes or edges, JSON lines, Parquet; of RDF only
    relations between nodes. Everything is removed before anything is added. A node of an added file that is in the
    graph is described anew; a removed node takes its edges with it; an end of an edge that nothing describes goes
    with its last edge. Afterwards the graph is the same as if it were read from files with these nodes and edges.
    Adding its old files again replaces it.

      clew graph edit films --add new.tsv --remove wrong.tsv

      clew graph edit films --remove-node tt0032138
    """
    from clew.knowledge_base import GraphEdits
    from clew.parse.graphs.formats import GraphReadOptions

    if not add and not remove and not remove_node:
        raise UsageError("nothing to change was given", "For example: clew graph edit films --add new.tsv")
    edits = GraphEdits()
    for id in remove_node or ():
        edits.remove_node(id.removeprefix(f"{name}:"))
    options = GraphReadOptions(form, tuple(columns.split(",")) if columns else ())
    with clew.open(kb) as base, progress_display(quiet=as_json) as progress:
        try:
            report = base.graphs.edit(
                name,
                edits,
                add=add or (),
                remove=remove or (),
                options=options,
                skip_bad=skip_bad,
                progress=progress,
            )
        except UnreadableFile as error:
            _print_unreadable(error)
            raise typer.Exit(EXIT_FAILED) from None
    for row in report.bad_rows:
        print_note(f"clew: skipped: {row}")
    for missing in report.counts.missing[:MAX_LISTED_MISSING]:
        print_note(f"clew: not in the graph, so not removed: {missing}")
    if len(report.counts.missing) > MAX_LISTED_MISSING:
        print_note(
            f"clew: ... and {len(report.counts.missing) - MAX_LISTED_MISSING:,} more; --json lists all"
        )
    if as_json:
        print_json(
            report.graph.to_dict()
            | report.counts.to_dict()
            | {
                "skipped": report.bad,
                "bad_rows": list(report.bad_rows),
                "left_out": report.left_out,
                "seconds": round(report.seconds, 3),
            }
        )
        return
    counts, graph = report.counts, report.graph
    for noun, added, removed, described in (
        ("node", counts.nodes_added, counts.nodes_removed, counts.nodes_described),
        ("edge", counts.edges_added, counts.edges_removed, counts.edges_described),
    ):
        print_line(f"{format_count(added, noun)} added, {removed:,} removed, {described:,} described anew")
    for reason, number in sorted(report.left_out.items()):
        print_line(f"  left out: {number:,} {reason}")
    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    print_line(f"{graph.name}: {sizes} in {format_duration(report.seconds)}")


def mount(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)],
    place: Annotated[
        str,
        typer.Argument(
            metavar="URL|FOLDER",
            help="The endpoint's URL, or the folder of an Oxigraph store.",
            show_default=False,
        ),
    ],
    language: Annotated[
        str, typer.Option(metavar="LANGUAGES", help="Languages of names, the preferred one first: de,en.")
    ] = "en",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Wait at most this long for a reply.")
    ] = 60.0,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", help="Wait this long between two requests.")
    ] = 0.0,
    type_property: Annotated[
        str | None,
        option("IRI", "The property that holds a node's type.", default="rdf:type; P31 of a Wikibase"),
    ] = None,
    lookup: Annotated[
        str,
        typer.Option(
            metavar="SEARCH",
            help="How to find names with another spelling: wikidata, virtuoso or qlever (the search of such an "
            "endpoint), scan (reads every label; slow beyond some hundred thousand), labels (exact names only) or "
            "auto (tries them; scan only for small stores).",
        ),
    ] = "auto",
    titles: Annotated[
        Path | None,
        option(
            "FILE",
            "A table of titles and ids to look names up in first: two columns (or .gz), or WikiMapper's index.",
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Use a SPARQL 1.1 endpoint or an RDF store as a graph, without copying it.

    The graph is read-only, and queried when a question needs it: queries about an endpoint go to its server. Its
    types, properties and labels are read now and stored; mount it again to refresh them. Names are looked up as
    rdfs:label and skos:altLabel in the given languages. FOLDER is a store that Oxigraph made (oxigraph load).

      clew graph mount films http://localhost:7878/query

      clew graph mount kg https://example.org/sparql --language de,en --interval 1

      clew graph mount wikidata https://query.wikidata.org/sparql --titles index_enwiki.db

      clew graph mount local path/to/store

      clew graph remove films       unmounts it
    """
    from clew.store.sparql.mount_options import MountOptions

    options = MountOptions(
        tuple(language.lower().split(",")),
        timeout,
        interval,
        type_property or MountOptions().type_property,
        lookup=lookup,
        titles=str(titles) if titles else "",
    )
    with clew.open(kb, create=True) as base:
        graph = base.graphs.mount(name, place, options)
        types, relations, service = graph.types(), graph.relations(), graph.lookup.service
    if as_json:
        schema = {"types": dict(types), "relations": sorted(relations)}
        print_json({"graph": name, "url": place} | schema | {"lookup": service})
    else:
        sizes = f"{format_count(len(types), 'type')}, {format_count(len(relations), 'relation')}"
        print_line(f"mounted {name}: {sizes}; names by {service}")


def extract(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)],
    llm: Llm = None,
    documents: Documents = None,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before calling a model.")] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Extract a graph from the documents: a language model writes the triples of every passage.

    Prints an estimate and asks for confirmation before calling a model. Each passage is read once; its triples are
    stored with the document and name the passage. If you stop it, it continues there next time. After adding or
    removing documents, run it again to update the graph.

    If a reply cannot be read, clew prints the passage, exits with status 1, and tries that passage again next time.

      clew graph extract notes --llm ollama:llama3.1

      clew graph extract notes          updates the graph; no model is needed if no passage is new

      clew graph show notes "Maria Hale"
    """
    from clew.knowledge_base.extraction import GraphExtraction
    from clew.knowledge_base.ingest.report import Event

    # No cache: triples are stored in the knowledge base, and an unreadable reply must not be repeated from the cache.
    model = configured_model(
        llm, budget_calls=budget_calls, budget_tokens=budget_tokens, budget_money=budget_money, cache=False
    )
    with clew.open(kb) as base:
        extraction = GraphExtraction(base, name, model, documents)
        estimate = extraction.estimate()
        if estimate.passages and model is not None:
            work = f"{format_count(estimate.passages, 'passage')} to read by {estimate.maker}"
            confirm_cost([work], estimate.usage, yes, as_json)
            announce_text_destination("the passages", model)
        with (
            progress_display(quiet=as_json) as show,
            interruptible("what was found so far is kept. To continue, run it again"),
        ):
            report = extraction.run(lambda done, total: show(Event("extract", done, total)))
    if as_json:
        print_json(_extraction_to_dict(report))
    else:
        _print_extraction(report)
    if report.stopped:
        print_note(f"clew: {report.stopped}; {report.left:,} passages are left. To continue, run it again")
        raise typer.Exit(EXIT_BUDGET)
    if report.unreadable:
        raise typer.Exit(EXIT_FAILED)


def describe_staleness(name: str, staleness: Staleness) -> str:
    """Say how far an extracted graph is behind its documents, and which command updates it; "" if it is not."""
    parts = [f"{format_count(staleness.gone, 'document')} gone"] if staleness.gone else []
    parts += [f"{format_count(staleness.new, 'document')} new"] if staleness.new else []
    return f"behind its documents ({', '.join(parts)}); run: clew graph extract {name}" if parts else ""


def _print_extraction(report: ExtractionReport) -> None:
    graph = report.graph
    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    print_line(f"{report.outcome} {graph.name}: {sizes} in {format_duration(report.seconds)}")
    cost = format_cost(report.usage)
    print_line(f"  {format_count(report.passages, 'passage')} read" + (f" ({cost})" if cost else ""))
    if report.incomplete:
        print_line(f"  {format_count(report.incomplete, 'triple')} left out: a part is empty")
    if report.cut:
        replies = format_count(report.cut, "reply")
        print_line(f"  {replies} as long as a reply may get: triples at the end may be missing")
    for reply in report.unreadable[:MAX_LISTED_REPLIES]:
        print_line(f"  not read: {reply.document} ({reply.passage}): {reply.problem}")
    if len(report.unreadable) > MAX_LISTED_REPLIES:
        print_line(f"  and {len(report.unreadable) - MAX_LISTED_REPLIES:,} more: --json lists all")
    if report.unreadable:
        print_line(
            f"  {format_count(len(report.unreadable), 'reply')} made no sense; to ask again, run it again"
        )


def _extraction_to_dict(report: ExtractionReport) -> dict[str, Any]:
    return report.graph.to_dict() | {
        "outcome": report.outcome,
        "passages": report.passages,
        "unreadable": [asdict(reply) for reply in report.unreadable],
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
        bool,
        typer.Option(
            "--names", help="Encode only the names of nodes, which helps to link names in questions."
        ),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Encode every node, not only those whose type can be an answer.")
    ] = False,
    on: On = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Make vectors for a graph's nodes, so that all of them can be searched by meaning (retrievers vss, multi-vss).

    Without vectors, each question encodes the nodes it needs: at most 500, the best matches by words. If you stop
    it, it continues there next time. The vectors are removed with the graph.

      clew graph encode films

      clew ask "Which film is about a labyrinth?" --retriever vss
    """
    with cluster_session(on) as cluster, clew.open(kb) as base:
        base.encoding.cluster = cluster
        announce_text_destination("texts of nodes", base.encoding.encoder())
        missing, seconds = base.graphs.estimate_encoding(name, names=names, every=every)
        if missing:
            duration = f", about {format_duration(seconds)}" if seconds else ""
            print_note(f"{format_count(missing, 'vector')} to make{duration}")
        with (
            progress_display(quiet=as_json) as show,
            interruptible(f"the vectors made so far are kept. To continue: clew graph encode {name}"),
        ):
            encoded = base.graphs.encode(name, names=names, every=every, progress=show)
        encoder = base.encoding.name
    if as_json:
        print_json({"graph": name, "encoder": encoder, "encoded": encoded})
    else:
        print_line(f"{name}: {format_count(encoded, 'vector')} made by {encoder}")
