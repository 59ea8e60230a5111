"""What a number, a label or a name leads to, where documents print them in other ways than one expects."""

import pytest

from clew.core.types import Table
from clew.parse.documents.builder import DocumentBuilder
from clew.retrieve.structure.query import Query, Selector
from graph_corpora import finish_document
from plain_queries import find, page, section, show, table


def accounts():
    """Notes numbered alone below a heading, tables whose numbers stand in the heading above, printed pages."""
    builder = DocumentBuilder()
    for number, label in ((1, ""), (2, "ii"), (3, "1"), (4, "2")):
        builder.add_page(number, label)
        if number == 3:
            builder.add_heading(1, "Table 5 Salaries of the staff")
            builder.add_table(Table(("Grade", "Least", "Most"), (("APS5", "61", "70"), ("APS6", "77", "91"))))
            builder.add_paragraph("Figure 2. Staff by age")
        if number == 4:
            builder.add_heading(1, "Notes to the Financial Statements")
            builder.add_heading(1, "1. Nature of operations")
            builder.add_paragraph("The foundation trains divers.")
            builder.add_heading(1, "3. Liquidity")
            builder.add_paragraph("Cash is short.")
            builder.add_heading(1, "References")
            builder.add_paragraph("[1] An older report.")
    return finish_document(builder, "Audited accounts", pages=4)


def bylaws():
    builder = DocumentBuilder()
    builder.add_heading(1, "Articles of association: the society")
    for number, name in enumerate(("Name", "Members", "Voting"), 1):
        builder.add_heading(2, f"Article {number}: {name}")
        builder.add_paragraph(f"{number}.1. This is on {name.lower()}.")
        builder.add_paragraph(f"{number}.2. It holds for all.")
    return finish_document(builder, "Articles of association: the society")


def guide():
    builder = DocumentBuilder()
    for number in (1, 2):
        builder.add_page(number)
        builder.add_paragraph(f"Pickles, part {number}.")
    return finish_document(builder, "Guide 6: Fermented foods", pages=2)


@pytest.fixture(scope="module")
def snapshot(lasting):
    return lasting.snapshot([accounts(), bylaws(), guide()], ["accounts.pdf", "bylaws.md", "guide.pdf"])


def texts(result):
    return [hit.node.text.split("\n")[0] for hit in result.hits]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        # The number of a table may stand in the heading above it.
        (table(5, "5", "accounts.pdf"), "| Grade | Least | Most |"),
        # A note is numbered alone, below "Notes to ...".
        (section("3", "note", "accounts.pdf"), "Cash is short."),
        # A numbered paragraph is no heading.
        (section("3.2", "paragraph", "bylaws.md"), "3.2. It holds for all."),
        (page(document="accounts.pdf", relation="after", anchor=page(label="ii")), "| Grade | Least | Most |"),
        (page(label="2", document="accounts.pdf"), "The foundation trains divers."),
        (Selector("figure", 2, "2", document="accounts.pdf"), "Figure 2. Staff by age"),
        (Selector("section", -1, word="article", document="bylaws.md"), "3.1. This is on voting."),
    ],
)  # fmt: skip
def test_places_are_found_by_what_is_printed(snapshot, selector, expected):
    assert texts(find(snapshot, show(selector)))[0] == expected


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        # Where numbers are printed, nothing is counted in their place.
        (table(1, "1", "accounts.pdf"), "it has no table 1"),
        (section("7", "article", "bylaws.md"), "no article 7; it has 3 articles"),
        (section("2", "note", "accounts.pdf"), "no note 2"),
        (section("1", "appendix", "accounts.pdf"), "it has no appendices"),
        (page(3, document="bylaws.md"), "is not divided into pages"),
        (Selector("figure", 7, "7", document="accounts.pdf"), "it has no figure 7"),
        (table(document="accounts.pdf", within=page(4)), "Page 4 of accounts.pdf has no table."),
    ],
)
def test_what_is_not_printed_is_not_there(snapshot, selector, said):
    result = find(snapshot, show(selector))
    assert result.is_missing and said in result.text


@pytest.mark.parametrize(
    ("word", "document", "count"),
    [("article", "bylaws.md", "3 articles"), ("note", "accounts.pdf", "2 notes")],
)
def test_labelled_sections_are_counted_and_no_others(snapshot, word, document, count):
    query = Query("count", (Selector("document", document=document),), "section", word)
    assert find(snapshot, query).text == f"{document} has {count}."


def test_appendices_are_not_the_references(snapshot):
    query = Query("count", (Selector("document", document="accounts.pdf"),), "section", "appendix")
    assert find(snapshot, query).text == ""


def test_another_volume_is_another_document(snapshot):
    assert texts(find(snapshot, show(page(2, document="Guide 6")))) == ["Pickles, part 2."]
    assert not find(snapshot, show(page(2, document="Guide 5"))).hits


def test_a_cell_is_found_by_row_and_column(snapshot):
    cell = Selector("row", name="APS6", column="Most", document="accounts.pdf", within=table(5, "5"))
    assert find(snapshot, show(cell)).text == "91 (APS6, Most)"
