"""Names by their spelling: an inverted index of trigrams that proposes, and the edit distances that decide.

A name is compared as :func:`clew.core.text.fold_name` leaves it, its first :data:`MAX_NAME_LENGTH` characters.
Its grams are the
three-character pieces of ``" name "`` whose middle is not a space: two orders of the same words have the same
grams. A gram is a 32-bit hash of its characters; two that fall together propose a few names more, and decide
nothing. Grams in more than :data:`MAX_NAMES_PER_GRAM` names are left out: they tell little, and would make a
look-up in
millions of names slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.arrays import run_offsets
from clew.core.text import fold_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats, Rows
    from clew.store.array_files import Arrays

#: What is kept of a name.
MAX_NAME_LENGTH = 120
#: A gram in more names is no gram; at most so many entries of the index are read for one name.
MAX_NAMES_PER_GRAM, MAX_ENTRIES_READ = 1 << 18, 1 << 16
#: Names that are scored.
MAX_SCORED = 400
#: What names of very different length lose of what they share.
LENGTH_PENALTY = 0.3
#: What is left of a likeness that takes other words together, or only some of them.
REORDERED_FACTOR, PARTIAL_FACTOR = 0.97, 0.9
#: Names whose grams are sorted at once.
_CHUNK = 1 << 14
_MIX = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)
_SPACE = np.uint32(32)


def clip_name(name: str) -> bytes:
    """Return a folded name as it is kept: its first characters in UTF-8."""
    return name[:MAX_NAME_LENGTH].encode()


def name_grams(texts: bytes, starts: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the grams of names that lie one after the other in UTF-8, and the place of the name of each."""
    content = np.frombuffer(texts, dtype=np.uint8)
    # A character begins at every byte that does not continue one.
    begins = run_offsets(((content & 0xC0) != 0x80).astype(np.int64))
    lengths = np.diff(begins[starts])
    letters = np.frombuffer(texts.decode().encode("utf-32-le"), dtype="<u4")
    owners = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths + 2)
    padded = np.full(len(letters) + 2 * len(lengths), _SPACE, dtype=np.uint32)
    shift = np.repeat(np.arange(len(lengths)) * 2 + 1, lengths)
    padded[np.arange(len(letters)) + shift] = letters
    if len(padded) < 3:
        return np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint32)
    before, middle, after = padded[:-2], padded[1:-1], padded[2:]
    codes = (before * _MIX[0] + middle) * _MIX[1] + after
    kept = middle != _SPACE
    return codes[kept], owners[1:-1][kept]


def build_spelling_index(texts: NDArray[np.uint8], starts: NDArray[np.int64], folder: Path) -> Arrays:
    """Return the index of names: ``grams.codes`` ascending, and for each, from ``grams.starts`` on, the places in
    ``grams.names`` ascending.

    Built in chunks of names, with what is between in a file of ``folder`` that has no name; the memory is that of a
    chunk, and of the index itself.
    """
    sizes: list[NDArray[np.int64]] = []
    codes: list[NDArray[np.uint32]] = []
    with TemporaryFile(dir=folder) as file:
        for chunk_codes, counts, names in _chunks(texts, starts):
            codes.append(chunk_codes)
            sizes.append(counts)
            file.write(names.tobytes())
        known = np.unique(np.concatenate([np.empty(0, dtype=np.uint32), *codes]))
        total = np.zeros(len(known), dtype=np.int64)
        for chunk_codes, counts in zip(codes, sizes, strict=True):
            total[np.searchsorted(known, chunk_codes)] += counts
        kept = np.where(total <= MAX_NAMES_PER_GRAM, total, 0)
        found = run_offsets(kept)
        names = np.empty(int(found[-1]), dtype=np.uint32)
        free = found[:-1].copy()
        file.seek(0)
        for chunk_codes, counts in zip(codes, sizes, strict=True):
            read = np.frombuffer(file.read(int(counts.sum()) * 4), dtype=np.uint32)
            places = np.searchsorted(known, chunk_codes)
            room = kept[places] > 0
            taken = np.where(room, counts, 0)
            offsets = run_offsets(taken)
            at = np.repeat(free[places] - offsets[:-1], taken) + np.arange(int(offsets[-1]))
            names[at] = read[np.repeat(room, counts)]
            free[places] += taken
    some = kept > 0
    return {
        "grams.codes": known[some],
        "grams.starts": run_offsets(kept[some]),
        "grams.names": names,
    }


def _chunks(
    texts: NDArray[np.uint8], starts: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]]:
    """Yield for some names at a time their different grams ascending, how many names have each, and these names."""
    for first in range(0, len(starts) - 1, _CHUNK):
        part = starts[first : first + _CHUNK + 1]
        codes, owners = name_grams(texts[part[0] : part[-1]].tobytes(), part - part[0])
        keys = (codes.astype(np.uint64) << np.uint64(32)) | (owners + np.uint32(first))
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
        code = (keys >> np.uint64(32)).astype(np.uint32)
        firsts = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]])) if len(code) else keys[:0]
        counts = np.diff(np.append(firsts, len(code))).astype(np.int64)
        yield code[firsts.astype(np.int64)], counts, keys.astype(np.uint32)


