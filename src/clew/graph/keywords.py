"""Passages that share a keyword: the paper's TF-IDF graph (Section 3; design, 4.3)."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clew.core.component import component
from clew.core.errors import UsageError
from clew.core.protocols import Snapshot
from clew.core.text import STOPWORDS, hash_term, stem
from clew.graph.passages import (
    Incidence,
    PostingBlock,
    build_incidence,
    distinct_rows,
    documents_by_title,
    posting_blocks,
    run_starts,
    surface_forms,
)

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Hashes, Rows

#: A term counts at most this often in one passage; the bits that the count takes up.
_COUNT_BITS = 16
_MOST = (1 << _COUNT_BITS) - 1


@component(
    "keywords",
    summary="passages that share a keyword: the n best of each document by TF-IDF, and its title",
    paper="Wang et al., AAAI 2024",
)
class KeywordGraph:
    r"""Neighbours are passages (and table rows) that contain a common keyword.

    The keywords are pooled over all documents, as the paper pools them into :math:`\mathcal W`. A document
    gives its title (as a phrase) and its ``n`` terms of the highest TF-IDF *over that document*: its own
    passages are the collection,

    .. math:: w(t, d) = \sum_{p \in d} tf(t, p) \cdot \left(\ln\frac{1 + n_d}{1 + df_d(t)} + 1\right)

    with ``n_d`` its number of passages and ``df_d(t)`` how many of them contain ``t``. This is the smoothed
    form that the usual TF-IDF vectorisers compute, summed over the document's passages: a word counts for
    being frequent in the document and for not being in every passage. Only the document itself enters, so
    that what a document contributes does not change when another is added. Without the smoothing a document
    of one passage would have no keywords at all (every ``ln`` is 0); with it, it ranks by frequency. Equal
    weights are ordered by term hash, which no history of the base can change. English function words and
    single letters are never keywords.

    A passage contains a title if the title, without a trailing parenthesis or with it, is among the names
    in the passage (postings ``mention``): the words must be adjacent, whatever their case and punctuation.
    Limit: titles of more than five words, or that do not start and end with a capital, a digit or a CJK
    character, are not found as phrases; their words can still be keywords.

    ``n`` is the knob of density: over a dozen documents, beyond the default of 10 the neighbours of the seeds
    cover no more supporting facts. Pooled over many documents even one keyword each joins most of the base,
    and ``share`` is what keeps the graph a graph. It drops keywords that more than this share of all
    passages contain; 1 is the paper's graph.
    """

    def __init__(self, snapshot: Snapshot, n: int = 10, share: float = 1.0) -> None:
        if n < 0:
            raise UsageError(f"number of keywords: {n}", "It must be 0 (titles alone) or more")
        if not 0 < share <= 1:
            raise UsageError(f"share of passages: {share}", "It must be above 0 and at most 1")
        self._snapshot = snapshot
        self.mutual = True
        self.name = f"keywords(n={n})" if share == 1 else f"keywords(n={n}, share={share:g})"
        made: tuple[Incidence, Incidence] = snapshot.memoize(
            f"graph/{self.name}", lambda: build_keyword_incidences(snapshot, n, share), documents_only=True
        )
        self._words, self._titles = made

    def neighbours(self, row: int) -> Rows:
        """Return the rows that share a keyword or a title with ``row``, ascending, without itself."""
        parts = self._words.rows_with(self._words.slots_of(row))
        parts += self._titles.rows_with(self._titles.slots_of(row))
        return distinct_rows(parts, self._words.size, row)

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for each: a shared keyword is a shared keyword."""
        return np.ones(len(neighbours))

    def explain_edge(self, source: int, target: int) -> str:
        """Return the keywords that both contain, as the target writes them (``keywords: Ohio, river``)."""
        words = self._words.keys[self._words.shared_slots(source, target)]
        titles = self._titles.keys[self._titles.shared_slots(source, target)]
        text = self._snapshot.nodes(np.array([target], dtype=np.int64))[0].text
        found = surface_forms(text, words.tolist(), titles.tolist())
        return f"keywords: {', '.join(found)}" if found else ""

    def keywords(self) -> Hashes:
        """Return the hashes of the pooled keywords that are terms, ascending."""
        return self._words.keys


