"""The samples hold what their questions rest on, and every parser reads them as they were written."""

from __future__ import annotations

import json
import re
import runpy
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pypdfium2
import pytest

from clew.core.types import DOCUMENT, PAGE, PASSAGE, ROW, SECTION, TABLE, ParsedDocument, ParsedNode
from clew.parse.documents.reader import read_file

ROOT = Path(__file__).parents[1]
DOCUMENTS = ROOT / "samples" / "documents"
REPORT, PAPER, CONTRACT = (
    "oskell-passage-annual-report-1931.pdf",
    "quillstone-bank-paper.pdf",
    "lighter-hire-contract.pdf",
)
MINUTES, INQUIRY = "merrowgate-council-minutes.docx", "heron-maid-inquiry.docx"
LEDGER, READINGS = "company-ledger-1928-29.xlsx", "gauge-readings-march-1929.csv"
LIFE, CATALOGUE = "hesper-marrable.html", "museum-catalogue.html"
CHARTER, MEMOIR, DIARY = "merrowgate-charter.md", "oskell-geology-memoir.md", "gauge-keepers-diary.txt"

PAPER_SECTIONS = [
    "Abstract",
    "1 Introduction",
    "2 Setting",
    "3 Methods",
    "3.1 Soundings",
    "3.2 Water levels",
    "3.3 Samples",
    "4 Results",
    "4.1 Position of the crest",
    "4.2 Material of the bank",
    "4.3 Times of movement",
    "5 Discussion",
    "6 Conclusions",
    "Acknowledgements",
    "References",
]


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


QUESTIONS = _lines(ROOT / "samples" / "questions.jsonl")
ROUTING = _lines(ROOT / "benchmarks" / "data" / "routing.jsonl")


@lru_cache
def read_sample(name: str) -> ParsedDocument:
    return read_file(DOCUMENTS / name)


def nodes(name: str, kind: str) -> list[ParsedNode]:
    return [node for node in read_sample(name).nodes if node.kind == kind]


def outline(name: str) -> list[tuple[int, str]]:
    return [(node.level, node.name) for node in nodes(name, SECTION)]


def words(text: str) -> str:
    """The text with white space and the rules of Markdown tables made even."""
    return " ".join(re.sub(r"[\s|]+", " ", text).split())


def passage(name: str, start: str) -> ParsedNode:
    (result,) = (node for node in nodes(name, PASSAGE) if node.text.startswith(start))
    return result


def path_of(name: str, node: ParsedNode) -> list[str]:
    names, tree = [], read_sample(name).nodes
    while node.parent:
        node = tree[node.parent]
        names.insert(0, node.name)
    return names


def rows_of(name: str, table: ParsedNode) -> list[str]:
    at = read_sample(name).nodes.index(table)
    return [node.text for node in nodes(name, ROW) if node.parent == at]


# The questions


def test_there_are_enough_questions_of_each_kind():
    kinds = Counter(row["kind"] for row in QUESTIONS)
    assert kinds == {"bridge": 14, "comparison": 6, "single": 5, "table": 6, "unanswerable": 4}
    assert len({row["id"] for row in QUESTIONS}) == len(QUESTIONS)
    for row in QUESTIONS:
        wanted = {"bridge": 2, "comparison": 2, "single": 1, "table": 1, "unanswerable": 0}[row["kind"]]
        assert len(set(row["documents"])) == len(row["evidence"]) == wanted, row["id"]
        assert bool(row["answers"]) == (row["kind"] != "unanswerable"), row["id"]


def test_forty_questions_are_structural_and_forty_are_not():
    assert Counter(row["structural"] for row in ROUTING) == {True: 40, False: 40}
    assert len({row["question"] for row in ROUTING}) == 80


def test_every_file_that_a_question_names_exists():
    named = {name for row in QUESTIONS + ROUTING for name in row.get("documents", [])}
    named |= {target["document"] for row in ROUTING for target in row.get("targets", [])}
    assert named == {path.name for path in DOCUMENTS.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in QUESTIONS if row["documents"]], ids=lambda row: row["id"])
def test_evidence_is_in_its_document(row):
    for name, snippet in zip(row["documents"], row["evidence"], strict=True):
        assert words(snippet) in words(read_sample(name).text), name


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROUTING if row["structural"]], ids=lambda row: row["id"])
def test_structures_that_a_question_asks_for_exist(row):
    for target in row["targets"]:
        result = nodes(target["document"], target["kind"])
        if "number" in target:
            result = result[target["number"] - 1 : target["number"]]
        result = [node for node in result if target.get("name", "").casefold() in node.name.casefold()]
        result = [node for node in result if "page" not in target or node.page == target["page"]]
        assert len(result) == 1, (target, [node.name for node in nodes(target["document"], target["kind"])])


