"""An answer as its web page shows it: the text in paragraphs and tables with numbered citations, evidence with the
quoted words marked, ranked answers as a table over all constraints, and the chain that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from types import MappingProxyType

from clew.app.answers.view import (
    AnswerView,
    CheckView,
    Evidence,
    NodeView,
    RankedView,
    StepView,
    TextPiece,
    excerpt,
    table_cells,
)
from clew.core.errors import ClewError
from clew.core.types import EXACT_LIST, TABLE, TRIPLE
from clew.triples.language.chain import Limits, parse_chain
from clew.triples.language.consistency import best_filling

_SOURCES = {"kg": "a graph", "text": "the documents", "model": "the model's memory"}


@dataclass(frozen=True, slots=True)
class HopView:
    """A triple of a chain: head, relation and tail as they are written."""

    head: str
    relation: str
    tail: str


@dataclass(frozen=True, slots=True)
class UnknownView:
    """An unknown of a chain: its values and the source that gave them; ``conflicts`` holds each other source with the
    values that it gave instead."""

    name: str
    values: tuple[str, ...] = ()
    source: str = ""
    conflicts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChainView:
    """A chain as far as it was filled. ``answer`` is the unknown that answers the question, such as ``#2``."""

    hops: tuple[HopView, ...]
    unknowns: Mapping[str, UnknownView]
    answer: str = ""


def view_chain(steps: Sequence[StepView]) -> ChainView | None:
    """Return the chain that was answered from, None where the trail has none."""
    filling = best_filling(step.detail["filling"] for step in steps if step.name == "filled")
    if filling is None:
        return None
    try:
        chain = parse_chain(filling["chain"], Limits(1, 1_000))
    except ClewError:  # the chain of another method, which this diagram does not know
        return None
    values = filling["values"]
    sources, conflicts = _sources(steps, values), _conflicts(steps)
    unknowns = {
        name: UnknownView(
            name, tuple(values.get(name, ())), sources.get(name, ""), tuple(conflicts.get(name, ()))
        )
        for name in (f"#{number}" for number in chain.unknowns)
    }
    hops = tuple(HopView(str(triple.head), triple.relation, str(triple.tail)) for triple in chain.triples)
    return ChainView(hops, unknowns, "" if chain.answer is None else f"#{chain.answer}")


