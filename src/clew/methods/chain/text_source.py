"""Values for unknowns from text (Su et al., NAACL 2024, Algorithm 2): retrieve and read for each hop."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from clew.core.component import Resources
from clew.core.prompts.replies import is_refusal, parse_question
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import LanguageModel, PromptTemplate, Reader, Retriever, Trail
from clew.core.trail import FillStep, TrailRecorder, retrieve_with_trail
from clew.core.types import Answer, Hit, Question, ShownStep, Usage
from clew.methods.chain.unknowns import SHOWN_VALUES, Candidate, Filling, Hop
from clew.methods.readers.quotes import mark_words
from clew.questions.closed_words import PREPOSITIONS
from clew.triples.language.chain import Term, Triple

#: The score of an answer with a quote, and of one without.
_QUOTED, _UNQUOTED = 0.8, 0.5


@dataclass(frozen=True, slots=True)
class TextSource:
    """Writes each hop as a question, retrieves ``k`` passages for it, and lets the reader answer or abstain.

    A model writes the questions of all hops in one call (``template`` is ``chain-question``, 15 exemplars); without a
    model they are written by rule. Hops that do not depend on each other are read at the same time. If the hop before
    has several values, a question is asked for each of the first ``values`` (the paper: for one).
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
        """Return the source over the documents of a base; the model, if there is one, writes the questions."""
        template = None if resources.model is None else load_prompt("chain-question")
        return cls(retriever, reader, resources.model, template, k, values)

    def fill(self, question: Question, hops: Sequence[Hop], trail: Trail) -> list[Filling | None]:
        """Return the answers to the questions of each hop, None if the reader found none. Raises ModelError."""
        parts_of_hops = [_split_by_value(hop, self.values) for hop in hops]
        parts = [part for group in parts_of_hops for part in group]
        questions = [Question(text, question.scope) for text in self._write_questions(parts, trail)]
        hits = [
            retrieve_with_trail(self.retriever, each, self.k, trail, query=each.text) for each in questions
        ]
        answers = iter(zip(questions, self._read(questions, hits, trail), strict=True))
        fillings = []
        for hop, group in zip(hops, parts_of_hops, strict=True):
            answered = [(part, *next(answers)) for part in group]
            candidates = [
                _to_candidate(part.known[0], answer)
                for part, _, answer in answered
                if not answer.abstained and not is_refusal(answer.text) and not _is_sentence(answer)
            ]
            best = tuple(sorted(candidates, key=lambda candidate: -candidate.score))
            evidence = tuple(dict.fromkeys(hit for _, _, answer in answered for hit in answer.evidence))
            trail.add(
                FillStep(
                    self.name,
                    f"#{hop.unknown}",
                    str(hop.triple),
                    question=" / ".join(asked.text for _, asked, _ in answered),
                    values=tuple(candidate.value for candidate in best[:SHOWN_VALUES]),
                    outcome=None if best else "not in the passages",
                    hits=evidence if best else (),
                )
            )
            fillings.append(Filling(self.name, best) if best else None)
        return fillings

    def _read(
        self, questions: Sequence[Question], hits: Sequence[Sequence[Hit]], trail: Trail
    ) -> list[Answer]:
        """Return the answers: in one call of a reader that has ``read_all``, else each in a thread of its own."""
        if (read_all := getattr(self.reader, "read_all", None)) is not None:
            answers: list[Answer] = read_all(questions, hits, trail)
            return answers
        recorders = [TrailRecorder() for _ in questions]
        with ThreadPoolExecutor(max_workers=max(len(questions), 1)) as pool:
            futures = [
                pool.submit(self.reader.read, *arguments)
                for arguments in zip(questions, hits, recorders, strict=True)
            ]
        for recorder in recorders:  # a question that fails does not hide the cost of the others
            for step in recorder.steps:
                trail.add(step)
        return [future.result() for future in futures]

    def _write_questions(self, hops: Sequence[Hop], trail: Trail) -> list[str]:
        if self.model is None or self.template is None:
            return [rule_question(hop) for hop in hops]
        started = time.perf_counter()
        prompts = [self.template.render(triplet=masked_triple(hop)) for hop in hops]
        completions = self.model.complete(prompts)
        usage = sum((completion.usage for completion in completions), Usage())
        questions = tuple(
            parse_question(completion.text) or rule_question(hop)
            for completion, hop in zip(completions, hops, strict=True)
        )
        results = {"prompt": self.template.name, "questions": questions}
        trail.add(ShownStep("questions", results, usage=usage, seconds=time.perf_counter() - started))
        return list(questions)


def masked_triple(hop: Hop) -> str:
    """Return the triple of a hop with ``?`` for the unknown, as in the paper's examples (Table 4)."""
    triple = hop.triple
    head, tail = ("?", f'"{triple.tail}"') if hop.inverse else (f'"{triple.head}"', "?")
    return f'({head}, "{triple.relation}", {tail})'


def rule_question(hop: Hop) -> str:
    """Return the question of a hop as rules write it, without a model.

    >>> from clew.triples.language.chain import Term, Triple
    >>> rule_question(Hop(Triple(Term("Lima"), "country", Term("#1")), (), 1))
    'What is the country of Lima?'
    >>> rule_question(Hop(Triple(Term("Ilse Varnholt"), "born in", Term("#1")), (), 1))
    'What is Ilse Varnholt born in?'
    """
    relation = hop.triple.relation.replace("_", " ")
    if hop.inverse:
        return f"{relation}: {hop.known_term}?"
    if relation.split(" ")[-1] in PREPOSITIONS:
        return f"What is {hop.known_term} {relation}?"
    return f"What is the {relation} of {hop.known_term}?"


def _split_by_value(hop: Hop, most: int) -> list[Hop]:
    """Return the hop once for each of its first known values."""
    parts = []
    for candidate in hop.known[:most]:
        known, triple = Term(candidate.value), hop.triple
        head, tail = (triple.head, known) if hop.inverse else (known, triple.tail)
        parts.append(Hop(Triple(head, triple.relation, tail), (candidate,), hop.unknown, hop.inverse))
    return parts


def _is_sentence(answer: Answer) -> bool:
    """Return whether a reader without a language model answers with a sentence and marks no words in it: no value."""
    if answer.by_rule or answer.reader != "span" or not answer.quotes:
        return answer.by_rule
    quote = answer.quotes[0]
    return quote.answer is None and answer.text in " ".join(quote.text.split())


def _to_candidate(known: Candidate, answer: Answer) -> Candidate:
    """Return an answer as a value, with the evidence of the known value before it."""
    hits = tuple(dict.fromkeys((*known.hits, *answer.evidence)))
    quotes = tuple(dict.fromkeys((*known.quotes, *answer.quotes)))
    score = _QUOTED if answer.quotes else _UNQUOTED
    value = mark_words(answer.text, answer.quotes[0] if answer.quotes else None)
    return Candidate(value.strip().rstrip("."), score, hits, quotes)
