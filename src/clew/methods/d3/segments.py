r"""Topic segmentation: where a long run of paragraphs changes its subject, and what to call the pieces.

Segments are those that least scatter around their means. With unit vectors :math:`x_i` of paragraphs and
lengths :math:`w_i` in words, the scatter of a segment with length :math:`W` is

.. math:: W - \Big\| \sum_i w_i x_i \Big\|^2 / W,

plus a penalty for each segment, and something for one that is much shorter or longer than wanted, so that their
number needs no choosing (kernel change-point detection: Arlot, Celisse and Harchaoui, JMLR 2019; here with bounded
lengths). Dividing paragraphs that have nothing to do with each other saves what one of them scatters, at any place:
the penalty is a little more than that. The best segmentation is exact, by dynamic programming, and a pure function
of one document's paragraphs and their vectors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Hashes, Rows, Vectors
from clew.core.protocols import Postings
from clew.core.text import STOPWORDS, count_terms, stem

#: The wanted length of a segment, as a share of the longest allowed.
WANTED_SHARE = 0.6
#: The cost of a segment twice as long as wanted, as a share of the mean scatter of one of the wanted length.
EVENNESS = 0.25
#: The cost of each segment, as a share of the mean scatter of a paragraph.
PENALTY = 1.5
#: Dimensions of vectors made of words.
HASH_DIMENSIONS = 256
#: Words of a key phrase, phrases of a name.
MAX_PHRASE_WORDS, MAX_PHRASES = 3, 3


def segment_starts(vectors: Vectors, lengths: NDArray[np.int64], longest: int) -> list[int]:
    """Return the first paragraph of each segment, ascending, beginning with 0.

    ``vectors`` are unit vectors of the paragraphs, (n, d); ``lengths`` their numbers of words, (n,). No segment is
    longer than ``longest``, except for a single paragraph that is.
    """
    weights = np.maximum(lengths.astype(np.float64), 1.0)
    total = np.concatenate([[0.0], np.cumsum(weights)])
    sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(weights[:, None] * vectors, axis=0)])
    wanted = WANTED_SHARE * longest
    whole = total[-1] - sums[-1] @ sums[-1] / total[-1]
    penalty = PENALTY * whole / max(len(weights) - 1, 1)
    evenness = EVENNESS * whole * wanted / total[-1]
    n = len(weights)
    best, back = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=np.int64)
    best[0] = 0.0
    for end in range(1, n + 1):
        start = min(int(np.searchsorted(total, total[end] - longest)), end - 1)
        sizes = total[end] - total[start:end]
        resultants = sums[end] - sums[start:end]
        scatter = sizes - np.einsum("ij,ij->i", resultants, resultants) / sizes
        cost = best[start:end] + scatter + penalty + evenness * (sizes / wanted - 1) ** 2
        # Rounded, so that equal costs are equal on every machine; the first of them is taken.
        chosen = int(np.argmin(np.round(cost, 9)))
        best[end], back[end] = cost[chosen], start + chosen
    ends = [n]
    while ends[-1]:
        ends.append(int(back[ends[-1]]))
    return ends[:0:-1]


def word_vectors(postings: Postings, rows: Rows) -> Vectors:
    """Return unit vectors of the words of ``rows``, (n, :data:`HASH_DIMENSIONS`), zeros for a row without words.

    They are TF-IDF within these rows alone; the hash of a term gives its dimension and sign.
    """
    return _hash_terms(*postings.term_matrix(rows))


def text_vectors(texts: Sequence[str]) -> Vectors:
    """Return :func:`word_vectors` of texts that are no nodes, such as sentences."""
    counted = [count_terms(text) for text in texts]
    starts = np.cumsum([0, *map(len, counted)])
    every = [(term, count) for counts in counted for term, count in sorted(counts.items())]
    terms = np.array([term for term, _ in every], dtype=np.uint64)
    return _hash_terms(starts, terms, np.array([count for _, count in every], dtype=np.int64))


def _hash_terms(starts: NDArray[np.int64], terms: Hashes, counts: NDArray[np.int64]) -> Vectors:
    rows = len(starts) - 1
    of_row = np.repeat(np.arange(rows), np.diff(starts))
    known, number = np.unique(terms, return_inverse=True)
    frequency = np.bincount(number, minlength=len(known))
    weight = (1 + np.log(counts)) * np.log(1 + rows / frequency)[number]
    signed = np.where(terms >> np.uint64(63), 1.0, -1.0) * weight
    vectors: Floats = np.zeros((rows, HASH_DIMENSIONS))
    np.add.at(vectors, (of_row, (terms % np.uint64(HASH_DIMENSIONS)).astype(np.int64)), signed)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)


_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")


def key_phrases(segments: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return for each segment, given by its texts, up to :data:`MAX_PHRASES` phrases that tell it from the others.

    A phrase is up to :data:`MAX_PHRASE_WORDS` words between function words and punctuation. It weighs how often
    it occurs in the segment, more the fewer segments have it and the more words it has; none repeats a
    word of another's. Written as it most often is.
    """
    counted = [_phrases(texts) for texts in segments]
    spread = Counter(key for counts in counted for key in counts)
    return [_best(counts, spread, len(segments)) for counts in counted]


def _phrases(texts: Sequence[str]) -> dict[tuple[str, ...], Counter[str]]:
    phrases: dict[tuple[str, ...], Counter[str]] = {}
    for text in texts:
        for run in _runs(text):
            for start in range(len(run)):
                for words in (run[start : start + n] for n in range(1, MAX_PHRASE_WORDS + 1)):
                    key = tuple(stem(word.casefold()) for word in words)
                    phrases.setdefault(key, Counter())[" ".join(words)] += 1
    return phrases


def _runs(text: str) -> list[list[str]]:
    """Return the runs of words that no function word and no punctuation interrupts."""
    runs: list[list[str]] = [[]]
    end = 0
    for match in _WORD.finditer(text):
        if text[end : match.start()].strip():
            runs.append([])
        end = match.end()
        if match.group().casefold() in STOPWORDS:
            runs.append([])
        elif len(match.group()) > 1:
            runs[-1].append(match.group())
    return [run for run in runs if run]


def _best(
    counts: dict[tuple[str, ...], Counter[str]], spread: Counter[tuple[str, ...]], segments: int
) -> list[str]:
    def weight(key: tuple[str, ...]) -> float:
        often = counts[key].total()
        rare = np.log(1 + segments / spread[key])
        return round(float((often - 0.5) * rare * len(set(key)) ** 0.5), 9)

    chosen: list[tuple[str, ...]] = []
    used: set[str] = set()
    for key in sorted(counts, key=lambda key: (-weight(key), key)):
        if not used & set(key):
            chosen.append(key)
            used |= set(key)
        if len(chosen) == MAX_PHRASES:
            break
    return [min(counts[key].items(), key=lambda pair: (-pair[1], pair[0]))[0] for key in chosen]
