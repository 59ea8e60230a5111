"""Encoders trained on invented questions, from a tiny random model: the loss, kills, blends, a walk."""

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tiny_models
from clew.app.cli.commands import app
from clew.core.errors import UsageError
from clew.core.types import Location, Question
from clew.knowledge_base import registry
from clew.models.encoders import OnnxEncoder
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from clew.train.encoder import (
    MODEL_FOLDER,
    RECORD,
    EncoderSettings,
    HeldOutQuestions,
    encode_texts,
    ranking_loss,
    train_encoder,
)
from stark_clinic import write_clinic, write_questions

MISSING = [
    one for one in ("torch", "sentence_transformers", "accelerate", "datasets") if find_spec(one) is None
]
if not MISSING:
    import torch
    from sentence_transformers import SentenceTransformer

# Third-party warnings of the training code are not what is tested here.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        bool(MISSING), reason="needs the extra 'train' (torch, sentence-transformers, datasets)"
    ),
]

PLACES = [
    f"{first}{last}"
    for first in ("elm", "fern", "gorse", "heath", "ivy")
    for last in ("ham", "ton", "by", "ley")
]
KEEPERS = [f"{place}er" for place in PLACES]
RECORDS: list[dict[str, Any]] = [
    {
        "_id": str(n), "question": f"where was the keeper of {place} lock born", "answer": f"{place}side",
        "type": "bridge", "supporting_facts": [[f"{place} lock", 0], [keeper, 0]],
        "context": [
            [f"{place} lock", [f"the keeper is {keeper} ."]], [keeper, [f"born in {place}side ."]],
            [f"{place} mill", ["a mill ."]], [f"{place} hill", ["a hill ."]],
        ],
    }
    for n, (place, keeper) in enumerate(zip(PLACES, KEEPERS, strict=True))
]  # fmt: skip
WORDS = " ".join(json.dumps(RECORDS)).split() + [
    word for word in json.dumps(RECORDS).replace('"', " ").replace(",", " ").split() if word.islower()
]
FAST = {"batch": 4, "negatives": 2, "epochs": 6, "learning_rate": 3e-3, "warmup": 0, "max_tokens": 24,
        "save_every": 10}  # fmt: skip
