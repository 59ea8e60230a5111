"""An answer as its web page shows it: the text in paragraphs and tables with numbered citations, evidence with the
quoted words marked, ranked answers as a table over all constraints, and the chain that it rests on.

The answer of a reader that marks the words that answer stands first, large; below it the sentence or the table row
that it is quoted from, and its alternatives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType

from clew.app.answers.view import (
    AlternativeView,
    AnswerView,
    CheckView,
    Evidence,
    NodeView,
    RankedView,
    StepView,
    SupportView,
    TextPiece,
    excerpt,
    table_cell_at,
    table_cells,
)
from clew.app.web.pages.language import format_count, gettext, mark, ngettext
from clew.core.errors import ClewError
from clew.core.types import EXACT_LIST, TABLE, TRIPLE
from clew.triples.language.chain import Limits, parse_chain
from clew.triples.language.consistency import best_filling

_SOURCES = {"kg": mark("a graph"), "text": mark("the documents"), "model": mark("the model’s memory")}


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
            named = gettext("the graph %(name)s", name=graph) if graph else _source_name(source)
            sources.setdefault(str(name), named)
    return dict.fromkeys(values, _source_name("model")) | sources


def _source_name(source: str) -> str:
    return gettext(_SOURCES[source]) if source in _SOURCES else source


def _conflicts(steps: Sequence[StepView]) -> dict[str, list[tuple[str, str]]]:
    """Return for each unknown the sources that disagree, each with its values."""
    conflicts: dict[str, list[tuple[str, str]]] = {}
    for step in steps:
        name = step.detail.get("unknown")
        if step.name == "conflict" and name is not None:
            other = step.detail["also"]
            source = _source_name(other["source"])
            conflicts.setdefault(name, []).append((source, "; ".join(other["values"])))
    return conflicts


#: Ranked answers that a page lists.
_MAX_ROWS = 100
#: Rows of a table that are shown of it as evidence, before all are asked for.
_MAX_TABLE_ROWS = 12
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
    """A row of a table: the table's caption, and ``cells`` with the header and the row. ``group`` is the row that
    heads its group, such as "Earnings per share" over "Diluted"."""

    caption: str
    cells: tuple[tuple[str, ...], ...]
    group: str = ""


#: Row and column of a cell; the header is row 0.
CellPosition = tuple[int, int]


@dataclass(frozen=True, slots=True)
class EvidenceBlock:
    """A piece of evidence. ``cells`` are those of a table, or of a row below the header of its table; ``ends`` are
    head, relation and tail of a triple; ``pieces`` is the text, cut and marked. ``marked_cells`` are the cells that
    the answer stands in. Of a long table ``rows`` are the first and the last row in ``cells``, and how many there
    are."""

    evidence: Evidence
    pieces: tuple[TextPiece, ...]
    cells: tuple[tuple[str, ...], ...] = ()
    caption: str = ""
    ends: tuple[str, ...] = ()
    marked_cells: tuple[CellPosition, ...] = ()
    rows: tuple[int, int, int] | None = None

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.evidence.number

    @property
    def node(self) -> NodeView:
        """Its node."""
        return self.evidence.node


@dataclass(frozen=True, slots=True)
class SupportBlock:
    """A quotation: its words with the answer marked, or the table row that it is, with the marked cells."""

    support: SupportView
    pieces: tuple[TextPiece, ...]
    cells: tuple[tuple[str, ...], ...] = ()
    caption: str = ""
    marked_cells: tuple[CellPosition, ...] = ()


@dataclass(frozen=True, slots=True)
class AlternativeBlock:
    """A possible answer with its confidence from 0 to 1, None where nothing estimates it; ``number`` counts the
    alternatives from 1, 0 is the likeliest answer."""

    number: int
    text: str
    confidence: float | None
    blocks: tuple[SupportBlock, ...]


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One answer of a ranked list, with a check for each constraint of the list. ``graph`` and ``entity`` identify
    its node; both are "" for an answer from a document. ``heading`` is the list's heading, set in the first row of
    each list."""

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
    supports: tuple[SupportBlock, ...] = ()
    alternatives: tuple[AlternativeBlock, ...] = ()
    perhaps: tuple[AlternativeBlock, ...] = ()
    search_summary: str = ""
    step_lines: tuple[str, ...] = ()
    origin: str = ""


