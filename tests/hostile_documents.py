"""Two hundred and fifty hostile documents, made from a seed, each read by a process with the limits of every file.

    python tests/hostile_documents.py [--seed 0] [--from 0] [--number 250] [--out build/hostile-SEED.jsonl]

Document N depends on the seed and N alone: its kind is N modulo the number of kinds, its sizes are drawn. Each is
read as `clew add` reads it, with a good file behind it in the same process's queue. Recorded are what became of both,
the processor time and the peak memory of the readers; what the file has already is not measured again. Prints a table
by kind and the rules that were broken: more than 20 seconds of processor time (with 3 for the start of the process,
and 1 for each MiB of the file) or 700 MB, a refusal that is not one line, a good file that was lost. Exit status 1 if
there are any.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bad_files import changed_zip, good_docx, good_msg, good_pdf, good_xlsx, sample
from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.pool import ParsePool

ROOT = Path(__file__).parents[1]
#: What a document may take: seconds of processor time, with the start of the process; megabytes.
SECONDS, MEGABYTES = 20.0, 700.0
#: The start of a process and its imports, and the grain of the kernel's limit.
_START_SECONDS = 3.0
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OPEN = "urn:oasis:names:tc:opendocument:xmlns"
Maker = Callable[[random.Random], bytes]


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    return int(low * (high / low) ** rng.random())


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


def text(body: Callable[[random.Random], str]) -> Maker:
    return lambda rng: body(rng).encode()


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


def html_table(rng: random.Random) -> str:
    cell = rng.choice(
        ["<td>1", "<td>" + "word " * 20, "<td><b>1</b>", f'<td rowspan="{rng.randint(2, 99)}">1']
    )
    columns = rng.choice([2, 10, 100])
    rows = log_uniform(rng, 10**4, 10**6) // columns
    return "<table>" + ("<tr>" + cell * columns) * rows + "</table>"


def html_spans(rng: random.Random) -> str:
    cell = f"<td colspan={rng.randint(2, 10**6)} rowspan={rng.randint(2, 10**6)}>x"
    return "<table>" + ("<tr>" + cell * rng.randint(1, 5)) * rng.randint(1, 2_000) + "</table>"


def html_attributes(rng: random.Random) -> str:
    attributes = " ".join(f"a{n}=1" for n in range(log_uniform(rng, 500, 200_000)))
    return f"<html><body><p {attributes}>words</p></body></html>"


def html_nesting(rng: random.Random) -> str:
    tag = rng.choice(["div", "b", "ul><li", "table><tr><td", "blockquote", "a", "p"])
    return "<html><body>" + f"<{tag}>x" * log_uniform(rng, 100, 50_000)


def html_pieces(rng: random.Random) -> str:
    piece = rng.choice(
        ["<p>x", "<br>", "<h1>a</h1>", "<li>x", "&amp;&#x41;", "<!-- c -->", "<script>1</script>x"]
    )
    return "<html><body>" + piece * log_uniform(rng, 10**4, 10**6)


def markdown_table(rng: random.Random) -> str:
    columns = rng.choice([2, 10, 100, 1_000])
    rows = log_uniform(rng, 10**4, 2 * 10**6) // columns
    cell = rng.choice([" 1 |", " **a** |", " words of some length |", " |"])
    return "|" + " h |" * columns + "\n|" + " - |" * columns + "\n" + ("|" + cell * columns + "\n") * rows


def markdown_marks(rng: random.Random) -> str:
    mark = rng.choice(
        ["*a_ ", "[", "![", "`" * 7 + "a", "<a ", "**_*", "[a](", "> ", "- ", "\\", "&#1", "~~a"]
    )
    joint = rng.choice(["", "\n", " "])
    return (mark + joint) * log_uniform(rng, 10**3, 3 * 10**5)


def markdown_lists(rng: random.Random) -> str:
    lines = (
        " " * (2 * (n % rng.randint(1, 90))) + rng.choice(["-", "1.", "*"]) + " x" for n in range(20_000)
    )
    return "\n".join(lines)


def csv_table(rng: random.Random) -> str:
    columns = rng.choice([2, 30, 16_000])
    rows = log_uniform(rng, 10**4, 3 * 10**6) // columns + 2
    cell = rng.choice(["1,", '"a ""b""",', "words of some length,", ","])
    return (cell * columns + "x\n") * rows


