"""The keyword graph: ours against a plain dense construction, on real text.

The dense twin is what the algorithm says when written down with arrays: a bag-of-keywords vector for each
passage, and all pairs compared in one array of passages x passages x keywords. It runs in a child process
whose address space is capped. Ours runs in a child of its own, so that both peaks are measured alike. Where
both finish, the edges must be the same.

    python benchmarks/graph_build.py                  # 300, 700, 1,500, 3,000 passages, then 100,000 of ours
    python benchmarks/graph_build.py --sizes 300 --large 0

Text: the sentences of the paragraphs of 2WikiMultihopQA, HotpotQA and MuSiQue in ``../shared/data``, each
paragraph a document with its title, in an order drawn with ``--seed``. Where they are not enough (or absent),
sentences drawn from a Zipf distribution over an invented vocabulary follow; the table says how many.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from clew.core.protocols import Graph, Snapshot

DATA = Path(__file__).parents[2] / "shared" / "data"
FILES = ("2wikimultihopqa/train500.jsonl", "hotpotqa/train100.jsonl", "musique/train100.jsonl")
GIB = 1 << 30

Text = tuple[str, list[str]]  # a document: its title and sentences


def real_documents(seed: int) -> list[Text]:
    """Return each different paragraph of the shared question sets once, as title and sentences."""
    from clew.core.text import sentence_spans

    results: dict[str, Text] = {}
    for file in FILES:
        if not (DATA / file).is_file():
            print(f"absent, left out: {DATA / file}")
            continue
        for line in (DATA / file).read_text(encoding="utf-8").splitlines():
            question = json.loads(line)
            pairs = question.get("context") or [
                (
                    paragraph["title"],
                    [
                        paragraph["paragraph_text"][a:b]
                        for a, b in sentence_spans(paragraph["paragraph_text"])
                    ],
                )
                for paragraph in question["paragraphs"]
            ]
            for title, text in pairs:
                results.setdefault(
                    f"{title}\n{text}", (title, [item.strip() for item in text if item.strip()])
                )
    documents = [results[key] for key in sorted(results)]
    random.Random(seed).shuffle(documents)
    return documents


def invented_documents(seed: int, vocabulary: int = 50_000) -> Iterator[Text]:
    """Yield documents of 2 to 60 sentences of 25 words on average, drawn from a Zipf distribution."""
    draw = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, vocabulary + 1)
    weights /= weights.sum()
    number = 0
    while True:
        number += 1
        lengths = draw.poisson(22, draw.integers(2, 60)) + 3
        words = draw.choice(vocabulary, int(lengths.sum()), p=weights)
        pieces = np.split(words, np.cumsum(lengths)[:-1])
        yield f"Volume {number}", [" ".join(f"w{word:x}q" for word in piece) + "." for piece in pieces]


def collection(size: int, seed: int) -> tuple[list[Text], int]:
    """Return documents of ``size`` sentences together, and how many of the sentences are invented."""
    chosen: list[Text] = []
    left, invented = size, 0
    real = ((document, False) for document in real_documents(seed))
    for (title, text), made_up in itertools.chain(real, ((item, True) for item in invented_documents(seed))):
        chosen.append((title, text[:left]))
        invented += len(text[:left]) if made_up else 0
        left -= len(text[:left])
        if not left:
            break
    return chosen, invented


def dense(documents: Sequence[Text], n: int) -> dict[str, Any]:
    """Return the edges between passages by comparing every pair over every keyword in one array."""
    from clew.core.mentions import linking_names
    from clew.core.text import STOPWORDS, hash_term, index_terms, title_names

    passages = [(number, text) for number, (_, texts) in enumerate(documents) for text in texts]
    started = time.perf_counter()
    bags = [Counter(keyword_terms(index_terms(text))) for _, text in passages]
    pool: set[str] = set()
    for number in range(len(documents)):
        own = [bag for (document, _), bag in zip(passages, bags, strict=True) if document == number]
        frequency = sum(own, Counter())
        holding = Counter(term for bag in own for term in bag)
        weight = {
            term: round(frequency[term] * (math.log((1 + len(own)) / (1 + holding[term])) + 1), 9)
            for term in frequency
        }
        pool |= set(sorted(weight, key=lambda term: (-weight[term], hash_term(term)))[:n])
    titles = {name for title, _ in documents for name in title_names(title)} - STOPWORDS
    vocabulary = [*sorted(pool), *(f"title {name}" for name in sorted(titles))]
    column = {word: number for number, word in enumerate(vocabulary)}
    features = np.zeros((len(passages), len(vocabulary)), dtype=np.bool_)
    for row, ((_, text), bag) in enumerate(zip(passages, bags, strict=True)):
        words = [*bag, *(f"title {name}" for name, *_ in linking_names(text))]
        features[row, [column[word] for word in words if word in column]] = True
    shared = features[:, None, :] & features[None, :, :]  # passages x passages x keywords
    adjacent = np.asarray(shared.any(axis=2))
    np.fill_diagonal(adjacent, False)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "keywords": len(vocabulary), "edges": fingerprint(adjacent)}


def keyword_terms(found: list[str]) -> list[str]:
    """Return terms without those that are never keywords."""
    from clew.graph.keywords import function_words

    never = function_words()
    return [term for term in found if term not in never]


def fingerprint(adjacent: np.ndarray) -> list[int]:
    """Return the number of undirected edges and a hash of them."""
    import zlib

    upper = np.triu(adjacent, 1)
    return [int(upper.sum()), zlib.crc32(np.packbits(upper).tobytes())]


def ours(documents: Sequence[Text], n: int, folder: Path, whole: bool) -> dict[str, Any]:
    """Return what our constructor takes and, where ``whole``, the edges that all neighbourhoods give."""
    from clew.core.types import Location
    from clew.graph.keywords import KeywordGraph
    from clew.graph.passages import compute_statistics, passage_rows
    from clew.parse.documents.builder import DocumentBuilder
    from clew.store.store import Store

    with Store.open(folder, create=True, passages="sentence") as base:
        for number, (title, texts) in enumerate(documents):
            builder = DocumentBuilder()
            for text in texts:
                builder.add_paragraph(text)
            data = f"{number}\n{title}\n{texts}".encode()
            parsed = builder.finish(data=data, title=title, media_type="text/plain", parser="bench/1")
            base.put_document(parsed, Location(f"/{number:07}", "/", len(data), number, number))
        base.catch_up()
    with Store.open(folder) as base:
        snapshot = base.snapshot()
        before = peak()
        started = time.perf_counter()
        graph = KeywordGraph(snapshot, n)
        seconds = time.perf_counter() - started
        rows = passage_rows(snapshot)
        draw = np.random.default_rng(0).choice(rows, min(1_000, len(rows)), replace=False)
        waits = []
        for row in draw.tolist():
            asked = time.perf_counter()
            graph.neighbours(row)
            waits.append(time.perf_counter() - asked)
        figures = compute_statistics(snapshot, graph)
        results: dict[str, Any] = {
            "seconds": seconds,
            "before": before,
            "keywords": len(graph.keywords()),
            "p50": float(np.percentile(waits, 50)),
            "p95": float(np.percentile(waits, 95)),
            "density": figures.density,
            "degree": figures.mean_degree,
        }
        if whole:
            results["edges"] = fingerprint(adjacency(snapshot, graph, rows))
        return results


def adjacency(snapshot: Snapshot, graph: Graph, rows: np.ndarray) -> np.ndarray:
    """Return all edges as a matrix, passages in the order in which the documents were given."""
    order = {document.key: document.paths[0] for document in snapshot.documents()}
    nodes = snapshot.nodes(rows)
    given = sorted(range(len(rows)), key=lambda at: (order[nodes[at].document], nodes[at].position))
    place = np.full(snapshot.size, -1)
    place[rows[given]] = np.arange(len(rows))
    adjacent = np.zeros((len(rows), len(rows)), dtype=np.bool_)
    for row in rows.tolist():
        adjacent[place[row], place[graph.neighbours(row)]] = True
    return adjacent


def peak() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def child(arguments: argparse.Namespace) -> None:
    """Run one side in this process and print its figures as JSON."""
    documents = [(title, texts) for title, texts in json.loads(Path(arguments.documents).read_text())]
    if arguments.child == "dense":
        resource.setrlimit(resource.RLIMIT_AS, (int(arguments.cap * GIB),) * 2)
        try:
            figures = dense(documents, arguments.n)
        except MemoryError:
            figures = {"out of memory": True}
    else:
        with tempfile.TemporaryDirectory() as folder:
            figures = ours(documents, arguments.n, Path(folder) / "base", arguments.child == "whole")
    print(json.dumps(figures | {"peak": peak()}))


def measure(side: str, documents: list[Text], arguments: argparse.Namespace) -> dict[str, Any]:
    """Run one side in a child process and return its figures."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(documents, file)
        file.flush()
        command = [
            sys.executable,
            __file__,
            "--child",
            side,
            "--documents",
            file.name,
            "--n",
            str(arguments.n),
        ]
        ran = subprocess.run(
            [*command, "--cap", str(arguments.cap)], capture_output=True, text=True, check=False
        )
    if ran.returncode:
        if side != "dense":
            sys.exit(ran.stderr)
        # The cap killed the child before Python could report it.
        return {"out of memory": True, "peak": 0}
    figures: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[300, 700, 1_500, 3_000])
    parser.add_argument("--large", type=int, default=100_000, help="passages for ours alone; 0 for none")
    parser.add_argument("--n", type=int, default=10, help="keywords of a document")
    parser.add_argument("--cap", type=float, default=8.0, help="GiB of address space for the dense twin")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", choices=["dense", "ours", "whole"], help=argparse.SUPPRESS)
    parser.add_argument("--documents", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    print(
        f"{arguments.n} keywords a document, seed {arguments.seed}, dense twin capped at {arguments.cap} GiB"
    )
    print("passages  invented  keywords     edges  dense s  dense MiB   ours s  ours MiB (base read)  ratio")
    for size in arguments.sizes:
        documents, invented = collection(size, arguments.seed)
        twin, own = measure("dense", documents, arguments), measure("whole", documents, arguments)
        if "edges" in twin and twin["edges"] != own["edges"]:
            sys.exit(f"different edges at {size} passages: {twin['edges']} and {own['edges']}")
        print(line(size, invented, twin, own), flush=True)
    if arguments.sizes:
        print("the edges were the same wherever both finished")
    if arguments.large:
        documents, invented = collection(arguments.large, arguments.seed)
        own = measure("ours", documents, arguments)
        print(line(arguments.large, invented, None, own))
        print(
            f"at {arguments.large:,}: density {own['density']:.3f}, mean degree {own['degree']:,.0f}, "
            f"one neighbourhood p50 {own['p50'] * 1e3:.2f} ms, p95 {own['p95'] * 1e3:.2f} ms"
        )


def line(size: int, invented: int, twin: dict[str, Any] | None, own: dict[str, Any]) -> str:
    """Return a row of the table."""
    if twin is not None and "edges" in twin:
        seconds, memory = f"{twin['seconds']:8.2f}", f"{twin['peak'] / 2**20:10,.0f}"
        ratio = f"{twin['seconds'] / own['seconds']:6,.0f}x"
    else:
        seconds, memory, ratio = "       -" if twin is None else "  memory", "         -", "      -"
    edges = f"{own['edges'][0]:9,}" if "edges" in own else "        -"
    return (
        f"{size:8,}  {invented:8,}  {own['keywords']:8,} {edges} {seconds} {memory} {own['seconds']:8.3f} "
        f"{own['peak'] / 2**20:9,.0f} ({own['before'] / 2**20:9,.0f}) {ratio}"
    )


if __name__ == "__main__":
    main()
