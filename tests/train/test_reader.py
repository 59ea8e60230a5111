"""The reader's training: its examples, its targets, and, with torch, a small model that learns and resumes."""

import json
import random
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.core.types import ReaderPassage, Span, Table
from clew.models.encoders import embedded_folder, read_tokenizer
from clew.models.span_reader import SETTINGS_FILE, SpanReader, Tokens
from clew.train.reader import (
    RECORD,
    ReaderSettings,
    count_steps,
    epoch_batches,
    fit_calibration,
    measure_answers,
    pad_batch,
    target_windows,
    train_reader,
)
from clew.train.reading_data import collect_examples
from clew.train.reading_examples import (
    Place,
    ReadingExample,
    answer_places,
    attribute_examples,
    cell_examples,
    lengthen_contexts,
    marked_examples,
    tatqa_examples,
    unanswerable_examples,
    verdict_examples,
)

needs_torch = pytest.mark.skipif(
    any(find_spec(package) is None for package in ("torch", "transformers", "onnx")),
    reason="needs the extra 'train'",
)


def records(count):
    for number in range(count):
        context = f"The weir of Dunmere {number} was built in {1800 + number} by Ada Pell of Corran."
        start = context.index(str(1800 + number))
        yield {
            "source": "qamr", "question": f"When was the weir of Dunmere {number} built?", "title": "",
            "context": context, "start": start, "end": start + 4,
        }  # fmt: skip


@pytest.fixture
def reading(tmp_path):
    path = tmp_path / "reading.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records(40)))
    return path


def marked_text(example):
    return {
        (example.passages[place.passage].title if place.in_title else example.passages[place.passage].text)[
            place.start : place.end
        ]
        for place in example.places
    }


def test_marked_questions_keep_their_answer_through_longer_contexts(reading):
    examples = list(marked_examples(reading))
    others = [f"A quiet sentence about harbour {number}." for number in range(30)]
    longer = list(lengthen_contexts(examples, 1.0, others, random.Random(0)))
    assert len(longer) == 40
    assert {len(example.passages) for example in longer} >= {1, 3}
    for example, changed in zip(examples, longer, strict=True):
        assert marked_text(changed) == marked_text(example) == set(example.answers)
    assert list(lengthen_contexts(examples, 1.0, others, random.Random(0))) == longer


@pytest.mark.parametrize(
    "record",
    [
        {"source": "x", "question": "Q", "context": "abc"},
        {"source": "x", "question": "Q", "context": "abc", "start": 9, "end": 12},
        {"source": "x", "question": "Q", "context": "abc", "start": "one", "end": 2},
    ],
)
def test_bad_records_are_named_by_their_line(tmp_path, record):
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"bad\.jsonl:1"):
        list(marked_examples(path))


def test_unanswerable_examples_do_not_hold_the_answer(reading):
    examples = list(marked_examples(reading))
    negatives = list(unanswerable_examples(examples, 1.0, random.Random(1)))
    assert len(negatives) > 20
    answers = {example.question: example.answers[0] for example in examples}
    for negative in negatives:
        assert not negative.places and not negative.answers
        if (answer := answers.get(negative.question)) is not None:
            assert not any(answer in passage.text for passage in negative.passages)


def test_cells_are_asked_for_by_row_and_column():
    rows = tuple((f"Boat {n}", str(100 + n), str(200 + n)) for n in range(12))
    table = Table(("Name", "2021", "2022"), rows, "Passengers")
    examples = list(cell_examples(table, "Report", 24, random.Random(2)))
    cells = {
        (row[0].lower(), year): row[column] for row in rows for column, year in ((1, "2021"), (2, "2022"))
    }
    answered = [example for example in examples if example.places]
    assert len(answered) > 8
    for example in answered:
        row = next(
            name for name, _ in cells if f"{name} " in f"{example.question.lower()} ".replace("?", " ")
        )
        year = next(year for year in ("2021", "2022") if year in example.question)
        assert marked_text(example) == {cells[row, year]}
    assert any(example.verdict for example in examples) or len(examples) > len(answered)


