"""Training a reader further: which sentences of its passages answer, beside the words that do.

The third logit of a token is that of a sentence. The score of a sentence, list or row is its mean over the option's
tokens; the options of all windows of a question, and "none of these", share a softmax. Those that answer, and the
likeliest of the others, are then read once more, each alone, with a softmax of their own. Starts, ends, yes and no
are trained on as before (:mod:`clew.train.reader`), over the windows of passages.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.text import index_terms, query_terms
from clew.models.span_reader import Tokens, Window, build_windows, option_tokens, verdict_positions
from clew.questions.sentences import stand_alone
from clew.train.gradient_steps import GradientSteps, choose_device, reduce_precision
from clew.train.sentence_questions import PassageOption, SentenceQuestion
from clew.train.target_windows import TargetWindow, answer_positions, pad_batch, span_losses

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Passages of a question that are trained on at once, of which so many have the most words of the question; in this
#: share of questions none that answers is among them.
PASSAGES, NEAREST, WITHOUT = 4, 2, 0.15
#: So many options of a question are read alone, of which so many answer at most.
DRAWN_ALONE, MOST_RIGHT = 8, 2


@dataclass(frozen=True, slots=True)
class SentenceSettings:
    """The settings of a training: ``steps`` of ``batch`` questions; ``span_weight`` is that of the words that answer
    beside the sentences."""

    steps: int = 1800
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
    """A window of the question at ``place`` of a batch: its targets, None where they are not trained on, and its
    ``options`` with their ``tokens``, (options, tokens)."""

    place: int
    window: Window
    target: TargetWindow | None
    options: Sequence[PassageOption]
    tokens: NDArray[np.bool_]


def draw_passages(question: SentenceQuestion, drawer: random.Random) -> SentenceQuestion:
    """Return the question over a few of its passages in any order, those that answer among them or not; of the others
    those first that have the most words of the question."""
    passages = question.example.passages
    golds = sorted(question.golds | question.needed)
    others = [number for number in range(len(passages)) if number not in golds]
    drawer.shuffle(others)
    words = set(query_terms(question.example.question))

    def count_shared(number: int) -> int:
        passage = passages[number]
        return len(words.intersection(index_terms(f"{passage.title} {passage.text}")))

    nearest = sorted(others, key=count_shared, reverse=True)[:NEAREST]
    others = [*nearest, *(number for number in others if number not in nearest)]
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
        inside = [(option, option_tokens(window, *option[:3])) for option in question.options]
        usable = [(option, own) for option, own in inside if own.any()]
        pairs = answer_positions(window, example)
        if example.verdict and golds & set(window.places[:, 0].tolist()):
            position = verdict_positions(window)[example.verdict == "no"]
            pairs = [(position, position)]
        starts, ends = zip(*pairs, strict=True) if pairs else ((0,), (0,))
        yield DrawnWindow(
            place,
            window,
            TargetWindow(window, starts, ends) if question.is_marked else None,
            [option for option, _ in usable],
            np.array([own for _, own in usable], dtype=bool).reshape(len(usable), len(window.ids)),
        )


def draw_alone(
    tokens: Tokens,
    question: SentenceQuestion,
    place: int,
    scores: Mapping[PassageOption, float],
    max_tokens: int,
    drawer: random.Random,
) -> Iterator[DrawnWindow]:
    """Yield a window for each option of a question that is read alone: some of those that answer, and the likeliest
    of the others by their ``scores``, each text once."""
    right = [option for option in scores if option.right]
    chosen = drawer.sample(right, min(len(right), MOST_RIGHT))
    passages = question.example.passages
    texts = {passages[option.passage].text[option.start : option.end] for option in right}
    for option in sorted(scores, key=lambda option: -scores[option]):
        text = passages[option.passage].text[option.start : option.end]
        if len(chosen) < DRAWN_ALONE and text not in texts:
            texts.add(text)
            chosen.append(option)
    for option in chosen:
        passage = passages[option.passage]
        alone, start, end = stand_alone(passage.title, passage.text, option.start, option.end)
        windows = build_windows(tokens, question.example.question, [alone], max_tokens)
        own = [(window, option_tokens(window, 0, start, end)) for window in windows]
        window, inside = max(own, key=lambda each: int(each[1].sum()))
        if inside.any():
            yield DrawnWindow(place, window, None, [option], inside[None])


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
        drawers = [random.Random(f"{settings.seed} {step} {place}") for place in range(len(batch))]
        drawn = [draw_passages(question, drawer) for question, drawer in zip(batch, drawers, strict=True)]
        windows = [
            window
            for place, question in enumerate(drawn)
            for window in draw_windows(tokens, question, place, settings.max_tokens)
        ]
        scores, spans = _read_windows(model, windows, len(batch))
        alone = [
            window
            for place, (question, own) in enumerate(zip(drawn, scores, strict=True))
            for window in draw_alone(
                tokens,
                question,
                place,
                {option: score.item() for option, score in own},
                settings.max_tokens,
                drawers[place],
            )
        ]
        total = _choice_loss(model, scores) + _choice_loss(model, _read_windows(model, alone, len(batch))[0])
        return total + settings.span_weight * torch.stack(spans).mean() if spans else total

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


def _read_windows(
    model: Any, windows: Sequence[DrawnWindow], count: int
) -> tuple[list[list[tuple[PassageOption, Any]]], list[Any]]:
    """Return the options of each of ``count`` questions with their scores, and the losses of the words that are
    marked."""
    import torch

    device = choose_device()
    scores: list[list[tuple[PassageOption, Any]]] = [[] for _ in range(count)]
    spans = []
    # Windows of about the same length go through the model together: little of the work is padding.
    order = sorted(windows, key=lambda each: len(each.window.ids))
    for batch in _cut(order, 2048):
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
            if len(each.options):
                inside = torch.from_numpy(each.tokens).to(device).float()
                own = logits[row, : inside.shape[1], 2]
                scores[each.place] += zip(each.options, inside @ own / inside.sum(dim=1), strict=True)
    return scores, spans


def _cut(windows: Sequence[DrawnWindow], most: int) -> Iterator[Sequence[DrawnWindow]]:
    """Yield windows, the shortest first, in groups that have at most ``most`` tokens with their padding."""
    first = 0
    for number, window in enumerate(windows):
        if number > first and (number + 1 - first) * len(window.window.ids) > most:
            yield windows[first:number]
            first = number
    if windows:
        yield windows[first:]


def _choice_loss(model: Any, scores: Sequence[Sequence[tuple[PassageOption, Any]]]) -> Any:
    """Return the mean loss of the choice among the options of each question and none of them."""
    import torch

    losses = []
    for own in scores:
        chances = torch.log_softmax(torch.stack([model.none, *(score for _, score in own)]), 0)
        flags = [option.right for option, _ in own]
        goods = torch.tensor([not any(flags), *flags], device=chances.device)
        losses.append(-torch.logsumexp(chances[goods], 0))
    return torch.stack(losses).mean()