# The files


@pytest.mark.slow
def test_made_files_say_what_their_sources_say(tmp_path):
    runpy.run_path(str(ROOT / "samples" / "make.py"))["make"](tmp_path)
    results = sorted(path.name for path in tmp_path.iterdir())
    assert results == sorted([REPORT, PAPER, CONTRACT, MINUTES, INQUIRY, LEDGER])
    for name in results:
        if name.endswith(".pdf"):
            assert _pages(tmp_path / name) == _pages(DOCUMENTS / name)
        else:
            assert read_file(tmp_path / name).text == read_sample(name).text


def _pages(path: Path) -> list[str]:
    document = pypdfium2.PdfDocument(path)
    try:
        return [document[at].get_textpage().get_text_bounded() for at in range(len(document))]
    finally:
        document.close()


# What the parsers make of the files


def test_word_headings_lists_and_captions():
    assert outline(INQUIRY)[1:] == [
        (1, "Part I. The inquiry"),
        (1, "Part II. The vessel"),
        (1, "Part III. The stranding"),
        (2, "The passage"),
        (2, "The rescue"),
        (1, "Part IV. The cause"),
        (2, "The bank"),
        (2, "The gauge"),
        (2, "The master"),
        (1, "Part V. Recommendations"),
    ]
    assert [table.name for table in nodes(INQUIRY, TABLE)] == ["Table 1. Persons and goods on board"]
    assert path_of(INQUIRY, nodes(INQUIRY, TABLE)[0]) == ["Part III. The stranding", "The rescue"]
    recommended = passage(INQUIRY, "I recommend that:").text
    assert "1. the reach be sounded" in recommended
    assert "5. a telephone be laid" in recommended
    assert [table.name for table in nodes(MINUTES, TABLE)] == [
        "Table 1. Votes on the two questions put on 6 February",
        "Table 2. Estimate for the footbridge",
    ]
    votes = rows_of(MINUTES, nodes(MINUTES, TABLE)[0])
    assert votes[1].endswith("To nominate Mr Ralph Orrin: For: 1; Against: 5; Abstained: 0")


def test_sheets_are_tables():
    freight, crew = nodes(LEDGER, TABLE)
    assert (freight.name, crew.name) == ("Freight 1928-29", "Crew")
    assert len(rows_of(LEDGER, freight)) == 24
    assert rows_of(LEDGER, crew)[3] == (
        "Crew. Garrow, Silas: Rank: Mate; Vessel: Kittiwake; Weekly wage ($): 17.25; Engaged: 1910;"
        " Home: Dunmere Landing"
    )
    (readings,) = nodes(READINGS, TABLE)
    assert len(rows_of(READINGS, readings)) == 64
    assert rows_of(READINGS, readings)[34] == (
        "Fenner Mouth: date: 1929-03-14; time: 06:00; stage_m: 3.62; observer: W. Ames;"
        " remark: read twice; messenger sent"
    )


def test_a_web_page_loses_its_furniture_and_keeps_its_tables():
    assert [name for _, name in outline(LIFE)] == [
        "Hesper Marrable",
        "Early life",
        "The float-gauge",
        "The rule of the bars",
        "Family",
        "Later years",
    ]
    assert not re.search("cookies|A life at random|You may also like|window.visits", read_sample(LIFE).text)
    box, gauges = nodes(LIFE, TABLE)
    assert (box.name, gauges.name) == ("Hesper Marrable", "The first four float-gauges")
    assert rows_of(LIFE, gauges)[1].endswith("2: Station: Fenner Mouth; Installed: 1900; Taken out: 1929")
    assert any("Born: 3 May 1871, Upper Quill" in row for row in rows_of(LIFE, box))
    assert len(rows_of(CATALOGUE, nodes(CATALOGUE, TABLE)[0])) == 11


def test_markdown_headings_nest():
    assert (2, "Of the market") in outline(CHARTER)
    assert read_sample(MEMOIR).title == "The Geology of the Oskell Valley"
    assert (3, "The Fenner Clay") in outline(MEMOIR)
    assert path_of(MEMOIR, passage(MEMOIR, "The Clay is the mischief"))[-2:] == [
        "Chapter 2: The succession",
        "The Fenner Clay",
    ]
    assert rows_of(MEMOIR, nodes(MEMOIR, TABLE)[1])[1].endswith(
        "Little Greenlow: Owner: Parish of Upper Quill; Stone: Quillstone; Hands: 9;"
        " Output in 1907 (tons): 1,150"
    )


def test_plain_text_is_paragraphs():
    assert passage(DIARY, "Up at four.").text.endswith("the boat being held for the mails.")


