"""Questions whose answers are nodes of a graph: STaRK and MetaQA; and the gold triples of MetaQA's questions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from clew.core.errors import UsageError
from clew.evaluate.datasets.records import (
    distinct_texts,
    read_csv_rows,
    read_records,
    read_text_lines,
    require_field,
    starts_with,
)
from clew.evaluate.examples import Example, Support
from clew.triples.language.chain import Chain, Term, Triple

_TOPIC = re.compile(r"\[([^\]]+)\]")


def read_stark(path: Path) -> Iterator[Example]:
    """Yield the questions of STaRK (Wu et al., NeurIPS 2024): CSV of id, query and answer ids. Raises UsageError."""
    columns: dict[str, int] = {}
    for place, row in read_csv_rows(path):
        if not columns:
            columns = {id.strip(): position for position, id in enumerate(row)}
            if missing := {"query", "answer_ids"} - set(columns):
                raise UsageError(f"{place}: no column '{sorted(missing)[0]}'", f"It has: {', '.join(row)}")
            continue
        try:
            ids = tuple(str(answer) for answer in json.loads(row[columns["answer_ids"]]))
            query = row[columns["query"]]
        except (ValueError, IndexError, TypeError) as error:
            raise UsageError(f"{place}: not a question with a list of answer ids") from error
        id = row[columns["id"]] if "id" in columns else place
        yield Example(id, query, ids, "entities", support=tuple(Support(title=answer) for answer in ids))


def read_metaqa(path: Path) -> Iterator[Example]:
    """Yield the questions of MetaQA (Zhang et al., AAAI 2018), with the topic entity in [brackets].

    The file has JSON lines with ``question``, ``answers`` and ``type``, or the official text format: the question, a
    tab, the answers separated by ``|``. Raises UsageError.
    """
    structured = starts_with(path, "{") or starts_with(path, "[{")
    questions = _metaqa_json(path) if structured else _metaqa_text(path)
    for place, question, answers, question_type in questions:
        topic = _TOPIC.search(question)
        if topic is None:
            raise UsageError(f"{place}: no entity in [brackets]: {question[:60]}")
        yield Example(
            place,
            question,
            distinct_texts(answers),
            "entities",
            question_type,
            tuple(Support(title=answer, entity=answer) for answer in answers),
            meta={"topic": topic[1]},
        )


def _metaqa_json(path: Path) -> Iterator[tuple[str, str, list[str], str]]:
    for place, record in read_records(path):
        answers = [str(answer) for answer in require_field(place, record, "answers", list)]
        yield place, require_field(place, record, "question"), answers, str(record.get("type", ""))


def _metaqa_text(path: Path) -> Iterator[tuple[str, str, list[str], str]]:
    for place, line in read_text_lines(path):
        question, tab, answers = line.partition("\t")
        if not tab:
            raise UsageError(f"{place}: no tab between question and answers")
        yield place, question, answers.split("|"), ""


#: The words of MetaQA's question types, and the relation from the film that each stands for in its graph.
METAQA_RELATIONS = {
    "director": "directed_by",
    "writer": "written_by",
    "actor": "starred_actors",
    "year": "release_year",
    "language": "in_language",
    "tags": "has_tags",
    "genre": "has_genre",
    "imdbrating": "has_imdb_rating",
    "imdbvotes": "has_imdb_votes",
}
_FILM_TYPE = "movie"


def gold_triples(example: Example) -> str:
    """Return the triples of a MetaQA question, as its type spells them out; "" for any other question.

    ``writer_to_movie_to_actor`` with the topic ``[Mads Matthiesen]`` becomes ``#1 >> written_by >> Mads Matthiesen;
    #1 >> starred_actors >> #2; final answer: #2``. Every relation leads from a film to one of its properties. The
    official distribution keeps the types in separate files, which this reader does not read.
    """
    words, topic = example.question_type.split("_to_"), example.meta.get("topic")
    if topic is None or len(words) < 2:
        return ""
    triples: list[Triple] = []
    previous = Term(str(topic))
    for number, (source, target) in enumerate(pairwise(words), 1):
        unknown, relation_word = Term(f"#{number}"), source if target == _FILM_TYPE else target
        # Every hop has a film at exactly one end.
        if (source == _FILM_TYPE) == (target == _FILM_TYPE) or relation_word not in METAQA_RELATIONS:
            return ""
        head, tail = (previous, unknown) if source == _FILM_TYPE else (unknown, previous)
        triples.append(Triple(head, METAQA_RELATIONS[relation_word], tail))
        previous = unknown
    return str(Chain(tuple(triples), len(triples)))


def require_gold_triples(examples: Iterable[Example]) -> None:
    """Raise UsageError for the first question without gold triples."""
    for example in examples:
        if not gold_triples(example):
            raise UsageError(
                f"question {example.id}: its gold triples are not known",
                "MetaQA's JSON lines spell them in 'type', such as writer_to_movie_to_actor",
            )
