"""A table of ids: it numbers them, a column of ids at a time.

It is a hash table with open addressing in arrays of numpy. Ids that are given one by one go to a dictionary first,
which is faster for them, and are moved to the arrays when the next column comes.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Rows, TextSpans, run_offsets

#: The two words of an id's key: (n,) each.
_Keys = tuple["NDArray[np.uint64]", "NDArray[np.uint64]"]

#: Bytes of a word; up to so many bytes an id is its own key.
_WORD, _EXACT = 8, 15
_SHIFT, _LENGTH_SHIFT = np.uint64(32), np.uint64(56)
#: Marks the key of an id that is longer.
_LONG = np.uint64(0xFF << 56)
_SEEDS = np.frombuffer(os.urandom(16), dtype=np.uint64)
_FACTORS = np.frombuffer(os.urandom(16), dtype=np.uint64) | np.uint64(1)
#: Masks of the first n bytes of a word.
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)
#: Ties that are sorted by comparing texts, not words.
_FEW_TIES = 2_000


class _GrowingArray:
    """An array that is appended to; ``padding`` zeros follow its end."""

    def __init__(self, dtype: Any, padding: int = 0) -> None:
        self._array: NDArray[Any] = np.zeros(1024, dtype=dtype)
        self._padding = padding
        self.size = 0

    def extend(self, values: NDArray[Any]) -> None:
        size = self.size + len(values)
        if size + self._padding > len(self._array):
            larger = np.zeros(max(size + self._padding, len(self._array) * 3 // 2), dtype=self._array.dtype)
            larger[: self.size] = self.values
            self._array = larger
        self._array[self.size : size] = values
        self.size = size

    @property
    def values(self) -> NDArray[Any]:
        return self._array[: self.size]

    @property
    def padded_values(self) -> NDArray[Any]:
        return self._array[: self.size + self._padding]


class IdTable:
    """The ids of a graph that is being read, numbered from 0."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # of ids that were given or asked for one by one
        self._pending: list[str] = []  # those of them that are not in the arrays yet
        # Each slot has the two words of a key and the number of its id; the second word is 0 in a free slot.
        self._slots = np.zeros((1 << 10, 3), dtype=np.uint64)
        self._texts = _GrowingArray(np.uint8, _WORD)
        self._ends = _GrowingArray(np.int64)

    def __len__(self) -> int:
        return self._ends.size + len(self._pending)

    def add(self, id: str) -> int:
        """Return the number of an id, a new one for a new id."""
        number = self._numbers.get(id)
        if number is None:
            number = self.find(id)
        if number is None:
            number = self._numbers[id] = len(self)
            self._pending.append(id)
        return number

    def find(self, id: str) -> int | None:
        """Return the number of an id, None for an unknown one."""
        number = self._numbers.get(id)
        if number is None and self._ends.size:
            number = self._stored_number(id)
            if number is not None:
                self._numbers[id] = number
        return number

    def add_all(self, ids: TextSpans) -> Rows:
        """Return the number of each id, (n,)."""
        self._move_pending()
        keys = _make_keys(ids)
        # Tables are often sorted by a column, or by relation: of equal neighbours one is looked up.
        is_first = np.append(True, (keys[0][1:] != keys[0][:-1]) | (keys[1][1:] != keys[1][:-1]))[: len(ids)]
        firsts = np.flatnonzero(is_first)
        if len(firsts) > len(ids) // 2:
            return self._insert(ids, keys)
        numbers = self._insert(ids.take(firsts), (keys[0][firsts], keys[1][firsts]))
        repeated: Rows = numbers[np.cumsum(is_first) - 1]
        return repeated

    def spans(self) -> TextSpans:
        """Return all ids as they are stored, in the order of their numbers."""
        self._move_pending()
        ends = self._ends.values
        starts = np.concatenate([[0], ends[:-1]])[: len(ends)]
        return TextSpans(self._texts.values, starts, ends - starts)

    def ids(self) -> list[str]:
        """Return all ids, in the order of their numbers."""
        return self.spans().texts()

    def order(self) -> Rows:
        """Return the numbers of all ids in the order of the ids' code points, which is that of their UTF-8, (n,)."""
        spans = self.spans()
        self._numbers.clear()  # to free memory: the arrays have all ids now
        return sort_texts(self._texts.padded_values, spans.starts, spans.lengths)

    def _stored_number(self, id: str) -> int | None:
        keys = _make_keys(TextSpans.from_texts([id]))
        first, second = int(keys[0][0]), int(keys[1][0])
        mask = len(self._slots) - 1
        (slot,) = _first_slots(keys, mask).tolist()
        while True:
            words = self._slots[slot].tolist()
            if words[0] == first and words[1] == second:
                return int(words[2])
            if not words[1]:
                return None
            slot = (slot + 1) & mask

    def _insert(self, ids: TextSpans, keys: _Keys) -> Rows:
        """Return the number of each id; new ids are appended."""
        self._reserve(len(ids))
        mask = len(self._slots) - 1
        slots = _first_slots(keys, mask)
        occupants = self._slots.take(slots, axis=0)
        numbers = occupants[:, 2].astype(np.int64)
        places = np.flatnonzero((occupants[:, 0] != keys[0]) | (occupants[:, 1] != keys[1]))
        slots, occupants = slots[places], occupants[places]
        while len(places):
            free = np.flatnonzero(occupants[:, 1] == 0)
            # Of the ids that claim a free slot, the last one written gets it; the others look at the slot again.
            self._slots[slots[free], 2] = places[free]
            winners = free[self._slots[slots[free], 2] == places[free]]
            if len(winners):
                first, chosen = self._ends.size, places[winners]
                numbers[chosen] = np.arange(first, first + len(winners))
                for word, values in enumerate((keys[0][chosen], keys[1][chosen], numbers[chosen])):
                    self._slots[slots[winners], word] = values
                self._append(ids.take(chosen))
            is_open = occupants[:, 1] != 0
            slots[is_open] = (slots[is_open] + 1) & mask
            is_open[free] = True
            is_open[winners] = False
            places, slots = places[is_open], slots[is_open]
            occupants = self._slots.take(slots, axis=0)
            is_same = (occupants[:, 0] == keys[0][places]) & (occupants[:, 1] == keys[1][places])
            numbers[places[is_same]] = occupants[is_same, 2]
            places, slots, occupants = places[~is_same], slots[~is_same], occupants[~is_same]
        return numbers

    def _move_pending(self) -> None:
        """Move the ids that were given one by one to the arrays, with their numbers."""
        if not self._pending:
            return
        ids = TextSpans.from_texts(self._pending)
        self._pending = []
        self._reserve(len(ids))
        keys = _make_keys(ids)
        first = self._ends.size
        self._append(ids)
        self._fill_slots(*keys, np.arange(first, self._ends.size, dtype=np.uint64))

    def _append(self, ids: TextSpans) -> None:
        self._ends.extend(self._texts.size + run_offsets(ids.lengths)[1:])
        self._texts.extend(ids.concatenate())

    def _reserve(self, count: int) -> None:
        """Make the slots so many that ``count`` further ids fill at most two thirds of them."""
        needed = (self._ends.size + count) * 3 // 2
        if needed > len(self._slots):
            used = self._slots[self._slots[:, 1] != 0]
            self._slots = np.zeros((1 << needed.bit_length(), 3), dtype=np.uint64)
            self._fill_slots(used[:, 0], used[:, 1], used[:, 2])

    def _fill_slots(
        self, first: NDArray[np.uint64], second: NDArray[np.uint64], numbers: NDArray[np.uint64]
    ) -> None:
        """Give a slot to each of these keys, none of which has one."""
        mask = len(self._slots) - 1
        slots = _first_slots((first, second), mask)
        while len(numbers):
            is_free = self._slots[slots, 1] == 0
            self._slots[slots[is_free], 2] = numbers[is_free]
            is_winner = is_free & (self._slots[slots, 2] == numbers)
            self._slots[slots[is_winner], 0] = first[is_winner]
            self._slots[slots[is_winner], 1] = second[is_winner]
            is_open = ~is_winner
            first, second, numbers = first[is_open], second[is_open], numbers[is_open]
            slots = (slots[is_open] + 1) & mask


