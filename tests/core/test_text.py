import doctest
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from clew.core import text


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("The company's revenues", ["the", "compani", "revenu"]),
        ("$1,577 million", ["1577", "million"]),
        ("12,345,678.90 and 3.5%", ["12345678.90", "and", "3.5"]),
        ("FY2018", ["fy2018", "2018"]),
        ("fy18, Q4 2021, Q42021", ["fy18", "2018", "q4", "2021", "q42021", "2021"]),
        ("Ｆｕｌｌ ｗｉｄｔｈ", ["full", "width"]),
        ("東京都 2020", ["東京", "京都", "2020"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("", []),
    ],
)
def test_terms(given: str, expected: list[str]) -> None:
    assert text.index_terms(given) == expected


def test_query_terms_drop_function_words_unless_nothing_is_left() -> None:
    assert text.query_terms("What was the revenue of the mill?") == ["revenu", "mill"]
    assert text.query_terms("who was it") == ["who", "was", "it"]


def test_threads_that_stem_at_once_do_not_spoil_each_other() -> None:
    words = [
        "".join(parts)
        for parts in product("bcdfgklm", ("ation", "onal"), ("izing", "iveness", "fulli", "ously"))
    ]
    text.stem.cache_clear()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            stems = list(pool.map(text.stem, words * 8))
    finally:
        sys.setswitchinterval(interval)
    alone = snowballstemmer.stemmer("english")
    assert stems == [alone.stemWord(word) for word in words * 8]


def test_count_terms_counts_hashed_terms() -> None:
    counts = text.count_terms("river rivers bank")
    assert counts == {text.hash_term("river"): 2, text.hash_term("bank"): 1}
    assert all(0 <= key < 2**64 for key in counts)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        # A single letter before a full stop reads as an initial, so "3.5 m." ends nothing.
        ("Dr. Smith met J. Doe at 3.5 m. He left.", ["Dr. Smith met J. Doe at 3.5 m. He left."]),
        ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
        ("See No. 5, Fig. 3 and Sec. 4.", ["See No. 5, Fig. 3 and Sec. 4."]),
        ("Contract No. KV-4711 of 1934. It ends.", ["Contract No. KV-4711 of 1934.", "It ends."]),
        ("He said no. B2 was gone.", ["He said no.", "B2 was gone."]),
        ("これは文です。次の文。", ["これは文です。", "次の文。"]),
        ("  Padded.  Text goes on. lower  ", ["Padded.", "Text goes on. lower"]),
        ("", []),
        # Initials go on in a section of a law and within brackets.
        ("See 40 U.S.C. § 11103, if any. It ends.", ["See 40 U.S.C. § 11103, if any.", "It ends."]),
        ("See 5 C.F.R. 1320 now. (D.C. Code) Go.", ["See 5 C.F.R. 1320 now.", "(D.C. Code) Go."]),
        (
            "He left D.C. The city slept at 5 p.m. 20 woke.",
            ["He left D.C.", "The city slept at 5 p.m.", "20 woke."],
        ),
        # The number of an item begins its sentence, and does not end the one before it.
        ("1. Pay 5 marks.\n2. Leave by noon.", ["1. Pay 5 marks.", "2. Leave by noon."]),
        (
            "Pay 5 marks a day\n2. leave by noon\n3. Sweep.",
            ["Pay 5 marks a day", "2. leave by noon", "3. Sweep."],
        ),
        ("Rules:\n  a) pay; and\n  b) go.\n  (c) Stay", ["Rules:", "a) pay; and", "b) go.", "(c) Stay"]),
        (
            "It costs 7\niv. It sails. At 9.\n2.1 Dogs go free",
            ["It costs 7", "iv. It sails.", "At 9.", "2.1 Dogs go free"],
        ),
        ("1.2. Pay up. Now.\nXII) Go", ["1.2. Pay up.", "Now.", "XII) Go"]),
        (
            "It was built by\nJ. Doe and is\n3.5 metres long in\n1931. It",
            ["It was built by\nJ. Doe and is\n3.5 metres long in\n1931.", "It"],
        ),
    ],
)
def test_sentences(given: str, expected: list[str]) -> None:
    assert [given[start:end] for start, end in text.sentence_spans(given)] == expected


@pytest.mark.slow
@given(st.text(max_size=200))
def test_sentences_cover_all_that_is_not_white_space_in_order(given: str) -> None:
    spans = text.sentence_spans(given)
    assert all(a < b for a, b in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert "".join("".join(given[a:b].split()) for a, b in spans) == "".join(given.split())


def test_names_are_capitalised_spans_and_their_sub_spans() -> None:
    names = {
        name
        for name, _, _ in text.candidate_names(
            "Alf Clausen taught at the University of Ohio in 1989. The end"
        )
    }
    assert {"alf clausen", "university of ohio", "ohio", "1989"} <= names
    assert not any("end" in name or "taught" in name for name in names)
    assert "1989 the" not in names


def test_name_ranges_point_at_the_name() -> None:
    given = "the J. Smith Company of Ohio"
    assert all(
        text.normalise_name(given[start:end]) == name for name, start, end in text.candidate_names(given)
    )
    assert "j smith company" in {name for name, _, _ in text.candidate_names(given)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2WikiMultihopQA", "2WikiMultihopQA"),
        ("onnx:models/minilm", "onnx-models-minilm"),
        ("Zürich – Gründung (1931).tsv", "Zürich-Gründung-1931-.tsv"),
        ("../../.hidden", "hidden"),
        ("?!", ""),
    ],
)
def test_a_slug_is_one_part_of_a_path(name: str, expected: str) -> None:
    assert text.slugify(name) == expected and text.slugify(expected) == expected


def test_title_names_drop_article_possessive_and_disambiguation() -> None:
    assert text.title_names("The Godfather (1972 film)") == ["godfather 1972 film", "godfather"]
    assert text.normalise_name("Earth's Core") == "earth core"
    assert text.title_names("()") == []


@pytest.mark.parametrize(
    ("item", "other"),
    [
        ("Gert Fröbe", "gert  FROBE"),
        ("Gert Fro\u0308be", "Gert Fröbe"),
        ("Amélie (2001)", "amelie 2001"),
        ("Łódź", "lodz"),
        ("Straße", "STRASSE"),
        ("Spider-Man: Home_Coming", "spider man home coming"),
        ("ＡＢＣ", "abc"),
        ("Ærø", "aero"),
    ],
)
def test_names_that_fold_to_the_same(item: str, other: str) -> None:
    assert text.fold_name(item) == text.fold_name(other)


@pytest.mark.parametrize(("item", "other"), [("$", "9"), ("...", "!"), ("कि", "का"), ("The Kid", "Kid")])
def test_names_that_fold_differently(item: str, other: str) -> None:
    assert text.fold_name(item) != text.fold_name(other)
    assert text.fold_name(item)


def test_the_examples_of_the_docstrings() -> None:
    results = doctest.testmod(text)
    assert results.attempted > 5 and results.failed == 0
