"""Makes the PDF, DOCX and XLSX files of ``samples/documents`` from the text in ``samples/source``.

Usage: ``python samples/make.py [FOLDER]`` (needs the ``dev`` extra). The made files are committed, so that
nobody has to run this to use them; the tests run it to see that the committed files still say what their
sources say.

The sources are plain text, in blocks divided by blank lines::

    ! title            # section      ## subsection      ~ centred line
    - bullet           1. numbered    === page break     @FIGURE@ the chart of the paper
    ^ caption          (the line before a table)
    %ruled 74 80 ...   (a table's look: ruled, plain or book; and its column widths in points)
    | cell | cell |    (the first row is the header)
"""

from __future__ import annotations

import csv
import io
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import docx
import openpyxl
from docx.document import Document as Docx
from docx.enum.text import WD_ALIGN_PARAGRAPH
from reportlab.graphics.shapes import Circle, Drawing, Line, PolyLine, String
from reportlab.lib import colors
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    FrameBreak,
    NextPageTemplate,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)

HERE = Path(__file__).parent
SOURCE = HERE / "source"
MADE = datetime(2026, 11, 1)
AUTHOR = "clew samples"
MARKS = {"!": "title", "#": "heading", "##": "subheading", "~": "centred", "-": "bullet", "^": "caption"}


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a source: what it is, and its text; a table's cells, look and column widths."""

    kind: str
    text: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    look: str = "ruled"
    widths: tuple[float, ...] = ()


def blocks(name: str) -> Iterator[Block]:
    """Yield the blocks of the source called ``name``."""
    for chunk in (SOURCE / name).read_text(encoding="utf-8").strip().split("\n\n"):
        lines = chunk.splitlines()
        table = [line for line in lines if line.startswith("|")]
        layout = next((line[1:].split() for line in lines if line.startswith("%")), ["ruled"])
        for line in lines:
            if not line.startswith(("|", "%")):
                yield _line(line)
        if table:
            rows = tuple(tuple(cell.strip() for cell in line.strip("|").split("|")) for line in table)
            yield Block("table", rows=rows, look=layout[0], widths=tuple(map(float, layout[1:])))


def _line(line: str) -> Block:
    if line in {"===", "@FIGURE@"}:
        return Block("break" if line == "===" else "figure")
    mark, _, rest = line.partition(" ")
    if mark in MARKS:
        return Block(MARKS[mark], rest)
    return Block("number" if re.match(r"\d\.$", mark) else "paragraph", line)


# PDF


def syllables(word: str) -> Iterator[tuple[str, str]]:
    """Yield the ways to divide a long word, the latest first: between the consonants of "sedi-ment"."""
    if word.isascii() and word.isalpha() and word.islower() and len(word) > 5:
        for at in range(len(word) - 3, 2, -1):
            if re.fullmatch(r"[aeiou][^aeiou][^aeiouh][aeiou]", word[at - 2 : at + 2]):
                yield word[:at], word[at:]


@dataclass(frozen=True, slots=True)
class Look:
    """The typography of one PDF.

    Fonts, size of the body and its leading as a multiple of it, size of tables, space under a table's rows;
    whether the body is justified, and whether words are divided.
    """

    font: str
    bold: str
    size: float
    leading: float = 1.28
    table_size: float = 9.5
    row_space: float = 3.0
    justified: bool = False
    divided: bool = False

    def style(self, kind: str) -> ParagraphStyle:
        """Return the paragraph style for one kind of block."""
        sizes = {"title": 2.0, "heading": 1.4, "subheading": 1.12, "caption": 0.95}
        size = self.size * sizes.get(kind, 1.0)
        heavy = kind in {"title", "heading", "subheading"}
        style = ParagraphStyle(kind, fontName=self.bold if heavy else self.font, fontSize=size)
        style.leading = size * (1.28 if heavy else self.leading)
        style.spaceBefore = size * (0.7 if heavy or kind == "caption" else 0.1)
        style.spaceAfter = size * (0.3 if kind in {"caption", "bullet"} else 0.5)
        style.keepWithNext = int(heavy or (kind == "caption" and self.divided))
        if kind in {"title", "centred"}:
            style.alignment = TA_CENTER
        elif self.justified and kind == "paragraph":
            style.alignment = TA_JUSTIFY
        if kind in {"bullet", "number"}:
            style.leftIndent, style.bulletIndent = 16, 4
        if self.divided:
            style.hyphenationLang = syllables
        return style

    def flow(self, block: Block) -> Flowable:
        """Return the flowable for a block."""
        if block.kind == "break":
            return PageBreak()
        if block.kind == "figure":
            return chart(self.font)
        if block.kind == "table":
            return self.table(block)
        bullet = "\u2022" if block.kind == "bullet" else None
        text = block.text.replace("&", "&amp;")
        return Paragraph(text, self.style(block.kind), bulletText=bullet)

    def table(self, block: Block) -> Flowable:
        """Return a table; columns of numbers are set flush right. It runs on over pages, with its header."""
        size = self.table_size
        commands: list[tuple[Any, ...]] = [
            ("FONT", (0, 0), (-1, -1), self.font, size),
            ("FONT", (0, 0), (-1, 0), self.bold, size),
            ("TOPPADDING", (0, 0), (-1, -1), 1.5),
            ("BOTTOMPADDING", (0, 0), (-1, -1), self.row_space),
        ]
        columns = list(zip(*block.rows[1:], strict=True))
        for column, cells in enumerate(columns):
            if sum(bool(re.match(r"[$(]?\s?[\d-]", cell)) for cell in cells) > len(cells) / 2 and column:
                commands.append(("ALIGN", (column, 0), (column, -1), "RIGHT"))
        if block.look == "ruled":
            commands.append(("GRID", (0, 0), (-1, -1), 0.5, colors.black))
        elif block.look == "book":
            for rule, row, weight in (("LINEABOVE", 0, 1.0), ("LINEBELOW", 0, 0.5), ("LINEBELOW", -1, 1.0)):
                commands.append((rule, (0, row), (-1, row), weight, colors.black))
        made = Table(block.rows, colWidths=block.widths or None, repeatRows=1, style=TableStyle(commands))
        made.spaceAfter = 10
        return made


