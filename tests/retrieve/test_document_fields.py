"""Names and periods of documents: covers, file names and questions as people write them."""

import numpy as np
import pytest

from clew.core.types import Question
from clew.retrieve import document_fields
from clew.retrieve.contextual import ContextualSearch
from clew.retrieve.document_fields import (
    DocumentFields,
    Period,
    field_index,
    match_fields,
    named_subjects,
    read_document_fields,
    read_periods,
    subject_aliases,
)
from clew.store.store import Store
from retrieve_documents import add


@pytest.mark.parametrize(
    ("text", "periods"),
    [
        ("What was Nike's revenue in FY2022?", {(2022, 0)}),
        ("Has CVS Health paid dividends in Q2 of FY2022?", {(2022, 2)}),
        ("operating income for Q2 of 2023", {(2023, 2)}),
        ("in the second quarter of fiscal 2023", {(2023, 2)}),
        ("during the fourth quarter of 2022", {(2022, 4)}),
        ("FOURTH QUARTER AND FULL YEAR 2022 RESULTS", {(2022, 4)}),
        ("first-quarter 2024 sales", {(2024, 1)}),
        ("Adjusted EBITDAR in 4Q22 against 4Q 2021", {(2022, 4), (2021, 4)}),
        ("guidance for Q1'24", {(2024, 1)}),
        ("Q3 FY23 gross margin", {(2023, 3)}),
        ("2022Q4 earnings", {(2022, 4)}),
        ("in the third quarter, how much did it spend (2021)?", {(2021, 3)}),
        ("Did Pfizer grow its PPNE between FY20 and FY21?", {(2020, 0), (2021, 0)}),
        ("for fiscal year 2019 and fiscal '20", {(2019, 0), (2020, 0)}),
        ("between 2022 and the 2021 fiscal period", {(2022, 0), (2021, 0)}),
        ("as of August 30, 2023", {(2023, 0)}),
        ("filed 2023-08-30", {(2023, 0)}),
        ("a charge of $2,022 million, and $2022 more", set()),
        ("Which quarter was best?", set()),
        ("Section 2010.1 of the 10K", set()),
    ],
)
def test_periods_as_people_write_them(text, periods):
    assert read_periods(text) == periods


ADOBE = """UNITED STATES SECURITIES AND EXCHANGE COMMISSION

FORM 10-K

☒ ANNUAL REPORT PURSUANT TO SECTION 13 OR 15(d) OF THE SECURITIES EXCHANGE ACT OF 1934

For the fiscal year ended December 2, 2022 or

ADOBE INC. (Exact name of registrant as specified in its charter)

| Title of Each Class | Trading Symbol | Name of Each Exchange on Which Registered |
| --- | --- | --- |
| Common Stock, $0.0001 par value per share | ADBE | NASDAQ |

Portions of the Proxy Statement for the registrant's 2023 Annual Meeting of Stockholders"""
MGM = """Exhibit 99.1

Las Vegas, Nevada, February 8, 2023 – MGM Resorts International (NYSE: MGM) (“MGM Resorts”

or the “Company”) today reported financial results for the quarter and year ended December 31, 2022."""
MICROSOFT = """FORM 10-Q

For the Quarterly Period Ended March 31, 2023

Microsoft Corporation

(Exact name of registrant as specified in its charter)"""


@pytest.mark.parametrize(
    ("name", "title", "cover", "fields"),
    [
        ("scan0017.pdf", "", ADOBE, DocumentFields((("adobe",),), ("ADBE",), frozenset({Period(2022)}))),
        (
            "MGMRESORTS_2022Q4_EARNINGS.pdf",
            "MGM Exhibit 99.1 Q4 2022 ER",
            MGM,
            DocumentFields(
                (("mgmresorts",), ("mgm",), ("mgm", "resorts")), ("MGM",), frozenset({Period(2022, 4)})
            ),
        ),
        (
            "MSFT 10-Q.pdf",
            "",
            MICROSOFT,
            DocumentFields((("msft",), ("microsoft",)), (), frozenset({Period(2023, 1)})),
        ),
        (
            "00000.pdf",
            "UNITED STATES SECURITIES AND EXCHANGE COMMISSION",
            "| FORM 10-K For the fiscal year ended December 31, 2022 ACT OF 1934 Verizon Communications Inc. "
            "(Exact name of registrant as specified in its charter) |",
            DocumentFields((("verizon", "communications"),), (), frozenset({Period(2022)})),
        ),
        (
            "AmberTrading-annual-report-2021.docx",
            "",
            "",
            DocumentFields((("amber", "trading"),), (), frozenset({Period(2021)})),
        ),
        ("minutes.md", "Minutes", "We met and agreed.", DocumentFields((("minutes",),), (), frozenset())),
    ],
)
def test_fields_of_real_covers(name, title, cover, fields):
    assert read_document_fields(name, title, cover) == fields


