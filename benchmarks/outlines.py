"""Are the sections that the parser finds those of the document? Headings against lists checked by hand.

The lists are in tests/data/outlines, with what they count as a heading. A section is right where its heading is one
of the list's on that page: the same letters and digits, or one contains the other and has at least 60 % of them (a
heading of two lines of which one was missed). Each heading counts once. A level is right where a section stands
within as many sections as in the list: parsers number levels differently. A parent is right where it is the same
heading of the list, or none in both.

    python benchmarks/outlines.py
    python benchmarks/outlines.py --show ADOBE_2022_10K        # and what was missed, and what is no heading
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.core.types import SECTION
from clew.parse.documents.reader import parse

HERE = Path(__file__).parent
LISTS = HERE.parent / "tests" / "data" / "outlines"
FOLDERS = (HERE.parent / "samples", HERE.parent.parent / "shared" / "data" / "financebench" / "pdfs")
#: Share of a heading's letters that a match has at the least.
ENOUGH = 0.6


@dataclass(frozen=True)
class Heading:
    """A heading: its page from 1, its level from 1, its text."""

    page: int
    level: int
    text: str

    @property
    def letters(self) -> str:
        """What is compared: letters and digits, in lower case."""
        return re.sub(r"[\W_]+", "", self.text.casefold())


@dataclass(frozen=True)
class Compared:
    """Headings of the list and of the parser on the pages of the list; ``pairs`` are those that match, by index."""

    listed: Sequence[Heading]
    found: Sequence[Heading]
    pairs: Sequence[tuple[int, int]]

    @property
    def precision(self) -> float:
        """Share of what was found that is a heading."""
        return len(self.pairs) / len(self.found) if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the headings that were found."""
        return len(self.pairs) / len(self.listed)

    @property
    def levels(self) -> int:
        """How many matches stand within as many sections as in the list."""
        over, under = depths(self.listed), depths(self.found)
        return sum(over[a] == under[b] for a, b in self.pairs)

    @property
    def parents(self) -> int:
        """How many matches stand under the same heading as in the list."""
        over, under = parents(self.listed), parents(self.found)
        to_list = {b: a for a, b in self.pairs}

        # What is no heading of the list is looked through: it is an error of its own.
        def listed_above(b: int | None) -> int | None:
            while b is not None and b not in to_list:
                b = under[b]
            return None if b is None else to_list[b]

        return sum(over[a] == listed_above(under[b]) for a, b in self.pairs)


def parents(headings: Sequence[Heading]) -> list[int | None]:
    """Return for each heading the index of the nearest one before it with a smaller level."""
    open_: list[int] = []
    results: list[int | None] = []
    for n, heading in enumerate(headings):
        while open_ and headings[open_[-1]].level >= heading.level:
            open_.pop()
        results.append(open_[-1] if open_ else None)
        open_.append(n)
    return results


def depths(headings: Sequence[Heading]) -> list[int]:
    """Return how many headings each stands within, itself counted."""
    results: list[int] = []
    for above in parents(headings):
        results.append(1 if above is None else results[above] + 1)
    return results


def read_list(path: Path) -> tuple[set[int], list[Heading]]:
    """Return the pages that a list covers, and its headings in their order."""
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    ranges = (part.split("-") for part in first.removeprefix("pages:").split(","))
    pages = {page for item in ranges for page in range(int(item[0]), int(item[-1]) + 1)}
    fields = (line.split("\t", 2) for line in lines)
    return pages, [Heading(int(page), int(level), text) for page, level, text in fields]


def sections(path: Path) -> list[Heading]:
    """Return the sections that the parser finds in a file, in reading order."""
    nodes = parse(path.read_bytes(), path.name).nodes
    return [Heading(node.page or 0, node.level, node.name) for node in nodes if node.kind == SECTION]


def alike(item: str, other: str) -> bool:
    """Return whether two headings' letters are the same, or nearly."""
    short, long = sorted((item, other), key=len)
    return bool(short) and short in long and len(short) >= ENOUGH * len(long)


def compare(pages: set[int], listed: Sequence[Heading], every: Sequence[Heading]) -> Compared:
    """Return which sections match which headings, page by page in their order, exact ones first."""
    results = [value for value in every if value.page in pages]
    left = dict.fromkeys(range(len(results)))
    pairs: list[tuple[int, int]] = []
    for exact in (True, False):
        taken = {a for a, _ in pairs}
        for a, item in enumerate(listed):
            fits = (
                b
                for b in left
                if a not in taken
                and results[b].page == item.page
                and (results[b].letters == item.letters if exact else alike(item.letters, results[b].letters))
            )
            if (b := next(fits, None)) is not None:
                del left[b]
                pairs.append((a, b))
    return Compared(listed, results, sorted(pairs))


def documents() -> Iterator[tuple[str, Path, Path]]:
    """Yield the name, the list and the file of each document that is there."""
    for path in sorted(LISTS.glob("*.tsv")):
        files = [file for folder in FOLDERS for file in folder.rglob(f"{path.stem}.pdf")]
        if files:
            yield path.stem, path, files[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--show", default="", help="a document whose errors are printed")
    options = parser.parse_args()
    print("| document | pages | headings | found | precision | recall | right level | right parent |")
    print("|---|---|---|---|---|---|---|---|")
    for name, list_, file in documents():
        pages, listed = read_list(list_)
        result = compare(pages, listed, sections(file))
        matched = max(len(result.pairs), 1)
        print(
            f"| {name} | {len(pages)} | {len(listed)} | {len(result.found)} | {result.precision:.2f} | "
            f"{result.recall:.2f} | {result.levels / matched:.2f} | {result.parents / matched:.2f} |",
            flush=True,
        )
        if options.show and options.show in name:
            known_a, known_b = ({pair[side] for pair in result.pairs} for side in (0, 1))
            for n, item in enumerate(listed):
                if n not in known_a:
                    print(f"missed     p. {item.page} level {item.level}: {item.text}")
            for n, item in enumerate(result.found):
                if n not in known_b:
                    print(f"no heading p. {item.page} level {item.level}: {item.text}")


if __name__ == "__main__":
    main()
