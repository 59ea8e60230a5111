"""Instruction fine-tuning of a KGP guide: from the question and the evidence so far to the evidence that is next.

Wang et al., "Knowledge Graph Prompting for Multi-Document Question Answering", AAAI 2024, Section 4 and Supplementary
8.1 and 8.2. An encoder-decoder model (T5-large in the paper) gets the instruction as a prefix and all its weights are
trained. A decoder-only model (LLaMA-7B) gets Listing 1 and is trained with LoRA. The paper takes "the default
hyperparameters from their original GitHub repository" (8.2; its Table 5 is about encoders only): :data:`T5` and
:data:`LLAMA`.

Deviations. The loss is on the output only, where lit-llama's default data has it on the prompt too. A prompt is
Listing 1 as printed, without lit-llama's preamble, and uses the chat template of a model that has one, so that it is
token by token the prompt that the guide sends. An output may have 96 tokens, the limit of the guide (the T5 tutorial
cuts it at 50), and no prompt is cut (lit-llama cuts prompt and output at 256).

LoRA weights are saved merged into the model. That takes the space of a copy, but ``local:FOLDER`` loads it like any
other model, without peft.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import ModelError, UsageError, require_packages
from clew.core.prompts.templates import Template, load_prompt
from clew.evaluate.examples import Example, shuffle_examples
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
    from clew.evaluate.datasets import DatasetFile

#: Receives the number of finished steps and their total.
Progress = Callable[[int, int], None]
_RowList = Sequence[dict[str, list[int]]]


@dataclass(frozen=True, slots=True)
class TraverserSettings:
    """The settings of a guide's training.

    A step has ``batch`` rows, ``at_once`` of them in memory at a time. ``warmup`` and ``save_every`` count steps.
    ``lora_rank`` 0 trains all weights; LoRA's alpha is twice its rank. ``max_input`` and ``max_output`` are tokens.
    ``limit`` questions are sampled (None: all), and the share ``held_out`` of them is held out. ``save_memory`` uses
    bf16 arithmetic and gradient checkpointing (None: if there is a GPU).
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


RECORD = "clew-traverser.json"
#: https://shivanandroy.com/fine-tune-t5-transformer-with-pytorch/, which the paper names (footnote 7).
T5 = TraverserSettings(batch=8, at_once=8, learning_rate=1e-4, warmup=0, lora_rank=0)
#: lit-llama's ``finetune/lora.py``, which the paper names (footnote 6): also alpha 16, queries and values.
LLAMA = TraverserSettings(batch=128, at_once=4, learning_rate=3e-4, warmup=100, lora_rank=8)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a training.

    ``too_long`` counts the prompts that are left out, ``done`` the steps that an interrupted run has finished;
    ``trainable`` and ``parameters`` count weights.
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
    """The result of a training: the prompt for the model (``prefix`` or ``listing1``), and the mean cross-entropy per
    held-out output token before and after, in nats."""

    prompt: str
    before: float
    after: float


def train_traverser(
    data: Sequence[DatasetFile],
    source: str,
    out: Path,
    changes: Mapping[str, Any],
    report_plan: Callable[[Plan], None],
    progress: Progress,
) -> TrainingResult:
    """Train the model ``source`` (hub name or folder) into ``out``, or continue an interrupted training there.

    ``changes`` are settings that differ from :data:`T5` or :data:`LLAMA`. ``report_plan`` receives the plan before
    the training starts. Equal data, model, settings and machine give equal weights, interrupted or not (on a GPU up
    to the rounding of its kernels). A finished training is not repeated. Raises UsageError, ModelError, MissingExtra.
    """
    require_packages("train", "torch", "transformers", "accelerate", "peft")
    output = TrainingFolder(out, RECORD)
    output.check()
    config = load_config(source)
    settings = _build_settings(config, changes)
    prompt = "prefix" if config.is_encoder_decoder else "listing1"
    template = load_prompt(GENERATION_PROMPTS[prompt])
    description = {
        "model": source,
        "prompt": template.name,
        "data": [{"form": dataset.name, "digest": dataset.digest()} for dataset in data],
        "settings": asdict(settings),
    }
    if FINISHED in (record := output.matching_record(description)):
        return TrainingResult(prompt, record["before"], record[FINISHED])

    examples = (example for dataset in data for example in dataset.examples())
    questions = divide_questions(examples, settings.held_out, settings.limit, settings.seed)
    tokenizer = load_tokenizer(source, "right")
    limits = (settings.max_input, settings.max_output)
    builder = RowBuilder(tokenizer, template, not config.is_encoder_decoder, limits)
    training_rows = _build_rows(builder, questions.trained, "", settings)
    held_out_rows = _build_rows(builder, questions.held_out, "held-out ", settings)
    model = load_trainable_model(source, settings)

    record = output.begin(description)
    checkpoint, done = output.last_checkpoint()
    run = build_trainer(
        model, tokenizer, (training_rows.rows, held_out_rows.rows), settings, output.checkpoints, progress
    )
    report_plan(_build_plan(settings, prompt, questions, (training_rows, held_out_rows), done, model))
    if "before" not in record:
        record["before"] = measure_held_out_loss(run)
        output.write(record)
    resume_training(run, checkpoint, settings.seed)
    after = measure_held_out_loss(run)
    save_model(run, tokenizer, out)
    output.finish(record | {FINISHED: after, "steps": run.state.global_step, "versions": package_versions()})
    return TrainingResult(prompt, record["before"], after)


