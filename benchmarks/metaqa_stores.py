"""MetaQA's chains from three stores: a graph in the base, a file-backed RDF store, a SPARQL server on loopback.

    python benchmarks/metaqa_stores.py                    # 100 chains of two hops and 100 of three, seed 0

Each question's type spells its path (``writer_to_movie_to_actor``), its start stands in [brackets]. The chains are
answered by the method ``chain`` from one graph at a time, without a model; and, to tell what linking costs, hop by
hop from rows alone (:class:`clew.core.protocols.PropertyGraph`, the rows "rows only"). The start is left out at every hop,
as in the data set and as the method does. Sets of names are compared with each other and with the data set's. Times
are those of a process that has opened the store and asked once; the server is ``oxigraph serve-read-only``, found
beside the Python that runs this or on the path.
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

import clew
from clew.core.protocols import Method, PropertyGraph
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope
from clew.evaluate.datasets.graphs import METAQA_RELATIONS
from clew.knowledge_base import registry
from clew.triples.language.chain import Chain as Written
from clew.triples.language.chain import Term, Triple

DATA = Path(__file__).parents[2] / "shared" / "data" / "metaqa"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
BASE = "http://example.org/"


@dataclass(frozen=True)
class Chain:
    """A start, and the relations to follow from it; True: from the tail to the head."""

    question: str
    start: str
    hops: tuple[tuple[str, bool], ...]
    gold: frozenset[str]


def chain_of(question: dict[str, Any], relations: dict[str, str]) -> Chain:
    """Return the chain that a question spells; ``relations`` are the names of its graph by METAQA_RELATIONS."""
    words = str(question["type"]).split("_to_")
    hops = []
    for before, after in pairwise(words):
        inverse = after == "movie"
        hops.append((relations[METAQA_RELATIONS[before if inverse else after]], inverse))
    (start,) = re.findall(r"\[(.+?)\]", str(question["question"]))
    return Chain(str(question["question"]), start, tuple(hops), frozenset(question["answers"]))


def write_chain(chain: Chain) -> str:
    """Return a chain as a person writes it."""
    triples, before = [], Term(chain.start)
    for number, (relation, inverse) in enumerate(chain.hops, 1):
        unknown = Term(f"#{number}")
        triples.append(Triple(unknown, relation, before) if inverse else Triple(before, relation, unknown))
        before = unknown
    return str(Written(tuple(triples), len(triples)))


def by_method(method: Method, graph: str) -> Callable[[Chain], frozenset[str]]:
    """Return what answers a chain by the method ``chain`` from one graph."""

    def answer(chain: Chain) -> frozenset[str]:
        asked = Question(chain.question, Scope(graphs=frozenset({graph})), write_chain(chain))
        return frozenset(method.answer(asked, TrailRecorder()).values)

    return answer


def by_rows(graph: PropertyGraph, chain: Chain) -> frozenset[str]:
    """Return the names at the end of a chain, hop by hop, without linking or evidence."""
    starts = graph.find_by_name(chain.start)
    exact = [n for n, item in enumerate(graph.entities(starts)) if item.name == chain.start]
    rows = starts = starts[exact]
    for relation, inverse in chain.hops:
        _, result = graph.neighbours(rows, relation, inverse)
        rows = np.setdiff1d(result, starts)
    return frozenset(entity.name for entity in graph.entities(rows))


def export_graph(triples: list[list[str]], path: Path) -> None:
    """Write the film graph as N-Triples: a node for each name, labelled with it, and a property for each relation."""

    def iri(kind: str, name: str) -> str:
        return f"<{BASE}{kind}/{quote(name, safe='')}>"

    names = sorted({end for head, _, tail in triples for end in (head, tail)})
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{iri('node', item)} {LABEL} {json.dumps(item)} .\n" for item in names)
        for relation in sorted({relation for _, relation, _ in triples}):
            file.write(f"{iri('relation', relation)} {LABEL} {json.dumps(relation)} .\n")
        file.writelines(
            f"{iri('node', head)} {iri('relation', relation)} {iri('node', tail)} .\n"
            for head, relation, tail in triples
        )


@contextmanager
def serve_store(folder: Path) -> Iterator[str]:
    """Serve a store on loopback; yield its URL."""
    program = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")
    if not program:
        sys.exit("the SPARQL server is not installed: pip install oxigraph")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [program, "serve-read-only", "--location", str(folder), "--bind", f"127.0.0.1:{port}"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/query"
    finally:
        child.terminate()
        child.wait()


def draw_questions(number: int, seed: int) -> list[dict[str, object]]:
    """Return that many questions of two hops and of three, those of two first."""
    chosen = []
    for name in ("dev_2hop", "dev_3hop"):
        lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        chosen += random.Random(seed).sample([json.loads(line) for line in lines], number)
    return chosen


def time_answers(
    answer: Callable[[Chain], frozenset[str]], chains: list[Chain]
) -> tuple[list[frozenset[str]], list[float]]:
    """Return the answers to chains, and the milliseconds of each."""
    result, took = [], []
    answer(chains[0])
    for chain in chains:
        started = time.perf_counter()
        result.append(answer(chain))
        took.append((time.perf_counter() - started) * 1000)
    return result, took


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--number", type=int, default=100, help="questions of each number of hops")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    if not (DATA / "graph.tsv").is_file():
        sys.exit(f"absent: {DATA}")
    triples = [line.split("\t") for line in (DATA / "graph.tsv").read_text(encoding="utf-8").splitlines()]
    questions = draw_questions(chosen.number, chosen.seed)
    relations = {item.replace(" ", "_"): item for item in {relation for _, relation, _ in triples}}
    chains = [chain_of(question, relations) for question in questions]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        export_graph(triples, folder / "films.nt")
        import pyoxigraph

        store = pyoxigraph.Store(str(folder / "store"))
        store.bulk_load(path=str(folder / "films.nt"), format=pyoxigraph.RdfFormat.N_TRIPLES)
        store.flush()
        del store
        with clew.open(folder / "kb", create=True) as base, serve_store(folder / "store") as url:
            base.graphs.add(DATA / "graph.tsv", name="embedded")
            base.graphs.mount("file", str(folder / "store"))
            base.graphs.mount("server", url)
            results = {}
            for name in ("embedded", "file", "server"):
                method = registry.build_method(
                    "chain(sources=kg)", base.store, encoder=base.encoding.encoder()
                )
                results[name] = time_answers(by_method(method, name), chains)
                results[f"{name}, rows only"] = time_answers(partial(by_rows, base.graphs.get(name)), chains)
            report(results, chains)


def report(results: dict[str, tuple[list[frozenset[str]], list[float]]], chains: list[Chain]) -> None:
    """Print how the answers agree, and what they took."""
    first = results["embedded"][0]
    rows = sum(len(item.gold) for item in chains)
    print(f"{len(chains)} chains, {rows:,} answers in all")
    print(
        "| store | hops | chains | equal to the gold sets | equal to the embedded | median ms | worst ms | total s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, (value, took) in results.items():
        for hops in sorted({len(item.hops) for item in chains}):
            some = [n for n, item in enumerate(chains) if len(item.hops) == hops]
            gold = sum(value[n] == chains[n].gold for n in some)
            same = sum(value[n] == first[n] for n in some)
            times = [took[n] for n in some]
            print(
                f"| {name} | {hops} | {len(some)} | {gold} | {same} | {statistics.median(times):.1f} "
                f"| {max(times):.0f} | {sum(times) / 1000:.2f} |"
            )
    for n, chain in enumerate(chains):
        if len({result[n] for result, _ in results.values()} | {chain.gold}) > 1:
            print(f"differs: {chain.question}")


if __name__ == "__main__":
    main()
