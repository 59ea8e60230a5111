"""Every format that clew reads: the same text in each, and 20 questions that have to find their passage.

The files in tests/data/formats were written by pandoc, LibreOffice and Python's own mail (make.py there); the
questions were written before any of them was read. Prints how often the passage is the first hit and among the
first five.

python benchmarks/formats.py
python benchmarks/formats.py --retriever bm25
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import clew
from clew.parse.documents.reader import parse

SAMPLES = Path(__file__).parent.parent / "tests" / "data" / "formats"
sys.path.insert(0, str(SAMPLES.parent.parent))
FORMATS = "docx odt rtf epub ipynb tex html eml mbox msg pptx odp xlsx ods csv json jsonl zip".split()


def write_samples(folder: Path) -> None:
    from compound_writer import message_tree, write_compound_file

    for suffix in FORMATS:
        if suffix != "msg":
            (folder / f"brannick.{suffix}").write_bytes((SAMPLES / f"brannick.{suffix}").read_bytes())
    html = (SAMPLES / "brannick.html").read_bytes()
    (folder / "brannick.msg").write_bytes(
        write_compound_file(message_tree("The Harbour of Brannick", html=html))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--retriever", default="default")
    options = parser.parse_args()
    questions = [json.loads(line) for line in (SAMPLES / "questions.jsonl").read_text().splitlines()]
    print("| format | questions | first hit | first five | read in |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "files"
        folder.mkdir()
        write_samples(folder)
        with clew.open(Path(work) / "base", create=True) as base:
            report = base.add([folder])
            if report.failed:
                sys.exit("\n".join(map(str, report.failed)))
            for suffix in FORMATS:
                name = f"brannick.{suffix}"
                data = (folder / name).read_bytes()
                parse(data, name)  # the modules are imported
                started = time.perf_counter()
                parse(data, name)
                seconds = time.perf_counter() - started
                first = five = 0
                for row in questions:
                    scope = ["brannick.md" if suffix == "zip" else name]
                    hits = base.search(row["question"], k=5, retriever=options.retriever, documents=scope)
                    places = [number for number, hit in enumerate(hits) if row["evidence"] in hit.node.text]
                    first += places[:1] == [0]
                    five += bool(places)
                print(
                    f"| {suffix} | {len(questions)} | {first} | {five} | {1_000 * seconds:.0f} ms |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
