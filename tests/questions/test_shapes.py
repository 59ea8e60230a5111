"""Shapes and their parts, and the network that scores options by features."""

from __future__ import annotations

import numpy as np
import pytest

from clew.questions.linear import NetworkScore, train_linear
from clew.questions.shapes import ShapeExample, hash_runs, measure_shapes
from clew.train.network import NetworkSettings, train_network
from clew.train.plan_fitting import UnseenShapes


def test_a_shape_that_was_never_seen_has_parts_that_were():
    logs = {"sum | number | text =": np.log(0.7), "sum | number | ": np.log(0.2), "count |  | ": np.log(0.1)}
    seen, other = measure_shapes(logs, ["sum | number | text =", "count | number | text ="])
    assert np.exp(seen) == pytest.approx([0.7, 0.9, 0.9, 0.7], abs=1e-3)
    assert np.exp(other) == pytest.approx([np.exp(-9), 0.1, 0.9, 0.7], abs=1e-3)


def test_the_shapes_of_a_question_are_read_by_what_has_not_seen_it():
    def example(word, shape):
        return ShapeExample(hash_runs(["<start>", word, "<end?>"]), np.ones(2), shape)

    known = [(fold, example(word, word)) for fold in (0, 1) for word in ("sum", "count") for _ in range(3)]
    shapes = UnseenShapes([*known, *((2, example("ratio", "ratio")) for _ in range(3))])
    assert set(shapes.train_without(0).shapes) == {"sum", "count", "ratio"}
    assert set(shapes.train_without(2, 0).shapes) == {"sum", "count"}
    assert shapes.train_without(0, 2) is shapes.train_without(2, 0)
    logs = shapes.train_without(2).log_probabilities(hash_runs(["<start>", "sum", "<end?>"]), np.ones(2))
    assert max(logs, key=logs.get) == "sum"


def test_a_network_learns_what_one_feature_is_worth_beside_another():
    # Of two options that is right whose two features are alike: no weight for each of them says so.
    rng = np.random.default_rng(0)
    questions = []
    for _ in range(400):
        alike, unlike = rng.choice([[1.0, 1.0], [-1.0, -1.0]]), rng.choice([[1.0, -1.0], [-1.0, 1.0]])
        questions.append((np.array([alike, unlike]), np.array([True, False])))
    network = train_network(questions[:300], NetworkSettings(units=8, passes=60))
    linear = train_linear(questions[:300])

    def count_right(score):
        return sum(int(score.scores(features).argmax() == 0) for features, _ in questions[300:])

    assert count_right(network) >= 98 and count_right(linear) < 80
    again = NetworkScore.of_arrays(network.to_arrays("before"), "before")
    features = questions[0][0]
    assert again.scores(features) == pytest.approx(network.scores(features), abs=1e-4)
