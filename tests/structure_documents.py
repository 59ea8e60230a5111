"""Documents for questions about structure: press releases, annual reports, a sales table, two editions of a lease.

They stand in for files that are not public here; their text is invented. ``benchmarks/data/structure.jsonl`` has the
questions on them (base ``issue``).
"""

import csv
import random
from pathlib import Path

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

_BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=10, leading=13, spaceAfter=8)
_HEADING = ParagraphStyle("heading", fontName="Helvetica-Bold", fontSize=15, leading=19, spaceAfter=8)
_RULED = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("FONTSIZE", (0, 0), (-1, -1), 9)])

#: The tables of the Ulta release, by page: caption, header and rows.
ULTA_TABLES = {
    6: ("Condensed Consolidated Statements of Income", "Net sales", "Cost of sales", "Gross profit"),
    7: ("Condensed Consolidated Balance Sheets", "Cash", "Inventories", "Total assets"),
    8: ("Condensed Consolidated Statements of Cash Flows", "Net income", "Depreciation", "Net cash"),
    9: ("Store Update", "First quarter", "Second quarter", "Third quarter"),
}
_ULTA_TEXT = {
    1: "Net sales of the fourth quarter rose by ten per cent on strong demand for fragrance.",
    2: "For the coming year the outlook is for net sales of 11.7 billion dollars.",
    3: "The company opened twelve stores and bought back shares of 150 million dollars.",
    4: "The conference call begins at 4:30 in the afternoon and can be heard on the web site.",
    5: "Statements about the future are subject to risks that the company cannot foresee.",
}
_ULTA_HEADINGS = {
    1: "Ulta Beauty announces its fourth quarter",
    2: "Outlook",
    3: "Stores and shares",
    4: "Conference call",
    5: "Forward-looking statements",
}
_BOEING_TEXT = {
    1: "The company makes aircraft for airlines and for governments.",
    2: "Deliveries of single-aisle aircraft rose in 2022 from those of 2021.",
    3: "The effective tax rate was 0.6 percent in 2022 and 14.8 percent in 2021.",
    4: "Backlog at the end of the year was 404 billion dollars.",
}
_LEASE = """# Lease of the mill

## Term

The lease runs for five years from the first of May.

## Rent

The rent is {rent} dollars a month, due on the first day.

## Repairs

The tenant keeps the roof and the wheel in repair.
{parking}"""


def write_pdf(path: Path, title: str, pages: list[list[object]]) -> None:
    """Write a PDF with a list of flowables a page."""
    story: list[object] = []
    for page in pages:
        story += [*page, PageBreak()]
    SimpleDocTemplate(str(path), pagesize=A4, title=title, invariant=1).build(story[:-1])


def text_page(heading: str, *paragraphs: str) -> list[object]:
    return [Paragraph(heading, _HEADING), *(Paragraph(text, _BODY) for text in paragraphs)]


def ulta_release(folder: Path) -> None:
    pages = []
    for number in range(1, 10):
        if number in _ULTA_TEXT:
            pages.append(text_page(_ULTA_HEADINGS[number], _ULTA_TEXT[number]))
            continue
        caption, *labels = ULTA_TABLES[number]
        cells = [["In millions", "2023", "2022"]]
        cells += [
            [label, str(100 * number + row), str(90 * number + row)] for row, label in enumerate(labels)
        ]
        table = Table(cells, style=_RULED)
        pages.append(
            # The same heading at the top of every page would be a running header.
            [
                Spacer(1, 90 * (number - 5)),
                *text_page(f"Exhibit {number - 5}"),
                Paragraph(caption, _BODY),
                table,
                Spacer(1, 12),
            ]
        )
    write_pdf(folder / "ULTABEAUTY_2023Q4_EARNINGS.pdf", "Ulta Beauty fourth quarter 2023", pages)


def write_documents(folder: Path) -> Path:
    """Write the documents into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    ulta_release(folder)
    numbers = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen".split()
    amcor = [
        text_page(f"Results, part {word}", f"Amcor tells part {word} of its results.") for word in numbers
    ]
    write_pdf(folder / "AMCOR_2023Q4_EARNINGS.pdf", "Amcor fourth quarter 2023", amcor)
    boeing = [text_page(f"Review, part {number}", text) for number, text in _BOEING_TEXT.items()]
    write_pdf(folder / "BOEING_2022_10K.pdf", "Boeing 2022 annual report", boeing)
    costco = [
        text_page("Costco Wholesale 2021", "Annual report for 2021."),
        text_page("Warehouses", "The company runs warehouses in 2021."),
    ]
    write_pdf(folder / "COSTCO_2021_10K.pdf", "Costco 2021 annual report", costco)
    for company in ("Nike", "Microsoft"):
        leaves = [text_page(f"{company} leaf {n}", f"{company} reports on matter {n}.") for n in range(1, 61)]
        write_pdf(folder / f"{company.upper()}_2023_10K.pdf", f"{company} 2023 annual report", leaves)
    write_sales(folder / "sales.csv")
    old, new = (
        _LEASE.format(rent=800, parking=""),
        _LEASE.format(rent=950, parking="\n## Parking\n\nTwo places in the yard belong to the lease.\n"),
    )
    (folder / "lease-2022.md").write_text(old, encoding="utf-8")
    (folder / "lease-2023.md").write_text(new, encoding="utf-8")
    return folder


def write_sales(path: Path, rows: int = 2_000) -> None:
    """Write a table of invoices; row ``n`` has invoice INV-<10000 + n>."""
    draw = random.Random(1)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["invoice", "date", "customer", "region", "product", "quantity", "amount"])
        for n in range(1, rows + 1):
            customer = draw.choice(["Harbour Foods", "Mill Lane Bakery", "Oak Street Clinic"])
            region, product = (
                draw.choice(["North", "South", "East", "West"]),
                draw.choice(["flour", "salt", "rope"]),
            )
            date = f"2023-{1 + n % 12:02d}-{1 + n % 28:02d}"
            writer.writerow(
                [
                    f"INV-{10_000 + n}",
                    date,
                    customer,
                    region,
                    product,
                    draw.randint(1, 40),
                    f"{draw.uniform(5, 900):.2f}",
                ]
            )
