"""Guides of the KGP traverser: what ranks the neighbours of a path.

Those of the paper follow Eq. (1), ``argmax over neighbours v of phi(g(X_v), f(X_0 || ... || X_j))``, and are
two collaborators in a :class:`TextGuide`. An *expectation* is ``f``: it turns the question and a path of
passages into the text of the evidence still missing. A *matcher* is ``phi`` and ``g``: it scores passages
against that text. :class:`ResidualGuide` is ours.

| guide       | expectation        | matcher           | in the paper (Section 4, Supplementary 8.2)     |
|-------------|--------------------|-------------------|-------------------------------------------------|
| `none`      | (not asked)        | `EqualMatcher`        | breadth-first search alone                      |
| `question`  | the question       | TF-IDF            | "KGP w/o LM"                                    |
| `tfidf`     | question and path  | TF-IDF            |                                                 |
| `encoder`   | question and path  | inner product     | KGP-MDR                                         |
| `generated` | a model writes it  | TF-IDF or encoder | KGP-T5, KGP-LLaMA                               |
| `residual`  | what the path leaves open of the question, by words and meaning | (KGP-MDR, in part) |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clew.core.arrays import cosines
from clew.core.component import Resources
from clew.core.errors import unknown_name_error
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Encoder, LanguageModel, PromptTemplate, Retriever, Snapshot
from clew.core.recipe import Recipe
from clew.core.text import build_hop_query
from clew.core.types import Usage
from clew.retrieve.contextual import ContextualSearch
from clew.retrieve.coverage import Lookahead
from clew.retrieve.dense import texts_with_headings
from clew.retrieve.lexical import TfIdf

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Mask, Rows, Vectors
    from clew.core.types import Question

if TYPE_CHECKING:
    Scored = tuple[Rows, Floats]

#: Prompts of a generated guide: for a model that was not tuned for it, and the two forms in which a model is
#: tuned (Supplementary 8.1: Listing 1 for LLaMA, the instruction as a prefix for T5).
GENERATION_PROMPTS = {"untuned": "kgp-generate", "listing1": "kgp-listing1", "prefix": "kgp-prefix"}

#: The objective of encoders that are asked with the passages so far.
MDR = "mdr"
#: A path as the traverser knows it: the texts of its passages, seed first.
Texts = Sequence[str]


@dataclass(frozen=True, slots=True)
class NeighbourScores:
    """What a guide says: for each path the rows considered with their scores, and what it cost.

    ``expected`` holds a text per path where a model wrote what to look for, and is empty otherwise.
    """

    scores: list[Scored]
    expected: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)


class Guide(Protocol):
    """Ranks what may come next on each of several paths."""

    def score_neighbours(
        self, question: Question, paths: Sequence[Sequence[int]], near: Sequence[Rows], beyond: OpenCandidates
    ) -> NeighbourScores:
        """Score for each path (rows, seed first) its neighbours ``near`` and what ``beyond`` adds; 1 is a
        perfect match."""
        ...


class Expectation(Protocol):
    """``f`` of Eq. (1): what evidence is still missing."""

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return one text per path, and what it cost. Batched over the open paths."""
        ...


class Matcher(Protocol):
    """``phi`` and ``g`` of Eq. (1): how well passages match a text; 1 is a perfect match."""

    def match(self, texts: Sequence[str], candidates: Sequence[Rows], beyond: OpenCandidates) -> list[Scored]:
        """Return for each text its candidates, and what ``beyond`` adds to them, with their scores."""
        ...


@dataclass(frozen=True, slots=True)
class OpenCandidates:
    """How many passages to consider that no edge proposes: the ``k`` best matches of all ``allowed`` ones."""

    k: int
    allowed: Mask


@dataclass(frozen=True, slots=True)
class QuestionOnly:
    """The question itself, whatever was found so far: the paper's traversal without a language model."""

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return the question for every path."""
        return [question] * len(paths), Usage()


@dataclass(frozen=True, slots=True)
class QuestionAndPath:
    """The question and the passages so far, joined: the input of a multi-hop encoder (MDR)."""

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return the question followed by each path's passages."""
        return [build_hop_query(question, path) for path in paths], Usage()


