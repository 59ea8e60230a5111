"""Questions whose answers are nodes of a graph: STaRK, MetaQA."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from clew.errors import UsageError
from clew.evaluate.datasets import distinct_texts, require_field
from clew.evaluate.examples import Example, Support
from clew.evaluate.streams import read_text_lines, starts_with, read_records, read_csv_rows

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
