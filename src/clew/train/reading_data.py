"""The data sets that a reader is trained on, and how much of each goes into its training.

| name                                    | file                                                                 |
|-----------------------------------------|------------------------------------------------------------------------|
| ``reading``                             | JSON lines of questions with a marked answer                           |
| ``hotpotqa``, ``2wikimultihopqa``, ``musique`` | multi-hop questions with gold paragraphs                        |
| ``tatqa``                               | TAT-QA's JSON                                                          |
| ``tables``                              | OTT-QA's tables, JSON lines: ``title``, ``header``, ``data``           |
| ``passages``                            | OTT-QA's passages, JSON lines: ``link``, ``text``                      |
| ``written``                             | JSON lines of questions over passages with the sentences that answer |
| ``polar``                               | JSON lines of questions of yes or no, each with a sentence           |
| ``unseen``                              | as ``written``: nothing about these documents is trained on          |
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError, unknown_name_error
from clew.core.text import sentence_spans
from clew.core.types import ReaderPassage, Table
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.datasets.records import read_records
from clew.evaluate.examples import shuffle_examples
from clew.parse.documents.tables import row_texts
from clew.train.evidence_chains import evidence_chains, gold_passages
from clew.train.reading_examples import (
    Place,
    ReadingExample,
    Verdict,
    answer_places,
    attribute_examples,
    cell_examples,
    lengthen_contexts,
    marked_examples,
    multihop_examples,
    read_tables,
    tatqa_examples,
    unanswerable_examples,
    verdict_examples,
    written_examples,
)
from clew.train.sentence_questions import (
    SentenceQuestion,
    answered_question,
    document_titles,
    multihop_question,
    read_marked,
    read_polar,
    read_written,
)

MULTIHOP = ("hotpotqa", "2wikimultihopqa", "musique")
SOURCES = ("reading", *MULTIHOP, "tatqa", "tables", "passages", "written", "polar", "unseen")
#: At most so many examples of each kind go into a training, a random sample of all. QAMR has 35 questions about each
#: of 900 sentences, PolicyQA and COVID-QA have long contexts: fewer of them teach as much. QED's are taken twice.
MIXTURE = {
    "qamr": 10000,
    "policyqa": 1600,
    "covidqa": 300,
    "qed": 2500,
    "unanswerable": 3200,
    "multihop": 9000,
    "tatqa": 1000,
    "tatqa cells": 2000,
    "cells": 2000,
    "attributes": 4500,
    "verdicts": 800,
    "written": 10000,
}
#: SubjQA names no licence: it is for measuring only.
NOT_TRAINED_ON = ("subjqa",)
#: The share of short contexts that get other sentences around them.
_LENGTHENED = 0.6
#: The share of answerable questions that are asked again of passages that do not answer them.
_UNANSWERABLE = 0.3
_CELLS_PER_TABLE = 24
_VERDICT_SHARE = 0.4
#: Questions are written from the sentences of so many articles; parsing them takes some ten seconds a thousand.
_WRITTEN_ARTICLES = 3600
#: At most so many questions of ``reading`` and of ``tatqa`` are among those whose sentences are trained on.
_MARKED_SENTENCES, _TATQA_SENTENCES = 1200, 300
#: At most so many questions of yes or no are among them.
_POLAR_SENTENCES = 1000
#: There are few questions of several hops: each is taken so often.
_MULTIHOP_TIMES = 3


@dataclass(frozen=True, slots=True)
class ReadingData:
    """The examples of a training, those held out from it, and what they come from (names and hashes of the files);
    ``questions`` are those of its second stage."""

    training: Sequence[ReadingExample]
    held_out: Sequence[ReadingExample]
    origin: dict[str, Any]
    questions: Sequence[SentenceQuestion] = ()


def parse_sources(data: Iterable[str]) -> list[tuple[str, Path]]:
    """Return name and path of each ``NAME=PATH``. Raises UsageError."""
    sources = []
    for text in data:
        name, equals, path = text.partition("=")
        if not equals or not Path(path).is_file():
            raise UsageError(f"no file '{path or text}'", f"Write NAME=PATH; the names: {', '.join(SOURCES)}")
        if name not in SOURCES:
            raise unknown_name_error("data set for readers", name, SOURCES)
        sources.append((name, Path(path)))
    return sources


def collect_examples(data: Sequence[str], held_out: float, seed: int, scale: float = 1.0) -> ReadingData:
    """Return the examples of data sets (``NAME=PATH``) in the proportions of :data:`MIXTURE`.

    A share ``held_out`` of the multi-hop questions and of TAT-QA's contexts is held out whole: their examples are the
    questions over their gold paragraphs. ``scale`` multiplies the numbers of the mixture. Raises UsageError.
    """
    sources = parse_sources(data)
    rng = random.Random(seed)
    kinds: dict[str, list[ReadingExample]] = defaultdict(list)
    measured: list[ReadingExample] = []
    passages = [
        ReaderPassage(record["link"].removeprefix("/wiki/").replace("_", " "), record["text"])
        for name, path in sources
        if name == "passages"
        for _, record in read_records(path)
    ]
    beginnings = [_beginning(passage) for passage in passages]
    for name, path in sources:
        if name == "reading":
            marked = list(marked_examples(path, NOT_TRAINED_ON))
            marked = list(lengthen_contexts(marked, _LENGTHENED, beginnings, rng))
            for example in marked:
                kinds[example.source].append(example)
            kinds["unanswerable"] += unanswerable_examples(marked, _UNANSWERABLE, rng)
        elif name in MULTIHOP:
            groups = shuffle_examples(parse_dataset(f"{name}={path}").examples(), seed)
            count = round(held_out * len(groups))
            for group in groups[:count]:
                measured.append(gold_example(name, group[0]))
            for group in groups[count:]:
                kinds["multihop"] += multihop_examples(group[0], rng)
        elif name == "tatqa":
            _add_tatqa(path, held_out, seed, rng, kinds, measured)
        elif name == "tables":
            for _, table in read_records(path):
                header = tuple(str(cell[0]) for cell in table["header"])
                rows = tuple(tuple(str(cell[0]) for cell in row) for row in table["data"])
                kinds["cells"] += cell_examples(Table(header, rows), table["title"], _CELLS_PER_TABLE, rng)
        else:
            kinds["attributes"] += attribute_examples(passages, rng)
            kinds["verdicts"] += verdict_examples(passages, _VERDICT_SHARE, rng)
            written = list(written_examples(passages, _WRITTEN_ARTICLES, rng))
            kinds["written"] += written
            kinds["unanswerable"] += unanswerable_examples(written, _UNANSWERABLE, rng)
    kinds["qed"] *= 2
    training = [
        example
        for kind in sorted(kinds)
        for example in rng.sample(kinds[kind], min(len(kinds[kind]), round(scale * MIXTURE.get(kind, 1000))))
    ]
    if not training:
        raise UsageError("no examples in the data", f"The names of data sets: {', '.join(SOURCES)}")
    origin = {
        "data": [
            {"name": name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()[:16]}
            for name, path in sources
        ],
        "examples": len(training),
        "held_out": len(measured),
        "share_held_out": held_out,
        "scale": scale,
    }
    return ReadingData(training, measured, origin, collect_questions(sources, held_out, seed))


def collect_questions(
    sources: Sequence[tuple[str, Path]], held_out: float, seed: int
) -> list[SentenceQuestion]:
    """Return the questions whose sentences are trained on; none where nothing was written for it. What is held out is
    the same as for :func:`collect_examples`."""
    if not any(name == "written" for name, _ in sources):
        return []
    unseen = {title for name, path in sources if name == "unseen" for title in document_titles(path)}
    rng = random.Random(seed)
    questions: list[SentenceQuestion] = []
    polar = [each for name, path in sources if name == "polar" for each in read_polar(path, unseen)]
    questions += rng.sample(polar, min(len(polar), _POLAR_SENTENCES))
    for name, path in sources:
        if name == "written":
            questions += read_written(path)
        elif name == "reading":
            questions += read_marked(path, _MARKED_SENTENCES, NOT_TRAINED_ON)
        elif name in MULTIHOP:
            groups = shuffle_examples(parse_dataset(f"{name}={path}").examples(), seed)
            hops = [multihop_question(group[0]) for group in groups[round(held_out * len(groups)) :]]
            questions += hops * _MULTIHOP_TIMES
        elif name == "tatqa":
            contexts = json.loads(path.read_text(encoding="utf-8"))
            random.Random(seed).shuffle(contexts)
            answered = [
                question
                for context in contexts[round(held_out * len(contexts)) :]
                for question in map(answered_question, tatqa_questions(context))
                if question.golds
            ]
            questions += rng.sample(answered, min(len(answered), _TATQA_SENTENCES))
    return questions


def _add_tatqa(
    path: Path,
    held_out: float,
    seed: int,
    rng: random.Random,
    kinds: dict[str, list[ReadingExample]],
    measured: list[ReadingExample],
) -> None:
    contexts = json.loads(path.read_text(encoding="utf-8"))
    random.Random(seed).shuffle(contexts)
    count = round(held_out * len(contexts))
    for context in contexts[:count]:
        measured += tatqa_questions(context)
    for context in contexts[count:]:
        kinds["tatqa"] += tatqa_examples(context, rng)
        kinds["tatqa cells"] += cell_examples(read_tables(context["table"]["table"]), "", 20, rng)


def _beginning(passage: ReaderPassage) -> str:
    """Return the first sentence of an article."""
    start, end = (sentence_spans(passage.text) or [(0, 0)])[0]
    return passage.text[start:end]


def gold_example(name: str, example: Any) -> ReadingExample:
    """Return a question over its gold paragraphs in the order of the hops, for measuring."""
    chains = evidence_chains(example)
    path = chains[0].passages if chains else gold_passages(example)
    passages = tuple(ReaderPassage(passage.title, passage.text) for passage in path)
    answer = example.answers[0].strip().lower()
    places = tuple(answer_places(passages, example.answers)) or (Place(0, 0, 1),)
    source = f"{name}: {example.question_type}" if example.question_type else name
    if answer in {"yes", "no"}:
        verdict: Verdict = "yes" if answer == "yes" else "no"
        return ReadingExample(example.question, passages, (), verdict, example.answers, source)
    return ReadingExample(example.question, passages, places, "", example.answers, source)


def tatqa_questions(context: dict[str, Any]) -> list[ReadingExample]:
    """Return the questions of a context of TAT-QA that one span answers, over all of its rows and paragraphs."""
    rows = "\n".join(row_texts(read_tables(context["table"]["table"])))
    texts = [rows, *(paragraph["text"] for paragraph in context["paragraphs"])]
    passages = tuple(ReaderPassage("", text) for text in texts)
    examples = []
    for question in context["questions"]:
        if question["answer_type"] == "span" and len(question["answer"]) == 1:
            answers = (str(question["answer"][0]),)
            places = tuple(answer_places(passages, answers)) or (Place(0, 0, 1),)
            source = f"tatqa: {question['answer_from']}"
            examples.append(ReadingExample(question["question"], passages, places, "", answers, source))
    return examples
