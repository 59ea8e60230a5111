"""An answer as a file to keep: Markdown for people, JSON for programs, each with its citations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

#: What means something in Markdown or HTML, and stands in a document as text.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def as_json(entry: Mapping[str, Any]) -> str:
    """Return a question of the history, whole, as JSON."""
    return json.dumps(entry, ensure_ascii=False, indent=2) + "\n"


def as_markdown(entry: Mapping[str, Any]) -> str:
    """Return a question of the history as Markdown: the answer, its numbered evidence with the quoted words, and
    how it came about. Text of documents is escaped: it stays text wherever the file is shown."""
    return "\n".join(_lines(entry)).rstrip() + "\n"


def escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is, in one line.

    >>> print(escaped("a_b <script>\n# c"))
    a\_b \<script\> \# c
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def place_of(shape: Mapping[str, Any]) -> str:
    """Return where a hit stands: document, page, section."""
    parts = [shape["document"]]
    if shape["page"] is not None:
        parts.append(f"page {shape['page']}")
    if shape["section"]:
        parts.append(shape["section"])
    return ", ".join(parts)


def _lines(entry: Mapping[str, Any]) -> Iterator[str]:
    answer = entry["answer"]
    yield f"# {escaped(entry['question'] or entry['chain'])}"
    yield ""
    for paragraph in answer["answer"].split("\n"):
        yield escaped(paragraph)
    yield ""
    for said in answer["remembered"]:
        yield f"From the model's memory, without evidence: {escaped(said)}"
        yield ""
    yield from _ranked(answer.get("ranked", ()))
    if answer["evidence"]:
        yield "## What came nearest" if answer["abstained"] else "## Evidence"
        yield ""
    for number, hit in enumerate(answer["evidence"], 1):
        yield f"{number}. **{escaped(place_of(hit))}**"
        yield ""
        yield f"   > {escaped(hit['text'])}"
        yield ""
        for quote in answer["quotes"]:
            if quote["node"] == hit["id"]:
                yield f"   Quoted: “{escaped(quote['text'])}”"
                yield ""
    yield "## How it came about"
    yield ""
    yield from _means(entry, answer)


def _ranked(ranked: Any) -> Iterator[str]:
    if ranked:
        yield "## Answers, best first"
        yield ""
    for number, one in enumerate(ranked, 1):
        by = f" ({escaped(one['by'])})" if one["by"] else ""
        yield f"{number}. **{escaped(one['name'])}**{by}"
        for check in one["checks"]:
            met = "not known" if check["met"] is None else f"met {check['met']:.2g}"
            yield f"   - {escaped(check['constraint'])}: {met}"
    if ranked:
        yield ""


def _means(entry: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[str]:
    usage = answer["usage"]
    asked = datetime.fromtimestamp(entry["asked"], UTC).isoformat(timespec="seconds")
    yield f"- asked: {asked}"
    yield f"- recipe: {escaped(answer['recipe'])}"
    yield f"- reader: {escaped(answer['reader'])}; model: {escaped(entry['model'] or 'none')}"
    if answer["stopped"]:
        yield f"- stopped: {escaped(answer['stopped'])}"
    if usage["calls"]:
        money = "price unknown" if usage["money"] is None else f"${usage['money']:.4f}"
        yield f"- cost: {usage['calls']} calls, {usage['tokens_in']} tokens in, {usage['tokens_out']} out, {money}"
    for step in answer["trail"]:
        yield f"- {escaped(step['name'])}: {len(step['hits'])} found, {step['seconds']:.2f} s"
