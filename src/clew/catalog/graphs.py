"""The graphs of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.catalog.parts import Bench, Options, Part, Shelf

if TYPE_CHECKING:
    from clew.protocols import Graph


def _keywords(bench: Bench, options: Options) -> Graph:
    from clew.graph.keywords import Keywords

    return Keywords(bench.snapshot, n=options.count("n"), share=options.number("share"))


def _mentions(bench: Bench, options: Options) -> Graph:
    from clew.graph.mentions import Mentions

    return Mentions(bench.snapshot, common=options.count("common", 0), leads=options.count("leads", 0))


def _knn(bench: Bench, options: Options) -> Graph:
    from clew.graph.nearest import Nearest

    return Nearest(bench.snapshot, bench.need_encoder("knn").name, k=options.count("k"))


def _structure(bench: Bench, options: Options) -> Graph:
    from clew.graph.tree import Structure

    return Structure(bench.snapshot)


def _entities(bench: Bench, options: Options) -> Graph:
    from clew.graph.annotation import Annotations
    from clew.graph.entities import Entities

    maker = options.text("service")
    return Entities(
        bench.snapshot, Annotations.usual(), maker, options.number("rho"), options.number("prior")
    )


def _union(bench: Bench, options: Options) -> Graph:
    from clew.graph.union import Union

    return Union([GRAPHS.build(options.part(key), bench) for key in ("a", "b")])


GRAPHS: Shelf[Graph] = Shelf(
    "graph",
    {
        "keywords": Part(
            "passages that share a keyword: the n best of each document by TF-IDF, and its title",
            _keywords,
            {"n": 10, "share": 1.0},
        ),
        "mentions": Part(
            "passages that share a name; a name that is a title leads to its document",
            _mentions,
            {"common": 5, "leads": 3},
        ),
        "knn": Part("the k passages nearest by vector (needs an encoder)", _knn, {"k": 10}),
        "structure": Part("the same section, page or table; the passages before and after", _structure),
        "entities": Part(
            "passages with a common Wikipedia entity (TAGME or WAT: clew annotate)",
            _entities,
            {"service": "wat/en", "rho": 0.0, "prior": 0.8},
        ),
        "union": Part("the edges of two graphs", _union),
    },
)