@dataclass(frozen=True, slots=True)
class GeneratedEvidence:
    """A language model writes the next evidence (Section 4; the instruction of Listing 1).

    ``prompt`` renders the question and the path; what the model writes may be wrong in its facts: it is only
    matched against passages, never shown as evidence.
    """

    model: LanguageModel
    template: PromptTemplate

    def expect(self, question: str, paths: Sequence[Texts]) -> tuple[list[str], Usage]:
        """Return the evidence that the model expects after each path, in one batched call."""
        # One space between passages, as in Listing 1: a tuned model is asked what it was trained on.
        prompts = [self.template.render(question=question, evidence=" ".join(path)) for path in paths]
        completions = self.model.complete(prompts)
        # A model that says nothing leaves the question and the path as the best guess of what is missing.
        fallback, _ = QuestionAndPath().expect(question, paths)
        texts = [made.text.strip() or text for made, text in zip(completions, fallback, strict=True)]
        return texts, sum((made.usage for made in completions), Usage())


class LexicalScorer(Protocol):
    """A lexical scorer over postings, such as :class:`clew.retrieve.lexical.TfIdf`."""

    def scores(self, query: str, rows: Rows) -> Floats:
        """Return the score of each row."""
        ...

    def nearest(self, query: str, k: int, allowed: Mask) -> Rows:
        """Return the best rows, best first."""
        ...


@dataclass(frozen=True, slots=True)
class LexicalMatcher:
    """Matches by words: TF-IDF cosine, as the paper's own matching of generated evidence."""

    scorer: LexicalScorer

    def match(self, texts: Sequence[str], candidates: Sequence[Rows], beyond: OpenCandidates) -> list[Scored]:
        """Return the TF-IDF cosine of each candidate with its text."""
        found = []
        for text, rows in zip(texts, candidates, strict=True):
            if beyond.k:
                rows = np.union1d(rows, self.scorer.nearest(text, beyond.k, beyond.allowed))
            found.append((rows, self.scorer.scores(text, rows)))
        return found


