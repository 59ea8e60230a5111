"""Multi-hop questions: HotpotQA, 2WikiMultihopQA, HotpotQA-Doc, MuSiQue and Bamboogle.

HotpotQA (Yang et al., EMNLP 2018) and 2WikiMultihopQA (Ho et al., COLING 2020) share a format: ``context`` is a list
of [title, [sentence, ...]], ``supporting_facts`` of [title, sentence index]. 2WikiMultihopQA adds ``evidences``, the
gold triples in the order of the hops.

HotpotQA-Doc (Nie et al., EMNLP 2022; the multi-hop setting of Nair et al., 2023, Section 5.2) asks questions over two
whole documents. We know of no published format. We read HotpotQA's with whole documents in ``context``: [title,
[paragraph, ...]], where a paragraph is a text or a list of sentences, and ``supporting_facts`` of [title, paragraph
index]; and QASPER's, which its authors' code reads.
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
    """Yield the questions of HotpotQA or 2WikiMultihopQA: a JSON array or JSON lines. Raises UsageError."""
    for place, record in read_records(path):
        yield _hotpotqa_example(place, record, _paragraph_corpus)


def read_hotpotqa_documents(path: Path) -> Iterator[Example]:
    """Yield the questions of HotpotQA-Doc in either format. Raises UsageError."""
    if starts_with(path, "{") and _is_qasper(path):
        yield from read_qasper(path)
        return
    for place, record in read_records(path):
        yield _hotpotqa_example(place, record, _document_corpus)


def _is_qasper(path: Path) -> bool:
    _, (_, value) = next(iter(read_records(path, keyed=True)))
    return isinstance(value, dict) and "qas" in value


_Pairs = list[tuple[Any, Any]]


def _paragraph_corpus(context: _Pairs, facts: _Pairs) -> tuple[tuple[Paragraph, ...], tuple[Support, ...]]:
    corpus = tuple(Paragraph(str(title), tuple(map(str, sentences))) for title, sentences in context)
    longest: dict[str, int] = {}
    for paragraph in corpus:
        longest[paragraph.title] = max(longest.get(paragraph.title, 0), len(paragraph.sentences))
    # Some facts point one sentence too far. Only their paragraph is certain.
    pieces = (
        Support(str(title), int(number) if 0 <= int(number) < longest.get(str(title), 0) else None)
        for title, number in facts
    )
    return corpus, tuple(dict.fromkeys(pieces))


def _document_corpus(context: _Pairs, facts: _Pairs) -> tuple[tuple[Paragraph, ...], tuple[Support, ...]]:
    by_title = {
        str(title): tuple(
            Paragraph(
                str(title), (paragraph,) if isinstance(paragraph, str) else tuple(map(str, paragraph)), ()
            )
            for paragraph in paragraphs
        )
        for title, paragraphs in context
    }
    support = tuple(
        Support(str(title), text=by_title[str(title)][int(number)].text) for title, number in facts
    )
    return tuple(paragraph for paragraphs in by_title.values() for paragraph in paragraphs), tuple(
        dict.fromkeys(support)
    )


def _hotpotqa_example(place: str, record: Any, read_corpus: Callable[[_Pairs, _Pairs], Any]) -> Example:
    answer = require_field(place, record, "answer")
    context = require_field(place, record, "context", (list, dict))
    facts = (
        require_field(place, record, "supporting_facts", (list, dict)) if "supporting_facts" in record else []
    )
    # Copies on data hubs have columns instead of pairs.
    if isinstance(context, dict):
        context = list(zip(context["title"], context["sentences"], strict=True))
    if isinstance(facts, dict):
        facts = list(zip(facts["title"], facts["sent_id"], strict=True))
    try:
        corpus, support = read_corpus([(t, s) for t, s in context], [(t, n) for t, n in facts])
    except (TypeError, ValueError, LookupError) as error:
        raise UsageError(f"{place}: context or supporting_facts in another form ({error})") from error
    answer_type: AnswerType = "yes/no" if answer.strip().lower() in {"yes", "no"} else "span"
    return Example(
        str(record.get("_id") or record.get("id") or place),
        require_field(place, record, "question"),
        distinct_texts([answer, *map(str, record.get("aliases") or record.get("answer_aliases") or ())]),
        answer_type,
        str(record.get("type", "")),
        support,
        chain=tuple(tuple(map(str, triple)) for triple in record.get("evidences") or ()),
        corpus=corpus,
        meta={key: record[key] for key in ("level", "evidences_id", "answer_id") if key in record},
    )


def read_musique_two_hops(path: Path) -> Iterator[Example]:
    """Yield the two-hop questions of MuSiQue, whose ids begin with ``2hop``. Raises UsageError.

    Many of its questions with three and four hops read unnaturally (Su et al., NAACL 2024, Appendix C).
    """
    return (example for example in read_musique(path) if example.question_type == "2hop")


def read_musique(path: Path) -> Iterator[Example]:
    """Yield the questions of MuSiQue-Ans or MuSiQue-Full (Trivedi et al., TACL 2022): JSON lines. Raises UsageError.

    The support is in the order of the decomposition.
    """
    for place, record in read_records(path):
        paragraphs = require_field(place, record, "paragraphs", list)
        corpus = tuple(
            Paragraph(
                require_field(place, paragraph, "title"), (require_field(place, paragraph, "paragraph_text"),)
            )
            for paragraph in paragraphs
        )
        hops = record.get("question_decomposition") or []
        supporting_positions = [n for n, paragraph in enumerate(paragraphs) if paragraph.get("is_supporting")]
        hop_indices = [
            hop["paragraph_support_idx"] for hop in hops if hop.get("paragraph_support_idx") is not None
        ]
        position_of = {paragraph.get("idx", n): n for n, paragraph in enumerate(paragraphs)}
        hop_positions = [position_of[index] for index in dict.fromkeys(hop_indices) if index in position_of]
        gold = [*hop_positions, *(n for n in supporting_positions if n not in hop_positions)]
        answers = distinct_texts(
            [require_field(place, record, "answer"), *map(str, record.get("answer_aliases") or ())]
        )
        id = str(require_field(place, record, "id"))
        yield Example(
            id,
            require_field(place, record, "question"),
            answers,
            "span" if record.get("answerable", True) else "unanswerable",
            id.split("__")[0],
            tuple(Support(corpus[n].title, text=corpus[n].text) for n in gold),
            chain=tuple((str(hop.get("question", "")), str(hop.get("answer", ""))) for hop in hops),
            corpus=corpus,
        )


def read_bamboogle(path: Path) -> Iterator[Example]:
    """Yield the questions of Bamboogle (Press et al., EMNLP Findings 2023): CSV of question and answer.

    The published sheet has empty columns between the two and may have a header. Further cells are aliases of the
    answer. Raises UsageError.
    """
    for number, (place, row) in enumerate(read_csv_rows(path)):
        cells = [cell.strip() for cell in row if cell.strip()]
        if number == 0 and cells[0].casefold() == "question":
            continue
        if " " not in cells[0] or cells[0][0] in "{[":
            raise UsageError(f"{place}: not a question: {cells[0][:60]}")
        if len(cells) < 2:
            raise UsageError(f"{place}: no answer")
        yield Example(f"bamboogle-{number}", cells[0], distinct_texts(cells[1:]))
