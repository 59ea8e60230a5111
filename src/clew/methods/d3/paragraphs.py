"""Choosing paragraphs among some (D3: Nair et al., EMNLP 2023, Sections 3.3.2 and 4).

Every strategy is a :class:`ParagraphSelector`; :class:`SelectorChain` puts one after another (``base+monot5``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clew.core.component import Resources
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import LanguageModel, PromptTemplate, Reranker, Snapshot, Trail
from clew.core.steps import ParagraphsStep
from clew.core.trail import TrailRecorder
from clew.core.types import RETRIEVED_KINDS, Hit, Node, Question, Scope, StoppedStep, Usage
from clew.methods.d3.context_window import ContextWindow, one_line, pack, truncate_all
from clew.methods.d3.replies import parse_numbers, parse_verdict

if TYPE_CHECKING:
    from clew.core.protocols import Completion, Prompt

#: Paragraphs with their scores, best first.
ScoredNodes = list[tuple[Node, float]]
#: How much of a reply that cannot be read the trail shows.
_SHOWN = 200


def create_window(resources: Resources, context: int, max_packed: int | None = None) -> ContextWindow:
    """Return the context of the configured model: ``context`` tokens, ``max_packed`` of them for texts."""
    tools = resources.tools
    return ContextWindow(tools.count_tokens, tools.count_prompt_tokens, context, max_packed)


class ParagraphSelector(Protocol):
    """Chooses the paragraphs that are relevant to a question."""

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return those of ``paragraphs`` that are relevant, best first; what that took goes to the trail."""
        ...


@dataclass(frozen=True, slots=True)
class PromptSelector:
    """BASE of Section 3.3.2: numbered paragraphs are shown to a model, which names the relevant ones.

    As many paragraphs as fit the context go into a call, whole; all calls are one batch. One that does not
    fit alone is cut at its end, and the step says so. The instruction of ``template`` (``drill-paragraphs``)
    is the paper's; what stands around it the paper does not give. Paragraphs are numbered from 1 through all
    calls, so that a number out of place is noticed. The model ranks nothing: chosen paragraphs come in the
    order in which it names them, with a score of 1.
    """

    model: LanguageModel
    template: PromptTemplate
    window: ContextWindow

    @classmethod
    def build(
        cls, resources: Resources, context: int, component: str, max_packed: int | None = None
    ) -> PromptSelector:
        """Return the strategy with the configured model. Raises UsageError, naming the component, without one."""
        window = create_window(resources, context, max_packed)
        return cls(resources.require_model(component), load_prompt("drill-paragraphs"), window)

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return the paragraphs that the model names. Raises ModelError, UsageError."""
        return self.select_by_texts(question, paragraphs, [node.text for node in paragraphs], trail)

    def select_by_texts(
        self,
        question: str,
        paragraphs: Sequence[Node],
        texts: Sequence[str],
        trail: Trail,
        shown_as: str | None = None,
    ) -> ScoredNodes:
        """Return the paragraphs that the model names when each is shown as its text in ``texts``. ``shown_as`` tells
        the trail what the texts are."""
        if not paragraphs:
            return []
        started = time.perf_counter()
        shown, shortened = self._shown(question, texts)
        sizes = [self.window.tokens(line + "\n") for line in shown]
        calls = pack(sizes, self._room(question))
        made = self.model.complete([self._prompt(question, [shown[n] for n in one]) for one in calls])
        replies = [
            parse_numbers(one.text, range(call.start + 1, call.stop + 1))
            for call, one in zip(calls, made, strict=True)
        ]
        selected = [(paragraphs[n - 1], 1.0) for reply in replies for n in reply.chosen]
        unread = [one.text[:_SHOWN] for one, reply in zip(made, replies, strict=True) if not reply.readable]
        step = ParagraphsStep(
            prompt=self.template.name,
            offered=len(paragraphs),
            calls=len(calls),
            cut=tuple(paragraphs[n].id for n in shortened) or None,
            unknown=tuple(n for reply in replies for n in reply.unknown) or None,
            unreadable=tuple(unread) or None,
            shown=shown_as,
        )
        trail.add(_with_selected(step, selected, made, started))
        return selected

    def _shown(self, question: str, texts: Sequence[str]) -> tuple[list[str], list[int]]:
        """Return each paragraph as its line in the prompt, and the indexes of those that had to be cut."""
        lines = [f"{number}: {one_line(text)}" for number, text in enumerate(texts, 1)]
        # The line break after it takes a token of its own at the most.
        return truncate_all(lines, self._room(question) - 1, self.window.tokens)

    def _room(self, question: str) -> int:
        room = self.window.room(self._prompt(question, []))
        if room < 2:
            raise UsageError(
                f"a context of {self.window.context} tokens leaves no room for paragraphs",
                "Set a larger one: context=4096",
            )
        return room

    def _prompt(self, question: str, lines: Sequence[str]) -> Prompt:
        return self.template.render(question=question, paragraphs="\n".join(lines))


@dataclass(frozen=True, slots=True)
class HierarchicalSelector:
    """HIERBASE of Section 3.3.2: BASE over the summaries of paragraphs, then over the chosen ones themselves.

    ``summaries`` returns one summary per node; what making them cost is its own to tell.
    """

    base: PromptSelector
    summaries: Callable[[Sequence[Node]], Sequence[str]]

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return the paragraphs that the model names, having seen first their summaries, then their texts."""
        texts = self.summaries(paragraphs) if paragraphs else []
        likely = [
            node
            for node, _ in self.base.select_by_texts(question, paragraphs, texts, trail, shown_as="summaries")
        ]
        return self.base.select(question, likely, trail)


