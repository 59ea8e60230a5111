"""Binary codes of vectors, one bit for each number: a shortlist of near vectors without reading the vectors.

The bit is the sign of the number. Two vectors at angle ``a`` differ in a share ``a / pi`` of the signs of random
directions (Charikar, STOC 2002), so few differing bits mean a small angle. The codes of a million vectors of
384 numbers are 48 MB instead of 1.5 GB, and comparing them all takes some ten milliseconds.

A code is a function of its vector alone, and a shortlist takes either all vectors at its largest distance or none:
the result depends on the live vectors, never on the order in which they were added or on removed ones.

On disk the codes are stored in blocks of :data:`BLOCK` slots, within a block word after word, so that one operation
compares one word of many vectors. The last block is padded with zeros.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.files import open_private

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Mask, Vectors

if TYPE_CHECKING:
    Codes = NDArray[np.uint64]

#: Slots of a block: their words and what is computed of them fit into the cache of a core.
BLOCK = 1 << 14
#: Vectors that are read at a time to make their codes.
_READ = 1 << 16


def binary_codes(vectors: Vectors) -> Codes:
    """Return the signs of (n, dimension) vectors as (n, words) numbers of 64 bits; 0 counts as negative."""
    packed = np.packbits(vectors > 0, axis=1, bitorder="little")
    padded = np.zeros((len(packed), 8 * words_per_code(vectors.shape[1])), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8")


def words_per_code(dimension: int) -> int:
    """Return how many numbers of 64 bits are needed for ``dimension`` bits."""
    return -(-dimension // 64)


@dataclass(frozen=True, slots=True)
class BinaryIndexFile:
    """The codes of ``count`` vectors of ``dimension`` numbers in ``path``."""

    path: Path
    dimension: int
    count: int

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return -(-self.count // BLOCK) * BLOCK * words_per_code(self.dimension) * 8

    def is_complete(self) -> bool:
        """Return whether the file exists and has its full size."""
        return self.path.is_file() and self.path.stat().st_size >= self.size

    def read(self) -> BinaryIndex:
        """Return the codes, memory-mapped."""
        return BinaryIndex(np.asarray(self._map()), self.count)

    def write(self, first: int, vectors: Vectors) -> None:
        """Write the codes of ``vectors`` to slots from ``first`` on; ``count`` is the number of slots afterwards."""
        codes = binary_codes(vectors).T
        # Written, not mapped: a mapped file that a full disk cannot hold ends the process without a word.
        with open_private(self.path, "r+b" if self.path.exists() else "w+b") as file:
            file.truncate(self.size)
            done = 0
            while done < len(vectors):
                block, start = divmod(first + done, BLOCK)
                size = min(BLOCK - start, len(vectors) - done)
                for word, numbers in enumerate(codes):
                    file.seek(8 * ((block * len(codes) + word) * BLOCK + start))
                    file.write(numbers[done : done + size].tobytes())
                done += size
            file.flush()
            os.fsync(file.fileno())

    def clear_slots(self, slots: NDArray[np.int64]) -> None:
        """Set the codes of ``slots`` to zeros, the code of a vector of zeros."""
        shape = words_per_code(self.dimension), BLOCK
        with self.path.open("r+b") as file:
            for block in np.unique(slots // BLOCK).tolist():
                file.seek(8 * math.prod(shape) * block)
                codes = np.frombuffer(bytearray(file.read(8 * math.prod(shape))), dtype="<u8").reshape(shape)
                codes[:, slots[slots // BLOCK == block] % BLOCK] = 0
                file.seek(8 * math.prod(shape) * block)
                file.write(codes.tobytes())
            file.flush()
            os.fsync(file.fileno())

    def rebuild(self, vectors: Vectors) -> None:
        """Rewrite the file from all vectors; it appears when it is complete."""
        unfinished = BinaryIndexFile(self.path.with_suffix(".new"), self.dimension, self.count)
        for start in range(0, self.count, _READ):
            unfinished.write(start, np.asarray(vectors[start : start + _READ]))
        unfinished.path.replace(self.path)

    def matches(self, vectors: Vectors) -> bool:
        """Return whether the file contains the codes of ``vectors``; reads all of them."""
        if not self.is_complete():
            return False
        blocks = self._map()
        for start in range(0, self.count, BLOCK):
            codes = binary_codes(np.asarray(vectors[start : start + BLOCK])).T
            if not np.array_equal(blocks[start // BLOCK, :, : codes.shape[1]], codes):
                return False
        return True

    def _map(self) -> np.memmap[Any, np.dtype[np.uint64]]:
        shape = (-(-self.count // BLOCK), words_per_code(self.dimension), BLOCK)
        return np.memmap(self.path, np.dtype("<u8"), "r", shape=shape)


@dataclass(frozen=True, slots=True)
class BinaryIndex:
    """The codes of ``count`` slots: (blocks, words, :data:`BLOCK`)."""

    blocks: Codes
    count: int

    def shortlist(self, query: Vectors, among: Mask, size: int) -> NDArray[np.int64]:
        """Return, ascending, the slots of ``among`` whose codes differ least from those of ``query``, (d,).

        There are at least ``size`` if ``among`` has as many: all slots at the largest distance are included.
        """
        distance = self.hamming_distances(binary_codes(query[None])[0])
        bits = 64 * self.blocks.shape[1]
        distance[~among] = bits + 1
        within = np.cumsum(np.bincount(distance, minlength=bits + 2))[: bits + 1]
        limit = min(int(np.searchsorted(within, size)), bits)
        return np.flatnonzero(distance <= limit)

    def hamming_distances(self, code: Codes) -> NDArray[np.uint16]:
        """Return in how many bits every slot's code differs from ``code``."""
        distances = np.zeros(len(self.blocks) * BLOCK, dtype=np.uint16)
        differing, bit_counts = np.empty(BLOCK, dtype=np.uint64), np.empty(BLOCK, dtype=np.uint8)
        for number, block in enumerate(self.blocks):
            sums = distances[number * BLOCK : (number + 1) * BLOCK]
            for word, query_word in zip(block, code, strict=True):
                np.bitwise_xor(word, query_word, out=differing)
                np.bitwise_count(differing, out=bit_counts)
                sums += bit_counts
        return distances[: self.count]