def _make_keys(ids: TextSpans) -> _Keys:
    """Return two words for each id, (n,) each; the second is never 0.

    An id of up to 15 bytes is its own key: its bytes, and its length plus one in the last byte. The key of a longer
    id is a hash of 120 bits, seeded anew in each process: that any two of a hundred million ids share one has a
    probability of about 1e-20.
    """
    words = _words(np.concatenate([ids.content, np.zeros(_WORD, dtype=np.uint8)]))
    sizes = np.minimum(ids.lengths, _WORD)
    first = words[ids.starts] & _MASKS[sizes]
    second = (ids.lengths + 1).astype(np.uint64) << _LENGTH_SHIFT
    places = np.flatnonzero(ids.lengths > _WORD)
    if len(places):
        short = places[ids.lengths[places] <= _EXACT]
        second[short] |= words[ids.starts[short] + _WORD] & _MASKS[ids.lengths[short] - _WORD]
        long = places[ids.lengths[places] > _EXACT]
        if len(long):
            first[long], second[long] = _hash_texts(words, ids.take(long))
    return first, second


def _hash_texts(words: NDArray[np.uint64], texts: TextSpans) -> _Keys:
    lengths = texts.lengths.astype(np.uint64)
    hashes = [lengths * seed for seed in _SEEDS]
    places, at = np.arange(len(texts)), 0
    while len(places):
        word = words[texts.starts[places] + at] & _MASKS[np.minimum(texts.lengths[places] - at, _WORD)]
        for values, factor in zip(hashes, _FACTORS, strict=True):
            mixed = (values[places] ^ word) * factor
            mixed ^= mixed >> _SHIFT
            values[places] = mixed
        at += _WORD
        places = places[texts.lengths[places] > at]
    return hashes[0], hashes[1] | _LONG


