"""Single-round against multi-round retrieval (Su et al., NAACL 2024, Table 6), without a language model.

The 2-hop questions among the shared 100 of MuSiQue, or the 500 of 2WikiMultihopQA, over the pool of all paragraphs of
the shared HotpotQA, MuSiQue and 2WikiMultihopQA files: 20 passages for each question, found for itself or for the
hops of its gold decomposition in turn, with ``#n`` filled by gold and by clew's trained reader.

    python benchmarks/rounds.py --encoder none --encoder clew:hops
    python benchmarks/rounds.py --encoder onnx:folds/without-musique/onnx    # one that never saw the questions
    python benchmarks/rounds.py --data 2wikimultihopqa --encoder onnx:folds/without-2wikimultihopqa/onnx

The encoder that comes with clew was trained on these questions; one that was trained without their data set
(benchmarks/folds.py) is what a row of its own should be compared with.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.evaluate.statistics import bootstrap_interval, paired_difference
from clew.knowledge_base import registry
from clew.models.encoders import RememberingEncoder
from clew.papers.semicot_rounds import (
    SINGLE_ROUND,
    correct_fill_share,
    rounds_record,
    rounds_results,
    run_rounds,
)
from clew.store.store import Store

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
POOL = {"hotpotqa": "train100", "musique": "train100", "2wikimultihopqa": "train500"}
METRICS = ("recall@5", "recall@20", "all-gold@20")
LEXICAL = ("search", "bm25", "kgp")
DENSE = ("search", "dense", "hybrid", "kgp")


def rows(
    examples: Sequence[Example], retriever: str, base: Store, encoder: RememberingEncoder | None
) -> Iterator[str]:
    """Yield a row for each way of asking: means with intervals, and what it has more than a single round."""
    searching = registry.build_retriever(retriever, base, encoder=encoder)
    readers = {"span": registry.build_reader("span", base)}
    results: dict[str, list[Result]] = {}
    right: dict[str, list[float]] = {}
    started = time.perf_counter()
    for example in examples:
        record = rounds_record(example, run_rounds(example, searching, readers))
        for way, result in rounds_results(example, record).items():
            results.setdefault(way, []).append(result)
            share = correct_fill_share(example, record, way)
            right.setdefault(way, []).extend([] if share is None else [share])
    ms = 1000 * (time.perf_counter() - started) / len(examples)
    for way, some in results.items():
        cells = []
        for name in METRICS:
            values = [parse_metric(name).measure(item) or 0.0 for item in some]
            single = [parse_metric(name).measure(item) or 0.0 for item in results[SINGLE_ROUND]]
            first, more = bootstrap_interval(values), paired_difference(values, single)
            text = f"{first.mean:.3f} [{first.low:.3f}, {first.high:.3f}]"
            cells.append(text if way == SINGLE_ROUND else f"{text} ({more.mean:+.3f}, p {more.p:.4f})")
        filled = f"{np.mean(right[way]):.2f}" if right[way] else ""
        yield f"{retriever} | {way} | {' | '.join(cells)} | {filled} | {ms:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--encoder", action="append", help="such as onnx:FOLDER, or none (default: none)")
    parser.add_argument(
        "--retriever", action="append", help="default: search, bm25, kgp; also dense and hybrid"
    )
    parser.add_argument("--data", action="append", choices=("musique", "2wikimultihopqa"))
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    every = {
        name: list(load_dataset(name, DATA / name / f"{file}.jsonl").examples())
        for name, file in POOL.items()
    }
    asked = {
        name: [item for item in every[name] if name != "musique" or item.question_type == "2hop"]
        for name in options.data or ["musique"]
    }
    paragraphs = pool_paragraphs(item for some in every.values() for item in some)
    with tempfile.TemporaryDirectory() as folder, Store.open(folder, create=True) as base:
        fill_store(base, paragraphs, EvaluationSettings())
        counts = ", ".join(f"{len(some)} of {name}" for name, some in asked.items())
        print(f"questions: {counts}; pool: {len(paragraphs):,} paragraphs; intervals: bootstrap, seed 0\n")
        print(f"| data | encoder | search | way | {' | '.join(METRICS)} | #n right | ms a question |")
        print("|" + "---|" * (len(METRICS) + 6))
        for name in options.encoder or ["none"]:
            encoder = None if name == "none" else RememberingEncoder(registry.load_encoder(name))
            if encoder is not None:
                base.encode(encoder)
            shown = "/".join(Path(name).parts[-2:]) if name.startswith("onnx:") else name
            for retriever in options.retriever or (DENSE if encoder else LEXICAL):
                for data, examples in asked.items():
                    for row in rows(examples, retriever, base, encoder):
                        print(f"| {data} | {shown} | {row}", flush=True)


if __name__ == "__main__":
    main()
