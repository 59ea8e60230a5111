"""HotpotQA (Yang et al., EMNLP 2018), 2WikiMultihopQA (Ho et al., COLING 2020), HotpotQA-Doc.

One form: ``context`` is a list of [title, [sentence, ...]], ``supporting_facts`` of [title, sentence index].
2WikiMultihopQA adds ``evidences``, the gold triples in the order of the hops.

HotpotQA-Doc (Nie et al., EMNLP 2022; the multi-hop setting of Nair et al., 2023, Section 5.2) asks of two whole
documents. It is not published in a form of its own that we know of: we read this form with whole documents in
``context``, [title, [paragraph, ...]], a paragraph being a text or a list of sentences, and ``supporting_facts`` of
[title, paragraph index]; and QASPER's form, in which its authors' code reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError
from clew.evaluate.datasets.documents import read_qasper
from clew.evaluate.datasets.records import (
    distinct_texts,
    read_csv_rows,
    read_records,
    require_field,
    starts_with,
)
from clew.evaluate.examples import AnswerType, Example, Paragraph, Support


def read_hotpotqa(path: Path) -> Iterator[Example]:
    """Yield the questions of a JSON array or JSON lines. Raises UsageError."""
    for place, record in read_records(path):
        yield _example(place, record, _paragraphs)


def read_hotpotqa_documents(path: Path) -> Iterator[Example]:
    """Yield the questions of HotpotQA-Doc, in either form. Raises UsageError."""
    if starts_with(path, "{") and _keyed(path):
        yield from read_qasper(path)
        return
    for place, record in read_records(path):
        yield _example(place, record, _documents)


def _keyed(path: Path) -> bool:
    _, (_, value) = next(iter(read_records(path, keyed=True)))
    return isinstance(value, dict) and "qas" in value


_Given = list[tuple[Any, Any]]


def _paragraphs(context: _Given, facts: _Given) -> tuple[tuple[Paragraph, ...], tuple[Support, ...]]:
    corpus = tuple(Paragraph(str(title), tuple(map(str, sentences))) for title, sentences in context)
    longest: dict[str, int] = {}
    for paragraph in corpus:
        longest[paragraph.title] = max(longest.get(paragraph.title, 0), len(paragraph.sentences))
    # Some facts point one sentence too far; what they mean for certain is the paragraph.
    pieces = (
        Support(str(title), int(number) if 0 <= int(number) < longest.get(str(title), 0) else None)
        for title, number in facts
    )
    return corpus, tuple(dict.fromkeys(pieces))


def _documents(context: _Given, facts: _Given) -> tuple[tuple[Paragraph, ...], tuple[Support, ...]]:
    held = {
        str(title): tuple(
            Paragraph(str(title), (one,) if isinstance(one, str) else tuple(map(str, one)), ())
            for one in paragraphs
        )
        for title, paragraphs in context
    }
    support = tuple(Support(str(title), text=held[str(title)][int(number)].text) for title, number in facts)
    return tuple(one for paragraphs in held.values() for one in paragraphs), tuple(dict.fromkeys(support))


def _example(place: str, record: Any, read_as: Callable[[_Given, _Given], Any]) -> Example:
    answer = require_field(place, record, "answer")
    context = require_field(place, record, "context", (list, dict))
    facts = (
        require_field(place, record, "supporting_facts", (list, dict)) if "supporting_facts" in record else []
    )
    # The copies on data hubs hold columns instead of pairs.
    if isinstance(context, dict):
        context = list(zip(context["title"], context["sentences"], strict=True))
    if isinstance(facts, dict):
        facts = list(zip(facts["title"], facts["sent_id"], strict=True))
    try:
        corpus, support = read_as([(t, s) for t, s in context], [(t, n) for t, n in facts])
    except (TypeError, ValueError, LookupError) as error:
        raise UsageError(f"{place}: context or supporting_facts in another form ({error})") from error
    kind: AnswerType = "yes/no" if answer.strip().lower() in {"yes", "no"} else "span"
    return Example(
        str(record.get("_id") or record.get("id") or place),
        require_field(place, record, "question"),
        distinct_texts([answer, *map(str, record.get("aliases") or record.get("answer_aliases") or ())]),
        kind,
        str(record.get("type", "")),
        support,
        chain=tuple(tuple(map(str, triple)) for triple in record.get("evidences") or ()),
        corpus=corpus,
        meta={key: record[key] for key in ("level", "evidences_id", "answer_id") if key in record},
    )


def read_musique_two_hops(path: Path) -> Iterator[Example]:
    """Yield the questions of two hops: those whose ids begin with ``2hop``. Raises UsageError.

    Many of the composed ones of three and four hops are unnatural (Su et al., NAACL 2024, Appendix C).
    """
    return (example for example in read_musique(path) if example.question_type == "2hop")


def read_musique(path: Path) -> Iterator[Example]:
    """Yield the questions of official JSON lines. Raises UsageError."""
    for place, record in read_records(path):
        given = require_field(place, record, "paragraphs", list)
        corpus = tuple(
            Paragraph(require_field(place, one, "title"), (require_field(place, one, "paragraph_text"),))
            for one in given
        )
        hops = record.get("question_decomposition") or []
        supporting = [n for n, one in enumerate(given) if one.get("is_supporting")]
        ordered = [
            hop["paragraph_support_idx"] for hop in hops if hop.get("paragraph_support_idx") is not None
        ]
        places = {one.get("idx", n): n for n, one in enumerate(given)}
        order = [places[index] for index in dict.fromkeys(ordered) if index in places]
        gold = [*order, *(n for n in supporting if n not in order)]
        answers = distinct_texts(
            [require_field(place, record, "answer"), *map(str, record.get("answer_aliases") or ())]
        )
        name = str(require_field(place, record, "id"))
        yield Example(
            name,
            require_field(place, record, "question"),
            answers,
            "span" if record.get("answerable", True) else "unanswerable",
            name.split("__")[0],
            tuple(Support(corpus[n].title, text=corpus[n].text) for n in gold),
            chain=tuple((str(hop.get("question", "")), str(hop.get("answer", ""))) for hop in hops),
            corpus=corpus,
        )


def read_bamboogle(path: Path) -> Iterator[Example]:
    """Yield the questions of Bamboogle (Press et al., EMNLP Findings 2023): CSV of question and answer.

    The published sheet leaves columns empty between the two and may have a header; further cells are other
    names of the answer. Raises UsageError.
    """
    for number, (place, row) in enumerate(read_csv_rows(path)):
        filled = [cell.strip() for cell in row if cell.strip()]
        if number == 0 and filled[0].casefold() == "question":
            continue
        if " " not in filled[0] or filled[0][0] in "{[":
            raise UsageError(f"{place}: not a question: {filled[0][:60]}")
        if len(filled) < 2:
            raise UsageError(f"{place}: no answer")
        yield Example(f"bamboogle-{number}", filled[0], distinct_texts(filled[1:]))


# MERGED: MuSiQue-Ans (Trivedi et al., TACL 2022), and MuSiQue-Full with its unanswerable questions.
