"""The D3 paper's baselines and strategies for choosing paragraphs, as parts of the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from clew.core.component import BuildContext, Component, Params, Registry
from clew.core.config import SERPAPI_URL, web_search_endpoint
from clew.core.errors import UsageError, unknown_name_error
from clew.core.recipe import Recipe
from clew.knowledge_base.registry.web import require_local_retriever

if TYPE_CHECKING:
    from typing import Literal

    from clew.core.protocols import LanguageModel, Retriever
    from clew.core.recipe import Value
    from clew.core.types import Usage
    from clew.methods.d3.chooser import Chooser
    from clew.methods.d3.context_window import ContextWindow
    from clew.methods.d3.paragraphs import (
        HierarchicalSelector,
        ParagraphSelector,
        PromptSelector,
        YesNoSelector,
    )
    from clew.methods.d3.summaries import Summaries
    from clew.methods.d3.summarisers import ExtractiveSummariser, ModelSummariser
    from clew.retrieve.node_texts import NodeTexts
    from clew.retrieve.nodes import NodeVectorSearch, RankerFactory
    from clew.retrieve.reranking import HitReranker
    from clew.retrieve.web import SerpApi

#: The checkpoints of the paper (Section 4), or the nearest that are published.
MONOT5 = "castorini/monot5-base-msmarco-10k"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L-12-v2"
#: Tokens of the context of gpt-3.5-turbo when the paper was written, and of a chunk (Section 4).
CONTEXT, CHUNK = 4096, 3500


def context_window(context: int, most: int | None = None) -> ContextWindow:
    """Return the context of a model, its tokens counted by rule (:mod:`clew.models.costs`)."""
    from clew.methods.d3.context_window import ContextWindow
    from clew.models.costs import count_prompt_tokens, count_tokens

    return ContextWindow(count_tokens, count_prompt_tokens, context, most)


def base_selector(bench: BuildContext, context: int, who: str, most: int | None = None) -> PromptSelector:
    """Return BASE with the model of ``bench``. Raises UsageError where there is none."""
    from clew.core.prompts.templates import load_prompt
    from clew.methods.d3.paragraphs import PromptSelector

    return PromptSelector(
        bench.require_model(who), load_prompt("drill-paragraphs"), context_window(context, most)
    )


def reranker_selector(name: str, keep: int | None = None) -> ParagraphSelector:
    """Return the strategy that keeps what the reranker ``name`` scores best."""
    from clew.methods.d3.paragraphs import RerankerSelector
    from clew.models.rerankers import create_reranker

    return RerankerSelector(create_reranker(name), keep)


def _boolean(bench: BuildContext, options: Params) -> YesNoSelector:
    from clew.core.prompts.templates import load_prompt
    from clew.methods.d3.paragraphs import YesNoSelector

    model = bench.require_model(options.recipe.name)
    return YesNoSelector(model, load_prompt("drill-boolean"), context_window(options.count("context")))


def _over_all(bench: BuildContext, selector: ParagraphSelector) -> Retriever:
    from clew.methods.d3.paragraphs import ExhaustiveRetriever

    return ExhaustiveRetriever(bench.snapshot, selector)


def _reranker(bench: BuildContext, options: Params) -> Retriever:
    return _over_all(bench, reranker_selector(f"{options.recipe.name}:{options.text('model')}"))


def _paragraph(bench: BuildContext, options: Params) -> Retriever:
    return _over_all(bench, _boolean(bench, options))


def _chunks(bench: BuildContext, options: Params) -> PromptSelector:
    return base_selector(bench, options.count("context"), options.recipe.name, options.count("size"))


def _chunk(bench: BuildContext, options: Params) -> Retriever:
    return _over_all(bench, _chunks(bench, options))


def _map_reduce(bench: BuildContext, options: Params) -> Retriever:
    from clew.methods.d3.paragraphs import SelectorChain

    first = _chunks(bench, options) if "size" in dict(options.recipe.options) else _boolean(bench, options)
    return _over_all(
        bench, SelectorChain(first, base_selector(bench, options.count("context"), options.recipe.name))
    )


BASELINES: dict[str, Component[Retriever]] = {
    "monot5": Component("every passage scored by MonoT5 (extra local)", _reranker, {"model": MONOT5}),
    "cross-encoder": Component(
        "every passage scored by a cross-encoder (extra local)", _reranker, {"model": CROSS_ENCODER}
    ),
    "paragraph": Component(
        "a model is asked of every passage whether it is relevant", _paragraph, {"context": CONTEXT}
    ),
    "chunk": Component(
        "a model names the relevant passages of each chunk of a document",
        _chunk,
        {"size": CHUNK, "context": CONTEXT},
    ),
    "map-reduce": Component(
        "'paragraph', then the model chooses among what that found", _map_reduce, {"context": CONTEXT}
    ),
    "map-reduce-optimised": Component(
        "'chunk', then the model chooses among what that found",
        _map_reduce,
        {"size": CHUNK, "context": CONTEXT},
    ),
}

EXTRACTIVE = "extractive"
#: What people call summarisers.
SUMMARISERS = (EXTRACTIVE, "model", "local:facebook/bart-large-cnn")
#: Ways of choosing paragraphs.
PARAGRAPHS = (
    "auto",
    "base",
    "hierbase",
    "monot5",
    "base+monot5",
    "monot5+base",
    "cross-encoder",
    "encoder",
)
#: Paragraphs that a reranker keeps, and words of a paragraph's summary.
RERANKED_PARAGRAPHS, PARAGRAPH_WORDS = 10, 32
#: Tokens of a section that a summariser is given: bart-large's window less what the count by rule may miss.
BART_ROOM, MODEL_ROOM = 800, 3000


def extractive_summariser(bench: BuildContext, words: int) -> ExtractiveSummariser:
    """Return the extractive summariser, with the encoder of ``bench`` where it has one."""
    from clew.methods.d3.summarisers import ExtractiveSummariser

    return ExtractiveSummariser(words, bench.encoder)


def model_summariser(
    model: LanguageModel, words: int, local: bool, spent: Callable[[Usage], None] = lambda usage: None
) -> ModelSummariser:
    """Return the summariser that asks ``model``; ``local``: one made for summaries, which is given the text alone."""
    from clew.core.prompts.templates import load_prompt
    from clew.methods.d3.summarisers import ModelSummariser
    from clew.models.costs import count_tokens

    template = load_prompt("drill-text" if local else "drill-summarise")
    return ModelSummariser(model, template, words, BART_ROOM if local else MODEL_ROOM, count_tokens, spent)


def open_summaries(
    bench: BuildContext, summariser: str, words: int, spent: Callable[[Usage], None] = lambda usage: None
) -> Summaries:
    """Return the summaries of a summariser: ``extractive``, ``model`` (that of ``bench``) or ``local:NAME``.

    Raises UsageError for another name, and where there is no model.
    """
    from clew.methods.d3.summaries import Summaries

    made = Summaries(bench.snapshot, extractive_summariser(bench, words))
    if summariser == EXTRACTIVE or not words:
        return made
    if summariser == "model":
        return replace(
            made, summariser=model_summariser(bench.require_model("summariser=model"), words, False, spent)
        )
    if summariser.startswith("local:"):
        from clew.models import create_language_model

        return replace(
            made, summariser=model_summariser(create_language_model(summariser), words, True, spent)
        )
    raise unknown_name_error("summariser", summariser, SUMMARISERS)


def make_summaries(recipe: Recipe, bench: BuildContext) -> None:
    """Make the summaries that a recipe shows and that are not made when they are asked for. Raises ModelError."""
    from clew.methods.d3.outline import Outlines

    for part in (value for _, value in recipe.options if isinstance(value, Recipe)):
        make_summaries(part, bench)
    if recipe.name not in D3_RETRIEVERS:
        return
    options = {**(_PAPER if recipe.name == "drill-paper" else _DRILL), **dict(recipe.options)}
    name, words = str(options["summariser"]), options["words"]
    if name == EXTRACTIVE or not isinstance(words, int) or not words:
        return
    outlines = Outlines(bench.snapshot, bench.encoder)
    sections = [one for document in bench.snapshot.documents() for one in outlines.of(document.key).sections]
    open_summaries(bench, name, words).make(sections)


def _chooser(bench: BuildContext, options: Params, prompt: str) -> Chooser | None:
    """Return what asks the model, or None where there is none."""
    from clew.core.prompts.templates import load_prompt
    from clew.methods.d3.chooser import Chooser

    chosen = options.word("names", ("headings", "uuid"))
    if bench.model is None:
        return None
    form: Literal["paper", "numbered"] = "paper" if prompt == "drill-paper" else "numbered"
    # The ablation of Table 4 is about sections: a document keeps its name.
    hidden = chosen == "uuid" and prompt != "drill-documents"
    names: Literal["headings", "uuid"] = "uuid" if hidden else "headings"
    return Chooser(
        bench.model,
        load_prompt(prompt),
        context_window(options.count("context")),
        form=form,
        condense=form == "numbered",
        names=names,
        calls=None if options.recipe.option("calls") is None else options.count("calls"),
    )


def _selector(bench: BuildContext, options: Params) -> ParagraphSelector | None:
    """Return the strategy for paragraphs (D3, Section 3.3.2); None ranks them by search and encoder."""
    from clew.methods.d3.paragraphs import SelectorChain

    name = options.word("paragraphs", PARAGRAPHS)
    if name == "auto":
        name = "base" if bench.model is not None else "encoder"
    who, context = options.recipe.name, options.count("context")

    def monot5() -> ParagraphSelector:
        return reranker_selector(f"monot5:{options.text('monot5')}", RERANKED_PARAGRAPHS)

    if name == "encoder":
        return None
    if name == "base":
        return base_selector(bench, context, who)
    if name == "hierbase":
        return _hierbase(bench, context, who)
    if name == "monot5":
        return monot5()
    if name == "base+monot5":
        return SelectorChain(base_selector(bench, context, who), monot5())
    if name == "monot5+base":
        return SelectorChain(monot5(), base_selector(bench, context, who))
    return reranker_selector(f"cross-encoder:{options.text('cross-encoder')}", RERANKED_PARAGRAPHS)


def _hierbase(bench: BuildContext, context: int, who: str) -> HierarchicalSelector:
    from clew.methods.d3.paragraphs import HierarchicalSelector
    from clew.methods.d3.summarisers import SectionText

    short = extractive_summariser(bench, PARAGRAPH_WORDS)
    return HierarchicalSelector(
        base_selector(bench, context, who),
        lambda nodes: short.summarise([SectionText(node.name, (node.text,)) for node in nodes]),
    )


def d3_retrievers(retrievers: Callable[[], Registry[Retriever]]) -> dict[str, Component[Retriever]]:
    """Return the parts; ``retrievers`` gives the shelf on which the search that they use stands."""

    def drill(bench: BuildContext, options: Params) -> Retriever:
        from clew.methods.d3.method import Drill
        from clew.methods.d3.outline import Outlines
        from clew.methods.d3.scoring import SectionScorer
        from clew.methods.d3.summaries import DocumentSummaries

        paper = options.recipe.name == "drill-paper"
        if paper:
            bench.require_model("drill-paper")
        search = options.component("search")
        if search.name in D3_RETRIEVERS:
            raise UsageError(f"'{options.recipe.name}' cannot search with '{search.name}'", "search=search")
        require_local_retriever(search, options.recipe.name, "search=search")
        outlines = Outlines(bench.snapshot, bench.encoder, pages=options.flag("pages"))
        made = open_summaries(bench, options.text("summariser"), options.count("words", 0))
        return Drill(
            bench.snapshot,
            retrievers().build(search, bench),
            outlines,
            made,
            DocumentSummaries(bench.snapshot, outlines, made),
            SectionScorer(bench.snapshot, made, bench.encoder),
            chooser=_chooser(bench, options, "drill-paper" if paper else "drill-sections"),
            librarian=_chooser(bench, options, "drill-documents"),
            selector=_selector(bench, options),
            documents=options.count("documents"),
            shown=options.count("shown"),
            sections=options.count("sections"),
            hints=options.count("hints", 0),
            tables=not paper,
        )

    return {
        "drill": Component(
            "down into the structure: a model chooses documents, then sections, by name and summary, then "
            "paragraphs; without a model by score",
            drill,
            _DRILL,
        ),
        "drill-paper": Component(
            "D3 as the paper has it: its prompt, the whole outline, summaries of bart-large-cnn, no hints",
            drill,
            _PAPER,
        ),
    }


D3_RETRIEVERS = ("drill", "drill-paper")
_DRILL: dict[str, Value] = {
    "search": Recipe("search"),
    "documents": 3,
    "shown": 20,
    "sections": 5,
    "paragraphs": Recipe("auto"),
    "summariser": Recipe(EXTRACTIVE),
    "words": 64,
    "context": 16_384,
    "calls": None,
    "hints": 5,
    "names": Recipe("headings"),
    "pages": False,
    "monot5": MONOT5,
    "cross-encoder": CROSS_ENCODER,
}
_PAPER: dict[str, Value] = {
    **_DRILL,
    "paragraphs": Recipe("base"),
    "summariser": "local:facebook/bart-large-cnn",
    "words": 142,
    "context": CONTEXT,
    "hints": 0,
}

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


def build_node_search(
    bench: BuildContext, who: str, texts: NodeTexts, cap: int | None = None
) -> NodeVectorSearch:
    """Return the search by vector over the nodes of a graph. Raises UsageError where there is no encoder."""
    from clew.retrieve.nodes import EMBEDDING_CAP, NodeVectorSearch

    return NodeVectorSearch(bench.require_encoder(who), texts, EMBEDDING_CAP if cap is None else cap)


def build_hit_reranker(bench: BuildContext, form: str, k_max: int, who: str = "reranked") -> HitReranker:
    """Return the reranker of a form, ``pointwise`` or ``listwise``. Raises UsageError where there is no model."""
    from clew.core.prompts.templates import load_prompt
    from clew.retrieve.reranking import ListwiseReranker, PointwiseReranker

    model = bench.require_model(who)
    if form == "listwise":
        return ListwiseReranker(model, load_prompt("focus-rerank-list"), k_max)
    return PointwiseReranker(model, load_prompt("focus-rerank"), k_max)


def _over_nodes(bench: BuildContext, options: Params, ranking: RankerFactory) -> Retriever:
    from clew.retrieve.nodes import NodeRetriever

    types, graphs = (
        tuple(one.strip() for one in options.text(key).split("|") if one.strip())
        for key in ("types", "graphs")
    )
    return NodeRetriever(bench.snapshot, options.recipe.name, ranking, types, graphs)


def _vss(bench: BuildContext, options: Params) -> Retriever:
    bench.require_encoder(options.recipe.name)
    cap = options.count("cap")
    return _over_nodes(
        bench, options, lambda texts: build_node_search(bench, options.recipe.name, texts, cap)
    )


def _multi_vss(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.nodes import NodeChunkSearch

    bench.require_encoder(options.recipe.name)
    cap, first, top = options.count("cap"), options.count("first"), options.count("top")
    return _over_nodes(
        bench,
        options,
        lambda texts: NodeChunkSearch(build_node_search(bench, options.recipe.name, texts, cap), first, top),
    )


def _bm25(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.nodes import NodeBM25

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


KGP_OPTIONS: dict[str, Value] = {
    "graph": Recipe("mentions"),
    "guide": Recipe("residual"),
    "seeding": Recipe("search"),
    "reader": Recipe("auto"),
    "structures": True,
    "seeds": 10,
    "branch": 3,
    "hops": 2,
    "budget": 30,
    "prior": 1.0,
    "beyond": 100,
    "sharpness": 8,
    "context": Recipe("passages"),
}
KGP_PAPER: dict[str, Value] = {
    **KGP_OPTIONS,
    "graph": Recipe("keywords"),
    "guide": Recipe("question"),
    "seeding": Recipe("tfidf"),
    "prior": None,
    "sharpness": None,
    "context": Recipe("paths"),
}


def _kgp(bench: BuildContext, options: Params) -> Retriever:
    from clew.knowledge_base.registry.methods import build_kgp

    return build_kgp(bench, options)


def _kgp_paper(bench: BuildContext, options: Params) -> Retriever:
    from clew.knowledge_base.registry.methods import build_kgp_paper

    return build_kgp_paper(bench, options)


WALKS: dict[str, Component[Retriever]] = {
    "kgp": Component("the passages of Knowledge Graph Prompting's walk, likeliest first", _kgp, KGP_OPTIONS),
    "kgp-paper": Component("the same walk as the paper has it", _kgp_paper, KGP_PAPER),
}


def _search(bench: BuildContext, options: Params) -> Retriever:
    from clew.retrieve.contextual import ContextualSearch

    encoder = bench.encoder if options.flag("meaning") else None
    return ContextualSearch(bench.snapshot, encoder)


def _bm25_retrievers(bench: BuildContext, options: Params) -> Retriever:
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
        "bm25": Component("Okapi BM25", _bm25_retrievers, {"k1": 1.2, "b": 0.75}),
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

# MERGED: The retriever ``drill``, its paper's setting, and the summaries that both show.
# MERGED: The retrievers over the nodes of graphs, as parts of the catalogue: STaRK's baselines.
# MERGED: The options of the walks of Knowledge Graph Prompting, and the walks as retrievers.
# MERGED: The retrievers of the catalogue: the paper's baselines, and our own search.
