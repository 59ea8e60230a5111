"""Semi-Structured Chain-of-Thought (Su et al., NAACL 2024): a question becomes triples, which are filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from clew.core.component import AtLeast, Auto, Resources, component
from clew.core.errors import BudgetExceeded, UsageError, unknown_name_error
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Reader, Retriever, Trail
from clew.core.steps import ChainFilling, FilledStep
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, Quote
from clew.methods.answering import NEAREST_HITS, no_answer_text, read_answer, record_stop
from clew.methods.chain.answer_types import answer_type_mismatch
from clew.methods.chain.derived_answers import DerivedAnswer, derive_answer, find_strands
from clew.methods.chain.graph_source import EntityChoice, GraphSource
from clew.methods.chain.memory import Memory
from clew.methods.chain.text_source import TextSource
from clew.methods.chain.unknowns import (
    SHOWN_VALUES,
    Candidate,
    FilledChain,
    KnowledgeSource,
    record_conflicts,
)
from clew.methods.chain.writer import ChainWriter, read_given_chain
from clew.methods.replies import parse_label
from clew.methods.task_prompts import AutoCount, Task, load_task_prompt
from clew.triples.language.chain import Chain, Limits

#: Values of an answer that its text lists; ``Answer.values`` has all.
LISTED_VALUES = 20
#: Values of an answer that are named at all, each with its evidence.
MAX_VALUES = 10_000


#: Where unknowns are looked up: graphs, text, the model's memory, which is always asked last.
SOURCES = ("kg", "text", "model")


def parse_sources(text: str) -> list[str]:
    """Return the sources that ``kg,text,model`` names, in that order. Raises UsageError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in SOURCES:
            raise unknown_name_error("source of 'chain'", name, SOURCES)
    if not names or len(set(names)) < len(names):
        raise UsageError(f"sources of 'chain' are each named once: '{text}'", "Such as kg,text,model")
    if "model" in names[:-1]:
        raise UsageError(
            f"the model's memory is the last source: '{text}'", "It fills what the others leave open"
        )
    return names


