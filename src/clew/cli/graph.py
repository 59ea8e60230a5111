"""``clew graph``: knowledge graphs beside the documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.group import FAILED, Group
from clew.cli.options import Json, Kb

if TYPE_CHECKING:
    from clew.ingest import GraphReport
    from clew.types import Entity, Relation

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Knowledge graphs beside the documents: add, look at, remove.",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)]


@app.command("add")
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
            help="csv, tsv, jsonl, parquet, ntriples, turtle or rdfxml.",
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
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Leave out rows that make no sense; they are counted and named."),
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Add a knowledge graph: triples, tables of nodes and edges, JSON lines, Parquet or RDF.

    A table with three columns holds head, relation, tail. Tables with a header may have types, names, aliases, texts
    and properties: columns are known by their names (id, type, name, text; head, relation, tail), also as Neo4j
    exports them (:ID, :LABEL, :START_ID, :END_ID, :TYPE, name:string). JSON lines are triples, nodes and edges, or
    triples extracted from passages. Files may be compressed (.gz, .bz2, .xz).

    A row that makes no sense is named with its line, and nothing is added; --skip-bad leaves such rows out. A file
    that did not change is not read again; a changed one replaces the graph of that name.

      clew graph add films.tsv

      clew graph add --nodes people.csv --edges knows.csv --name people

      clew graph add export.nt.gz --language de,en

      clew graph schema films       its types and relations, with examples
    """
    import clew
    from clew.cli.output import note, print_json
    from clew.cli.progress import showing
    from clew.errors import UnreadableFile
    from clew.triples import Options

    options = Options(
        form, tuple(columns.split(",")) if columns else (), header, "", tuple(language.lower().split(","))
    )
    with clew.open(kb, create=True) as base, showing(quiet=as_json) as progress:
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
            note(f"clew: {error.problem}")
            if error.hint:
                note(f"      {error.hint}")
            raise typer.Exit(FAILED) from None
    for row in report.bad_rows:
        note(f"clew: skipped: {row}")
    if as_json:
        print_json(_report_shape(report))
    else:
        _print_report(report)


def _print_report(report: GraphReport) -> None:
    from clew.cli.output import count, duration

    graph = report.graph
    sizes = f"{count(graph.nodes, 'node')}, {count(graph.edges, 'edge')}"
    print(f"{report.outcome} {graph.name}: {sizes} in {duration(report.seconds)}")
    if report.bad:
        print(f"  {count(report.bad, 'bad row')} skipped")
    if report.undescribed:
        print(f"  {count(report.undescribed, 'node')} named by edges alone")
    for reason, number in sorted(report.left_out.items()):
        print(f"  left out: {number:,} {reason}")


def _report_shape(report: GraphReport) -> dict[str, Any]:
    from clew.shapes import graph_shape

    return graph_shape(report.graph) | {
        "outcome": report.outcome,
        "skipped": report.bad,
        "bad_rows": list(report.bad_rows),
        "left_out": report.left_out,
        "named_by_edges_alone": report.undescribed,
        "seconds": round(report.seconds, 3),
    }


@app.command("list")
def list_graphs(kb: Kb = None, as_json: Json = False) -> None:
    """List the graphs, with their sizes and where they came from.

    clew graph list
    """
    import clew
    from clew.cli.output import count, print_json
    from clew.shapes import graph_shape

    with clew.open(kb) as base:
        graphs = base.graphs()
    if as_json:
        print_json({"graphs": [graph_shape(graph) for graph in graphs]})
        return
    for graph in graphs:
        if graph.url:
            print(f"{graph.name}  (mounted)\n    {graph.url}")
            continue
        print(f"{graph.name}  ({count(graph.nodes, 'node')}, {count(graph.edges, 'edge')})")
        for source in graph.sources:
            print(f"    {source.path}")
    if not graphs:
        print("no graphs yet; add one: clew graph add FILE")


