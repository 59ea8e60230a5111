"""The reader without a language model: the words that answer, marked by the trained reader, each with its quote.

A question is tried in this order. The tables among the passages are asked
(:mod:`clew.methods.readers.table_answers`); a reading of them that is to be stated is the answer. A question of
several hops is read hop by hop along the evidence (:mod:`clew.methods.readers.composition`). Any other question,
and one of several hops that cannot be completed, is read as a whole over the best passages together. The
likeliest sentence, list or row (:mod:`clew.questions.sentences`) is then the answer, or the words that the model
marks in it, unless a reading of a table is likelier.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from clew.core.arrays import Floats
from clew.core.cell_values import read_cell
from clew.core.component import Resources, component
from clew.core.config import DEFAULT_READER
from clew.core.languages import foreign_language, language_name
from clew.core.protocols import Snapshot, SpanModel, Trail
from clew.core.text import fold_name
from clew.core.trail import SpanReadStep, TrailRecorder
from clew.core.types import (
    QUOTED_FROM,
    ROW,
    SHOWN_FROM,
    STATED_FROM,
    Alternative,
    Answer,
    Hit,
    LanguageStep,
    Node,
    Question,
    Quote,
    Span,
)
from clew.core.values import (
    EITHER,
    POLAR,
    find_dates,
    has_certain_support,
    parse_date,
    parse_number,
)
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.composition import Composition, compose_answer, compose_question
from clew.methods.readers.extractive import ExtractiveReader
from clew.methods.readers.passages import (
    passage_of_hit,
    select_hits_about,
    sort_by_words,
    weigh_terms,
)
from clew.methods.readers.quotes import find_supporting_quote, quote_around
from clew.methods.readers.table_answers import announce_scale, answer_reading, open_table, read_reports
from clew.parse.data_tables import SCALE_NAMES
from clew.questions.sentences import (
    HITS,
    LIST,
    Mark,
    Option,
    OptionScores,
    SentenceRanker,
    measure_sentences,
    says_something,
    split_hits,
    stand_alone,
)
from clew.questions.table_reading import TableReader
from clew.retrieve.document_fields import named_subjects

#: The answer of a sub-question before, as :mod:`clew.methods.readers.composition` writes it.
_REFERENCE = re.compile(r"#(\d)")
#: Text that ends with the full stop of an abbreviation: "U.S.", "Acme Inc.".
_ABBREVIATION = re.compile(r"(?:\b[A-Za-z]|\b(?:Inc|Ltd|Co|Corp|Jr|Sr|St|No))\.$")
#: The first name of a firm, and what follows it.
_CAPITALISED_END = re.compile(r"(?:^|\s)[A-Z][\w.’'-]*$")
_PARTNER = re.compile(r" & [A-Z][\w.’'-]*")
#: A longer question is no question of the kinds that rules know, and their patterns take the square of its length.
RULED_LENGTH = 600
#: From these probabilities on words are marked in a sentence, and they alone are the answer.
_SURE_MARK, _SURE_WORDS = 0.5, 0.9
#: Sentences are possible answers from this probability of the first on: where it is less than twice as much, one of
#: the three that are shown answers about half of the questions.
_POSSIBLE = 0.06
#: The highest probability of a sentence where yes or no is asked and is not sure. Set by hand: it is to be shown.
_MOST_UNSAID = QUOTED_FROM - 0.01
#: A question asks through another thing if it does so with this probability.
_ASKS_THROUGH = 0.5
#: A hop of a composed question has an answer from this confidence on.
_SURE_HOP = 0.25


def read_hits(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that are read: the first ones with a letter; the number of a page is none."""
    return [hit for hit in hits if any(map(str.isalpha, hit.node.text))][:HITS]


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer that was read: its text, its confidence (0 to 1), the hit that it stands in, and its quote."""

    text: str
    confidence: float
    hit: Hit
    quote: Quote


@component("span", summary="the words that answer, marked by clew's trained reader; no language model")
@dataclass(frozen=True, slots=True)
class SpanAnswerReader:
    """Reads with a trained reader (``model``: ``clew:reader`` or ``onnx:FOLDER``).

    ``passages`` hits are read together for a whole question: half of them the best, half those that share most words
    with it. For each hop of a composed question, ``hop_passages`` are read that name what the hop asks about. The
    answer abstains if its confidence, the estimated probability that it is right, is below ``min_confidence``. The
    score of a span in the r-th passage (from 0) is lowered by ``rank_weight`` times log(1 + r). Up to
    ``alternatives`` other answers are listed. ``compose`` no reads every question as a whole; ``calculate`` no never
    asks the tables among the passages (:mod:`clew.methods.readers.table_answers`).
    """

    model: SpanModel
    ranker: SentenceRanker
    tables: TableReader
    passages: int = 6
    hop_passages: int = 3
    min_confidence: float = _POSSIBLE
    alternatives: int = 4
    rank_weight: float = 0.5
    compose: bool = True
    calculate: bool = True
    snapshot: Snapshot | None = None

    @classmethod
    def build(  # noqa: PLR0913 (the options of the recipe)
        cls,
        resources: Resources,
        model: str = DEFAULT_READER,
        passages: int = 6,
        hop_passages: int = 3,
        min_confidence: float = _POSSIBLE,
        alternatives: int = 4,
        rank_weight: float = 0.5,
        compose: bool = True,
        calculate: bool = True,
    ) -> SpanAnswerReader:
        """Return the reader of a name. Raises UsageError, NotFound, ModelError."""
        span_model = resources.tools.span_model(model)
        return cls(
            span_model,
            SentenceRanker(resources.tools.plan_judge()),
            TableReader(resources.tools.plan_judge(), "report"),
            passages,
            hop_passages,
            min_confidence,
            alternatives,
            rank_weight,
            compose,
            calculate,
            resources.snapshot,
        )

    def read_steps(self) -> SpanAnswerReader:
        """Return the reader for the steps of a question, none of which asks for something through another thing."""
        return replace(self, ranker=replace(self.ranker, in_hops=False))

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the words that answer with their quote, or abstain.

        The model is trained on English. A question in another language gets whole sentences instead, and the trail
        says so.
        """
        if self.snapshot is not None and (language := foreign_language(question.text, self.snapshot)):
            name = language_name(language)
            trail.add(
                LanguageStep(
                    language,
                    f"the question is in {name}: clew's reader, calculations, and questions about pages, tables and "
                    "graphs work in English, so whole sentences are quoted; a language model (--llm) reads more",
                )
            )
            return ExtractiveReader.build(self.snapshot).read(question, hits, trail)
        is_short = len(question.text) <= RULED_LENGTH
        question = replace(question, text=_write_days(question.text, hits))
        composition = compose_question(question.text) if self.compose and is_short else None
        compares_documents = composition is not None and self._compares_documents(question.text, composition)
        # No table has both of two things that documents are about.
        cell = None if compares_documents else self._ask_tables(question.text, hits, trail)
        if cell is not None and (cell.confidence or 0.0) >= STATED_FROM:
            return cell
        if composition is not None and (answer := self._answer_by_hops(question, composition, hits, trail)):
            return answer
        answer = self._answer_whole(question.text, hits, trail)
        if cell is not None and _stands_before(cell, answer):
            answer = cell if answer.abstained else replace(cell, others=(answer, *cell.others))
        return answer

    def _ask_tables(self, question: str, hits: Sequence[Hit], trail: Trail) -> Answer | None:
        """Return the answer of the likeliest reading over the tables among hits, with those of the next ones; None
        where none is likely."""
        if self.snapshot is None or not self.calculate:
            return None
        answers: list[Answer] = []
        for reading in read_reports(question, hits, self.snapshot, self.tables):
            if reading.probability >= max(self.min_confidence, SHOWN_FROM):
                recorder = trail if not answers else TrailRecorder()
                answer = answer_reading(question, reading, self.snapshot, recorder)
                answers.append(replace(answer, reader="span"))
        return replace(answers[0], others=tuple(answers[1:])) if answers else None

    def _compares_documents(self, question: str, composition: Composition) -> bool:
        """Return whether a question compares two things that documents are about; no table of either has both."""
        subjects = {} if self.snapshot is None else named_subjects(question, self.snapshot)
        return composition.ending == "compare" and all(name in subjects for name in composition.names)

    def _answer_whole(self, question: str, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the words that answer in the likeliest sentence, where the reader marks some, else the sentence."""
        readings = self._rank_sentences(question, hits, trail)
        best = readings[0] if readings else None
        others = [Alternative(reading.text, reading.confidence, reading.quote) for reading in readings]
        if best is None or best.confidence < self.min_confidence:
            return Answer(
                NOT_FOUND,
                tuple(dict.fromkeys(reading.hit for reading in readings[:5])),
                abstained=True,
                reader="span",
                confidence=0.0 if best is None else best.confidence,
                alternatives=tuple(others[: self.alternatives]),
            )
        evidence = dict.fromkeys(reading.hit for reading in readings[: self.alternatives + 1])
        return Answer(
            best.text + self._scale_word(best, hits),
            tuple(evidence),
            (best.quote,),
            reader="span",
            confidence=best.confidence,
            alternatives=tuple(others[1 : self.alternatives + 1]),
        )

    def _rank_sentences(self, question: str, hits: Sequence[Hit], trail: Trail) -> list[Reading]:
        """Return the readings of the sentences that are likeliest to answer, the likeliest first."""
        started = time.perf_counter()
        hits = read_hits(hits)
        options, features, vector, spans = self.measure_hits(question, hits)
        ranked = self.ranker.rank(question, options, features, vector)
        nodes = [hit.node for hit in hits]
        marks = self.to_marks(spans)
        readings = []
        # What is asked through another thing is a name or a value as a rule.
        sure = _SURE_WORDS if ranked is None or ranked.through < _ASKS_THROUGH else _SURE_MARK
        for option, probability in ranked.apart(self.alternatives + 1) if ranked else ():
            reading = self._read_option(question, hits, option, marks, probability, sure)
            if has_certain_support(reading.text, [reading.hit.node], nodes):
                readings.append(reading)
        if POLAR.search(question) and not EITHER.search(question):
            readings = [self._judge_verdict(question, reading) for reading in readings]
        is_likely = bool(readings) and readings[0].confidence >= self.min_confidence
        trail.add(
            SpanReadStep(
                "span",
                self.model.name,
                question,
                {reading.text: round(reading.confidence, 3) for reading in readings},
                "answered" if is_likely else "not found",
                hits=tuple(dict.fromkeys(reading.hit for reading in readings[:1])) if is_likely else (),
                seconds=time.perf_counter() - started,
            )
        )
        return readings

    def measure_hits(
        self, question: str, hits: Sequence[Hit]
    ) -> tuple[list[Option], Floats, Floats, list[Span]]:
        """Return the sentences of hits that may answer, their features, the question's vector, and the spans that the
        model marks."""
        options = split_hits(hits)
        passages = [passage_of_hit(hit, question) for hit in hits]
        places = [(option.place, option.start, option.end) for option in options]
        marked, scores = self.model.read_options(question, passages, places, 3 * self.alternatives)
        nodes = [hit.node for hit in hits]
        spans = [_trim_span(span, nodes) for span in marked]
        weigh = partial(weigh_terms, None if self.snapshot is None else self.snapshot.postings("text"))

        def read_alone(numbers: Sequence[int]) -> list[float]:
            chosen = [options[number] for number in numbers]
            parts = [
                stand_alone(passages[each.place].title, hits[each.place].node.text, each.start, each.end)
                for each in chosen
            ]
            return self.model.read_alone(question, parts)

        read = OptionScores(self.to_marks(spans), scores, read_alone)
        measured = measure_sentences(question, hits, options, self.ranker.judge.encoder, weigh, read)
        return options, *measured, spans

    def to_marks(self, spans: Sequence[Span]) -> list[Mark]:
        """Return what spans mark in texts."""
        return [
            Mark(span.passage, span.start, span.end, self._confidence_of(span))
            for span in spans
            if span.passage >= 0 and span.kind == "text" and says_something(span.text)
        ]

    def _read_option(
        self,
        question: str,
        hits: Sequence[Hit],
        option: Option,
        marks: Sequence[Mark],
        probability: float,
        sure: float,
    ) -> Reading:
        """Return the reading of an option that answers with ``probability``: the words marked in it, where these are
        all that is asked for with the probability ``sure`` or more, else all of its words; a whole row says too
        little. Where it is likely that the marked words are what is asked, the quote says so."""
        hit = hits[option.place]
        node, whole = hit.node, (option.start, option.end)
        words = node.text[option.start : option.end]
        quote, chance = Quote(node.id, words, whole), 0.0
        chosen = self.ranker.choose_mark(hits, option, marks)
        if chosen is not None and chosen[1] >= _SURE_MARK:
            mark, chance = chosen
            text, place = node.text[mark.start : mark.end], (mark.start, mark.end)
            quote = replace(quote, answer=place)
            is_enough = chance >= sure and not probability * chance < QUOTED_FROM <= probability
            if option.kind == ROW or is_enough:
                if option.kind != LIST:
                    quote = quote_around(node, Span(text, "text", option.place, *place, 0.0), question)
                return Reading(text, probability * chance, hit, quote)
        text = words if option.kind == LIST else " ".join(words.split()).removeprefix("- ")
        return Reading(text, probability, hit, quote)

    def _judge_verdict(self, question: str, reading: Reading) -> Reading:
        """Return a reading of a question for yes or no as likely as its verdict. That is its answer where it is as
        sure as what is computed; else the sentence is shown as possible."""
        verdict, chance = self.ranker.judge_verdict(question, reading.quote.text)
        judged = replace(reading, confidence=chance * reading.confidence)
        if judged.confidence < STATED_FROM:
            return replace(judged, confidence=min(judged.confidence, _MOST_UNSAID))
        return replace(judged, text=verdict.capitalize(), quote=replace(reading.quote, answer=None, boxes=()))

    def _confidence_of(self, span: Span) -> float:
        return self.model.confidence(span.score - self.rank_weight * math.log1p(max(span.passage, 0)))

    def _scale_word(self, reading: Reading, hits: Sequence[Hit]) -> str:
        """Return the scale of a number that was read in a table's row, in words: " million"; "" for none."""
        node = reading.hit.node
        if self.snapshot is None or not self.calculate or node.kind != ROW or node.parent is None:
            return ""
        if read_cell(reading.text).kind != "number":
            return ""
        table = announce_scale(open_table(node.parent, "table", self.snapshot), hits)
        row = next((row for row in table.rows if row.id == node.id), None)
        if row is None or reading.text.strip() not in row.cells[1:]:
            return ""
        scale = table.cell(row, row.cells.index(reading.text.strip(), 1)).scale
        return f" {word}" if (word := SCALE_NAMES.get(scale, "")) else ""

    def _answer_by_hops(
        self, whole: Question, composition: Composition, hits: Sequence[Hit], trail: Trail
    ) -> Answer | None:
        """Return the answer composed of the readings of all sub-questions, None if one of them is not found."""
        readings: list[Reading] = []
        for part in composition.parts:
            values = [reading.text for reading in readings]
            asked, about = (_fill_references(text, values) for text in (part.text, part.about))
            if about:
                chosen = select_hits_about(about, hits)[: self.hop_passages]
                contexts: list[tuple[int, ...]] = [(number,) for number in range(len(chosen))]
            else:
                chosen = sort_by_words(asked, hits)[: self.passages]
                contexts = [tuple(range(len(chosen)))]
            candidates = [
                reading
                for reading in self._read_passages(asked, chosen, contexts, trail)
                if fold_name(reading.text) != fold_name(about)
            ]
            if not candidates or candidates[0].confidence < _SURE_HOP:
                return None
            readings.append(candidates[0])
        text = compose_answer(whole.text, composition, [reading.text for reading in readings])
        if not text:
            return None
        return Answer(
            text.capitalize() if text in {"yes", "no"} else text,
            tuple(dict.fromkeys(reading.hit for reading in readings)),
            tuple(dict.fromkeys(reading.quote for reading in readings)),
            reader="span",
            confidence=min(reading.confidence for reading in readings),
            formula=_comparison(composition, readings),
        )

    def _read_passages(
        self,
        question: str,
        hits: Sequence[Hit],
        contexts: Sequence[tuple[int, ...]],
        trail: Trail,
    ) -> list[Reading]:
        """Return the readings of a question, best first, each text once. ``contexts`` are groups of positions in
        ``hits`` that are read together."""
        started = time.perf_counter()
        passages = [passage_of_hit(hit, question) for hit in hits]
        nodes = [hit.node for hit in hits]
        spans_by_context = self.model.read(
            question,
            [[passages[position] for position in context] for context in contexts],
            3 * self.alternatives,
        )
        best: dict[str, Reading] = {}
        for context, spans in zip(contexts, spans_by_context, strict=True):
            group = [hits[position] for position in context]
            group_nodes = [hit.node for hit in group]
            adjusted = [_trim_span(span, group_nodes) for span in spans]
            for span in adjusted:
                reading = self._read_span(question, span, group)
                if not has_certain_support(reading.text, [reading.hit.node], nodes):
                    continue
                known = best.get(fold_name(reading.text))
                if known is None or reading.confidence > known.confidence:
                    best[fold_name(reading.text)] = reading
        readings = _drop_overlaps(sorted(best.values(), key=lambda reading: -reading.confidence))
        is_found = bool(readings) and readings[0].confidence >= self.min_confidence
        trail.add(
            SpanReadStep(
                "span",
                self.model.name,
                question,
                {reading.text: round(reading.confidence, 3) for reading in readings[: self.alternatives + 1]},
                "answered" if is_found else "not found",
                hits=tuple(dict.fromkeys(reading.hit for reading in readings[:1])) if is_found else (),
                seconds=time.perf_counter() - started,
            )
        )
        return readings

    def _read_span(self, question: str, span: Span, hits: Sequence[Hit]) -> Reading:
        confidence = self.model.confidence(span.score - self.rank_weight * math.log1p(max(span.passage, 0)))
        if span.passage < 0:
            # "yes" and "no" stand nowhere: their quote is the sentence that shares most words with the question.
            hit, quote = find_supporting_quote(question, hits)
            return Reading(span.text.capitalize(), confidence, hit, quote)
        hit = hits[span.passage]
        return Reading(span.text, confidence, hit, quote_around(hit.node, span, question))


def _stands_before(cell: Answer, answer: Answer) -> bool:
    """Return whether the reading of a table comes before that of a sentence: where it is likelier, and before a row
    of a table that has other words. A row says what is in it, not what is asked of it, a sum or a difference."""
    is_row = bool(answer.evidence) and answer.evidence[0].node.kind == ROW
    is_other = fold_name(answer.text) != fold_name(cell.text)
    return answer.abstained or (is_row and is_other) or (cell.confidence or 0.0) >= (answer.confidence or 0.0)


def _comparison(composition: Composition, readings: Sequence[Reading]) -> str:
    """Return the comparison of two numbers that an answer follows from, as "$21 million > $4 million"; "" for any
    other answer."""
    if composition.ending != "compare":
        return ""
    first, second = (readings[side - 1].text for side in composition.sides)
    numbers = parse_number(first), parse_number(second)
    if numbers[0] is None or numbers[1] is None or any(map(parse_date, (first, second))):
        return ""
    sign = ">" if numbers[0] > numbers[1] else "<" if numbers[0] < numbers[1] else "="
    return f"{first} {sign} {second}"


def _write_days(question: str, hits: Sequence[Hit]) -> str:
    """Return a question whose days are written as the hits write them, "2021-03-05" for "5 March 2021": neither the
    model nor a table's cells know that they are the same."""
    for date, start, end in reversed(find_dates(question)):
        written = question[start:end]
        if not date.day or any(written in hit.node.text for hit in hits):
            continue
        places = ((hit.node.text, place) for hit in hits for place in find_dates(hit.node.text))
        other = next((text[first:last] for text, (day, first, last) in places if day == date), written)
        question = f"{question[:start]}{other}{question[end:]}"
    return question


def _drop_overlaps(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings without those that overlap a better one in the same node."""
    chosen: list[Reading] = []
    for reading in readings:
        span = reading.quote.answer
        if span is None or not any(
            other.quote.node == reading.quote.node
            and other.quote.answer is not None
            and other.quote.answer[0] < span[1]
            and span[0] < other.quote.answer[1]
            for other in chosen
        ):
            chosen.append(reading)
    return chosen


def _trim_span(span: Span, nodes: Sequence[Node]) -> Span:
    """Return a span of one of the ``nodes`` without the punctuation that ends its sentence, in a row cut to the first
    of its cells, and with the whole of a firm's name, "Strake & Loam", and the signs of a number, "$11,000" and
    "5%". "Yes" and "no" stand nowhere."""
    if span.kind != "text" or span.passage < 0:
        return span
    node, text, start = nodes[span.passage], span.text, span.start
    if text[:1].isdigit() and node.text[max(start - 1, 0) : start] in {"$", "€", "£", "¥"}:
        text, start = node.text[start - 1] + text, start - 1
    if text[-1:].isdigit() and node.text.startswith("%", span.end):
        text += "%"
    if _CAPITALISED_END.search(text) and (partner := _PARTNER.match(node.text, span.end)):
        text += partner.group()
    if node.kind == ROW and (end := text.find("; ")) > 0:
        text = text[:end]
    # The full stop of an abbreviation belongs to the name.
    if not _ABBREVIATION.search(text):
        text = text.rstrip(" .,;:")
    if text.endswith(")") and "(" not in text:
        text = text[:-1]
    return replace(span, text=text, start=start, end=start + len(text)) if text else span


def _fill_references(text: str, values: Sequence[str]) -> str:
    return _REFERENCE.sub(lambda match: values[int(match[1]) - 1], text)
