"""OTT-QA: questions whose answer needs a table, a passage that a cell of it links to, or both.

    python benchmarks/tables_and_passages.py build --kb FOLDER --minutes 15   # again until it says "complete"
    python benchmarks/tables_and_passages.py retrieval --kb FOLDER --out retrieval.jsonl
    python benchmarks/tables_and_passages.py answers --kb FOLDER --out answers.jsonl

All 600 tables and all 16,899 passages of ``../shared/data/ottqa`` are one base; the 300 questions are its training
questions. The links of the cells are not given to clew: it joins cells and documents by name.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clew.core.trail import TrailRecorder
from clew.core.types import Hit, Question
from clew.evaluate.corpora import GoldEvidence, build_documents, document_location
from clew.evaluate.datasets.tables import read_ottqa, read_ottqa_pool
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics import parse_metric
from clew.evaluate.statistics import bootstrap_interval
from clew.graph.mentions import EDGE_KINDS, MentionGraph
from clew.knowledge_base.registry import build_method, build_retriever, load_encoder
from clew.methods.kgp.method import KGP
from clew.store.store import Store

DEPTHS = (5, 10, 20)
#: Retrievers by name; the last one is the default walk without the edges from cells to documents of their name.
RETRIEVERS = ("bm25", "dense", "search", "kgp", "kgp without cells")


def build(options: argparse.Namespace) -> None:
    """Make the base, or go on making it, for so many minutes at most."""
    stop = time.monotonic() + 60 * options.minutes

    def stop_in_time(done: int, total: int) -> None:
        if time.monotonic() > stop:
            raise TimeoutError(f"{done} of {total}")

    with Store.open(options.kb, create=True) as store:
        known = {document.key for document in store.documents()}
        documents = list(build_documents(read_ottqa_pool(options.data / "ottqa" / "questions.jsonl")))
        current = {document.key for document in documents}
        stale = [
            path for document in store.documents() if document.key not in current for path in document.paths
        ]
        if stale:
            store.remove(stale)
        for document in documents:
            if document.key not in known:
                store.put_document(document, document_location(document))
        try:
            store.catch_up(stop_in_time)
            store.encode(load_encoder(options.encoder), stop_in_time)
        except TimeoutError as error:
            print(f"not complete: {error}")
            return
    print("complete")


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a JSON-lines file by their keys."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {row["key"]: row for row in rows}


def rank_gold(example: Example, hits: Sequence[Hit]) -> dict[str, list[int]]:
    """Return the ranks (from 1) of the hits in the gold table, and of those that are a gold passage."""
    gold = GoldEvidence(example)
    pieces = [gold.matching_pieces(hit.node) for hit in hits]
    # The first piece is the table, the others are passages; a table and a passage may have the same title.
    is_row = [hit.node.kind in {"row", "table"} for hit in hits]
    return {
        "table": [n for n, (own, row) in enumerate(zip(pieces, is_row, strict=True), 1) if row and 0 in own],
        "passage": [
            n for n, (own, row) in enumerate(zip(pieces, is_row, strict=True), 1) if not row and own - {0}
        ],
    }


def retrieval(options: argparse.Namespace) -> None:
    """Print recall of the gold table and of a gold passage, and of what the answer needs of the two."""
    examples = list(read_ottqa(options.data / "ottqa" / "questions.jsonl"))[: options.limit]
    rows, stop = read_rows(options.out), time.monotonic() + 60 * options.minutes
    encoder = load_encoder(options.encoder)
    with Store.open(options.kb) as store, options.out.open("a", encoding="utf-8") as stream:
        for name in options.retrievers or RETRIEVERS:
            retriever = build_retriever(name.split()[0], store, encoder=encoder)
            if name.endswith("without cells"):
                kinds = [kind for kind, edge in EDGE_KINDS.items() if edge.forward and kind != "cell"]
                assert isinstance(retriever, KGP)
                retriever = replace(
                    retriever, graph=MentionGraph(store.snapshot(), kinds=[*kinds, "container"])
                )
            for example in examples:
                key = f"{name} {example.id}"
                if key in rows:
                    continue
                if time.monotonic() > stop:
                    print(f"not complete: {len(rows)} of {len(RETRIEVERS) * len(examples)}")
                    return
                started = time.perf_counter()
                hits = retriever.retrieve(Question(example.question), max(DEPTHS))
                seconds = time.perf_counter() - started
                rows[key] = {"key": key, "seconds": seconds, **rank_gold(example, hits)}
                stream.write(json.dumps(rows[key]) + "\n")
                stream.flush()
    needs_passage = {example.id: len(example.support) > 1 for example in examples}
    print(f"{len(examples)} questions, {sum(needs_passage.values())} of them with gold passages")
    print("| retriever | part | " + " | ".join(f"@{depth}" for depth in DEPTHS) + " | s |")
    print("|---|---|---|---|---|---|")
    for name in options.retrievers or RETRIEVERS:
        own = {example.id: rows[f"{name} {example.id}"] for example in examples}
        seconds = sum(float(row["seconds"]) for row in own.values()) / len(own)
        for part in ("table", "passage", "both"):
            cells = []
            for depth in DEPTHS:
                within = {
                    kind: {id: any(rank <= depth for rank in row[kind]) for id, row in own.items()}
                    for kind in ("table", "passage")
                }
                if part == "both":
                    found = [
                        within["table"][id] and (within["passage"][id] or not needs_passage[id]) for id in own
                    ]
                else:
                    found = [within[part][id] for id in own if part == "table" or needs_passage[id]]
                interval = bootstrap_interval([float(each) for each in found])
                cells.append(
                    f"{100 * interval.mean:.1f} ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
                )
            print(f"| {name} | {part} | {' | '.join(cells)} | {seconds:.2f} |")


def answers(options: argparse.Namespace) -> None:
    """Print exact match and F1 without a language model, by where the answer stands."""
    examples = list(read_ottqa(options.data / "ottqa" / "questions.jsonl"))[: options.limit]
    rows, stop = read_rows(options.out), time.monotonic() + 60 * options.minutes
    encoder = load_encoder(options.encoder)
    with Store.open(options.kb) as store, options.out.open("a", encoding="utf-8") as stream:
        for recipe in options.recipes:
            method = build_method(recipe, store, encoder=encoder)
            for example in examples:
                key = f"{recipe} {example.id}"
                if key in rows:
                    continue
                if time.monotonic() > stop:
                    print(f"not complete: {len(rows)}")
                    return
                answer = method.answer(Question(example.question), TrailRecorder())
                rows[key] = {"key": key, "text": answer.text, "abstained": answer.abstained}
                stream.write(json.dumps(rows[key]) + "\n")
                stream.flush()
    print("| recipe | answer in | questions | EM | F1 | answered |")
    print("|---|---|---|---|---|---|")
    for recipe in options.recipes:
        for kind in ("", "table", "passage", "passage/table"):
            own = [example for example in examples if not kind or example.question_type == kind]
            results = [
                Result(example, str(row["text"]), bool(row["abstained"]))
                for example in own
                if (row := rows[f"{recipe} {example.id}"])
            ]
            em, f1 = (
                100
                * sum(parse_metric(name).measure(result) or 0.0 for result in results)
                / max(len(results), 1)
                for name in ("EM", "F1")
            )
            answered = sum(not result.abstained for result in results)
            print(f"| {recipe} | {kind or 'all'} | {len(own)} | {em:.1f} | {f1:.1f} | {answered} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("build")
    command.add_argument("--minutes", type=float, default=15)
    command.set_defaults(run=build)
    command = commands.add_parser("retrieval")
    command.add_argument("--retrievers", nargs="*", choices=RETRIEVERS)
    command.set_defaults(run=retrieval)
    command = commands.add_parser("answers")
    command.add_argument("--recipes", nargs="*", default=["default"])
    command.set_defaults(run=answers)
    for name in ("retrieval", "answers"):
        command = commands.choices[name]
        command.add_argument(
            "--out", type=Path, required=True, help="a file of rows; a later run goes on with it"
        )
        command.add_argument("--limit", type=int)
        command.add_argument("--minutes", type=float, default=15)
    for command in commands.choices.values():
        command.add_argument("--kb", type=Path, required=True)
        command.add_argument("--encoder", default="clew:hops")
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
