"""The context of a language model: packing whole texts into as few calls as possible, and cutting long ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clew.core.protocols import Prompt


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The context of a language model: ``context`` tokens for a prompt and its reply together.

    ``tokens`` counts the tokens of a text, ``prompt_tokens`` those of a whole prompt. ``max_packed`` bounds the
    tokens of packed texts in a call (the chunk size of Nair et al., Section 4).
    """

    tokens: Callable[[str], int]
    prompt_tokens: Callable[[Prompt], int]
    context: int = 4096
    max_packed: int | None = None

    def room(self, empty: Prompt) -> int:
        """Return the tokens left for texts beside a prompt without texts, and its reply.

        The result is less than 1 if the prompt alone fills the context.
        """
        left = self.context - self.prompt_tokens(empty) - empty.max_tokens
        return left if self.max_packed is None else min(left, self.max_packed)


def pack(sizes: Iterable[int], room: int) -> list[range]:
    """Return consecutive ranges of items whose sizes sum to at most ``room``, each as long as possible.

    An item larger than ``room`` has a range of its own; the caller has to cut it.

    >>> pack([3, 3, 3, 9, 1], 7)
    [range(0, 2), range(2, 3), range(3, 4), range(4, 5)]
    """
    ranges: list[range] = []
    start = used = end = 0
    for end, size in enumerate(sizes, 1):
        if end - 1 > start and used + size > room:
            ranges.append(range(start, end - 1))
            start, used = end - 1, 0
        used += size
    return [*ranges, range(start, end)] if end > start else ranges


def truncate(text: str, room: int, tokens: Callable[[str], int]) -> str:
    """Return the longest beginning of ``text`` that has at most ``room`` tokens.

    ``tokens`` must not fall as a text grows.
    """
    if tokens(text) <= room:
        return text
    lengths = range(1, len(text) + 1)
    return text[: bisect_right(lengths, max(room, 0), key=lambda length: tokens(text[:length]))]


def one_line(text: str) -> str:
    """Return a text without line breaks."""
    return " ".join(text.split())


def truncate_all(
    texts: Sequence[str], room: int, tokens: Callable[[str], int]
) -> tuple[list[str], list[int]]:
    """Return texts cut to at most ``room`` tokens each, and the indexes of those that were cut."""
    cut = [truncate(text, room, tokens) for text in texts]
    return cut, [n for n, (text, whole) in enumerate(zip(cut, texts, strict=True)) if text != whole]
