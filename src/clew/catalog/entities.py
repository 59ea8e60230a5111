"""The retrievers over the nodes of graphs, as parts of the catalogue: STaRK's baselines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.catalog.parts import Bench, Options, Part, Shelf
from clew.catalog.recipe import Recipe

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.protocols import Retriever
    from clew.retrieve.entities import NodeSearch, RankingOf
    from clew.retrieve.nodetexts import NodeTexts
    from clew.retrieve.reranking import HitReranker

RERANKERS = ("pointwise", "listwise")
#: What sends texts of nodes to the encoder; an entry of the catalogue whose default part is one of them is one, too.
EMBEDDING = ("vss", "multi-vss", "focus")
#: Options of every retriever over nodes: graphs and types by name, ``a|b`` for several, "" for what is declared.
_WHERE: dict[str, Value] = {"graphs": "", "types": ""}


def ranks_nodes(recipe: Recipe) -> bool:
    """Return whether a recipe, or any part of it, ranks nodes of graphs, about which a model may then be asked."""
    parts = (value for _, value in recipe.options if isinstance(value, Recipe))
    return recipe.name in (*EMBEDDING, "bm25-nodes", "reranked") or any(map(ranks_nodes, parts))


def embeds_nodes(recipe: Recipe) -> bool:
    """Return whether a recipe, or any part of it, gives texts of nodes to the encoder."""
    if recipe.name == "reranked" and recipe.option("retriever") is None:
        return True
    parts = (value for _, value in recipe.options if isinstance(value, Recipe))
    return recipe.name in EMBEDDING or any(map(embeds_nodes, parts))


def node_search(bench: Bench, who: str, texts: NodeTexts, cap: int | None = None) -> NodeSearch:
    """Return the search by vector over the nodes of a graph. Raises UsageError where there is no encoder."""
    from clew.retrieve.entities import CAP, NodeSearch

    return NodeSearch(bench.need_encoder(who), texts, CAP if cap is None else cap)


def hit_reranker(bench: Bench, form: str, k_max: int, who: str = "reranked") -> HitReranker:
    """Return the reranker of a form, ``pointwise`` or ``listwise``. Raises UsageError where there is no model."""
    from clew.prompts import load
    from clew.retrieve.reranking import Listwise, Pointwise

    model = bench.need_model(who)
    if form == "listwise":
        return Listwise(model, load("focus-rerank-list"), k_max)
    return Pointwise(model, load("focus-rerank"), k_max)


def _over_nodes(bench: Bench, options: Options, ranking: RankingOf) -> Retriever:
    from clew.retrieve.entities import EntityRetriever

    types, graphs = (
        tuple(one.strip() for one in options.text(key).split("|") if one.strip())
        for key in ("types", "graphs")
    )
    return EntityRetriever(bench.snapshot, options.recipe.name, ranking, types, graphs)


def _vss(bench: Bench, options: Options) -> Retriever:
    bench.need_encoder(options.recipe.name)
    cap = options.count("cap")
    return _over_nodes(bench, options, lambda texts: node_search(bench, options.recipe.name, texts, cap))


def _multi_vss(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.entities import NodeChunks

    bench.need_encoder(options.recipe.name)
    cap, first, top = options.count("cap"), options.count("first"), options.count("top")
    return _over_nodes(
        bench,
        options,
        lambda texts: NodeChunks(node_search(bench, options.recipe.name, texts, cap), first, top),
    )


def _bm25(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.entities import NodeWords

    k1, b = options.number("k1"), options.number("b")
    return _over_nodes(bench, options, lambda texts: NodeWords(texts, k1, b))


def over_nodes(shelf: Callable[[], Shelf[Retriever]]) -> dict[str, Part[Retriever]]:
    """Return the parts; ``shelf`` gives the retrievers that ``reranked`` takes."""

    def reranked(bench: Bench, options: Options) -> Retriever:
        from clew.retrieve.reranking import RerankedSearch

        form, k_max = options.word("form", RERANKERS), options.count("k")
        reranker = hit_reranker(bench, form, k_max, options.recipe.name)
        return RerankedSearch(shelf().build(options.part("retriever"), bench), reranker, k_max)

    return {
        "vss": Part(
            "nodes of graphs by the vector of their text and relations (needs an encoder)",
            _vss,
            {**_WHERE, "cap": 500},
        ),
        "multi-vss": Part(
            "nodes of graphs by the vectors of the chunks of their text and relations (needs an encoder)",
            _multi_vss,
            {**_WHERE, "cap": 500, "first": 50, "top": 3},
        ),
        "bm25-nodes": Part(
            "nodes of graphs by the words of their text and relations (Okapi BM25)",
            _bm25,
            {**_WHERE, "k1": 1.2, "b": 0.75},
        ),
        "reranked": Part(
            "the first k hits of a retriever, by the score that a model gives each, or in the order that it names",
            reranked,
            {"retriever": Recipe("vss"), "form": Recipe("pointwise"), "k": 20},
        ),
    }
