"""Hyphens at the ends of lines: whether they divide a word or belong to it, by the other words of the document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from clew.core.languages import FUNCTION_WORDS

_HYPHEN = "[-\u2010]"
_WORD = re.compile(rf"[^\W\d_]+(?:{_HYPHEN}[^\W\d_]+)*")
_BEFORE = re.compile(rf"(?P<word>{_WORD.pattern}){_HYPHEN}$")
_HYPHENATED = re.compile(rf"[^\W_]{_HYPHEN}$")
#: A word that shares its second part with the next one but one: "pre-" before "and post-war".
_SHARED = re.compile(rf"[^\W\d_]+ +[^\W\d_]+{_HYPHEN}[^\W\d_]")
#: A document divides no words if it keeps so many hyphens that its other words decide, for each that it does not.
_KEPT = 4
#: The function words of every language.
ALL_FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS.values())


@dataclass(frozen=True, slots=True)
class Hyphens:
    """How often each word, casefolded, stands in a document, without the parts at hyphens that end lines; and how
    many of these hyphens its other words keep, and how many they do not."""

    counts: Counter[str]
    hyphenated: int = 0
    joined: int = 0

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Hyphens:
        """Learn the words of a document from its lines."""
        counts: Counter[str] = Counter()
        parts: list[tuple[str, str]] = []
        for before, line in pairwise(("", *lines)):
            counts.update(_words(line))
            if (left := _BEFORE.search(before)) and (right := _WORD.match(line)):
                parts.append((_fold(left["word"]), _fold(right[0])))
        counts.subtract(part for pair in parts for part in pair)
        hyphenated = sum(counts[f"{left}-{right}"] > counts[left + right] for left, right in parts)
        joined = sum(counts[f"{left}-{right}"] < counts[left + right] for left, right in parts)
        return cls(counts, hyphenated, joined)

    def join(self, before: str, after: str) -> str:
        """Return two texts, the end of a line and what follows, as one; a word that was divided is put together.

        >>> Hyphens.from_lines(["long-term plans"]).join("a long-", "term lease of the wind-")
        'a long-term lease of the wind-'
        >>> Hyphens.from_lines([]).join("lease of the wind-", "lass"), Hyphens.from_lines([]).join("Franco-", "Swiss")
        ('lease of the windlass', 'Franco-Swiss')
        """
        if not _HYPHENATED.search(before) or not after[:1].isalnum():
            return f"{before} {after}".strip()
        left, right = _BEFORE.search(before), _WORD.match(after)
        if left is None or right is None:
            return before + after
        first, second = _fold(left["word"]), _fold(right[0])
        is_known = self.counts[first + second] or self.counts[f"{first}-{second}"]
        if not is_known and _SHARED.match(after) and self._stands(second):
            return f"{before} {after}"
        return before + after if self._keeps(left["word"], right[0]) else before[:-1] + after

    def _keeps(self, left: str, right: str) -> bool:
        """Return whether a hyphen belongs to the word that it is in."""
        is_name = right[0].isupper() and not (left.isupper() and right.isupper())
        left, right = _fold(left), _fold(right)
        whole, apart = self.counts[left + right], self.counts[f"{left}-{right}"]
        if whole or apart:
            return apart >= whole
        if is_name:
            return True
        ends = left.rpartition("-")[2], right.partition("-")[0]
        if min(map(len, ends)) == 1:
            return True  # no word is divided after a letter
        if ends != (left, right) and not self.counts["".join(ends)]:
            return any(map(self._stands, ends))
        if self.hyphenated >= _KEPT * (self.joined + 1):
            return True
        parts = ends[:1] if self.hyphenated > self.joined else ends
        return all(self.counts[part] > 0 for part in parts)

    def _stands(self, word: str) -> bool:
        return self.counts[word] > 0 or word in ALL_FUNCTION_WORDS


def _fold(word: str) -> str:
    return word.casefold().replace("\u2010", "-")


def _words(line: str) -> list[str]:
    return [_fold(word) for word in _WORD.findall(line)]
