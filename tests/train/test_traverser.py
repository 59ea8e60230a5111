"""Guides trained on invented questions, with tiny random models: masks, held-out questions, kills, a walk."""

import json
import shutil
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

import tiny_models
from clew.app.cli.commands import app
from clew.core.errors import MissingExtra, ModelError, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Location, Question
from clew.evaluate.datasets import load_dataset as dataset
from clew.knowledge_base import registry
from clew.methods.kgp.guides import GENERATION_PROMPTS
from clew.models.local import LocalModel, load_tokenizer, tokenize_prompts
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from clew.train.evidence_chains import GuideStep, guide_steps
from clew.train.traverser import IGNORED, LLAMA, T5, RowBuilder, divide_questions, train_traverser

MISSING = [name for name in ("torch", "transformers", "accelerate", "peft") if find_spec(name) is None]
if not MISSING:
    import torch

needs_torch = pytest.mark.skipif(bool(MISSING), reason="needs the extra 'train' (torch, transformers, peft)")
# Third-party warnings of the training code are not what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore")

PLACES = ["Dunmere", "Oskell", "Tolland", "Harrow", "Bittern", "Elm", "Fern", "Gorse", "Heath", "Ivy"]
KEEPERS = ["Ann", "Ben", "Cyd", "Dov", "Eve", "Fay", "Gus", "Hal", "Ida", "Jon"]
FACTS = [
    (f"{place} lock has the keeper {keeper} .", f"{keeper} was born in the village of {place}ton .")
    for place, keeper in zip(PLACES, KEEPERS, strict=True)
]
QUESTIONS = [f"Where was the keeper of {place} lock born ?" for place in PLACES]
RECORDS = [
    {
        "_id": str(number), "question": question, "answer": f"{place}ton", "type": "bridge", "level": "easy",
        "supporting_facts": [[f"{place} lock", 0], [keeper, 0]],
        "context": [[f"{place} lock", [first]], [keeper, [second]], ["Noise", ["No ."]]],
    }
    for number, (question, place, keeper, (first, second)) in enumerate(
        zip(QUESTIONS, PLACES, KEEPERS, FACTS, strict=True)
    )
]  # fmt: skip
STEP = GuideStep(QUESTIONS[0], *FACTS[0])
#: Small enough for two seconds, with a dropout, so that a continued run has to restore it.
SHORT = {"batch": 4, "at_once": 2, "learning_rate": 5e-3, "warmup": 0, "epochs": 2, "max_input": 64,
         "max_output": 16, "held_out": 0.2, "save_every": 2}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "train.json"
    path.write_text(json.dumps(RECORDS), encoding="utf-8")
    return dataset("hotpotqa", path)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Model folders by name: a T5, a decoder, a decoder with a chat template."""
    texts = [*QUESTIONS, *(fact for pair in FACTS for fact in pair)]
    texts += [load_prompt(name).render(question="", evidence="").user for name in GENERATION_PROMPTS.values()]
    words = " ".join(texts).split()
    results = {}
    for name, template in (("t5", None), ("llama", None), ("chat", tiny_models.TEMPLATE)):
        tokenizer = tiny_models.tokenizer(words, template)
        model = tiny_models.t5(tokenizer, 32, 1.0) if name == "t5" else tiny_models.llama(tokenizer, 128)
        results[name] = tiny_models.save_model(tmp_path_factory.mktemp(name), model, tokenizer)
    return results


def train(data, source, out, **changes):
    """Train, and return what came of it, what was planned, and the steps that were done."""
    plans, steps = [], []
    trained_model = train_traverser(
        [data],
        str(source),
        out,
        {**SHORT, **changes},
        plans.append,
        lambda done, total: steps.append((done, total)),
    )
    return trained_model, plans, steps


def weights(folder):
    return LocalModel(str(folder))._model.state_dict()


def same(item, other):
    return item.keys() == other.keys() and all(torch.equal(item[name], other[name]) for name in item)


def test_the_settings_are_those_that_the_paper_points_to():
    assert (T5.batch, T5.learning_rate, T5.epochs, T5.lora_rank, T5.max_input) == (8, 1e-4, 3, 0, 512)
    assert (LLAMA.batch, LLAMA.learning_rate, LLAMA.epochs, LLAMA.lora_rank, LLAMA.warmup) == (
        128,
        3e-4,
        3,
        8,
        100,
    )
    assert (
        {load_prompt(name).max_tokens for name in GENERATION_PROMPTS.values()}
        == {T5.max_output}
        == {LLAMA.max_output}
    )


def test_no_question_is_on_both_sides(data):
    examples = list(data.examples())
    questions = divide_questions([*examples, *examples], 0.3, None, seed=1)
    sides = [
        {step.question for steps in side for step in steps}
        for side in (questions.trained, questions.held_out)
    ]
    assert [len(side) for side in sides] == [7, 3] and not sides[0] & sides[1]
    assert divide_questions(examples[::-1], 0.3, None, seed=1) == questions
    assert divide_questions(examples, 0.3, None, seed=2) != questions
    drawn = divide_questions(examples, 0.01, 4, seed=1)
    assert (len(drawn.trained), len(drawn.held_out)) == (3, 1)


def test_data_without_ordered_evidence_is_refused(data):
    example = next(data.examples())
    with pytest.raises(UsageError, match="has 1 question with ordered evidence"):
        divide_questions([example], 0.5, None, 0)
    with pytest.raises(UsageError, match="has no questions with ordered evidence"):
        divide_questions([], 0.5, None, 0)


@needs_torch
@pytest.mark.parametrize("kind", ["llama", "chat"])
def test_a_decoder_has_a_loss_on_the_output_and_its_end_alone(folders, kind):
    tokenizer = load_tokenizer(str(folders[kind]), "right")
    template = load_prompt("kgp-listing1")
    (row,) = RowBuilder(tokenizer, template, True, (64, 16)).build_rows([STEP]).rows
    prompt = template.render(question=STEP.question, evidence=STEP.evidence)
    given = tokenize_prompts(LocalModel(str(folders[kind]))._tokenizer, [prompt])["input_ids"][0]
    output = [*tokenizer(STEP.next_evidence)["input_ids"], tokenizer.eos_token_id]
    assert row["input_ids"] == given + output
    assert row["labels"] == [IGNORED] * len(given) + output
    assert row["attention_mask"] == [1] * len(row["input_ids"])
    assert tokenizer.unk_token_id not in row["input_ids"]


@needs_torch
@pytest.mark.parametrize("template", [None, tiny_models.TEMPLATE])
@pytest.mark.parametrize("kind", ["byte-level", "metaspace"])
def test_an_output_goes_on_where_the_prompt_ends(kind, template):
    """Tokenizers as GPT-2 and LLaMA have them, which split a word in another way at the start of a text."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    result = Tokenizer(models.BPE())
    split = (
        pre_tokenizers.ByteLevel(add_prefix_space=False)
        if kind == "byte-level"
        else pre_tokenizers.Metaspace()
    )
    result.pre_tokenizer = split
    result.decoder = decoders.ByteLevel() if kind == "byte-level" else decoders.Metaspace()
    texts = [
        f"Instruction Input Output: {load_prompt('kgp-listing1').user}",
        *(fact for pair in FACTS for fact in pair),
    ]
    alphabet = sorted({*pre_tokenizers.ByteLevel.alphabet(), "\n", "▁"})
    result.train_from_iterator(
        texts * 3,
        trainers.BpeTrainer(special_tokens=["<s>", "</s>", "<assistant>"], initial_alphabet=alphabet),
    )
    result.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=result, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    tokenizer.chat_template = template
    prompt = load_prompt("kgp-listing1").render(question=STEP.question, evidence=STEP.evidence)
    (row,) = RowBuilder(tokenizer, load_prompt("kgp-listing1"), True, (512, 96)).build_rows([STEP]).rows
    (given,) = tokenize_prompts(tokenizer, [prompt])["input_ids"]
    output = [label for label in row["labels"] if label != IGNORED]
    assert row["input_ids"] == given + output and output[-1] == tokenizer.eos_token_id
    assert (given[0] == tokenizer.bos_token_id) == (template is None)
    assert tokenizer.decode(output[:-1]).strip() == STEP.next_evidence