def build_keyword_incidences(snapshot: Snapshot, n: int, share: float = 1.0) -> tuple[Incidence, Incidence]:
    """Return the incidence of passages with the pooled keywords, and with the title phrases."""
    postings = snapshot.postings("text")
    document = snapshot.column("document")
    blocks = list(posting_blocks(snapshot, "text"))
    chosen = [_best_terms(block, document[block.rows], n) for block in blocks]
    pool = np.unique(np.concatenate([np.empty(0, dtype=np.uint64), *chosen]))
    pool = pool[postings.document_frequency(pool) <= share * postings.node_count]
    titles = np.array(sorted(documents_by_title(snapshot)), dtype=np.uint64)
    words = build_incidence(blocks, pool, snapshot.size)
    return words, build_incidence(posting_blocks(snapshot, "mention"), titles, snapshot.size)


def _best_terms(block: PostingBlock, documents: Rows, n: int) -> Hashes:
    """Return the ``n`` terms of the highest TF-IDF of each document; ``documents`` says which a row is in."""
    ordinal = np.cumsum(np.r_[False, documents[1:] != documents[:-1]])
    passages = np.bincount(ordinal)
    possible = ~np.isin(block.vocabulary, _NEVER)

    # One number for each (document, term, count), in the order of document, then hash.
    width = len(block.vocabulary)
    pair = np.repeat(ordinal, np.diff(block.starts)) * width + block.term_indices
    packed = np.sort(((pair << _COUNT_BITS) | np.minimum(block.counts, _MOST))[possible[block.term_indices]])
    pair, counts = packed >> _COUNT_BITS, packed & _MOST
    first = np.flatnonzero(np.r_[pair[:1] >= 0, pair[1:] != pair[:-1]])
    if not len(first):
        return block.vocabulary[:0]
    frequency = np.add.reduceat(counts, first)
    holding = np.diff(np.r_[first, len(pair)])
    document, term = np.divmod(pair[first], width)
    weight = frequency * (np.log((1 + passages[document]) / (1 + holding)) + 1)
    # Rounded, so that the last bits of a logarithm cannot decide.
    best: Hashes = block.vocabulary[np.unique(term[_top(document, np.round(weight, 9), n)])]
    return best


def _top(group: NDArray[np.int64], weight: Floats, n: int) -> NDArray[np.int64]:
    """Return the indices of the ``n`` greatest of each group; of equal ones the first. Groups ascend."""
    # The n-th weight of each group, a little too low for the rounding of large numbers; what is above it
    # is few, and only that is put in order.
    spread = float(weight.max()) + 1.0
    keys = group * spread - weight
    sizes = np.bincount(group)
    starts = run_starts(sizes)[:-1]
    last = np.sort(keys)[np.minimum(starts + n, starts + sizes) - 1] if n else np.full(len(sizes), -np.inf)
    few = np.flatnonzero(keys <= last[group] + 1e-12 * spread * len(sizes))

    order = few[np.lexsort((-weight[few], group[few]))]
    starts = run_starts(np.bincount(group[order], minlength=len(sizes)))[:-1]
    return order[np.arange(len(order)) - starts[group[order]] < n]


def function_words() -> frozenset[str]:
    """Return the terms that are never keywords: English function words, contracted too, and lone letters."""
    contracted = {word + ending for word in STOPWORDS for ending in ("n't", "'ll", "'ve", "'re", "'d", "'m")}
    irregular = {"can't", "won't", "shan't", *string.ascii_lowercase}
    return STOPWORDS | {stem(word) for word in STOPWORDS} | contracted | irregular


_NEVER = np.array(sorted(map(hash_term, function_words())), dtype=np.uint64)
