"""The evidence basket: quotes put aside, shared, gone with their document; and the memo with its footnotes."""

import io
import json
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor

import docx
import pytest
from lxml import etree

import clew
from clew.core.errors import Damaged, NotFound, UsageError
from clew.knowledge_base.basket import FILE
from clew.knowledge_base.memo import Memo
from clew.parse.documents.reader import read_file
from command_line import run
from retrieve_documents import add

RENT = "The rent is 950 dollars a month. It is due on the first day."
ODD = "1. A *starred* [claim] <b>of</b> profit &\x07 loss_here"


@pytest.fixture
def opened(tmp_path, without_encoder):
    with clew.open(tmp_path / "base", create=True) as knowledge_base:
        fill(knowledge_base.store)
        yield knowledge_base


def fill(base):
    add(base, "lease.pdf", "Lease", ("page", 3), ("heading", 1, "Rent"), RENT, "The tenant is Ines Calder.")
    add(base, "odd.md", "Odd", ODD)
    base.catch_up()


def node_of(knowledge_base, words):
    [node] = [
        node
        for item in knowledge_base.documents()
        for node in knowledge_base.tree(item.key)
        if node.kind == "passage" and words in node.text
    ]
    return node


def test_a_quote_is_verbatim_and_no_word_of_it_is_kept_in_the_file(opened):
    node = node_of(opened, "950")
    pinned = opened.basket.pin(
        node.id, "The rent  is\n950 dollars a month.", question="How much?", note="Mine."
    )
    assert pinned.text == "The rent is 950 dollars a month." and pinned.place == "lease.pdf, page 3, Rent"
    again = opened.basket.pin(node.id, pinned.text)
    assert (again.id, again.note, again.question) == (pinned.id, "Mine.", "How much?")
    whole = opened.basket.pin(node.id)
    assert [quote.text for quote in opened.basket.quotes()] == [pinned.text, RENT]
    written = (opened.path / FILE).read_text()
    assert "How much?" in written and not {"950", "dollars", "lease.pdf", "Rent"} & set(
        re.findall(r"[\w.]+", written)
    )
    opened.basket.annotate(whole.id, "All of it.")
    opened.basket.remove(pinned.id)
    assert [(quote.id, quote.note) for quote in opened.basket.quotes()] == [(whole.id, "All of it.")]
    for wrong in (lambda: opened.basket.remove(pinned.id), lambda: opened.basket.pin("0" * 32 + ":1")):
        with pytest.raises(NotFound):
            wrong()
    with pytest.raises(UsageError, match="not in the passage"):
        opened.basket.pin(node.id, "The rent is 960 dollars")
    with pytest.raises(UsageError, match="a document cannot be pinned"):
        opened.basket.pin(f"{node.document}:0")
    assert opened.basket.clear() == 1 and not opened.basket.quotes()


def test_what_a_removed_document_said_is_gone_and_is_back_with_it(opened):
    lease, odd = node_of(opened, "950"), node_of(opened, "starred")
    for node in (lease, odd):
        opened.basket.pin(node.id)
    opened.remove("lease.pdf")
    assert [quote.node.id for quote in opened.basket.quotes()] == [odd.id] and opened.basket.missing() == 1
    memo = Memo(opened.basket.quotes())
    assert "950" not in memo.to_markdown() and b"950" not in zipfile.ZipFile(io.BytesIO(memo.to_docx())).read(
        "word/document.xml"
    )
    add(
        opened.store,
        "lease.pdf",
        "Lease",
        ("page", 3),
        ("heading", 1, "Rent"),
        RENT,
        "The tenant is Ines Calder.",
    )
    assert [quote.text for quote in opened.basket.quotes()] == [RENT, ODD] and opened.basket.missing() == 0


def test_several_threads_lose_no_quote_and_a_damaged_file_is_named(opened):
    node = node_of(opened, "950")
    words = RENT.split()
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(lambda end: opened.basket.pin(node.id, " ".join(words[:end])), range(1, len(words) + 1))
        )
    assert {quote.text for quote in opened.basket.quotes()} == {
        " ".join(words[:end]) for end in range(1, len(words) + 1)
    }
    (opened.path / FILE).write_text("{}\n")
    with pytest.raises(Damaged, match="only the basket is lost"):
        opened.basket.quotes()