@needs_torch
def test_a_t5_reads_the_instruction_as_a_prefix_and_writes_the_output(folders, data):
    tokenizer = load_tokenizer(str(folders["t5"]), "right")
    tokens = RowBuilder(tokenizer, load_prompt("kgp-prefix"), False, (64, 16))
    (row,) = tokens.build_rows([STEP]).rows
    assert list(guide_steps(next(data.examples()))) == [STEP]
    instruction = "What evidence do we need to answer the question given the current evidence?"
    assert tokenizer.decode(row["input_ids"]) == f"{instruction} {STEP.question} {STEP.evidence}"
    assert tokenizer.decode(row["labels"]) == f"{STEP.next_evidence} </s>"


@needs_torch
def test_a_long_prompt_is_left_out_and_a_long_output_is_cut(folders):
    tokenizer = load_tokenizer(str(folders["t5"]), "right")
    long = GuideStep(STEP.question, STEP.evidence * 9, STEP.next_evidence)
    result = RowBuilder(tokenizer, load_prompt("kgp-prefix"), False, (40, 3)).build_rows([long, STEP])
    assert (len(result.rows), result.too_long) == (1, 1)
    assert tokenizer.decode(result.rows[0]["labels"]) == " ".join(STEP.next_evidence.split()[:3])


