"""Reranking of candidate answers by a language model (4StepFocus: Boer et al., 2024, Algorithm 1, line 4; STaRK: Wu
et al., NeurIPS 2024, ``VSS + LLM Reranker``)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from clew.core.component import component
from clew.core.errors import BadCompletion, BudgetExceeded
from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import LanguageModel, Retriever
from clew.core.steps import RerankStep
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import ENTITY, Hit, StoppedStep, Usage

if TYPE_CHECKING:
    from clew.core.prompts.templates import Template
    from clew.core.protocols import Completion, Prompt, Trail
    from clew.core.types import Question

#: Candidates that are reranked at the most: the paper's ``k_max`` (Section 4).
K_MAX = 20
#: Characters of a candidate that a model is shown; of each, where all are shown in one prompt.
MAX_CHARACTERS, MAX_CHARACTERS_IN_LIST = 6000, 1200
#: How much of a reply that cannot be read the trail shows.
_REPLY = 200


class HitReranker(Protocol):
    """Puts candidate answers in order."""

    def rerank(self, question: str, hits: Sequence[Hit], trail: Trail, firm: int | None = None) -> list[Hit]:
        """Return ``hits``, best first. The first ``firm`` of them (None: all) stay above the others: those that a
        graph supports, above those that only fill up. What that took goes to the trail."""
        ...


@dataclass(frozen=True, slots=True)
class PointwiseReranker:
    """Each candidate alone gets a score from 0 to 1, with all that is known about it; all calls are one batch.

    ``template`` is ``focus-rerank``, after STaRK's prompt. Equal scores keep the order of the vectors, in which the
    hits come. A reply without a score keeps its candidate's place, and is shown in the step; STaRK's code then gives
    the whole ranking up. At most ``k_max`` are asked about, the others follow. A score is the model's, and one more
    for the firm ones where there are others.

    Deviation: STaRK adds a tenth of the rank by vector to the model's score; here that decides among equals alone.
    """

    model: LanguageModel
    template: Template
    k: int = K_MAX

    def rerank(self, question: str, hits: Sequence[Hit], trail: Trail, firm: int | None = None) -> list[Hit]:
        """Return the hits, best first. Raises ModelError; a spent budget leaves the order as it was."""
        asked = list(hits[: self.k])
        if not asked:
            return []
        started = time.perf_counter()
        made = _completed(self.model, [self._prompt(question, hit) for hit in asked], trail)
        if made is None:
            return list(hits)
        scores = [parse_score(one.text) for one in made]
        groups = _groups(asked, firm)
        order = [place for group in groups for place in _by_score(group, scores)]
        ranked = _scored([asked[n] for n in order], [scores[n] for n in order], groups)
        unread = {
            hit.node.id: one.text[:_REPLY]
            for hit, one, score in zip(asked, made, scores, strict=True)
            if score is None
        }
        trail.add(
            RerankStep(
                self.template.name,
                len(asked),
                scores={hit.node.id: score for hit, score in zip(asked, scores, strict=True)},
                unreadable=unread or None,
                hits=tuple(ranked),
                usage=sum((one.usage for one in made), Usage()),
                seconds=time.perf_counter() - started,
            )
        )
        return ranked + _below(hits[self.k :], ranked)

    def _prompt(self, question: str, hit: Hit) -> Prompt:
        return self.template.render(
            question=question, type=candidate_type(hit), information=hit.node.text[:MAX_CHARACTERS].rstrip()
        )


@dataclass(frozen=True, slots=True)
class ListwiseReranker:
    """All candidates in one prompt, from which the model names the order (``focus-rerank-list``).

    What it does not name keeps its order behind what it names; numbers that are not there are shown in the step, and
    a reply that cannot be read leaves the order as it was. Scores are the inverse of the place.
    """

    model: LanguageModel
    template: Template
    k: int = K_MAX

    def rerank(self, question: str, hits: Sequence[Hit], trail: Trail, firm: int | None = None) -> list[Hit]:
        """Return the hits, best first. Raises ModelError; a spent budget leaves the order as it was."""
        asked = list(hits[: self.k])
        if len(asked) < 2:
            return list(hits)
        started = time.perf_counter()
        shown = "\n\n".join(
            f"[{number}]\n{hit.node.text[:MAX_CHARACTERS_IN_LIST].rstrip()}"
            for number, hit in enumerate(asked, 1)
        )
        made = _completed(self.model, [self.template.render(question=question, candidates=shown)], trail)
        if made is None:
            return list(hits)
        unreadable = None
        try:
            named = [number - 1 for number in self.template.parse(made[0].text)["ranking"]]
        except BadCompletion as error:
            unreadable = error.problem
            named = []
        unknown = tuple(number + 1 for number in named if not 0 <= number < len(asked))
        first = {number: place for place, number in reversed(list(enumerate(named)))}
        groups = _groups(asked, firm)
        order = [n for group in groups for n in sorted(group, key=lambda n: (first.get(n, len(named)), n))]
        ranked = [replace(asked[n], score=1 / place) for place, n in enumerate(order, 1)]
        trail.add(
            RerankStep(
                self.template.name,
                len(asked),
                unreadable=unreadable,
                unknown=unknown or None,
                hits=tuple(ranked),
                usage=sum((one.usage for one in made), Usage()),
                seconds=time.perf_counter() - started,
            )
        )
        return ranked + _below(hits[self.k :], ranked)


def create_hit_reranker(
    model: LanguageModel, form: Literal["pointwise", "listwise"], k_max: int
) -> HitReranker:
    """Return the reranker of a form for at most ``k_max`` hits."""
    if form == "listwise":
        return ListwiseReranker(model, load_prompt("focus-rerank-list"), k_max)
    return PointwiseReranker(model, load_prompt("focus-rerank"), k_max)


@component(
    "reranked(retriever=vss)",
    summary="the first k hits of a retriever, by the score that a model gives each, or in the order that it names",
    traits=["ranks-nodes"],
)
@dataclass(frozen=True, slots=True)
class RerankedSearch:
    """What a retriever finds, the first of it in the order that a reranker gives it (``VSS + LLM Reranker``)."""

    retriever: Retriever
    reranker: HitReranker
    k: int = K_MAX

    @classmethod
    def build(
        cls,
        model: LanguageModel,
        retriever: Retriever,
        form: Literal["pointwise", "listwise"] = "pointwise",
        k: int = 20,
    ) -> RerankedSearch:
        """Return the search with the first ``k`` hits reranked by a model."""
        return cls(retriever, create_hit_reranker(model, form, k), k)

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return the ``k`` best hits."""
        return self.explore(question, k, TrailRecorder())

    def explore(self, question: Question, k: int, trail: Trail) -> list[Hit]:
        """Return the same; the search and what the model said go to the trail."""
        hits = explore_retriever(self.retriever, question, max(k, self.k), trail)
        return self.reranker.rerank(question.text, hits, trail)[:k]


