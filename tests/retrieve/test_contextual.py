import math
from dataclasses import replace

import numpy as np
import pytest

from clew.core.types import RETRIEVED_KINDS, Question, Scope, Table
from clew.retrieve.contextual import (
    ContextualSearch,
    CoverageSelector,
    Lookahead,
    SemanticGain,
    context_units,
    mark_rows_below,
    split_repeats,
    subtree_ends,
)
from clew.store.store import Store
from retrieve_documents import add
from retrieve_encoders import WordEncoder


def texts(hits):
    return [hit.node.text for hit in hits]


def find(snapshot, question, k=5, **options):
    return ContextualSearch(snapshot, **options).retrieve(Question(question), k)


def test_the_score_of_one_passage_equals_the_formula_worked_by_hand(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "river bridge"), ("b.txt", "t", "mill mill mill", "bridge"))
    # No name matches: the documents are in focus by their passages, 1/3 and 2/3, n = 1/3 + 4/3.
    n, there, usual = 5 / 3, 1 / 3 * 1 + 2 / 3 * 1 / 2, 2.5 / 4
    bridge = -math.log((n * there + 100 * usual) / (n + 100))
    mill = -math.log((n * (2 / 3 * 1 / 2) + 100 * 1.5 / 4) / (n + 100))

    def gain(tf, length, average):
        return tf / (tf + 1.2 * (0.25 + 0.75 * length / average))

    expected = {
        "river bridge": bridge * (0.4 * gain(1, 2, 2) + 0.6 * gain(1, 2, 3)),
        "mill mill mill": mill * (0.4 * gain(3, 3, 2) + 0.6 * gain(3, 4, 3)) + bridge * 0.6 * gain(1, 4, 3),
        "bridge": bridge * (0.4 * gain(1, 1, 2) + 0.6 * gain(1, 4, 3)) + mill * 0.6 * gain(3, 4, 3),
    }
    hits = find(snapshot, "bridge mill", variety=0)
    assert {hit.node.text: hit.score for hit in hits} == {
        text: pytest.approx(score / (bridge + mill), abs=1e-9) for text, score in expected.items()
    }


def test_words_of_the_headings_count_for_what_stands_below_them(snapshot_of):
    snapshot = snapshot_of(
        (
            "a.md",
            "t",
            ("heading", 1, "Bridges"),
            "Built in stone.",
            ("heading", 1, "Mills"),
            "Built in wood.",
        ),
    )
    assert texts(find(snapshot, "when were the bridges built", 1)) == ["Built in stone."]
    assert texts(find(snapshot, "when were the mills built", 1)) == ["Built in wood."]
    assert texts(find(snapshot, "bridges", heading=1.0)) == ["Built in stone."]


def test_a_row_is_found_by_caption_row_header_and_column(snapshot_of):
    table = Table(("", "2021", "2022"), (("Toll income", "5", "7"), ("Wages", "3", "4")), caption="Accounts")
    snapshot = snapshot_of(("a.md", "t", table, "Wages were discussed at length in 1990."))
    assert texts(find(snapshot, "toll income in 2022", 1))[0].startswith("Accounts. Toll income:")


def test_the_page_around_a_passage_counts(snapshot_of):
    blocks = [("page", 1), "The weir.", "It opened.", ("page", 2), "The lock.", "It opened."]
    snapshot = snapshot_of(("a.pdf", "t", *blocks))
    opened = [hit for hit in find(snapshot, "when was the lock opened", 9) if hit.node.text == "It opened."]
    assert opened[0].node.page == 2
    assert opened[0].score > opened[-1].score


def test_the_named_document_comes_first_in_a_folder(snapshot_of):
    years = range(2015, 2023)
    snapshot = snapshot_of(
        *((f"ACORN_{year}.pdf", "", f"Sales were {year - 2000}.", "Birch is a rival.") for year in years),
        *((f"BIRCH_{year}.pdf", "", f"Sales were {year - 1900}.", "Acorn is a rival.") for year in years),
    )
    for question, text in (
        ("What were Acorn's sales in FY2021?", "Sales were 21."),
        ("What were Acorn's sales in FY18?", "Sales were 18."),
        ("What were the 2016 sales of Birch?", "Sales were 116."),
    ):
        assert texts(find(snapshot, question, 1)) == [text]


def test_within_one_document_the_order_is_that_of_the_folder(snapshot_of):
    snapshot = snapshot_of(
        ("ACORN_2022.pdf", "", "Acorn sold seed.", "Sales of seed were 6.", "Acorn has a store."),
        ("BIRCH_2022.pdf", "", "Birch sold wood.", "Sales were 7."),
    )
    acorn = next(d.key for d in snapshot.documents() if d.name.startswith("ACORN"))
    question = "What were Acorn's sales of seed?"
    within = ContextualSearch(snapshot).retrieve(Question(question, Scope(documents=frozenset([acorn]))), 9)
    pooled = [hit for hit in find(snapshot, question, 9) if hit.node.document == acorn]
    assert texts(within) == texts(pooled)


