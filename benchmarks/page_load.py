"""How soon does a page of the app show something, and how many bytes does it take? Cold loads in Chromium.

First contentful paint (PerformancePaintTiming) is from the navigation on; bytes are those that came over the wire for
everything that the page loads, headers too (the browser's own count, encodedDataLength). Each load has a browser
profile of its own, so nothing is cached. Once over loopback as it is, once as slow as a telephone (150 ms, 1.6 Mbit/s
down). The base is made anew: the samples, and further small documents up to the number asked for.

    python benchmarks/page_load.py [--loads 15] [--documents 12 300] [--language en]

Needs the extra serve, playwright, and Chromium (apt install chromium).
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import clew

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from chromium import chromium  # noqa: E402 (what the tests share lies beside them)
from serve_app import ServedApp  # noqa: E402

SAMPLES = ROOT / "samples" / "documents"
QUESTION = "How many people crossed by the Long Passage in July 1931?"
#: Milliseconds, and bytes a second, of a connection over the air.
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 94_000}


@dataclass(frozen=True)
class Load:
    """One cold load: milliseconds to the first contentful paint, bytes and requests."""

    paint: float
    size: int
    requests: int


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loads", type=int, default=15)
    parser.add_argument("--documents", type=int, nargs="+", default=[12, 300])
    parser.add_argument("--language", default="en", help="of the browser")
    given = parser.parse_args()
    print(
        f"{given.loads} cold loads each, in {given.language}, Chromium headless, server and browser on one machine"
    )
    print("| page | requests | KiB | first paint, ms: median (worst) | over 1.6 Mbit/s, 150 ms |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with chromium() as browser, TemporaryDirectory() as folder:
        with ServedApp(Path(folder) / "empty", encoder="none") as app:
            row("an empty base", browser, f"http://127.0.0.1:{app.port}/b/empty/", given)
        for number in given.documents:
            result = Path(folder) / f"base-{number}"
            fill_base(result, number)
            with ServedApp(result) as app:
                base = f"http://127.0.0.1:{app.port}/b/{app.base}/"
                row(f"a base of {number} documents", browser, base, given)
                answer = app.ask(QUESTION)
                place = f"{base}q/{answer['id']}"
                row(f"an answer, {len(answer['evidence'])} pieces of evidence", browser, place, given)


def fill_base(folder: Path, number: int) -> None:
    """Make a base of the samples and as many notes as are missing."""
    with TemporaryDirectory() as notes, clew.open(folder, create=True) as base:
        base.encoding.set(None)
        base.add([SAMPLES])
        for n in range(len(base.documents()), number):
            Path(notes, f"note-of-day-{n:04}.md").write_text(f"# Day {n}\n\nThe gauge stood at {n} cm.\n")
        base.add([notes])


def row(what: str, browser: Any, url: str, given: argparse.Namespace) -> None:
    """Print what the loads of one page came to."""
    load_page(browser, url, given.language)  # the server's templates are read once
    plain = [load_page(browser, url, given.language) for _ in range(given.loads)]
    slow = [load_page(browser, url, given.language, SLOW) for _ in range(given.loads)]
    paints, over = [item.paint for item in plain], [item.paint for item in slow]
    size = statistics.median(item.size for item in plain) / 1024
    print(
        f"| {what} | {plain[0].requests} | {size:.1f} | {statistics.median(paints):.0f} ({max(paints):.0f}) "
        f"| {statistics.median(over):.0f} ({max(over):.0f}) |"
    )


def load_page(browser: Any, url: str, language: str, network: dict[str, Any] | None = None) -> Load:
    """Load a page in a profile of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale=language)
    try:
        page = context.new_page()
        wire = context.new_cdp_session(page)
        sizes: list[float] = []
        wire.on("Network.loadingFinished", lambda message: sizes.append(message["encodedDataLength"]))
        wire.send("Network.enable")
        if network is not None:
            wire.send("Network.emulateNetworkConditions", network)
        page.goto(url, wait_until="load")
        page.wait_for_timeout(400)  # the paint is told of after the load, and modules may load further ones
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        return Load(paint, round(sum(sizes)), len(sizes))
    finally:
        context.close()


if __name__ == "__main__":
    main()
