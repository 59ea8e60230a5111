"""Text that is in a file and not in force, or not seen: it is left out, and its words are counted by the reason."""

from __future__ import annotations

import io

import docx
import pytest
from docx.oxml import OxmlElement

from bad_files import changed_zip, good_docx, sample
from clew.core.types import ParsedDocument, count_left_out
from clew.parse.documents.reader import parse

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"


def word(body: str, styles: str = "") -> bytes:
    parts = {"document": f"<w:body>{body}</w:body>", "styles": styles}
    return changed_zip(
        good_docx(),
        {
            f"word/{name}.xml": f'<w:{name} xmlns:w="{WORD}">{text}</w:{name}>'.encode()
            for name, text in parts.items()
        },
    )


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def open_text(body: str, styles: str) -> bytes:
    return changed_zip(
        sample("odt"),
        {
            "content.xml": f"""<o:document-content xmlns:o="{OPEN}:office:1.0" xmlns:t="{OPEN}:text:1.0"
 xmlns:s="{OPEN}:style:1.0"><o:automatic-styles>{styles}</o:automatic-styles><o:body><o:text>{body}</o:text></o:body>
 </o:document-content>""".encode()
        },
    )


def lines(document: ParsedDocument) -> list[str]:
    return [node.text for node in document.nodes[1:] if node.text]


STRIKE = "<w:strike/>"
WORD_BODY = (
    f"<w:p>{run('The ferry costs ')}{run('4 marks', STRIKE)}{run(' 6 marks.')}</w:p>"
    f"<w:p>{run('Dogs travel free.', '<w:dstrike/>')}</w:p>"
    f"<w:p>{run('It sails at ')}{run('nine', '<w:strike w:val=' + chr(34) + '0' + chr(34) + '/>')}{run('.')}</w:p>"
)
PAGE = "<p>The ferry costs {}4 marks{} 6 marks.<p>{}Dogs travel free.{}<p>It sails at nine."
STYLE = (
    '<s:style s:name="T1" s:family="text"><s:text-properties s:text-line-through-style="solid"/></s:style>'
    '<s:style s:name="T2" s:family="text"><s:text-properties s:text-line-through-style="none"/></s:style>'
    '<s:style s:name="P1" s:family="paragraph"><s:text-properties s:text-line-through-type="double"/></s:style>'
)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (word(WORD_BODY), "a.docx"),
        (PAGE.format("<s>", "</s>", "<del>", "</del>").encode(), "a.html"),
        (PAGE.format("<strike>", "</strike>", "<s>", "</s>").encode(), "a.html"),
        (
            PAGE.format(
                '<span style="color: red; text-decoration: underline line-through">',
                "</span>",
                "<b style='text-decoration-line:LINE-THROUGH'>",
                "</b>",
            ).encode(),
            "a.html",
        ),
        (
            b"The ferry costs ~~4 marks~~ 6 marks.\n\n<del>Dogs travel *free*.</del>\n\nIt sails at nine.",
            "a.md",
        ),
        (
            rb"{\rtf1 The ferry costs {\strike 4 marks} 6 marks.\par \striked1 Dogs travel free.\striked0\par"
            rb"\strike\plain It sails at nine.\par}",
            "a.rtf",
        ),
        (
            open_text(
                '<t:p>The ferry costs <t:span t:style-name="T1">4 marks</t:span> 6 marks.</t:p>'
                '<t:p t:style-name="P1">Dogs <t:a>travel</t:a> free.</t:p>'
                '<t:p>It sails at <t:span t:style-name="T2">nine</t:span>.</t:p>',
                STYLE,
            ),
            "a.odt",
        ),
    ],
    ids=["docx", "s and del", "strike", "style", "markdown", "rtf", "odt"],
)
def test_what_is_struck_out_is_not_in_force(data: bytes, name: str) -> None:
    document = parse(data, name)
    assert lines(document) == ["The ferry costs 6 marks.", "It sails at nine."]
    assert count_left_out(document.left_out) == {"struck out": 5}


