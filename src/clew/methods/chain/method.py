"""Semi-Structured Chain-of-Thought (Su et al., NAACL 2024): write a question as triples and fill their unknowns.

:meth:`ChainMethod.answer` is the method. A model writes the question as a chain (Section 3.1,
:mod:`clew.methods.chain.writer`). Graphs and text fill its unknowns hop by hop (Section 3.2: Algorithm 1 with a
graph, Algorithm 2 with text; here both are :func:`fill_in_order` with another source). The model's memory fills the
rest and gives the final answer (Section 3.2, last step, :mod:`clew.methods.chain.writer`).

Deviations, each on purpose:

- An unknown keeps every value that was found for it, and the next hop is asked with them: a graph with all, text with
  the first few.
- A triple whose tail is known and whose head is not may be asked as well: a graph and text know both directions.
- The sources take turns hop by hop, so that a value from a later source may open a hop that an earlier one knows. In
  the paper each source has one turn for the whole chain, so a hop that only the graph knows stays open after one that
  only the text knows; ``order=paper`` does that (:func:`fill_by_algorithms`).
- Several chains are tried, in the order of self-consistency, until one is filled from evidence and its answer is of
  the kind that the question asks for (the paper's future work: semantic filtering).
- Comparisons of dates and numbers, yes or no, and counting are decided by rule where possible
  (:func:`derive_answer`); the model gives the final answer only in other cases.
- A triple between two known ends is checked, where the paper looks at the first that fills an unknown
  (:func:`check_triples`). A triple that cannot be filled, or that no value meets, leaves the chain without an answer.
- If no chain can be written, the question is answered from the passages that the retriever finds for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from rapidfuzz import fuzz

from clew.core.component import AtLeast, Auto, Resources, component
from clew.core.errors import BudgetExceeded, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Reader, Retriever, Trail
from clew.core.text import strip_qualifier
from clew.core.trail import ChainFilling, FilledStep, TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Plan, Question, Quote
from clew.core.values import settle_count, settle_values
from clew.methods.answering import NEAREST_HITS, no_answer_text, read_answer, record_stop
from clew.methods.chain.graph_source import EntityChoice, GraphSource
from clew.methods.chain.text_source import TextSource
from clew.methods.chain.unknowns import (
    COMPARED,
    SHOWN_VALUES,
    Candidate,
    FilledChain,
    Filling,
    KnowledgeSource,
    answer_type_mismatch,
    parse_sources,
    record_conflicts,
)
from clew.methods.chain.writer import ChainWriter, Memory, read_given_chain
from clew.methods.prompting import AutoCount, Task, load_task_prompt, parse_label
from clew.methods.readers import NOT_FOUND
from clew.triples.language.chain import Chain, Limits


@component(
    "chain(exemplars=auto, retriever=search)",
    summary="Semi-Structured Chain-of-Thought: the question as triples, filled from graphs, text and the model's "
    "memory; choose=hop asks them all for every hop and shows where they disagree; task=claim for claims",
    paper="Su et al., NAACL 2024",
)
@dataclass(frozen=True, slots=True)
class ChainMethod:
    """The whole method, over ``sources`` and, with ``memory``, the model's memory.

    ``choose`` is ``order`` (:func:`fill_in_order`) or ``hop`` (:func:`fill_by_hop`); ``order`` ``paper`` is
    :func:`fill_by_algorithms`, whatever ``choose`` says. At most ``tries`` chains are
    filled. ``writer`` None: only questions that come with a chain can be answered. ``claims``: the question is a
    claim; the model judges the filled chain (Appendix K), and the answer is FEVER's label. ``retriever``, ``k`` and
    ``reader`` answer a question for which no chain can be written.
    """

    writer: ChainWriter | None
    sources: Sequence[KnowledgeSource]
    memory: Memory | None
    retriever: Retriever
    reader: Reader
    choose: Literal["order", "hop"] = "order"
    order: Literal["hops", "paper"] = "hops"
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
        reader: Annotated[Reader, Auto("cited", "span", baseline="extractive")],
        exemplars: str,
        sources: str = "kg,text,model",
        aliases: str = "",
        entities: EntityChoice = "ranked",
        k: int = 10,
        values: int = 3,
        samples: int = 1,
        form: Literal["auto", "fewshot", "structured"] = "auto",
        task: Task = "question",
        shots: Annotated[AutoCount, AtLeast(0)] = "auto",
        least: AutoCount = "auto",
        most: int = 4,
        choose: Literal["order", "hop"] = "order",
        order: Literal["hops", "paper"] = "hops",
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
            # Without a check of the model, the paper's exemplars; claims have no structured form.
            checked = resources.model_setting("form", "fewshot") if task == "question" else "fewshot"
            if (checked if form == "auto" else form) == "structured":
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
            order=order,
            tries=tries,
            claims=task == "claim",
            k=k,
            recipe=recipe,
        )

    def answer(self, question: Question, trail: Trail) -> Answer:
        """Return the answer with the evidence of every hop. Raises UsageError, ModelError, RemoteError."""
        recorder = TrailRecorder.forwarding_to(trail)
        attempts: list[ChainAttempt] = []
        try:
            chains = self._write_chains(question, recorder)  # Section 3.1
            if not chains:
                return self._answer_without_chain(question, recorder)
            for chain in chains[: self.tries]:
                attempt = ChainAttempt(FilledChain(chain), claims=self.claims)
                attempts.append(attempt)
                self._fill_from_evidence(question, attempt, recorder)  # Section 3.2
                if attempt.is_complete or attempt.lacks_only_answer or recorder.should_stop():
                    break
            self._fill_from_memory(question, _best_attempt(attempts), recorder)  # Section 3.2, last step
        except BudgetExceeded as error:
            record_stop(recorder, error)
        return self._to_answer(_best_attempt(attempts), recorder)

    def _write_chains(self, question: Question, recorder: TrailRecorder) -> list[Chain]:
        if self.writer is not None:
            return self.writer.write(question, recorder)
        return read_given_chain(question, recorder)

    def _answer_without_chain(self, question: Question, recorder: TrailRecorder) -> Answer:
        hits = retrieve_with_trail(self.retriever, question, self.k, recorder, question.text)
        return read_answer(self.reader, question, hits, recorder, self.recipe)

    def _fill_from_evidence(self, question: Question, attempt: ChainAttempt, recorder: TrailRecorder) -> None:
        """Fill a chain from the sources, and derive its answer if it follows by rule."""
        fill = fill_in_order if self.choose == "order" else fill_by_hop
        if self.order == "paper":
            fill = fill_by_algorithms
        fill(attempt.filled, self.sources, question, recorder)
        record_conflicts(attempt.filled, recorder)
        self._derive_answer(question, attempt, recorder)

    def _fill_from_memory(self, question: Question, attempt: ChainAttempt, recorder: TrailRecorder) -> None:
        """Let the model fill the rest of a chain and give its answer."""
        if self.memory is None or not attempt.needs_model or recorder.should_stop():
            return
        final = self.memory.recall(question, attempt.filled, recorder)
        attempt.model_answer = parse_label(final) if self.claims else final
        self._derive_answer(question, attempt, recorder)

    def _derive_answer(self, question: Question, attempt: ChainAttempt, recorder: TrailRecorder) -> None:
        """Derive the answer by rule where possible, check its kind, and record how far the chain is filled."""
        attempt.derived = None if self.claims else derive_answer(question.text, attempt.filled)
        is_label = self.claims and attempt.text
        attempt.mismatch = "" if is_label else answer_type_mismatch(question.text, attempt.text)
        recorder.add(
            FilledStep(
                str(attempt.filled),
                attempt.text,
                settled_by=attempt.derived.rule if attempt.derived else None,
                not_found=", ".join(f"#{number}" for number in attempt.filled.open_unknowns) or None,
                does_not_fit=attempt.mismatch or None,
                filling=attempt.to_filling(),
            )
        )

    def _to_answer(self, attempt: ChainAttempt, recorder: TrailRecorder) -> Answer:
        every_hit = tuple(dict.fromkeys(hit for step in recorder.steps for hit in step.hits))
        evidence, quotes = attempt.evidence()
        answer = Answer(
            attempt.text,
            evidence,
            quotes,
            trail=tuple(recorder.steps),
            usage=recorder.usage(),
            reader="chain",
            recipe=self.recipe,
            context=every_hit,
            values=attempt.values,
            from_memory=attempt.from_memory,
            plan=Plan("chain", str(attempt.filled.chain)),
        )
        if answer.text:
            return answer
        return replace(
            answer,
            text=no_answer_text(recorder) if recorder.should_stop() else attempt.explain_missing(),
            evidence=evidence or every_hit[:NEAREST_HITS],
            quotes=(),
            abstained=True,
            values=(),
            from_memory=(),
            plan=None,
        )


def fill_in_order(
    filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail
) -> None:
    """Fill each hop with the first source, in their order, that knows it (the paper's global order).

    With a graph as the source this is Algorithm 1, with text Algorithm 2. Raises what a source raises; the values
    found before that stay.
    """
    while not trail.should_stop():
        hops = filled.open_hops()
        for source in sources:
            unfilled = [hop for hop in hops if hop.unknown in filled.open_unknowns]
            if not unfilled or trail.should_stop():
                break
            for hop, filling in zip(unfilled, source.fill(question, unfilled, trail), strict=True):
                if filling is not None:
                    filled.fill(hop, filling)
        if not any(hop.unknown in filled.fillings for hop in hops):
            break
        if not check_triples(filled, sources, question, trail):
            break


def check_triples(
    filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail
) -> bool:
    """Keep the values that all triples between known ends allow; return whether every unknown has one left.

    A triple counts as met by a value that any of the sources confirms. (The paper fills each unknown from one triple,
    and does not look at a second one.)
    """
    while not trail.should_stop() and (hops := filled.open_checks()):
        fillings = (source.fill(question, [hops[0]], trail)[0] for source in sources)
        if not any(filling is not None and filled.narrow(hops[0], filling) for filling in fillings):
            filled.unmet = hops[0].triple
            return False
    return True


def fill_by_algorithms(
    filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail
) -> None:
    """Fill a chain as Algorithms 1 and 2 are printed: each source has one turn, in their order, for the whole chain.

    In its turn a source goes once through the triples as they are written. A triple whose head is known by then and
    whose tail is an open unknown is asked for; its first value is put in everywhere at once, and all that the next
    triples are asked with. A triple whose head is not known is skipped, and so is one whose tail is known: neither
    algorithm goes back, nor from a tail to a head. Raises what a source raises; the values so far stay.
    """
    for source in sources:
        for triple in filled.chain.triples:
            if trail.should_stop():
                return
            number = triple.tail.unknown
            if number is None or number in filled.fillings:
                continue
            hop = filled.forward_hop(triple)
            if hop is None:
                continue
            (filling,) = source.fill(question, [hop], trail)
            if filling is not None:
                filled.add(number, Filling(filling.source, filling.candidates[:1], graph=filling.graph))


def fill_by_hop(
    filled: FilledChain, sources: Sequence[KnowledgeSource], question: Question, trail: Trail
) -> None:
    """Ask all sources for each hop, and take the value of the one that is surest; equals go by their order.

    The values of the others are kept beside it, so that disagreements show (:func:`record_conflicts`). It is the
    paper's future work, and costs as many questions as there are sources and hops.
    """
    while not trail.should_stop():
        hops = filled.open_hops()
        if not hops:
            break
        by_source = [source.fill(question, hops, trail) for source in sources]
        for hop, fillings in zip(hops, zip(*by_source, strict=True), strict=True):
            known = [filling for filling in fillings if filling is not None]
            for filling in sorted(known, key=lambda filling: -filling.score):
                filled.fill(hop, filling)
        if all(hop.unknown in filled.open_unknowns for hop in hops):
            break
        if not check_triples(filled, sources, question, trail):
            break


def _best_attempt(attempts: Sequence[ChainAttempt]) -> ChainAttempt:
    """Return the best attempt; of equals the first, whose chain most samples agree on."""
    return max(attempts, key=lambda attempt: attempt.worth, default=ChainAttempt())


#: The text of an answer lists this many values; ``Answer.values`` has all.
LISTED_VALUES = 20
#: ``Answer.values`` has at most this many values, each with its evidence.
MAX_VALUES = 10_000


@dataclass(slots=True)
class ChainAttempt:
    """A chain as far as it is filled.

    ``derived`` is the answer that follows by rule, ``model_answer`` the one that the model gave, and ``mismatch``
    says why the answer cannot be right, "" if nothing is known against it.
    """

    filled: FilledChain = field(default_factory=lambda: FilledChain(Chain(())))
    derived: DerivedAnswer | None = None
    model_answer: str = ""
    mismatch: str = ""
    claims: bool = False

    @property
    def needs_model(self) -> bool:
        """Whether neither the sources nor a rule gave the whole answer."""
        return bool(self.filled.open_unknowns) or not self.values

    @property
    def lacks_only_answer(self) -> bool:
        """Whether all unknowns are filled, but only the model can give the answer that follows from them."""
        return not self.filled.open_unknowns and not self.text

    @property
    def is_complete(self) -> bool:
        """Whether every unknown is filled and the answer is of the kind that is asked for."""
        return bool(self.text) and not self.filled.open_unknowns and not self.mismatch

    @property
    def worth(self) -> tuple[bool, bool, bool, int]:
        """A sort key: the better of two attempts has the greater one."""
        return self.is_complete, bool(self.text), not self.mismatch, len(self.filled.fillings)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The values of the unknown that answers the question, if there is such an unknown."""
        number = self.filled.chain.answer
        return () if number is None else self._values_of(number)

    @property
    def values(self) -> tuple[str, ...]:
        """The answers one by one."""
        if self.derived is not None:
            return (self.derived.text,)
        from_model = (self.model_answer,) if self.model_answer else ()
        if self.claims or self.filled.missing is not None:
            return from_model
        names = tuple(dict.fromkeys(candidate.value for candidate in self.candidates))
        return names or from_model or self._last_values()

    def explain_missing(self) -> str:
        """Say which triple could not be filled, and what there would be without it."""
        missing = self.filled.missing
        if missing is None:
            return NOT_FOUND
        text = f"No answer: nothing states '{missing}'."
        names = list(dict.fromkeys(candidate.value for candidate in self.candidates))
        if not names:
            return text
        more = f" and {len(names) - SHOWN_VALUES} more" if len(names) > SHOWN_VALUES else ""
        return f"{text} Without it there would be: {', '.join(names[:SHOWN_VALUES])}{more}"

    def _last_values(self) -> tuple[str, ...]:
        """Return the values of the last unknown of a chain of one strand: ``#answer`` can be nothing else."""
        chain = self.filled.chain
        strands = find_strands(chain) if chain.answer is None else []
        if len(strands) != 1:
            return ()
        candidates = self._values_of(strands[0].last_unknown)
        return tuple(dict.fromkeys(candidate.value for candidate in candidates))

    def _values_of(self, number: int) -> tuple[Candidate, ...]:
        fillings = self.filled.fillings.get(number)
        return fillings[0].values(MAX_VALUES) if fillings else ()

    @property
    def text(self) -> str:
        """The text of the answer: its first values."""
        values = self.values
        more = f" and {len(values) - LISTED_VALUES} more" if len(values) > LISTED_VALUES else ""
        return ", ".join(values[:LISTED_VALUES]) + more

    @property
    def from_memory(self) -> tuple[str, ...]:
        """The values that rest on the model's memory alone: unknowns, and a final answer that no rule derived."""
        remembered = [
            f"#{number}: {fillings[0].candidates[0].value}"
            for number, fillings in sorted(self.filled.fillings.items())
            if fillings[0].source == "model"
        ]
        if self.model_answer and self.derived is None and not self.candidates:
            remembered.append(f"the answer: {self.model_answer}")
        return tuple(remembered)

    def evidence(self) -> tuple[tuple[Hit, ...], tuple[Quote, ...]]:
        """Return the hits and quotes of the best value of every unknown, hop after hop, and of every listed
        answer."""
        best = [fillings[0].candidates[0] for _, fillings in sorted(self.filled.fillings.items())]
        candidates = [*best, *self.candidates[:LISTED_VALUES]]
        hits = dict.fromkeys(hit for candidate in candidates for hit in candidate.hits)
        quotes = dict.fromkeys(quote for candidate in candidates for quote in candidate.quotes)
        return tuple(hits), tuple(quotes)

    def to_filling(self) -> ChainFilling:
        """Return the chain with the first values of its unknowns for the trail."""
        values = {
            f"#{number}": tuple(candidate.value for candidate in fillings[0].values(SHOWN_VALUES))
            for number, fillings in sorted(self.filled.fillings.items())
        }
        return ChainFilling(str(self.filled.chain), values, self.worth)


#: A name in a chain and one in the question are the same if they are at least this alike, of 100.
_MIN_SPELLING = 80


@dataclass(frozen=True, slots=True)
class DerivedAnswer:
    """A final answer, the rule that gave it, and the values it is based on."""

    text: str
    rule: Literal["comparison", "same", "difference", "count"]
    based_on: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Strand:
    """A constant of a chain, and the last unknown that its triples lead to."""

    constant: str
    last_unknown: int


def derive_answer(question: str, filled: FilledChain) -> DerivedAnswer | None:
    """Return the final answer if it follows from the values by rule (:func:`settle_values`), else None.

    >>> from clew.triples.language.chain import parse_chain
    >>> from clew.methods.chain.unknowns import Filling
    >>> filled = FilledChain(parse_chain("Ada >> born >> #1; Bo >> born >> #2; final answer: #answer"))
    >>> filled.add(1, Filling("kg", (Candidate("2 May 1901"),)))
    >>> filled.add(2, Filling("kg", (Candidate("1899"),)))
    >>> derive_answer("Who was born first, Ada or Bo?", filled).text
    'Bo'
    """
    if filled.open_unknowns:
        return None
    if filled.chain.answer is not None:
        return _count_values(question, filled, filled.chain.answer)
    strands = find_strands(filled.chain)
    if len(strands) == 1:
        return _count_values(question, filled, strands[0].last_unknown)
    if len(strands) != 2:
        return None
    first, second = (filled.fillings[strand.last_unknown][0] for strand in strands)
    names = strands[0].constant, strands[1].constant
    values = tuple([candidate.value for candidate in filling.values(COMPARED)] for filling in (first, second))
    settled = settle_values(question, names, (values[0], values[1]))
    if settled is None:
        return None
    text = settled.text if settled.side is None else _spell_as_asked(names[settled.side], question)
    return DerivedAnswer(text, settled.rule, (first.candidates[0], second.candidates[0]))


def find_strands(chain: Chain) -> list[Strand]:
    """Return the strands of a chain, from each constant to the last of its unknowns, in the order of the unknowns."""
    root: dict[int, str] = {}
    used: set[int] = set()
    for triple in chain.triples:
        numbers = triple.head.unknowns
        head = root.get(numbers[0], "") if numbers else str(triple.head)
        number = triple.tail.unknown
        if number is not None and head:
            root.setdefault(number, head)
        used.update(numbers)
    return [Strand(constant, number) for number, constant in sorted(root.items()) if number not in used]


def _count_values(question: str, filled: FilledChain, number: int) -> DerivedAnswer | None:
    """Return the number of values of an unknown, if the question asks how many and a graph, which has all of them,
    filled it."""
    filling = filled.fillings[number][0]
    values = [candidate.value for candidate in filling.candidates]
    settled = settle_count(question, values, filling.count) if filling.source == "kg" else None
    return DerivedAnswer(settled.text, settled.rule, filling.candidates) if settled else None


def _spell_as_asked(constant: str, question: str) -> str:
    """Return a constant of the chain in the spelling of the question."""
    bare = strip_qualifier(constant)
    for name in (constant, bare):
        match = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question, re.IGNORECASE)
        if match:
            return match.group()
    alignment = fuzz.partial_ratio_alignment(bare.lower(), question.lower(), score_cutoff=_MIN_SPELLING)
    if alignment is None or len(bare) > len(question) or len(question.lower()) != len(question):
        return constant
    start, end = alignment.dest_start, alignment.dest_end
    while start > 0 and question[start - 1].isalnum():
        start -= 1
    while end < len(question) and question[end].isalnum():
        end += 1
    return question[start:end].strip(" ,;:?!")
