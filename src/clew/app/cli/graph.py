"""``clew graph``: knowledge graphs beside the documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

import clew
from clew.app.cli import graph_query, graph_sources
from clew.app.cli.command_group import CommandGroup
from clew.app.cli.options import Json, Kb
from clew.app.cli.output import format_count, print_json, print_line, print_text

if TYPE_CHECKING:
    from clew.core.types import Entity
    from clew.knowledge_base.results import EntityDescription
    from clew.triples.linking.entity_alignment import EntityAlignment

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Add knowledge graphs beside the documents, look into them, and remove them.",
)
app.command("add")(graph_sources.add)
app.command("edit")(graph_sources.edit)
Name = Annotated[str, typer.Argument(metavar="NAME", help="The graph's name.", show_default=False)]


@app.command("list")
def list_graphs(kb: Kb = None, as_json: Json = False) -> None:
    """List the graphs with their sizes and sources.

    clew graph list
    """
    from clew.knowledge_base.extraction import extraction_maker, measure_staleness

    with clew.open(kb) as base:
        graphs = base.graphs.infos()
        staleness = {graph.name: measure_staleness(base, graph) for graph in graphs}
    if as_json:
        print_json(
            {
                "graphs": [
                    graph.to_dict()
                    | {"extracted": extraction_maker(graph) or None, "behind": asdict(staleness[graph.name])}
                    for graph in graphs
                ]
            }
        )
        return
    for graph in graphs:
        if graph.url:
            print_line(f"{graph.name}  (mounted)", f"    {graph.url}")
            continue
        print_line(
            f"{graph.name}  ({format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')})"
        )
        for source in graph.sources:
            print_line(f"    {source.path}")
        if graph.is_edited:
            print_line("    edited since it was added")
        if maker := extraction_maker(graph):
            print_line(f"    extracted from the documents by {maker}")
        if remark := graph_sources.describe_staleness(graph.name, staleness[graph.name]):
            print_line(f"    {remark}")
    if not graphs:
        print_line("no graphs yet; add one: clew graph add FILE")


@app.command("schema")
def schema(
    name: Name,
    limit: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Print at most N types, N relations and N properties; --json prints all.",
        ),
    ] = 50,
    question: Annotated[
        str | None,
        typer.Option(
            "--question",
            metavar="TEXT",
            help="Print the part of the schema that a language model would be given for this question.",
            show_default=False,
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Print the node types, relations and properties of a graph, with counts and examples.

    This is what you can ask about: the names that typed triples (clew ask --triples) may use.

      clew graph schema films

      clew graph schema films --question "Which slow films did David Lynch direct before 1990?"
    """
    from clew.app.cli.graph_schema import print_schema, schema_to_dict

    with clew.open(kb) as base:
        if question is not None:
            excerpt = base.graphs.schema(question, [name])
            if as_json:
                counts = {"text": excerpt.text, "shown": excerpt.summary}
                print_json({"graph": name, "question": question} | counts)
            else:
                print_text(excerpt.text)
            return
        graph = base.graphs.get(name)
        if as_json:
            print_json(schema_to_dict(graph))
        else:
            print_schema(graph, limit)


