"""MuSiQue-Ans (Trivedi et al., TACL 2022), and MuSiQue-Full with its unanswerable questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.evaluate.datasets import distinct, field
from clew.evaluate.examples import Example, Paragraph, Support
from clew.evaluate.streams import records


def read_two_hops(path: Path) -> Iterator[Example]:
    """Yield the questions of two hops: those whose ids begin with ``2hop``. Raises UsageError.

    Many of the composed ones of three and four hops are unnatural (Su et al., NAACL 2024, Appendix C).
    """
    return (example for example in read(path) if example.question_type == "2hop")


def read(path: Path) -> Iterator[Example]:
    """Yield the questions of official JSON lines. Raises UsageError."""
    for place, record in records(path):
        given = field(place, record, "paragraphs", list)
        corpus = tuple(
            Paragraph(field(place, one, "title"), (field(place, one, "paragraph_text"),)) for one in given
        )
        hops = record.get("question_decomposition") or []
        supporting = [n for n, one in enumerate(given) if one.get("is_supporting")]
        ordered = [
            hop["paragraph_support_idx"] for hop in hops if hop.get("paragraph_support_idx") is not None
        ]
        places = {one.get("idx", n): n for n, one in enumerate(given)}
        order = [places[index] for index in dict.fromkeys(ordered) if index in places]
        gold = [*order, *(n for n in supporting if n not in order)]
        answers = distinct([field(place, record, "answer"), *map(str, record.get("answer_aliases") or ())])
        name = str(field(place, record, "id"))
        yield Example(
            name,
            field(place, record, "question"),
            answers,
            "span" if record.get("answerable", True) else "unanswerable",
            name.split("__")[0],
            tuple(Support(corpus[n].title, text=corpus[n].text) for n in gold),
            chain=tuple((str(hop.get("question", "")), str(hop.get("answer", ""))) for hop in hops),
            corpus=corpus,
        )