def test_a_text_that_repeats_comes_after_everything_else(snapshot_of):
    snapshot = snapshot_of(("a.txt", "t", "the bridge", "the bridge", "a long old bridge of stone and wood"))
    assert texts(find(snapshot, "bridge", 2)) == ["the bridge", "a long old bridge of stone and wood"]
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    assert [indices.tolist() for indices in split_repeats(snapshot, rows)] == [[0, 2], [1]]
    assert [indices.tolist() for indices in split_repeats(snapshot, rows[:0])] == [[], []]


def test_hits_are_chosen_to_cover_the_question_together(snapshot_of):
    snapshot = snapshot_of(
        ("a.txt", "", "river bridge stone"),
        ("b.txt", "", "river bridge wood"),
        ("c.txt", "", "the mill burnt down one night in spring"),
    )
    assert texts(find(snapshot, "river bridge mill", 3, variety=0))[2].startswith("the mill")
    assert texts(find(snapshot, "river bridge mill", 3, variety=0.9))[1].startswith("the mill")


def test_scores_never_rise_and_more_hits_do_not_change_the_first(snapshot_of):
    words = "river bridge mill stone wood gate".split()
    snapshot = snapshot_of(
        *((f"ACORN_{n}.txt", "", *(f"{words[n % 6]} {words[m]} {n}" for m in range(6))) for n in range(12))
    )
    from_few = find(snapshot, "Acorn river bridge gate 7", 10, candidates=15)
    many = find(snapshot, "Acorn river bridge gate 7", 40, candidates=15)
    scores = [hit.score for hit in many]
    assert scores == sorted(scores, reverse=True) and len(many) == 40
    assert len({hit.node.id for hit in many}) == 40
    assert [hit.node.id for hit in from_few] == [hit.node.id for hit in many[:10]]


def test_covering_by_hand():
    candidates = CoverageSelector(
        matched=np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.5]]),
        weights=np.array([2.0, 1.0]),
        prior=np.array([0.4, 0.4, 0.0]),
        lead=np.array([0.0, 0.0, 0.0]),
        documents=np.array([0, 0, 1]),
        meaning=SemanticGain(np.array([[0.0], [0.0], [0.5]], np.float32), np.ones(1, np.float32), weight=0.2),
    )
    order, gains = candidates.select(3, variety=1.0, fading=0.5)
    # First 2 + 0.4; then the word is covered: 0.5 + 0.1 against 0.4 / 2.
    assert (order.tolist(), gains.tolist()) == ([0, 2, 1], [2.4, 0.6, 0.2])
    order, gains = candidates.select(2, variety=0.0, fading=0.0)
    assert (order.tolist(), gains.tolist()) == ([0, 1], [2.4, 2.4])
    led = replace(candidates, lead=np.array([0.3, 0.3, 0.0]))
    # The lead does not fade: 0.3 + 0.2 of the second, 0.5 + 0.1 of the third.
    assert led.select(3, variety=1.0, fading=0.5)[1].tolist() == [2.7, 0.6, 0.5]


def test_what_is_missing_after_a_path_by_hand():
    candidates = CoverageSelector(
        matched=np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]),
        weights=np.array([2.0, 1.0]),
        prior=np.array([0.4, 0.4, 0.2]),
        lead=np.zeros(3),
        documents=np.array([0, 0, 1]),
        meaning=SemanticGain(
            np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32), np.array([0.6, 0.8], np.float32), weight=0.5
        ),
    )
    # Words: 2 * (1 - 0.5 * 1) = 1 and 1; the first document's worth 0.4 * 0.3; of the vector (0, 1) is left.
    expected = [1 + 0.12, 0.5 + 0.5 + 0.12 + 0.5, 1 + 0.2 + 0.5 * 0.8]
    assert np.allclose(candidates.gains_after([0], variety=0.5, fading=0.7), expected)
    # After both axes nothing of the vector is left.
    words = np.array([2 * 0.5 * 0.75, 1 * 0.75])
    prior = np.array([0.4 * 0.3**2] * 2 + [0.2])
    assert np.allclose(candidates.gains_after([0, 1], 0.5, 0.7), candidates.matched @ words + prior)
    # What is ahead of the path takes the place of what is left of the question.
    ahead = Lookahead(np.array([0.0, 1.0], np.float32), 3.0)
    expected = [1 + 0.12, 0.5 + 0.5 + 0.12 + 3, 1 + 0.2 + 3 * 0.8]
    assert np.allclose(candidates.gains_after([0], 0.5, 0.7, ahead), expected)
    # An empty path leaves the whole question.
    assert np.allclose(candidates.gains_after([], 0.5, 0.7)[2], 1 + 0.2 + 0.5)