OPTIONS = [
    f"--{key.replace('_', '-')}={value}" for key, value in FAST.items() if key not in {"save_every", "warmup"}
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return tiny_models.encoder(tmp_path_factory.mktemp("source"), [*WORDS, ":", "lock", "mill", "hill"])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "train.json"
    path.write_text(json.dumps(RECORDS), encoding="utf-8")
    return f"hotpotqa={path}"


def training(source, data, **changes):
    from clew.train.encoder import training_from_data

    return training_from_data([data], str(source), EncoderSettings(**(FAST | changes)), 0.2)


def train(work, out, progress=lambda done, total: None):
    return train_encoder(work, out, lambda plan: None, progress)


def weights(folder):
    return SentenceTransformer(str(folder), device="cpu").state_dict()


def test_sorted_by_length_the_loss_is_the_same(source):
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(str(source), device="cpu").eval()
    columns = [["where", "where was the keeper of elmham lock born"], ["a mill .", "the keeper is elmhamer ."],
               ["a hill .", "elmham"]]  # fmt: skip
    features = [dict(model.tokenizer(some, padding=True, return_tensors="pt")) for some in columns]
    features = [{key: feature[key] for key in ("input_ids", "attention_mask")} for feature in features]
    losses = [
        make(model)([dict(feature) for feature in features], None)
        for make in (lambda m: ranking_loss(m, 20.0), lambda m: MultipleNegativesRankingLoss(m, scale=20.0))
    ]
    assert torch.allclose(*losses, atol=1e-5) and float(losses[0]) > 0


def test_training_improves_recall_and_resumes_after_a_kill(source, data, tmp_path):
    work = training(source, data)
    whole = train(work, tmp_path / "whole")
    assert whole["questions"] == 16 and whole["held_out"] == 4 and whole["pairs"] == 32
    assert whole["after"]["recall@5"] >= whole["before"]["recall@5"] and whole["during"]
    assert not (tmp_path / "whole" / "checkpoints").exists()

    class Killed(BaseException):
        pass

    def until(step):
        def progress(done, total):
            if done == step:
                raise Killed

        return progress

    plans = []
    for step in (13, 25):
        with pytest.raises(Killed):
            train_encoder(work, tmp_path / "killed", plans.append, until(step))
    again = train_encoder(work, tmp_path / "killed", plans.append, lambda done, total: None)
    assert [plan.done for plan in plans] == [0, 10, 20] and plans[0].steps == 48
    assert again == whole
    item, other = (weights(tmp_path / name / MODEL_FOLDER) for name in ("whole", "killed"))
    assert all(torch.equal(item[name], other[name]) for name in item)
    assert train(work, tmp_path / "whole", until(0)) == whole  # finished: nothing is trained
    with pytest.raises(UsageError, match="begun with another epochs"):
        train(training(source, data, epochs=7), tmp_path / "whole")


def test_a_blend_lies_between_what_was_and_what_was_learnt(source, data, tmp_path):
    work = training(source, data, blend=1.0, epochs=1)
    train(work, tmp_path / "all")
    train(replace(work, settings=replace(work.settings, blend=0.25)), tmp_path / "quarter")
    before, after, mixed = (
        weights(f) for f in (source, tmp_path / "all" / MODEL_FOLDER, tmp_path / "quarter" / MODEL_FOLDER)
    )
    moved = 0
    for name, weight in after.items():
        if weight.is_floating_point():
            assert torch.allclose(mixed[name], 0.25 * weight + 0.75 * before[name], atol=1e-6)
            moved += int(not torch.equal(weight, before[name]))
    assert moved


def test_low_rank_updates_change_matrices_alone_and_resume_after_a_kill(source, data, tmp_path):
    work = training(source, data, lora_rank=2, learning_rate=3e-2)
    whole = train(work, tmp_path / "whole")
    assert whole["after"]["recall@5"] >= whole["before"]["recall@5"]
    before, after = weights(source), weights(tmp_path / "whole" / MODEL_FOLDER)
    assert before.keys() == after.keys()
    changed = {name for name in after if not torch.equal(before[name], after[name])}
    assert changed and not any("embeddings" in name or "norm" in name.lower() for name in changed)
    for name in changed:
        assert torch.linalg.matrix_rank(after[name] - before[name], rtol=1e-4) <= 2, name

    plans = []

    def stop(done, total):
        if done == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_encoder(work, tmp_path / "killed", plans.append, stop)
    again = train_encoder(work, tmp_path / "killed", plans.append, lambda done, total: None)
    assert [plan.done for plan in plans] == [0, 10] and again == whole
    killed = weights(tmp_path / "killed" / MODEL_FOLDER)
    assert all(torch.equal(after[name], killed[name]) for name in after)

    train(replace(work, settings=replace(work.settings, blend=1.0)), tmp_path / "all")
    full = weights(tmp_path / "all" / MODEL_FOLDER)
    for name in changed:  # blend 0.5 keeps half of the update
        assert torch.allclose(after[name] - before[name], (full[name] - before[name]) / 2, atol=1e-6)


def test_an_export_of_the_multilingual_encoder_states_its_contrast(source, tmp_path):
    pytest.importorskip("onnx")
    from clew.models.multilingual import CONTRAST
    from clew.train.export import ExportForm, export_encoder

    for model, contrast in (("clew:multilingual", CONTRAST), ("all-MiniLM-L6-v2", 1)):
        out = tmp_path / model.replace(":", "-")
        shutil.copytree(source, out / MODEL_FOLDER)
        (out / RECORD).write_text(json.dumps({"model": model, "settings": {"objective": "mdr"}}))
        export_encoder(out / MODEL_FOLDER, out / "onnx", ExportForm())
        encoder = OnnxEncoder(out / "onnx")
        assert (encoder.contrast, encoder.objective) == (contrast, "mdr")


def test_prompts_stand_before_queries_and_passages(source, data, tmp_path):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(source), device="cpu")
    model.prompts = {"query": "where ", "document": "a "}
    model.save_pretrained(str(tmp_path / "prompted"))
    prompted = SentenceTransformer(str(tmp_path / "prompted"), device="cpu")
    plain = SentenceTransformer(str(source), device="cpu")
    for query, word in ((True, "where"), (False, "a")):
        vectors = encode_texts(prompted, ["mill ."], query=query)
        assert np.allclose(vectors, encode_texts(plain, [f"{word} mill ."]), atol=1e-6)
    # Trained with them: other weights than without, from the same start.
    train(training(tmp_path / "prompted", data, epochs=1), tmp_path / "with")
    train(training(source, data, epochs=1), tmp_path / "without")
    item, other = (weights(tmp_path / name / MODEL_FOLDER) for name in ("with", "without"))
    assert any(not torch.equal(item[name], other[name]) for name in item)


