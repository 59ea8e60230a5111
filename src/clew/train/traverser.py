"""Instruction fine-tuning of a KGP guide: given the question and the evidence so far, write what is next.

Wang et al., "Knowledge Graph Prompting for Multi-Document Question Answering", AAAI 2024, Section 4 and
Supplementary 8.1 and 8.2. An encoder-decoder model (T5-large in the paper) gets the instruction as a prefix and
all its weights are trained; a decoder-only model (LLaMA-7B) gets Listing 1 and is trained with LoRA. The paper
takes "the default hyperparameters from their original GitHub repository" (8.2; its Table 5 is about encoders
alone): :data:`T5` and :data:`LLAMA`.

Deviations. The loss is on the output alone, where lit-llama's default data has it on the prompt too. A prompt is
Listing 1 as printed, without lit-llama's preamble, and goes through the chat template of a model that has one:
it is the prompt that the guide sends, token by token. An output may be as long as the guide lets it be (96
tokens; the T5 tutorial cuts it at 50), and no prompt is cut (lit-llama cuts prompt and output at 256).

The LoRA weights are saved merged into the model: it costs a copy of the model, and ``local:FOLDER`` loads it as
it loads any other, without peft.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.errors import MissingExtra, UsageError
from clew.methods.guides import GENERATION_PROMPTS
from clew.models.local import load_config, load_tokenizer, context_window
from clew.prompts import load_prompt
from clew.train.folder import FINISHED, TrainingFolder
from clew.train.traverser_data import DividedQuestions, TrainingRows, RowBuilder, divide_questions
from clew.train.traverser_run import (
    Progress,
    TraverserSettings,
    measure_held_out_loss,
    resume_training,
    save_model,
    load_trainable_model,
    build_trainer,
    package_versions,
)

if TYPE_CHECKING:
    from clew.evaluate.datasets import DatasetFile
    from clew.evaluate.instructions import GuideStep

RECORD = "clew-traverser.json"
#: https://shivanandroy.com/fine-tune-t5-transformer-with-pytorch/, which the paper names (footnote 7).
T5 = TraverserSettings(batch=8, at_once=8, learning_rate=1e-4, warmup=0, lora_rank=0)
#: lit-llama's ``finetune/lora.py``, which the paper names (footnote 6): also alpha 16, queries and values.
LLAMA = TraverserSettings(batch=128, at_once=4, learning_rate=3e-4, warmup=100, lora_rank=8)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a training will do.

    ``too_long`` prompts are left out of both sides. ``done`` steps were done before it was stopped; ``trainable``
    and ``parameters`` count weights.
    """

    settings: TraverserSettings
    prompt: str
    questions: int
    held_out_questions: int
    examples: int
    held_out_examples: int
    too_long: int
    steps: int
    done: int
    trainable: int
    parameters: int


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What came of it: the prompt to ask the model with (``prefix`` or ``listing1``), and the mean cross-entropy
    of a token of the held-out output before and after, in nats."""

    prompt: str
    before: float
    after: float


def train_traverser(
    data: Sequence[DatasetFile],
    source: str,
    out: Path,
    changes: Mapping[str, Any],
    tell: Callable[[Plan], None],
    progress: Progress,
) -> TrainingResult:
    """Train the model of a hub name or folder into ``out``, or continue what was begun there.

    ``changes`` are settings that differ from :data:`T5` or :data:`LLAMA`; ``tell`` hears the plan before
    anything is trained. The same data, model, settings and machine make the same weights, stopped in between
    or not (on a GPU up to the rounding of its kernels). A finished training is not done again. Raises
    UsageError, ModelError, MissingExtra.
    """
    _need_extra()
    output = TrainingFolder(out, RECORD)
    output.check()
    config = load_config(source)
    settings = _settings(config, changes)
    prompt = "prefix" if config.is_encoder_decoder else "listing1"
    template = load_prompt(GENERATION_PROMPTS[prompt])
    what = {
        "model": source,
        "prompt": template.name,
        "data": [{"form": one.name, "digest": one.digest()} for one in data],
        "settings": asdict(settings),
    }
    if FINISHED in (record := output.matching_record(what)):
        return TrainingResult(prompt, record["before"], record[FINISHED])

    examples = (example for one in data for example in one.examples())
    questions = divide_questions(examples, settings.held_out, settings.limit, settings.seed)
    tokenizer = load_tokenizer(source, "right")
    limits = (settings.max_input, settings.max_output)
    tokens = RowBuilder(tokenizer, template, not config.is_encoder_decoder, limits)
    trained = _rows(tokens, questions.trained, "", settings)
    held_out = _rows(tokens, questions.held_out, "held-out ", settings)
    model = load_trainable_model(source, settings)

    record = output.begin(what)
    checkpoint, done = output.last_checkpoint()
    run = build_trainer(model, tokenizer, (trained.rows, held_out.rows), settings, output.checkpoints, progress)
    tell(_plan(settings, prompt, questions, (trained, held_out), done, model))
    if "before" not in record:
        record["before"] = measure_held_out_loss(run)
        output.write(record)
    resume_training(run, checkpoint, settings.seed)
    after = measure_held_out_loss(run)
    save_model(run, tokenizer, out)
    output.finish(record | {FINISHED: after, "steps": run.state.global_step, "versions": package_versions()})
    return TrainingResult(prompt, record["before"], after)


def _need_extra() -> None:
    for package in ("torch", "transformers", "accelerate", "peft"):
        if find_spec(package) is None:
            raise MissingExtra(package, "train")


def _settings(config: Any, changes: Mapping[str, Any]) -> TraverserSettings:
    """Return the settings for a model. Raises UsageError where they do not fit it or each other."""
    settings = replace(T5 if config.is_encoder_decoder else LLAMA, **changes)
    if settings.batch % settings.at_once:
        raise UsageError(
            f"a batch of {settings.batch} cannot be made of parts of {settings.at_once}",
            "--batch must be a multiple of --at-once",
        )
    needed = settings.max_input + (0 if config.is_encoder_decoder else settings.max_output)
    room = context_window(config)
    if room is not None and needed > room:
        raise UsageError(
            f"the model has a window of {room} tokens, the longest row would have {needed}",
            "Lower --max-input or --max-output",
        )
    return settings


def _rows(tokens: RowBuilder, questions: Sequence[Sequence[GuideStep]], which: str, settings: TraverserSettings) -> TrainingRows:
    made = tokens.build_rows([step for steps in questions for step in steps])
    if not made.rows:
        raise UsageError(
            f"every {which}prompt is longer than {settings.max_input} tokens",
            "Raise --max-input, or give more data",
        )
    return made


def _plan(
    settings: TraverserSettings, prompt: str, questions: DividedQuestions, sides: tuple[TrainingRows, TrainingRows], done: int, model: Any
) -> Plan:
    trained, held_out = sides
    weights = [(one.numel(), one.requires_grad) for one in model.parameters()]
    return Plan(
        settings=settings,
        prompt=prompt,
        questions=len(questions.trained),
        held_out_questions=len(questions.held_out),
        examples=len(trained.rows),
        held_out_examples=len(held_out.rows),
        too_long=trained.too_long + held_out.too_long,
        steps=-(-len(trained.rows) // settings.batch) * settings.epochs,
        done=done,
        trainable=sum(size for size, wanted in weights if wanted),
        parameters=sum(size for size, _ in weights),
    )
