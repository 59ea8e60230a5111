"""The methods that a request may choose among: names of the catalogue, or recipes of the person who serves; never
recipes of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from clew.app.web.settings import Settings
from clew.core.errors import unknown_name_error
from clew.core.recipe import parse_recipe
from clew.knowledge_base import registry
from clew.knowledge_base.registry.components import REGISTRY
from clew.triples.language.chain import Limits, parse_chain
from clew.triples.language.errors import ChainError

DEFAULT = "default"
#: What only an evaluation can ask.
_EVALUATIONS = frozenset({"golden"})
#: Methods that no program asks for evidence: they have none but the model's memory.
_NO_EVIDENCE = frozenset({"none", "fewshot", "cot"})
#: Methods that work without a language model.
_ALONE = frozenset({"kgp", "kgp-paper", "read", "dpr", "mdr"})


@dataclass(frozen=True, slots=True)
class Choice:
    """A method or retriever: its name, what it is for, and its recipe with all defaults."""

    name: str
    summary: str
    recipe: str


@lru_cache(maxsize=8)
def offered_methods(allowed: tuple[str, ...]) -> dict[str, Choice]:
    """Return the methods that may be chosen, the default first: those ``allowed``, all that ask no web where none is
    named. Raises UsageError for a recipe that makes no sense."""
    first = {DEFAULT: Choice(DEFAULT, "The method that measures best over this kind of base.", DEFAULT)}
    if not allowed:
        return first | _offered("recipe")
    return first | {one.name: one for one in map(_written, allowed) if one.name != DEFAULT}


def evidence_methods(model: bool) -> dict[str, Choice]:
    """Return the methods that answer from evidence; without a ``model``, those that need none."""
    return {
        name: one
        for name, one in _offered("recipe").items()
        if name not in _NO_EVIDENCE and (model or name in _ALONE)
    }


def validate_recipes(recipes: Iterable[str]) -> dict[str, str]:
    """Return recipes that a person allows, each with what it is. Raises UsageError for one that makes no sense."""
    return {one.name: one.summary for one in map(_written, recipes)}


@lru_cache(maxsize=1)
def offered_retrievers() -> dict[str, Choice]:
    """Return the retrievers that may be chosen, the default first."""
    return {DEFAULT: Choice(DEFAULT, "The search that measures best.", DEFAULT)} | _offered("retriever")


def resolve_method(settings: Settings, name: str) -> str:
    """Return the recipe of a method that may be chosen. Raises UsageError."""
    return _known("recipe", name, offered_methods(settings.recipes))


def resolve_retriever(name: str) -> str:
    """Return the recipe of a retriever that may be chosen. Raises UsageError."""
    return _known("retriever", name, offered_retrievers())


def method_for_triples(written: str) -> str:
    """Return the method for a question that a person wrote as triples: types, quantifiers, conditions and wishes are
    said to ``focus``, a plain chain is filled hop by hop."""
    try:
        parse_chain(written, Limits(1, 99))
    except ChainError:
        return "focus"
    return "chain"


def _known(what: str, name: str, known: dict[str, Choice]) -> str:
    if name not in known:
        raise unknown_name_error(what, name, known)
    return known[name].recipe


def _written(recipe: str) -> Choice:
    """Return a recipe that the person who serves wrote; it is known by what was written."""
    recipe = recipe.strip()
    if recipe == DEFAULT:
        return Choice(DEFAULT, "what measures best", DEFAULT)
    name = REGISTRY.complete("recipe", parse_recipe(recipe)).name
    return Choice(recipe, REGISTRY.component("recipe", name).summary, recipe)


@lru_cache(maxsize=2)
def _offered(kind: str) -> dict[str, Choice]:
    """Return the parts of a kind that ask no web search: whose key it would spend is not the asker's to say."""
    return {
        name: Choice(name, component.summary, name)
        for name, component in registry.describe_components()[kind].items()
        if name not in _EVALUATIONS and not registry.searches_web(component.defaults)
    }
