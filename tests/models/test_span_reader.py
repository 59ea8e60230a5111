"""The trained reader: its windows, its spans, its files, and what the one that comes with clew reads."""

import json
import shutil
from itertools import pairwise

import numpy as np
import pytest

from clew.core.errors import ModelError, NotFound, UsageError
from clew.core.types import ReaderPassage
from clew.models.encoders import embedded_folder, read_tokenizer
from clew.models.span_reader import (
    MAX_SPAN,
    SETTINGS_FILE,
    SpanReader,
    Tokens,
    best_spans,
    build_windows,
    create_span_reader,
    verdict_positions,
    widen_to_words,
)
from clew.questions.sentences import stand_alone

FOLDER = embedded_folder("reader", SETTINGS_FILE)


@pytest.fixture(scope="module")
def tokens():
    return Tokens(read_tokenizer(FOLDER / "tokenizer.json"))


@pytest.fixture(scope="module")
def reader():
    return create_span_reader("clew:reader")


LIGHTHOUSE = ReaderPassage("Dunmere lighthouse", "It was designed by Harriet Vane in 1871 and lit in 1874.")
VANE = ReaderPassage("Harriet Vane", "Harriet Vane was an engineer, born in Corran in 1838.")


def text_of(tokens, window):
    return tokens.tokenizer.decode(window.ids.tolist(), skip_special_tokens=False)


def test_a_window_holds_question_verdicts_titles_and_texts(tokens):
    (window,) = build_windows(tokens, "Who designed it?", [LIGHTHOUSE, VANE], 320)
    assert text_of(tokens, window) == (
        "[CLS] who designed it? [SEP] yes no [SEP] dunmere lighthouse : it was designed by harriet vane in 1871 and "
        "lit in 1874. [SEP] harriet vane : harriet vane was an engineer, born in corran in 1838. [SEP]"
    )
    yes, no = verdict_positions(window)
    assert tokens.tokenizer.decode([int(window.ids[yes]), int(window.ids[no])]) == "yes no"


def test_places_lead_back_to_the_characters_of_titles_and_texts(tokens):
    (window,) = build_windows(tokens, "Who?", [LIGHTHOUSE, VANE], 320)
    words = {
        (passage, bool(title), (LIGHTHOUSE, VANE)[passage].title[start:end])
        if title
        else (passage, bool(title), (LIGHTHOUSE, VANE)[passage].text[start:end])
        for (passage, start, end), title in zip(window.places.tolist(), window.in_title, strict=True)
        if passage >= 0
    }
    assert {(0, True, "lighthouse"), (0, False, "1871"), (1, True, "Vane"), (1, False, "engineer")} <= words
    assert not any(window.answers[: verdict_positions(window)[1] + 2])


def test_a_long_passage_is_cut_into_parts_that_overlap(tokens):
    words = [f"word{number}" for number in range(300)]
    windows = build_windows(tokens, "Which?", [ReaderPassage("Long", " ".join(words))], 128)
    assert len(windows) > 5
    assert all(len(window.ids) <= 128 for window in windows)
    covered = [set(window.places[window.answers & ~window.in_title][:, 1].tolist()) for window in windows]
    assert set().union(*covered) >= set(range(0, len("word0 "), 6))
    assert all(first & second for first, second in pairwise(covered))
    last = max(window.places[:, 2].max() for window in windows)
    assert last == len(" ".join(words))


def test_passages_are_packed_whole_into_as_few_windows_as_they_fill(tokens):
    passages = [ReaderPassage(f"Title {n}", "Some words about nothing at all. " * 4) for n in range(9)]
    windows = build_windows(tokens, "What?", passages, 160)
    held = [sorted(set(window.places[window.answers][:, 0].tolist())) for window in windows]
    assert [passage for group in held for passage in group] == list(range(9))
    assert all(len(window.ids) <= 160 for window in windows)


@pytest.mark.slow
def test_spans_are_compared_with_no_answer_and_stay_in_one_passage(tokens):
    (window,) = build_windows(tokens, "Who?", [LIGHTHOUSE, VANE], 320)
    rng = np.random.default_rng(0)
    for _ in range(50):
        start, end = rng.normal(size=(2, len(window.ids)))
        spans = best_spans(window, start, end, [LIGHTHOUSE, VANE], 10)
        assert [span.score for span in spans] == sorted((span.score for span in spans), reverse=True)
        for span in spans:
            if span.kind in {"yes", "no"}:
                continue
            passage = (LIGHTHOUSE, VANE)[span.passage]
            source = passage.title if span.kind == "title" else passage.text
            assert span.text == source[span.start : span.end] != ""
        # The brute force: all starts and ends of one field.
        best = max(
            start[i] + end[j]
            for i in range(len(start))
            for j in range(i, min(i + MAX_SPAN, len(start)))
            if window.answers[i]
            and window.answers[j]
            and window.places[i, 0] == window.places[j, 0]
            and window.in_title[i] == window.in_title[j]
        )
        in_passages = [span.score for span in spans if span.passage >= 0]
        assert max(in_passages) <= best - start[0] - end[0] + 1e-9


