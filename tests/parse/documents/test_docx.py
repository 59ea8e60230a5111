"""Word documents: written by python-docx or by hand, read by us."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import docx
import pytest
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement, parse_xml

from bad_files import changed_zip, good_docx
from clew.core.errors import UnreadableFile
from clew.parse.documents.docx import format_list_number, parse
from clew.parse.documents.limits import Limits
from parse_trees import outline, read, read_outline, tables

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def save(document: Any) -> bytes:
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def body(content: str, **parts: str) -> bytes:
    """Return a document whose body is exactly this XML; ``parts`` are further parts in ``word/``."""
    spaces = f'xmlns:w="{WORD}" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    changes = {"word/document.xml": f"<w:document {spaces}><w:body>{content}</w:body></w:document>"}
    relations = "".join(
        f'<Relationship Id="r{name}" Type="http://x/{name}" Target="{name}.xml"/>'
        for name in ("styles", *parts)
    )
    changes["word/_rels/document.xml.rels"] = (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}</Relationships>'
    )
    for name, text in parts.items():
        changes[f"word/{name}.xml"] = f"<w:{name} {spaces}>{text}</w:{name}>"
    return changed_zip(good_docx(), {name: text.encode() for name, text in changes.items()})


def p(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def test_headings_paragraphs_lists_and_the_title() -> None:
    document = docx.Document()
    document.add_heading("The River", 0)
    document.add_paragraph("By its keeper.", "Subtitle")
    document.add_heading("Mouth", 1)
    paragraph = document.add_paragraph("Wide ")
    paragraph.add_run("and").bold = True
    paragraph.add_run(" slow.")
    paragraph.add_run().add_break(WD_BREAK.PAGE)
    paragraph.add_run("After the page.")
    document.add_heading("Tides", 2)
    document.add_paragraph("They are:")
    for text in ("high", "low"):
        document.add_paragraph(text, "List Bullet")
    for text in ("first", "second"):
        document.add_paragraph(text, "List Number")
    document.core_properties.title = "An old template"
    read_back = read(save(document), "river.docx")
    assert read_back.title == "The River"
    assert outline(read_back) == [
        "# The River",
        "By its keeper.",
        "# Mouth",
        "Wide and slow.After the page.",
        "## Tides",
        "They are:\n- high\n- low\n1. first\n2. second",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("The Ferry", "The Ferry"),
        ("Microsoft Word - draft7.doc", "Mouth"),
        ("Document1", "Mouth"),
        ("", "Mouth"),
    ],
)
def test_a_stated_title_counts_unless_a_program_made_it_up(stated: str, expected: str) -> None:
    document = docx.Document()
    document.core_properties.title = stated
    document.add_heading("Mouth", 1)
    document.add_paragraph("Words.")
    assert read(save(document), "a.docx").title == expected


def test_headings_by_outline_level_and_by_inheritance() -> None:
    styles = (
        '<w:style w:type="paragraph" w:default="1" w:styleId="n"><w:name w:val="Normal"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="h"><w:name w:val="heading 1"/><w:basedOn w:val="n"/>'
        '<w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="own"><w:name w:val="Chapter"/><w:basedOn w:val="h"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="loop"><w:name w:val="Loop"/><w:basedOn w:val="loop"/></w:style>'
        '<w:style w:type="character" w:styleId="c"><w:name w:val="heading 2 char"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="toc1"><w:name w:val="toc 1"/></w:style>'
    )
    content = (
        p("Contents 1", '<w:pStyle w:val="toc1"/>')
        + p("One", '<w:pStyle w:val="own"/>')
        + p("text", '<w:pStyle w:val="loop"/>')
        + p("Two", '<w:outlineLvl w:val="2"/>')
        + p("no heading", '<w:pStyle w:val="h"/><w:outlineLvl w:val="9"/>')
        + p("unknown", '<w:pStyle w:val="missing"/>')
    )
    assert read_outline(body(content, styles=styles), "a.docx") == [
        "# One",
        "text",
        "### Two",
        "no heading",
        "unknown",
    ]


def test_numbers_that_word_prints_are_computed() -> None:
    def level(depth: int, form: str, text: str, start: int = 1) -> str:
        parts = f'<w:start w:val="{start}"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/>'
        return f'<w:lvl w:ilvl="{depth}">{parts}</w:lvl>'

    numbering = (
        f'<w:abstractNum w:abstractNumId="0">{level(0, "decimal", "%1.")}{level(1, "decimal", "%1.%2")}'
        f"{level(2, 'lowerLetter', '(%3)', 2)}</w:abstractNum>"
        f'<w:abstractNum w:abstractNumId="1">{level(0, "bullet", "o")}'
        f"{level(1, 'upperRoman', 'Article %2')}</w:abstractNum>"
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="0"/>'
        '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>'
        '<w:num w:numId="3"><w:abstractNumId w:val="1"/></w:num>'
    )

    def item(text: str, number: int, depth: int, more: str = "") -> str:
        return p(text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{number}"/></w:numPr>{more}')

    content = (
        item("Head", 1, 0, '<w:outlineLvl w:val="0"/>')
        + item("Sub", 1, 1, '<w:outlineLvl w:val="1"/>')
        + item("Again", 1, 1, '<w:outlineLvl w:val="1"/>')
        + item("x", 1, 2)
        + item("y", 1, 2)
        + item("Next", 1, 0, '<w:outlineLvl w:val="0"/>')
        + item("Sub", 1, 1, '<w:outlineLvl w:val="1"/>')
        + p("Between.")
        + item("restarted", 2, 0)
        + item("dot", 3, 0)
        + item("deep", 3, 1)
        + p("End.")
        + item("none", 0, 0)
        + item("undefined", 44, 0)
    )
    assert read_outline(body(content, numbering=numbering), "a.docx") == [
        "# 1. Head",
        "## 1.1 Sub",
        "## 1.2 Again",
        "(b) x\n(c) y",
        "# 2. Next",
        "## 2.1 Sub",
        "Between.",
        "7. restarted\n- dot\n  Article I deep",
        "End.",
        "none",
        "undefined",
    ]


def test_list_numbers() -> None:
    roman = {1: "i", 4: "iv", 9: "ix", 14: "xiv", 40: "xl", 90: "xc", 400: "cd", 1994: "mcmxciv"}
    assert {number: format_list_number(number, "lowerRoman") for number in roman} == roman
    assert [format_list_number(n, "lowerLetter") for n in (1, 26, 27, 53)] == ["a", "z", "aa", "aaa"]
    assert [format_list_number(n, "upperRoman") for n in (0, 5_000)] == ["0", "5000"]
    assert format_list_number(3, "ideographDigital") == "3"


def test_tables_with_merged_cells_and_a_caption() -> None:
    document = docx.Document()
    document.add_paragraph("Table 1. Flow by year", "Caption")
    table = document.add_table(4, 3)
    for row, texts in enumerate(
        (["Year", "Flow", ""], ["", "low", "high"], ["1920", "1", "2"], ["1921", "3", "4"])
    ):
        for column, text in enumerate(texts):
            table.cell(row, column).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    table.cell(0, 0).merge(table.cell(1, 0))
    for row in table.rows[:2]:
        row._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))
    document.add_paragraph("After.")
    read_back = read(save(document), "a.docx")
    assert tables(read_back) == [
        "Table 1. Flow by year\n\n| Year | Flow low | Flow high |\n| --- | --- | --- |\n"
        "| 1920 | 1 | 2 |\n| 1921 | 3 | 4 |"
    ]
    assert read_back.nodes[-1].text == "After."


def test_a_caption_below_and_a_header_that_is_not_marked() -> None:
    document = docx.Document()
    for texts in (("Item", "Tons"), ("Coal", "5")):
        if not document.tables:
            table = document.add_table(0, 2)
        cells = table.add_row().cells
        cells[0].text, cells[1].text = texts
    document.add_paragraph("Table 2. Cargo", "Caption")
    document.add_paragraph("Figure 1. A boat", "Caption")
    assert read_outline(save(document), "a.docx") == ["| Table 2. Cargo. Coal: Tons: 5", "Figure 1. A boat"]


def test_tables_that_only_frame_are_read_as_text() -> None:
    document = docx.Document()
    frame = document.add_table(1, 2)
    frame.cell(0, 0).text = "Left words."
    right = frame.cell(0, 1)
    right.text = "Right words."
    inner = right.add_table(2, 2)
    for place, text in enumerate(("Item", "Tons", "Coal", "5")):
        inner.cell(place // 2, place % 2).text = text
    assert read_outline(save(document), "a.docx") == ["Left words.", "Right words.", "| Coal: Tons: 5"]


def test_cells_with_paragraphs_and_small_tables_within() -> None:
    document = docx.Document()
    table = document.add_table(2, 2)
    for place, text in enumerate(("Item", "Said", "Mill")):
        table.cell(place // 2, place % 2).text = text
    cell = table.cell(1, 1)
    cell.text = "One."
    cell.add_paragraph("Two.")
    cell.add_table(1, 1).cell(0, 0).text = "Three."
    assert read_outline(save(document), "a.docx") == ["| Mill: Said: One. Two. Three."]


def test_footnotes_follow_what_refers_to_them() -> None:
    notes = (
        '<w:footnote w:id="0" w:type="separator"><w:p/></w:footnote>'
        f'<w:footnote w:id="2">{p("Said in 1920.")}{p("And later.")}</w:footnote>'
        f'<w:footnote w:id="5">{p("Never referred to.")}</w:footnote>'
    )
    reference = (
        '<w:p><w:r><w:t>It was</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r>'
        "<w:r><w:t> so.</w:t></w:r></w:p>"
    )
    assert read_outline(body(p("Before.") + reference + p("After."), footnotes=notes), "a.docx") == [
        "Before.",
        "It was[1] so.",
        "[1] Said in 1920.\nAnd later.",
        "After.",
    ]


def test_what_is_deleted_hidden_or_stored_twice_is_not_read() -> None:
    content = (
        "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:ins><w:r><w:t>new </w:t></w:r></w:ins>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>seen </w:t></w:r>'
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>'
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>7</w:t></w:r>'
        "<w:r><w:tab/><w:t>co</w:t><w:softHyphen/><w:t>op</w:t><w:noBreakHyphen/><w:t>shop</w:t><w:br/><w:t>line</w:t></w:r>"
        "</w:p>"
        "<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>"
        + p("In a box")
        + "</w:txbxContent></mc:Choice>"
        "<mc:Fallback><w:txbxContent>"
        + p("In a box")
        + "</w:txbxContent></mc:Fallback></mc:AlternateContent>"
        "<w:t>Beside it</w:t></w:r></w:p>"
    )
    assert read_outline(body(content), "a.docx") == ["new seen 7 coop-shop\nline", "Beside it", "In a box"]


def test_diagrams_are_lists_where_they_stand() -> None:
    space = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:d="urn:diagram"'
    points = "".join(
        f"<d:pt><d:t>{''.join(f'<a:p><a:r><a:t>{line}</a:t></a:r></a:p>' for line in lines)}</d:t></d:pt>"
        for lines in ((), ("Smelt the ore",), ("Cast it", "and cool it"))
    )
    place = '<x:relIds xmlns:x="urn:diagram" xmlns:r="urn:r" r:dm="{}"/>'
    drawing = f"<w:p><w:r><w:t>{{}}</w:t><w:drawing>{place}</w:drawing></w:r></w:p>"
    row = f"<w:tr>{'<w:tc>{}</w:tc>' * 2}</w:tr>"
    rows = row.format(p("Day"), p("Plan")) + row.format(p("1"), drawing.format("See", "rdiagramData"))
    table = f"<w:tbl>{rows}</w:tbl>"
    content = (
        p("Steps:") + drawing.format("", "rdiagramData") + p("After.") + drawing.format("None.", "r9") + table
    )
    data = body(content, diagramData=f"<d:dataModel {space}><d:ptLst>{points}</d:ptLst></d:dataModel>")
    steps = "- Smelt the ore\n- Cast it\n- and cool it"
    assert [text for text in read_outline(data, "a.docx") if not text.startswith("|")] == [
        f"Steps:\n{steps}",
        "After.",
        "None.",
        steps,
    ]


def test_content_controls_are_opened_but_for_the_table_of_contents() -> None:
    contents = (
        '<w:sdt><w:sdtPr><w:docPartObj><w:docPartGallery w:val="Table of Contents"/></w:docPartObj></w:sdtPr>'
        f"<w:sdtContent>{p('Mouth 1')}</w:sdtContent></w:sdt>"
    )
    deeper = f"<w:sdt><w:sdtContent>{p('Deeper')}</w:sdtContent></w:sdt>"
    control = f"<w:sdt><w:sdtPr/><w:sdtContent>{p('Inside')}{deeper}</w:sdtContent></w:sdt>"
    assert read_outline(body(contents + control + p("After")), "a.docx") == ["Inside", "Deeper", "After"]


def test_strict_documents_differ_in_their_namespace_only() -> None:
    data = body(p("Head", '<w:outlineLvl w:val="0"/>') + p("Words."))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = archive.read("word/document.xml")
    strict = content.replace(WORD.encode(), b"http://purl.oclc.org/ooxml/wordprocessingml/main")
    assert read_outline(changed_zip(data, {"word/document.xml": strict}), "a.docx") == ["# Head", "Words."]


def test_the_main_part_is_where_the_package_says() -> None:
    document = docx.Document()
    document.add_paragraph("Words.")
    data = save(document)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        relations = archive.read("_rels/.rels").replace(b"word/document.xml", b"word/document2.xml")
        content = archive.read("word/document.xml")
    moved = {"_rels/.rels": relations, "word/document.xml": None, "word/document2.xml": content}
    assert read_outline(changed_zip(data, moved), "a.docx") == ["Words."]


def test_a_zip_within_stays_closed_and_small_parts_may_pack_well() -> None:
    inner = changed_zip(good_docx(), {"word/media/bomb.zip": b"PK\x03\x04" + bytes(1_000)})
    assert read_outline(inner, "a.docx")[0] == "# Heading"
    spaces = changed_zip(good_docx(), {"word/other.xml": b" " * 5_000_000})
    assert read_outline(spaces, "a.docx")[0] == "# Heading"
    with pytest.raises(UnreadableFile, match="zip bomb"):
        parse(spaces, unit="paragraph", name="a.docx", limits=Limits(ratio_floor=1_000_000))
    with pytest.raises(UnreadableFile, match="unpacks to more than 4"):
        parse(spaces, unit="paragraph", name="a.docx", limits=Limits(unpacked_bytes=4 << 20))
    with pytest.raises(UnreadableFile, match="too many parts"):
        parse(spaces, unit="paragraph", name="a.docx", limits=Limits(parts=3))


def test_rows_in_content_controls_and_skipped_columns() -> None:
    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(text)}</w:tc>"

    all_three = '<w:gridSpan w:val="3"/>'
    content = (
        f"<w:tbl><w:tr>{cell('Item')}{cell('Low')}{cell('High')}</w:tr>"
        f"<w:sdt><w:sdtContent><w:tr>{cell('Coal')}{cell('1')}{cell('2')}</w:tr></w:sdtContent></w:sdt>"
        f"<w:tr>{cell('Ore, sorted by size', all_three)}</w:tr>"
        f'<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{cell("3")}{cell("4")}</w:tr></w:tbl>'
    )
    assert read_outline(body(content), "a.docx") == [
        "| Coal: Low: 1; High: 2",
        "| Ore, sorted by size",
        "| Ore, sorted by size: Low: 3; High: 4",
    ]


def test_equations_keep_their_letters() -> None:
    space = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    math = parse_xml(f'<m:oMath xmlns:m="{space}"><m:r><m:t>E=mc</m:t></m:r></m:oMath>')
    document = docx.Document()
    document.add_paragraph("Energy: ")._p.append(math)
    assert read_outline(save(document), "a.docx") == ["Energy: E=mc"]


def test_boxes_in_boxes_are_read_in_a_single_walk() -> None:
    """Every level once doubled the work: sixty took for ever."""
    inner = "<w:p><w:r><w:t>innermost</w:t></w:r></w:p>"
    for level in range(60):
        text = f"<w:p><w:r><w:t>level {level}</w:t></w:r></w:p>"
        inner = f"<w:p><w:r><w:pict><w:txbxContent>{inner}{text}</w:txbxContent></w:pict></w:r></w:p>"
    xml = f'<w:document xmlns:w="{WORD}"><w:body>{inner}</w:body></w:document>'
    document = read(changed_zip(good_docx(), {"word/document.xml": xml.encode()}), "boxes.docx")
    lines = document.text.split()
    assert lines.count("innermost") == 1 and all(lines.count(str(level)) == 1 for level in range(60))
