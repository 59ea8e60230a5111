"""Questions that a reader learns from which sentences answer: passages, their options, and which of these are right.

- :func:`read_written`: questions over real documents, each with the sentences, lists or rows that answer
- :func:`read_polar`: questions of yes or no, each with a sentence that answers or does not
- :func:`read_marked`: questions with marked words, of which the sentence around them answers
- :func:`multihop_question`: questions of several hops with the sentences that support the answer
- :func:`answered_question`: any other question with the places of its answer
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.core.text import sentence_spans
from clew.core.types import ReaderPassage
from clew.questions.sentences import LIST, split_text
from clew.train.reading_examples import Place, ReadingExample, Verdict, answer_places, marked_examples

if TYPE_CHECKING:
    from clew.evaluate.examples import Example

#: A list is right if it has this share of the items; with one answer, if that is this share of the list.
_ITEMS, _MOST_OF = 0.75, 0.6


class PassageOption(NamedTuple):
    """A part of a passage that may answer, from ``start`` to ``end``, and whether it does."""

    passage: int
    start: int
    end: int
    right: bool


@dataclass(frozen=True, slots=True)
class SentenceQuestion:
    """A question over the passages of ``example``, with their options. ``is_marked``: the words that answer are
    known, or that none do, and are trained on. ``needed`` are passages that are read with those that answer."""

    example: ReadingExample
    options: tuple[PassageOption, ...]
    is_marked: bool
    needed: frozenset[int] = frozenset()

    @property
    def golds(self) -> set[int]:
        """The passages that answer."""
        return {option.passage for option in self.options if option.right}

    def choose(self, passages: Sequence[int]) -> SentenceQuestion:
        """Return the question over some of its passages, in their order."""
        number = {passage: place for place, passage in enumerate(passages)}
        example = self.example
        places = tuple(
            place._replace(passage=number[place.passage])
            for place in example.places
            if place.passage in number
        )
        options = tuple(
            option._replace(passage=number[option.passage])
            for option in self.options
            if option.passage in number
        )
        is_answered = any(option.right for option in options)
        chosen = ReadingExample(
            example.question,
            tuple(example.passages[passage] for passage in passages),
            places,
            example.verdict if is_answered else "",
            example.answers,
            example.source,
        )
        return SentenceQuestion(chosen, options, self.is_marked or not is_answered)


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the objects of JSON lines; of a document with its questions, each question with all of its sections."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [own for row in rows for own in (_spread_document(row) if "sections" in row else [row])]


def _spread_document(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    passages = [
        {"title": f"{row['document']} > {section['title']}", "text": section["text"]}
        for section in row["sections"]
    ]

    def place(part: Mapping[str, Any]) -> dict[str, Any]:
        return {"passage": part["section"], "text": part["text"]}

    for question in row["questions"]:
        answers = [place(answer) for answer in question["answers"]]
        value = place(question["value"]) if question["value"] else None
        yield {**question, "passages": passages, "answers": answers, "value": value}


def mark_options(
    passages: Sequence[ReaderPassage], is_right: Callable[[int, int, int, str], bool]
) -> tuple[PassageOption, ...]:
    """Return the options of passages; ``is_right`` gets passage, start, end and kind."""
    return tuple(
        PassageOption(number, start, end, is_right(number, start, end, kind))
        for number, passage in enumerate(passages)
        for start, end, kind in split_text(passage.text)
    )


def read_written(file: Path) -> Iterator[SentenceQuestion]:
    """Yield the questions of a file of JSON lines (``question``, ``kind``, ``polar``, ``passages`` with title and
    text, ``answers`` and ``value`` with passage and text), over their own passages. A line may also be a document:
    ``document``, ``sections`` with title and text, and ``questions``, whose answers name a section."""
    for row in read_lines(file):
        passages = tuple(
            ReaderPassage(name_passage(passage["title"]), passage["text"]) for passage in row["passages"]
        )
        answers = [
            (answer["passage"], start, start + len(answer["text"]))
            for answer in row["answers"]
            if (start := passages[answer["passage"]].text.find(answer["text"])) >= 0
        ]
        texts = [passages[number].text[start:end] for number, start, end in answers]

        def is_right(
            number: int,
            start: int,
            end: int,
            kind: str,
            answers: Sequence[tuple[int, int, int]] = answers,
            texts: Sequence[str] = texts,
        ) -> bool:
            inside = [own for own in answers if own[0] == number and start < own[2] and own[1] < end]
            if kind != LIST:
                return bool(inside)
            if len(texts) > 1:
                return len(inside) >= _ITEMS * len(texts)
            return bool(inside) and len(texts[0]) > _MOST_OF * (end - start)

        options = mark_options(passages, is_right)
        is_none = row["kind"].startswith("none")
        verdict: Verdict = row["polar"] or ""
        places: tuple[Place, ...] = ()
        value = row["value"]
        if value and not verdict:
            place = passages[value["passage"]].text.find(value["text"])
            starts = [answer[1] for answer in answers if answer[0] == value["passage"]]
            for start in starts:
                # The value within its sentence, not where else its words stand.
                if (inside := passages[value["passage"]].text.find(value["text"], start)) >= 0:
                    place = inside
                    break
            if place >= 0:
                places = (Place(value["passage"], place, place + len(value["text"])),)
        example = ReadingExample(row["question"], passages, places, verdict, (), "written")
        if is_none or any(option.right for option in options):
            yield SentenceQuestion(example, options, bool(places or verdict or is_none))


def document_titles(file: Path) -> set[str]:
    """Return the titles of the documents that the questions of a file are about."""
    return {passage["title"].partition(" > ")[0] for row in read_lines(file) for passage in row["passages"]}


def name_passage(title: str) -> str:
    """Return "document > part > section" as the reader has titles: "document, section"."""
    document, _, rest = title.partition(" > ")
    section = rest.rpartition(" > ")[2]
    return f"{document}, {section}" if section else document


def read_polar(file: Path, without: Collection[str]) -> Iterator[SentenceQuestion]:
    """Yield questions of yes or no, each over its sentence and two others of its document; not those about documents
    of ``without``."""
    rows = [row for row in read_lines(file) if row["title"].partition(" > ")[0] not in without]
    of_document: dict[str, dict[str, ReaderPassage]] = defaultdict(dict)
    for row in rows:
        text = f"{row['before']} {row['sentence']}".strip()
        of_document[row["document"]][row["sentence"]] = ReaderPassage(name_passage(row["title"]), text)
    rng = random.Random("polar")
    for row in rows:
        own = of_document[row["document"]]
        others = [passage for sentence, passage in own.items() if sentence != row["sentence"]]
        passages = (own[row["sentence"]], *rng.sample(others, min(2, len(others))))
        begin = len(passages[0].text) - len(row["sentence"])
        verdict: Verdict = "" if row["polar"] == "neither" else row["polar"]
        right = [
            PassageOption(number, start, end, bool(verdict) and number == 0 and end > begin)
            for number, start, end, _ in mark_options(passages, lambda *_: False)
        ]
        example = ReadingExample(row["question"], passages, (), verdict, (), "polar")
        yield SentenceQuestion(example, tuple(right), is_marked=True)


def read_marked(file: Path, most: int, excluded: Iterable[str]) -> Iterator[SentenceQuestion]:
    """Yield at most ``most`` questions of JSON lines with marked answers, of each source as many, each over its own
    context and those of three others of its source."""
    groups: dict[str, list[ReadingExample]] = defaultdict(list)
    for example in marked_examples(file, excluded):
        if example.places and len(example.passages[0].text) > 60:
            groups[example.source].append(example)
    rng = random.Random("marked")
    for source in sorted(groups):
        chosen = rng.sample(groups[source], min(len(groups[source]), most // len(groups)))
        for example in chosen:
            others = rng.sample(chosen, min(6, len(chosen)))
            contexts = {
                each.passages[0].text: each.passages[0]
                for each in others
                if each.passages[0].text != example.passages[0].text
            }
            passages = (example.passages[0], *list(contexts.values())[:3])
            moved = ReadingExample(
                example.question, passages, example.places, "", example.answers, example.source
            )
            yield answered_question(moved)


def answered_question(example: ReadingExample) -> SentenceQuestion:
    """Return a question whose options are right where its answer stands."""

    def is_right(number: int, start: int, end: int, kind: str) -> bool:
        return kind != LIST and any(
            place.passage == number and start <= place.start < end and not place.in_title
            for place in example.places
        )

    return SentenceQuestion(example, mark_options(example.passages, is_right), is_marked=True)


def multihop_question(example: Example) -> SentenceQuestion:
    """Return a question of several hops over its paragraphs. Of the sentences that support its answer those are right
    that have it, all where none does; the paragraphs of the others are needed beside them."""
    support = {(piece.title, piece.sentence) for piece in example.support}
    titles = {piece.title for piece in example.support}
    passages: list[ReaderPassage] = []
    supporting: list[PassageOption] = []
    answering: set[int] = set()
    for number, paragraph in enumerate(example.corpus):
        text = ""
        for place, sentence in enumerate(paragraph.sentences):
            start = len(text) + (1 if text else 0)
            text = f"{text} {sentence.strip()}".strip()
            spans = sentence_spans(text[start:])
            if (paragraph.title, place) in support or (paragraph.title, None) in support:
                has_answer = any(answer.casefold() in sentence.casefold() for answer in example.answers)
                answering |= {len(supporting) + more for more in range(len(spans)) if has_answer}
            supporting += [
                PassageOption(number, start + first, start + last, (paragraph.title, place) in support)
                for first, last in spans
            ]
        passages.append(ReaderPassage(paragraph.title, text))
    answer = example.answers[0].strip().casefold()
    verdict: Verdict = "yes" if answer == "yes" else "no" if answer == "no" else ""
    places = (
        ()
        if verdict
        else tuple(
            place
            for place in answer_places(passages, example.answers)
            if passages[place.passage].title in titles
        )
    )
    reading = ReadingExample(
        example.question,
        tuple(passages),
        places,
        verdict,
        example.answers,
        "multihop",
    )
    options = tuple(
        option._replace(right=place in answering) if answering else option
        for place, option in enumerate(supporting)
    )
    needed = frozenset(number for number, passage in enumerate(passages) if passage.title in titles)
    return SentenceQuestion(reading, options, bool(places or verdict), needed)
