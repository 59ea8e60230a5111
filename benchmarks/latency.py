"""How long does a question take on real text? p50 and p95 of a search, of a walk, and of whole answers, without a
language model.

The questions of a data set are asked of a base, one after another; benchmarks/query.py has larger, synthetic bases,
whose pseudo-words cost an encoder more tokens than English does.

    python benchmarks/latency.py --kb FOLDER --encoder clew:hops --data hotpotqa=dev.json --limit 100
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

import numpy as np

from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.evaluate.datasets import parse_dataset
from clew.knowledge_base import registry
from clew.store.store import Store

K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--encoder", required=True, help="such as clew:hops; its missing vectors are made")
    parser.add_argument("--data", required=True, metavar="NAME=PATH")
    parser.add_argument("--limit", type=int, default=100)
    options = parser.parse_args()
    questions = [
        Question(example.question)
        for example in islice(parse_dataset(options.data).examples(), options.limit)
    ]
    encoder = registry.load_encoder(options.encoder)
    with Store.open(options.kb) as base:
        base.encode(encoder)
        print(f"{len(questions)} questions, {base.info().nodes.get('passage', 0):,} passages\n")
        print("| search | encoder | p50 ms | p95 ms |\n|---|---|---|---|")
        for name in ("search", "kgp"):
            for used in (None, encoder):
                retriever = registry.build_retriever(name, base, encoder=used)
                retriever.retrieve(Question("What is made once for a generation?"), K)
                times = []
                for question in questions:
                    started = time.perf_counter()
                    retriever.retrieve(question, K)
                    times.append(1000 * (time.perf_counter() - started))
                middle, late = np.percentile(times, [50, 95])
                print(f"| {name} | {used.name if used else 'none'} | {middle:.1f} | {late:.1f} |")
        for reader in ("extractive", "span"):
            method = registry.build_method(f"kgp(reader={reader})", base, encoder=encoder)
            method.answer(Question("What is made once for a generation?"), TrailRecorder())
            times = []
            for question in questions:
                started = time.perf_counter()
                method.answer(question, TrailRecorder())
                times.append(1000 * (time.perf_counter() - started))
            middle, late = np.percentile(times, [50, 95])
            print(f"| answer of kgp(reader={reader}) | {encoder.name} | {middle:.1f} | {late:.1f} |")


if __name__ == "__main__":
    main()
