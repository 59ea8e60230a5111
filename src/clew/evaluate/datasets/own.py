"""One's own questions: JSON lines of question, answers and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError
from clew.evaluate.datasets.records import distinct_texts, read_records, require_field
from clew.evaluate.examples import Example, Support


def read_own(path: Path) -> Iterator[Example]:
    """Yield one's own questions.

    ``question`` is needed; ``answers`` (or ``answer``) is a list or a text, none of them for a question that
    the documents do not answer; ``evidence`` is a list whose entries are a file name, or an object with
    ``document`` and optionally ``page`` (from 1) and ``text``. ``id`` and ``type`` are optional. Raises
    UsageError, naming the line.

        {"question": "Who built the lighter?", "answers": ["Tolland Yard"], "evidence": [{"document": "r.pdf",
        "page": 3}]}
    """
    for place, record in read_records(path):
        given = record.get("answers", record.get("answer", ())) if isinstance(record, dict) else ()
        answers = [given] if isinstance(given, str) else given
        if not isinstance(answers, list | tuple) or not all(isinstance(one, str) for one in answers):
            raise UsageError(f"{place}: 'answers' is not a list of texts")
        evidence = record.get("evidence", []) if isinstance(record, dict) else []
        if not isinstance(evidence, list):
            raise UsageError(f"{place}: 'evidence' is not a list")
        asked = require_field(place, record, "question")
        if not asked.strip():
            raise UsageError(f"{place}: the question is empty")
        kept = distinct_texts(list(answers))
        yield Example(
            str(record.get("id") or place),
            asked,
            kept,
            "span" if kept else "unanswerable",
            str(record.get("type", "")),
            tuple(_support(place, one) for one in evidence),
        )


def _support(place: str, given: Any) -> Support:
    if isinstance(given, str):
        return Support(title=given)
    page = given.get("page") if isinstance(given, dict) else None
    if not isinstance(given, dict) or not (given.get("document") or given.get("text")):
        raise UsageError(f"{place}: evidence is neither a file name nor an object with 'document'")
    if page is not None and (not isinstance(page, int) or page < 1):
        raise UsageError(f"{place}: 'page' is not a page number from 1: {page}")
    return Support(str(given.get("document", "")), page=page, text=str(given.get("text", "")))