def csv_quotes(rng: random.Random) -> str:
    return (
        "a,b\n"
        + '"' * rng.choice([1, 2, 3])
        + rng.choice(["x,", "\n", '""', "\r"]) * log_uniform(rng, 10**4, 10**7)
    )


def plain_text(rng: random.Random) -> str:
    piece = rng.choice(
        ["a", "a b ", "1. x\n", "\n", "x\n\n", "A. B. ", "\u0301", "é🦆", "\t", "HEADING\n\nx\n\n", "…"]
    )
    return "Words. " + piece * log_uniform(rng, 10**5, 2 * 10**7)


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


def rich_text(rng: random.Random) -> str:
    piece = rng.choice(
        [
            "{\\b a}",
            "{",
            "\\u9999?",
            "\\bin99999999 ",
            "\\par x",
            "\\'e9",
            "\\trowd\\cell\\row ",
            "{\\pict 00}",
        ]
    )
    return "{\\rtf1 " + piece * log_uniform(rng, 10**3, 10**6) + "}"


def mail(rng: random.Random) -> str:
    head = "From: a@example.org\nSubject: x\nMIME-Version: 1.0\n"
    many = log_uniform(rng, 10, 20_000)
    return rng.choice(
        [
            head + "X-A: b\n" * many + "\nWords.",
            head + f"To: {'a@b.example, ' * many}c@d.example\n\nWords.",
            head
            + "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(many))
            + "\nx",
            head + "Content-Type: multipart/mixed; boundary=b\n\n" + "--b\n\nx\n" * many + "--b--\n",
            head + f"Subject: {'=?utf-8?q?a?= ' * many}\n\nWords.",
            head + f"Content-Type: text/html\n\n{'<p>x' * many}",
        ]
    )


def mailbox(rng: random.Random) -> str:
    return "From a@b Fri May  3 14:05:00 2024\nFrom: a@b.example\nSubject: x\n\nWords.\n\n" * log_uniform(
        rng, 10, 30_000
    )


def json_values(rng: random.Random) -> str:
    many = log_uniform(rng, 10**3, 10**6)
    makers: list[Callable[[], str]] = [
        lambda: "[" * many,
        lambda: '{"a":' * many + "1" + "}" * many,
        lambda: "[" + "1," * many + "1]",
        lambda: "{" + ",".join(f'"k{n}": {n}' for n in range(many)) + "}",
        lambda: '{"a": "' + "x" * 20 * many + '"}',
        lambda: "[" + ",".join('{"a": 1, "b": "x"}' for _ in range(many)) + "]",
        lambda: '{"a": ' + "9" * many + "}",
        lambda: '{"a": "\\ud800' + "\\u0000" * many + '"}',
    ]
    return rng.choice(makers)()


def notebook(rng: random.Random) -> str:
    cell = {
        "cell_type": rng.choice(["markdown", "code", "raw"]),
        "source": ["x\n"] * rng.randint(1, 99),
        "outputs": [],
    }
    return json.dumps({"cells": [cell] * log_uniform(rng, 10, 10**5), "metadata": {}, "nbformat": 4})


def latex(rng: random.Random) -> str:
    piece = rng.choice(
        [
            "\\begin{itemize}\\item ",
            "\\textbf{",
            "$x",
            "\\def\\a{\\a\\a}\\a ",
            "{",
            "\\\\ & ",
            "% c\n",
            "\\section{x} y\n\n",
        ]
    )
    return "\\documentclass{article}\\begin{document}Words. " + piece * log_uniform(rng, 100, 3 * 10**5)


