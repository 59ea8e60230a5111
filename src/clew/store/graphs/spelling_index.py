"""An index of names by their spelling: trigrams propose candidates, and edit distances decide.

A name is compared after :func:`clew.core.text.fold_name`, by its first :data:`MAX_NAME_LENGTH` characters. Its grams
are the three-character pieces of ``" name "`` whose middle is not a space, so two orders of the same words have the
same grams. A gram is stored as a 32-bit hash of its characters; a collision only proposes a few names more. Grams in
more than :data:`MAX_NAMES_PER_GRAM` names are left out: they tell little, and would make a look-up in millions of
names slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Arrays, Floats, Rows, distinct, find_in_runs, range_indices, run_offsets
from clew.core.text import fold_name

#: Characters of a name that are indexed.
MAX_NAME_LENGTH = 120
#: Grams in more names are left out; at most so many entries of the index are read for one name.
MAX_NAMES_PER_GRAM, MAX_ENTRIES_READ = 1 << 18, 1 << 16
#: Names that are scored for one look-up.
MAX_SCORED = 400
#: The share of their common grams that names of very different lengths lose.
LENGTH_PENALTY = 0.3
#: Factors of a similarity that reorders words, and of one that compares a part of the words.
REORDERED_FACTOR, PARTIAL_FACTOR = 0.97, 0.9
#: Names whose grams are sorted at once.
_CHUNK = 1 << 14
_MIX = np.uint32(0x9E3779B1), np.uint32(0x85EBCA77)
_SPACE = np.uint32(32)


def clip_name(name: str) -> bytes:
    """Return the indexed part of a folded name: its first characters in UTF-8."""
    return name[:MAX_NAME_LENGTH].encode()


def name_grams(texts: bytes, starts: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the grams of concatenated names in UTF-8, and the number of the name of each gram."""
    content = np.frombuffer(texts, dtype=np.uint8)
    # A character begins at every byte that is not a continuation byte.
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
    is_gram = middle != _SPACE
    return codes[is_gram], owners[1:-1][is_gram]


def build_spelling_index(texts: NDArray[np.uint8], starts: NDArray[np.int64], folder: Path) -> Arrays:
    """Return the index of concatenated names: ``grams.codes`` ascending, and the names that contain each.

    Those of the n-th gram are ``grams.names`` from ``grams.starts[n]`` on, ascending. ``grams.frequent`` are the
    grams that are left out, with the number of their names. The index is built in chunks of names, with intermediate
    data in a nameless file in ``folder``: it needs the memory of a chunk and of the index.
    """
    sizes: list[NDArray[np.int64]] = []
    codes: list[NDArray[np.uint32]] = []
    with TemporaryFile(dir=folder) as file:
        for chunk_codes, counts, names in _split_chunks(texts, starts):
            codes.append(chunk_codes)
            sizes.append(counts)
            file.write(names.tobytes())
        all_codes = distinct(np.concatenate([np.empty(0, dtype=np.uint32), *codes]))
        totals = np.zeros(len(all_codes), dtype=np.int64)
        for chunk_codes, counts in zip(codes, sizes, strict=True):
            totals[np.searchsorted(all_codes, chunk_codes)] += counts
        indexed = np.where(totals <= MAX_NAMES_PER_GRAM, totals, 0)
        offsets = run_offsets(indexed)
        names = np.empty(int(offsets[-1]), dtype=np.uint32)
        next_free = offsets[:-1].copy()
        file.seek(0)
        for chunk_codes, counts in zip(codes, sizes, strict=True):
            chunk_names = np.frombuffer(file.read(int(counts.sum()) * 4), dtype=np.uint32)
            places = np.searchsorted(all_codes, chunk_codes)
            is_indexed = indexed[places] > 0
            taken = np.where(is_indexed, counts, 0)
            names[range_indices(next_free[places], taken)] = chunk_names[np.repeat(is_indexed, counts)]
            next_free[places] += taken
    has_names = indexed > 0
    return {
        "grams.codes": all_codes[has_names],
        "grams.starts": run_offsets(indexed[has_names]),
        "grams.names": names,
        "grams.frequent": all_codes[~has_names],
        "grams.frequent_counts": totals[~has_names],
    }


