"""Examples that a reader is trained on: a question, its passages, and where in them the answer stands.

- :func:`marked_examples`: questions with a marked answer in a context (SQuAD-like JSON lines)
- :func:`multihop_examples`: gold paths, distractors, sub-questions and gold triples of multi-hop sets
- :func:`tatqa_examples`: TAT-QA, spans and cells of annual reports (Zhu et al., ACL 2021)
- :func:`cell_examples`: from tables alone, a cell by its row and its column
- :func:`attribute_examples`: from paragraphs alone, "T (born 12 May 1970)" answers "When was T born?"
- :func:`written_examples`: from paragraphs alone, questions about the parts of their sentences
- :func:`verdict_examples`: from paragraphs alone, "T is a river in Peru" answers "Is T a river in Peru?"
- :func:`unanswerable_examples`: all of these with passages that do not answer them

All randomness comes from the given generator, so that equal data and seeds give equal examples.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from clew.core.errors import UsageError
from clew.core.text import candidate_names, normalise_name, query_terms, sentence_spans, strip_qualifier
from clew.core.types import ReaderPassage, Table
from clew.evaluate.metrics.answers import normalise_answer
from clew.methods.readers.composition import RELATION_QUESTIONS
from clew.parse.documents.tables import count_header_rows, merge_header, row_texts, split_titles, trim_grid
from clew.train.evidence_chains import evidence_chains, gold_passages
from clew.train.written_questions import join_tokens, write_questions

if TYPE_CHECKING:
    from clew.evaluate.examples import Example

Verdict = Literal["", "yes", "no"]

_WRITTEN_PER_ARTICLE = 4


class Place(NamedTuple):
    """A place of an answer: the number of the passage, the character range, and whether it is in the title."""

    passage: int
    start: int
    end: int
    in_title: bool = False


@dataclass(frozen=True, slots=True)
class ReadingExample:
    """A question over passages. Without ``places`` and ``verdict`` the passages do not answer it.

    ``answers`` are the accepted wordings, for the measures.
    """

    question: str
    passages: tuple[ReaderPassage, ...]
    places: tuple[Place, ...] = ()
    verdict: Verdict = ""
    answers: tuple[str, ...] = ()
    source: str = ""


def marked_examples(path: Path, excluded: Iterable[str] = ()) -> Iterator[ReadingExample]:
    """Yield the questions of JSON lines with ``source``, ``question``, ``title``, ``context``, ``start`` and ``end``.

    ``start`` and ``end`` are characters of the context, -1 where it does not answer. Sources in ``excluded`` are left
    out. Raises UsageError.
    """
    left_out = frozenset(excluded)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            source, question, context = record["source"], record["question"], record["context"]
            start, end = int(record["start"]), int(record["end"])
            if start >= 0 and not context[start:end].strip():
                raise ValueError(f"no text from {start} to {end}")
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path}:{number}: not a question with a marked answer ({error})") from error
        if source in left_out:
            continue
        places = (Place(0, start, end),) if start >= 0 else ()
        answers = (context[start:end],) if start >= 0 else ()
        passage = ReaderPassage(str(record.get("title", "")), context)
        yield ReadingExample(question, (passage,), places, "", answers, source)


def lengthen_contexts(
    examples: Sequence[ReadingExample], share: float, texts: Sequence[str], rng: random.Random
) -> Iterator[ReadingExample]:
    """Yield the examples; a ``share`` of those with a short context gets other texts around it.

    The others come from the contexts of the same source and from ``texts``; half of the time they are those that
    share most words with the question, so that a reader learns to choose among similar passages. Half of them become
    part of the same passage, half are passages of their own. Questions about a single sentence (QAMR) would otherwise
    teach a reader to expect the answer close by.
    """
    by_source: dict[str, list[str]] = defaultdict(list)
    for example in examples:
        by_source[example.source].append(example.passages[0].text)
    terms: dict[str, frozenset[str]] = {}
    for example in examples:
        passage = example.passages[0]
        if len(passage.text) > 400 or len(example.passages) > 1 or rng.random() > share:
            yield example
            continue
        others = _similar_texts(example, (by_source[example.source], texts), terms, rng)
        position = rng.randint(0, len(others))
        if rng.random() < 0.5:
            before = " ".join(others[:position])
            shift = len(before) + 1 if before else 0
            text = " ".join(part for part in (before, passage.text, *others[position:]) if part)
            moved = tuple(
                place._replace(start=place.start + shift, end=place.end + shift) for place in example.places
            )
            yield replace(example, passages=(replace(passage, text=text),), places=moved)
        else:
            passages = [ReaderPassage("", text) for text in others]
            passages.insert(position, passage)
            moved = tuple(place._replace(passage=position) for place in example.places)
            yield replace(example, passages=tuple(passages), places=moved)


def _similar_texts(
    example: ReadingExample,
    pools: Iterable[Sequence[str]],
    terms: dict[str, frozenset[str]],
    rng: random.Random,
) -> list[str]:
    """Return two to seven texts without the answer: random ones, or the closest of random ones to the question."""
    count = rng.randint(2, 7)
    is_hard = rng.random() < 0.5
    candidates = [text for pool in pools if pool for text in rng.choices(pool, k=60 if is_hard else count)]
    rng.shuffle(candidates)
    if is_hard:
        words = frozenset(query_terms(example.question))
        for text in candidates:
            if text not in terms:
                terms[text] = frozenset(query_terms(text))
        candidates.sort(key=lambda text: -len(words & terms[text]))
    answers = {normalise_answer(answer) for answer in example.answers}
    context = example.passages[0].text
    return [
        text
        for text in dict.fromkeys(candidates[:count])
        if text != context and not any(answer and answer in normalise_answer(text) for answer in answers)
    ]


def written_examples(
    passages: Sequence[ReaderPassage], articles: int, rng: random.Random
) -> Iterator[ReadingExample]:
    """Yield questions that rules write from the sentences of a sample of articles, among up to three other articles.

    Half of the others are, of random ones, those that share most words with the question. Raises MissingExtra.
    """
    sample = rng.sample(passages, min(articles, len(passages)))
    others = [replace(passage, text=join_tokens(passage.text)[:700]) for passage in sample]
    terms = [frozenset(query_terms(f"{other.title} {other.text}")) for other in others]
    for passage, written in write_questions(sample, _WRITTEN_PER_ARTICLE, rng):
        words = frozenset(query_terms(written.question))
        answer = passage.text[written.start : written.end]
        around: list[ReaderPassage] = []
        for _ in range(rng.choice((0, 0, 1, 2, 3))):
            numbers = rng.choices(range(len(others)), k=40 if rng.random() < 0.5 else 1)
            other = others[max(numbers, key=lambda number: len(words & terms[number]))]
            if other.title != passage.title and answer not in other.text:
                around.append(other)
        position = rng.randint(0, len(around))
        around.insert(position, passage)
        place = Place(position, written.start, written.end)
        yield ReadingExample(written.question, tuple(around), (place,), "", (answer,), "written")


def unanswerable_examples(
    examples: Sequence[ReadingExample], share: float, rng: random.Random
) -> Iterator[ReadingExample]:
    """Yield for a ``share`` of the answerable examples the question with passages that do not answer it.

    One third has the passages of a random example; one third those of the example of the same source, among 60 random
    ones, that share most words with the question; one third has the right passages and another name in the question.
    """
    by_source: dict[str, list[ReadingExample]] = defaultdict(list)
    for example in examples:
        by_source[example.source].append(example)
    for example in examples:
        if not example.places or rng.random() > share:
            continue
        kind = rng.randrange(3)
        pool = by_source[example.source]
        if kind == 2 and (question := _swap_name(example, pool, rng)):
            yield replace(example, question=question, places=(), answers=())
            continue
        words = frozenset(query_terms(example.question))
        candidates = rng.choices(pool, k=1 if kind == 0 else 60)
        passages = max(
            (candidate.passages for candidate in candidates),
            key=lambda passages: _shared_words(words, passages),
        )
        if not _mentions_answer(example, passages):
            yield replace(example, passages=passages, places=(), answers=())


def _shared_words(words: frozenset[str], passages: Sequence[ReaderPassage]) -> int:
    return len(
        words
        & {term for passage in passages for term in query_terms(f"{passage.title} {passage.text[:600]}")}
    )


def _mentions_answer(example: ReadingExample, passages: Sequence[ReaderPassage]) -> bool:
    texts = [f" {normalise_answer(f'{passage.title} {passage.text}')} " for passage in passages]
    return any(f" {normalise_answer(answer)} " in text for answer in example.answers for text in texts)


def _swap_name(example: ReadingExample, pool: Sequence[ReadingExample], rng: random.Random) -> str:
    """Return the question with one of its names replaced by a name that its passages do not have, or ""."""
    names = _longest_names(example.question)
    text = " ".join(f"{passage.title} {passage.text}" for passage in example.passages).casefold()
    for other in rng.choices(pool, k=8) if names else ():
        others = [name for name in _longest_names(other.question) if name.casefold() not in text]
        if others:
            name = rng.choice(names)
            return example.question.replace(name, rng.choice(others), 1)
    return ""


def _longest_names(text: str) -> list[str]:
    """Return the longest names in a text but its first word, which is capitalised whatever it is."""
    names = []
    last_end = -1
    for _, start, end in sorted(candidate_names(text), key=lambda name: (name[1], -name[2])):
        if start > 0 and end > last_end and not text[start].isdigit():
            names.append(text[start:end])
            last_end = end
    return names


def answer_places(
    passages: Sequence[ReaderPassage], answers: Iterable[str], titles: bool = True
) -> list[Place]:
    """Return every place of the answers as whole words in the passages, and, with ``titles``, in their titles."""
    places: dict[Place, None] = {}
    for answer in answers:
        if not answer.strip():
            continue
        pattern = re.compile(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", re.IGNORECASE)
        for number, passage in enumerate(passages):
            for match in pattern.finditer(passage.text):
                places[Place(number, *match.span())] = None
            if titles and (match_in_title := pattern.search(passage.title)):
                places[Place(number, *match_in_title.span(), True)] = None
    return list(places)


def multihop_examples(example: Example, rng: random.Random) -> Iterator[ReadingExample]:
    """Yield what a question of several hops teaches a reader.

    - the question over its gold passages in the order of the hops, and again among one to four distractors;
    - the question over passages that miss the last hop, or over distractors: no answer;
    - each sub-question (MuSiQue) and each gold triple (2WikiMultihopQA) over its passage, alone and among
      distractors, and over distractors alone: no answer.
    """
    source = "multihop"
    gold = gold_passages(example)
    chains = evidence_chains(example)
    path = chains[0].passages if chains else gold
    passages = [ReaderPassage(passage.title, passage.text) for passage in path]
    gold_texts = {(passage.title, passage.text) for passage in gold}
    others = [
        ReaderPassage(paragraph.title, paragraph.text)
        for paragraph in example.corpus
        if (paragraph.title, paragraph.text) not in gold_texts
    ]
    if not passages or not others:
        return
    whole = ReadingExample(example.question, (), (), _verdict(example.answers), example.answers, source)
    # The last passages hold the answer; before them the same words may stand for something else.
    for mixed in (passages, _mix(passages, others, rng), _mix(passages, others, rng)):
        yield from _locate(whole, mixed, prefer=passages[-1])
    if not whole.verdict:
        incomplete = [passage for passage in passages if not answer_places([passage], example.answers)]
        for negative in (incomplete, _mix(incomplete[:1], others, rng)):
            if negative and not answer_places(negative, example.answers):
                yield replace(whole, passages=tuple(negative), answers=())
    for question, answers, passage in _single_hops(example, passages, rng):
        hop = ReadingExample(question, (), (), _verdict(answers), tuple(answers), source)
        yield from _locate(hop, [passage])
        yield from _locate(hop, _mix([passage], others, rng), prefer=passage)
        distractors = rng.sample(others, min(len(others), rng.randint(1, 3)))
        if not answer_places(distractors, answers):
            yield replace(hop, passages=tuple(distractors), verdict="", answers=())


def _verdict(answers: Sequence[str]) -> Verdict:
    match answers[0].strip().lower() if answers else "":
        case "yes":
            return "yes"
        case "no":
            return "no"
    return ""


def _mix(
    passages: Sequence[ReaderPassage], others: Sequence[ReaderPassage], rng: random.Random
) -> list[ReaderPassage]:
    """Return the passages in their order with one to four distractors between them."""
    mixed = list(passages)
    for other in rng.sample(others, min(len(others), rng.randint(1, 4))):
        mixed.insert(rng.randint(0, len(mixed)), other)
    return mixed


def _locate(
    example: ReadingExample, passages: Sequence[ReaderPassage], prefer: ReaderPassage | None = None
) -> Iterator[ReadingExample]:
    """Yield the example over the passages, if the answer stands in them; in ``prefer`` alone if it stands there."""
    if example.verdict:
        yield replace(example, passages=tuple(passages))
        return
    places = answer_places(passages, example.answers)
    preferred = [place for place in places if prefer is not None and passages[place.passage] == prefer]
    texts = [place for place in preferred or places if not place.in_title]
    if chosen := texts or preferred or places:
        yield replace(example, passages=tuple(passages), places=tuple(chosen))


_GENERAL_QUESTIONS = ("What is the {relation} of {}?", "Who is the {relation} of {}?", "{}: {relation}?")


def _single_hops(
    example: Example, passages: Sequence[ReaderPassage], rng: random.Random
) -> Iterator[tuple[str, list[str], ReaderPassage]]:
    """Yield question, answers and passage of each hop of the gold chain whose passage is known."""
    answers: list[str] = []
    for number, link in enumerate(example.chain):
        if len(link) == 3:
            head, relation, tail = link
            holders = [passage for passage in passages if _is_about(passage, head)]
            wordings = (*RELATION_QUESTIONS.get(relation, ()), *_GENERAL_QUESTIONS)
            for wording in rng.sample(wordings, min(2, len(wordings))):
                for passage in holders[:1]:
                    yield wording.format(head, relation=relation), [tail], passage
        elif len(link) == 2 and number < len(passages):
            question, answer = link
            for before, value in enumerate(answers, 1):
                question = re.sub(rf"#{before}\b", value.replace("\\", ""), question)
            answers.append(answer)
            if "#" not in question:
                for wording in dict.fromkeys((question, *_spoken_relations(question, rng))):
                    yield wording, [answer], passages[number]


def _spoken_relations(question: str, rng: random.Random) -> Iterator[str]:
    """Yield a question in words for a sub-question that MuSiQue writes as ``head >> relation``."""
    head, arrow, relation = (part.strip() for part in question.partition(">>"))
    if arrow:
        yield rng.choice(_GENERAL_QUESTIONS).format(head, relation=relation)


def _is_about(passage: ReaderPassage, name: str) -> bool:
    title = normalise_name(strip_qualifier(passage.title))
    return title == normalise_name(strip_qualifier(name))


def read_tables(rows: Sequence[Sequence[str]], caption: str = "") -> Table:
    """Return a grid of cells as the table that clew makes of it: title lines, header rows, body."""
    grid = trim_grid([tuple(str(cell).strip() for cell in row) for row in rows])
    titles, skipped = split_titles(grid)
    body = grid[skipped:]
    count = count_header_rows(body)
    return Table(
        merge_header(body[:count]), tuple(body[count:]), ". ".join([*([caption] if caption else []), *titles])
    )


def tatqa_examples(context: dict[str, Any], rng: random.Random) -> Iterator[ReadingExample]:
    """Yield the questions of a context of TAT-QA that are answered by one span: of a paragraph, or of the table.

    The table is read as clew's rows. Sums, differences and counts are not spans and are left out.
    """
    paragraphs = [ReaderPassage("", paragraph["text"]) for paragraph in context["paragraphs"]]
    rows = list(row_texts(read_tables(context["table"]["table"])))
    for question in context["questions"]:
        if question["answer_type"] != "span" or len(question["answer"]) != 1:
            continue
        answers = (str(question["answer"][0]),)
        example = ReadingExample(question["question"], (), (), "", answers, "tatqa")
        if question["answer_from"] == "text":
            yield from _locate(example, paragraphs)
            continue
        for passages in (row_passages(rows, rng, len(rows)), [*row_passages(rows, rng, 30), *paragraphs]):
            yield from _locate(example, passages)


def row_passages(rows: Sequence[str], rng: random.Random, limit: int, title: str = "") -> list[ReaderPassage]:
    """Return at most ``limit`` consecutive rows as passages: one passage a row, or all rows in one."""
    start = rng.randint(0, max(len(rows) - limit, 0))
    chosen = rows[start : start + limit]
    if rng.random() < 0.5:
        return [ReaderPassage(title, "\n".join(chosen))]
    return [ReaderPassage(title, row) for row in chosen]


_PERIOD = re.compile(r"\b(?:19|20)\d\d\b")
_PERIOD_QUESTIONS = (
    "What was {row} in {column}?",
    "What is the {row} for {column}?",
    "How much was {row} in {column}?",
    "What were {row} for the year ended {column}?",
    "What is the amount of {row} in {column}?",
    "{row} in {column}",
)
_CELL_QUESTIONS = (
    "What is the {column} of {row}?",
    "What was the {column} of {row}?",
    "Which {column} does {row} have?",
    "What is {row}'s {column}?",
    "{column} of {row}?",
)


def cell_examples(table: Table, title: str, count: int, rng: random.Random) -> Iterator[ReadingExample]:
    """Yield up to ``count`` questions about single cells of a table, answered by the text of its rows.

    A row is named by its first cell, a column by its header; both have to be unlike all others of the table. One
    question in five names a row or a period that the table does not have: no answer. One in eight asks whether a
    cell has a value: yes or no.
    """
    rows = list(row_texts(table))
    firsts = [row[0].strip() for row in table.rows]
    columns = [" ".join(name.split()) for name in table.header]
    usable = [
        (number, column)
        for number, row in enumerate(table.rows)
        for column, name in enumerate(columns[: len(row)])
        if column > 0 and name and columns.count(name) == 1 and firsts[number] and firsts.count(firsts[number]) == 1
        and len(firsts[number]) < 80 and row[column].strip() and len(row[column]) < 80
    ]  # fmt: skip
    for number, column in rng.sample(usable, min(count, len(usable))):
        cell, name, first = table.rows[number][column].strip(), columns[column], firsts[number].rstrip(":")
        marker = f"{name}: {cell}"
        if rows[number].count(marker) != 1:
            continue
        spoken = first.lower() if rng.random() < 0.6 and not _longest_names(f"a {first}")[1:] else first
        wordings = _PERIOD_QUESTIONS if _PERIOD.search(name) else _CELL_QUESTIONS
        question = rng.choice(wordings).format(row=spoken, column=name)
        span = rng.randint(1, min(12, len(rows)))
        begin = rng.randint(max(0, number - span + 1), number)
        shown_rows = rows[begin : begin + span]
        start = shown_rows[number - begin].index(marker) + len(name) + 2
        if rng.random() < 0.5:
            shift = sum(len(row) + 1 for row in shown_rows[: number - begin])
            passages: tuple[ReaderPassage, ...] = (ReaderPassage(title, "\n".join(shown_rows)),)
            place = Place(0, start + shift, start + shift + len(cell))
        else:
            passages = tuple(ReaderPassage(title, row) for row in shown_rows)
            place = Place(number - begin, start, start + len(cell))
        example = ReadingExample(question, passages, (place,), "", (cell,), "cells")
        draw = rng.random()
        if draw < 0.2:
            without = tuple(passage for number_, passage in enumerate(passages) if number_ != place.passage)
            absent = without if len(without) and rng.random() < 0.5 else ()
            year = _PERIOD.search(name)
            if absent:
                yield replace(example, passages=absent, places=(), answers=())
            elif year:
                other = str(int(year.group()) + rng.choice((-7, -5, 4, 6, 9)))
                if not any(other in passage.text for passage in passages):
                    yield replace(
                        example, question=question.replace(year.group(), other), places=(), answers=()
                    )
        elif draw < 0.32:
            values = sorted({row[column].strip() for row in table.rows} - {cell, ""})
            is_right = rng.random() < 0.5 or not values
            value = cell if is_right else rng.choice(values)
            asked = f"{rng.choice(('Is', 'Was'))} the {name} of {spoken} {value}?"
            yield replace(example, question=asked, places=(), verdict="yes" if is_right else "no", answers=())
        else:
            yield example


#: The share of articles whose attributes are shown as a table of facts.
_FACTS_SHARE = 0.3
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = rf"(?:\d{{1,2}} {_MONTH},? \d{{4}}|{_MONTH} \d{{1,2}} ?, \d{{4}}|{_MONTH},? \d{{4}}|\b(?:1[0-9]|20)\d\d\b)"
_NAME = r"(?:[A-Z][\w'’.-]*(?: (?:[A-Z][\w'’.-]*|of|de|van|von|the))* )?[A-Z][\w'’-]+"
#: Patterns of the first sentences of encyclopaedia articles, the questions that they answer about the title, and what
#: a table of facts calls the answer.
_ATTRIBUTES = [
    (
        pattern.replace("<name>", _NAME).replace("<date>", _DATE),
        tuple(questions.split(" | ")),
        tuple(labels.split(" | ")),
    )
    for pattern, questions, labels in (
        line.split("\t")
        for line in Path(__file__).with_name("attributes.tsv").read_text(encoding="utf-8").splitlines()[1:]
    )
]


def attribute_examples(passages: Sequence[ReaderPassage], rng: random.Random) -> Iterator[ReadingExample]:
    """Yield questions about the titles of encyclopaedia articles whose answers stand in patterns of their text.

    Most have one to three other articles before or behind, half of these with a value of the same kind; one in six
    asks wrong articles: no answer; one in eight asks whether the value is so: yes, or, with the value of another
    article, no.
    """
    compiled = [(re.compile(pattern), wordings) for pattern, wordings, _ in _ATTRIBUTES]
    recent: list[list[tuple[ReaderPassage, str]]] = [[] for _ in compiled]
    for passage in passages:
        name = strip_qualifier(passage.title)
        matches = [pattern.search(passage.text[:900]) for pattern, _ in compiled]
        if name and sum(match is not None for match in matches) > 1 and rng.random() < _FACTS_SHARE:
            yield from _fact_examples(name, matches, passages, rng)
            continue
        for number, (match, (_, wordings)) in enumerate(zip(matches, compiled, strict=True)):
            if match is None or not name:
                continue
            answer = match.group(1).strip()
            alike = [other for other, _ in recent[number] if other != passage]
            others = [
                rng.choice(alike if alike and rng.random() < 0.5 else passages)
                for _ in range(rng.choice((0, 0, 1, 1, 2, 3)))
            ]
            chosen = [other for other in others if other != passage]
            chosen.insert(rng.randint(0, len(chosen)), passage)
            question = rng.choice(wordings).format(name)
            place = Place(chosen.index(passage), *match.span(1))
            example = ReadingExample(question, tuple(chosen), (place,), "", (answer,), "attributes")
            draw = rng.random()
            if draw < 1 / 6:
                wrong = tuple(other for other in chosen if other != passage)
                if wrong and not any(name.casefold() in other.text.casefold() for other in wrong):
                    yield replace(example, passages=wrong, places=(), answers=())
            elif draw < 7 / 24 and recent[number]:
                is_right = rng.random() < 0.5
                value = answer if is_right else rng.choice(recent[number])[1]
                if is_right or value.casefold() not in passage.text.casefold():
                    asked = _ask_whether(wordings[0], name, value)
                    verdict: Verdict = "yes" if is_right else "no"
                    if asked:
                        yield replace(example, question=asked, places=(), verdict=verdict, answers=())
            else:
                yield example
            recent[number] = [*recent[number][-40:], (passage, answer)]


def _fact_examples(
    name: str, matches: Sequence[re.Match[str] | None], passages: Sequence[ReaderPassage], rng: random.Random
) -> Iterator[ReadingExample]:
    """Yield the questions about an article over rows of facts ("Born: 12 May 1870") instead of its text."""
    rows = [
        (f"{rng.choice(labels)}: ", match.group(1).strip(), wordings)
        for match, (_, wordings, labels) in zip(matches, _ATTRIBUTES, strict=True)
        if match is not None
    ]
    rng.shuffle(rows)
    is_joined = rng.random() < 0.5
    before = f"{name}. " if rng.random() < 0.5 else ""
    texts = [f"{before}{label}{value}" for label, value, _ in rows]
    other = [rng.choice(passages)] if rng.random() < 0.5 else []
    start = 0
    for number, (label, value, wordings) in enumerate(rows):
        offset = (start if is_joined else 0) + len(before) + len(label)
        start += len(texts[number]) + 1
        facts = ["\n".join(texts)] if is_joined else texts
        place = Place(len(other) + (0 if is_joined else number), offset, offset + len(value))
        shown = (*other, *(ReaderPassage(name, text) for text in facts))
        yield ReadingExample(rng.choice(wordings).format(name), shown, (place,), "", (value,), "attributes")


_WHETHER = (
    (re.compile(r"^When was (.*) (born|founded|released|published)\?$"), "Was {0} {1} in {2}?"),
    (re.compile(r"^When did (.*) die\?$"), "Did {0} die in {2}?"),
    (re.compile(r"^Where was (.*) (born)\?$"), "Was {0} {1} in {2}?"),
    (re.compile(r"^Where is (.*?)(?: based| located)?\?$"), "Is {0} in {2}?"),
    (re.compile(r"^Who (directed|wrote|produced|designed|founded) (.*)\?$"), "Did {2} {verb} {1}?"),
    (re.compile(r"^What is (.*)\?$"), "Is {0} a {2}?"),
)
_PRESENT = {
    "directed": "direct",
    "wrote": "write",
    "produced": "produce",
    "designed": "design",
    "founded": "found",
}


def _ask_whether(wording: str, name: str, value: str) -> str:
    """Return the yes/no question of a wording ("Was X born in Y?"), or ""."""
    for pattern, form in _WHETHER:
        if match := pattern.match(wording.format(name)):
            groups = [*match.groups(), ""][:2]
            return form.format(*groups, value, verb=_PRESENT.get(groups[0], groups[0]))
    return ""


_IS = re.compile(r"^(.{2,80}?) (is|was|are|were) (.{10,160}?)\s?\.$")


def verdict_examples(
    passages: Sequence[ReaderPassage], share: float, rng: random.Random
) -> Iterator[ReadingExample]:
    """Yield yes/no questions made of the first sentences of articles ("T is a river in Peru.").

    Half of them have the complement of another article: no.
    """
    statements: list[tuple[ReaderPassage, str, str, str]] = []
    for passage in passages:
        start, end = (sentence_spans(passage.text) or [(0, 0)])[0]
        sentence = re.sub(r"\s*\([^)]*\)", "", passage.text[start:end])
        if (match := _IS.match(sentence)) and rng.random() < share:
            subject, verb, complement = match.groups()
            statements.append((passage, subject, verb, complement))
    for passage, subject, verb, complement in statements:
        other = rng.choice(statements)
        is_right = rng.random() < 0.5
        predicate = complement if is_right else other[3]
        if not is_right and (other[2] != verb or predicate[:40] in passage.text):
            continue
        question = f"{verb.capitalize()} {subject} {predicate}?"
        chosen = (passage, rng.choice(passages)) if rng.random() < 0.3 else (passage,)
        yield ReadingExample(question, chosen, (), "yes" if is_right else "no", (), "verdicts")
