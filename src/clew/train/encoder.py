"""The loss of encoders: which of the passages in a batch is the one that a query leads to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import MissingExtra, UsageError, unknown_name_error
from clew.core.text import candidate_names, title_names
from clew.core.types import PASSAGE, Scope
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.examples import shuffle_examples
from clew.train.held_out import HeldOutQuestions, encode_texts
from clew.train.pairs import Passage, add_mined_negatives, pairs_from_examples, pairs_from_passages
from clew.train.training_folder import FINISHED, TrainingFolder, progress_callback

if TYPE_CHECKING:
    from clew.store.store import Store
    from clew.train.pairs import Objective, Pair

#: Texts of about one length that are encoded together.
CHUNK = 16


def ranking_loss(model: Any, scale: float) -> Any:
    """Return the softmax loss over in-batch and given negatives, ``scale`` being 1 / temperature.

    It is ``MultipleNegativesRankingLoss`` (van den Oord et al., 2018; DPR and MDR train the same), but that
    texts of all columns are encoded together, sorted by length: half of what padded columns compute on a CPU is
    padding.
    """
    import torch
    from sentence_transformers.losses import MultipleNegativesRankingLoss

    class Sorted(MultipleNegativesRankingLoss):  # type: ignore[misc]
        def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Any) -> Any:
            columns = list(sentence_features)
            width = max(one["input_ids"].shape[1] for one in columns)

            def joined(key: str) -> Any:
                return torch.cat(
                    [torch.nn.functional.pad(one[key], (0, width - one[key].shape[1])) for one in columns]
                )

            ids, mask = joined("input_ids"), joined("attention_mask")
            lengths = mask.sum(dim=1)
            order = torch.argsort(lengths)
            parts = []
            for chosen in order.split(CHUNK):
                longest = int(lengths[chosen].max())
                features = {"input_ids": ids[chosen, :longest], "attention_mask": mask[chosen, :longest]}
                parts.append(self.model(features)["sentence_embedding"])
            embeddings = torch.cat(parts)[torch.argsort(order)]
            sizes = [one["input_ids"].shape[0] for one in columns]
            return self.compute_loss_from_embeddings(list(embeddings.split(sizes)), labels)

    return Sorted(model, scale=scale)


RECORD = "clew-training.json"
#: The sentence-transformers folder in a training's folder.
MODEL_FOLDER = "model"
#: Receives how many of the steps are done.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How an encoder is trained.

    ``batch`` pairs make a step; each query is to be nearest to its own positive among all positives and
    negatives of the batch. ``negatives`` are of the question's own distractors, ``mined`` of the texts that the
    encoder confuses most before the training. ``scale`` is 1 / temperature of that softmax over cosines.
    ``warmup`` and ``save_every`` count steps, ``clip`` bounds the norm of the gradient, a text is cut at
    ``max_tokens`` in training (an exported encoder may read on). ``dropout`` None is the model's own.

    The result is ``blend`` parts of the trained weights and 1 - ``blend`` of those it started from: an average
    keeps most of what was learnt and most of what was known before (Wortsman et al., CVPR 2022, "Robust
    fine-tuning").
    """

    objective: Objective = "mdr"
    epochs: int = 1
    batch: int = 32
    negatives: int = 1
    mined: int = 0
    learning_rate: float = 1e-4
    warmup: int = 10
    scale: float = 20.0
    clip: float = 1.0
    max_tokens: int = 128
    dropout: float | None = 0.0
    blend: float = 0.5
    seed: int = 0
    save_every: int = 50


#: Table 5 of the KGP paper: the middle of what it searched in (batch 128 to 512, length 128 to 350).
PAPER_SETTINGS = EncoderSettings(
    epochs=50,
    batch=256,
    negatives=1,
    learning_rate=2e-5,
    warmup=300,
    clip=2.0,
    max_tokens=256,
    dropout=None,
    blend=1.0,
)
CONFIGURATIONS = {"clew": EncoderSettings(), "paper": PAPER_SETTINGS}


