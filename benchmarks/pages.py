"""Does a search find the page that holds the answer? Page recall on filings (FinanceBench).

A question counts as answered at k if one of its gold pages is among the first k pages. Hits become pages in
their order, each page once. "within" restricts a search to the question's own filing, "pooled" searches all
of them. The baseline is BM25 over whole page texts (raw text of the PDF, k1 1.5, b 0.75), with the statistics
of the filing within it and of all pages pooled. "filing" is the share of questions whose first page is
one of the right filing. Intervals are 95 % percentile intervals of a seeded bootstrap over the questions.

Questions with evidence on two pages count where both are among the first k pages. They are also asked end to end: are
both pages among the first ten passages of the walk, among the first thirty (what a model is given), the same as the
reader without a model is given them (not spread over pages), and in the evidence that the answer shows?

With --siblings FOLDER every filing has two more beside it, for the year before and the year after: the same texts,
with all years shifted by one. Only years tell them apart.

    python benchmarks/pages.py                                 # without an encoder
    python benchmarks/pages.py --encoder onnx:FOLDER           # and with one
    python benchmarks/pages.py --questions dev                 # our own questions on the same filings
    python benchmarks/pages.py --questions places              # 25 whose evidence lies on two pages: both of them
    python benchmarks/pages.py --siblings FOLDER --encoder none # among filings of other years
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pypdfium2

import clew
from clew.core.types import Location, ParsedDocument, ParsedNode
from clew.evaluate.statistics import bootstrap_interval
from clew.store.store import Store

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data" / "financebench"
CUTS = (1, 3, 5, 10)
#: What a word is for the baseline: a matter of some points either way.
BASELINES = {"between spaces": r"\S+", "letters and digits": r"\w+"}
#: Hits that are asked for, so that ten pages come of them also where one page gives many.
DEPTH = 300

Page = tuple[str, int]
Search = Callable[["Asked", bool], list[Page]]


@dataclass(frozen=True)
class Asked:
    """A question, the file it is about, and its gold pages (file name, page from 1)."""

    text: str
    file: str
    gold: frozenset[Page]


def financebench(data: Path) -> list[Asked]:
    results = []
    for line in (data / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        file = record["doc_name"] + ".pdf"
        gold = frozenset((file, item["evidence_page_num"] + 1) for item in record["evidence"])
        results.append(Asked(record["question"], file, gold))
    return results


def development(_data: Path) -> list[Asked]:
    lines = (HERE / "data" / "filings_dev.jsonl").read_text(encoding="utf-8").splitlines()
    records = map(json.loads, lines)
    return [Asked(r["question"], r["file"], frozenset({(r["file"], r["page"])})) for r in records]


def two_places(_data: Path) -> list[Asked]:
    lines = (HERE / "data" / "filings_places.jsonl").read_text(encoding="utf-8").splitlines()
    records = map(json.loads, lines)
    return [Asked(r["question"], r["file"], frozenset((r["file"], p) for p in r["pages"])) for r in records]


QUESTIONS: dict[str, Callable[[Path], list[Asked]]] = {
    "financebench": financebench,
    "dev": development,
    "places": two_places,
}


def page_texts(folder: Path) -> dict[Page, str]:
    results = {}
    for path in sorted(folder.glob("*.pdf")):
        document = pypdfium2.PdfDocument(path)
        for number in range(len(document)):
            results[path.name, number + 1] = document[number].get_textpage().get_text_range()
    return results


class PageBM25:
    """BM25 over whole page texts; independent of clew's own parsing, terms and scoring."""

    def __init__(self, texts: dict[Page, str], word: str, k1: float = 1.5, b: float = 0.75) -> None:
        self.word, self.k1, self.b = re.compile(word), k1, b
        self.counts = {page: Counter(self.words(text)) for page, text in texts.items()}

    def words(self, text: str) -> list[str]:
        """Return the words of a text, in lower case."""
        return self.word.findall(text.lower())

    def __call__(self, asked: Asked, pooled: bool) -> list[Page]:
        """Return the first pages, best first."""
        pages = [page for page in self.counts if pooled or page[0] == asked.file]
        lengths = np.array([self.counts[page].total() for page in pages])
        scores = np.zeros(len(pages))
        for word in self.words(asked.text):
            tf = np.array([self.counts[page][word] for page in pages])
            holding = np.count_nonzero(tf)
            idf = math.log(1 + (len(pages) - holding + 0.5) / (holding + 0.5))
            scores += (
                idf * tf * (self.k1 + 1) / (tf + self.k1 * (1 - self.b + self.b * lengths / lengths.mean()))
            )
        return [pages[n] for n in np.argsort(-scores, kind="stable")[: max(CUTS)]]