def test_the_period_of_a_file_name_counts_more_than_that_of_a_cover():
    cover = "Best Buy Co., Inc. For the fiscal year ended January 28, 2023"
    assert read_document_fields("report.pdf", "", cover).periods == {(2023, 0), (2022, 0)}
    assert read_document_fields("BESTBUY_2023_10K.pdf", "", cover).periods == {(2023, 0)}
    cover = "For the quarterly period ended June 30, 2023"
    assert read_document_fields("JPMORGAN_2023_10Q.pdf", "", cover).periods == {(2023, 2)}


@pytest.mark.parametrize(
    ("file", "alias"),
    [
        ("JPMORGAN_2023_10K.pdf", "jpm"),
        ("JOHNSON_JOHNSON_2023_8K.pdf", "jnj"),
        ("JOHNSON_JOHNSON_2023_8K.pdf", "j&j"),
        ("American_Express_2022_10K.pdf", "amex"),
        ("American_Express_2022_10K.pdf", "americanexpress"),
        ("Goldman-Sachs-2022.pdf", "gs"),
        ("General_Motors_2022.pdf", "gm"),
    ],
)
def test_abbreviations(file, alias):
    assert alias in dict(subject_aliases(read_document_fields(file, "", "")))


def report(company, cover_name, year, words):
    """A report of twelve pages; its figures of the year before are beside its own."""
    pages = [
        ("page", 1),
        f"{cover_name} (Exact name of registrant) For the fiscal year ended June 30, {year}",
    ]
    for number in range(2, 14):
        pages += [
            ("page", number),
            f"{words[number % len(words)]} in {year} and {year - 1}: {number} million.",
        ]
    return (f"{company}_{year}_10K.pdf", "", *pages)


TABLE = ["Net sales rose", "Diluted net income per share", "Income taxes paid", "Inventories were"]
FOLDER = [
    *(report("AMERICANEXPRESS", "American Express Company", year, TABLE) for year in (2020, 2021, 2022)),
    *(report("JPMORGAN", "JPMorgan Chase & Co.", year, TABLE) for year in (2021, 2022)),
    # Says it in the words of the question; the others say it in words of their own.
    report("CEDAR", "Cedar Inc.", 2021, ["Diluted earnings per share", *TABLE]),
]


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    with Store.open(tmp_path_factory.mktemp("reports") / "base", create=True) as base:
        for document in FOLDER:
            add(base, *document)
        yield base.snapshot()


def first_hit(snapshot, question, **weights):
    return ContextualSearch(snapshot, **weights).retrieve(Question(question), 10)[0].node.document_name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "file"),
    [
        ("What were American Express's diluted earnings per share in 2020?", "AMERICANEXPRESS_2020_10K.pdf"),
        ("What were AMEX's diluted earnings per share in FY21?", "AMERICANEXPRESS_2021_10K.pdf"),
        ("Did AmEx pay more income taxes between FY2021 and FY2022?", "AMERICANEXPRESS_2022_10K.pdf"),
        ("What were JPM's inventories in fiscal 2021?", "JPMORGAN_2021_10K.pdf"),
        ("How did net sales develop at JPMorgan Chase in 2022?", "JPMORGAN_2022_10K.pdf"),
        ("what did american express pay in income taxes in 2021", "AMERICANEXPRESS_2021_10K.pdf"),
    ],
)
def test_the_right_company_and_year_come_first(snapshot, question, file):
    assert first_hit(snapshot, question) == file


def test_without_fields_another_company_s_words_come_first(snapshot):
    question = "What were AMEX's diluted earnings per share?"
    without = ContextualSearch.build(snapshot, None, fields=False)
    assert without.retrieve(Question(question), 5)[0].node.document_name == "CEDAR_2021_10K.pdf"
    assert first_hit(snapshot, question).startswith("AMERICANEXPRESS")


