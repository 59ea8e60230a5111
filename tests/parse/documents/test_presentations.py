"""Presentations: what python-pptx and PowerPoint write beyond titles and lists, as XML by hand."""

from __future__ import annotations

import pytest

from bad_files import changed_zip, sample
from parse_trees import outline, read, tables

SPACES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def p(text: str, properties: str = "") -> str:
    return f"<a:p><a:pPr {properties}/><a:r><a:t>{text}</a:t></a:r></a:p>"


def shape(content: str, placeholder: str | None = None) -> str:
    mark = "" if placeholder is None else f"<p:ph {placeholder}/>"
    return f"<p:sp><p:nvSpPr><p:nvPr>{mark}</p:nvPr></p:nvSpPr><p:txBody>{content}</p:txBody></p:sp>"


def slides(second: str, attributes: str = "", **parts: str) -> bytes:
    """Return the sample with one slide replaced; ``parts`` are related to it: their content by kind."""
    content = f"<p:sld {SPACES} {attributes}><p:cSld><p:spTree>{second}</p:spTree></p:cSld></p:sld>"
    relations = "".join(
        f'<Relationship Id="r{kind}" Type="{RELATIONS}/{kind}" Target="../x/{kind}.xml"/>' for kind in parts
    )
    changes = {
        "ppt/slides/slide2.xml": content,
        "ppt/slides/_rels/slide2.xml.rels": (
            f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}'
            "</Relationships>"
        ),
        **{f"ppt/x/{kind}.xml": text for kind, text in parts.items()},
    }
    return changed_zip(sample("pptx"), {name: text.encode() for name, text in changes.items()})


def second_slide(data: bytes) -> list[str]:
    document = read(data, "a.pptx")
    return [
        node.text for node in document.nodes if node.page == 2 and node.kind in {"section", "passage", "row"}
    ]


def test_the_title_comes_first_and_footers_are_left_out() -> None:
    data = slides(
        shape(p("Words."), 'type="body"')
        + shape(p("Saltreach"), 'type="ctrTitle"')
        + shape(p("7"), 'type="sldNum"')
        + shape(p("Company"), 'type="ftr"')
    )
    assert second_slide(data) == ["Saltreach", "Words."]


def test_a_slide_without_a_title_is_a_section_of_its_own() -> None:
    assert second_slide(slides(shape(p("Alone.")))) == ["Slide 2", "Alone."]


def test_bullets_by_level_and_without() -> None:
    body = shape(
        p("High")
        + p("Very", 'lvl="1"')
        + "<a:p><a:pPr><a:buNone/></a:pPr><a:r><a:t>No bullet.</a:t></a:r></a:p>",
        'type="body"',
    )
    box = shape("<a:p><a:pPr><a:buChar char='-'/></a:pPr><a:r><a:t>Boxed</a:t></a:r></a:p>" + p("Plain"))
    assert second_slide(slides(body + box)) == [
        "Slide 2",
        "- High\n  - Very",
        "No bullet.",
        "- Boxed",
        "Plain",
    ]


def test_shapes_in_groups_and_alternatives_are_read_once() -> None:
    group = f"<p:grpSp><p:grpSpPr/>{shape(p('Inside.'))}</p:grpSp>"
    choice = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice>'
        f"{shape(p('New.'))}</mc:Choice><mc:Fallback>{shape(p('Old.'))}</mc:Fallback></mc:AlternateContent>"
    )
    assert second_slide(slides(group + choice)) == ["Slide 2", "Inside.", "New."]


def placed(text: str, left: int, top: int, width: int = 40, height: int = 10) -> str:
    """Return a shape at a place."""
    box = f'<a:xfrm><a:off x="{left}" y="{top}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>'
    return shape(p(text)).replace("<p:txBody>", f"<p:spPr>{box}</p:spPr><p:txBody>")


def group(left: int, top: int, width: int, height: int, content: str) -> str:
    sizes = f'<a:off x="{left}" y="{top}"/><a:ext cx="{width}" cy="{height}"/>'
    return f"<p:grpSp><p:grpSpPr><a:xfrm>{sizes}</a:xfrm></p:grpSpPr>{content}</p:grpSp>"


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        # Rows from the top, each from the left, whatever was made first.
        (
            placed("four", 50, 30)
            + placed("one", 0, 0)
            + placed("three", 0, 31)
            + shape(p("T"), 'type="title"')
            + placed("two", 50, 2),
            "T one two three four",
        ),
        # Columns, where one reaches over several rows.
        (
            placed("note", 60, 0, 40, 90)
            + placed("two", 0, 30)
            + placed("three", 0, 60)
            + placed("one", 0, 1),
            "one two three note",
        ),
        # A heading that touches the text below it.
        (
            placed("left", 0, 10, 40, 80)
            + placed("B", 50, 0)
            + placed("right", 50, 10, 40, 80)
            + placed("A", 0, 0),
            "A left B right",
        ),
        # The shapes of a group have places of their own.
        (
            placed("last", 0, 80)
            + group(0, 20, 90, 50, placed("two", 900, 0) + group(0, 0, 9, 9, placed("one", 5, 5)))
            + placed("first", 0, 0),
            "first one two last",
        ),
        # A panel behind all others has no place among them.
        (
            placed("", 0, 0, 90, 90) + placed("two", 50, 0) + placed("three", 0, 20) + placed("one", 0, 1),
            "one two three",
        ),
        # A shape without a place stays behind the one before it.
        (placed("two", 0, 50) + shape(p("three")) + placed("one", 0, 0), "one two three"),
    ],
    ids=["rows", "columns", "headings", "groups", "panel", "no place"],
)
def test_shapes_are_read_by_their_places(shapes: str, expected: str) -> None:
    assert [text for text in second_slide(slides(shapes)) if text != "Slide 2"] == expected.split()


