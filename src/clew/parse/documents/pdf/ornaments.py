"""Large letters on a page: watermarks, which are no text, and initials, which belong to the word beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from clew.parse.documents.pdf.hyphens import ALL_FUNCTION_WORDS
from clew.parse.documents.pdf.words import INITIAL, WATERMARK, Page, Word

#: The letters of a watermark are at least so many times as large as the text of its page.
_WATERMARK = 2.5
#: The height of a capital letter, by its size.
_CAPITAL = 0.72


def leave_out_watermark(page: Page) -> Page:
    """Return a page without its watermark: large light words with text before or behind them."""
    large = _WATERMARK * median([word.size for word in page.words] or [0.0])
    watermark = [
        word
        for word in page.words
        if word.is_light and word.size > large and _is_written_over(word, page.words)
    ]
    if not watermark:
        return page
    words = tuple(word for word in page.words if word not in watermark)
    text = " ".join(word.text for word in watermark)
    return replace(page, words=words, left_out=(*page.left_out, (WATERMARK, text)))


def _is_written_over(large: Word, words: Sequence[Word]) -> bool:
    """Return whether other words stand where a large one does."""
    top = large.y - _CAPITAL * large.size
    return any(
        large.x0 < (word.x0 + word.x1) / 2 < large.x1 and top < word.y - word.size / 3 < large.y
        for word in words
        if word.size < large.size / 2
    )


def join_initials(page: Page, pages: Iterable[Page]) -> Page:
    """Return a page on which each big letter that begins a paragraph, over several of its lines, is part of the first
    word; ``pages`` tell whether the letter is a word of its own, as in "A harbour"."""
    words = list(page.words)
    for initial in [word for word in words if len(word.text) == 1 and word.text.isupper()]:
        beside = sorted((word for word in words if _is_beside(initial, word)), key=lambda word: word.y)
        if len(beside) < 2 or abs(beside[-1].y - initial.y) > 0.4 * beside[-1].size:
            continue
        first = beside[0]
        others = [word for other in pages for word in other.words if word not in (initial, first)]
        is_apart = _is_word(initial.text, others) and not _is_word(initial.text + first.text, others)
        gap = " " if is_apart and _is_word(first.text, others) else ""
        words[words.index(first)] = replace(first, text=f"{initial.text}{gap}{first.text}")
        words.remove(initial)
    return replace(page, words=tuple(words)) if len(words) < len(page.words) else page


def _is_beside(initial: Word, word: Word) -> bool:
    """Return whether a word begins a line right of an initial."""
    top = initial.y - _CAPITAL * (initial.size - word.size) - 0.6 * word.size
    return (
        initial.size > INITIAL * word.size
        and -0.1 * initial.size < word.x0 - initial.x1 < word.size
        and top < word.y < initial.y + 0.4 * word.size
        and word.text[:1].isalpha()
    )


def _is_word(text: str, words: Iterable[Word]) -> bool:
    """Return whether a text is a function word or one of the words, whatever its case and its stops."""
    folded = text.casefold()
    return folded in ALL_FUNCTION_WORDS or any(word.text.casefold().strip(".,;:") == folded for word in words)
