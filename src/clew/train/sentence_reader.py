"""Training a reader further: which sentences of its passages answer, beside the words that do.

The third logit of a token is that of a sentence. The score of a sentence, list or row is its mean over the option's
tokens; the options of all windows of a question, and "none of these", share a softmax. Starts, ends, yes and no are
trained on as before (:mod:`clew.train.reader`), over the same windows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.models.span_reader import Tokens, Window, build_windows, option_tokens, verdict_positions
from clew.train.gradient_steps import GradientSteps, choose_device, reduce_precision
from clew.train.sentence_questions import SentenceQuestion
from clew.train.target_windows import TargetWindow, answer_positions, pad_batch, span_losses

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Passages of a question that are trained on at once; in this share of questions none that answers is among them.
PASSAGES, WITHOUT = 4, 0.15


@dataclass(frozen=True, slots=True)
class SentenceSettings:
    """The settings of a training: ``steps`` of ``batch`` questions; ``span_weight`` is that of the words that answer
    beside the sentences."""

    steps: int = 1100
    batch: int = 8
    learning_rate: float = 1e-4
    head_rate: float = 1e-3
    warmup: float = 0.06
    weight_decay: float = 0.01
    clip: float = 1.0
    max_tokens: int = 320
    span_weight: float = 0.5
    seed: int = 0
    save_every: int = 25


@dataclass(frozen=True, slots=True, eq=False)
class DrawnWindow:
    """A window of the question at ``place`` of a batch: its targets, None where they are not trained on, and the
    tokens of its options, (options, tokens), with which are right."""

    place: int
    window: Window
    target: TargetWindow | None
    tokens: NDArray[np.bool_]
    right: NDArray[np.bool_]


def draw_passages(question: SentenceQuestion, drawer: random.Random) -> SentenceQuestion:
    """Return the question over a few of its passages in any order, those that answer among them or not."""
    golds = sorted(question.golds | question.needed)
    others = [number for number in range(len(question.example.passages)) if number not in golds]
    drawer.shuffle(others)
    if golds and others and drawer.random() < WITHOUT:
        golds = []
    chosen = golds[:PASSAGES] + others[: max(PASSAGES - len(golds), 1)]
    drawer.shuffle(chosen)
    return question.choose(chosen)


def draw_windows(
    tokens: Tokens, question: SentenceQuestion, place: int, max_tokens: int
) -> Iterator[DrawnWindow]:
    """Yield the windows of a question with what they are trained on."""
    example, golds = question.example, question.golds
    for window in build_windows(tokens, example.question, example.passages, max_tokens):
        inside = [option_tokens(window, *option[:3]) for option in question.options]
        usable = [number for number, own in enumerate(inside) if own.any()]
        pairs = answer_positions(window, example)
        if example.verdict and golds & set(window.places[:, 0].tolist()):
            position = verdict_positions(window)[example.verdict == "no"]
            pairs = [(position, position)]
        starts, ends = zip(*pairs, strict=True) if pairs else ((0,), (0,))
        yield DrawnWindow(
            place,
            window,
            TargetWindow(window, starts, ends) if question.is_marked else None,
            np.array([inside[number] for number in usable], dtype=bool).reshape(len(usable), len(window.ids)),
            np.array([question.options[number].right for number in usable], dtype=bool),
        )


def train_further(
    model: Any,
    tokens: Tokens,
    questions: Sequence[SentenceQuestion],
    settings: SentenceSettings,
    progress: Callable[[int, int], None],
    checkpoint: Path,
) -> None:
    """Train the three logits of ``model`` in place; continue from ``checkpoint`` if that file exists. At the end the
    score of "none of these" is 0."""
    import torch

    model.none = torch.nn.Parameter(torch.tensor(0.0))
    model.encoder.embeddings.requires_grad_(False)
    own = [each for each in model.encoder.parameters() if each.requires_grad]
    rising = max(round(settings.warmup * settings.steps), 1)

    def loss(step: int, batch: Sequence[SentenceQuestion]) -> Any:
        windows = [
            window
            for place, question in enumerate(batch)
            for window in draw_windows(
                tokens,
                draw_passages(question, random.Random(f"{settings.seed} {step} {place}")),
                place,
                settings.max_tokens,
            )
        ]
        return _loss(model, windows, len(batch), settings, choose_device())

    GradientSteps(
        model,
        [
            {"params": own, "lr": settings.learning_rate},
            {"params": [*model.head.parameters(), model.none], "lr": settings.head_rate},
        ],
        lambda step: min((step + 1) / rising, max(0.02, 1 - step / settings.steps)),
        settings.steps,
        checkpoint,
        settings.save_every,
        settings.clip,
        settings.weight_decay,
    ).run(_batches(questions, settings), loss, progress)
    with torch.no_grad():
        model.head.bias[2] -= model.none
    del model.none
    model.cpu().eval()


def _batches(
    questions: Sequence[SentenceQuestion], settings: SentenceSettings
) -> Iterator[list[SentenceQuestion]]:
    rng = random.Random(settings.seed)
    while True:
        order = list(questions)
        rng.shuffle(order)
        for start in range(0, len(order) - settings.batch + 1, settings.batch):
            yield order[start : start + settings.batch]


def _loss(
    model: Any, windows: Sequence[DrawnWindow], count: int, settings: SentenceSettings, device: Any
) -> Any:
    """Return the loss of the windows of ``count`` questions."""
    import torch

    scores: list[list[Any]] = [[model.none.view(1)] for _ in range(count)]
    right: list[list[NDArray[np.bool_]]] = [[] for _ in range(count)]
    spans = []
    # Windows of about the same length go through the model together: little of the work is padding.
    order = sorted(windows, key=lambda each: len(each.window.ids))
    for first in range(0, len(order), 8):
        batch = order[first : first + 8]
        arrays = {
            name: torch.from_numpy(array).to(device)
            for name, array in pad_batch(
                [each.target or TargetWindow(each.window, (0,), (0,)) for each in batch]
            ).items()
        }
        with reduce_precision():
            logits = model(arrays["input_ids"], arrays["attention_mask"], arrays["token_type_ids"]).float()
        losses = span_losses(logits, arrays["attention_mask"], arrays["starts"], arrays["ends"])
        for row, each in enumerate(batch):
            if each.target is not None:
                spans.append(losses[row])
            if len(each.right):
                inside = torch.from_numpy(each.tokens).to(device).float()
                own = logits[row, : inside.shape[1], 2]
                scores[each.place].append(inside @ own / inside.sum(dim=1))
                right[each.place].append(each.right)
    sentences = []
    for own, flags in zip(scores, right, strict=True):
        chances = torch.log_softmax(torch.cat(own), 0)
        goods = np.concatenate([[False], *flags])
        goods[0] = not goods.any()
        sentences.append(-torch.logsumexp(chances[torch.from_numpy(goods).to(device)], 0))
    loss = torch.stack(sentences).mean()
    if spans:
        loss = loss + settings.span_weight * torch.stack(spans).mean()
    return loss
