"""A guide's training by the Trainer of transformers: the model with its LoRA, the run, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from clew.errors import ModelError
from clew.models.local import load_model
from clew.train.steps import progress_callback

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
