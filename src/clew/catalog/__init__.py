"""Names to parts: the only place that builds concrete things.

A recipe (:mod:`clew.catalog.recipe`) names a method with its parts and parameters; ``default`` is the one
that measures best.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from clew.catalog.parts import Bench
    from clew.catalog.recipe import Recipe
    from clew.models.budgeted import Budget
    from clew.protocols import Encoder, Graph, LanguageModel, Method, Reader, Retriever, Snapshots
    from clew.types import Exclusion, Question


def method(
    recipe: str,
    base: Snapshots,
    *,
    llm: LanguageModel | None = None,
    encoder: Encoder | None = None,
) -> Method:
    """Return the method that ``recipe`` names, over the base as it is now. Raises UsageError."""
    from clew.catalog.methods import METHODS

    return METHODS.build(_named(recipe), _bench(base, llm, encoder))


def why_not(
    base: Snapshots, question: Question, name: str, *, recipe: str = "focus", encoder: Encoder | None = None
) -> list[Exclusion]:
    """Return for what ``name`` may stand for why it is no answer to a question with triples of its own.

    Raises UsageError for a recipe that is not of ``focus``, NotFound where no graph has anything called so.
    """
    from clew.catalog.focus import excluded

    return excluded(_bench(base, None, encoder), _named(recipe), question, name)


def retriever(
    recipe: str,
    base: Snapshots,
    *,
    llm: LanguageModel | None = None,
    encoder: Encoder | None = None,
) -> Retriever:
    """Return a retriever by name. Raises UsageError."""
    from clew.catalog.methods import METHODS
    from clew.catalog.retrievers import RETRIEVERS
    from clew.errors import UsageError

    named = _named(recipe)
    if named.name in METHODS.parts and named.name not in RETRIEVERS.parts:
        raise UsageError(f"'{named.name}' answers, it does not search", "Name a retriever: clew recipes")
    return RETRIEVERS.build(named, _bench(base, llm, encoder))


def with_retriever(recipe: str, retriever: str) -> str:
    """Return a recipe with its retriever replaced; for the default, which has none, what reads the retriever's hits.

    Raises UsageError for a recipe that has no retriever.
    """
    from clew.catalog.methods import DEFAULT, METHODS
    from clew.catalog.recipe import Recipe, parse
    from clew.errors import UsageError, unknown

    named = _named(recipe)
    if named == DEFAULT:
        named = Recipe("read")
    if named.name not in METHODS.parts:
        raise unknown("recipe", named.name, METHODS.parts)
    if "retriever" not in METHODS.parts[named.name].options:
        takers = [name for name, part in METHODS.parts.items() if "retriever" in part.options]
        raise UsageError(
            f"'{named.name}' has no retriever to replace", f"These have one: {', '.join(takers)}"
        )
    return str(named.with_options(retriever=parse(retriever)))


def reader(
    recipe: str, base: Snapshots, *, llm: LanguageModel | None = None, encoder: Encoder | None = None
) -> Reader:
    """Return the reader that ``recipe`` names. Raises UsageError."""
    from clew.catalog.methods import READERS
    from clew.catalog.recipe import parse

    return READERS.build(parse(recipe), _bench(base, llm, encoder))


def graph(recipe: str, base: Snapshots, *, encoder: Encoder | None = None) -> Graph:
    """Return the graph that ``recipe`` names. Raises UsageError."""
    from clew.catalog.graphs import GRAPHS
    from clew.catalog.recipe import parse

    return GRAPHS.build(parse(recipe), _bench(base, None, encoder))


def recipes() -> dict[str, dict[str, tuple[str, str]]]:
    """Return every part by kind and name: what it is for, and its recipe with all defaults."""
    from clew.catalog.graphs import GRAPHS
    from clew.catalog.methods import METHODS, READERS
    from clew.catalog.parts import Shelf
    from clew.catalog.recipe import make
    from clew.catalog.retrievers import RETRIEVERS

    shelves: dict[str, Shelf[object]] = {
        "recipe": METHODS,
        "retriever": RETRIEVERS,
        "graph": GRAPHS,
        "reader": READERS,
    }
    return {
        kind: {name: (part.summary, str(make(name, part.options))) for name, part in shelf.parts.items()}
        for kind, shelf in shelves.items()
    }


def language_model(
    name: str,
    *,
    cache: bool = False,
    charged: bool = False,
    budget: Budget | None = None,
    record: str | Path | None = None,
) -> LanguageModel:
    """Return the language model that ``name`` names, or one per role (:func:`clew.models.language_model`)."""
    from clew.models import language_model as make

    return make(name, cache=cache, charged=charged, budget=budget, record=record)


def encoder(name: str, *, remember: bool = False) -> Encoder:
    """Return the encoder that ``name`` names; one to ``remember`` reads each passage once in this process.

    Raises UsageError, MissingExtra.
    """
    from clew.models import encoder as make
    from clew.models.remembering import Remembering

    return Remembering(make(name)) if remember else make(name)


def _named(recipe: str) -> Recipe:
    from clew.catalog.methods import DEFAULT
    from clew.catalog.recipe import parse

    return DEFAULT if recipe.strip() == "default" else parse(recipe)


def _bench(base: Snapshots, llm: LanguageModel | None, encoder: Encoder | None) -> Bench:
    from clew.catalog.parts import Bench

    return Bench(base.snapshot(), llm, encoder)
