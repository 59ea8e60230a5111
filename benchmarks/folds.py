"""Cross-validation of the multi-hop encoder: five folds, and each data set left out, over pooled paragraphs.

For each fold an encoder is trained on the questions of the other folds by the same code as ``clew train encoder``,
exported, and asked about the questions of the fold; for each data set, one trained on the other two. Without a
language model. Every question is thus asked of an encoder that never saw it. All paragraphs of a data set make its
pool; ``--pool all`` puts those of the three together.

    python benchmarks/folds.py --model FOLDER --out folds             # trains 8 encoders: an hour on two cores
    python benchmarks/folds.py --model FOLDER --out folds --report    # the tables again

Killed, it continues where it was. Needs the extra train and ../shared/data.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from clew import catalog
from clew.catalog.evaluation import Bench, fill
from clew.cli.progress import told
from clew.evaluate.corpora import Gold, pooled
from clew.evaluate.datasets import load
from clew.evaluate.examples import Example
from clew.evaluate.metrics import Result, metric
from clew.evaluate.statistics import interval
from clew.kb import KnowledgeBase
from clew.models.remembering import Remembering
from clew.train.encoder import MODEL, Settings, Training, train_encoder
from clew.train.export import export, form_of
from clew.train.pairs import of_examples
from clew.types import Question

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
SETS = {"hotpotqa": "train100", "musique": "train100", "2wikimultihopqa": "train500"}
FOLDS = 5
METRICS = ("recall@2", "recall@5", "recall@10", "all-gold@5", "MRR")
#: What is measured without an encoder, and with one.
LEXICAL = ("bm25", "search", "kgp")
DENSE = ("dense", "hybrid", "twohop", "search", "kgp")
ASKED_FOR = 10
POOLS = ("own", "all")

Examples = dict[str, list[Example]]


def folds(examples: Examples, seed: int = 0) -> dict[tuple[str, str], int]:
    """Return the fold of each question, by data set and id: even over the types of question."""
    found: dict[tuple[str, str], int] = {}
    for name, some in examples.items():
        rng = random.Random(f"{seed}{name}")
        by_type: dict[str, list[Example]] = {}
        for example in some:
            by_type.setdefault(example.question_type, []).append(example)
        number = 0
        for kind in sorted(by_type):
            rng.shuffle(by_type[kind])
            for example in by_type[kind]:
                found[name, example.id] = number % FOLDS
                number += 1
    return found


def trained(learnt: Sequence[Example], options: argparse.Namespace, name: str) -> str:
    """Return the encoder trained on some questions, as ``onnx:FOLDER``."""
    out = options.out / name
    settings = Settings(seed=options.seed)
    pairs = of_examples(learnt, settings.objective, settings.negatives, settings.seed)
    work = Training(pairs, options.model, settings, {"questions": len(learnt)})
    started = time.perf_counter()
    train_encoder(work, out, lambda plan: print(f"{name}: {plan}", flush=True), told(name))
    if not (out / "onnx").exists():
        made = export(out / MODEL, out / "onnx", form_of(options.weights, name))
        print(f"{name}: {time.perf_counter() - started:.0f} s, {made.size / 2**20:.0f} MiB", flush=True)
    return f"onnx:{out / 'onnx'}"


class Pools:
    """The bases of the three sets, and one of all, kept in a folder."""

    def __init__(self, folder: Path, examples: Examples) -> None:
        self._open: dict[str, KnowledgeBase] = {}
        for name in (*examples, "all"):
            base = KnowledgeBase.open(folder / name, create=True)
            if not base.documents():
                some = examples[name] if name != "all" else [one for few in examples.values() for one in few]
                fill(base, pooled(some), Bench())
            self._open[name] = base

    def measure(
        self, asked: Examples, pool: str, recipes: Sequence[str], encoder: str | None
    ) -> Iterator[dict[str, object]]:
        """Yield a record for each question and recipe; ``pool`` is ``own`` or ``all``."""
        used = Remembering(catalog.encoder(encoder)) if encoder else None
        for name, some in asked.items():
            base = self._open[name if pool == "own" else "all"]
            if used is not None:
                base.encode(used)
            for recipe in recipes:
                retriever = catalog.retriever(recipe, base, encoder=used)
                retriever.retrieve(Question("What is remembered for a generation?"), 1)
                for example in some:
                    started = time.perf_counter()
                    hits = retriever.retrieve(Question(example.question), ASKED_FOR)
                    seconds = time.perf_counter() - started
                    gold = Gold(example)
                    result = Result(example, found=[gold.held(hit.node) for hit in hits])
                    measures = {one: metric(one).measure(result) for one in METRICS}
                    yield {"set": name, "id": example.id, "type": example.question_type, "recipe": recipe,
                           "pool": pool, "seconds": seconds, **measures}  # fmt: skip


def kept(path: Path, made: Iterator[dict[str, object]]) -> list[dict[str, object]]:
    """Return the records of a file; make them where it is not there."""
    if not path.exists():
        found = list(made)
        path.write_text("\n".join(map(json.dumps, found)) + "\n", encoding="utf-8")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def report(records: dict[str, list[dict[str, object]]]) -> None:
    """Print the tables: by data set with intervals, and by type of question."""
    for pool in POOLS:
        if not any(one["pool"] == pool for some in records.values() for one in some):
            continue
        print(f"\nPool of {'the data set' if pool == 'own' else 'all three sets'}:")
        print(f"\n| encoder | search | data | questions | {' | '.join(METRICS)} | ms |")
        print("|" + "---|" * (len(METRICS) + 5))
        for encoder, some in records.items():
            keys = sorted({(str(one["recipe"]), str(one["set"])) for one in some if one["pool"] == pool})
            for recipe, name in keys:
                rows = [r for r in some if (r["recipe"], r["set"], r["pool"]) == (recipe, name, pool)]
                cells = [interval([float(str(r[one])) for r in rows]) for one in METRICS]
                said = " | ".join(
                    f"{100 * c.mean:.1f} [{100 * c.low:.1f}, {100 * c.high:.1f}]" for c in cells
                )
                ms = 1000 * np.mean([float(str(r["seconds"])) for r in rows])
                print(f"| {encoder} | {recipe} | {name} | {len(rows)} | {said} | {ms:.0f} |")
    print("\n| type | questions | " + " | ".join(f"{e} kgp" for e in records) + " |")
    print("|" + "---|" * (2 + len(records)))
    kinds = sorted({(str(r["set"]), str(r["type"])) for some in records.values() for r in some})
    for kind in kinds:
        cells, count = [], 0
        for some in records.values():
            rows = [float(str(r["recall@5"])) for r in some
                    if (r["set"], r["type"], r["pool"], r["recipe"]) == (*kind, "own", "kgp")]  # fmt: skip
            count = max(count, len(rows))
            cells.append(f"{100 * np.mean(rows):.1f}" if rows else "")
        print(f"| {kind[0]} {kind[1]} | {count} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--model", default="sentence-transformers/all-MiniLM-L6-v2", help="to start from: folder or hub name"
    )
    parser.add_argument("--untrained", help="the same model exported, such as onnx:FOLDER")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", default="int8")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", action="store_true", help="only print the tables of what is there")
    parser.add_argument("--only", action="append", help="a fold or data set: fold0, without-musique")
    parser.add_argument("--recipe", action="append", help="other recipes, kept apart and reported alone")
    parser.add_argument("--pool", action="append", choices=("own", "all"), help="default: both")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    examples = {
        name: list(load(name, DATA / name / f"{file}.jsonl").examples()) for name, file in SETS.items()
    }
    options.out.mkdir(parents=True, exist_ok=True)
    fold_of = folds(examples)
    results: dict[str, list[dict[str, object]]] = {
        "none": [],
        "untrained": [],
        "in domain": [],
        "left out": [],
    }
    pools = None if options.report else Pools(options.out / "bases", examples)

    def measured(kind: str, file: str, asked: Examples, recipes: Sequence[str], encoder: str | None) -> None:
        if options.recipe:
            recipes = options.recipe
            digest = hashlib.blake2b("\n".join(recipes).encode(), digest_size=4).hexdigest()
            file = f"{file}-{digest}"
        path = options.out / f"{file}.jsonl"
        if pools is None:
            results[kind] += kept(path, iter(())) if path.exists() else []
            return
        made = (
            record
            for pool in options.pool or POOLS
            for record in pools.measure(asked, pool, recipes, encoder)
        )
        results[kind] += kept(path, made)

    if not options.only and not options.recipe:
        measured("none", "none", examples, LEXICAL, None)
        if options.untrained or options.report:
            measured("untrained", "untrained", examples, DENSE, options.untrained)
    jobs: list[tuple[str, str, Examples]] = []
    for number in range(FOLDS):
        asked = {n: [e for e in some if fold_of[n, e.id] == number] for n, some in examples.items()}
        jobs.append(("in domain", f"fold{number}", asked))
    jobs += [("left out", f"without-{name}", {name: some}) for name, some in examples.items()]
    for kind, name, asked in jobs:
        if options.only and name not in options.only:
            continue
        away = {(n, e.id) for n, some in asked.items() for e in some}
        learnt = [e for n, some in examples.items() for e in some if (n, e.id) not in away]
        if kind == "left out":
            learnt = [e for n, some in examples.items() if n not in asked for e in some]
        encoder = "" if options.report else trained(learnt, options, name)
        measured(kind, name, asked, DENSE, encoder)
    print(f"\nsettings: {asdict(Settings(seed=options.seed))}, weights {options.weights}")
    report({kind: some for kind, some in results.items() if some})


if __name__ == "__main__":
    main()
