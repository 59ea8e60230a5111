"""Questions over tables: TAT-QA without a model, and twenty questions over large tables by SQL.

    python benchmarks/tables.py tatqa            # given the context: every row and paragraph of it is evidence
    python benchmarks/tables.py tatqa --fold 1 2 3 4 --model onnx:FOLDER    # a reader of other folds (reading.py)
    python benchmarks/tables.py tatqa --pooled   # one base of all contexts, the default method
    python benchmarks/tables.py large            # a CSV of 100,000 rows, a workbook of ten sheets
    python benchmarks/tables.py filings --kb FOLDER   # FinanceBench's answers with a number, to be graded by eye
    python benchmarks/tables.py years --kb FOLDER     # twenty questions over several years, to be graded by eye
    python benchmarks/tables.py sums             # how often totals add up, and which faults their arithmetic shows

The rules were written with the contexts in sight that the shipped reader was trained on (four fifths of TAT-QA's dev
set, seed 0 of reading.py); nobody looked at the other fifth, ``held out``. There is no official test part here.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import re
import resource
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Hit, Question, Scope, Table
from clew.evaluate.corpora import build_documents, document_location, pool_paragraphs
from clew.evaluate.datasets.tables import read_tatqa
from clew.evaluate.examples import Example, Result
from clew.evaluate.metrics.tables import canonical_value, tat_exact_match, tat_f1
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base.registry import build_method, load_encoder, open_resources
from clew.methods.readers.spans import SpanAnswerReader
from clew.parse.arithmetic import Arithmetic, check_arithmetic
from clew.parse.data_tables import build_data_table
from clew.parse.documents.reader import read_file
from clew.parse.documents.tables import table_from_grid
from clew.store.store import Store

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def titles_of_folds(path: Path, folds: Collection[int]) -> set[str]:
    """Return the contexts of some folds. Those of fold 0 the shipped reader has not seen, and the rules were not
    written for them."""
    contexts = json.loads(path.read_text(encoding="utf-8"))
    order = list(range(len(contexts)))
    random.Random(0).shuffle(order)
    return {
        context["table"]["uid"]
        for position, context in zip(order, contexts, strict=True)
        if position % 5 in folds
    }


def read_given_context(examples: list[Example], store: Store, reader: SpanAnswerReader) -> Iterator[Answer]:
    """Yield the answer of each question from all rows and paragraphs of its own context."""
    by_title = {document.title: document.key for document in store.documents()}
    for example in examples:
        key = by_title[example.corpus[0].title]
        nodes = store.document_nodes(key)
        hits = [Hit(node, 1.0, (node.id,)) for node in nodes if node.kind in {"row", "passage"}]
        yield reader.read(
            Question(example.question, Scope(documents=frozenset({key}))), hits, TrailRecorder()
        )


def operands_of(example: Example) -> set[str]:
    """Return the numbers of a derivation, without counts and constants."""
    numbers = {canonical_value(match) for match in _NUMBER.findall(str(example.meta["derivation"]))}
    return {number for number in numbers if float(number) > 12 or not float(number).is_integer()}


def tatqa(options: argparse.Namespace) -> None:
    """Print TAT-QA's exact match and F1 by type and source of the answer."""
    path = options.data / "tatqa" / "dev.json"
    held_out = titles_of_folds(path, options.fold)
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
    results: dict[str, list[bool]] = defaultdict(list)
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
            resources = open_resources(store)
            reader = replace(SpanAnswerReader.build(resources, options.model), calculate=not options.plain)
            answers = read_given_context(examples, store, reader)
        for example, answer in zip(examples, answers, strict=True):
            result = Result(example, answer.text, answer.abstained)
            kind, source = str(example.meta["kind"]), str(example.meta["source"])
            pair = (tat_exact_match(result) or 0.0, tat_f1(result) or 0.0)
            part = "held out" if example.corpus[0].title in held_out else "seen"
            for key in (("all", part), (kind, part), (f"  from {source}", part)):
                scores[key].append(pair)
            if kind == "arithmetic":
                quoted = " ".join(quote.text for quote in answer.quotes)
                cells = {
                    canonical_value(match) for match in _NUMBER.findall(quoted if answer.formula else "")
                }
                results[part].append(operands_of(example) <= cells)
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
    for part, present in sorted(results.items()):
        share = 100 * sum(present) / len(present)
        print(f"{part}: all operands among the quoted rows: {share:.1f} % of {len(present)} computed")


