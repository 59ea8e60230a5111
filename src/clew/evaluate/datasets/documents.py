"""Questions over whole documents: QASPER, FinanceBench and IIRC; and FEVER's claims over Wikipedia pages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError
from clew.evaluate.datasets.records import distinct_texts, read_records, require_field
from clew.evaluate.examples import Annotation, AnswerType, Example, Paragraph, Support
from clew.methods.prompting import LABELS


def read_qasper(path: Path) -> Iterator[Example]:
    """Yield the questions of QASPER (Dasigi et al., NAACL 2021): a JSON object of papers by id.

    Every annotator is an alternative, and the first one's answer is the canonical one. The whole paper is the corpus;
    captions of figures and tables, which evidence may quote ("FLOAT SELECTED: ..."), come last. Raises UsageError.
    """
    for place, entry in read_records(path, keyed=True):
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], dict)):
            raise UsageError(f"{place}: not a paper under its id")
        key, paper = entry
        title = str(paper.get("title") or key)
        corpus = _qasper_paragraphs(place, title, paper)
        for question in require_field(place, paper, "qas", list):
            annotations = [
                _qasper_annotation(place, title, require_field(place, answer, "answer", dict))
                for answer in require_field(place, question, "answers", list)
            ]
            if not annotations:
                raise UsageError(f"{place}: a question without answers: {question.get('question_id')}")
            yield Example(
                str(require_field(place, question, "question_id")),
                require_field(place, question, "question"),
                annotations[0].answers,
                annotations[0].answer_type,
                support=annotations[0].support,
                alternatives=tuple(annotations),
                corpus=corpus,
                meta={"paper": key},
            )


def _qasper_paragraphs(place: str, title: str, paper: Any) -> tuple[Paragraph, ...]:
    sections = [("Abstract", [str(paper.get("abstract", ""))])]
    sections += [
        (str(section.get("section_name") or ""), list(map(str, section.get("paragraphs") or ())))
        for section in require_field(place, paper, "full_text", list)
    ]
    captions = [str(figure.get("caption", "")) for figure in paper.get("figures_and_tables") or ()]
    sections.append(("Figures and tables", [f"FLOAT SELECTED: {caption}" for caption in captions]))
    return tuple(
        # Nested headings are written "Methods ::: Data".
        Paragraph(title, (text,), tuple(part.strip() for part in name.split(":::") if part.strip()))
        for name, texts in sections
        for text in texts
        if text.strip()
    )


def _qasper_annotation(place: str, title: str, answer: dict[str, Any]) -> Annotation:
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
    """Yield the questions of FinanceBench (Islam et al., 2023): JSON lines. Its page numbers count from 0, ours from
    1. Raises UsageError."""
    for place, record in read_records(path):
        support = tuple(
            Support(
                str(
                    evidence.get("doc_name")
                    or evidence.get("evidence_doc_name")
                    or require_field(place, record, "doc_name")
                ),
                page=int(require_field(place, evidence, "evidence_page_num", int)) + 1,
                text=str(evidence.get("evidence_text", "")),
            )
            for evidence in require_field(place, record, "evidence", list)
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


#: The linked Wikipedia pages, which IIRC publishes beside the questions: a JSON object of texts by title.
IIRC_PAGES = "context_articles.json"


def read_iirc(path: Path) -> Iterator[Example]:
    """Yield the questions of IIRC (Ferguson et al., EMNLP 2020): a JSON array of passages with their questions.

    The corpus of a question is its passage and the pages that the passage links to, if ``context_articles.json`` lies
    beside the file. Without that file it is the passage and the gold evidence, which is an easier task;
    ``meta["pages"]`` tells the two apart. Raises UsageError.
    """
    pages = _linked_pages(path)
    for place, record in read_records(path):
        main_passage = Paragraph(
            require_field(place, record, "title"), (require_field(place, record, "text"),)
        )
        linked_paragraphs = [
            paragraph
            for title in _link_targets(record)
            for paragraph in _page_paragraphs(title, (pages or {}).get(title.lower()))
        ]
        for number, question in enumerate(require_field(place, record, "questions", list)):
            answers, answer_type = _iirc_answer(place, require_field(place, question, "answer", dict))
            support = tuple(
                Support(
                    main_passage.title
                    if evidence.get("passage") == "main"
                    else str(evidence.get("passage", "")),
                    text=str(evidence.get("text", "")),
                )
                for evidence in question.get("context") or ()
            )
            gold_paragraphs = [
                Paragraph(piece.title, (piece.text,))
                for piece in support
                if piece.title != main_passage.title
            ]
            yield Example(
                str(question.get("qid") or f"{record.get('pid', place)}/{number}"),
                require_field(place, question, "question"),
                answers,
                answer_type,
                str(question["answer"].get("type", "")),
                support,
                corpus=(
                    main_passage,
                    *dict.fromkeys(gold_paragraphs if pages is None else linked_paragraphs),
                ),
                meta={"links": question.get("question_links") or [], "pages": pages is not None},
            )


def _link_targets(record: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(str(link.get("target", "")) for link in record.get("links") or ()))


def _linked_pages(path: Path) -> dict[str, str] | None:
    """Return the texts of the linked pages by lower-case title, None without the file of pages.

    Only pages that some passage links to are kept: all of IIRC's would take 600 MB.
    """
    source = path.with_name(IIRC_PAGES)
    if not source.is_file():
        return None
    linked_titles = {title.lower() for _, record in read_records(path) for title in _link_targets(record)}
    pages = {}
    for place, entry in read_records(source, keyed=True):
        if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], str)):
            raise UsageError(f"{place}: not a text under its title: {json.dumps(entry)[:60]}")
        if entry[0].lower() in linked_titles:
            pages[entry[0].lower()] = entry[1]
    return pages


def _page_paragraphs(title: str, page: str | None) -> list[Paragraph]:
    """Return the paragraphs of a page without IIRC's link tags (``<a href=...>``)."""
    if not page:
        return []
    from lxml import html

    lines = (line for line in page.splitlines() if line.strip())
    texts = ("".join(map(str, html.fromstring(line).itertext())).strip() for line in lines)
    return [Paragraph(title, (text,)) for text in texts if text]


