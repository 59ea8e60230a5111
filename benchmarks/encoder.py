"""Two exports of one encoder against each other: size, time to load, passages a second, what they find.

    python benchmarks/encoder.py clew:hops onnx:build/hops-fp32

Speed is measured in turns of 50 texts, so that both meet the same machine, and reported with its ratio; loading in
processes of their own, the fastest of five. Recall is that of one-hop search and of the default walk over the pooled
paragraphs of HotpotQA and MuSiQue (training questions; what the shipped encoder was trained on, so that only the
difference says something).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from clew.core.types import Question
from clew.evaluate.corpora import GoldEvidence, pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.evaluate.statistics import paired_difference
from clew.knowledge_base import registry
from clew.models.encoders import MODEL_FILE, OnnxEncoder
from clew.store.store import Store

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
SETS = {"hotpotqa": "train100", "musique": "train100"}
TURN, TURNS, LOADS = 50, 12, 5
LOAD = """
import sys, time
started = time.perf_counter()
from clew.models import encoder
encoder(sys.argv[1]).encode(["a first text"])
print(time.perf_counter() - started)
"""


def load_seconds(name: str) -> float:
    """Return the time from nothing to the first vector in a new process, the fastest of some."""
    runs = [subprocess.run([sys.executable, "-c", LOAD, name], capture_output=True, text=True, check=True)
            for _ in range(LOADS)]  # fmt: skip
    return min(float(run.stdout) for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("encoders", nargs=2, help="such as clew:hops")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    encoders = [registry.load_encoder(name) for name in options.encoders]
    examples = {n: list(load_dataset(n, DATA / n / f"{file}.jsonl").examples()) for n, file in SETS.items()}
    texts = [paragraph.text for paragraph in pool_paragraphs(examples["hotpotqa"])[: TURN * TURNS]]
    seconds = [0.0, 0.0]
    for encoder in encoders:
        encoder.encode(texts[:4])
    for start in range(0, len(texts), TURN):
        for number, encoder in enumerate(encoders):
            started = time.perf_counter()
            encoder.encode(texts[start : start + TURN])
            seconds[number] += time.perf_counter() - started
    results: list[dict[str, list[float]]] = []
    for encoder in encoders:
        recalls: dict[str, list[float]] = {"dense": [], "kgp": []}
        for some in examples.values():
            with tempfile.TemporaryDirectory() as folder, Store.open(folder, create=True) as base:
                fill_store(base, pool_paragraphs(some), EvaluationSettings(encoder=encoder))
                for recipe, values in recalls.items():
                    retriever = registry.build_retriever(recipe, base, encoder=encoder)
                    for example in some:
                        gold = GoldEvidence(example)
                        hits = retriever.retrieve(Question(example.question), 5)
                        result = Result(example, hit_pieces=[gold.matching_pieces(hit.node) for hit in hits])
                        values.append(parse_metric("recall@5").measure(result) or 0.0)
        results.append(recalls)
    print("| encoder | MiB | loaded in s | passages/s | ratio | recall@5 one hop | recall@5 walk |")
    print("|---|---|---|---|---|---|---|")
    for number, (name, encoder) in enumerate(zip(options.encoders, encoders, strict=True)):
        assert isinstance(encoder, OnnxEncoder)
        size = (encoder.folder / MODEL_FILE).stat().st_size / 2**20
        dense, walk = (100 * np.mean(results[number][item]) for item in ("dense", "kgp"))
        print(
            f"| {name} | {size:.0f} | {load_seconds(name):.2f} | {len(texts) / seconds[number]:.0f} "
            f"| {seconds[1] / seconds[number]:.2f} | {dense:.1f} | {walk:.1f} |"
        )
    for recipe in results[0]:
        apart = paired_difference(results[0][recipe], results[1][recipe], 0)
        print(f"\n{recipe}: {100 * apart.mean:+.1f} [{100 * apart.low:+.1f}, {100 * apart.high:+.1f}] points, "
              f"{sum(map(len, examples.values()))} questions")  # fmt: skip


if __name__ == "__main__":
    main()
