"""The graphs of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.component import BuildContext, Component, Params, Registry

if TYPE_CHECKING:
    from clew.core.protocols import Graph


def _keywords(bench: BuildContext, options: Params) -> Graph:
    from clew.graph.keywords import KeywordGraph

    return KeywordGraph(bench.snapshot, n=options.count("n"), share=options.number("share"))


def _mentions(bench: BuildContext, options: Params) -> Graph:
    from clew.graph.mentions import MentionGraph

    return MentionGraph(bench.snapshot, common=options.count("common", 0), leads=options.count("leads", 0))


def _knn(bench: BuildContext, options: Params) -> Graph:
    from clew.graph.nearest import NearestGraph

    return NearestGraph(bench.snapshot, bench.require_encoder("knn").name, k=options.count("k"))


def _structure(bench: BuildContext, options: Params) -> Graph:
    from clew.graph.structure import StructureGraph

    return StructureGraph(bench.snapshot)


def _entities(bench: BuildContext, options: Params) -> Graph:
    from clew.graph.annotation import AnnotationCache
    from clew.graph.entities import EntityGraph

    maker = options.text("service")
    return EntityGraph(
        bench.snapshot, AnnotationCache.default(), maker, options.number("rho"), options.number("prior")
    )


def _union(bench: BuildContext, options: Params) -> Graph:
    from clew.graph.union import UnionGraph

    return UnionGraph([GRAPHS.build(options.component(key), bench) for key in ("a", "b")])


GRAPHS: Registry[Graph] = Registry(
    "graph",
    {
        "keywords": Component(
            "passages that share a keyword: the n best of each document by TF-IDF, and its title",
            _keywords,
            {"n": 10, "share": 1.0},
        ),
        "mentions": Component(
            "passages that share a name; a name that is a title leads to its document",
            _mentions,
            {"common": 5, "leads": 3},
        ),
        "knn": Component("the k passages nearest by vector (needs an encoder)", _knn, {"k": 10}),
        "structure": Component("the same section, page or table; the passages before and after", _structure),
        "entities": Component(
            "passages with a common Wikipedia entity (TAGME or WAT: clew annotate)",
            _entities,
            {"service": "wat/en", "rho": 0.0, "prior": 0.8},
        ),
        "union": Component("the edges of two graphs", _union),
    },
)