@app.command("schema")
def schema(
    name: Name,
    limit: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Print at most this many types and relations; --json has all."),
    ] = 50,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Print a graph's node types and relations, with counts and examples: what questions can be asked of it.

    clew graph schema films
    """
    import clew
    from clew.cli.output import count, print_json
    from clew.shapes import relation_shape

    with clew.open(kb) as base:
        graph = base.graph(name)
        types, relations, size = graph.types(), graph.relations(), graph.size
    by_size = sorted(relations.items(), key=lambda one: (-one[1].edges, one[0]))
    if as_json:
        shapes = [relation_shape(*one) for one in by_size]
        print_json({"graph": name, "nodes": size, "types": dict(types), "relations": shapes})
        return
    nodes = f"{count(size, 'node')}, " if size else ""
    print(f"{name}: {nodes}{count(sum(one.edges for one in relations.values()), 'edge')}")
    by_count = sorted(types.items(), key=lambda one: (-one[1], one[0]))
    for type, number in by_count[:limit]:
        print(f"type {type}: {count(number, 'node')}")
    for relation, found in by_size[:limit]:
        print(f"relation {relation}: {count(found.edges, 'edge')}{_ends(found)}")
        for head, tail in found.examples:
            print(f"    {head} >> {relation} >> {tail}")
    more = max(len(by_count) - limit, 0), max(len(by_size) - limit, 0)
    if any(more):
        print(f"... {count(more[0], 'more type')}, {count(more[1], 'more relation')}; see --limit")


def _ends(relation: Relation) -> str:
    if not relation.head_types and not relation.tail_types:
        return ""
    return f", {_most(relation.head_types)} to {_most(relation.tail_types)}"


def _most(types: Any) -> str:
    """Return the most frequent of the types at one end, and how many others there are."""
    if not types:
        return "untyped"
    first = max(types, key=lambda type: (types[type], type))
    return first if len(types) == 1 else f"{first} (or {len(types) - 1} more)"


@app.command("show")
def show(
    name: Name,
    entity: Annotated[
        str, typer.Argument(metavar="ENTITY", help="Its name, an alias, or its id.", show_default=False)
    ],
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="At most this many triples of each relation.")
    ] = 10,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Show an entity of a graph: what is known of it, and the triples that it is in, both ways.

    Case, accents, spaces and punctuation of the name do not matter. Where several have the name, all are shown.

      clew graph show films "Gert Frobe"
    """
    import clew
    from clew.api import triples_of
    from clew.cli.output import print_json
    from clew.shapes import entity_shape

    with clew.open(kb) as base:
        graph = base.graph(name)
        found = base.entities(name, entity)
        triples = {one.id: triples_of(graph, one, limit) for one in found}
    if as_json:
        shapes = [
            entity_shape(one) | {"triples": [triple.shape() for triple in triples[one.id]]} for one in found
        ]
        print_json({"entities": shapes})
        return
    for one in found:
        _print_entity(one)
        for triple in triples[one.id]:
            for end in triple.ends:
                before, after = (end.name, one.name) if triple.inverse else (one.name, end.name)
                print(f"    {before} >> {triple.relation} >> {after}")
            if triple.total > len(triple.ends):
                print(f"    ... {triple.total - len(triple.ends):,} more {triple.relation}")


def _print_entity(one: Entity) -> None:
    types = ", ".join(type for type in (one.type, *one.also) if type)
    print(f"{one.name}{f'  ({types})' if types else ''}  {one.id}")
    if one.aliases:
        print(f"    also: {'; '.join(one.aliases)}")
    for key, value in sorted(one.properties.items()):
        print(f"    {key}: {'; '.join(map(str, value)) if isinstance(value, tuple) else value}")
    if one.text:
        print(f"    {one.text}")


@app.command("mount")
def mount(
    name: Name,
    url: Annotated[str, typer.Argument(metavar="URL", help="The endpoint's URL.", show_default=False)],
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
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Mount a SPARQL 1.1 endpoint as a graph, read-only: nothing is copied, it is asked when it is needed.

    What it says of itself (its types, its properties and their labels) is asked now and kept; mount it again to ask
    again. Names are looked up as rdfs:label and skos:altLabel, in the languages given. Every question about this
    graph goes to that server.

      clew graph mount films http://localhost:7878/query

      clew graph mount kg https://example.org/sparql --language de,en --interval 1

      clew graph remove films       unmounts it
    """
    import clew
    from clew.api import MountOptions
    from clew.cli.output import count, print_json

    usual = MountOptions()
    options = MountOptions(
        tuple(language.lower().split(",")), timeout, interval, type_property or usual.type_property
    )
    with clew.open(kb, create=True) as base:
        graph = base.mount_graph(name, url, options)
        types, relations = graph.types(), graph.relations()
    if as_json:
        print_json({"graph": name, "url": url, "types": dict(types), "relations": sorted(relations)})
    else:
        print(f"mounted {name}: {count(len(types), 'type')}, {count(len(relations), 'relation')}")


@app.command("remove")
def remove(name: Name, kb: Kb = None, as_json: Json = False) -> None:
    """Forget a graph, or unmount one: afterwards the base is as if it had never been added. Its files stay.

    clew graph remove films
    """
    import clew
    from clew.cli.output import print_json
    from clew.shapes import graph_shape

    with clew.open(kb) as base:
        gone = base.remove_graph(name)
    if as_json:
        print_json({"removed": graph_shape(gone)})
    else:
        print(f"removed {gone.name}")
