"""Questions whose answers are nodes of a graph: STaRK, MetaQA."""

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
    """Yield the questions of STaRK (Wu et al., NeurIPS 2024): CSV of id, query and the ids of the answers."""
    columns: dict[str, int] = {}
    for place, row in read_csv_rows(path):
        if not columns:
            columns = {name.strip(): at for at, name in enumerate(row)}
            if missing := {"query", "answer_ids"} - set(columns):
                raise UsageError(f"{place}: no column '{sorted(missing)[0]}'", f"It has: {', '.join(row)}")
            continue
        try:
            ids = tuple(str(one) for one in json.loads(row[columns["answer_ids"]]))
            query = row[columns["query"]]
        except (ValueError, IndexError, TypeError) as error:
            raise UsageError(f"{place}: not a question with a list of answer ids") from error
        name = row[columns["id"]] if "id" in columns else place
        yield Example(name, query, ids, "entities", support=tuple(Support(title=one) for one in ids))


def read_metaqa(path: Path) -> Iterator[Example]:
    """Yield the questions of MetaQA (Zhang et al., AAAI 2018), the topic entity in [brackets].

    JSON lines with ``question``, ``answers`` and ``type``, or the official text form: question, a tab, the
    answers between ``|``. Raises UsageError.
    """
    structured = starts_with(path, "{") or starts_with(path, "[{")
    found = _metaqa_json(path) if structured else _metaqa_text(path)
    for place, question, answers, kind in found:
        topic = _TOPIC.search(question)
        if topic is None:
            raise UsageError(f"{place}: no entity in [brackets]: {question[:60]}")
        yield Example(
            place,
            question,
            distinct_texts(answers),
            "entities",
            kind,
            tuple(Support(title=answer, entity=answer) for answer in answers),
            meta={"topic": topic[1]},
        )


def _metaqa_json(path: Path) -> Iterator[tuple[str, str, list[str], str]]:
    for place, record in read_records(path):
        answers = [str(one) for one in require_field(place, record, "answers", list)]
        yield place, require_field(place, record, "question"), answers, str(record.get("type", ""))


def _metaqa_text(path: Path) -> Iterator[tuple[str, str, list[str], str]]:
    for place, line in read_text_lines(path):
        question, tab, answers = line.partition("\t")
        if not tab:
            raise UsageError(f"{place}: no tab between question and answers")
        yield place, question, answers.split("|"), ""


#: The relations of the words of MetaQA's types, as its film graph names them, from the film.
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
_FILM = "movie"


def gold_triples(example: Example) -> str:
    """Return the triples that MetaQA's type of a question spells, as a person writes them; "" for other questions.

    ``writer_to_movie_to_actor`` of ``[Mads Matthiesen]`` is ``#1 >> written_by >> Mads Matthiesen; #1 >>
    starred_actors >> #2; final answer: #2``: every hop goes from the film to what is said of it, or back. The
    official files have the types of questions in files of their own; without them there are no triples.
    """
    words, topic = example.question_type.split("_to_"), example.meta.get("topic")
    if topic is None or len(words) < 2:
        return ""
    triples: list[Triple] = []
    before = Term(str(topic))
    for number, (here, there) in enumerate(pairwise(words), 1):
        unknown, said = Term(f"#{number}"), here if there == _FILM else there
        # From film to film there is no relation, and of other words none is known.
        if (here == _FILM) == (there == _FILM) or said not in METAQA_RELATIONS:
            return ""
        head, tail = (before, unknown) if here == _FILM else (unknown, before)
        triples.append(Triple(head, METAQA_RELATIONS[said], tail))
        before = unknown
    return str(Chain(tuple(triples), len(triples)))


def require_gold_triples(examples: Iterable[Example]) -> None:
    """Raise UsageError for the first question whose triples are not known."""
    for example in examples:
        if not gold_triples(example):
            raise UsageError(
                f"question {example.id}: its gold triples are not known",
                "MetaQA's JSON lines spell them in 'type', such as writer_to_movie_to_actor",
            )


# MERGED: The triples of a question that its data set spells out: what a perfect first step would write (oracle
# triples).
