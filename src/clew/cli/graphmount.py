"""``clew graph mount``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clew.cli.options import Json, Kb


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
    import clew
    from clew.api import MountOptions
    from clew.cli.output import format_count, print_json

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
        graph = base.mount_graph(name, place, options)
        types, relations, service = graph.types(), graph.relations(), graph.lookup.service
    if as_json:
        shape = {"graph": name, "url": place, "types": dict(types), "relations": sorted(relations)}
        print_json(shape | {"lookup": service})
    else:
        found = f"{format_count(len(types), 'type')}, {format_count(len(relations), 'relation')}"
        print(f"mounted {name}: {found}; names by {service}")
