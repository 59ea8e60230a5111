"""What a part of the catalogue is, and how a recipe becomes one.

A part declares its options with their defaults; building it fills them in, refuses options that it does not
know, and hands the complete recipe on, so that an answer can name exactly what made it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clew.core.errors import UsageError, unknown_name_error
from clew.core.protocols import Encoder, LanguageModel, Snapshot
from clew.core.recipe import Recipe, make_recipe

if TYPE_CHECKING:
    from clew.core.recipe import Value

T = TypeVar("T", covariant=True)


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What parts are built over: one view of a base, and the models that are configured."""

    snapshot: Snapshot
    model: LanguageModel | None = None
    encoder: Encoder | None = None

    def require_model(self, component: str) -> LanguageModel:
        """Return the language model. Raises UsageError where none is configured."""
        if self.model is None:
            raise UsageError(
                f"'{component}' needs a language model and none is set", "Name one: --llm ollama:llama3.1"
            )
        return self.model

    def require_encoder(self, component: str) -> Encoder:
        """Return the encoder. Raises UsageError where none is configured."""
        if self.encoder is None:
            raise UsageError(
                f"'{component}' needs an encoder and this base has none",
                "Set one: clew encoder set onnx:FOLDER (for clew eval: --encoder onnx:FOLDER)",
            )
        return self.encoder


@dataclass(frozen=True, slots=True)
class Params:
    """The complete options of a part that is being built."""

    recipe: Recipe

    def number(self, key: str) -> float:
        """Return a number. Raises UsageError for anything else."""
        value = self.recipe.option(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UsageError(f"option '{key}' of '{self.recipe.name}' is not a number: {value}")
        return value

    def count(self, key: str, least: int = 1) -> int:
        """Return a whole number of at least ``least``. Raises UsageError for anything else."""
        value = self.number(key)
        if value != int(value) or value < least:
            raise UsageError(
                f"option '{key}' of '{self.recipe.name}' must be a whole number from {least} up: {value}"
            )
        return int(value)

    def component(self, key: str) -> Recipe:
        """Return a recipe. Raises UsageError for anything else."""
        value = self.recipe.option(key)
        if not isinstance(value, Recipe):
            raise UsageError(f"option '{key}' of '{self.recipe.name}' does not name a part: {value}")
        return value

    def flag(self, key: str) -> bool:
        """Return yes or no. Raises UsageError for anything else."""
        value = self.recipe.option(key)
        if not isinstance(value, bool):
            raise UsageError(f"option '{key}' of '{self.recipe.name}' is neither yes nor no: {value}")
        return value

    def text(self, key: str) -> str:
        """Return a text as it was written, quoted or as a bare word."""
        return str(self.recipe.option(key))

    def word(self, key: str, known: tuple[str, ...]) -> str:
        """Return one of the known words. Raises UsageError for anything else."""
        name = self.component(key).name
        if name not in known:
            raise unknown_name_error(f"{key} of '{self.recipe.name}'", name, known)
        return name


@dataclass(frozen=True, slots=True)
class Component(Generic[T]):
    """A part: what it is for, its options with their defaults, how it is built."""

    summary: str
    build: Callable[[BuildContext, Params], T]
    options: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """The parts of one kind, by name."""

    kind: str
    components: Mapping[str, Component[T]]

    def fill_defaults(self, recipe: Recipe) -> Recipe:
        """Return the recipe with every option filled in. Raises UsageError for unknown names."""
        part = self._part(recipe)
        given: dict[str, Any] = dict(recipe.options)
        for key in given:
            if key not in part.options:
                raise unknown_name_error(f"option of '{recipe.name}'", key, part.options or {"(none)": None})
        return make_recipe(recipe.name, {**part.options, **given})

    def build(self, recipe: Recipe, bench: BuildContext) -> T:
        """Return the part that the recipe names. Raises UsageError."""
        return self._part(recipe).build(bench, Params(self.fill_defaults(recipe)))

    def _part(self, recipe: Recipe) -> Component[T]:
        if recipe.name not in self.components:
            raise unknown_name_error(self.kind, recipe.name, self.components)
        return self.components[recipe.name]
