"""Components and the recipes that name them: how a class declares itself, and how a recipe is parsed and built.

    @component("bm25", summary="Okapi BM25")
    @dataclass(frozen=True, slots=True)
    class BM25:
        snapshot: Snapshot
        k1: float = 1.2
        b: float = 0.75

can be written ``bm25(k1=0.9)``. Everything else is read from the signature of the class, or of its classmethod
``build`` where it has one (for what a signature cannot say). Each parameter is, by its type,

====================================  =======================================================================
``Snapshot``                          the view of the knowledge base
``LanguageModel``, ``Encoder``        the configured one; an error without it, unless ``| None`` is allowed
``Resources``                         all of the above
``Annotated[..., PromptFile(NAME)]``   that prompt file
``recipe: str`` or ``Recipe``         the component's own recipe with every option filled in
``Annotated[..., INTERNAL]``          not an option: it keeps its Python default
``int``                               an option: a whole number from 1 up, or :class:`AtLeast`
``float``, ``bool``, ``str``          an option: a number, ``yes`` or ``no``, a text
``Literal["a", "b"]``                 an option: one of these words
``Retriever``, ``Reader``, ``Graph``  an option: the recipe of a component, which is built
``Recipe``                            an option: the recipe of a component, which ``build`` builds itself
``... | None``                        an option that may also be ``off``; for a component, ``none``
====================================  =======================================================================

A default is the parameter's own, or stands in the declaration: ``@component("hybrid(a=bm25, b=dense)", ...)``. An
underscore in a parameter's name is a hyphen in the option's. :class:`Auto` says what ``auto`` stands for.

Other installed packages add components, and more, by entry points; the end of this file finds them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from clew.core.config import DEFAULT_READER, default_reader
from clew.core.errors import PluginError, UsageError, unknown_name_error
from clew.core.protocols import (
    Encoder,
    Graph,
    LanguageModel,
    Method,
    PlanJudge,
    PromptTemplate,
    Reader,
    Reranker,
    Retriever,
    Snapshot,
    SpanModel,
)

if TYPE_CHECKING:
    from clew.core.protocols import Prompt

    Value: TypeAlias = "Recipe | int | float | bool | str | None"

_TOKEN = re.compile(r"\s*(?:(?P<quoted>'[^']*')|(?P<word>[^\s(),='][^(),=']*)|(?P<mark>[(),=]))")
#: A longer number is read as one of floating point, since Python refuses to read integers of thousands of digits.
_INTEGER = re.compile(r"[+-]?\d{1,300}$")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$", re.IGNORECASE)
_MAX_COUNT = 10**9
_WORDS: Mapping[str, bool | None] = {"yes": True, "no": False, "off": None}


# Recipes: ``kgp(budget=30, graph=keywords(n=20), guide=encoder)`` is the value, its log line, its cache key and its
# row in a table of results.


@dataclass(frozen=True, slots=True)
class Recipe:
    """A component's name and its options, sorted by name. A bare word is a recipe without options."""

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


# Components

T = TypeVar("T")

#: The kinds of components, by the protocol that they implement. A method's recipe is what people call "a recipe".
KINDS: Mapping[Any, str] = {Method: "recipe", Retriever: "retriever", Graph: "graph", Reader: "reader"}
AUTO = Recipe("auto")
NO_COMPONENT = Recipe("none")
_DECLARATIONS = "__clew_components__"


