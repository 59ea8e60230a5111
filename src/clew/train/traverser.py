"""A guide's training by the Trainer of transformers: the model with its LoRA, the run, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import MissingExtra, ModelError, UsageError
from clew.core.prompts.templates import load_prompt
from clew.evaluate.examples import shuffle_examples
from clew.methods.kgp.guides import GENERATION_PROMPTS
from clew.models.local import (
    context_window,
    load_config,
    load_model,
    load_tokenizer,
    render_prompt,
    tokenize_prompts,
)
from clew.train.evidence_chains import GuideStep, guide_steps
from clew.train.training_folder import FINISHED, TrainingFolder, progress_callback

if TYPE_CHECKING:
    from clew.core.prompts.templates import Template
    from clew.evaluate.datasets import DatasetFile
    from clew.evaluate.examples import Example

#: Receives how many of the steps are done.
Progress = Callable[[int, int], None]
_Rows = Sequence[dict[str, list[int]]]


@dataclass(frozen=True, slots=True)
class TraverserSettings:
    """How a guide is trained.

    ``batch`` rows make a step, ``at_once`` of them in memory at a time. ``warmup`` counts steps. ``lora_rank`` 0
    trains all weights; LoRA's alpha is twice its rank. ``max_input`` and ``max_output`` are tokens; ``held_out``
    is a share of the questions, ``limit`` a number of them (None: all). ``save_every`` counts the steps between
    checkpoints. ``save_memory`` is bf16 arithmetic and gradient checkpointing (None: where there is a GPU).
    """

    batch: int
    at_once: int
    learning_rate: float
    warmup: int
    lora_rank: int
    lora_dropout: float = 0.05
    epochs: int = 3
    max_input: int = 512
    max_output: int = 96
    held_out: float = 0.02
    limit: int | None = None
    seed: int = 0
    save_every: int = 500
    save_memory: bool | None = None


def load_trainable_model(source: str, settings: TraverserSettings) -> Any:
    """Return the model with those weights open that are trained. Raises ModelError."""
    import torch
    import transformers

    # Ours says how far it is; theirs is one more for each file that is read or written.
    transformers.utils.logging.disable_progress_bar()
    # Weights that are trained are float32: in bf16, small updates would round to nothing.
    frozen_in_half = settings.lora_rank and _saves_memory(settings)
    model = load_model(source, torch.bfloat16 if frozen_in_half else torch.float32)
    if not settings.lora_rank:
        return model
    from peft import LoraConfig, get_peft_model

    transformers.set_seed(settings.seed)  # LoRA draws its weights
    lora = LoraConfig(
        task_type="SEQ_2_SEQ_LM" if model.config.is_encoder_decoder else "CAUSAL_LM",
        r=settings.lora_rank,
        lora_alpha=2 * settings.lora_rank,
        lora_dropout=settings.lora_dropout,
    )
    try:
        return get_peft_model(model, lora)
    except ValueError as error:
        raise ModelError(
            f"LoRA does not fit a model of type '{model.config.model_type}': {error}",
            "Train all weights: --lora-rank 0",
        ) from error


def build_trainer(
    model: Any,
    tokenizer: Any,
    rows: tuple[_Rows, _Rows],
    settings: TraverserSettings,
    checkpoints: Path,
    progress: Progress,
) -> Any:
    """Return the Trainer of a model over its training rows and its held-out rows."""
    import torch
    import transformers

    less_memory = _saves_memory(settings)
    # Not reentrant: with LoRA the inputs of the first layer carry no gradient, which the other way needs.
    recomputing = {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": False}}
    arguments = transformers.TrainingArguments(
        output_dir=str(checkpoints),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.at_once,
        per_device_eval_batch_size=settings.at_once,
        gradient_accumulation_steps=settings.batch // settings.at_once,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=settings.warmup,
        weight_decay=0.0,
        use_cpu=not (torch.cuda.is_available() or torch.backends.mps.is_available()),
        bf16=less_memory,
        **(recomputing if less_memory else {}),
        seed=settings.seed,
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=1,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    made = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=rows[0],
        eval_dataset=rows[1],
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model=model),
        callbacks=[progress_callback(progress)],
    )
    # It prints to stdout, which is for what programs read.
    made.remove_callback(transformers.PrinterCallback)
    return made


def measure_held_out_loss(run: Any) -> float:
    """Return the mean cross-entropy of an output token of the held-out rows, in nats, averaged over batches."""
    return float(run.evaluate()["eval_loss"])


def resume_training(run: Any, checkpoint: Path | None, seed: int) -> None:
    """Train to the end, from a checkpoint where there is one."""
    import transformers

    transformers.set_seed(seed)  # the same dropout whether the loss before was measured now or in another run
    run.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))


def save_model(run: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model folder that ``local:FOLDER`` loads, LoRA merged into the weights."""
    model = run.model.merge_and_unload() if hasattr(run.model, "merge_and_unload") else run.model
    # The Trainer turned it off; without it every token would read the whole prompt again.
    model.config.use_cache = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that made the weights."""
    return {name: version(name) for name in ("clew", "torch", "transformers", "peft", "accelerate")}


def _saves_memory(settings: TraverserSettings) -> bool:
    import torch

    if settings.save_memory is None:
        return bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported())
    return settings.save_memory


#: The label of a token on which no loss is taken.
IGNORED = -100


@dataclass(frozen=True, slots=True)
class DividedQuestions:
    """Questions, each with its steps: those that are trained on, and those that are held out."""

    trained: list[list[GuideStep]]
    held_out: list[list[GuideStep]]


def divide_questions(
    examples: Iterable[Example], share: float, limit: int | None, seed: int
) -> DividedQuestions:
    """Draw ``limit`` questions (None: all) that have a chain, and hold out a share of them, at least one.

    Which ones are drawn depends on the seed and on their words alone. Raises UsageError for less than two.
    """
    asked = (
        list(dict.fromkeys(step for example in same for step in guide_steps(example)))
        for same in shuffle_examples(examples, seed)
    )
    every = [one for one in asked if one][:limit]
    if len(every) < 2:
        raise UsageError(
            f"the data has {len(every) or 'no'} question{'s' * (len(every) != 1)} with ordered evidence",
            "At least two are needed: one to train on, one to hold out. "
            "hotpotqa, 2wikimultihopqa and musique have the order of their evidence",
        )
    held = min(max(1, round(share * len(every))), len(every) - 1)
    return DividedQuestions(every[held:], every[:held])


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Training rows (``input_ids``, ``attention_mask``, ``labels``), and how many steps were too long for one."""

    rows: list[dict[str, list[int]]]
    too_long: int


