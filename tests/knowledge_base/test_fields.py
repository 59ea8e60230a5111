"""Fields of files of several formats, and questions that a condition on them restricts."""

import email.message
import shutil
import sqlite3
import zipfile

import docx
import pytest
from reportlab.pdfgen import canvas

import clew
from clew.app.cli.commands import app
from clew.core.errors import NotFound, UsageError
from clew.knowledge_base.trash import Trash
from clew.knowledge_base.watch import FolderWatch
from clew.parse.documents import markdown
from clew.parse.documents.builder import document_key
from clew.parse.documents.formats import document_formats, is_outdated

TEXT = "The lease of the quay ends in May, and the harbour office keeps the keys until then."


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fields")
    (folder / "contracts" / "2021").mkdir(parents=True)
    (folder / "contracts" / "2021" / "plain.txt").write_text(TEXT)
    (folder / "front.md").write_text(
        f"---\ntitle: The quay\nauthor: Ada Strake\ndate: 5 March 2021\ntags: [lease, draft]\n---\n\n{TEXT} One.\n"
    )
    (folder / "page.html").write_text(
        '<html><head><meta name="author" content="Jo Wu"><meta name="keywords" content="offer, lease">'
        '<meta property="article:published_time" content="2019-04-01T10:00"></head><body>'
        f"<p>{TEXT} Two.</p></body></html>"
    )
    page = canvas.Canvas(str(folder / "paper.pdf"))
    page.setAuthor("Ada Strake; Jo Wu")
    page.setKeywords("lease")
    page.drawString(72, 700, TEXT + " Three.")
    page.save()
    written = docx.Document()
    written.core_properties.author = "Jo Wu"
    written.core_properties.keywords = "minutes"
    written.add_paragraph(TEXT + " Four.")
    written.save(folder / "minutes.docx")
    mail = email.message.EmailMessage()
    mail["From"], mail["To"] = "Ada Strake <ada@quay.example>", "jo@quay.example"
    mail["Date"], mail["Subject"] = "Fri, 05 Feb 2021 10:00:00 +0000", "Keys"
    mail.set_content(TEXT + " Five.")
    (folder / "keys.eml").write_bytes(mail.as_bytes())
    with zipfile.ZipFile(folder / "old.zip", "w") as archive:
        archive.writestr("inner.txt", TEXT + " Six.")
        archive.writestr("second.txt", TEXT + " Seven.")
    with clew.open(folder / ".clew", create=True) as base:
        base.encoding.set(None)
        base.add([folder], workers=1)
    return folder


def names(base, where, **options):
    return {hit.node.document_name for hit in base.search("lease of the quay", where=where, **options)}


def test_a_condition_restricts_searches_and_answers(folder):
    with clew.open(folder / ".clew") as base:
        assert names(base, "author = 'ada strake'") == {"front.md", "paper.pdf"}
        assert names(base, "author ~ ada") == {"front.md", "paper.pdf", "keys.eml"}
        assert names(base, "tag = lease and not author = 'Jo Wu'") == {"front.md"}
        assert names(base, "date >= 2021-01 and date <= 2021") == {"front.md", "keys.eml"} | (
            {"paper.pdf"} & names(base, "date <= 2021")
        )
        assert names(base, "date = 2019-04-01") == {"page.html"}
        assert names(base, "tag = contracts") == names(base, "folder = contracts/2021") == {"plain.txt"}
        assert names(base, "kind in (docx, mail)") == {"minutes.docx", "keys.eml"}
        # Nothing leaks: no retriever returns a passage of another document.
        for retriever in ("bm25", "tfidf", "kgp", "drill", "kgp(graph=keywords, guide=tfidf)"):
            assert names(base, "tag = minutes", retriever=retriever) <= {"minutes.docx"}
        answer = base.ask(
            "When does the lease of the quay end?", where="kind = mail", recipe="read(retriever=bm25)"
        )
        assert {hit.node.document_name for hit in answer.evidence} == {"keys.eml"}
        assert names(base, "language = en", documents=["front.md", "keys.eml"]) == {"front.md", "keys.eml"}
        with pytest.raises(NotFound, match="no document meets"):
            base.search("lease", where="date > 2090")
        with pytest.raises(UsageError, match="at character 6"):
            base.search("lease", where="tag =")


