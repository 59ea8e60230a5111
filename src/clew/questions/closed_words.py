"""Closed classes of English words, which a question is read by; what words mean is learned, never listed."""

from __future__ import annotations

ARTICLES = frozenset("the a an".split())
ASKING = frozenset("who whom whose what which when where why how".split())
WHO = frozenset("who whom whose".split())
AUXILIARIES = frozenset(
    "is are was were be been do does did has have had can could will would shall should may might must".split()
)
PREPOSITIONS = frozenset(
    "of in on at by for from to with without about as into over under between during before after since until than "
    "per".split()
)
#: "n't" at the end of a word negates, too.
NEGATIONS = frozenset("not no never none nor neither nobody nothing cannot without".split())
#: What stands before a number or a day that bounds something, by the operator that it means; in front of "than", and
#: behind "or" and "and" that follow the number ("30 or more").
BOUNDS = {
    "<": frozenset("before under below".split()),
    "<=": frozenset("until till by".split()),
    ">": frozenset("after over above beyond".split()),
    ">=": frozenset("since from".split()),
}
LESS, MORE = (
    frozenset("less fewer earlier lower under below down".split()),
    frozenset("more greater later higher over above up upwards".split()),
)