class RowBuilder:
    """Makes rows for one model. Labels are the output and the end of text; nothing else has a loss.

    A decoder-only model's row is the prompt followed by the output, an encoder-decoder's has them apart. The
    prompt's ids are those that :class:`clew.models.local.LocalModel` sends. ``max_input`` and ``max_output``
    are numbers of tokens: a longer prompt makes no row, since its question or evidence would be lost; a
    longer output is cut, as the guide cuts it.
    """

    def __init__(
        self, tokenizer: Any, template: Template, decoder_only: bool, limits: tuple[int, int]
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._decoder_only = decoder_only
        self._max_input, self._max_output = limits
        if tokenizer.eos_token_id is None:
            raise ModelError("the model's tokenizer has no end of text", "A guide has to learn where to stop")

    def build_rows(self, chosen: Sequence[GuideStep]) -> TrainingRows:
        """Return the rows of steps, in order. Raises ModelError where the tokenizer cannot continue a prompt."""
        prompts = [self._template.render(question=one.question, evidence=one.evidence) for one in chosen]
        given = tokenize_prompts(self._tokenizer, prompts)["input_ids"]
        outputs = self._outputs([render_prompt(self._tokenizer, one) for one in prompts], given, chosen)
        rows = [
            self._row(list(ids), [*output, self._tokenizer.eos_token_id][: self._max_output])
            for ids, output in zip(given, outputs, strict=True)
            if len(ids) <= self._max_input
        ]
        return TrainingRows(rows, len(chosen) - len(rows))

    def _row(self, given: list[int], output: list[int]) -> dict[str, list[int]]:
        ids, labels = given, output
        if self._decoder_only:
            ids, labels = given + output, [IGNORED] * len(given) + output
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}

    def _outputs(
        self, texts: Sequence[str], given: Sequence[Sequence[int]], chosen: Sequence[GuideStep]
    ) -> Iterable[list[int]]:
        """Yield the token ids of each output, without the end of text."""
        wanted = [one.next_evidence.strip() for one in chosen]
        if not self._decoder_only:
            yield from self._tokenizer(text_target=wanted, add_special_tokens=False)["input_ids"]
            return
        # As the prompt goes on, not as a text of its own: many tokenizers split a first word in another way.
        chat = bool(self._tokenizer.chat_template)
        whole = [f"{text}{'' if chat else ' '}{output}" for text, output in zip(texts, wanted, strict=True)]
        for ids, begun in zip(
            self._tokenizer(whole, add_special_tokens=not chat)["input_ids"], given, strict=True
        ):
            if ids[: len(begun)] != list(begun):
                raise ModelError(
                    "the model's tokenizer splits the end of a prompt in another way when text follows it",
                    "Its chat template or an added end of text does not fit; use another model",
                )
            yield ids[len(begun) :]


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
    run = build_trainer(
        model, tokenizer, (trained.rows, held_out.rows), settings, output.checkpoints, progress
    )
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


def _rows(
    tokens: RowBuilder, questions: Sequence[Sequence[GuideStep]], which: str, settings: TraverserSettings
) -> TrainingRows:
    made = tokens.build_rows([step for steps in questions for step in steps])
    if not made.rows:
        raise UsageError(
            f"every {which}prompt is longer than {settings.max_input} tokens",
            "Raise --max-input, or give more data",
        )
    return made


def _plan(
    settings: TraverserSettings,
    prompt: str,
    questions: DividedQuestions,
    sides: tuple[TrainingRows, TrainingRows],
    done: int,
    model: Any,
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


# MERGED: What a guide is trained on: steps of questions, as the token ids that it will be asked with and
# should write.
# MERGED: Instruction fine-tuning of a KGP guide: given the question and the evidence so far, write what is next.
