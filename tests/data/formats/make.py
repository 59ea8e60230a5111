"""Writes the source in every format, with programs other than clew: pandoc, LibreOffice, Python's own mail and zip.

Needs pandoc and soffice on the path. The Outlook message is written by the tests (``tests/compound_writer.py``).
"""

from __future__ import annotations

import json
import mailbox
import re
import subprocess
import zipfile
from email.message import EmailMessage
from pathlib import Path

HERE = Path(__file__).parent


def run(*command: str | Path) -> str:
    return subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout


def sections(markdown: str) -> list[dict[str, object]]:
    """Return the sections with their paragraphs, list items and tables."""
    result: list[dict[str, object]] = []
    for part in re.split(r"^#+ ", markdown.split("---", 2)[2], flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        lines = [line for line in body.strip().split("\n") if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        texts = [text.removeprefix("- ") for text in body.split("\n") if text and not text.startswith("|")]
        section: dict[str, object] = {"name": heading, "facts": texts}
        if cells:
            names, _, *rows = cells
            section["prices"] = [dict(zip(names, row, strict=True)) for row in rows]
        result.append(section)
    return result


def write_mails(source: str) -> None:
    """Write the source as the HTML text of a mail; as an attachment of a second; and both as a mailbox."""
    mails = []
    for number in range(2):
        mail = EmailMessage()
        mail["Subject"] = "The Harbour of Brannick"
        mail["From"] = "Ines Calder <ines@example.org>"
        mail["To"] = "jory@example.org"
        mail["Date"] = f"Fri, 0{3 + number} May 2024 14:05:00 +0200"
        mail["Message-ID"] = f"<{number}@example.org>"
        mail.set_content("See the HTML." if number == 0 else "See the file.")
        if number == 0:
            mail.add_alternative(run("pandoc", "source.md", "-t", "html", "-s"), subtype="html")
        else:
            mail.add_attachment(source.encode(), maintype="text", subtype="markdown", filename="brannick.md")
        mail.set_boundary(f"boundary{number}") if mail.is_multipart() else None
        mails.append(mail)
    (HERE / "brannick.eml").write_bytes(mails[0].as_bytes())
    (HERE / "attached.eml").write_bytes(mails[1].as_bytes())
    (HERE / "brannick.mbox").unlink(missing_ok=True)
    box = mailbox.mbox(HERE / "brannick.mbox")
    for mail in mails[:1]:
        box.add(mail)
    box.close()


def main() -> None:
    source = (HERE / "source.md").read_text()
    for suffix in ("docx", "pptx", "epub", "ipynb", "tex", "html"):
        extra = ["-s"] if suffix in {"tex", "html", "ipynb"} else []
        run("pandoc", "source.md", *extra, "-o", f"brannick.{suffix}")
    for kind, start in (("odt", "docx"), ("rtf", "docx"), ("odp", "pptx")):
        run("soffice", "--headless", "--convert-to", kind, f"brannick.{start}")
    parts = sections(source)
    rows = [f'"{part["name"]}","{fact}"' for part in parts for fact in part["facts"]]  # type: ignore[attr-defined]
    prices = next(part["prices"] for part in parts if "prices" in part)
    table = ["Fish,1910,1920,1930"] + [",".join(row.values()) for row in prices]  # type: ignore[attr-defined]
    (HERE / "brannick.csv").write_text("\n".join(["Subject,Fact", *rows, "", *table]) + "\n")
    run("soffice", "--headless", "--convert-to", "ods", "brannick.csv")
    run("soffice", "--headless", "--convert-to", "xlsx", "brannick.csv")
    (HERE / "brannick.json").write_text(
        json.dumps({"title": "The Harbour of Brannick", "sections": parts}, indent=1)
    )
    records = [{"section": part["name"], "text": fact} for part in parts for fact in part["facts"]]  # type: ignore
    records += [{"section": "Prices", "text": json.dumps(row)} for row in prices]  # type: ignore[attr-defined]
    (HERE / "brannick.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    write_mails(source)
    with zipfile.ZipFile(HERE / "brannick.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(HERE / "source.md", "papers/brannick.md")


if __name__ == "__main__":
    main()
