"""The methods that a request may choose among: names of the catalogue, never recipes of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from clew import catalog
from clew.catalog.recipe import parse
from clew.catalog.web import asks_web
from clew.chains import ChainError, Limits
from clew.chains import parse as parse_chain
from clew.errors import unknown
from clew.serve.settings import Settings

DEFAULT = "default"
#: What only an evaluation can ask.
_EVALUATIONS = frozenset({"golden"})


@dataclass(frozen=True, slots=True)
class Choice:
    """A method or retriever: its name, what it is for, and its recipe with all defaults."""

    name: str
    summary: str
    recipe: str


@lru_cache(maxsize=8)
def methods(settings_recipes: tuple[str, ...]) -> dict[str, Choice]:
    """Return the methods that may be chosen, the default first. Raises UsageError for one that there is not."""
    known = _offered("recipe")
    first = {DEFAULT: Choice(DEFAULT, "The method that measures best over this kind of base.", DEFAULT)}
    if not settings_recipes:
        return first | known
    found = dict(first)
    for one in settings_recipes:
        if one not in known and one != DEFAULT:
            # A person who starts the server may write a recipe out; it is known by what was written.
            name = parse(one).name
            if name not in catalog.recipes()["recipe"]:
                raise unknown("recipe", name, catalog.recipes()["recipe"])
            found[one] = Choice(one, catalog.recipes()["recipe"][name][0], one)
        elif one != DEFAULT:
            found[one] = known[one]
    return found


@lru_cache(maxsize=1)
def retrievers() -> dict[str, Choice]:
    """Return the retrievers that may be chosen, the default first."""
    return {DEFAULT: Choice(DEFAULT, "The search that measures best.", DEFAULT)} | _offered("retriever")


def chosen(settings: Settings, name: str) -> str:
    """Return the recipe of a method that may be chosen. Raises UsageError."""
    known = methods(settings.recipes)
    if name not in known:
        raise unknown("recipe", name, known)
    return known[name].recipe


def for_triples(written: str) -> str:
    """Return the method for a question that a person wrote as triples: types, quantifiers, conditions and wishes are
    said to ``focus``, a plain chain is filled hop by hop."""
    try:
        parse_chain(written, Limits(1, 99))
    except ChainError:
        return "focus"
    return "chain"


def chosen_retriever(name: str) -> str:
    """Return the recipe of a retriever that may be chosen. Raises UsageError."""
    known = retrievers()
    if name not in known:
        raise unknown("retriever", name, known)
    return known[name].recipe


def _offered(kind: str) -> dict[str, Choice]:
    """Return the parts of a kind that ask no web search: whose key it would spend is not the asker's to say."""
    return {
        name: Choice(name, summary, name)
        for name, (summary, recipe) in catalog.recipes()[kind].items()
        if name not in _EVALUATIONS and not asks_web(parse(recipe))
    }
