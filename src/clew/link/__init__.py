"""Linking: what names and relation words stand for in a graph, and which nodes of several graphs are one thing."""

from clew.link.entities import Entities
from clew.link.grounding import Grounding, ground
from clew.link.relations import Relations, load_aliases
from clew.link.same import SameLink, links, same, same_in

__all__ = [
    "Entities",
    "Grounding",
    "Relations",
    "SameLink",
    "ground",
    "links",
    "load_aliases",
    "same",
    "same_in",
]