@needs_torch
def test_a_tokenizer_that_cannot_continue_a_prompt_is_refused(folders):
    from tokenizers.processors import TemplateProcessing

    tokenizer = load_tokenizer(str(folders["llama"]), "right")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    with pytest.raises(ModelError, match="splits the end of a prompt"):
        RowBuilder(tokenizer, load_prompt("kgp-listing1"), True, (64, 16)).build_rows([STEP])


@needs_torch
@pytest.mark.parametrize(("kind", "prompt"), [("t5", "prefix"), ("llama", "listing1"), ("chat", "listing1")])
def test_the_held_out_loss_falls_and_the_folder_is_a_model(kind, prompt, folders, data, tmp_path):
    rate = 5e-3 if kind == "t5" else 5e-2
    result, (plan,), steps = train(data, folders[kind], tmp_path / "out", epochs=8, learning_rate=rate)
    assert result.prompt == plan.prompt == prompt
    # With LoRA the weights around it stay random.
    assert result.after < result.before - (0.5 if kind == "t5" else 0.1)
    assert (plan.questions, plan.held_out_questions, plan.examples, plan.done) == (8, 2, 8, 0)
    assert steps == [(number, plan.steps) for number in range(1, 17)]
    record = json.loads((tmp_path / "out" / "clew-traverser.json").read_text())
    assert (record["before"], record["after"]) == (result.before, result.after)
    assert record["data"] == [{"form": "hotpotqa", "digest": data.digest()}]
    assert record["settings"]["seed"] == 0 and record["versions"]["torch"] == torch.__version__
    assert record["model"] == str(folders[kind]) and record["prompt"] == f"{GENERATION_PROMPTS[prompt]}.v1"
    assert not (tmp_path / "out" / "checkpoints").exists()
    before, after = weights(folders[kind]), weights(tmp_path / "out")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert before.keys() == after.keys() and changed
    if kind != "t5":  # LoRA: queries and values alone
        assert all("q_proj" in name or "v_proj" in name for name in changed)
        assert 0 < plan.trainable < plan.parameters // 4
    else:
        assert plan.trainable == plan.parameters
    assert LocalModel(str(tmp_path / "out"))._model.config.use_cache


@needs_torch
@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_a_training_that_was_killed_ends_as_if_it_had_not_been(kind, folders, data, tmp_path):
    whole, _, _ = train(data, folders[kind], tmp_path / "whole")

    class Killed(BaseException):
        pass

    def kill(done, total):
        if done == 3:
            raise Killed

    with pytest.raises(Killed):
        train_traverser([data], str(folders[kind]), tmp_path / "again", SHORT, lambda plan: None, kill)
    # A kill while a checkpoint is written leaves one without its last file.
    shutil.copytree(tmp_path / "again/checkpoints/checkpoint-2", tmp_path / "again/checkpoints/checkpoint-3")
    (tmp_path / "again/checkpoints/checkpoint-3/trainer_state.json").write_text("{")
    again, (plan,), steps = train(data, folders[kind], tmp_path / "again")
    assert plan.done == 2 and steps == [(3, 4), (4, 4)]
    assert again == whole
    assert same(weights(tmp_path / "again"), weights(tmp_path / "whole"))
    # A finished one is not done again.
    assert train(data, folders[kind], tmp_path / "again") == (whole, [], [])


@needs_torch
def test_the_seed_decides(folders, data, tmp_path):
    first, _, _ = train(data, folders["llama"], tmp_path / "a", seed=1)
    assert train(data, folders["llama"], tmp_path / "b", seed=1)[0] == first
    assert train(data, folders["llama"], tmp_path / "c", seed=2)[0] != first


