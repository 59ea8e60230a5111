"""Hostile texts, drawn at random: HTML, Markdown, tables, mails, JSON, RTF, LaTeX."""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Callable

Maker = Callable[[random.Random], bytes]
#: The suffix of a file, and how its bytes are drawn.
Kinds = dict[str, tuple[str, Maker]]


def log_uniform(rng: random.Random, low: int, high: int) -> int:
    return int(low * (high / low) ** rng.random())


def text(body: Callable[[random.Random], str]) -> Maker:
    return lambda rng: body(rng).encode()


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


def html_foreign(rng: random.Random) -> str:
    """Return a page of elements that a browser's parser moves or treats apart."""
    piece = rng.choice(
        [
            "<svg><foreignObject><math><mi>x",
            "<select><option>x<table><td>y",
            "<template><tr><td>x",
            "<table><p>moved<tr><b>x<td><i>y",
            "<textarea>x</p><title>y",
            "<form><input><button>x<form>",
            "<frameset><frame src='file:///etc/passwd'>",
        ]
    )
    return "<html><body><p>Words.</p>" + piece * log_uniform(rng, 100, 10**5)


def html_long_values(rng: random.Random) -> str:
    size = log_uniform(rng, 10**6, 2 * 10**7)
    makers: list[Callable[[], str]] = [
        lambda: f"<p title='{'x' * size}'>Words.</p>",
        lambda: f"<img src='data:image/png;base64,{'A' * size}'><p>Words.",
        lambda: f"<p>{'x' * size}</p>",
        lambda: f"<{'a' * size}>Words.",
        lambda: f"<style>{'a{b:c}' * (size // 6)}</style><p>Words.",
        lambda: f"<table><tr><td>{'word ' * (size // 5)}</table>",
    ]
    return "<html><body>" + rng.choice(makers)()


def html_entities(rng: random.Random) -> str:
    """Return a page whose document type declares entities within entities, or files of the machine."""
    depth = rng.randint(5, 30)
    entities = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(depth))
    system = '<!ENTITY f SYSTEM "file:///etc/passwd"><!ENTITY g SYSTEM "http://127.0.0.1:9/x">'
    return (
        f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e0 "ha">{entities}{system}]>'
        f"<html><body><p>Words &e{depth}; &f; &g;</p>" + "&amp" * log_uniform(rng, 10, 10**5)
    )


def markdown_references(rng: random.Random) -> str:
    """Return definitions of links that are used very often, or that lead to each other."""
    many = log_uniform(rng, 10**3, 10**5)
    makers: list[Callable[[], str]] = [
        lambda: "".join(f"[a{n}]: http://x/{n}\n" for n in range(many)) + "[a1] " * many,
        lambda: "[a]: <" + "x" * many + ">\n\n" + "[a][a]" * many,
        lambda: "".join(f"[^{n}]: [^{n + 1}]\n" for n in range(many)) + "Words[^0].",
        lambda: "[" * many + "a" + "]" * many + "(x)",
        lambda: "[a](" * many + "x" + ")" * many,
    ]
    return "# Words\n\n" + rng.choice(makers)()


def markdown_front_matter(rng: random.Random) -> str:
    """Return front matter that refers to itself, or that does not end."""
    depth = rng.randint(5, 20)
    aliases = "a0: &a0 [x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, depth)
    )
    makers: list[Callable[[], str]] = [
        lambda: f"---\n{aliases}---\n\nWords.\n",
        lambda: "---\n" + "title: x\n" * log_uniform(rng, 10**3, 10**6),
        lambda: "---\ntitle: " + "x" * log_uniform(rng, 10**5, 10**7) + "\n---\n\nWords.",
        lambda: "---\n!!python/object/apply:os.system ['true']\n---\n\nWords.",
    ]
    return rng.choice(makers)()


def markdown_pages(rng: random.Random) -> str:
    """Return blocks of HTML, code and quotations within each other."""
    piece = rng.choice(["<div>\n\n", "<table><tr><td>\n", "```\n", "> - > ", "\t- ", "<!--\n", "<![CDATA[\n"])
    return "Words.\n\n" + piece * log_uniform(rng, 10**3, 10**5)


