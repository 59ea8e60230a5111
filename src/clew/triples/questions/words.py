"""The words of a question, and how far each of them names a relation or a type of a graph."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import is_stop_term, stem
from clew.triples.linking.relation_words import verbalise_relation

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?", re.UNICODE)
#: The affinity of a word that a relation's own name has, and of one that means the same by the lexicon.
SAME_STEM, SAME_CONCEPT = 1.0, 0.9
#: Cosines of single words below the first say nothing; at the second, a word is as good as half a synonym.
COSINE_FLOOR, COSINE_FULL = 0.45, 0.9
#: The affinity of a word that only the encoder thinks alike is at most this.
MOST_BY_ENCODER = 0.6
#: Words of a question that name no relation by themselves.
GENERIC = frozenset(
    "list name find give show tell me many much person people individual other another same share shared common also "
    "together co film films movie movies book books song songs album albums work works item items entry entries main "
    "primary thing things one ones kind all any every each some listed fall use uses used using get gets got code "
    "codes value values make makes made making come comes came coming".split()
)
#: Words of names of relations that carry no meaning of their own.
_EMPTY = frozenset("has have is was are in by of on at to for the a an from with us".split())
#: How a line of the lexicon with words for a relation and for its inverse begins.
_INVERSE = "<>"
#: What is left of the affinity of a word to a label, where it names what tells another label apart.
_OF_RIVAL = 0.5
#: Stems of the concepts of parts and wholes.
_PART_STEMS = (stem("contain"), stem("section"), stem("member"))
PERSON_WORDS = frozenset("person people individual individuals man woman persons".split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: its text in lower case, its stem, and its place in characters."""

    text: str
    stem: str
    start: int
    end: int

    @property
    def is_content(self) -> bool:
        """Whether it may name a relation or a type."""
        return not is_stop_term(self.stem) and self.text not in QUESTION_WORDS


#: Function words of questions that a list of stop words for passages does not have.
QUESTION_WORDS = frozenset(
    "who whom whose which what when where how does did do list name find give show tell me".split()
)


def split_words(question: str) -> list[Word]:
    """Return the words of a question in order; a hyphen separates words, an apostrophe with s does too."""
    words = []
    for match in _WORD.finditer(question):
        text = re.sub(r"['’]s?$", "", match.group().casefold())
        if text:
            words.append(Word(text, stem(text), match.start(), match.start() + len(text)))
    return words


@dataclass(frozen=True, slots=True)
class Concept:
    """Words that name about the same relation, and the kind of thing that it leads to ("" where that is open)."""

    kind: str
    stems: frozenset[str]


@cache
def load_concepts() -> tuple[Concept, ...]:
    """Return the concepts of ``lexicon.txt``."""
    concepts = []
    for line in _lexicon_lines():
        kind, *words = line.split()
        if kind != _INVERSE:
            concepts.append(Concept("" if kind == "-" else kind, frozenset(map(stem, words))))
    return tuple(concepts)


