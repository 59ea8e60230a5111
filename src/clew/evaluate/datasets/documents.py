"""Questions over whole documents: QASPER, FinanceBench."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.errors import UsageError
from clew.evaluate.datasets import require_field
from clew.evaluate.examples import Annotation, Example, Paragraph, Support
from clew.evaluate.streams import read_records


def read_qasper(path: Path) -> Iterator[Example]:
    """Yield the questions of QASPER (Dasigi et al., NAACL 2021): an object of papers by their ids.

    Every annotator is an alternative; the first one's answer is the canonical one. The whole paper is the corpus;
    captions of figures and tables, which evidence may name ("FLOAT SELECTED: ..."), come last. Raises UsageError.
    """
    for place, keyed in read_records(path, keyed=True):
        if not (isinstance(keyed, list) and len(keyed) == 2 and isinstance(keyed[1], dict)):
            raise UsageError(f"{place}: not a paper under its id")
        key, paper = keyed
        title = str(paper.get("title") or key)
        corpus = _paper(place, title, paper)
        for asked in require_field(place, paper, "qas", list):
            given = [require_field(place, one, "answer", dict) for one in require_field(place, asked, "answers", list)]
            found = [_annotation(place, title, one) for one in given]
            if not found:
                raise UsageError(f"{place}: a question without answers: {asked.get('question_id')}")
            yield Example(
                str(require_field(place, asked, "question_id")),
                require_field(place, asked, "question"),
                found[0].answers,
                found[0].answer_type,
                support=found[0].support,
                alternatives=tuple(found),
                corpus=corpus,
                meta={"paper": key},
            )


def _paper(place: str, title: str, paper: Any) -> tuple[Paragraph, ...]:
    sections = [("Abstract", [str(paper.get("abstract", ""))])]
    sections += [
        (str(one.get("section_name") or ""), list(map(str, one.get("paragraphs") or ())))
        for one in require_field(place, paper, "full_text", list)
    ]
    captions = [str(one.get("caption", "")) for one in paper.get("figures_and_tables") or ()]
    sections.append(("Figures and tables", [f"FLOAT SELECTED: {caption}" for caption in captions]))
    return tuple(
        # Headings within headings are written "Methods ::: Data".
        Paragraph(title, (text,), tuple(part.strip() for part in name.split(":::") if part.strip()))
        for name, texts in sections
        for text in texts
        if text.strip()
    )


def _annotation(place: str, title: str, answer: dict[str, Any]) -> Annotation:
    support = tuple(Support(title, text=str(text)) for text in answer.get("evidence") or ())
    if require_field(place, answer, "unanswerable", bool):
        return Annotation((), "unanswerable")
    if answer.get("extractive_spans"):
        return Annotation((", ".join(map(str, answer["extractive_spans"])),), "span", support)
    if answer.get("free_form_answer"):
        return Annotation((str(answer["free_form_answer"]),), "abstractive", support)
    if answer.get("yes_no") is not None:
        return Annotation(("Yes" if answer["yes_no"] else "No",), "yes/no", support)
    raise UsageError(f"{place}: an annotator gave no answer")


def read_financebench(path: Path) -> Iterator[Example]:
    """Yield the questions of FinanceBench (Islam et al., 2023): JSON lines; pages become counted from 1."""
    for place, record in read_records(path):
        support = tuple(
            Support(
                str(one.get("doc_name") or one.get("evidence_doc_name") or require_field(place, record, "doc_name")),
                page=int(require_field(place, one, "evidence_page_num", int)) + 1,
                text=str(one.get("evidence_text", "")),
            )
            for one in require_field(place, record, "evidence", list)
        )
        yield Example(
            str(require_field(place, record, "financebench_id")),
            require_field(place, record, "question"),
            (require_field(place, record, "answer"),),
            "abstractive",
            str(record.get("question_type", "")),
            support,
            meta={"document": record["doc_name"], "company": record.get("company", "")},
        )
