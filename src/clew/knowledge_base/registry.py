"""Recipes become methods, retrievers, readers and graphs: the one place that builds them from their names.

Each class declares itself (:mod:`clew.core.component`); :data:`BUILT_IN` says which module declares which component,
and entry points name those of plug-ins. ``default`` names the method that measures best.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.core.component import (
    ENCODER_PLUGINS,
    GRAPH_FORMAT_PLUGINS,
    GRAPH_PLUGINS,
    METHOD_PLUGINS,
    READER_PLUGINS,
    RETRIEVER_PLUGINS,
    Component,
    Recipe,
    Resources,
    declaration_problems,
    declarations,
    load_plugin,
    parse_recipe,
    plugin_names,
    plugin_package,
)
from clew.core.config import web_search_endpoint
from clew.core.errors import PluginError, UsageError, unknown_name_error
from clew.core.protocols import (
    Encoder,
    Graph,
    LanguageModel,
    Method,
    PlanJudge,
    Prompt,
    Reader,
    Reranker,
    Retriever,
    SnapshotSource,
    SpanModel,
)
from clew.core.types import Exclusion, Hit, Question

if TYPE_CHECKING:
    from clew.methods.focus.exact import ExactReading
    from clew.methods.focus.method import FocusMethod
    from clew.models.wrappers import Budget

#: By kind and name, the class: ``module:name``, as entry points write it. Its module is imported when the component
#: is used. The order is that of ``clew recipes``. A test compares this table with the declarations themselves.
BUILT_IN: Mapping[str, Mapping[str, str]] = json.loads(
    (Path(__file__).parent / "components.json").read_text(encoding="utf-8")
)

#: The entry points of each kind of component.
PLUGIN_GROUPS: Mapping[str, str] = {
    "recipe": METHOD_PLUGINS,
    "retriever": RETRIEVER_PLUGINS,
    "graph": GRAPH_PLUGINS,
    "reader": READER_PLUGINS,
}


class ComponentRegistry:
    """Finds components by kind and name, and builds what recipes describe.

    The module of a component is imported when it is named. A plug-in with the name of one of clew's own components
    is not used.
    """

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind: clew's own, then those of plug-ins. Imports none of them."""
        own = BUILT_IN[kind]
        return [*own, *(name for name in plugin_names(PLUGIN_GROUPS[kind]) if name not in own)]

    def component(self, kind: str, name: str) -> Component:
        """Return a component. Raises UsageError for an unknown name, PluginError for one that cannot be loaded."""
        if name not in self.names(kind):
            raise unknown_name_error(kind, name, self.names(kind))
        return _load(kind, name)

    def components(self, kind: str) -> dict[str, Component]:
        """Return the components of a kind by name, without the plug-ins that cannot be loaded."""
        return {
            name: _load(kind, name)
            for name in self.names(kind)
            if name in BUILT_IN[kind] or not _plugin_problem(kind, name)
        }

    def plugin_problems(self) -> list[str]:
        """Return for each component, encoder or format of a plug-in that cannot be used why that is."""
        from clew.parse.documents.formats import format_problems
        from clew.parse.graphs.formats import GraphFormat

        problems = [
            _plugin_problem(kind, name)
            for kind, group in PLUGIN_GROUPS.items()
            for name in plugin_names(group)
        ]
        problems += format_problems()
        problems += declaration_problems(GRAPH_FORMAT_PLUGINS, GraphFormat)
        for name in plugin_names(ENCODER_PLUGINS):
            try:
                load_plugin(ENCODER_PLUGINS, name)
            except PluginError as error:
                problems.append(str(error))
        return [problem for problem in problems if problem]

    def complete(self, kind: str, recipe: Recipe) -> Recipe:
        """Return a recipe with every option filled in. Raises UsageError for unknown names."""
        return self.component(kind, recipe.name).complete(recipe)

    def build(self, kind: str, recipe: Recipe, resources: Resources) -> Any:
        """Return the component that a recipe describes. Raises UsageError, PluginError."""
        return self.component(kind, recipe.name).build(recipe, resources)

    def has_trait(self, recipe: Recipe, trait: str) -> bool:
        """Return whether a recipe, or any recipe in its options, names a method or retriever with a trait."""
        options = dict(recipe.options)
        for kind in ("recipe", "retriever"):
            if recipe.name in self.names(kind):
                component = self.component(kind, recipe.name)
                if trait in component.traits:
                    return True
                options = {**dict(component.defaults.options), **options}
        return any(self.has_trait(value, trait) for value in options.values() if isinstance(value, Recipe))


