"""Guides of the KGP traverser: they rank the neighbours of a path.

The guides of the paper follow Eq. (1), ``argmax over neighbours v of phi(g(X_v), f(X_0 || ... || X_j))``. A
:class:`TextGuide` consists of an *expectation*, which is ``f``: it turns the question and a path of passages into the
text of the evidence still missing; and of a *matcher*, which is ``phi`` and ``g``: it scores passages against that
text. :class:`ResidualGuide` is ours.

| guide       | expectation        | matcher           | in the paper (Section 4, Supplementary 8.2)     |
|-------------|--------------------|-------------------|-------------------------------------------------|
| `none`      | (not asked)        | `EqualMatcher`    | breadth-first search alone                      |
| `question`  | the question       | TF-IDF            | "KGP w/o LM"                                    |
| `tfidf`     | question and path  | TF-IDF            |                                                 |
| `encoder`   | question and path  | inner product     | KGP-MDR                                         |
| `generated` | a model writes it  | TF-IDF or encoder | KGP-T5, KGP-LLaMA                               |
| `residual`  | the part of the question that the path leaves open, by words and meaning | (KGP-MDR, in part) |
| `trained`   | :mod:`clew.methods.kgp.trained`: learned coefficients of what `residual` and edges say |       |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from clew.core.arrays import Floats, Mask, Rows, Vectors, cosines
from clew.core.component import Recipe, Resources
from clew.core.errors import unknown_name_error
from clew.core.prompts.replies import read_text
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Encoder, LanguageModel, PromptTemplate, Retriever, Snapshot
from clew.core.text import build_hop_query
from clew.core.types import Question, Usage
from clew.graph.passages import texts_with_headings
from clew.retrieve.contextual import ContextualSearch, Lookahead
from clew.retrieve.lexical import TfIdf

#: Rows with their scores.
ScoredRows = tuple[Rows, Floats]

#: The prompts of ``generated``: one for a model that was not tuned for it, and the two forms in which a model is
#: tuned (Supplementary 8.1: Listing 1 for LLaMA, the instruction as a prefix for T5).
GENERATION_PROMPTS = {"untuned": "kgp-generate", "listing1": "kgp-listing1", "prefix": "kgp-prefix"}


@dataclass(frozen=True, slots=True)
class Calibration:
    """How scores become probabilities: ``softmax(score * guide + strength * edge)`` over the candidates of a step,
    where ``strength`` is that of the edge to a candidate."""

    guide: float
    edge: float


#: The objective of multi-hop encoders, whose queries contain the passages so far.
MDR = "mdr"
#: A path as the texts of its passages, seed first.
Texts = Sequence[str]


@dataclass(frozen=True, slots=True)
class OpenCandidates:
    """How many passages to consider that no edge leads to: the ``k`` best matches among the ``allowed`` ones."""

    k: int
    allowed: Mask


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a second guide says of the rows of a path, (n,), and the share that it has in their probabilities."""

    scores: Floats
    calibration: Calibration
    trust: float


@dataclass(frozen=True, slots=True)
class NeighbourScores:
    """For each path the rows that were considered with their scores (1 is a perfect match), and what that cost.

    ``expected`` has for each path the text that a model expected next; it is empty for guides without a model.
    ``opinions`` has for each path what a second guide says of its rows; it is empty where there is none.
    """

    scores: list[ScoredRows]
    expected: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    opinions: list[Opinion] = field(default_factory=list)


class Guide(Protocol):
    """Ranks the possible next passages of several paths."""

    def score_neighbours(
        self,
        question: Question,
        paths: Sequence[Sequence[int]],
        neighbours: Sequence[Rows],
        open_candidates: OpenCandidates,
    ) -> NeighbourScores:
        """Score for each path (rows, seed first) its neighbours and the candidates that ``open_candidates`` adds."""

    def missing(self, question: Question, paths: Sequence[Sequence[int]]) -> list[float]:
        """Return for each path the share of the question that it leaves open, from 0 to 1."""


