"""Questions that one passage answers: does a walk lose what a plain search finds?

The sub-questions of MuSiQue's decompositions (training questions), earlier answers filled in; those that are no
English question (``head >> relation``) are left out. Each has one gold paragraph in the pool of all 100 questions'
paragraphs.

    python benchmarks/singlehop.py --encoder none --encoder clew:hops
    python benchmarks/singlehop.py --encoder onnx:folds/without-musique/onnx    # one that never saw them
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from clew.core.types import Question
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.store.store import Store

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "musique" / "train100.jsonl"


def questions() -> Iterator[tuple[str, str, str]]:
    """Yield each sub-question with the title and text of its paragraph."""
    for line in DATA.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        paragraphs = {paragraph["idx"]: paragraph for paragraph in record["paragraphs"]}
        answers: dict[int, str] = {}
        for number, step in enumerate(record["question_decomposition"], 1):
            text = step["question"]
            for before, answer in answers.items():
                text = text.replace(f"#{before}", answer)
            answers[number] = step["answer"]
            if ">>" not in text:
                gold = paragraphs[step["paragraph_support_idx"]]
                yield text, gold["title"], gold["paragraph_text"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--encoder", action="append", help="such as onnx:FOLDER, or none (default: none)")
    parser.add_argument("--retriever", action="append", help="default: bm25, search, kgp; dense and hybrid")
    options = parser.parse_args()
    if not DATA.is_file():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    asked = list(questions())
    print(f"{len(asked)} questions\n")
    print("| encoder | search | recall@1 | recall@5 | recall@10 | ms |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, Store.open(folder, create=True) as base:
        fill_store(base, pool_paragraphs(load_dataset("musique", DATA).examples()), EvaluationSettings())
        for name in options.encoder or ["none"]:
            encoder = None if name == "none" else registry.load_encoder(name)
            if encoder is not None:
                base.encode(encoder)
            usual = ["bm25", "search", "kgp", *(["dense", "hybrid"] if encoder else [])]
            for recipe in options.retriever or usual:
                retriever = registry.build_retriever(recipe, base, encoder=encoder)
                retriever.retrieve(Question("What is remembered for a generation?"), 1)
                started = time.perf_counter()
                ranks = []
                for text, title, gold in asked:
                    hits = retriever.retrieve(Question(text), 10)
                    places = [
                        n
                        for n, hit in enumerate(hits)
                        if hit.node.document_name == f"{title.replace('/', ' ')}.txt"
                        and hit.node.text.split() == gold.split()
                    ]
                    ranks.append(places[0] if places else 99)
                ms = 1000 * (time.perf_counter() - started) / len(asked)
                cells = [bootstrap_interval([float(rank < k) for rank in ranks]) for k in (1, 5, 10)]
                output = " | ".join(
                    f"{100 * c.mean:.1f} [{100 * c.low:.1f}, {100 * c.high:.1f}]" for c in cells
                )
                shown = "/".join(Path(name).parts[-2:]) if name.startswith("onnx:") else name
                print(f"| {shown} | {recipe} | {output} | {ms:.0f} |", flush=True)
                assert np.min(ranks) < 99, "no gold paragraph was ever found: titles or texts do not match"


if __name__ == "__main__":
    main()
