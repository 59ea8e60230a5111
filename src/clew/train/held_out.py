"""The recall of an encoder on questions that it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.text import build_hop_query
from clew.evaluate.corpora import pool_paragraphs
from clew.train.evidence_chains import gold_passages
from clew.train.pairs import passage_text

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Vectors
    from clew.evaluate.examples import Example

#: The number of first hops to search second hops from, and the depth of the recall.
FIRST_HOPS, RECALL_DEPTH = 10, 5


@dataclass(frozen=True, slots=True)
class HeldOutQuestions:
    """Held-out questions, searched over the pool of their own paragraphs and those of ``others``.

    With ``hops`` 2 a passage is ranked by its likeliest path of one or two hops, ``max(p(v), max over u of p(u) p(v |
    u))`` with ``p = softmax(scale * cosine)``; with 1 by the first hop alone, as DPR searches.
    """

    questions: Sequence[Example]
    others: Sequence[Example] = ()
    hops: int = 2
    scale: float = 20.0

    def measure(self, model: Any) -> dict[str, float]:
        """Return the mean recall of gold passages among the first five, by name of the measure.

        ``model`` is a sentence-transformers model.
        """
        questions = [
            (example, {(gold.title, gold.text) for gold in gold_passages(example)})
            for example in self.questions
        ]
        questions = [(example, gold) for example, gold in questions if gold]
        pool = pool_paragraphs([*self.questions, *self.others])
        keys = [(example.title, example.text) for example in pool]
        texts = [passage_text(example) for example in pool]
        passages = encode_texts(model, texts)
        scores = (encode_texts(model, [example.question for example, _ in questions]) @ passages.T).astype(
            np.float64
        )
        ranked = {"recall@5, one hop": scores}
        if self.hops > 1:
            ranked["recall@5"] = self._score_two_hops(
                model, [example.question for example, _ in questions], texts, passages, scores
            )
        return {
            name: _recall(scores, keys, [gold for _, gold in questions]) for name, scores in ranked.items()
        }

    def _score_two_hops(
        self, model: Any, questions: list[str], texts: list[str], passages: Vectors, scores: Floats
    ) -> Floats:
        first_rows = np.argsort(-scores, axis=1, kind="stable")[:, :FIRST_HOPS]
        queries = [
            build_hop_query(question, [texts[row]])
            for question, rows in zip(questions, first_rows.tolist(), strict=True)
            for row in rows
        ]
        second_vectors = encode_texts(model, queries).reshape(len(questions), -1, passages.shape[1])
        combined = np.empty_like(scores)
        for number, rows in enumerate(first_rows):
            first_probabilities = _softmax(self.scale * scores[number])
            second_scores = self.scale * second_vectors[number] @ passages.T
            second_scores[np.arange(len(rows)), rows] = -np.inf
            combined[number] = np.maximum(
                first_probabilities, (first_probabilities[rows, None] * _softmax(second_scores)).max(axis=0)
            )
        return combined


def encode_texts(model: Any, texts: Sequence[str]) -> Vectors:
    """Return the unit vectors of a sentence-transformers model, (n, dimension)."""
    vectors: Vectors = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    return vectors


def _softmax(scores: Floats) -> Floats:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    probabilities: Floats = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return probabilities


def _recall(scores: Floats, keys: Sequence[tuple[str, str]], gold: Sequence[set[tuple[str, str]]]) -> float:
    best = np.argsort(-scores, axis=1, kind="stable")[:, :RECALL_DEPTH]
    recalls = [
        len({keys[row] for row in rows} & gold_passages) / len(gold_passages)
        for rows, gold_passages in zip(best.tolist(), gold, strict=True)
    ]
    return round(float(np.mean(recalls)), 4) if recalls else 0.0