def _build_settings(config: Any, changes: Mapping[str, Any]) -> TraverserSettings:
    """Return the settings for a model. Raises UsageError where they do not fit the model or each other."""
    settings = replace(T5 if config.is_encoder_decoder else LLAMA, **changes)
    if settings.batch % settings.at_once:
        raise UsageError(
            f"a batch of {settings.batch} cannot be made of parts of {settings.at_once}",
            "--batch must be a multiple of --at-once",
        )
    needed = settings.max_input + (0 if config.is_encoder_decoder else settings.max_output)
    window_size = context_window(config)
    if window_size is not None and needed > window_size:
        raise UsageError(
            f"the model has a window of {window_size} tokens, the longest row would have {needed}",
            "Lower --max-input or --max-output",
        )
    return settings


def _build_rows(
    builder: RowBuilder, questions: Sequence[Sequence[GuideStep]], which: str, settings: TraverserSettings
) -> TrainingRows:
    rows = builder.build_rows([step for steps in questions for step in steps])
    if not rows.rows:
        raise UsageError(
            f"every {which}prompt is longer than {settings.max_input} tokens",
            "Raise --max-input, or give more data",
        )
    return rows


def _build_plan(
    settings: TraverserSettings,
    prompt: str,
    questions: DividedQuestions,
    row_sides: tuple[TrainingRows, TrainingRows],
    done: int,
    model: Any,
) -> Plan:
    training_rows, held_out_rows = row_sides
    weights = [(parameter.numel(), parameter.requires_grad) for parameter in model.parameters()]
    return Plan(
        settings=settings,
        prompt=prompt,
        questions=len(questions.trained),
        held_out_questions=len(questions.held_out),
        examples=len(training_rows.rows),
        held_out_examples=len(held_out_rows.rows),
        too_long=training_rows.too_long + held_out_rows.too_long,
        steps=-(-len(training_rows.rows) // settings.batch) * settings.epochs,
        done=done,
        trainable=sum(size for size, is_trained in weights if is_trained),
        parameters=sum(size for size, _ in weights),
    )


#: The label of tokens without a loss.
IGNORED = -100


@dataclass(frozen=True, slots=True)
class DividedQuestions:
    """The steps of each question, divided into training and held-out questions."""

    trained: list[list[GuideStep]]
    held_out: list[list[GuideStep]]


def divide_questions(
    examples: Iterable[Example], share: float, limit: int | None, seed: int
) -> DividedQuestions:
    """Sample ``limit`` questions (None: all) that have a chain, and hold out a share of them, at least one.

    The sample depends only on the seed and the words of the questions. Raises UsageError for fewer than two.
    """
    steps_by_question = (
        list(dict.fromkeys(step for example in group for step in guide_steps(example)))
        for group in shuffle_examples(examples, seed)
    )
    questions = [steps for steps in steps_by_question if steps][:limit]
    if len(questions) < 2:
        raise UsageError(
            f"the data has {len(questions) or 'no'} question{'s' * (len(questions) != 1)} with ordered evidence",
            "At least two are needed: one to train on, one to hold out. "
            "hotpotqa, 2wikimultihopqa and musique have the order of their evidence",
        )
    held_out_count = min(max(1, round(share * len(questions))), len(questions) - 1)
    return DividedQuestions(questions[held_out_count:], questions[:held_out_count])


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Training rows (``input_ids``, ``attention_mask``, ``labels``), and the number of steps that were too long."""

    rows: list[dict[str, list[int]]]
    too_long: int


class RowBuilder:
    """Builds the training rows of one model. The labels are the output and the end of text; nothing else has a loss.

    A decoder-only model's row is the prompt followed by the output; an encoder-decoder's has them apart. The ids of
    the prompt are those that :class:`clew.models.local.LocalModel` sends. ``limits`` are the numbers of input and
    output tokens: a longer prompt makes no row, since it would lose its question or evidence; a longer output is cut,
    as the guide cuts it.
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

    def build_rows(self, steps: Sequence[GuideStep]) -> TrainingRows:
        """Return the rows of steps, in order. Raises ModelError where the tokenizer cannot continue a prompt."""
        prompts = [self._template.render(question=step.question, evidence=step.evidence) for step in steps]
        prompt_ids = tokenize_prompts(self._tokenizer, prompts)["input_ids"]
        outputs = self._outputs(
            [render_prompt(self._tokenizer, prompt) for prompt in prompts], prompt_ids, steps
        )
        rows = [
            self._row(list(ids), [*output, self._tokenizer.eos_token_id][: self._max_output])
            for ids, output in zip(prompt_ids, outputs, strict=True)
            if len(ids) <= self._max_input
        ]
        return TrainingRows(rows, len(steps) - len(rows))

    def _row(self, prompt_ids: list[int], output: list[int]) -> dict[str, list[int]]:
        ids, labels = prompt_ids, output
        if self._decoder_only:
            ids, labels = prompt_ids + output, [IGNORED] * len(prompt_ids) + output
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}

    def _outputs(
        self, texts: Sequence[str], prompt_ids: Sequence[Sequence[int]], steps: Sequence[GuideStep]
    ) -> Iterable[list[int]]:
        """Yield the token ids of each output, without the end of text."""
        outputs = [step.next_evidence.strip() for step in steps]
        if not self._decoder_only:
            yield from self._tokenizer(text_target=outputs, add_special_tokens=False)["input_ids"]
            return
        # Tokenized after its prompt, because many tokenizers split the first word of a text differently.
        has_chat_template = bool(self._tokenizer.chat_template)
        texts_with_outputs = [
            f"{text}{'' if has_chat_template else ' '}{output}"
            for text, output in zip(texts, outputs, strict=True)
        ]
        for ids, prompt in zip(
            self._tokenizer(texts_with_outputs, add_special_tokens=not has_chat_template)["input_ids"],
            prompt_ids,
            strict=True,
        ):
            if ids[: len(prompt)] != list(prompt):
                raise ModelError(
                    "the model's tokenizer splits the end of a prompt in another way when text follows it",
                    "Its chat template or an added end of text does not fit; use another model",
                )
            yield ids[len(prompt) :]