def _first_slots(keys: _Keys, mask: int) -> NDArray[np.int64]:
    """Return the slot at which the search for each key starts."""
    mixed = keys[0] * _FACTORS[0]
    mixed ^= keys[1]
    mixed ^= mixed >> _SHIFT
    mixed *= _FACTORS[1]
    mixed ^= mixed >> _SHIFT
    mixed &= np.uint64(mask)
    slots: Rows = mixed.view(np.int64)
    return slots


def _words(padded: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the eight bytes from every byte on as a word; a view."""
    return np.ndarray((len(padded) - _WORD + 1,), dtype="<u8", buffer=padded, strides=(1,))


def sort_texts(
    padded: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the order of different texts by their bytes, (n,); eight zeros follow the texts.

    They are sorted by their first eight bytes, those that agree in these by the next eight, and so on.
    """
    words = _words(padded)
    order = np.arange(len(starts))
    # ``places`` are the positions of ``order`` that are not settled; those with the same group share their beginning.
    places, groups, at = order.copy(), np.zeros(len(starts), dtype=np.int64), 0
    while len(places):
        numbers = order[places]
        if len(places) <= _FEW_TIES:
            texts = [
                padded[starts[number] + at : starts[number] + lengths[number]].tobytes()
                for number in numbers.tolist()
            ]
            keyed = sorted(zip(groups.tolist(), texts, numbers.tolist(), strict=True))
            order[places] = [number for _, _, number in keyed]
            return order
        left = np.clip(lengths[numbers] - at, 0, _WORD)
        # Beyond its end a text counts as zeros; of texts that then agree, the shorter is the smaller.
        keys = (words[np.minimum(starts[numbers] + at, len(words) - 1)] & _MASKS[left]).byteswap()
        by_key = np.lexsort((left, keys, groups)) if at else np.lexsort((left, keys))
        numbers, keys, left, groups = numbers[by_key], keys[by_key], left[by_key], groups[by_key]
        order[places] = numbers
        is_new = np.concatenate(
            [[True], (groups[1:] != groups[:-1]) | (keys[1:] != keys[:-1]) | (left[1:] != left[:-1])]
        )
        groups = np.cumsum(is_new)
        is_tied = ~(is_new & np.append(is_new[1:], True))
        places, groups = places[is_tied], groups[is_tied]
        at += _WORD
    return order