def _lexicon_lines() -> list[str]:
    text = files("clew.triples.questions").joinpath("lexicon.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


@cache
def _inverse_stems() -> dict[str, frozenset[str]]:
    """Return for each stem those that name the inverse of what it names: "father" for "daughter"."""
    inverses: dict[str, frozenset[str]] = {}
    for line in _lexicon_lines():
        kind, _, rest = line.partition(" ")
        if kind == _INVERSE:
            first, second = (frozenset(map(stem, part.split())) for part in rest.split("|"))
            inverses |= dict.fromkeys(first, second) | dict.fromkeys(second, first)
    return inverses


def names_inverse(word_stem: str, label: Label) -> bool:
    """Return whether a word names a relation from its other end only: the father is where "daughter" begins."""
    opposite = _inverse_stems().get(word_stem, frozenset())
    concepts = concepts_of(word_stem)
    return any(each in opposite for each in label.stems) and not any(
        _stem_affinity(word_stem, concepts, each) for each in label.stems
    )


@cache
def _concepts_of_stem() -> dict[str, frozenset[int]]:
    places: dict[str, set[int]] = {}
    for number, concept in enumerate(load_concepts()):
        for each in concept.stems:
            places.setdefault(each, set()).add(number)
    return {each: frozenset(numbers) for each, numbers in places.items()}


@lru_cache(maxsize=1 << 14)
def concepts_of(word_stem: str) -> frozenset[int]:
    """Return the numbers of the concepts that have a stem."""
    return _concepts_of_stem().get(word_stem, frozenset())


@dataclass(frozen=True, slots=True)
class Label:
    """A relation, property or type as words: its name spelled out, the stems that mean something, their concepts."""

    text: str
    stems: tuple[str, ...]
    kinds: frozenset[str]

    @property
    def is_agentive(self) -> bool:
        """Whether it leads to what acts: ``directed by``, ``author``."""
        return self.text.endswith(" by") or ("person" in self.kinds and not self.text.endswith(("s", "of")))

    @property
    def is_containment(self) -> bool:
        """Whether it leads from a part to the whole: ``part of``, ``in section``, ``defined in``."""
        of_parts = {each for stems in _PART_STEMS for each in concepts_of(stems)}
        is_place = self.text.endswith((" of", " in")) or self.text.startswith("in ")
        return is_place and any(concepts_of(each) & of_parts for each in self.stems)

    @property
    def joins_alike(self) -> bool:
        """Whether both ends are of one kind, as those of ``daughter`` are: its inverse has words of its own."""
        return any(each in _inverse_stems() for each in self.stems)


@lru_cache(maxsize=1 << 14)
def read_label(name: str) -> Label:
    """Return the words of a relation, a property or a type."""
    text = verbalise_relation(name)
    stems = tuple(dict.fromkeys(stem(word) for word in text.split() if word not in _EMPTY))
    kinds = frozenset(load_concepts()[number].kind for each in stems for number in concepts_of(each)) - {""}
    return Label(text, stems or tuple(map(stem, text.split())), kinds)


@lru_cache(maxsize=1 << 16)
def label_affinity(word_stem: str, label: Label) -> float:
    """Return how far a word names a label, from 0 to 1: by its stem, by the lexicon; of labels of several words by
    the share that it covers."""
    concepts = concepts_of(word_stem)
    scores = [_stem_affinity(word_stem, concepts, each) for each in label.stems]
    best = max(scores, default=0.0)
    if not best:
        return SAME_CONCEPT if names_inverse(word_stem, label) else 0.0
    return best * (0.7 + 0.3 * sum(score > 0 for score in scores) / len(scores))


def _stem_affinity(word_stem: str, concepts: frozenset[int], other: str) -> float:
    if word_stem == other or _has_same_root(word_stem, other):
        return SAME_STEM
    return SAME_CONCEPT if concepts & concepts_of(other) else 0.0


def _has_same_root(first: str, second: str) -> bool:
    """Return whether two stems differ in a suffix only: ``direct`` and ``director``, not ``act`` and ``action``."""
    short, long = sorted((first, second), key=len)
    return len(short) >= 5 and long.startswith(short) and len(long) - len(short) <= 4


def measure_affinities(
    words: Sequence[Word], labels: Sequence[Label], encoder: Encoder | None = None
) -> Floats:
    """Return how far each word names each label, (words, labels), from 0 to 1.

    Words that the stems and the lexicon say nothing about are compared by ``encoder``, one word with one label.
    """
    scores = np.zeros((len(words), len(labels)))
    for place, word in enumerate(words):
        if word.is_content:
            scores[place] = [label_affinity(word.stem, label) for label in labels]
            scores[place] *= _shares_of_rivals(word.stem, scores[place], labels)
    if encoder is None or not labels:
        return scores
    open_places = [
        place
        for place, word in enumerate(words)
        if word.is_content
        and word.text not in GENERIC
        and not scores[place].any()
        and not word.text.isdigit()
    ]
    if open_places:
        texts = [words[place].text for place in open_places]
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        vectors = encoder.encode(list(rows))[[rows[text] for text in texts]]
        cosines = vectors @ _label_vectors(encoder, tuple(label.text for label in labels))
        strength = (cosines - COSINE_FLOOR) / (COSINE_FULL - COSINE_FLOOR)
        scores[open_places] = MOST_BY_ENCODER * np.clip(strength, 0, 1)
    return scores


def _shares_of_rivals(word_stem: str, scores: Floats, labels: Sequence[Label]) -> Floats:
    """Return what is left of the affinities of a word to each label. Labels with a word in common ("official
    language", "spoken language") are told apart by their others: a word that is one of these does not name the
    rest."""
    shares = np.ones(len(labels))
    near = [place for place, score in enumerate(scores) if score > 0]
    for first in near:
        for second in near:
            common = set(labels[first].stems) & set(labels[second].stems)
            if common and word_stem not in common and word_stem in set(labels[first].stems) - common:
                shares[second] = min(
                    shares[second], _OF_RIVAL if word_stem not in labels[second].stems else 1.0
                )
    return shares


_VECTORS: dict[tuple[str, str], Floats] = {}


def _label_vectors(encoder: Encoder, labels: tuple[str, ...]) -> Floats:
    """Return the vectors of labels as columns, (dimension, labels); each is encoded once in a process."""
    missing = [label for label in dict.fromkeys(labels) if (encoder.name, label) not in _VECTORS]
    if missing:
        for label, vector in zip(missing, encoder.encode(missing), strict=True):
            _VECTORS[encoder.name, label] = vector.astype(np.float64)
    return np.stack([_VECTORS[encoder.name, label] for label in labels], axis=1)
