"""How likely each step, type and property of a graph is meant by a question: the slots of its plans.

A logistic score over features that hold in any domain: stems in common, spelling in common (abbreviations), the
similarity of vectors of words and of the whole question, the frequency of the relation. Weights are fitted on other
domains (``clew train plans``).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import fold_name
from clew.questions.catalogue import Label

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Vectors
    from clew.core.protocols import Encoder
    from clew.questions.catalogue import GraphCatalogue, Step
    from clew.questions.names import NameMatch
    from clew.questions.text import QuestionText, Value

FEATURES = (
    "stem in common",
    "share of the label's stems",
    "spelling in common",
    "nearest word by vector",
    "similarity of the whole, among its kind",
    "rank by similarity",
    "frequency",
    "bias",
)
#: A name takes its words away from relations where it is at least so like.
CERTAIN = 0.65
#: A property with more values is not compared by meaning; from such a similarity of vectors on a value may be meant.
MOST_DESCRIBED, LEAST_ALIKE = 40, 0.35


@dataclass(frozen=True, slots=True)
class SlotScores:
    """The log-odds of each slot of a catalogue for one question. ``described`` has the values of each property that
    are nearest to the question by vector."""

    catalogue: GraphCatalogue
    question: QuestionText
    names: tuple[NameMatch, ...]
    steps: Mapping[Step, float]
    types: Mapping[str, float]
    properties: Mapping[str, float]
    described: Mapping[str, list[tuple[str, float]]] = field(default_factory=dict)

    def in_name(self, value: Value) -> bool:
        """Return whether a number is part of a longer name: the 3 of "Ep. 3"."""
        words = self.question.words
        return any(
            words[name.first].start <= value.start
            and value.end <= words[name.last - 1].end
            and name.last - name.first > 1
            for name in self.names
            if name.likeness > CERTAIN
        )

    def is_day(self, property: str) -> bool:
        """Return whether the values of a property are days."""
        column = self.catalogue.graph.property_values(property)
        if column is None or len(column.starts) < 2:
            return False
        text = column.texts[: int(column.starts[1])].tobytes().decode("utf-8")
        parts = text.split()
        return len(parts) == 3 and len(parts[0]) == 4 and all(part.isdigit() for part in parts)

    def mentioned_values(self, property: str) -> list[tuple[str, float]]:
        """Return the values of a property that the question gives, and how likely each is meant: those whose words
        stand in it, longest first; else the two that are most like its words in spelling or meaning."""
        text = f" {fold_name(self.question.text)} "
        own = [value for value in self.catalogue.values(property) if f" {value} " in text]
        if own:
            return [(value, 2.0) for value in sorted(own, key=len, reverse=True)[:2]]
        stems = {word.text[:5] for word in self.question.words if len(word.text) >= 5}
        own = [value for value in self.catalogue.values(property) if value[:5] in stems]
        if own:
            return [(value, 1.0) for value in sorted(own, key=len, reverse=True)[:2]]
        return self.described.get(property, [])


def measure_features(
    question: QuestionText,
    names: Sequence[NameMatch],
    labels: Sequence[Label],
    sentences: Sequence[str],
    frequencies: Sequence[float],
    encoder: Encoder | None,
) -> Floats:
    """Return the features of labels for a question, (labels, :data:`FEATURES`). ``sentences`` say each label as the
    whole question is compared with it."""
    taken = {place for name in names if name.likeness >= CERTAIN for place in range(name.first, name.last)}
    words = [word for place, word in enumerate(question.words) if place not in taken and word.is_content]
    features = np.zeros((len(labels), len(FEATURES)))
    features[:, -1], features[:, -2] = 1.0, np.log(np.maximum(frequencies, 1e-4)) / 5
    stems = {word.stem for word in words}
    written = [word.text for word in words]
    known_as = {label.text: write_out(label, written) for label in labels}
    labels = [known_as[label.text] for label in labels]
    sentences = [known_as[text].text if text in known_as else text for text in sentences]
    for row, label in enumerate(labels):
        shared = {each for each in label.stems if any(share_root(each, stem) for stem in stems)}
        features[row, 0] = bool(shared)
        features[row, 1] = len(shared) / max(len(label.stems), 1)
        features[row, 2] = max((_share_spelling(word.text, label.text) for word in words), default=0.0)
    if encoder is None or not len(labels):
        return features
    texts = list(dict.fromkeys([mask_names(question, names), *(word.text for word in words)]))
    vectors = encoder.encode(texts)
    known = encode_labels(encoder, tuple(label.text for label in labels))
    if len(words):
        rows = [texts.index(word.text) for word in words]
        features[:, 3] = (vectors[rows] @ known.T).max(axis=0)
    whole = encode_labels(encoder, tuple(sentences)) @ vectors[0]
    features[:, 4] = (whole - whole.mean()) / (whole.std() + 0.03)
    features[:, 5] = 1.0 / (1.0 + np.argsort(np.argsort(-whole)))
    return features


def mask_names(question: QuestionText, names: Sequence[NameMatch]) -> str:
    """Return the question with the type of each certain name in place of it."""
    text, end = [], 0
    for name in sorted(names, key=lambda each: each.first):
        start, last = question.words[name.first].start, question.words[name.last - 1].end
        if name.likeness >= CERTAIN and start >= end:
            text += [question.text[end:start], f"the {min(name.types)}" if name.types else "it"]
            end = last
    return "".join([*text, question.text[end:]])


def describe_values(
    catalogue: GraphCatalogue, question: QuestionText, names: Sequence[NameMatch], encoder: Encoder
) -> dict[str, list[tuple[str, float]]]:
    """Return the two values of each property with few values that are nearest to a word of the question, and to what
    is left of it without its names."""
    taken = {place for name in names if name.likeness >= CERTAIN for place in range(name.first, name.last)}
    words = [word.text for place, word in enumerate(question.words) if place not in taken and word.is_content]
    runs = [*words, *(f"{first} {second}" for first, second in itertools.pairwise(words))]
    described: dict[str, list[tuple[str, float]]] = {}
    if not runs:
        return described
    vectors = encoder.encode(list(dict.fromkeys(runs)))
    for property in catalogue.properties:
        values = tuple(catalogue.values(property))
        if 1 < len(values) <= MOST_DESCRIBED:
            likeness = (encode_labels(encoder, values) @ vectors.T).max(axis=1)
            best = np.argsort(-likeness)[:2]
            described[property] = [
                (values[place], 4.0 * (float(likeness[place]) - LEAST_ALIKE))
                for place in best
                if likeness[place] > LEAST_ALIKE
            ]
    return described


class OnceEncoder:
    """An encoder that encodes each text once: made for one question, whose words are compared with many labels."""

    def __init__(self, encoder: Encoder) -> None:
        self.name, self.dimension, self.objective = encoder.name, encoder.dimension, encoder.objective
        self._encoder = encoder
        self._vectors: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return the vectors of texts, (n, dimension), none of them as a question's."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            self._vectors |= zip(missing, self._encoder.encode(missing), strict=True)
        return np.stack([self._vectors[text] for text in texts])


_VECTORS: dict[tuple[str, str], Floats] = {}


def encode_labels(encoder: Encoder, texts: tuple[str, ...]) -> Floats:
    """Return the vectors of texts that stay the same from question to question, (n, dimension)."""
    missing = [text for text in dict.fromkeys(texts) if (encoder.name, text) not in _VECTORS]
    if missing:
        for text, vector in zip(missing, encoder.encode(missing), strict=True):
            _VECTORS[encoder.name, text] = vector.astype(np.float64)
    return np.stack([_VECTORS[encoder.name, text] for text in texts])


def share_root(first: str, second: str) -> bool:
    """Return whether two stems differ in an ending only: "director" and "direct"."""
    short, long = sorted((first, second), key=len)
    return first == second or (len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 4)


def _share_spelling(word: str, label: str) -> float:
    """Return how much of the shorter of a word and a label's words the two begin alike in: "constr." abbreviates."""
    best = 0.0
    for part in label.split():
        short, long = sorted((word, part), key=len)
        if len(short) >= 2:
            common = next(
                (n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
            )
            best = max(best, common / max(len(short), 4))
    return best


def write_out(label: Label, words: Sequence[str]) -> Label:
    """Return a label with those of its words written out that abbreviate a word of the question.

    >>> from clew.questions.catalogue import Label
    >>> write_out(Label.read("drvName"), ["driver"]).text, write_out(Label.read("dest_qty"), ["quantity"]).text
    ('driver name', 'dest quantity')
    >>> write_out(Label.read("man"), ["manager", "man"]).text
    'man'
    """
    parts = label.text.split()
    written = [
        part if part in words else next((word for word in words if _abbreviates(part, word)), part)
        for part in parts
    ]
    return label if written == parts else Label.read(" ".join(written))


def _abbreviates(part: str, word: str) -> bool:
    """Return whether a part of a name is a word without its end, or without letters of which all vowels but the first
    letter are gone: "dest" and "drv" for "destination" and "driver"."""
    if not 3 <= len(part) <= len(word) - 2 or part[0] != word[0]:
        return False
    if len(part) <= 5 and word.startswith(part):
        return len(word) >= 2 * len(part) - 1
    letters = iter(word)
    return not set(part[1:]) & set("aeiou") and all(letter in letters for letter in part)


@dataclass(frozen=True, slots=True)
class SlotScorer:
    """The weights of :data:`FEATURES` for steps, types and properties."""

    steps: Floats
    types: Floats
    properties: Floats

    def score(
        self,
        catalogue: GraphCatalogue,
        question: QuestionText,
        names: Sequence[NameMatch],
        encoder: Encoder | None,
    ) -> SlotScores:
        """Return the log-odds of each slot."""
        features = slot_features(catalogue, question, names, encoder)
        relations = features["steps"] @ self.steps
        types = dict(zip(catalogue.types, (features["types"] @ self.types).tolist(), strict=True))
        properties = dict(
            zip(catalogue.properties, (features["properties"] @ self.properties).tolist(), strict=True)
        )
        steps = dict(zip(catalogue.steps, relations.tolist(), strict=True))
        described = {} if encoder is None else describe_values(catalogue, question, names, encoder)
        return SlotScores(catalogue, question, tuple(names), steps, types, properties, described)


def slot_features(
    catalogue: GraphCatalogue, question: QuestionText, names: Sequence[NameMatch], encoder: Encoder | None
) -> dict[str, Floats]:
    """Return the features of the steps, types and properties of a catalogue."""
    labels, steps = catalogue.labels, catalogue.steps
    return {
        "steps": measure_features(
            question,
            names,
            [labels[step.relation] for step in steps],
            [_say_step(catalogue, step) for step in steps],
            [catalogue.shares[step.relation] for step in steps],
            encoder,
        ),
        "types": measure_features(
            question,
            names,
            [labels[type] for type in catalogue.types],
            [labels[type].text for type in catalogue.types],
            [0.1] * len(catalogue.types),
            encoder,
        ),
        "properties": measure_features(
            question,
            names,
            [labels[name] for name in catalogue.properties],
            [_say_property(catalogue, name) for name in catalogue.properties],
            [0.1] * len(catalogue.properties),
            encoder,
        ),
    }


def _say_step(catalogue: GraphCatalogue, step: Step) -> str:
    head, tail = (
        min((catalogue.labels[type].text for type in types), default="thing")
        for types in (catalogue.sources[step], catalogue.targets(step))
    )
    text = catalogue.labels[step.relation].text
    return f"{tail} {text} {head}" if step.inverse else f"{head} {text} {tail}"


def _say_property(catalogue: GraphCatalogue, name: str) -> str:
    owner = min(
        (catalogue.labels[type].text for type in catalogue.owners[name] if type in catalogue.labels),
        default="",
    )
    return f"{catalogue.labels[name].text} of {owner}"
