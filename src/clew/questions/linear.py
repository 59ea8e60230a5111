"""The scores of options by features of each plan beside the question: a conditional logit, and a small network.

It is the floor that a judge has to beat, and what chooses the dozen options that a judge reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.questions.graph_plans import QUOTAS
from clew.questions.plans import COUNT, LIST, VALUE, YES_NO, Comparison, Edge, GraphPlan, Kind, Rank, Same
from clew.questions.shapes import measure_shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Rows
    from clew.questions.catalogue import GraphCatalogue
    from clew.questions.graph_plans import Option
    from clew.questions.names import NameMatch
    from clew.questions.slots import SlotScores
    from clew.questions.text import QuestionText

FAMILIES = tuple(QUOTAS)
FEATURES = (
    "log probability of the shape",
    "log probability of the operation",
    "log probability of the statements",
    "sum of slots",
    "mean of slots",
    "least slot",
    "slots",
    "likeness of names",
    "certain names left out",
    "values left out",
    "words left out",
    "asked type",
    "answer is of the property's type",
    "answers",
    "no answer",
    "a name of the question is an answer",
    "relation twice",
    "least frequency",
    *(f"operation {operation}" for operation in (LIST, COUNT, YES_NO, VALUE)),
    *(f"family {family}" for family in FAMILIES),
)
#: Options that the judge reads.
JUDGED = 12
#: A name that is at least so like has to be in a plan.
CERTAIN = 0.6
#: How many features the shape has: its own and those of its parts.
SHAPES = 3


def measure_options(
    options: Sequence[Option],
    question: QuestionText,
    names: Sequence[NameMatch],
    slots: SlotScores,
    shapes: Mapping[str, float],
) -> Floats:
    """Return the features of options, (options, :data:`FEATURES`), before they are run."""
    catalogue = slots.catalogue
    certain = [name for name in names if name.likeness >= CERTAIN]
    inside = {place for name in certain for place in range(name.first, name.last)}
    values = [value for value in question.values if not slots.in_name(value)]
    of_values = {
        place
        for place, word in enumerate(question.words)
        for value in values
        if value.start <= word.start < value.end
    }
    content = [
        word
        for place, word in enumerate(question.words)
        if word.is_content and place not in inside and place not in of_values
    ]
    features = np.zeros((len(options), len(FEATURES)))
    for number, option in enumerate(options):
        plan = option.plan
        scores, stems, types = _slots_of(plan.statements, catalogue, slots)
        if plan.asked_property:
            scores.append(slots.properties[plan.asked_property])
            stems |= catalogue.labels[plan.asked_property].stems
        used = set(plan.names)
        matched = [name for name in names if name.name in used]
        covered = {place for name in matched for place in range(name.first, name.last)}
        missed = [name for name in certain if not covered & set(range(name.first, name.last))]
        texts = {
            text
            for statement in plan.statements
            if isinstance(statement, Comparison)
            for text in statement.values
        }
        texts |= used | {
            str(part)
            for statement in plan.statements
            for part in (
                [statement.most]
                if isinstance(statement, Rank)
                else statement.quantifier.split()
                if isinstance(statement, Edge)
                else []
            )
        }
        left_values = sum(not any(_is_in(text, texts) for text in value.texts) for value in values)
        left_words = sum(not any(_same_start(word.stem, stem) for stem in stems) for word in content)
        relations = [relation for edge in plan.edges for relation in edge.relations]
        row = [
            *[0.0] * SHAPES,
            sum(scores),
            float(np.mean(scores)) if scores else 0.0,
            min(scores, default=0.0),
            len(scores),
            sum(name.likeness for name in matched) / max(len(matched), 1),
            len(missed),
            left_values,
            left_words / max(len(content), 1),
            max((slots.types[type] for type in types if type in slots.types), default=-2.0),
            0.0,
            0.0,
            0.0,
            0.0,
            len(relations) - len(set(relations)),
            min((np.log(max(catalogue.shares[each], 1e-4)) for each in relations), default=0.0),
        ]
        features[number, : len(row)] = row
        features[number, FEATURES.index(f"operation {plan.operation}")] = 1.0
        features[number, FEATURES.index(f"family {option.family}")] = 1.0
    add_shapes(features, shapes, options)
    return features


def add_shapes(features: Floats, logs: Mapping[str, float], options: Sequence[Option]) -> None:
    """Write the log probabilities of the shapes of options and of their parts into their features."""
    features[:, :SHAPES] = measure_shapes(logs, [option.plan.shape for option in options])


def add_outcomes(
    features: Floats, plans: Sequence[GraphPlan], rows: Sequence[Rows | None], names: Sequence[NameMatch]
) -> Floats:
    """Return the features of options with what came of running them: the ``rows`` of the nodes that meet each."""
    certain = [name.rows for name in names if name.likeness >= CERTAIN]
    named = np.concatenate(certain) if certain else np.empty(0, np.int64)
    features = features.copy()
    start = FEATURES.index("answers")
    for number, (plan, own) in enumerate(zip(plans, rows, strict=True)):
        if own is not None:
            # Which way one relation is meant must not depend on which way there are answers.
            is_bare = len(plan.edges) == 1 and len(plan.statements) <= 2
            is_named = plan.operation in (LIST, COUNT) and bool(np.isin(own, named).any())
            count = max(len(own), 1) if is_bare else len(own)
            features[number, start : start + 3] = np.log1p(count), count == 0, is_named
    return features


def _is_in(text: str, texts: set[str]) -> bool:
    return text in texts or any(each.startswith(text) for each in texts)


def _same_start(first: str, second: str) -> bool:
    short, long = sorted((first, second), key=len)
    return first == second or (len(short) >= 3 and long.startswith(short))


def _slots_of(
    statements: Sequence[object], catalogue: GraphCatalogue, slots: SlotScores
) -> tuple[list[float], set[str], set[str]]:
    """Return the log-odds of the slots of a plan, the stems of its labels, and the types of what it asks for."""
    from clew.questions.catalogue import Step

    scores: list[float] = []
    stems: set[str] = set()
    types: set[str] = set()
    typed = False
    for statement in statements:
        if isinstance(statement, Rank) and statement.edge is not None:
            statement = statement.edge
        if isinstance(statement, Edge):
            for relation in statement.relations:
                step = Step(relation, statement.tail != 1 and statement.head == 1)
                scores.append(max(slots.steps[step], slots.steps[step.back]))
                stems |= catalogue.labels[relation].stems
                if not typed and 1 in (statement.head, statement.tail):
                    types = set(catalogue.sources[Step(relation, statement.tail == 1)])
        elif isinstance(statement, Kind):
            scores.append(slots.types[statement.type])
            stems |= catalogue.labels[statement.type].stems
            if statement.unknown == 1:
                types, typed = {statement.type}, True
        elif isinstance(statement, Comparison | Rank) and statement.property:
            scores.append(slots.properties[statement.property])
            stems |= catalogue.labels[statement.property].stems
        elif isinstance(statement, Same):
            scores.append(0.0)
    return scores, stems, types


@dataclass(frozen=True, slots=True)
class LinearScore:
    """The weight of each feature; features are divided by ``scales`` first."""

    weights: Floats
    scales: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Floats], name: str) -> LinearScore:
        """Return the score of the arrays that :meth:`to_arrays` gives under a name."""
        return cls(arrays[f"{name}_weights"], arrays[f"{name}_scales"])

    def to_arrays(self, name: str) -> dict[str, Floats]:
        """Return its arrays by name."""
        return {f"{name}_weights": self.weights, f"{name}_scales": self.scales}

    def scores(self, features: Floats) -> Floats:
        """Return the score of each option, (options,)."""
        return features / self.scales @ self.weights


def train_linear(
    questions: Sequence[tuple[Floats, NDArray[np.bool_]]],
    decay: float = 1e-3,
    rounds: int = 300,
    rate: float = 0.1,
    prior: Floats | None = None,
) -> LinearScore:
    """Return the weights under which the right options of questions, (features, right), are likeliest: a conditional
    logit, where any right option of a question will do. By gradients with momentum (Adam), from the weights of a
    ``prior`` (0 by default), to which ``decay`` draws."""
    usable = [(features, right) for features, right in questions if right.any() and not right.all()]
    stacked = np.concatenate([features for features, _ in usable])
    right = np.concatenate([own for _, own in usable])
    starts = np.cumsum([0, *(len(features) for features, _ in usable)])[:-1]
    sizes = np.array([len(features) for features, _ in usable])
    scales = stacked.std(axis=0) + 1e-6
    scaled = stacked / scales
    start = np.zeros(scaled.shape[1]) if prior is None else prior * scales
    weights = start.copy()
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, rounds + 1):
        scores = scaled @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, starts), sizes)
        chances = np.exp(scores)
        all_mass = np.repeat(np.add.reduceat(chances, starts), sizes)
        right_mass = np.repeat(np.add.reduceat(chances * right, starts), sizes) + 1e-12
        gradient = scaled.T @ (chances / all_mass - chances * right / right_mass) / len(usable) + decay * (
            weights - start
        )
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        weights -= rate * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    return LinearScore(weights, scales)


def correct_scores(judge: Floats, likeness: Floats, count: int) -> Floats:
    """Return what the judge adds to the scores of ``count`` candidates, (count,), with its weights of likenesses. It
    read the first of them, whose ``likeness`` is (judged, 3); each of the others gets the least of theirs."""
    corrections = likeness @ judge
    return np.append(corrections, np.full(count - len(corrections), corrections.min()))


def log_odds(share: float) -> float:
    """Return the log-odds of a probability, which is kept away from 0 and 1."""
    bounded = min(max(share, 1e-4), 1 - 1e-4)
    return math.log(bounded / (1 - bounded))


#: Features of a network are cut so many standard deviations from their mean.
FARTHEST = 6.0
_PARTS = ("means", "scales", "linear", "hidden", "output")


@dataclass(frozen=True, slots=True)
class NetworkScore:
    """A linear score and a layer of hidden units, so that what one feature is worth may depend on others.

    It has the weights over features less their ``means`` in units of their ``scales``: those of the
    ``linear`` part, (features,), of the ``hidden`` units, (features + 1, units), the last row the bias, and of their
    ``output``, (units,)."""

    means: Floats
    scales: Floats
    linear: Floats
    hidden: Floats
    output: Floats

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Floats], name: str) -> NetworkScore:
        """Return the network of the arrays that :meth:`to_arrays` gives under a name."""
        return cls(*(arrays[f"{name}_{part}"].astype(np.float64) for part in _PARTS))

    def to_arrays(self, name: str) -> dict[str, Floats]:
        """Return its arrays by name, in 32 bits."""
        return {f"{name}_{part}": getattr(self, part).astype(np.float32) for part in _PARTS}

    def scores(self, features: Floats) -> Floats:
        """Return the score of each option, (options,), from its features, (options, features)."""
        scaled = np.clip((features - self.means) / self.scales, -FARTHEST, FARTHEST)
        inner: Floats = np.tanh(scaled @ self.hidden[:-1] + self.hidden[-1])
        return scaled @ self.linear + inner @ self.output
