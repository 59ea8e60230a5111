"""Choosing hits one after the other, so that together they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.retrieve.ranking import DECIMALS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.protocols import Floats


@dataclass(frozen=True, slots=True)
class Candidates:
    """What speaks for each of ``n`` candidates, in the order in which ties are broken.

    ``matched`` (n, words) says how well each word of the question is matched, from 0 to 1; ``weights`` what
    each word counts. ``prior`` is what the candidate's document is worth, ``document`` its number, and
    ``fixed`` what does not depend on the choice of others.
    """

    matched: Floats
    weights: Floats
    prior: Floats
    document: NDArray[np.int64]
    fixed: Floats

    def choose(self, k: int, variety: float, fading: float) -> tuple[NDArray[np.int64], Floats]:
        r"""Return ``k`` candidates in the order chosen, and what each added (never more than the one before).

        Each time the one that adds most: a word that those chosen before match to the degrees ``m`` counts
        its weight times :math:`\prod (1 - variety \cdot m)` (the diversification of xQuAD, Santos et al.,
        WWW 2010, with the question's words for its aspects); a document's worth is multiplied with
        ``1 - fading`` each time one of its passages is chosen.
        """
        left, prior = self.weights.copy(), self.prior.copy()
        open_ = np.ones(len(prior), dtype=np.bool_)
        order, gains = [], []
        for _ in range(min(k, len(prior))):
            gain = np.round(self.matched @ left + prior + self.fixed, DECIMALS)
            best = int(np.argmax(np.where(open_, gain, -np.inf)))
            order.append(best)
            gains.append(float(gain[best]))
            open_[best] = False
            left *= 1 - variety * self.matched[best]
            prior[self.document == self.document[best]] *= 1 - fading
        return np.array(order, dtype=np.int64), np.array(gains)