class Expectation(Protocol):
    """``f`` of Eq. (1): the evidence that is still missing."""

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return one text per path, and what that cost."""


# Expectations


@dataclass(frozen=True, slots=True)
class QuestionOnly:
    """Expects the question itself, whatever the path: the paper's traversal without a language model."""

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return the question for every path."""
        return [question] * len(paths), Usage()


@dataclass(frozen=True, slots=True)
class QuestionAndPath:
    """Joins the question and the passages so far: the query of a multi-hop encoder (MDR)."""

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return the question followed by each path's passages."""
        return [build_hop_query(question, path) for path in paths], Usage()


@dataclass(frozen=True, slots=True)
class GeneratedEvidence:
    """Lets a language model write the next evidence (Section 4; the instruction of Listing 1).

    ``template`` renders the question and the path. The text may have wrong facts: it is only matched against passages
    and never shown as evidence.
    """

    model: LanguageModel
    template: PromptTemplate

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return the evidence that the model expects after each path, asked for in one batch."""
        # One space between passages, as in Listing 1: a tuned model is asked as it was trained.
        prompts = [self.template.render(question=question, evidence=" ".join(path)) for path in paths]
        completions = self.model.complete(prompts)
        # After an empty reply the question and the path are the best guess.
        fallback, _ = QuestionAndPath().expect(question, paths)
        texts = [
            read_text(completion.text) or text for completion, text in zip(completions, fallback, strict=True)
        ]
        return texts, sum((completion.usage for completion in completions), Usage())


# Matchers


@dataclass(frozen=True, slots=True)
class LexicalMatcher:
    """Matches by words: TF-IDF cosine, which the paper uses for generated evidence."""

    scorer: TfIdf

    def match(
        self, texts: Sequence[str], candidates: Sequence[Rows], open_candidates: OpenCandidates
    ) -> list[ScoredRows]:
        """Return the TF-IDF cosine of each candidate with its text."""
        scored = []
        for text, rows in zip(texts, candidates, strict=True):
            if open_candidates.k:
                nearest = self.scorer.nearest(text, open_candidates.k, open_candidates.allowed)
                rows = np.union1d(rows, nearest)
            scored.append((rows, self.scorer.scores(text, rows)))
        return scored


@dataclass(frozen=True, slots=True)
class EncoderMatcher:
    """Matches by the inner product of unit vectors."""

    snapshot: Snapshot
    encoder: Encoder

    def match(
        self, texts: Sequence[str], candidates: Sequence[Rows], open_candidates: OpenCandidates
    ) -> list[ScoredRows]:
        """Return the cosine of each candidate's stored vector with its text's."""
        index = self.snapshot.vectors(self.encoder.name)
        queries = self.encoder.encode(texts, query=True)
        if open_candidates.k:
            nearest, _ = index.search(queries, open_candidates.k, open_candidates.allowed)
            candidates = [
                np.union1d(rows, near[near >= 0]) for rows, near in zip(candidates, nearest, strict=True)
            ]
        return [
            (rows, cosines(index.vectors(rows), query))
            for query, rows in zip(queries, candidates, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class EqualMatcher:
    """Scores every neighbour alike, so that the traverser takes them in the order of node ids."""

    def match(
        self, texts: Sequence[str], candidates: Sequence[Rows], open_candidates: OpenCandidates
    ) -> list[ScoredRows]:
        """Return equal scores; nothing but the graph proposes candidates."""
        return [(rows, np.ones(len(rows))) for rows in candidates]


#: ``phi`` and ``g`` of Eq. (1): how well passages match a text; 1 is a perfect match.
Matcher: TypeAlias = LexicalMatcher | EncoderMatcher | EqualMatcher

# Guides


@dataclass(frozen=True, slots=True)
class TextGuide:
    """Eq. (1): passages are matched with the text of the evidence that is expected next."""

    snapshot: Snapshot
    expectation: Expectation
    matcher: Matcher

    def score_neighbours(
        self,
        question: Question,
        paths: Sequence[Sequence[int]],
        neighbours: Sequence[Rows],
        open_candidates: OpenCandidates,
    ) -> NeighbourScores:
        """Score the candidates of each path against the text that is expected after it."""
        expected, usage = self.expect(question, paths)
        scores = self.matcher.match(expected, neighbours, open_candidates)
        generated = isinstance(self.expectation, GeneratedEvidence)
        return NeighbourScores(scores, expected if generated else [], usage)

    def expect(self, question: Question, paths: Sequence[Sequence[int]]) -> tuple[list[str], Usage]:
        """Return the text that is expected after each path, and what that cost."""
        generated = isinstance(self.expectation, GeneratedEvidence)
        # An encoder was given passages with their headings, a language model reads the passages alone.
        with_headings = isinstance(self.matcher, EncoderMatcher) and not generated
        texts = [
            texts_with_headings(self.snapshot, np.array(path))
            if with_headings
            else [node.text for node in self.snapshot.nodes(np.array(path))]
            for path in paths
        ]
        return self.expectation.expect(question.text, texts)

    def missing(self, question: Question, paths: Sequence[Sequence[int]]) -> list[float]:
        """Return 1 for each path: a text alone does not tell what is left."""
        return [1.0] * len(paths)


@dataclass(frozen=True, slots=True)
class ResidualGuide:
    """Scores passages by the part of the question that the path leaves open; needs no language model.

    It is the lexical counterpart of asking a model for the evidence that is still missing (Section 4). The scorer is
    that of the search (:class:`clew.retrieve.contextual.ContextualSearch`), less what the passages of the path say
    already: a word that one of them matches to the degree ``m`` counts ``1 - covered * m`` of its weight, and the
    worth of a document fades by ``fading`` with each of its passages on the path.

    If the search has a multi-hop encoder, the question and the path together are its query for the first
    ``encoded_paths`` paths (KGP-MDR): those from the likeliest seeds, on which nearly all of the result depends. A
    cosine of 1 adds ``meaning``, and up to ``nearest`` passages are proposed for each path. The first ``words`` of a
    passage go into the query: what it is about stands at its beginning, and encoding takes most of the time of a
    question. For the other paths, and with any other encoder, the vector of the question is used without its part
    along those of the path.

    ``deeper`` is the probability that a path of two passages or more needs another, as far as that does not depend on
    its words: most questions are answered by one or two passages.
    """

    search: ContextualSearch
    covered: float = 0.5
    fading: float = 0.7
    meaning: float = 1.2
    encoded_paths: int = 2
    words: int = 32
    nearest: int = 30
    deeper: float = 0.5

    def score_neighbours(
        self,
        question: Question,
        paths: Sequence[Sequence[int]],
        neighbours: Sequence[Rows],
        open_candidates: OpenCandidates,
        queries: Sequence[Vectors | None] | None = None,
    ) -> NeighbourScores:
        """Score the candidates of each path: all neighbours, and the best hits of the whole question. ``queries`` are
        those of :meth:`hop_vectors`, if they are known already."""
        weighed = self.search.weigh_question(question)
        best = np.zeros(0, np.int64)
        if open_candidates.k:
            best, _ = self.search.best_rows(weighed, open_candidates.k, open_candidates.allowed)
        if queries is None:
            queries = self.hop_vectors(question, paths)
        nearest = self._nearest_rows(queries, open_candidates)
        pools = [
            np.union1d(np.union1d(best, near), proposed)
            for near, proposed in zip(neighbours, nearest, strict=True)
        ]
        every_row = np.unique(np.concatenate([*pools, *(np.array(path, np.int64) for path in paths)]))
        selector = self.search.coverage_selector(weighed, every_row)
        scores = []
        for path, pool, query in zip(paths, pools, queries, strict=True):
            on_path = np.searchsorted(every_row, path).tolist()
            lookahead = None if query is None else Lookahead(query, self.meaning)
            gains = selector.gains_after(on_path, self.covered, self.fading, lookahead)
            scores.append((pool, gains[np.searchsorted(every_row, pool)]))
        return NeighbourScores(scores)

    def missing(self, question: Question, paths: Sequence[Sequence[int]]) -> list[float]:
        """Return for each path the share of the words of the question, by weight, that no passage of it has; from
        the second passage on times ``deeper``."""
        weighed = self.search.weigh_question(question)
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *(np.array(path) for path in paths)]))
        selector = self.search.coverage_selector(weighed, rows)
        return [
            selector.missing_share(np.searchsorted(rows, path).tolist())
            * (self.deeper if len(path) > 1 else 1.0)
            for path in paths
        ]

    def hop_vectors(self, question: Question, paths: Sequence[Sequence[int]]) -> list[Vectors | None]:
        """Return for each path the vector of the question and the path, None for those that are not encoded."""
        encoder = self.search.encoder
        if encoder is None or encoder.objective != MDR:
            return [None] * len(paths)
        queries = []
        for path in paths[: self.encoded_paths]:
            texts = texts_with_headings(self.search.snapshot, np.array(path))
            beginnings = [" ".join(text.split()[: self.words]) for text in texts]
            queries.append(build_hop_query(question.text, beginnings))
        vectors = encoder.encode(queries, query=True)
        return [*vectors, *[None] * (len(paths) - len(queries))]

    def _nearest_rows(self, queries: Sequence[Vectors | None], open_candidates: OpenCandidates) -> list[Rows]:
        """Return the rows nearest to each query, none for a query that is None."""
        encoder = self.search.encoder
        vectors = [query for query in queries if query is not None]
        no_rows = np.zeros(0, np.int64)
        if encoder is None or not vectors or not open_candidates.k:
            return [no_rows] * len(queries)
        index = self.search.snapshot.vectors(encoder.name, encoder.dimension)
        nearest = iter(index.search(np.array(vectors), self.nearest, open_candidates.allowed)[0])
        return [no_rows if query is None else (rows := next(nearest))[rows >= 0] for query in queries]


#: The names of guides, and what a generated guide may match by.
GUIDES = ("none", "question", "tfidf", "encoder", "generated", "residual", "trained")
MATCHERS = ("tfidf", "encoder")


def create_guide(recipe: Recipe, resources: Resources, seeding: Retriever) -> Guide:
    """Return the guide that a recipe names. Raises UsageError for another name, and where its model is missing."""
    name, snapshot = recipe.name, resources.snapshot
    if name not in GUIDES:
        raise unknown_name_error("guide of 'kgp'", name, GUIDES)
    # The seeding itself where it can be: it has weighed the question already.
    search = (
        seeding if isinstance(seeding, ContextualSearch) else ContextualSearch(snapshot, resources.encoder)
    )
    if name == "residual":
        return ResidualGuide(search)
    words = _generation_options(recipe) if name == "generated" else {}
    matcher: Matcher = LexicalMatcher(TfIdf(snapshot))
    if name == "none":
        matcher = EqualMatcher()
    elif "encoder" in (name, words.get("match")):
        matcher = EncoderMatcher(snapshot, resources.require_encoder(f"guide={recipe}"))
    expectation: Expectation = QuestionAndPath()
    if name in {"none", "question"}:
        expectation = QuestionOnly()
    elif name == "generated":
        template = load_prompt(GENERATION_PROMPTS[words["prompt"]])
        expectation = GeneratedEvidence(resources.require_model("guide=generated"), template)
    return TextGuide(snapshot, expectation, matcher)


def _generation_options(guide: Recipe) -> dict[str, str]:
    """Return what a generated guide matches by, and its prompt."""
    known = {"match": MATCHERS, "prompt": tuple(GENERATION_PROMPTS)}
    words = {"match": "tfidf", "prompt": "untuned"}
    for key, value in guide.options:
        if key not in known:
            raise unknown_name_error("option of 'generated'", key, known)
        words[key] = value.name if isinstance(value, Recipe) else str(value)
        if words[key] not in known[key]:
            raise unknown_name_error(f"{key} of 'generated'", words[key], known[key])
    return words
