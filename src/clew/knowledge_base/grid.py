"""Documents x questions: every question asked of every document alone, with a verbatim quote in each filled cell.

Cells are written to a file as they are answered (a JSON object a line), so that a grid that was stopped continues,
and one whose documents or questions grew asks only what is new. A document that changed has another key and is asked
again. A cell in which the document does not hold the answer is empty.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from clew.core.errors import MissingExtra, UsageError
from clew.core.sources import Source, Sources, expand_path, list_texts
from clew.core.text import clean_text, escape_formula
from clew.core.types import Answer, Document, Usage
from clew.knowledge_base.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel

#: What ends a file's name, by the form that is written.
SUFFIXES = (".xlsx", ".csv")
#: Characters that XML, and so a workbook, cannot hold.
#: Characters of a column in a workbook, and of a cell's note.
_WIDTH, _NOTE = 40, 2_000


@dataclass(frozen=True, slots=True)
class GridCell:
    """An answer in the grid. ``answer``, ``quote`` and ``place`` are "" where the document does not hold it.

    ``document`` is the document's key; ``setting`` is the recipe and the model that answered.
    """

    document: str
    question: str
    setting: str
    answer: str = ""
    confidence: float | None = None
    quote: str = ""
    place: str = ""

    @classmethod
    def from_answer(cls, document: str, question: str, setting: str, answer: Answer) -> GridCell:
        """Return the cell of an answer; empty if it abstains or nothing in the document supports it."""
        quotes = [quote for quote in answer.citations if quote.node.document == document]
        if answer.way == "not_found" or not quotes:
            return cls(document, question, setting)
        first, text = quotes[0], f"Perhaps: {answer.text}" if answer.possible else answer.text
        return cls(document, question, setting, text, answer.confidence, first.text, first.place)


@dataclass(frozen=True, slots=True)
class GridWork:
    """What a grid took so far in this run: cells, seconds, and what the model cost."""

    cells: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)


class Grid:
    """The grid of ``documents`` (all of the base, by default) and ``questions``, with its cells in ``file``.

    Raises UsageError for a file that holds something else, NotFound for an unknown document.
    """

    def __init__(
        self,
        base: KnowledgeBase,
        questions: str | Iterable[str],
        file: Source,
        *,
        documents: Sources | None = None,
        llm: LanguageModel | None = None,
        recipe: str = "default",
    ) -> None:
        self.base = base
        self.questions = list(
            dict.fromkeys(filter(None, (question.strip() for question in list_texts(questions))))
        )
        if not self.questions:
            raise UsageError("there is no question", "Write one question a line")
        keys = None if documents is None else base.document_keys(documents)
        self.documents: list[Document] = [
            item for item in base.documents() if keys is None or item.key in keys
        ]
        self.file = expand_path(file)
        self.llm = llm
        self.recipe = recipe
        self.setting = recipe if llm is None else f"{recipe} with {llm.name}"
        self.work = GridWork()
        self._cells = {(cell.document, cell.question): cell for cell in self._read_cells()}

    def _read_cells(self) -> Iterable[GridCell]:
        if not self.file.exists():
            return
        *lines, end = self.file.read_bytes().split(b"\n")
        if end:  # a line that was being written when the process ended
            with self.file.open("r+b") as stream:
                stream.truncate(sum(len(line) + 1 for line in lines))
        for number, line in enumerate(lines, 1):
            try:
                cell = GridCell(**json.loads(line))
            except (ValueError, TypeError) as error:
                problem = f"line {number} of {self.file} is no cell of a grid"
                raise UsageError(problem, "Give another --out, or delete the file") from error
            if cell.setting == self.setting:
                yield cell

    def missing(self) -> list[tuple[Document, str]]:
        """Return the cells that are not answered yet, document by document."""
        return [
            (document, question)
            for document in self.documents
            for question in self.questions
            if (document.key, question) not in self._cells
        ]

    def fill(
        self, limit: int | None = None, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> GridWork:
        """Answer the missing cells, at most ``limit``; return the work of this run so far. Raises ClewError.

        ``progress`` receives the number of answered cells and of all.
        """
        total = len(self.documents) * len(self.questions)
        missing = self.missing()
        done = total - len(missing)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as stream:
            for document, question in missing[:limit]:
                start = perf_counter()
                answer = self.base.ask(question, llm=self.llm, recipe=self.recipe, documents=[document.key])
                cell = GridCell.from_answer(document.key, question, self.setting, answer)
                stream.write(json.dumps(asdict(cell), ensure_ascii=False) + "\n")
                stream.flush()
                self._cells[document.key, question] = cell
                seconds = self.work.seconds + perf_counter() - start
                self.work = GridWork(self.work.cells + 1, seconds, self.work.usage + answer.usage)
                done += 1
                progress(done, total)
        return self.work

    def row(self, document: Document) -> list[GridCell]:
        """Return the cells of a document, one for each question; cells that are not answered yet are empty."""
        empty = {question: GridCell(document.key, question, self.setting) for question in self.questions}
        return [self._cells.get((document.key, question), empty[question]) for question in self.questions]

    def to_dict(self) -> dict[str, Any]:
        """Return the grid, JSON-compatible: the questions, and for each document its cells."""
        rows = [
            {"document": item.name, "key": item.key, "cells": [asdict(cell) for cell in self.row(item)]}
            for item in self.documents
        ]
        return {"questions": self.questions, "rows": rows, "missing": len(self.missing())}

    def write(self, path: Source) -> None:
        """Write the grid to a .xlsx file (answers with their quotes as notes, and a sheet of quotes) or a .csv file
        (for each question its answer, quote and place). Raises UsageError for another ending, MissingExtra."""
        path = expand_path(path)
        if path.suffix.lower() == ".csv":
            self._write_csv(path)
        elif path.suffix.lower() == ".xlsx":
            self._write_workbook(path)
        else:
            raise UsageError(f"cannot write a grid to '{path.name}'", f"Known endings: {', '.join(SUFFIXES)}")

    def _write_csv(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            heads = [name for question in self.questions for name in (question, "quote", "place")]
            writer.writerow(map(escape_formula, ["document", *heads]))
            for document in self.documents:
                texts = [
                    text for cell in self.row(document) for text in (cell.answer, cell.quote, cell.place)
                ]
                writer.writerow(map(escape_formula, [document.name, *texts]))

    def _write_workbook(self, path: Path) -> None:
        try:
            import openpyxl
            from openpyxl.comments import Comment
            from openpyxl.styles import Alignment, Font
            from openpyxl.utils import get_column_letter
        except ImportError as error:
            raise MissingExtra("openpyxl, which writes XLSX files,", "tables") from error

        def put(sheet: Any, row: int, column: int, text: str) -> Any:
            cell = sheet.cell(row, column, clean_text(text))
            cell.data_type = "s"  # never a formula
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            return cell

        book = openpyxl.Workbook()
        answers, quotes = book.active, book.create_sheet("quotes")
        answers.title = "answers"
        for column, text in enumerate(["document", *self.questions], 1):
            put(answers, 1, column, text).font = Font(bold=True)
            answers.column_dimensions[get_column_letter(column)].width = _WIDTH
        for column, text in enumerate(["document", "question", "answer", "quote", "place", "confidence"], 1):
            put(quotes, 1, column, text).font = Font(bold=True)
            quotes.column_dimensions[get_column_letter(column)].width = _WIDTH
        line = 1
        for number, document in enumerate(self.documents, 2):
            put(answers, number, 1, document.name)
            for column, cell in enumerate(self.row(document), 2):
                if not cell.answer:
                    continue
                note = clean_text(f"“{cell.quote}”\n{cell.place}")[:_NOTE]
                put(answers, number, column, cell.answer).comment = Comment(
                    note, "clew", height=160, width=360
                )
                line += 1
                texts = [document.name, cell.question, cell.answer, cell.quote, cell.place]
                for place, text in enumerate(texts, 1):
                    put(quotes, line, place, text)
                quotes.cell(line, 6, cell.confidence)
        answers.freeze_panes = quotes.freeze_panes = "B2"
        book.save(path)
