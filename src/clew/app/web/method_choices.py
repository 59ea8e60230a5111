"""The methods and retrievers that a request may choose: names of the registry, or recipes of the person who runs the
server. A request cannot bring a recipe of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from clew.app.web.settings import Settings
from clew.core.component import parse_recipe
from clew.core.errors import unknown_name_error
from clew.knowledge_base import registry
from clew.knowledge_base.registry import REGISTRY
from clew.triples.language.chain import ChainError, Limits, parse_chain

DEFAULT = "default"
#: Methods that only an evaluation can use.
_EVALUATION_ONLY = frozenset({"golden"})
#: Methods that answer from the model's memory, without evidence.
_NO_EVIDENCE = frozenset({"none", "fewshot", "cot"})
#: Methods that need no language model.
_NO_MODEL = frozenset({"kgp", "kgp-paper", "read", "dpr", "mdr"})
#: Methods that cannot be asked without a language model.
NEED_MODEL = frozenset({"none", "fewshot", "cot", "ircot", "selfask", "iterretgen", "react", "dsp"})


@dataclass(frozen=True, slots=True)
class Choice:
    """A method or retriever that may be chosen: its name, a summary, and its recipe."""

    name: str
    summary: str
    recipe: str


@lru_cache(maxsize=8)
def offered_methods(allowed: tuple[str, ...]) -> dict[str, Choice]:
    """Return the methods that may be chosen, the default first: the ``allowed`` recipes, or all methods that do not
    search the web. Raises UsageError for a recipe that cannot be read."""
    first = {DEFAULT: Choice(DEFAULT, "The method that measures best over this kind of base.", DEFAULT)}
    if not allowed:
        return first | _registered_choices("recipe")
    return first | {choice.name: choice for choice in map(_allowed_choice, allowed) if choice.name != DEFAULT}


def evidence_methods(model: bool) -> dict[str, Choice]:
    """Return the methods that answer from evidence; without a ``model``, only those that need none."""
    return {
        name: choice
        for name, choice in _registered_choices("recipe").items()
        if name not in _NO_EVIDENCE and (model or name in _NO_MODEL)
    }


def validate_recipes(recipes: Iterable[str]) -> dict[str, str]:
    """Return recipes with their summaries. Raises UsageError for one that cannot be read."""
    return {choice.name: choice.summary for choice in map(_allowed_choice, recipes)}


@lru_cache(maxsize=1)
def offered_retrievers() -> dict[str, Choice]:
    """Return the retrievers that may be chosen, the default first."""
    return {DEFAULT: Choice(DEFAULT, "The search that measures best.", DEFAULT)} | _registered_choices(
        "retriever"
    )


def resolve_method(settings: Settings, name: str) -> str:
    """Return the recipe of a method by its name. Raises UsageError."""
    return _resolve("recipe", name, offered_methods(settings.recipes))


def resolve_retriever(name: str) -> str:
    """Return the recipe of a retriever by its name. Raises UsageError."""
    return _resolve("retriever", name, offered_retrievers())


def method_for_triples(triples: str) -> str:
    """Return the method for a question written as triples: ``chain`` for a plain chain, ``focus`` for triples with
    types, quantifiers, conditions or preferences."""
    try:
        parse_chain(triples, Limits(1, 99))
    except ChainError:
        return "focus"
    return "chain"


def _resolve(kind: str, name: str, choices: dict[str, Choice]) -> str:
    if name not in choices:
        raise unknown_name_error(kind, name, choices)
    return choices[name].recipe


def _allowed_choice(recipe: str) -> Choice:
    """Return the choice of a recipe that the person who runs the server allows; its name is the recipe."""
    recipe = recipe.strip()
    if recipe == DEFAULT:
        return Choice(DEFAULT, "what measures best", DEFAULT)
    name = REGISTRY.complete("recipe", parse_recipe(recipe)).name
    return Choice(recipe, REGISTRY.component("recipe", name).summary, recipe)


@lru_cache(maxsize=2)
def _registered_choices(kind: str) -> dict[str, Choice]:
    """Return the components of a kind that do not search the web: that would spend the key of the person who runs the
    server."""
    return {
        name: Choice(name, component.summary, name)
        for name, component in registry.describe_components()[kind].items()
        if name not in _EVALUATION_ONLY and not registry.searches_web(component.defaults)
    }