#: The steps of a trail in plain words.
STEP_WORDS: Mapping[str, str] = dict(
    line.split("\t")
    for line in (Path(__file__).parent / "steps.tsv").read_text(encoding="utf-8").splitlines()
)
#: Names that are told of a search: those that led to the most passages.
_MAX_LEADS = 2
_MENTION = re.compile(r"^(?:mentions|names?|title): (.+)$")


def describe_step(step: StepView) -> str:
    """Return a step of a trail in plain words: "Searched for passages: 10 in 5 documents"."""
    words = gettext(STEP_WORDS.get(step.name, mark("Worked on the question")))
    nodes = {hit.node.id: hit.node for hit in step.hits}
    places = len({node.document for node in nodes.values()})
    if not nodes:
        return words
    if all(node.in_graph for node in nodes.values()):
        return gettext("%(words)s: %(count)s", words=words, count=format_count(len(nodes), "fact"))
    count = format_count(len(nodes), "passage")
    if places < 2:
        return gettext("%(words)s: %(count)s", words=words, count=count)
    where = ngettext("in %(num)s document", "in %(num)s documents", places)
    return gettext("%(words)s: %(count)s %(where)s", words=words, count=count, where=where)


def describe_words(view: AnswerView) -> str:
    """Say in plain words where the words of an answer come from; "" where there is no answer."""
    if view.way == "not_found":
        return ""
    if view.describe_origin().startswith("written by"):
        if view.from_memory:
            return gettext(
                "A language model wrote this from the passages that are quoted, in part from what it remembers."
            )
        return gettext("A language model wrote this from the passages that are quoted.")
    if view.evidence and all(item.node.in_graph for item in view.evidence):
        words = gettext("Looked up in your graphs")
    elif view.formula:
        words = gettext("Worked out from the cells that are marked")
    elif any(view.text in quote.text for quote in view.quotes):
        words = gettext("Taken word for word from your documents")
    else:
        words = gettext("Read from your documents")
    if view.usage.calls:
        return gettext("%(words)s; no language model wrote it.", words=words)
    return gettext("%(words)s; no language model was used.", words=words)


def describe_search(view: AnswerView) -> str:
    """Return in a sentence what a search did: "Looked in 5 documents, found 10 passages, followed
    “Boeing” to 30 more, kept 5."."""
    seen: dict[str, NodeView] = {}
    first = followed = 0
    leads: Counter[str] = Counter()
    for step in view.steps:
        new = {hit.node.id: hit for hit in step.hits if hit.node.id not in seen}
        seen |= {id: hit.node for id, hit in new.items()}
        if step.name in {"expand", "follow up"}:
            followed += len(new)
            for hit in new.values():
                match = _MENTION.match(hit.via[-1]) if hit.via else None
                leads.update([match[1].split(", ")[0]] if match else [])
        else:
            first += len(new)
    if not seen:
        return gettext("Nothing was found to read.")
    documents = len({node.document for node in seen.values() if not node.in_graph})
    graphs = len({node.document for node in seen.values() if node.in_graph})
    places = [ngettext("in %(num)s document", "in %(num)s documents", documents)] if documents else []
    places += [ngettext("in %(num)s graph", "in %(num)s graphs", graphs)] if graphs else []
    parts = [gettext("Looked %(where)s", where=_join_two(places)), _count_first(first, bool(documents))]
    if followed and leads:
        names = _join_two([gettext("“%(text)s”", text=name) for name, _ in leads.most_common(_MAX_LEADS)])
        parts.append(
            ngettext(
                "followed %(names)s to %(num)s more",
                "followed %(names)s to %(num)s more",
                followed,
                names=names,
            )
        )
    elif followed:
        parts.append(ngettext("looked at %(num)s more", "looked at %(num)s more", followed))
    parts.append(ngettext("kept %(num)s", "kept %(num)s", len(view.evidence)))
    sentence = gettext(", ").join(parts)
    return gettext("%(sentence)s.", sentence=sentence[:1].upper() + sentence[1:])


