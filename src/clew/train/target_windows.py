"""Windows of a reader with the tokens where the answer starts and ends, and their loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.models.span_reader import Tokens, Window, build_windows, verdict_positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.train.reading_examples import ReadingExample


@dataclass(frozen=True, slots=True)
class TargetWindow:
    """A window with the token positions where the answer starts and ends; [CLS] (0) for no answer."""

    window: Window
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def target_windows(tokens: Tokens, example: ReadingExample, max_tokens: int) -> Iterator[TargetWindow]:
    """Yield the windows of an example with their targets: those with the answer, and the first one without it."""
    missed = False
    for window in build_windows(tokens, example.question, example.passages, max_tokens):
        if example.verdict:
            position = verdict_positions(window)[example.verdict == "no"]
            yield TargetWindow(window, (position,), (position,))
            return
        pairs = answer_positions(window, example)
        if pairs:
            starts, ends = zip(*pairs, strict=True)
            yield TargetWindow(window, starts, ends)
        elif not missed:
            missed = True
            yield TargetWindow(window, (0,), (0,))


def answer_positions(window: Window, example: ReadingExample) -> list[tuple[int, int]]:
    """Return the tokens at which the places of an answer start and end in a window."""
    pairs = []
    for place in example.places:
        inside = np.flatnonzero(
            (window.places[:, 0] == place.passage)
            & (window.in_title == place.in_title)
            & (window.places[:, 1] < place.end)
            & (window.places[:, 2] > place.start)
        )
        # A place that a window cuts is no target of it.
        if (
            len(inside)
            and window.places[inside[0], 1] <= place.start
            and window.places[inside[-1], 2] >= place.end
        ):
            pairs.append((int(inside[0]), int(inside[-1])))
    return pairs


def pad_batch(batch: Sequence[TargetWindow]) -> dict[str, NDArray[Any]]:
    """Return the arrays of a batch, (windows, tokens) each: ids, mask, type ids, and the gold starts and ends."""
    shape = (len(batch), max(len(item.window.ids) for item in batch))
    arrays: dict[str, NDArray[Any]] = {
        name: np.zeros(shape, dtype=np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")
    }
    arrays |= {name: np.zeros(shape, dtype=bool) for name in ("starts", "ends")}
    for row, item in enumerate(batch):
        length = len(item.window.ids)
        arrays["input_ids"][row, :length] = item.window.ids
        arrays["attention_mask"][row, :length] = 1
        arrays["token_type_ids"][row, :length] = item.window.type_ids
        arrays["starts"][row, list(item.starts)] = True
        arrays["ends"][row, list(item.ends)] = True
    return arrays


def span_losses(logits: Any, mask: Any, starts: Any, ends: Any) -> Any:
    """Return the negative log likelihood of the gold starts and ends, (windows,); logits are (windows, tokens, 2 or
    more)."""
    import torch

    log_probabilities = torch.log_softmax(logits.float().masked_fill(~mask.bool().unsqueeze(-1), -1e4), dim=1)
    losses = [
        -torch.logsumexp(log_probabilities[..., side].masked_fill(~gold, -1e4), dim=1)
        for side, gold in enumerate((starts, ends))
    ]
    return (losses[0] + losses[1]) / 2
