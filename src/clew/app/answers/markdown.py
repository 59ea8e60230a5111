"""A question with its answer as a file to keep: Markdown for people, JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from clew.app.answers.view import AnswerView

#: Characters that mean something in Markdown or HTML.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def render_json(entry: Mapping[str, Any]) -> str:
    """Return a question of the history, with its answer, as JSON."""
    return json.dumps(entry, ensure_ascii=False, indent=2) + "\n"


def render_markdown(entry: Mapping[str, Any]) -> str:
    """Return a question of the history as Markdown: the answer, its numbered evidence with the quoted words, and how
    the answer was reached. Texts of documents are escaped, so they stay text wherever the file is shown."""
    view = AnswerView.from_dict(entry["answer"])
    lines = [f"# {escape_markdown(entry['question'] or entry['chain'])}", ""]
    lines += [*map(escape_markdown, view.text.split("\n")), ""]
    for text in view.from_memory:
        lines += [f"From the model's memory, without evidence: {escape_markdown(text)}", ""]
    lines += [*_ranked(view), *_evidence(view), "## How it came about", "", *_origin(entry, view)]
    return "\n".join(lines).rstrip() + "\n"


def escape_markdown(text: str) -> str:
    r"""Return a text, in one line, that Markdown shows as it is.

    >>> print(escape_markdown("a_b <script>\n# c"))
    a\_b \<script\> \# c
    """
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _ranked(view: AnswerView) -> Iterator[str]:
    if not view.ranked:
        return
    yield from ("## Answers, best first", "")
    for number, row in enumerate(view.ranked, 1):
        by = f" ({escape_markdown(row.ranked_by)})" if row.ranked_by else ""
        yield f"{number}. **{escape_markdown(row.name)}**{by}"
        for check in row.checks:
            met = "not known" if check.met is None else f"met {check.met:.2g}"
            yield f"   - {escape_markdown(check.constraint)}: {met}"
    yield ""


def _evidence(view: AnswerView) -> Iterator[str]:
    if view.evidence:
        yield from ("## What came nearest" if view.abstained else "## Evidence", "")
    for item in view.evidence:
        yield from (f"{item.number}. **{escape_markdown(item.node.location)}**", "")
        yield from (f"   > {escape_markdown(item.node.text)}", "")
        for quote in item.quotes:
            yield from (f"   Quoted: “{escape_markdown(quote.text)}”", "")


def _origin(entry: Mapping[str, Any], view: AnswerView) -> Iterator[str]:
    """Yield when and how the question was answered, and what that cost."""
    yield f"- asked: {datetime.fromtimestamp(entry['asked'], UTC).isoformat(timespec='seconds')}"
    yield f"- recipe: {escape_markdown(view.recipe)}"
    yield f"- reader: {escape_markdown(view.reader)}; model: {escape_markdown(entry['model'] or 'none')}"
    if view.stopped:
        yield f"- stopped: {escape_markdown(view.stopped)}"
    if (usage := view.usage).calls:
        money = "price unknown" if usage.money is None else f"${usage.money:.4f}"
        yield f"- cost: {usage.calls} calls, {usage.tokens_in} tokens in, {usage.tokens_out} out, {money}"
    for step in view.steps:
        yield f"- {escape_markdown(step.name)}: {len(step.hits)} found, {step.seconds:.2f} s"
