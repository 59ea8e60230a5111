"""A language model reads which structures a question names (the paper, Section 4 and Supplementary 8.2).

It adds to the patterns of :mod:`clew.graph.phrases`; what it names must exist in the base all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.errors import BadCompletion
from clew.graph.phrases import Phrase
from clew.types import DOCUMENT, SECTION, TABLE, Usage

if TYPE_CHECKING:
    from clew.prompts import Template
    from clew.protocols import LanguageModel, Snapshot
    from clew.types import Scope


@dataclass(frozen=True, slots=True)
class ModelReading:
    """What a model read: the phrases, what it cost, and its reply where that could not be understood."""

    phrases: tuple[Phrase, ...]
    usage: Usage
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class StructureReader:
    """Asks ``model`` with ``template`` (the prompt ``structure``), listing at most ``shown`` documents."""

    model: LanguageModel
    template: Template
    max_documents: int = 100

    def read(self, question: str, snapshot: Snapshot, scope: Scope) -> ModelReading:
        """Return what the model names; nothing of a reply in another form. Raises ModelError."""
        keys = scope.documents
        inside = [one for one in snapshot.documents() if keys is None or one.key in keys]
        names = [f"{one.name} ({one.title})" for one in inside[: self.max_documents]]
        prompt = self.template.render(question=question, documents="\n".join(names))
        completion = self.model.complete([prompt])[0]
        try:
            named = self.template.parse(completion.text)["structures"]
        except BadCompletion:
            return ModelReading((), completion.usage, completion.text)
        return ModelReading(tuple(_phrases(named, len(question))), completion.usage)


def _phrases(named: list[Mapping[str, Any]], end: int) -> Iterator[Phrase]:
    for one in named:
        kind, number, page = one["kind"], one["number"], one["page"]
        name, document = (one["name"] or "").strip(), (one["document"] or "").strip()
        label = "" if number is None else str(number)
        # A section number is given as its name ("2.1", "Item 1A").
        numbered = _NUMBERED.fullmatch(name) if kind in {SECTION, TABLE} else None
        if numbered:
            label = numbered["label"].casefold()
        yield Phrase(
            kind,
            end,
            end,
            number=number,
            label=label,
            word=((numbered and numbered["word"]) or kind).casefold(),
            name=(document or name) if kind == DOCUMENT else "" if label else name,
            page=page if kind == TABLE else None,
            document=document,
            words=" ".join(filter(None, [kind, label or name, document and f"of {document}"])),
        )


_NUMBERED = re.compile(
    r"(?:(?P<word>[A-Za-z]+)\s+)?(?P<label>[A-Za-z]?\d+[a-z]?(?:\.\d+)*|[IVXLC]+)", re.IGNORECASE
)