def test_attributes_and_verdicts_are_made_of_first_sentences():
    passages = [
        ReaderPassage(
            f"Ada Pell {n}",
            f"Ada Pell {n} ( born {n} May 1970 in Corran ) is an English engineer . She rows .",
        )
        for n in range(1, 28)
    ]
    examples = list(attribute_examples(passages, random.Random(3)))
    births = [example for example in examples if "born" in example.question and example.places]
    assert births
    assert all("1970" in text or text == "Corran" for example in births for text in marked_text(example))
    verdicts = list(verdict_examples(passages, 1.0, random.Random(3)))
    assert {example.verdict for example in verdicts} <= {"yes", "no"}


def test_spans_of_tatqa_are_located_and_sums_are_left_out():
    context = {
        "table": {"table": [["", "2019", "2018"], ["Sales", "$44", "$56"], ["Costs", "12", "13"]]},
        "paragraphs": [{"text": "Sales fell because of the weather."}],
        "questions": [
            {"question": "What were sales in 2019?", "answer": ["$44"], "answer_type": "span",
             "answer_from": "table"},
            {"question": "Why did sales fall?", "answer": ["because of the weather"], "answer_type": "span",
             "answer_from": "text"},
            {"question": "By how much?", "answer": -12, "answer_type": "arithmetic", "answer_from": "table"},
        ],
    }  # fmt: skip
    examples = list(tatqa_examples(context, random.Random(0)))
    assert {example.question for example in examples} == {"What were sales in 2019?", "Why did sales fall?"}
    assert {text for example in examples for text in marked_text(example)} == {
        "$44",
        "because of the weather",
    }


@pytest.fixture(scope="module")
def tokens():
    return Tokens(read_tokenizer(embedded_folder("reader", SETTINGS_FILE) / "tokenizer.json"))


def test_targets_are_the_tokens_of_all_places(tokens):
    passages = (ReaderPassage("Ada Pell", "Ada Pell met Bo Lind in Corran. Bo Lind left."),)
    example = ReadingExample("Who left?", passages, tuple(answer_places(passages, ["Bo Lind"])))
    (window,) = target_windows(tokens, example, 320)
    texts = [
        tokens.tokenizer.decode(window.window.ids[start : end + 1].tolist())
        for start, end in zip(window.starts, window.ends, strict=True)
    ]
    assert texts == ["bo lind", "bo lind"]
    (yes,) = target_windows(tokens, ReadingExample("Did he?", passages, (), "yes"), 320)
    assert tokens.tokenizer.decode([int(yes.window.ids[yes.starts[0]])]) == "yes"
    (none,) = target_windows(tokens, ReadingExample("Why?", passages), 320)
    assert (none.starts, none.ends) == ((0,), (0,))


def test_batches_hold_every_window_once_and_the_count_of_steps_is_theirs(tokens):
    passages = [ReaderPassage("", "word " * length) for length in range(1, 131)]
    windows = [
        window
        for passage in passages
        for window in target_windows(tokens, ReadingExample("Q?", (passage,)), 96)
    ]
    settings = ReaderSettings(batch=2)
    batches = epoch_batches(windows, 2, random.Random(0))
    assert sorted(id(window) for batch in batches for window in batch) == sorted(map(id, windows))
    assert len(batches) == count_steps(windows, settings)
    arrays = pad_batch(batches[0])
    assert arrays["input_ids"].shape == arrays["starts"].shape
    assert arrays["starts"].any(axis=1).all()


def test_calibration_orders_and_estimates_probabilities():
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=4, size=2000)
    right = rng.random(2000) < 1 / (1 + np.exp(-(0.5 * scores - 1)))
    spans = [[Span("x", "text", 0, 0, 1, float(score))] for score in scores]
    slope, intercept = fit_calibration(spans, right.tolist())
    assert slope == pytest.approx(0.5, abs=0.06)
    assert intercept == pytest.approx(-1, abs=0.2)


def test_measures_count_answers_and_refusals():
    passages = (ReaderPassage("", "Ada Pell left."),)
    examples = [
        ReadingExample("Who left?", passages, (Place(0, 0, 8),), "", ("Ada Pell",), "a"),
        ReadingExample("Who stayed?", passages, (), "", (), "a"),
        ReadingExample("Did she?", passages, (), "yes", (), "b"),
    ]
    spans = [
        [Span("Pell", "text", 0, 4, 8, 2.0)],
        [Span("Ada", "text", 0, 0, 3, -1.0)],
        [Span("yes", "yes", -1, 0, 0, 1)],
    ]
    measures = measure_answers(examples, spans)
    assert measures["a"]["EM"] == 0 and measures["a"]["F1"] == pytest.approx(2 / 3, abs=1e-3)
    assert measures["a"]["refused"] == 1 and measures["b"]["EM"] == 1 and measures["all"]["questions"] == 2


