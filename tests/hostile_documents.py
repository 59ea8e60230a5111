"""Two hundred and fifty hostile documents of all formats, made from a seed, each added to a base beside a good one.

    python tests/hostile_documents.py [--seed 0] [--from 0] [--number 250] [--out build/hostile-SEED.jsonl]

Document N depends on the seed and N alone: its kind is N modulo the number of kinds, its sizes are drawn. Each is
added as `clew add` does, with a good file, to a new base without vectors. Recorded are what became of both, the lines
about it, and the processor time and the peak memory of the readers and of the process that stores what they read;
what the file has already is not measured again. Prints a table by suffix (``--by-kind``: by kind) and the rules that
were broken: readers that take more than 20 seconds of processor time (with 3 for the start of a process, 1 for each
MiB of the file, 0.2 for each page of a PDF that has 500 bytes, and as much again for each file within an archive), a
process that takes more than 700 MB, a refusal that is not one line, or a crash, more than a screen of lines, a good
file that is not found. Exit status 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import clew
import hostile_packages
import hostile_pdfs
import hostile_texts
from bad_files import good_docx, good_msg, good_pdf, good_xlsx, sample
from clew.app.cli.documents import failure_lines
from clew.core.types import MEMBER_SEPARATOR
from hostile_texts import Kinds, Maker

ROOT = Path(__file__).parents[1]
#: What the readers of a document may take: seconds of processor time, and any process of it: megabytes.
SECONDS, MEGABYTES = 20.0, 700.0
#: The start of a process and its imports, and the grain of the kernel's limit.
_START_SECONDS = 3.0
#: What a page of a PDF adds to its limit.
_SECONDS_PER_PAGE = 0.2
#: Lines about one document, and characters of a line.
_MAX_LINES, _MAX_LENGTH = 25, 400
GOOD: dict[str, Callable[[], bytes]] = {
    "pdf": good_pdf,
    "docx": good_docx,
    "xlsx": good_xlsx,
    "msg": good_msg,
    **{
        suffix: lambda suffix=suffix: sample(suffix)  # type: ignore[misc]
        for suffix in "pptx odt ods odp epub eml mbox rtf html csv json jsonl ipynb tex zip".split()
    },
}


def damaged(suffix: str) -> Maker:
    """Return a maker of good files that are changed at random places, or cut at one."""

    def damage(rng: random.Random) -> bytes:
        data = bytearray(GOOD[suffix]())
        if rng.random() < 0.3:
            return bytes(data[: rng.randrange(1, len(data))])
        for _ in range(rng.randint(1, 40)):
            start = rng.randrange(len(data))
            data[start : start + rng.randint(0, 30)] = rng.randbytes(rng.randint(0, 30))
        return bytes(data)

    return damage


def misnamed(suffixes: str) -> Maker:
    """Return a maker of good files of any of these formats, with something before or behind them at times."""

    def misname(rng: random.Random) -> bytes:
        data = GOOD[rng.choice(suffixes.split())]()
        return (
            rng.choice([b"", b"\n", b"%PDF-1.4\n", b"<html>", b"\0"]) + data + rng.choice([b"", bytes(999)])
        )

    return misname


KINDS: Kinds = {
    **hostile_texts.KINDS,
    **hostile_packages.KINDS,
    **hostile_pdfs.KINDS,
    **{
        f"{suffix}, damaged": (suffix, damaged(suffix))
        for suffix in "pdf docx xlsx pptx odt odp epub msg rtf".split()
    },
    "wrong suffix, pdf": ("pdf", misnamed("docx epub html eml msg zip")),
    "wrong suffix, docx": ("docx", misnamed("pdf xlsx odt epub zip msg json")),
    "wrong suffix, txt": ("txt", misnamed("pdf docx html eml mbox rtf ipynb")),
    "wrong suffix, csv": ("csv", misnamed("xlsx ods html json zip tex")),
}


def make_document(seed: int, number: int) -> tuple[str, str, bytes]:
    """Return the kind, the suffix and the bytes of a document."""
    kind = list(KINDS)[number % len(KINDS)]
    suffix, make = KINDS[kind]
    return kind, suffix, make(random.Random(f"{seed}/{number}"))


def _in_process(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a process of its own returns: what it uses is counted apart."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            record = work()
        except BaseException as error:  # noqa: BLE001 - the record says so
            record = {"broken": [f"{type(error).__name__}: {error}"]}
        with os.fdopen(writing, "w") as stream:
            json.dump(record, stream)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        record = json.loads(stream.read() or '{"broken": ["the process that adds ended"]}')
    os.waitpid(child, 0)
    return dict(record)


def measure(seed: int, number: int) -> dict[str, Any]:
    """Add a document and a good one to a base in a process of its own; return what became of them."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    (folder / "files").mkdir()

    def write() -> dict[str, Any]:
        kind, suffix, data = make_document(seed, number)
        path = folder / "files" / f"hostile.{suffix}"
        path.write_bytes(data)
        return {"number": number, "kind": kind, "suffix": suffix, "bytes": len(data)}

    try:
        record = _in_process(write)  # of its own: the bytes would count as memory of the one that adds
        record |= _in_process(lambda: _add(folder, record))
    finally:
        shutil.rmtree(folder)
    return record


