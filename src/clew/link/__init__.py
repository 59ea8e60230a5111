"""Linking: what names and relation words stand for in a graph, and which nodes of several graphs are one thing."""

from clew.link.entities import GraphEntityLinker
from clew.link.grounding import Grounding, ground
from clew.link.relations import GraphRelationLinker, load_aliases
from clew.link.same import EntityAlignment, align_graphs, align_entity, align_entity_with

__all__ = [
    "GraphEntityLinker",
    "Grounding",
    "GraphRelationLinker",
    "EntityAlignment",
    "ground",
    "align_graphs",
    "load_aliases",
    "align_entity",
    "align_entity_with",
]