def test_what_is_held_out_is_measured_by_both_hops(source, data):
    work = training(source, data)
    model = SentenceTransformer(str(source), device="cpu")
    result = work.held_out.measure(model)
    # By hand, one question at a time.
    pool = {(title, " ".join(text)) for item in RECORDS for title, text in item["context"]}
    keys = sorted(pool)
    vectors = model.encode([f"{title}: {text}" for title, text in keys], normalize_embeddings=True)
    asked = {question.question for question in work.held_out.questions}
    one_hop, two_hops = [], []
    for record in (item for item in RECORDS if item["question"] in asked):
        gold = {title for title, _ in record["supporting_facts"]}
        near = 20 * vectors @ model.encode([record["question"]], normalize_embeddings=True)[0]
        first = np.exp(near - near.max()) / np.exp(near - near.max()).sum()
        best = first.copy()
        for u in np.argsort(-first)[:10]:
            query = f"{record['question']} {keys[u][0]}: {keys[u][1]}"
            then = 20 * vectors @ model.encode([query], normalize_embeddings=True)[0]
            then[u] = -np.inf
            best = np.maximum(best, first[u] * np.exp(then - then.max()) / np.exp(then - then.max()).sum())
        for scores, into in ((first, one_hop), (best, two_hops)):
            titles = {keys[row][0] for row in np.argsort(-scores)[:5]}
            into.append(len(titles & gold) / 2)
    assert result["recall@5, one hop"] == pytest.approx(np.mean(one_hop), abs=0.13)
    assert result["recall@5"] == pytest.approx(np.mean(two_hops), abs=0.13)
    assert HeldOutQuestions(work.held_out.questions, hops=1).measure(model).keys() == {"recall@5, one hop"}