def _split_chunks(
    texts: NDArray[np.uint8], starts: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint32]]]:
    """Yield for each chunk of names its different grams ascending, how many names have each, and these names."""
    for first in range(0, len(starts) - 1, _CHUNK):
        chunk = starts[first : first + _CHUNK + 1]
        codes, owners = name_grams(texts[chunk[0] : chunk[-1]].tobytes(), chunk - chunk[0])
        keys = (codes.astype(np.uint64) << np.uint64(32)) | (owners + np.uint32(first))
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
        code = (keys >> np.uint64(32)).astype(np.uint32)
        firsts = np.flatnonzero(np.concatenate([[True], code[1:] != code[:-1]])) if len(code) else keys[:0]
        counts = np.diff(np.append(firsts, len(code))).astype(np.int64)
        yield code[firsts.astype(np.int64)], counts, keys.astype(np.uint32)


def update_spelling_index(
    old: Arrays,
    name_map: NDArray[np.int64],
    texts: NDArray[np.uint8],
    starts: NDArray[np.int64],
    new_names: NDArray[np.int64],
    folder: Path,
) -> Arrays:
    """Return the index of ``texts`` and ``starts``, as :func:`build_spelling_index` does, from that of other names.

    ``old`` has the index, ``names.texts`` and ``names.starts`` of before, ``name_map`` the new number of each old
    name (-1: removed, ascending else), ``new_names`` the numbers of the names that were not there, ascending.
    """
    codes, names = (np.asarray(old[f"grams.{part}"]) for part in ("codes", "names"))
    counts = np.diff(old["grams.starts"]).astype(np.int64)
    frequent = dict(zip(old["grams.frequent"].tolist(), old["grams.frequent_counts"].tolist(), strict=True))
    removed = np.flatnonzero(name_map < 0)
    gone_codes, gone_names = _grams_of(removed, old["names.texts"], old["names.starts"])
    new_codes, added_names = _grams_of(new_names, texts, starts)
    for changed, sign in ((gone_codes, -1), (new_codes, 1)):
        for code in changed[np.isin(changed, np.fromiter(frequent, np.uint32, len(frequent)))].tolist():
            frequent[code] += sign
    if any(count <= MAX_NAMES_PER_GRAM for count in frequent.values()):
        return build_spelling_index(
            texts, starts, folder
        )  # a gram is indexed again, and nobody knows its names
    all_frequent = np.fromiter(frequent, np.uint32, len(frequent))
    is_indexed = ~np.isin(gone_codes, all_frequent)
    grams = np.searchsorted(codes, gone_codes[is_indexed])
    offsets = run_offsets(counts)
    places = find_in_runs(names, offsets[grams], offsets[grams + 1], gone_names[is_indexed])
    names = np.delete(names, places)
    np.subtract.at(counts, grams, 1)
    names = name_map[names].astype(np.uint32)
    is_indexed = ~np.isin(new_codes, all_frequent)
    new_codes, added_names = new_codes[is_indexed], added_names[is_indexed]
    unknown = np.setdiff1d(new_codes, codes)
    at = np.searchsorted(codes, unknown)
    codes, counts = np.insert(codes, at, unknown), np.insert(counts, at, 0)
    grams, offsets = np.searchsorted(codes, new_codes), run_offsets(counts)
    places = find_in_runs(names, offsets[grams], offsets[grams + 1], added_names)
    names = np.insert(names, places, added_names)
    np.add.at(counts, grams, 1)
    is_frequent = counts > MAX_NAMES_PER_GRAM
    if is_frequent.any():
        names = names[~np.repeat(is_frequent, counts)]
        frequent |= dict(zip(codes[is_frequent].tolist(), counts[is_frequent].tolist(), strict=True))
    remains = (counts > 0) & ~is_frequent
    sorted_frequent = sorted(frequent)
    return {
        "grams.codes": codes[remains],
        "grams.starts": run_offsets(counts[remains]),
        "grams.names": names,
        "grams.frequent": np.array(sorted_frequent, dtype=np.uint32),
        "grams.frequent_counts": np.array([frequent[code] for code in sorted_frequent], dtype=np.int64),
    }


