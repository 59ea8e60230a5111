"""The format for your own questions: JSON lines of question, answers and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError
from clew.evaluate.datasets.records import distinct_texts, read_records, require_field
from clew.evaluate.examples import Example, Support


def read_own(path: Path) -> Iterator[Example]:
    """Yield the questions of a file in clew's own format. Raises UsageError, naming the line.

    Only ``question`` is required. ``answers`` (or ``answer``) is a text or a list of texts; without it the right
    response is to abstain. ``evidence`` is a list of file names, or of objects with ``document`` and optionally
    ``page`` (from 1) and ``text``. ``id`` and ``type`` are optional.

        {"question": "Who built the lighter?", "answers": ["Tolland Yard"], "evidence": [{"document": "r.pdf",
        "page": 3}]}
    """
    for place, record in read_records(path):
        value = record.get("answers", record.get("answer", ())) if isinstance(record, dict) else ()
        answers = [value] if isinstance(value, str) else value
        if not isinstance(answers, list | tuple) or not all(isinstance(answer, str) for answer in answers):
            raise UsageError(f"{place}: 'answers' is not a list of texts")
        evidence = record.get("evidence", []) if isinstance(record, dict) else []
        if not isinstance(evidence, list):
            raise UsageError(f"{place}: 'evidence' is not a list")
        question = require_field(place, record, "question")
        if not question.strip():
            raise UsageError(f"{place}: the question is empty")
        distinct_answers = distinct_texts(list(answers))
        yield Example(
            str(record.get("id") or place),
            question,
            distinct_answers,
            "span" if distinct_answers else "unanswerable",
            str(record.get("type", "")),
            tuple(_support(place, entry) for entry in evidence),
        )


def _support(place: str, evidence: Any) -> Support:
    if isinstance(evidence, str):
        return Support(title=evidence)
    page = evidence.get("page") if isinstance(evidence, dict) else None
    if not isinstance(evidence, dict) or not (evidence.get("document") or evidence.get("text")):
        raise UsageError(f"{place}: evidence is neither a file name nor an object with 'document'")
    if page is not None and (not isinstance(page, int) or page < 1):
        raise UsageError(f"{place}: 'page' is not a page number from 1: {page}")
    return Support(str(evidence.get("document", "")), page=page, text=str(evidence.get("text", "")))
