"""The reader's training: its examples, its targets, and, with torch, a small model that learns and resumes."""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from clew.core.errors import ModelError, UsageError
from clew.core.types import ReaderPassage, Span, Table
from clew.evaluate.examples import Example, Paragraph, Support
from clew.models.encoders import embedded_folder, read_tokenizer
from clew.models.span_reader import SETTINGS_FILE, SpanReader, Tokens
from clew.questions.sentences import stand_alone
from clew.train.reader import (
    RECORD,
    ReaderSettings,
    count_steps,
    epoch_batches,
    fit_calibration,
    measure_answers,
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
from clew.train.sentence_questions import (
    answered_question,
    document_titles,
    multihop_question,
    read_polar,
    read_written,
)
from clew.train.sentence_reader import DRAWN_ALONE, MOST_RIGHT, SentenceSettings, draw_alone
from clew.train.target_windows import pad_batch, target_windows

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
        def progress(_stage, done, _total):
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


WRITTEN = {
    "question": "How long is the lock open at night?", "kind": "fact", "polar": None,
    "passages": [
        {"title": "Rules > Locks > Night", "text": "The lock is lit.\nIt is open for two hours at night. Then shut."},
        {"title": "Rules", "text": "The weir has:\n- a gate\n- a rope\n- a bell"},
    ],
    "answers": [{"passage": 0, "text": "It is open for two hours at night."}],
    "value": {"passage": 0, "text": "two hours"},
}  # fmt: skip
BELL = {
    "question": "What does the weir have?", "kind": "list", "polar": None, "passages": WRITTEN["passages"],
    "value": None, "answers": [{"passage": 1, "text": text} for text in ("a gate", "a rope", "a bell")],
}  # fmt: skip
NOBODY = {
    "question": "Who paints the lock?", "kind": "none-close", "polar": None, "passages": WRITTEN["passages"],
    "value": None, "answers": [],
}  # fmt: skip
PAIR = {
    "title": "Rules > Locks",
    "document": "Rules",
    "before": "The lock is old.",
    "sentence": "Swimming is not allowed.",
}


def right_texts(question):
    passages = question.example.passages
    return [passages[each.passage].text[each.start : each.end] for each in question.options if each.right]


def test_written_questions_have_the_sentences_and_lists_that_answer(tmp_path):
    file = write_lines(tmp_path / "rules.jsonl", [WRITTEN, BELL, NOBODY, WRITTEN | {"answers": []}])
    fact, items, nobody = read_written(file)
    assert right_texts(fact) == ["It is open for two hours at night."] and fact.is_marked
    assert fact.example.passages[0].title == "Rules, Night"
    place = fact.example.places[0]
    assert fact.example.passages[0].text[place.start : place.end] == "two hours"
    assert right_texts(items) == ["- a gate", "- a rope", "- a bell", WRITTEN["passages"][1]["text"]]
    assert not items.is_marked and nobody.is_marked and not nobody.golds
    # Without the passage that answers, nothing does.
    other = fact.choose([1])
    assert other.is_marked and not other.golds and not other.example.places


def test_a_document_with_questions_is_read_as_questions_over_its_sections(tmp_path):
    sections = [
        {"title": "Night", "text": WRITTEN["passages"][0]["text"]},
        {"title": "Weir", "text": "It has a bell."},
    ]
    answers = [{"section": 0, "text": "It is open for two hours at night."}]
    asked = {"question": "How long?", "kind": "fact", "polar": None, "answers": answers, "value": None}
    bell = asked | {"answers": [], "kind": "none-close"}
    file = write_lines(
        tmp_path / "rules.jsonl", [{"document": "Rules", "sections": sections, "questions": [asked, bell]}]
    )
    fact, none = read_written(file)
    assert right_texts(fact) == ["It is open for two hours at night."] and right_texts(none) == []
    assert [passage.title for passage in none.example.passages] == ["Rules, Night", "Rules, Weir"]
    assert document_titles(file) == {"Rules"}


def test_questions_of_yes_or_no_have_their_sentence_among_others_of_the_document(tmp_path):
    rows = [
        PAIR | {"question": "May I swim?", "polar": "no"},
        PAIR | {"question": "May I fish?", "polar": "neither", "sentence": "Fishing needs a card."},
        PAIR | {"question": "Is it warm?", "polar": "yes", "title": "Other"},
    ]
    file = write_lines(tmp_path / "pairs.jsonl", rows)
    swim, fish = read_polar(file, {"Other"})
    assert right_texts(swim) == ["Swimming is not allowed."] and swim.example.verdict == "no"
    assert len(swim.example.passages) == 2
    assert right_texts(fish) == [] and fish.example.verdict == "" and fish.is_marked


def test_supporting_sentences_and_those_around_an_answer_are_right():
    corpus = (
        Paragraph("Olm", ("Olm lies on the Arde.", "It has a mill.")),
        Paragraph("Arde", ("The Arde is long.", "It ends in the Nor Sea.")),
    )
    support = (Support("Olm", 0), Support("Arde", 1))
    example = Example("1", "Where does the river of Olm end?", ("Nor Sea",), support=support, corpus=corpus)
    question = multihop_question(example)
    assert right_texts(question) == ["It ends in the Nor Sea."] and question.needed == {0, 1}
    nowhere = multihop_question(replace(example, answers=("Peru",)))
    assert right_texts(nowhere) == ["Olm lies on the Arde.", "It ends in the Nor Sea."]
    passages = (ReaderPassage("", "It is old. It was built in 1871."),)
    marked = ReadingExample("When?", passages, (Place(0, 27, 31),), "", ("1871",), "qamr")
    assert right_texts(answered_question(marked)) == ["It was built in 1871."]


def test_those_that_answer_and_the_likeliest_others_are_read_alone(tmp_path):
    tokens = Tokens(read_tokenizer(embedded_folder("reader", SETTINGS_FILE) / "tokenizer.json"))
    (question,) = read_written(write_lines(tmp_path / "rules.jsonl", [BELL]))
    scores = {option: -number / 10 for number, option in enumerate(question.options)}
    drawn = list(draw_alone(tokens, question, 3, scores, 128, random.Random(1)))
    chosen = [option for window in drawn for option in window.options]
    assert sum(option.right for option in chosen) == MOST_RIGHT < sum(option.right for option in scores)
    others = [option for option in scores if not option.right]
    assert [option for option in chosen if not option.right] == others[: DRAWN_ALONE - MOST_RIGHT]
    for window, option in zip(drawn, chosen, strict=True):
        text = question.example.passages[option.passage].text[option.start : option.end]
        (inside,) = window.tokens
        starts, ends = window.window.places[inside, 1], window.window.places[inside, 2]
        read = question.example.passages[option.passage].text[: option.start].split() + text.split()
        assert " ".join(read)[starts.min() : ends.max()] == " ".join(text.split()) and window.place == 3


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_which_sentences_answer_is_learned_after_the_words_and_goes_on_after_a_stop(reading, tmp_path):
    source = save_small_encoder(tmp_path / "bert")
    written = write_lines(tmp_path / "rules.jsonl", [WRITTEN, BELL, NOBODY] * 4)
    pairs = write_lines(tmp_path / "pairs.jsonl", [PAIR | {"question": "May I swim?", "polar": "no"}] * 4)
    data = collect_examples([f"reading={reading}", f"written={written}", f"polar={pairs}"], 0.0, 0)
    further = SentenceSettings(
        steps=24, batch=4, learning_rate=2e-3, head_rate=1e-2, max_tokens=128, save_every=8
    )
    settings = ReaderSettings(batch=8, max_tokens=128, further=further)
    before = ReaderSettings(batch=8, max_tokens=128)
    words = replace(data, questions=())
    train_reader(words, str(source), before, tmp_path / "words", lambda plan: None, lambda *told: None)
    stages = []

    def stop(stage, done, _total):
        stages.append(stage)
        if stage == "sentences" and done == 12:
            raise KeyboardInterrupt

    def train(folder, progress, start=None):
        train_reader(data, str(source), settings, folder, lambda plan: None, progress, start)
        return (folder / "onnx" / "model.onnx").read_bytes()

    whole = train(tmp_path / "whole", lambda *told: None)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "halves", stop)
    assert set(stages) == {"words", "sentences"}
    assert train(tmp_path / "halves", lambda *told: None) == whole
    # From a reader that was exported before, only the sentences are learned.
    stages.clear()
    train(tmp_path / "from", lambda stage, *told: stages.append(stage), tmp_path / "words" / "onnx")
    assert set(stages) == {"sentences"}
    passages = [ReaderPassage("Rules, Night", WRITTEN["passages"][0]["text"])]
    options = [(0, 0, 16), (0, 17, 51), (0, 52, 62)]
    _, scores = SpanReader(tmp_path / "whole" / "onnx").read_options(WRITTEN["question"], passages, options)
    assert max(scores) == scores[1]
    alone = SpanReader(tmp_path / "whole" / "onnx").read_alone(
        WRITTEN["question"],
        [stand_alone("Rules, Night", passages[0].text, *option[1:]) for option in options],
    )
    assert max(alone) == alone[1]
    with pytest.raises(ModelError, match="no weights"):
        train(tmp_path / "wrong", lambda *told: None, embedded_folder("hops", "model.onnx"))
