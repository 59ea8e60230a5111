"""Names of documents and graphs on a terminal: nothing in them commands it, whatever a command prints."""

import base64
import csv
import html
import io
import json
import os
import re
import select
import struct
import subprocess
import sys
import zipfile
from email.message import EmailMessage

import pytest

import clew
from clew.core.text import clean_name, has_hidden
from hostile_names import NAMES, TEXTS, hostile_parts

fcntl = pytest.importorskip("fcntl", reason="pseudo-terminals of POSIX")
termios = pytest.importorskip("termios", reason="pseudo-terminals of POSIX")

#: Runs several commands, one after the other; a line with a number before each.
_DRIVER = """
import json, sys
from clew.app.cli.commands import app
for number, words in enumerate(json.load(open(sys.argv[1]))):
    print(f"@@@{number}", flush=True)
    try:
        app([word.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape") for word in words])
    except SystemExit as ended:
        print(f"@@@ {ended.code}", flush=True)
"""


def on_terminal(folder, commands):
    """Return what a pseudo-terminal of 2,000 columns was sent by each command, and its exit status."""
    script = folder / "commands.json"
    script.write_text(json.dumps([list(map(str, words)) for words in commands]))
    primary, secondary = os.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 2_000, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, script],
        stdin=subprocess.DEVNULL,
        stdout=secondary,
        stderr=secondary,
        env=os.environ | {"TERM": "xterm-16color", "COLUMNS": "2000"},
        close_fds=True,
    )
    os.close(secondary)
    written = b""
    while True:
        assert select.select([primary], [], [], 120)[0], written[-2_000:]
        try:
            piece = os.read(primary, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(primary)
    assert child.wait() == 0, written[-2_000:].decode(errors="replace")
    pieces = re.split(rb"@@@\d+\r\n", written)[1:]
    outputs = [re.split(rb"@@@ (\d+|None)\r\n", piece)[:2] for piece in pieces]
    assert len(outputs) == len(commands)
    return [(text, int(status)) for text, status in outputs]


def word(number):
    """A word that one document alone has."""
    return f"mill{number:02d}x"


def make_message(number, name):
    message = EmailMessage()
    message["From"], message["To"] = "hesper@example.org", "marrable@example.org"
    message.set_content(f"The {word(number)} ground forty sacks.")
    message.add_attachment(f"Attached: {word(number)} again.", filename="ATTACHED")
    raw = message.as_bytes()
    encoded = base64.b64encode(name.encode()).decode()
    raw = raw.replace(b"From:", f"Subject: =?utf-8?b?{encoded}?=\nFrom:".encode(), 1)
    quoted = "".join(f"%{byte:02X}" for byte in f"{name}.txt".encode())
    return raw.replace(b'filename="ATTACHED"', f"filename*=utf-8''{quoted}".encode())


def make_workbook(path, names):
    """Write a workbook with a sheet, and a table with a header, for each name. Excel escapes what XML cannot hold."""
    import openpyxl

    book = openpyxl.Workbook()
    for number in range(len(names)):
        sheet = book.create_sheet(f"SHEET{number:02d}")
        sheet.append([f"HEAD{number:02d}", "sacks"])
        for row in range(3):
            sheet.append([f"{word(number)} {row}", row])
    del book["Sheet"]
    plain = io.BytesIO()
    book.save(plain)
    escaped = {
        f"{number:02d}": html.escape(re.sub(r"[\x00-\x08\x0b-\x1f]", lambda c: f"_x{ord(c[0]):04X}_", name))
        for number, name in enumerate(names)
    }
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(path, "w") as target:
        for info in source.infolist():
            content = source.read(info).decode() if info.filename.endswith(("xml", "rels")) else ""
            content = re.sub(r"(?:SHEET|HEAD)(\d\d)", lambda found: escaped[found[1]], content)
            target.writestr(info, content or source.read(info))


def make_documents(folder):
    """Write documents that bring the names in: as their own names, titles, headings, headers, sheets and fields."""
    (folder / "files").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        how = "surrogatepass" if "\ud83d" in name else "surrogateescape"
        path = folder / "files" / os.fsdecode(f"{name}.txt".encode("utf-8", how))
        path.write_text(f"The {word(number)} was built in 1871 by Hesper Marrable.\n")
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        for number, name in enumerate(TEXTS):
            archive.writestr(f"{name}.txt", f"In the archive lies the {word(number)} of Hesper Marrable.")
    messages = [make_message(number, name) for number, name in enumerate(TEXTS)]
    (folder / "mails.mbox").write_bytes(
        b"".join(b"From a@example.org Sat Jan 03 01:05:34 2015\n" + one + b"\n\n" for one in messages)
    )
    (folder / "first.eml").write_bytes(messages[0])
    for number, name in enumerate(TEXTS):
        written = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda c: f"&#{ord(c[0])};", html.escape(name))
        (folder / f"page{number:02d}.html").write_text(
            f"<html><head><title>{written}</title><meta name='author' content='{written}'>"
            f"<meta name='keywords' content='{written}'></head><body><h1>{html.escape(name)}</h1>"
            f"<p>Hesper Marrable came to the {word(number)} in 1871.</p><h2>{written}</h2>"
            f"<p>It burnt in 1902.</p></body></html>"
        )
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([name.replace("\n", " ").replace("\r", " ") for name in TEXTS[:30]])
        writer.writerows([[f"cell {row}{column}" for column in range(30)] for row in range(4)])
    make_workbook(folder / "book.xlsx", TEXTS)
    return folder


