"""Small worlds of tables with questions and their SQL, as ``clew train plans`` reads them."""

from __future__ import annotations

import json
from pathlib import Path

#: The rows of every world, under headers of its own.
ROWS = [
    ("A1", "Norway", "Lamp", "2", "80,5"),
    ("A2", "Sweden", "Chair", "1", "219,0"),
    ("A3", "Norway", "Chair", "4", "876,0"),
    ("A4", "Denmark", "Lamp", "3", ""),
]
HEADERS = {
    "orders": ("Order", "Country", "Product", "Quantity", "Total"),
    "loans": ("Loan", "Branch", "Title", "Days", "Fine"),
    "trips": ("Trip", "Harbour", "Cargo", "Tons", "Freight"),
    "sales": ("Receipt", "Shop", "Article", "Pieces", "Takings"),
    "visits": ("Visit", "Ward", "Reason", "Beds", "Charge"),
}


def write_world(folder: Path, name: str) -> Path:
    """Return the folder of a world below ``folder``, written."""
    header = HEADERS[name]
    (folder / name / "tables").mkdir(parents=True)
    lines = ["\t".join(row) for row in (header, *ROWS)]
    (folder / name / "tables" / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    code, place, thing, number, amount = (f'"{column}"' for column in header)
    asked: list[tuple[str, str, list[list[str]], str]] = [
        (f"What is the {header[4]} of A3?", f"select {amount} from {name} where {code} = 'A3'", [["876.0"]], "cell"),
        (f"How many {name} of Norway?", f"select count(*) from {name} where {place} = 'Norway'", [["2"]], "count"),
        (f"total {header[3]} of Chair", f"select sum({number}) from {name} where {thing} = 'Chair'", [["5"]], "sum"),
        (
            f"Which {header[0]} has the most {header[3]}?",
            f"select {code} from {name} order by {number} desc limit 1",
            [["A3"]],
            "superlative",
        ),
        (f"{header[4]} of A4", f"select {amount} from {name} where {code} = 'A4'", [[""]], "empty"),
        ("Who painted the ceiling?", "", [], "none"),
    ]  # fmt: skip
    rows = [
        {"question": question, "sql": sql, "result": result, "kind": kind, "wording": "plain"}
        for question, sql, result, kind in asked
    ]
    (folder / name / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return folder / name
