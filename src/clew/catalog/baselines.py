"""The D3 paper's baselines and strategies for choosing paragraphs, as parts of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.catalog.parts import BuildContext, Params, Component

if TYPE_CHECKING:
    from clew.drill.packing import ContextWindow
    from clew.drill.paragraphs import PromptSelector, YesNoSelector, ParagraphSelector
    from clew.protocols import Retriever

#: The checkpoints of the paper (Section 4), or the nearest that are published.
MONOT5 = "castorini/monot5-base-msmarco-10k"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L-12-v2"
#: Tokens of the context of gpt-3.5-turbo when the paper was written, and of a chunk (Section 4).
CONTEXT, CHUNK = 4096, 3500


def context_window(context: int, most: int | None = None) -> ContextWindow:
    """Return the context of a model, its tokens counted by rule (:mod:`clew.models.tokens`)."""
    from clew.drill.packing import ContextWindow
    from clew.models.tokens import count_tokens, count_prompt_tokens

    return ContextWindow(count_tokens, count_prompt_tokens, context, most)


def base_selector(bench: BuildContext, context: int, who: str, most: int | None = None) -> PromptSelector:
    """Return BASE with the model of ``bench``. Raises UsageError where there is none."""
    from clew.drill.paragraphs import PromptSelector
    from clew.prompts import load_prompt

    return PromptSelector(bench.require_model(who), load_prompt("drill-paragraphs"), context_window(context, most))


def reranker_selector(name: str, keep: int | None = None) -> ParagraphSelector:
    """Return the strategy that keeps what the reranker ``name`` scores best."""
    from clew.drill.paragraphs import RerankerSelector
    from clew.models.rerankers import create_reranker

    return RerankerSelector(create_reranker(name), keep)


def _boolean(bench: BuildContext, options: Params) -> YesNoSelector:
    from clew.drill.paragraphs import YesNoSelector
    from clew.prompts import load_prompt

    model = bench.require_model(options.recipe.name)
    return YesNoSelector(model, load_prompt("drill-boolean"), context_window(options.count("context")))


def _over_all(bench: BuildContext, selector: ParagraphSelector) -> Retriever:
    from clew.drill.baselines import ExhaustiveRetriever

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
    from clew.drill.paragraphs import SelectorChain

    first = _chunks(bench, options) if "size" in dict(options.recipe.options) else _boolean(bench, options)
    return _over_all(bench, SelectorChain(first, base_selector(bench, options.count("context"), options.recipe.name)))


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