def make_graph(folder):
    with (folder / "people.jsonl").open("w") as file:
        for number, name in enumerate(NAMES):
            node = {"id": f"q{number}", "name": name, "types": [f"T {name}"], "aliases": [f"also {name}"]}
            print(json.dumps(node | {f"P {name}": f"value {name}"}), file=file)
            print(
                json.dumps({"head": f"q{number}", "relation": f"R {name}", "tail": f"end {name}"}), file=file
            )
    with (folder / "triples.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["head", "relation", "tail"], *([f"H {name}", "turns", f"tail {name}"] for name in TEXTS)]
        )
    return folder


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    """A base whose every name is hostile, made and asked on a terminal: its folder and what each command wrote."""
    folder = tmp_path_factory.mktemp("terminal")
    kb, documents = folder / "kb", make_documents(folder / "documents")
    graphs = make_graph(folder)
    added = on_terminal(
        folder,
        [
            ["add", documents, "--kb", kb, "--encoder", "none", "--workers", "1"],
            ["graph", "add", graphs / "people.jsonl", "--kb", kb, "--skip-bad"],
            ["graph", "add", graphs / "triples.csv", "--kb", kb, "--name", "triples", "--skip-bad"],
        ],
    )
    return folder, kb, added


@pytest.mark.slow
def test_adding_writes_no_control(terminal) -> None:
    _, _, added = terminal
    assert [status for _, status in added] == [1, 0, 0]  # names of files that are no Unicode are refused
    for text, _ in added:
        assert hostile_parts(text, progress=True) == []
    assert added[0][0].count(b"not valid Unicode") == 3


@pytest.mark.slow
def test_names_are_clean_where_they_enter(terminal) -> None:
    _, kb, _ = terminal
    with clew.open(kb) as base:
        names = set()
        for document in base.documents():
            names |= {document.name, document.title, *(value for _, value in document.fields)}
            tree = base.tree(document.key)
            names |= {node.name for node in tree if node.kind in {"section", "page"}}
            names |= {heading for node in tree for heading in node.headings}
        for table in base.tables.list():
            names |= {table.name, *(column.header for column in table.columns)}
        for name in ("people", "triples"):
            graph = base.graphs.get(name)
            for entity in graph.entities(range(graph.size)):
                names |= {entity.id, entity.name, entity.type, *entity.aliases, *entity.properties}
            names |= set(graph.relations())
        assert {name for name in names if has_hidden(name) or "\n" in name} == set()
        for number in range(60):
            assert sum(f"n{number:02d} a" in name for name in names) >= 3, number
        # The texts of passages are those of the files.
        assert "came to the mill07x in 1871" in base.search("mill07x came", k=3)[0].node.text


@pytest.mark.slow
def test_json_is_escaped_and_says_the_same(terminal) -> None:
    folder, kb, _ = terminal
    with clew.open(kb) as base:
        page = next(document for document in base.documents() if document.media_type == "text/html")
        paths = sorted(path for document in base.documents() for path in document.paths)
    commands = [
        ["list"], ["search", "Hesper Marrable", "-k", "90"], ["show", page.key], ["tables"], ["graph", "list"],
        ["graph", "schema", "people"], ["graph", "show", "people", "q3"], ["about", "Hesper Marrable"], ["info"],
    ]  # fmt: skip
    written = on_terminal(folder, [[*words, "--kb", kb, "--json"] for words in commands])
    for words, (text, status) in zip(commands, written, strict=True):
        assert (words, status, hostile_parts(text)) == (words, 0, [])
        value = json.loads(text)
        if words == ["list"]:
            assert sorted(path for item in value["documents"] for path in item["paths"]) == paths
            assert any("\x1b[2J" in path for path in paths)