@pytest.mark.slow
def test_the_report_has_pages_sections_and_whole_tables():
    assert [node.page for node in nodes(REPORT, PAGE)] == list(range(1, 9))
    text = read_sample(REPORT).text
    # The running header is read once, without the number of the page.
    assert (
        not re.search(r"Page \d", text) and len(re.findall(r"Annual Report 1931$", text, re.MULTILINE)) == 1
    )
    assert [name for _, name in outline(REPORT) if name not in {"Oskell Passage Company"}] == [
        "Annual Report and Accounts",
        "Directors and officers",
        "Notice of meeting",
        "Chairman's statement",
        "The fleet",
        "Changes in the year",
        "Hire of vessels",
        "Traffic",
        "The crossings",
        "The Short Passage",
        "The Long Passage",
        "The Quarry Passage",
        "Financial statements",
        "Balance sheet",
        "Notes to the accounts",
        "Note 1. Vessels",
        "Note 2. Contingent claims",
        "Note 3. Pension fund",
        "Report of the auditors",
    ]
    depth = {name: level for level, name in outline(REPORT)}
    assert depth["The Short Passage"] == depth["The crossings"] + 1 == depth["Traffic"] + 1
    fleet, traffic, income, balance = nodes(REPORT, TABLE)
    assert [table.page for table in (fleet, traffic, income, balance)] == [3, 4, 6, 7]
    assert fleet.name == "Table 1. The fleet at 30 September 1931"
    assert traffic.name == "Table 2. Passengers, vehicles and receipts by month and crossing"
    assert income.name == "Statement of income"
    assert balance.name == "Balance sheet at 30 September"
    assert rows_of(REPORT, fleet)[4].endswith(
        "Lady Annis: Type: Motor vessel; Built: 1926; Builder: Garrow Brothers; Length (ft): 96;"
        " Passengers: 180; Station: Holm Point"
    )
    months = rows_of(REPORT, traffic)
    assert len(months) == 37
    assert months[34].endswith(
        "September 1931: Crossing: Long Passage; Passengers: 12,529; Vehicles: 321; Receipts ($): 5,654"
    )
    assert {box.page for box in traffic.boxes} == {4, 5}
    fuel = "Statement of income. Coal and oil: 1931: (18,942); 1930: (21,455)"
    assert fuel in rows_of(REPORT, income)
    debts = "Liabilities and capital: Debentures, 5 per cent: 1931: 75,000; 1930: 75,000"
    before = "The position of the Company at the end of the year, and at the end of the year before, was as follows"
    assert f"{before}. Balance sheet at 30 September. {debts}" in rows_of(REPORT, balance)


@pytest.mark.slow
def test_the_paper_is_read_down_its_columns_with_its_words_joined():
    depth = {name: level for level, name in outline(PAPER)[1:]}
    assert list(depth) == PAPER_SECTIONS
    top = depth["Abstract"]
    assert [depth[name] - top for name in PAPER_SECTIONS] == [int("." in name) for name in PAPER_SECTIONS]
    assert "explanations have been offered for the existence of the bank" in words(read_sample(PAPER).text)
    assert "recommended that the reach be surveyed" in words(read_sample(PAPER).text)
    assert read_sample(PAPER).text.count("Movement of the Quillstone Bank\n") == 1
    crest, grains = nodes(PAPER, TABLE)
    assert crest.name == "Table 1. Distance of the crest from the western marker, and least depth over it"
    assert rows_of(PAPER, crest)[7].endswith("1934: Crest (m): 281; Depth (m): 2.4")
    assert rows_of(PAPER, grains)[2].endswith("East flank: Samples: 15; Median (mm): 0.62")
    assert path_of(PAPER, grains)[-1] == "4.2 Material of the bank"


def test_the_contract_has_clauses_and_an_unnumbered_table():
    assert [name for _, name in outline(CONTRACT)][-4:] == [
        "8. Ending the hire early",
        "9. Disputes",
        "Schedule of equipment",
        "Signatures",
    ]
    levels = {level for level, name in outline(CONTRACT) if name != "Agreement for the hire of a lighter"}
    assert len(levels) == 1, outline(CONTRACT)
    (schedule,) = nodes(CONTRACT, TABLE)
    assert schedule.page == 2
    assert path_of(CONTRACT, schedule)[-1] == "Schedule of equipment"
    assert rows_of(CONTRACT, schedule)[3].endswith("Bilge pump, brass: Number: 1; Value ($): 37.50")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in DOCUMENTS.iterdir()))
def test_spans_point_at_the_words_of_their_nodes(name):
    document = read_sample(name)
    assert document.nodes[0].kind == DOCUMENT
    for node in nodes(name, PASSAGE) + nodes(name, TABLE) + nodes(name, SECTION):
        assert document.text[slice(*node.span)] == node.text
