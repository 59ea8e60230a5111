"""Compare two editions of a contract: print each clause that changed with both quotes, and the numbers in it."""

from pathlib import Path
from tempfile import TemporaryDirectory

import clew

SOURCE = Path(__file__).parents[1] / "samples" / "source" / "lighter-contract.txt"
CHANGES = {"pay $38 for each week": "pay $42 for each week", "twenty-six weeks": "thirty weeks"}


def write_editions(folder: Path) -> tuple[Path, Path]:
    """Write the sample contract and one with other terms, as Markdown."""
    text = SOURCE.read_text(encoding="utf-8").partition("# Schedule")[0].replace("===\n", "")
    first, second = folder / "hire-1934.md", folder / "hire-1935.md"
    first.write_text(text, encoding="utf-8")
    for before, after in CHANGES.items():
        text = text.replace(before, after)
    second.write_text(text, encoding="utf-8")
    return first, second


if __name__ == "__main__":
    with TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        base.encoding.set(None)  # nothing is searched here
        editions = write_editions(Path(folder))
        base.add(editions)
        comparison = base.compare(*(path.name for path in editions))
        print(comparison.counts())
        for change in comparison.changes:
            print(f"\n{change.kind}: {change.heading}")
            for sign, quote in zip("-+", change.quotes, strict=True):
                print(f"  {sign} {quote}")
            for number in change.numbers:
                print(f"  {number.before} became {number.after}")