@pytest.mark.slow
def test_files_of_an_earlier_parser_are_read_again(folder, tmp_path):
    path = tmp_path / "kb"
    with clew.open(path, create=True) as base:
        base.encoding.set(None)
        base.add([folder / "front.md", folder / "old.zip"], workers=1)
        before = {document.name: document.key for document in base.documents()}
        assert base.add([folder / "front.md", folder / "old.zip"], workers=1).unchanged == 2
    with sqlite3.connect(path / "base.sqlite") as connection:
        # As an earlier clew left them: its parser of Markdown, and no fields of what is in the archive.
        connection.execute(
            "UPDATE document SET parser = 'markdown/0(passages=paragraph)', key = 'earlier' "
            "WHERE media_type = 'text/markdown'"
        )
        connection.execute("UPDATE document SET fields = NULL WHERE media_type = 'text/plain'")
    connection.close()
    with clew.open(path) as base:
        report = base.add([folder / "front.md", folder / "old.zip"], workers=1)
        assert report.replaced == [str(folder / "front.md")] and not report.failed and not report.removed
        assert {document.name: document.key for document in base.documents()} == before
        assert not base.store.keys_without_fields()


@pytest.mark.slow
def test_a_file_of_an_earlier_parser_added_from_a_second_path_is_one_document(folder, tmp_path):
    """Else both versions of it would be found, each with its own citations."""
    path, parser = tmp_path / "kb", "markdown/0(passages=paragraph)"
    with clew.open(path, create=True) as base:
        base.encoding.set(None)
        base.add([folder / "front.md"], workers=1)
        before = base.documents()
    earlier = document_key((folder / "front.md").read_bytes(), "text/markdown", parser)
    with sqlite3.connect(path / "base.sqlite") as connection:
        connection.execute("UPDATE document SET parser = ?, key = ?", (parser, earlier))
    connection.close()
    (tmp_path / "copies").mkdir()
    copy = shutil.copy(folder / "front.md", tmp_path / "copies" / "copy.md")
    with clew.open(path) as base:
        assert [document.key for document in base.documents()] == [earlier]
        report = base.add([copy], workers=1)
        assert report.added == [str(copy)] and report.replaced == [str(folder / "front.md")]
        assert [document.key for document in base.documents()] == [document.key for document in before]
        assert base.store.locations().keys() == {str(copy), str(folder / "front.md")}


def test_every_format_names_its_parser(folder):
    with clew.open(folder / ".clew") as base:
        assert all(form.parser for form in document_formats())
        assert not any(is_outdated(document) for document in base.documents())
        known = {form.parser for form in document_formats()}
        assert {document.parser.partition("(")[0] for document in base.documents()} <= known
    assert markdown.PARSER in known


@pytest.mark.slow
def test_an_estimate_counts_what_is_in_an_archive(folder, tmp_path):
    with clew.open(tmp_path / "kb", create=True) as base:
        estimate = base.estimate([folder / "old.zip"], workers=1)
        report = base.add([folder / "old.zip"], workers=1)
    assert estimate.documents == len(report.added) == 3
    assert estimate.passages == report.passages


@pytest.mark.slow
def test_a_citation_is_traced_by_its_words(tmp_path):
    file = tmp_path / "lease.md"
    file.write_text(f"# Lease\n\n{TEXT}\n")
    words = "the harbour office keeps the keys"
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        base.add([file], workers=1)
        id = base.search("harbour keys")[0].node.id
        assert base.trace_citation(id, "lease.md", words).state == "unchanged"
        file.write_text(f"# Lease\n\nAn introduction that is new.\n\n{TEXT}\n")
        base.add([file], workers=1)
        traced = base.trace_citation(id, "lease.md", words)
        assert traced.state == "moved" and words in traced.node.text and traced.node.id != id
        # A quote may go over passages today, and its raised characters may have been read otherwise.
        file.write_text(
            f"# Lease\n\nNew.\n\n{TEXT.replace('office', 'office' + chr(10) * 2)} It has 10⁶ keys.\n"
        )
        base.add([file], workers=1)
        assert "harbour office" in base.trace_citation(id, "lease.md", words).node.text
        assert base.trace_citation(id, "lease.md", "It has 106  keys.").state == "moved"
        file.write_text("# Lease\n\nNothing of it is left.\n")
        base.add([file], workers=1)
        assert base.trace_citation(id, "lease.md", words) == type(traced)("changed")
        base.remove("lease.md")
        assert base.trace_citation(id, "lease.md", words) == type(traced)("removed")


