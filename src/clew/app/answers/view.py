"""An answer as every renderer sees it.

An :class:`AnswerView` is built once, from an :class:`~clew.core.types.Answer` or from its stored JSON, and holds
plain values: the quotes and the evidence with their places, the alternatives, the ranked answers with their
constraints, the steps of the trail. It is shown

- on a terminal by :mod:`clew.app.cli.answer`,
- on web pages by :mod:`clew.app.web.pages.answer` and the templates,
- as a Markdown file by :func:`clew.app.web.api.questions.render_markdown`,
- to programs, as text with numbered citations, by :mod:`clew.app.answers.citations`,
- as JSON by its own :attr:`AnswerView.data`.

Passages are cut around their quotations (:func:`excerpt`), and tables split into cells, here for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

from clew.core.errors import NotFound
from clew.core.text import fold_name
from clew.core.types import (
    ENTITY,
    EXACT_LIST,
    FILL_LIST,
    MAX_POSSIBLE,
    MISSES_LIST,
    NEAR_LIST,
    STATED_FROM,
    TRIPLE,
    Answer,
    Box,
    ConstraintSummary,
    Exclusion,
    Node,
    Quote,
    Step,
    Usage,
    Way,
    picture_mark,
)
from clew.methods.answering import describe_origin


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node of an answer: its place and text.

    ``document`` is the name of its document or graph, ``key`` the document's key and ``position`` the node's place in
    it; ``boxes`` are its rectangles on the pages of a PDF. Unknown fields are empty.
    """

    id: str
    document: str
    page: int | None = None
    section: str = ""
    text: str = ""
    kind: str = ""
    name: str = ""
    key: str = ""
    position: int | None = None
    boxes: tuple[Box, ...] = ()

    @classmethod
    def from_node(cls, node: Node) -> Self:
        """Return the view of a node of a knowledge base."""
        section = " > ".join(node.headings)
        return cls(
            node.id,
            node.document_name,
            node.page,
            section,
            node.text,
            node.kind,
            node.name,
            node.document,
            node.position,
            node.boxes,
        )

    @classmethod
    def from_dict(cls, hit: Mapping[str, Any]) -> Self:
        """Return the view of the node in the JSON of a hit; a hit of a step has no text."""
        section, text, kind, name, key = (
            str(hit.get(field) or "") for field in ("section", "text", "kind", "name", "key")
        )
        boxes = tuple(replace(Box(*box), confidence=hit.get("confidence")) for box in hit.get("boxes") or ())
        return cls(hit["id"], hit["document"], hit["page"], section, text, kind, name, key, boxes=boxes)

    @property
    def in_graph(self) -> bool:
        """Whether it belongs to a knowledge graph and not to a document."""
        return self.kind in {TRIPLE, ENTITY}

    @property
    def location(self) -> str:
        """Document, page and section: ``report.pdf, page 3, Results > Costs``."""
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(
            part for part in (self.document, page, self.section, picture_mark(self.boxes)) if part
        )

    @property
    def place(self) -> str:
        """The location of a node in a document; the graph of a triple or an entity."""
        return f"graph {self.document}" if self.in_graph else self.location


@dataclass(frozen=True, slots=True)
class HitView:
    """A hit: its node, its score, and the node ids and the edges of the path by which it was reached."""

    node: NodeView
    score: float
    path: tuple[str, ...] = ()
    via: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, hit: Mapping[str, Any], nodes: Mapping[str, NodeView]) -> Self:
        """Read a hit from JSON. Its node is taken from ``nodes``, if it is among them."""
        node = nodes.get(hit["id"]) or NodeView.from_dict(hit)
        return cls(node, hit["score"], tuple(hit["path"]), tuple(hit["via"]))


@dataclass(frozen=True, slots=True)
class Evidence(HitView):
    """A piece of evidence: ``number`` counts from 1; ``quotes`` are the quotations of the answer from its text, and
    those of the nearest candidates where the question was not answered."""

    number: int = 0
    quotes: tuple[Quote, ...] = ()

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the quotations stand in the node's text."""
        return [quote.span for quote in self.quotes]

    @property
    def answers(self) -> list[tuple[int, int]]:
        """Where the answer itself stands in the node's text, within the quotations."""
        return [quote.answer for quote in self.quotes if quote.answer is not None]


