"""How long do building, adding, removing and asking take? Sizes from 10,000 to 1,000,000 passages, no language model.

The last lines printed are a table: for each size, with words alone and with vectors, what building the base took, p50
and p95 of a search and of a whole KGP walk, and adding and removing a document of a hundred passages.

The text is synthetic: pseudo-words with Zipf frequencies, documents with words of their own, some names.
It goes through the document builder and the store like any other. Vectors are seeded and clustered (a passage
lies near its document's centre); the encoder of the *questions* is a real one where --encoder names one, and
its time counts: its vector is turned by a fixed rotation towards a cluster, which changes no cost.

Bases are kept in --folder and used again, so that a long run can be stopped and continued; the time that each part of
building took is added up beside them. --build stops where a base has its text and, with --vectors, its vectors.

    python benchmarks/query.py --passages 10000 --passages 100000 --folder /tmp/bases --encoder clew:hops
    timeout 1100 python benchmarks/query.py --passages 1000000 --folder /tmp/bases --build    # again until it ends
    python benchmarks/query.py --passages 100000 --encoder clew:hops --answers 60        # whole answers too
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from clew.core.errors import NotFound
from clew.core.protocols import Encoder
from clew.core.text import STOPWORDS
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Hit, Location, ParsedDocument, Question
from clew.graph.keywords import KeywordGraph
from clew.graph.passages import compute_statistics
from clew.knowledge_base import registry
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store

PER_DOCUMENT, WORDS = 100, 45


@dataclass(frozen=True)
class Language:
    """Pseudo-words in the order of their frequency, of which rank ``r`` has a share of about 1 / (r + 3)."""

    words: np.ndarray
    cumulative: np.ndarray

    @classmethod
    def of(cls, size: int, seed: int) -> Language:
        """Return ``size`` distinct words, English function words first; frequent ones are short."""
        rng = np.random.default_rng(seed)
        consonants, vowels = np.array(list("bdfgklmnprstvz")), np.array(list("aeiou"))
        found: dict[str, None] = dict.fromkeys(sorted(STOPWORDS))
        while len(found) < size:
            syllables = 1 + int(np.log2(len(found) + 8) / 4)
            pairs = zip(rng.choice(consonants, syllables), rng.choice(vowels, syllables), strict=True)
            found["".join(a + b for a, b in pairs) + str(rng.choice(consonants))] = None
        share = 1 / (np.arange(size) + 3.0)
        return cls(np.array(list(found)), np.cumsum(share / share.sum()))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Return the ranks of ``count`` words."""
        return np.searchsorted(self.cumulative, rng.random(count))


