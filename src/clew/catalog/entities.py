"""The retrievers over the nodes of graphs, as parts of the catalogue: STaRK's baselines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.catalog.parts import BuildContext, Params, Component, Registry
from clew.catalog.recipe import Recipe

if TYPE_CHECKING:
    from clew.catalog.recipe import Value
    from clew.protocols import Retriever
    from clew.retrieve.entities import NodeVectorSearch, RankerFactory
    from clew.retrieve.nodetexts import NodeTexts
    from clew.retrieve.reranking import HitReranker

RERANKERS = ("pointwise", "listwise")
#: What sends texts of nodes to the encoder; an entry of the catalogue whose default part is one of them is one, too.
EMBEDDING_COMPONENTS = ("vss", "multi-vss", "focus")
#: Options of every retriever over nodes: graphs and types by name, ``a|b`` for several, "" for what is declared.
_WHERE: dict[str, Value] = {"graphs": "", "types": ""}


def ranks_nodes(recipe: Recipe) -> bool:
    """Return whether a recipe, or any part of it, ranks nodes of graphs, about which a model may then be asked."""
    parts = (value for _, value in recipe.options if isinstance(value, Recipe))
    return recipe.name in (*EMBEDDING_COMPONENTS, "bm25-nodes", "reranked") or any(map(ranks_nodes, parts))


def embeds_nodes(recipe: Recipe) -> bool:
    """Return whether a recipe, or any part of it, gives texts of nodes to the encoder."""
    if recipe.name == "reranked" and recipe.option("retriever") is None:
        return True
    parts = (value for _, value in recipe.options if isinstance(value, Recipe))
    return recipe.name in EMBEDDING_COMPONENTS or any(map(embeds_nodes, parts))


def build_node_search(bench: BuildContext, who: str, texts: NodeTexts, cap: int | None = None) -> NodeVectorSearch:
    """Return the search by vector over the nodes of a graph. Raises UsageError where there is no encoder."""
    from clew.retrieve.entities import EMBEDDING_CAP, NodeVectorSearch

    return NodeVectorSearch(bench.require_encoder(who), texts, EMBEDDING_CAP if cap is None else cap)


def build_hit_reranker(bench: BuildContext, form: str, k_max: int, who: str = "reranked") -> HitReranker:
    """Return the reranker of a form, ``pointwise`` or ``listwise``. Raises UsageError where there is no model."""
    from clew.prompts import load_prompt
    from clew.retrieve.reranking import ListwiseReranker, PointwiseReranker

    model = bench.require_model(who)
    if form == "listwise":
        return ListwiseReranker(model, load_prompt("focus-rerank-list"), k_max)
    return PointwiseReranker(model, load_prompt("focus-rerank"), k_max)


def _over_nodes(bench: BuildContext, options: Params, ranking: RankerFactory) -> Retriever:
    from clew.retrieve.entities import NodeRetriever

    types, graphs = (
        tuple(one.strip() for one in options.text(key).split("|") if one.strip())
        for key in ("types", "graphs")
    )
    return NodeRetriever(bench.snapshot, options.recipe.name, ranking, types, graphs)


def _vss(bench: BuildContext, options: Params) -> Retriever:
    bench.require_encoder(options.recipe.name)
    cap = options.count("cap")
    return _over_nodes(bench, options, lambda texts: build_node_search(bench, options.recipe.name, texts, cap))


def _multi_vss(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.entities import NodeChunkSearch

    bench.require_encoder(options.recipe.name)
    cap, first, top = options.count("cap"), options.count("first"), options.count("top")
    return _over_nodes(
        bench,
        options,
        lambda texts: NodeChunkSearch(build_node_search(bench, options.recipe.name, texts, cap), first, top),
    )


def _bm25(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.entities import NodeBM25

    k1, b = options.number("k1"), options.number("b")
    return _over_nodes(bench, options, lambda texts: NodeBM25(texts, k1, b))


def node_retrievers(shelf: Callable[[], Registry[Retriever]]) -> dict[str, Component[Retriever]]:
    """Return the parts; ``shelf`` gives the retrievers that ``reranked`` takes."""

    def reranked(bench: BuildContext, options: Params) -> Retriever:
        from clew.retrieve.reranking import RerankedSearch

        form, k_max = options.word("form", RERANKERS), options.count("k")
        reranker = build_hit_reranker(bench, form, k_max, options.recipe.name)
        return RerankedSearch(shelf().build(options.component("retriever"), bench), reranker, k_max)

    return {
        "vss": Component(
            "nodes of graphs by the vector of their text and relations (needs an encoder)",
            _vss,
            {**_WHERE, "cap": 500},
        ),
        "multi-vss": Component(
            "nodes of graphs by the vectors of the chunks of their text and relations (needs an encoder)",
            _multi_vss,
            {**_WHERE, "cap": 500, "first": 50, "top": 3},
        ),
        "bm25-nodes": Component(
            "nodes of graphs by the words of their text and relations (Okapi BM25)",
            _bm25,
            {**_WHERE, "k1": 1.2, "b": 0.75},
        ),
        "reranked": Component(
            "the first k hits of a retriever, by the score that a model gives each, or in the order that it names",
            reranked,
            {"retriever": Recipe("vss"), "form": Recipe("pointwise"), "k": 20},
        ),
    }
