"""MuSiQue-Ans (Trivedi et al., TACL 2022), and MuSiQue-Full with its unanswerable questions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from clew.evaluate.datasets import distinct_texts, require_field
from clew.evaluate.examples import Example, Paragraph, Support
from clew.evaluate.streams import read_records


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
            Paragraph(require_field(place, one, "title"), (require_field(place, one, "paragraph_text"),)) for one in given
        )
        hops = record.get("question_decomposition") or []
        supporting = [n for n, one in enumerate(given) if one.get("is_supporting")]
        ordered = [
            hop["paragraph_support_idx"] for hop in hops if hop.get("paragraph_support_idx") is not None
        ]
        places = {one.get("idx", n): n for n, one in enumerate(given)}
        order = [places[index] for index in dict.fromkeys(ordered) if index in places]
        gold = [*order, *(n for n in supporting if n not in order)]
        answers = distinct_texts([require_field(place, record, "answer"), *map(str, record.get("answer_aliases") or ())])
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
