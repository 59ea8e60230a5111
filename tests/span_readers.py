"""Readers of spans over scripted models, with the ranking of sentences that comes with clew."""

from __future__ import annotations

from typing import Any

from clew.core.protocols import SpanModel
from clew.methods.readers.spans import SpanAnswerReader
from clew.models.plan_judge import create_plan_judge
from clew.questions.sentences import SentenceRanker


def span_reader(model: SpanModel, **options: Any) -> SpanAnswerReader:
    """Return the reader over a model."""
    return SpanAnswerReader(model, SentenceRanker(create_plan_judge()), **options)