def chart(font: str) -> Drawing:
    """Return the figure of the paper: the crest's position by year, with words that are not headings."""
    drawing = Drawing(225, 150)
    points = [(1921, 212), (1924, 226), (1929, 252), (1931, 260), (1933, 264), (1934, 281), (1936, 293)]
    spots = [(30 + (year - 1921) * 12.0, 30 + (metres - 205) * 1.2) for year, metres in points]
    drawing.add(Line(30, 30, 30, 140))
    drawing.add(Line(30, 30, 215, 30))
    drawing.add(PolyLine([value for spot in spots for value in spot], strokeWidth=1))
    for x, y in spots:
        drawing.add(Circle(x, y, 2))
    for x, y, text, size in (
        (60, 128, "Crest of the bank", 11),
        (150, 62, "Training wall", 9),
        (24, 18, "1921", 7),
        (204, 18, "1936", 7),
        (6, 134, "metres", 7),
        (0, 4, "Figure 1. Advance of the crest toward the Dunmere shore.", 8.5),
    ):
        drawing.add(String(x, y, text, fontName=font, fontSize=size))
    return drawing


Decoration = Callable[[Canvas, Any], None]


def write_pdf(path: Path, title: str, story: list[Flowable], templates: list[PageTemplate]) -> None:
    """Write a PDF whose bytes depend on the story alone."""
    document = BaseDocTemplate(str(path), pagesize=A4, title=title, author=AUTHOR, invariant=1)
    document.addPageTemplates(templates)
    document.build(story)


def annual_report(folder: Path) -> None:
    """Write the company's report: eight pages with running headers and footers, one of them a cover."""
    look = Look("Helvetica", "Helvetica-Bold", 12, leading=1.55, table_size=9, row_space=4.5)
    width, height = A4

    def margins(canvas: Canvas, _: Any) -> None:
        page = canvas.getPageNumber()
        if page == 1:
            return
        canvas.setFont("Helvetica", 8)
        canvas.drawString(60, height - 40, "Oskell Passage Company")
        canvas.drawRightString(width - 60, height - 40, "Annual Report 1931")
        canvas.line(60, height - 46, width - 60, height - 46)
        canvas.drawCentredString(width / 2, 34, f"Page {page}")

    frame = Frame(60, 56, width - 120, height - 120, id="page")
    story = [look.flow(block) for block in blocks("annual-report.txt")]
    story.insert(0, Spacer(1, 60))
    path = folder / "oskell-passage-annual-report-1931.pdf"
    title = "Oskell Passage Company: Annual Report and Accounts 1931"
    write_pdf(path, title, story, [PageTemplate("page", [frame], onPage=margins)])


def paper(folder: Path) -> None:
    """Write the paper: two justified columns with divided words, the title across both on the first page."""
    look = Look("Times-Roman", "Times-Bold", 10.5, 1.36, 9, justified=True, divided=True)
    width, height = A4
    column, top = (width - 120 - 20) / 2, height - 200

    def margins(canvas: Canvas, _: Any) -> None:
        page = canvas.getPageNumber()
        canvas.setFont("Times-Italic", 9)
        canvas.drawString(60, height - 40, "Tamsin and Loam: Movement of the Quillstone Bank")
        canvas.drawRightString(width - 60, height - 40, str(page + 112))

    def columns(height: float) -> list[Frame]:
        return [
            Frame(60 + i * (column + 20), 56, column, height, 0, 0, 0, 0, id=f"column{i}") for i in (0, 1)
        ]

    head = Frame(60, top + 10, width - 120, height - 60 - top - 10, id="head")
    items = list(blocks("quillstone-bank.txt"))
    start = next(number for number, block in enumerate(items) if block.kind == "heading")
    story = [look.flow(block) for block in items[:start]]
    story += [NextPageTemplate("rest"), FrameBreak(), *map(look.flow, items[start:])]
    first = PageTemplate("first", [head, *columns(top - 56)], onPage=margins)
    rest = PageTemplate("rest", columns(height - 60 - 56), onPage=margins)
    title = "Movement of the Quillstone Bank in the Lower Oskell, 1921 to 1936"
    write_pdf(folder / "quillstone-bank-paper.pdf", title, story, [first, rest])


