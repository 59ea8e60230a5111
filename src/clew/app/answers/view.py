"""An answer as its page shows it: text in blocks, citations numbered, quoted words marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from clew.core.errors import ClewError
from clew.core.types import ENTITY, TABLE, TRIPLE
from clew.methods.answering import describe_origin
from clew.triples.language.chain import Chain, Limits, parse_chain
from clew.triples.language.consistency import best_filling

#: Characters of a passage that are shown around its quotes.
_AROUND = 320
#: A cut of fewer characters would cost more than it saves.
_WORTH_CUTTING = 80
#: Ranked answers that a page lists.
_ROWS = 100


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of text, marked or not."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of an answer with the numbers of what it rests on, or a table: ``cells``, the header first."""

    text: str = ""
    cites: tuple[int, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: the table's caption, and its header and the row as ``cells``."""

    caption: str
    cells: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """A piece of evidence. ``kind`` is that of its node; ``cells`` are a table's, or a row's below the header;
    ``ends`` are head, relation and tail of a triple; ``path`` says how it was reached, from the first node on."""

    number: int
    id: str
    kind: str
    document: str
    key: str
    page: int | None
    section: str
    score: float
    pieces: tuple[TextPiece, ...]
    cells: tuple[tuple[str, ...], ...] = ()
    caption: str = ""
    ends: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    via: tuple[str, ...] = ()
    quoted: bool = False

    @property
    def in_graph(self) -> bool:
        """Whether it lies in a graph and not in a document."""
        return self.kind in {TRIPLE, ENTITY}


@dataclass(frozen=True, slots=True)
class HopView:
    """A triple of a chain: its terms, each text with the unknowns in it marked."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True, slots=True)
class UnknownView:
    """An unknown of a chain: its values, where they come from, and what was asked there. ``also`` holds what other
    sources say."""

    name: str
    values: tuple[str, ...] = ()
    source: str = ""
    also: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChainView:
    """A chain as far as it was filled."""

    hops: tuple[HopView, ...]
    unknowns: Mapping[str, UnknownView]
    final: str = ""


@dataclass(frozen=True, slots=True)
class ConstraintCheck:
    """How far an answer meets a constraint, and the triples by which it does; ``met`` None where nothing says so."""

    met: float | None
    evidence: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """``met``, ``missed``, ``unknown`` or ``partly``."""
        if self.met is None:
            return "unknown"
        if self.met == 0:
            return "missed"
        return "met" if self.met == 1 else "partly"


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One answer of a ranked list. ``inside`` is its id within ``graph``, which is "" where it comes from a document.
    ``checks`` are in the order of the constraints of the whole list."""

    name: str
    graph: str
    inside: str
    by: str
    firm: bool
    checks: tuple[ConstraintCheck, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """An answer, ready to be shown. ``constraints`` are those that ``ranked`` answers are checked by."""

    heading: str
    how: str
    blocks: tuple[Block, ...]
    citations: tuple[EvidenceView, ...]
    filling: ChainView | None = None
    constraints: tuple[str, ...] = ()
    ranked: tuple[RankedRow, ...] = ()


def view_answer(answer: Mapping[str, Any], rows: Mapping[str, TableRow] = MappingProxyType({})) -> AnswerView:
    """Return what the page of an answer shows, from its JSON shape; ``rows`` are the table rows in its evidence."""
    citations = tuple(
        view_evidence(number, hit, answer, rows.get(hit["id"]))
        for number, hit in enumerate(answer["evidence"], 1)
    )
    heading = "Not answered" if answer["abstained"] else "Answer"
    return AnswerView(
        heading,
        "" if answer["abstained"] else _how(answer),
        _blocks(answer, citations),
        citations,
        view_chain(answer["trail"]),
        *ranked_rows(answer.get("ranked") or ()),
    )


def view_evidence(
    number: int, hit: Mapping[str, Any], answer: Mapping[str, Any], row: TableRow | None = None
) -> EvidenceView:
    """Return evidence number ``number`` of an answer."""
    cells = table_cells(hit["text"]) if hit["kind"] == TABLE else ()
    spans = [tuple(quote["span"]) for quote in answer["quotes"] if quote["node"] == hit["id"]]
    return EvidenceView(
        number,
        hit["id"],
        hit["kind"],
        hit["document"],
        hit["key"],
        hit["page"],
        hit["section"],
        hit["score"],
        excerpt(hit["text"], [] if hit["kind"] == TRIPLE else spans),
        cells if row is None else row.cells,
        hit["name"] if row is None else row.caption,
        tuple(hit["text"].split(" >> ")) if hit["kind"] == TRIPLE else (),
        tuple(hit["path"]),
        tuple(hit["via"]),
        bool(spans),
    )


def excerpt(
    text: str, spans: Sequence[tuple[int, ...]], around: int | None = _AROUND
) -> tuple[TextPiece, ...]:
    """Return a text with its ``spans`` marked, cut to their neighbourhood; whole where ``around`` is None.

    >>> [(one.text, one.marked) for one in excerpt("one two three", [(4, 7)])]
    [('one ', False), ('two', True), (' three', False)]
    """
    inside = sorted((max(0, span[0]), min(len(text), span[1])) for span in spans)
    first = min((start for start, _ in inside), default=0)
    last = max((end for _, end in inside), default=0)
    start, end = (0, len(text)) if around is None else (first - around, max(last, around) + around)
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
    return tuple(one for one in pieces if one.text)


def _how(answer: Mapping[str, Any]) -> str:
    return describe_origin(
        answer["reader"], answer["remembered"], [one["by"] for one in answer.get("ranked") or ()]
    )


def _blocks(answer: Mapping[str, Any], citations: Sequence[EvidenceView]) -> tuple[Block, ...]:
    """Divide an answer into paragraphs and tables; each paragraph that is a quote has its number, and what the whole
    rests on stands at the end."""
    said: dict[str, int] = {}
    numbers = {one.id: one.number for one in reversed(citations)}
    for quote in answer["quotes"]:
        if quote["node"] in numbers:
            said.setdefault(" ".join(quote["text"].split()), numbers[quote["node"]])
    blocks: list[Block] = []
    lines = answer["answer"].split("\n")
    while lines:
        table = [line for line in _leading(lines) if line.startswith("|")]
        if len(table) > 1:
            blocks.append(Block(cells=table_cells("\n".join(table))))
            del lines[: len(table)]
            continue
        line = lines.pop(0).strip()
        if line:
            number = said.get(" ".join(line.split()))
            blocks.append(Block(line, () if number is None else (number,)))
    if answer["abstained"] or any(block.cites for block in blocks):
        return tuple(blocks)
    rests = tuple(one.number for one in citations if one.quoted) or tuple(one.number for one in citations[:3])
    if blocks and not blocks[-1].cells:
        blocks[-1] = Block(blocks[-1].text, rests)
    elif rests:
        blocks.append(Block("", rests))
    return tuple(blocks)


def _leading(lines: Sequence[str]) -> list[str]:
    """Return the lines at the start that a table may consist of."""
    number = next((n for n, one in enumerate(lines) if not one.startswith("|")), len(lines))
    return list(lines[:number])


def table_cells(text: str) -> tuple[tuple[str, ...], ...]:
    r"""Return the cells of the table that a text in Markdown holds, the header first.

    >>> table_cells("| a | b |\n| --- | --- |\n| 1 \\| 2 | x |")
    (('a', 'b'), ('1 | 2', 'x'))
    """
    rows = [line for line in text.splitlines() if line.startswith("|")]
    found = []
    for number, row in enumerate(rows):
        if number == 1:
            continue  # the rule below the header
        parts = row.strip()[1:-1].replace("\\|", "\0").split("|")
        found.append(tuple(part.replace("\0", "|").strip() for part in parts))
    return tuple(found)


# Ranked answers


def ranked_rows(ranked: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[RankedRow, ...]]:
    """Return the constraints of a ranked list, in the order in which they come up, and its rows."""
    names = tuple(dict.fromkeys(check["constraint"] for one in ranked for check in one["checks"]))
    rows = []
    for one in ranked[:_ROWS]:
        checks = {
            check["constraint"]: ConstraintCheck(
                check["met"], tuple(hit["text"] for hit in check["evidence"])
            )
            for check in one["checks"]
        }
        graph, inside = one["graph"], str(one["id"]).removeprefix(f"{one['graph']}:")
        if inside == one["id"]:  # it was read in a document
            graph = ""
        rows.append(
            RankedRow(
                one["name"],
                graph,
                inside,
                one["by"],
                one["meets_all"],
                tuple(checks.get(name, ConstraintCheck(None)) for name in names),
            )
        )
    return names, tuple(rows)


# Chains


def view_chain(trail: Sequence[Mapping[str, Any]]) -> ChainView | None:
    """Return the chain that a trail answers from, with the source of each unknown; None where there is none."""
    best = best_filling(step["detail"]["filling"] for step in trail if step["name"] == "filled")
    if best is None:
        return None
    try:
        chain = parse_chain(best["chain"], Limits(1, 1_000))
    except ClewError:  # the chain of another method, which this diagram does not know
        return None
    sources, also = _sources(trail, best["values"])
    unknowns = {
        name: UnknownView(
            name, tuple(best["values"].get(name, ())), sources.get(name, ""), tuple(also.get(name, ()))
        )
        for name in (f"#{number}" for number in chain.unknowns)
    }
    return ChainView(
        tuple(HopView(str(one.head), one.relation, str(one.tail)) for one in chain.triples),
        unknowns,
        _final(chain),
    )


def _final(chain: Chain) -> str:
    return f"#{chain.answer}" if chain.answer is not None else ""


def _sources(
    trail: Sequence[Mapping[str, Any]], values: Mapping[str, Sequence[str]]
) -> tuple[dict[str, str], dict[str, list[tuple[str, str]]]]:
    """Return where each unknown's values come from, and what other sources say of it."""
    sources: dict[str, str] = {}
    also: dict[str, list[tuple[str, str]]] = {}
    for step in trail:
        detail = step["detail"]
        name = detail.get("unknown")
        told = values.get(name, ()) if step["name"] == "fill" else ()
        if set(detail.get("values", ())) & set(told):
            sources.setdefault(name, _source(detail))
        if step["name"] == "conflict" and name is not None:
            other = detail["also"]
            also.setdefault(name, []).append(
                (_SOURCES.get(other["source"], other["source"]), "; ".join(other["values"]))
            )
    for name in values:
        sources.setdefault(name, "the model's memory")
    return sources, also


_SOURCES = {"kg": "a graph", "text": "the documents", "model": "the model's memory"}


def _source(detail: Mapping[str, Any]) -> str:
    if detail.get("graph"):
        return f"the graph {detail['graph']}"
    return _SOURCES.get(str(detail["source"]), str(detail["source"]))
