"""What one row of a table says: "Who was the engineer of the Heron Maid?", answered by the row that has every word.

Search ranks passages by meaning, and a row of a register may come far behind sentences about the same ship. Here all
rows are looked at that have the words of a question, wherever they stand. A row answers if each word of the question
is one of its cells, the header of a column, or what the table is about (its caption, headings and document), so that
nothing the question says is left over; and if all rows of which that is so give the same answer. Three forms:

- a cell under a header that the question names: "What wage did Gideon Wick earn?", column *Weekly wage*;
- the only value of a row with two cells: "Who was Hesper Marrable's husband?", row *Spouse*;
- the label of a row that two cells describe: *Engineer* and *Heron Maid*.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clew.core.arrays import distinct, is_member, union
from clew.core.protocols import Postings, Snapshot
from clew.core.text import hash_term, query_terms
from clew.core.types import ROW, Node, Scope
from clew.methods.readers.answer_kinds import contains_answer, expected_kind, is_impossible
from clew.methods.readers.table_answers import open_table
from clew.parse.data_tables import DataRow, DataTable

if TYPE_CHECKING:
    from clew.core.arrays import Rows

#: A question whose words more rows have describes none of them.
_MAX_ROWS = 200
#: Words that ask, and say nothing of a row.
_ASKING = frozenset(
    query_terms("many much name kind call person people number have hold earn get give show work")
)
#: What heads a column of how many there are.
_COUNT_HEADERS = frozenset(query_terms("number count quantity amount pieces units"))
#: Words for the same thing: that of the table for that of the question.
_SAME = {
    "spous": frozenset(query_terms("husband wife married spouse")),
    "children": frozenset(query_terms("son daughter child children")),
    "parent": frozenset(query_terms("mother father parents")),
    "home": frozenset(query_terms("live lives lived reside")),
    "maker": frozenset(query_terms("made make produced")),
    "builder": frozenset(query_terms("built")),
    "born": frozenset(query_terms("birth birthplace birthday")),
    "die": frozenset(query_terms("death dead")),
    "occup": frozenset(query_terms("profession job trade")),
}
#: A question for yes or no.
_POLAR = re.compile(r"(?:is|was|are|were|did|does|do|has|have|had|can|could)\b", re.IGNORECASE)
#: A question that one cell does not answer. Other words for it ("total", "average") are left over unless a header has
#: them; these no index has, or they head columns of something else (a change in percent).
_NEEDS_MORE = re.compile(
    r"\b(?:more|most|less|least|few|fewer|than|all|between|difference|change|not|no|why|how often)\b",
    re.IGNORECASE,
)
_YEAR_OR_NUMBER = re.compile(r"[\d\W]+")


@dataclass(frozen=True, slots=True)
class RowFact:
    """A cell that answers: its text, its row as a node, and its column."""

    text: str
    node: Node
    column: int


def find_row_fact(question: str, snapshot: Snapshot, scope: Scope) -> RowFact | None:
    """Return the cell that answers a question; None where no row has all of its words, or rows disagree."""
    terms = frozenset(query_terms(question)) - _ASKING
    if len(terms) < 2 or _POLAR.match(question) or _NEEDS_MORE.search(question):
        return None
    facts = [
        fact
        for node in _rows_with(terms, snapshot, scope)
        for fact in _read_row(question, terms, node, snapshot)
    ]
    return facts[0] if len({fact.text for fact in facts}) == 1 else None


def _rows_with(terms: frozenset[str], snapshot: Snapshot, scope: Scope) -> Sequence[Node]:
    """Return the rows of tables in ``scope`` that have each of the terms, some in their own text, the others in a
    title or heading of their document; none where these are very many."""
    is_row = snapshot.mask(scope, (ROW,))
    if not is_row.any():
        return []
    forms = {term: [hash_term(form) for form in _forms_of(term)] for term in terms}
    keys = np.array([key for hashes in forms.values() for key in hashes], dtype=np.uint64)
    texts, titles = snapshot.postings("text"), snapshot.postings("title")
    counts = texts.document_frequency(keys) + titles.document_frequency(keys)
    frequency = dict(zip(keys.tolist(), counts.tolist(), strict=True))
    if any(not any(frequency[key] for key in hashes) for hashes in forms.values()):
        return []
    for postings in (texts, titles):
        postings.prefetch(keys)
    documents = snapshot.column("document")
    in_text = [_rows_with_any(texts, hashes) for hashes in forms.values()]
    in_titles = [distinct(documents[_rows_with_any(titles, hashes)]) for hashes in forms.values()]
    rows = union([having[is_row[having]] for having in in_text])
    for having, titled in zip(in_text, in_titles, strict=True):
        rows = rows[is_member(rows, having) | is_member(documents[rows], titled)]
    return snapshot.nodes(rows) if len(rows) <= _MAX_ROWS else []


def _rows_with_any(postings: Postings, hashes: Sequence[int]) -> Rows:
    return union([postings.rows_with(key)[0] for key in hashes])


def _forms_of(term: str) -> list[str]:
    """Return the terms of a table that a term of a question may stand for."""
    return [term, *_agents(term), *(other for other, asked in _SAME.items() if term in asked)]


def _agents(term: str) -> tuple[str, ...]:
    return f"{term}er", f"{term}or", f"{term}r"


def _read_row(question: str, terms: frozenset[str], node: Node, snapshot: Snapshot) -> Iterator[RowFact]:
    """Yield the cell of a row that answers, if one does."""
    if node.parent is None:
        return
    table = open_table(node.parent, snapshot)
    row = None if table is None else _find_row(table, node)
    if table is None or row is None or row.is_total or table.table.headers_uncertain:
        return
    about = frozenset(
        query_terms(" ".join((*node.headings, table.table.caption, node.document_name, row.group)))
    )
    column = _answering_column(question, terms, about, table, row)
    text = "" if column is None else row.cells[column].strip()
    if column is not None and _may_answer(question, text):
        yield RowFact(text, node, column)


def _may_answer(question: str, text: str) -> bool:
    """Return whether a cell is of the kind that a question asks for."""
    kind = expected_kind(question)
    if kind == "amount" and not any(map(str.isdigit, text)):
        return False
    if kind == "date" and not contains_answer(kind, text, ""):
        return False
    return not is_impossible(question, text)


def _answering_column(
    question: str, terms: frozenset[str], about: frozenset[str], table: DataTable, row: DataRow
) -> int | None:
    """Return the column of the cell that answers: under the header that is named, a number of things for "how many",
    the only value, or the label; None where a word is left over."""
    headers = [frozenset(query_terms(column.header) if column.header else ()) for column in table.columns]
    cells = {place: cell for place, cell in enumerate(row.cells) if cell.strip(" -–—")}
    given = {place: words for place, cell in cells.items() if (words := _matched(cell, terms))}
    if not given:
        return None
    left = terms.difference(*given.values())
    others = [place for place in cells if place not in given]
    named = {
        place: {term for term in left if any(_is_same(term, header) for header in headers[place])}
        for place in others
        if place and _may_answer(question, cells[place])
    }
    asked = [place for place, words in named.items() if words]
    if not _is_covered(left, about.union(*(headers[place] for place in (*given, *asked)))):
        return None
    if asked:
        return _named_column(question, named)
    counts = [place for place in others if headers[place] and headers[place] <= _COUNT_HEADERS]
    if len(counts) == 1 and re.match(r"how many\b", question, re.IGNORECASE):
        return counts[0]
    if 0 in given and len(others) == 1 and len(row.cells) == 2:
        return others[0]
    if 0 not in others or _YEAR_OR_NUMBER.fullmatch(row.label):
        return None
    is_named = expected_kind(question) == "person" or re.match(r"(?:which|what)\b", question, re.IGNORECASE)
    return 0 if is_named and len(given) > 1 else None


def _named_column(question: str, named: Mapping[int, Collection[str]]) -> int | None:
    """Return the column that a question asks for, of those whose headers it names by some words: the one with most of
    them, else the one with the first ("What depth was over the crest"); None where several have that, too."""
    most = max(map(len, named.values()))
    best = [place for place, words in named.items() if len(words) == most]
    if len(best) > 1:
        words = [term for term in query_terms(question) if any(term in named[place] for place in best)]
        best = [place for place in best if words[0] in named[place] and not words[0].isdigit()]
    return best[0] if len(best) == 1 else None


def _matched(cell: str, terms: frozenset[str]) -> frozenset[str]:
    """Return the terms of a question that a cell is, whole or up to its first comma or bracket."""
    for text in (cell, re.split(r"[,(;]", cell)[0]):
        words = frozenset(query_terms(text)) if any(map(str.isalnum, text)) else frozenset()
        matched = frozenset(term for term in terms for word in words if _is_same(term, word))
        if words and all(any(_is_same(term, word) for term in terms) for word in words):
            return matched
    return frozenset()


def _is_covered(left: frozenset[str], known: frozenset[str]) -> bool:
    return all(any(_is_same(term, word) for word in known) for term in left)


def _is_same(asked: str, printed: str) -> bool:
    """Return whether a term of a question means that of a table: the same, a synonym, or who does it ("owns" and
    "owner")."""
    return asked == printed or asked in _SAME.get(printed, ()) or printed in _agents(asked)


def _find_row(table: DataTable, node: Node) -> DataRow | None:
    """Return the row of a node; the rows of a table stand in the order of their nodes. None for a row that only heads
    a group."""
    place = bisect_left(table.rows, node.position, key=lambda row: int(row.id.rpartition(":")[2]))
    return table.rows[place] if place < len(table.rows) and table.rows[place].id == node.id else None
