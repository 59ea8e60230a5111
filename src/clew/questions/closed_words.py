"""Closed classes of English words, which a question is read by; what words mean is learned, never listed."""

from __future__ import annotations

ARTICLES = frozenset("the a an".split())
ASKING = frozenset("who whom whose what which when where why how".split())
AUXILIARIES = frozenset(
    "is are was were be been do does did has have had can could will would shall should may might must".split()
)
PREPOSITIONS = frozenset(
    "of in on at by for from to with without about as into over under between during before after since until than "
    "per".split()
)
