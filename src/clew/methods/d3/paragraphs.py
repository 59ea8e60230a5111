"""Strategies for choosing relevant paragraphs (D3: Nair et al., EMNLP 2023, Sections 3.3.2 and 4).

Every strategy is a :class:`ParagraphSelector`; :class:`SelectorChain` runs one after another (``base+monot5``).
:func:`create_selector` makes the one that a recipe names.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from clew.core.component import Resources
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Completion, LanguageModel, Prompt, PromptTemplate, Reranker, Trail, context_of
from clew.core.trail import ParagraphsStep
from clew.core.types import Hit, Node, StoppedStep, Usage
from clew.methods.d3.context_window import ContextWindow, one_line, pack, truncate_all
from clew.methods.d3.replies import parse_numbers, parse_verdict
from clew.methods.d3.summarisers import ExtractiveSummariser, SectionText

#: Paragraphs with their scores, best first.
ScoredNodes = list[tuple[Node, float]]
#: The trail shows this many characters of a reply that cannot be read.
_SHOWN = 200

#: The strategies (Section 3.3.2). ``encoder`` ranks paragraphs as the search does, without a model.
ParagraphStrategy = Literal[
    "auto", "base", "hierbase", "monot5", "base+monot5", "monot5+base", "cross-encoder", "encoder"
]
#: A reranker keeps this many paragraphs; the summary of a paragraph has this many words.
RERANKED_PARAGRAPHS, PARAGRAPH_WORDS = 10, 32


def create_window(resources: Resources, context: int, max_packed: int | None = None) -> ContextWindow:
    """Return the context of the configured model: ``context`` tokens, or fewer if its server has fewer,
    ``max_packed`` of them for texts."""
    tools = resources.tools
    if (known := context_of(resources.model)) is not None:
        # The rule counts a tenth too few at times.
        context = min(context, int(0.9 * known))
    return ContextWindow(tools.count_tokens, tools.count_prompt_tokens, context, max_packed)


class ParagraphSelector(Protocol):
    """Chooses the paragraphs that are relevant to a question."""

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return the relevant ones of ``paragraphs``, best first, and add a step to the trail."""


@dataclass(frozen=True, slots=True)
class PromptSelector:
    """BASE of Section 3.3.2: a model is shown numbered paragraphs and names the relevant ones.

    As many whole paragraphs as fit the context go into a call; all calls are one batch. A paragraph that does not fit
    alone is cut at its end, and the step says so. The instruction of ``template`` (``drill-paragraphs``) is the
    paper's; the text around it is not given in the paper. Paragraphs are numbered from 1 through all calls, so that a
    number of another call is noticed. The model does not rank: chosen paragraphs have a score of 1, in the order of
    the reply.
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
        # Each paragraph as its line in the prompt, and the indexes of those that were cut.
        lines = [f"{number}: {one_line(text)}" for number, text in enumerate(texts, 1)]
        # The line break after a line takes at most one token.
        shown, shortened = truncate_all(lines, self._room(question) - 1, self.window.tokens)
        sizes = [self.window.tokens(line + "\n") for line in shown]
        calls = pack(sizes, self._room(question))
        completions = self.model.complete(
            [self._prompt(question, [shown[n] for n in call]) for call in calls]
        )
        replies = [
            parse_numbers(completion.text, range(call.start + 1, call.stop + 1))
            for call, completion in zip(calls, completions, strict=True)
        ]
        selected = [(paragraphs[n - 1], 1.0) for reply in replies for n in reply.chosen]
        unreadable = [
            completion.text[:_SHOWN]
            for completion, reply in zip(completions, replies, strict=True)
            if not reply.readable
        ]
        step = ParagraphsStep(
            prompt=self.template.name,
            offered=len(paragraphs),
            calls=len(calls),
            cut=tuple(paragraphs[n].id for n in shortened) or None,
            unknown=tuple(n for reply in replies for n in reply.unknown) or None,
            unreadable=tuple(unreadable) or None,
            shown=shown_as,
        )
        trail.add(_with_selected(step, selected, completions, started))
        return selected

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
    """HIERBASE of Section 3.3.2: BASE over the summaries of paragraphs, then over the texts of the chosen ones.

    ``summaries`` returns one summary per node.
    """

    base: PromptSelector
    summaries: Callable[[Sequence[Node]], Sequence[str]]

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return the paragraphs that the model names, first by their summaries, then by their texts."""
        texts = self.summaries(paragraphs) if paragraphs else []
        selected = self.base.select_by_texts(question, paragraphs, texts, trail, shown_as="summaries")
        return self.base.select(question, [node for node, _ in selected], trail)