@needs_torch
@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_the_loss_falls_with_less_memory_too(kind, folders, data, tmp_path):
    result, _, _ = train(data, folders[kind], tmp_path / "out", epochs=8, save_memory=True)
    assert result.after < result.before


@needs_torch
def test_what_does_not_fit_is_refused_before_anything_is_written(folders, data, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(UsageError, match="window of 128 tokens, the longest row would have 146"):
        train(data, folders["llama"], out, max_input=130)
    with pytest.raises(UsageError, match="--batch must be a multiple"):
        train(data, folders["llama"], out, at_once=3)
    with pytest.raises(UsageError, match="every prompt is longer than 5 tokens"):
        train(data, folders["t5"], out, max_input=5)
    with pytest.raises(ModelError, match="cannot load"):
        train(data, tmp_path, out)
    assert not out.exists()
    out.mkdir()
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds something else"):
        train(data, folders["t5"], out)
    with pytest.raises(UsageError, match="is a file"):
        train(data, folders["t5"], out / "thesis.txt")


@needs_torch
def test_another_training_does_not_continue_in_a_folder(folders, data, tmp_path):
    out = tmp_path / "out"
    train(data, folders["t5"], out, epochs=1)
    with pytest.raises(UsageError, match=r"begun with another learning_rate: 0\.005 there, 0\.001 now"):
        train(data, folders["t5"], out, epochs=1, learning_rate=1e-3)
    with pytest.raises(UsageError, match="begun with another model"):
        train(data, folders["llama"], out)
    (out / "clew-traverser.json").write_text("{")
    with pytest.raises(UsageError, match="is damaged"):
        train(data, folders["t5"], out)


class Batches:
    """A local model, and how many prompts it was given at a time."""

    def __init__(self, folder):
        self.model = LocalModel(str(folder))
        self.name = self.model.name
        self.sizes = []

    def complete(self, prompts):
        self.sizes.append(len(prompts))
        return self.model.complete(prompts)


@needs_torch
def test_a_trained_guide_leads_a_walk_to_the_evidence_in_batches(folders, data, tmp_path):
    out = tmp_path / "out"
    settings = {**SHORT, "epochs": 60, "learning_rate": 1e-2, "batch": 8, "lora_rank": 0}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    command = ["train", "traverser", "--data", f"hotpotqa={data.path}", "--model", str(folders["llama"])]
    result = CliRunner().invoke(app, [*command, "--out", str(out), *options])
    assert result.exit_code == 0, result.output
    assert "8 questions with 8 examples; held out: 2 questions with 2 examples" in result.stderr
    assert "weights are trained, in 60 steps of 8 examples (60 epochs, learning rate 0.01)" in result.stderr
    assert "guide=generated(prompt=listing1)" in result.stdout and f"guide=local:{out}" in result.stdout
    with Store.open(tmp_path / "base", create=True, passages="sentence") as base:
        for number, text in enumerate(text for pair in FACTS for text in pair):
            builder = DocumentBuilder(unit="sentence")
            builder.add_paragraph(text)
            parsed = builder.finish(data=text.encode(), title=text, media_type="text/plain", parser="t/1")
            base.put_document(parsed, Location(f"/docs/{number}.txt", "/docs", 1, number, number))
        model = Batches(out)
        guide = "guide=generated(prompt=listing1), structures=no, reader=extractive"
        method = registry.build_method(f"kgp-paper({guide}, seeds=3, branch=1)", base, llm=model)
        answer = method.answer(Question(QUESTIONS[0]), TrailRecorder())
        snapshot = base.snapshot()
        paths = [[node.text for node in snapshot.nodes(snapshot.rows(hit.path))] for hit in answer.evidence]
    (expand,) = [step for step in answer.trail if step.name == "expand"]
    assert model.sizes == [expand.usage.calls] == [3]
    assert FACTS[0][1] in [path["expected"] for path in expand.detail["paths"]]
    assert all(path["considered"] > 1 for path in expand.detail["paths"])
    assert list(FACTS[0]) in paths


@pytest.mark.skipif(not MISSING, reason="the extra 'train' is installed here")
def test_without_the_extra_the_line_that_installs_it_is_said(data, tmp_path):
    with pytest.raises(MissingExtra, match=r"pip install .*\[train\]'"):
        train(data, "any", tmp_path / "out")
    assert not (tmp_path / "out").exists()
