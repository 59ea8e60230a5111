"""The graph of passages that share a keyword: the TF-IDF graph of Wang et al. (AAAI 2024, Section 3)."""

from __future__ import annotations

import string
from functools import cache

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Hashes, Rows, distinct, find_positions, run_offsets
from clew.core.component import component
from clew.core.errors import UsageError
from clew.core.languages import ENGLISH, FUNCTION_WORDS, document_languages
from clew.core.mentions import INITIAL, LABEL_MASK, NAME
from clew.core.protocols import Snapshot
from clew.core.text import STOPWORDS, hash_term, stem
from clew.core.types import RETRIEVED_KINDS
from clew.graph.passages import (
    Incidence,
    PostingBlock,
    build_incidence,
    distinct_rows,
    documents_by_title,
    mention_pairs,
    posting_blocks,
    surface_forms,
)

#: The bits of a term's count in one passage, and the largest count that fits into them.
_COUNT_BITS = 16
_MAX_COUNT = (1 << _COUNT_BITS) - 1


@component(
    "keywords",
    summary="passages that share a keyword: the n best of each document by TF-IDF, and its title",
    paper="Wang et al., AAAI 2024",
)
class KeywordGraph:
    r"""Neighbours are passages (and table rows) that contain a common keyword.

    The keywords of all documents are pooled, as the paper pools them into :math:`\mathcal W`. The keywords of a
    document are its title (as a phrase) and its ``n`` terms with the highest TF-IDF *over that document*, with its
    own passages as the collection,

    .. math:: w(t, d) = \sum_{p \in d} tf(t, p) \cdot \left(\ln\frac{1 + n_d}{1 + df_d(t)} + 1\right)

    where ``n_d`` is its number of passages and ``df_d(t)`` the number that contain ``t``. This is the smoothed form
    that the usual TF-IDF vectorisers compute, summed over the document's passages: it favours words that are frequent
    in the document and not in every passage. Only the document itself enters, so adding another document does not
    change its keywords. Without the smoothing a document of one passage would have no keywords at all (every ``ln``
    is 0); with it, its words rank by frequency. Equal weights are ordered by term hash. English function words and
    single letters are never keywords.

    A passage contains a title if the title, without a trailing parenthesis or with it, is among the names in the
    passage (postings ``mention``): the words must be adjacent, whatever their case and punctuation. Limit: titles of
    more than five words, or that do not start and end with a capital, a digit or a CJK character, are not matched as
    phrases; their words can still be keywords.

    ``n`` controls the density: over a dozen documents, the neighbours of the seeds cover no more supporting facts
    with more than the default of 10. Over many documents, even one keyword per document joins most passages.
    ``share`` limits that: keywords that more than this share of all passages contain are dropped. With 1 it is the
    paper's graph.
    """

    def __init__(self, snapshot: Snapshot, n: int = 10, share: float = 1.0) -> None:
        if n < 0:
            raise UsageError(f"number of keywords: {n}", "It must be 0 (titles alone) or more")
        if not 0 < share <= 1:
            raise UsageError(f"share of passages: {share}", "It must be above 0 and at most 1")
        self._snapshot = snapshot
        self.mutual = True
        self.name = f"keywords(n={n})" if share == 1 else f"keywords(n={n}, share={share:g})"
        incidences: tuple[Incidence, Incidence] = snapshot.memoize(
            f"graph/{self.name}", lambda: build_keyword_incidences(snapshot, n, share), documents_only=True
        )
        self._words, self._titles = incidences

    def neighbours(self, row: int) -> Rows:
        """Return the rows that share a keyword or a title with ``row``, ascending, without itself."""
        parts = self._words.rows_with(self._words.slots_of(row))
        parts += self._titles.rows_with(self._titles.slots_of(row))
        return distinct_rows(parts, self._words.size, row)

    def strengths(self, row: int, neighbours: Rows) -> Floats:
        """Return 1 for each: all shared keywords are equal."""
        return np.ones(len(neighbours))

    def explain_edge(self, source: int, target: int) -> str:
        """Return the keywords that both contain, as the target writes them (``keywords: Ohio, river``)."""
        words = self._words.keys[self._words.shared_slots(source, target)]
        titles = self._titles.keys[self._titles.shared_slots(source, target)]
        text = self._snapshot.nodes(np.array([target], dtype=np.int64))[0].text
        forms = surface_forms(
            text, words.tolist(), titles.tolist(), languages=document_languages(self._snapshot)
        )
        return f"keywords: {', '.join(forms)}" if forms else ""

    def keywords(self) -> Hashes:
        """Return the hashes of the pooled keywords that are single terms, ascending."""
        return self._words.keys


def build_keyword_incidences(snapshot: Snapshot, n: int, share: float = 1.0) -> tuple[Incidence, Incidence]:
    """Return the incidence of passages with the pooled keywords, and with the title phrases."""
    postings = snapshot.postings("text")
    document = snapshot.column("document")
    blocks = list(posting_blocks(snapshot, "text"))
    language = _language_numbers(snapshot)
    keywords = [_best_terms(block, document[block.rows], language[block.rows], n) for block in blocks]
    pool = distinct(np.concatenate([np.empty(0, dtype=np.uint64), *keywords]))
    pool = pool[postings.document_frequency(pool) <= share * postings.node_count]
    words = build_incidence(blocks, pool, snapshot.size)
    return words, build_title_incidence(snapshot)