def pdf_content(rng: random.Random) -> bytes:
    """A PDF with a page whose packed content is long."""
    operator = rng.choice(
        [b"BT /F1 9 Tf 1 1 Td (a) Tj ET\n", b"0 0 1 1 re S\n", b"q ", b"0 0 m 9 9 l S\n", b"(a) Tj "]
    )
    stream = zlib.compress(operator * log_uniform(rng, 10**3, 10**6))
    page = b"/Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >>"
    count = rng.choice([1, 1, 20, 2_000])
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + b"3 0 R " * count + b"] /Count %d >>" % count,
        b"<< " + page + b" >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(stream) + stream + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return out + (
        b"xref\n0 %d\n0000000000 65535 f \n" % size
        + table
        + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (size, len(out))
    )


def damaged(make: Callable[[], bytes]) -> Maker:
    def damage(rng: random.Random) -> bytes:
        data = bytearray(make())
        for _ in range(rng.randint(1, 40)):
            start = rng.randrange(len(data))
            data[start : start + rng.randint(0, 30)] = rng.randbytes(rng.randint(0, 30))
        return bytes(data)

    return damage


#: By name: the suffix of the file, and how its bytes are drawn.
KINDS: dict[str, tuple[str, Maker]] = {
    "docx, many paragraphs": ("docx", word(lambda rng: paragraph("x") * log_uniform(rng, 10**3, 10**6))),
    "docx, nested text boxes": ("docx", word(nested_boxes)),
    "docx, nested tables": ("docx", word(nested_tables)),
    "docx, spaces": ("docx", word(lambda rng: paragraph("x") + " " * log_uniform(rng, 10**6, 6 * 10**7))),
    "office, a large part": ("xlsx", office_parts),
    "xlsx, far rows": ("xlsx", sheet(far_rows)),
    "xlsx, many cells": ("xlsx", sheet(dense_rows)),
    "xlsx, merged cells": ("xlsx", sheet(merged_cells)),
    "html, large table": ("html", text(html_table)),
    "html, spans": ("html", text(html_spans)),
    "html, attributes": ("html", text(html_attributes)),
    "html, nesting": ("html", text(html_nesting)),
    "html, many pieces": ("html", text(html_pieces)),
    "markdown, large table": ("md", text(markdown_table)),
    "markdown, marks": ("md", text(markdown_marks)),
    "markdown, lists": ("md", text(markdown_lists)),
    "csv, large": ("csv", text(csv_table)),
    "csv, quotes": ("csv", text(csv_quotes)),
    "text": ("txt", text(plain_text)),
    "zip bomb": ("docx", bomb),
    "archive": ("zip", archive_of_many),
    "ods, repeated cells": ("ods", open_part("ods", "spreadsheet", repeated_cells)),
    "odt, sections and spaces": ("odt", open_part("odt", "text", open_text)),
    "rtf": ("rtf", text(rich_text)),
    "mail": ("eml", text(mail)),
    "mailbox": ("mbox", text(mailbox)),
    "json": ("json", text(json_values)),
    "json lines": ("jsonl", text(lambda rng: '{"a": 1, "b": "x"}\n' * log_uniform(rng, 10**3, 10**6))),
    "notebook": ("ipynb", text(notebook)),
    "latex": ("tex", text(latex)),
    "pdf, long content": ("pdf", pdf_content),
    "pdf, damaged": ("pdf", damaged(good_pdf)),
    "docx, damaged": ("docx", damaged(good_docx)),
    "xlsx, damaged": ("xlsx", damaged(good_xlsx)),
    "pptx, damaged": ("pptx", damaged(lambda: sample("pptx"))),
    "epub, damaged": ("epub", damaged(lambda: sample("epub"))),
    "msg, damaged": ("msg", damaged(good_msg)),
}


