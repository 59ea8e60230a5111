"""Counting, listing, locating, existence and differences, on documents as people have them."""

import pytest

from clew.parse.documents.reader import read_file
from clew.retrieve.structure.query import Query, Selector
from plain_queries import find, page, section, show, table
from structure_documents import write_documents

ULTA, AMCOR, BOEING = "the Ulta release", "the Amcor release", "the Boeing 10-K"


@pytest.fixture(scope="module")
def snapshot(lasting, tmp_path_factory):
    paths = sorted(write_documents(tmp_path_factory.mktemp("structure")).iterdir())
    return lasting.snapshot([read_file(path) for path in paths], [path.name for path in paths])


def pages(result):
    return {(hit.node.document_name.split("_")[0], hit.node.page) for hit in result.hits}


def document(words):
    return Selector("document", document=words)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (show(page(8, document=ULTA), page(10, document=AMCOR)), {("ULTABEAUTY", 8), ("AMCOR", 10)}),
        (show(page(2, document=ULTA), page(3, document=ULTA)), {("ULTABEAUTY", 2), ("ULTABEAUTY", 3)}),
        (show(page(59, document="NIKE_2023_10K.pdf")), {("NIKE", 59)}),
        (show(page(-1, document=BOEING)), {("BOEING", 4)}),
        (show(page(document=ULTA, relation="after", anchor=page(3))), {("ULTABEAUTY", 4)}),
        (
            show(page(document=ULTA, relation="before", anchor=section("1", "exhibit"))),
            {("ULTABEAUTY", 5)},
        ),
        (show(section("1", "exhibit", ULTA)), {("ULTABEAUTY", 6)}),
    ],
)
def test_places_are_shown_and_nothing_else(snapshot, query, expected):
    result = find(snapshot, query)
    assert pages(result) == expected
    assert result.text == ""


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (Query("count", (document("sales.csv"),), "row", "row"), "sales.csv has 2,000 rows."),
        (Query("count", (document(ULTA),), "table", "table"), "ULTABEAUTY_2023Q4_EARNINGS.pdf has 4 tables."),
        (Query("count", (document(BOEING),), "page", "page"), "BOEING_2022_10K.pdf has 4 pages."),
        (
            Query("count", (page(6, document=ULTA),), "table", "table"),
            "Page 6 of ULTABEAUTY_2023Q4_EARNINGS.pdf has 1 table.",
        ),
        (Query("count", (), "document", "document"), "There are 9 documents."),
        (
            Query("count", (document(ULTA),), "section", "exhibit"),
            "ULTABEAUTY_2023Q4_EARNINGS.pdf has 4 exhibits.",
        ),
        (
            Query("locate", (), "page", "page", "effective tax rate", BOEING),
            "Page 3 of BOEING_2022_10K.pdf",
        ),
        (
            Query("locate", (section("3", "exhibit", ULTA),), document=ULTA),
            "Page 8 of ULTABEAUTY_2023Q4_EARNINGS.pdf: Exhibit 3",
        ),
        (
            Query("exists", (section("5", "exhibit", ULTA),)),
            "No. ULTABEAUTY_2023Q4_EARNINGS.pdf has no exhibit 5.",
        ),
        (Query("longest", (), "document", "document"), "MICROSOFT_2023_10K.pdf, with 60 pages."),
        (show(page(99, document=AMCOR)), "AMCOR_2023Q4_EARNINGS.pdf has 14 pages; it has no page 99."),
        (show(page(99)), "No document has a page 99: the longest, MICROSOFT_2023_10K.pdf, has 60 pages."),
        (
            show(Selector("row", 2001, document="sales.csv")),
            "sales.csv has 2,000 rows in 1 table; there is no row 2001.",
        ),
        (
            show(table(7, "7", ULTA)),
            "ULTABEAUTY_2023Q4_EARNINGS.pdf has 4 tables; it has no table 7.",
        ),
    ],
)
def test_what_can_be_computed_is_computed(snapshot, query, text):
    assert find(snapshot, query).text == text


def test_the_tables_of_a_document_are_listed_and_of_no_other(snapshot):
    result = find(snapshot, Query("list", (document(ULTA),), "table", "table"))
    assert result.text.splitlines() == [
        "ULTABEAUTY_2023Q4_EARNINGS.pdf has 4 tables:",
        "1. Exhibit 1 Condensed Consolidated Statements of Income, page 6, 3 rows",
        "2. Exhibit 2 Condensed Consolidated Balance Sheets, page 7, 3 rows",
        "3. Exhibit 3 Condensed Consolidated Statements of Cash Flows, page 8, 3 rows",
        "4. Exhibit 4 Store Update, page 9, 3 rows",
    ]
    assert {hit.node.document_name for hit in result.hits} == {"ULTABEAUTY_2023Q4_EARNINGS.pdf"}


def test_tables_are_located_in_the_document_that_is_named_and_in_no_other(snapshot):
    result = find(snapshot, Query("locate", (Selector("table", document=ULTA),)))
    assert pages(result) == {("ULTABEAUTY", number) for number in (6, 7, 8, 9)}
    assert len(result.text.splitlines()) == 4


def test_a_row_of_a_table_in_a_file(snapshot):
    (hit,) = find(snapshot, show(Selector("row", 1500, document="sales.csv"))).hits
    assert "INV-11500" in hit.node.text


def test_what_changed_between_two_documents(snapshot):
    result = find(snapshot, Query("changes", (document("lease-2022.md"), document("lease-2023.md"))))
    assert result.text.splitlines() == [
        "Changes from lease-2022.md to lease-2023.md:",
        "- Rent: The rent is 800 dollars a month, due on the first day.",
        "+ Rent: The rent is 950 dollars a month, due on the first day.",
        "+ Parking: Two places in the yard belong to the lease.",
    ]
    assert len(result.hits) == 3
