"""Which recipes a program may ask for."""

from __future__ import annotations

from collections.abc import Iterable

#: Methods that no one asks for evidence: one reads what only an evaluation knows, the others the model's memory.
_NO_EVIDENCE = frozenset({"golden", "none", "fewshot", "cot"})
#: Methods that work without a language model.
_ALONE = frozenset({"kgp", "kgp-paper", "read", "dpr", "mdr"})
DEFAULT = "default"


def offered(model: bool) -> dict[str, str]:
    """Return the methods that answer from evidence, by name, with what each is; without a ``model``, those that need
    none."""
    from clew.catalog.methods import METHODS

    names = METHODS.parts.keys() - _NO_EVIDENCE
    return {
        name: part.summary
        for name, part in METHODS.parts.items()
        if name in names and (model or name in _ALONE)
    }


def checked(recipes: Iterable[str]) -> dict[str, str]:
    """Return recipes that a person allows, each with what it is. Raises UsageError for one that makes no sense."""
    from clew.catalog.methods import METHODS
    from clew.catalog.recipe import parse

    found = {}
    for written in recipes:
        if written.strip() == DEFAULT:
            found[DEFAULT] = "what measures best"
            continue
        recipe = METHODS.complete(parse(written))
        found[written.strip()] = METHODS.parts[recipe.name].summary
    return found
