"""The retrievers of the catalogue: the paper's baselines, and our own search."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from clew.catalog.baselines import BASELINES
from clew.catalog.drill import shelved
from clew.catalog.entities import over_nodes
from clew.catalog.parts import Bench, Options, Part, Shelf
from clew.catalog.recipe import Recipe
from clew.catalog.walks import WALKS
from clew.config import SERPAPI, web_search
from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.protocols import Retriever
    from clew.retrieve.web import SerpApi


def _search(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.evidence import Evidence

    encoder = bench.encoder if options.flag("meaning") else None
    return Evidence(bench.snapshot, encoder)


def _bm25(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.lexical import BM25

    return BM25(bench.snapshot, k1=options.number("k1"), b=options.number("b"))


def _tfidf(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.lexical import TfIdf

    return TfIdf(bench.snapshot)


def _dense(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.dense import Dense

    return Dense(bench.snapshot, bench.need_encoder("dense"))


def _twohop(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.twohop import TwoHop

    encoder = bench.need_encoder("twohop")
    return TwoHop(bench.snapshot, encoder, options.count("first"), options.count("then"))


def _knn(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.knn import KNN

    return KNN(bench.snapshot, bench.need_encoder("knn"))


def _hybrid(bench: Bench, options: Options) -> Retriever:
    from clew.retrieve.hybrid import Fusion

    parts = tuple(RETRIEVERS.build(options.part(key), bench) for key in ("a", "b"))
    return Fusion(parts, c=options.number("c"))


def _serpapi(bench: Bench, options: Options) -> Retriever:
    url, key = web_search()
    if key is None and url == SERPAPI:
        raise UsageError(f"'serpapi' needs a key for {url}", "Set CLEW_SERPAPI_KEY")
    return _web_search(url, key, options.number("timeout"))


@lru_cache(maxsize=4)
def _web_search(url: str, key: str | None, timeout: float) -> SerpApi:
    """Return the same object each time, so that what it was asked before in this process is not asked again."""
    from clew.retrieve.web import SerpApi

    return SerpApi(url, key, timeout)


RETRIEVERS: Shelf[Retriever] = Shelf(
    "retriever",
    {
        "search": Part(
            "passages and table rows by their words, their surroundings and their document's name, and by "
            "meaning where the base has an encoder",
            _search,
            {"meaning": True},
        ),
        "bm25": Part("Okapi BM25", _bm25, {"k1": 1.2, "b": 0.75}),
        "tfidf": Part("TF-IDF cosine", _tfidf),
        "dense": Part("nearest vectors (needs an encoder)", _dense),
        "twohop": Part(
            "pairs of passages by the product of two inner products, as MDR searches (needs an encoder)",
            _twohop,
            {"first": 15, "then": 3},
        ),
        "knn": Part("half by embedding, half by Levenshtein similarity (needs an encoder)", _knn),
        "hybrid": Part(
            "reciprocal rank fusion of two retrievers",
            _hybrid,
            {"a": Recipe("bm25"), "b": Recipe("dense"), "c": 60},
        ),
        "serpapi": Part(
            "a web search: questions are sent to SerpApi (key: CLEW_SERPAPI_KEY) or to CLEW_SERPAPI_URL",
            _serpapi,
            {"timeout": 20},
        ),
        **WALKS,
        **BASELINES,
        **shelved(lambda: RETRIEVERS),
        **over_nodes(lambda: RETRIEVERS),
    },
)
