"""Thirty pages of filings as degraded scans: words read wrong, how often the right page is found, seconds a page.

Each page is drawn at 150 dpi, turned by up to two degrees, blurred, given noise, and packed as JPEG (seed 5). 20
questions were written for eight of the pages before any was read from its picture
(benchmarks/data/scan_questions.jsonl); the others are those of FinanceBench whose evidence lies on these pages.
Nothing was tuned on them. Needs the extra ocr.
What was read stays in --work, so that a run that was stopped continues.

python benchmarks/scans.py --data ../shared/data/financebench --work build/benchmarks/scans
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import pickle
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2 as pdfium
from PIL import Image, ImageFilter
from rapidfuzz.distance import Levenshtein

import clew
from clew.core.types import Location
from clew.parse.documents.pdf import recognition
from clew.parse.documents.pdf.lines import group_by_baseline
from clew.parse.documents.pdf.words import Page, read_page
from clew.parse.documents.reader import parse

PAGES = 30
SEED = 5
QUESTIONS = Path(__file__).parent / "data" / "scan_questions.jsonl"
Place = tuple[str, int]  # document and page, from 0
_TOKEN = re.compile(r"[^\W_]+(?:[.,'’/-][^\W_]+)*%?")


def choose(data: Path) -> tuple[list[Place], list[tuple[str, set[Place]]]]:
    """Return the pages, and the questions with the pages that answer them."""
    own = [json.loads(line) for line in QUESTIONS.read_text().splitlines()]
    questions = [(row["question"], {(row["document"], row["page"])}) for row in own]
    pages = list(dict.fromkeys(place for _, places in questions for place in places))
    lines = (data / "questions.jsonl").read_text().splitlines()
    others = []
    for row in map(json.loads, lines):
        others.append(
            (row["question"], {(item["doc_name"], item["evidence_page_num"]) for item in row["evidence"]})
        )
    for number in np.random.default_rng(SEED).permutation(len(others)):
        question, places = others[number]
        new = [place for place in sorted(places) if place not in pages]
        if len(pages) + len(new) <= PAGES:
            pages += new
            questions.append((question, places))
    return pages, questions


def draw_scan(page: Any, chance: np.random.Generator) -> Image.Image:
    """Return a page as a bad scan."""
    image = page.render(scale=150 / 72).to_pil().convert("L")
    image = image.rotate(chance.uniform(-2, 2), resample=Image.Resampling.BICUBIC, fillcolor=255)
    image = image.filter(ImageFilter.GaussianBlur(0.6))
    pixels = np.asarray(image).astype(float) * chance.uniform(0.85, 1) + chance.normal(
        0, 12, (image.height, image.width)
    )
    stream = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(stream, "JPEG", quality=60)
    return Image.open(stream)


class CachedEngine:
    """The recognition of lines, kept on disk by the picture; counts the processor time."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._read = folder, recognition.read_lines
        self.seconds: list[float] = []

    def __call__(self, pixels: Any) -> Any:
        """Return the lines of a picture."""
        path = self._folder / f"{hashlib.sha256(pixels.tobytes()).hexdigest()[:20]}.pickle"
        if not path.exists():
            start = time.process_time()
            lines = self._read(pixels)
            path.write_bytes(pickle.dumps((lines, time.process_time() - start)))
        lines, seconds = pickle.loads(path.read_bytes())
        self.seconds.append(seconds)
        return lines


def tokens(page: Page) -> list[str]:
    return [token for line in group_by_baseline(page) for token in _TOKEN.findall(line.text)]


def page_recall(base: clew.KnowledgeBase, questions: Sequence[tuple[str, set[Place]]]) -> tuple[int, int]:
    """Return how often a right page is that of the first hit, and among those of the first five hits."""
    first = five = 0
    for question, places in questions:
        hits = [hit.node.document_name for hit in base.search(question, k=5)]
        names = {f"{document}-{page}.pdf" for document, page in places}
        first += bool(hits) and hits[0] in names
        five += bool(names & set(hits))
    return first, five


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=PAGES, help="the first so many of them")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    engine = CachedEngine(options.work)
    recognition.read_lines = engine
    pages, questions = choose(options.data)
    pages = pages[: options.pages]
    questions = [(question, places) for question, places in questions if places <= set(pages)]
    chance = np.random.default_rng(SEED)
    errors = words = known = distinct = 0
    documents: dict[str, list[Any]] = {"text layer": [], "scan": []}
    for name, number in pages:
        source = pdfium.PdfDocument(options.data / "pdfs" / f"{name}.pdf")
        single = pdfium.PdfDocument.new()
        single.import_pages(source, [number])
        stream = io.BytesIO()
        single.save(stream)
        truth = tokens(read_page(single[0], 1))
        image = draw_scan(single[0], chance)
        scan = io.BytesIO()
        image.save(scan, "PDF", resolution=150.0)
        file = f"{name}-{number}.pdf"
        documents["text layer"].append((file, parse(stream.getvalue(), file)))
        before = len(engine.seconds)
        parsed = parse(scan.getvalue(), file)
        documents["scan"].append((file, parsed))
        width, height = pdfium.PdfDocument(scan.getvalue())[0].get_size()
        pixels = pdfium.PdfDocument(scan.getvalue())[0].render(
            scale=min(recognition.SCALE, (recognition.MAX_PIXELS / (width * height)) ** 0.5),
            rev_byteorder=True,
            may_draw_forms=True,
        )
        page, _ = recognition.recognise_page(pixels.to_numpy()[:, :, :3], 1, width, height)
        del engine.seconds[before + 1 :]
        read = tokens(page)
        wrong = Levenshtein.distance(truth, read)
        errors, words = errors + wrong, words + len(truth)
        known, distinct = known + len(set(truth) & set(read)), distinct + len(set(truth))
        print(f"# {file}: {wrong} of {len(truth)} words, {engine.seconds[-1]:.1f} s", flush=True)
    print("\n| pages | word error rate | words of the page that are read somewhere on it | seconds a page |")
    print("|---|---|---|---|")
    seconds = float(np.median(engine.seconds))
    print(f"| {len(pages)} | {errors / words:.3f} | {known / distinct:.3f} | {seconds:.1f} |\n")
    print("| pages as | questions | page of the first hit | pages of the first five |\n|---|---|---|---|")
    for kind, parsed_documents in documents.items():
        folder = options.work / f"base-{kind.replace(' ', '-')}-{time.time_ns()}"
        with clew.open(folder, create=True) as base:
            for file, parsed in parsed_documents:
                base.store.put_document(parsed, Location(f"/{file}", "/", 0, 0, 0))
            base.store.catch_up()
            base.encoding.encode_missing()
            first, five = page_recall(base, questions)
            print(f"| {kind} | {len(questions)} | {first} | {five} |", flush=True)


if __name__ == "__main__":
    main()