@dataclass(frozen=True, slots=True)
class YesNoSelector:
    """PARAGRAPH of Section 4: each paragraph alone, by a boolean prompt; all calls are one batch.

    ``template`` is ``drill-boolean``, our words: the paper does not give its prompt. A reply that is neither
    yes nor no chooses nothing, and is shown in the step.
    """

    model: LanguageModel
    template: PromptTemplate
    window: ContextWindow

    @classmethod
    def build(cls, resources: Resources, context: int, component: str) -> YesNoSelector:
        """Return the strategy with the configured model. Raises UsageError, naming the component, without one."""
        window = create_window(resources, context)
        return cls(resources.require_model(component), load_prompt("drill-boolean"), window)

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return the paragraphs that the model calls relevant, in their order. Raises ModelError."""
        if not paragraphs:
            return []
        started = time.perf_counter()
        room = self.window.room(self.template.render(question=question, paragraph=""))
        texts, shortened = truncate_all(
            [one_line(node.text) for node in paragraphs], room, self.window.tokens
        )
        made = self.model.complete(
            [self.template.render(question=question, paragraph=text) for text in texts]
        )
        verdicts = [parse_verdict(one.text) for one in made]
        selected = [(node, 1.0) for node, said in zip(paragraphs, verdicts, strict=True) if said]
        unread = [one.text[:_SHOWN] for one, answer in zip(made, verdicts, strict=True) if answer is None]
        step = ParagraphsStep(
            prompt=self.template.name,
            offered=len(paragraphs),
            calls=len(made),
            cut=tuple(paragraphs[n].id for n in shortened) or None,
            unreadable=tuple(unread) or None,
        )
        trail.add(_with_selected(step, selected, made, started))
        return selected


@dataclass(frozen=True, slots=True)
class RerankerSelector:
    """The ``keep`` paragraphs that a reranker scores best (MONOT5 of Section 3.3.2); None keeps all, ranked.

    The paper does not say how many it keeps.
    """

    reranker: Reranker
    keep: int | None = None

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return the best paragraphs with the reranker's scores, ties by node id."""
        if not paragraphs:
            return []
        started = time.perf_counter()
        scores = self.reranker.score(question, [node.text for node in paragraphs]).tolist()
        ranked = sorted(zip(paragraphs, scores, strict=True), key=lambda one: (-one[1], one[0].id))
        selected = [(node, float(score)) for node, score in ranked[: self.keep]]
        step = ParagraphsStep(reranker=self.reranker.name, offered=len(paragraphs))
        trail.add(_with_selected(step, selected, [], started))
        return selected


@dataclass(frozen=True, slots=True)
class SelectorChain:
    """One strategy after another: the second chooses among what the first chose.

    Where the budget does not allow the second, what the first chose is the choice, and the trail says so.
    """

    first: ParagraphSelector
    second: ParagraphSelector

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return what both choose; the second is not asked where the first chose nothing."""
        likely = self.first.select(question, paragraphs, trail)
        if not likely:
            return []
        try:
            return self.second.select(question, [node for node, _ in likely], trail)
        except BudgetExceeded as error:
            trail.add(StoppedStep(error.problem))
            return likely


def _with_selected(
    step: ParagraphsStep, selected: ScoredNodes, completions: Sequence[Completion], started: float
) -> ParagraphsStep:
    """Return a step with what was chosen, and what that cost."""
    return replace(
        step,
        chosen=len(selected),
        hits=tuple(Hit(node, score, (node.id,)) for node, score in selected),
        usage=sum((completion.usage for completion in completions), Usage()),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, slots=True)
class ExhaustiveRetriever:
    """Gives all passages and table rows in the scope of a question to a selector.

    In the paper the scope is one document. Deviation: it may be any, and what it costs grows with it.
    """

    snapshot: Snapshot
    selector: ParagraphSelector

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return at most ``k`` of the passages that the selector chooses, best first. Raises ModelError."""
        return self.explore(question, k, TrailRecorder())

    def explore(self, question: Question, k: int, trail: Trail) -> list[Hit]:
        """Return the same; the selector's steps go to the trail. A budget that is spent ends the search, with nothing
        chosen where it ended it before the first choice."""
        try:
            chosen = self.selector.select(question.text, scope_passages(self.snapshot, question.scope), trail)
        except BudgetExceeded as error:
            trail.add(StoppedStep(error.problem))
            return []
        return [Hit(node, score, (node.id,)) for node, score in chosen[:k]]


def scope_passages(snapshot: Snapshot, scope: Scope) -> list[Node]:
    """Return the passages and table rows in a scope: documents by name and key, each in reading order."""
    nodes = snapshot.nodes(np.flatnonzero(snapshot.mask(scope, RETRIEVED_KINDS)))
    return sorted(nodes, key=lambda node: (node.document_name, node.document, node.position))


# MERGED: The baselines of D3 (Nair et al., EMNLP 2023, Section 4): every paragraph of a document is looked at.