def test_tags_follow_the_path_of_a_document_and_are_found_by_conditions(tmp_path):
    file, other = tmp_path / "lease.txt", tmp_path / "offer.txt"
    file.write_text(TEXT)
    other.write_text(TEXT + " Ten.")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([file, other], workers=1)
        before = base.info().digest
        base.tag(str(file), add=["to sign", "To  Sign", "urgent"], remove=["nothing"])
        assert base.info().digest == before
        base.tag("lease.txt", remove=["URGENT"])
        assert names(base, 'tag = "to sign"') == {"lease.txt"}
        file.write_text(TEXT + " Eleven.")
        base.add([file], workers=1)
        assert [document.tags for document in base.documents()] == [("To Sign",), ()]
        ids = Trash(base).add([str(file)])
        assert base.store.tags() == {}
        Trash(base).restore(*ids)
        assert names(base, 'tag = "to sign"') == {"lease.txt"}
        for bad in ("", "a,b", "x" * 61):
            with pytest.raises(UsageError, match="is no tag"):
                base.tag("lease.txt", add=[bad])
        with pytest.raises(NotFound):
            base.tag("nothing.txt", add=["x"])


def test_what_was_left_out_of_a_document_is_shown_and_survives_the_trash(tmp_path, capsys):
    file = tmp_path / "lease.md"
    file.write_text(f"# Lease\n\n{TEXT}\n\nThe rent is ~~90 crowns~~ 120 crowns.\n\nNot ~~90 crowns~~.\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        report = base.add([file])
        assert report.left_out == {"struck out": {str(file): 4}} and not report.notes
        left_out = (("struck out", "90 crowns", 2),)
        assert base.store.document("lease.md").left_out == left_out
        Trash(base).restore(*Trash(base).add([str(file)]))
        document = base.store.document("lease.md")
        assert document.left_out == left_out and document.fields == ()
    app(["show", "lease.md", "--left-out", "--kb", str(tmp_path / "kb")], standalone_mode=False)
    assert capsys.readouterr().out == "struck out, 2 times: 90 crowns\n"


def test_a_cited_text_is_shown_as_it_was_after_its_file_changed_or_was_removed(tmp_path):
    file = tmp_path / "papers" / "lease.md"
    file.parent.mkdir()
    file.write_text(f"# Lease\n\n## Keys\n\n{TEXT}\n\nThe rent is due in June.\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        watch = FolderWatch(base, [file.parent], quiet=0)
        watch.synchronise()
        cited = base.search("harbour keys")[0].node
        before = base.tree(cited.document)
        assert base.earlier_nodes(cited.document) == []
        file.write_text("# Lease\n\nNothing of it is left.\n")
        watch.synchronise()
        assert base.trace_citation(cited.id, "lease.md", cited.text).state == "changed"
        assert base.earlier_nodes(cited.document) == before
        second = base.search("nothing left")[0].node
        file.unlink()
        watch.synchronise()
        assert base.trace_citation(second.id, "lease.md", second.text).state == "removed"
        assert base.earlier_nodes(second.document)[second.position] == second
        # Who removes a document for good removes its earlier versions.
        file.write_text(f"# Lease\n\n{TEXT}\n")
        watch.synchronise()
        file.write_text("# Lease\n\nShort.\n")
        watch.synchronise()
        assert list((tmp_path / "kb" / "versions").iterdir())
        base.remove("lease.md")
        assert not list((tmp_path / "kb" / "versions").iterdir())