@dataclass(frozen=True, slots=True)
class SupportView:
    """A quotation and its place. ``node`` is None where its place is unknown; ``number`` is the number of the
    evidence that contains it, 0 for none."""

    quote: Quote
    node: NodeView | None = None
    number: int = 0

    @property
    def pieces(self) -> tuple[TextPiece, ...]:
        """The quoted words, the answer in them marked."""
        text, start = self.quote.text, self.quote.span[0]
        first, last = (0, 0) if self.quote.answer is None else self.quote.answer
        first, last = max(0, first - start), min(len(text), last - start)
        parts = (TextPiece(text[:first]), TextPiece(text[first:last], True, True), TextPiece(text[last:]))
        return tuple(part for part in parts if part.text) if first < last else (TextPiece(text),)

    @property
    def place(self) -> str:
        """Document, page and section, as far as they are known."""
        return "" if self.node is None else self.node.place


@dataclass(frozen=True, slots=True)
class AlternativeView:
    """A possible answer, how sure the reader is of it (0 to 1, None where nothing estimates it), and the quotations
    that it stands in. ``number`` is its place among the alternatives, from 1; 0 for the likeliest answer."""

    text: str
    confidence: float | None
    supports: tuple[SupportView, ...]
    number: int = 0


@dataclass(frozen=True, slots=True)
class CheckView:
    """How far an answer meets a constraint: from 0 to 1, None where nothing says so; and the texts that say so."""

    constraint: str
    met: float | None = None
    evidence: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, check: Mapping[str, Any]) -> Self:
        """Return the check of its JSON."""
        return cls(check["constraint"], check["met"], tuple(hit["text"] for hit in check["evidence"]))

    @property
    def state(self) -> str:
        """``met``, ``missed``, ``unknown`` or ``partly``."""
        if self.met is None:
            return "unknown"
        if self.met == 0:
            return "missed"
        return "met" if self.met == 1 else "partly"


@dataclass(frozen=True, slots=True)
class RankedView:
    """One answer of a ranked list. ``ranked_by`` says what placed it, such as ``vector 0.71``; one that does not meet
    all constraints only fills the list up. ``graph`` is the document's name where it was read in a document."""

    name: str
    id: str
    graph: str
    score: float
    ranked_by: str
    meets_all: bool
    checks: tuple[CheckView, ...] = ()
    missed: tuple[str, ...] = ()
    text: str = ""
    list_name: str = ""

    @classmethod
    def from_dict(cls, ranked: Mapping[str, Any]) -> Self:
        """Return the ranked answer of its JSON."""
        return cls(
            ranked["name"],
            ranked["id"],
            ranked["graph"],
            ranked.get("score", 0.0),
            ranked["by"],
            ranked["meets_all"],
            tuple(map(CheckView.from_dict, ranked["checks"])),
            tuple(ranked.get("missed", ())),
            ranked.get("text", ""),
            ranked.get("list") or (NEAR_LIST if ranked["meets_all"] else FILL_LIST),
        )


#: The headings of the lists of ranked answers.
LIST_HEADINGS = {
    EXACT_LIST: "Meets everything, with exact names",
    NEAR_LIST: "Meets everything, with near names",
    MISSES_LIST: "Near misses",
    FILL_LIST: "Others, which only fill the list up",
}


