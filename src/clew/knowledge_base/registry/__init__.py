"""Recipes become methods, retrievers, readers and graphs: the one place that builds them from their names.

Each class declares itself (:mod:`clew.core.component`); :mod:`clew.knowledge_base.registry.index` says which module
declares which component. ``default`` names the method that measures best.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clew.core.component import Component, Resources
from clew.core.config import web_search_endpoint
from clew.core.errors import UsageError
from clew.core.recipe import Recipe, parse_recipe
from clew.knowledge_base.registry.components import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.protocols import (
        Encoder,
        Graph,
        LanguageModel,
        Method,
        Prompt,
        Reader,
        Reranker,
        Retriever,
        SnapshotSource,
    )
    from clew.core.types import Exclusion, Hit, Question
    from clew.models.wrappers import Budget

#: What measures best on the data that we develop on (docs/benchmarks.md).
DEFAULT_METHOD = Recipe("kgp")


def build_method(
    recipe: str,
    base: SnapshotSource,
    *,
    llm: LanguageModel | None = None,
    encoder: Encoder | None = None,
) -> Method:
    """Return the method that ``recipe`` names, over the base as it is now. Raises UsageError, PluginError."""
    method: Method = REGISTRY.build("recipe", _parse(recipe), open_resources(base, llm, encoder))
    return method


def build_golden(recipe: str, resources: Resources, hits: Sequence[Hit]) -> Method:
    """Return the method that reads ``hits``, which an evaluation knows to be the gold evidence."""
    from clew.methods.baselines.plain import Golden

    reader, complete = resources.choose_reader(REGISTRY.complete("recipe", parse_recipe(recipe)))
    return Golden(hits, reader, str(complete))


def build_retriever(
    recipe: str,
    base: SnapshotSource,
    *,
    llm: LanguageModel | None = None,
    encoder: Encoder | None = None,
) -> Retriever:
    """Return the retriever that ``recipe`` names, over the base as it is now. Raises UsageError, PluginError."""
    parsed = _parse(recipe)
    if parsed.name in REGISTRY.names("recipe") and parsed.name not in REGISTRY.names("retriever"):
        raise UsageError(f"'{parsed.name}' answers, it does not search", "Name a retriever: clew recipes")
    return open_resources(base, llm, encoder).retriever(parsed)


def build_reader(
    recipe: str, base: SnapshotSource, *, llm: LanguageModel | None = None, encoder: Encoder | None = None
) -> Reader:
    """Return the reader that ``recipe`` names. Raises UsageError, PluginError."""
    return open_resources(base, llm, encoder).reader(parse_recipe(recipe))


def build_graph(recipe: str, base: SnapshotSource, *, encoder: Encoder | None = None) -> Graph:
    """Return the passage graph that ``recipe`` names. Raises UsageError, PluginError."""
    return open_resources(base, None, encoder).graph(parse_recipe(recipe))


def explain_exclusions(
    base: SnapshotSource,
    question: Question,
    name: str,
    *,
    recipe: str = "focus",
    encoder: Encoder | None = None,
) -> list[Exclusion]:
    """Return for each node that ``name`` may stand for why it is no answer to a question with triples of its own.

    No model is asked. Raises UsageError for a recipe that is not of ``focus``, NotFound where no graph has anything
    called so.
    """
    from clew.methods.focus.method import FocusMethod
    from clew.triples.linking.entities import GraphEntityLinker

    parsed = _parse(recipe)
    if parsed.name != "focus":
        raise UsageError(
            f"'{parsed.name}' has no constraints that drop an answer", "Only focus has: --triples"
        )
    without_model = parsed.with_options(
        entities=Recipe("ranked"), form=Recipe("none"), reader=Recipe("short")
    )
    method: FocusMethod = REGISTRY.build("recipe", without_model, open_resources(base, None, encoder))
    return method.why_not(question, name, GraphEntityLinker(encoder))


def replace_retriever(recipe: str, retriever: str) -> str:
    """Return a recipe with another retriever; for the default, which has none, the recipe that reads its hits.

    Raises UsageError for a recipe that has no retriever.
    """
    parsed = _parse(recipe)
    if parsed == DEFAULT_METHOD:
        parsed = Recipe("read")
    if "retriever" not in REGISTRY.component("recipe", parsed.name).options:
        methods = (REGISTRY.component("recipe", name) for name in REGISTRY.names("recipe"))
        takers = [method.name for method in methods if "retriever" in method.options]
        raise UsageError(
            f"'{parsed.name}' has no retriever to replace", f"These have one: {', '.join(takers)}"
        )
    return str(parsed.with_options(retriever=parse_recipe(retriever)))


def describe_components() -> dict[str, dict[str, Component]]:
    """Return every component by kind and name, those of plug-ins last. A plug-in that cannot be loaded is left out:
    :func:`plugin_problems` names it."""
    return {kind: REGISTRY.components(kind) for kind in ("recipe", "retriever", "graph", "reader")}


def plugin_problems() -> list[str]:
    """Return for each plug-in that cannot be used which it is, and why."""
    return REGISTRY.plugin_problems()


def open_resources(
    base: SnapshotSource, model: LanguageModel | None = None, encoder: Encoder | None = None
) -> Resources:
    """Return what components are built from: the base as it is now, and the models."""
    return Resources(base.snapshot(), REGISTRY, _Models(), model, encoder)


def load_language_model(
    name: str,
    *,
    cache: bool = False,
    charged: bool = False,
    budget: Budget | None = None,
    record: str | Path | None = None,
) -> LanguageModel:
    """Return the language model that ``name`` names, or one per role (:func:`clew.models.create_language_model`)."""
    from clew.models import create_language_model

    return create_language_model(name, cache=cache, charge_cached=charged, budget=budget, record=record)


def load_encoder(name: str, *, remember: bool = False) -> Encoder:
    """Return the encoder that ``name`` names; one to ``remember`` reads each passage once in this process.

    Raises UsageError, MissingExtra.
    """
    from clew.models import create_encoder
    from clew.models.encoders import RememberingEncoder

    return RememberingEncoder(create_encoder(name)) if remember else create_encoder(name)


def searches_web(recipe: Recipe) -> bool:
    """Return whether a recipe, or any recipe in its options, searches the web."""
    return REGISTRY.has_trait(recipe, "web")


def ranks_nodes(recipe: Recipe) -> bool:
    """Return whether a recipe ranks nodes of graphs, about which a model may then be asked."""
    return REGISTRY.has_trait(recipe, "ranks-nodes")


def embeds_nodes(recipe: Recipe) -> bool:
    """Return whether a recipe gives texts of nodes to the encoder."""
    return REGISTRY.has_trait(recipe, "embeds-nodes")


def web_destination() -> str:
    """Return the address that web searches go to; "" where it is this machine."""
    from clew.models.endpoint import is_loopback

    url, _ = web_search_endpoint()
    parts = urlsplit(url)
    return "" if is_loopback(url) else f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _parse(recipe: str) -> Recipe:
    return DEFAULT_METHOD if recipe.strip() == "default" else parse_recipe(recipe)


class _Models:
    """:class:`clew.core.component.ModelTools`: models are imported when they are named."""

    def language_model(self, name: str) -> LanguageModel:
        from clew.models import create_language_model

        return create_language_model(name)

    def reranker(self, name: str) -> Reranker:
        from clew.models.rerankers import create_reranker

        return create_reranker(name)

    def count_tokens(self, text: str) -> int:
        from clew.models.costs import count_tokens

        return count_tokens(text)

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        from clew.models.costs import count_prompt_tokens

        return count_prompt_tokens(prompt)
