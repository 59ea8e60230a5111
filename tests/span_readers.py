"""Readers of spans over scripted models, with a ranking of sentences that follows their scores alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.core.protocols import SpanModel
from clew.methods.readers.spans import SpanAnswerReader
from clew.models.plan_judge import PlanJudge, create_plan_judge
from clew.questions.linear import LinearScore
from clew.questions.sentences import CONFIDENCE, FEATURES, MARKED, VERDICT, SentenceModel, SentenceRanker
from clew.questions.table_reading import TableReader


def scripted_judge() -> PlanJudge:
    """Return a judge that ranks sentences by the scores of a scripted model alone and is sure of its marks."""
    shipped = create_plan_judge()
    judge = PlanJudge(shipped.folder, shipped.encoder)
    judge.__dict__["sentences"] = SentenceModel(
        LinearScore(_beside_nothing(_weights(FEATURES, score=1.0)), np.ones(2 * len(FEATURES))),
        _beside_nothing(_weights(CONFIDENCE, score=1.0)),
        _weights(MARKED, constant=4.0),
        _weights(VERDICT, **{"constant": -4.0, "the sentence negates": 8.0}),
        np.zeros(shipped.encoder.dimension + 1),
        np.zeros(shipped.encoder.dimension + 1),
    ).to_arrays()
    return judge


def _weights(names: tuple[str, ...], **weights: float) -> Any:
    return np.array([weights.get(name, 0.0) for name in names])


def _beside_nothing(weights: Any) -> Any:
    """Return weights with nothing that counts beside for questions of several hops."""
    return np.append(weights, np.zeros(len(weights)))


def span_reader(model: SpanModel, **options: Any) -> SpanAnswerReader:
    """Return the reader over a model."""
    judge = scripted_judge()
    return SpanAnswerReader(model, SentenceRanker(judge), TableReader(judge, "report"), **options)
