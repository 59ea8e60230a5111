"""How sure a source of a hop has to be: the calibration of ``clew.methods.mixed``.

    python benchmarks/hop_sources.py collect --out build/hops.jsonl   # asks both sources for every hop
    python benchmarks/hop_sources.py fit build/hops.jsonl             # fits, and judges on other questions

The hops are those of the questions of fold 0, which the reader that comes with clew has not seen:
2WikiMultihopQA's gold triples, asked in words ("Who directed Kismet?"), and the sub-questions of MuSiQue. A graph
holds those of 2WikiMultihopQA's triples whose hash is odd (:mod:`withheld_hops`), so that half of its hops are not
in it; another is HippoRAG's extraction from MuSiQue's paragraphs. The documents are all paragraphs of these
questions but those about a third of the heads of 2WikiMultihopQA's triples, so that the documents do not know all
either. ``fit`` fits a logistic function of the log-odds that a source states, on two thirds of the questions, and
prints for the others how often the surest source is right, as stated and as fitted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import clew
import folds
from clew.core.text import fold_name
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.core.values import same_value
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.knowledge_base import registry
from clew.methods import mixed
from clew.methods.chain.unknowns import Candidate, Hop
from clew.methods.readers.composition import ask_relation
from clew.triples.language.chain import Term, Triple
from hop_filling import hops as hops_in_words
from hop_filling import triple_of
from withheld_hops import is_held

SOURCES = ("graph", "document")


def hops_of(data: Path) -> tuple[list[Example], list[tuple[str, str, str, str, bool]]]:
    """Return the questions of fold 0, and their hops: id, question, head, answer, and whether a graph holds it."""
    files = {"2wikimultihopqa": "train500.jsonl", "musique": "train100.jsonl"}
    sets = {name: list(load_dataset(name, data / name / file).examples()) for name, file in files.items()}
    fold_of = folds.folds(sets)
    unseen = {name: [each for each in of_set if fold_of[name, each.id] == 0] for name, of_set in sets.items()}
    hops = []
    for example in unseen["2wikimultihopqa"]:
        for head, relation, tail in example.chain:
            hops.append(
                (example.id, ask_relation(relation, head), head, tail, is_held((head, relation, tail)))
            )
    for example in unseen["musique"]:
        for asked, answer, _ in hops_in_words(example):
            head, arrow, relation = asked.partition(" >> ")
            wording = ask_relation(relation, head) if arrow else asked
            hops.append((example.id, wording, str(triple_of(asked, 1).head), answer, False))
    return [*unseen["2wikimultihopqa"], *unseen["musique"]], hops


def is_absent(head: str) -> bool:
    """Return whether the documents have no paragraph about a name: a third of the names."""
    return hashlib.blake2b(head.encode(), digest_size=2).digest()[0] % 3 == 0


def collect(data: Path, out: Path) -> None:
    """Write a line for each hop: its question, and for each source its value, whether that is right, and how sure."""
    examples, hops = hops_of(data)
    encoder = registry.load_encoder("clew:hops")
    mixed.CALIBRATION = dict.fromkeys(mixed.CALIBRATION, (0.0, 1.0))  # as stated
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        absent = {fold_name(head) for _, _, head, _, _ in hops if is_absent(head)}
        paragraphs = [each for each in pool_paragraphs(examples) if fold_name(each.title) not in absent]
        fill_store(base.store, paragraphs, EvaluationSettings(encoder=encoder))
        triples = {triple for each in examples for triple in map(tuple, each.chain) if len(triple) == 3}
        path = Path(folder) / "held.tsv"
        path.write_text("".join("\t".join(t) + "\n" for t in sorted(triples) if is_held(t)), encoding="utf-8")
        base.graphs.add(path, name="held")
        base.graphs.add(data / "musique/train100_openie.jsonl", name="extracted", skip_bad=True)
        method = registry.build_method("mixed", base.store, encoder=encoder)
        assert isinstance(method, mixed.MixedQuestions)
        graphs = [base.store.snapshot().graph(name) for name in ("held", "extracted")]
        started = time.perf_counter()
        with out.open("w", encoding="utf-8") as file:
            for id, wording, head, answer, is_in_graph in hops:
                hop = Hop(Triple(Term(head), "is", Term("#1")), (Candidate(head),), 1)
                record: dict[str, Any] = {"id": id, "hop": wording, "gold": answer, "held": is_in_graph}
                for source in (
                    mixed.GraphHops(method.graphs, graphs, {1: wording}),
                    mixed.DocumentHops(method.documents, method.reading, {1: wording}),
                ):
                    filling = source.fill(Question(wording), [hop], TrailRecorder())[0]
                    if filling is not None:
                        values = [candidate.value for candidate in filling.candidates[:3]]
                        is_right = same_value(values[0], answer)
                        record[source.name] = {"values": values, "stated": filling.score, "right": is_right}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
        print(f"{len(examples)} questions, {len(hops)} hops in {time.perf_counter() - started:.0f} s")


def log_odds(stated: float) -> float:
    bounded = min(max(stated, 0.01), 0.99)
    return float(np.log(bounded / (1 - bounded)))


def fit_logistic(stated: Sequence[float], right: Sequence[bool]) -> tuple[float, float]:
    """Return the constant and the weight of the log-odds under which what is right is likeliest, by Newton's method,
    with a pull of one observation towards (0, 1)."""
    inputs = np.stack([np.ones(len(stated)), [log_odds(each) for each in stated]], axis=1)
    target, weights, prior = np.array(right, dtype=float), np.array([0.0, 1.0]), np.array([0.0, 1.0])
    for _ in range(50):
        probability = 1 / (1 + np.exp(-inputs @ weights))
        gradient = inputs.T @ (target - probability) - (weights - prior)
        curvature = (inputs * (probability * (1 - probability))[:, None]).T @ inputs + np.eye(2)
        weights = weights + np.linalg.solve(curvature, gradient)
    return float(weights[0]), float(weights[1])


def fit(path: Path) -> None:
    """Print the calibration, and what choosing by it is worth on questions that it was not fitted to."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    ids = sorted({record["id"] for record in records})
    kept_out = set(ids[::3])
    fitted: dict[str, tuple[float, float]] = {}
    for source in SOURCES:
        pairs = [record[source] for record in records if source in record and record["id"] not in kept_out]
        fitted[source] = fit_logistic([pair["stated"] for pair in pairs], [pair["right"] for pair in pairs])
        constant, weight = fitted[source]
        print(f"{source:9s} fitted to {len(pairs):3d} hops: constant {constant:.2f}, weight {weight:.2f}")
    test = [record for record in records if record["id"] in kept_out]
    print(
        f"{len(test)} hops of {len(kept_out)} other questions, {sum(r['held'] for r in test)} of them in the graph"
    )

    def judge(name: str, choose: Any) -> None:
        chosen = [choose(record) for record in test]
        right = sum(bool(each and each["right"]) for each in chosen)
        filled = sum(each is not None for each in chosen)
        print(f"  {name:28s} filled {filled:3d}  right {right:3d}  wrong {filled - right:3d}")

    def surest(record: dict[str, Any], calibration: dict[str, tuple[float, float]]) -> Any:
        present = [source for source in SOURCES if source in record]

        def score(source: str) -> float:
            constant, weight = calibration[source]
            return constant + weight * log_odds(record[source]["stated"])

        return record[max(present, key=score)] if present else None

    for source in SOURCES:
        judge(f"{source} alone", lambda record, source=source: record.get(source))
    judge("graph first", lambda record: record.get("graph") or record.get("document"))
    judge("the surer, as stated", lambda record: surest(record, dict.fromkeys(SOURCES, (0.0, 1.0))))
    judge("the likelier, as fitted", lambda record: surest(record, fitted))
    judge(
        "right in one of them",
        lambda record: next(
            (record[s] for s in SOURCES if s in record and record[s]["right"]), record.get("document")
        ),
    )
    for source in SOURCES:
        pairs = [record[source] for record in test if source in record]
        if not pairs:
            continue
        constant, weight = fitted[source]
        probability = np.array([1 / (1 + np.exp(-constant - weight * log_odds(p["stated"]))) for p in pairs])
        right = np.array([p["right"] for p in pairs])
        stated = np.array([p["stated"] for p in pairs])
        print(
            f"  {source:9s} {len(pairs)} hops: right {right.mean():.2f}, stated {stated.mean():.2f}, fitted "
            f"{probability.mean():.2f}; Brier score as stated {((stated - right) ** 2).mean():.3f}, fitted "
            f"{((probability - right) ** 2).mean():.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["collect", "fit"])
    parser.add_argument("file", nargs="?", type=Path, default=Path("build/hops.jsonl"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("build/hops.jsonl"))
    arguments = parser.parse_args()
    if arguments.what == "collect":
        arguments.out.parent.mkdir(exist_ok=True)
        collect(arguments.data, arguments.out)
    else:
        fit(arguments.file)


if __name__ == "__main__":
    main()