@dataclass(frozen=True, slots=True)
class StepView:
    """A step of the trail: name, description, results and cost."""

    name: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    hits: tuple[HitView, ...] = ()
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    @classmethod
    def from_step(cls, step: Step) -> Self:
        """Return the view of a step as it happens."""
        return cls.from_dict(step.to_dict(), _nodes_by_id(step))

    @classmethod
    def from_dict(cls, step: Mapping[str, Any], nodes: Mapping[str, NodeView] = MappingProxyType({})) -> Self:
        """Return the step of its JSON, with the texts of the ``nodes`` that are known."""
        hits = tuple(HitView.from_dict(hit, nodes) for hit in step["hits"])
        return cls(step["name"], step["detail"], hits, _usage(step), step.get("seconds", 0.0))

    @property
    def facts(self) -> dict[str, str | int | float]:
        """What the step says of itself in single words and numbers."""
        return {
            key: value
            for key, value in self.detail.items()
            if isinstance(value, str | int | float) and value != ""
        }


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer, ready to be shown.

    ``nodes`` are the nodes that it mentions, by id, as far as their texts are known: of an Answer all, of stored JSON
    those of the evidence. ``substitutions`` has the names of the question that were taken for another name of a
    graph, with that name. ``constraint_summary`` says how the constraints of a question were matched; it is None for
    stored JSON, which has that only in its trail. ``supports`` are the ``quotes`` with their places.
    ``way`` says how it is given; ``perhaps`` are the possible answers where none is stated.
    ``confidence`` is the estimated probability that the answer is right, None of a reader that estimates none;
    ``alternatives`` are its next best answers, or the nearest candidates where it was not found. ``formula`` shows
    how it was computed. ``data`` is the answer's
    JSON.
    """

    text: str
    way: Way
    reader: str
    evidence: tuple[Evidence, ...] = ()
    quotes: tuple[Quote, ...] = ()
    supports: tuple[SupportView, ...] = ()
    confidence: float | None = None
    formula: str = ""
    alternatives: tuple[AlternativeView, ...] = ()
    perhaps: tuple[AlternativeView, ...] = ()
    ranked: tuple[RankedView, ...] = ()
    steps: tuple[StepView, ...] = ()
    from_memory: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    stopped: str = ""
    fallbacks: tuple[str, ...] = ()
    recipe: str = ""
    usage: Usage = field(default_factory=Usage)
    substitutions: Mapping[str, str] = field(default_factory=dict)
    constraint_summary: ConstraintSummary | None = None
    nodes: Mapping[str, NodeView] = field(default_factory=dict, repr=False)
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_answer(cls, answer: Answer) -> Self:
        """Return the view of an answer."""
        view = cls.from_dict(answer.to_dict(), _nodes_by_id(*answer.trail, answer))
        return replace(view, constraint_summary=answer.constraints)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], nodes: Mapping[str, NodeView] = MappingProxyType({})) -> Self:
        """Return the view of an answer's JSON (:meth:`clew.core.types.Answer.to_dict`); ``nodes`` are further
        nodes whose texts are known."""
        known = {hit["id"]: NodeView.from_dict(hit) for hit in data["evidence"]} | dict(nodes)
        quotes = tuple(map(_quote, data["quotes"]))
        numbers = {hit["id"]: number for number, hit in reversed([*enumerate(data["evidence"], 1)])}

        def support(quote: Quote) -> SupportView:
            return SupportView(quote, known.get(quote.node), numbers.get(quote.node, 0))

        # Answers that an earlier version stored have no way, no confidence and no alternatives.
        confidence, supports = data.get("confidence"), tuple(map(support, quotes))
        is_weak = confidence is not None and confidence < STATED_FROM
        way: Way = data.get("way") or (
            "not_found" if data["abstained"] else "perhaps" if is_weak else "answer"
        )
        alternatives = tuple(
            AlternativeView(item["text"], item["confidence"], (support(_quote(item["quote"])),), number)
            for number, item in enumerate(data.get("alternatives") or (), 1)
        )
        likeliest = AlternativeView(data["answer"], confidence, supports)
        possible = _possible_answers(data, support) or (likeliest, *alternatives)[:MAX_POSSIBLE]
        perhaps = possible if way == "perhaps" else ()
        candidates = perhaps or (alternatives if way == "not_found" else ())
        marked = [each.quote for item in candidates for each in item.supports] or quotes
        evidence = []
        for number, hit in enumerate(data["evidence"], 1):
            quoted = tuple(quote for quote in marked if quote.node == hit["id"])
            node, path, via = known[hit["id"]], tuple(hit["path"]), tuple(hit["via"])
            evidence.append(Evidence(node, hit["score"], path, via, number, quoted))
        return cls(
            text=data["answer"],
            way=way,
            reader=data["reader"],
            evidence=tuple(evidence),
            quotes=quotes,
            supports=supports,
            confidence=confidence,
            formula=data.get("formula", ""),
            alternatives=alternatives,
            perhaps=perhaps,
            ranked=tuple(map(RankedView.from_dict, data.get("ranked") or ())),
            steps=tuple(StepView.from_dict(step, known) for step in data["trail"]),
            from_memory=tuple(data["remembered"]),
            rejected=tuple(data.get("rejected", ())),
            substitutions=data.get("substitutions") or {},
            stopped=data.get("stopped") or "",
            fallbacks=tuple(data.get("fallbacks") or ()),
            recipe=data.get("recipe", ""),
            usage=_usage(data),
            nodes=known,
            data=data,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was used in the place of replies that could not be, and what prompts went without, a sentence each."""
        left_out = self.usage.left_out
        if not left_out:
            return self.fallbacks
        parts = f"{left_out} part{'s' * (left_out != 1)} of prompts (passages or exemplars)"
        return (*self.fallbacks, f"{parts} did not fit the model's context and went unread")

    @property
    def heading(self) -> str:
        """``Answer``, ``Perhaps`` or ``Not answered``."""
        return {"answer": "Answer", "perhaps": "Perhaps", "not_found": "Not answered"}[self.way]

    @property
    def answer_first(self) -> bool:
        """Whether the text is nothing but the words that answer, so that they are shown large, with their quotation
        below: the stated answer of a reader that estimates how sure it is."""
        return self.way == "answer" and self.confidence is not None

    @property
    def nearest(self) -> tuple[AlternativeView, ...]:
        """The nearest candidates of a question that was not answered."""
        return self.alternatives if self.way == "not_found" else ()

    @property
    def origin(self) -> str:
        """How the text came about, in words; "" where the question was not answered."""
        return "" if self.way == "not_found" else self.describe_origin()

    def describe_origin(self) -> str:
        """Say how the text came about."""
        is_quoted = any(self.text in quote.text for quote in self.quotes)
        return describe_origin(
            self.reader, self.from_memory, [row.ranked_by for row in self.ranked], is_quoted
        )

    @property
    def lists(self) -> list[tuple[str, list[tuple[int, RankedView]]]]:
        """The ranked answers apart by their lists: the heading of each list, and its answers with their ranks."""
        return [
            (heading, rows)
            for name, heading in LIST_HEADINGS.items()
            if (rows := [(rank, row) for rank, row in enumerate(self.ranked, 1) if row.list_name == name])
        ]

    def explain_order(self, first: str, second: str) -> list[str]:
        """Return why one of two ranked answers, named by name or id, stands above the other, a reason a line.

        Lists come before scores. Raises NotFound for a name that is not ranked.
        """
        pair = [self._find_ranked(name) for name in (first, second)]
        (rank, row), (other_rank, other) = sorted(pair, key=lambda ranked: ranked[0])
        lines = [f"{row.name} ranks {rank}, {other.name} ranks {other_rank}"]
        if row.list_name != other.list_name:
            headings = [LIST_HEADINGS[each.list_name].lower() for each in (row, other)]
            lines.append(f"{row.name}: {headings[0]}; {other.name}: {headings[1]}")
        met = {check.constraint: check.met for check in other.checks}
        for check in row.checks:
            others = met.get(check.constraint)
            if check.met is not None and others is not None and check.met != others:
                lines.append(f"{check.constraint}: {row.name} {check.met:.2g}, {other.name} {others:.2g}")
        if row.score != other.score:
            scores = [f"{each.name} {each.score:.3g} ({each.ranked_by})" for each in (row, other)]
            lines.append(f"score: {', '.join(scores)}")
        elif len(lines) == 1:
            lines.append("nothing ranks one above the other: they are in the order of their ids")
        return lines

    def _find_ranked(self, name: str) -> tuple[int, RankedView]:
        wanted = fold_name(name)
        for rank, row in enumerate(self.ranked, 1):
            if name == row.id or wanted == fold_name(row.name):
                return rank, row
        raise NotFound(f"no ranked answer is called '{name}'", f"To learn why it is none: --why-not {name!r}")

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraints that the ranked answers are checked by, in the order in which they come up."""
        return tuple(dict.fromkeys(check.constraint for row in self.ranked for check in row.checks))


def exclusion_checks(exclusion: Exclusion) -> list[CheckView]:
    """Return how far a node that is no answer meets each constraint."""
    return [
        CheckView(check.text, check.satisfaction, tuple(hit.node.text for hit in check.hits))
        for check in exclusion.checks
    ]


def _nodes_by_id(*holders: Step | Answer) -> dict[str, NodeView]:
    hits: Sequence[Any] = [
        hit for holder in holders for hit in (holder.hits if isinstance(holder, Step) else holder.evidence)
    ]
    return {hit.node.id: NodeView.from_node(hit.node) for hit in hits}


def _possible_answers(
    data: Mapping[str, Any], support: Callable[[Quote], SupportView]
) -> tuple[AlternativeView, ...]:
    """Return the possible answers that the JSON of an answer lists."""
    return tuple(
        AlternativeView(
            item["answer"], item["confidence"], tuple(map(support, map(_quote, item["quotes"]))), n
        )
        for n, item in enumerate(data.get("perhaps") or ())
    )


def _quote(quote: Mapping[str, Any]) -> Quote:
    """Return the quote of its JSON; earlier versions stored it without the range of the answer and without boxes."""
    answer = quote.get("answer")
    return Quote(
        quote["node"],
        quote["text"],
        tuple(quote["span"]),
        None if answer is None else tuple(answer),
        tuple(Box(*box) for box in quote.get("boxes") or ()),
    )


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> format_count(1, "page"), format_count(2000, "page"), format_count(2, "query"), format_count(0, "passage")
    ('1 page', '2,000 pages', '2 queries', '0 passages')
    """
    if number != 1:
        noun = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun}"