@app.command("show")
def show(
    name: Name,
    entity: Annotated[
        str, typer.Argument(metavar="ENTITY", help="Its name, an alias, or its id.", show_default=False)
    ],
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="Print at most N triples of each relation.")
    ] = 10,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Show an entity of a graph: its properties, its triples, and the same entity in other graphs.

    Case, accents, spaces and punctuation in the name are ignored. If several entities have the name, all are shown.
    Equivalent entities are found by ids and names; clew graph links also compares identifying properties.

      clew graph show films "Gert Frobe"
    """
    with clew.open(kb) as base:
        descriptions = base.graphs.describe(name, base.graphs.entities(name, entity), limit)
    if as_json:
        print_json({"entities": [description.to_dict() for description in descriptions]})
        return
    for description in descriptions:
        _print_entity(description.entity)
        _print_triples(description)
        for link in description.equivalents:
            print_line(f"    same as: {_describe_target(link)}  ({'; '.join(link.by)})")


def _print_entity(entity: Entity) -> None:
    types = ", ".join(type for type in (entity.type, *entity.more_types) if type)
    print_line(f"{entity.name}{f'  ({types})' if types else ''}  {entity.id}")
    if entity.aliases:
        print_line(f"    also: {'; '.join(entity.aliases)}")
    for key, value in sorted(entity.properties.items()):
        print_line(f"    {key}: {'; '.join(map(str, value)) if isinstance(value, tuple) else value}")
    if entity.text:
        print_text(f"    {entity.text}")


def _print_triples(description: EntityDescription) -> None:
    name = description.entity.name
    for triple in description.triples:
        for end, statements in zip(triple.ends, triple.statements, strict=True):
            head, tail = (end.name, name) if triple.inverse else (name, end.name)
            print_line(f"    {head} >> {triple.relation} >> {tail}")
            for source in _statement_sources(statements):
                print_line(f"        said in {source}")
        if triple.total > len(triple.ends):
            print_line(f"    ... {triple.total - len(triple.ends):,} more {triple.relation}")


def _statement_sources(statements: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sources of a triple: the document or the title of a passage, with the passage's id."""
    sources: dict[str, None] = {}
    for statement in statements:
        document, passage = statement.get("document") or statement.get("title"), statement.get("passage")
        if passage:
            sources[f"{document} ({passage})" if document else str(passage)] = None
    return list(sources)


def _describe_target(link: EntityAlignment) -> str:
    return f"document {link.target_name}" if link.document else f"{link.target_name}  {link.target}"


@app.command("links")
def links(
    graph: Annotated[
        str | None,
        typer.Argument(metavar="[GRAPH]", help="List only the links of this graph.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Print at most N links.")] = 50,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """List entities that are the same in different graphs, and documents about an entity, with the evidence.

    Links are made by identifiers (Wikidata ids, IRIs, properties such as imdb_id or doi), by owl:sameAs, and by names
    or aliases that are unambiguous on both sides or whose types agree. They are computed, not stored.

      clew graph links

      clew graph links films --limit 200
    """
    with clew.open(kb) as base:
        links = list(islice(base.graphs.links(graph), limit + 1))
    if as_json:
        print_json({"links": [link.to_dict() for link in links[:limit]], "more": len(links) > limit})
        return
    for link in links[:limit]:
        target = _describe_target(link)
        print_line(f"{link.source_name}  {link.source}  =  {target}  ({'; '.join(link.by)})")
    if len(links) > limit:
        print_line("... there are more; see --limit")
    elif not links:
        print_line(
            "no links: nothing is known to be the same in two graphs, or to be what a document is about"
        )


app.command("query")(graph_query.query)
app.command("mount")(graph_sources.mount)
app.command("extract")(graph_sources.extract)
app.command("encode")(graph_sources.encode)


@app.command("citations")
def citations(name: Name, kb: Kb = None) -> None:
    """Find in the documents of a bibliography's works which of them cite which, and add that to the graph.

    A document belongs to a work if it has the work's title or the name of its file. It cites the works whose titles
    stand in its text. Run it again after adding documents; adding the bibliography again forgets it.

      clew graph add library.bib

      clew graph citations library

      clew ask --triples "#1 >> author >> Ada Strake; #1 >> cites >> Weirs of the North; final answer: #1"
    """
    with clew.open(kb) as base:
        count = base.graphs.link_citations(name)
    print_line(f"{format_count(count, 'citation')} added")


@app.command("remove")
def remove(name: Name, kb: Kb = None, as_json: Json = False) -> None:
    """Remove a graph, or unmount one. Its files are not touched.

    Afterwards the knowledge base is as if the graph had never been added.

      clew graph remove films
    """
    with clew.open(kb) as base:
        graph = base.graphs.remove(name)
    if as_json:
        print_json({"removed": graph.to_dict()})
    else:
        print_line(f"removed {graph.name}")