def _add(folder: Path, record: dict[str, Any]) -> dict[str, Any]:
    good, hostile = folder / "files" / "good.md", folder / "files" / f"hostile.{record['suffix']}"
    good.write_text("# Toll\n\nThe toll is nine crowns.\n")
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.monotonic()
    with clew.open(folder / "base", create=True) as base:
        base.encoding.set(None)
        report = base.add([good, hostile], workers=1)
        elapsed = time.monotonic() - started
        used, own = resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF)
        paths = list(base.store.locations())
        is_good_there = str(good) in paths and any(
            "nine crowns" in hit.node.text for hit in base.search("toll crowns", k=3, retriever="bm25")
        )
    seconds, storing = (
        used.ru_utime + used.ru_stime,
        own.ru_utime + own.ru_stime - before.ru_utime - before.ru_stime,
    )
    megabytes = {"reading": used.ru_maxrss * 1024 / 1e6, "storing": own.ru_maxrss * 1024 / 1e6}
    lines = failure_lines(report.failed)
    inner = max(len(paths) - 1, 0) + sum(MEMBER_SEPARATOR in failure.path for failure in report.failed)
    pages = _count_pages(hostile)
    broken = []
    allowed = SECONDS + _START_SECONDS + record["bytes"] / (1 << 20) + _SECONDS_PER_PAGE * pages
    if seconds > allowed * max(inner, 1):
        broken.append(f"{seconds:.0f} seconds")
    broken += [f"{size:.0f} MB while {what}" for what, size in megabytes.items() if size > MEGABYTES]
    refusals = [line for line in lines if "\n" in line or len(line) > _MAX_LENGTH or "crashed" in line]
    broken += [f"refused by: {line}" for line in refusals[:3]]
    if len(lines) > _MAX_LINES:
        broken.append(f"{len(lines)} lines")
    if not is_good_there:
        broken.append("the good file beside it was lost")
    if str(hostile) not in {*paths, *(failure.path for failure in report.failed)}:
        broken.append("nothing is said about it" if not report.skipped else "skipped")
    return {
        "seconds": round(seconds, 1),
        "storing": round(storing, 1),
        "elapsed": round(elapsed, 1),
        "megabytes": round(megabytes["reading"]),
        "megabytes_storing": round(megabytes["storing"]),
        "is_read": str(hostile) in paths,
        "lines": [line.replace(str(folder / "files"), "") for line in lines[:5]],
        "line_count": len(lines),
        "notes": [note for _, note in report.notes[:3]],
        "skipped": report.skipped,
        "broken": broken,
    }


def _count_pages(path: Path) -> int:
    """Return for how many pages the reader of a PDF may take longer, 0 for what is none."""
    if path.suffix != ".pdf":
        return 0
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
        count = min(len(document), 20_000, path.stat().st_size // 500)
        document.close()
    except pypdfium2.PdfiumError:
        return 0
    return count


def print_table(records: list[dict[str, Any]], key: str) -> None:
    """Print the largest figures of each suffix or kind, and what broke a rule."""
    lines = [
        f"| {key} | documents | read | refused | CPU seconds | storing them | MB | storing them | lines |",
        "| --- |" + " ---: |" * 8,
    ]
    order = list(KINDS) if key == "kind" else sorted({record["suffix"] for record in records})
    for value in order:
        own = [record for record in records if record.get(key) == value and "seconds" in record]
        if own:
            columns = ("seconds", "storing", "megabytes", "megabytes_storing", "line_count")
            most = [max(record[column] for record in own) for column in columns]
            is_read = sum(record["is_read"] for record in own)
            figures = f"{most[0]:.1f} | {most[1]:.1f} | {most[2]} | {most[3]} | {most[4]}"
            lines.append(f"| {value} | {len(own)} | {is_read} | {len(own) - is_read} | {figures} |")
    broken = [record for record in records if record["broken"]]
    lines.append(f"\n{len(records)} documents, {len(broken)} beyond a limit")
    lines += [f"{record['number']} ({record['kind']}): {'; '.join(record['broken'])}" for record in broken]
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="N")
    parser.add_argument("--number", type=int, default=250)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, metavar="KIND", help="these alone")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no document after so many")
    parser.add_argument("--by-kind", action="store_true", help="a line of the table for each kind")
    parser.add_argument(
        "--out", type=Path, help="a line for each document; default: build/hostile-SEED.jsonl"
    )
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    out = given.out or ROOT / "build" / f"hostile-{given.seed}.jsonl"
    out.parent.mkdir(parents=True, exist_ok=True)
    records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    measured = {record["number"] for record in records}
    os.environ |= {"CLEW_ENCODER": "none", "CLEW_READER": "none"}
    for number in range(given.first, given.first + given.number):
        is_wanted = not given.kinds or list(KINDS)[number % len(KINDS)] in given.kinds
        if number not in measured and is_wanted and time.monotonic() < until:
            records.append(measure(given.seed, number))
            with out.open("a") as stream:
                stream.write(json.dumps(records[-1]) + "\n")
    print_table(records, "kind" if given.by_kind else "suffix")
    return int(any(record["broken"] for record in records))


if __name__ == "__main__":
    sys.exit(main())