@dataclass(frozen=True, slots=True)
class PromptFile:
    """Marks a parameter that takes the prompt file ``name`` (:mod:`clew.core.prompts`)."""

    name: str


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Marks a count that may be as small as ``least``, instead of 1."""

    least: int


@dataclass(frozen=True, slots=True)
class Auto:
    """Marks an option whose default is ``auto``, and says what that stands for: ``present`` where a language model
    (or what else ``requires`` names) is configured, else ``absent``. A recipe with its choice written out goes on
    to the answer.

    ``baseline`` replaces an ``absent`` reader where no trained reader is configured either (``CLEW_READER=none``).
    With the option and the word of ``unless`` the parameter is None, and the choice is not made."""

    present: str
    absent: str
    requires: Literal["model", "encoder"] = "model"
    baseline: str = ""
    unless: tuple[str, str] | None = None

    def is_needed(self, recipe: Recipe) -> bool:
        """Return whether a recipe does not have the option and word of ``unless``."""
        return self.unless is None or recipe.option(self.unless[0]) != Recipe(self.unless[1])


#: Marks a parameter that is no option.
INTERNAL = object()


class ModelTools(Protocol):
    """What few components need of models besides the configured ones."""

    def language_model(self, name: str) -> LanguageModel:
        """Return the language model of a name. Raises UsageError."""

    def reranker(self, name: str) -> Reranker:
        """Return the reranker of a name such as ``monot5:FOLDER``. Raises UsageError."""

    def span_model(self, name: str) -> SpanModel:
        """Return the trained reader of a name: ``clew:reader`` or ``onnx:FOLDER``. Raises UsageError, NotFound."""

    def plan_judge(self) -> PlanJudge:
        """Return the trained judge of readings of questions over graphs."""

    def model_settings(self, model: str) -> Mapping[str, str]:
        """Return what a check of a model (``clew doctor --llm``) gave for choices that recipes leave open."""

    def count_tokens(self, text: str) -> int:
        """Return about how many tokens a text has."""

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        """Return about how many tokens a prompt has."""


class Registry(Protocol):
    """What builds the components that others name in their options."""

    def build(self, kind: str, recipe: Recipe, resources: Resources) -> Any:
        """Return the component of ``kind`` that a recipe names. Raises UsageError."""

    def has_trait(self, recipe: Recipe, trait: str) -> bool:
        """Return whether a recipe, or any recipe in its options, names a component with a trait."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What components are built from: one view of a knowledge base, the configured models, the other components."""

    snapshot: Snapshot
    registry: Registry
    tools: ModelTools
    model: LanguageModel | None = None
    encoder: Encoder | None = None

    def require_model(self, component: str) -> LanguageModel:
        """Return the language model. Raises UsageError, naming the component, where none is configured."""
        if self.model is None:
            raise UsageError(
                f"'{component}' needs a language model and none is set", "Name one: --llm ollama:llama3.1"
            )
        return self.model

    def require_encoder(self, component: str) -> Encoder:
        """Return the encoder. Raises UsageError, naming the component, where none is configured."""
        if self.encoder is None:
            raise UsageError(
                f"'{component}' needs an encoder and this base has none",
                "Set one: clew encoder set onnx:FOLDER (for clew eval: --encoder onnx:FOLDER)",
            )
        return self.encoder

    def retriever(self, recipe: Recipe) -> Retriever:
        """Return the retriever that a recipe names. Raises UsageError."""
        retriever: Retriever = self.registry.build("retriever", recipe, self)
        return retriever

    def local_retriever(self, recipe: Recipe, component: str, option: str) -> Retriever:
        """Return a retriever whose hits are nodes of the base, for the option of a component that goes on from them.

        Raises UsageError for one that searches the web.
        """
        if self.registry.has_trait(recipe, "web"):
            raise UsageError(
                f"'{component}' starts from passages of the base, and '{recipe}' finds them on the web",
                f"Name a retriever of the base ({option}=search); methods for the web: read, selfask, react",
            )
        return self.retriever(recipe)

    def reader(self, recipe: Recipe) -> Reader:
        """Return the reader that a recipe names. Raises UsageError."""
        reader: Reader = self.registry.build("reader", recipe, self)
        return reader

    def graph(self, recipe: Recipe) -> Graph:
        """Return the passage graph that a recipe names. Raises UsageError."""
        graph: Graph = self.registry.build("graph", recipe, self)
        return graph

    def choose_reader(self, recipe: Recipe, with_model: str = "cited") -> tuple[Reader, Recipe]:
        """Return the reader of a recipe, and the recipe with what ``reader=auto`` stands for written out."""
        reader = recipe.option("reader")
        if reader == AUTO or not isinstance(reader, Recipe):
            reader = self.choose(Auto(with_model, "span", baseline="extractive"))
        return self.reader(reader), recipe.with_options(reader=reader)

    def model_setting(self, name: str, default: str) -> str:
        """Return what the check of the configured model gave for a choice, ``default`` if it was not checked."""
        return (
            default if self.model is None else self.tools.model_settings(self.model.name).get(name, default)
        )

    def choose(self, auto: Auto) -> Recipe:
        """Return what ``auto`` stands for here."""
        configured = self.model if auto.requires == "model" else self.encoder
        # A model that was checked and cannot quote or abstain does not read.
        reads = auto.present != "cited" or self.model_setting("reader", "cited") == "cited"
        if configured is not None and reads:
            return Recipe(auto.present)
        if not auto.baseline:
            return Recipe(auto.absent)
        trained = self.reader_without_model()
        return Recipe(auto.baseline) if trained == NO_COMPONENT else trained

    def reader_without_model(self) -> Recipe:
        """Return the trained reader that is set (``CLEW_READER``), ``none`` where there is none."""
        trained = default_reader()
        if trained in ("none", DEFAULT_READER):
            return NO_COMPONENT if trained == "none" else Recipe("span")
        return make_recipe("span", {"model": trained})