def documents(
    language: Language, passages: int, seed: int, first: int = 0
) -> Iterator[tuple[int, ParsedDocument]]:
    """Yield documents of a hundred passages, fewer in the last, with their numbers, from ``first`` on."""
    for number in range(first, -(-passages // PER_DOCUMENT)):
        yield (
            number,
            make_document(language, number, min(PER_DOCUMENT, passages - number * PER_DOCUMENT), seed),
        )


def make_document(language: Language, number: int, count: int, seed: int) -> ParsedDocument:
    """Return a document of ``count`` passages; a quarter of the words is the document's own."""
    rng = np.random.default_rng((seed, number))
    own = language.draw(rng, 60)
    builder = DocumentBuilder()
    for passage in range(count):
        if passage % 20 == 0:
            builder.add_heading(1, " ".join(language.words[rng.choice(own, 3)]).capitalize())
        builder.add_paragraph(_passage(language, rng, own))
    title = f"Report {number} on {language.words[own[0]]}"
    data = f"{seed} {number} {count}".encode()
    return builder.finish(data=data, title=title, media_type="text/plain", parser="benchmark/1")


def _passage(language: Language, rng: np.random.Generator, own: np.ndarray) -> str:
    length = max(5, int(rng.normal(WORDS, 15)))
    ranks = language.draw(rng, length)
    special = rng.random(length) < 0.25
    ranks[special] = rng.choice(own, int(special.sum()))
    words = language.words[ranks].tolist()
    # A name, as a capital makes one, in every second passage.
    if rng.random() < 0.5:
        words[1] = words[1].capitalize()
    return " ".join(words).capitalize() + "."


def questions(language: Language, texts: Sequence[str], count: int, seed: int) -> list[str]:
    """Return questions of three to six of a passage's words, with the function words that people use."""
    rng = np.random.default_rng((seed, 1))
    found = []
    for text in rng.choice(np.array(texts, dtype=object), count):
        held = [word for word in text.rstrip(".").lower().split() if word not in STOPWORDS]
        words = rng.choice(
            np.array(held, dtype=object), min(int(rng.integers(3, 7)), len(held)), replace=False
        )
        found.append(f"What was the {words[0]} of {' and the '.join(words[1:])}?")
    return found


class Clustered:
    """Passage vectors near a centre for each beginning; questions through a real encoder, if there is one."""

    def __init__(self, real: Encoder | None, dimension: int = 384) -> None:
        self.real, self.dimension = real, real.dimension if real else dimension
        self.name = f"benchmark-clustered-{self.dimension}"
        self.objective = real.objective if real else ""

    def encode(self, texts: Sequence[str], query: bool = False) -> np.ndarray:
        """Return unit vectors; for questions the real encoder's, moved to where the passages are."""
        made = np.stack([self._vector(text) for text in texts])
        if query and self.real is not None:
            made = made + 0.1 * self.real.encode(texts, query=True)
        unit: np.ndarray = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _vector(self, text: str) -> np.ndarray:
        def normal(of: str) -> np.ndarray:
            seed = int.from_bytes(hashlib.blake2b(of.encode(), digest_size=8).digest(), "little")
            return np.random.default_rng(seed).standard_normal(self.dimension)

        return normal(text[:2]) + 0.7 * normal(text)


@contextmanager
def record_time(folder: Path, passages: int, part: str) -> Iterator[Callable[[], None]]:
    """Add what a part of building takes to what its earlier runs took; the yielded function does so in between."""
    path = folder / f"passages-{passages}.json"
    started, cpu = time.perf_counter(), time.process_time()

    def save() -> None:
        nonlocal started, cpu
        times = json.loads(path.read_text()) if path.exists() else {}
        wall_before, cpu_before = times.get(part, (0.0, 0.0))
        now, cpu_now = time.perf_counter(), time.process_time()
        times[part] = wall_before + now - started, cpu_before + cpu_now - cpu
        path.write_text(json.dumps(times))
        started, cpu = now, cpu_now

    try:
        yield save
    finally:
        save()


def build(folder: Path, language: Language, passages: int, seed: int) -> Store:
    """Return the base of that size; made, or continued, where it is not complete."""
    base = Store.open(folder / f"passages-{passages}", create=True)
    first = len(base.documents())
    if first * PER_DOCUMENT >= passages:
        return base
    with record_time(folder, passages, "text") as save:
        # They are added in order: what is there are the first ones.
        for number, document in documents(language, passages, seed, first):
            path = f"/benchmark/{number}.txt"
            base.put_document(document, Location(path, "/benchmark", len(document.text), number, number))
            if number % 200 == 199:
                base.catch_up()
                save()
        base.catch_up()
    return base


def add_vectors(base: Store, folder: Path, passages: int, encoder: Clustered) -> None:
    """Make the vectors that are missing."""
    with record_time(folder, passages, "vectors"):
        base.encode(encoder)


def search(retriever: Any, k: int, text: str) -> Sequence[Hit]:
    """Return the first ``k`` hits of a retriever, or of a method that retrieves."""
    hits: Sequence[Hit] = retriever.retrieve(Question(text), k)
    return hits


def answer(method: Any, text: str) -> Answer:
    """Return the answer of a method, read by the reader of its recipe."""
    read: Answer = method.answer(Question(text), TrailRecorder())
    return read


def measure_questions(run: Callable[[str], object], asked: Sequence[str], name: str) -> str:
    """Print the first call's time; return p50 and p95 of the others, in ms, and p50 and p95 of their CPU time."""
    seconds = []
    for text in asked:
        started, cpu = time.perf_counter(), time.process_time()
        run(text)
        seconds.append((time.perf_counter() - started, time.process_time() - cpu))
    first, rest = seconds[0], np.array(seconds[1:]) * 1000
    (middle, cpu), (late, late_cpu) = np.percentile(rest, (50, 95), axis=0)
    print(
        f"  {name}: first {first[0] * 1000:.0f}, p50 {middle:.1f}, p95 {late:.1f} ms; of CPU {first[1] * 1000:.0f}, "
        f"{cpu:.1f}, {late_cpu:.1f}",
        flush=True,
    )
    return f"{middle:.0f} / {late:.0f} ({cpu:.0f} / {late_cpu:.0f})"


def measure(base: Store, language: Language, options: argparse.Namespace, passages: int) -> list[str]:
    """Measure a base; return the lines of the table about it."""
    snapshot = base.snapshot()
    sample = [
        node.text for document in snapshot.documents()[:50] for node in base.document_nodes(document.key)
    ]
    asked = questions(
        language, [text for text in sample if len(text.split()) > 20], options.queries, options.seed
    )
    if options.keyword_graph:
        started = time.perf_counter()
        figures = compute_statistics(snapshot, KeywordGraph(snapshot))
        print(f"  keyword graph, made and sampled in {time.perf_counter() - started:.1f} s: {figures}")
    vocabulary, _ = snapshot.postings("text").vocabulary()
    print(f"  {passages} passages, {len(vocabulary)} terms, {base.info().bytes / 1e6:.0f} MB", flush=True)
    real = registry.load_encoder(options.encoder) if options.encoder else None
    clustered = Clustered(real) if options.vectors or real else None
    lines = []
    for encoder in (None, clustered) if clustered else (None,):
        if options.only == ("vectors" if encoder is None else "words"):
            continue
        if encoder is not None:
            add_vectors(base, options.folder, passages, encoder)
        label = "words" if encoder is None else f"vectors, {options.encoder or 'no question encoder'}"
        cells = []
        for name in options.retriever or ["search"]:
            retriever = registry.build_retriever(name, base, encoder=encoder)
            cells.append(measure_questions(partial(search, retriever, 10), asked, f"search {name}, {label}"))
        for recipe in options.recipe or ["kgp"]:
            method = registry.build_method(recipe, base, encoder=encoder)
            run = partial(search, method, 30)
            cells.append(measure_questions(run, asked[: options.walks], f"walk {recipe}, {label}"))
            if options.answers:
                whole = partial(answer, method)
                measured = measure_questions(whole, asked[: options.answers], f"answer {recipe}, {label}")
                print(f"  answer {recipe}, {label}: {measured} ms", flush=True)
        cells += measure_changes(base, language, passages, options.seed, encoder)
        times = json.loads((options.folder / f"passages-{passages}.json").read_text())
        wall, cpu = times["text" if encoder is None else "vectors"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        lines.append(
            f"| {passages:,} | {label} | {wall:,.0f} ({cpu:,.0f}) | {' | '.join(cells)} | "
            f"{base.info().bytes / 1e6:,.0f} | {peak:,.0f} |"
        )
    return lines


def measure_changes(
    base: Store, language: Language, passages: int, seed: int, encoder: Clustered | None
) -> list[str]:
    """Return what it takes to add one more document and to remove it, each with the next walk, which makes again what
    is kept for a generation; in seconds."""
    document = make_document(language, passages, PER_DOCUMENT, seed)
    question = "What was " + " ".join(document.text.split()[:4]) + "?"

    def walk() -> None:
        search(registry.build_method("kgp", base, encoder=encoder), 30, question)

    def add() -> None:
        base.put_document(document, Location("/benchmark/more.txt", "/benchmark", len(document.text), 0, 0))
        base.catch_up()
        if encoder is not None:
            base.encode(encoder)

    def remove() -> None:
        base.remove(["/benchmark/more.txt"])
        base.catch_up()

    # A run that was killed may have left it there.
    with suppress(NotFound):
        remove()
    walk()
    cells = []
    for name, change in (("add", add), ("remove", remove)):
        wall, cpu = time.perf_counter(), time.process_time()
        change()
        changed, changed_cpu = time.perf_counter() - wall, time.process_time() - cpu
        walk()
        total, total_cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(
            f"  {name} one document of {PER_DOCUMENT} passages: {changed:.2f} s ({changed_cpu:.2f} s of CPU); "
            f"with the first walk after it {total:.2f} s ({total_cpu:.2f} s of CPU)",
            flush=True,
        )
        cells.append(f"{changed:.2f}, {total:.2f} ({changed_cpu:.2f}, {total_cpu:.2f})")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, action="append", help="sizes (default: 10000 and 100000)")
    parser.add_argument("--folder", type=Path, default=Path("query-bases"), help="where bases are kept")
    parser.add_argument("--encoder", help="encoder of the questions, such as onnx:FOLDER")
    parser.add_argument("--vectors", action="store_true", help="vectors also without --encoder")
    parser.add_argument("--retriever", action="append", help="retrievers (default: search)")
    parser.add_argument("--recipe", action="append", help="methods to walk with (default: kgp)")
    parser.add_argument("--only", choices=("words", "vectors"), help="default: both")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--walks", type=int, default=60, help="questions for the walks")
    parser.add_argument("--answers", type=int, default=0, help="questions for whole answers of these methods")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keyword-graph", action="store_true", help="make and count the keyword graph too")
    parser.add_argument("--build", action="store_true", help="only build, or go on building")
    options = parser.parse_args()
    # What timeout(1) ends adds up its time too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(124))
    lines = []
    for passages in options.passages or [10_000, 100_000]:
        # Heaps' law with the usual exponent: 45 words a passage, about 70,000 words at 100,000 passages.
        language = Language.of(int(14 * (passages * WORDS) ** 0.55), options.seed)
        print(f"{passages} passages", flush=True)
        options.folder.mkdir(parents=True, exist_ok=True)
        with (
            build(options.folder, language, passages, options.seed) as base,
            threadpool_limits(1, user_api="blas"),  # as KnowledgeBase.ask does
        ):
            if not options.build:
                lines += measure(base, language, options, passages)
            elif options.vectors or options.encoder:
                real = registry.load_encoder(options.encoder) if options.encoder else None
                add_vectors(base, options.folder, passages, Clustered(real))
    if lines:
        asked = [*(options.retriever or ["search"]), *(options.recipe or ["kgp"])]
        print(
            f"\nBuild: s. {', '.join(asked)}: p50 / p95 in ms. Add and remove a document of {PER_DOCUMENT} passages: "
            f"s, s with the first walk after it. In brackets the same of CPU time.\n"
        )
        print(
            f"| passages | with | build | {' | '.join(asked)} | add one | remove one | MB on disk | MB of memory |"
        )
        print("|" + "---|" * (7 + len(asked)))
        print("\n".join(lines))


if __name__ == "__main__":
    main()