def test_word_strikes_out_by_styles_and_numbers_what_is_struck_out() -> None:
    styles = (
        '<w:style w:type="character" w:styleId="Old"><w:rPr><w:strike/></w:rPr></w:style>'
        '<w:style w:type="character" w:styleId="Older"><w:basedOn w:val="Old"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Gone"><w:rPr><w:dstrike w:val="true"/></w:rPr></w:style>'
    )
    kept = '<w:strike w:val="false"/><w:dstrike w:val="0"/>'
    older = '<w:rStyle w:val="Older"/>'
    body = (
        f"<w:p>{run('Rent ')}{run('ten ', older)}{run('twelve')}</w:p>"
        f'<w:p><w:pPr><w:pStyle w:val="Gone"/></w:pPr>{run("Paid in kind ")}{run("Paid in coin", kept)}</w:p>'
        "<w:tbl>"
        + "".join(
            f"<w:tr>{''.join(f'<w:tc><w:p>{cell}</w:p></w:tc>' for cell in row)}</w:tr>"
            for row in (
                (run("Boat"), run("Price")),
                (run("Gig"), run("7", STRIKE) + run("9")),
                (run("Cog"), run("8")),
            )
        )
        + "</w:tbl>"
    )
    document = parse(word(body, styles), "a.docx")
    assert lines(document)[:2] == ["Rent twelve", "Paid in coin"]
    assert next(node.table for node in document.nodes if node.table).rows == (("Gig", "9"), ("Cog", "8"))
    assert count_left_out(document.left_out) == {"struck out": 5}


def test_a_struck_out_item_keeps_its_number() -> None:
    written = docx.Document()
    for text in ("Sweep the quay.", "Oil the crane.", "", "Hidden.", "", "Lock the gate."):
        written.add_paragraph(text, "List Number")
    written.paragraphs[1].runs[0].font.strike = True
    written.paragraphs[3].runs[0].font.hidden = True
    for number, mark in ((3, "w:vanish"), (4, "w:del")):  # the whole paragraph is not shown
        properties = OxmlElement("w:rPr")
        properties.append(OxmlElement(mark))
        written.paragraphs[number]._p.get_or_add_pPr().append(properties)
    stream = io.BytesIO()
    written.save(stream)
    assert lines(parse(stream.getvalue(), "a.docx")) == ["1. Sweep the quay.\n4. Lock the gate."]
    page = b"<ol><li>Sweep the quay.<li><s>Oil the crane.</s><li>Lock the gate.</ol>"
    assert lines(parse(page, "a.html")) == ["1. Sweep the quay.\n3. Lock the gate."]
    assert lines(parse(b"1. Sweep the quay.\n2. ~~Oil the crane.~~\n3. Lock the gate.", "a.md")) == [
        "1. Sweep the quay.\n3. Lock the gate."
    ]


@pytest.mark.parametrize(
    "hidden",
    [
        '<p style="color:red;display : none">The code is 77.</p>',
        "<p style='VISIBILITY:hidden'>The code is 77.</p>",
        '<div hidden><p>The code</p><script>var x = "y z";</script> is 77.</div>',
        '<p style="font-size:0">The <b>code</b> is 77.</p>',
        '<p>See <span style="font-size: 0.0px; color: blue">The code is 77.</span></p>',
        "<table><tr><th>Key<th hidden>The code<tr><td>See<td hidden>is 77.<tr><td>A</table>",
    ],
)
def test_what_cannot_be_seen_on_a_page_is_counted(hidden: str) -> None:
    document = parse(f"<p>The gate opens at six.</p>{hidden}<p>It closes at ten.</p>".encode(), "a.html")
    assert "77" not in document.text and "code" not in document.text
    assert document.text.startswith("The gate opens at six.") and document.text.endswith("It closes at ten.")
    assert count_left_out(document.left_out) == {"hidden": 4}


def test_what_is_seen_on_a_page_stays() -> None:
    page = (
        '<p aria-hidden="true">Entry is free.</p><p><i aria-hidden="true">home</i> Start here.</p>'
        '<div style="font-size:0"><span style="font-size:12px">Eat in the hall.</span></div>'
        '<p style="font-size:0.8em">Small print.</p><p style="text-decoration:underline">Bring a lamp.</p>'
    )
    document = parse(page.encode(), "a.html")
    assert lines(document) == [
        "Entry is free.",
        "Start here.",
        "Eat in the hall.",
        "Small print.",
        "Bring a lamp.",
    ]
    assert not document.left_out


