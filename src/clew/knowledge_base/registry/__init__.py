"""Names to parts: the only place that builds concrete things.

A recipe (:mod:`clew.core.recipe`) names a method with its parts and parameters; ``default`` is the one
that measures best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.component import BuildContext
    from clew.core.protocols import Encoder, Graph, LanguageModel, Method, Reader, Retriever, SnapshotSource
    from clew.core.recipe import Recipe
    from clew.core.types import Exclusion, Question
    from clew.models.wrappers import Budget


def build_method(
    recipe: str,
    base: SnapshotSource,
    *,
    llm: LanguageModel | None = None,
    encoder: Encoder | None = None,
) -> Method:
    """Return the method that ``recipe`` names, over the base as it is now. Raises UsageError."""
    from clew.knowledge_base.registry.methods import METHODS

    return METHODS.build(_named(recipe), _bench(base, llm, encoder))


def explain_exclusions(
    base: SnapshotSource,
    question: Question,
    name: str,
    *,
    recipe: str = "focus",
    encoder: Encoder | None = None,
) -> list[Exclusion]:
    """Return for what ``name`` may stand for why it is no answer to a question with triples of its own.

    Raises UsageError for a recipe that is not of ``focus``, NotFound where no graph has anything called so.
    """
    from clew.knowledge_base.registry.methods import focus_exclusions

    return focus_exclusions(_bench(base, None, encoder), _named(recipe), question, name)


def build_retriever(
    recipe: str,
    base: SnapshotSource,
    *,
    llm: LanguageModel | None = None,
    encoder: Encoder | None = None,
) -> Retriever:
    """Return a retriever by name. Raises UsageError."""
    from clew.core.errors import UsageError
    from clew.knowledge_base.registry.methods import METHODS
    from clew.knowledge_base.registry.retrievers import RETRIEVERS

    named = _named(recipe)
    if named.name in METHODS.components and named.name not in RETRIEVERS.components:
        raise UsageError(f"'{named.name}' answers, it does not search", "Name a retriever: clew recipes")
    return RETRIEVERS.build(named, _bench(base, llm, encoder))


def replace_retriever(recipe: str, retriever: str) -> str:
    """Return a recipe with its retriever replaced; for the default, which has none, what reads the retriever's hits.

    Raises UsageError for a recipe that has no retriever.
    """
    from clew.core.errors import UsageError, unknown_name_error
    from clew.core.recipe import Recipe, parse_recipe
    from clew.knowledge_base.registry.methods import DEFAULT, METHODS

    named = _named(recipe)
    if named == DEFAULT:
        named = Recipe("read")
    if named.name not in METHODS.components:
        raise unknown_name_error("recipe", named.name, METHODS.components)
    if "retriever" not in METHODS.components[named.name].options:
        takers = [name for name, part in METHODS.components.items() if "retriever" in part.options]
        raise UsageError(
            f"'{named.name}' has no retriever to replace", f"These have one: {', '.join(takers)}"
        )
    return str(named.with_options(retriever=parse_recipe(retriever)))


def build_reader(
    recipe: str, base: SnapshotSource, *, llm: LanguageModel | None = None, encoder: Encoder | None = None
) -> Reader:
    """Return the reader that ``recipe`` names. Raises UsageError."""
    from clew.core.recipe import parse_recipe
    from clew.knowledge_base.registry.methods import READERS

    return READERS.build(parse_recipe(recipe), _bench(base, llm, encoder))


def build_graph(recipe: str, base: SnapshotSource, *, encoder: Encoder | None = None) -> Graph:
    """Return the graph that ``recipe`` names. Raises UsageError."""
    from clew.core.recipe import parse_recipe
    from clew.knowledge_base.registry.graphs import GRAPHS

    return GRAPHS.build(parse_recipe(recipe), _bench(base, None, encoder))


def describe_components() -> dict[str, dict[str, tuple[str, str]]]:
    """Return every part by kind and name: what it is for, and its recipe with all defaults."""
    from clew.core.component import Registry
    from clew.core.recipe import make_recipe
    from clew.knowledge_base.registry.graphs import GRAPHS
    from clew.knowledge_base.registry.methods import METHODS, READERS
    from clew.knowledge_base.registry.retrievers import RETRIEVERS

    shelves: dict[str, Registry[object]] = {
        "recipe": METHODS,
        "retriever": RETRIEVERS,
        "graph": GRAPHS,
        "reader": READERS,
    }
    return {
        kind: {
            name: (part.summary, str(make_recipe(name, part.options)))
            for name, part in shelf.components.items()
        }
        for kind, shelf in shelves.items()
    }


def load_language_model(
    name: str,
    *,
    cache: bool = False,
    charged: bool = False,
    budget: Budget | None = None,
    record: str | Path | None = None,
) -> LanguageModel:
    """Return the language model that ``name`` names, or one per role (:func:`clew.models.create_language_model`)."""
    from clew.models import create_language_model as make

    return make(name, cache=cache, charge_cached=charged, budget=budget, record=record)


def load_encoder(name: str, *, remember: bool = False) -> Encoder:
    """Return the encoder that ``name`` names; one to ``remember`` reads each passage once in this process.

    Raises UsageError, MissingExtra.
    """
    from clew.models import create_encoder as make
    from clew.models.encoders import RememberingEncoder

    return RememberingEncoder(make(name)) if remember else make(name)


def _named(recipe: str) -> Recipe:
    from clew.core.recipe import parse_recipe
    from clew.knowledge_base.registry.methods import DEFAULT

    return DEFAULT if recipe.strip() == "default" else parse_recipe(recipe)


def _bench(base: SnapshotSource, llm: LanguageModel | None, encoder: Encoder | None) -> BuildContext:
    from clew.core.component import BuildContext

    return BuildContext(base.snapshot(), llm, encoder)
