"""What a program sees of a base, a part at a time."""

import pytest

import clew
from clew.errors import NotFound, UsageError
from clew.parse.tables import Table
from clew.serve.looking import ROOM, contents, found, shown
from small_bases import base, snapshot_of  # noqa: F401 (fixtures)

LONG = "word " * 800


@pytest.fixture
def opened(base, snapshot_of):  # noqa: F811 (the fixtures imported above)
    table = Table((("Month", "Boats"), ("May", "3")), header_rows=1, caption="Table 1. Boats")
    snapshot_of(
        (
            "report.txt",
            "A report",
            ("page", 1),
            ("heading", 1, "Crossings"),
            "The ferry runs.",
            ("heading", 2, "Long ones"),
            "The long crossing takes an hour.",
            ("page", 2),
            ("heading", 1, "Accounts"),
            table,
            "Receipts rose.",
        ),
        ("long.txt", "Long", *(f"{number} {LONG}" for number in range(9))),
    )
    return clew.Base(base)


def test_an_outline_gives_ids_by_which_sections_pages_and_tables_are_shown(opened):
    outline = shown(opened, "report.txt")
    ids = {
        node["name"] or f"{node['kind']} {node['page']}": node["id"] for node in outline.structure["nodes"]
    }
    section = shown(opened, ids["Crossings"]).text
    assert "The ferry runs." in section and "takes an hour" in section and "Receipts" not in section
    page = shown(opened, ids["page 2"])
    assert page.text == shown(opened, "report.txt", page=2).text and "Receipts rose." in page.text
    table = shown(opened, ids["Table 1. Boats"])
    assert "May" in table.text and "Receipts" not in table.text
    assert shown(opened, ids["A report"]).text == outline.text


def test_what_is_long_comes_in_parts_that_add_up(opened):
    [key] = [one["id"] for one in contents(opened).structure["documents"] if one["document"] == "long.txt"]
    texts, start = [], 0
    outline = shown(opened, "long.txt")
    assert len(outline.structure["nodes"]) == 10  # it has no sections: its passages are its outline
    while start is not None:
        part = found_part(opened, key, start)
        texts += [node["text"] for node in part.structure["nodes"]]
        assert len(part.text) < 2 * ROOM
        start = part.structure["next"]
    assert [text.split()[0] for text in texts] == [str(number) for number in range(9)]


def found_part(opened, key, start):
    """The passages of the long document have no section; together they are looked at as what a part is made of."""
    from clew.serve.looking import _texts

    return _texts([node for node in opened.tree(key) if node.kind == "passage"], start)


def test_a_look_past_the_end_and_at_what_is_not_there_is_an_error(opened):
    with pytest.raises(NotFound, match="has no page 9"):
        shown(opened, "report.txt", page=9)
    with pytest.raises(UsageError, match="has no pages"):
        shown(opened, "long.txt", page=1)
    with pytest.raises(NotFound):
        shown(opened, "films:Q1")
    section = next(n["id"] for n in shown(opened, "report.txt").structure["nodes"] if n["kind"] == "section")
    with pytest.raises(NotFound, match="nothing from 99 on"):
        shown(opened, section, start=99)


def test_a_search_cuts_long_passages_and_says_so(opened):
    [first, *_] = found(opened, "3 word", 3, None).structure["hits"]
    assert "(cut: " in first["text"] and len(first["text"]) < 2_100
    assert found(opened, "zeppelin", 3, ["report.txt"]).text == "Nothing found."


def test_a_document_may_be_named_like_a_home_that_nobody_has(opened):
    with pytest.raises(NotFound, match="no document named '~nobody'"):
        opened.ask("Does the ferry run?", documents=["~nobody"])
