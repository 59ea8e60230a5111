"""An answer as every renderer sees it.

An :class:`AnswerView` is built once, from an :class:`~clew.core.types.Answer` or from its stored JSON, and holds
plain values: the evidence with its places, the ranked answers with their constraints, the steps of the trail. It is
shown

- on a terminal by :mod:`clew.app.cli.answer`,
- on web pages by :mod:`clew.app.web.pages.answer` and the templates,
- as a Markdown file by :func:`clew.app.web.api.questions.render_markdown`,
- to programs, as text with numbered citations, by :mod:`clew.app.answers.citations`,
- as JSON by its own :attr:`AnswerView.data`.

Passages are cut around their quotations (:func:`excerpt`), and tables split into cells, here for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

from clew.core.errors import NotFound
from clew.core.text import fold_name
from clew.core.types import (
    ENTITY,
    EXACT_LIST,
    FILL_LIST,
    MISSES_LIST,
    NEAR_LIST,
    TRIPLE,
    Answer,
    ConstraintSummary,
    Exclusion,
    Node,
    Quote,
    Step,
    Usage,
)
from clew.methods.answering import describe_origin


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node that an answer mentions: where it lies, and its text.

    ``document`` is the name of its document or graph, ``key`` the document's key and ``position`` the node's place in
    it. What is not known of a node is empty.
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
        )

    @classmethod
    def from_dict(cls, hit: Mapping[str, Any]) -> Self:
        """Return the view of the node in the JSON of a hit; a hit of a step has no text."""
        section, text, kind, name, key = (
            str(hit.get(field) or "") for field in ("section", "text", "kind", "name", "key")
        )
        return cls(hit["id"], hit["document"], hit["page"], section, text, kind, name, key)

    @property
    def in_graph(self) -> bool:
        """Whether it belongs to a knowledge graph and not to a document."""
        return self.kind in {TRIPLE, ENTITY}

    @property
    def location(self) -> str:
        """Document, page and section: ``report.pdf, page 3, Results > Costs``."""
        page = "" if self.page is None else f"page {self.page}"
        return ", ".join(part for part in (self.document, page, self.section) if part)

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
        """Return the hit of its JSON; its node is that of ``nodes`` where it is there."""
        node = nodes.get(hit["id"]) or NodeView.from_dict(hit)
        return cls(node, hit["score"], tuple(hit["path"]), tuple(hit["via"]))


@dataclass(frozen=True, slots=True)
class Evidence(HitView):
    """A piece of evidence: ``number`` counts from 1; ``quotes`` are the quotations of the answer from its text."""

    number: int = 0
    quotes: tuple[Quote, ...] = ()

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the quotations stand in the node's text."""
        return [quote.span for quote in self.quotes]


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
    """A step of the trail: its name, what it says of itself, what it found, and what it cost."""

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
    stored JSON, which has that only in its trail. ``data`` is the answer's JSON.
    """

    text: str
    abstained: bool
    reader: str
    evidence: tuple[Evidence, ...] = ()
    quotes: tuple[Quote, ...] = ()
    ranked: tuple[RankedView, ...] = ()
    steps: tuple[StepView, ...] = ()
    from_memory: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    stopped: str = ""
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
        quotes = tuple(Quote(quote["node"], quote["text"], tuple(quote["span"])) for quote in data["quotes"])
        evidence = []
        for number, hit in enumerate(data["evidence"], 1):
            quoted = tuple(quote for quote in quotes if quote.node == hit["id"])
            node, path, via = known[hit["id"]], tuple(hit["path"]), tuple(hit["via"])
            evidence.append(Evidence(node, hit["score"], path, via, number, quoted))
        return cls(
            text=data["answer"],
            abstained=data["abstained"],
            reader=data["reader"],
            evidence=tuple(evidence),
            quotes=quotes,
            ranked=tuple(map(RankedView.from_dict, data.get("ranked") or ())),
            steps=tuple(StepView.from_dict(step, known) for step in data["trail"]),
            from_memory=tuple(data["remembered"]),
            rejected=tuple(data.get("rejected", ())),
            substitutions=data.get("substitutions") or {},
            stopped=data.get("stopped") or "",
            recipe=data.get("recipe", ""),
            usage=_usage(data),
            nodes=known,
            data=data,
        )

    @property
    def heading(self) -> str:
        """``Answer`` or ``Not answered``."""
        return "Not answered" if self.abstained else "Answer"

    @property
    def origin(self) -> str:
        """How the text came about, in words; "" where the question was not answered."""
        return "" if self.abstained else self.describe_origin()

    def describe_origin(self) -> str:
        """Say how the text came about."""
        return describe_origin(self.reader, self.from_memory, [row.ranked_by for row in self.ranked])

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


def _usage(data: Mapping[str, Any]) -> Usage:
    """Return the usage in the JSON of a step or an answer."""
    usage = data.get("usage") or {}
    return Usage(
        usage.get("calls", 0),
        usage.get("tokens_in", 0),
        usage.get("tokens_out", 0),
        usage.get("seconds", 0.0),
        usage.get("money", 0.0),
    )


#: A cut that saves fewer characters than this is not worth its ellipsis.
_WORTH_CUTTING = 80


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of a text; ``marked`` if it is quoted."""

    text: str
    marked: bool = False


def excerpt(
    text: str, spans: Sequence[tuple[int, ...]], around: int | None = 320, first: int = 320
) -> tuple[TextPiece, ...]:
    """Return a text with its ``spans`` marked, cut to ``around`` characters on both sides of them.

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
        pieces.append(TextPiece(text[max(at, begin) : stop], marked=True))
        at = stop
    pieces.append(TextPiece(text[at:end] + (" …" if end < len(text) else "")))
    return tuple(piece for piece in pieces if piece.text)


def table_cells(text: str) -> tuple[tuple[str, ...], ...]:
    r"""Return the cells of the table in a Markdown text, the header first; empty where there is none.

    >>> table_cells("| a | b |\n| --- | --- |\n| 1 \\| 2 | x |")
    (('a', 'b'), ('1 | 2', 'x'))
    """
    lines = [line for line in text.splitlines() if line.startswith("|")]
    del lines[1:2]  # the rule below the header
    rows = (line.strip()[1:-1].replace("\\|", "\0").split("|") for line in lines)
    return tuple(tuple(cell.replace("\0", "|").strip() for cell in row) for row in rows)