_NUMBER = r"(?<![\w.,-])(?:\d+(?:[.,]\d+)?|[.,]\d+)(?!\w|[.,]\d)"
_OF = re.compile(rf"({_NUMBER})\s*(?:(%)|(?:/|out of|of)\s*(\d+(?:\.\d+)?))?")
_SAID = re.compile(r"\b(?:score|rating|answer|output)\b[^\d.\n]*", re.IGNORECASE)
_SCALE = re.compile(r"(?:from\s+)?0(?:\.0+)?\s*(?:to|-|–|and)\s*1(?:\.0+)?(?![\w.])", re.IGNORECASE)


def parse_score(reply: str) -> float | None:
    """Return the score from 0 to 1 that a reply gives, None where it gives none.

    A share may be written as a percentage or a fraction (``80%``, ``8/10``, ``0.8 out of 1``). What follows "score",
    "rating" or "answer" counts first, then the only number that a score could be; several different ones say nothing.

    >>> score_in("0.85"), score_in("Score: 8/10, since 2 of its 3 authors fit"), score_in("7"), score_in("no idea")
    (0.85, 0.8, None, None)
    """
    text = _SCALE.sub(" ", clean_reply(reply))
    for said in _SAID.finditer(text):
        found = _OF.match(text, said.end())
        if found is not None and (score := _score(found)) is not None:
            return score
    several = {score for found in _OF.finditer(text) if (score := _score(found)) is not None}
    return several.pop() if len(several) == 1 else None


def _score(found: re.Match[str]) -> float | None:
    value = float(found[1].replace(",", "."))
    if found[2]:
        value /= 100
    elif found[3]:
        value = value / float(found[3]) if float(found[3]) else 2.0
    return round(value, 6) if 0 <= value <= 1 else None


def candidate_type(hit: Hit) -> str:
    """Return what a candidate is called in a prompt: its node's type, as its document says it."""
    if hit.node.kind == ENTITY:
        for line in hit.node.text.splitlines():
            if line.startswith("type: "):
                return line.removeprefix("type: ")
    return "candidate"


def _completed(model: LanguageModel, prompts: Sequence[Prompt], trail: Trail) -> list[Completion] | None:
    try:
        return model.complete(prompts)
    except BudgetExceeded as error:
        trail.add(StoppedStep(error.problem))
        return None


def _groups(hits: Sequence[Hit], firm: int | None) -> list[range]:
    """Return the places of the firm hits and those of the others."""
    cut = len(hits) if firm is None else min(max(firm, 0), len(hits))
    return [one for one in (range(cut), range(cut, len(hits))) if one]


def _by_score(group: range, scores: Sequence[float | None]) -> list[int]:
    """Return the places of a group, best first; one without a score keeps its own."""
    ranked = iter(sorted((n for n in group if scores[n] is not None), key=lambda n: (-(scores[n] or 0), n)))
    return [n if scores[n] is None else next(ranked) for n in group]


def _scored(hits: Sequence[Hit], scores: Sequence[float | None], groups: Sequence[range]) -> list[Hit]:
    """Return ranked hits with scores that fall: one that has none of its own has that of the one above it."""
    found: list[Hit] = []
    for number, group in enumerate(groups):
        above = next((score for n in group if (score := scores[n]) is not None), 0.0)
        for n in group:
            said = scores[n]
            above = above if said is None else said
            found.append(replace(hits[n], score=above + (len(groups) - 1 - number)))
    return found


def _below(hits: Sequence[Hit], ranked: Sequence[Hit]) -> list[Hit]:
    """Return the hits that were not asked about, with scores below all others, in their order."""
    least = min((hit.score for hit in ranked), default=0.0)
    return [replace(hit, score=least - place) for place, hit in enumerate(hits, 1)]
