"""A memo of the pinned quotes, as Markdown or DOCX, each with a footnote to document, page and digest."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from clew.core.errors import UsageError
from clew.core.sources import Source, expand_path
from clew.core.text import clean_text
from clew.knowledge_base.basket import PinnedQuote

SUFFIXES = (".md", ".docx")
TITLE = "Memo"
#: A part of a memo: its kind, its text, and the number of the footnote at its end, 0 for none.
Block = tuple[Literal["title", "question", "note", "quote"], str, int]
#: Characters that XML cannot hold.
#: Characters that Markdown reads as marks.
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~])")
_LINE_MARK = re.compile(r"^([^\S\n]*)([-+=]|\d+[.)])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Memo:
    """Quotes by the questions that they answer, in the order in which they were pinned."""

    quotes: Sequence[PinnedQuote]
    title: str = TITLE

    def footnotes(self) -> list[str]:
        """Return for each quote, in the order of the memo, where it is from."""
        return [f"{quote.place}. Digest of the document: {quote.digest}." for quote in self._by_question()]

    def blocks(self) -> Iterator[Block]:
        """Yield the parts of the memo in order."""
        yield "title", self.title, 0
        question = ""
        for number, quote in enumerate(self._by_question(), 1):
            if quote.question != question:
                question = quote.question
                yield "question", question, 0
            if quote.note:
                yield "note", quote.note, 0
            yield "quote", quote.text, number

    def write(self, path: Source) -> None:
        """Write the memo to a file. Raises UsageError for an ending that is neither .md nor .docx."""
        path = expand_path(path)
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES:
            raise UsageError(f"cannot write a memo to '{path.name}'", f"Known endings: {', '.join(SUFFIXES)}")
        path.write_bytes(self.to_docx() if suffix == ".docx" else self.to_markdown().encode())

    def to_markdown(self) -> str:
        """Return the memo as Markdown with footnotes (``[^1]``)."""
        parts = []
        for kind, text, number in self.blocks():
            marked = _escape_markdown(text)
            if kind == "quote":
                parts.append("\n".join(f"> {line}".rstrip() for line in f"{marked}[^{number}]".splitlines()))
            else:
                prefix = {"title": "# ", "question": "## "}.get(kind, "")
                parts.append(prefix + (" ".join(marked.split()) if prefix else marked))
        notes = [f"[^{number}]: {_escape_markdown(text)}" for number, text in enumerate(self.footnotes(), 1)]
        return "\n\n".join([*parts, *notes]) + "\n"

    def to_docx(self) -> bytes:
        """Return the memo as a Word file with footnotes. The same quotes give the same bytes."""
        body = "".join(
            _paragraph(
                _STYLE_OF[kind], text, _MARK.format(f'footnoteReference w:id="{number}"') if number else ""
            )
            for kind, text, number in self.blocks()
        )
        notes = "".join(
            f'<w:footnote w:id="{number}">'
            + _paragraph("FootnoteText", f" {text}", before=_MARK.format("footnoteRef"))
            + "</w:footnote>"
            for number, text in enumerate(self.footnotes(), 1)
        )
        folder = Path(__file__).parent / "docx"
        parts = {place: (folder / name).read_text(encoding="utf-8") for place, name in _PARTS.items()} | {
            "word/document.xml": f"{_HEAD}<w:document {_NAMESPACE}><w:body>{body}<w:sectPr/></w:body></w:document>",
            "word/footnotes.xml": f"{_HEAD}<w:footnotes {_NAMESPACE}>{_SEPARATORS}{notes}</w:footnotes>",
        }
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, xml in parts.items():
                entry = zipfile.ZipInfo(name)  # of 1980: no time of writing
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, xml)
        return file.getvalue()

    def _by_question(self) -> list[PinnedQuote]:
        order = {
            question: place for place, question in enumerate(dict.fromkeys(q.question for q in self.quotes))
        }
        # Quotes without a question stand first: they would belong to the question above them.
        return sorted(self.quotes, key=lambda quote: (quote.question != "", order[quote.question]))


def _escape_markdown(text: str) -> str:
    marked = _MARKS.sub(r"\\\1", text)
    return _LINE_MARK.sub(lambda match: f"{match[1]}{match[2][:-1]}\\{match[2][-1]}", marked)


# DOCX: Office Open XML, ECMA-376, Part 1, 17 (WordprocessingML); footnotes are 17.11.

_STYLE_OF = {"title": "Title", "question": "Heading1", "note": "Normal", "quote": "Quote"}
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_MARK = '<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:{}/></w:r>'
_SEPARATORS = (
    '<w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>'
    '<w:footnote w:type="continuationSeparator" w:id="0"><w:p><w:r><w:continuationSeparator/></w:r></w:p>'
    "</w:footnote>"
)


#: The parts that every memo has, by their place in the archive.
_PARTS = {
    "[Content_Types].xml": "content-types.xml",
    "_rels/.rels": "package-relations.xml",
    "word/_rels/document.xml.rels": "document-relations.xml",
    "word/styles.xml": "styles.xml",
}


def _paragraph(style: str, text: str, after: str = "", before: str = "") -> str:
    clean = escape(clean_text(text))
    lines = "<w:br/>".join(f'<w:t xml:space="preserve">{line}</w:t>' for line in clean.split("\n"))
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>'
    return f"<w:p>{look}{before}<w:r>{lines}</w:r>{after}</w:p>"