@pytest.mark.parametrize(
    "question",
    ["What were diluted earnings per share?", "Who led Ames in April?", "Did inventories rise, and when?"],
)
def test_a_question_that_names_no_subject_and_no_period_ranks_as_it_did(snapshot, question):
    assert not np.any(match_fields(question, snapshot))
    ranked, before = (
        ContextualSearch(snapshot, **weights).retrieve(Question(question), 40)
        for weights in ({}, {"subject": 0, "period": 0})
    )
    assert [(hit.node.id, hit.score) for hit in ranked] == [(hit.node.id, hit.score) for hit in before]


def test_a_name_or_a_period_alone_counts(snapshot):
    names = [document.name for document in snapshot.documents()]
    subjects, periods = match_fields("What did JPM say?", snapshot)
    assert {names[n] for n in np.flatnonzero(subjects)} == {"JPMORGAN_2021_10K.pdf", "JPMORGAN_2022_10K.pdf"}
    assert not periods.any()
    subjects, periods = match_fields("What happened in 2020?", snapshot)
    assert not subjects.any()
    assert names[int(np.argmax(periods))] == "AMERICANEXPRESS_2020_10K.pdf"


@pytest.mark.parametrize(
    ("question", "files"),
    [
        ("What were American Express's sales in 2020?", {"American Express": "AMERICANEXPRESS"}),
        ("What were JPM's inventories?", {"JPM": "JPMORGAN"}),
        ("Did JPMorgan Chase buy Cedar in 2021?", {"JPMorgan Chase": "JPMORGAN", "Cedar": "CEDAR"}),
        ("What were the sales of American Airlines?", {}),
        ("What were sales in 2020?", {}),
    ],
)
def test_subjects_that_a_question_names(snapshot, question, files):
    file_of = {document.key: document.name for document in snapshot.documents()}
    subjects = named_subjects(question, snapshot)
    assert {name: {file_of[key].split("_")[0] for key in keys} for name, keys in subjects.items()} == {
        name: {file} for name, file in files.items()
    }


def test_other_documents_are_still_found(snapshot):
    hits = ContextualSearch(snapshot).retrieve(
        Question("What were AMEX's diluted earnings per share in FY21?"), 60
    )
    assert {hit.node.document_name[:5] for hit in hits} == {"AMERI", "JPMOR", "CEDAR"}


def test_short_documents_have_no_fields_and_a_removed_one_has_none(tmp_path):
    with Store.open(tmp_path / "base", create=True) as base:
        add(base, "Seoul 1988.txt", "1988 Summer Olympics", "The 1988 Summer Olympics were in Seoul.")
        add(base, "Sydney 2000.txt", "2000 Summer Olympics", "The 2000 Summer Olympics were in Sydney.")
        for document in FOLDER[:1]:
            add(base, *document)
        assert not np.any(match_fields("Where were the 2000 Summer Olympics?", base.snapshot()))
        assert np.any(match_fields("What did AMEX earn?", base.snapshot()))
        base.remove([f"/documents/{FOLDER[0][0]}"])
        assert not np.any(match_fields("What did AMEX earn in 2020?", base.snapshot()))


def test_after_a_change_only_the_new_document_is_read(tmp_path, monkeypatch):
    read = []

    def read_and_note(name, title, cover):
        read.append((name, cover[:20]))
        return read_document_fields(name, title, cover)

    monkeypatch.setattr(document_fields, "read_document_fields", read_and_note)
    monkeypatch.setattr(document_fields, "_known_fields", {})
    cover = "Annual report for the fiscal year ended December 31, {year}."
    with Store.open(tmp_path / "base", create=True) as base:
        for year in (2020, 2021):
            texts = [cover.format(year=year), *(f"Barge {number} of {year}." for number in range(12))]
            add(base, f"OSKELL_{year}.pdf", f"Oskell {year}", *texts)
        base.catch_up()
        before = field_index(base.snapshot())
        assert [name for name, _ in read] == ["OSKELL_2020.pdf", "OSKELL_2021.pdf"]
        texts = [cover.format(year=2022), *(f"Barge {number} of 2022." for number in range(12))]
        add(base, "OSKELL_2022.pdf", "Oskell 2022", *texts)
        base.catch_up()
        after = field_index(base.snapshot())
        assert [name for name, _ in read[2:]] == ["OSKELL_2022.pdf"]
        assert sorted(before.years.tolist()) == [2020, 2021]
        assert sorted(after.years.tolist()) == [2020, 2021, 2022]
        # What was read is that of the document that has the key, in the order of the keys.
        names = [document.name for document in base.snapshot().documents()]
        assert [names[n] for n in after.documents.tolist()] == [
            f"OSKELL_{year}.pdf" for year in after.years.tolist()
        ]
