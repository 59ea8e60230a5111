"""An answer for a program: its text with numbered citations, the list of their sources, and its trail in short.

The numbers are given here alone, so that the text, the list of sources and the structured form agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.app.answers.view import (
    AlternativeView,
    AnswerView,
    NodeView,
    StepView,
    SupportView,
    format_confidence,
)
from clew.core.text import shorten
from clew.core.types import Quote, boxes_to_lists

#: How many passages are listed as the nearest to a question that was not answered.
_NEAREST = 5
#: Characters of a passage that are shown where nothing of it is quoted; characters of a fact of a step.
_EXCERPT, _FACT = 300, 80


@dataclass(frozen=True, slots=True)
class Citation:
    """One source of an answer: its number in the text (from 1), its node, and the quoted words.

    ``quotes`` is empty where the answer rests on the node as a whole. ``inline``: its words stand in the text.
    """

    number: int
    node: NodeView
    quotes: tuple[Quote, ...] = ()
    inline: bool = False

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
            "document": self.node.document,
            "page": self.node.page,
            "section": self.node.section,
            "place": self.node.place,
            "boxes": boxes_to_lists(self.node.boxes),
            "quotes": [_quote_to_dict(quote) for quote in self.quotes],
            "excerpt": self.excerpt,
        }

    def source_line(self) -> str:
        """Return place and quoted words, the answer in them between ``**``; no words that stand in the text."""
        if self.inline:
            return self.node.place
        if any(quote.answer is not None for quote in self.quotes):
            words = " … ".join(mark_answer(SupportView(quote)) for quote in self.quotes)
        else:
            words = self.excerpt
        return f"{self.node.place}: “{words}”"


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """An answer's text with ``[1]`` after what each citation supports, and the citations by number.

    ``nearest`` are the passages nearest to a question that was not answered; the text does not refer to them.
    ``candidates`` are the nearest answers, of a reader that has some.
    """

    text: str
    citations: tuple[Citation, ...]
    nearest: tuple[Citation, ...] = ()
    candidates: tuple[AlternativeView, ...] = ()

    def source_list(self) -> str:
        """Return the list that goes below the text, a line for each citation; "" where there are none.

        Quoted words that stand in the text are not repeated.
        """
        if self.citations:
            lines = [f"[{citation.number}] {citation.source_line()}" for citation in self.citations]
            return "\n".join(["Sources:", *lines])
        if self.candidates:
            return "\n".join(["Nearest:", *(f"- {_candidate_line(item)}" for item in self.candidates)])
        lines = [f"- {citation.node.place}: “{citation.excerpt}”" for citation in self.nearest]
        return "\n".join(["What came nearest:", *lines]) if lines else ""


def cite_answer(view: AnswerView) -> CitedAnswer:
    """Number the sources of an answer, and mark its text.

    A number stands after the words that it supports where these are in the text, else at the end of the text. An
    extracted answer cites only the evidence that its text is made of, not the other quotations.
    """
    if view.way == "not_found":
        nearest = tuple(Citation(item.number, item.node, item.quotes) for item in view.evidence[:_NEAREST])
        return CitedAnswer(view.text, (), nearest, view.nearest)
    supports = [(node, quotes, _end(view.text, node, quotes)) for node, quotes in _supports(view)]
    if view.reader == "extractive" and any(end is not None for _, _, end in supports):
        supports = [support for support in supports if support[2] is not None]
    citations = tuple(
        Citation(number, node, quotes, end is not None)
        for number, (node, quotes, end) in enumerate(supports, 1)
    )
    ends = [len(view.text) if end is None else end for _, _, end in supports]
    return CitedAnswer(_insert_numbers(view.text, ends), citations)


def render_text(view: AnswerView) -> str:
    """Return the whole answer as plain text: the marked text, its sources, and the remarks."""
    cited = cite_answer(view)
    parts = (mark_possible(view, cited), cited.source_list(), "\n".join(answer_remarks(view)))
    return "\n\n".join(part for part in parts if part)


def mark_possible(view: AnswerView, cited: CitedAnswer) -> str:
    """Return the marked text; that of a possible answer says so, and lists the next likely ones below."""
    if view.way != "perhaps":
        return cited.text
    others = [f"- or: {_candidate_line(item)}" for item in view.perhaps[1:]]
    return "\n".join([f"Perhaps: {cited.text}", *others])


def answer_remarks(view: AnswerView) -> list[str]:
    """Return what a reader of the answer should know besides, a line each."""
    lines = [f"From the model's memory, without evidence: {text}" for text in view.from_memory]
    lines += [f"Not in its source, so not counted as evidence: “{text}”" for text in view.rejected]
    lines += [f"Note: {note}" for note in view.notes]
    if view.stopped:
        lines.append(f"Stopped before the answer was complete: {view.stopped}")
    if view.way == "not_found":
        return lines
    sure = "" if view.confidence is None else f"; confidence {format_confidence(view.confidence)}"
    computed = [view.formula] if view.formula else []
    return [*computed, *lines, f"({view.describe_origin()}{sure})"]


def cited_answer_to_dict(view: AnswerView) -> dict[str, Any]:
    """Return an answer for a program: its JSON, with citations in place of the evidence and the trail in lines."""
    cited = cite_answer(view)
    return {
        **{key: view.data.get(key) for key in ("answer", "way", "plan", "perhaps", "empty", "abstained")},
        "stopped": view.stopped or None,
        "how": view.describe_origin(),
        "recipe": view.recipe,
        "confidence": view.data.get("confidence"),
        "citations": [citation.to_dict() for citation in cited.citations],
        "nearest": [citation.to_dict() for citation in cited.nearest],
        "alternatives": [_alternative_to_dict(item) for item in view.alternatives],
        **{key: view.data[key] for key in ("values", "ranked", "remembered", "rejected")},
        "substitutions": dict(view.substitutions),
        "steps": [summarise_step(step) for step in view.steps],
        "usage": view.data["usage"],
    }


def mark_answer(support: SupportView) -> str:
    """Return the quoted words in one line, the answer in them between ``**``; unmarked where they contain a ``*``."""
    mark = "" if "*" in support.quote.text else "**"
    words = "".join(
        f"{mark}{piece.text}{mark}" if piece.is_answer else piece.text for piece in support.pieces
    )
    return " ".join(words.split())


def _candidate_line(item: AlternativeView) -> str:
    sure = "" if item.confidence is None else f" ({format_confidence(item.confidence)})"
    places = (
        f"{support.place and ', '}{support.place}: “{mark_answer(support)}”" for support in item.supports[:1]
    )
    return f"{item.text}{sure}{''.join(places)}"


def _quote_to_dict(quote: Quote) -> dict[str, Any]:
    return {key: value for key, value in quote.to_dict().items() if key != "node"}


def _alternative_to_dict(item: AlternativeView) -> dict[str, Any]:
    (support,) = item.supports
    return {
        "text": item.text,
        "confidence": item.confidence,
        "id": support.quote.node,
        "place": support.place,
        "quote": _quote_to_dict(support.quote),
    }


def summarise_step(step: StepView) -> str:
    """Return a step of a trail in a line: ``retrieve: query who led it, hits 10``."""
    facts = [f"{key} {shorten(str(value), _FACT)}" for key, value in step.facts.items()]
    if step.hits and "hits" not in step.detail:
        facts.append(f"{len(step.hits)} found")
    return f"{step.name}: {', '.join(facts)}" if facts else step.name


def _supports(view: AnswerView) -> list[tuple[NodeView, tuple[Quote, ...]]]:
    """Return the nodes that an answer quotes, in its order, each with the quotations; all of its evidence where it
    quotes nothing."""
    quoted: dict[str, list[Quote]] = {}
    for quote in view.quotes:
        if quote.node in view.nodes:
            quoted.setdefault(quote.node, []).append(quote)
    if quoted:
        return [(view.nodes[id], tuple(quotes)) for id, quotes in quoted.items()]
    return [(node, ()) for node in {item.node.id: item.node for item in view.evidence}.values()]


def _end(text: str, node: NodeView, quotes: Sequence[Quote]) -> int | None:
    """Return where in the text the cited words end for the last time, None where they are not in it."""
    ends = [_end_of(text, words) for words in [quote.text for quote in quotes] or [node.text]]
    return max((end for end in ends if end is not None), default=None)


def _end_of(text: str, words: str) -> int | None:
    for form in (words.strip(), " ".join(words.split())):
        # At the edges of words: "9" does not stand in "1919".
        match = re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) if form else None
        if match is not None:
            return match.end()
    return None


def _insert_numbers(text: str, ends: Sequence[int]) -> str:
    """Return the text with each number, from 1, after the place where the words that it supports end."""
    marks: dict[int, str] = {}
    for number, end in enumerate(ends, 1):
        marks[end] = marks.get(end, "") + f"[{number}]"
    for at in sorted(marks, reverse=True):
        # A mark behind the last cell of a table would be one more cell.
        gap = "\n" if text[:at].endswith("|") else " "
        text = f"{text[:at]}{gap}{marks[at]}{text[at:]}"
    return text
