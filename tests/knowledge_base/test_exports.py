"""Tables and grids as files of spreadsheets: no cell is a formula, numbers are those of the document."""

import csv
import json
from dataclasses import asdict

import openpyxl
import pytest

import clew
from clew.knowledge_base.grid import Grid, GridCell

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "@SUM(A1:A9)",
    "+1+cmd|'x'!A0",
    "-5+A1",
    "＝1+1",
    '=HYPERLINK("http://evil","x")',
]
PLAIN = ["-5", "+7", "-1.25", "-3 %", "-1e-5", "-", "1,234", "a=b", "x@y.org"]


@pytest.fixture
def base(tmp_path, without_encoder):
    with (tmp_path / "sales.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["region", "=1+1", "amount"])
        for number, cell in enumerate([*FORMULAS, *PLAIN]):
            writer.writerow([f"row {number}", cell, -number])
    with clew.open(tmp_path / "kb", create=True) as opened:
        opened.add([tmp_path / "sales.csv"], workers=1)
        yield opened


def test_a_table_as_csv_has_its_cells_and_no_formula(base, tmp_path) -> None:
    base.tables.export("sales", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == ["region", "'=1+1", "amount"]
    assert [row[1] for row in rows] == [*(f"'{cell}" for cell in FORMULAS), *PLAIN]
    assert [float(row[2]) for row in rows] == [float(-number) for number in range(len(rows))]


def test_a_table_as_xlsx_has_texts_for_formulas(base, tmp_path) -> None:
    base.tables.export("sales", tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    kinds = {sheet.cell(row, column).data_type for row in range(1, sheet.max_row + 1) for column in (1, 2, 3)}
    assert "f" not in kinds and sheet.cell(1, 2).value == "=1+1"
    assert [sheet.cell(row, 2).value for row in range(2, 8)] == FORMULAS


def test_a_grid_has_no_formula_and_no_control(base, tmp_path) -> None:
    grid = Grid(base, ["=1+1"], tmp_path / "cells.jsonl")
    (document,) = grid.documents
    cells = [
        GridCell(document.key, "=1+1", grid.setting, answer, 0.5, "@SUM(A1)\x1b[2J", "+1+A1")
        for answer in ["-5", "=1+1"]
    ]
    for cell, answer in zip(cells, ["-5", "'=1+1"], strict=True):
        (tmp_path / "cells.jsonl").write_text(json.dumps(asdict(cell)) + "\n")
        grid = Grid(base, ["=1+1"], tmp_path / "cells.jsonl")
        grid.write(tmp_path / "grid.csv")
        with (tmp_path / "grid.csv").open(encoding="utf-8", newline="") as file:
            header, row = list(csv.reader(file))
        assert header == ["document", "'=1+1", "quote", "place"]
        assert row[1] == answer and row[2].startswith("'@SUM") and row[3] == "'+1+A1"
        grid.write(tmp_path / "grid.xlsx")
        sheet = openpyxl.load_workbook(tmp_path / "grid.xlsx")["quotes"]
        assert [sheet.cell(2, column).data_type for column in range(1, 6)] == ["s"] * 5
        assert "\x1b" not in sheet.cell(2, 4).value