def test_a_memo_has_a_footnote_for_each_quote_in_both_forms(opened, tmp_path):
    lease, odd = node_of(opened, "950"), node_of(opened, "starred")
    opened.basket.pin(
        lease.id, "The rent is 950 dollars a month.", question="How much?", note="Note <this> & that."
    )
    opened.basket.pin(odd.id)
    opened.basket.pin(lease.id, "It is due on the first day.", question="How much?")
    memo = Memo(opened.basket.quotes(), "Rents & more")
    footnotes = [
        f"odd.md. Digest of the document: {odd.document}.",
        *[f"lease.pdf, page 3, Rent. Digest of the document: {lease.document}."] * 2,
    ]
    assert memo.footnotes() == footnotes
    markdown = memo.to_markdown()
    assert markdown.startswith("# Rents & more\n\n> 1\\. A \\*starred\\* \\[claim\\]")
    assert "## How much?\n\nNote \\<this\\> & that.\n\n> The rent is 950 dollars a month.[^2]" in markdown
    assert f"[^3]: {footnotes[2]}" in markdown
    memo.write(tmp_path / "memo.docx")
    document = docx.Document(tmp_path / "memo.docx")
    assert [(paragraph.style.name, paragraph.text) for paragraph in document.paragraphs] == [
        ("Title", "Rents & more"),
        ("Quote", ODD.replace("\x07", "")),
        ("Heading 1", "How much?"),
        ("Normal", "Note <this> & that."),
        ("Quote", "The rent is 950 dollars a month."),
        ("Quote", "It is due on the first day."),
    ]
    with zipfile.ZipFile(tmp_path / "memo.docx") as archive:
        trees = {name: etree.fromstring(archive.read(name)) for name in archive.namelist()}
    marks = [
        [value for key, value in element.attrib.items() if key.endswith("}id")]
        for element in trees["word/document.xml"].iter("{*}footnoteReference")
    ]
    assert marks == [["1"], ["2"], ["3"]]
    texts = ["".join(note.itertext()).strip() for note in trees["word/footnotes.xml"].iter("{*}footnote")]
    assert texts[2:] == footnotes
    assert memo.to_docx() == memo.to_docx()
    # clew reads its own memo, footnotes included.
    read = read_file(tmp_path / "memo.docx")
    assert footnotes[0] in read.text and "It is due on the first day." in read.text
    with pytest.raises(UsageError, match="Known endings"):
        memo.write(tmp_path / "memo.odt")


def test_the_command_pins_lists_and_writes(opened, tmp_path):
    kb = ("--kb", opened.path)
    assert "no quotes yet" in run("memo", *kb).stdout
    node = node_of(opened, "950").id
    listed = run("memo", "--pin", node, "--quote", "950 dollars", "--note", "Mine.", *kb).stdout
    id = listed.split()[0]
    assert listed == f"{id}  lease.pdf, page 3, Rent\n    Mine.\n    “950 dollars”\n"
    written = run("memo", "--out", tmp_path / "memo.md", "--title", "Rents", *kb)
    assert "1 quote written to" in written.stdout and (tmp_path / "memo.md").read_text().startswith(
        "# Rents\n"
    )
    opened.remove("lease.pdf")
    gone = run("memo", *kb, "--json")
    assert json.loads(gone.stdout) == {"quotes": [], "missing": 1} and "removed or changed" in gone.stderr
    assert "1 quote taken out" in run("memo", "--clear", *kb).stderr
    for words in (("--out", "memo.odt"), ("--note", "x"), ("--unpin", "absent")):
        run("memo", *words, *kb, status=2)


@pytest.mark.slow
def test_the_quotes_of_an_answer_are_pinned_under_its_question(opened):
    asked = run("ask", "Who is the tenant?", "--pin", "--kb", opened.path)
    assert "1 quote put aside" in asked.stderr, asked.stdout
    [quote] = opened.basket.quotes()
    assert quote.question == "Who is the tenant?" and "Ines Calder" in quote.text