@dataclass(frozen=True, slots=True)
class EncoderMatcher:
    """Matches by inner product of unit vectors."""

    snapshot: Snapshot
    encoder: Encoder

    def match(self, texts: Sequence[str], candidates: Sequence[Rows], beyond: OpenCandidates) -> list[Scored]:
        """Return the cosine of each candidate's stored vector with its text's."""
        view = self.snapshot.vectors(self.encoder.name)
        queries = self.encoder.encode(texts, query=True)
        if beyond.k:
            nearest, _ = view.search(queries, beyond.k, beyond.allowed)
            candidates = [
                np.union1d(rows, more[more >= 0]) for rows, more in zip(candidates, nearest, strict=True)
            ]
        return [
            (rows, cosines(view.vectors(rows), query))
            for query, rows in zip(queries, candidates, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class EqualMatcher:
    """No guide: every neighbour is as good as another, so the traverser takes them in order of node id."""

    def match(self, texts: Sequence[str], candidates: Sequence[Rows], beyond: OpenCandidates) -> list[Scored]:
        """Return equal scores; without a guide only the graph proposes."""
        return [(rows, np.ones(len(rows))) for rows in candidates]


@dataclass(frozen=True, slots=True)
class TextGuide:
    """Eq. (1): passages are matched with the text of the evidence that is expected next."""

    snapshot: Snapshot
    expectation: Expectation
    matcher: Matcher

    def score_neighbours(
        self, question: Question, paths: Sequence[Sequence[int]], near: Sequence[Rows], beyond: OpenCandidates
    ) -> NeighbourScores:
        """Score the candidates of each path against the text that is expected after it."""
        generated = isinstance(self.expectation, GeneratedEvidence)
        # An encoder knows passages by what is encoded of them, a language model reads what they say.
        encoded = isinstance(self.matcher, EncoderMatcher) and not generated
        texts = [
            texts_with_headings(self.snapshot, np.array(path))
            if encoded
            else [node.text for node in self.snapshot.nodes(np.array(path))]
            for path in paths
        ]
        wanted, usage = self.expectation.expect(question.text, texts)
        return NeighbourScores(self.matcher.match(wanted, near, beyond), wanted if generated else [], usage)


@dataclass(frozen=True, slots=True)
class ResidualGuide:
    """Scores passages by what the path leaves open of the question; needs no language model.

    The scorer is that of the search (:class:`clew.retrieve.contextual.ContextualSearch`), with what the
    passages of the
    path already say taken out: a word that one of them matches to the degree ``m`` counts ``1 - covered * m``
    of its weight, and a document's worth fades by ``fading`` with each of its passages on the path. It is the
    lexical counterpart of asking a model for the evidence that is still missing (Section 4 of the paper).

    Meaning is compared with the question and the path together, where the search has a multi-hop encoder
    (KGP-MDR), a cosine of 1 adding ``ahead``, for the first ``encoded`` paths: those from the likeliest seeds,
    on which nearly all of what is found depends. Of a passage its first ``words`` are asked with: about what such
    an encoder read in its training, and all of what a question waits for. Any other encoder, and the other paths,
    take the question's vector without its part along those of the path.
    """

    search: ContextualSearch
    covered: float = 0.5
    fading: float = 0.7
    meaning: float = 1.2
    encoded_paths: int = 2
    words: int = 64
    nearest: int = 30

    def score_neighbours(
        self, question: Question, paths: Sequence[Sequence[int]], near: Sequence[Rows], beyond: OpenCandidates
    ) -> NeighbourScores:
        """Score the candidates of each path: all neighbours, and the best hits of the whole question."""
        asked = self.search.weigh_question(question)
        found = (
            self.search.best_rows(asked, beyond.k, beyond.allowed)[0] if beyond.k else np.zeros(0, np.int64)
        )
        wanted = self._wanted(question, paths)
        hits = self._nearest(wanted, beyond)
        pools = [np.union1d(np.union1d(found, rows), more) for rows, more in zip(near, hits, strict=True)]
        everything = np.unique(np.concatenate([*pools, *(np.array(path, np.int64) for path in paths)]))
        candidates = self.search.coverage_selector(asked, everything)
        scored = []
        for path, pool, vector in zip(paths, pools, wanted, strict=True):
            places = np.searchsorted(everything, path).tolist()
            ahead = None if vector is None else Lookahead(vector, self.meaning)
            adds = candidates.gains_after(places, self.covered, self.fading, ahead)
            scored.append((pool, adds[np.searchsorted(everything, pool)]))
        return NeighbourScores(scored)

    def _wanted(self, question: Question, paths: Sequence[Sequence[int]]) -> list[Vectors | None]:
        """Return the vector of what each path leads to, or None where it is not encoded."""
        encoder = self.search.encoder
        if encoder is None or encoder.objective != MDR:
            return [None] * len(paths)
        read = [
            texts_with_headings(self.search.snapshot, np.array(path)) for path in paths[: self.encoded_paths]
        ]
        chosen = [
            build_hop_query(question.text, [" ".join(text.split()[: self.words]) for text in texts])
            for texts in read
        ]
        vectors = encoder.encode(chosen, query=True)
        return [*vectors, *[None] * (len(paths) - len(chosen))]

    def _nearest(self, wanted: Sequence[Vectors | None], beyond: OpenCandidates) -> list[Rows]:
        encoder = self.search.encoder
        vectors = [one for one in wanted if one is not None]
        nothing = np.zeros(0, np.int64)
        if encoder is None or not vectors or not beyond.k:
            return [nothing] * len(wanted)
        view = self.search.snapshot.vectors(encoder.name, encoder.dimension)
        found = iter(view.search(np.array(vectors), self.nearest, beyond.allowed)[0])
        return [nothing if one is None else (rows := next(found))[rows >= 0] for one in wanted]


#: The names of guides, and what a generated guide may match by.
GUIDES = ("none", "question", "tfidf", "encoder", "generated", "residual")
MATCHERS = ("tfidf", "encoder")


def create_guide(recipe: Recipe, resources: Resources, seeding: Retriever) -> Guide:
    """Return the guide that a recipe names. Raises UsageError for another name, and where its model is missing."""
    name, snapshot = recipe.name, resources.snapshot
    if name not in GUIDES:
        raise unknown_name_error("guide of 'kgp'", name, GUIDES)
    if name == "residual":
        # The seeding itself where it can be: it has weighed the question already.
        if isinstance(seeding, ContextualSearch):
            return ResidualGuide(seeding)
        return ResidualGuide(ContextualSearch(snapshot, resources.encoder))
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
