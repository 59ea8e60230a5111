"""The tables of a base as data: every format, removal, export, and a workbook joined by SQL."""

import csv
from pathlib import Path

import openpyxl
import pytest
from pyarrow import parquet

import clew
from clew.core.errors import NotFound, UsageError
from clew.core.trail import TrailRecorder
from clew.core.types import Box, Question
from command_line import run
from span_models import NoReader
from span_readers import span_reader

pytest.importorskip("duckdb")

SAMPLES = Path(__file__).parents[2] / "samples" / "documents"
SALES = [
    ["Region", "2023", "2022"],
    ["North", "1,200", "900"],
    ["South", "(300)", "—"],
    ["Total", "900", "900"],
]


def write_files(folder):
    """Write the same table in Markdown, HTML, CSV, XLSX and DOCX."""
    import docx

    folder.mkdir()
    markdown = ["| " + " | ".join(row) + " |" for row in SALES]
    markdown.insert(1, "|---|---|---|")
    (folder / "notes.md").write_text("# Notes\n\n" + "\n".join(markdown) + "\n")
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in SALES[1:])
    head = "".join(f"<th>{cell}</th>" for cell in SALES[0])
    (folder / "page.html").write_text(f"<html><body><table><tr>{head}</tr>{rows}</table></body></html>")
    with (folder / "sales.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows(SALES)
    book = openpyxl.Workbook()
    book.active.title = "Sales"
    for row in SALES:
        book.active.append(row)
    staff = book.create_sheet("Staff")
    for row in (["Region", "Chief", "Posts"], ["North", "Ada", 12], ["South", "Bo", 7]):
        staff.append(row)
    book.save(folder / "book.xlsx")
    document = docx.Document()
    document.add_paragraph("Sales of the year.")
    table = document.add_table(rows=0, cols=3)
    for row in SALES:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.save(folder / "letter.docx")
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory, without_encoder):
    folder = tmp_path_factory.mktemp("tables")
    with clew.open(folder / "base", create=True) as base:
        base.add([write_files(folder / "files")])
        yield base


@pytest.mark.slow
def test_every_format_gives_the_same_columns(base):
    tables = {table.name: table for table in base.tables.list()}
    assert list(tables) == ["book_sales", "book_staff", "letter", "notes", "page", "sales"]
    for name in ("book_sales", "letter", "notes", "page", "sales"):
        table = tables[name]
        assert [(column.name, column.type) for column in table.columns] == [
            ("region", "text"),
            ("2023", "number"),
            ("2022", "number"),
        ]
        assert table.values(1) == [1200, -300, 900]
        assert table.values(2) == [900, None, 900]
        assert [row.is_total for row in table.rows] == [False, False, True]


@pytest.mark.slow
def test_the_source_of_a_row_is_its_node(base):
    for table in base.tables.list():
        for row in table.rows:
            node = base.node(row.id)
            assert node.kind == "row" and node.parent == table.id
            assert all(cell in node.text for cell in row.cells if cell)


@pytest.mark.slow
def test_sheets_are_joined(base):
    result = base.tables.query(
        'select chief, "2023" from book_sales join book_staff using (region) order by chief'
    )
    assert result.rows == (("Ada", 1200.0), ("Bo", -300.0))
    assert [[base.node(id).text for id in ids] for ids in result.sources][1][1].endswith(
        "South: Chief: Bo; Posts: 7"
    )


@pytest.mark.slow
def test_a_removed_document_takes_its_tables(tmp_path, without_encoder):
    folder = write_files(tmp_path / "files")
    with (
        clew.open(tmp_path / "both", create=True) as both,
        clew.open(tmp_path / "never", create=True) as never,
    ):
        both.add([folder])
        both.remove("sales.csv", "book.xlsx")
        never.add([folder / "letter.docx", folder / "notes.md", folder / "page.html"])
        names = [table.name for table in both.tables.list()]
        assert names == [table.name for table in never.tables.list()] == ["letter", "notes", "page"]
        assert both.info().digest == never.info().digest
        query = 'select region, "2023", _row from notes union all select region, "2022", _row from page'
        assert both.tables.query(query).rows == never.tables.query(query).rows
        with pytest.raises(UsageError, match="no table named 'sales'"):
            both.tables.query("select * from sales")
        results = [[hit.node.id for hit in base.search("North sales 1,200")] for base in (both, never)]
        assert results[0] == results[1]


def test_a_base_without_tables(tmp_path, without_encoder):
    with clew.open(tmp_path / "empty", create=True) as base:
        assert base.tables.list() == []
        with pytest.raises(NotFound):
            base.tables.get("sales")


