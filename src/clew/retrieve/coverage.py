"""Choose hits that answer a question together: each is judged by what it adds to those chosen before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import cosines
from clew.retrieve.ranking import DECIMALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Vectors


@dataclass(frozen=True, slots=True)
class SemanticGain:
    """What the vectors of candidates add to their scores.

    ``vectors`` has one unit vector per candidate, (n, dimension); ``question`` is the question's, (dimension,).
    A cosine of 1 adds ``weight``.
    """

    vectors: Vectors
    question: Vectors
    weight: float

    def gains(self, without: Sequence[int] = ()) -> Floats:
        """Return what each candidate's vector adds, (n,).

        The candidates ``without`` have been chosen already: the part of the question's vector along theirs is taken
        away, and candidates are compared with the rest of it. Where nothing is left, every gain is 0.
        """
        rest = self.question.astype(np.float64)
        for chosen in self.vectors[list(without)].astype(np.float64):
            rest -= (rest @ chosen) * chosen
        length = float(np.sqrt(rest @ rest))
        if length < 1e-6:
            return np.zeros(len(self.vectors))
        return self.weight * cosines(self.vectors, (rest / length).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Lookahead:
    """The expected vector of the next passage on a path, (dimension,); a cosine of 1 with it adds ``weight``."""

    vector: Vectors
    weight: float


@dataclass(frozen=True, slots=True)
class CoverageSelector:
    """Scores ``n`` candidates by the words of the question that they cover and that earlier hits do not.

    ``matched`` (n, words) says how well each candidate matches each word of the question, from 0 to 1, and
    ``weights`` (words,) how much each word counts. ``prior`` (n,) is the score of the candidate's document and
    ``documents`` (n,) the document's number. ``meaning`` is None without an encoder. Ties are broken by the order of
    the candidates.
    """

    matched: Floats
    weights: Floats
    prior: Floats
    documents: NDArray[np.int64]
    meaning: SemanticGain | None = None

    def select(self, k: int, variety: float, fading: float) -> tuple[NDArray[np.int64], Floats]:
        r"""Return ``k`` candidates in the order chosen, and what each added (never more than the one before).

        Each step takes the candidate that adds most. A word that the chosen ones match to the degrees ``m`` counts
        its weight times :math:`\prod (1 - variety \cdot m)`: the diversification of xQuAD (Santos et al., WWW 2010)
        with the words of the question as its aspects. The prior of a document is multiplied by ``1 - fading`` each
        time one of its passages is chosen.
        """
        weights, prior = self.weights.copy(), self.prior.copy()
        meaning = self._meaning_gains()
        available = np.ones(len(prior), dtype=np.bool_)
        order, gains = [], []
        for _ in range(min(k, len(prior))):
            gain = np.round(self.matched @ weights + prior + meaning, DECIMALS)
            best = int(np.argmax(np.where(available, gain, -np.inf)))
            order.append(best)
            gains.append(float(gain[best]))
            available[best] = False
            weights *= 1 - variety * self.matched[best]
            prior[self.documents == self.documents[best]] *= 1 - fading
        return np.array(order, dtype=np.int64), np.array(gains)

    def gains_after(
        self, path: Sequence[int], variety: float, fading: float, ahead: Lookahead | None = None
    ) -> Floats:
        """Return what each candidate adds to the candidates of ``path``, (n,).

        Words and documents count as in :meth:`select`. The meaning of a candidate is compared with ``ahead`` where
        that is given, else as in :meth:`SemanticGain.gains`.
        """
        weights, prior = self.weights.copy(), self.prior.copy()
        for chosen in path:
            weights *= 1 - variety * self.matched[chosen]
            prior[self.documents == self.documents[chosen]] *= 1 - fading
        return np.round(self.matched @ weights + prior + self._meaning_gains(path, ahead), DECIMALS)

    def _meaning_gains(self, without: Sequence[int] = (), ahead: Lookahead | None = None) -> Floats:
        if self.meaning is None:
            return np.zeros(len(self.prior))
        if ahead is None:
            return self.meaning.gains(without)
        return ahead.weight * cosines(self.meaning.vectors, ahead.vector)
