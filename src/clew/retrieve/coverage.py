"""What a passage adds to those that are there: for choosing hits that answer together."""

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
    """The vectors of candidates (n, dimension) and of the question (dimension), and what a cosine of 1 adds."""

    vectors: Vectors
    question: Vectors
    weight: float

    def gains(self, without: Sequence[int] = ()) -> Floats:
        """Return what each candidate's vector adds, (n,).

        It is compared with what is left of the question's vector when its part along those of the candidates
        ``without`` is taken away: what they do not say yet. Of nothing left nothing comes.
        """
        rest = self.question.astype(np.float64)
        for known in self.vectors[list(without)].astype(np.float64):
            rest -= (rest @ known) * known
        length = float(np.sqrt(rest @ rest))
        if length < 1e-6:
            return np.zeros(len(self.vectors))
        return self.weight * cosines(self.vectors, (rest / length).astype(np.float32))


@dataclass(frozen=True, slots=True)
class Lookahead:
    """The vector (dimension) of what a path leads to, and what a cosine of 1 with it adds."""

    vector: Vectors
    weight: float


@dataclass(frozen=True, slots=True)
class CoverageSelector:
    """What speaks for each of ``n`` candidates, in the order in which ties are broken.

    ``matched`` (n, words) says how well each word of the question is matched, from 0 to 1; ``weights`` what
    each word counts. ``prior`` is what the candidate's document is worth, ``document`` its number.
    ``meaning`` is there where there is an encoder.
    """

    matched: Floats
    weights: Floats
    prior: Floats
    documents: NDArray[np.int64]
    meaning: SemanticGain | None = None

    def select(self, k: int, variety: float, fading: float) -> tuple[NDArray[np.int64], Floats]:
        r"""Return ``k`` candidates in the order chosen, and what each added (never more than the one before).

        Each time the one that adds most: a word that those chosen before match to the degrees ``m`` counts
        its weight times :math:`\prod (1 - variety \cdot m)` (the diversification of xQuAD, Santos et al.,
        WWW 2010, with the question's words for its aspects); a document's worth is multiplied with
        ``1 - fading`` each time one of its passages is chosen.
        """
        left, prior = self.weights.copy(), self.prior.copy()
        fixed = self._meant()
        open_ = np.ones(len(prior), dtype=np.bool_)
        order, gains = [], []
        for _ in range(min(k, len(prior))):
            gain = np.round(self.matched @ left + prior + fixed, DECIMALS)
            best = int(np.argmax(np.where(open_, gain, -np.inf)))
            order.append(best)
            gains.append(float(gain[best]))
            open_[best] = False
            left *= 1 - variety * self.matched[best]
            prior[self.documents == self.documents[best]] *= 1 - fading
        return np.array(order, dtype=np.int64), np.array(gains)

    def gains_after(
        self, path: Sequence[int], variety: float, fading: float, ahead: Lookahead | None = None
    ) -> Floats:
        """Return what each candidate adds to those of ``path``, (n,): words and documents as in :meth:`choose`,
        meaning by its nearness to what is ``ahead``, or else as in :meth:`Meaning.fits`."""
        left, prior = self.weights.copy(), self.prior.copy()
        for known in path:
            left *= 1 - variety * self.matched[known]
            prior[self.documents == self.documents[known]] *= 1 - fading
        return np.round(self.matched @ left + prior + self._meant(path, ahead), DECIMALS)

    def _meant(self, without: Sequence[int] = (), ahead: Lookahead | None = None) -> Floats:
        if self.meaning is None:
            return np.zeros(len(self.prior))
        if ahead is None:
            return self.meaning.gains(without)
        return ahead.weight * cosines(self.meaning.vectors, ahead.vector)
