"""An answer for a program: its text with numbered citations, what it cites, and its trail in short.

A citation is a number that only this module gives, so the text, the list of sources and the structured form agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.core.text import shorten
from clew.core.types import Answer, Hit, Node, Quote, Step
from clew.methods.answering import describe_origin
from clew.methods.readers.contexts import describe_place

#: How many passages are listed as what came nearest to a question that was not answered.
_NEAREST = 5
#: How many characters of a passage are shown where no words of it are quoted; of a fact in a line of the trail.
_EXCERPT, _FACT = 300, 80


@dataclass(frozen=True, slots=True)
class Citation:
    """One source of an answer: its number in the text (from 1), its node, and the words of it that are quoted.

    ``quotes`` is empty where the answer rests on the node as a whole. ``inline``: its words stand in the text.
    """

    number: int
    node: Node
    quotes: tuple[Quote, ...] = ()
    inline: bool = False

    @property
    def place(self) -> str:
        """Where it stands: ``report.pdf, page 3, Results > Costs``."""
        return describe_place(self.node)

    @property
    def excerpt(self) -> str:
        """The quoted words, or the beginning of the node's text, in one line."""
        if not self.quotes:
            return shorten(self.node.text, _EXCERPT)
        return " … ".join(" ".join(quote.text.split()) for quote in self.quotes)

    def to_dict(self) -> dict[str, Any]:
        """Return it as a JSON-compatible dictionary."""
        return {
            "number": self.number,
            "id": self.node.id,
            "kind": self.node.kind,
            "document": self.node.document_name,
            "page": self.node.page,
            "section": " > ".join(self.node.headings),
            "place": self.place,
            "quotes": [{"text": quote.text, "span": list(quote.span)} for quote in self.quotes],
            "excerpt": self.excerpt,
        }


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer's text with ``[1]`` after what each citation supports, and the citations, by number.

    ``nearest`` is what came nearest where the answer abstains; it supports nothing, and the text has no number of it.
    """

    text: str
    citations: tuple[Citation, ...]
    nearest: tuple[Citation, ...] = ()

    def source_list(self) -> str:
        """Return the list that goes below the text, a line for each citation; "" where there are none.

        Words that stand in the text are not said again.
        """
        if self.citations:
            lines = [
                f"[{one.number}] {one.place}" + ("" if one.inline else f": “{one.excerpt}”")
                for one in self.citations
            ]
            return "\n".join(["Sources:", *lines])
        lines = [f"- {one.place}: “{one.excerpt}”" for one in self.nearest]
        return "\n".join(["What came nearest:", *lines]) if lines else ""


def cite_answer(answer: Answer) -> CitedAnswer:
    """Number what an answer rests on, and mark its text.

    A number stands after the words that it supports where these are in the text, else at the text's end. Of an
    extracted answer only what its text is made of is cited: its other quotes are evidence that it does not use.
    """
    if answer.abstained:
        hits = answer.evidence[:_NEAREST]
        return CitedAnswer(
            answer.text, (), tuple(Citation(place, hit.node) for place, hit in enumerate(hits, 1))
        )
    found = [(node, quotes, _end(answer.text, node, quotes)) for node, quotes in _supports(answer)]
    if answer.reader == "extractive" and any(end is not None for _, _, end in found):
        found = [one for one in found if one[2] is not None]
    citations = tuple(
        Citation(number, node, quotes, end is not None) for number, (node, quotes, end) in enumerate(found, 1)
    )
    ends = [len(answer.text) if end is None else end for _, _, end in found]
    return CitedAnswer(_marked(answer.text, ends), citations)


def render_text(answer: Answer) -> str:
    """Return the whole answer as plain text: marked, with its sources, and with what is to be said of it."""
    marked = cite_answer(answer)
    return "\n\n".join(
        part for part in (marked.text, marked.source_list(), "\n".join(answer_remarks(answer))) if part
    )


def answer_remarks(answer: Answer) -> list[str]:
    """Return what a reader of the answer has to know besides: a line for each."""
    lines = [f"From the model's memory, without evidence: {text}" for text in answer.from_memory]
    lines += [f"Not in its source, so not counted as evidence: “{text}”" for text in answer.rejected_quotes]
    if answer.stop_reason:
        lines.append(f"Stopped before the answer was complete: {answer.stop_reason}")
    return lines if answer.abstained else [*lines, f"({_how(answer)})"]


def cited_answer_to_dict(answer: Answer) -> dict[str, Any]:
    """Return an answer for a program: :meth:`clew.core.types.Answer.to_dict` with citations by number, in
    short."""
    marked = cite_answer(answer)
    return {
        "answer": answer.text,
        "abstained": answer.abstained,
        "stopped": answer.stop_reason or None,
        "how": _how(answer),
        "recipe": answer.recipe,
        "citations": [one.to_dict() for one in marked.citations],
        "nearest": [one.to_dict() for one in marked.nearest],
        "values": list(answer.values),
        "ranked": [one.to_dict() for one in answer.ranking],
        "remembered": list(answer.from_memory),
        "rejected": list(answer.rejected_quotes),
        "steps": [summarise_step(step) for step in answer.trail],
        "usage": answer.usage.to_dict(),
    }


def _how(answer: Answer) -> str:
    return describe_origin(answer.reader, answer.from_memory, [one.ranked_by for one in answer.ranking])


def summarise_step(step: Step) -> str:
    """Return a step of a trail in a line: ``retrieve: query who led it, hits 10``."""
    facts = [
        f"{key} {shorten(str(value), _FACT)}"
        for key, value in step.detail.items()
        if isinstance(value, str | int | float) and value != ""
    ]
    if step.hits and "hits" not in step.detail:
        facts.append(f"{len(step.hits)} found")
    return f"{step.name}: {', '.join(facts)}" if facts else step.name


def _supports(answer: Answer) -> list[tuple[Node, tuple[Quote, ...]]]:
    """Return the nodes that an answer quotes, in its order, with their quotes; all its evidence where it quotes
    nothing."""
    hits = {hit.node.id: hit.node for hit in _hits(answer)}
    quoted: dict[str, list[Quote]] = {}
    for quote in answer.quotes:
        if quote.node in hits:
            quoted.setdefault(quote.node, []).append(quote)
    if quoted:
        return [(hits[id], tuple(quotes)) for id, quotes in quoted.items()]
    return [(node, ()) for node in {hit.node.id: hit.node for hit in answer.evidence}.values()]


def _hits(answer: Answer) -> Iterable[Hit]:
    """Yield every hit of an answer. A quote is of a node of the evidence, or of one that a step found."""
    yield from (hit for step in answer.trail for hit in step.hits)
    yield from answer.evidence


def _end(text: str, node: Node, quotes: Sequence[Quote]) -> int | None:
    """Return where in the text the cited words end for the last time, None where they are not in it."""
    said = [quote.text for quote in quotes] or [node.text]
    ends = [end for words in said if (end := _end_of(text, words)) is not None]
    return max(ends, default=None)


def _end_of(text: str, words: str) -> int | None:
    for form in (words.strip(), " ".join(words.split())):
        # At the edges of words: "9" does not stand in "1919".
        at = re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) if form else None
        if at is not None:
            return at.end()
    return None


def _marked(text: str, ends: Sequence[int]) -> str:
    """Return the text with each number, from 1, after the place where what it supports ends."""
    marks: dict[int, str] = {}
    for number, end in enumerate(ends, 1):
        marks[end] = marks.get(end, "") + f"[{number}]"
    for at in sorted(marks, reverse=True):
        # A mark behind the last cell of a table would be one more cell.
        gap = "\n" if text[:at].endswith("|") else " "
        text = f"{text[:at]}{gap}{marks[at]}{text[at:]}"
    return text
