import pytest

from clew.retrieve.structure.grammar import parse_question, parse_roman
from clew.retrieve.structure.outline import heading_terms, normalise_label, parse_table_label


def find_selectors(question):
    return [selector for query in parse_question(question) for selector in query.selectors]


def pages(question):
    return [
        selector.number if selector.number is not None else selector.label
        for selector in find_selectors(question)
        if selector.kind == "page"
    ]


def tables(question):
    results = (
        selector
        for selector in find_selectors(question)
        if selector.kind == "table" and not selector.name and not selector.is_bare
    )
    return [
        (selector.label or selector.number, selector.within and selector.within.number)
        for selector in results
    ]


def sections(question):
    return [
        (selector.word, selector.label)
        for selector in find_selectors(question)
        if selector.kind == "section" and not selector.name
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What does page 7 say?", [7]),
        ("what is on PAGE SEVEN", [7]),
        ("see p. 12", [12]),
        ("summarise pp. 3-4", [3, 4]),
        ("Compare pages 3, 5 and 7", [3, 5, 7]),
        ("pages 2 to 4 of the lease", [2, 3, 4]),
        ("page no. 9", [9]),
        ("the first page", [1]),
        ("the first three pages", [1, 2, 3]),
        ("the last two pages", [-2, -1]),
        ("the 3rd page", [3]),
        ("the second-to-last page", [-2]),
        ("the cover page", [1]),
        ("what is on page iv", ["iv"]),
        ("compare page 1 with page 2", [1, 2]),
        ("whats on pg 5", [5]),
    ],
)
def test_pages(question, expected):
    assert pages(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is in table 2?", [("2", None)]),
        ("Table IV shows what?", [("iv", None)]),
        ("tables 1 and 3", [("1", None), ("3", None)]),
        ("Tables 2-4", [("2", None), ("3", None), ("4", None)]),
        ("Table 2-3", [("2-3", None)]),
        ("table A.1 and Table 3.2", [("a.1", None), ("3.2", None)]),
        ("table two", [("2", None)]),
        ("the second table", [(2, None)]),
        ("the last table", [(-1, None)]),
        ("the 2nd table on page 4", [(2, 4)]),
        ("table 2 on page 4", [("2", 4)]),
        ("what does the table on page 4 say", [("", 4)]),
        ("Based on Table on Page 4, how many", [("", 4)]),
        ("page 4's table", [("", 4)]),
    ],
)
def test_tables(question, expected):
    assert [(label or "", page) for label, page in tables(question)] == expected


def test_a_table_takes_up_the_page_that_it_stands_on():
    assert pages("the table on page 4") == []
    assert pages("compare the table on page 4 with page 5") == [5]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("section 3.2 of the manual", [("section", "3.2")]),
        ("sections 2 and 4", [("section", "2"), ("section", "4")]),
        ("§ 5", [("section", "5")]),
        ("Item 1A", [("item", "1a")]),
        ("Part II", [("part", "ii")]),
        ("Appendix B", [("appendix", "b")]),
        ("chapter three", [("chapter", "3")]),
        ("sections 2 to 4", [("section", "2"), ("section", "3"), ("section", "4")]),
        ("the last chapter", [("chapter", "")]),
        ("Room 2", [("room", "2")]),
        ("clause 7", [("clause", "7")]),
    ],
)
def test_numbered_sections(question, expected):
    assert sections(question) == expected


@pytest.mark.parametrize(
    ("question", "kind", "name"),
    [
        ("What is in the Methods section?", "section", "Methods"),
        ("the section on market tolls", "section", "market tolls"),
        ("what is listed under Risk Factors", "section", "Risk Factors"),
        ('what stands under the heading "Risk factors"', "section", "Risk factors"),
        ("what does the table about membership dues say", "table", "membership dues say"),
        ("the membership dues table", "table", "membership dues"),
        ("the table titled Dues", "table", "Dues"),
        ("the Budget sheet", "table", "Budget"),
        ("summarise the contract", "document", "the contract"),
        ("Summarise the contract in two sentences", "document", "the contract"),
        ("What is the lease about?", "document", "the lease"),
        ("Give me a short overview of the harbour report", "document", "the harbour report"),
    ],
)
def test_names(question, kind, name):
    results = [selector.name.strip() for selector in find_selectors(question) if selector.kind == kind]
    assert any(selector.endswith(name) or selector.startswith(name) for selector in results)


def test_under_names_a_heading_unless_the_question_asks_for_content():
    for question, names in (
        ("What is listed under Risk Factors?", ["Risk Factors"]),
        ("How often must the board meet under Jersey law?", []),
        ("Is a director free to leave under Delaware Law?", []),
        ("How often is it said under the heading Dues?", ["Dues"]),
    ):
        assert [selector.name for selector in find_selectors(question)] == names


@pytest.mark.parametrize(
    "question",
    [
        "Who founded Page & Sons?",
        "Who plays guitar, Jimmy Page or Larry Page?",
        "What is the web page about bees called?",
        "Who sat at table 9 during the dinner?",
        "Who was the first page at the court?",
        "What changed after Macbeth acted out part I?",
        "Which river has the longest passage?",
        "How is a note played?",
        "Why did the page turner leave?",
        "Who won the second table tennis match?",
    ],
)
def test_content_questions_have_no_selector_that_needs_no_name(question):
    results = [
        selector
        for selector in find_selectors(question)
        if selector.label or selector.number is not None or selector.within
    ]
    assert results == []


