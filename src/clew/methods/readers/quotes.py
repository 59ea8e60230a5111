"""Whether words stand verbatim in a source, and where.

Compared are the characters, except for what reading and retyping change without changing what is said: runs
of white space, the shape of quotation marks, apostrophes and dashes, soft hyphens, a word divided at the end
of a line, ligatures, and whether an accent is a character of its own. Case counts, and so does every digit
and sign. A quote starts and ends at the edge of a word or number: "12" does not stand in "1,250".
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_SAME = {
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
#: What models put around a quote, and never means anything.
_AROUND = " \t\r\n\"'“”„«»‘’…"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text to find quotes in: as compared, and for each compared character the range it came from."""

    text: str
    normalised: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> SourceText:
        """Prepare a text."""
        compared: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        joined = {at for divided in _DIVIDED.finditer(text) for at in range(*divided.span())}
        for at, char in enumerate(text):
            if at in joined:
                continue
            for piece in _compared(char):
                if piece == " " and compared[-1:] == [" "]:
                    ends[-1] = at + 1
                    continue
                compared.append(piece)
                starts.append(at)
                ends.append(at + 1)
        return cls(text, "".join(compared), tuple(starts), tuple(ends))

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return the range of ``quote`` in the text, or None where it does not stand there.

        A full stop, comma or the like that ends the quote and not the source's words is overlooked.
        """
        wanted = quote.strip(_AROUND).removesuffix("...").removeprefix("...").strip(_AROUND)
        for form in (wanted, wanted.rstrip(".,;:!?")):
            span = self._find(SourceText.from_text(form).normalised.strip())
            if span is not None:
                return span
        return None

    def _find(self, words: str) -> tuple[int, int] | None:
        if not _WORD.search(words):
            return None
        found = re.search(_edge_before(words[0]) + re.escape(words) + _edge_after(words[-1]), self.normalised)
        return (self.starts[found.start()], self.ends[found.end() - 1]) if found else None


def _compared(char: str) -> str:
    if char.isspace():
        return " "
    same = _SAME.get(char)
    return unicodedata.normalize("NFD", char) if same is None else same


def _edge_before(first: str) -> str:
    edge = rf"(?<!{_SPACED})" if re.match(_SPACED, first) else ""
    return edge + (r"(?<!\d[.,])" if first.isdigit() else "")


def _edge_after(last: str) -> str:
    edge = rf"(?!{_SPACED})" if re.match(_SPACED, last) else ""
    return edge + (r"(?![.,]\d)" if last.isdigit() else "")