def test_data_sets_are_mixed_reproducibly_and_wrong_names_refused(reading):
    first = collect_examples([f"reading={reading}"], 0.0, 0)
    assert first.training == collect_examples([f"reading={reading}"], 0.0, 0).training
    assert 40 < len(first.training) <= 60
    assert first.origin["data"][0]["name"] == "reading"
    with pytest.raises(UsageError, match="data set for readers"):
        collect_examples([f"squad={reading}"], 0.0, 0)
    with pytest.raises(UsageError, match="no file"):
        collect_examples(["reading=nowhere.jsonl"], 0.0, 0)


def save_small_encoder(folder):
    """Save a random encoder of two narrow layers with the reader's tokenizer; return its folder."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=30522, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=320,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    file = embedded_folder("reader", SETTINGS_FILE) / "tokenizer.json"
    PreTrainedTokenizerFast(tokenizer_file=str(file)).save_pretrained(folder)
    return folder


@needs_torch
@pytest.mark.slow
def test_a_command_that_is_killed_and_repeated_gives_the_same_weights(reading, tmp_path):
    source = save_small_encoder(tmp_path / "bert")

    def command(name):
        options = {
            "--data": f"reading={reading}", "--model": source, "--out": tmp_path / name, "--batch": 4,
            "--epochs": 12, "--save-every": 2, "--max-tokens": 128, "--learning-rate": 0.002,
        }  # fmt: skip
        words = [str(word) for pair in options.items() for word in pair]
        return [sys.executable, "-W", "ignore", "-m", "clew", "train", "reader", *words]

    subprocess.run(command("whole"), check=True, capture_output=True)
    killed = subprocess.Popen(command("halves"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (tmp_path / "halves" / "state.pt").is_file() and time.monotonic() < deadline:
        time.sleep(0.005)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    assert "after" not in json.loads((tmp_path / "halves" / RECORD).read_text())
    repeated = subprocess.run(command("halves"), check=True, capture_output=True, text=True)
    assert "continued after step" in repeated.stderr
    models = [(tmp_path / name / "onnx" / "model.onnx").read_bytes() for name in ("whole", "halves")]
    assert models[0] == models[1]


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_a_training_that_is_stopped_and_resumed_gives_the_same_weights(reading, tmp_path):
    source = save_small_encoder(tmp_path / "bert")
    settings = ReaderSettings(batch=4, epochs=2, save_every=2, max_tokens=128, learning_rate=2e-3)
    data = collect_examples([f"reading={reading}"], 0.0, 0)

    class Stop(Exception):
        pass

    def stop_at(limit):
        def progress(done, _total):
            if done == limit:
                raise Stop

        return progress

    plans = []
    train_reader(data, str(source), settings, tmp_path / "whole", plans.append, stop_at(0))
    with pytest.raises(Stop):
        train_reader(data, str(source), settings, tmp_path / "halves", plans.append, stop_at(7))
    train_reader(data, str(source), settings, tmp_path / "halves", plans.append, stop_at(0))
    assert [plan.done for plan in plans] == [0, 0, 6]
    models = [(tmp_path / name / "onnx" / "model.onnx").read_bytes() for name in ("whole", "halves")]
    assert models[0] == models[1]
    assert json.loads((tmp_path / "halves" / RECORD).read_text())["examples"] == len(data.training)
    exported = SpanReader(tmp_path / "whole" / "onnx")
    assert exported.read("When?", [[ReaderPassage("", "It was built in 1871.")]])[0]
    with pytest.raises(UsageError, match="another"):
        train_reader(data, str(source), ReaderSettings(batch=8), tmp_path / "whole", plans.append, stop_at(0))


def write_lines(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def sets(tmp_path):
    """Small files in the forms of all data sets that a reader is trained on."""

    def paragraph(name, text):
        return [name, [text]]

    hops = [
        {
            "_id": f"q{n}", "question": f"When was the director of Red Dust {n} born?", "answer": f"19{10 + n}",
            "type": "compositional",
            "context": [
                paragraph(f"Red Dust {n}", f"Red Dust {n} is a film by Ada Pell {n}."),
                paragraph(f"Ada Pell {n}", f"Ada Pell {n} was born in 19{10 + n}."),
                *(paragraph(f"Weir {n} {m}", f"Weir {n} {m} is a weir on the river.") for m in range(5)),
            ],
            "supporting_facts": [[f"Red Dust {n}", 0], [f"Ada Pell {n}", 0]],
            "evidences": [
                [f"Red Dust {n}", "director", f"Ada Pell {n}"], [f"Ada Pell {n}", "date of birth", f"19{10 + n}"]
            ],
        }
        for n in range(10)
    ]  # fmt: skip
    hops.append(hops[0] | {"_id": "polar", "question": "Are both films?", "answer": "yes", "evidences": []})
    context = {
        "table": {
            "table": [["", "2019", "2018"], ["Sales", "$44", "$56"], ["Costs", "12", "13"], ["Tax", "3", "4"]]
        },
        "paragraphs": [{"text": "Sales fell because of the weather."}],
        "questions": [
            {
                "question": "What were sales in 2019?",
                "answer": ["$44"],
                "answer_type": "span",
                "answer_from": "table",
            }
        ],
    }
    tables = [
        {
            "title": "Boats", "header": [["Name", []], ["Built", []], ["Length", []]],
            "data": [[[f"Boat {n}", []], [str(1900 + n), []], [f"{n} ft", []]] for n in range(9)],
        }
    ]  # fmt: skip
    passages = [
        {
            "link": f"/wiki/Ada_Pell_{n}",
            "text": f"Ada Pell {n} ( born {n} May 1970 in Corran ) is an English engineer .",
        }
        for n in range(1, 20)
    ]
    (tmp_path / "tatqa.json").write_text(json.dumps([context] * 5))
    return [
        f"2wikimultihopqa={write_lines(tmp_path / 'hops.jsonl', hops)}",
        f"tatqa={tmp_path / 'tatqa.json'}",
        f"tables={write_lines(tmp_path / 'tables.jsonl', tables)}",
        f"passages={write_lines(tmp_path / 'passages.jsonl', passages)}",
    ]


def test_every_data_set_gives_examples_whose_answers_stand_where_they_say(sets):
    data = collect_examples(sets, 0.2, 0)
    by_source = {}
    for example in data.training:
        by_source.setdefault(example.source, []).append(example)
        for text in marked_text(example):
            assert any(answer.casefold() == text.casefold() for answer in example.answers), example
    assert by_source.keys() >= {"multihop", "tatqa", "cells", "attributes"}
    single = [
        example for example in by_source["multihop"] if example.question.startswith("Who directed Red Dust")
    ]
    assert any(marked_text(example) for example in single)
    assert any(not example.places and not example.verdict for example in by_source["multihop"])
    assert {example.source for example in data.held_out} <= {"2wikimultihopqa: compositional", "tatqa: table"}
    assert len(data.held_out) == data.origin["held_out"] == 3
    held_out = {example.question for example in data.held_out if example.source.startswith("2wiki")}
    assert not held_out & {example.question for example in data.training}


@pytest.mark.parametrize(
    "command",
    [
        ["train", "reader", "--model", "m", "--out", "OUT"],
        ["train", "encoder", "--model", "m", "--out", "OUT", "--data"],
        ["train", "traverser", "--model", "m", "--out", "OUT", "--data"],
        ["encoder", "export", "m", "OUT"],
    ],
)
def test_without_the_extra_training_says_what_to_install(tmp_path, sets, command):
    from typer.testing import CliRunner

    from clew.app.cli.commands import app

    if find_spec("torch") is not None:
        pytest.skip("torch is installed")
    arguments = [str(tmp_path / "out") if argument == "OUT" else argument for argument in command]
    if command[1] == "reader":
        arguments += [part for name in sets for part in ("--data", name)]
    elif command[0] == "train":
        arguments.append(sets[0])
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 0
    assert "torch" in str(result.exception) + result.output
    assert not (tmp_path / "out").exists()
