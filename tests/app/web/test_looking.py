"""What a program sees of a base, a part at a time."""

import pytest

import clew
from clew.app.web.mcp import resources
from clew.app.web.mcp.lookups import MAX_CHARACTERS, list_contents, search_passages, show_target
from clew.core.errors import NotFound, UsageError
from clew.core.types import Table
from clew.store.database import hold_lock
from clew.store.store import Store
from retrieve_documents import add

LONG = "word " * 800
TABLE = Table(("Month", "Boats"), (("May", "3"), ("June", "4")), caption="Table 1. Boats")


@pytest.fixture
def opened(tmp_path):
    with Store.open(tmp_path / "base", create=True) as base:
        crossings = (
            ("heading", 1, "Crossings"),
            "The ferry runs.",
            ("heading", 2, "Long ones"),
            "It takes an hour.",
        )
        accounts = ("heading", 1, "Accounts"), TABLE, "Receipts rose."
        add(base, "report.txt", "A report", ("page", 1), *crossings, ("page", 2), *accounts)
        add(base, "long.txt", "Long", ("heading", 1, "Words"), *(f"{number} {LONG}" for number in range(9)))
        add(base, "plain.txt", "Plain", "The heron nests here.", "The mill stands there.")
        base.catch_up()
        yield clew.KnowledgeBase(base)


def test_an_outline_gives_ids_by_which_sections_pages_and_tables_are_shown(opened):
    outline = show_target(opened, "report.txt")
    ids = {
        node["name"] or f"{node['kind']} {node['page']}": node["id"] for node in outline.structure["nodes"]
    }
    section = show_target(opened, ids["Crossings"]).text
    assert "The ferry runs." in section and "It takes an hour." in section and "Receipts" not in section
    page = show_target(opened, ids["page 2"])
    assert page.text == show_target(opened, "report.txt", page=2).text and "Receipts rose." in page.text
    table = show_target(opened, ids["Table 1. Boats"])
    assert "May" in table.text and "Receipts" not in table.text
    assert show_target(opened, ids["A report"]).text == outline.text


def test_documents_and_their_pages_are_resources_that_are_listed_in_parts(opened, monkeypatch):
    bases = {"my notes": opened}
    monkeypatch.setattr(resources, "LISTED", 2)
    first, start = resources.list_resources(bases)
    rest, end = resources.list_resources(bases, start)
    assert [item.document for item in (*first, *rest)] == opened.documents() and (start, end) == (2, None)
    [report] = [item for item in (*first, *rest) if item.document.name == "report.txt"]
    assert report.uri == f"clew://my%20notes/{report.document.key}"
    assert resources.read_resource(bases, report.uri) == show_target(opened, "report.txt").text
    page = resources.read_resource(bases, f"{report.uri}/page/2")
    assert page == show_target(opened, "report.txt", page=2).text and "Receipts rose." in page
    for wrong in ("clew://other/x", "http://my%20notes/x", f"{report.uri}/page/9", f"{report.uri}/sheet/1"):
        with pytest.raises((NotFound, UsageError)):
            resources.read_resource(bases, wrong)


def test_what_is_long_comes_in_parts_that_add_up(opened):
    [section] = [
        node["id"] for node in show_target(opened, "long.txt").structure["nodes"] if node["name"] == "Words"
    ]
    texts, start, looks = [], 0, 0
    while start is not None:
        part = show_target(opened, section, start=start)
        texts += [node["text"] for node in part.structure["nodes"]]
        assert len(part.text) < MAX_CHARACTERS + 500
        start, looks = part.structure["next"], looks + 1
        assert (f"start={start}" in part.text) == (start is not None)
    assert [text.split()[0] for text in texts] == ["Words", *map(str, range(9))] and looks >= 3


def test_the_outline_of_a_document_without_sections_is_its_passages(opened):
    nodes = show_target(opened, "plain.txt").structure["nodes"]
    assert [node["kind"] for node in nodes] == ["document", "passage", "passage"]
    assert "The mill stands there." in show_target(opened, nodes[2]["id"]).text


def test_what_there_is_can_be_listed_from_any_place_on(opened):
    every = list_contents(opened).structure["documents"]
    assert [item["document"] for item in every] == ["long.txt", "plain.txt", "report.txt"]
    assert list_contents(opened, 2).structure["documents"] == every[2:]
    assert list_contents(opened, 9).structure["documents"] == []


def test_a_look_past_the_end_and_at_what_is_not_there_is_an_error(opened):
    with pytest.raises(NotFound, match="has no page 9"):
        show_target(opened, "report.txt", page=9)
    with pytest.raises(UsageError, match="has no pages"):
        show_target(opened, "long.txt", page=1)
    with pytest.raises(NotFound):
        show_target(opened, "films:Q1")
    section = next(
        n["id"] for n in show_target(opened, "report.txt").structure["nodes"] if n["kind"] == "section"
    )
    with pytest.raises(NotFound, match="nothing from 99 on"):
        show_target(opened, section, start=99)


def test_a_search_cuts_long_passages_and_says_so(opened):
    [first, *_] = search_passages(opened, "word", 3, None).structure["hits"]
    assert "(cut: " in first["text"] and len(first["text"]) < 2_100
    assert search_passages(opened, "zeppelin", 3, ["report.txt"]).text == "Nothing found."


def test_a_document_may_be_named_like_a_home_that_nobody_has(opened):
    with pytest.raises(NotFound, match="no document named '~nobody'"):
        opened.ask("Does the ferry run?", documents=["~nobody"])


@pytest.mark.slow
def test_what_cannot_be_found_yet_while_another_process_indexes_is_said(opened):
    assert "Not searchable" not in list_contents(opened).text
    late = "Not searchable yet: 1 documents that were just added."
    with hold_lock(opened.store._index_lock):
        add(opened.store, "new.txt", "New", "The otter swims.")
        assert late in list_contents(opened).text and late in search_passages(opened, "otter", 3, None).text
    assert "The otter swims." in search_passages(opened, "otter", 3, None).text
