"""Questions over tables and text: TAT-QA and OTT-QA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError
from clew.core.types import Table
from clew.evaluate.datasets.records import read_records, require_field
from clew.evaluate.examples import AnswerType, Example, Paragraph, Support
from clew.parse.data_tables import table_from_grid

_TYPES: dict[str, AnswerType] = {
    "span": "span",
    "multi-span": "span",
    "arithmetic": "number",
    "count": "number",
}


def read_tatqa(path: Path) -> Iterator[Example]:
    """Yield the questions of TAT-QA (Zhu et al., ACL 2021): a JSON array of contexts, each a table with paragraphs.

    The corpus of a question is its context, a document under the table's id. Several spans are joined by ``; ``;
    their list, the scale and the derivation are in ``meta``. Raises UsageError.
    """
    for place, record in read_records(path):
        table = require_field(place, record, "table", dict)
        title = str(require_field(place, table, "uid"))
        rows = require_field(place, table, "table", list)
        grid = [list(map(str, row)) for row in rows if isinstance(row, list)]
        paragraphs = [str(part.get("text", "")) for part in require_field(place, record, "paragraphs", list)]
        corpus = (
            Paragraph(title, (), (), table_from_grid(grid)),
            *(Paragraph(title, (text,), ()) for text in paragraphs if text.strip()),
        )
        for question in require_field(place, record, "questions", list):
            kind = str(require_field(place, question, "answer_type"))
            if kind not in _TYPES:
                raise UsageError(f"{place}: an unknown type of answer: {kind}")
            gold = question.get("answer")
            values = [str(value) for value in gold] if isinstance(gold, list) else [str(gold)]
            scale = str(question.get("scale") or "")
            source = str(question.get("answer_from", ""))
            yield Example(
                str(require_field(place, question, "uid")),
                require_field(place, question, "question"),
                ("; ".join(f"{value} {scale}".strip() for value in values),),
                _TYPES[kind],
                f"{kind}, {source}",
                (Support(title),),
                corpus=corpus,
                meta={
                    "values": values,
                    "scale": scale,
                    "kind": kind,
                    "source": source,
                    "derivation": question.get("derivation", ""),
                },
            )


#: The tables and the linked passages, which lie beside the questions.
OTTQA_TABLES, OTTQA_PASSAGES = "tables.jsonl", "passages.jsonl"


def read_ottqa(path: Path) -> Iterator[Example]:
    """Yield the questions of OTT-QA (Chen et al., ICLR 2021): JSON lines, with ``tables.jsonl`` and
    ``passages.jsonl`` beside the file.

    The corpus of a question is its table and the passages that the table links to; ``--corpus pooled`` has those of
    all questions. The gold evidence is the table and the passages of the answer nodes. Raises UsageError.
    """
    tables: dict[str, dict[str, Any]] = {}
    passages: dict[str, dict[str, Any]] = {}
    corpora: dict[str, tuple[Paragraph, ...]] = {}
    for place, record in read_records(path):
        id = str(require_field(place, record, "table_id"))
        if not tables:
            tables = {
                str(entry.get("table_id")): entry for entry in _read_lines(path.with_name(OTTQA_TABLES))
            }
            passages = {
                str(entry.get("link")): entry for entry in _read_lines(path.with_name(OTTQA_PASSAGES))
            }
        if id not in tables:
            raise UsageError(f"{place}: no table '{id}' in {OTTQA_TABLES}")
        if id not in corpora:
            corpora[id] = _ottqa_corpus(tables[id], passages)
        links = [str(node[2]) for node in record.get("answer-node") or () if len(node) > 2 and node[2]]
        gold = [Support(corpora[id][0].title), *(Support(_link_title(link)) for link in links)]
        yield Example(
            str(require_field(place, record, "question_id")),
            require_field(place, record, "question"),
            (str(record.get("answer-text", "")),),
            question_type="/".join(
                sorted({str(node[3]) for node in record.get("answer-node") or () if len(node) > 3})
            ),
            support=tuple(dict.fromkeys(gold)),
            corpus=corpora[id],
            meta={"table": id},
        )


def read_ottqa_pool(path: Path) -> list[Paragraph]:
    """Return all tables and passages that lie beside a file of OTT-QA's questions, those of no question too."""
    passages = {str(entry["link"]): entry for entry in _read_lines(path.with_name(OTTQA_PASSAGES))}
    tables = [_ottqa_corpus(entry, {})[0] for entry in _read_lines(path.with_name(OTTQA_TABLES))]
    return [
        *tables,
        *(Paragraph(_link_title(link), (str(entry["text"]),)) for link, entry in passages.items()),
    ]


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        raise UsageError(f"no file at {path}", "OTT-QA needs its tables and passages beside the questions")
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def _ottqa_corpus(table: dict[str, Any], passages: dict[str, dict[str, Any]]) -> tuple[Paragraph, ...]:
    title = " - ".join(part for part in (table.get("title", ""), table.get("section_title", "")) if part)
    header = tuple(str(cell[0]) for cell in table["header"])
    rows = tuple(tuple(str(cell[0]) for cell in row) for row in table["data"])
    links = dict.fromkeys(
        link for row in [table["header"], *table["data"]] for cell in row for link in cell[1]
    )
    linked = [passages[link] for link in links if link in passages]
    return (
        Paragraph(title, (), (), Table(header, rows, title)),
        *(Paragraph(_link_title(record["link"]), (str(record["text"]),)) for record in linked),
    )


def _link_title(link: str) -> str:
    return link.removeprefix("/wiki/").replace("_", " ")