def format_confidence(confidence: float) -> str:
    """Return a confidence from 0 to 1 as a percentage: never 100 %, which would be certainty.

    >>> format_confidence(0.834), format_confidence(0.9999), format_confidence(0.004)
    ('83 %', '99 %', 'under 1 %')
    """
    percent = confidence_percent(confidence)
    return f"{percent} %" if percent else "under 1 %"


def confidence_percent(confidence: float) -> int:
    """Return a confidence from 0 to 1 in percent, at most 99."""
    return min(99, round(100 * confidence))


def _usage(data: Mapping[str, Any]) -> Usage:
    """Return the usage in the JSON of a step or an answer."""
    usage = data.get("usage") or {}
    return Usage(
        usage.get("calls", 0),
        usage.get("tokens_in", 0),
        usage.get("tokens_out", 0),
        usage.get("seconds", 0.0),
        usage.get("money", 0.0),
        left_out=usage.get("left_out", 0),
    )


#: A cut that saves fewer characters than this is not worth its ellipsis.
_WORTH_CUTTING = 80


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a text; ``marked`` if it is quoted, ``is_answer`` if it is the answer within the quotation."""

    text: str
    marked: bool = False
    is_answer: bool = False


def excerpt(
    text: str,
    spans: Sequence[tuple[int, ...]],
    around: int | None = 320,
    first: int = 320,
    answers: Sequence[tuple[int, int]] = (),
) -> tuple[TextPiece, ...]:
    """Return a text with its ``spans`` marked, and ``answers`` within them, cut to ``around`` characters on both
    sides of the spans.

    ``around`` None keeps the whole text. The excerpt ends no earlier than ``around`` characters after the first
    ``first`` characters of the text. Overlapping spans are marked once.

    >>> [(piece.text, piece.marked) for piece in excerpt("one two three", [(4, 7)])]
    [('one ', False), ('two', True), (' three', False)]
    """
    inside = sorted((max(0, span[0]), min(len(text), span[1])) for span in spans)
    start, end = 0, len(text)
    if around is not None:
        start = min((begin for begin, _ in inside), default=0) - around
        end = max(first, *(stop for _, stop in inside), 0) + around
        start = 0 if start < _WORTH_CUTTING else start
        end = len(text) if len(text) - end < _WORTH_CUTTING else end
    pieces, at = [TextPiece("… ")] if start else [], start
    for begin, stop in inside:
        if stop <= at:
            continue
        pieces.append(TextPiece(text[at : max(at, begin)]))
        pieces += _quoted_pieces(text, max(at, begin), stop, answers)
        at = stop
    pieces.append(TextPiece(text[at:end] + (" …" if end < len(text) else "")))
    return tuple(piece for piece in pieces if piece.text)


def _quoted_pieces(
    text: str, start: int, end: int, answers: Sequence[tuple[int, int]]
) -> Iterator[TextPiece]:
    at = start
    for first, last in sorted(answers):
        first, last = max(first, at), min(last, end)
        if first < last:
            yield TextPiece(text[at:first], marked=True)
            yield TextPiece(text[first:last], marked=True, is_answer=True)
            at = last
    yield TextPiece(text[at:end], marked=True)


def table_cells(text: str) -> tuple[tuple[str, ...], ...]:
    r"""Return the cells of the table in a Markdown text, the header first; empty where there is none.

    >>> table_cells("| a | b |\n| --- | --- |\n| 1 \\| 2 | x |")
    (('a', 'b'), ('1 | 2', 'x'))
    """
    return tuple(tuple(cell for cell, _, _ in row) for row in _placed_cells(text))


def table_cell_at(text: str, start: int, end: int) -> tuple[int, int] | None:
    r"""Return row and column of the first cell of the table in a Markdown text that a range of it touches; the header
    is row 0. None where it touches no cell.

    >>> table_cell_at("| a | b |\n| --- | --- |\n| 1 | x |", 30, 31)
    (1, 1)
    """
    for number, row in enumerate(_placed_cells(text)):
        for column, (_, first, last) in enumerate(row):
            if first < end and start < last:
                return number, column
    return None


def _placed_cells(text: str) -> list[list[tuple[str, int, int]]]:
    """Return the rows of the table in a Markdown text: each cell with the range that it has between its bars."""
    rows: list[list[tuple[str, int, int]]] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if line.startswith("|"):
            position, row = at + 1, []
            for cell in line.rstrip()[1:-1].replace("\\|", "\0\0").split("|"):
                row.append((cell.replace("\0\0", "|").strip(), position, position + len(cell)))
                position += len(cell) + 1
            rows.append(row)
        at += len(line)
    del rows[1:2]  # the rule below the header
    return rows