#: Twenty questions over the generated files, written before anything was run, each with its SQL.
SQL_QUESTIONS = (
    (
        "rows of orders",
        "select count(*) from orders",
    ),
    (
        "total amount by region",
        "select region, round(sum(amount), 2) from orders group by region order by region",
    ),
    (
        "total amount of 2022",
        "select round(sum(amount), 2) from orders where year(day) = 2022",
    ),
    (
        "units by product, five most",
        "select product, sum(units) u from orders group by product order by u desc, product limit 5",
    ),
    (
        "largest order",
        "select order_id, amount from orders order by amount desc, order_id limit 1",
    ),
    (
        "three regions with the highest mean",
        "select region, round(avg(amount), 4) m from orders group by region order by m desc limit 3",
    ),
    (
        "orders over 4,000 in the North",
        "select count(*) from orders where region = 'North' and amount > 4000",
    ),
    (
        "orders by year",
        "select year(day) y, count(*) from orders group by y order by y",
    ),
    (
        "months with most units",
        "select month(day) m, sum(units) u from orders group by m order by u desc, m limit 3",
    ),
    (
        "distinct products in the South",
        "select count(distinct product) from orders where region = 'South'",
    ),
    (
        "share of the East in percent",
        "select round(100 * sum(amount) filter (region = 'East') / sum(amount), 4) from orders",
    ),
    (
        "median amount",
        "select median(amount) from orders",
    ),
    (
        "orders without units",
        "select count(*) from orders where units is null",
    ),
    (
        "returns (negative amounts)",
        "select count(*), round(sum(amount), 2) from orders where amount < 0",
    ),
    (
        "amount by manager",
        "select manager, round(sum(amount), 2) a from orders join chain_regions using (region) group"
        " by manager order by manager",
    ),
    (
        "units in category A",
        "select sum(units) from orders join chain_products using (product) where category = 'A'",
    ),
    (
        "revenue at list price by category",
        "select category, round(sum(units * list_price), 2) from orders join chain_products using"
        " (product) group by category order by category",
    ),
    (
        "stores of the region with most amount",
        "select stores from chain_regions where region = (select region from orders group by region"
        " order by sum(amount) desc limit 1)",
    ),
    (
        "growth of sheet y2022 over y2021",
        "select round(sum(b.sales) / sum(a.sales) - 1, 6) from chain_y2021 a join chain_y2022 b"
        " using (region)",
    ),
    (
        "regions that fell from y2023 to y2024",
        "select a.region from chain_y2023 a join chain_y2024 b using (region) where b.sales <"
        " a.sales order by a.region",
    ),
)
REGIONS = ("North", "South", "East", "West", "Centre")
YEARS = range(2018, 2026)


