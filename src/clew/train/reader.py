"""Training of the reader: three logits a token over an encoder, in two stages, and its export to ONNX.

Minimises the negative log likelihood of the gold starts and ends, summed over all places where the answer stands (the
marginal of Clark and Gardner, ACL 2018, Section 3.1); "no answer" is the position of [CLS] (SQuAD 2.0). The second
stage adds which sentences answer (:mod:`clew.train.sentence_reader`). See
:mod:`clew.train.reading_examples` for the data and :mod:`clew.models.span_reader` for the form of the input.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.arrays import Floats
from clew.core.errors import ModelError, require_packages
from clew.core.types import Span
from clew.evaluate.metrics.answers import exact_match, token_f1
from clew.models.encoders import MODEL_FILE, TOKENIZER_FILE, read_tokenizer
from clew.models.span_reader import FORMAT, SETTINGS_FILE, Tokens, best_spans, build_windows
from clew.train.export import Weights, convert_weights, read_int8
from clew.train.gradient_steps import GradientSteps, choose_device, count_finished, reduce_precision
from clew.train.reading_data import ReadingData
from clew.train.reading_examples import ReadingExample
from clew.train.sentence_reader import SentenceSettings, train_further
from clew.train.target_windows import TargetWindow, pad_batch, span_losses, target_windows
from clew.train.training_folder import FINISHED, TrainingFolder

#: Windows of similar length share a batch: this many batches are sorted by length together.
_POOL = 50


RECORD = "clew-reader-training.json"
#: The subfolder of the exported reader, and the checkpoints of the two stages of an unfinished training.
EXPORT_FOLDER, _CHECKPOINT, _FURTHER = "onnx", "state.pt", "further.pt"


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    """The settings of a reader's training.

    A step has ``batch`` windows of at most ``max_tokens`` tokens. ``learning_rate`` is the highest rate: it rises
    over the share ``warmup`` of the steps, then falls linearly to 0. ``clip`` bounds the norm of the gradient,
    ``save_every`` counts steps. ``further`` are the settings of the second stage.
    """

    epochs: int = 1
    batch: int = 24
    learning_rate: float = 3e-4
    warmup: float = 0.06
    weight_decay: float = 0.01
    clip: float = 1.0
    max_tokens: int = 320
    dropout: float = 0.0
    freeze_embeddings: bool = True
    seed: int = 0
    save_every: int = 50
    further: SentenceSettings = field(default_factory=SentenceSettings)


@dataclass(frozen=True, slots=True)
class ReaderPlan:
    """The plan of a training: its examples and windows, its steps, those that an interrupted run has finished."""

    examples: int
    windows: int
    steps: int
    done: int


def epoch_batches(
    windows: Sequence[TargetWindow], batch: int, rng: random.Random
) -> list[list[TargetWindow]]:
    """Return the batches of one epoch: windows of similar length together, batches in random order."""
    order = list(range(len(windows)))
    rng.shuffle(order)
    batches = []
    for start in range(0, len(order), batch * _POOL):
        pool = sorted(order[start : start + batch * _POOL], key=lambda index: len(windows[index].window.ids))
        batches += [
            [windows[index] for index in pool[first : first + batch]] for first in range(0, len(pool), batch)
        ]
    rng.shuffle(batches)
    return batches


def build_model(source: Path | str, dropout: float = 0.0) -> Any:
    """Return the encoder of a hub name or folder with a new head of three logits a token: start, end, sentence.
    Raises MissingExtra."""
    require_packages("train", "torch", "transformers")
    import torch
    from transformers import AutoModel

    class ReaderModel(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = AutoModel.from_pretrained(
                str(source),
                add_pooling_layer=False,
                # It can be exported, and takes half the time of torch's own in bfloat16 on a CPU.
                attn_implementation="eager",
                hidden_dropout_prob=dropout,
                attention_probs_dropout_prob=dropout,
                dtype=torch.float32,
            )
            self.head = torch.nn.Linear(self.encoder.config.hidden_size, 3)

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            states = self.encoder(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            )
            return self.head(states.last_hidden_state)

    torch.manual_seed(0)
    model = ReaderModel()
    torch.nn.init.normal_(model.head.weight, std=0.02)
    torch.nn.init.zeros_(model.head.bias)
    return model


def train_model(
    model: Any,
    windows: Sequence[TargetWindow],
    settings: ReaderSettings,
    progress: Callable[[int, int], None],
    checkpoint: Path,
) -> None:
    """Train ``model`` in place; continue from ``checkpoint`` if that file exists."""
    import torch

    model.encoder.embeddings.requires_grad_(not settings.freeze_embeddings)
    weights = [each for each in model.parameters() if each.requires_grad]
    total = count_steps(windows, settings)
    rising = max(round(settings.warmup * total), 1)

    def loss(_step: int, batch: Sequence[TargetWindow]) -> Any:
        arrays = {
            name: torch.from_numpy(array).to(choose_device()) for name, array in pad_batch(batch).items()
        }
        with reduce_precision():
            logits = model(arrays["input_ids"], arrays["attention_mask"], arrays["token_type_ids"])
        return span_losses(logits, arrays["attention_mask"], arrays["starts"], arrays["ends"]).mean()

    torch.manual_seed(settings.seed)
    GradientSteps(
        model,
        [{"params": weights, "lr": settings.learning_rate}],
        lambda step: min((step + 1) / rising, max(total - step, 0) / max(total - rising, 1)),
        total,
        checkpoint,
        settings.save_every,
        settings.clip,
        settings.weight_decay,
    ).run(_batches(windows, settings), loss, progress)


def count_steps(windows: Sequence[TargetWindow], settings: ReaderSettings) -> int:
    """Return the number of steps of a training."""
    pools = range(0, len(windows), settings.batch * _POOL)
    sizes = (min(settings.batch * _POOL, len(windows) - start) for start in pools)
    return settings.epochs * sum(-(-size // settings.batch) for size in sizes)


def _batches(windows: Sequence[TargetWindow], settings: ReaderSettings) -> Iterator[list[TargetWindow]]:
    for epoch in range(settings.epochs):
        yield from epoch_batches(windows, settings.batch, random.Random(f"{settings.seed} {epoch}"))


def read_spans(
    model: Any, tokens: Tokens, examples: Sequence[ReadingExample], max_tokens: int, limit: int = 5
) -> list[list[Span]]:
    """Return the best spans of each example by a torch model, as :meth:`SpanReader.read` does by its export."""
    import torch

    device = next(model.parameters()).device
    model.eval()
    windows = [
        (number, window)
        for number, example in enumerate(examples)
        for window in build_windows(tokens, example.question, example.passages, max_tokens)
    ]
    windows.sort(key=lambda item: len(item[1].ids))
    spans: list[list[Span]] = [[] for _ in examples]
    with torch.no_grad():
        for first in range(0, len(windows), 64):
            batch = windows[first : first + 64]
            arrays = pad_batch([TargetWindow(window, (0,), (0,)) for _, window in batch])
            inputs = [
                torch.from_numpy(arrays[name]).to(device)
                for name in ("input_ids", "attention_mask", "token_type_ids")
            ]
            logits: Floats = model(*inputs).float().cpu().numpy().astype(np.float64)
            for row, (number, window) in enumerate(batch):
                values = logits[row, : len(window.ids)]
                spans[number] += best_spans(
                    window, values[:, 0], values[:, 1], examples[number].passages, limit
                )
    model.train()
    return [sorted(candidates, key=lambda span: -span.score)[:limit] for candidates in spans]


def measure_answers(
    examples: Sequence[ReadingExample], spans: Sequence[Sequence[Span]]
) -> dict[str, dict[str, float]]:
    """Return by source, and for ``all``: the number of questions, EM, F1, and the share rightly left unanswered.

    EM and F1 are means over the questions with an answer, of the best span whatever its score; ``refused`` is the
    share of the questions without an answer whose best span scores below "no answer" (0).
    """
    rows: dict[str, list[tuple[float, float]]] = {}
    refusals: dict[str, list[bool]] = {}
    for example, candidates in zip(examples, spans, strict=True):
        for source in (example.source, "all"):
            golds = [example.verdict] if example.verdict else list(example.answers)
            if golds and (example.verdict or example.places):
                text = candidates[0].text if candidates else ""
                scores = (
                    max(exact_match(text, gold) for gold in golds),
                    max(token_f1(text, gold) for gold in golds),
                )
                rows.setdefault(source, []).append(scores)
            else:
                refusals.setdefault(source, []).append(not candidates or candidates[0].score < 0)
    measures = {}
    for source in sorted(rows.keys() | refusals.keys()):
        values = np.array(rows.get(source, [(np.nan, np.nan)]))
        refused = refusals.get(source, [])
        measures[source] = {
            "questions": float(len(rows.get(source, ()))),
            "EM": round(float(values[:, 0].mean()), 4),
            "F1": round(float(values[:, 1].mean()), 4),
            "unanswerable": float(len(refused)),
            "refused": round(float(np.mean(refused)), 4) if refused else float("nan"),
        }
    return measures


def export_reader(
    model: Any, tokenizer: Path, folder: Path, settings: Mapping[str, Any], weights: Weights = "int8"
) -> int:
    """Write a trained model as a reader that needs no torch; return the bytes of its graph.

    ``settings`` are ``name``, ``max_tokens`` and ``calibration`` of ``clew-reader.json``.
    """
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    sample = torch.ones((2, 8), dtype=torch.long)
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        model.cpu().eval(),
        (sample, sample, sample),
        str(folder / MODEL_FILE),
        input_names=inputs,
        output_names=["logits"],
        dynamic_axes={name: {0: "windows", 1: "tokens"} for name in (*inputs, "logits")},
        opset_version=17,
        dynamo=False,
    )
    convert_weights(folder / MODEL_FILE, weights)
    shutil.copy(tokenizer, folder / TOKENIZER_FILE)
    text = json.dumps({"format": FORMAT, **settings, "weights": weights}, indent=2)
    (folder / SETTINGS_FILE).write_text(text + "\n", encoding="utf-8")
    return (folder / MODEL_FILE).stat().st_size


def fit_calibration(spans: Sequence[Sequence[Span]], right: Sequence[bool]) -> tuple[float, float]:
    """Return slope and intercept of Platt's scaling: the probability that the best span is right, by its score.

    Fitted by Newton's method to the targets of Platt (1999), which keep the slope finite for separable data.
    """
    scores = np.array([candidates[0].score for candidates in spans])
    outcomes = np.array(right, dtype=float)
    positives = outcomes.sum()
    targets = np.where(outcomes > 0, (positives + 1) / (positives + 2), 1 / (len(outcomes) - positives + 2))
    parameters = np.zeros(2)
    features = np.stack([scores, np.ones_like(scores)], axis=1)
    for _ in range(50):
        probabilities = 1 / (1 + np.exp(-features @ parameters))
        gradient = features.T @ (probabilities - targets)
        hessian = (features * (probabilities * (1 - probabilities))[:, None]).T @ features
        parameters -= np.linalg.solve(hessian + 1e-6 * np.eye(2), gradient)
    return round(float(parameters[0]), 4), round(float(parameters[1]), 4)


def is_right(example: ReadingExample, text: str) -> bool:
    """Return whether a text answers an example: at least half of token F1 with an accepted answer."""
    golds = [example.verdict] if example.verdict else list(example.answers)
    return any(token_f1(text, gold) >= 0.5 for gold in golds)


def train_reader(
    data: ReadingData,
    source: str,
    settings: ReaderSettings,
    out: Path,
    report_plan: Callable[[ReaderPlan], None],
    progress: Callable[[str, int, int], None],
    start: Path | None = None,
) -> dict[str, Any]:
    """Train into the folder ``out`` and export; return the record, which is also written there.

    ``start`` is the folder of a reader that was exported before: the first stage is that reader's. After an interrupt
    the same call continues from the last checkpoint; a finished training is not repeated. The answers are calibrated
    and measured on the examples that ``data`` holds out, if there are any. Raises UsageError, MissingExtra,
    ModelError.
    """
    output = TrainingFolder(out, RECORD)
    output.check()
    description = {
        "model": Path(source).name if Path(source).is_dir() else source,
        **data.origin,
        "settings": asdict(settings),
        "questions": len(data.questions),
        "start": hashlib.sha256((start / MODEL_FILE).read_bytes()).hexdigest()[:16] if start else None,
    }
    if FINISHED in output.matching_record(description):
        return output.read()
    model = build_model(source, settings.dropout)
    output.begin(description)
    tokenizer = _save_tokenizer(source, out)
    tokens = Tokens(read_tokenizer(tokenizer))
    checkpoint, further_checkpoint = out / _CHECKPOINT, out / _FURTHER
    if start is not None:
        load_exported(model, start / MODEL_FILE)
    elif not further_checkpoint.is_file():
        windows = [
            window
            for example in data.training
            for window in target_windows(tokens, example, settings.max_tokens)
        ]
        steps = count_steps(windows, settings)
        report_plan(ReaderPlan(len(data.training), len(windows), steps, count_finished(checkpoint)))
        train_model(model, windows, settings, partial(progress, "words"), checkpoint)
    if data.questions:
        train_further(
            model,
            tokens,
            data.questions,
            settings.further,
            partial(progress, "sentences"),
            further_checkpoint,
        )
    measures, calibration = measure_held_out(model, tokens, data.held_out, settings.max_tokens)
    form = {"name": out.name, "max_tokens": settings.max_tokens, "calibration": calibration}
    export_reader(model, tokenizer, out / EXPORT_FOLDER, form)
    output.finish(output.read() | {FINISHED: measures, "calibration": calibration})
    checkpoint.unlink(missing_ok=True)
    further_checkpoint.unlink(missing_ok=True)
    tokenizer.unlink()
    return output.read()


def measure_held_out(
    model: Any, tokens: Tokens, examples: Sequence[ReadingExample], max_tokens: int
) -> tuple[dict[str, Any], tuple[float, float]]:
    """Return the measures of held-out examples, and the scaling of scores fitted to them; no measures and the default
    scaling without examples."""
    if not examples:
        return {}, DEFAULT_CALIBRATION
    spans = read_spans(model, tokens, examples, max_tokens)
    right = [is_right(example, own[0].text) for example, own in zip(examples, spans, strict=True)]
    return measure_answers(examples, spans), fit_calibration(spans, right)


def load_exported(model: Any, file: Path) -> None:
    """Give a model the weights of an exported reader, as near as eight bits keep them; a logit that it does not have
    begins at 0."""
    import torch

    weights = read_int8(file)
    state = model.state_dict()
    for name, values in state.items():
        if name not in weights:
            raise ModelError(f"{file} has no weights '{name}'", "Name a reader of the same encoder")
        given = torch.from_numpy(np.ascontiguousarray(weights[name]))
        if name.startswith("head") and len(given) < len(values):
            given = torch.cat([given, torch.zeros_like(values[len(given) :])])
        values.copy_(given)


#: The scaling of a reader that was trained without held-out examples.
DEFAULT_CALIBRATION = (0.5, 0.0)


def _save_tokenizer(source: str, out: Path) -> Path:
    from transformers import AutoTokenizer

    out.mkdir(parents=True, exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(source).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.save(str(out / TOKENIZER_FILE))
    return out / TOKENIZER_FILE