def build_settings(configuration: str, changes: Mapping[str, Any]) -> EncoderSettings:
    """Return a configuration with some changes. Raises UsageError for an unknown one or an unknown objective."""
    if configuration not in CONFIGURATIONS:
        raise unknown_name_error("configuration", configuration, CONFIGURATIONS)
    if changes.get("objective", "mdr") not in {"mdr", "dpr"}:
        raise unknown_name_error("objective", str(changes["objective"]), ("mdr", "dpr"))
    return replace(CONFIGURATIONS[configuration], **changes)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a training will do: pairs, steps, and how many of them were done before it was stopped."""

    pairs: int
    steps: int
    done: int


@dataclass(frozen=True, slots=True)
class Training:
    """What is trained: the encoder of a hub name or folder (``source``), on ``pairs``.

    ``made_from`` says where the pairs are from and becomes part of the record. ``held_out`` is measured before,
    at each checkpoint and after.
    """

    pairs: Sequence[Pair]
    source: str
    settings: EncoderSettings
    origin: Mapping[str, Any]
    held_out: HeldOutQuestions | None = None


def train_encoder(
    training: Training, out: Path, tell: Callable[[Plan], None], progress: Progress
) -> dict[str, Any]:
    """Train into the folder ``out``; return the record, which is also there as ``clew-training.json``.

    Killed, the same call continues from the last checkpoint; a finished training is not done again. ``tell``
    hears the plan before anything is trained. The same pairs, model, settings, machine and versions make the
    same weights. Raises UsageError, MissingExtra.
    """
    for package in ("torch", "sentence_transformers", "accelerate", "datasets"):
        if find_spec(package) is None:
            raise MissingExtra(package, "train")
    pairs, settings, held_out = training.pairs, training.settings, training.held_out
    if len(pairs) < settings.batch:
        raise UsageError(
            f"{len(pairs)} pairs do not fill a batch of {settings.batch}", "Give more data, or lower --batch"
        )
    output = TrainingFolder(out, RECORD)
    output.check()
    what = {
        # A folder by its name: the record goes with the model to other machines.
        "model": Path(training.source).name if Path(training.source).is_dir() else training.source,
        **training.origin,
        "pairs": len(pairs),
        "settings": asdict(settings),
    }
    if FINISHED in output.matching_record(what):
        return output.read()
    model = _loaded(training.source, settings)
    window, model.max_seq_length = model.max_seq_length, settings.max_tokens
    if settings.mined:
        pairs = add_mined_negatives(pairs, lambda texts: encode_texts(model, texts), settings.mined)
    run = _trainer(model, pairs, settings, output, progress)
    checkpoint, done = output.last_checkpoint()
    tell(Plan(len(pairs), settings.epochs * (len(pairs) // settings.batch), done))
    record = output.begin(what)
    if held_out is not None:
        if "before" not in record:
            output.write(record | {"before": held_out.measure(model)})
        run.add_callback(_during(held_out, model, output))
    run.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    _blend(model, training.source, settings.blend)
    model.max_seq_length = window
    model.save_pretrained(str(out / MODEL_FOLDER), create_model_card=False)
    after = held_out.measure(model) if held_out is not None else {}
    output.finish(output.read() | {FINISHED: after, "versions": _versions()})
    return output.read()


def _loaded(source: str, settings: EncoderSettings) -> Any:
    from sentence_transformers import SentenceTransformer

    rates = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    chosen = {} if settings.dropout is None else dict.fromkeys(rates, settings.dropout)
    return SentenceTransformer(source, config_kwargs=chosen)


def _blend(model: Any, source: str, share: float) -> None:
    from sentence_transformers import SentenceTransformer

    if share == 1:
        return
    before = SentenceTransformer(source).state_dict()
    after = model.state_dict()
    mixed = {
        name: share * weight + (1 - share) * before[name].to(weight.device)
        for name, weight in after.items()
        if weight.is_floating_point()
    }
    model.load_state_dict(after | mixed)


def _trainer(
    model: Any, pairs: Sequence[Pair], settings: EncoderSettings, output: TrainingFolder, progress: Progress
) -> Any:
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
    from transformers import PrinterCallback

    pass

    columns = {"anchor": [one.query for one in pairs], "positive": [one.positive for one in pairs]}
    for number in range(min(len(one.negatives) for one in pairs)):
        columns[f"negative_{number}"] = [one.negatives[number] for one in pairs]
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output.checkpoints),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        learning_rate=settings.learning_rate,
        warmup_steps=settings.warmup,
        max_grad_norm=settings.clip,
        seed=settings.seed,
        # Two rows of one batch must not share a text: the positive of one would be a negative of the other.
        batch_sampler="no_duplicates",
        dataloader_drop_last=True,
        dataloader_pin_memory=torch.cuda.is_available(),
        bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
        save_strategy="steps",
        save_steps=settings.save_every,
        save_total_limit=1,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    made = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(columns),
        loss=ranking_loss(model, settings.scale),
        callbacks=[progress_callback(progress)],
    )
    # It prints to stdout, which is for what programs read.
    made.remove_callback(PrinterCallback)
    return made


def _during(held_out: HeldOutQuestions, model: Any, output: TrainingFolder) -> Any:
    """Return what measures at each checkpoint, and keeps the measures in the record."""
    from transformers import TrainerCallback

    class Measured(TrainerCallback):  # type: ignore[misc]
        def on_save(self, _args: Any, state: Any, _control: Any, **_: Any) -> None:
            record = output.read()
            during = record.get("during", {}) | {str(state.global_step): held_out.measure(model)}
            output.write(record | {"during": during})

    return Measured()


def _versions() -> dict[str, str]:
    packages = ("clew", "torch", "transformers", "sentence-transformers", "accelerate")
    return {name: version(name) for name in packages}


def training_objective(folder: Path) -> str:
    """Return the objective that the model in a training's folder was trained for, or "" if none is known."""
    record = folder / RECORD
    if not record.is_file():
        return ""
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["settings"]["objective"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{record} is damaged: {error}", "Train again") from error


#: Pairs that are drawn from a knowledge base: more than this takes hours on two cores and brings little.
MAX_BASE_PAIRS = 4000


def training_from_data(
    data: Sequence[str], source: str, settings: EncoderSettings, held_out: float, limit: int | None = None
) -> Training:
    """Return the training on the questions of data sets, a share of which is held out.

    ``limit`` questions are drawn by the seed (None: all). Raises UsageError.
    """
    sets = [parse_dataset(one) for one in data]
    examples = (example for one in sets for example in one.examples())
    drawn = [same[0] for same in shuffle_examples(examples, settings.seed)][:limit]
    held = drawn[: round(held_out * len(drawn))]
    learnt = drawn[len(held) :]
    pairs = pairs_from_examples(learnt, settings.objective, settings.negatives, settings.seed)
    if not pairs:
        raise UsageError(
            f"no question of {', '.join(data)} has gold passages in an order that can be told",
            "hotpotqa, 2wikimultihopqa and musique have the order of their evidence; "
            "--objective dpr needs none",
        )
    made_from: dict[str, Any] = {
        "data": [{"form": one.name, "digest": one.digest()} for one in sets],
        "questions": len(learnt),
        "held_out": len(held),
        "limit": limit,
    }
    hops = 1 if settings.objective == "dpr" else 2
    return Training(
        pairs, source, settings, made_from, HeldOutQuestions(held, learnt, hops) if held else None
    )


def training_from_base(
    base: Store, source: str, settings: EncoderSettings, pairs: int = MAX_BASE_PAIRS
) -> Training:
    """Return the training on pairs that a base itself makes. Raises UsageError for a base without any."""
    snapshot = base.snapshot()
    rows = np.flatnonzero(snapshot.mask(Scope(), (PASSAGE,)))
    titles = {document.key: document.title for document in snapshot.documents()}
    passages = [
        Passage(
            node.document,
            titles[node.document],
            node.headings,
            node.text,
            frozenset(name for name, _, _ in candidate_names(node.text)),
        )
        for node in snapshot.nodes(rows)
    ]
    named = {key: frozenset(title_names(title)) for key, title in titles.items()}
    found = pairs_from_passages(passages, named, pairs, settings.seed)
    if not found:
        raise UsageError(f"{base.path} has no passages to learn from", "Add documents: clew add FOLDER")
    return Training(found, source, settings, {"base": base.digest(), "pairs_asked": pairs})


# MERGED: Training an encoder to find the next passage: MDR and DPR objectives, by the trainer of
# sentence-transformers.
# MERGED: Builds what an encoder is trained on: from data sets, or from a knowledge base.