def test_selectors_come_in_the_order_of_the_question_with_their_place():
    question = "Compare page 1 of the lease with Table 2 of the manual"
    results = [selector for selector in find_selectors(question) if selector.number is not None]
    assert [question[selector.start : selector.end] for selector in results] == ["page 1", "Table 2"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("i", 1), ("IV", 4), ("ix", 9), ("XIV", 14), ("xxxix", 39), ("six", None), ("", None), ("iiii", None)],
)
def test_roman_numerals(text, value):
    assert parse_roman(text) == value


@pytest.mark.parametrize(
    ("caption", "label"),
    [
        ("Table 2: Dues", "2"),
        ("TABLE IV. Votes", "4"),
        ("Table 3-1 Costs", "3.1"),
        ("Tab. 7", "7"),
        ("Tables of the law", ""),
        ("Table A.2 Costs", "a2"),
        ("Votes", ""),
    ],
)
def test_labels_of_captions(caption, label):
    assert parse_table_label(caption) == label


def test_labels_compare_across_their_spellings():
    assert normalise_label("IV") == normalise_label("4") == normalise_label(" iv. ")
    assert normalise_label("A.2") == normalise_label("a2") == normalise_label("A-2")
    assert normalise_label("1A") != normalise_label("1")


@pytest.mark.parametrize(
    ("heading", "terms"),
    [
        ("3.2 The data", ["data"]),
        ("Item 1A. Risk Factors", ["risk", "factor"]),
        ("Part II. The vessel", ["vessel"]),
        ("Table 2: Dues", ["due"]),
        ("Losses", ["loss"]),
        ("A vessel", ["vessel"]),
        ("I saw the river", ["saw", "river"]),
    ],
)
def test_headings_are_compared_without_their_labels(heading, terms):
    assert heading_terms(heading) == terms


def describe_place(selector):
    name = selector.label or selector.name or selector.number
    text = selector.kind if name is None else f"{selector.kind} {name}".strip()
    if selector.relation:
        text += f" {selector.relation} ({describe_place(selector.anchor)})"
    if selector.within:
        text += f" on ({describe_place(selector.within)})"
    return f"{text} of {selector.document}" if selector.document and selector.kind != "document" else text


def describe_query(query):
    places = ", ".join(map(describe_place, query.selectors))
    parts = [query.operation, "not" if query.negated else "", query.kind, places, query.text, query.document]
    return " ".join(filter(None, parts))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many pages does the annual report have?", "count page document the annual report"),
        ("how many pages is the lease", "count page document the lease"),
        ("How long is the Verizon 10-K?", "count page document the Verizon 10-K"),
        ("What is the number of tables in the lease?", "count table document the lease"),
        ("total number of rows in table 2 of the ledger", "count row table 2 of the ledger"),
        ("How many tables are there on page 3 of the report?", "count table page 3 of the report"),
        ("how many documents are there?", "count document"),
        ("which pages of the release have tables", "list page table the release"),
        ("Which documents have no tables?", "list not document table"),
        ("which documents contain a schedule of equipment", "list document section schedule of equipment"),
        ("What documents do I have?", "list document"),
        ("List the tables on page 5 of the lease", "list table page 5 of the lease"),
        ("list all headings of the charter", "list section document the charter"),
        ("which of my documents is the longest", "longest document"),
        ("What is the shortest document?", "longest not document"),
        (
            "which section comes after Traffic in the annual report",
            "neighbour section section after (section Traffic) of the annual report",
        ),
        (
            "Which table stands before table 3 in the ledger?",
            "neighbour table table before (table 3) of the ledger",
        ),
        ("On which page of the report is the balance sheet?", "locate page the balance sheet the report"),
        ("what page has Note 5", "locate page section 5 Note 5"),
        (
            "where in the lease does it say who pays for repairs",
            "locate page who pays for repairs the lease",
        ),
        ("Where can I find the risk factors in the 10-K?", "locate page the risk factors the 10-K"),
        ("Where does Item 7 start in the Verizon 10-K?", "locate page section 7 Item 7 the Verizon 10-K"),
        (
            "what changed between the 2021 report and the 2022 report",
            "changes document the 2021 report, document the 2022 report",
        ),
        (
            "What changed in the 10-K of 2021 compared to the 10-K of 2020?",
            "changes document the 10-K of 2021, document the 10-K of 2020",
        ),
        (
            "How does page 8 of the Ulta release differ from page 10 of the Amcor release?",
            "show page 8 of the Ulta release, page 10 of the Amcor release",
        ),
        ("page 4's table", "show table on (page 4)"),
        ("the table on the last page of the lease", "show table on (page -1) of the lease"),
        ("the page after page 3", "show page after (page 3)"),
        ("the table before table 2 of the ledger", "show table before (table 2) of the ledger"),
        ("Is there a table on page 2 of the lease?", "exists table on (page 2) of the lease"),
        ("does the lease have a page 9", "exists page 9 of the lease"),
        ("Does the charter contain an Article XI?", "exists section xi of the charter"),
        ("Where does Ada Pell live?", ""),
        ("How long is the Bittern?", ""),
        ("How long is lighter-hire-contract.pdf?", "count page document lighter-hire-contract.pdf"),
    ],
)
def test_what_is_done_with_structures(question, expected):
    assert [describe_query(query) for query in parse_question(question)] == [expected] * bool(expected)
