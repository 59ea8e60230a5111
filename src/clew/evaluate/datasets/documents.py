"""Questions over whole documents: QASPER, FinanceBench."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError
from clew.evaluate.datasets.records import distinct_texts, read_records, require_field
from clew.evaluate.examples import Annotation, AnswerType, Example, Paragraph, Support


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
            given = [
                require_field(place, one, "answer", dict)
                for one in require_field(place, asked, "answers", list)
            ]
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
                str(
                    one.get("doc_name")
                    or one.get("evidence_doc_name")
                    or require_field(place, record, "doc_name")
                ),
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


#: The pages that passages link to, which IIRC publishes beside the questions: an object of texts by title.
IIRC_PAGES = "context_articles.json"


def read_iirc(path: Path) -> Iterator[Example]:
    """Yield the questions of a file: an array of passages with their questions.

    The corpus of a question is its passage and the pages that this links to, where ``context_articles.json``
    lies beside the file; else its passage and the evidence itself, which is an easier question. ``meta`` says
    which (``pages``). Raises UsageError.
    """
    pages = _pages(path)
    for place, record in read_records(path):
        main = Paragraph(require_field(place, record, "title"), (require_field(place, record, "text"),))
        linked = [
            one for title in _targets(record) for one in _paragraphs(title, (pages or {}).get(title.lower()))
        ]
        for number, asked in enumerate(require_field(place, record, "questions", list)):
            answers, kind = _answer(place, require_field(place, asked, "answer", dict))
            found = tuple(
                Support(
                    main.title if one.get("passage") == "main" else str(one.get("passage", "")),
                    text=str(one.get("text", "")),
                )
                for one in asked.get("context") or ()
            )
            evidence = [Paragraph(one.title, (one.text,)) for one in found if one.title != main.title]
            yield Example(
                str(asked.get("qid") or f"{record.get('pid', place)}/{number}"),
                require_field(place, asked, "question"),
                answers,
                kind,
                str(asked["answer"].get("type", "")),
                found,
                corpus=(main, *dict.fromkeys(evidence if pages is None else linked)),
                meta={"links": asked.get("question_links") or [], "pages": pages is not None},
            )


def _targets(record: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(str(one.get("target", "")) for one in record.get("links") or ()))


def _pages(path: Path) -> dict[str, str] | None:
    """Return the texts of the pages that any passage of the file links to, by title in lower case; None without
    the file of pages. All pages of Wikipedia that IIRC has would be 600 MB."""
    source = path.with_name(IIRC_PAGES)
    if not source.is_file():
        return None
    wanted = {title.lower() for _, record in read_records(path) for title in _targets(record)}
    pages = {}
    for place, keyed in read_records(source, keyed=True):
        if not (isinstance(keyed, list) and len(keyed) == 2 and isinstance(keyed[1], str)):
            raise UsageError(f"{place}: not a text under its title: {json.dumps(keyed)[:60]}")
        if keyed[0].lower() in wanted:
            pages[keyed[0].lower()] = keyed[1]
    return pages


def _paragraphs(title: str, page: str | None) -> list[Paragraph]:
    """Return the paragraphs of a page; what IIRC leaves of its links (``<a href=...>``) is taken out."""
    if not page:
        return []
    from lxml import html

    lines = (line for line in page.splitlines() if line.strip())
    texts = ("".join(map(str, html.fromstring(line).itertext())).strip() for line in lines)
    return [Paragraph(title, (text,)) for text in texts if text]


def _answer(place: str, answer: dict[str, Any]) -> tuple[tuple[str, ...], AnswerType]:
    kind = require_field(place, answer, "type")
    if kind == "none":
        return (), "unanswerable"
    if kind == "span":
        spans = [str(span["text"]) for span in require_field(place, answer, "answer_spans", list)]
        return ((", ".join(spans),) if spans else ()), "span"
    value = " ".join(str(answer.get(key) or "") for key in ("answer_value", "answer_unit")).strip()
    if kind == "binary":
        return (value,), "yes/no"
    if kind == "value":
        number = str(answer.get("answer_value") or "")
        return distinct_texts([value, number]), "number"
    raise UsageError(f"{place}: an answer of unknown type '{kind}'")


# MERGED: IIRC (Ferguson et al., EMNLP 2020): questions over a passage and the pages that it links to.
