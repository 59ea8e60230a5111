"""Recipes: a component with its options, as a canonical name that parses back.

``kgp(budget=30, graph=keywords(n=20), guide=encoder)`` is the value, its log line, its cache key and its
row in a table of results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from clew.core.errors import UsageError

if TYPE_CHECKING:
    Value: TypeAlias = "Recipe | int | float | bool | str | None"

_TOKEN = re.compile(r"\s*(?:(?P<quoted>'[^']*')|(?P<word>[^\s(),='][^(),=']*)|(?P<mark>[(),=]))")
_INTEGER = re.compile(r"[+-]?\d+$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$", re.IGNORECASE)
_WORDS: Mapping[str, bool | None] = {"yes": True, "no": False, "off": None}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A name and its options, sorted by name. A bare word is a recipe without options."""

    name: str
    options: tuple[tuple[str, Value], ...] = ()

    def __str__(self) -> str:
        """Return the canonical name, which :func:`parse_recipe` parses back to the same recipe."""
        if not self.options:
            return self.name
        return f"{self.name}({', '.join(f'{key}={_format_value(value)}' for key, value in self.options)})"

    def option(self, key: str, default: object = None) -> object:
        """Return the value of an option, or ``default``."""
        return dict(self.options).get(key, default)

    def with_options(self, **options: Value) -> Recipe:
        """Return the recipe with some options set."""
        return make_recipe(self.name, {**dict(self.options), **options})


def make_recipe(name: str, options: Mapping[str, Value]) -> Recipe:
    """Return a recipe with its options in canonical order."""
    return Recipe(name, tuple(sorted(options.items())))


def parse_recipe(text: str) -> Recipe:
    """Return the recipe that ``text`` names. Raises UsageError, which says where the text is wrong.

    Values are numbers, ``yes``, ``no``, ``off`` (none), 'quoted text', or recipes again.
    """
    tokens: list[tuple[str, str]] = []
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise _syntax_error(text, position)
        tokens.append((str(match.lastgroup), match.group(str(match.lastgroup)).strip()))
        position = match.end()
    recipe, rest = _parse_recipe(text, tokens)
    if rest:
        raise _syntax_error(text, text.find(rest[0][1]))
    return recipe


def _parse_recipe(text: str, tokens: list[tuple[str, str]]) -> tuple[Recipe, list[tuple[str, str]]]:
    if not tokens or tokens[0][0] != "word":
        raise _syntax_error(text, 0)
    name, rest = tokens[0][1], tokens[1:]
    if not rest or rest[0][1] != "(" or rest[0][0] != "mark":
        return Recipe(name), rest
    options: dict[str, Value] = {}
    rest = rest[1:]
    while rest and rest[0] != ("mark", ")"):
        if len(rest) < 3 or rest[0][0] != "word" or rest[1] != ("mark", "="):
            raise UsageError(
                f"recipe '{text}': expected 'option=value' inside {name}(...)", "See: clew recipes"
            )
        key = rest[0][1]
        if key in options:
            raise UsageError(f"recipe '{text}': '{key}' is given twice")
        options[key], rest = _parse_value(text, rest[2:])
        if rest and rest[0] == ("mark", ","):
            rest = rest[1:]
    if not rest:
        raise UsageError(f"recipe '{text}': '{name}(' is not closed", "Add ')'")
    return make_recipe(name, options), rest[1:]


def _parse_value(text: str, tokens: list[tuple[str, str]]) -> tuple[Value, list[tuple[str, str]]]:
    kind, word = tokens[0]
    if kind == "quoted":
        return word[1:-1], tokens[1:]
    if kind == "word" and word in _WORDS:
        return _WORDS[word], tokens[1:]
    if kind == "word" and _INTEGER.match(word):
        return int(word), tokens[1:]
    if kind == "word" and _NUMBER.match(word):
        return float(word), tokens[1:]
    return _parse_recipe(text, tokens)


def _format_value(value: Value) -> str:
    if isinstance(value, Recipe):
        return str(value)
    for word, meaning in _WORDS.items():
        if value is meaning:
            return word
    return f"'{value}'" if isinstance(value, str) else repr(value)


def _syntax_error(text: str, position: int) -> UsageError:
    return UsageError(
        f"recipe '{text}' makes no sense at character {max(position, 0) + 1}", "See: clew recipes"
    )