def test_the_shipped_reader_reads_refuses_and_says_yes_or_no(reader):
    answers = reader.read("Who designed the Dunmere lighthouse?", [[LIGHTHOUSE, VANE]])[0]
    assert answers[0].text == "Harriet Vane"
    assert answers[0].passage == 0
    row = ReaderPassage(
        "Annual report", "Warehouses: Canada: 2022: 105; 2021: 105\nWarehouses: Total: 2022: 838; 2021: 815"
    )
    assert reader.read("What was the total of warehouses in 2021?", [[row]])[0][0].text == "815"
    refused = reader.read("What is the capital of Mongolia?", [[LIGHTHOUSE, VANE]])[0][0]
    assert refused.score < answers[0].score
    assert reader.confidence(refused.score) < 0.25 < reader.confidence(answers[0].score)


def test_options_that_are_read_alone_do_not_touch_each_other(reader):
    question = "How long is the lock open at night?"
    option = stand_alone("Rules", "The lock is lit. It is open for two hours at night.", 17, 51)
    other = stand_alone("Rules", "The weir has a gate.", 0, 20)
    first, second = reader.read_alone(question, [option, other])
    assert reader.read_alone(question, [other, option]) == [second, first] and first > 0 > second
    passage, start, end = option
    assert passage.text[start:end] == "It is open for two hours at night."
    assert reader.read_options(question, [passage], [(0, start, end)])[1] == [first]


def test_contexts_are_read_apart_and_in_order(reader):
    together = reader.read("When was it lit?", [[LIGHTHOUSE], [VANE]], limit=3)
    alone = [reader.read("When was it lit?", [[passage]], limit=3)[0] for passage in (LIGHTHOUSE, VANE)]
    assert together == alone
    assert reader.read("When?", [[]]) == [[]]


def test_a_reader_has_a_name_with_the_hash_of_its_files(reader, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "copy")
    assert create_span_reader(f"onnx:{tmp_path / 'copy'}").name == reader.name
    settings = json.loads((tmp_path / "copy" / SETTINGS_FILE).read_text())
    (tmp_path / "copy" / SETTINGS_FILE).write_text(json.dumps(settings | {"calibration": [1, 0]}))
    assert SpanReader(tmp_path / "copy").name != reader.name


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("model.onnx", b"nonsense"),
        ("tokenizer.json", b"{}"),
        (SETTINGS_FILE, b"{"),
        (SETTINGS_FILE, b'{"format": 2}'),
        (SETTINGS_FILE, b'{"format": 1, "name": "x", "max_tokens": 320, "calibration": [-1, 0]}'),
        (SETTINGS_FILE, b'{"format": 1, "name": "x", "max_tokens": 3, "calibration": [1, 0]}'),
    ],
)
def test_damaged_files_are_errors(tmp_path, file, content):
    shutil.copytree(FOLDER, tmp_path / "damaged")
    (tmp_path / "damaged" / file).write_bytes(content)
    with pytest.raises(ModelError, match="damaged"):
        SpanReader(tmp_path / "damaged").read("Who?", [[VANE]])


def test_unknown_names_are_errors(tmp_path):
    with pytest.raises(UsageError, match="reader that comes with clew"):
        create_span_reader("clew:hops")
    with pytest.raises(UsageError, match="no reader"):
        create_span_reader("reader")
    with pytest.raises(NotFound, match=r"model\.onnx missing"):
        create_span_reader(f"onnx:{tmp_path}")


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("opened by Ines Calder in 1902", "es", "Ines"),
        ("opened by Ines Calder in 1902", "Calder", "Calder"),
        ("a contorted face", "contort", "contorted"),
        ("Paris", "ari", "Paris"),
        ("It cost $1,024.50.", "$1,024.50", "$1,024.50"),
        ("It cost $1,024.50.", "024", "1,024.50"),
        ("Built in 1912, it sank", "1912", "1912"),
        ("Flood (1928.11) is large", "1928", "1928.11"),
        ("東京都の人口", "人口", "人口"),
    ],
)
def test_a_span_has_whole_words(text, part, whole):
    start = text.index(part)
    first, last = widen_to_words(text, start, start + len(part))
    assert text[first:last] == whole