def _grams_of(
    numbers: NDArray[np.int64], texts: Any, starts: Any
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the grams of some names, each once for a name, ascending, and the numbers of these names."""
    lengths = starts[numbers + 1] - starts[numbers]
    content = np.asarray(texts)[range_indices(starts[numbers], lengths)].tobytes()
    codes, owners = name_grams(content, run_offsets(lengths))
    keys = distinct((codes.astype(np.uint64) << np.uint64(32)) | numbers[owners].astype(np.uint64))
    return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)


class SpellingIndex:
    """The opened index: the arrays of :func:`build_spelling_index`, ``names.texts`` and ``names.starts``."""

    def __init__(self, arrays: Arrays) -> None:
        self._texts: Any = arrays["names.texts"]
        self._starts: Any = arrays["names.starts"]
        self._grams: Any = arrays["grams.codes"]
        self._gram_starts: Any = arrays["grams.starts"]
        self._names: Any = arrays["grams.names"]

    def find_similar(self, name: str) -> tuple[Rows, Floats]:
        """Return the numbers of the names with the most similar spelling, a few hundred, and their similarity.

        Similarity is from 0 to 1, and 1 only for the same name.
        """
        folded = fold_name(name)[:MAX_NAME_LENGTH]
        candidates = self._propose(folded)
        if not len(candidates):
            return candidates, np.zeros(0)
        bounds = zip(self._starts[candidates].tolist(), self._starts[candidates + 1].tolist(), strict=True)
        return candidates, name_similarity(
            folded, [self._texts[start:end].tobytes().decode() for start, end in bounds]
        )

    def _propose(self, folded: str) -> Rows:
        """Return at most :data:`MAX_SCORED` names that share the rarest grams with a folded name."""
        text = clip_name(folded)
        codes = distinct(name_grams(text, np.array([0, len(text)], dtype=np.int64))[0])
        grams = np.minimum(np.searchsorted(self._grams, codes), max(len(self._grams) - 1, 0))
        grams = grams[self._grams[grams] == codes] if len(self._grams) else grams[:0]
        if not len(grams):
            return np.empty(0, dtype=np.int64)
        sizes = self._gram_starts[grams + 1] - self._gram_starts[grams]
        order = np.argsort(sizes, kind="stable")
        order = order[: max(int(np.searchsorted(np.cumsum(sizes[order]), MAX_ENTRIES_READ, side="right")), 1)]
        grams, sizes = grams[order], sizes[order]
        entries = self._names[range_indices(self._gram_starts[grams], sizes)]
        # A rare gram weighs more. Weights are summed as whole numbers in the lower half of a sorted key.
        weights = np.log2(2 * len(self._starts) / sizes) * 256
        keys = (entries.astype(np.uint64) << np.uint64(32)) | np.repeat(weights.astype(np.uint64), sizes)
        keys.sort()
        names = (keys >> np.uint64(32)).astype(np.int64)
        firsts = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))
        shared = np.add.reduceat((keys & np.uint64(0xFFFFFFFF)).astype(np.float64), firsts)
        candidates: Rows = names[firsts]
        if len(candidates) <= MAX_SCORED:
            return candidates
        # Of names that share as many grams, those of about the same length come first.
        lengths = self._starts[candidates + 1] - self._starts[candidates]
        difference = np.abs(lengths - len(text)) / np.maximum(lengths, len(text))
        scores = shared * (1 - LENGTH_PENALTY * difference)
        return candidates[np.argpartition(-scores, MAX_SCORED)[:MAX_SCORED]]


def name_similarity(folded: str, names: list[str]) -> Floats:
    """Return the similarity of each folded name to ``folded``: 1 for the same name, below 1 for any other, (n,).

    It is the greatest of three values: the share of characters that need no edit (an insertion, deletion,
    substitution or swap of two neighbours); the same with the words in alphabetical order, times
    :data:`REORDERED_FACTOR`; and, times :data:`PARTIAL_FACTOR`, the similarity of the shorter name to the words that
    it shares with the longer one, reduced where it is much shorter.
    """
    from rapidfuzz import fuzz, process
    from rapidfuzz.distance import OSA

    def compare(scorer: Callable[..., float], name: str, others: list[str]) -> Floats:
        scores: Floats = process.cdist([name], others, scorer=scorer, dtype=np.float64)[0]
        return scores

    whole = compare(OSA.normalized_similarity, folded, names)
    sorted_words = compare(
        OSA.normalized_similarity,
        " ".join(sorted(folded.split())),
        [" ".join(sorted(name.split())) for name in names],
    )
    lengths = np.array([len(name) for name in names], dtype=np.float64)
    shares = np.minimum(lengths, len(folded)) / np.maximum(np.maximum(lengths, len(folded)), 1)
    partial = compare(fuzz.token_set_ratio, folded, names) / 100 * (0.75 + 0.25 * shares)
    best = np.maximum.reduce([whole, REORDERED_FACTOR * sorted_words, PARTIAL_FACTOR * partial])
    is_same = np.array([name == folded for name in names], dtype=np.bool_)
    similarity: Floats = np.where(is_same, 1.0, np.minimum(best, 0.99))
    return similarity