def _plugin_problem(kind: str, name: str) -> str:
    """Return why a plug-in cannot be used; "" where it can, and for a name that is no plug-in's."""
    group = PLUGIN_GROUPS[kind]
    if name not in plugin_names(group):
        return ""
    if name in BUILT_IN[kind]:
        return f"the plug-in '{name}' of {plugin_package(group, name)} has the name of a {kind} of clew. Rename it"
    try:
        _load(kind, name)
    except PluginError as error:
        return str(error)
    return ""


@cache
def _load(kind: str, name: str) -> Component:
    place = BUILT_IN[kind].get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        target = getattr(import_module(module), attribute)
    else:
        target = load_plugin(PLUGIN_GROUPS[kind], name)
    for component in declarations(target):
        if (component.kind, component.name) == (kind, name):
            return component
    raise PluginError(
        f"the plug-in '{name}' of {plugin_package(PLUGIN_GROUPS[kind], name)} is not declared as the {kind} '{name}'",
        f"Its class needs @component('{name}', ...)",
    )


#: The registry of this process.
REGISTRY = ComponentRegistry()


#: What ``default`` stands for: the method that decides which other one answers, and the retriever that measures best
#: on the data that we develop on (docs/benchmarks).
DEFAULT_METHOD, DEFAULT_RETRIEVER = Recipe("router"), Recipe("kgp")


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
    parsed = DEFAULT_RETRIEVER if recipe.strip() == "default" else parse_recipe(recipe)
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
    from clew.triples.linking.entities import GraphEntityLinker

    method = _build_focus(recipe, base, encoder)
    return method.why_not(question, name, GraphEntityLinker(encoder))


def explain_question(base: SnapshotSource, question: Question) -> list[ExactReading]:
    """Return what a question that has typed triples means in each graph, exactly. Raises UsageError."""
    return _build_focus("focus", base, None).explain(question)


def _build_focus(recipe: str, base: SnapshotSource, encoder: Encoder | None) -> FocusMethod:
    """Return the method ``focus`` without a model. Raises UsageError for another recipe."""
    parsed = _parse(recipe)
    if parsed.name != "focus":
        raise UsageError(
            f"'{parsed.name}' has no constraints that drop an answer", "Only focus has: --triples"
        )
    without_model = parsed.with_options(
        entities=Recipe("ranked"), form=Recipe("none"), reader=Recipe("extractive")
    )
    method: FocusMethod = REGISTRY.build("recipe", without_model, open_resources(base, None, encoder))
    return method


def replace_retriever(recipe: str, retriever: str) -> str:
    """Return a recipe with another retriever; the default becomes ``read``. Raises UsageError if it takes none."""
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
    """Return every usable component by kind and name, those of plug-ins last; see :func:`plugin_problems`."""
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
    from clew.core.addresses import is_loopback

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

    def span_model(self, name: str) -> SpanModel:
        from clew.models.span_reader import create_span_reader

        return create_span_reader(name)

    def plan_judge(self) -> PlanJudge:
        from clew.models.plan_judge import create_plan_judge

        return create_plan_judge()

    def model_settings(self, model: str) -> Mapping[str, str]:
        from clew.knowledge_base.model_check import saved_settings

        return saved_settings(model)

    def count_tokens(self, text: str) -> int:
        from clew.models.costs import count_tokens

        return count_tokens(text)

    def count_prompt_tokens(self, prompt: Prompt) -> int:
        from clew.models.costs import count_prompt_tokens

        return count_prompt_tokens(prompt)
