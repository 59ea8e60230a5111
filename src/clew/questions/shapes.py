"""What kind of plan a question asks for: probabilities of shapes, by a linear classifier that all domains share.

The question is read with its names, numbers and dates masked, and with words that the schema of the graph has
replaced by what they name, so that what is left is how people ask, in any domain. The weights are learned
(``clew train plans``), none of them is written by hand.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats
    from clew.questions.catalogue import GraphCatalogue
    from clew.questions.names import NameMatch
    from clew.questions.text import QuestionText

#: Number of buckets into which runs of words are hashed.
BUCKETS = 1 << 13
#: A name hides its words where it is at least so like.
CERTAIN = 0.6
#: What stands between the parts of a shape.
BETWEEN_PARTS = " | "
#: The log probability of a shape or part that was never seen, and what a part has at least.
UNSEEN, LEAST = -9.0, 1e-4
#: What the vector of a question is multiplied by beside its words, and the decay of weights in training.
VECTOR_SCALE, DECAY = 3.0, 1e-4


def mask_words(question: QuestionText, names: Sequence[NameMatch], catalogue: GraphCatalogue) -> list[str]:
    """Return the words of a question with names, values and words of the schema replaced by marks."""
    inside: dict[int, NameMatch] = {}
    for name in names:
        if name.likeness >= CERTAIN:
            for place in range(name.first, name.last):
                inside.setdefault(place, name)
    relations, types, properties = (
        {stem for name in kind for stem in catalogue.labels[name].stems}
        for kind in (catalogue.relations, catalogue.types, catalogue.properties)
    )
    masked: list[str] = []
    for place, word in enumerate(question.words):
        value = next((each for each in question.values if each.start <= word.start < each.end), None)
        if place in inside:
            mark = "<name>" if inside[place].first == place else ""
        elif value is not None:
            mark = ("<date>" if value.is_date else "<number>") if value.start == word.start else ""
        elif word.stem in types:
            mark = "<type>"
        elif word.is_content and word.stem in relations:
            mark = "<relation>"
        elif word.is_content and word.stem in properties:
            mark = "<property>"
        else:
            mark = word.text
        if mark:
            masked.append(mark)
    return ["<start>", *masked, "<end?>" if question.text.rstrip().endswith("?") else "<end>"]


def hash_runs(words: Sequence[str]) -> NDArray[np.int64]:
    """Return the buckets of the runs of one to three words, and of pairs in order at any distance of the marks."""
    runs = {
        " ".join(words[start : start + length])
        for length in (1, 2, 3)
        for start in range(len(words) - length + 1)
    }
    marks = [word for word in words if word.startswith("<")]
    runs.add("marks " + " ".join(marks))
    runs |= {f"{first} .. {second}" for first, second in zip(words[1:3], marks[1:3], strict=False)}
    return np.array(sorted({zlib.crc32(run.encode()) % BUCKETS for run in runs}), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ShapeClassifier:
    """Weights for shapes: ``runs`` of words by bucket, (:data:`BUCKETS` + 1, shapes), the last row the bias, and of
    the ``vector`` of the question, (dimension, shapes)."""

    shapes: tuple[str, ...]
    runs: Floats
    vector: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> ShapeClassifier:
        """Return the classifier of the arrays that :meth:`to_arrays` gives."""
        runs: Floats = arrays["shape_runs"].astype(np.float32)
        vector: Floats = arrays["shape_vector"].astype(np.float32)
        return cls(tuple(arrays["shapes"].tolist()), runs, vector)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays by name, the weights in 16 bits."""
        return {
            "shapes": np.array(self.shapes),
            "shape_runs": self.runs.astype(np.float16),
            "shape_vector": self.vector.astype(np.float16),
        }

    def log_probabilities(self, buckets: NDArray[np.int64], vector: Floats) -> dict[str, float]:
        """Return the log of the probability of each shape."""
        scores = (
            self.runs[buckets].sum(axis=0) / np.sqrt(len(buckets))
            + self.runs[-1]
            + VECTOR_SCALE * vector @ self.vector
        )
        scores = scores - scores.max()
        logs = scores - np.log(np.exp(scores).sum())
        return dict(zip(self.shapes, logs.tolist(), strict=True))


def measure_shapes(logs: Mapping[str, float], shapes: Sequence[str]) -> Floats:
    """Return the log probability of each of some shapes and of its parts, (shapes, 1 + parts), from those of all
    shapes: a shape that was never seen has parts that were."""
    parts = [shape.split(BETWEEN_PARTS) for shape in shapes]
    columns = [[logs.get(shape, UNSEEN) for shape in shapes]]
    for place in range(len(parts[0]) if parts else 0):
        mass: dict[str, float] = defaultdict(lambda: LEAST)
        for shape, log in logs.items():
            mass[shape.split(BETWEEN_PARTS)[place]] += np.exp(log)
        columns.append([float(np.log(mass[own[place]])) for own in parts])
    return np.array(columns).T


@dataclass(frozen=True, slots=True)
class ShapeExample:
    """A question, as its buckets and its vector, and the shape of what it means."""

    buckets: NDArray[np.int64]
    vector: Floats
    shape: str


def train_shapes(
    examples: Sequence[ShapeExample], rounds: int = 10, rate: float = 0.3, seed: int = 0
) -> ShapeClassifier:
    """Return the classifier of examples, by stochastic gradients with a step per weight (AdaGrad)."""
    shapes = tuple(sorted({example.shape for example in examples}))
    place = {shape: number for number, shape in enumerate(shapes)}
    runs = np.zeros((BUCKETS + 1, len(shapes)))
    vector = np.zeros((len(examples[0].vector), len(shapes)))
    squares, vector_squares = np.full(runs.shape, 1e-2), np.full(vector.shape, 1e-2)
    random = np.random.default_rng(seed)
    for _ in range(rounds):
        for number in random.permutation(len(examples)):
            example = examples[number]
            rows = np.append(example.buckets, BUCKETS)
            scale = np.append(np.full(len(rows) - 1, 1 / np.sqrt(len(rows) - 1)), 1.0)[:, None]
            scaled = VECTOR_SCALE * example.vector
            scores = (runs[rows] * scale).sum(axis=0) + scaled @ vector
            error = np.exp(scores - scores.max())
            error /= error.sum()
            error[place[example.shape]] -= 1.0
            gradient = scale * error[None] + DECAY * runs[rows]
            squares[rows] += gradient**2
            runs[rows] -= rate * gradient / np.sqrt(squares[rows])
            gradient = scaled[:, None] * error[None] + DECAY * vector
            vector_squares += gradient**2
            vector -= rate / 3 * gradient / np.sqrt(vector_squares)
    return ShapeClassifier(shapes, runs, vector)
