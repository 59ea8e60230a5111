"""Unknowns filled from text (Su et al., NAACL 2024, Algorithm 2)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from clew.core.component import Resources
from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.steps import FillStep, QuestionsStep
from clew.core.trail import TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, Usage
from clew.methods.chain.answer_types import relation_answer_kind
from clew.methods.chain.unknowns import SHOWN_VALUES, Candidate, Filling, Hop
from clew.triples.language.chain import Term, Triple

_LABEL = re.compile(r"^\W*(?:question\s*:\s*)?", re.IGNORECASE)
#: How sure a reader is: of what it quotes, of what it does not.
_QUOTED, _UNQUOTED = 0.8, 0.5
#: The first word of a question for what a relation leads to.
_FIRST = {"date": "When ", "place": "Where ", "amount": "How many ", "person": "Who "}


@runtime_checkable
class BatchReader(Protocol):
    """A reader that asks its model about several questions in one call."""

    def read_all(
        self, questions: Sequence[Question], hits: Sequence[Sequence[Hit]], trail: Trail
    ) -> list[Answer]:
        """Return the answer to each question, from its own hits."""
        ...


@dataclass(frozen=True, slots=True)
class TextSource:
    """Each hop becomes a question, ``k`` passages are retrieved for it, the reader answers or does not know.

    With a model, ``template`` (``chain-question``, 15 exemplars) makes the questions, all in one call; without, they
    are made by rule. Hops that do not depend on each other are read at the same time. Where the hop before has
    several values, the first ``values`` are asked about (the paper: one).
    """

    retriever: Retriever
    reader: Reader
    model: LanguageModel | None = None
    template: PromptTemplate | None = None
    k: int = 10
    values: int = 3
    name: str = "text"

    @classmethod
    def build(
        cls, resources: Resources, retriever: Retriever, reader: Reader, k: int, values: int
    ) -> TextSource:
        """Return the source over the documents of a base; a model, where there is one, words the questions."""
        template = None if resources.model is None else load_prompt("chain-question")
        return cls(retriever, reader, resources.model, template, k, values)

    def fill(self, question: Question, asks: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the answers to the questions of each hop, None where the reader found none. Raises ModelError."""
        each = [_apart(ask, self.values) for ask in asks]
        flat = [one for some in each for one in some]
        questions = [Question(text, question.scope) for text in self._questions(flat, trail)]
        hits = [retrieve_with_trail(self.retriever, one, self.k, trail, query=one.text) for one in questions]
        answers = iter(zip(questions, self._read(questions, hits, trail), strict=True))
        made = []
        for ask, some in zip(asks, each, strict=True):
            told = [(one, *next(answers)) for one in some]
            known = [_candidate(one.known[0], answer) for one, _, answer in told if _says(answer)]
            best = tuple(sorted(known, key=lambda one: -one.score))
            evidence = tuple(dict.fromkeys(hit for _, _, answer in told for hit in answer.evidence))
            trail.add(
                FillStep(
                    self.name,
                    f"#{ask.unknown}",
                    str(ask.triple),
                    question=" / ".join(asked.text for _, asked, _ in told),
                    values=tuple(one.value for one in best[:SHOWN_VALUES]),
                    outcome=None if best else "not in the passages",
                    hits=evidence if best else (),
                )
            )
            made.append(Filling(self.name, best) if best else None)
        return made

    def _read(
        self, questions: Sequence[Question], hits: Sequence[Sequence[Hit]], trail: Trail
    ) -> list[Answer]:
        """Return the answers: in one call of a reader that can, else each in a thread of its own."""
        if isinstance(self.reader, BatchReader):
            return self.reader.read_all(questions, hits, trail)
        records = [TrailRecorder() for _ in questions]
        with ThreadPoolExecutor(max_workers=max(len(questions), 1)) as pool:
            waiting = [
                pool.submit(self.reader.read, *one) for one in zip(questions, hits, records, strict=True)
            ]
        for record in records:  # whatever became of the others, what was paid for is told
            for step in record.steps:
                trail.add(step)
        return [one.result() for one in waiting]

    def _questions(self, asks: Sequence[Hop], trail: Trail) -> list[str]:
        if self.model is None or self.template is None:
            return [rule_question(one) for one in asks]
        started = time.perf_counter()
        made = self.model.complete([self.template.render(triplet=masked_triple(one)) for one in asks])
        usage = sum((one.usage for one in made), Usage())
        texts = [_question(one.text) or rule_question(ask) for one, ask in zip(made, asks, strict=True)]
        seconds = time.perf_counter() - started
        trail.add(QuestionsStep(self.template.name, tuple(texts), usage=usage, seconds=seconds))
        return texts


def masked_triple(ask: Hop) -> str:
    """Return the triple with ``?`` for what is asked, as the paper's examples have it (Table 4)."""
    triple = ask.triple
    head, tail = ("?", f'"{triple.tail}"') if ask.inverse else (f'"{triple.head}"', "?")
    return f'({head}, "{triple.relation}", {tail})'


def rule_question(ask: Hop) -> str:
    """Return the question that asks for the hop, without a model.

    >>> from clew.triples.language.chain import Term, Triple
    >>> rule_question(Hop(Triple(Term("Lima"), "country", Term("#1")), (), 1))
    'Where Lima: country?'
    """
    relation, known = ask.triple.relation, ask.known_term
    first = "" if ask.inverse else _FIRST.get(relation_answer_kind(relation), "")
    return f"{relation}: {known}?" if ask.inverse else f"{first}{known}: {relation}?"


def _question(reply: str) -> str:
    """Return the first line of a reply that is a question, or "" where none is."""
    lines = [_LABEL.sub("", line).strip(" \t*_\"'`") for line in clean_reply(reply).splitlines()]
    return next((line for line in lines if len(line) > 1 and line.endswith("?")), "")


def _apart(ask: Hop, most: int) -> list[Hop]:
    """Return the hop for each of its first known values."""
    made = []
    for value in ask.known[:most]:
        known, triple = Term(value.value), ask.triple
        head, tail = (triple.head, known) if ask.inverse else (known, triple.tail)
        made.append(Hop(Triple(head, triple.relation, tail), (value,), ask.unknown, ask.inverse))
    return made


def _says(answer: Answer) -> bool:
    return not answer.abstained and bool(answer.text.strip())


def _candidate(known: Candidate, answer: Answer) -> Candidate:
    hits = tuple(dict.fromkeys((*known.hits, *answer.evidence)))
    quotes = tuple(dict.fromkeys((*known.quotes, *answer.quotes)))
    score = _QUOTED if answer.quotes else _UNQUOTED
    return Candidate(answer.text.strip().rstrip("."), score, hits, quotes)
