"""How well an encoder finds the gold passages of questions that it was not trained on."""

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

#: First hops that a second one is searched from, and passages that count as found.
FIRST_HOPS, RECALL_DEPTH = 10, 5


@dataclass(frozen=True, slots=True)
class HeldOutQuestions:
    """Questions that are held out, over the pool of their own paragraphs and those of ``others``.

    ``hops`` 2 ranks by the likeliest of one hop and two, ``max(p(v), max over u of p(u) p(v | u))`` with
    ``p = softmax(scale * cosine)``; 1 by the first hop alone, as DPR searches.
    """

    questions: Sequence[Example]
    others: Sequence[Example] = ()
    hops: int = 2
    scale: float = 20.0

    def measure(self, model: Any) -> dict[str, float]:
        """Return the mean recall of gold passages among the first five, with one hop and with two.

        ``model`` is a sentence-transformers model.
        """
        asked = [(one, {(gold.title, gold.text) for gold in gold_passages(one)}) for one in self.questions]
        asked = [(one, gold) for one, gold in asked if gold]
        pool = pool_paragraphs([*self.questions, *self.others])
        keys = [(one.title, one.text) for one in pool]
        texts = [passage_text(one) for one in pool]
        passages = encode_texts(model, texts)
        near = (encode_texts(model, [one.question for one, _ in asked]) @ passages.T).astype(np.float64)
        ranked = {"recall@5, one hop": near}
        if self.hops > 1:
            ranked["recall@5"] = self._two_hops(
                model, [one.question for one, _ in asked], texts, passages, near
            )
        return {name: _recall(scores, keys, [gold for _, gold in asked]) for name, scores in ranked.items()}

    def _two_hops(
        self, model: Any, questions: list[str], texts: list[str], passages: Vectors, near: Floats
    ) -> Floats:
        first = np.argsort(-near, axis=1, kind="stable")[:, :FIRST_HOPS]
        asked = [
            build_hop_query(question, [texts[row]])
            for question, rows in zip(questions, first.tolist(), strict=True)
            for row in rows
        ]
        then = encode_texts(model, asked).reshape(len(questions), -1, passages.shape[1])
        found = np.empty_like(near)
        for n, rows in enumerate(first):
            alone = _softmax(self.scale * near[n])
            after = self.scale * then[n] @ passages.T
            after[np.arange(len(rows)), rows] = -np.inf
            found[n] = np.maximum(alone, (alone[rows, None] * _softmax(after)).max(axis=0))
        return found


def encode_texts(model: Any, texts: Sequence[str]) -> Vectors:
    """Return the unit vectors of a sentence-transformers model, (n, dimension)."""
    made: Vectors = model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    return made


def _softmax(scores: Floats) -> Floats:
    likely = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found: Floats = likely / likely.sum(axis=-1, keepdims=True)
    return found


def _recall(scores: Floats, keys: Sequence[tuple[str, str]], gold: Sequence[set[tuple[str, str]]]) -> float:
    best = np.argsort(-scores, axis=1, kind="stable")[:, :RECALL_DEPTH]
    found = [
        len({keys[row] for row in rows} & wanted) / len(wanted)
        for rows, wanted in zip(best.tolist(), gold, strict=True)
    ]
    return round(float(np.mean(found)), 4) if found else 0.0
