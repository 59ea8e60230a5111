"""Rerank candidate answers with a language model (4StepFocus: Boer et al., 2024, Algorithm 1, line 4; STaRK: Wu et
al., NeurIPS 2024, ``VSS + LLM Reranker``)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from clew.core.component import component
from clew.core.errors import BadCompletion, BudgetExceeded
from clew.core.prompts.replies import clean_reply, undress_value
from clew.core.prompts.templates import Template, load_prompt
from clew.core.protocols import Completion, LanguageModel, Prompt, Retriever, Trail
from clew.core.trail import RerankStep, TrailRecorder, explore_retriever
from clew.core.types import ENTITY, Hit, Question, StoppedStep, Usage

#: At most this many candidates are reranked: the paper's ``k_max`` (Section 4).
K_MAX = 20
#: Characters of a candidate in a prompt of its own, and in a prompt with all candidates.
MAX_CHARACTERS, MAX_CHARACTERS_IN_LIST = 6000, 1200
#: Characters of an unreadable reply in the trail.
_MAX_REPLY = 200


@dataclass(frozen=True, slots=True)
class PointwiseReranker:
    """Asks the model for a score from 0 to 1 of each candidate on its own, all in one batch.

    ``template`` is ``focus-rerank``, after STaRK's prompt. Equal scores keep the order of the hits, which is that of
    their vectors. A candidate whose reply has no score keeps its place, and the step shows the reply (STaRK's code
    then discards the whole ranking). The model is asked about at most ``k`` hits; the others follow. A hit's score is
    the model's, plus 1 for a matching candidate where there are others.

    Deviation: STaRK adds a tenth of the rank by vector to the model's score; here that rank only breaks ties.
    """

    model: LanguageModel
    template: Template
    k: int = K_MAX

    def rerank(
        self, question: str, hits: Sequence[Hit], trail: Trail, matching: int | None = None
    ) -> list[Hit]:
        """Return the hits, best first. Raises ModelError; a spent budget leaves the order as it was."""
        candidates = list(hits[: self.k])
        if not candidates:
            return []
        started = time.perf_counter()
        completions = _complete(self.model, [self._prompt(question, hit) for hit in candidates], trail)
        if completions is None:
            return list(hits)
        scores = [parse_score(completion.text) for completion in completions]
        groups = _split_groups(len(candidates), matching)
        order = [place for group in groups for place in _sort_group(group, scores)]
        ranked = _score_hits([candidates[n] for n in order], [scores[n] for n in order], groups)
        unreadable = {
            hit.node.id: completion.text[:_MAX_REPLY]
            for hit, completion, score in zip(candidates, completions, scores, strict=True)
            if score is None
        }
        trail.add(
            RerankStep(
                self.template.name,
                len(candidates),
                scores={hit.node.id: score for hit, score in zip(candidates, scores, strict=True)},
                unreadable=unreadable or None,
                hits=tuple(ranked),
                usage=sum((completion.usage for completion in completions), Usage()),
                seconds=time.perf_counter() - started,
            )
        )
        return ranked + _score_rest(hits[self.k :], ranked)

    def _prompt(self, question: str, hit: Hit) -> Prompt:
        return self.template.render(
            question=question, type=candidate_type(hit), information=hit.node.text[:MAX_CHARACTERS].rstrip()
        )


@dataclass(frozen=True, slots=True)
class ListwiseReranker:
    """Shows the model all candidates in one prompt and asks for their order (``focus-rerank-list``).

    Candidates that the reply does not name keep their order below those that it names. Numbers without a candidate
    are shown in the step, and an unreadable reply leaves the order as it was. A hit's score is 1 / rank.
    """

    model: LanguageModel
    template: Template
    k: int = K_MAX

    def rerank(
        self, question: str, hits: Sequence[Hit], trail: Trail, matching: int | None = None
    ) -> list[Hit]:
        """Return the hits, best first. Raises ModelError; a spent budget leaves the order as it was."""
        candidates = list(hits[: self.k])
        if len(candidates) < 2:
            return list(hits)
        started = time.perf_counter()
        listing = [
            f"[{number}]\n{hit.node.text[:MAX_CHARACTERS_IN_LIST].rstrip()}"
            for number, hit in enumerate(candidates, 1)
        ]
        prompt = self.template.render(question=question, candidates="\n\n".join(listing))
        # Where the model's context is too small the last candidates stay below the others.
        prompt = replace(prompt, optional=tuple(f"\n\n{each}" for each in reversed(listing[1:])))
        completions = _complete(self.model, [prompt], trail)
        if completions is None:
            return list(hits)
        unreadable = None
        try:
            named = [number - 1 for number in parse_ranking(completions[0].text, self.template)]
        except BadCompletion as error:
            unreadable = error.problem
            named = []
        unknown = tuple(place + 1 for place in named if not 0 <= place < len(candidates))
        ranks = {place: rank for rank, place in reversed(list(enumerate(named)))}
        order = [
            place
            for group in _split_groups(len(candidates), matching)
            for place in sorted(group, key=lambda place: (ranks.get(place, len(named)), place))
        ]
        ranked = [replace(candidates[place], score=1 / rank) for rank, place in enumerate(order, 1)]
        trail.add(
            RerankStep(
                self.template.name,
                len(candidates),
                unreadable=unreadable,
                unknown=unknown or None,
                hits=tuple(ranked),
                usage=sum((completion.usage for completion in completions), Usage()),
                seconds=time.perf_counter() - started,
            )
        )
        return ranked + _score_rest(hits[self.k :], ranked)


_RANKED_LINE = re.compile(
    r"^\W*\d{1,2}[.)]\s*\W*(?:candidate|number|no\.?|item)?\s*[\[(#]?(?P<number>\d{1,3})\b", re.IGNORECASE
)
#: What divides two numbers can be read in one way alone.
_BARE_RANKING = re.compile(
    r"(?:\A|:|\n)[\s\[(*]*(\d{1,3}(?:(?=[\])]*[\s,>;])[\])\s]*+[,>;]?[\[(\s]*+\d{1,3})+)[\])\s.*]*(?:\n|\Z)"
)
_TEXT_RANKING = re.compile(r"\[((?:[\s,]*[\"'][^\w\"']*\d{1,3}[^\w\"']*[\"'])+)[\s,]*\]")


def parse_ranking(reply: str, template: Template) -> list[int]:
    """Return the numbers of candidates in a model's order, best first.

    Beside the JSON object that is asked for: numbers in brackets or as text in it, a bare list, ``[3] > [1] > [2]``,
    numbers divided by commas, and numbered lines that name candidates. Raises BadCompletion.
    """
    try:
        return [int(number) for number in template.parse(reply)["ranking"]]
    except BadCompletion as error:
        text = clean_reply(reply)
        bare = _TEXT_RANKING.search(text) or _BARE_RANKING.search(text)
        if bare:
            return [int(number) for number in re.findall(r"\d+", bare[1])]
        lines = [match for line in text.splitlines() if (match := _RANKED_LINE.match(line))]
        if len(lines) < 2:
            raise error
        return [int(line["number"]) for line in lines]


#: Puts the candidates of a question in order, and adds a step to the trail. The first ``matching`` hits (None: all)
#: meet the question's constraints in a graph; they stay above the others, which only pad the list.
HitReranker: TypeAlias = PointwiseReranker | ListwiseReranker


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
    """Retrieves with any retriever and reranks the first ``k`` hits (``VSS + LLM Reranker``)."""

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
        """Return the same; the steps of the search and of the reranker go to ``trail``."""
        hits = explore_retriever(self.retriever, question, max(k, self.k), trail)
        return self.reranker.rerank(question.text, hits, trail)[:k]


_NUMBER = r"(?<![\w.,-])(?:\d+(?:[.,]\d+)?|[.,]\d+)(?!\w|[.,]\d)"
_SHARE = re.compile(rf"({_NUMBER})\s*(?:(%)|(?:/|out of|of)\s*(\d+(?:\.\d+)?))?")
_LABEL = re.compile(r"\b(?:score|rating|answer|output)\b[^\d.\n]*", re.IGNORECASE)
_SCALE = re.compile(r"(?:from\s+)?0(?:\.0+)?\s*(?:to|-|–|and)\s*1(?:\.0+)?(?![\w.])", re.IGNORECASE)


def parse_score(reply: str) -> float | None:
    """Return the score from 0 to 1 in a model's reply, None where there is none.

    A score may be written as a percentage or a fraction (``80%``, ``8/10``, ``0.8 out of 1``). A number after
    "score", "rating" or "answer" counts first, else the only number that may be a score; several different ones are
    no score.

    >>> parse_score("0.85"), parse_score("Score: 8/10, since 2 of its 3 authors fit"), parse_score("7")
    (0.85, 0.8, None)
    """
    text = _SCALE.sub(" ", undress_value(reply))
    first = _SHARE.fullmatch(text.partition("\n")[0].strip())
    if first is not None and (score := _read_share(first)) is not None:
        return score
    for label in _LABEL.finditer(text):
        share = _SHARE.match(text, label.end())
        if share is not None and (score := _read_share(share)) is not None:
            return score
    scores = {score for share in _SHARE.finditer(text) if (score := _read_share(share)) is not None}
    return scores.pop() if len(scores) == 1 else None


def _read_share(match: re.Match[str]) -> float | None:
    value = float(match[1].replace(",", "."))
    if match[2]:
        value /= 100
    elif match[3]:
        value = value / float(match[3]) if float(match[3]) else 2.0
    return round(value, 6) if 0 <= value <= 1 else None


def candidate_type(hit: Hit) -> str:
    """Return the word for a candidate in a prompt: its node's type as its document gives it, else "candidate"."""
    if hit.node.kind == ENTITY:
        for line in hit.node.text.splitlines():
            if line.startswith("type: "):
                return line.removeprefix("type: ")
    return "candidate"