def _sources(steps: Sequence[StepView], values: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the source of each unknown's values: the first that gave one of them, else the model's memory."""
    sources: dict[str, str] = {}
    for step in steps:
        name = step.detail.get("unknown")
        if step.name == "fill" and set(step.detail.get("values", ())) & set(values.get(name or "", ())):
            graph, source = step.detail.get("graph"), str(step.detail["source"])
            sources.setdefault(str(name), f"the graph {graph}" if graph else _SOURCES.get(source, source))
    return dict.fromkeys(values, "the model's memory") | sources


def _conflicts(steps: Sequence[StepView]) -> dict[str, list[tuple[str, str]]]:
    """Return for each unknown the sources that disagree, each with its values."""
    conflicts: dict[str, list[tuple[str, str]]] = {}
    for step in steps:
        name = step.detail.get("unknown")
        if step.name == "conflict" and name is not None:
            other = step.detail["also"]
            source = _SOURCES.get(other["source"], other["source"])
            conflicts.setdefault(name, []).append((source, "; ".join(other["values"])))
    return conflicts


#: Ranked answers that a page lists.
_MAX_ROWS = 100
#: Pieces of evidence that are cited where the answer quotes none.
_MAX_CITED = 3


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """A paragraph of an answer with the numbers of the evidence it rests on, or a table: ``cells``, the header
    first."""

    text: str = ""
    citations: tuple[int, ...] = ()
    cells: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: the table's caption, and ``cells`` with the header and the row."""

    caption: str
    cells: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class EvidenceBlock:
    """A piece of evidence. ``cells`` are those of a table, or of a row below the header of its table; ``ends`` are
    head, relation and tail of a triple; ``pieces`` is the text, cut and marked."""

    evidence: Evidence
    pieces: tuple[TextPiece, ...]
    cells: tuple[tuple[str, ...], ...] = ()
    caption: str = ""
    ends: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.evidence.number

    @property
    def node(self) -> NodeView:
        """Its node."""
        return self.evidence.node


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One answer of a ranked list, with a check for each constraint of the whole list. ``entity`` is its id within
    ``graph``, by which the graph's page knows it; both are "" where it was read in a document. ``heading`` is that of
    its list, above the first row of each."""

    answer: RankedView
    checks: tuple[CheckView, ...]
    rank: int
    heading: str = ""
    graph: str = ""
    entity: str = ""


@dataclass(frozen=True, slots=True)
class AnswerPage:
    """What the page of an answer shows besides the view itself."""

    view: AnswerView
    blocks: tuple[AnswerBlock, ...]
    evidence: tuple[EvidenceBlock, ...]
    chain: ChainView | None
    ranked: tuple[RankedRow, ...]


def make_answer_page(view: AnswerView, rows: Mapping[str, TableRow] = MappingProxyType({})) -> AnswerPage:
    """Return what the page of an answer shows; ``rows`` are the table rows in its evidence, by node id."""
    return AnswerPage(
        view,
        _answer_blocks(view),
        tuple(_evidence_block(item, rows.get(item.node.id)) for item in view.evidence),
        view_chain(view.steps),
        tuple(_ranked_rows(view))[:_MAX_ROWS],
    )


def _evidence_block(item: Evidence, row: TableRow | None) -> EvidenceBlock:
    node, triple = item.node, item.node.kind == TRIPLE
    return EvidenceBlock(
        item,
        excerpt(node.text, () if triple else item.spans),
        row.cells if row else table_cells(node.text) if node.kind == TABLE else (),
        row.caption if row else node.name,
        tuple(node.text.split(" >> ")) if triple else (),
    )


def _ranked_rows(view: AnswerView) -> Iterator[RankedRow]:
    """Yield the rows of ranked answers, list by list."""
    is_plain = len(view.lists) == 1 and view.ranked[0].list_name == EXACT_LIST
    for heading, rows in view.lists:
        for place, (rank, row) in enumerate(rows):
            ranked = _ranked_row(row, view.constraints, rank)
            yield ranked if place or is_plain else replace(ranked, heading=heading)


def _ranked_row(row: RankedView, constraints: Sequence[str], rank: int) -> RankedRow:
    known = {check.constraint: check for check in row.checks}
    checks = tuple(known.get(text) or CheckView(text) for text in constraints)
    entity = row.id.removeprefix(f"{row.graph}:")
    if entity == row.id:
        return RankedRow(row, checks, rank)
    return RankedRow(row, checks, rank, graph=row.graph, entity=entity)


def _answer_blocks(view: AnswerView) -> tuple[AnswerBlock, ...]:
    """Divide an answer into paragraphs and tables.

    A paragraph that is a quotation has the number of its evidence. Where none is, all that the answer rests on stands
    at its end.
    """
    numbers = {item.node.id: item.number for item in reversed(view.evidence)}
    quoted: dict[str, int] = {}
    for quote in view.quotes:
        if quote.node in numbers:
            quoted.setdefault(" ".join(quote.text.split()), numbers[quote.node])
    blocks: list[AnswerBlock] = []
    lines = view.text.split("\n")
    while lines:
        table = list(takewhile(lambda line: line.startswith("|"), lines))
        if len(table) > 1:
            blocks.append(AnswerBlock(cells=table_cells("\n".join(table))))
            del lines[: len(table)]
            continue
        line = lines.pop(0).strip()
        if line:
            number = quoted.get(" ".join(line.split()))
            blocks.append(AnswerBlock(line, () if number is None else (number,)))
    if view.abstained or any(block.citations for block in blocks):
        return tuple(blocks)
    rests_on = tuple(item.number for item in view.evidence if item.quotes)
    rests_on = rests_on or tuple(item.number for item in view.evidence[:_MAX_CITED])
    if blocks and not blocks[-1].cells:
        blocks[-1] = AnswerBlock(blocks[-1].text, rests_on)
    elif rests_on:
        blocks.append(AnswerBlock("", rests_on))
    return tuple(blocks)
