"""The retrievers of the catalogue: the paper's baselines, and our own search."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from clew.catalog.baselines import BASELINES
from clew.catalog.drill import d3_retrievers
from clew.catalog.entities import node_retrievers
from clew.catalog.parts import BuildContext, Params, Component, Registry
from clew.catalog.recipe import Recipe
from clew.catalog.walks import WALKS
from clew.config import SERPAPI_URL, web_search_endpoint
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.protocols import Retriever
    from clew.retrieve.web import SerpApi


def _search(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.evidence import ContextualSearch

    encoder = bench.encoder if options.flag("meaning") else None
    return ContextualSearch(bench.snapshot, encoder)


def _bm25(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.lexical import BM25

    return BM25(bench.snapshot, k1=options.number("k1"), b=options.number("b"))


def _tfidf(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.lexical import TfIdf

    return TfIdf(bench.snapshot)


def _dense(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.dense import DenseSearch

    return DenseSearch(bench.snapshot, bench.require_encoder("dense"))


def _twohop(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.twohop import TwoHopSearch

    encoder = bench.require_encoder("twohop")
    return TwoHopSearch(bench.snapshot, encoder, options.count("first"), options.count("then"))


def _knn(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.knn import KnnSearch

    return KnnSearch(bench.snapshot, bench.require_encoder("knn"))


def _hybrid(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.hybrid import HybridSearch

    parts = tuple(RETRIEVERS.build(options.component(key), bench) for key in ("a", "b"))
    return HybridSearch(parts, c=options.number("c"))


def _serpapi(bench: BuildContext, options: Params) -> Retriever:
    url, key = web_search_endpoint()
    if key is None and url == SERPAPI_URL:
        raise UsageError(f"'serpapi' needs a key for {url}", "Set CLEW_SERPAPI_KEY")
    return _web_search(url, key, options.number("timeout"))


@lru_cache(maxsize=4)
def _web_search(url: str, key: str | None, timeout: float) -> SerpApi:
    """Return the same object each time, so that what it was asked before in this process is not asked again."""
    from clew.retrieve.web import SerpApi

    return SerpApi(url, key, timeout)


RETRIEVERS: Registry[Retriever] = Registry(
    "retriever",
    {
        "search": Component(
            "passages and table rows by their words, their surroundings and their document's name, and by "
            "meaning where the base has an encoder",
            _search,
            {"meaning": True},
        ),
        "bm25": Component("Okapi BM25", _bm25, {"k1": 1.2, "b": 0.75}),
        "tfidf": Component("TF-IDF cosine", _tfidf),
        "dense": Component("nearest vectors (needs an encoder)", _dense),
        "twohop": Component(
            "pairs of passages by the product of two inner products, as MDR searches (needs an encoder)",
            _twohop,
            {"first": 15, "then": 3},
        ),
        "knn": Component("half by embedding, half by Levenshtein similarity (needs an encoder)", _knn),
        "hybrid": Component(
            "reciprocal rank fusion of two retrievers",
            _hybrid,
            {"a": Recipe("bm25"), "b": Recipe("dense"), "c": 60},
        ),
        "serpapi": Component(
            "a web search: questions are sent to SerpApi (key: CLEW_SERPAPI_KEY) or to CLEW_SERPAPI_URL",
            _serpapi,
            {"timeout": 20},
        ),
        **WALKS,
        **BASELINES,
        **d3_retrievers(lambda: RETRIEVERS),
        **node_retrievers(lambda: RETRIEVERS),
    },
)