class SpellingIndex:
    """The index, opened. ``arrays`` has ``names.texts`` and ``names.starts`` besides what :func:`indexed` made."""

    def __init__(self, arrays: Arrays) -> None:
        self._texts: Any = arrays["names.texts"]
        self._starts: Any = arrays["names.starts"]
        self._codes: Any = arrays["grams.codes"]
        self._places: Any = arrays["grams.starts"]
        self._names: Any = arrays["grams.names"]

    def find_similar(self, name: str) -> tuple[Rows, Floats]:
        """Return the places of the names that are spelled most like ``name``, some hundreds, and the likeness of
        each, from 0 to 1 and below 1 for every other name."""
        folded = fold_name(name)[:MAX_NAME_LENGTH]
        places = self._proposed(folded)
        if not len(places):
            return places, np.zeros(0)
        bounds = zip(self._starts[places].tolist(), self._starts[places + 1].tolist(), strict=True)
        return places, name_similarity(
            folded, [self._texts[start:end].tobytes().decode() for start, end in bounds]
        )

    def _proposed(self, folded: str) -> Rows:
        """Return the names that share the rarest grams with a folded name, :data:`MAX_SCORED` at most."""
        text = clip_name(folded)
        wanted = np.unique(name_grams(text, np.array([0, len(text)], dtype=np.int64))[0])
        at = np.minimum(np.searchsorted(self._codes, wanted), max(len(self._codes) - 1, 0))
        at = at[self._codes[at] == wanted] if len(self._codes) else at[:0]
        if not len(at):
            return np.empty(0, dtype=np.int64)
        sizes = self._places[at + 1] - self._places[at]
        order = np.argsort(sizes, kind="stable")
        order = order[: max(int(np.searchsorted(np.cumsum(sizes[order]), MAX_ENTRIES_READ, side="right")), 1)]
        at, sizes = at[order], sizes[order]
        held = np.concatenate([self._names[self._places[one] : self._places[one + 1]] for one in at.tolist()])
        # A gram weighs what it tells; weights are summed as whole numbers in the lower half of a sorted key.
        weights = np.log2(2 * len(self._starts) / sizes) * 256
        keys = (held.astype(np.uint64) << np.uint64(32)) | np.repeat(weights.astype(np.uint64), sizes)
        keys.sort()
        names = (keys >> np.uint64(32)).astype(np.int64)
        firsts = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
        shared = np.add.reduceat((keys & np.uint64(0xFFFFFFFF)).astype(np.float64), firsts)
        found: Rows = names[firsts]
        # Of names that share as much, those of about the same length come first.
        lengths = self._starts[found + 1] - self._starts[found]
        apart = np.abs(lengths - len(text)) / np.maximum(lengths, len(text))
        scores = shared * (1 - LENGTH_PENALTY * apart)
        return found[np.argpartition(-scores, MAX_SCORED)[:MAX_SCORED]] if len(found) > MAX_SCORED else found


def name_similarity(folded: str, names: list[str]) -> Floats:
    """Return how much each folded name is like ``folded``: 1 for the same, below 1 for any other, (n,).

    The most of three: the share of characters that need no edit (an insertion, deletion, substitution or swap of two
    neighbours); the same with the words in order of the alphabet, times :data:`REORDERED_FACTOR`; and, times
    :data:`PARTIAL_FACTOR`, the words of the shorter name as they occur in the longer one, the less so the less
    of it they
    are.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    def compared(scorer: Callable[..., float], one: str, others: list[str]) -> Floats:
        found: Floats = process.cdist([one], others, scorer=scorer, dtype=np.float64)[0]
        return found

    whole = compared(OSA.normalized_similarity, folded, names)
    ordered = [" ".join(sorted(one.split())) for one in names]
    sorted_words = compared(OSA.normalized_similarity, " ".join(sorted(folded.split())), ordered)
    best = np.maximum.reduce(
        [whole, REORDERED_FACTOR * sorted_words, PARTIAL_FACTOR * _partial(folded, names)]
    )
    same = np.array([one == folded for one in names], dtype=np.bool_)
    found: Floats = np.where(same, 1.0, np.minimum(best, 0.99))
    return found


def _partial(folded: str, names: list[str]) -> Floats:
    from rapidfuzz import fuzz, process

    inside = process.cdist([folded], names, scorer=fuzz.token_set_ratio, dtype=np.float64)[0] / 100
    lengths = np.array([len(one) for one in names], dtype=np.float64)
    shares = np.minimum(lengths, len(folded)) / np.maximum(np.maximum(lengths, len(folded)), 1)
    found: Floats = inside * (0.75 + 0.25 * shares)
    return found