def contract(folder: Path) -> None:
    """Write the contract: two plain pages with nothing in the margins but a page count."""
    look = Look("Times-Roman", "Times-Bold", 12, table_size=10.5)
    width, height = A4

    def margins(canvas: Canvas, _: Any) -> None:
        canvas.setFont("Times-Roman", 9)
        canvas.drawCentredString(width / 2, 30, f"{canvas.getPageNumber()} of 2")

    frame = Frame(72, 56, width - 144, height - 120, id="page")
    story = [look.flow(block) for block in blocks("lighter-contract.txt")]
    title = "Agreement for the hire of the lighter Bittern"
    write_pdf(folder / "lighter-hire-contract.pdf", title, story, [PageTemplate("page", [frame], margins)])


# DOCX and XLSX


def add_to_docx(document: Docx, block: Block) -> None:
    """Append a block with Word's own styles."""
    styles = {"title": "Title", "bullet": "List Bullet", "number": "List Number", "caption": "Caption"}
    if block.kind in {"heading", "subheading"}:
        document.add_heading(block.text, 1 if block.kind == "heading" else 2)
    elif block.kind == "table":
        table = document.add_table(0, len(block.rows[0]), style="Table Grid")
        for row in block.rows:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text
    else:
        text = re.sub(r"^\d\. ", "", block.text) if block.kind == "number" else block.text
        paragraph = document.add_paragraph(text, styles.get(block.kind))
        if block.kind == "centred":
            paragraph.alignment = WD_ALIGN_PARAGRAPH.CENTER


def write_docx(path: Path, source: str) -> None:
    """Write a Word document from a source."""
    document = docx.Document()
    items = list(blocks(source))
    for block in items:
        add_to_docx(document, block)
    properties = document.core_properties
    properties.title, properties.author, properties.comments = items[0].text, AUTHOR, ""
    properties.created = properties.modified = MADE
    buffer = io.BytesIO()
    document.save(buffer)
    path.write_bytes(undated(buffer.getvalue()))


def ledger(folder: Path) -> None:
    """Write the workbook: a sheet of freight and a sheet of crew."""
    book = openpyxl.Workbook()
    book.properties.creator, book.properties.created = AUTHOR, MADE
    book.properties.title = "Oskell Passage Company: ledger of freight and crew, 1928 to 1929"
    sheets = (("Freight 1928-29", "freight.csv"), ("Crew", "crew.csv"))
    for sheet, (title, name) in zip((book.active, book.create_sheet()), sheets, strict=True):
        sheet.title = title
        with (SOURCE / name).open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines):
                sheet.append([_value(cell) for cell in row])
        for column in sheet.columns:
            if str(column[0].value).endswith("($)"):
                for cell in column[1:]:
                    cell.number_format = "0.00"
            width = max(len(str(cell.value)) for cell in column)
            sheet.column_dimensions[column[0].column_letter].width = width + 2
    buffer = io.BytesIO()
    book.save(buffer)
    (folder / "company-ledger-1928-29.xlsx").write_bytes(undated(buffer.getvalue()))


def _value(cell: str) -> str | int | float | date:
    if re.fullmatch(r"\d{4}-\d\d-\d\d", cell):
        return date.fromisoformat(cell)
    return (
        float(cell)
        if "." in cell and cell.replace(".", "").isdigit()
        else int(cell)
        if cell.isdigit()
        else cell
    )


def undated(office: bytes) -> bytes:
    """Return an Office file with the times of writing taken out, so that equal content is equal bytes."""
    buffer = io.BytesIO()
    stamp = MADE.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    with zipfile.ZipFile(io.BytesIO(office)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "docProps/core.xml":
                data = re.sub(rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>" + stamp, data)
            new.writestr(zipfile.ZipInfo(name, MADE.timetuple()[:6]), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def make(folder: Path) -> None:
    """Make all files in ``folder``."""
    annual_report(folder)
    paper(folder)
    contract(folder)
    write_docx(folder / "merrowgate-council-minutes.docx", "council-minutes.txt")
    write_docx(folder / "heron-maid-inquiry.docx", "inquiry-report.txt")
    ledger(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "documents")
