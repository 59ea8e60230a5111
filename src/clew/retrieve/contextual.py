"""The default search: passages and table rows, each judged together with its page, its document and its meaning.

First come the three things that the search adds to the words of a passage: the documents that the question names,
what a passage adds to those chosen before it, and what surrounds a passage. :class:`ContextualSearch` is the search.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats, Mask, Rows, Vectors, cosines
from clew.core.component import component
from clew.core.languages import ENGLISH, document_languages
from clew.core.protocols import Encoder, Snapshot, encoder_contrast
from clew.core.text import candidate_names, hash_term, index_terms, is_stop_term, query_terms
from clew.core.types import KINDS, RETRIEVED_KINDS, ROW, Document, Hit, Question, Scope
from clew.retrieve.document_fields import match_fields
from clew.retrieve.lexical import QueryTerms, intersect, row_lengths
from clew.retrieve.ranking import DECIMALS, as_hits, best_rows

_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,4}$")
_SEPARATORS = re.compile(r"[\W_]+")
# AnnualReport2022 is Annual, Report, 2022; MGM stays whole.
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_YEAR_FIRST = re.compile(r"^((?:19|20)\d\d)(q[1-4]|h[12])$")
#: A name with more characters, written as one word, is a phrase and not a name.
_MAX_JOINED = 40
#: So many nodes are fetched ahead from object storage: of the best rows while it is still being chosen among them,
#: and of the chosen ones while a walk goes on from the first. A walk reads about as many in the end.
_NODES_AHEAD = 30


def name_terms(name: str) -> Counter[str]:
    """Return the index terms of a file name or title, whole words and their parts, and its initials.

    >>> sorted(name_terms("AmberTrading_2022Q4_10K.pdf"))
    ['10', '10k', '2022', '2022q4', '4', 'amber', 'ambertrad', 'at', 'k', 'q', 'q42022', 'trade']
    """
    counts: Counter[str] = Counter()
    initials = ""
    for word in _SEPARATORS.split(_SUFFIX.sub("", name)):
        parts = _PARTS.findall(word)
        spellings = {word, *parts}
        if period := _YEAR_FIRST.match(word.casefold()):
            spellings.add(period[2] + period[1])
        counts.update({term for text in spellings for term in index_terms(text)})
        for part in parts:
            if part.isalpha():
                initials += part[0].casefold()
            else:
                _count_initials(counts, initials)
                initials = ""
    _count_initials(counts, initials)
    return counts


def _count_initials(counts: Counter[str], initials: str) -> None:
    if 2 <= len(initials) <= 6:
        counts[initials] += 1


def question_keys(
    question: str, known: Iterable[str] = (), languages: Sequence[str] = (ENGLISH,)
) -> list[str]:
    """Return the terms by which a question may name a document, each once.

    They are the words of its capitalised or digit-initial spans, each span written as one word ("American
    Express" is ``americanexpress`` in a file name, "10-K" is ``10k``), and its other words that are in ``known``.
    """
    keys: dict[str, None] = {}
    for name, _, _ in candidate_names(question):
        words = [term for term in index_terms(name) if not is_stop_term(term)]
        joined = name.replace(" ", "")
        if len(name.split()) > 1 and len(words) > 1 and len(joined) <= _MAX_JOINED:
            words += index_terms(joined)
        keys.update(dict.fromkeys(words))
    known = set(known)
    keys.update(dict.fromkeys(term for term in query_terms(question, languages) if term in known))
    return [term for term in keys if len(term) > 1 or not term.isascii()]


def prefetch_question(question: str, snapshot: Snapshot) -> None:
    """Say which words of a question will be looked up, in texts and headings and as names of documents: so a base in
    object storage fetches their postings while the method is made, all at once."""
    terms = {*question_keys(question), *query_terms(question, document_languages(snapshot))}
    hashes = np.array(sorted(map(hash_term, terms)), dtype=np.uint64)
    for field_name in ("text", "title"):
        snapshot.postings(field_name).prefetch(hashes)


@dataclass(frozen=True, slots=True)
class DocumentProfile:
    """The names and lengths of all documents, numbered in the order of their keys.

    ``document_of_row`` has the number of each row's document (-1 for a row without one), and ``is_front`` marks the
    rows of a document's first pages. ``name_shares`` gives, for a term of a name, the documents with it and its share
    of the name. ``front_lengths`` and ``lengths`` count terms and are at least 1; ``passages`` counts searched nodes.
    """

    document_of_row: NDArray[np.int64]
    is_front: NDArray[np.bool_]
    name_shares: dict[str, list[tuple[int, float]]]
    front_lengths: Floats
    lengths: Floats
    passages: Floats

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.lengths)


#: The front of a document: this many pages, or this many passages and rows where it has no pages.
FRONT_PAGES, FRONT_PASSAGES = 2, 20


def document_profile(snapshot: Snapshot) -> DocumentProfile:
    """Return the profile of the documents; computed once per generation."""
    profile: DocumentProfile = snapshot.memoize(
        "names/profile", lambda: _profile_documents(snapshot), documents_only=True
    )
    return profile


def _profile_documents(snapshot: Snapshot) -> DocumentProfile:
    documents = snapshot.documents()
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    lengths = np.zeros(snapshot.size)
    lengths[rows] = snapshot.postings("text").lengths(rows)
    page = snapshot.column("page")
    document_of_row = np.full(snapshot.size, -1, dtype=np.int64)
    is_front = np.zeros(snapshot.size, dtype=np.bool_)
    name_shares: dict[str, list[tuple[int, float]]] = {}
    for number, document in enumerate(documents):
        start, end = snapshot.document_rows(document.key)
        document_of_row[start:end] = number
        own = rows[np.searchsorted(rows, start) : np.searchsorted(rows, end)]
        is_front[own[page[own] <= FRONT_PAGES] if document.pages else own[:FRONT_PASSAGES]] = True
        for term, share in document_name_shares(document).items():
            name_shares.setdefault(term, []).append((number, share))

    def sum_by_document(counted: Rows, weights: Floats | None = None) -> Floats:
        return np.bincount(document_of_row[counted], weights, len(documents)).astype(np.float64)

    front_rows = np.flatnonzero(is_front)
    return DocumentProfile(
        document_of_row,
        is_front,
        name_shares,
        front_lengths=sum_by_document(front_rows, lengths[front_rows]) + 1,
        lengths=sum_by_document(rows, lengths[rows]) + 1,
        passages=sum_by_document(rows),
    )


def document_name_shares(document: Document) -> dict[str, float]:
    """Return the terms of a document's file name and title, each with its share of the file name or of the title,
    whichever is larger.

    So a file name that says nothing ("scan0017.pdf", a hash) does not weaken a title.
    """
    return dict(_share_names(document.name, document.title))


@lru_cache(maxsize=1 << 17)
def _share_names(*names: str) -> tuple[tuple[str, float], ...]:
    # Remembered, since every change of a base asks for those of all its documents.
    shares: dict[str, float] = {}
    for name in names:
        counts = name_terms(name)
        for term, count in counts.items():
            shares[term] = max(count / counts.total(), shares.get(term, 0.0))
    return tuple(shares.items())


@dataclass(frozen=True, slots=True)
class DocumentNames:
    r"""Scores how well documents match the names in a question.

    A document's score is a sum over the keys of the question (:func:`question_keys`), each adding from 0 to 1,

    .. math:: \frac{c}{c + \kappa} \cdot \frac{p(t | d)}{\max_{d'} p(t | d')} \cdot
              \sqrt{\frac{\ln(1 + D / n)}{\ln(1 + D)}}

    where ``p`` mixes the term's shares of the words of the document's name, of its first pages, and of its whole
    text by ``shares`` (a mixture of language models over fields: Ogilvie and Callan, SIGIR 2003). ``c`` is the amount
    of evidence: an occurrence in the text counts once, one on the first pages ``front`` times more, one in the name
    ``name`` times. ``n`` is the sum of the first two factors over all ``D`` documents, that is, how many documents
    the key fits: a company that one document is about tells more than one that half of them are about, and a year
    that all of them are about leaves their order as it is. A single mention in a long document adds little. Where
    nothing matches, and in a knowledge base of one document, every score is 0.
    """

    snapshot: Snapshot
    shares: tuple[float, float, float] = (0.3, 0.3, 0.4)
    name: float = 20.0
    front: float = 3.0
    kappa: float = 10.0

    def scores(self, question: str) -> Floats:
        """Return one score per document, in the order of :meth:`Snapshot.documents`; 0 or more."""
        profile = document_profile(self.snapshot)
        scores = np.zeros(profile.documents)
        if profile.documents > 1:
            for key in question_keys(question, profile.name_shares, document_languages(self.snapshot)):
                scores += self._score_key(key, profile)
        return scores

    def _score_key(self, key: str, profile: DocumentProfile) -> Floats:
        rows, counts = self.snapshot.postings("text").rows_with(hash_term(key))
        is_front = profile.is_front[rows]
        in_name = np.zeros(profile.documents)
        for number, name_share in profile.name_shares.get(key, ()):
            in_name[number] = name_share
        in_front = np.bincount(profile.document_of_row[rows[is_front]], counts[is_front], profile.documents)
        in_text = np.bincount(profile.document_of_row[rows], counts, profile.documents)
        name_weight, front_weight, text_weight = self.shares
        share = name_weight * in_name
        share += front_weight * in_front / profile.front_lengths + text_weight * in_text / profile.lengths
        best = share.max(initial=0.0)
        if not best:
            return np.zeros(profile.documents)
        evidence = self.name * (in_name > 0) + self.front * in_front + in_text
        fit = evidence / (evidence + self.kappa) * share / best
        scores: Floats = fit * np.sqrt(np.log1p(profile.documents / fit.sum()) / np.log1p(profile.documents))
        return scores

    def document_probabilities(self, scores: Floats, allowed: Mask) -> Floats:
        """Return the probability that the question is about each document: ``passages * D ** score``, normalised.

        Documents without an allowed row get 0. Where nothing matches, a document is as probable as it is long.
        """
        profile = document_profile(self.snapshot)
        rows = np.flatnonzero(allowed)
        passages = np.bincount(profile.document_of_row[rows], minlength=profile.documents)
        weights = passages * float(profile.documents) ** (scores - scores.max(initial=0.0))
        probabilities: Floats = weights / (weights.sum() or 1.0)
        return probabilities


def spread_to_rows(scores: Floats, snapshot: Snapshot) -> Floats:
    """Return a score per row from one per document; 0 for rows without a document."""
    row_scores: Floats = np.append(scores, 0.0)[document_profile(snapshot).document_of_row]
    return row_scores


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
    ``weights`` (words,) how much each word counts. ``prior`` (n,) is the score of the candidate's document by its
    words, ``lead`` (n,) that by its fields, and ``documents`` (n,) the document's number. ``meaning`` is None without
    an encoder. Ties are broken by the order of the candidates.
    """

    matched: Floats
    weights: Floats
    prior: Floats
    lead: Floats
    documents: NDArray[np.int64]
    meaning: SemanticGain | None = None

    def select(self, k: int, variety: float, fading: float) -> tuple[NDArray[np.int64], Floats]:
        r"""Return ``k`` candidates in the order chosen, and what each added (never more than the one before).

        Each step takes the candidate that adds most. A word that the chosen ones match to the degrees ``m`` counts
        its weight times :math:`\prod (1 - variety \cdot m)`: the diversification of xQuAD (Santos et al., WWW 2010)
        with the words of the question as its aspects. The prior of a document is multiplied by ``1 - fading`` each
        time one of its passages is chosen; its lead remains.
        """
        weights, prior = self.weights.copy(), self.prior.copy()
        constant = self.lead + self._meaning_gains()
        available = np.ones(len(prior), dtype=np.bool_)
        order, gains = [], []
        for _ in range(min(k, len(prior))):
            gain = np.round(self.matched @ weights + prior + constant, DECIMALS)
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
        weights, prior = self.left_after(path, variety, fading)
        return np.round(
            self.matched @ weights + prior + self.lead + self._meaning_gains(path, ahead), DECIMALS
        )

    def left_after(self, path: Sequence[int], variety: float, fading: float) -> tuple[Floats, Floats]:
        """Return what the words count, (words,), and the priors of the candidates, (n,), after those of ``path``."""
        weights, prior = self.weights.copy(), self.prior.copy()
        for chosen in path:
            weights *= 1 - variety * self.matched[chosen]
            prior[self.documents == self.documents[chosen]] *= 1 - fading
        return weights, prior

    def missing_share(self, path: Sequence[int]) -> float:
        """Return the share of the words of the question, by weight, that the candidates of ``path`` do not match."""
        total = float(self.weights.sum())
        if not total:
            return 0.0
        left = np.prod(1 - self.matched[list(path)], axis=0)
        return float(left @ self.weights) / total

    def _meaning_gains(self, without: Sequence[int] = (), ahead: Lookahead | None = None) -> Floats:
        if self.meaning is None:
            return np.zeros(len(self.prior))
        if ahead is None:
            return self.meaning.gains(without)
        return ahead.weight * cosines(self.meaning.vectors, ahead.vector)


@dataclass(frozen=True, slots=True)
class ContextUnits:
    """The page of every searched node, or its section in a document without pages.

    ``unit_of_row`` has one entry per row of the snapshot: the number of its unit (0 for rows without terms).
    ``lengths`` has the number of terms of each unit, and ``average_length`` is their mean.
    """

    unit_of_row: NDArray[np.int64]
    lengths: Floats
    average_length: float

    @property
    def count(self) -> int:
        """The number of units."""
        return len(self.lengths)


def context_units(snapshot: Snapshot) -> ContextUnits:
    """Return the units of a snapshot; computed once per generation."""
    units: ContextUnits = snapshot.memoize(
        "units/text", lambda: _find_context_units(snapshot), documents_only=True
    )
    return units


def _find_context_units(snapshot: Snapshot) -> ContextUnits:
    lengths = row_lengths(snapshot, "text")
    rows = np.flatnonzero(lengths)
    document, page = snapshot.column("document")[rows], snapshot.column("page")[rows]
    parent, kind = snapshot.column("parent"), snapshot.column("kind")[rows]
    section = parent[rows]
    in_table = (kind == KINDS.index(ROW)) & (section >= 0)
    section[in_table] = parent[section[in_table]]
    # A page is identified by its document and number, a section by its row.
    place = np.where(page > 0, page, -section - 1)
    order = np.lexsort((place, document))
    document, place = document[order], place[order]
    begins_unit = (document[1:] != document[:-1]) | (place[1:] != place[:-1])
    unit_of_row = np.zeros(snapshot.size, dtype=np.int64)
    unit_of_row[rows[order]] = np.cumsum(np.r_[False, begins_unit])[: len(rows)]
    # Rows without text point to the first unit, so there is one even where no row has text (a lone header).
    unit_lengths = np.bincount(unit_of_row[rows], lengths[rows], minlength=1).astype(np.float64)
    return ContextUnits(unit_of_row, unit_lengths, float(unit_lengths.mean()))


def mark_rows_below(snapshot: Snapshot, above: Rows) -> NDArray[np.bool_]:
    """Return which searched rows, (snapshot.size,), stand below one of the rows ``above`` (sections, tables,
    documents)."""
    ends = subtree_ends(snapshot)[above]
    change = np.bincount(above, minlength=snapshot.size + 1) - np.bincount(ends, minlength=snapshot.size + 1)
    below: NDArray[np.bool_] = (np.cumsum(change[:-1]) > 0) & (row_lengths(snapshot, "text") > 0)
    return below


def subtree_ends(snapshot: Snapshot) -> Rows:
    """Return for each row the end of its subtree: its descendants are the rows from ``row + 1`` up to there.

    Parsers number nodes in reading order, so the only other rows in that range are pages, which are not searched.
    Computed once per generation.
    """
    ends: Rows = snapshot.memoize(
        "units/ends", lambda: _find_subtree_ends(snapshot.column("parent")), documents_only=True
    )
    return ends


def _find_subtree_ends(parent: Rows) -> Rows:
    ends = np.arange(1, len(parent) + 1, dtype=np.int64)
    children = np.flatnonzero(parent >= 0)
    while True:
        before = ends.copy()
        np.maximum.at(ends, parent[children], ends[children])
        if np.array_equal(before, ends):
            return ends


@dataclass(frozen=True, slots=True)
class QuestionWord:
    """A word of the question, and how well rows and units match it.

    ``rows`` are the rows with the word, ascending, and ``gains`` say how well each matches, from 0 to 1;
    ``unit_gains`` say the same of every unit.
    """

    weight: float
    rows: Rows
    gains: Floats
    unit_gains: Floats


@dataclass(frozen=True, slots=True)
class WeighedQuestion:
    """A question with the weights that a search gives to its words and to documents.

    ``total`` is the sum of the words' weights: scores are divided by it. ``document_scores`` has a score per
    document for the words of its names and ``field_scores`` for its fields, ``row_scores`` the score of every row of
    the snapshot by words, surroundings and document. ``variety`` says how much hits should differ. With an encoder,
    ``vector`` is the question's, (1, dimension), and ``nearest_rows`` are the allowed rows with the nearest vectors,
    best first.
    """

    words: list[QuestionWord]
    total: float
    document_scores: Floats
    field_scores: Floats
    variety: float
    vector: Vectors | None
    row_scores: Floats
    nearest_rows: Rows


@component(
    "search",
    summary="passages and table rows by their words, their surroundings and their document's name, and by "
    "meaning where the base has an encoder",
)
@dataclass(frozen=True, slots=True)
class ContextualSearch:
    r"""Finds the passages and table rows that most likely contain the answer to a question.

    The score of a node is a sum of five parts:

    - *words*: BM25 of its text. A word in the headings, the caption or the title above it counts as
      ``heading`` occurrences, added before saturation (BM25F: Robertson, Zaragoza and Taylor, CIKM 2004).
    - *surroundings*, a share ``page`` of the score by words: BM25 of its page (of its section where there are no
      pages). The words of a question are often spread over a page: a heading, a lead-in, a row.
    - *document*: ``prior`` times how well the names in the question fit its document
      (:class:`DocumentNames`).
    - *fields*: ``subject`` where the question asks about whom its document is about, and ``period`` more where the
      period is the document's too (:func:`clew.retrieve.document_fields.match_fields`).
    - *meaning*, with an encoder: the cosine of its vector with the question's, times ``meaning_weight``, where a
      match of all words counts 1.

    A word counts by how surprising it is *in the documents that the question is about*: a company's name says much
    in a folder of reports and nothing within the company's own report. With ``P(d)`` the probability that the
    question is about document ``d``, ``n_d`` its number of passages and ``df_d`` the number with the word, the word
    has

    .. math:: p = \frac{n \sum_d P(d) \, df_d / n_d + \mu \, df / N}{n + \mu}, \qquad n = \sum_d P(d) \, n_d

    and the weight ``-ln p``. Where no name matches, ``P(d)`` is proportional to ``n_d`` and this is the usual
    idf. Weighted this way, a search in a folder ranks much as a search within the right document would; with the
    statistics of the folder it would not. ``mu`` keeps a document of one paragraph from explaining away its own
    words.

    From the best ``candidates`` rows, hits are then chosen one by one (:class:`CoverageSelector`): a document's score
    fades by ``fading`` with every hit from it, and the words that a hit covers count less for the next, by
    ``variety`` times ``mu / (n + mu)``. In a folder of short notes an answer is put together from several, while the
    pages of a long report are alternatives to each other.
    """

    snapshot: Snapshot
    encoder: Encoder | None = None
    k1: float = 1.2
    b: float = 0.75
    heading: float = 1.0
    page: float = 0.6
    prior: float = 4.0
    subject: float = 6.0
    period: float = 12.0
    mu: float = 100.0
    meaning_weight: float = 0.54
    variety: float = 0.5
    fading: float = 0.7
    candidates: int = 200
    _latest: dict[Question, WeighedQuestion] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def build(
        cls, snapshot: Snapshot, encoder: Encoder | None, meaning: bool = True, fields: bool = True
    ) -> ContextualSearch:
        """Return the search with its usual weights.

        Without ``meaning`` vectors do not count, without ``fields`` who a document is about and when.
        """
        search = cls(snapshot, encoder if meaning else None)
        return search if fields else replace(search, subject=0.0, period=0.0)

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best nodes, best first; rows that repeat an earlier row's text come last."""
        return as_hits(self.snapshot, *self.rank_rows(question, k))

    def rank_rows(self, question: Question, k: int) -> tuple[Rows, Floats]:
        """Return the rows and scores of :meth:`retrieve`, without reading a node: a walk needs no more of most."""
        allowed = self.snapshot.mask(question.scope, RETRIEVED_KINDS)
        weighed = self.weigh_question(question)
        rows, scores = self.best_rows(weighed, max(2 * k + 10, self.candidates), allowed)
        self.snapshot.prefetch_nodes(rows[:_NODES_AHEAD])
        distinct, repeated = split_repeats(self.snapshot, rows)
        candidates = rows[distinct[: self.candidates]]
        rest = np.append(distinct[self.candidates :], repeated)
        order, gains = self.coverage_selector(weighed, candidates).select(k, weighed.variety, self.fading)
        # Rows beyond the candidates keep their order; a score never rises from one hit to the next.
        rows = np.append(candidates[order], rows[rest])[:k]
        scores = np.append(gains, scores[rest])[:k]
        self.snapshot.prefetch_nodes(rows[:_NODES_AHEAD])
        return rows, np.minimum.accumulate(scores)

    def weigh_question(self, question: Question) -> WeighedQuestion:
        """Return the question with its weights. The latest is remembered: a walk asks the same one at every hop."""
        weighed = self._latest.get(question)
        if weighed is None:
            weighed = self._weigh(question.text, self.snapshot.mask(question.scope, RETRIEVED_KINDS))
            self._latest.clear()
            self._latest[question] = weighed
        return weighed

    def _weigh(self, query: str, allowed: Mask) -> WeighedQuestion:
        names = DocumentNames(self.snapshot)
        document_scores = names.scores(query)
        subjects, periods = match_fields(query, self.snapshot)
        field_scores = self.subject * subjects + self.period * periods
        probabilities = names.document_probabilities(document_scores, allowed)
        words = list(self._weigh_words(query, probabilities))
        total = sum(word.weight for word in words) or 1.0
        expected_passages = float(probabilities @ document_profile(self.snapshot).passages)
        vector, nearest = None, np.empty(0, dtype=np.int64)
        if self.encoder is not None:
            vector = self.encoder.encode([query], query=True)
            index = self.snapshot.vectors(self.encoder.name, self.encoder.dimension)
            nearest = index.search(vector, self.candidates, allowed)[0][0]
        return WeighedQuestion(
            words,
            total,
            document_scores,
            field_scores,
            self.variety * self.mu / (expected_passages + self.mu),
            vector,
            self._row_scores(words, self.prior * document_scores + field_scores) / total,
            nearest[nearest >= 0],
        )

    def _weigh_words(self, query: str, probabilities: Floats) -> Iterator[QuestionWord]:
        text, titles = self.snapshot.postings("text"), self.snapshot.postings("title")
        units, lengths = context_units(self.snapshot), row_lengths(self.snapshot, "text")
        unit_norm = self._length_norm(units.lengths, units.average_length)
        terms = QueryTerms.for_documents(query, self.snapshot)
        for term, times in zip(terms.hashes.tolist(), terms.counts.tolist(), strict=True):
            rows, counts = text.rows_with(term)
            weight = times * self._surprise(rows, probabilities)
            rows, frequency = self._add_headings(rows, counts, titles.rows_with(term)[0])
            gains = frequency / (frequency + self._length_norm(lengths[rows], text.average_length))
            unit_frequency = np.bincount(units.unit_of_row[rows], frequency, units.count)
            yield QuestionWord(weight, rows, gains, unit_frequency / (unit_frequency + unit_norm))

    def _add_headings(self, rows: Rows, counts: NDArray[np.int64], titled: Rows) -> tuple[Rows, Floats]:
        """Return the rows that have a word or stand below one of ``titled``, and the word's frequency in each."""
        if not len(titled):
            return rows, counts.astype(np.float64)
        frequency = np.zeros(self.snapshot.size)
        frequency[rows] = counts
        frequency[mark_rows_below(self.snapshot, titled)] += self.heading
        rows = np.flatnonzero(frequency)
        return rows, frequency[rows]

    def _surprise(self, rows: Rows, probabilities: Floats) -> float:
        """Return ``-ln p`` of a word that ``rows`` contain."""
        profile = document_profile(self.snapshot)
        share_anywhere = (len(rows) + 0.5) / (profile.passages.sum() + 1)
        frequency = np.bincount(profile.document_of_row[rows], minlength=profile.documents)
        share_expected = float(probabilities @ (frequency / np.maximum(profile.passages, 1)))
        size = float(probabilities @ profile.passages)
        return -float(np.log((size * share_expected + self.mu * share_anywhere) / (size + self.mu)))

    def _length_norm(self, lengths: Floats, average: float) -> Floats:
        return self.k1 * (1 - self.b + self.b * lengths / (average or 1.0))

    def _row_scores(self, words: Sequence[QuestionWord], document_scores: Floats) -> Floats:
        """Return the score of every row without the part for its meaning."""
        units = context_units(self.snapshot)
        by_row, by_unit = np.zeros(self.snapshot.size), np.zeros(units.count)
        for word in words:
            by_row[word.rows] += word.weight * word.gains
            by_unit += word.weight * word.unit_gains
        scores = (1 - self.page) * by_row
        scores += self.page * by_unit[units.unit_of_row] * (row_lengths(self.snapshot, "text") > 0)
        matched = scores > 0
        scores[matched] += spread_to_rows(document_scores, self.snapshot)[matched]
        return scores

    def best_rows(self, weighed: WeighedQuestion, k: int, allowed: Mask) -> tuple[Rows, Floats]:
        """Return the ``k`` best rows and their scores, each row judged on its own.

        With an encoder, rows that match by meaning alone are among them.
        """
        scores = weighed.row_scores
        rows = np.flatnonzero((scores > 0) & allowed)
        if self.encoder is None or weighed.vector is None:
            return best_rows(self.snapshot, rows, scores[rows], k)
        by_words = best_rows(self.snapshot, rows, scores[rows], max(k, self.candidates))[0]
        rows = np.union1d(by_words, weighed.nearest_rows)
        vectors = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).vectors(rows)
        sums = scores[rows] + self._weight_of_meaning * cosines(vectors, weighed.vector[0])
        return best_rows(self.snapshot, rows, sums, k)

    @property
    def _weight_of_meaning(self) -> float:
        """The weight of a cosine: ``meaning_weight``, which was chosen for ``clew:hops``, times the encoder's
        contrast."""
        return self.meaning_weight * encoder_contrast(self.encoder)

    def coverage_selector(self, weighed: WeighedQuestion, rows: Rows) -> CoverageSelector:
        """Return the selector among ``rows``: searched ones, in any order, each once."""
        units = context_units(self.snapshot).unit_of_row[rows]
        matched = np.zeros((len(rows), len(weighed.words)))
        for column, word in zip(matched.T, weighed.words, strict=True):
            column += self.page * word.unit_gains[units]
            places, matches = intersect_unordered(rows, word.rows)
            column[places] += (1 - self.page) * word.gains[matches]
        meaning = None
        if self.encoder is not None and weighed.vector is not None:
            vectors = self.snapshot.vectors(self.encoder.name, self.encoder.dimension).vectors(rows)
            meaning = SemanticGain(vectors, weighed.vector[0], self._weight_of_meaning)
        unit = 1 / weighed.total
        documents = document_profile(self.snapshot).document_of_row[rows]
        is_matched = matched.any(axis=1)
        return CoverageSelector(
            matched,
            unit * np.array([word.weight for word in weighed.words]),
            unit * self.prior * weighed.document_scores[documents] * is_matched,
            unit * weighed.field_scores[documents] * is_matched,
            documents,
            meaning,
        )


def intersect_unordered(rows: Rows, ascending: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where ``rows``, distinct and in any order, agree with an ascending array: indices into each."""
    order = np.argsort(rows)
    in_rows, in_ascending = intersect(rows[order], ascending)
    return order[in_rows], in_ascending


def split_repeats(snapshot: Snapshot, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of ``rows`` with new text, and of those with exactly the terms of an earlier row."""
    starts, terms, counts = snapshot.postings("text").term_matrix(rows)
    seen: set[bytes] = set()
    is_new = np.ones(len(rows), dtype=np.bool_)
    for n, (start, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        content = terms[start:end].tobytes() + counts[start:end].tobytes()
        is_new[n] = content not in seen
        seen.add(content)
    return np.flatnonzero(is_new), np.flatnonzero(~is_new)