def _count_first(number: int, are_passages: bool) -> str:
    if are_passages:
        return ngettext("found %(num)s passage", "found %(num)s passages", number)
    return ngettext("found %(num)s fact", "found %(num)s facts", number)


def _join_two(parts: Sequence[str]) -> str:
    """Return one part, or two that are joined by "and"."""
    return (
        parts[0] if len(parts) == 1 else gettext("%(first)s and %(second)s", first=parts[0], second=parts[1])
    )


def make_answer_page(view: AnswerView, rows: Mapping[str, TableRow] = MappingProxyType({})) -> AnswerPage:
    """Return what the page of an answer shows; ``rows`` are the table rows in its evidence, by node id."""
    return AnswerPage(
        view,
        _answer_blocks(view),
        tuple(_evidence_block(item, rows.get(item.node.id)) for item in view.evidence),
        view_chain(view.steps),
        tuple(_ranked_rows(view))[:_MAX_ROWS],
        _support_blocks(view.supports, rows) if view.answer_first else (),
        _alternative_blocks(view.alternatives[max(0, len(view.perhaps) - 1) :], rows),
        _alternative_blocks(view.perhaps, rows),
        describe_search(view),
        tuple(describe_step(step) for step in view.steps),
        describe_words(view),
    )


def _alternative_blocks(
    items: Sequence[AlternativeView], rows: Mapping[str, TableRow]
) -> tuple[AlternativeBlock, ...]:
    return tuple(
        AlternativeBlock(
            item.number, item.text, item.confidence, _support_blocks(item.supports, rows)[:_MAX_CITED]
        )
        for item in items
    )


def _evidence_block(item: Evidence, row: TableRow | None) -> EvidenceBlock:
    node, triple = item.node, item.node.kind == TRIPLE
    cells = row.cells if row else table_cells(node.text) if node.kind == TABLE else ()
    marked = _marked_cells(node, row, item.answers)
    total = len(cells) - 1
    rows: tuple[int, int, int] | None = None
    if total > _MAX_TABLE_ROWS:
        # Of a long table the header and the rows around the answer are shown; the others on demand.
        skipped = max(0, min(max((row for row, _ in marked), default=0) - 2, total - _MAX_TABLE_ROWS))
        rows = (skipped + 1, skipped + _MAX_TABLE_ROWS, total)
        cells = (cells[0], *cells[rows[0] : rows[1] + 1])
        marked = tuple(
            (row - skipped if row else 0, column)
            for row, column in marked
            if rows[0] <= row <= rows[1] or not row
        )
    return EvidenceBlock(
        item,
        excerpt(node.text, () if triple else item.spans, answers=item.answers),
        cells,
        row.caption if row else node.name,
        tuple(node.text.split(" >> ")) if triple else (),
        marked,
        rows,
    )


def whole_table(item: Evidence) -> tuple[tuple[tuple[str, ...], ...], tuple[CellPosition, ...]]:
    """Return all rows of a table that is evidence, the header first, and the cells that the answer stands in."""
    return table_cells(item.node.text), _marked_cells(item.node, None, item.answers)


def _support_blocks(
    supports: Sequence[SupportView], rows: Mapping[str, TableRow]
) -> tuple[SupportBlock, ...]:
    """Return the quotations, each once: of two cells of one row the row, with both marked."""
    groups: dict[tuple[str, tuple[int, int]], list[SupportView]] = {}
    for support in supports:
        groups.setdefault((support.quote.node, support.quote.span), []).append(support)
    return tuple(_support_block(group, rows) for group in groups.values())


