"""Powers and marks of notes, which would join the number before them: 10 to the sixth is not 106."""

from __future__ import annotations

import io

import pytest

from bad_files import changed_zip, good_docx, sample
from clew.core.cell_values import read_cell
from clew.parse.documents.html import fragment_blocks
from clew.parse.documents.reader import parse

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATHS = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def word(body: str) -> bytes:
    content = f'<w:document xmlns:w="{WORD}" xmlns:m="{MATHS}"><w:body>{body}</w:body></w:document>'
    return changed_zip(good_docx(), {"word/document.xml": content.encode()})


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


RAISED = '<w:vertAlign w:val="superscript"/>'
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
ODT = f"""<o:document-content xmlns:o="{OPEN}:office:1.0" xmlns:t="{OPEN}:text:1.0" xmlns:s="{OPEN}:style:1.0"
 xmlns:f="{OPEN}:xsl-fo-compatible:1.0"><o:automatic-styles><s:style s:name="up" s:family="text"><s:text-properties
 s:text-position="super 58%"/></s:style></o:automatic-styles><o:body><o:text><t:p>Holds 10<t:span
 t:style-name="up">6</t:span> litres.</t:p></o:text></o:body></o:document-content>"""
SLIDE = """<p:sld xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"
 xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"><p:cSld><p:spTree><p:sp>
 <p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody>
 <a:p><a:r><a:t>Holds 10</a:t></a:r><a:r><a:rPr baseline="30000"/><a:t>6</a:t></a:r>
 <a:r><a:t> litres.</a:t></a:r></a:p>
 </p:txBody></p:sp></p:spTree></p:cSld></p:sld>"""


def test_powers_in_each_format() -> None:
    files = {
        "a.html": b"<p>Holds 10<sup>6</sup> litres.",
        "a.md": b"Holds 10<sup>6</sup> litres.",
        "a.rtf": rb"{\rtf1 Holds 10{\super 6} litres.}",
        "b.rtf": rb"{\rtf1 Holds 10\super 6\nosupersub  litres.}",
        "a.tex": rb"\documentclass{article} Holds 10\textsuperscript{6} litres.",
        "a.docx": word(f"<w:p>{run('Holds 10')}{run('6', RAISED)}{run(' litres.')}</w:p>"),
        "a.odt": changed_zip(sample("odt"), {"content.xml": ODT.encode()}),
        "a.pptx": changed_zip(sample("pptx"), {"ppt/slides/slide2.xml": SLIDE.encode()}),
        "a.eml": b"From: a@example.org\nSubject: x\nContent-Type: text/html\n\n<p>Holds 10<sup>6</sup> litres.",
    }
    texts = {name: parse(data, name).text for name, data in files.items()}
    assert not [name for name, text in texts.items() if "Holds 10⁶ litres." not in text]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (
            "<p>Revenue<sup>1</sup> in 2021<sup>2</sup> on the 4<sup>th</sup>",
            "Revenue ¹ in 2021 ² on the 4th",
        ),
        (
            '<p>Built in 1821.<sup><a href="#n1">1</a></sup> <a href="#n2"><sup>2</sup></a>',
            "Built in 1821.[1] [2]",
        ),
        ("<p><math><msup><mi>c</mi><mn>2</mn></msup> <mfrac><mi>a</mi><mi>b</mi></mfrac></math>", "c²a/b"),
        (
            "<p><math><semantics><mrow><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi>"
            "</munderover><msub><mi>x</mi><mi>i</mi></msub><mo>+</mo><msqrt><mi>y</mi></msqrt><mspace/></mrow>"
            "<annotation>no</annotation></semantics></math> for it",
            "∑_(i=1)ⁿx_i+√(y) for it",
        ),
        ("<p>x<sup>n+1</sup> and <sup></sup>(a)<sup>(3)</sup>", "xn+1 and (a)(3)"),
    ],
    ids=["notes", "links", "formulas", "sums", "others"],
)
def test_what_is_raised_on_a_page(page: str, text: str) -> None:
    assert parse(page.encode(), "a.html").text.strip() == text


