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
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np

from clew.app.cli.output import show_progress
from clew.core.types import Question
from clew.evaluate.corpora import GoldEvidence, pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.models.encoders import RememberingEncoder
from clew.store.store import Store
from clew.train.encoder import MODEL_FOLDER, EncoderSettings, Training, build_settings, train_encoder
from clew.train.export import export_encoder, parse_form
from clew.train.pairs import pairs_from_examples

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
    results: dict[tuple[str, str], int] = {}
    for name, some in examples.items():
        rng = random.Random(f"{seed}{name}")
        by_type: dict[str, list[Example]] = {}
        for example in some:
            by_type.setdefault(example.question_type, []).append(example)
        number = 0
        for kind in sorted(by_type):
            rng.shuffle(by_type[kind])
            for example in by_type[kind]:
                results[name, example.id] = number % FOLDS
                number += 1
    return results


def train_encoder_on(learnt: Sequence[Example], options: argparse.Namespace, name: str) -> str:
    """Return the encoder trained on some questions, as ``onnx:FOLDER``."""
    out = options.out / name
    settings = build_settings("clew", options.setting)
    pairs = pairs_from_examples(learnt, settings.objective, settings.negatives, settings.seed)
    work = Training(pairs, options.model, settings, {"questions": len(learnt)})
    started = time.perf_counter()
    train_encoder(work, out, lambda plan: print(f"{name}: {plan}", flush=True), show_progress(name))
    exported = out / ("onnx" if options.weights == "int8" else f"onnx-{options.weights}")
    if not exported.exists():
        result = export_encoder(out / MODEL_FOLDER, exported, parse_form(options.weights, name))
        print(f"{name}: {time.perf_counter() - started:.0f} s, {result.size / 2**20:.0f} MiB", flush=True)
    return f"onnx:{exported}"


class Pools:
    """The bases of the three sets, and one of all, kept in a folder."""

    def __init__(self, folder: Path, examples: Examples) -> None:
        self._open: dict[str, Store] = {}
        for name in (*examples, "all"):
            base = Store.open(folder / name, create=True)
            if not base.documents():
                some = (
                    examples[name] if name != "all" else [item for few in examples.values() for item in few]
                )
                fill_store(base, pool_paragraphs(some), EvaluationSettings())
            self._open[name] = base

    def measure(
        self, asked: Examples, pool: str, recipes: Sequence[str], encoder: str | None
    ) -> Iterator[dict[str, object]]:
        """Yield a record for each question and recipe; ``pool`` is ``own`` or ``all``."""
        used = RememberingEncoder(registry.load_encoder(encoder)) if encoder else None
        for name, some in asked.items():
            base = self._open[name if pool == "own" else "all"]
            if used is not None:
                base.encode(used)
            for recipe in recipes:
                retriever = registry.build_retriever(recipe, base, encoder=used)
                retriever.retrieve(Question("What is remembered for a generation?"), 1)
                for example in some:
                    started = time.perf_counter()
                    hits = retriever.retrieve(Question(example.question), ASKED_FOR)
                    seconds = time.perf_counter() - started
                    gold = GoldEvidence(example)
                    result = Result(example, hit_pieces=[gold.matching_pieces(hit.node) for hit in hits])
                    measures = {metric: parse_metric(metric).measure(result) for metric in METRICS}
                    yield {"set": name, "id": example.id, "type": example.question_type, "recipe": recipe,
                           "pool": pool, "seconds": seconds, **measures}  # fmt: skip


def read_or_make(path: Path, result: Iterator[dict[str, object]]) -> list[dict[str, object]]:
    """Return the records of a file; make them where it is not there."""
    if not path.exists():
        results = list(result)
        path.write_text("\n".join(map(json.dumps, results)) + "\n", encoding="utf-8")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def report(records: dict[str, list[dict[str, object]]]) -> None:
    """Print the tables: by data set with intervals, and by type of question."""
    for pool in POOLS:
        if not any(item["pool"] == pool for some in records.values() for item in some):
            continue
        print(f"\nPool of {'the data set' if pool == 'own' else 'all three sets'}:")
        print(f"\n| encoder | search | data | questions | {' | '.join(METRICS)} | ms |")
        print("|" + "---|" * (len(METRICS) + 5))
        for encoder, some in records.items():
            keys = sorted({(str(item["recipe"]), str(item["set"])) for item in some if item["pool"] == pool})
            for recipe, name in keys:
                rows = [r for r in some if (r["recipe"], r["set"], r["pool"]) == (recipe, name, pool)]
                cells = [bootstrap_interval([float(str(r[metric])) for r in rows]) for metric in METRICS]
                text = " | ".join(
                    f"{100 * c.mean:.1f} [{100 * c.low:.1f}, {100 * c.high:.1f}]" for c in cells
                )
                ms = 1000 * np.mean([float(str(r["seconds"])) for r in rows])
                print(f"| {encoder} | {recipe} | {name} | {len(rows)} | {text} | {ms:.0f} |")
    by_type(
        {
            f"{kind} kgp": [r for r in some if (r["pool"], r["recipe"]) == ("own", "kgp")]
            for kind, some in records.items()
        }
    )


