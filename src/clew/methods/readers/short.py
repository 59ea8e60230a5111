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
from clew.methods.readers.answer_kinds import AnswerKind, answer_spans, expected_kind
from clew.methods.readers.extractive import ExtractiveReader

_WORD = re.compile(r"\w+(?:['’]\w+)?")
#: Kinds whose answers may share words with the question: "3 May" with "on what day in May".
_DATED = frozenset({"date", "amount"})
#: Characters after which a sentence hardly speaks of the same thing any more.
_FAR = 80


@component("short", summary="the name, date or number in the sentence that best answers; no model")
@dataclass(frozen=True, slots=True)
class ShortReader:
    """Takes from the sentences that ``sentences`` (an extractive reader) quotes the words that answer.

    Of the names, dates or numbers of the kind that is expected and that do not name what the question names itself,
    the one nearest to the question's own words in the sentence is taken, to those that are no names where there are
    any ("mayor" rather than the town); the first sentence with one decides. Abstains where
    there is none. The rest of the answer, its evidence and quotes, is the reader's.
    """

    sentences: Reader

    @classmethod
    def build(cls, snapshot: Snapshot) -> ShortReader:
        """Return the reader of what the extractive reader quotes."""
        return cls(ExtractiveReader.build(snapshot))

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the words that answer, resting on the sentence that they are from, or abstain."""
        whole = self.sentences.read(question, hits, trail)
        kind = expected_kind(question.text)
        for quote in whole.quotes if not whole.abstained else ():
            found = extract_short_answer(kind, quote.text, question.text)
            if found:
                evidence = tuple(hit for hit in whole.evidence if hit.node.id == quote.node)
                return replace(whole, text=found, evidence=evidence, quotes=(quote,))
        return replace(whole, text=NOT_FOUND, abstained=True)


def extract_short_answer(kind: AnswerKind, sentence: str, question: str) -> str:
    """Return the words of a sentence that best answer a question of this kind, "" where none do.

    >>> sentence = "Ada Strake (born 3 May 1834 in Saltreach) moved in 1860."
    >>> extract_short_answer("date", sentence, "When was Ada Strake born?")
    '3 May 1834'
    """
    asked = set(query_terms(question))
    named = {term for name, _, _ in candidate_names(question) for term in index_terms(name)}
    words = [(word.span(), set(index_terms(word.group()))) for word in _WORD.finditer(sentence)]
    anchors = [span for span, own in words if own & (asked - named)] or [
        span for span, own in words if own & asked
    ]
    whole = f" {normalise_name(question)} "
    found = []
    for start, end in answer_spans(kind, sentence):
        text = sentence[start:end]
        # "Professor Van Helsing" is no answer to what Van Helsing is, nor a date to where.
        if f" {normalise_name(text)} " in whole or (
            kind not in _DATED and (named & set(index_terms(text)) or _is_date(text))
        ):
            continue
        found.append((_distance((start, end), anchors), start, start - end, text))
    return min(found)[-1] if found else ""


def _is_date(text: str) -> bool:
    return any(end - start == len(text) for start, end in answer_spans("date", text))


def _distance(span: tuple[int, int], anchors: Sequence[tuple[int, int]]) -> float:
    """Return how far a span is from the nearest words of the question; what follows them counts as nearer."""
    return min((_between(span, anchor) for anchor in anchors), default=_FAR)


def _between(span: tuple[int, int], anchor: tuple[int, int]) -> float:
    return span[0] - anchor[1] if span[0] >= anchor[1] else 1.5 * max(anchor[0] - span[1], 0)