def csv_columns(rng: random.Random) -> str:
    """Return a table of up to a million columns, rows of different lengths, or separators of all kinds."""
    columns = log_uniform(rng, 10**4, 10**6)
    makers: list[Callable[[], str]] = [
        lambda: ",".join(f"c{n}" for n in range(columns)) + "\n" + ",".join(["1"] * columns) + "\n",
        lambda: "".join("1," * (n % 3_000) + "\n" for n in range(columns // 1_500 + 3)),
        lambda: "a;b,c|d\te\n" * columns,
        lambda: "a,b\n" + "x" * 10 * columns + ",1\n",
        lambda: "a,b\r1,2\r" * columns,
        lambda: "a,b\n" + "\0,\0\n" * columns,
    ]
    return rng.choice(makers)()


def text_words(rng: random.Random) -> str:
    """Return words of a megabyte, lines without words, marks that change the direction of a line."""
    size = log_uniform(rng, 10**5, 10**7)
    piece = rng.choice(
        [
            "x" * size + " ",
            "1." * 50 + "\n",
            "\u202e\u2066a",
            "\u200b",
            "a\u0301\u0302\u0303",
            "\u3000",
            "\f\v",
        ]
    )
    return "Words.\n\n" + piece * (size // len(piece) + 1)


def encodings(rng: random.Random) -> bytes:
    """Return words in an encoding that is cut, mixed or claimed falsely."""
    words = "Wörter — 言葉 слова \U0001f986. " * log_uniform(rng, 10, 10**5)
    encoding = rng.choice(
        ["utf-16-le", "utf-16-be", "utf-32-le", "utf-7", "shift_jis", "koi8-r", "cp037", "utf-8"]
    )
    mark = rng.choice([b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\x2b\x2f\x76\x38", b"\xff\xfe\0\0"])
    data = words.encode(encoding, "replace")
    cut = rng.randrange(len(data))
    return mark + data[:cut] + rng.choice([b"", b"\xed\xa0\x80", b"\xff", b"\x80" * 99]) + data[cut + 1 :]


def zero_bytes(rng: random.Random) -> bytes:
    """Return words with zero bytes among them, few or many."""
    words = bytearray(b"Words and words.\n" * log_uniform(rng, 10, 10**5))
    for _ in range(log_uniform(rng, 1, 10**4)):
        words[rng.randrange(len(words))] = 0
    return bytes(words)


def rich_text_lies(rng: random.Random) -> str:
    """Return RTF with lengths that lie, tables without end, pictures and objects."""
    many = log_uniform(rng, 10**3, 2 * 10**5)
    makers: list[Callable[[], str]] = [
        lambda: "\\uc99999999" + "\\u8364" * many,
        lambda: "{\\bin4294967296 x}" + "Words. " * many,
        lambda: "\\trowd" + "".join(f"\\cellx{n}" for n in range(many)) + "x\\cell" * 9 + "\\row",
        lambda: "\\trowd\\cellx1 " + "x\\cell " * many + "\\row",
        lambda: "{\\fonttbl" + "".join(f"{{\\f{n} A;}}" for n in range(many)) + "}Words.",
        lambda: "{\\stylesheet" + "".join(f"{{\\s{n}\\sbasedon{n + 1} a;}}" for n in range(many)) + "}Words.",
        lambda: "{\\object\\objdata " + "0" * 20 * many + "}Words.",
        lambda: "\\listtext " * many + "Words.",
        lambda: "{\\field{\\*\\fldinst HYPERLINK x}{\\fldrslt " * (many // 10) + "Words.",
    ]
    return "{\\rtf1\\ansi Words.\\par " + rng.choice(makers)() + "}"


def mail_parts(rng: random.Random) -> str:
    """Return a mail with attachments, messages within messages, encodings and lengths that lie."""
    head = "From: a@example.org\nSubject: x\nMIME-Version: 1.0\n"
    many = log_uniform(rng, 10, 5_000)
    packed = base64.b64encode(b"PK\x05\x06" + bytes(18)).decode()
    mixed = "Content-Type: multipart/mixed; boundary=b\n\n"
    attachment = (
        "--b\nContent-Type: {kind}; name={name}\nContent-Disposition: attachment; filename={name}\n{more}\n"
    )
    makers: list[Callable[[], str]] = [
        lambda: (
            head
            + mixed
            + "".join(
                attachment.format(kind="text/plain", name=f"{n}.txt", more="") + "Words.\n"
                for n in range(many)
            )
        ),
        lambda: (
            head
            + mixed
            + attachment.format(kind="a/b", name="../../x.zip", more="Content-Transfer-Encoding: base64\n")
            + packed * many
        ),
        lambda: head + "Content-Type: message/rfc822\n\n" * many + head + "\nWords.",
        lambda: head + "Content-Transfer-Encoding: base64\n\n" + "=*A" * 20 * many,
        lambda: head + "Content-Transfer-Encoding: quoted-printable\n\n" + "=\n=4" * 50 * many,
        lambda: head + "Content-Transfer-Encoding: x-uuencode\n\nbegin 644 a\n" + "M" * 60 * many,
        lambda: head + f"Content-Type: text/plain; charset={'x' * many}\n\nWords \xe9.",
        lambda: head + f"Content-Type: multipart/mixed; boundary={'-' * many}\n\n" + "-" * 50 * many,
        lambda: head + "Content-Type: text/html\n\n" + "<table><tr><td>" * many,
        lambda: head + f"Date: {'9' * many}\nReceived: {'(' * many}\n\nWords.",
        lambda: head + f"Content-Type: text/plain{'; a*0*=' * many}x\n\nWords.",
    ]
    return rng.choice(makers)()


def mailbox_parts(rng: random.Random) -> str:
    message = "From a@b Fri May  3 14:05:00 2024\nFrom: a@b.example\nSubject: x\n"
    return (message + mail_parts(rng) + "\n\n") * rng.randint(1, 40)


def json_tables(rng: random.Random) -> str:
    """Return lists of objects with very many keys, keys that repeat, and numbers that none can hold."""
    many = log_uniform(rng, 10**3, 3 * 10**5)
    makers: list[Callable[[], str]] = [
        lambda: "[" + ",".join(f'{{"k{n}": {n}}}' for n in range(many)) + "]",
        lambda: "[{" + ",".join(f'"k{n}": 1' for n in range(many)) + "}, {}]",
        lambda: "{" + '"a": 1,' * many + '"a": 2}',
        lambda: '{"a": [' + "1e999, -0, NaN, " * (many // 4) + "1]}",
        lambda: '[{"a": ' * 60 + "1" + "}]" * 60,
        lambda: '{"' + "k" * 10 * many + '": 1}',
        lambda: '{"type": "FeatureCollection", "features": [' + "[0, 1]," * many + "0]}",
        lambda: (
            '{"a": {"b": [' + ",".join('{"c": {"d": [1, 2, {"e": "x"}]}}' for _ in range(many // 9)) + "]}}"
        ),
    ]
    return rng.choice(makers)()


def json_long_lines(rng: random.Random) -> str:
    many = log_uniform(rng, 10**3, 10**6)
    makers: list[Callable[[], str]] = [
        lambda: '{"a": "' + "x" * 20 * many + '"}\n{"a": 1}\n',
        lambda: "".join(f'{{"k{n}": {n}}}\n' for n in range(many // 3)),
        lambda: "[1]\nx\n{}\n" * (many // 3),
        lambda: '{"a": 1}\n' + "[" * many + "\n",
        lambda: '{"a": ' + "[" * 90 + "1" + "]" * 90 + "}\n",
    ]
    return rng.choice(makers)()


def notebook_outputs(rng: random.Random) -> str:
    """Return a notebook with outputs in large or damaged HTML, sources that are no text, and very many of them."""
    many = log_uniform(rng, 10, 2_000)
    data = rng.choice(
        [
            {"text/html": "<table>" + "<tr><td>1<td>2" * 500 + "</table>"},
            {"text/html": "<div>" * 900},
            {"text/plain": ["x" * 1_000] * 100},
            {"image/png": "A" * 100_000},
            {"text/latex": "\\begin{x}" * 1_000},
            {"application/json": [[[[]]]]},
        ]
    )
    output = {
        "output_type": rng.choice(["display_data", "execute_result", "stream", "error", 3]),
        "data": data,
    }
    cell = {"cell_type": "code", "source": rng.choice(["x", ["x"], None, 3]), "outputs": [output] * 9}
    words = {"cell_type": "markdown", "source": "Words."}
    return json.dumps({"cells": [words, *[cell] * many], "metadata": {}, "nbformat": 4})


def latex_macros(rng: random.Random) -> str:
    """Return macros that expand to each other, files that read themselves, environments without end."""
    many = log_uniform(rng, 100, 10**5)
    letters = "abcdefghijklmnop"
    laughs = "".join(
        f"\\newcommand{{\\{b}{b}}}{{{f'{chr(92)}{a}{a}' * 10}}}" for a, b in itertools.pairwise(letters)
    )
    makers: list[Callable[[], str]] = [
        lambda: laughs + "\\pp",
        lambda: "\\input{hostile}\\include{/etc/passwd}" * many,
        lambda: "\\begin{a}" * many,
        lambda: "\\begin{tabular}{" + "l" * many + "}" + "a & " * many + "\\end{tabular}",
        lambda: "\\verb|" + "x" * many,
        lambda: "\\footnote{" * (many // 100) + "x",
        lambda: "\\cite[" * many,
        lambda: "$" * many + "\\[" * many,
        lambda: "\\begin{verbatim}\n" + "x\n" * many,
        lambda: "\\immediate\\write18{touch /tmp/x}Words." * (many // 50 + 1),
    ]
    return "\\documentclass{article}\\begin{document}Words. " + rng.choice(makers)() + "\\end{document}"


KINDS: Kinds = {
    "html, large table": ("html", text(html_table)),
    "html, spans": ("html", text(html_spans)),
    "html, attributes": ("html", text(html_attributes)),
    "html, nesting": ("html", text(html_nesting)),
    "html, many pieces": ("html", text(html_pieces)),
    "html, misplaced elements": ("html", text(html_foreign)),
    "html, long values": ("html", text(html_long_values)),
    "html, entities": ("html", text(html_entities)),
    "markdown, large table": ("md", text(markdown_table)),
    "markdown, marks": ("md", text(markdown_marks)),
    "markdown, lists": ("md", text(markdown_lists)),
    "markdown, references": ("md", text(markdown_references)),
    "markdown, front matter": ("md", text(markdown_front_matter)),
    "markdown, blocks in blocks": ("md", text(markdown_pages)),
    "csv, large": ("csv", text(csv_table)),
    "csv, quotes": ("csv", text(csv_quotes)),
    "csv, columns": ("csv", text(csv_columns)),
    "tsv, encodings": ("tsv", encodings),
    "text": ("txt", text(plain_text)),
    "text, words": ("txt", text(text_words)),
    "text, encodings": ("txt", encodings),
    "text, zero bytes": ("txt", zero_bytes),
    "rtf": ("rtf", text(rich_text)),
    "rtf, lies": ("rtf", text(rich_text_lies)),
    "mail": ("eml", text(mail)),
    "mail, parts": ("eml", text(mail_parts)),
    "mailbox": ("mbox", text(mailbox)),
    "mailbox, parts": ("mbox", text(mailbox_parts)),
    "json": ("json", text(json_values)),
    "json, tables": ("json", text(json_tables)),
    "json lines": ("jsonl", text(lambda rng: '{"a": 1, "b": "x"}\n' * log_uniform(rng, 10**3, 10**6))),
    "json lines, long": ("jsonl", text(json_long_lines)),
    "notebook": ("ipynb", text(notebook)),
    "notebook, outputs": ("ipynb", text(notebook_outputs)),
    "latex": ("tex", text(latex)),
    "latex, macros": ("tex", text(latex_macros)),
}
