import numpy as np
import pytest

from clew.core.types import RETRIEVED_KINDS, Scope
from clew.retrieve.contextual import DocumentNames, name_terms, question_keys


def test_a_file_name_gives_its_words_their_parts_and_its_initials():
    terms = name_terms("NORTHERN_LIGHTS_2022_10K.pdf")
    assert {"northern", "light", "2022", "10k", "nl"} <= set(terms)
    assert {"northern", "light"} <= set(name_terms("NorthernLights.docx"))
    assert "q42022" in name_terms("Lights_2022Q4.pdf")
    assert "pdf" not in name_terms("Lights.pdf")


def test_a_question_names_documents_by_spans_written_as_one_word_and_by_years():
    keys = question_keys("What did American Express report in its FY2018 10-K?")
    assert {"american", "express", "americanexpress", "2018", "10k"} <= set(keys)
    assert "report" not in keys
    assert "report" in question_keys("what did it report?", {"report"})


REPORTS = [
    (
        "ACORNMILL_2021_10K.pdf",
        "Annual report",
        ("page", 1),
        "Acorn Mill plc, year 2021",
        ("page", 2),
        "Sales fell.",
    ),
    (
        "ACORNMILL_2022_10K.pdf",
        "Annual report",
        ("page", 1),
        "Acorn Mill plc, year 2022",
        ("page", 2),
        "Sales rose.",
    ),
    (
        "BIRCH_2022_8K.pdf",
        "Current report",
        ("page", 1),
        "Birch Ltd",
        ("page", 2),
        "Sales slept. Acorn Mill sued.",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "file"),
    [
        ("How did sales develop at Acorn Mill in FY2021?", "ACORNMILL_2021_10K.pdf"),
        ("How did sales develop at Acorn Mill in FY22?", "ACORNMILL_2022_10K.pdf"),
        ("What does the 8-K say of 2022?", "BIRCH_2022_8K.pdf"),
        ("What happened at Birch?", "BIRCH_2022_8K.pdf"),
        ("How did AM do in 2021?", "ACORNMILL_2021_10K.pdf"),
    ],
)
def test_the_document_that_is_named_scores_best(snapshot_of, question, file):
    snapshot = snapshot_of(*REPORTS)
    scores = DocumentNames(snapshot).scores(question)
    assert snapshot.documents()[int(np.argmax(scores))].name == file
    assert np.count_nonzero(scores == scores.max()) == 1


def test_documents_that_a_question_does_not_name_all_score_nothing(snapshot_of):
    snapshot = snapshot_of(*REPORTS)
    assert DocumentNames(snapshot).scores("how did things go?").tolist() == [0, 0, 0]


def test_a_single_document_scores_nothing(snapshot_of):
    snapshot = snapshot_of(REPORTS[0])
    assert DocumentNames(snapshot).scores("Sales of Acorn Mill in 2021?").tolist() == [0]


def test_a_document_with_nothing_readable_and_an_empty_base_are_no_trouble(snapshot_of):
    assert DocumentNames(snapshot_of()).scores("Acorn Mill").tolist() == []
    snapshot = snapshot_of(("ACORN.pdf", "", ("page", 1)), ("b.txt", "", "x"))
    scores = DocumentNames(snapshot).scores("Acorn")
    assert snapshot.documents()[int(np.argmax(scores))].name == "ACORN.pdf"


def test_without_a_match_documents_are_in_focus_by_their_length(snapshot_of):
    snapshot = snapshot_of(("a.txt", "", "x", "y", "z"), ("b.txt", "", "x"))
    names = DocumentNames(snapshot)
    allowed = snapshot.mask(Scope(), RETRIEVED_KINDS)
    focus = dict(
        zip(
            (d.name for d in snapshot.documents()),
            names.document_probabilities(np.zeros(2), allowed),
            strict=True,
        )
    )
    assert focus == {"a.txt": 0.75, "b.txt": 0.25}