def load_trainable_model(source: str, settings: TraverserSettings) -> Any:
    """Return the model with its trainable weights. Raises ModelError."""
    import torch
    import transformers

    # clew shows the progress; transformers would add a bar for each file.
    transformers.utils.logging.disable_progress_bar()
    # Trained weights are float32, because small updates would round to nothing in bf16.
    half_precision = settings.lora_rank and _saves_memory(settings)
    model = load_model(source, torch.bfloat16 if half_precision else torch.float32)
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
    rows: tuple[_RowList, _RowList],
    settings: TraverserSettings,
    checkpoints: Path,
    progress: Progress,
) -> Any:
    """Return the Trainer of a model over its training rows and its held-out rows."""
    import torch
    import transformers

    saves_memory = _saves_memory(settings)
    # Reentrant checkpointing needs gradients on the inputs of the first layer, which LoRA does not have.
    checkpointing = {
        "gradient_checkpointing": True,
        "gradient_checkpointing_kwargs": {"use_reentrant": False},
    }
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
        bf16=saves_memory,
        **(checkpointing if saves_memory else {}),
        seed=settings.seed,
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=1,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=torch.cuda.is_available(),
    )
    trainer = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=rows[0],
        eval_dataset=rows[1],
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer, model=model),
        callbacks=[progress_callback(progress)],
    )
    # PrinterCallback prints to stdout, which is for the output of commands.
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def measure_held_out_loss(run: Any) -> float:
    """Return the mean cross-entropy of an output token of the held-out rows, in nats, averaged over batches."""
    return float(run.evaluate()["eval_loss"])


def resume_training(run: Any, checkpoint: Path | None, seed: int) -> None:
    """Train to the end, from a checkpoint if there is one."""
    import transformers

    transformers.set_seed(seed)  # the same dropout whether the loss before was measured now or in another run
    run.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))


def save_model(run: Any, tokenizer: Any, folder: Path) -> None:
    """Write a model folder that ``local:FOLDER`` loads, LoRA merged into the weights."""
    model = run.model.merge_and_unload() if hasattr(run.model, "merge_and_unload") else run.model
    # The Trainer turned the cache off; without it every token would read the whole prompt again.
    model.config.use_cache = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that trained the weights."""
    return {name: version(name) for name in ("clew", "torch", "transformers", "peft", "accelerate")}


def _saves_memory(settings: TraverserSettings) -> bool:
    import torch

    if settings.save_memory is None:
        return bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported())
    return settings.save_memory
