"""A short answer without a language model: the name, date or number in the sentence that best answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.component import component
from clew.core.protocols import Reader, Snapshot, Trail
from clew.core.text import candidate_names, index_terms, normalise_name, query_terms
from clew.core.types import Answer, Hit, Question
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.extractive import AnswerKind, ExtractiveReader, answer_spans, expected_kind

_WORD = re.compile(r"\w+(?:['’]\w+)?")
#: Kinds whose answers may share words with the question: "3 May" with "on what day in May".
_DATED = frozenset({"date", "amount"})
#: The distance, in characters, of a candidate in a sentence without words of the question.
_FAR = 80


@component("short", summary="the name, date or number in the sentence that best answers; no model")
@dataclass(frozen=True, slots=True)
class ShortReader:
    """Takes from the sentences that ``sentences`` (an extractive reader) quotes the words that answer.

    The candidates are names, dates or numbers of the expected kind that are not in the question. The one nearest to
    the question's words in the sentence is taken, and words that are no names count first ("mayor" before the town).
    The first sentence with a candidate decides; without one the reader abstains. Evidence and quotes are those of
    ``sentences``.
    """

    sentences: Reader

    @classmethod
    def build(cls, snapshot: Snapshot) -> ShortReader:
        """Return the reader of what the extractive reader quotes."""
        return cls(ExtractiveReader.build(snapshot))

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the words that answer, resting on the sentence that they are from, or abstain."""
        answer = self.sentences.read(question, hits, trail)
        kind = expected_kind(question.text)
        for quote in answer.quotes if not answer.abstained else ():
            text = extract_short_answer(kind, quote.text, question.text)
            if text:
                evidence = tuple(hit for hit in answer.evidence if hit.node.id == quote.node)
                return replace(answer, text=text, evidence=evidence, quotes=(quote,))
        return replace(answer, text=NOT_FOUND, abstained=True)


def extract_short_answer(kind: AnswerKind, sentence: str, question: str) -> str:
    """Return the words of a sentence that best answer a question of this kind, "" if none do.

    >>> sentence = "Ada Strake (born 3 May 1834 in Saltreach) moved in 1860."
    >>> extract_short_answer("date", sentence, "When was Ada Strake born?")
    '3 May 1834'
    """
    asked = set(query_terms(question))
    in_names = {term for name, _, _ in candidate_names(question) for term in index_terms(name)}
    words = [(word.span(), set(index_terms(word.group()))) for word in _WORD.finditer(sentence)]
    anchors = [span for span, terms in words if terms & (asked - in_names)]
    anchors = anchors or [span for span, terms in words if terms & asked]
    question_words = f" {normalise_name(question)} "
    candidates = []
    for start, end in answer_spans(kind, sentence):
        text = sentence[start:end]
        if f" {normalise_name(text)} " in question_words:
            continue
        # "Professor Van Helsing" does not say what Van Helsing is, nor does a date say where.
        if kind not in _DATED and (in_names & set(index_terms(text)) or _is_date(text)):
            continue
        candidates.append((_distance((start, end), anchors), start, start - end, text))
    return min(candidates)[-1] if candidates else ""


def _is_date(text: str) -> bool:
    return any(end - start == len(text) for start, end in answer_spans("date", text))


def _distance(span: tuple[int, int], anchors: Sequence[tuple[int, int]]) -> float:
    """Return the distance of a range from the nearest word of the question; a range after the word counts as
    nearer."""
    return min(
        (
            span[0] - anchor[1] if span[0] >= anchor[1] else 1.5 * max(anchor[0] - span[1], 0)
            for anchor in anchors
        ),
        default=_FAR,
    )
