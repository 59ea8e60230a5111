"""Thirty plain questions over three spreadsheets, answered without a language model.

    python benchmarks/table_words.py
    python benchmarks/table_words.py --method default    # through the router, as `clew ask` does
    python benchmarks/table_words.py --small 10          # SmolLM2-135M writes the SQL of the first ten instead

The files are generated: 20,000 orders (CSV), 400 employees with their departments (XLSX, two sheets), 6,000 hotel
bookings (CSV). The questions (benchmarks/data/table_questions.jsonl) were written before the parser was; three of
them have no answer in the files. What is right is the same question in SQL, asked of the records that the files were
written from.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import clew
from clew import KnowledgeBase
from clew.core.cell_values import read_cell
from clew.core.errors import ClewError
from clew.core.prompts.templates import load_prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Answer
from clew.methods.tables.sql_writer import SqlWriter
from clew.models import create_language_model
from llama_server import llama_server

QUESTIONS = Path(__file__).parent / "data" / "table_questions.jsonl"
PRODUCTS = {
    "Desk lamp": 39.9, "Standing desk": 489.0, "Office chair": 219.5, "Bookshelf": 129.0, "Filing cabinet": 179.0,
    "Monitor arm": 89.0, "Whiteboard": 74.5, "Footrest": 34.0,
}  # fmt: skip
COUNTRIES = {"Norway": 5, "Sweden": 8, "Denmark": 6, "Finland": 4, "Germany": 9, "Iceland": 1}
STATUSES = {"Delivered": 80, "Returned": 9, "Cancelled": 6, "Pending": 5}
OFFICES = ("Bergen", "Oslo", "Malmö", "Aarhus")
TITLES = {
    "Finance": ("Accountant", "Controller"),
    "Engineering": ("Engineer", "Senior engineer"),
    "Research": ("Scientist", "Engineer"),
    "Sales": ("Account manager", "Sales assistant"),
}
FIRST_NAMES = (
    "Anna Björn Carl Dina Emil Frida Gustav Hanne Ivar Julie Knut Lena Mats Nora Olav Pia Rolf Siri Tor Unni"
)
LAST_NAMES = (
    "Aas Berg Dahl Eide Foss Gran Hagen Iversen Juul Krog Lund Moe Nygaard Olsen Ruud Solberg Strand Thorsen Vik"
    " Wold"
)
HOTELS = {
    "Fjord Inn": "Bergen", "Harbour House": "Bergen", "Grand Oslo": "Oslo", "Station Hotel": "Oslo",
    "Canal Rooms": "Copenhagen",
}  # fmt: skip


def draw_records(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each file or sheet."""
    rng = random.Random(seed)
    orders = []
    for number in range(20_000):
        product = rng.choices(list(PRODUCTS), range(8, 0, -1))[0]
        quantity = rng.randint(1, 6)
        price = round(PRODUCTS[product] * rng.choice((1, 1, 1, 0.9)), 2)
        orders.append(
            {
                "Order ID": f"SO-{100000 + number}",
                "Order Date": date(2021, 1, 1) + timedelta(days=rng.randrange(1460)),
                "Customer": f"Customer {rng.randrange(2400):04}",
                "Ship Country": rng.choices(list(COUNTRIES), list(COUNTRIES.values()))[0],
                "Product": product,
                "Quantity": quantity,
                "Unit Price": price,
                "Order Total": round(quantity * price, 2),
                "Status": rng.choices(list(STATUSES), list(STATUSES.values()))[0],
            }
        )
    employees = [
        {
            "Employee ID": 1000 + number,
            "Name": f"{first} {last}",
            "Department": (department := rng.choice(list(TITLES))),
            "Job Title": rng.choice(TITLES[department]),
            "Office": rng.choice(OFFICES),
            "Hire Date": date(2008, 1, 1) + timedelta(days=rng.randrange(6000)),
            "Annual Salary (EUR)": rng.randrange(32_000, 128_000),
            "Part-time": rng.choices(("yes", "no"), (1, 5))[0],
        }
        for number, (first, last) in enumerate(
            (first, last) for first in FIRST_NAMES.split() for last in LAST_NAMES.split()
        )
    ]
    departments = [
        {"Department": name, "Head": f"{name} head", "Budget (EUR thousand)": rng.randrange(400, 9000)}
        for name in TITLES
    ]
    bookings = []
    for number in range(6_000):
        hotel = rng.choices(list(HOTELS), (5, 4, 6, 3, 2))[0]
        bookings.append(
            {
                "Booking": f"B{number:05}",
                "Hotel": hotel,
                "City": HOTELS[hotel],
                "Arrival": date(2023, 1, 1) + timedelta(days=rng.randrange(730)),
                "Nights": rng.randint(1, 9),
                "Guests": rng.randint(1, 4),
                "Rate per Night": rng.randrange(70, 260),
                "Channel": rng.choice(("Direct", "Expedia", "Booking.com", "Travel agent")),
                "Cancelled": rng.choices(("yes", "no"), (1, 7))[0],
            }
        )
    return {
        "web_orders": orders,
        "staff_employees": employees,
        "staff_departments": departments,
        "hotel_bookings": bookings,
    }


