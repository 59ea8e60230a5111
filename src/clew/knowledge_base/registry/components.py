"""The registry: components by kind and name, those of clew and those of plug-ins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from clew.core.component import Component, Resources, declarations
from clew.core.errors import PluginError, unknown_name_error
from clew.core.plugins import (
    ENCODERS,
    GRAPHS,
    METHODS,
    READERS,
    RETRIEVERS,
    load_plugin,
    plugin_names,
    plugin_package,
)
from clew.core.recipe import Recipe
from clew.knowledge_base.registry.index import BUILT_IN

#: The entry points of each kind of component.
PLUGIN_GROUPS: Mapping[str, str] = {
    "recipe": METHODS,
    "retriever": RETRIEVERS,
    "graph": GRAPHS,
    "reader": READERS,
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
        """Return for each component, encoder or document format of a plug-in that cannot be used why that is."""
        from clew.parse.documents.formats import format_problems

        problems = [
            _plugin_problem(kind, name)
            for kind, group in PLUGIN_GROUPS.items()
            for name in plugin_names(group)
        ]
        problems += format_problems()
        for name in plugin_names(ENCODERS):
            try:
                load_plugin(ENCODERS, name)
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
