"""A language model reads which structures a question names (the paper, Section 4 and Supplementary 8.2).

It adds to the patterns of :mod:`clew.graph.phrases`; what it names must exist in the base all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from clew.graph.phrases import Phrase
from clew.types import DOCUMENT, PAGE, SECTION, TABLE, Usage

if TYPE_CHECKING:
    from clew.protocols import LanguageModel, Prompt, Snapshot


class Template(Protocol):
    """A prompt with declared variables (:mod:`clew.prompts`)."""

    def render(self, **variables: str) -> Prompt:
        """Return the prompt with its variables filled in."""
        ...


@dataclass(frozen=True, slots=True)
class Reading:
    """What a model read: the phrases, what it cost, and its reply where that could not be understood."""

    phrases: tuple[Phrase, ...]
    usage: Usage
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class StructureReader:
    """Asks ``model`` with ``template`` (variables ``question`` and ``documents``, a list of names).

    The reply is ``{"references": [{"kind": "page" | "table" | "section" | "document", "document": words,
    "number": n, "name": words, "page": n}]}``, empty for a question about content; keys that do not apply
    are left out or null. At most ``shown`` documents are listed.
    """

    model: LanguageModel
    template: Template
    shown: int = 100

    def read(self, question: str, snapshot: Snapshot) -> Reading:
        """Return what the model names. Raises ModelError where it cannot be asked."""
        names = [f"{one.name}: {one.title}" for one in snapshot.documents()[: self.shown]]
        prompt = self.template.render(question=question, documents="\n".join(names))
        completion = self.model.complete([prompt])[0]
        references = _references(completion.text)
        if references is None:
            return Reading((), completion.usage, completion.text)
        return Reading(tuple(_phrases(references, len(question))), completion.usage)


def _references(reply: str) -> list[Any] | None:
    """Return the list in a reply, which may be wrapped in prose or a code block; None where there is none."""
    match = re.search(r"\{.*\}|\[.*\]", reply, re.DOTALL)
    try:
        read = json.loads(match[0]) if match else None
    except json.JSONDecodeError:
        return None
    found = read.get("references", []) if isinstance(read, Mapping) else read
    return found if isinstance(found, list) else None


def _phrases(references: list[Any], end: int) -> Iterator[Phrase]:
    for one in references:
        if not isinstance(one, Mapping) or one.get("kind") not in {PAGE, TABLE, SECTION, DOCUMENT}:
            continue
        kind, document, name = one["kind"], _text(one.get("document")), _text(one.get("name"))
        number, label = _number(one.get("number")), _text(one.get("number"))
        said = " ".join(filter(None, [kind, label or name, document and f"of {document}"]))
        if kind == DOCUMENT:
            name = document or name
        word = {TABLE: "table", SECTION: "section", PAGE: "page"}.get(kind, "")
        yield Phrase(
            kind,
            end,
            end,
            number=number,
            label=label.casefold(),
            word=word,
            # A number says more than a name beside it ("Table 2: Dues").
            name="" if label and kind != DOCUMENT else name,
            page=_number(one.get("page")) if kind == TABLE else None,
            document=document,
            said=said,
        )


def _text(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,4}", value.strip()) else None
