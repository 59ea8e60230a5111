"""Finding quotes verbatim in their sources.

The comparison ignores what reading and retyping change without changing the meaning: runs of white space, the shape
of quotation marks, apostrophes and dashes, soft hyphens, a word divided at the end of a line, ligatures, and whether
an accent is a character of its own. Case counts, and so does every digit and sign. A quote starts and ends at the
edge of a word or number: "12" is not in "1,250".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.types import Hit, Quote

_EQUIVALENTS = {
    **dict.fromkeys("“”„‟«»″〝〞", '"'),
    **dict.fromkeys("‘’‚‛′`´", "'"),
    **dict.fromkeys("‐‑‒–—―−﹣－", "-"),
    **{"\u00ad": "", "\u200b": "", "\u2060": "", "\ufeff": "", "…": "..."},
    **{"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"},
}
_DIVIDED = re.compile(r"(?<=[^\W\d])[-\u00ad‐]\s*\n\s*(?=[a-zà-öø-ÿ])")
_WORD = re.compile(r"[^\W_]")
#: A character of a script that puts spaces between words.
_SPACED = r"(?![\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])\w"
#: Models put these around a quote; they mean nothing.
_AROUND = " \t\r\n\"'“”„«»‘’…"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text to find quotes in: its normalised form, and for each character of that the range it came from."""

    text: str
    normalised: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> SourceText:
        """Normalise a text."""
        characters: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        line_ends = {index for division in _DIVIDED.finditer(text) for index in range(*division.span())}
        for index, char in enumerate(text):
            if index in line_ends:
                continue
            for character in _normalise(char):
                if character == " " and characters[-1:] == [" "]:
                    ends[-1] = index + 1
                    continue
                characters.append(character)
                starts.append(index)
                ends.append(index + 1)
        return cls(text, "".join(characters), tuple(starts), tuple(ends))

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return the range of ``quote`` in the text, or None if it is not there.

        A full stop, comma or the like at the end of the quote may be missing in the source.
        """
        quote = quote.strip(_AROUND).removesuffix("...").removeprefix("...").strip(_AROUND)
        for form in (quote, quote.rstrip(".,;:!?")):
            span = self._find(SourceText.from_text(form).normalised.strip())
            if span is not None:
                return span
        return None

    def _find(self, words: str) -> tuple[int, int] | None:
        if not _WORD.search(words):
            return None
        pattern = _edge_before(words[0]) + re.escape(words) + _edge_after(words[-1])
        match = re.search(pattern, self.normalised)
        return (self.starts[match.start()], self.ends[match.end() - 1]) if match else None


def find_verbatim(text: str, hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return a text as a quote from the first hit that has it verbatim, as a tuple of one; an empty one if none
    has."""
    for hit in hits:
        span = SourceText.from_text(hit.node.text).find(text)
        if span:
            return (Quote(hit.node.id, hit.node.text[slice(*span)], span),)
    return ()


def _normalise(char: str) -> str:
    if char.isspace():
        return " "
    equivalent = _EQUIVALENTS.get(char)
    return unicodedata.normalize("NFD", char) if equivalent is None else equivalent


def _edge_before(first: str) -> str:
    edge = rf"(?<!{_SPACED})" if re.match(_SPACED, first) else ""
    return edge + (r"(?<!\d[.,])" if first.isdigit() else "")


def _edge_after(last: str) -> str:
    edge = rf"(?!{_SPACED})" if re.match(_SPACED, last) else ""
    return edge + (r"(?![.,]\d)" if last.isdigit() else "")
