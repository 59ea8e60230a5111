"""The names of a graph's nodes in a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import is_stop_term
from clew.triples.questions.words import GENERIC, QUESTION_WORDS, Word

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph

#: A name has at most this many words, and a question at most this many names are tried.
LONGEST_NAME, MAX_NAMES = 14, 6
#: Less plausible names count only where there is no other: a film may be called "What?".
HOPELESS = 0.1
#: Nodes of the same name beyond these are not looked at.
MAX_ROWS = 64
_CODED = re.compile(r"\w(?:[:_/.@+]+|-)\w")
_QUOTES = re.compile(r"[\"“”«»\[\]]")


@dataclass(frozen=True, slots=True, eq=False)
class NameMatch:
    """Words of a question that are the name of nodes: the words from ``first`` up to ``last``, the nodes' own
    ``name`` and their ``rows``.

    ``is_exact``: the question writes the name as the graph does, capitals included. ``plausibility`` from 0 to 1 says
    how likely the words are a name and not part of the question's own wording.
    """

    first: int
    last: int
    name: str
    rows: Rows
    is_exact: bool
    plausibility: float

    def overlaps(self, other: NameMatch) -> bool:
        """Return whether two names share a word."""
        return self.first < other.last and other.first < self.last


def find_names(graph: PropertyGraph, question: str, words: Sequence[Word]) -> list[NameMatch]:
    """Return the names in a question, the most plausible first; of overlapping ones the longest.

    They are compared as :func:`clew.core.text.fold_name` folds them. A word in the plural is also looked up in the
    singular.
    """
    matches: list[NameMatch] = []
    start = 0
    while start < len(words):
        end = min(len(words), start + LONGEST_NAME)
        while end > start:
            of_span = _look_up(graph, question, words, start, end)
            if of_span:
                matches += of_span
                break
            end -= 1
        start += 1
    longest = [
        match
        for match in matches
        if not any(
            (other.first <= match.first and match.last <= other.last)
            and (other.last - other.first > match.last - match.first)
            for other in matches
        )
    ]
    longest.sort(key=lambda match: (-match.plausibility, match.first, not match.is_exact))
    if longest and longest[0].plausibility >= HOPELESS:
        longest = [match for match in longest if match.plausibility >= HOPELESS]
    return longest[:MAX_NAMES]


def _look_up(
    graph: PropertyGraph, question: str, words: Sequence[Word], start: int, end: int
) -> list[NameMatch]:
    """Return the names that the words from ``start`` to ``end`` are; one for each way in which nodes write it."""
    first, last = words[start], words[end - 1]
    raw_end = last.end
    # "Kismet's" is looked up without its "'s", "Schindler's List" with it.
    text = question[first.start : raw_end]
    rows = graph.find_by_name(text)
    is_singular = False
    if not len(rows) and end - start == 1 and not text[:1].isupper():
        for singular in _singulars(first.text):
            rows = graph.find_by_name(singular)
            if len(rows):
                is_singular = True
                break
    if not len(rows):
        return []
    rows = rows[:MAX_ROWS]
    by_name: dict[str, list[int]] = {}
    folded = text.casefold()
    for row, entity in zip(rows.tolist(), graph.entities(rows), strict=True):
        names = (entity.name, *entity.aliases)
        written = next((name for name in names if name == text), None) or next(
            (name for name in names if name.casefold() == folded), entity.name
        )
        by_name.setdefault(written, []).append(row)
    plausibility = _plausibility(question, words, start, end) * (0.7 if is_singular else 1.0)
    return [
        NameMatch(
            start,
            end,
            name,
            np.array(of_name, dtype=np.int64),
            name == text,
            plausibility * (1.0 if name == text or len(by_name) == 1 else 0.8),
        )
        for name, of_name in by_name.items()
    ]


def _singulars(word: str) -> list[str]:
    if word.endswith("ies") and len(word) > 4:
        return [word[:-3] + "y"]
    if word.endswith("es") and len(word) > 4:
        return [word[:-1], word[:-2]]
    return [word[:-1]] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else []


def _plausibility(question: str, words: Sequence[Word], start: int, end: int) -> float:
    """Return how likely words are a name: capitals, quotation marks, digits and length speak for it, words of
    questions against it."""
    span = words[start:end]
    before, after = question[: span[0].start].rstrip(), question[span[-1].end :].lstrip()
    if before[-1:] and after[:1] and _QUOTES.match(before[-1]) and _QUOTES.match(after[0]):
        return 1.0
    wording = sum(
        is_stop_term(word.stem) or word.text in QUESTION_WORDS or word.text in GENERIC for word in span
    )
    own = len(span) - wording
    capitals = sum(
        question[word.start].isupper() and (place + start > 0 or len(span) > 1)
        for place, word in enumerate(span)
    )
    # Identifiers, such as works-with::dtp or libc6.
    is_coded = bool(_CODED.search(question[span[0].start : span[-1].end])) or any(
        any(character.isdigit() for character in word.text) for word in span
    )
    if own == 0:
        return 0.5 if capitals and start > 0 else 0.02 * len(span)
    if own == 1 and wording and not capitals and not is_coded:
        return 0.3  # "the men" may be men
    score = 0.3 + 0.12 * min(own, 4) + (0.4 if capitals else 0.0) + (0.15 if is_coded else 0.0)
    return min(score, 0.98)