def _support_block(supports: Sequence[SupportView], rows: Mapping[str, TableRow]) -> SupportBlock:
    """Return quotations of the same words, which may have different answers, as one."""
    support = supports[0]
    node, quote = support.node, support.quote
    row = rows.get(quote.node)
    answers = [item.quote.answer for item in supports if item.quote.answer is not None]
    pieces = support.pieces
    if len(supports) > 1:
        ranges = [(first - quote.span[0], last - quote.span[0]) for first, last in answers]
        pieces = excerpt(quote.text, ranges, around=None, answers=ranges)
    if node is not None and row is not None:
        marked = _marked_cells(node, row, answers)
        # The words have the answer marked, even where no single cell does.
        if marked or not answers:
            caption = ": ".join(part for part in (row.caption, row.group) if part)
            return SupportBlock(support, pieces, row.cells, caption, marked)
    if node is not None and node.kind == TABLE and len(answers) == 1:
        cells = table_cells(node.text)
        if (place := table_cell_at(node.text, *answers[0])) is not None and place[0]:
            cells, marked = (cells[0], cells[place[0]]), ((1, place[1]),)
            return SupportBlock(support, pieces, cells, node.name, marked)
    return SupportBlock(support, pieces)


def _marked_cells(
    node: NodeView, row: TableRow | None, answers: Sequence[tuple[int, int]]
) -> tuple[CellPosition, ...]:
    if row is not None:
        places = [row_cell_at(node.text, row.cells, *answer) for answer in answers]
    elif node.kind == TABLE:
        places = [table_cell_at(node.text, *answer) for answer in answers]
    else:
        return ()
    return tuple(place for place in places if place is not None)


def row_cell_at(text: str, cells: Sequence[Sequence[str]], start: int, end: int) -> CellPosition | None:
    """Return the cell, of ``cells`` (the header and a row), that a range of the row's text touches; None for no cell.

    The text is ``caption. group: row header: column header: cell; ...``; empty cells are left out. A range that
    touches several cells is in the last of them: "2022: $815" is the value and not the year.

    >>> row_cell_at("Shops. Total: 2022: 815; 2021: 795", [("", "2022", "2021"), ("Total", "815", "795")], 20, 23)
    (1, 1)
    """
    at = len(text)
    header, row = cells[0], cells[1]
    for column in range(len(row) - 1, 0, -1):
        cell = row[column]
        if not cell:
            continue
        name = header[column] if column < len(header) else ""
        # What the corner says of all columns ("Years ended December 31,") is not said of each in the text.
        names = (name, name.removeprefix(header[0]).strip())
        entries = [f"{each}: {cell}" if each else cell for each in names]
        entry = next((each for each in entries if text[:at].endswith(each)), None)
        if entry is None:
            return None  # the parts of the text cannot be told
        first = at - len(cell)
        if start < at and first < end:
            return 1, column
        if entry != cell and start < first and at - len(entry) < end:
            return 0, column
        at -= len(entry)
        at -= 2 * text[:at].endswith(("; ", ": "))
    first = at - len(row[0].rstrip(":"))
    return (1, 0) if row[0] and start < at and first < end else None


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
    if view.answer_first:
        rests_on = tuple(dict.fromkeys(support.number for support in view.supports if support.number))
        return (AnswerBlock(" ".join(view.text.split()), rests_on),)
    if view.way != "answer" or any(block.citations for block in blocks):
        return tuple(blocks)
    rests_on = tuple(item.number for item in view.evidence if item.quotes)
    rests_on = rests_on or tuple(item.number for item in view.evidence[:_MAX_CITED])
    if blocks and not blocks[-1].cells:
        blocks[-1] = AnswerBlock(blocks[-1].text, rests_on)
    elif rests_on:
        blocks.append(AnswerBlock("", rests_on))
    return tuple(blocks)
