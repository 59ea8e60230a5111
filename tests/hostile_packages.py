"""Hostile packages, drawn at random: office files, OpenDocument, EPUB, archives, Outlook messages."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable

from bad_files import changed_zip, flagged_encrypted, good_docx, good_msg, good_xlsx, sample
from compound_writer import message_tree, write_compound_file
from hostile_texts import Kinds, Maker, log_uniform

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns"


def word(body: Callable[[random.Random], str]) -> Maker:
    def make(rng: random.Random) -> bytes:
        content = f'<w:document xmlns:w="{_WORD}"><w:body>{body(rng)}</w:body></w:document>'
        return changed_zip(good_docx(), {"word/document.xml": content.encode()})

    return make


def sheet(body: Callable[[random.Random], str]) -> Maker:
    def make(rng: random.Random) -> bytes:
        content = f'<worksheet xmlns="{_SHEET}">{body(rng)}</worksheet>'
        return changed_zip(good_xlsx(), {"xl/worksheets/sheet1.xml": content.encode()})

    return make


def open_part(suffix: str, kind: str, body: Callable[[random.Random], str]) -> Maker:
    spaces = f'xmlns:o="{_OPEN}:office:1.0" xmlns:t="{_OPEN}:table:1.0" xmlns:x="{_OPEN}:text:1.0"'

    def make(rng: random.Random) -> bytes:
        inner = f"<o:{kind}>{body(rng)}</o:{kind}>"
        content = f"<o:document-content {spaces}><o:body>{inner}</o:body></o:document-content>"
        return changed_zip(sample(suffix), {"content.xml": content.encode()})

    return make


def paragraph(content: str) -> str:
    return f"<w:p><w:r><w:t>{content}</w:t></w:r></w:p>"


def nested_boxes(rng: random.Random) -> str:
    depth = rng.randint(20, 300)
    return (
        "<w:p><w:r><w:pict><w:txbxContent>" * depth
        + paragraph("deep")
        + ("</w:txbxContent></w:pict></w:r></w:p>" * depth)
    )


def nested_tables(rng: random.Random) -> str:
    depth = rng.randint(10, 180)
    return "<w:tbl><w:tr><w:tc>" * depth + paragraph("deep") + "</w:tc></w:tr></w:tbl>" * depth


def far_rows(rng: random.Random) -> str:
    rows = (
        f'<row r="{rng.randint(1, 1_048_576)}"><c><v>1</v></c></row>'
        for _ in range(log_uniform(rng, 10**3, 10**5))
    )
    return f"<sheetData>{''.join(rows)}</sheetData>"


def dense_rows(rng: random.Random) -> str:
    row = "<row>" + "<c><v>1.5</v></c>" * rng.randint(1, 50) + "</row>"
    return f"<sheetData>{row * log_uniform(rng, 10**3, 2 * 10**5)}</sheetData>"


def merged_cells(rng: random.Random) -> str:
    ranges = "".join(
        f'<mergeCell ref="A{n}:XFD{n + rng.randint(0, 999)}"/>' for n in range(1, rng.randint(10, 3_000))
    )
    return f'<sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData><mergeCells>{ranges}</mergeCells>'


def bomb(rng: random.Random) -> bytes:
    stream = io.BytesIO()
    part = rng.choice(
        ["word/document.xml", "content.xml", "a.txt", "ppt/presentation.xml", "xl/workbook.xml"]
    )
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open(part, "w") as content:
            for _ in range(rng.randint(50, 400)):
                content.write(rng.choice([b" ", b"<a>", b"x"]) * (1 << 19))
    return stream.getvalue()


def archive_of_many(rng: random.Random) -> bytes:
    stream = io.BytesIO()
    depth, count = rng.randint(1, 6), log_uniform(rng, 10, 12_000)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(count):
            name = rng.choice(["", "../" * depth, "/", "a/" * depth, "C:\\", "con\x00"]) + f"{number}.txt"
            archive.writestr(zipfile.ZipInfo(name.replace("\0", "")), b"words")
    data = stream.getvalue()
    for _ in range(depth if count < 100 else 0):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("inner.zip", data)
        data = stream.getvalue()
    return data


def office_parts(rng: random.Random) -> bytes:
    """An office file one of whose parts is large."""
    strings = f'<sst xmlns="{_SHEET}">' + "<si><t>x</t></si>" * log_uniform(rng, 10**4, 10**6) + "</sst>"
    styles = (
        f'<w:styles xmlns:w="{_WORD}">'
        + ('<w:style w:styleId="a"><w:basedOn w:val="b"/></w:style>' * log_uniform(rng, 10**3, 3 * 10**5))
        + "</w:styles>"
    )
    formats = (
        f'<styleSheet xmlns="{_SHEET}"><numFmts>'
        + "".join(
            f'<numFmt numFmtId="{n}" formatCode="{"#,##0" * 200}"/>' for n in range(rng.randint(100, 5_000))
        )
        + "</numFmts></styleSheet>"
    )
    makers: list[Callable[[], bytes]] = [
        lambda: changed_zip(good_xlsx(), {"xl/sharedStrings.xml": strings.encode()}),
        lambda: changed_zip(good_docx(), {"word/styles.xml": styles.encode()}),
        lambda: changed_zip(good_xlsx(), {"xl/styles.xml": formats.encode()}),
    ]
    return rng.choice(makers)()


def repeated_cells(rng: random.Random) -> str:
    times, columns = rng.randint(2, 10**6), rng.randint(2, 16_000)
    cell = f'<t:table-cell t:number-columns-repeated="{columns}"><x:p>a</x:p></t:table-cell>'
    return f'<t:table t:name="a"><t:table-row t:number-rows-repeated="{times}">{cell}</t:table-row></t:table>'


def open_text(rng: random.Random) -> str:
    depth = rng.choice([1, 50, 400])
    return (
        "<x:section>" * depth
        + "<x:p>a<x:s x:c='99999999'/></x:p>" * log_uniform(rng, 100, 10**5)
        + "</x:section>" * depth
    )


def entities(rng: random.Random, suffix: str, part: str) -> bytes:
    """Return a package one of whose parts declares entities within entities, or reads a file of the machine."""
    depth = rng.randint(5, 30)
    declared = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(depth))
    start = rng.choice(["", "<?xml version='1.0'?>", "<!-- " + "x" * 100_000 + " -->", " " * 100_000])
    document = f'{start}<!DOCTYPE a [<!ENTITY e0 "ha">{declared}<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    return changed_zip(sample(suffix), {part: f"{document}<a>&e{depth};&f;</a>".encode()})


def word_references(rng: random.Random) -> bytes:
    """Return a Word document with styles in a circle or a long chain, or one long note that is cited very often."""
    many = log_uniform(rng, 10**3, 10**5)
    space = f'xmlns:w="{_WORD}"'
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="s{n}"><w:basedOn w:val="s{(n + 1) % many}"/></w:style>'
        for n in range(many)
    )
    styled = '<w:p><w:pPr><w:pStyle w:val="s0"/></w:pPr><w:r><w:t>Words.</w:t></w:r></w:p>'
    cited = '<w:p><w:r><w:t>Words.</w:t><w:footnoteReference w:id="2"/></w:r></w:p>'
    notes = (
        f'<w:footnotes {space}><w:footnote w:id="2">{paragraph("word " * 2_000)}</w:footnote></w:footnotes>'
    )
    levels = "".join(
        f'<w:lvl w:ilvl="{n}"><w:numFmt w:val="lowerRoman"/><w:lvlText w:val="{"%1." * 900}"/>'
        f'<w:start w:val="{10**9}"/></w:lvl>'
        for n in range(9)
    )
    numbering = (
        f'<w:numbering {space}><w:abstractNum w:abstractNumId="1">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>'
    )
    item = (
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>'
        "<w:r><w:t>Words.</w:t></w:r></w:p>"
    )
    part, content, body = rng.choice(
        [
            ("word/styles.xml", f"<w:styles {space}>{styles}</w:styles>", styled),
            ("word/footnotes.xml", notes, cited * many),
            ("word/numbering.xml", numbering, item * (many // 10)),
        ]
    )
    document = f"<w:document {space}><w:body>{body}</w:body></w:document>"
    kind = part.partition("/")[2].partition(".")[0]
    relation = f'<Relationship Id="r9" Type="{_RELATIONS}/{kind}" Target="{kind}.xml"/>'
    relations = (
        f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relation}'
    )
    return changed_zip(
        good_docx(),
        {
            part: content.encode(),
            "word/document.xml": document.encode(),
            "word/_rels/document.xml.rels": f"{relations}</Relationships>".encode(),
        },
    )


def word_pieces(rng: random.Random) -> str:
    """Return a body of long words, spans, fields, controls within controls, or tables one after the other."""
    many = log_uniform(rng, 10**2, 5 * 10**4)
    cell = f'<w:tc><w:tcPr><w:gridSpan w:val="{rng.randint(2, 10**6)}"/></w:tcPr>{paragraph("x")}</w:tc>'
    field = '<w:p><w:r><w:fldChar w:fldCharType="begin"/><w:instrText>PAGE</w:instrText></w:r></w:p>'
    return rng.choice(
        [
            paragraph("x" * 100 * many),
            f"<w:tbl>{f'<w:tr>{cell}</w:tr>' * (many // 10 + 1)}</w:tbl>",
            paragraph("Words.") + field * many,
            "<w:sdt><w:sdtContent>" * 300 + paragraph("Words.") + "</w:sdtContent></w:sdt>" * 300,
            f"<w:tbl><w:tr><w:tc>{paragraph('x')}</w:tc></w:tr></w:tbl>" * many,
            f'<w:p w:rsidR="{"x" * 100 * many}"><w:r><w:t>Words.</w:t></w:r></w:p>',
            f"<w:p>{'<w:r><w:t>x</w:t></w:r>' * 10 * many}</w:p>",
        ]
    )


def with_macros(rng: random.Random) -> bytes:
    """Return a Word document or workbook with macros, objects and links that an office program would follow."""
    macros = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + rng.randbytes(log_uniform(rng, 10**3, 10**6))
    external = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        f'Type="{_RELATIONS}/attachedTemplate" Target="http://127.0.0.1:9/x.dotm" TargetMode="External"/>'
        "</Relationships>"
    ).encode()
    return rng.choice(
        [
            changed_zip(
                good_docx(), {"word/vbaProject.bin": macros, "word/_rels/settings.xml.rels": external}
            ),
            changed_zip(good_docx(), {"word/embeddings/oleObject1.bin": macros}),
            changed_zip(
                good_xlsx(), {"xl/vbaProject.bin": macros, "xl/externalLinks/externalLink1.xml": b"<a/>"}
            ),
        ]
    )


def workbook_references(rng: random.Random) -> bytes:
    """Return a workbook with one long string in very many cells, or a sheet that is listed very often."""
    many, size = log_uniform(rng, 10**2, 10**5), log_uniform(rng, 10**3, 10**6)
    cells = '<row><c t="s"><v>0</v></c><c t="s"><v>0</v></c></row>' * many
    strings = f'<sst xmlns="{_SHEET}"><si><t>{"word " * (size // 5)}</t></si></sst>'
    styles = (
        f'<styleSheet xmlns="{_SHEET}"><numFmts>'
        f'<numFmt numFmtId="200" formatCode="{"[Red]#,##0.0;" * (size // 14)}"/>'
        '</numFmts><cellXfs><xf numFmtId="200"/></cellXfs></styleSheet>'
    )
    numbers = '<row><c s="0"><v>45000.5</v></c></row>' * many
    sheet_list = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="rId1"/>' for n in range(1, many))
    book = f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATIONS}"><sheets>{sheet_list}</sheets></workbook>'
    content = f'<worksheet xmlns="{_SHEET}"><sheetData>{{}}</sheetData></worksheet>'
    changes: dict[str, bytes | None] = rng.choice(
        [
            {
                "xl/sharedStrings.xml": strings.encode(),
                "xl/worksheets/sheet1.xml": content.format(cells).encode(),
            },
            {"xl/styles.xml": styles.encode(), "xl/worksheets/sheet1.xml": content.format(numbers).encode()},
            {"xl/workbook.xml": book.encode()},
        ]
    )
    return changed_zip(good_xlsx(), changes)


def wide_sheet(rng: random.Random) -> str:
    """Return rows of all columns that there may be, or values that are no numbers, dates or places."""
    value = rng.choice(["1", "1e999", "-1", "NaN", "9" * 400, "x"])
    row = "<row>" + f"<c><v>{value}</v></c>" * 16_384 + "</row>"
    place = '<row r="99999999999"><c r="ZZZZZZZZ1"><v>1</v></c></row><row r="-1"><c r="A0"><v>2</v></c></row>'
    return f"<sheetData>{rng.choice([row * rng.randint(1, 300), place * 10_000])}</sheetData>"


def slide(body: Callable[[random.Random], str]) -> Maker:
    def make(rng: random.Random) -> bytes:
        spaces = f'xmlns:p="{_SLIDES}" xmlns:a="{_DRAWING}" xmlns:r="{_RELATIONS}"'
        content = f"<p:sld {spaces}><p:cSld><p:spTree>{body(rng)}</p:spTree></p:cSld></p:sld>"
        return changed_zip(sample("pptx"), {"ppt/slides/slide1.xml": content.encode()})

    return make


def slide_shape(content: str) -> str:
    return f"<p:sp><p:txBody>{content}</p:txBody></p:sp>"


def slide_pieces(rng: random.Random) -> str:
    """Return groups within groups, very many shapes, or a large table."""
    many = log_uniform(rng, 10**2, 10**5)
    words = "<a:p><a:r><a:t>Words.</a:t></a:r></a:p>"
    spans = f'gridSpan="{rng.randint(1, 10**5)}" rowSpan="{rng.randint(1, 10**5)}"'
    cell = f"<a:tc {spans}><a:txBody>{words}</a:txBody></a:tc>"
    frame = "<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    depth = rng.randint(10, 240)
    return rng.choice(
        [
            "<p:grpSp>" * depth + slide_shape(words) + "</p:grpSp>" * depth,
            slide_shape(words) * many,
            slide_shape(words * many),
            frame.format(f"<a:tr>{cell * 10}</a:tr>" * (many // 10 + 1)),
            slide_shape(f"<a:p><a:r><a:t>{'x' * 100 * many}</a:t></a:r></a:p>"),
        ]
    )


def slides_again(rng: random.Random) -> bytes:
    """Return a presentation that lists one slide very often, or whose slides lead to themselves."""
    many = log_uniform(rng, 10**2, 10**5)
    spaces = f'xmlns:p="{_SLIDES}" xmlns:r="{_RELATIONS}"'
    listed = "".join(f'<p:sldId id="{n}" r:id="rId2"/>' for n in range(256, 256 + many))
    book = f"<p:presentation {spaces}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    loop = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + f'<Relationship Id="r1" Type="{_RELATIONS}/notesSlide" Target="slide1.xml"/>' * many
        + "</Relationships>"
    )
    changes: dict[str, bytes | None] = rng.choice(
        [{"ppt/presentation.xml": book.encode()}, {"ppt/slides/_rels/slide1.xml.rels": loop.encode()}]
    )
    return changed_zip(sample("pptx"), changes)


def open_pieces(rng: random.Random) -> str:
    """Return lists, tables and notes within each other, or a table that repeats rows and columns."""
    depth, many = rng.randint(10, 300), log_uniform(rng, 10**2, 5 * 10**4)
    cell = f'<t:table-cell t:number-columns-spanned="{rng.randint(2, 10**6)}"><x:p>a</x:p></t:table-cell>'
    return rng.choice(
        [
            "<x:list><x:list-item>" * depth + "<x:p>a</x:p>" + "</x:list-item></x:list>" * depth,
            "<t:table><t:table-row><t:table-cell>" * depth
            + "<x:p>a</x:p>"
            + "</t:table-cell></t:table-row></t:table>" * depth,
            "<x:p>" + "<x:span>" * depth + "a" + "</x:span>" * depth + "</x:p>",
            f"<t:table>{f'<t:table-row>{cell}</t:table-row>' * many}</t:table>",
            f'<t:table><t:table-row t:number-rows-repeated="{10**9}">{cell}</t:table-row></t:table>',
            "<x:p>a<x:note><x:note-body><x:p>b</x:p></x:note-body></x:note></x:p>" * many,
            "<x:p>" + "<x:tab/><x:line-break/>" * many + "</x:p><x:p>a</x:p>",
        ]
    )


def open_sheets(rng: random.Random) -> str:
    """Return very many sheets, or one whose few cells stand for very many."""
    many, cell = log_uniform(rng, 10, 10**5), "<t:table-cell><x:p>a</x:p></t:table-cell>"
    repeated = f'<t:table-cell t:number-columns-repeated="{10**9}" o:value-type="float" o:value="1"/>'
    return rng.choice(
        [
            f'<t:table t:name="a"><t:table-row>{cell}</t:table-row></t:table>' * many,
            f'<t:table t:name="a"><t:table-row t:number-rows-repeated="{10**9}">{repeated}</t:table-row></t:table>',
            f'<t:table t:name="a">{f"<t:table-row>{cell * 30}</t:table-row>" * (many // 30 + 1)}</t:table>',
            f'<t:table t:name="a"><t:table-row>{cell * 16_384}</t:table-row></t:table>',
        ]
    )


def open_slides(rng: random.Random) -> bytes:
    """Return an OpenDocument presentation of very many pages or frames within frames."""
    many, depth = log_uniform(rng, 10, 3 * 10**4), rng.randint(10, 300)
    spaces = f'xmlns:o="{_OPEN}:office:1.0" xmlns:d="{_OPEN}:drawing:1.0" xmlns:x="{_OPEN}:text:1.0"'
    box = "<d:frame><d:text-box>", "</d:text-box></d:frame>"
    page = f'<d:page d:name="a">{box[0]}<x:p>Words.</x:p>{box[1]}</d:page>'
    body = rng.choice(
        [
            page * many,
            f"<d:page>{box[0] * depth}<x:p>Words.</x:p>{box[1] * depth}</d:page>",
            f"<d:page>{f'{box[0]}<x:p>Words.</x:p>{box[1]}' * many}</d:page>",
            "<d:page>" + "<d:g>" * depth + f"{box[0]}<x:p>a</x:p>{box[1]}" + "</d:g>" * depth + "</d:page>",
        ]
    )
    content = f"<o:document-content {spaces}><o:body><o:presentation>{body}</o:presentation></o:body>"
    return changed_zip(sample("odp"), {"content.xml": f"{content}</o:document-content>".encode()})


def book_chapters(rng: random.Random) -> bytes:
    """Return a book of very many or very large chapters, one that lists the same again, or one that leads out."""
    many, size = log_uniform(rng, 10, 5_000), log_uniform(rng, 10**3, 3 * 10**5)
    chapter = rng.choice(["<p>Words.</p>", "<div>", "<table><tr><td>1<td>2</table>", "<h1>a</h1><p>b</p>"])
    names = rng.choice(
        [
            [f"text/c{n}.xhtml" for n in range(many)],
            [f"text/{'x/../' * (n % 50)}ch001.xhtml#{n}" for n in range(many)],
            ["../../../../etc/passwd", "file:///etc/passwd", "text/c0.xhtml"],
        ]
    )
    items = "".join(f'<item id="i{n}" href="{name}" media-type="text/html"/>' for n, name in enumerate(names))
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(names)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata/>'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    page = f"<html><body>{chapter * (size // len(names) + 1)}</body></html>".encode()
    parts = {f"EPUB/{name}": page for name in names if name.startswith("text/c") and "#" not in name}
    return changed_zip(sample("epub"), {"EPUB/content.opf": package.encode(), **parts})


def write_zip(entries: list[tuple[str, bytes]], packing: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, data in entries:
            archive.writestr(zipfile.ZipInfo(name), data, packing)
    return stream.getvalue()


def nested_archives(rng: random.Random) -> bytes:
    """Return archives within archives without an end in sight: each holds several of the next."""
    width, depth = rng.randint(2, 16), rng.randint(4, 60)
    data = write_zip([("a.txt", b"Words. " * 1_000)], zipfile.ZIP_DEFLATED)
    for _ in range(depth):
        data = write_zip([(f"{n}.zip", data) for n in range(width)], zipfile.ZIP_DEFLATED)
        width = 1 if len(data) > 10**6 else width
    return data


def overlapping_archive(rng: random.Random) -> bytes:
    """Return an archive whose entries share the same packed bytes: a bomb without nesting."""
    data = write_zip([("a.txt", b"Words. " * log_uniform(rng, 10**4, 10**7))], zipfile.ZIP_DEFLATED)
    start = data.find(b"PK\x01\x02")
    directory, end = data[start : data.find(b"PK\x05\x06")], data[data.find(b"PK\x05\x06") :]
    many = log_uniform(rng, 10, 60_000)
    head = struct.pack("<HHII", many, many, len(directory) * many, start)
    return data[:start] + directory * many + end[:8] + head + end[20:]


def archive_names(rng: random.Random) -> bytes:
    """Return an archive with links, paths that lead out, devices, doubles and names that are none."""
    names = [
        "../../etc/a.txt",
        "/etc/b.txt",
        "..\\..\\c.txt",
        "C:\\d.txt",
        "a\u202etxt.exe.txt",
        "x" * 60_000 + ".txt",
    ]
    names += [
        "CON.txt",
        ".txt",
        " .txt",
        "a/./../b.txt",
        "\n.txt",
        "e.txt",
        "e.txt",
        "E.TXT",
        "\U0001f986.txt",
        "a\tb.md",
    ]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number, name in enumerate(rng.sample(names, rng.randint(3, len(names)))):
            entry = zipfile.ZipInfo(name)
            if rng.random() < 0.3:
                entry.create_system, entry.external_attr = 3, 0o120777 << 16  # a symbolic link
            archive.writestr(entry, b"/etc/passwd" if entry.external_attr else f"Words {number}.".encode())
        archive.comment = b"x" * rng.choice([0, 65_535])
    return rng.choice([b"", b"MZ" + bytes(100)]) + stream.getvalue()


def archive_packing(rng: random.Random) -> bytes:
    """Return an archive packed by rarer methods, with sizes that lie, or with a password."""
    words = b"Words. " * log_uniform(rng, 10**3, 10**7)
    packing = rng.choice([zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
    data = bytearray(write_zip([("a.txt", words), ("b.md", b"# Words")], packing))
    what = rng.randrange(5)
    if what == 0:
        return flagged_encrypted(bytes(data))
    place = data.find(b"PK\x01\x02")
    if what == 1:
        data[place + 24 : place + 28] = struct.pack("<I", rng.choice([1, 100, 2**31, 2**32 - 1]))
    elif what == 2:
        data[place + 10 : place + 12] = struct.pack("<H", rng.choice([1, 9, 12, 98, 99, 65_535]))
    elif what == 3:
        data[place + 42 : place + 46] = struct.pack("<I", rng.choice([1, len(data), 2**32 - 2]))
    return bytes(data)


def mixed_archive(rng: random.Random) -> bytes:
    """Return an archive of hostile files of other formats, with good ones among them."""
    makers = {
        "a.html": b"<p " + b" ".join(b"a%d=1" % n for n in range(2_000)) + b">x",
        "b.json": b"[" * 100_000,
        "c.md": b"> " * 500 + b"deep",
        "d.docx": good_docx()[:-40],
        "e.pdf": b"%PDF-1.7\nnothing",
        "f.xlsx": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1_000),
        "g.eml": b"From: a@b.example\nContent-Type: multipart/encrypted; boundary=x\n\n--x--",
        "h.csv": b"a,b\n" + b'"' * 10_001,
        "i.txt": bytes(5_000),
    }
    entries = [(f"{n}/{name}", data) for n in range(rng.randint(1, 20)) for name, data in makers.items()]
    rng.shuffle(entries)
    return write_zip([("good.md", b"# Words\n\nGood words.\n"), *entries], zipfile.ZIP_DEFLATED)


def message_parts(rng: random.Random) -> bytes:
    """Return an Outlook message of very many or nested attachments, a long text, or packed text that lies."""
    many = log_uniform(rng, 10, 3_000)
    tree = message_tree("x", body="Words.")
    for _ in range(rng.randint(2, 40)):
        tree = message_tree("x", body="Words.", attachments={"a.msg": tree}, header=24)
    packed = struct.pack("<4I", 2**31, 2**31, 0x75465A4C, 0) + rng.randbytes(many)
    literal = struct.pack("<4I", 2**31, 2**31, 0x414C454D, 0) + b"{\\rtf1 Words." + b"\\par x" * many
    makers: list[Callable[[], bytes]] = [
        lambda: write_compound_file(
            message_tree("x", attachments={f"{n}.txt": b"Words." for n in range(many)})
        ),
        lambda: write_compound_file(tree | message_tree("x", body="Words.", attachments={"a.msg": tree})),
        lambda: write_compound_file(message_tree("x" * 1_000, body="word " * 100 * many)),
        lambda: write_compound_file(message_tree("x", html=b"<table><tr><td>x" * 10 * many)),
        lambda: write_compound_file(message_tree("x", rtf=packed)),
        lambda: write_compound_file(message_tree("x", rtf=literal)),
    ]
    return rng.choice(makers)()


def message_loops(rng: random.Random) -> bytes:
    """Return an Outlook message some of whose chains and trees lead back, far away, or nowhere."""
    data = bytearray(good_msg())
    for _ in range(rng.randint(1, 12)):
        place = rng.choice([44, 48, 56, 60, 64, 68, 72, 76, rng.randrange(512, len(data) - 4) // 4 * 4])
        number = rng.choice([0, 1, 2, 5, len(data) // 512, 2**31, 0xFFFFFFFE, rng.randrange(40)])
        data[place : place + 4] = struct.pack("<I", number)
    return bytes(data)


KINDS: Kinds = {
    "docx, many paragraphs": ("docx", word(lambda rng: paragraph("x") * log_uniform(rng, 10**3, 10**6))),
    "docx, nested text boxes": ("docx", word(nested_boxes)),
    "docx, nested tables": ("docx", word(nested_tables)),
    "docx, spaces": ("docx", word(lambda rng: paragraph("x") + " " * log_uniform(rng, 10**6, 6 * 10**7))),
    "docx, references": ("docx", word_references),
    "docx, pieces": ("docx", word(word_pieces)),
    "docx, entities": ("docx", lambda rng: entities(rng, "docx", "word/document.xml")),
    "office, macros": ("docm", with_macros),
    "office, a large part": ("xlsx", office_parts),
    "xlsx, far rows": ("xlsx", sheet(far_rows)),
    "xlsx, many cells": ("xlsx", sheet(dense_rows)),
    "xlsx, merged cells": ("xlsx", sheet(merged_cells)),
    "xlsx, references": ("xlsx", workbook_references),
    "xlsx, wide": ("xlsx", sheet(wide_sheet)),
    "pptx, pieces": ("pptx", slide(slide_pieces)),
    "pptx, the same slide again": ("pptx", slides_again),
    "pptx, entities": ("pptx", lambda rng: entities(rng, "pptx", "ppt/presentation.xml")),
    "zip bomb": ("docx", bomb),
    "ods, repeated cells": ("ods", open_part("ods", "spreadsheet", repeated_cells)),
    "ods, sheets": ("ods", open_part("ods", "spreadsheet", open_sheets)),
    "odt, sections and spaces": ("odt", open_part("odt", "text", open_text)),
    "odt, pieces": ("odt", open_part("odt", "text", open_pieces)),
    "odt, entities": ("odt", lambda rng: entities(rng, "odt", "content.xml")),
    "odp, pages": ("odp", open_slides),
    "epub, chapters": ("epub", book_chapters),
    "epub, entities": ("epub", lambda rng: entities(rng, "epub", "EPUB/content.opf")),
    "archive": ("zip", archive_of_many),
    "archive, nested": ("zip", nested_archives),
    "archive, overlapping": ("zip", overlapping_archive),
    "archive, names": ("zip", archive_names),
    "archive, packing": ("zip", archive_packing),
    "archive, hostile files": ("zip", mixed_archive),
    "msg, parts": ("msg", message_parts),
    "msg, loops": ("msg", message_loops),
}