def test_formulas_of_open_document_and_notes_of_books() -> None:
    frame = '<d:frame xmlns:d="urn:d"><d:object xmlns:x="urn:x" x:href="./Formula-1/"/></d:frame>'
    maths = b'<math xmlns="urn:m"><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>'
    content = ODT.replace(" litres.", f" litres, {frame} in all.").encode()
    text = parse(
        changed_zip(sample("odt"), {"content.xml": content, "Formula-1/content.xml": maths}), "a.odt"
    ).text
    assert text == "Holds 10⁶ litres, (a+b)/2 in all."
    note = '<p>Note. <a role="doc-backlink" href="#r">↩</a>'
    page = f'<p>Built in 1821.<a href="#n" epub:type="noteref">1</a></p>{note}'
    texts = [getattr(block, "text", "") for block in fragment_blocks(page)]
    assert texts == ["↩", "Built in 1821.[1]", "Note."]  # the way back to the text is left out


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ('<p>Held 12<a epub:type="noteref" href="end.xhtml#n4">4</a> posts', "Held 12[4] posts"),
        ('<p>Held 12<a role="doc-noteref" href="end.xhtml#n4"><sup>4</sup></a> posts', "Held 12[4] posts"),
        ('<p>Held 12<a href="end.xhtml#n4">4</a> posts', "Held 12[4] posts"),
        ('<p>Held <b>12</b><a href="#n4">4</a><a href="#n5">5</a> posts', "Held 12[4][5] posts"),
        ('<p>Held 12<sup><a href="end.xhtml#n4">4</a></sup> posts', "Held 12⁴ posts"),
        ("<p>Held 12<sup>4, 15</sup> posts in 900 m<sup>2</sup>", "Held 12⁴, ¹⁵ posts in 900 m²"),
        ('<p>He left.<a href="n.html#4">4</a> See <a href="#p12">12</a>', "He left.[4] See 12"),
        ('<p>Held 12<a epub:type="noteref" href="#n">*</a> posts', "Held 12* posts"),
        ('<p>Room 12<a href="rooms.html">4</a>', "Room 124"),
    ],
)
def test_the_mark_of_a_note_is_no_digit_of_the_number_before_it(page: str, text: str) -> None:
    assert [getattr(block, "text", "") for block in fragment_blocks(page, is_book=True)] == [text]
    assert parse(page.encode(), "a.html").text == text
    cell = page.replace("<p>", "<table><tr><th>What<th>Which<tr><td>A<td>") + "</table>"
    row = next(node.text for node in parse(cell.encode(), "a.html").nodes if node.kind == "row")
    assert row.endswith(f"A: Which: {text}")


def test_a_number_with_the_mark_of_a_note_is_a_number_in_its_cell() -> None:
    page = b"<table><tr><th>Item<th>2023<sup>1</sup><tr><td>Sales<td>1,234<sup>2</sup><tr><td>Cost<td>900</table>"
    (table,) = (node.table for node in parse(page, "a.html").nodes if node.table)
    assert table.header == ("Item", "2023 ¹") and table.rows[0] == ("Sales", "1,234²")
    assert read_cell("1,234²").number == 1234 and read_cell("3.5 %¹").amount == 3.5
    assert read_cell("10⁶").kind == "text"


def test_formulas_of_word_in_one_line() -> None:
    def part(name: str, text: str) -> str:
        return f"<m:{name}><m:r><m:t>{text}</m:t></m:r></m:{name}>"

    formula = (
        f"<m:r><m:t>E=</m:t></m:r><m:sSup>{part('e', 'c')}{part('sup', '2')}</m:sSup><m:r><m:t>+</m:t></m:r>"
        f"<m:f>{part('num', 'a+b')}{part('den', '12')}</m:f>"
        f"<m:rad><m:radPr><m:degHide m:val='1'/></m:radPr><m:deg/>{part('e', 'x')}</m:rad>"
        f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr>{part('sub', 'i=1')}{part('sup', 'n')}"
        f"<m:e><m:sSub>{part('e', 'x')}{part('sub', 'i')}</m:sSub></m:e></m:nary>"
    )
    body = f"<w:p>{run('So ')}<m:oMath>{formula}</m:oMath></w:p>"
    assert parse(word(body), "a.docx").text.strip() == "So E=c²+(a+b)/12√(x)∑_(i=1)^n x_i"


def test_raised_letters_in_a_workbook() -> None:
    import openpyxl
    from openpyxl.cell.rich_text import CellRichText, TextBlock
    from openpyxl.cell.text import InlineFont

    book = openpyxl.Workbook()
    book.active.append(["Lock", "Volume"])
    book.active.append(["Wex", CellRichText("10", TextBlock(InlineFont(vertAlign="superscript"), "6"))])
    stream = io.BytesIO()
    book.save(stream)
    assert "| Wex | 10⁶ |" in parse(stream.getvalue(), "a.xlsx").text