def test_export(base, tmp_path):
    base.tables.export("sales", tmp_path / "s.csv")
    with (tmp_path / "s.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == SALES
    base.tables.export("SALES", tmp_path / "s.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "s.xlsx").active.values)
    assert rows[:3] == [("Region", "2023", "2022"), ("North", 1200, 900), ("South", -300, "—")]
    base.tables.export("sales", tmp_path / "s.parquet")
    columns = parquet.read_table(tmp_path / "s.parquet").to_pydict()
    assert columns["2022"] == [900, None, 900]
    assert columns["_total"] == [False, False, True]
    with pytest.raises(UsageError, match="cannot export"):
        base.tables.export("sales", tmp_path / "s.doc")


def test_commands(base, tmp_path):
    kb = ("--kb", base.path)
    assert "book_staff  (2 rows, 3 columns)  book.xlsx" in run("tables", *kb).stdout
    assert "notes" not in run("tables", "-d", "book.xlsx", *kb).stdout
    shown = run("tables", "sales", "--rows", "1", *kb)
    assert "2023  number" in shown.stdout and "North" in shown.stdout and "South" not in shown.stdout
    assert "2 more" in shown.stderr
    assert '"type": "number"' in run("tables", "sales", "--json", *kb).stdout
    out = tmp_path / "out.csv"
    assert "3 rows written" in run("tables", "sales", "--export", out, *kb).stdout
    answer = run("sql", 'select region, "2023" / 7 as x from sales where not _total', "--sources", *kb).stdout
    assert "171.4286" in answer and ":2" in answer
    assert "no rows" in run("sql", "select region from sales where region = 'x'", *kb).stdout
    limited = run("sql", "select distinct region from sales", "--limit", "1", "--sources", *kb)
    assert "there are more" in limited.stderr and "cannot be traced" in limited.stderr
    assert '"more": false' in run("sql", "select 1", "--json", *kb).stdout
    assert "is refused" in run("sql", "drop table sales", *kb, status=2).stderr


def test_the_same_table_of_several_years_is_found(tmp_path, without_encoder):
    body = "|---|---|\n| Revenue (1) | 2 |\n| Costs | 3 |\n| Profit | 5 |\n"
    for year in (2021, 2022, 2023):
        crew = f"| | {year} |\n|---|---|\n| Ships | 4 |\n| Crew | 8 |\n"
        (tmp_path / f"ferry-{year}.md").write_text(f"# Report\n\n| | {year} |\n{body}\nText.\n\n{crew}")
    (tmp_path / "tram-2022.md").write_text(f"| | 2022 |\n{body}")
    (tmp_path / "notes.md").write_text(f"| | 2020 |\n{body}")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([tmp_path])
        for number in (1, 2):
            editions = base.tables.editions(f"ferry_2022_t{number}")
            assert [table.name for table in editions] == [f"ferry_2021_t{number}", f"ferry_2023_t{number}"]
        assert base.tables.editions("notes") == () and base.tables.editions("tram_2022") == ()
    assert (
        "other editions: ferry_2021_t1, ferry_2023_t1"
        in run("tables", "ferry_2022_t1", "--kb", tmp_path / "kb").output
    )
    assert '"editions": []' in run("tables", "notes", "--json", "--kb", tmp_path / "kb").output


def text_in(box: Box, path) -> str:
    """Return the text that stands in a box of a page of a PDF."""
    import pypdfium2 as pdfium

    pdf = pdfium.PdfDocument(str(path))
    try:
        page = pdf[box.page - 1]
        height = page.get_size()[1]
        edges = {"left": box.x0, "right": box.x1, "top": height - box.y0, "bottom": height - box.y1}
        return page.get_textpage().get_text_bounded(**edges).strip()
    finally:
        pdf.close()


def test_cells_of_a_pdf_are_boxed_in_answers_and_in_results_of_sql(tmp_path, without_encoder) -> None:
    path = SAMPLES / "oskell-passage-annual-report-1931.pdf"
    with clew.open(tmp_path / "base", create=True) as base:
        base.add([path])
        question = Question("What was the percentage change in total revenue from 1930 to 1931?")
        hits = base.search(question.text, k=10)
        answer = span_reader(NoReader(), snapshot=base.store.snapshot()).read(question, hits, TrailRecorder())
        statement = "oskell_passage_annual_report_1931_statement_of_income"
        total = base.tables.query(
            f'select "1931" - "1930" from {statement} where _total and label ilike \'%rev%\''
        )
        other = base.tables.query(f"select count(*) from {statement}")
    assert answer.text == "-1.31%" and "Computed of 127,038, 125,378, from 1 row of" in answer.formula
    boxes = [box for quote in answer.quotes for box in quote.boxes]
    assert [text_in(box, path) for box in boxes] == ["127,038", "125,378"]
    shown = answer.to_dict()["quotes"][0]
    assert shown["boxes"] == [[6, *boxes[0].to_list()[1:]]]
    # The row is boxed as a whole, and its cells within it.
    row = next(hit.node for hit in answer.evidence if hit.node.id == shown["node"])
    assert text_in(row.boxes[0], path).split() == ["Total", "revenue", "125,378", "127,038"]
    cells = {
        (cell["column"], text_in(Box(cell["page"], *cell["box"]), path)) for cell in total.to_dict()["boxes"]
    }
    assert cells == {("1931", "125,378"), ("1930", "127,038")}
    assert other.to_dict()["boxes"] == []
