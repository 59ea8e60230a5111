"""How fast each format is read, in how much memory, and what part of an ``add`` the encoder takes.

Usage:
    python benchmarks/add_speed.py [--data ../shared/data] [--seconds 1] [--encoder clew:hops]
    python benchmarks/add_speed.py --filings 8

Each format is parsed in a process of its own: the sample of ``tests/data/formats`` again and again for ``--seconds``,
and the smallest filing of ``--data`` (FinanceBench) once. A page is 2,500 characters of text, or a page of the PDF.
Memory is the peak of the process after it has imported the parser, and what parsing adds to it. Then all samples are
added to a knowledge base without an encoder and with it: the difference is the encoder's.

``--filings`` adds so many filings instead, the smallest first: without vectors, then the vectors are made. Beside
the clock, processor time is printed, of all processes: on a busy machine pages per second of processor time, times
the number of cores, is what an idle one would do at best.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import clew
from clew.parse.documents.reader import parse

sys.path.insert(0, str(Path(__file__).parent))
from formats import FORMATS, write_samples

CHARACTERS = 2_500
MIB = 1 << 20


def peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB


def measure(path: Path, seconds: float) -> tuple[float, float, float, int]:
    """Return pages, seconds for one reading, MiB that reading adds to the peak, and how often the file was read."""
    data = path.read_bytes()
    parse(b"The first text loads what every parser needs.", "a.txt")
    before = peak_memory()
    started, times = time.perf_counter(), 0
    while not times or time.perf_counter() - started < seconds:
        document = parse(data, path.name)
        times += 1
    spent = (time.perf_counter() - started) / times
    pages = float(document.pages) if path.suffix == ".pdf" else len(document.text) / CHARACTERS
    return pages, spent, peak_memory() - before, times


def processor_seconds() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def add_filings(filings: list[Path], kb: Path, encoder: str) -> None:
    """Print how long filings take to add, and their vectors to make."""
    with clew.open(kb, create=True) as base:
        base.encoding.set(None)
        clock, used = time.perf_counter(), processor_seconds()
        report = base.add(filings)
        read, read_used = time.perf_counter() - clock, processor_seconds() - used
        base.encoding.set(encoder)
        base.encoding.require().encode(["loaded before it is measured"])
        clock, used = time.perf_counter(), processor_seconds()
        texts = base.encoding.encode_missing()
        made, made_used = time.perf_counter() - clock, processor_seconds() - used
    cores = os.cpu_count() or 1
    pages, total, total_used = report.pages, read + made, read_used + made_used
    print(f"{len(filings)} filings, {pages:,} pages, {report.passages + report.rows:,} passages and rows")
    print("| | seconds | processor seconds | pages/s | pages/s of processor time, all cores |")
    print("|---|---:|---:|---:|---:|")
    for name, seconds, used in (
        ("read and indexed", read, read_used),
        (f"{texts:,} vectors by {encoder}", made, made_used),
        ("both", total, total_used),
    ):
        print(f"| {name} | {seconds:.0f} | {used:.0f} | {pages / seconds:.1f} | {pages / used * cores:.1f} |")


def add_all(folder: Path, kb: Path, encoder: str | None) -> tuple[float, int]:
    """Return the seconds of an ``add`` of a folder and how many passages and rows it brought."""
    with clew.open(kb, create=True) as base:
        base.encoding.set(encoder)
        if encoder is not None:
            base.encoding.require().encode(["loaded before it is measured"])
        started = time.perf_counter()
        report = base.add([folder])
        return time.perf_counter() - started, report.passages + report.rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--encoder", default="clew:hops")
    parser.add_argument("--filings", type=int, default=0, help="add so many filings instead")
    options = parser.parse_args()
    if options.filings:
        by_size = sorted(
            (options.data / "financebench/pdfs").glob("*.pdf"), key=lambda file: file.stat().st_size
        )
        with tempfile.TemporaryDirectory() as work:
            add_filings(by_size[: options.filings], Path(work) / "kb", options.encoder)
        return
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "samples"
        folder.mkdir()
        write_samples(folder)
        files = [folder / f"brannick.{suffix}" for suffix in FORMATS if suffix != "zip"]
        filings = sorted(
            (options.data / "financebench" / "pdfs").glob("*.pdf"), key=lambda file: file.stat().st_size
        )
        print("| format | pages | ms/page | pages/s | MiB |\n|---|---:|---:|---:|---:|")
        for path in [*files, *filings[:1]]:
            # Spawned and used once, so that the peak is that of this file alone.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                pages, spent, memory, _ = pool.apply(measure, (path, options.seconds))
            print(
                f"| {path.suffix[1:]} | {pages:.1f} | {1000 * spent / pages:.1f} "
                f"| {pages / spent:.0f} | {memory:.0f} |",
                flush=True,
            )
        plain, rows = add_all(folder, Path(work) / "plain", None)
        encoded, _ = add_all(folder, Path(work) / "encoded", options.encoder)
        share = (encoded - plain) / encoded
        print(
            f"\nadd of all samples, {rows} passages and rows: {plain:.1f} s, with {options.encoder} {encoded:.1f} s;"
        )
        print(
            f"the encoder's share: {share:.0%}, {rows / max(encoded - plain, 1e-9):.0f} passages and rows/s"
        )


if __name__ == "__main__":
    main()