def test_a_file_that_is_listed_commands_no_terminal(tmp_path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    names = [
        "a\x1b]0;PWNED\x07b.txt",
        "c\x1b[2Jd.txt",
        "e\x9b2Jf.txt",
        "g\nFAKE.txt",
        "h\u202egnp.txt",
        "[red]i.txt",
    ]
    for number, name in enumerate([*names, "می\u200cخواهم 👩\u200d❤️\u200d👨.txt"]):
        (files / name).write_text(f"The mill {number} ground forty sacks.")
    kb = tmp_path / "kb"
    commands = [
        ["add", files, "--workers", "1", "--encoder", "none"],
        ["list"],
        ["search", "forty sacks"],
        ["show", names[0]],
    ]
    written = on_terminal(tmp_path, [[*words, "--kb", kb] for words in commands])
    for words, (text, status) in zip(commands, written, strict=True):
        assert (
            words,
            status,
            hostile_parts(
                text.replace("\u200d".encode(), b"").replace("\u200c".encode(), b""),
                progress=words[0] == "add",
            ),
        ) == (words, 0, [])
    for listed in (
        "ab.txt",
        "cd.txt",
        "e2Jf.txt",
        "g FAKE.txt",
        "hgnp.txt",
        "[red]i.txt",
        "می\u200cخواهم 👩\u200d❤️\u200d👨.txt",
    ):
        assert f"\n{listed}  (".encode() in b"\n" + written[1][0], listed


@pytest.mark.slow
def test_no_command_writes_a_control(terminal) -> None:
    folder, kb, _ = terminal
    with clew.open(kb) as base:
        documents = base.documents()
        assert len(documents) > 3 * len(TEXTS)
        ids = [hit.node.id for hit in base.search("Hesper Marrable", k=200)][:80]
        tables = [table.name for table in base.tables.list()]
        names = [document.name for document in documents]
        pages = [document for document in documents if document.media_type == "text/html"]
        graph_ids = [f"q{number}" for number in range(0, len(TEXTS), 7)]
    shown = [pages[number].key for number in range(0, len(TEXTS), 5)]
    book = next(name for name in names if name.endswith(".xlsx"))
    triples = "#1 >> turns >> tail n01; final answer: #1"
    hostile = NAMES[0]
    (folder / "questions.txt").write_text("Who came to the mill?\n")
    commands = [
        ["list"],
        ["search", "Hesper Marrable mill", "-k", "200"],
        *(["search", word(number), "-k", "5"] for number in range(0, 60, 10)),
        ["ask", "Who built the mill02x in 1871?", "-k", "30", "--alternatives"],
        ["ask", f"What is {TEXTS[7]}?"],
        ["ask", "--triples", triples, "--why-not", f"H {TEXTS[3]}", "--graph", "triples"],
        ["ask", "--triples", triples, "--explain", "--graph", "triples"],
        ["about", "Hesper Marrable", "--limit", "0"],
        ["about", hostile],
        *(["show", key] for key in shown),
        ["show", book],
        ["show", book, "--table", "3"],
        ["show", "archive.zip"],
        ["show", "mails.mbox"],
        ["diff", shown[0], shown[1]],
        ["memo", *(word for id in ids for word in ("--pin", id))],
        ["memo", "--pin", ids[0], "--question", hostile, "--note", hostile],
        ["memo"],
        ["memo", "--out", folder / "memo.md"],
        ["tables"],
        *(["tables", name] for name in tables[:12]),
        ["tables", tables[0], "--export", folder / "x\x1b]0;PWNED\x07.csv"],
        ["sql", f"select * from {tables[0]}"],
        ["sql", f"select '{TEXTS[0]}' as \"{TEXTS[1]}\" from {tables[0]}", "--sources"],
        ["grid", folder / "questions.txt", "-d", "mails.mbox", "--out", folder / "grid\x9b2J.csv"],
        ["info"],
        ["info", "--digest"],
        ["doctor"],
        ["doctor", "--repair"],
        ["estimate", folder / "documents"],
        ["recipes"],
        ["trash", "list"],
        ["graph", "list"],
        ["graph", "schema", "people"],
        ["graph", "schema", "triples"],
        *(["graph", "show", "people", id] for id in graph_ids),
        ["graph", "show", "people", hostile],
        ["graph", "show", "triples", f"H {clean_name(TEXTS[4])}"],
        ["graph", "links"],
        ["graph", "query", "people", "SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 400"],
        ["graph", "query", "people", "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o } LIMIT 400"],
        ["copy", kb, folder / "copy\x1b[2J\nFAKE"],
        # What cannot be done, and is named.
        ["show", hostile],
        ["remove", f"{hostile}\nFAKE"],
        ["list", f"--{hostile}"],
        ["list", hostile],
        [hostile],
        ["search", "x", "-k", hostile],
        ["search", "x", "--retriever", hostile],
        ["ask", "x", "--recipe", f"{hostile}(x=1)"],
        ["ask", "x", "--where", f"author = {hostile}"],
        ["ask", "x", "--documents", hostile],
        ["graph", "show", hostile, "q1"],
        ["graph", "add", folder / f"{hostile}.csv"],
        ["graph", "query", "people", hostile],
        ["tables", hostile],
        ["sql", f'select * from "{hostile}"'],
        ["eval", "report", folder / hostile],
        ["list", "--kb", folder / f"{hostile}\nFAKE"],
        ["add", folder / f"{hostile}\nFAKE", "--kb", folder / "other"],
        ["remove", *names[3:9], "--keep-cache"],
    ]
    written = on_terminal(
        folder,
        [
            [*words, "--kb", kb]
            if "--kb" not in words and words[0] not in {"recipes", "copy", hostile, "eval"}
            else words
            for words in commands
        ],
    )
    faults = {
        " ".join(map(str, words))[:80]: hostile_parts(text, progress=True)[:3]
        for words, (text, _) in zip(commands, written, strict=True)
        if hostile_parts(text, progress=True)
    }
    assert faults == {}
    assert [status for _, status in written].count(0) >= 50
    assert not any(b"Traceback" in text for text, _ in written)
