"""Run the commands of the documentation again and replace the figures with what they print.

A block of these pages begins with a comment that holds the command, and its figures are what the command printed:

    <!-- figures: python benchmarks/samples.py -->
    ...
    <!-- end -->

    make benchmarks                     all of them: hours on two cores
    make benchmarks ONLY=samples        those whose command contains a word

Blocks whose command fails are left as they were, and the exit status is 1. Commands run in the project's root;
``$WORK`` is a folder that is kept between runs (build/benchmarks).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs"
WORK = ROOT / "build" / "benchmarks"
BLOCK = re.compile(r"<!-- figures: (?P<command>.+?) -->\n(?P<figures>.*?)<!-- end -->", re.DOTALL)


def figures(command: str) -> str | None:
    """Return what a command prints, tables as they are and anything else as code; None where it fails."""
    bin_ = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "WORK": str(WORK)}
    print(f"$ {command}", file=sys.stderr, flush=True)
    started = time.perf_counter()
    process = subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    print(
        f"  {time.perf_counter() - started:.0f} s, status {process.returncode}", file=sys.stderr, flush=True
    )
    if process.returncode:
        return None
    text = process.stdout.replace(str(ROOT), ".").strip("\n")
    return f"\n{text}\n\n" if "|---" in text else f"\n```\n{text}\n```\n\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="commands that contain this")
    parser.add_argument("--list", action="store_true", help="print the commands and stop")
    options = parser.parse_args()
    pages = {
        match["command"]: page
        for page in sorted(PAGES.rglob("*.md"))
        for match in BLOCK.finditer(page.read_text(encoding="utf-8"))
    }
    chosen = {command: page for command, page in pages.items() if options.only in command}
    if options.list or not chosen:
        print("\n".join(pages))
        return 0 if chosen else 1
    WORK.mkdir(parents=True, exist_ok=True)
    failed = 0
    for command, page in chosen.items():
        printed = figures(command)
        if printed is None:
            failed += 1
            continue
        # Read again: a run takes long enough for somebody to have worked on the page meanwhile.
        text = page.read_text(encoding="utf-8")
        start, end = next(match for match in BLOCK.finditer(text) if match["command"] == command).span(
            "figures"
        )
        page.write_text(text[:start] + printed + text[end:], encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
