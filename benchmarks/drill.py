"""What does drilling cost, and what does it lose? The drill and its paper's baselines, on the FinanceBench filings.

No model is asked: scripted selectors stand for it (benchmarks/scripted_selectors.py). An oracle picks exactly what
holds the gold pages when that is offered, so what it does not reach was lost before it was asked; a blind one goes by
the encoder, over the names and summaries that it is shown. "reached": a passage of a gold page is among what is
found. Tokens and calls are those of retrieval for a question, counted by rule; "< 0.26" is the share of questions
that take at most 0.26 of the tokens of map-reduce-optimised in the same context.

    python benchmarks/drill.py oracle --kb FOLDER       # every method at two contexts, within the filing
    python benchmarks/drill.py blind --kb FOLDER        # summaries of several lengths, and names that say nothing
    python benchmarks/drill.py growth --kb FOLDER       # one filing, then 10, 100 and 1,000 documents

FOLDER holds the filings; it is made where there is none, and kept. Growing bases are made beside it.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path

import numpy as np

import clew
from clew.core.protocols import Encoder, LanguageModel
from clew.core.trail import TrailRecorder, explore_retriever
from clew.core.types import ParsedDocument, Question, Scope
from clew.evaluate.corpora import document_location
from clew.evaluate.datasets import load_dataset
from clew.knowledge_base import registry
from clew.parse.documents.builder import DocumentBuilder
from pages import DATA, Asked, financebench, page_texts
from scripted_selectors import Blind, Oracle

CONTEXTS = (4096, 16384)
#: What a chunk leaves of a context: 3,500 tokens of 4,096, as in the paper.
AROUND = 596
#: Passages that are looked at of what is found: all that a model chose, and ten of a ranking.
ALL, RANKED = 10_000, 10
SHARE = 0.26
WORDS = (0, 32, 64, 128)
SIZES = (1, 10, 100, 1000)
SETS = (("2wikimultihopqa", "train500.jsonl"), ("hotpotqa", "train100.jsonl"), ("musique", "train100.jsonl"))


@dataclass(frozen=True)
class Measured:
    """What a method did with a question: whether it reached the gold pages, and the gold document; what it took."""

    reached: bool
    document: bool
    tokens: int
    calls: int
    seconds: float


@dataclass(frozen=True)
class Bench:
    """The filings, the questions over them, and the encoder (None: words alone)."""

    base: clew.KnowledgeBase
    questions: Sequence[Asked]
    encoder: Encoder | None
    texts: dict[tuple[str, int], str]
    seed: int = 0

    def key(self, asked: Asked) -> str:
        """Return the key of the document that a question is about."""
        return next(document.key for document in self.base.documents() if document.name == asked.file)

    def oracle(self, asked: Asked) -> Oracle:
        """Return the selector that knows the gold pages of a question."""
        pages = sorted(page for _, page in asked.gold)
        texts = [self.texts[asked.file, page] for page in pages]
        return Oracle.of(self.base.store.snapshot(), self.encoder, self.key(asked), pages, texts)

    def measured(
        self, recipe: str, asked: Asked, model: LanguageModel | None, k: int, within: bool
    ) -> Measured:
        """Return what the retriever that ``recipe`` names does with a question."""
        result = registry.build_retriever(recipe, self.base.store, llm=model, encoder=self.encoder)
        key, record = self.key(asked), TrailRecorder()
        scope = Scope(documents=frozenset([key])) if within else Scope()
        started = time.perf_counter()
        hits = explore_retriever(result, Question(asked.text, scope), k, record)
        seconds = time.perf_counter() - started
        usage = record.usage()
        return Measured(
            any((hit.node.document_name, hit.node.page) in asked.gold for hit in hits),
            any(hit.node.document == key for hit in hits),
            usage.tokens_in + usage.tokens_out,
            usage.calls,
            seconds,
        )

    def all(
        self, recipe: str, model: Callable[[Asked], LanguageModel | None], k: int, within: bool = True
    ) -> list[Measured]:
        """Return what the retriever does with each question."""
        return [self.measured(recipe, asked, model(asked), k, within) for asked in self.questions]


def mean(values: Iterator[float]) -> float:
    return float(np.mean(list(values)))


def oracle(bench: Bench) -> Iterator[str]:
    """Yield the table of every method at two contexts, with the oracle."""
    yield "| method | context | reached | tokens | calls | at most 2 calls | of map-reduce-optimised | < 0.26 | s |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in ("dense", "search", "drill"):
        result = bench.all(name, lambda asked: None, RANKED)
        reached, seconds = mean(item.reached for item in result), mean(item.seconds for item in result)
        yield f"| {name}, first {RANKED}, no model | | {reached:.2f} | 0 | 0 | | | | {seconds:.2f} |"
    for context in CONTEXTS:
        size = context - AROUND
        recipes = {
            "map-reduce-optimised": f"map-reduce-optimised(context={context}, size={size})",
            "chunk": f"chunk(context={context}, size={size})",
            "paragraph": f"paragraph(context={context})",
            "map-reduce": f"map-reduce(context={context})",
            "drill-paper": f"drill-paper(context={context}, summariser=extractive, words=64)",
            "drill": f"drill(context={context})",
        }
        least: list[Measured] = []
        for name, recipe in recipes.items():
            result = bench.all(recipe, bench.oracle, ALL)
            least = least or result
            ratios = [item.tokens / other.tokens for item, other in zip(result, least, strict=True)]
            yield (
                f"| {name} | {context:,} | {mean(item.reached for item in result):.2f} | "
                f"{mean(item.tokens for item in result):,.0f} | {mean(item.calls for item in result):.1f} | "
                f"{mean(item.calls <= 2 for item in result):.2f} | "
                f"{sum(item.tokens for item in result) / sum(item.tokens for item in least):.3f} | "
                f"{mean(ratio <= SHARE for ratio in ratios):.2f} | {mean(item.seconds for item in result):.2f} |"
            )


def blind(bench: Bench) -> Iterator[str]:
    """Yield the table of the sections that the blind selector names, by what it is shown of them."""
    if bench.encoder is None:
        raise SystemExit("the blind selector needs an encoder")
    yield "| names | words of a summary | context | gold section named | tokens | calls |"
    yield "|---|---|---|---|---|---|"
    encoder = bench.encoder
    known: dict[str, np.ndarray] = {}
    for context, names, words in product(CONTEXTS, ("headings", "uuid"), WORDS):
        recipe = f"drill(context={context}, words={words}, names={names}, hints=0, paragraphs=encoder)"
        result = bench.all(recipe, lambda asked: Blind(encoder, asked.text, known), ALL)
        yield (
            f"| {names} | {words} | {context:,} | {mean(item.reached for item in result):.2f} | "
            f"{mean(item.tokens for item in result):,.0f} | {mean(item.calls for item in result):.1f} |"
        )


def blind_selector(encoder: Encoder, known: dict[str, np.ndarray], asked: Asked) -> LanguageModel:
    """Return the blind selector for a question."""
    return Blind(encoder, asked.text, known)


def growth(bench: Bench, data: Path) -> Iterator[str]:
    """Yield the table of what a question costs in bases of growing size, the filings among them."""
    yield "| documents | selector | tokens | calls | most calls | s | gold document | reached |"
    yield "|---|---|---|---|---|---|---|---|"
    known: dict[str, np.ndarray] = {}
    for size in SIZES:
        folder = bench.base.path.with_name(f"{bench.base.path.name}-{size}")
        with grow_base(bench.base.path, folder, size, data, bench.seed) as base:
            here = Bench(base, bench.questions, None, bench.texts)
            # The first question builds what the others share.
            here.measured("drill", bench.questions[0], None, RANKED, size == 1)
            selectors: dict[str, Callable[[Asked], LanguageModel | None]] = {"none": lambda asked: None}
            if bench.encoder is not None:
                selectors["blind"] = partial(blind_selector, bench.encoder, known)
            selectors["oracle"] = here.oracle
            for name, model in selectors.items():
                result = here.all("drill", model, RANKED if name == "none" else ALL, size == 1)
                yield (
                    f"| {size:,} | {name} | {mean(item.tokens for item in result):,.0f} | "
                    f"{mean(item.calls for item in result):.1f} | {max(item.calls for item in result)} | "
                    f"{mean(item.seconds for item in result):.2f} | {mean(item.document for item in result):.2f} | "
                    f"{mean(item.reached for item in result):.2f} |"
                )


def grow_base(filings: Path, folder: Path, size: int, data: Path, seed: int) -> clew.KnowledgeBase:
    """Return a base of the filings and as many seeded documents as make ``size``; a base of one is the filings'
    own, asked within a filing."""
    if not folder.exists():
        shutil.copytree(filings, folder)
        with clew.open(folder) as base:
            base.encoding.set(None)
            for document in islice(assemble_documents(data, seed), max(size - len(base.documents()), 0)):
                base.store.put_document(document, document_location(document))
            base.store.catch_up()
    return clew.open(folder)


def assemble_documents(data: Path, seed: int) -> Iterator[ParsedDocument]:
    """Yield documents of 16 paragraphs under four headings, drawn from those of the shared data sets."""
    files = (load_dataset(name, data / name / file) for name, file in SETS)
    paragraphs = [item for file in files for example in file.examples() for item in example.corpus]
    number = 0
    while True:
        rng = random.Random(f"{seed} {number}")
        drawn = rng.sample(paragraphs, 16)
        builder = DocumentBuilder()
        for place, paragraph in enumerate(drawn):
            if place % 4 == 0:
                builder.add_heading(1, paragraph.title)
            builder.add_paragraph(paragraph.text)
        title = f"Digest {number} on {drawn[0].title}"
        yield builder.finish(data=title.encode(), title=title, media_type="text/plain", parser="benchmark/1")
        number += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("shown", choices=("oracle", "blind", "growth"))
    parser.add_argument("--kb", type=Path, required=True, help="the filings; made where there is none")
    parser.add_argument("--data", type=Path, default=DATA.parent, help="the folder of all shared data")
    parser.add_argument("--encoder", default="clew:hops", help="or none")
    parser.add_argument("--limit", type=int, help="so many questions, drawn")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    pdfs = options.data / "financebench" / "pdfs"
    if not pdfs.is_dir():
        raise SystemExit(f"no data at {pdfs}; the filings are not part of this repository")
    questions = financebench(options.data / "financebench")
    if options.limit:
        questions = random.Random(options.seed).sample(questions, options.limit)
    with clew.open(options.kb, create=True) as base:
        base.encoding.set(None if options.encoder == "none" else options.encoder)
        base.add([pdfs])
        if options.encoder != "none":
            base.encoding.encode_missing()
        bench = Bench(base, questions, base.encoding.encoder(), page_texts(pdfs), options.seed)
        print(f"{len(questions)} questions, seed {options.seed}, encoder {options.encoder}\n")
        tables: dict[str, Callable[[Bench], Iterator[str]]] = {
            "oracle": oracle,
            "blind": blind,
            "growth": lambda bench: growth(bench, options.data),
        }
        for line in tables[options.shown](bench):
            print(line, flush=True)


if __name__ == "__main__":
    main()