def _complete(model: LanguageModel, prompts: Sequence[Prompt], trail: Trail) -> list[Completion] | None:
    """Return the completions, None where the budget does not allow them."""
    try:
        return model.complete(prompts)
    except BudgetExceeded as error:
        trail.add(StoppedStep(error.problem))
        return None


def _split_groups(count: int, matching: int | None) -> list[range]:
    """Return the places of the matching hits and those of the others; no empty group."""
    cut = count if matching is None else min(max(matching, 0), count)
    return [group for group in (range(cut), range(cut, count)) if group]


def _sort_group(group: range, scores: Sequence[float | None]) -> list[int]:
    """Return the places of a group, best first; a hit without a score keeps its own place."""
    ranked = iter(sorted((n for n in group if scores[n] is not None), key=lambda n: (-(scores[n] or 0), n)))
    return [n if scores[n] is None else next(ranked) for n in group]


def _score_hits(hits: Sequence[Hit], scores: Sequence[float | None], groups: Sequence[range]) -> list[Hit]:
    """Return ranked hits with scores that never rise: a hit without a score gets the score of the hit above."""
    ranked: list[Hit] = []
    for number, group in enumerate(groups):
        above = next((score for n in group if (score := scores[n]) is not None), 0.0)
        for n in group:
            own = scores[n]
            above = above if own is None else own
            ranked.append(replace(hits[n], score=above + (len(groups) - 1 - number)))
    return ranked


def _score_rest(hits: Sequence[Hit], ranked: Sequence[Hit]) -> list[Hit]:
    """Return the hits that the model was not asked about, in their order, with scores below all others."""
    lowest = min((hit.score for hit in ranked), default=0.0)
    return [replace(hit, score=lowest - place) for place, hit in enumerate(hits, 1)]
