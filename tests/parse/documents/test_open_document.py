"""OpenDocument files: what LibreOffice writes beyond plain text, as XML by hand."""

from __future__ import annotations

from bad_files import changed_zip, sample
from parse_trees import read, read_outline, tables

SPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{path}:1.0"'
    for name, path in (("office", "office"), ("text", "text"), ("table", "table"), ("style", "style"), ("draw", "drawing"),  # noqa: E501
                       ("presentation", "presentation"))
)  # fmt: skip


def content(kind: str, body: str, styles: str = "") -> bytes:
    suffix = {"text": "odt", "spreadsheet": "ods", "presentation": "odp"}[kind]
    xml = (
        f"<office:document-content {SPACES}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    return changed_zip(sample(suffix), {"content.xml": xml.encode(), "meta.xml": None, "styles.xml": None})


def text(body: str, styles: str = "") -> list[str]:
    return read_outline(content("text", body, styles), "a.odt")


def test_spaces_breaks_notes_and_what_is_not_on_the_page() -> None:
    body = (
        "<text:tracked-changes><text:p>Deleted.</text:p></text:tracked-changes>"
        "<text:table-of-content><text:index-body><text:p>Contents 1</text:p></text:index-body></text:table-of-content>"  # noqa: E501
        '<text:h text:outline-level="2">Tolls</text:h>'
        '<text:p>Two<text:s text:c="2"/>words,<text:tab/>a<text:line-break/>break<text:note><text:note-citation>1'
        "</text:note-citation><text:note-body><text:p>At noon.</text:p></text:note-body></text:note> and "
        "<text:span>more<office:annotation><text:p>A remark.</text:p></office:annotation></text:span>.</text:p>"
    )
    assert text(body) == ["## Tolls", "Two words, a\nbreak[1] and more.", "[1] At noon."]


def test_lists_are_numbered_as_they_are_printed() -> None:
    styles = (
        '<text:list-style style:name="L"><text:list-level-style-number text:level="1" style:num-format="1" '
        'style:num-suffix="." text:start-value="3"/><text:list-level-style-number text:level="2" style:num-format="a" '  # noqa: E501
        'style:num-suffix=")" text:display-levels="2"/></text:list-style>'
    )
    item = "<text:list-item><text:p>{}</text:p>{}</text:list-item>"
    inner = f"<text:list>{item.format('Inner', '')}</text:list>"
    body = f'<text:list text:style-name="L">{item.format("One", inner)}{item.format("Two", "")}</text:list>'
    body += "<text:p>Between.</text:p>"
    body += f'<text:list text:style-name="L" text:continue-numbering="true">{item.format("Three", "")}</text:list>'
    body += f'<text:p>Anew.</text:p><text:list text:style-name="L">{item.format("Again", "")}</text:list>'
    assert text(body, styles) == ["3. One\n  3.a) Inner\n4. Two", "Between.", "5. Three", "Anew.", "3. Again"]


def test_headings_are_numbered_and_styles_inherit() -> None:
    styles = (
        '<text:outline-style style:name="Outline"><text:outline-level-style text:level="1" style:num-format="I"/>'
        "</text:outline-style>"
        '<style:style style:name="P1" style:parent-style-name="Title"/><style:style style:name="P2" '
        'style:parent-style-name="Table"/><style:style style:name="Table" style:parent-style-name="Caption"/>'
    )
    cells = "".join(
        f"<table:table-row>{''.join(f'<table:table-cell><text:p>{cell}</text:p></table:table-cell>' for cell in row)}"
        "</table:table-row>"
        for row in (("Item", "1928"), ("Coal", "4"))
    )
    body = (
        '<text:p text:style-name="P1">The River</text:p><text:h text:outline-level="1">Mouth</text:h>'
        f'<text:p text:style-name="P2">Tolls of the year</text:p><table:table>{cells}</table:table>'
        '<text:h text:outline-level="1">Source</text:h><text:p>Wet.</text:p>'
    )
    document = read(content("text", body, styles), "a.odt")
    assert document.title == "The River"
    assert [node.name for node in document.nodes if node.kind == "section"] == [
        "The River",
        "I Mouth",
        "II Source",
    ]
    assert tables(document) == ["Tolls of the year\n\n| Item | 1928 |\n| --- | --- |\n| Coal | 4 |"]


def test_boxes_follow_their_paragraph_and_merged_cells_are_filled() -> None:
    def cell(value: str, attributes: str = "") -> str:
        return f"<table:table-cell {attributes}><text:p>{value}</text:p></table:table-cell>"

    rows = (
        cell("", 'table:number-rows-spanned="2"')
        + cell("Tolls", 'table:number-columns-spanned="2"')
        + "<table:covered-table-cell/>",
        "<table:covered-table-cell/>" + cell("1928") + cell("1929"),
        cell("Coal") + cell("4", 'table:number-columns-repeated="2"'),
    )
    table = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    body = (
        "<text:p>Before <draw:frame><draw:text-box><text:p>Boxed.</text:p></draw:text-box></draw:frame>after.</text:p>"  # noqa: E501
        f"<text:section><table:table>{table}</table:table></text:section>"
    )
    document = read(content("text", body), "a.odt")
    assert [node.text for node in document.nodes if node.kind == "passage"] == ["Before after.", "Boxed."]
    assert tables(document) == ["|  | Tolls 1928 | Tolls 1929 |\n| --- | --- | --- |\n| Coal | 4 | 4 |"]


def test_sheets_repeated_rows_and_hidden_sheets() -> None:
    def row(*cells: str, attributes: str = "") -> str:
        inner = "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in cells)
        return f"<table:table-row {attributes}>{inner}</table:table-row>"

    far = '<table:table-row table:number-rows-repeated="1048000"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>'  # noqa: E501
    sheet = row("Item", "Toll") + row("Coal", "4", attributes='table:number-rows-repeated="2"') + far
    value = '<table:table-row><table:table-cell office:value="7"/><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row>'  # noqa: E501
    styles = '<style:style style:name="ta2"><style:table-properties table:display="false"/></style:style>'
    body = (
        f'<table:table table:name="Tolls">{sheet}</table:table>'
        f'<table:table table:name="Secret" table:style-name="ta2">{row("a", "b")}</table:table>'
        f'<table:table table:name="Last">{row("n", "v")}{value}</table:table>'
    )
    lines = read_outline(content("spreadsheet", body, styles), "a.ods")
    assert lines == [
        "# Tolls",
        "| Tolls. Coal: Toll: 4",
        "| Tolls. Coal: Toll: 4",
        "# Last",
        "| Last. n: v",
        "| Last. 7: x",
    ]


def test_slides_titles_notes_and_footers() -> None:
    def frame(kind: str, words: str) -> str:
        return f'<draw:frame presentation:class="{kind}"><draw:text-box><text:p>{words}</text:p></draw:text-box></draw:frame>'  # noqa: E501

    item = "<text:list><text:list-item><text:p>{}</text:p></text:list-item></text:list>"
    outline = f'<draw:frame presentation:class="outline"><draw:text-box>{item.format("High")}{item.format("Low")}</draw:text-box></draw:frame>'  # noqa: E501
    shape = "<draw:custom-shape><text:p>In a shape.</text:p></draw:custom-shape>"
    notes = f"<presentation:notes>{frame('notes', 'Slowly.')}</presentation:notes>"
    hidden = '<style:style style:name="dp2"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'  # noqa: E501
    body = (
        f"<draw:page>{frame('footer', 'Company')}{outline}{shape}{frame('title', 'Saltreach')}{notes}</draw:page>"
        f'<draw:page draw:style-name="dp2">{frame("title", "Secret")}</draw:page><draw:page><draw:g>{shape}</draw:g></draw:page>'  # noqa: E501
    )
    data = content("presentation", body, hidden)
    assert read_outline(data, "a.odp") == [
        "# Saltreach",
        "- High\n- Low",
        "In a shape.",
        "Notes: Slowly.",
        "# Slide 3",
        "In a shape.",
    ]
    assert read(data, "a.odp").notes == ("1 hidden slide was left out",)
