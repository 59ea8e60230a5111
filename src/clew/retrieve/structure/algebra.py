"""Evaluate queries about structure (:mod:`clew.retrieve.structure.query`) on the trees of the documents.

Counting, listing, locating, existence and differences are computed; their answers need no reader. What a question
merely points at is left to a reader. A structure that a named document does not have is answered by what it has
("it has 14 pages").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clew.core.text import hash_term, normalise, query_terms
from clew.core.types import DOCUMENT, KINDS, PAGE, PASSAGE, ROW, SECTION, TABLE, Document, Node, Scope
from clew.retrieve.structure.comparison import compare_nodes
from clew.retrieve.structure.outline import LABEL_WORDS, Outline, read_cells
from clew.retrieve.structure.query import FIGURE, Query, Selector, name_many
from clew.retrieve.structure.resolver import Reference, ReferenceResolver, best_matches, match_name

if TYPE_CHECKING:
    from clew.core.protocols import Snapshot

#: At most this many items are listed; the answer says how many there are.
MAX_LISTED = 40
#: At most this many pages are given for words that no heading has.
MAX_PAGES = 3
#: Lines of a comparison of two documents.
MAX_CHANGES = 40


@dataclass(frozen=True, slots=True)
class Finding:
    """What a question about structure means in the documents: references to nodes, in the order of the question, and
    the computed answer, "" where the content of the nodes is the answer.

    ``listed``: the references are what the answer counts or lists, not content that was asked for. ``is_missing``:
    the question points at something that is not there, and ``text`` says so.
    """

    references: tuple[Reference, ...] = ()
    text: str = ""
    listed: bool = False
    is_missing: bool = False

    def __bool__(self) -> bool:
        """Whether the question is about structure."""
        return bool(self.references or self.text)


NOTHING = Finding()


def evaluate(question: str, queries: Sequence[Query], snapshot: Snapshot, scope: Scope) -> Finding:
    """Return what the parts of a question mean together."""
    evaluator = Evaluator(snapshot, question, scope)
    shown = [finding for finding in map(evaluator.evaluate, queries) if finding]
    if not shown:
        return NOTHING
    references = dict.fromkeys(reference for finding in shown for reference in finding.references)
    return Finding(
        tuple(references),
        "\n\n".join(finding.text for finding in shown if finding.text) if any(f.text for f in shown) else "",
        all(finding.listed for finding in shown),
        all(finding.is_missing for finding in shown),
    )


class Evaluator:
    """Evaluates the queries of one question within a scope."""

    def __init__(self, snapshot: Snapshot, question: str, scope: Scope) -> None:
        self._snapshot = snapshot
        self._resolver = ReferenceResolver(snapshot, question, scope)
        self._outlines: dict[str, Outline] = {}

    def evaluate(self, query: Query) -> Finding:
        """Return what a query means; nothing where the documents do not bear it out. Where it names a document that
        is not here, the answer says so."""
        names = [query.document, *(selector.document for selector in query.selectors)]
        if absent := [name for name in dict.fromkeys(names) if name and self._resolver.is_absent(name)]:
            called = " or ".join(f'"{name}"' for name in absent)
            return Finding(text=f"No document here is called {called}.", is_missing=True)
        operations = {
            "show": self.show,
            "count": self.count,
            "list": self.list_items,
            "locate": self.locate,
            "exists": self.check_existence,
            "changes": self.compare_documents,
            "longest": self.find_longest,
        }
        return operations[query.operation](query)

    # Show

    def show(self, query: Query) -> Finding:
        """Return the structures that selectors name, or say that a document does not have them. Of a cell, its
        value."""
        references = self._resolver.resolve_all(query.selectors)
        # "Show page 300 of the lease" does not mean all of the lease.
        if any(reference.kind != DOCUMENT for reference in references):
            if cells := [text for selector in query.selectors if (text := self._say_cell(selector))]:
                return Finding(references, "\n".join(cells))
            return Finding(references)
        missing = [text for selector in query.selectors if (text := self._describe_missing(selector))]
        if missing:
            return Finding(text="\n".join(dict.fromkeys(missing)), is_missing=True)
        return Finding(references)

    def _say_cell(self, selector: Selector) -> str:
        """Return the value of the cell that a selector names, with its row and column; "" where it names none."""
        if not selector.column:
            return ""
        nodes = self._snapshot.nodes(
            self._snapshot.rows([each.node for each in self._resolver.resolve_all([selector])])
        )
        for row in nodes:
            (table,) = self._snapshot.nodes(self._snapshot.rows([row.parent or ""]))
            header, *rows = read_cells(table) or [[]]
            columns = [normalise(cell) for cell in header]
            cells = rows[row.position - table.position - 1 :][:1]
            if normalise(selector.column) in columns and cells:
                value = cells[0][columns.index(normalise(selector.column))]
                return f"{value or 'The cell is empty'} ({selector.name}, {selector.column})"
        return ""

    def _describe_missing(self, selector: Selector) -> str:
        if selector.number is None and not selector.label and selector.within is None:
            return ""
        documents = self._resolver.choose_documents(selector.document) if selector.document else []
        if not documents and len(self._resolver.documents) == 1:
            documents = self._resolver.documents
        if len(documents) == 1:
            return self._describe_absence(selector, documents[0])
        if documents or selector.kind != PAGE:
            return ""
        paged = [document for document in self._resolver.documents if document.pages]
        if not paged:
            return ""
        longest = max(paged, key=lambda document: (document.pages, document.key))
        if selector.number is not None and selector.number > longest.pages:
            return (
                f"No document has a page {selector.number}: the longest, {longest.name}, "
                f"has {plural(longest.pages, 'page')}."
            )
        return ""

    def _describe_absence(self, selector: Selector, document: Document) -> str:
        outline = self._outline(document)
        label = selector.label or str(selector.number)
        if selector.kind == PAGE:
            if not document.pages:
                return f"{document.name} is not divided into pages."
            return f"{document.name} has {plural(document.pages, 'page')}; it has no page {label}."
        if selector.kind in {TABLE, FIGURE}:
            if selector.within is not None:
                places = self._resolver.nodes(selector.within, outline)
                thing = f"{selector.kind} {selector.label or selector.number or ''}".strip()
                return f"{self._name_place(document, places[0])} has no {thing}." if len(places) == 1 else ""
            things = plural(len(outline.within(selector.kind, None)), selector.kind)
            return f"{document.name} has {things}; it has no {selector.kind} {label}."
        if selector.kind == ROW and selector.number is not None:
            rows = plural(outline.count_rows(outline.tables), "row")
            return f"{document.name} has {rows} in {plural(len(outline.tables), 'table')}; there is no row {label}."
        if selector.kind == SECTION and selector.word in LABEL_WORDS:
            labelled = outline.sections_with_word(selector.word)
            has = (
                f"it has {plural(len(labelled), selector.word)}"
                if labelled
                else f"it has no {plural(0, selector.word).partition(' ')[2]}"
            )
            return f"{document.name} has no {selector.word} {label}; {has} by its headings."
        return ""

    # Count

    def count(self, query: Query) -> Finding:
        """Count pages, tables, rows or sections of a document, page, table or section, or of all documents."""
        if not query.selectors:
            return self._count_all(query)
        lines, references = [], []
        for document, place in self._places(query):
            counted = self._count_in(query, self._outline(document), place)
            if counted is None:
                continue
            lines.append(f"{self._name_place(document, place)} has {plural(counted, query.word)}.")
            references.append(self._refer(place or self._root(document), query.word))
        return Finding(tuple(references), "\n".join(lines), listed=True) if lines else NOTHING

    def _count_all(self, query: Query) -> Finding:
        documents = self._resolver.documents
        if query.kind == DOCUMENT:
            return Finding(text=f"There are {plural(len(documents), 'document')}.", listed=True)
        if query.kind == PAGE:
            counted = sum(document.pages for document in documents)
        elif query.kind in {TABLE, ROW} and query.word != "sheet":
            counted = int(self._snapshot.mask(self._resolver.scope, [query.kind]).sum())
        else:
            return NOTHING
        among = plural(len(documents), "document")
        return Finding(text=f"There are {plural(counted, query.word)} in {among}.", listed=True)

    def _count_in(self, query: Query, outline: Outline, place: Node | None) -> int | None:
        if query.kind == PAGE:
            return outline.document.pages or None if place is None else len(outline.pages_of(place)) or None
        if query.kind == ROW and place is None:
            return outline.count_rows(outline.tables) or None
        items = self._items(query, outline, place)
        return None if items is None else len(items)

    def _items(self, query: Query, outline: Outline, place: Node | None) -> list[Node] | None:
        """Return the structures of one kind within a place; None where the place cannot have them."""
        inside = None if place is None else {*outline.subtree_rows(place).tolist()}
        if query.kind == ROW:
            if place is None or place.kind != TABLE:
                tables = outline.tables if place is None else self._within(outline.tables, outline, inside)
                return [row for table in tables for row in self._rows_of(outline, table)]
            return self._rows_of(outline, place)
        if query.word in {"sheet", "worksheet", "spreadsheet"}:
            return outline.sheets or None
        if query.kind in {TABLE, FIGURE}:
            items = outline.within(query.kind, None if place is None else [place])
            if not query.labelled:
                return items
            return list(
                {outline.label_of(node): node for node in reversed(items) if outline.label_of(node)}.values()
            )[::-1]
        if query.kind == SECTION:
            if query.word in {"section", "heading"}:
                if place is not None and place.kind == PAGE:
                    return [node for node in outline.sections if node.page == place.page]
                return outline.children(place or self._root(outline.document)) or None
            labelled = outline.sections_with_word(query.word)
            return (labelled if place is None else self._within(labelled, outline, inside)) or None
        return None

    def _rows_of(self, outline: Outline, table: Node) -> list[Node]:
        return self._snapshot.nodes(outline.rows_of_table(table))

    @staticmethod
    def _within(nodes: Iterable[Node], outline: Outline, rows: set[int] | None) -> list[Node]:
        return [node for node in nodes if rows is None or outline.start + node.position in rows]

    # List

    def list_items(self, query: Query) -> Finding:
        """List the tables, figures or sections of a place, or the documents, those that have a structure."""
        if query.kind == DOCUMENT:
            return self._list_documents(query)
        places = (
            self._places(query)
            if query.selectors
            else [(document, None) for document in self._only_document()]
        )
        lines: list[str] = []
        references: list[Reference] = []
        for document, place in places:
            items = self._items(query, self._outline(document), place)
            if items is None:
                continue
            where = self._name_place(document, place)
            lines.append(f"{where} has {plural(len(items), query.word)}{':' if items else '.'}")
            lines += [self._describe_item(number, node, document) for number, node in enumerate(items, 1)][
                :MAX_LISTED
            ]
            if len(items) > MAX_LISTED:
                lines.append(f"({len(items) - MAX_LISTED} more)")
            references += [self._refer(node, query.word) for node in items]
            if not items:
                references.append(self._refer(place or self._root(document), query.word))
        return Finding(tuple(references), "\n".join(lines), listed=True) if lines else NOTHING

    def _describe_item(self, number: int, node: Node, document: Document) -> str:
        page = f", page {node.page}" if node.page is not None else ""
        if node.kind == TABLE:
            outline = self._outline(document)
            return f"{number}. {table_title(node)}{page}, {plural(len(outline.rows_of_table(node)), 'row')}"
        return f"{number}. {shorten(node.text if node.kind == ROW else node.name)}{page}"

    def _list_documents(self, query: Query) -> Finding:
        chosen: list[Document] = []
        references: list[Reference] = []
        for document in self._resolver.documents:
            outline = self._outline(document)
            nodes: list[Node] = []
            if query.selectors:
                (selector,) = query.selectors[:1]
                if selector.label or selector.name:
                    nodes = self._resolver.nodes(selector, outline)
                else:
                    kind = replace(query, kind=selector.kind, word=selector.word)
                    nodes = self._items(kind, outline, None) or []
            if not query.selectors or bool(nodes) != query.without:
                chosen.append(document)
                references.append(self._refer(nodes[0] if nodes else self._root(document), query.word))
        if not chosen:
            return Finding(text="No document does.", listed=True) if query.selectors else NOTHING
        names = [f"{number}. {document.name}" for number, document in enumerate(chosen, 1)][:MAX_LISTED]
        more = [f"({len(chosen) - MAX_LISTED} more)"] if len(chosen) > MAX_LISTED else []
        return Finding(
            tuple(references), "\n".join([f"{plural(len(chosen), 'document')}:", *names, *more]), listed=True
        )

    # Locate

    def locate(self, query: Query) -> Finding:
        """Say on which page, or in which section, something stands: a structure, a heading, or words."""
        words = query.document or "".join(selector.document for selector in query.selectors[:1])
        documents = self._resolver.choose_documents(words) if words else []
        if words and not documents:
            # "the notes to the accounts": what follows "to" or "of" was no document.
            documents, query = (
                self._only_document(),
                replace(query, text=f"{query.text} {words}", selectors=()),
            )
        if not documents:
            documents = self._resolver.rank_documents()
        lines: list[str] = []
        references: list[Reference] = []
        for document in documents:
            nodes = self._find(query, self._outline(document))
            if not nodes:
                continue
            for node in nodes:
                lines.append(self._describe_location(node, document))
                references.append(self._refer(node, query.text))
            if not words:
                break
        if lines:
            return Finding(tuple(references), "\n".join(dict.fromkeys(lines)), listed=True)
        return NOTHING

    def _find(self, query: Query, outline: Outline) -> list[Node]:
        for selector in query.selectors[:1]:
            return self._resolver.nodes(selector, outline)
        named = Selector(SECTION, name=query.text)
        matches = best_matches(named, [*outline.sections, *outline.tables])
        complete = [node for node in matches if self._covers(query.text, node)]
        if complete:
            # A table under a heading of its own name is the same place.
            return complete[:1]
        return self._passages_with(query.text, outline)

    @staticmethod
    def _covers(text: str, node: Node) -> bool:
        terms = set(query_terms(text))
        return terms <= set(query_terms(node.name)) and match_name(text, node) > 0

    def _passages_with(self, text: str, outline: Outline) -> list[Node]:
        """Return the passages of the pages on which all the words stand together in a passage or row."""
        rows: set[int] | None = None
        for term in set(query_terms(text)):
            having = self._snapshot.postings("text").rows_with(hash_term(term))[0]
            own = having[(having >= outline.start) & (having < outline.end)]
            rows = set(own.tolist()) if rows is None else rows & set(own.tolist())
        kinds = self._snapshot.column("kind")
        searched = [
            row for row in sorted(rows or ()) if kinds[row] in (KINDS.index(PASSAGE), KINDS.index(ROW))
        ]
        nodes = self._snapshot.nodes(np.array(searched, dtype=np.int64))
        exact = [node for node in nodes if normalise(text).removeprefix("the ") in normalise(node.text)]
        by_page: dict[int | None, list[Node]] = {}
        for node in exact or nodes:
            by_page.setdefault(node.page, []).append(node)
        ranked = sorted(by_page.values(), key=lambda group: (-len(group), group[0].position))
        return [group[0] for group in ranked[:MAX_PAGES]]

    def _describe_location(self, node: Node, document: Document) -> str:
        name = "" if node.kind == PASSAGE else table_title(node) if node.kind == TABLE else shorten(node.name)
        if node.kind == ROW:
            name = ""
        pages = self._outline(document).pages_of(node)
        if pages:
            place = f"{'Pages' if len(pages) > 1 else 'Page'} {join_numbers(pages)} of {document.name}"
        else:
            place = f"{document.name}{''.join(f', {heading}' for heading in node.headings)}"
        return f"{place}{f': {name}' if name else ''}"

    # Existence, differences

    def check_existence(self, query: Query) -> Finding:
        """Say whether a document or page has a structure."""
        (selector,) = query.selectors[:1]
        documents = self._resolver.choose_documents(selector.document)
        lines, references = [], []
        for document in documents:
            outline = self._outline(document)
            if selector.label or selector.name or selector.within:
                nodes = self._resolver.nodes(selector, outline)
                if not nodes and (selector.name or self._is_unknown_place(selector, outline)):
                    continue
            else:
                kind = Query("count", (), selector.kind, selector.word)
                nodes = self._items(kind, outline, None) or []
            if nodes:
                places = "; ".join(
                    dict.fromkeys(self._describe_location(node, document) for node in nodes[:5])
                )
                more = f" ({len(nodes) - 5} more)" if len(nodes) > 5 else ""
                lines.append(f"Yes. {places}{more}")
                references += [self._refer(node, selector.word) for node in nodes]
            else:
                label = f"{selector.word} {selector.label}".strip()
                where = (
                    f" on page {selector.within.label or selector.within.number}" if selector.within else ""
                )
                article = "" if selector.label else "a "
                lines.append(
                    f"No. {document.name} has no {article.strip()} {label}{where}.".replace("  ", " ")
                )
                references.append(self._refer(self._root(document), selector.word))
        return Finding(tuple(references), "\n".join(lines), listed=True) if lines else NOTHING

    def _is_unknown_place(self, selector: Selector, outline: Outline) -> bool:
        within = selector.within
        return (
            within is not None and within.kind == PAGE and not outline.find_pages(within.number, within.label)
        )

    def compare_documents(self, query: Query) -> Finding:
        """List what two documents have that the other has not: headings, and passages or table rows."""
        sides = [self._resolver.choose_documents(selector.document) for selector in query.selectors]
        if any(len(documents) != 1 for documents in sides) or sides[0] == sides[1]:
            return NOTHING
        (first,), (second,) = sides
        nodes = (
            self._snapshot.nodes(np.arange(*self._snapshot.document_rows(document.key)))
            for document in (first, second)
        )
        lines = [f"Changes from {first.name} to {second.name}:"]
        references: list[Reference] = []
        for change in compare_nodes(*nodes).changes:
            for sign, node, document in (("-", change.before, first), ("+", change.after, second)):
                if node is not None and change.kind != "moved":
                    where = node.headings[-1] if node.headings else document.title
                    lines.append(f"{sign} {shorten(where, 60)}: {shorten(node.text, 200)}")
                    references.append(self._refer(node, document.name))
        if len(lines) == 1:
            lines = [f"{first.name} and {second.name} have the same passages and table rows."]
            references = [self._refer(self._root(document), document.name) for document in (first, second)]
        elif len(lines) > MAX_CHANGES + 1:
            lines = [*lines[: MAX_CHANGES + 1], f"({len(lines) - MAX_CHANGES - 1} more changes)"]
        return Finding(tuple(references), "\n".join(lines), listed=True)

    def find_longest(self, query: Query) -> Finding:
        """Name the document with the most pages; without pages, the most nodes."""
        documents = self._resolver.documents
        paged = [document for document in documents if document.pages]
        if not documents:
            return NOTHING
        best = max(paged or documents, key=lambda document: (document.pages, document.nodes, document.key))
        size = plural(best.pages, "page") if best.pages else plural(best.nodes, "part")
        return Finding(
            (self._refer(self._root(best), query.word),), f"{best.name}, with {size}.", listed=True
        )

    # Places

    def _places(self, query: Query) -> list[tuple[Document, Node | None]]:
        """Return the documents, or the structures within them, that the selectors of a query name."""
        places: list[tuple[Document, Node | None]] = []
        for selector in query.selectors:
            if selector.kind == DOCUMENT:
                words = selector.document or selector.name
                places += [(document, None) for document in self._resolver.choose_documents(words)]
                continue
            documents = (
                self._resolver.choose_documents(selector.document)
                if selector.document
                else self._only_document()
            )
            for document in documents:
                places += [
                    (document, node) for node in self._resolver.nodes(selector, self._outline(document))
                ]
        return places

    def _only_document(self) -> list[Document]:
        """Return the document in scope where there is only one, or the best match of the question's words."""
        return (
            self._resolver.documents
            if len(self._resolver.documents) == 1
            else self._resolver.named_anywhere()
        )

    def _outline(self, document: Document) -> Outline:
        if document.key not in self._outlines:
            self._outlines[document.key] = Outline(self._snapshot, document)
        return self._outlines[document.key]

    def _root(self, document: Document) -> Node:
        return self._snapshot.nodes(self._snapshot.rows([f"{document.key}:0"]))[0]

    @staticmethod
    def _refer(node: Node, words: str) -> Reference:
        return Reference(node.document, node.kind, node.id, words)

    @staticmethod
    def _name_place(document: Document, place: Node | None) -> str:
        if place is None:
            return document.name
        if place.kind == PAGE:
            return f"Page {place.page} of {document.name}"
        name = table_title(place) if place.kind == TABLE else shorten(place.name)
        page = f", page {place.page}" if place.page is not None else ""
        return f"{name} ({document.name}{page})"


def plural(number: int, word: str) -> str:
    """Return a number with its noun: ``1 page``, ``2,000 rows``."""
    return f"{number:,} {word if number == 1 else name_many(word)}"


def table_title(table: Node) -> str:
    """Return a table's caption, else its column headers."""
    if table.name:
        return shorten(table.name)
    header = next((line for line in table.text.splitlines() if line.startswith("|")), "")
    columns = [cell.strip() for cell in header.strip("|").split("|")]
    return shorten("table of " + ", ".join(cell for cell in columns if cell)) if any(columns) else "table"


def shorten(text: str, characters: int = 120) -> str:
    """Return a text in one line of at most ``characters``."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"


def join_numbers(numbers: Sequence[int]) -> str:
    """Return numbers in words: ``3, 4 and 7``."""
    words = [str(number) for number in numbers]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