def test_meaning_finds_what_shares_no_word(base, snapshot_of):
    class Synonyms(WordEncoder):
        def encode(self, texts, query=False):
            return super().encode([text.replace("span", "bridge") for text in texts])

    encoder = Synonyms("bridge", "mill")
    snapshot_of(("a.txt", "t", "the span"), ("b.txt", "t", "mill mill"), ("c.txt", "t", "bridge"))
    base.encode(encoder)
    snapshot = base.snapshot()
    assert texts(find(snapshot, "bridge", 9)) == ["bridge"]
    result = find(snapshot, "bridge", 9, encoder=encoder)
    assert texts(result) == ["bridge", "the span", "mill mill"]
    assert result[0].score > result[1].score > result[2].score


def test_cosines_that_lie_close_together_count_by_the_contrast_that_the_encoder_states(base, snapshot_of):
    snapshot_of(("a.txt", "t", "the span"), ("b.txt", "t", "mill mill old"))
    encoder = WordEncoder("span", "mill")
    base.encode(encoder)
    asked = "span old old old"  # by its words about the mill, by its vector rather about the span
    orders = []
    for encoder.contrast in (1.0, 10.0):
        orders.append(texts(find(base.snapshot(), asked, 9, encoder=encoder)))
    assert orders == [["mill mill old", "the span"], ["the span", "mill mill old"]]


def test_nothing_is_found_for_unknown_words_or_in_an_empty_base(base, snapshot_of):
    assert find(snapshot_of(), "bridge") == []
    assert find(snapshot_of(("a.txt", "t", "bridge")), "zebra") == []


def test_nothing_is_found_where_the_only_document_is_the_header_of_a_table(snapshot_of):
    snapshot = snapshot_of(("a.csv", "t", Table(("name", "year"), ())))
    assert len(snapshot.documents()) == 1
    assert find(snapshot, "name year") == find(snapshot, "zebra") == []


def test_a_search_stays_within_its_scope(snapshot_of):
    snapshot = snapshot_of(("ACORN.txt", "t", "bridge"), ("b.txt", "t", "bridge river"))
    for document in snapshot.documents():
        hits = ContextualSearch(snapshot).retrieve(
            Question("Acorn bridge", Scope(frozenset([document.key]))), 9
        )
        assert {hit.node.document for hit in hits} == {document.key}


def test_results_after_a_removal_are_those_of_a_base_that_never_held_the_document(tmp_path):
    remaining = [
        (f"ACORN_{year}.txt", "Report", f"Sales of {year} rose.", "The bridge.") for year in range(2015, 2021)
    ]
    gone = [
        (f"BIRCH_{year}.txt", "Report", f"Acorn sales of {year}.", "A mill.") for year in range(2015, 2021)
    ]
    result = []
    for name, order, removed in (
        ("one", gone[:3] + remaining[::-1] + gone[3:], gone),
        ("two", remaining, []),
    ):
        with Store.open(tmp_path / name, create=True) as base:
            for document in order:
                add(base, *document)
            base.catch_up()
            base.remove([f"/documents/{file}" for file, *_ in removed])
            base.catch_up()
            hits = find(base.snapshot(), "How did Acorn's sales develop in 2018?", 12)
            result.append([(hit.node.id, hit.score) for hit in hits])
    assert result[0] == result[1] and len(result[0]) > 5


def test_units_are_pages_or_sections(snapshot_of):
    table = Table(("", "2021"), (("Tolls", "5"),))
    snapshot = snapshot_of(
        ("a.pdf", "t", ("page", 1), "one", ("heading", 1, "H"), "two", ("page", 2), "three"),
        ("b.md", "t", "four", ("heading", 1, "H"), "five", table, ("heading", 1, "I"), "six"),
    )
    rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
    unit = dict(
        zip(texts_of(snapshot, rows), context_units(snapshot).unit_of_row[rows].tolist(), strict=True)
    )
    assert unit["one"] == unit["two"] != unit["three"]
    assert unit["five"] == unit["Tolls: 2021: 5"]
    assert len({unit[text] for text in ("one", "three", "four", "five", "six")}) == 5
    assert context_units(snapshot).lengths.sum() == snapshot.postings("text").lengths(rows).sum()


def test_what_stands_below_a_node_is_its_subtree(snapshot_of):
    snapshot = snapshot_of(
        ("a.md", "t", ("heading", 1, "A"), "one", ("heading", 2, "B"), "two", ("heading", 1, "C"), "three")
    )
    start, end = snapshot.document_rows(snapshot.documents()[0].key)
    names = {node.name: start + node.position for node in snapshot.nodes(np.arange(start, end)) if node.name}
    for name, expected in (
        ("t", {"one", "two", "three"}),
        ("A", {"one", "two"}),
        ("B", {"two"}),
        ("C", {"three"}),
    ):
        result = np.flatnonzero(mark_rows_below(snapshot, np.array([names[name]])))
        assert set(texts_of(snapshot, result)) == expected
    assert subtree_ends(snapshot)[start] == end


def texts_of(snapshot, rows):
    return [node.text for node in snapshot.nodes(rows)]