def test_placeholders_stand_where_the_layout_has_them() -> None:
    def fill(text: str, mark: str, place: str = "") -> str:
        return place.replace("<a:t>", f"<a:t>{text}").replace("<p:nvPr>", f"<p:nvPr><p:ph {mark}/>")

    layout = fill("", 'type="body" idx="7"', placed("", 0, 60)) + fill(
        "", 'type="pic" idx="8"', placed("", 0, 0)
    )
    layout += shape(p(""), 'idx="9"')
    parts = {
        "slideLayout": f"<p:sldLayout {SPACES}><p:cSld><p:spTree>{layout}</p:spTree></p:cSld></p:sldLayout>",
    }
    second = placed("second", 0, 30) + shape(p("third"), 'type="body" idx="7"') + shape(p("first"), 'idx="8"')
    assert second_slide(slides(second, "", **parts)) == ["Slide 2", "first", "second", "third"]


def test_merged_cells_are_filled() -> None:
    def cell(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody>{p(text)}</a:txBody></a:tc>"

    rows = (
        cell("", 'rowSpan="2"') + cell("Tolls", 'gridSpan="2"') + cell("", 'hMerge="1"'),
        cell("", 'vMerge="1"') + cell("1928") + cell("1929"),
        cell("Coal") + cell("4") + cell("5"),
    )
    table = "".join(f"<a:tr>{row}</a:tr>" for row in rows)
    frame = f'<p:graphicFrame><a:tbl><a:tblPr firstRow="1"/>{table}</a:tbl></p:graphicFrame>'
    (text,) = [text for text in tables(read(slides(frame), "a.pptx")) if "Coal" in text]
    assert text == "|  | Tolls 1928 | Tolls 1929 |\n| --- | --- | --- |\n| Coal | 4 | 5 |"


def test_a_chart_is_the_table_of_its_values() -> None:
    def points(*values: str) -> str:
        return "".join(
            f'<c:pt idx="{number}"><c:v>{value}</c:v></c:pt>' for number, value in enumerate(values)
        )

    series = "".join(
        f"<c:ser><c:tx>{points(name)}</c:tx><c:cat>{points('East', 'West')}</c:cat><c:val>{points(*values)}</c:val></c:ser>"  # noqa: E501
        for name, values in (("Q1", ("1.5", "0.30000000000000004")), ("Q2", ("3", "4")))
    )
    title = f"<c:chart><c:title><c:tx><c:rich>{p('Tolls')}</c:rich></c:tx></c:title><c:plotArea>{series}</c:plotArea></c:chart>"  # noqa: E501
    frame = '<p:graphicFrame><c:chart r:id="rchart"/></p:graphicFrame>'
    data = slides(frame, chart=f"<c:chartSpace {SPACES}>{title}</c:chartSpace>")
    assert second_slide(data)[1:] == ["Tolls. East: Q1: 1.5; Q2: 3", "Tolls. West: Q1: 0.3; Q2: 4"]


def test_notes_and_diagrams() -> None:
    shapes = shape(p("Say it slowly."), 'type="body"') + shape(p("2"), 'type="sldNum"')
    notes = f"<p:notes {SPACES}><p:spTree>{shapes}</p:spTree></p:notes>"
    diagram = (
        '<d:dataModel xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/diagram" ' + SPACES + ">"
    )
    diagram += "".join(f"<d:pt><d:t>{p(text)}</d:t></d:pt>" for text in ("Plan", "Build")) + "</d:dataModel>"
    frame = '<p:graphicFrame><d:relIds xmlns:d="http://schemas.openxmlformats.org/drawingml/2006/diagram" r:dm="rdiagramData"/></p:graphicFrame>'  # noqa: E501
    data = slides(shape(p("T"), 'type="title"') + frame, notesSlide=notes, diagramData=diagram)
    assert second_slide(data) == ["T", "- Plan\n- Build", "Notes: Say it slowly."]


def test_hidden_slides_are_left_out_and_said_so() -> None:
    document = read(slides(shape(p("Secret."), 'type="body"'), 'show="0"'), "a.pptx")
    assert "Secret" not in document.text
    assert document.notes == ("1 hidden slide was left out",)
    assert document.pages == 7
    assert outline(document)