def write_files(records: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Write web_orders.csv, hotel_bookings.csv and staff.xlsx."""
    for name in ("web_orders", "hotel_bookings"):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(records[name][0]))
            writer.writeheader()
            writer.writerows(records[name])
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in ("employees", "departments"):
        sheet = book.create_sheet(name.title())
        rows = records[f"staff_{name}"]
        sheet.append(list(rows[0]))
        for row in rows:
            sheet.append(list(row.values()))
    book.save(folder / "staff.xlsx")


def load_records(records: dict[str, list[dict[str, Any]]]) -> duckdb.DuckDBPyConnection:
    """Return a database of the records, which knows nothing of the files."""
    oracle = duckdb.connect(":memory:")
    types = {str: "VARCHAR", date: "DATE", int: "DOUBLE", float: "DOUBLE"}
    for table, rows in records.items():
        columns = ", ".join(f'"{key}" {types[type(value)]}' for key, value in rows[0].items())
        oracle.execute(f"CREATE TABLE {table} ({columns})")
        oracle.register("source", {key: np.array([row[key] for row in rows], object) for key in rows[0]})
        oracle.execute(f"INSERT INTO {table} SELECT * FROM source")
        oracle.unregister("source")
    return oracle


def says(answer: Answer, expected: list[tuple[Any, ...]]) -> bool:
    """Return whether an answer gives the rows of the result: every value of each in one part, in their order where
    there is one value a row, and no other parts."""
    parts = list(answer.values) or [answer.text]
    if len(parts) != len(expected):
        return False
    if len(expected[0]) == 1:
        return all(has_value(part, row[0]) for part, row in zip(parts, expected, strict=True))
    return all(any(all(has_value(part, value) for value in row) for part in parts) for row in expected)


def has_value(text: str, value: Any) -> bool:
    """Return whether a text has a value: a name as it is, a number to half a unit of its last printed digit."""
    if isinstance(value, date):
        value = value.isoformat()
    if isinstance(value, str):
        return value.casefold() in text.casefold()
    words = [read_cell(word.strip(";:,%")) for word in text.split()]
    for word in words:
        decimals = len(word.text.partition(".")[2])
        if word.number is not None and math.isclose(word.number, value, abs_tol=0.51 * 10**-decimals):
            return True
    return False


def ask_small_model(base: KnowledgeBase, lines: list[str], oracle: duckdb.DuckDBPyConnection) -> Counter[str]:
    """Have a real, very small model write the SQL of questions over all tables of a base; print and count what came
    of each. Any exception but one of clew's own ends the program."""
    counts: Counter[str] = Counter()
    tables = base.tables.list()
    with llama_server(4096) as name:
        writer = SqlWriter(create_language_model(name), load_prompt("table-sql"))
        for line in lines:
            entry = json.loads(line)
            recorder = TrailRecorder()
            try:
                answer, problem = writer.answer(entry["question"], tables, recorder)
            except ClewError as error:
                answer, problem = None, error.problem
            expected = oracle.execute(entry["sql"]).fetchall() if entry["sql"] else []
            if answer is None:
                outcome = "refused"
            else:
                shown = Answer("; ".join(answer.values), values=answer.values)
                outcome = "right" if expected and says(shown, expected) else "WRONG"
            counts[outcome] += 1
            print(f"{outcome}  {entry['question']}: {answer.values[:3] if answer else problem}")
            print(f"    {answer.sql if answer else ''}", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--method", default="tables")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument(
        "--small", type=int, metavar="N", help="a small model writes the SQL of the first N questions"
    )
    options = parser.parse_args()
    records = draw_records(options.seed)
    oracle = load_records(records)
    counts = {"right": 0, "WRONG": 0, "refused": 0, "rightly refused": 0}
    seconds = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        write_files(records, folder / "files")
        with clew.open(folder / "base", create=True) as base:
            base.encoding.set(None)
            base.add([folder / "files"])
            if options.small:
                lines = options.questions.read_text(encoding="utf-8").splitlines()[: options.small]
                print(dict(ask_small_model(base, lines, oracle)))
                return
            for line in options.questions.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                started = time.perf_counter()
                answer = base.ask(entry["question"], recipe=options.method)
                seconds.append(time.perf_counter() - started)
                expected = oracle.execute(entry["sql"]).fetchall() if entry["sql"] else []
                if answer.abstained:
                    outcome = "refused" if expected else "rightly refused"
                else:
                    outcome = "right" if expected and says(answer, expected) else "WRONG"
                counts[outcome] += 1
                print(f"{outcome}  {seconds[-1]:.2f} s  {entry['question']}: {answer.text[:110]}")
                if answer.formula:
                    print(f"    {answer.formula}")
                if outcome == "WRONG":
                    print(f"    expected {expected[:4]}")
    print(counts, f"median {np.median(seconds):.2f} s")


if __name__ == "__main__":
    main()
