"""The reader without a language model: the words that answer, marked by the trained reader, each with its quote.

A question of several hops is read hop by hop along the evidence (:mod:`clew.methods.readers.composition`); any other
question, and one of several hops that cannot be completed, is read as a whole over the best passages together.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath

from clew.core.cell_values import read_cell
from clew.core.component import Resources, component
from clew.core.config import DEFAULT_READER
from clew.core.languages import (
    ENGLISH,
    detect_language,
    document_languages,
    language_name,
    question_language,
)
from clew.core.protocols import Snapshot, SpanModel, Trail
from clew.core.text import (
    candidate_names,
    fold_name,
    is_stop_term,
    query_terms,
    sentence_spans,
    title_names,
)
from clew.core.trail import CalculateStep, SpanReadStep
from clew.core.types import (
    PASSAGE,
    ROW,
    TABLE,
    Alternative,
    Answer,
    Hit,
    LanguageStep,
    Node,
    Question,
    Quote,
    ReaderPassage,
    Span,
)
from clew.core.values import (
    EITHER,
    POLAR,
    find_respective_value,
    has_certain_support,
    mentions_name,
    parse_date,
    remove_names,
)
from clew.methods.readers import NOT_FOUND
from clew.methods.readers.calculation import (
    MAX_ROWS,
    PART_OF_YEAR,
    Calculation,
    TableCalculator,
    find_operation,
    find_periods,
)
from clew.methods.readers.cell_quotes import cell_boxes, quote_cell
from clew.methods.readers.composition import Composition, compose_answer, compose_question
from clew.methods.readers.extractive import ExtractiveReader, contains_answer, expected_kind
from clew.methods.readers.line_items import asks_value, document_lines
from clew.methods.readers.named_ratios import answer_ratio, find_common_line, parse_ratio_question
from clew.methods.readers.office_holders import (
    ACRONYMS,
    NO_DEPUTY,
    find_holder,
    parse_office_question,
    same_name,
)
from clew.methods.readers.year_series import answer_series, parse_series_question
from clew.parse.data_tables import table_from_node
from clew.retrieve.document_fields import named_subjects

#: A quote longer than this many characters is cut around the answer.
_LONG_QUOTE = 420
#: At most this many characters of a passage are read, those around the question's words.
_READ_CHARACTERS = 2400
_REFERENCE = re.compile(r"#(\d)")
_ABBREVIATION = re.compile(r"(?:\b[A-Za-z]|\b(?:Inc|Ltd|Co|Corp|Jr|Sr|St|No))\.$")
#: A question is answered from the cells of a table from this fit of its words on. The words around a looked-up cell
#: have to fit better; which periods a table has hardly depends on them.
_MIN_FIT, _NEEDED_FIT = 0.35, {"lookup": 0.5, "direction": 0.5, "periods": 0.2}
_WHOLE_FIT = 0.99
#: At most so many tables are tried; the fit of each after the first is lowered by so much more.
_MAX_TABLES, _RANK_LOSS = 5, 0.05
#: Of tables that fit nearly as well, a consolidated one is preferred to others by this factor.
_CONSOLIDATED, _PART_WORTH = re.compile(r"\bconsolidated\b", re.IGNORECASE), 0.85
#: How much less sure an answer is where no passage that was read mentions any name of the question: of 14 such
#: questions of reading/dev.jsonl 2 were right, at a mean confidence of 0.4.
_MISSING_NAMES = 0.4
_NAME_PARTS = re.compile(r" (?:and|or|of|the) ")
#: Names end with a word in small letters but for its first; at least so many passages are read together.
_PROPER = re.compile(r"\b[A-Z][^\W\d_A-Z]{2,}$")
_READ_TOGETHER = 3
#: A question of at most so many words asks for one thing.
ONE_HOP = 8
_MONTHS = frozenset(
    "January February March April May June July August September October November December".split()
)
#: How sure the holder of an office is who is named beside it in several mentions, and in one (set by hand).
_OFTEN_NAMED, _NAMED_ONCE = 0.8, 0.6
#: What a document calls those whom it is about.
_SELF = frozenset(query_terms("company corporation registrant firm group serve served act acted"))
#: The things that a question counts, whose name 92 of 100 texts that answer it have (reading/train.jsonl), and how
#: much less sure an answer from a text without it is. People are counted under many names.
_COUNTED = re.compile(
    r"\bhow many (?:[\w-]+ ){0,3}?(?P<noun>[\w-]{3,})"
    r"(?= (?:did|do|does|has|have|had|is|are|was|were|will|can|could|would|may)\b)",
    re.IGNORECASE,
)
_ANYBODY = frozenset(query_terms("people persons individuals employees times others many total"))
_UNCOUNTED = 0.6
#: "What were its sales in 2022?" asks for an amount.
_AMOUNT_OF = re.compile(
    r"^what (?:is|are|was|were)\b.*\b(?:revenues?|sales|income|earnings|expenses?|costs?|assets|liabilities|debt"
    r"|loss(?:es)?|profits?|dividends?|goodwill|borrowings?|expenditures?|cash flows?|fees?|salary|budget|deficit"
    r"|surplus)\b.*\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_PER_SHARE = re.compile(r"\bper (?:\w+ )?share\b", re.IGNORECASE)
_CALENDAR_YEAR = re.compile(r"(?<![\d,.$])(?:19|20)\d\d(?![\d,])")
#: A person's name before their office.
_PERSON_AND_OFFICE = re.compile(
    r"(?P<name>[A-Z][\w.’'-]*(?: [A-Z][\w.’'-]*){1,4}), (?=(?:[\w&-]+,? ){0,6}(?i:officer|director|president|chair\w*"
    r"|secretary|treasurer|controller|counsel|manager|partner|founder|chief|head|minister|professor)\b)"
)
#: At most so many cells of a formula are quoted.
_MAX_OPERANDS = 12
#: An answer that abstains names candidates of at least this confidence as the nearest.
_WORTH_NAMING = 0.05


def foreign_language(question: str, snapshot: Snapshot) -> str:
    """Return the language of a question that is not in English, "" for one that is or may be.

    A short question in Latin letters is taken for another language only where documents are written in that.
    """
    languages = document_languages(snapshot)
    if languages == (ENGLISH,):
        language = detect_language(question)
    else:
        language = question_language(question, list(dict.fromkeys((*languages, ENGLISH))))
    return "" if language == ENGLISH else language


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
    computes with the cells of tables (:mod:`clew.methods.readers.calculation`).
    """

    model: SpanModel
    passages: int = 6
    hop_passages: int = 3
    min_confidence: float = 0.25
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
        min_confidence: float = 0.25,
        alternatives: int = 4,
        rank_weight: float = 0.5,
        compose: bool = True,
        calculate: bool = True,
    ) -> SpanAnswerReader:
        """Return the reader of a name. Raises UsageError, NotFound, ModelError."""
        span_model = resources.tools.span_model(model)
        return cls(
            span_model,
            passages,
            hop_passages,
            min_confidence,
            alternatives,
            rank_weight,
            compose,
            calculate,
            resources.snapshot,
        )

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
        is_alone = len(question.scope.documents or ()) == 1
        if answer := self._answer_by_calculation(question.text, hits, trail, is_alone):
            return _refuse_other_ratio(question.text, answer)
        if answer := self._answer_office(question, hits, trail):
            return answer
        composition = compose_question(question.text) if self.compose else None
        if composition is not None and (
            answer := self._answer_by_hops(question.text, composition, hits, trail)
        ):
            return _refuse_unmentioned(question.text, answer, hits)
        answer = self._answer_whole(question.text, self._choose_passages(question.text, hits), trail)
        answer = _refuse_unmentioned(question.text, answer, hits)
        return _refuse_other_ratio(question.text, _refuse_other_years(question.text, answer))

    def _choose_passages(self, question: str, hits: Sequence[Hit]) -> list[Hit]:
        """Return the hits that are read together: half of them the best ones, half those with most of the question's
        words among the others. A walk may rank what leads on from its first passage above what answers.

        A passage without a letter, such as the number of a page, is not read.
        """
        hits = [hit for hit in hits if any(map(str.isalpha, hit.node.text))]
        best = list(hits[: (self.passages + 1) // 2])
        others = [hit for hit in hits[: 4 * self.passages] if hit not in best]
        return [*best, *_sort_by_words(question, others)[: self.passages - len(best)]]

    def _answer_whole(self, question: str, hits: Sequence[Hit], trail: Trail) -> Answer:
        readings = self._read(question, hits, [tuple(range(len(hits)))], trail, self.min_confidence, True)
        best = readings[0] if readings else None
        others = tuple(
            Alternative(reading.text, reading.confidence, reading.quote)
            for reading in readings[1 : self.alternatives + 1]
        )
        if best is None or best.confidence < self.min_confidence:
            nearest = tuple(
                Alternative(reading.text, reading.confidence, reading.quote)
                for reading in readings[: self.alternatives]
                if reading.confidence >= _WORTH_NAMING
            )
            return Answer(
                NOT_FOUND,
                tuple(dict.fromkeys(reading.hit for reading in readings[:5])),
                abstained=True,
                reader="span",
                confidence=0.0 if best is None else best.confidence,
                alternatives=nearest,
            )
        evidence = dict.fromkeys(reading.hit for reading in readings[: self.alternatives + 1])
        return Answer(
            best.text + self._scale_word(best, hits),
            tuple(evidence),
            (best.quote,),
            reader="span",
            confidence=best.confidence,
            alternatives=others,
        )

    def _answer_office(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer | None:
        """Return who holds the office that a question asks for, by those who are named beside it in the documents
        about whose office it is; None where nobody is, or several are."""
        asked = parse_office_question(question.text)
        if asked is None or self.snapshot is None:
            return None
        started = time.perf_counter()
        subjects = named_subjects(question.text, self.snapshot)
        about = {key for name, keys in subjects.items() if same_name(name, asked.whose) for key in keys}
        documents = about or {hit.node.document for hit in hits[: self.passages]}
        if not asked.whose and len(documents) > 1:
            return None
        holder = find_holder(asked, documents, self.snapshot, is_subject=bool(about) or not asked.whose)
        if holder is None:
            return None
        hit = next((hit for hit in hits if hit.node.id == holder.node.id), None)
        hit = hit or Hit(holder.node, hits[0].score if hits else 0.0, (holder.node.id,))
        span = Span(holder.name, "text", 0, holder.start, holder.end, 0.0)
        confidence = _OFTEN_NAMED if holder.mentions > 1 else _NAMED_ONCE
        trail.add(
            SpanReadStep(
                "span",
                "names beside the office",
                question.text,
                {holder.name: confidence},
                "answered",
                hits=(hit,),
                seconds=time.perf_counter() - started,
            )
        )
        quote = quote_around(holder.node, span, question.text)
        return Answer(holder.name, (hit,), (quote,), reader="span", confidence=confidence)

    def _scale_word(self, reading: Reading, hits: Sequence[Hit]) -> str:
        """Return the scale of a number that was read in a table's row, in words: " million"; "" for none."""
        node = reading.hit.node
        if self.snapshot is None or not self.calculate or node.kind != ROW or node.parent is None:
            return ""
        if read_cell(reading.text).kind != "number":
            return ""
        calculator = open_calculator(node.parent, hits, self.snapshot)
        return "" if calculator is None else calculator.scale_word(node.id, reading.text)

    def _answer_by_calculation(
        self, question: str, hits: Sequence[Hit], trail: Trail, is_alone: bool
    ) -> Answer | None:
        """Return the answer that the cells of a table give, None where no table fits the question well enough."""
        calculated = self._calculate(question, hits, trail, is_alone)
        if calculated is None:
            return None
        calculation, cells = calculated
        return Answer(
            calculation.text,
            tuple(dict.fromkeys(hit for hit, _ in cells)),
            tuple(dict.fromkeys(quote for _, quote in cells)),
            reader="span",
            confidence=estimate_probability(calculation),
            values=calculation.values if len(calculation.values) > 1 else (),
            formula=calculation.formula,
        )

    def _calculate(
        self, question: str, hits: Sequence[Hit], trail: Trail, is_alone: bool = False
    ) -> tuple[Calculation, list[tuple[Hit, Quote]]] | None:
        """Return what the cells of a table give, and these cells as quotes; None where no table fits well enough.
        ``is_alone``: one document alone is asked."""
        if self.snapshot is None or not self.calculate:
            return None
        started = time.perf_counter()
        calculation, is_over_years = _calculate_from_lines(question, hits, self.snapshot)
        if calculation is None and not is_over_years:
            calculation = calculate_from_hits(question, hits, self.snapshot, is_alone)
        if calculation is None:
            return None
        needed = _NEEDED_FIT.get(calculation.operation, _MIN_FIT)
        fits = (
            calculation.confidence >= needed
            and not calculation.table.table.headers_uncertain
            # "How many" asks for a number: the cell that fits its words may hold the name of a country.
            and (expected_kind(question) != "amount" or any(map(str.isdigit, calculation.text)))
            and not is_impossible(question, calculation.text)
            and not (calculation.operation == "lookup" and _repeats_question(calculation.text, question))
        )
        operands = dict.fromkeys(
            (operand.row.id, operand.text, operand.column) for operand in calculation.operands
        )
        chosen = list(operands)[:_MAX_OPERANDS] if fits else []
        nodes = self.snapshot.nodes(self.snapshot.rows([id for id, _, _ in chosen])) if chosen else []
        subjects = named_subjects(question, self.snapshot) if fits else {}
        fits = fits and all(mentions_event(question, node, subjects) for node in nodes)
        cells = [
            (_hit_of(node, hits), quote_cell(node, text, column))
            for node, (_, text, column) in zip(nodes if fits else (), chosen if fits else (), strict=True)
        ]
        trail.add(
            CalculateStep(
                calculation.operation,
                calculation.table.id,
                calculation.text,
                calculation.formula,
                round(calculation.confidence, 3),
                "answered" if fits else "not sure enough",
                hits=tuple(hit for hit, _ in cells[:1]),
                seconds=time.perf_counter() - started,
            )
        )
        return (calculation, cells) if fits else None

    def _answer_by_hops(
        self, question: str, composition: Composition, hits: Sequence[Hit], trail: Trail
    ) -> Answer | None:
        """Return the answer composed of the readings of all sub-questions, None if one of them is not found."""
        readings: list[Reading] = []
        for part in composition.parts:
            values = [reading.text for reading in readings]
            asked, about = (_fill_references(text, values) for text in (part.text, part.about))
            if not about and (calculated := self._calculate(asked, hits, trail)) and calculated[1]:
                calculation, ((hit, quote), *_) = calculated
                readings.append(Reading(calculation.text, estimate_probability(calculation), hit, quote))
                continue
            if about:
                chosen = _hits_about(about, hits)[: self.hop_passages]
                contexts: list[tuple[int, ...]] = [(number,) for number in range(len(chosen))]
            else:
                chosen = _sort_by_words(asked, hits)[: self.passages]
                contexts = [tuple(range(len(chosen)))]
            candidates = [
                reading
                for reading in self._read(asked, chosen, contexts, trail, self.min_confidence)
                if fold_name(reading.text) != fold_name(about)
            ]
            if not candidates or candidates[0].confidence < self.min_confidence:
                return None
            readings.append(candidates[0])
        text = compose_answer(question, composition, [reading.text for reading in readings])
        if not text:
            return None
        return Answer(
            text.capitalize() if text in {"yes", "no"} else text,
            tuple(dict.fromkeys(reading.hit for reading in readings)),
            tuple(dict.fromkeys(reading.quote for reading in readings)),
            reader="span",
            confidence=min(reading.confidence for reading in readings),
        )

    def _read(
        self,
        question: str,
        hits: Sequence[Hit],
        contexts: Sequence[tuple[int, ...]],
        trail: Trail,
        min_confidence: float,
        doubt_names: bool = False,
    ) -> list[Reading]:
        """Return the readings of a question, best first, each text once. ``contexts`` are groups of positions in
        ``hits`` that are read together. With ``doubt_names`` they are less sure where no hit mentions the names of
        the question; the hits of a hop were chosen by the name that it asks about."""
        started = time.perf_counter()
        subjects = {} if self.snapshot is None else named_subjects(question, self.snapshot)
        passages = [passage_of_hit(hit, question) for hit in hits]
        nodes = [hit.node for hit in hits]
        is_doubtful = doubt_names and lacks_names(question, nodes, subjects)
        spans_by_context = self.model.read(
            question,
            [[passages[position] for position in context] for context in contexts],
            3 * self.alternatives,
        )
        best: dict[str, Reading] = {}
        for context, spans in zip(contexts, spans_by_context, strict=True):
            group = [hits[position] for position in context]
            trimmed = [
                _respective_span(
                    question, _trim_span(span, group[span.passage].node), group[span.passage].node
                )
                if span.passage >= 0
                else span
                for span in spans
            ]
            for span in _fitting_spans(question, trimmed, group):
                reading = self._reading(question, span, group)
                counted = 1.0 if mentions_counted(question, reading.hit.node) else _UNCOUNTED
                is_apart = doubt_names and stands_apart(question, reading.hit.node, nodes, subjects)
                share = _MISSING_NAMES if is_doubtful or is_apart else 1.0
                reading = replace(reading, confidence=reading.confidence * share * counted)
                if not has_certain_support(reading.text, [reading.hit.node], [hit.node for hit in hits]):
                    continue
                if _repeats_question(reading.text, question) or not is_about(subjects, reading.hit.node):
                    continue
                if not mentions_event(question, reading.hit.node, subjects):
                    continue
                known = best.get(fold_name(reading.text))
                if known is None or reading.confidence > known.confidence:
                    best[fold_name(reading.text)] = reading
        readings = _drop_overlaps(sorted(best.values(), key=lambda reading: -reading.confidence))
        is_found = bool(readings) and readings[0].confidence >= min_confidence
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

    def _reading(self, question: str, span: Span, hits: Sequence[Hit]) -> Reading:
        confidence = self.model.confidence(span.score - self.rank_weight * math.log1p(max(span.passage, 0)))
        if span.passage < 0:
            # "yes" and "no" stand nowhere: their quote is the sentence that shares most words with the question.
            hit, quote = _supporting_quote(question, hits)
            return Reading(span.text.capitalize(), confidence, hit, quote)
        hit = hits[span.passage]
        return Reading(span.text, confidence, hit, quote_around(hit.node, span, question))


def _refuse_unmentioned(question: str, answer: Answer, hits: Sequence[Hit]) -> Answer:
    """Return an answer that abstains in place of a yes or no about a name that no passage mentions."""
    if answer.abstained or answer.text.casefold() not in {"yes", "no"}:
        return answer
    return _abstain(answer) if unmentioned_names(question, [hit.node for hit in hits]) else answer


def _refuse_other_years(question: str, answer: Answer) -> Answer:
    """Return an answer that abstains in place of one that names none of the years among which a question chooses."""
    series = parse_series_question(question)
    chooses = series is not None and series.kind in {"highest", "rises"} and bool(series.years)
    if series is None or not chooses or answer.abstained or any(year in answer.text for year in series.years):
        return answer
    return _abstain(answer)


def _refuse_other_ratio(question: str, answer: Answer) -> Answer:
    """Return an answer that abstains in place of one to a question for a named ratio that neither computes the ratio
    nor quotes it by its name."""
    ratio = None if answer.abstained else parse_ratio_question(question)
    if ratio is None or answer.formula or any(ratio.ratio.is_named_in(quote.text) for quote in answer.quotes):
        return answer
    return _abstain(answer)


def _abstain(answer: Answer) -> Answer:
    return replace(answer, text=NOT_FOUND, abstained=True, quotes=(), alternatives=(), values=())


def _calculate_from_lines(
    question: str, hits: Sequence[Hit], snapshot: Snapshot
) -> tuple[Calculation | None, bool]:
    """Return the answer that the line items of the document give to a question over several years or for a named
    ratio, and whether no single cell can answer the question."""
    ratio = parse_ratio_question(question)
    series = parse_series_question(question) if ratio is None else None
    if ratio is None and series is None:
        return None, False
    lines = document_lines(hits, snapshot)
    answer = None
    if lines is not None and ratio is not None:
        answer = answer_ratio(ratio, lines)
    elif lines is not None and series is not None:
        own = {table.document for table in lines.tables}
        passages = (hit.node for hit in hits if hit.node.kind == PASSAGE and hit.node.document in own)
        answer = answer_series(series, lines, " ".join(node.text for node in passages))
    return answer, series is not None and series.kind not in {"highest", "average", "sum", "count"}


def calculate_from_hits(
    question: str, hits: Sequence[Hit], snapshot: Snapshot, is_alone: bool = False
) -> Calculation | None:
    """Return the best answer of the tables that are among ``hits`` or have rows among them, a better hit's first.

    Tables of documents about somebody else than the question names are left out; in those about them, their name says
    nothing about rows and columns. Of tables that fit nearly as well, consolidated ones come first.
    """
    subjects = named_subjects(question, snapshot)
    line = _named_line(question, hits, snapshot, subjects, is_alone)
    if line is not None:
        return line
    unnamed = re.sub(r"\s['’]s?(?!\w)", " ", remove_names(list(subjects), question)) if subjects else question
    ids = dict.fromkeys(
        hit.node.id if hit.node.kind == TABLE else hit.node.parent or ""
        for hit in hits
        if hit.node.kind in {TABLE, ROW} and is_about(subjects, hit.node)
    )
    best: tuple[float, Calculation] | None = None
    for place, id in enumerate([id for id in ids if id][:_MAX_TABLES]):
        calculator = open_calculator(id, hits, snapshot)
        answer = None if calculator is None else calculator.answer(unnamed)
        if answer is None:
            continue
        answer = replace(answer, confidence=answer.confidence * (1 - _RANK_LOSS * place))
        worth = answer.confidence * (1.0 if _CONSOLIDATED.search(answer.table.table.caption) else _PART_WORTH)
        if best is None or worth > best[0]:
            best = worth, answer
    return best[1] if best else None


@dataclass(frozen=True, slots=True)
class _ValueQuestion:
    """A question for the value of a line item in one year, or for its change between two. Without ``years`` it asks
    for the latest."""

    years: tuple[str, ...]
    is_change: bool
    in_percent: bool

    @property
    def years_needed(self) -> int:
        return 1 + self.is_change


def _parse_value_question(question: str) -> _ValueQuestion | None:
    """Return what a question asks of a line item; None for another question, or one about part of a year."""
    years = tuple(sorted(set(find_periods(question))))
    operation = find_operation(_PER_SHARE.sub(" ", question))
    says_change = question.lower().startswith(("by how", "how did"))
    is_change = says_change or operation in {"change", "percent change"}
    asked = _ValueQuestion(years, is_change, operation == "percent change")
    if not asks_value(question) or PART_OF_YEAR.search(question) or any(len(year) != 4 for year in years):
        return None
    if len(years) > asked.years_needed or not (is_change or operation == "lookup"):
        return None
    return asked


def _named_line(
    question: str,
    hits: Sequence[Hit],
    snapshot: Snapshot,
    subjects: Mapping[str, frozenset[str]],
    is_alone: bool,
) -> Calculation | None:
    """Return the value of the line item that a question names in full, or its change, wherever in the document its
    table stands: the hits are often tables about a part of the company. None for other questions."""
    asked = _parse_value_question(question)
    lines = None if asked is None else document_lines(hits, snapshot)
    if asked is None or lines is None:
        return None
    years = asked.years or tuple(sorted(lines.latest_years()[: asked.years_needed]))
    if len(years) != asked.years_needed:
        return None
    common = find_common_line(lines.asked_words(question), lines, years)
    chosen = (common, True) if common is not None else lines.choose(question, years)
    if chosen is None:
        return None
    item, is_certain = chosen
    # Where there is one document, or one is asked alone, a question need not name whom it is about.
    is_asked = any(item.table.document in documents for documents in subjects.values()) or (
        not subjects and (is_alone or len(snapshot.documents()) == 1)
    )
    calculator = open_calculator(item.table.id, hits, snapshot)
    if calculator is None or (subjects and not is_asked):
        return None
    places = [(item.row, item.columns[year]) for year in years]
    fit = 1.0 if is_certain and is_asked else 0.95
    if asked.is_change:
        return calculator.subtract_cells(places[1], places[0], asked.in_percent, fit)
    return calculator.read_cells(places, fit)


def is_about(subjects: Mapping[str, frozenset[str]], node: Node) -> bool:
    """Return whether a node may tell about the subjects that a question names: it is in a document about one of them,
    or mentions one. Without subjects every node may."""
    return not subjects or any(
        node.document in documents or mentions_name(name, node.text) for name, documents in subjects.items()
    )


def lacks_names(question: str, nodes: Sequence[Node], subjects: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a question names somebody or something in two words or more, and no node that may tell about its
    subjects mentions any of these names. The subjects themselves do not count, nor does the question's first word."""
    names: list[str] = []
    last_end = 0
    for _, start, end in sorted(candidate_names(question), key=lambda name: (name[1], -name[2])):
        if start >= last_end and start > 0 and " " in question[start:end]:
            names.append(question[start:end])
            last_end = end
    names = [name for name in names if not any(subject in name for subject in subjects)]
    texts = [
        " ".join((node.text, *node.headings, node.document_name))
        for node in nodes
        if is_about(subjects, node)
    ]
    return bool(names) and not any(mentions_name(name, text) for name in names for text in texts)


def stands_apart(
    question: str, node: Node, nodes: Sequence[Node], subjects: Mapping[str, frozenset[str]]
) -> bool:
    """Return whether neither a node nor any that leads to it mentions a name of the question, though others are read:
    what is spoken in Brazil is not told by a page about Serbia.

    What leads to a node is what is in the same document, and what names that document or is named by it. A name is
    mentioned by its last word. Subjects, abbreviations, months and the question's first word are no such names.
    Longer questions may go over several hops, whose passages do not name each other: there 4 of 21 right answers of
    HotpotQA and MuSiQue were doubted. Of 12,000 passages of reading/train.jsonl that answer, 83 mention no name.
    """
    names = [name for name in _proper_names(question) if not any(name in each for each in subjects)]
    if not names or len(nodes) < _READ_TOGETHER or len(question.split()) > ONE_HOP:
        return False
    text = _context_of(node)
    related = [text] + [
        _context_of(other)
        for other in nodes
        if other.document == node.document
        or any(mentions_name(title, text) for title in _titles_of(other))
        or any(mentions_name(title, _context_of(other)) for title in _titles_of(node))
    ]
    read = frozenset(term for each in related for term in query_terms(each))
    return not any(read.intersection(query_terms(name.split()[-1])) for name in names)


def _proper_names(question: str) -> list[str]:
    """Return the longest names of a question that end with a word such as "Brazil", in order."""
    names: list[str] = []
    last_end = 0
    for _, start, end in sorted(candidate_names(question), key=lambda name: (name[1], -name[2])):
        if start >= last_end and start > 0:
            names += _NAME_PARTS.split(question[start:end])
            last_end = end
    return [name for name in names if _PROPER.search(name) and name not in _MONTHS]


def _context_of(node: Node) -> str:
    return " ".join((node.text, *node.headings, node.document_name))


def _titles_of(node: Node) -> list[str]:
    return [*title_names(node.document_name), *title_names(node.document_name.partition(",")[0])]


def unmentioned_names(question: str, nodes: Sequence[Node]) -> list[str]:
    """Return the names of a question of which no node has all words, in its text, headings or document name.
    "Ada Pell and Bo Lind" are two names; the question's first word is none.

    Of 175 questions of HotpotQA and 2WikiMultihopQA that ask for yes or no, none has such a name where its own
    paragraphs are read.
    """
    names: list[str] = []
    last_end = 0
    for _, start, end in sorted(candidate_names(question), key=lambda name: (name[1], -name[2])):
        if start >= last_end and start > 0 and question[start].isalpha():
            names += _NAME_PARTS.split(question[start:end])
            last_end = end
    texts = [frozenset(query_terms(_context_of(node))) for node in nodes]
    missing = []
    for name in names:
        terms = {term for term in query_terms(name) if not is_stop_term(term)}
        if terms and not any(terms <= text for text in texts):
            missing.append(name)
    return missing


def mentions_counted(question: str, node: Node) -> bool:
    """Return whether a node mentions what a question counts: "hotels" for "How many hotels does it own?"; True for
    other questions and for people."""
    match = _COUNTED.search(question)
    words = frozenset(query_terms(match["noun"])) - _ANYBODY if match else frozenset()
    context = " ".join((node.text, *node.headings, node.document_name))
    return not words or not words.isdisjoint(query_terms(context))


_EVENT = re.compile(
    r"\b[Hh]ow many\b.+?\b(?:did|has|have|had) (?:the )?(?P<who>(?:[A-Z][\w.&-]*(?: (?=[A-Z])|\b))*)(?P<event>.*)"
)
#: Verbs that say nothing of what happened, and words of time.
_LIGHT = frozenset(
    query_terms("have had get got make be been total in on at by of end year fiscal quarter month day")
)


def mentions_event(question: str, node: Node, subjects: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a node may tell what a question counts; questions that count nothing that happened ask for no
    more than the node's words.

    "How many passengers did the Lady Annis carry?" is answered by a text that mentions her, and by no row of a table
    that only says for how many passengers she has room: a row has to have the verb. ``subjects`` are the names of the
    question that documents are about; they are compared by :func:`is_about`.
    """
    match = _EVENT.search(question)
    if match is None:
        return True
    context = " ".join((node.text, *node.headings, node.document_name))
    if match["who"] and not subjects and not mentions_name(match["who"], context):
        return False
    lower = " ".join(word for word in match["event"].split() if word[:1].islower())
    words = frozenset(query_terms(lower)) - _LIGHT
    return node.kind != ROW or not words or not words.isdisjoint(query_terms(context))


def _repeats_question(text: str, question: str) -> bool:
    """Return whether an answer only says what the question says; one of two things that it offers is an answer."""
    if EITHER.search(question) or POLAR.search(question):
        return False
    words = frozenset(query_terms(text))
    return bool(words) and words <= frozenset(query_terms(question)) | _SELF


def estimate_probability(calculation: Calculation) -> float:
    """Return how often an answer of such a fit was right on TAT-QA's seen contexts (benchmarks/tables.py): 85 % where
    all words fit, about half of the looked-up cells and two thirds of the computed ones elsewhere."""
    fit = calculation.confidence
    if fit >= _WHOLE_FIT:
        return 0.85
    return 0.2 + 0.3 * fit if calculation.operation == "lookup" else 0.5 + 0.2 * fit


def open_calculator(id: str, hits: Sequence[Hit], snapshot: Snapshot) -> TableCalculator | None:
    """Return the calculator of a table node, with the passages of its document among ``hits`` around it; None for a
    table of more than :data:`MAX_ROWS` rows."""
    node = snapshot.nodes(snapshot.rows([id]))[0]
    table = snapshot.memoize(f"table/{id}", partial(table_from_node, node), documents_only=True)
    if len(table.rows) > MAX_ROWS:
        return None
    own = [hit.node.text for hit in hits if hit.node.document == node.document and hit.node.kind == PASSAGE]
    around = " ".join((node.document_name.replace("_", " "), *node.headings))
    return TableCalculator(table, " ".join(own), around)


def _hit_of(node: Node, hits: Sequence[Hit]) -> Hit:
    """Return the hit of a node; a row that search did not return has the score of its table's best row."""
    scores = [hit.score for hit in hits if hit.node.parent == node.parent]
    return next(
        (hit for hit in hits if hit.node.id == node.id), Hit(node, max(scores, default=0.0), (node.id,))
    )


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


def _trim_span(span: Span, node: Node) -> Span:
    """Return a span without the punctuation that ends its sentence, in a row cut to the first of its cells."""
    if span.kind != "text":
        return span
    text = span.text
    if node.kind == ROW and (end := text.find("; ")) > 0:
        text = text[:end]
    # The full stop of "U.S." and of "Acme Inc." belongs to the name.
    if not _ABBREVIATION.search(text):
        text = text.rstrip(" .,;:")
    if text.endswith(")") and "(" not in text:
        text = text[:-1]
    return replace(span, text=text, end=span.start + len(text)) if text else span


def _respective_span(question: str, span: Span, node: Node) -> Span:
    """Return a span in a list of values that are given for several years, "respectively", moved to the value of the
    year that the question names; any other span as it is."""
    if span.kind != "text" or node.kind != PASSAGE or "respectively" not in node.text:
        return span
    for start, end in sentence_spans(node.text):
        if start <= span.start < end:
            place = find_respective_value(
                question, node.text[start:end], span.start - start, span.end - start
            )
            if place is not None:
                first, last = start + place[0], start + place[1]
                return replace(span, text=node.text[first:last], start=first, end=last)
    return span


def passage_of_hit(hit: Hit, question: str) -> ReaderPassage:
    """Return a hit as the reader reads it: document and last heading as its title, at most 2,400 characters around
    the question's words as its text (from its beginning where that is short enough)."""
    node = hit.node
    document = PurePath(node.document_name)
    name = document.stem if _is_file(hit) else node.document_name
    name = name.replace("_", " ")
    heading = node.headings[-1] if node.headings else ""
    title = f"{name}, {heading}" if heading and fold_name(heading) != fold_name(name) else name
    return ReaderPassage(
        title, node.text if len(node.text) <= _READ_CHARACTERS else _cut(node.text, question)
    )


def _is_file(hit: Hit) -> bool:
    return PurePath(hit.node.document_name).suffix.lower() in _SUFFIXES


_SUFFIXES = frozenset(".pdf .docx .xlsx .html .htm .md .markdown .txt .csv .tsv .json .jsonl".split())


def _cut(text: str, question: str) -> str:
    """Return the lines or sentences of a long text with most of the question's words, in order, blank elsewhere.

    Characters that are not read become spaces, so that places in the text stay the same.
    """
    words = frozenset(query_terms(question))
    lines = [match.span() for match in re.finditer(r"[^\n]+", text)]
    spans = lines if len(lines) > 3 else sentence_spans(text)
    shared = [len(words & frozenset(query_terms(text[start:end]))) for start, end in spans]
    ranked = sorted(range(len(spans)), key=lambda number: (-shared[number], number))
    chosen: set[int] = set()
    room = _READ_CHARACTERS
    for number in ranked:
        start, end = spans[number]
        if end - start <= room:
            chosen.add(number)
            room -= end - start
    pieces, position = [], 0
    for number in sorted(chosen):
        start, end = spans[number]
        pieces += [" " * (start - position), text[start:end]]
        position = end
    return "".join(pieces)


def _hits_about(name: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits about a name: those with that title first, then those whose text mentions it."""
    folded = {fold_name(form) for form in title_names(name)}

    def has_title(hit: Hit) -> bool:
        titles = (PurePath(hit.node.document_name).stem, hit.node.document_name, *hit.node.headings)
        return any(fold_name(form) in folded for title in titles for form in title_names(title))

    titled = [hit for hit in hits if has_title(hit)]
    return [*titled, *(hit for hit in hits if hit not in titled and mentions_name(name, hit.node.text))]


def _sort_by_words(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits by the number of the question's words in them; of equal ones the better hit first.

    The hits were found for the whole question; a part of it has its own words.
    """
    words = frozenset(query_terms(question))
    texts = (" ".join((hit.node.text, hit.node.document_name, *hit.node.headings)) for hit in hits)
    shared = [len(words & frozenset(query_terms(text))) for text in texts]
    return [hits[number] for number in sorted(range(len(hits)), key=lambda number: (-shared[number], number))]


def _fill_references(text: str, values: Sequence[str]) -> str:
    return _REFERENCE.sub(lambda match: values[int(match[1]) - 1], text)


def _fitting_spans(question: str, spans: Sequence[Span], hits: Sequence[Hit]) -> list[Span]:
    """Return the spans of the kind that a question asks for: yes or no, a date, a number; all others where none is.

    A question that begins with a verb asks for yes or no, unless it offers two things. The name of a file is no
    answer, nor is what :func:`is_impossible` names.
    """
    spans = [
        span
        for span in spans
        if span.passage < 0
        or not (
            (span.kind == "title" and _is_file(hits[span.passage]))
            or is_impossible(question, span.text)
            or is_label(span, hits[span.passage].node)
            or is_of_another_role(question, span, hits[span.passage].node)
        )
    ]
    is_polar = bool(POLAR.search(question)) and not EITHER.search(question)
    fitting = [span for span in spans if (span.kind in {"yes", "no"}) == is_polar]
    if is_polar:
        return fitting
    kind = "amount" if _AMOUNT_OF.match(question) else expected_kind(question)
    if kind in {"person", "place"}:
        fitting = [span for span in fitting if not _is_date_or_number(span.text)] or fitting
    if kind in {"date", "amount"}:
        fitting = [span for span in fitting if contains_answer(kind, span.text, "")] or fitting
    if kind == "amount":
        # A year is no amount, unless nothing else is there.
        amounts = [span for span in fitting if contains_answer(kind, _CALENDAR_YEAR.sub(" ", span.text), "")]
        fitting = amounts or fitting
    return [_cut_office(span) for span in fitting] if kind == "person" else fitting


def _cut_office(span: Span) -> Span:
    """Return the name alone of a span that names a person and their office."""
    match = _PERSON_AND_OFFICE.match(span.text) if span.kind == "text" else None
    if match is None:
        return span
    return replace(span, text=match["name"], end=span.start + len(match["name"]))


#: Words that name nothing, alone or together.
_EMPTY_WORDS = frozenset(
    "a an the this that these those our its his her their my your it they he she we us i you who which what other "
    "another such same all any each both either some of in on at to and or for by with as is was are were be".split()
)
#: Those of them that name nothing at the beginning of a sentence either; "It", "Us" and "The Who" are also names.
_PRONOUNS = frozenset("she he they we our their his my its your".split())
_WORD = re.compile(r"[^\W\d_]+")
_COUNT = re.compile(r"\bhow many\b")
_UNIT = re.compile(r"%|percent|dollar|euro|pound|[mb]illion|thousand")
_DAY = re.compile(r"\b(?:what|which) (?:\w+ )?(?:date|year)\b")
_TIME = re.compile(r"\b(?:what|which) (?:time|hour) (?:did|does|do|is|was|will|were|are)\b")
_TIME_OF_DAY = re.compile(
    r"\d\s?[:.]\s?\d\d|(?<![a-z])[ap]\.?m\b|o'clock|\b(?:past|to|noon|midday|midnight|morning|evening|afternoon|night|dawn|dusk"
    r"|sunrise|sunset|hours?|minutes?|quarter|half)\b",
    re.IGNORECASE,
)
#: "Who earns more, Ada Pell or Bo Lind?"
_CHOICE = re.compile(r"^(?:who|which|what)\b[^,]*,\s*([^,?]+? or [^,?]+?)\s*\??$")
_DECIMAL = re.compile(r"\d+\.\d+")
#: Questions for a person or a place; the relation of a chain may end in "built by?".
_NAMES = re.compile(r"^(?:(?:by|to|for|with|from|of|under|after|at|in) )?(?:who|whom|where)\b|\bby\?$")
#: Kinds of things that have names with capitals.
_KIND = re.compile(
    r"(?:\w+ )?which (?:[\w-]+ )?(?:firm|company|corporation|bank|agency|organi[sz]ation|exchange|auditor|person)\b"
)
_CALENDAR_YEAR = re.compile(r"(?:FY ?)?(?:19|20)\d\d", re.IGNORECASE)
_OTHER_UNIT = re.compile(r"%|percent|[$€£¥]|\b(?:section|note|item|exhibit|article)\b", re.IGNORECASE)
_LABEL = re.compile(r"\b(?:Section|Note|Item|Exhibit|Article)s? $")
#: "Who is the chief executive officer of ...?", and the words of such offices.
_OFFICE = re.compile(
    r"\bwho(?:'s| is| was| are| were| serves as| served as)? (?:the |its |their )?(?:current |former )?"
    r"(?P<office>(?:[\w-]+ ){0,4}?(?:officer|president|chair(?:man|woman|person)?|ceo|cfo|coo|cto|treasurer|secretary"
    r"|controller|counsel|auditor))\b",
    re.IGNORECASE,
)
#: "Who was the engineer of the steamer?"
_ROLE = re.compile(
    r"^who(?:'s| is| was| are| were) (?:the |its |their |her |his )?(?:\w+ ){0,2}?(?P<role>\w{3,})"
    r"(?:\?| (?:of|at|in|for|on)\b)",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"(?:^|\n)\s*(?:[-•*]|\d{1,2}[.)])\s+")
_OFFICE_WORDS = frozenset(
    "chief executive financial operating technology accounting commercial information product legal human resources "
    "officer director president vice senior managing general chair chairman chairwoman chairperson treasurer "
    "secretary controller counsel auditor manager member partner principal ceo cfo coo cto board of and the".split()
)


def is_impossible(question: str, text: str) -> bool:
    """Return whether a text cannot answer a question, whatever it says: words that name nothing, a question for a
    count or a date answered without one, a year for an amount, a number for a person or a place, something else
    than what is offered ("Ada Pell or Bo Lind?"), an office for who holds it, "a firm" for which firm.

    >>> is_impossible("How many people work there?", "34.6%"), is_impossible("How many people work there?", "79,000")
    (True, False)
    """
    words = {word.casefold() for word in _WORD.findall(text)}
    has_digit = any(map(str.isdigit, text))
    names_nothing = words <= _EMPTY_WORDS and (text.islower() or words <= _PRONOUNS)
    if not has_digit and names_nothing:
        return True
    folded = " ".join(question.casefold().split())
    if _COUNT.search(folded):
        is_other_unit = _OTHER_UNIT.search(text) is not None and _UNIT.search(folded) is None
        return is_other_unit or not contains_answer("amount", text, "")
    if _DAY.search(folded):
        return (not has_digit and parse_date(text) is None) or _OTHER_UNIT.search(text) is not None
    if _NAMES.search(folded) and _is_date_or_number(text):
        return True
    if folded.startswith("when ") and _DECIMAL.search(text):
        return True
    if choice := _CHOICE.search(folded):
        return set(query_terms(text)).isdisjoint(query_terms(choice[1]))
    if _TIME.search(folded) and _TIME_OF_DAY.search(text) is None:
        return not has_digit or re.search(r"\d{3}", text) is not None
    if _CALENDAR_YEAR.fullmatch(text.strip(" .")) and expected_kind(question) == "amount":
        return True
    if _KIND.match(folded):
        first = next((word for word in _WORD.findall(text) if word.casefold() not in _EMPTY_WORDS), "")
        return not has_digit and not first[:1].isupper()
    return folded.startswith("who") and bool(words) and words <= _OFFICE_WORDS


def is_label(span: Span, node: Node) -> bool:
    """Return whether a span is the number of a section, a note, an exhibit, or of an item of a list; or runs
    from item to item."""
    if span.kind != "text":
        return False
    if _LIST_ITEM.search(span.text):
        return True
    if span.text.isdigit() and node.text[span.end : span.end + 2] in {". ", ") "}:
        return node.text[: span.start].rstrip(" (").endswith("\n") or not node.text[: span.start].strip(" (")
    return _LABEL.search(node.text[max(span.start - 12, 0) : span.start]) is not None


def is_of_another_role(question: str, span: Span, node: Node) -> bool:
    """Return whether a question asks who has a role, and the text around the span does not name that role.

    The text around it is the item of a list, the cell of a row, or the sentence; a name that labels a row has the
    roles in it. A role that is no office counts between the items of a list: "- Ada Pell, master; - Bo Lind, mate".
    """
    office, role = _OFFICE.search(question), _ROLE.search(question)
    if span.kind != "text" or not (office or role):
        return False
    text, item = node.text, _list_item(node.text, span)
    if office is None:
        pattern = re.compile(rf"\b{re.escape(role['role'] if role else '')}s?\b", re.IGNORECASE)
        return bool(item) and pattern.search(item) is None and pattern.search(text) is not None
    asked = " ".join(office["office"].casefold().split())
    full = next((name for name, acronym in ACRONYMS.items() if acronym == asked), asked)
    names = [full, *([ACRONYMS[full]] if full in ACRONYMS else [])]
    # The deputy chairman is not the chairman, unless "deputy" is asked for.
    pattern = re.compile(NO_DEPUTY + r"\b(?:" + "|".join(map(re.escape, names)) + r")\b", re.IGNORECASE)
    if item:
        return pattern.search(item) is None
    if node.kind == ROW and span.end <= (text.find(": ") + 1 or len(text)):
        return pattern.search(text) is None
    if node.kind == ROW:
        start, end = text.rfind("; ", 0, span.start) + 1, text.find("; ", span.end)
        return pattern.search(text[start : end if end >= 0 else None]) is None
    around = [text[start:end] for start, end in sentence_spans(text) if start < span.end and span.start < end]
    return bool(around) and pattern.search(" ".join(around)) is None


def _list_item(text: str, span: Span) -> str:
    """Return the item of a list of several in which a span stands, "" for other texts."""
    marks = list(_LIST_ITEM.finditer(text))
    start = max((mark.end() for mark in marks if mark.end() <= span.start), default=None)
    if start is None or len(marks) < 2:
        return ""
    return text[start : min((mark.start() for mark in marks if mark.start() >= span.end), default=None)]


def _is_date_or_number(text: str) -> bool:
    """Return whether a text is a date or has no letter, and so names no person and no place."""
    return parse_date(text) is not None or not any(character.isalpha() for character in text)


def quote_around(node: Node, span: Span, question: str) -> Quote:
    """Return the sentence, or the table row, in which a span stands, with the span marked.

    An answer that is the title of its passage is quoted by the sentence that shares most words with the question.
    """
    if span.kind == "title":
        return _best_sentence(question, node)
    text = node.text
    start, end = next(
        ((first, last) for first, last in _quotable_spans(node) if first <= span.start and span.end <= last),
        (span.start, span.end),
    )
    if end - start > _LONG_QUOTE:
        start = max(start, span.start - _LONG_QUOTE // 2)
        end = min(end, span.end + _LONG_QUOTE // 2)
        start = (
            start
            if start == 0 or text[start - 1].isspace()
            else text.find(" ", start, span.start) + 1 or start
        )
        last_space = text.rfind(" ", span.end, end)
        end = end if end == len(text) or last_space < 0 else last_space
    answer = (span.start, span.end)
    return Quote(node.id, text[start:end], (start, end), answer, cell_boxes(node, answer))


def _quotable_spans(node: Node) -> list[tuple[int, int]]:
    if node.kind == ROW:
        return [(0, len(node.text))]
    if node.text.startswith("|") or "\n|" in node.text:
        return [match.span() for match in re.finditer(r"[^\n]+", node.text)]
    return sentence_spans(node.text)


def _supporting_quote(question: str, hits: Sequence[Hit]) -> tuple[Hit, Quote]:
    quotes = [(hit, _best_sentence(question, hit.node)) for hit in hits]
    return max(quotes, key=lambda pair: _shared_words(question, pair[1].text))


def _best_sentence(question: str, node: Node) -> Quote:
    start, end = max(
        _quotable_spans(node) or [(0, len(node.text))],
        key=lambda span: _shared_words(question, node.text[slice(*span)]),
    )
    end = min(end, start + _LONG_QUOTE)
    return Quote(node.id, node.text[start:end], (start, end))


def _shared_words(question: str, text: str) -> tuple[int, int]:
    """Return how many of the question's words a text has, and how many of them letter by letter: "effective" is not
    "effectiveness"."""
    forms = frozenset(_WORD.findall(question.casefold()))
    return (
        len(frozenset(query_terms(question)) & frozenset(query_terms(text))),
        len(forms & frozenset(_WORD.findall(text.casefold()))),
    )