@dataclass(frozen=True, slots=True)
class YesNoSelector:
    """PARAGRAPH of Section 4: a model is asked of each paragraph alone whether it is relevant; all calls are one
    batch.

    ``template`` is ``drill-boolean``; its words are ours, since the paper does not give its prompt. A reply that is
    neither yes nor no chooses nothing, and the step shows it.
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
        completions = self.model.complete(
            [self.template.render(question=question, paragraph=text) for text in texts]
        )
        verdicts = [parse_verdict(completion.text) for completion in completions]
        selected = [(node, 1.0) for node, relevant in zip(paragraphs, verdicts, strict=True) if relevant]
        unreadable = [
            completion.text[:_SHOWN]
            for completion, relevant in zip(completions, verdicts, strict=True)
            if relevant is None
        ]
        step = ParagraphsStep(
            prompt=self.template.name,
            offered=len(paragraphs),
            calls=len(completions),
            cut=tuple(paragraphs[n].id for n in shortened) or None,
            unreadable=tuple(unreadable) or None,
        )
        trail.add(_with_selected(step, selected, completions, started))
        return selected


@dataclass(frozen=True, slots=True)
class RerankerSelector:
    """Takes the ``keep`` paragraphs that a reranker scores best (MONOT5 of Section 3.3.2); all of them if it is None.

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
        ranked = sorted(zip(paragraphs, scores, strict=True), key=lambda pair: (-pair[1], pair[0].id))
        selected = [(node, float(score)) for node, score in ranked[: self.keep]]
        step = ParagraphsStep(reranker=self.reranker.name, offered=len(paragraphs))
        trail.add(_with_selected(step, selected, [], started))
        return selected


@dataclass(frozen=True, slots=True)
class SelectorChain:
    """Runs one strategy after another: the second chooses among the paragraphs that the first chose.

    If the budget does not allow the second, the choice of the first is returned, and the trail says so.
    """

    first: ParagraphSelector
    second: ParagraphSelector

    def select(self, question: str, paragraphs: Sequence[Node], trail: Trail) -> ScoredNodes:
        """Return the paragraphs that both choose; the second is not asked if the first chose none."""
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
    """Return a step with the chosen paragraphs, and the cost of choosing them."""
    return replace(
        step,
        chosen=len(selected),
        hits=tuple(Hit(node, score, (node.id,)) for node, score in selected),
        usage=sum((completion.usage for completion in completions), Usage()),
        seconds=time.perf_counter() - started,
    )


def create_selector(
    resources: Resources,
    component: str,
    strategy: ParagraphStrategy,
    context: int,
    monot5: str,
    cross_encoder: str,
) -> ParagraphSelector | None:
    """Return the strategy for paragraphs, None for ``encoder``. Raises UsageError if it needs a model and there is
    none."""
    if strategy == "auto":
        may_choose = resources.model is not None and resources.model_setting("paragraphs", "base") == "base"
        strategy = "base" if may_choose else "encoder"
    if strategy == "encoder":
        return None
    if strategy == "cross-encoder":
        return RerankerSelector(
            resources.tools.reranker(f"cross-encoder:{cross_encoder}"), RERANKED_PARAGRAPHS
        )
    selectors: list[ParagraphSelector] = []
    for name in strategy.split("+"):
        if name == "monot5":
            selectors.append(
                RerankerSelector(resources.tools.reranker(f"monot5:{monot5}"), RERANKED_PARAGRAPHS)
            )
            continue
        base = PromptSelector.build(resources, context, component)
        selectors.append(
            base if name == "base" else HierarchicalSelector(base, _paragraph_summaries(resources))
        )
    return selectors[0] if len(selectors) == 1 else SelectorChain(*selectors)


def _paragraph_summaries(resources: Resources) -> Callable[[Sequence[Node]], Sequence[str]]:
    summariser = ExtractiveSummariser(PARAGRAPH_WORDS, resources.encoder)
    return lambda nodes: summariser.summarise([SectionText(node.name, (node.text,)) for node in nodes])
