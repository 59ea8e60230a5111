"""The names of a graph's nodes in a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import fold_name, is_stop_term
from clew.triples.questions.words import GENERIC, QUESTION_WORDS, Word, split_words

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import PropertyGraph

#: A name has at most this many words, and a question at most this many names are tried.
LONGEST_NAME, MAX_NAMES = 14, 6
#: Less plausible names count only where there is no other: a film may be called "What?".
HOPELESS = 0.1
#: Nodes of the same name beyond these are not looked at.
MAX_ROWS = 64
#: Names of fewer characters are not read for others, those of at least the second number with up to two edits, others
#: with one; names of more words are not looked for, and no more runs of words than the last number.
SHORTEST_RESPELT, TWO_EDITS_FROM, LONGEST_RESPELT, MAX_RESPELT_RUNS = 4, 8, 6, 40
_CODED = re.compile(r"\w(?:[:_/.@+]+|-)\w")
_DIGITS = re.compile(r"\d+")
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


@dataclass(frozen=True, slots=True)
class Respelling:
    """A question with a name written as a graph has it: ``written`` became ``name``, at a distance of ``edits``."""

    question: str
    written: str
    name: str
    graph: str
    edits: int

    @property
    def rank(self) -> tuple[int, int]:
        """What comes first: the longest run of words, then the nearest name."""
        return -len(self.written.split()), self.edits


def respell_names(
    graph: PropertyGraph, question: str, may_be_misspelt: Callable[[str], bool]
) -> list[Respelling]:
    """Return a question with a name of the graph in the place of words that are nearly that name, the longest run of
    words first, then the nearest.

    Distance is the number of insertions, deletions, substitutions and swaps of neighbours between folded names.
    Numbers have to be equal. ``may_be_misspelt`` decides which words are looked at: a run needs such a word, and one
    that is itself a name in the graph is left alone.
    """
    from rapidfuzz.distance import OSA

    words = split_words(question)
    names = [name for name in find_names(graph, question, words) if name.plausibility >= HOPELESS]
    known = {place for name in names for place in range(name.first, name.last)}
    capitals = {place for place, word in enumerate(words) if question[word.start].isupper()}

    def is_wording(place: int) -> bool:
        text = words[place].text
        return text in QUESTION_WORDS or text in GENERIC or is_stop_term(words[place].stem)

    suspects = {
        place
        for place, word in enumerate(words)
        if place not in known and not is_wording(place) and may_be_misspelt(word.text)
    }
    # Who writes some names with capitals writes the others so, too.
    suspects = suspects & capitals - {0} or suspects
    ends = {place for place in range(len(words)) if not is_wording(place)} | capitals - {0}
    if not capitals - {0}:  # "apocalypse now" may end with any word but those of questions
        ends |= {place for place, word in enumerate(words) if word.text not in QUESTION_WORDS | GENERIC}
    runs = [
        (start, start + size)
        for size in range(LONGEST_RESPELT, 0, -1)
        for start in range(len(words) - size + 1)
        if start in ends and start + size - 1 in ends and suspects & set(range(start, start + size))
    ]
    respellings: dict[tuple[str, str], Respelling] = {}
    for start, end in runs[-MAX_RESPELT_RUNS:]:
        written = question[words[start].start : words[end - 1].end]
        folded = fold_name(written)
        if len(folded) < SHORTEST_RESPELT or len(graph.find_by_name(written)):
            continue
        most = 2 if len(folded) >= TWO_EDITS_FROM else 1
        rows, _ = graph.find_similar_names(written, 5)
        for entity in graph.entities(rows):
            for name in (entity.name, *entity.aliases):
                other = fold_name(name)
                edits = OSA.distance(folded, other, score_cutoff=most)
                if edits <= most and _DIGITS.findall(folded) == _DIGITS.findall(other):
                    text = f"{question[: words[start].start]}{name}{question[words[end - 1].end :]}"
                    key = written, other  # nodes whose names differ in capitals alone are one spelling
                    respellings.setdefault(key, Respelling(text, written, name, graph.name, edits))
    return sorted(respellings.values(), key=lambda each: (each.rank, each.name))
