"""What a reader sees of a Word paragraph: without deleted and hidden text, with its footnotes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.parse.opc import attribute_value, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element

#: Deleted text, moved-away text, field codes, and the second version of what is stored twice.
_SKIPPED = frozenset("del moveFrom instrText delText delInstrText Fallback pPr rPr sdtPr".split())
_LITERAL = {"tab": " ", "cr": "\n", "noBreakHyphen": "-", "ptab": " "}
_SPACES = re.compile(r"[ \t\u00a0]+")
_INVISIBLE = {ord(c): None for c in "\u00ad\u200b\u200c\u200d\u2060\ufeff"}


@dataclass(slots=True)
class Footnotes:
    """Footnotes and endnotes by kind and id; each is handed out once, after what refers to it."""

    _texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _waiting: list[str] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def from_xml(cls, footnotes: _Element | None, endnotes: _Element | None) -> Footnotes:
        """Read footnotes.xml and endnotes.xml, where there are any."""
        notes = cls()
        for kind, root in (("footnote", footnotes), ("endnote", endnotes)):
            for element in root if root is not None else ():
                if local_name(element) == kind and not attribute_value(element, "type").startswith(("sep", "cont")):
                    text = element_text(element, cls())
                    notes._texts[kind, attribute_value(element, "id")] = text
        return notes

    def cite(self, kind: str, name: str) -> str:
        """Return the mark of a note in the text; its own text waits for :meth:`take`."""
        text = self._texts.pop((kind, name), "")
        if not text:
            return ""
        self._count += 1
        self._waiting.append(f"[{self._count}] {text}")
        return f"[{self._count}]"

    def take_pending(self) -> list[str]:
        """Return the notes referred to since the last call."""
        waiting, self._waiting = self._waiting, []
        return waiting


def paragraph_text(element: _Element, notes: Footnotes) -> tuple[str, list[str]]:
    """Return the text of a paragraph and the texts of the boxes that are anchored in it."""
    from lxml import etree

    parts: list[str] = []
    boxes: list[str] = []
    walk = etree.iterwalk(element, events=("start",))
    for _, inner in walk:
        name = local_name(inner)
        if name in _SKIPPED or (name == "r" and _hidden(inner)):
            walk.skip_subtree()
        elif name == "txbxContent":
            walk.skip_subtree()
            if text := element_text(inner, notes):
                boxes.append(text)
        elif name == "t":
            parts.append(inner.text or "")
        elif name in _LITERAL:
            parts.append(_LITERAL[name])
        elif name == "br" and attribute_value(inner, "type") not in {"page", "column"}:
            parts.append("\n")
        elif name in {"footnoteReference", "endnoteReference"}:
            parts.append(notes.cite(name.removesuffix("Reference"), attribute_value(inner, "id")))
    return _tidy("".join(parts)), boxes


def element_text(element: _Element, notes: Footnotes) -> str:
    """Return the text of all paragraphs below ``element``, one a line."""
    lines: list[str] = []
    for paragraph in element.iter("{*}p"):
        # Paragraphs of boxes in this one come by themselves.
        text, _ = paragraph_text(paragraph, notes)
        if text and not any(local_name(above) == "Fallback" for above in paragraph.iterancestors()):
            lines.append(text)
    return "\n".join(lines)


def _hidden(run: _Element) -> bool:
    for properties in run:
        if local_name(properties) == "rPr":
            return any(
                local_name(child) == "vanish" and attribute_value(child, "val", "1") not in {"0", "false"}
                for child in properties
            )
    return False


def _tidy(text: str) -> str:
    lines = (_SPACES.sub(" ", line).strip() for line in text.translate(_INVISIBLE).split("\n"))
    return "\n".join(line for line in lines if line)
