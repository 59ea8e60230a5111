"""The D3 paper's baselines and strategies for choosing paragraphs, as parts of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.catalog.parts import Bench, Options, Part

if TYPE_CHECKING:
    from clew.drill.packing import Window
    from clew.drill.paragraphs import Base, Boolean, ParagraphSelector
    from clew.protocols import Retriever

#: The checkpoints of the paper (Section 4), or the nearest that are published.
MONOT5 = "castorini/monot5-base-msmarco-10k"
CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L-12-v2"
#: Tokens of the context of gpt-3.5-turbo when the paper was written, and of a chunk (Section 4).
CONTEXT, CHUNK = 4096, 3500


def window(context: int, most: int | None = None) -> Window:
    """Return the context of a model, its tokens counted by rule (:mod:`clew.models.tokens`)."""
    from clew.drill.packing import Window
    from clew.models.tokens import count, tokens_in

    return Window(count, tokens_in, context, most)


def base(bench: Bench, context: int, who: str, most: int | None = None) -> Base:
    """Return BASE with the model of ``bench``. Raises UsageError where there is none."""
    from clew.drill.paragraphs import Base
    from clew.prompts import load

    return Base(bench.need_model(who), load("drill-paragraphs"), window(context, most))


def reranked(name: str, keep: int | None = None) -> ParagraphSelector:
    """Return the strategy that keeps what the reranker ``name`` scores best."""
    from clew.drill.paragraphs import Reranked
    from clew.models.rerankers import reranker

    return Reranked(reranker(name), keep)


def _boolean(bench: Bench, options: Options) -> Boolean:
    from clew.drill.paragraphs import Boolean
    from clew.prompts import load

    model = bench.need_model(options.recipe.name)
    return Boolean(model, load("drill-boolean"), window(options.count("context")))


def _over_all(bench: Bench, selector: ParagraphSelector) -> Retriever:
    from clew.drill.baselines import Exhaustive

    return Exhaustive(bench.snapshot, selector)


def _reranker(bench: Bench, options: Options) -> Retriever:
    return _over_all(bench, reranked(f"{options.recipe.name}:{options.text('model')}"))


def _paragraph(bench: Bench, options: Options) -> Retriever:
    return _over_all(bench, _boolean(bench, options))


def _chunks(bench: Bench, options: Options) -> Base:
    return base(bench, options.count("context"), options.recipe.name, options.count("size"))


def _chunk(bench: Bench, options: Options) -> Retriever:
    return _over_all(bench, _chunks(bench, options))


def _map_reduce(bench: Bench, options: Options) -> Retriever:
    from clew.drill.paragraphs import Chained

    first = _chunks(bench, options) if "size" in dict(options.recipe.options) else _boolean(bench, options)
    return _over_all(bench, Chained(first, base(bench, options.count("context"), options.recipe.name)))


BASELINES: dict[str, Part[Retriever]] = {
    "monot5": Part("every passage scored by MonoT5 (extra local)", _reranker, {"model": MONOT5}),
    "cross-encoder": Part(
        "every passage scored by a cross-encoder (extra local)", _reranker, {"model": CROSS_ENCODER}
    ),
    "paragraph": Part(
        "a model is asked of every passage whether it is relevant", _paragraph, {"context": CONTEXT}
    ),
    "chunk": Part(
        "a model names the relevant passages of each chunk of a document",
        _chunk,
        {"size": CHUNK, "context": CONTEXT},
    ),
    "map-reduce": Part(
        "'paragraph', then the model chooses among what that found", _map_reduce, {"context": CONTEXT}
    ),
    "map-reduce-optimised": Part(
        "'chunk', then the model chooses among what that found",
        _map_reduce,
        {"size": CHUNK, "context": CONTEXT},
    ),
}
