"""The head, the relation and the tail of a triple, in the forms in which triples are written."""

from __future__ import annotations

import re

from clew.chains.quoting import mask_quotes, split_outside_quotes

ARROW = re.compile(r"\s*(?:-{1,8}>|=>|→|⟶|⇒)\s*")
_WITHIN = (
    r"\s*\[?:?\s*(?P<relation>[^\s\[\]<>—–-](?:[^\[\]<>]*?[^\s\[\]<>—–-])?)\s*\]?\s*[-—–]{0,8}(?:->|→|⟶)\s*"
)
#: A relation within an arrow. One dash opens it after white space or the end of a term; a name may have hyphens.
_ARROWS_WITH = (
    re.compile(rf"\s*(?:[-—–]{{2,8}}|—){_WITHIN}"),
    re.compile(rf"(?:\A|\s+|(?<=[)\]\"])|(?<=#\d)|(?<=#\d\d))[-–]{_WITHIN}"),
)
_CALLED = re.compile(r"(?P<relation>[\w][\w ./-]*)\(\s*(?P<ends>.+)\s*\)")
_BRACKETED = re.compile(r"[(\[<{]\s*(?P<inside>.+)\s*[)\]>}]")


def split_triple(text: str) -> list[str] | None:
    """Return the parts of what has the form of a triple, None for what has not."""
    shown = mask_quotes(text)
    if match := _BRACKETED.fullmatch(shown):
        inside = text[slice(*match.span("inside"))].strip()
        if ">>" in mask_quotes(inside):
            return split_outside_quotes(inside, ">>")
        parts = split_outside_quotes(inside, r",\s+")
        return parts if len(parts) == 3 else split_outside_quotes(inside, r",")
    if ">>" in shown:
        return split_outside_quotes(text, ">>")
    if ARROW.search(shown):
        return _around_arrows(text, shown)
    if (match := _CALLED.fullmatch(shown)) and "#" in match["ends"]:
        ends = split_outside_quotes(text[slice(*match.span("ends"))], r",\s*")
        return [ends[0], match["relation"].strip(), ends[1]] if len(ends) == 2 else None
    if shown.count("|") == 2 and "#" in shown:
        return split_outside_quotes(text, r"\|")
    return None


def _around_arrows(text: str, shown: str) -> list[str]:
    """Return the parts of ``head -> relation -> tail`` or ``head --relation--> tail``."""
    parts = split_outside_quotes(text, ARROW.pattern)
    if len(parts) > 2:
        return parts
    for pattern in _ARROWS_WITH:
        if match := pattern.search(shown):
            relation = text[slice(*match.span("relation"))]
            return [text[: match.start()].strip(), relation.strip(), text[match.end() :].strip()]
    return parts