def write_files(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Write orders.csv (100,000 rows) and chain.xlsx (ten sheets); return their records."""
    rng = random.Random(7)
    products = [
        {"product": f"P{number:03}", "category": "ABC"[number % 3], "list_price": 5 + number * 3 % 97}
        for number in range(60)
    ]
    regions = [
        {"region": region, "manager": f"Manager {5 - number}", "stores": 10 + 7 * number % 23}
        for number, region in enumerate(REGIONS)
    ]
    orders: list[dict[str, Any]] = []
    for number in range(100_000):
        units = None if number % 997 == 0 else rng.randint(1, 40)
        amount = round((units or 0) * rng.uniform(5, 130) * (-1 if number % 501 == 0 else 1), 2)
        day = f"{rng.choice(YEARS)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        orders.append(
            {
                "order_id": f"A{number:06}",
                "day": day,
                "region": rng.choice(REGIONS),
                "product": rng.choice(products)["product"],
                "units": units,
                "amount": amount,
            }
        )
    sheets: dict[str, list[dict[str, Any]]] = {"regions": regions, "products": products}
    for year in YEARS:
        sheets[f"y{year}"] = [{"region": region, "sales": rng.randint(1000, 9999)} for region in REGIONS]
    with (folder / "orders.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(orders[0])
        for order in orders:
            # As exports write them: thousands apart, returns in parentheses.
            shown = f"{abs(order['amount']):,.2f}"
            shown = f"({shown})" if order["amount"] < 0 else shown
            writer.writerow([*list(order.values())[:-1], shown])
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, records in sheets.items():
        sheet = book.create_sheet(name)
        sheet.append(list(records[0]))
        for record in records:
            sheet.append(list(record.values()))
    book.save(folder / "chain.xlsx")
    return {"orders": orders, **{f"chain_{name}": records for name, records in sheets.items()}}


def large(options: argparse.Namespace) -> None:
    """Answer twenty questions by clew sql, and compare with the same queries over the records themselves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        records = write_files(folder / "files")
        oracle = duckdb.connect(":memory:")
        for table, rows in records.items():
            types = [
                "DATE" if key == "day" else "VARCHAR" if isinstance(value, str) else "DOUBLE"
                for key, value in rows[1].items()
            ]
            columns = ", ".join(f"{key} {type}" for key, type in zip(rows[0], types, strict=True))
            oracle.execute(f"CREATE TABLE {table} ({columns})")
            oracle.register("source", {key: np.array([row[key] for row in rows], object) for key in rows[0]})
            oracle.execute(f"INSERT INTO {table} SELECT * FROM source")
            oracle.unregister("source")
        started = time.perf_counter()
        with clew.open(folder / "base", create=True) as base:
            base.encoding.set(None)
            base.add([folder / "files"])
            print(f"added in {time.perf_counter() - started:.1f} s")
            right, seconds = 0, []
            for question, sql in SQL_QUESTIONS:
                result = base.tables.query(sql)
                seconds.append(result.seconds)
                expected = oracle.execute(sql).fetchall()
                same = len(expected) == len(result.rows) and all(
                    same_value(value, other)
                    for row, others in zip(result.rows, expected, strict=True)
                    for value, other in zip(row, others, strict=True)
                )
                right += same
                print(
                    f"{'right' if same else 'WRONG'}  {result.seconds:5.2f} s  {question}: {result.rows[:2]}"
                )
                if not same:
                    print("   expected", expected[:3])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{right} of {len(SQL_QUESTIONS)} right; median {np.median(seconds):.2f} s; peak memory {peak:.0f} MiB"
    )


