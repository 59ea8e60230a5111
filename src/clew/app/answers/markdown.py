"""An answer as a file to keep: Markdown for people, JSON for programs, each with its citations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

#: What means something in Markdown or HTML, and stands in a document as text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def render_json(entry: Mapping[str, Any]) -> str:
    """Return a question of the history, whole, as JSON."""
    return json.dumps(entry, ensure_ascii=False, indent=2) + "\n"


def render_markdown(entry: Mapping[str, Any]) -> str:
    """Return a question of the history as Markdown: the answer, its numbered evidence with the quoted words, and
    how it came about. Text of documents is escaped: it stays text wherever the file is shown."""
    return "\n".join(_lines(entry)).rstrip() + "\n"


def escape_markdown(text: str) -> str:
    r"""Return text that Markdown shows as it is, in one line.

    >>> print(escaped("a_b <script>\n# c"))
    a\_b \<script\> \# c
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def evidence_place(shape: Mapping[str, Any]) -> str:
    """Return where a hit stands: document, page, section."""
    parts = [shape["document"]]
    if shape["page"] is not None:
        parts.append(f"page {shape['page']}")
    if shape["section"]:
        parts.append(shape["section"])
    return ", ".join(parts)


def _lines(entry: Mapping[str, Any]) -> Iterator[str]:
    answer = entry["answer"]
    yield f"# {escape_markdown(entry['question'] or entry['chain'])}"
    yield ""
    for paragraph in answer["answer"].split("\n"):
        yield escape_markdown(paragraph)
    yield ""
    for said in answer["remembered"]:
        yield f"From the model's memory, without evidence: {escape_markdown(said)}"
        yield ""
    yield from _ranked(answer.get("ranked", ()))
    if answer["evidence"]:
        yield "## What came nearest" if answer["abstained"] else "## Evidence"
        yield ""
    for number, hit in enumerate(answer["evidence"], 1):
        yield f"{number}. **{escape_markdown(evidence_place(hit))}**"
        yield ""
        yield f"   > {escape_markdown(hit['text'])}"
        yield ""
        for quote in answer["quotes"]:
            if quote["node"] == hit["id"]:
                yield f"   Quoted: “{escape_markdown(quote['text'])}”"
                yield ""
    yield "## How it came about"
    yield ""
    yield from _means(entry, answer)


def _ranked(ranked: Any) -> Iterator[str]:
    if ranked:
        yield "## Answers, best first"
        yield ""
    for number, one in enumerate(ranked, 1):
        by = f" ({escape_markdown(one['by'])})" if one["by"] else ""
        yield f"{number}. **{escape_markdown(one['name'])}**{by}"
        for check in one["checks"]:
            met = "not known" if check["met"] is None else f"met {check['met']:.2g}"
            yield f"   - {escape_markdown(check['constraint'])}: {met}"
    if ranked:
        yield ""


def _means(entry: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[str]:
    usage = answer["usage"]
    asked = datetime.fromtimestamp(entry["asked"], UTC).isoformat(timespec="seconds")
    yield f"- asked: {asked}"
    yield f"- recipe: {escape_markdown(answer['recipe'])}"
    yield f"- reader: {escape_markdown(answer['reader'])}; model: {escape_markdown(entry['model'] or 'none')}"
    if answer["stopped"]:
        yield f"- stopped: {escape_markdown(answer['stopped'])}"
    if usage["calls"]:
        money = "price unknown" if usage["money"] is None else f"${usage['money']:.4f}"
        yield f"- cost: {usage['calls']} calls, {usage['tokens_in']} tokens in, {usage['tokens_out']} out, {money}"
    for step in answer["trail"]:
        yield f"- {escape_markdown(step['name'])}: {len(step['hits'])} found, {step['seconds']:.2f} s"
