"""``clew graph``: knowledge graphs beside the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

import clew
from clew.app.cli import graph_sources as graphadd
from clew.app.cli import graph_sources as graphencode
from clew.app.cli import graph_sources as graphextract
from clew.app.cli import graph_sources as graphmount
from clew.app.cli.command_group import CommandGroup
from clew.app.cli.options import Json, Kb
from clew.app.cli.output import format_count, print_json

if TYPE_CHECKING:
    from clew.core.types import Entity
    from clew.triples.linking.entity_alignment import EntityAlignment

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Knowledge graphs beside the documents: add, look at, remove.",
)
app.command("add")(graphadd.add)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)]


@app.command("list")
def list_graphs(kb: Kb = None, as_json: Json = False) -> None:
    """List the graphs, with their sizes and where they came from.

    clew graph list
    """
    from clew.knowledge_base.extraction import extraction_maker, measure_staleness

    with clew.open(kb) as base:
        graphs = base.graphs.infos()
        late = {graph.name: measure_staleness(base, graph) for graph in graphs}
    if as_json:
        print_json(
            {
                "graphs": [
                    graph.to_dict()
                    | {"extracted": extraction_maker(graph) or None, "behind": asdict(late[graph.name])}
                    for graph in graphs
                ]
            }
        )
        return
    for graph in graphs:
        if graph.url:
            print(f"{graph.name}  (mounted)\n    {graph.url}")
            continue
        print(f"{graph.name}  ({format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')})")
        for source in graph.sources:
            print(f"    {source.path}")
        if maker := extraction_maker(graph):
            print(f"    extracted from the documents by {maker}")
        if said := graphextract.describe_staleness(graph.name, late[graph.name]):
            print(f"    {said}")
    if not graphs:
        print("no graphs yet; add one: clew graph add FILE")


@app.command("schema")
def schema(
    name: Name,
    limit: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Print at most this many types, relations and properties; --json has all.",
        ),
    ] = 50,
    question: Annotated[
        str | None,
        typer.Option(
            "--question",
            metavar="TEXT",
            help="Print what a model would be shown of the graph for this question, cut as it would be.",
            show_default=False,
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Print a graph's node types, relations and properties, with counts and examples: what can be asked of it.

    clew graph schema films

      clew graph schema films --question "Which slow films did David Lynch direct before 1990?"
    """
    from clew.app.cli import graph_schema as schemas

    with clew.open(kb) as base:
        if question is not None:
            shown = base.graphs.schema(question, [name])
            if as_json:
                print_json({"graph": name, "question": question, "text": shown.text, "shown": shown.summary})
            else:
                print(shown.text)
            return
        graph = base.graphs.get(name)
        if as_json:
            print_json(schemas.schema_to_dict(graph))
        else:
            schemas.print_schema(graph, limit)


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
    """Show an entity of a graph: what is known of it, the triples that it is in, both ways, and what it is the
    same as.

    Case, accents, spaces and punctuation of the name do not matter. Where several have the name, all are shown.
    What is the same in other graphs, and the document about it, is found by ids and names; clew graph links also
    compares identifying properties.

      clew graph show films "Gert Frobe"
    """
    with clew.open(kb) as base:
        found = base.graphs.describe(name, base.graphs.entities(name, entity), limit)
    if as_json:
        print_json({"entities": [told.to_dict() for told in found]})
        return
    for told in found:
        one = told.entity
        _print_entity(one)
        for triple in told.triples:
            for end, said in zip(triple.ends, triple.statements, strict=True):
                before, after = (end.name, one.name) if triple.inverse else (one.name, end.name)
                print(f"    {before} >> {triple.relation} >> {after}")
                for source in _sources(said):
                    print(f"        said in {source}")
            if triple.total > len(triple.ends):
                print(f"    ... {triple.total - len(triple.ends):,} more {triple.relation}")
        for link in told.equivalents:
            print(f"    same as: {_target(link)}  ({'; '.join(link.by)})")


def _sources(statements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return where a triple was said: the document, or the title of the passage, with the passage's id."""
    found = [(one.get("document") or one.get("title"), one.get("passage")) for one in statements]
    return list(
        dict.fromkeys(
            f"{where} ({passage})" if where else str(passage) for where, passage in found if passage
        )
    )


def _print_entity(one: Entity) -> None:
    types = ", ".join(type for type in (one.type, *one.more_types) if type)
    print(f"{one.name}{f'  ({types})' if types else ''}  {one.id}")
    if one.aliases:
        print(f"    also: {'; '.join(one.aliases)}")
    for key, value in sorted(one.properties.items()):
        print(f"    {key}: {'; '.join(map(str, value)) if isinstance(value, tuple) else value}")
    if one.text:
        print(f"    {one.text}")


def _target(link: EntityAlignment) -> str:
    return f"document {link.target_name}" if link.document else f"{link.target_name}  {link.target}"


@app.command("links")
def links(
    graph: Annotated[
        str | None,
        typer.Argument(metavar="[GRAPH]", help="Those of this graph alone.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Print at most this many.")] = 50,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """List what is the same in different graphs, and the documents about a node, each with its evidence.

    Links are by identifier (Wikidata's ids, IRIs, properties such as imdb_id or doi), by owl:sameAs, and by name or
    alias where that is unambiguous on both sides or types agree. Nothing is stored: they follow from what is there.

      clew graph links

      clew graph links films --limit 200
    """
    with clew.open(kb) as base:
        found = list(islice(base.graphs.links(graph), limit + 1))
    if as_json:
        print_json({"links": [one.to_dict() for one in found[:limit]], "more": len(found) > limit})
        return
    for one in found[:limit]:
        print(f"{one.source_name}  {one.source}  =  {_target(one)}  ({'; '.join(one.by)})")
    if len(found) > limit:
        print("... there are more; see --limit")
    elif not found:
        print("no links: nothing is known to be the same in two graphs, or to be what a document is about")


app.command("mount")(graphmount.mount)
app.command("extract")(graphextract.extract)
app.command("encode")(graphencode.encode)


@app.command("remove")
def remove(name: Name, kb: Kb = None, as_json: Json = False) -> None:
    """Forget a graph, or unmount one: afterwards the base is as if it had never been added. Its files stay.

    clew graph remove films
    """
    with clew.open(kb) as base:
        gone = base.graphs.remove(name)
    if as_json:
        print_json({"removed": gone.to_dict()})
    else:
        print(f"removed {gone.name}")
