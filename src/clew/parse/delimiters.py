"""The character that separates the cells of a table written as text."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence

DELIMITERS = ",;\t|"


def detect_delimiter(lines: Sequence[str], delimiters: str = DELIMITERS) -> str:
    r"""Return the delimiter under which most rows have the same number of cells, and more than one; else a comma.

    Lines keep their ends, without which a line break in a quoted cell would be lost.

    >>> detect_delimiter(["a;b,c\n", "d;e\n"])
    ';'
    """
    best, best_score = ",", (0.0, 0)
    for delimiter in delimiters:
        try:
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
        except csv.Error:
            continue
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        score = (count / max(widths.total(), 1), width)
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    return best