def filings(options: argparse.Namespace) -> None:
    """Print the answers to FinanceBench's shared questions whose answer has a number, each within its filing."""
    with clew.open(options.kb) as base:
        base.encoding.set(options.encoder)
        for line in (
            (options.data / "financebench" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        ):
            record = json.loads(line)
            if not re.search(r"\d", re.sub(r"FY ?\d+|20\d\d|August 30|Q\d", "", record["answer"])):
                continue
            answer = base.ask(
                record["question"], recipe=options.recipe, documents=[f"{record['doc_name']}.pdf"]
            )
            print(
                f"\n{record['doc_name']}: {record['question']}\n  gold: {' '.join(record['answer'].split())[:200]}"
            )
            print(f"  clew: {answer.text[:200]!r}  confidence {answer.confidence}  {answer.formula}")
            for quote in answer.quotes[:4]:
                print(f"    quote: {quote.text[:220]}")


def years(options: argparse.Namespace) -> None:
    """Print the answers to questions over several years, each within its filing, beside those worked by hand."""
    with clew.open(options.kb) as base:
        base.encoding.set(options.encoder)
        for line in options.questions.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            started = time.perf_counter()
            answer = base.ask(record["question"], recipe=options.recipe, documents=[record["file"]])
            seconds = time.perf_counter() - started
            print(f"\n{record['file']}: {record['question']}\n  gold: {record['answer']}")
            shown = "refused" if answer.abstained else answer.text[:160]
            print(f"  clew: {shown!r}  {answer.formula}  ({seconds:.1f} s)")
            for quote in answer.quotes[:4] if not answer.abstained else ():
                print(f"    quote: {quote.text[:160]}")


def sums(options: argparse.Namespace) -> None:
    """Print for the tables of the filings and TAT-QA how many totals and changes follow from their parts, which
    headers this contradicts, and of three faults put in by us how many it shows."""
    filings = [
        node.table
        for path in sorted((options.data / "financebench" / "pdfs").glob("*.pdf"))
        for node in read_file(path).nodes
        if node.table is not None
    ]
    contexts = json.loads((options.data / "tatqa" / "dev.json").read_text(encoding="utf-8"))
    grids = [[tuple(row) for row in context["table"]["table"]] for context in contexts]
    tat = [build_data_table(table_from_grid(grid, frozenset())).table for grid in grids]
    for name, tables in (("filings", filings), ("TAT-QA", tat)):
        counts: Counter[str] = Counter()
        faults: Counter[str] = Counter()
        for table in tables:
            if options.verbose and table.headers_uncertain:
                print("uncertain:", table.caption, table.header)
            if table.headers_uncertain:
                counts["uncertain"] += 1
                continue
            checks = check_arithmetic(table)
            counts["contradicted"] += checks.contradicts_headers
            counts.update(f"total {total.outcome}" for total in checks.totals)
            counts.update(f"column {'right' if check.is_confirmed else 'not'}" for check in checks.columns)
            for fault, changed in put_faults(table, checks):
                noticed = check_arithmetic(changed).contradicts_headers
                faults.update({f"{fault}": 1, f"{fault}, shown": noticed})
        print(f"{name}: {len(tables)} tables, {dict(sorted(counts.items()))}")
        print(f"  faults: {dict(sorted(faults.items()))}")


def put_faults(table: Table, checks: Arithmetic) -> Iterator[tuple[str, Table]]:
    """Yield copies of a table with the headers of two years swapped, all headers a column further, or the last two
    numbers of a total swapped, where the arithmetic of the table holds."""
    changes = [check for check in checks.columns if check.is_confirmed and len(check.sources) == 2]
    head, *body = table.columns
    for check in changes:
        first, second = check.sources
        columns = list(table.columns)
        columns[first], columns[second] = columns[second], columns[first]
        if all(re.search(r"20\d\d", " ".join(columns[n].path)) for n in check.sources):
            yield "years swapped", replace(table, columns=tuple(columns))
    if changes:
        yield "headers shifted", replace(table, columns=(head, *body[1:], *body[:1]))
        yield "headers shifted", replace(table, columns=(head, *body[-1:], *body[:-1]))
    for total in checks.totals:
        if total.outcome == "adds up" and len(total.agreeing) > 2:
            first, second = total.agreeing[-2:]
            row = list(table.rows[total.row])
            row[first], row[second] = row[second], row[first]
            rows = (*table.rows[: total.row], tuple(row), *table.rows[total.row + 1 :])
            if rows != table.rows:
                yield "numbers swapped", replace(table, rows=rows)


def same_value(value: Any, other: Any) -> bool:
    """Return whether two values of results are the same; numbers to nine digits."""
    if isinstance(value, int | float) and isinstance(other, int | float):
        return math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-6)
    return bool(value == other)


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
        "--fold", type=int, nargs="+", default=[0], help="the fifths of the contexts that are held out"
    )
    command.add_argument("--model", default="clew:reader", help="the reader, trained on the other folds")
    command.add_argument(
        "--plain", action="store_true", help="the trained reader alone, without tables as data"
    )
    command.add_argument("--recipe", default="default")
    command.add_argument("--encoder", default="clew:hops")
    command.add_argument("--limit", type=int)
    command.add_argument("--verbose", action="store_true")
    command.set_defaults(run=tatqa)
    command = commands.add_parser("filings")
    command.add_argument("--kb", type=Path, required=True)
    command.add_argument("--recipe", default="default")
    command.add_argument("--encoder", default="clew:hops")
    command.set_defaults(run=filings)
    command = commands.add_parser("years")
    command.add_argument("--kb", type=Path, required=True)
    command.add_argument(
        "--questions", type=Path, default=Path(__file__).parent / "data" / "year_questions.jsonl"
    )
    command.add_argument("--recipe", default="default")
    command.add_argument("--encoder", default="clew:hops")
    command.set_defaults(run=years)
    command = commands.add_parser("sums")
    command.add_argument("--verbose", action="store_true")
    command.set_defaults(run=sums)
    commands.add_parser("large").set_defaults(run=large)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
