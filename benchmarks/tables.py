"""Questions over tables: TAT-QA without a model, and twenty questions over large tables by SQL.

    python benchmarks/tables.py tatqa            # given the context: every row and paragraph of it is evidence
    python benchmarks/tables.py tatqa --pooled   # one base of all contexts, the default method
    python benchmarks/tables.py large            # a CSV of 100,000 rows, a workbook of ten sheets

The rules were written with the contexts in sight that the shipped reader was trained on (four fifths of TAT-QA's dev
set, seed 0 of reading.py); nobody looked at the other fifth, ``held out``. There is no official test part here.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Hit, Question, Scope
from clew.evaluate.corpora import build_documents, document_location, pool_paragraphs
from clew.evaluate.datasets.tables import read_tatqa
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics.tables import canonical_value, tat_exact_match, tat_f1
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base.registry import build_method, load_encoder
from clew.methods.readers.spans import SpanAnswerReader
from clew.models.span_reader import create_span_reader
from clew.store.store import Store

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def held_out_titles(path: Path) -> set[str]:
    """Return the contexts that the shipped reader has not seen and the rules were not written for."""
    contexts = json.loads(path.read_text(encoding="utf-8"))
    order = list(range(len(contexts)))
    random.Random(0).shuffle(order)
    return {
        context["table"]["uid"]
        for position, context in zip(order, contexts, strict=True)
        if position % 5 == 0
    }


def read_given_context(examples: list[Example], store: Store, reader: SpanAnswerReader) -> Iterator[Answer]:
    """Yield the answer of each question from all rows and paragraphs of its own context."""
    by_title = {document.title: document.key for document in store.documents()}
    for example in examples:
        nodes = store.document_nodes(by_title[example.corpus[0].title])
        hits = [Hit(node, 1.0, (node.id,)) for node in nodes if node.kind in {"row", "passage"}]
        yield reader.read(Question(example.question), hits, TrailRecorder())


def operands_of(example: Example) -> set[str]:
    """Return the numbers of a derivation, without counts and constants."""
    numbers = {canonical_value(match) for match in _NUMBER.findall(str(example.meta["derivation"]))}
    return {number for number in numbers if float(number) > 12 or not float(number).is_integer()}


def tatqa(options: argparse.Namespace) -> None:
    """Print TAT-QA's exact match and F1 by type and source of the answer."""
    path = options.data / "tatqa" / "dev.json"
    held_out = held_out_titles(path)
    examples = list(read_tatqa(path))
    if options.part != "all":
        examples = [
            example
            for example in examples
            if (example.corpus[0].title in held_out) == (options.part == "held-out")
        ]
    if options.limit:
        examples = random.Random(0).sample(examples, options.limit)
    scores: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    found: list[bool] = []
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "base", create=True) as store:
        for document in build_documents(pool_paragraphs(examples)):
            store.put_document(document, document_location(document))
        store.catch_up()
        started = time.perf_counter()
        if options.pooled:
            encoder = load_encoder(options.encoder) if options.encoder else None
            if encoder:
                store.encode(encoder)
            method = build_method(options.recipe, store, encoder=encoder)
            answers: Iterator[Answer] = (
                method.answer(Question(example.question, Scope()), TrailRecorder()) for example in examples
            )
        else:
            reader = SpanAnswerReader(
                create_span_reader("clew:reader"), snapshot=store.snapshot(), calculate=not options.plain
            )
            answers = read_given_context(examples, store, reader)
        for example, answer in zip(examples, answers, strict=True):
            result = Result(example, answer.text, answer.abstained)
            kind, source = str(example.meta["kind"]), str(example.meta["source"])
            pair = (tat_exact_match(result) or 0.0, tat_f1(result) or 0.0)
            part = "held out" if example.corpus[0].title in held_out else "seen"
            for key in (("all", part), (kind, part), (f"  from {source}", part)):
                scores[key].append(pair)
            if kind == "arithmetic" and part in {"held out", "seen"}:
                quoted = " ".join(quote.text for quote in answer.quotes)
                cells = {
                    canonical_value(match) for match in _NUMBER.findall(quoted if answer.formula else "")
                }
                found.append(operands_of(example) <= cells)
            if options.verbose:
                print(round(pair[1], 2), kind, "|", example.question, "|", example.answers[0], "|", answer.text,
                      "|", answer.formula, "|", example.meta["derivation"])  # fmt: skip
        seconds = time.perf_counter() - started
    print(f"{len(examples)} questions, {seconds / len(examples) * 1000:.0f} ms each")
    for (name, part), pairs in sorted(scores.items(), key=lambda item: (item[0][1], item[0][0])):
        em, f1 = (bootstrap_interval([pair[number] for pair in pairs]) for number in (0, 1))
        print(
            f"| {part} | {name} | {len(pairs)} | {100 * em.mean:.1f} ({100 * em.low:.1f} to {100 * em.high:.1f}) "
            f"| {100 * f1.mean:.1f} ({100 * f1.low:.1f} to {100 * f1.high:.1f}) |"
        )
    if found:
        print(
            f"all operands among the quoted rows: {100 * sum(found) / len(found):.1f} % of {len(found)} computed"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "data")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("tatqa")
    command.add_argument("--part", choices=("all", "seen", "held-out"), default="all")
    command.add_argument("--pooled", action="store_true")
    command.add_argument(
        "--plain", action="store_true", help="the trained reader alone, without tables as data"
    )
    command.add_argument("--recipe", default="default")
    command.add_argument("--encoder", default="clew:hops")
    command.add_argument("--limit", type=int)
    command.add_argument("--verbose", action="store_true")
    command.set_defaults(run=tatqa)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