def test_the_command_trains_exports_and_the_walk_asks_at_every_hop(source, data, tmp_path, monkeypatch):
    out = tmp_path / "made"
    words = [
        "train",
        "encoder",
        "--data",
        data,
        "--model",
        str(source),
        "--out",
        str(out),
        "--held-out",
        "0.2",
    ]
    done = CliRunner().invoke(app, [*words, *OPTIONS, "--blend", "1", "--weights", "fp32"])
    assert done.exit_code == 0, done.output
    assert (
        "recall@5:" in done.stdout and "4 held out" in done.stdout and f"onnx:{out / 'onnx'}" in done.stdout
    )
    encoder = OnnxEncoder(out / "onnx")
    assert encoder.objective == "mdr" and (out / "onnx" / RECORD).is_file()

    with Store.open(tmp_path / "base", create=True) as base:
        for record in RECORDS:
            for title, text in record["context"]:
                builder = DocumentBuilder()
                builder.add_paragraph(" ".join(text))
                document = builder.finish(
                    data=title.encode(), title=title, media_type="text/plain", parser="test/1"
                )
                base.put_document(document, Location(f"/test/{title}.txt", "/test", 1, 1, 1))
        base.catch_up()
        base.encode(encoder)
        asked = []
        encode = OnnxEncoder.encode
        monkeypatch.setattr(
            OnnxEncoder,
            "encode",
            lambda self, texts, query=False: asked.extend(texts) or encode(self, texts, query),
        )
        hits = registry.build_retriever("kgp", base, encoder=encoder).retrieve(
            Question(RECORDS[3]["question"]), 5
        )
    hops = [text for text in asked if text.startswith(RECORDS[3]["question"] + " ")]
    assert len(hops) >= 2 and all(": " in text for text in hops)  # two at a time, and a deeper path
    names = [hit.node.document_name for hit in hits]
    assert (
        "fernham lock.txt" not in names and f"{PLACES[3]} lock.txt" in names and f"{KEEPERS[3]}.txt" in names
    )


def test_a_base_teaches_its_own_links(source, tmp_path):
    base = tmp_path / "base"
    folder = tmp_path / "notes"
    folder.mkdir()
    for n, place in enumerate(PLACES):
        following = PLACES[(n + 1) % len(PLACES)]
        (folder / f"{place}.md").write_text(
            f"# {place.title()}\n\n## Way\n\nThe way to {following.title()} .\n\nIt ends .\n"
        )
    assert (
        CliRunner().invoke(app, ["add", str(folder), "--kb", str(base), "--encoder", "none"]).exit_code == 0
    )
    words = [
        "train",
        "encoder",
        "--from-kb",
        str(base),
        "--model",
        str(source),
        "--out",
        str(tmp_path / "made"),
    ]
    done = CliRunner().invoke(app, [*words, *OPTIONS, "--pairs", "40", "--weights", "fp32"])
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "made" / RECORD).read_text())
    assert record["pairs"] == 40 and record["base"] and record["after"] == {}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "no training data given"),
        (["--data", "hotpotqa"], "no data set in 'hotpotqa'"),
        (["--data", "{data}", "--batch", "500"], "do not fill a batch of 500"),
        (["--data", "{data}", "--configuration", "papre"], "Did you mean 'paper'"),
        (["--data", "{data}", "--weights", "int4"], "no form of weights named 'int4'"),
        (["--data", "{data}", "--objective", "qpr"], "no objective named 'qpr'"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_done(source, data, tmp_path, words, text):
    given = [word.format(data=data) for word in words]
    done = CliRunner().invoke(
        app, ["train", "encoder", "--model", str(source), "--out", str(tmp_path / "made"), *given]
    )
    assert done.exit_code == 2 and text in done.output, done.output
    assert not (tmp_path / "made").exists()


def test_another_folder_is_not_touched(source, data, tmp_path):
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "thesis.txt").write_text("x")
    with pytest.raises(UsageError, match="holds something else"):
        train(training(source, data), tmp_path / "made")
    shutil.rmtree(tmp_path / "made")


def test_the_command_learns_the_nodes_that_answer_stark_s_questions(source, tmp_path):
    data, graph = f"stark={write_questions(tmp_path / 'qa')}#test-0.1", write_clinic(tmp_path / "clinic")
    out = tmp_path / "nodes"
    words = [
        "--data",
        data,
        "--graph",
        str(graph),
        "--model",
        str(source),
        "--out",
        str(out),
        "--held-out",
        "0.3",
    ]
    output = CliRunner().invoke(app, ["train", "encoder", *words, *OPTIONS, "--negatives", "1"])
    assert output.exit_code == 0, output.output
    assert "recall@20:" in output.stdout and "(2 held out)" in output.stdout
    record = json.loads((out / RECORD).read_text())
    assert record["settings"]["objective"] == "dpr" and record["graph"] and record["held_out"] == 2