def build_title_incidence(snapshot: Snapshot) -> Incidence:
    """Return the incidence of passages with the titles that they contain; keys are hashes of names."""
    titles = np.array(sorted(documents_by_title(snapshot)), dtype=np.uint64)
    titles = titles[np.argsort(titles & np.uint64(LABEL_MASK))]
    named = mention_pairs(snapshot, RETRIEVED_KINDS).of_kinds(NAME, INITIAL)
    slots = find_positions(titles & np.uint64(LABEL_MASK), named.labels)
    pairs = distinct(named.rows[slots >= 0] << 32 | slots[slots >= 0])
    return Incidence.from_pairs(
        titles, (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32), snapshot.size
    )


def _language_numbers(snapshot: Snapshot) -> NDArray[np.int64]:
    """Return for each row the number of its document's language in :data:`_LANGUAGES`, 0 for English, (size,)."""
    numbers = np.zeros(snapshot.size, dtype=np.int64)
    for document in snapshot.documents():
        if document.language in _LANGUAGES:
            numbers[slice(*snapshot.document_rows(document.key))] = _LANGUAGES.index(document.language)
    return numbers


def _best_terms(block: PostingBlock, documents: Rows, languages: NDArray[np.int64], n: int) -> Hashes:
    """Return the ``n`` terms of the highest TF-IDF of each document; ``documents`` and ``languages`` say which
    document and language a row is in."""
    ordinal = np.cumsum(np.r_[False, documents[1:] != documents[:-1]])
    passages = np.bincount(ordinal)
    numbers, row_language = np.unique(languages, return_inverse=True)
    can_be_keyword = np.array(
        [~np.isin(block.vocabulary, never_keywords(_LANGUAGES[number])) for number in numbers]
    ).reshape(len(numbers), len(block.vocabulary))
    language_of_pair = np.repeat(row_language, np.diff(block.starts))

    # One number for each (document, term, count), sorted by document, then by hash.
    width = len(block.vocabulary)
    pair = np.repeat(ordinal, np.diff(block.starts)) * width + block.term_indices
    packed = np.sort(
        ((pair << _COUNT_BITS) | np.minimum(block.counts, _MAX_COUNT))[
            can_be_keyword[language_of_pair, block.term_indices]
        ]
    )
    pair, counts = packed >> _COUNT_BITS, packed & _MAX_COUNT
    first = np.flatnonzero(np.r_[pair[:1] >= 0, pair[1:] != pair[:-1]])
    if not len(first):
        return block.vocabulary[:0]
    frequency = np.add.reduceat(counts, first)
    passages_with_term = np.diff(np.r_[first, len(pair)])
    document, term = np.divmod(pair[first], width)
    weight = frequency * (np.log((1 + passages[document]) / (1 + passages_with_term)) + 1)
    # Rounded, so that the last bits of a logarithm cannot decide.
    best = _greatest_by_group(document, np.round(weight, 9), n)
    keywords: Hashes = block.vocabulary[np.unique(term[best])]
    return keywords


def _greatest_by_group(group: NDArray[np.int64], weight: Floats, n: int) -> NDArray[np.int64]:
    """Return the indices of the ``n`` greatest weights of each group, of equal ones the first. Groups ascend."""
    # Only the few weights that reach the n-th of their group are sorted. That bound is set a little too low, because
    # large numbers are rounded.
    spread = float(weight.max()) + 1.0
    keys = group * spread - weight
    sizes = np.bincount(group)
    starts = run_offsets(sizes)[:-1]
    last = np.sort(keys)[np.minimum(starts + n, starts + sizes) - 1] if n else np.full(len(sizes), -np.inf)
    candidates = np.flatnonzero(keys <= last[group] + 1e-12 * spread * len(sizes))

    order = candidates[np.lexsort((-weight[candidates], group[candidates]))]
    starts = run_offsets(np.bincount(group[order], minlength=len(sizes)))[:-1]
    return order[np.arange(len(order)) - starts[group[order]] < n]


def function_words() -> frozenset[str]:
    """Return the terms that are never keywords: English function words, their contractions, and single letters."""
    contracted = {word + ending for word in STOPWORDS for ending in ("n't", "'ll", "'ve", "'re", "'d", "'m")}
    irregular = {"can't", "won't", "shan't", *string.ascii_lowercase}
    return STOPWORDS | {stem(word) for word in STOPWORDS} | contracted | irregular


#: The languages with function words, English first.
_LANGUAGES = [ENGLISH, *(code for code in FUNCTION_WORDS if code != ENGLISH)]


@cache
def never_keywords(language: str) -> Hashes:
    """Return the hashes of the terms that are never keywords of documents in a language, ascending."""
    words = function_words() if language == ENGLISH else FUNCTION_WORDS[language]
    terms = words if language == ENGLISH else {stem(word, language) for word in words} | words
    return np.array(sorted(map(hash_term, terms)), dtype=np.uint64)