def brief(records: dict[str, list[dict[str, object]]]) -> None:
    """Print recall@5 with its interval, a line for each encoder and search of each pool."""
    print(f"\n| encoder | search | {' | '.join(SETS)} | ms |")
    print("|" + "---|" * (len(SETS) + 3))
    for encoder, some in records.items():
        for pool, recipe in sorted({(str(item["pool"]), str(item["recipe"])) for item in some}, reverse=True):
            rows = [item for item in some if (item["pool"], item["recipe"]) == (pool, recipe)]
            cells = []
            for name in SETS:
                c = bootstrap_interval([float(str(row["recall@5"])) for row in rows if row["set"] == name])
                cells.append(f"{100 * c.mean:.1f} [{100 * c.low:.1f}, {100 * c.high:.1f}]" if c.count else "")
            ms = 1000 * np.mean([float(str(row["seconds"])) for row in rows])
            name = recipe if pool == "own" else f"{recipe}, pool of all"
            print(f"| {encoder} | {name} | {' | '.join(cells)} | {ms:.0f} |")


def by_type(records: dict[str, list[dict[str, object]]]) -> None:
    """Print recall@5 by type of question, where anything was measured that way."""
    kinds = sorted({(str(r["set"]), str(r["type"])) for some in records.values() for r in some})
    if not kinds:
        return
    print("\n| type | questions | " + " | ".join(records) + " |")
    print("|" + "---|" * (2 + len(records)))
    for kind in kinds:
        values = [
            [float(str(r["recall@5"])) for r in some if (r["set"], r["type"]) == kind]
            for some in records.values()
        ]
        cells = [f"{100 * np.mean(some):.1f}" if some else "" for some in values]
        print(f"| {kind[0]} {kind[1]} | {max(map(len, values))} | {' | '.join(cells)} |")


class Study:
    """The measurements of one folder: kept where they are there already, made where not."""

    def __init__(self, options: argparse.Namespace, examples: Examples) -> None:
        self.results: dict[str, list[dict[str, object]]] = {}
        self._options = options
        self._pools = None if options.report else Pools(options.out / "bases", examples)

    def measure(
        self, kind: str, file: str, asked: Examples, recipes: Sequence[str], encoder: str | None
    ) -> None:
        """Add the records of some questions to what is known of a kind of encoder."""
        recipes = self._options.recipe or recipes
        path = self._options.out / f"{file}{self._variant()}.jsonl"
        if self._pools is None:
            result: Iterator[dict[str, object]] = iter(())
            if not path.exists():
                return
        else:
            pools = self._pools
            result = (
                record
                for pool in self._options.pool or POOLS
                for record in pools.measure(asked, pool, recipes, encoder)
            )
        self.results[kind] = self.results.get(kind, []) + read_or_make(path, result)

    def _variant(self) -> str:
        """Return what tells the files of other recipes, pools or weights apart."""
        asked = list(self._options.recipe or ())
        if asked and self._options.weights != "int8":
            asked.append(self._options.weights)
        return f"-{hashlib.blake2b(chr(10).join(asked).encode(), digest_size=4).hexdigest()}" if asked else ""


def jobs(examples: Examples) -> Iterator[tuple[str, str, Examples, list[Example]]]:
    """Yield each encoder to train: its kind, its name, the questions it is asked, those it learns from."""
    fold_of = folds(examples)
    for number in range(FOLDS):
        asked = {n: [e for e in some if fold_of[n, e.id] == number] for n, some in examples.items()}
        learnt = [e for n, some in examples.items() for e in some if fold_of[n, e.id] != number]
        yield "in domain", f"fold{number}", asked, learnt
    for name, some in examples.items():
        yield (
            "left out",
            f"without-{name}",
            {name: some},
            [e for n in examples if n != name for e in examples[n]],
        )


def setting(text: str) -> tuple[str, object]:
    """Return what ``KEY=VALUE`` sets."""
    key, _, value = text.partition("=")
    if key not in {field.name for field in fields(EncoderSettings)}:
        raise argparse.ArgumentTypeError(
            f"no setting '{key}': {', '.join(f.name for f in fields(EncoderSettings))}"
        )
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def parse_options() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--model", default="sentence-transformers/all-MiniLM-L6-v2", help="to start from: folder or hub name"
    )
    parser.add_argument("--untrained", help="the same model exported, such as onnx:FOLDER")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--weights", default="int8", choices=("int8", "half", "fp32"))
    parser.add_argument(
        "--setting",
        action="append",
        type=setting,
        default=[],
        help="another training: objective=dpr, mined=2 (an --out of its own)",
    )
    parser.add_argument("--report", action="store_true", help="only print the tables of what is there")
    parser.add_argument("--brief", action="store_true", help="print recall@5 alone, a line for each search")
    parser.add_argument("--only", action="append", help="a fold or data set: fold0, without-musique")
    parser.add_argument("--recipe", action="append", help="other recipes, kept apart and reported alone")
    parser.add_argument("--pool", action="append", choices=POOLS, help="default: both")
    options = parser.parse_args()
    options.setting = dict(options.setting)
    return options


def main() -> None:
    options = parse_options()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    examples = {
        name: list(load_dataset(name, DATA / name / f"{file}.jsonl").examples())
        for name, file in SETS.items()
    }
    options.out.mkdir(parents=True, exist_ok=True)
    study = Study(options, examples)
    if not options.only and not options.recipe:
        study.measure("none", "none", examples, LEXICAL, None)
        if options.untrained or options.report:
            study.measure("untrained", "untrained", examples, DENSE, options.untrained)
    for kind, name, asked, learnt in jobs(examples):
        if not options.only or name in options.only:
            encoder = "" if options.report else train_encoder_on(learnt, options, name)
            study.measure(kind, name, asked, DENSE, encoder)
    print(f"\nsettings: {asdict(build_settings('clew', options.setting))}, weights {options.weights}")
    (brief if options.brief else report)(study.results)


if __name__ == "__main__":
    main()