@component(
    "chain(exemplars=auto, retriever=search)",
    summary="Semi-Structured Chain-of-Thought: the question as triples, filled from graphs, text and the model's "
    "memory; choose=hop asks them all for every hop and shows where they disagree; task=claim for claims",
    paper="Su et al., NAACL 2024",
)
@dataclass(frozen=True, slots=True)
class ChainMethod:
    """Writes a question as a chain, fills its unknowns from ``sources`` and then, with ``memory``, from the model.

    ``choose`` is ``order`` (the paper: each source as far as it gets, one after the other) or ``hop`` (all are asked,
    the surest counts, and where they disagree that is shown). Chains are tried in the order of self-consistency, at
    most ``tries`` of them, until one is filled whole from what has evidence and its answer is of the kind that the
    question asks for (the paper's future work: semantic filtering); the model's memory is asked about the best of
    them. Deviations: :mod:`clew.methods.chain.unknowns`; dates, numbers, yes or no and counting are settled by rule
    where they can be (:mod:`clew.methods.chain.derived_answers`), so the model is asked for the end only where
    that says
    nothing. Where no chain can be written, the question is answered from what ``retriever`` finds for it, and the
    trail says so.

    ``writer`` None: only questions with a chain of their own can be answered. ``claims``: what is asked is whether a
    claim holds; the model judges the filled chain (Appendix K), and the answer is FEVER's label.
    """

    writer: ChainWriter | None
    sources: Sequence[KnowledgeSource]
    memory: Memory | None
    retriever: Retriever
    reader: Reader
    choose: Literal["order", "hop"] = "order"
    tries: int = 3
    claims: bool = False
    k: int = 10
    recipe: str = "chain"

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        recipe: str,
        retriever: Retriever,
        reader: Annotated[Reader, Auto("cited", "short")],
        exemplars: str,
        sources: str = "kg,text,model",
        aliases: str = "",
        entities: EntityChoice = "ranked",
        k: int = 10,
        values: int = 3,
        samples: int = 1,
        form: Literal["fewshot", "structured"] = "fewshot",
        task: Task = "question",
        shots: Annotated[AutoCount, AtLeast(0)] = "auto",
        least: AutoCount = "auto",
        most: int = 4,
        choose: Literal["order", "hop"] = "order",
        tries: int = 3,
    ) -> ChainMethod:
        """Return the method with the sources of a recipe; without a model it fills only chains that it is given.

        Raises UsageError.
        """
        names = parse_sources(sources)
        documents = TextSource.build(resources, retriever, reader, k, values)
        filled_from: dict[str, KnowledgeSource] = {"text": documents}
        if "kg" in names:
            filled_from["kg"] = GraphSource.build(resources, aliases, entities, "chain")
        model, writer, memory = resources.model, None, None
        if model is not None:
            shortest = least if least != "auto" else 1 if task == "claim" else 2
            if most < shortest:
                raise UsageError(
                    f"option 'most' of 'chain' must be a whole number from {shortest} up: {most}"
                )
            if form == "structured":
                template = load_prompt("chain-structured")
            else:
                template = load_task_prompt("chain-parse", task, shots, exemplars)
            writer = ChainWriter(model, template, samples, Limits(shortest, most))
            if "model" in names:
                memory = Memory(model, load_task_prompt("chain-memory", task, shots, exemplars))
        return cls(
            writer,
            tuple(filled_from[name] for name in names if name in filled_from),
            memory,
            retriever,
            reader,
            choose=choose,
            tries=tries,
            claims=task == "claim",
            k=k,
            recipe=recipe,
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer with the evidence of every hop. Raises UsageError, ModelError, RemoteError."""
        record = TrailRecorder(on_step=trail.add, is_cancelled=trail.should_stop)
        attempts: list[_Attempt] = []
        try:
            chains = self._chains(question, record)
            if not chains:
                return self._plain(question, record)
            for chain in chains[: self.tries]:
                attempts.append(_Attempt(FilledChain(chain), claims=self.claims))
                self._attempt(question, attempts[-1], record)
                if attempts[-1].whole or attempts[-1].only_end_open or record.should_stop():
                    break
            self._remember(question, _best(attempts), record)
        except BudgetExceeded as error:
            record_stop(record, error)
        return self._answered(_best(attempts), record)

    def _chains(self, question: Question, record: TrailRecorder) -> list[Chain]:
        if self.writer is not None:
            return self.writer.write(question, record)
        return read_given_chain(question, record)

    def _attempt(self, question: Question, attempt: _Attempt, record: TrailRecorder) -> None:
        """Fill one chain from what has evidence, and settle its answer where that follows."""
        fill = fill_in_order if self.choose == "order" else fill_by_hop
        fill(attempt.filled, self.sources, question, record)
        record_conflicts(attempt.filled, record)
        self._settle(question, attempt, record)

    def _remember(self, question: Question, attempt: _Attempt, record: TrailRecorder) -> None:
        """Let the model fill what is left of the best chain, and settle its answer."""
        if self.memory is None or not attempt.needs_model or record.should_stop():
            return
        final = self.memory.recall(question, attempt.filled, record)
        attempt.final = parse_label(final) if self.claims else final
        self._settle(question, attempt, record)

    def _settle(self, question: Question, attempt: _Attempt, record: TrailRecorder) -> None:
        attempt.ending = None if self.claims else derive_answer(question.text, attempt.filled)
        attempt.misfit = (
            "" if self.claims and attempt.text else answer_type_mismatch(question.text, attempt.text)
        )
        record.add(
            FilledStep(
                str(attempt.filled),
                attempt.text,
                settled_by=attempt.ending.rule if attempt.ending else None,
                not_found=", ".join(f"#{number}" for number in attempt.filled.unfilled) or None,
                does_not_fit=attempt.misfit or None,
                filling=attempt.filling,
            )
        )

    def _plain(self, question: Question, record: TrailRecorder) -> Answer:
        hits = retrieve_with_trail(self.retriever, question, self.k, record, query=question.text)
        return read_answer(self.reader, question, hits, record, self.recipe)

    def _answered(self, attempt: _Attempt, record: TrailRecorder) -> Answer:
        found = tuple(dict.fromkeys(hit for step in record.steps for hit in step.hits))
        evidence, quotes = attempt.evidence()
        text = attempt.text
        if not text:
            evidence = evidence or found[:NEAREST_HITS]
            return Answer(
                no_answer_text(record),
                evidence,
                abstained=True,
                trail=tuple(record.steps),
                usage=record.usage(),
                reader="chain",
                recipe=self.recipe,
                context=found,
            )
        return Answer(
            text,
            evidence,
            quotes,
            trail=tuple(record.steps),
            usage=record.usage(),
            reader="chain",
            recipe=self.recipe,
            context=found,
            values=attempt.values,
            from_memory=attempt.remembered,
        )


def _best(attempts: Sequence[_Attempt]) -> _Attempt:
    """Return the attempt that came furthest; of equals the first, what most samples agreed on."""
    return max(attempts, key=lambda one: one.worth, default=_Attempt())


@dataclass(slots=True)
class _Attempt:
    """One chain as far as it was filled: what was settled by rule, what the model gave as final answer, and what is
    wrong with the answer."""

    filled: FilledChain = field(default_factory=lambda: FilledChain(Chain(())))
    ending: DerivedAnswer | None = None
    final: str = ""
    misfit: str = ""
    claims: bool = False

    @property
    def needs_model(self) -> bool:
        """Whether something is left that no rule and no source has settled."""
        return bool(self.filled.unfilled) or not self.values

    @property
    def only_end_open(self) -> bool:
        """Whether all unknowns are filled and only the model can say what follows from them."""
        return not self.filled.unfilled and not self.text

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The values of the unknown that answers the question, as far as there is one."""
        number = self.filled.chain.answer
        if number is None or number not in self.filled.fillings:
            return ()
        return self.filled.fillings[number][0].values(MAX_VALUES)

    @property
    def values(self) -> tuple[str, ...]:
        """The answers one by one."""
        if self.ending is not None:
            return (self.ending.text,)
        if self.claims:
            return (self.final,) if self.final else ()
        named = tuple(dict.fromkeys(one.value for one in self.candidates))
        return named or ((self.final,) if self.final else self._last())

    def _last(self) -> tuple[str, ...]:
        """Return the value of the last unknown of a chain of one strand: ``#answer`` can be nothing else."""
        chain = self.filled.chain
        last = find_strands(chain) if chain.answer is None else []
        if len(last) != 1 or last[0].last_unknown not in self.filled.fillings:
            return ()
        found = self.filled.fillings[last[0].last_unknown][0].values(MAX_VALUES)
        return tuple(dict.fromkeys(one.value for one in found))

    @property
    def text(self) -> str:
        """The answer's text: its values, the first of them where there are many."""
        values = self.values
        more = f" and {len(values) - LISTED_VALUES} more" if len(values) > LISTED_VALUES else ""
        return ", ".join(values[:LISTED_VALUES]) + more

    @property
    def whole(self) -> bool:
        """Whether every unknown is filled and the answer is of the kind that is asked for."""
        return bool(self.text) and not self.filled.unfilled and not self.misfit

    @property
    def filling(self) -> ChainFilling:
        """The chain with its unknowns, the first values of each that has some, and what makes it better than another
        (:attr:`worth`)."""
        found = sorted(self.filled.fillings.items())
        values = {
            f"#{number}": tuple(one.value for one in some[0].values(SHOWN_VALUES)) for number, some in found
        }
        return ChainFilling(str(self.filled.chain), values, self.worth)

    @property
    def worth(self) -> tuple[bool, bool, bool, int]:
        """What makes one attempt better than another."""
        return self.whole, bool(self.text), not self.misfit, len(self.filled.fillings)

    @property
    def remembered(self) -> tuple[str, ...]:
        """What rests on the model's memory alone: unknowns, and a final answer that no rule made of the others."""
        from_model = [
            f"#{number}: {found[0].candidates[0].value}"
            for number, found in sorted(self.filled.fillings.items())
            if found[0].source == "model"
        ]
        if self.final and self.ending is None and not self.candidates:
            from_model.append(f"the answer: {self.final}")
        return tuple(from_model)

    def evidence(self) -> tuple[tuple[Hit, ...], tuple[Quote, ...]]:
        """Return the hits of the best value of every unknown, hop after hop, and of every answer; and quotes."""
        found = [self.filled.fillings[number][0].candidates[0] for number in sorted(self.filled.fillings)]
        every = [*found, *self.candidates[:LISTED_VALUES]]
        hits = dict.fromkeys(hit for one in every for hit in one.hits)
        return tuple(hits), tuple(dict.fromkeys(quote for one in every for quote in one.quotes))


def fill_in_order(
    filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail
) -> None:
    """Fill each hop with the first source, in their order, that knows it (the paper's global order).

    Raises what a source raises; what was filled before stays.
    """
    while not trail.should_stop():
        asks = filled.open_hops()
        for source in sources:
            left = [ask for ask in asks if ask.unknown in filled.unfilled]
            if not left or trail.should_stop():
                break
            for ask, found in zip(left, source.fill(question, left, trail), strict=True):
                if found is not None:
                    filled.add(ask.unknown, found)
        if not any(ask.unknown in filled.fillings for ask in asks):
            break


def fill_by_hop(
    filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail
) -> None:
    """Fill each hop with the source that is surest of it, all having been asked; equals by their order.

    What the others say stays beside it, so that sources that disagree show (:func:`conflicts`). The paper's future
    work; it costs as many questions as there are sources and hops.
    """
    while not trail.should_stop():
        asks = filled.open_hops()
        if not asks:
            break
        said = [source.fill(question, asks, trail) for source in sources]
        for ask, answers in zip(asks, zip(*said, strict=True), strict=True):
            known = [found for found in answers if found is not None]
            for found in sorted(known, key=lambda one: -one.score):
                filled.add(ask.unknown, found)
        if all(ask.unknown in filled.unfilled for ask in asks):
            break