class _Required:
    """The type of :data:`REQUIRED`."""


#: The default of an option that every recipe has to name.
REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a component, as its signature declares it.

    ``source`` says where its value comes from: ``option``, ``snapshot``, ``model``, ``encoder``, ``resources``,
    ``prompt`` or ``recipe``. ``types`` are the arms of its annotation without None. ``default`` is an option's, as
    recipes write it.
    """

    name: str
    source: str
    types: tuple[Any, ...]
    optional: bool = False
    default: Value | _Required = REQUIRED
    least: int = 1
    auto: Auto | None = None
    prompt: str = ""

    @property
    def option(self) -> str:
        """The name of the option in recipes."""
        return self.name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Component:
    """A component as it declares itself.

    ``declared`` is its name with the defaults that the declaration sets. ``traits`` say what a recipe with it does
    beyond this knowledge base: ``web`` (asks the web), ``ranks-nodes`` (ranks nodes of graphs), ``embeds-nodes``
    (gives texts of nodes to the encoder).
    """

    kind: str
    declared: Recipe
    target: Any
    summary: str
    paper: str = ""
    traits: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name in recipes."""
        return self.declared.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the class, or of its ``build``. Raises TypeError for a signature that cannot be read."""
        return _parameters(self.target)

    @property
    def options(self) -> dict[str, Any]:
        """The options by name, with their defaults; :data:`REQUIRED` for one that has none."""
        declared = dict(self.declared.options)
        return {
            parameter.option: declared.get(parameter.option, parameter.default)
            for parameter in self.parameters
            if parameter.source == "option"
        }

    @property
    def defaults(self) -> Recipe:
        """The recipe with every option that has a default."""
        return make_recipe(
            self.name, {key: value for key, value in self.options.items() if not isinstance(value, _Required)}
        )

    def complete(self, recipe: Recipe) -> Recipe:
        """Return a recipe with every option filled in. Raises UsageError for an option that is unknown or missing."""
        options = self.options
        for key, _ in recipe.options:
            if key not in options:
                raise unknown_name_error(f"option of '{recipe.name}'", key, options or {"(none)": None})
        values = {**options, **dict(recipe.options)}
        if missing := sorted(key for key, value in values.items() if isinstance(value, _Required)):
            example = ", ".join(f"{key}=..." for key in missing)
            raise UsageError(
                f"'{recipe.name}' needs the option '{missing[0]}'", f"Write {recipe.name}({example})"
            )
        return make_recipe(recipe.name, values)

    def build(self, recipe: Recipe, resources: Resources) -> Any:
        """Return what the recipe describes. Raises UsageError for options of the wrong type."""
        recipe = self.complete(recipe)
        for parameter in self.parameters:
            auto = parameter.auto
            if auto is not None and auto.is_needed(recipe) and recipe.option(parameter.option) == AUTO:
                recipe = recipe.with_options(**{parameter.option: resources.choose(auto)})
        factory = getattr(self.target, "build", self.target)
        return factory(
            **{parameter.name: _value(parameter, recipe, resources) for parameter in self.parameters}
        )


def component(
    declared: str, *, summary: str, paper: str = "", kind: str = "", traits: Iterable[str] = ()
) -> Callable[[type[T]], type[T]]:
    """Declare a class as the component ``declared``: a name, or a recipe with defaults.

    ``kind`` is derived from the class's methods (``answer``, ``retrieve``, ``read``, ``neighbours``) unless it has
    several of them. A class may be declared several times: under other names, with other defaults, as other kinds.
    """

    def declare(target: type[T]) -> type[T]:
        entry = Component(
            kind or _kind(target), parse_recipe(declared), target, summary, paper, frozenset(traits)
        )
        # Not inherited: what a subclass is called is its own to say.
        known = vars(target).get(_DECLARATIONS, ())
        setattr(target, _DECLARATIONS, (entry, *known))
        return target

    return declare


def declarations(target: object) -> tuple[Component, ...]:
    """Return the components that a class declares itself to be, in the order of its decorators."""
    if not isinstance(target, type):
        return ()
    components: tuple[Component, ...] = vars(target).get(_DECLARATIONS, ())
    return components


def _kind(target: type) -> str:
    methods = {"answer": "recipe", "retrieve": "retriever", "read": "reader", "neighbours": "graph"}
    kinds = [kind for method, kind in methods.items() if hasattr(target, method)]
    if len(kinds) != 1:
        raise TypeError(
            f"{target.__name__} is {' and '.join(kinds) or 'no kind of component'}: declare its kind"
        )
    return kinds[0]


@cache
def _parameters(target: Any) -> tuple[Parameter, ...]:
    factory = getattr(target, "build", target)
    function = factory.__func__ if hasattr(factory, "__func__") else target.__init__
    try:
        names = {**_NAMES, **getattr(function, "__globals__", {})}
        annotations = get_type_hints(function, names, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"{target.__name__}: a parameter has a type that is not imported when the program runs ({error})"
        ) from error
    parameters = (
        _parameter(f"{target.__name__}: parameter '{name}'", parameter, annotations.get(name))
        for name, parameter in inspect.signature(factory).parameters.items()
    )
    return tuple(parameter for parameter in parameters if parameter is not None)


#: Parameters that are given by their type.
_GIVEN: Mapping[Any, str] = {
    Snapshot: "snapshot",
    LanguageModel: "model",
    Encoder: "encoder",
    Resources: "resources",
}
#: Names that a signature may use although its module imports them for type checkers only.
_NAMES: Mapping[str, Any] = {given.__name__: given for given in (*_GIVEN, *KINDS, PromptTemplate, Recipe)}
_SCALARS = (bool, int, float, str, Recipe)


def _parameter(label: str, declared: inspect.Parameter, annotation: Any) -> Parameter | None:
    """Return what a parameter declares, None for one that is no option. Raises TypeError."""
    markers: tuple[Any, ...] = ()
    if get_origin(annotation) is Annotated:
        annotation, *rest = get_args(annotation)
        markers = tuple(rest)
    has_default = declared.default is not inspect.Parameter.empty
    if INTERNAL in markers:
        if not has_default:
            raise TypeError(f"{label} is internal and has no default")
        return None
    arms = get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)
    types = tuple(arm for arm in arms if arm is not NoneType)
    optional = len(types) < len(arms)
    if prompt := next((marker.name for marker in markers if isinstance(marker, PromptFile)), ""):
        return Parameter(declared.name, "prompt", types, prompt=prompt)
    if types[0] in _GIVEN:
        return Parameter(declared.name, _GIVEN[types[0]], types, optional)
    if declared.name == "recipe" and types in {(str,), (Recipe,)}:
        return Parameter(declared.name, "recipe", types)
    for arm in types:
        if arm not in _SCALARS and arm not in KINDS and get_origin(arm) is not Literal:
            raise TypeError(f"{label} is no option: {arm} (mark it INTERNAL, or write a classmethod build)")
    auto = next((marker for marker in markers if isinstance(marker, Auto)), None)
    optional = optional and not (auto and auto.unless)
    least = next((marker.least for marker in markers if isinstance(marker, AtLeast)), 1)
    default = _default(declared.default, types) if has_default else AUTO if auto else REQUIRED
    return Parameter(declared.name, "option", types, optional, default, least, auto)


def _default(value: Any, types: tuple[Any, ...]) -> Value:
    """Return a Python default as recipes write it."""
    if value is None and any(kind in types for kind in KINDS):
        return NO_COMPONENT
    if isinstance(value, str) and value in _words(types):
        return Recipe(value)
    default: Value = value
    return default


def _words(types: Iterable[Any]) -> tuple[str, ...]:
    return tuple(word for arm in types if get_origin(arm) is Literal for word in get_args(arm))


def _value(parameter: Parameter, recipe: Recipe, resources: Resources) -> Any:
    """Return the argument for a parameter. Raises UsageError."""
    match parameter.source:
        case "snapshot":
            return resources.snapshot
        case "model":
            return resources.model if parameter.optional else resources.require_model(recipe.name)
        case "encoder":
            return resources.encoder if parameter.optional else resources.require_encoder(recipe.name)
        case "resources":
            return resources
        case "prompt":
            from clew.core.prompts import load_prompt

            return load_prompt(parameter.prompt)
        case "recipe":
            return str(recipe) if parameter.types == (str,) else recipe
        case _:
            return _option(parameter, recipe, resources)


def _option(parameter: Parameter, recipe: Recipe, resources: Resources) -> Any:
    value, label = recipe.option(parameter.option), f"option '{parameter.option}' of '{recipe.name}'"
    is_unused = parameter.auto is not None and not parameter.auto.is_needed(recipe)
    if is_unused or (value is None and parameter.optional):
        return None
    if words := _words(parameter.types):
        if isinstance(value, Recipe) and value.name in words:
            return value.name
        if len(parameter.types) == 1:
            raise unknown_name_error(
                f"{parameter.option} of '{recipe.name}'", _as_recipe(value, label).name, words
            )
    kind = next(arm for arm in parameter.types if get_origin(arm) is not Literal)
    if kind is bool:
        if not isinstance(value, bool):
            raise UsageError(f"{label} is neither yes nor no: {value}")
        return value
    if kind is str:
        return str(value)
    if kind in {int, float}:
        return _number(value, label) if kind is float else _count(value, label, parameter.least)
    named = _as_recipe(value, label)
    if kind is Recipe:
        return named
    if parameter.optional and named == NO_COMPONENT:
        return None
    return resources.registry.build(KINDS[kind], named, resources)


def _as_recipe(value: object, label: str) -> Recipe:
    if not isinstance(value, Recipe):
        raise UsageError(f"{label} does not name a component: {value}")
    return value


def _number(value: object, label: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{label} is not a number: {value}")
    return value


def _count(value: object, label: str, least: int) -> int:
    number = _number(value, label)
    if not least <= number <= _MAX_COUNT or number != int(number):
        raise UsageError(f"{label} must be a whole number from {least} to {_MAX_COUNT:,}: {number:g}")
    return int(number)


# Plug-ins: what other installed packages add to clew. The name of an entry point is the name that people write; its
# module is imported when that name is used, or listed. The command line finds its own plug-ins (``clew.commands``).

#: Groups of entry points that name classes declared with :func:`component`.
RETRIEVER_PLUGINS = "clew.retrievers"
READER_PLUGINS = "clew.readers"
METHOD_PLUGINS = "clew.methods"
GRAPH_PLUGINS = "clew.graphs"
#: Functions from what follows ``NAME:`` in an encoder's name to an encoder.
ENCODER_PLUGINS = "clew.encoders"
#: Parsers of documents, and readers of graph files: the objects by which they declare themselves.
PARSER_PLUGINS = "clew.parsers"
GRAPH_FORMAT_PLUGINS = "clew.graph_formats"


@cache
def plugin_names(group: str) -> tuple[str, ...]:
    """Return the names of the plug-ins of a group, sorted. Imports none of them."""
    return tuple(sorted(_plugin_entries(group)))


def load_plugin(group: str, name: str) -> Any:
    """Return what the plug-in ``name`` of a group is: imported now, at its first use.

    Raises PluginError, which names the package and the reason, for one that cannot be imported.
    """
    entry = _plugin_entries(group)[name]
    try:
        return entry.load()
    except Exception as error:  # whatever another package's code may raise while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise PluginError(
            f"the plug-in '{name}' of {plugin_package(group, name)} cannot be loaded: {reason}",
            "Update or uninstall that package",
        ) from error


def load_declaration(group: str, name: str, type: type[T]) -> T:
    """Return the plug-in ``name``. Raises PluginError where it cannot be loaded, or is no object of the type."""
    declaration = load_plugin(group, name)
    if not isinstance(declaration, type):
        raise PluginError(
            f"the plug-in '{name}' of {plugin_package(group, name)} is not a {type.__name__}",
            "Its entry point has to name one",
        )
    return declaration


def usable_declarations(group: str, type: type[T]) -> list[T]:
    """Return the plug-ins of a group, without those that :func:`declaration_problems` names."""
    declarations = []
    for name in plugin_names(group):
        with suppress(PluginError):
            declarations.append(load_declaration(group, name, type))
    return declarations


def declaration_problems(group: str, type: type[Any]) -> list[str]:
    """Return for each plug-in of a group that cannot be used why that is."""
    problems = []
    for name in plugin_names(group):
        try:
            load_declaration(group, name, type)
        except PluginError as error:
            problems.append(str(error))
    return problems


def plugin_package(group: str, name: str) -> str:
    """Return the name of the package that a plug-in came with."""
    distribution = _plugin_entries(group)[name].dist
    return distribution.name if distribution else "an unknown package"


@cache
def _plugin_entries(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}