class ClewSearch:
    """A retriever of clew's catalogue; its hits as pages."""

    def __init__(self, base: clew.KnowledgeBase, retriever: str) -> None:
        self.base, self.retriever = base, retriever

    def __call__(self, asked: Asked, pooled: bool) -> list[Page]:
        """Return the first pages, best first."""
        documents = None if pooled else [asked.file]
        hits = self.base.search(asked.text, k=DEPTH, retriever=self.retriever, documents=documents)
        pages = [(hit.node.document_name, hit.node.page) for hit in hits if hit.node.page]
        return list(dict.fromkeys(pages))[: max(CUTS)]


_YEAR = re.compile(r"(?<![\d.,$])(?:19|20)\d\d(?![\d,]|\.\d)|(?<=FY)\d\d(?!\d)|(?<=\dQ)\d\d(?!\d)")


def shift_years(text: str, by: int) -> str:
    """Return a text of the same length with every year ``by`` years later."""
    return _YEAR.sub(
        lambda match: f"{int(match[0]) + by:0{len(match[0])}d}", text.replace("_", "\0")
    ).replace("\0", "_")


def add_siblings(source: Store, store: Store) -> None:
    """Put each document of a base into another, and its twins of the year before and the year after."""
    for document in source.documents():
        nodes, text = source.document_nodes(document.key), source.document_text(document.key)
        for by in (-1, 0, 1):
            twins = tuple(
                ParsedNode(
                    node.kind,
                    shift_years(node.text, by),
                    None if node.parent is None else int(node.parent.rpartition(":")[2]),
                    shift_years(node.name, by),
                    node.level,
                    node.page,
                    node.span,
                )
                for node in nodes
            )
            name = shift_years(document.name, by)
            key = hashlib.blake2b(f"{document.key}{by}".encode(), digest_size=16).hexdigest()
            twin = ParsedDocument(
                key, shift_years(document.title, by), document.media_type, document.parser,
                shift_years(text, by), twins, document.pages,
            )  # fmt: skip
            store.put_document(twin, Location(f"/filings/{name}", "/filings", len(text), 1, 1))
    store.catch_up()


def found_at(search: Search, questions: Sequence[Asked], pooled: bool, every: bool) -> np.ndarray:
    """Return for each question whether the first page is of its filing, and for each cut whether a gold page is
    among the first, or ``every`` one."""
    rows = []
    for asked in questions:
        pages = search(asked, pooled)
        first_file = pages[0][0] if pages else ""
        rows.append(
            [first_file == asked.file]
            + [len(asked.gold & set(pages[:cut])) >= (len(asked.gold) if every else 1) for cut in CUTS]
        )
    return np.array(rows, dtype=float)