def _iirc_answer(place: str, answer: dict[str, Any]) -> tuple[tuple[str, ...], AnswerType]:
    answer_type = require_field(place, answer, "type")
    if answer_type == "none":
        return (), "unanswerable"
    if answer_type == "span":
        spans = [str(span["text"]) for span in require_field(place, answer, "answer_spans", list)]
        return ((", ".join(spans),) if spans else ()), "span"
    value = " ".join(str(answer.get(key) or "") for key in ("answer_value", "answer_unit")).strip()
    if answer_type == "binary":
        return (value,), "yes/no"
    if answer_type == "value":
        number = str(answer.get("answer_value") or "")
        return distinct_texts([value, number]), "number"
    raise UsageError(f"{place}: an answer of unknown type '{answer_type}'")


#: FEVER's spellings of brackets and colons in page names.
_FEVER_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-COLON-": ":"}


def read_fever(path: Path) -> Iterator[Example]:
    """Yield the claims of FEVER (Thorne et al., NAACL 2018): JSON lines. The answer is the label.

    Each sufficient set of evidence is an alternative; the first is the support. Raises UsageError.
    """
    for place, record in read_records(path):
        label = require_field(place, record, "label")
        if label not in LABELS:
            raise UsageError(f"{place}: no label of FEVER: '{label}'", f"Known: {', '.join(LABELS)}")
        annotated = require_field(place, record, "evidence", list)
        evidence_sets = [_fever_evidence(place, sentences) for sentences in annotated]
        evidence_sets = list(dict.fromkeys(support for support in evidence_sets if support))
        yield Example(
            str(require_field(place, record, "id", (int, str))),
            require_field(place, record, "claim"),
            (label,),
            "label",
            support=evidence_sets[0] if evidence_sets else (),
            alternatives=tuple(Annotation((label,), "label", support) for support in evidence_sets),
        )


def _fever_evidence(place: str, evidence: Any) -> tuple[Support, ...]:
    try:
        sentences = [(sentence[2], sentence[3]) for sentence in evidence]
    except (TypeError, IndexError) as error:
        raise UsageError(f"{place}: evidence in another form") from error
    return tuple(
        Support(_fever_page_title(page), int(sentence)) for page, sentence in sentences if page is not None
    )


def _fever_page_title(name: str) -> str:
    for escape, character in _FEVER_ESCAPES.items():
        name = name.replace(escape, character)
    return name.replace("_", " ")