def make_document(seed: int, number: int) -> tuple[str, str, bytes]:
    """Return the kind, the suffix and the bytes of a document."""
    kind = list(KINDS)[number % len(KINDS)]
    suffix, make = KINDS[kind]
    return kind, suffix, make(random.Random(f"{seed}/{number}"))


def measure(seed: int, number: int) -> dict[str, Any]:
    """Read a document and then a good one in the pool of a process of its own; return what came of them."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            record = _read_both(seed, number)
        except BaseException as error:  # noqa: BLE001 - the record says so
            record = {"number": number, "kind": "?", "broken": [f"{type(error).__name__}: {error}"]}
        with os.fdopen(writing, "w") as stream:
            json.dump(record, stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        record = json.load(stream)
    os.waitpid(child, 0)
    return dict(record)


def _read_both(seed: int, number: int) -> dict[str, Any]:
    kind, suffix, data = make_document(seed, number)
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        hostile, good = folder / f"hostile.{suffix}", folder / "good.md"
        hostile.write_bytes(data)
        good.write_text("# Toll\n\nThe toll is nine crowns.\n")
        size = len(data)
        del data
        started = time.monotonic()
        with ParsePool(1, folder=folder) as pool:
            options = {hostile: {"members": folder}}
            outcomes = dict(pool.read_files([hostile, good], options=options))
        elapsed = time.monotonic() - started
    finally:
        shutil.rmtree(folder)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6
    outcome = outcomes[hostile]
    refusal = outcome.problem if isinstance(outcome, UnreadableFile) else ""
    broken = []
    if seconds > SECONDS + _START_SECONDS + size / (1 << 20):
        broken.append(f"{seconds:.0f} seconds")
    if megabytes > MEGABYTES:
        broken.append(f"{megabytes:.0f} MB")
    if "\n" in refusal or len(refusal) > 200 or "crashed" in refusal:
        broken.append(f"refused by: {refusal}")
    if not isinstance(outcomes[good], ParsedDocument):
        broken.append("the good file behind it was lost")
    return {
        "number": number,
        "kind": kind,
        "bytes": size,
        "seconds": round(seconds, 1),
        "elapsed": round(elapsed, 1),
        "megabytes": round(megabytes),
        "refusal": refusal,
        "broken": broken,
    }


def print_table(records: list[dict[str, Any]]) -> None:
    lines = ["| kind | documents | refused | CPU seconds, most | MB, most | an example of a refusal |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | --- |")
    for kind in KINDS:
        own = [record for record in records if record["kind"] == kind]
        if own:
            refusals = [record["refusal"] for record in own if record["refusal"]]
            lines.append(
                f"| {kind} | {len(own)} | {len(refusals)} | {max(record['seconds'] for record in own):.1f} "
                f"| {max(record['megabytes'] for record in own)} | {refusals[0] if refusals else ''} |"
            )
    broken = [record for record in records if record["broken"]]
    lines.append(f"\n{len(records)} documents, {len(broken)} beyond a limit")
    lines += [f"{record['number']} ({record['kind']}): {'; '.join(record['broken'])}" for record in broken]
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N")
    parser.add_argument("--number", type=int, default=250)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, metavar="KIND", help="these alone")
    parser.add_argument(
        "--out", type=Path, help="a line for each document; default: build/hostile-SEED.jsonl"
    )
    given = parser.parse_args()
    out = given.out or ROOT / "build" / f"hostile-{given.seed}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    measured = {record["number"] for record in records}
    for number in range(given.first, given.first + given.number):
        if number not in measured and (not given.kinds or list(KINDS)[number % len(KINDS)] in given.kinds):
            records.append(measure(given.seed, number))
            with out.open("a") as stream:
                stream.write(json.dumps(records[-1]) + "\n")
    print_table(records)
    return int(any(record["broken"] for record in records))


if __name__ == "__main__":
    sys.exit(main())