def test_hidden_and_deleted_text_of_office_files_is_counted() -> None:
    deleted = "<w:del><w:r><w:delText>seven eight</w:delText></w:r></w:del>"
    document = parse(
        word(f"<w:p>{run('Open ')}{run('at dawn', '<w:vanish/>')}{deleted}{run('daily')}</w:p>"), "a.docx"
    )
    assert lines(document) == ["Open daily"] and count_left_out(document.left_out) == {
        "hidden": 2,
        "deleted": 2,
    }
    rtf = rb"{\rtf1 Open {\v at dawn }{\deleted seven eight }daily{\footnote see {\strike page} below}.\par}"
    document = parse(rtf, "a.rtf")
    assert lines(document) == ["Open daily[1].", "[1] see below"]
    assert count_left_out(document.left_out) == {"hidden": 2, "deleted": 2, "struck out": 1}
    style = '<s:style s:name="H"><s:text-properties t:display="none"/></s:style>'
    document = parse(
        open_text('<t:p>Open <t:span t:style-name="H">at <t:span>dawn</t:span> </t:span>daily</t:p>', style),
        "a.odt",
    )
    assert lines(document) == ["Open daily"] and count_left_out(document.left_out) == {"hidden": 2}


def test_what_is_struck_out_on_a_slide() -> None:
    slide = """<p:sld xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"
 xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"><p:cSld><p:spTree><p:sp>
 <p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody><a:p><a:r><a:t>Seats: </a:t></a:r><a:r><a:rPr strike="sngStrike"/>
 <a:t>forty</a:t></a:r><a:r><a:rPr strike="noStrike"/><a:t>sixty</a:t></a:r></a:p></p:txBody></p:sp></p:spTree>
 </p:cSld></p:sld>"""
    document = parse(changed_zip(sample("pptx"), {"ppt/slides/slide2.xml": slide.encode()}), "a.pptx")
    assert "Seats: sixty" in lines(document) and count_left_out(document.left_out) == {"struck out": 1}


@pytest.mark.parametrize("suffix", ["docx", "pptx", "xlsx"])
@pytest.mark.parametrize(
    "damaged", [b"<cp:coreProperties", b"", b"\xff\xfe<", b"<!DOCTYPE x [<!ENTITY y 'z'>]><x>&y;</x>"]
)
def test_damaged_properties_are_left_out_and_said_so(suffix: str, damaged: bytes) -> None:
    whole = parse(sample(suffix), f"a.{suffix}")
    document = parse(changed_zip(sample(suffix), {"docProps/core.xml": damaged}), f"a.{suffix}")
    assert document.text == whole.text
    (note,) = (note for note in document.notes if note not in whole.notes)
    assert note.startswith("its properties are not read: docProps/core.xml ")


def add_field(paragraph, code: str) -> None:
    field = OxmlElement("w:fldSimple")
    field.set(f"{{{WORD}}}instr", code)
    run = OxmlElement("w:r")
    text = OxmlElement("w:t")
    text.text = "7"
    run.append(text)
    field.append(run)
    paragraph._p.append(field)


def test_headers_and_footers_of_word_are_read_once_without_page_numbers() -> None:
    document = docx.Document()
    document.add_paragraph("The tenant repairs the roof.")
    first = document.sections[0]
    header = first.header.paragraphs[0]
    header.text = "Lease 88-204 | Page "
    add_field(header, " PAGE ")
    header.add_run(" of ")
    add_field(header, " NUMPAGES ")
    first.footer.paragraphs[0].text = "Tallow Bay Harbour"
    second = document.add_section()
    second.header.is_linked_to_previous = second.footer.is_linked_to_previous = False
    second.header.paragraphs[0].text = "Lease 88-204"
    second.footer.paragraphs[0].text = "The tenant repairs the roof."
    stream = io.BytesIO()
    document.save(stream)
    read = parse(stream.getvalue(), "lease.docx")
    assert sorted(lines(read)) == ["Lease 88-204", "Tallow Bay Harbour", "The tenant repairs the roof."]
    assert sorted(text for _, text, _ in read.left_out) == ["Lease 88-204", "The tenant repairs the roof."]


def test_menus_around_and_in_the_main_part_of_a_page_are_counted() -> None:
    page = (
        "<body><nav>Home Shop</nav><main><p>The lamp was lit in 1871 and is seen for many miles.</p>"
        "<script>var six</script><aside>Ten best beaches</aside></main><div>Imprint</div></body>"
    )
    read = parse(page.encode(), "a.html")
    assert lines(read) == ["The lamp was lit in 1871 and is seen for many miles."]
    assert count_left_out(read.left_out) == {"menus and the like": 6}
