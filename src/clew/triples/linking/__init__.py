"""Linking: what names and relation words stand for in a graph, and which nodes of several graphs are one thing."""

from __future__ import annotations

from clew.triples.linking.entities import GraphEntityLinker
from clew.triples.linking.entity_alignment import (
    EntityAlignment,
    align_entity,
    align_entity_with,
    align_graphs,
)
from clew.triples.linking.relations import GraphRelationLinker, Grounding, ground, load_aliases

__all__ = [
    "EntityAlignment",
    "GraphEntityLinker",
    "GraphRelationLinker",
    "Grounding",
    "align_entity",
    "align_entity_with",
    "align_graphs",
    "ground",
    "load_aliases",
]