def report(
    name: str, search: Search, questions: Sequence[Asked], seed: int, every: bool = False
) -> Iterator[str]:
    for pooled in (False, True):
        started = time.perf_counter()
        result = found_at(search, questions, pooled, every)
        each = (time.perf_counter() - started) / len(questions)
        results = [bootstrap_interval(column.tolist(), seed) for column in result.T]
        cells = [f"{item.mean:.2f} [{item.low:.2f}, {item.high:.2f}]" for item in results]
        yield f"| {name} | {'pooled' if pooled else 'within'} | {' | '.join(cells)} | {each * 1000:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--kb", type=Path, help="a base to use or make (default: a temporary one)")
    parser.add_argument(
        "--encoder", action="append", help="such as onnx:FOLDER (default: none and clew:hops)"
    )
    parser.add_argument(
        "--retriever", action="append", help="retrievers to compare (default: search, default, bm25)"
    )
    parser.add_argument("--questions", choices=tuple(QUESTIONS), default="financebench")
    parser.add_argument("--siblings", type=Path, help="a base to use or make of the filings and their twins")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"no data at {options.data}; the filings are not part of this repository")
    questions = QUESTIONS[options.questions](options.data)
    every = options.questions == "places"
    pdfs = options.data / "pdfs"
    print(f"{len(questions)} questions ({options.questions}), seed {options.seed}\n")
    cuts = [f"{'both ' * every}@{cut} [95 %]" for cut in CUTS]
    print("| search | scope | filing [95 %] | " + " | ".join(cuts) + " | ms |")
    print("|---|---|" + "---|" * (len(CUTS) + 2))
    texts = page_texts(pdfs)
    for kind, word in BASELINES.items() if not options.siblings else ():
        name = f"BM25 of page texts, {kind}"
        for line in report(name, PageBM25(texts, word), questions, options.seed, every):
            print(line, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        with clew.open(options.kb or temporary, create=True) as base:
            base.encoding.set(None)
            base.add([pdfs])
            if options.siblings and not options.siblings.exists():
                with Store.open(options.siblings, create=True) as twins:
                    add_siblings(base.store, twins)
        with clew.open(options.siblings or options.kb or temporary) as base:
            compare(base, questions, options)
            if every:
                answer_questions(base, questions, options)


def compare(base: clew.KnowledgeBase, questions: Sequence[Asked], options: argparse.Namespace) -> None:
    """Print a line for each encoder, retriever and scope."""
    for encoder in options.encoder or ["none", "clew:hops"]:
        base.encoding.set(None if encoder == "none" else encoder)
        if encoder != "none":
            base.encoding.encode_missing()
        for retriever in options.retriever or ["search", "default", "bm25"]:
            name = f"clew {retriever}, encoder {encoder.rpartition('/')[2]}"
            search = ClewSearch(base, retriever)
            for line in report(name, search, questions, options.seed, options.questions == "places"):
                print(line, flush=True)


def answer_questions(
    base: clew.KnowledgeBase, questions: Sequence[Asked], options: argparse.Namespace
) -> None:
    """Print a line for each encoder and scope: of how many questions both pages are in the evidence."""
    cuts = ("first 10 passages", "first 30", "first 10 as read", "30 as read", "shown with the answer")
    heads = "".join(f" both, {cut} | one, {cut} |" for cut in cuts)
    print(f"\n| encoder | scope | questions |{heads} refused |")
    print("|---|---|---|" + "---|" * (2 * len(cuts) + 1))
    for encoder in options.encoder or ["none", "clew:hops"]:
        base.encoding.set(None if encoder == "none" else encoder)
        for pooled in (False, True):
            tally: Counter[str] = Counter()
            for asked in questions:
                documents = None if pooled else [asked.file]
                walked = base.search(asked.text, k=30, documents=documents)
                answer = base.ask(asked.text, documents=documents)
                tally["refused"] += answer.abstained
                for cut, hits in zip(
                    cuts,
                    (walked[:10], walked, answer.context[:10], answer.context, answer.evidence),
                    strict=True,
                ):
                    places = asked.gold & {(hit.node.document_name, hit.node.page) for hit in hits}
                    tally[f"both, {cut}"] += places == asked.gold
                    tally[f"one, {cut}"] += bool(places)
            cells = [tally[f"{share}, {cut}"] for cut in cuts for share in ("both", "one")]
            cells.append(tally["refused"])
            scope = "pooled" if pooled else "within"
            print(f"| {encoder} | {scope} | {len(questions)} | {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
