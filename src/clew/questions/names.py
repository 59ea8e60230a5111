"""The names of a graph's nodes in a question, misspelt ones included, and how likely each is meant.

Large graphs have nodes called "actors" and "What?": whether the words of a question name such a node is a fitted
probability of how they are written, of the name and of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import PropertyGraph
    from clew.questions.catalogue import GraphCatalogue
    from clew.questions.text import QuestionText

#: Words of the longest name that is looked up, names of one question, and nodes of one name that are looked at.
LONGEST_NAME, MAX_NAMES, MAX_ROWS = 12, 8, 64
#: Spellings are compared from so many characters on, in at most so many runs of so many words, and count from so much
#: likeness.
SHORTEST_RESPELT, LONGEST_RESPELT, MAX_RESPELT_RUNS, LEAST_LIKENESS = 4, 5, 40, 0.78
#: Candidates of one question that are weighed, and the least probability of one that is used.
MAX_CANDIDATES, LEAST_PROBABLE = 24, 0.08
#: What an exact spelling in lower case, and the singular of a word, are worth beside a name as the graph writes it.
LOWER_CASE, SINGULAR = 0.7, 0.5


@dataclass(frozen=True, slots=True, eq=False)
class NameMatch:
    """Words of a question, from ``first`` up to ``last``, that name nodes: their ``name``, ``rows`` and ``types``.

    ``likeness`` from 0 to 1 is how likely they do; before it is weighed (:class:`NameScorer`), how like the name they
    are written.
    """

    first: int
    last: int
    name: str
    rows: Rows
    types: frozenset[str]
    likeness: float

    def overlaps(self, other: NameMatch) -> bool:
        """Return whether two names share a word."""
        return self.first < other.last and other.first < self.last


#: What the probability that words name a node is fitted to.
NAME_FEATURES = (
    "likeness of spelling",
    "as the graph writes it",
    "another spelling",
    "in lower case in the question alone",
    "a capital letter inside the question",
    "log of words",
    "log of characters",
    "function words alone",
    "share of words that the schema has",
    "a number",
    "one word in lower case",
    "log of nodes, of a spelling that is not the graph's",
    "log of nodes, of one word",
    "bias",
)


@dataclass(frozen=True, slots=True)
class NameScorer:
    """The weights of :data:`NAME_FEATURES`."""

    weights: Floats

    def score(
        self, matches: Sequence[NameMatch], question: QuestionText, catalogue: GraphCatalogue
    ) -> list[NameMatch]:
        """Return the names that are likely enough with the probability of each, the likeliest first."""
        if not matches:
            return []
        logits = measure_names(matches, question, catalogue) @ self.weights
        weighed = [
            replace(match, likeness=float(1 / (1 + math.exp(-logit))))
            for match, logit in zip(matches, np.clip(logits, -30, 30).tolist(), strict=True)
        ]
        return [match for match in _rank_names(weighed) if match.likeness >= LEAST_PROBABLE]


def measure_names(matches: Sequence[NameMatch], question: QuestionText, catalogue: GraphCatalogue) -> Floats:
    """Return the features of names in a question, (names, :data:`NAME_FEATURES`)."""
    schema = {stem for label in catalogue.labels.values() for stem in label.stems}
    size = math.log10(max(catalogue.graph.size, 10))
    features = np.zeros((len(matches), len(NAME_FEATURES)))
    for row, match in enumerate(matches):
        words = question.words[match.first : match.last]
        text = question.text[words[0].start : words[-1].end]
        content = [word for word in words if word.is_content]
        inner = words[1:] if match.first == 0 else words
        is_single = len(words) == 1
        features[row] = (
            match.likeness,
            text == match.name,
            text.casefold() != match.name.casefold(),
            text.islower() and not match.name.islower(),
            any(question.text[word.start].isupper() for word in inner),
            math.log(len(words)),
            math.log(len(text)),
            not content,
            sum(word.stem in schema for word in content) / max(len(content), 1),
            text.replace(" ", "").isdigit(),
            is_single and text.islower(),
            size * (text != match.name),
            size * is_single,
            1.0,
        )
    return features


def find_names(
    catalogue: GraphCatalogue, question: QuestionText, scorer: NameScorer | None = None
) -> list[NameMatch]:
    """Return the names in a question, the likeliest first; of overlapping ones the longest, and beside it no other.

    Runs of words that are no name are compared by spelling, where no word of them is part of a name. Without a
    ``scorer`` they are as like as they are written.
    """
    graph, words = catalogue.graph, question.words
    matches: list[NameMatch] = []
    for first in range(len(words)):
        for last in range(min(len(words), first + LONGEST_NAME), first, -1):
            if of_span := _look_up(graph, question, first, last):
                matches += of_span
                break
    matches = _keep_longest(matches)
    taken = {
        place for match in matches if match.likeness > SINGULAR for place in range(match.first, match.last)
    }
    matches += _respell(graph, question, taken)
    for value in question.values:
        places = [
            place for place, word in enumerate(words) if word.start < value.end and value.start < word.end
        ]
        rows = graph.find_by_name(value.texts[0])
        if len(rows) and places:
            matches.append(_match(graph, rows, places[0], places[-1] + 1, value.texts[0], 1.0))
    unique = {(match.first, match.last, match.name): match for match in matches}
    candidates = _rank_names(unique.values())[:MAX_CANDIDATES]
    return (candidates if scorer is None else scorer.score(candidates, question, catalogue))[:MAX_NAMES]


def _rank_names(matches: Iterable[NameMatch]) -> list[NameMatch]:
    return sorted(matches, key=lambda match: (-match.likeness, match.first - match.last, match.first))


def _look_up(graph: PropertyGraph, question: QuestionText, first: int, last: int) -> list[NameMatch]:
    start, end = question.words[first].start, question.words[last - 1].end
    text = question.text[start:end]
    rows, worth = graph.find_by_name(text), 1.0
    if not len(rows):
        rows, worth = graph.find_by_name(question.text[start : end + 2]), 1.0  # "Schindler's", "Jones'"
        if len(rows):
            text = question.text[start : end + 2]
    if not len(rows) and len(text) > 3 and text.endswith("s"):
        for singular in (text[:-1], text[:-2], f"{text[:-3]}y"):
            if len(rows := graph.find_by_name(singular)):
                text, worth = singular, SINGULAR
                break
    if not len(rows):
        return []
    by_name: dict[str, list[int]] = {}
    for row, entity in zip(rows[:MAX_ROWS].tolist(), graph.entities(rows[:MAX_ROWS]), strict=True):
        by_name.setdefault(entity.name, []).append(row)
    matches = []
    for name, of_name in by_name.items():
        written = worth if name in (text, question.text[start:end]) else worth * 0.95
        if question.text[start:end].islower() and not name.islower():
            written *= LOWER_CASE
        matches.append(_match(graph, np.array(of_name, dtype=np.int64), first, last, name, written))
    return matches


def _match(graph: PropertyGraph, rows: Rows, first: int, last: int, name: str, likeness: float) -> NameMatch:
    entities = graph.entities(rows[:MAX_ROWS])
    types = frozenset(type for entity in entities for type in (entity.type, *entity.more_types) if type)
    return NameMatch(first, last, entities[0].name if len(entities) == 1 else name, rows, types, likeness)


def _keep_longest(matches: list[NameMatch]) -> list[NameMatch]:
    """Return the matches that stand in no longer one."""
    return [
        match
        for match in matches
        if not any(
            other.first <= match.first
            and match.last <= other.last
            and other.last - other.first > match.last - match.first
            for other in matches
        )
    ]


def _respell(graph: PropertyGraph, question: QuestionText, taken: set[int]) -> list[NameMatch]:
    """Return names that are spelt nearly as a run of words that are part of no name."""
    words, runs = question.words, []
    for first in range(len(words)):
        for last in range(first + 1, min(len(words), first + LONGEST_RESPELT) + 1):
            if any(place in taken for place in range(first, last)):
                break
            content = [word for word in words[first:last] if word.is_content]
            if words[first].is_content and words[last - 1].is_content and content:
                runs.append((first, last))
    matches: list[NameMatch] = []
    for first, last in sorted(runs, key=lambda run: run[0] - run[1])[:MAX_RESPELT_RUNS]:
        text = question.text[words[first].start : words[last - 1].end]
        if len(text) < SHORTEST_RESPELT:
            continue
        rows, likeness = graph.find_similar_names(text, 2)
        for row, like in zip(rows.tolist(), likeness.tolist(), strict=True):
            if LEAST_LIKENESS <= like < 1.0:
                rows_of_name = np.array([row], dtype=np.int64)
                name = graph.entities(rows_of_name)[0].name
                matches.append(_match(graph, rows_of_name, first, last, name, like * LOWER_CASE))
    best: list[NameMatch] = []
    for match in sorted(matches, key=lambda match: (-match.likeness, match.first - match.last)):
        if sum(match.overlaps(other) for other in best) < 2:
            best.append(match)
    return best
