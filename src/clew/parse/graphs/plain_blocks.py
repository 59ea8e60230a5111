"""Tables whose cells have no delimiters in quotation marks, read in blocks: a cell lies between two delimiters.

The cells of triples are found with numpy, and no row becomes a Python object. Where a block is not plain the reader
of tables gives it to csv.reader, which makes the same graph of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import TextSpans
from clew.core.protocols import ColumnSink, GraphSink
from clew.core.text import has_hidden
from clew.parse.graphs.columns import HEAD, RELATION, TAIL, Column, are_triples

#: Characters of the longest cell, and white space around a cell, up to which a block is read here.
_MAX_CELL, _MAX_SPACES = 4096, 8
#: Bytes of the longest block: a longer one has a cell that csv.reader may refuse.
_MAX_BLOCK = 1 << 23
_CONTROLS = bytes({*range(32), 127} - {9, 10, 13})
#: The white space that is not ASCII, which str.strip takes off a cell.
_WIDE_SPACE = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_LINE_END, _CARRIAGE_RETURN, _QUOTE = 10, 13, 34
#: Which bytes are white space.
_IS_SPACE = np.zeros(256, dtype=np.bool_)
_IS_SPACE[[9, 13, 32]] = True


class PlainBlocks:
    """Reads blocks of a table. ``is_quoted``: quotation marks have a meaning; ``read_batch`` adds rows of texts."""

    def __init__(
        self,
        columns: Sequence[Column],
        delimiter: str,
        is_quoted: bool,
        sink: GraphSink,
        read_batch: Callable[[Sequence[Sequence[str]]], bool],
    ) -> None:
        self._width, self._delimiter, self._is_quoted = len(columns), delimiter, is_quoted
        self._read_batch = read_batch
        self._sink = sink if are_triples(columns) and isinstance(sink, ColumnSink) else None
        roles = [column.role for column in columns]
        self._places = [roles.index(role) for role in (HEAD, RELATION, TAIL)] if self._sink else []

    def read(self, block: bytes) -> bool:
        """Add the rows of a block of whole lines.

        Return False, and add none, where a line is not plain cells: csv.reader is then to read the block.
        """
        if len(block) > _MAX_BLOCK or not self._is_plain(block):
            return False
        return self._read_nodes(block) if self._sink is None else self._read_triples(block, self._sink)

    def _read_nodes(self, block: bytes) -> bool:
        lines = block.decode().removesuffix("\n").split("\n")
        rows = [line.removesuffix("\r").split(self._delimiter) for line in lines]
        return set(map(len, rows)) == {self._width} and self._read_batch(rows)

    def _read_triples(self, block: bytes, sink: ColumnSink) -> bool:
        content = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", dtype=np.uint8)
        ends = np.flatnonzero((content == ord(self._delimiter)) | (content == _LINE_END))
        if len(ends) % 3:
            return False
        is_line_end = content[ends] == _LINE_END
        if np.count_nonzero(is_line_end) * 3 != len(ends) or not is_line_end[2::3].all():
            return False
        starts = np.concatenate([[0], ends[:-1] + 1])
        if self._is_quoted and b'"' in block and not _unquote(content, starts, ends):
            return False
        if not _strip(content, starts, ends):
            return False
        lengths = ends - starts
        if len(lengths) and not 0 < lengths.min() <= lengths.max() <= _MAX_CELL:
            return False
        heads, relations, tails = (
            TextSpans(content, starts[place::3], lengths[place::3]) for place in self._places
        )
        sink.add_edges(heads, relations, tails)
        return True

    def _is_plain(self, block: bytes) -> bool:
        """Return whether a block is UTF-8, without odd line ends, control characters and other quotation marks, and
        for triples without what :func:`clew.core.text.clean_name` takes off."""
        # Triples may have quotation marks around whole cells, nodes not: their texts have delimiters.
        if (self._is_quoted and not self._places and b'"' in block) or len(
            block.translate(None, _CONTROLS)
        ) < len(block):
            return False
        if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
            return False
        try:
            text = "" if block.isascii() else block.decode()
            is_hiding = self._sink is not None and has_hidden(text.replace("\r\n", "\n"))
            return not is_hiding and _WIDE_SPACE.search(text) is None
        except UnicodeDecodeError:
            return False


def _unquote(content: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> bool:
    """Move starts and ends to leave out the quotation marks around cells, in place; False where there are others.

    There are none if no cell has more than the two around it: then no delimiter lies between quotation marks either.
    """
    ends -= (starts < ends) & (content[ends - 1] == _CARRIAGE_RETURN)
    is_quoted = (ends - starts >= 2) & (content[starts] == _QUOTE) & (content[ends - 1] == _QUOTE)
    starts += is_quoted
    ends -= is_quoted
    return bool(np.count_nonzero(content == _QUOTE) == 2 * np.count_nonzero(is_quoted))


def _strip(content: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]) -> bool:
    """Move starts and ends to leave out white space, in place; False where there is much of it."""
    for _ in range(_MAX_SPACES):
        is_before = (starts < ends) & _IS_SPACE[content[starts]]
        starts += is_before
        is_after = (starts < ends) & _IS_SPACE[content[ends - 1]]
        ends -= is_after
        if not is_before.any() and not is_after.any():
            return True
    return False
