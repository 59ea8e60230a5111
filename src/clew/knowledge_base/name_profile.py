"""Everything that a knowledge base says of a name: of a person, a company, a place or a term.

The passages and table rows that have the name are those that the postings of mentions (:mod:`clew.core.mentions`)
list under it, so a profile takes time in proportion to them and not to the base. A term that is written without
capitals is looked up by its words: the lists of passages that have each of them are read.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Rows, union
from clew.core.errors import UsageError
from clew.core.languages import document_languages
from clew.core.mentions import CELL, DEFINED, INITIAL, LABEL, NAME, linking_names, mention_key, row_label
from clew.core.text import candidate_names, hash_term, normalise_name, query_forms, sentence_spans
from clew.core.types import RETRIEVED_KINDS, ROW, Entity, Node
from clew.core.values import Date, find_dates
from clew.knowledge_base.graphs import entity_triples
from clew.knowledge_base.results import EntityTriples

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph, Snapshot

#: Names of fewer characters are not read for others; those of at least the second number with up to two edits, others
#: with one (as in questions, decision 34); longer ones than the third with one, for there are too many spellings.
_SHORTEST, _TWO_EDITS_FROM, _TWO_EDITS_TO = 4, 8, 20
_LETTERS = "abcdefghijklmnopqrstuvwxyz "
_ACCENTED = "äöüßéèáíóúñçøåæ"
#: How many near spellings, other names and longer names are given; and triples of one relation.
_SUGGESTIONS, _COMPANIONS, _LONGER, _TRIPLES = 5, 20, 20, 20
#: How like a graph's name has to be to be offered.
_LIKENESS = 0.8


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, or a table row, with the name in it: its text, and the character range in the text of ``node``.

    ``form`` is how it writes the name, or the alias under which it speaks of it. ``date`` is the first date in it,
    else the date of the heading above it (then ``date_from`` is "heading"); None where there is none.
    """

    node: Node
    text: str
    span: tuple[int, int]
    form: str
    date: Date | None = None
    date_text: str = ""
    date_from: str = ""

    @property
    def place(self) -> str:
        """The document, page and section."""
        return self.node.place

    def to_dict(self) -> dict[str, Any]:
        """Return the statement with its place, JSON-compatible; the date in the form of ISO 8601, as far as it is
        known (``1919-05``)."""
        return {
            "id": self.node.id,
            "kind": self.node.kind,
            "document": self.node.document_name,
            "key": self.node.document,
            "page": self.node.page,
            "section": " > ".join(self.node.headings),
            "text": self.text,
            "span": list(self.span),
            "form": self.form,
            "date": "" if self.date is None else iso_date(self.date),
            "date_text": self.date_text,
            "date_from": self.date_from,
        }


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name. ``node`` is the id of the passage that defines it, which holds for ``document`` alone; "" where a
    graph gives it, whose name is ``source``."""

    name: str
    source: str
    node: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class NameCount:
    """A name, and in how many passages and documents it is."""

    name: str
    passages: int
    documents: int = 0


@dataclass(frozen=True, slots=True)
class GraphEntry:
    """A node of a graph that has the name, with its triples."""

    graph: str
    entity: Entity
    triples: tuple[EntityTriples, ...]


@dataclass(frozen=True, slots=True)
class NameProfile:
    """What the documents and graphs say of a name.

    ``statements`` are in the order of their dates, those without a date at the end, by document. ``companions`` are
    the names in the same passages and rows, the most frequent first. ``longer`` are names that contain the name,
    which may be somebody else's. Where nothing is called so, ``suggestions`` has names that are spelled nearly so.
    """

    name: str
    statements: tuple[Statement, ...] = ()
    aliases: tuple[Alias, ...] = ()
    longer: tuple[NameCount, ...] = ()
    companions: tuple[NameCount, ...] = ()
    entries: tuple[GraphEntry, ...] = ()
    suggestions: tuple[NameCount, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is called so."""
        return bool(self.statements or self.entries)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile, JSON-compatible."""

        def counts(names: Iterable[NameCount]) -> list[dict[str, Any]]:
            return [
                {"name": item.name, "passages": item.passages, "documents": item.documents} for item in names
            ]

        return {
            "name": self.name,
            "statements": [statement.to_dict() for statement in self.statements],
            "aliases": [
                {
                    "name": alias.name,
                    "source": alias.source,
                    "id": alias.node or None,
                    "key": alias.document or None,
                }
                for alias in self.aliases
            ],
            "longer": counts(self.longer),
            "companions": counts(self.companions),
            "graphs": [
                {"graph": entry.graph}
                | entry.entity.to_dict()
                | {"triples": [triples.to_dict() for triples in entry.triples]}
                for entry in self.entries
            ],
            "suggestions": counts(self.suggestions),
        }


def iso_date(date: Date) -> str:
    """Return a date in the form of ISO 8601, as far as it is known: ``1919-05-03``, ``1919-05``, ``1919``."""
    year = f"{date.year:04d}"
    return (
        year
        + (f"-{date.month:02d}" if date.month else "")
        + (f"-{date.day:02d}" if date.month and date.day else "")
    )


def describe_name(
    snapshot: Snapshot,
    name: str,
    *,
    documents: Collection[str] | None = None,
    graphs: Sequence[PropertyGraph] = (),
) -> NameProfile:
    """Return what the documents (keys; None: all) and ``graphs`` say of a name. Raises UsageError for no name."""
    label = normalise_name(name)
    if not label:
        raise UsageError("the name is empty", 'For example: clew about "Hesper Marrable"')
    lookup = _NameLookup(snapshot, documents)
    mentions = lookup.mentions(label, any(letter.isupper() for letter in name))
    entries = [
        GraphEntry(graph.name, entity, tuple(entity_triples(graph, entity, _TRIPLES)))
        for graph in graphs
        for entity in graph.entities(graph.find_by_name(name.strip()))
    ]
    aliases, full_names = _defined_aliases(label, mentions)
    aliases += full_names
    own_forms = {label}
    for graph_name, of_graph in itertools.groupby(entries, key=lambda entry: entry.graph):
        entities = [entry.entity for entry in of_graph]
        if len(entities) == 1:  # of several nodes with the name it is not known which is meant
            others = dict.fromkeys((entities[0].name, *entities[0].aliases))
            aliases += [
                Alias(other, graph_name) for other in others if normalise_name(other) not in own_forms
            ]
    by_node = {(mention.node.id, mention.spans): mention for mention in mentions}
    is_settled = len({normalise_name(alias.name) for alias in full_names}) == 1
    for alias in aliases:
        # A short name holds in its document. What it is short for holds everywhere, unless documents differ on it.
        document = "" if is_settled and alias in full_names else alias.document
        alias_label = normalise_name(alias.name)
        for mention in lookup.mentions(alias_label, True, document) if alias_label else ():
            by_node.setdefault((mention.node.id, mention.spans), mention)
    if not by_node and not entries:
        return NameProfile(
            name, suggestions=tuple(_suggest_names(snapshot, label, [*_similar_nodes(graphs, name)]))
        )
    statements = {
        (statement.node.id, statement.span): statement
        for mention in reversed(list(by_node.values()))
        for statement in _statements(mention)
    }
    hidden = own_forms | {normalise_name(alias.name) for alias in aliases}
    longer, companions = _count_names(snapshot, by_node.values(), label, hidden)
    return NameProfile(
        name,
        tuple(sorted(statements.values(), key=_time_order)),
        tuple(aliases),
        tuple(longer),
        tuple(companions),
        tuple(entries),
    )


# Passages and rows with the name


@dataclass(frozen=True, slots=True)
class _Mention:
    """A passage or row with a name at ``spans`` of its text; none in a row whose cells or label have it.

    ``window`` is the part of the text that speaks of the name: of a row, what follows the caption; the caption alone,
    where no more than the caption of a table has the name among other words.
    """

    node: Node
    spans: tuple[tuple[int, int], ...]
    window: tuple[int, int]

    @property
    def is_caption(self) -> bool:
        """Whether the caption of the table alone has the name."""
        return self.node.kind == ROW and self.window[1] < len(self.node.text)


class _NameLookup:
    """Finds the passages and rows that have a name."""

    def __init__(self, snapshot: Snapshot, documents: Collection[str] | None) -> None:
        self._snapshot = snapshot
        self._documents = None if documents is None else frozenset(documents)

    def mentions(self, label: str, is_name: bool, document: str = "") -> list[_Mention]:
        """Return the passages and rows with a normalised name, in the order of the base; those of ``document`` (a
        key) alone, if it is given.

        A name (``is_name``) counts where it is written with capitals; other terms, and names that no text writes so,
        in any writing and in singular and plural.
        """
        postings = self._snapshot.postings("mention")
        kinds = (NAME, INITIAL, CELL, DEFINED, LABEL)
        keys = [mention_key(kind, label) for kind in kinds]
        postings.prefetch(np.array(keys, dtype=np.uint64))
        rows = union([postings.rows_with(key)[0] for key in keys])
        mentions = list(self._read(rows, label, document, strict=True))
        if mentions and is_name:
            return mentions
        by_words = self._read(self._rows_with_words(label), label, document, strict=False)
        return list({mention.node.id: mention for mention in (*mentions, *by_words)}.values())

    def _rows_with_words(self, label: str) -> Rows:
        """Return the rows whose text has every word of a label, in any of the forms of its languages."""
        postings = self._snapshot.postings("text")
        words = [
            np.array([hash_term(form) for form in forms], dtype=np.uint64)
            for forms in query_forms(label, document_languages(self._snapshot))
        ]
        postings.prefetch(np.concatenate([np.empty(0, dtype=np.uint64), *words]))
        rows: Rows | None = None
        for forms in sorted(words, key=lambda forms: int(postings.document_frequency(forms).sum())):
            having = union([postings.rows_with(form)[0] for form in forms.tolist()])
            rows = having if rows is None else rows[np.isin(rows, having, assume_unique=True)]
            if not len(rows):
                break
        return np.empty(0, dtype=np.int64) if rows is None else rows

    def _read(self, rows: Rows, label: str, document: str, *, strict: bool) -> Iterator[_Mention]:
        if document:
            first, end = self._snapshot.document_rows(document)
            rows = rows[np.searchsorted(rows, first) : np.searchsorted(rows, end)]
        pattern = _name_pattern(label)
        captioned: set[str | None] = set()
        for node in self._snapshot.nodes(rows):
            if node.kind not in RETRIEVED_KINDS:
                continue
            if self._documents is not None and node.document not in self._documents:
                continue
            spans = {(start, end) for name, start, end, _ in linking_names(node.text) if name == label} or {
                match.span() for match in pattern.finditer(node.text)
            }
            if not spans and not (strict and node.kind == ROW):
                continue
            caption, window = _caption_end(node), (0, len(node.text))
            if caption:
                in_caption = bool(spans) and all(start < caption for start, _ in spans)
                if not in_caption or normalise_name(node.text[:caption]) == label:
                    window = caption, len(node.text)
                elif node.parent in captioned:
                    continue  # the caption is quoted once, and not with each row of the table
                else:
                    captioned.add(node.parent)
                    window = 0, caption
            yield _Mention(node, tuple(sorted(spans)), window)


def _caption_end(node: Node) -> int:
    """Return where the caption of its table ends in the text of a row, 0 for none and for a passage."""
    return len(node.text.partition(": ")[0].rpartition(". ")[0]) if node.kind == ROW else 0


_WORD_GAP = r"(?:['’]s)?[\W_]{1,3}"


def _name_pattern(label: str) -> re.Pattern[str]:
    """Return the pattern of a normalised name in any writing; its last word may be in the plural."""
    words = _WORD_GAP.join(map(re.escape, label.split()))
    return re.compile(rf"(?<!\w){words}(?:e?s)?(?!\w)", re.IGNORECASE)


def _statements(mention: _Mention) -> Iterator[Statement]:
    """Yield the sentences of a passage that have the name, or the row as a whole."""
    node, text = mention.node, mention.node.text
    heading = next(
        (
            (date, name[start:end])
            for name in reversed(node.headings)
            for date, start, end in find_dates(name)
            if date.month
        ),
        None,
    )
    whole_row = (0, mention.window[1] if mention.is_caption else len(text))
    sentences = [whole_row] if node.kind == ROW else sentence_spans(text)
    for first, last in sentences:
        inside = [(start, end) for start, end in mention.spans if first <= start < last]
        if not inside and node.kind != ROW:
            continue
        form = text[slice(*inside[0])] if inside else row_label(text, "")[0]
        statement = Statement(node, text[first:last], (first, last), " ".join(form.split()))
        dates = find_dates(statement.text)
        if node.kind == ROW:  # the period in the caption is that of the table
            dates.sort(key=lambda place: place[1] < _caption_end(node))
        if dates:
            date, start, end = dates[0]
            statement = replace(
                statement, date=date, date_text=statement.text[start:end], date_from="sentence"
            )
        elif heading is not None:
            statement = replace(statement, date=heading[0], date_text=heading[1], date_from="heading")
        yield statement


def _time_order(statement: Statement) -> tuple[Any, ...]:
    date, node = statement.date, statement.node
    when = (1,) if date is None else (0, date.year, date.month, date.day)
    return when, node.document_name, node.document, node.position, statement.span


# Other names of the same

#: What may stand between a name and the bracket that gives it a short name: ", Inc.", ", of 4 Lantern Quay".
_BETWEEN = (
    r"(?:,?\s+(?:Inc|Incorporated|Corp|Corporation|Co|Company|Ltd|Limited|LLC|LLP|L\.P|LP|N\.A|plc|PLC|S\.A|SA|AG|SE"
    r"|GmbH)\b\.?)*(?:,?\s+(?:of|a|an|the)\s(?:(?!\band\b|\bwith\b)[^();“”\"]){0,80}?)?,?\s*"
)
_SHORT_NAME = (
    r"\((?:[a-z ,]*?(?:the|or|as|together)\s+)?[“\"‘']?(?:the\s+)?"
    r"(?P<short>[A-Z][\w&.’'-]*(?:\s[A-Z][\w&.’'-]*){0,4})[”\"’']?(?:\s+or\s[^()]*)?\)"
)
_AFTER_NAME = re.compile(_BETWEEN + _SHORT_NAME)
_SHORT_NAMES = re.compile(_SHORT_NAME)
_ENDS_AT_BRACKET = re.compile(_BETWEEN + r"$")
#: A bracket without quotation marks or "the" defines a short name only if it is an abbreviation.
_DEFINING = re.compile(r"[“\"‘']|\bthe\b|^\([A-Z][A-Z&.]+\)")


def _defined_aliases(label: str, mentions: Iterable[_Mention]) -> tuple[list[Alias], list[Alias]]:
    """Return the short names that documents give the name (``the Mayor (the "Hirer")``), and the full names for which
    it is short itself; each once for a document."""
    aliases: tuple[dict[tuple[str, str], Alias], dict[tuple[str, str], Alias]] = {}, {}
    for mention in mentions:
        text, node = mention.node.text, mention.node
        short_names, full_names = [], []
        for start, end in mention.spans:
            match = _AFTER_NAME.match(text, end)
            # "the Mayor of Merrowgate, Market Hall, Merrowgate (the Hirer)" is no short name of Merrowgate.
            is_whole = not text[:start].rstrip().endswith(",") and not any(
                last == end and first < start for _, first, last in candidate_names(text[:end])
            )
            if match and is_whole and _DEFINING.search(match.group()[match.group().index("(") :]):
                short_names.append(match["short"])
        for match in _SHORT_NAMES.finditer(text):
            if normalise_name(match["short"]) == label and _DEFINING.search(match.group()):
                full_names += _full_name(text[: match.start()], match["short"])
        for names, known in zip((short_names, full_names), aliases, strict=True):
            for name in names:
                key = node.document, normalise_name(name)
                # "the separation of Kenvue (the "Kenvue Separation")" is no name of Kenvue.
                is_extended = names is short_names and f" {label} " in f" {key[1]} "
                if key[1] and key[1] != label and not is_extended:
                    known.setdefault(key, Alias(name, node.document_name, node.id, node.document))
    return list(aliases[0].values()), list(aliases[1].values())


def _full_name(before: str, short: str) -> list[str]:
    """Return what a short name in brackets stands for: the longest name before the bracket, else as many words as an
    abbreviation has letters."""
    window = before[-200:]  # a name and an address
    names = [
        window[start:end]
        for _, start, end in candidate_names(window)
        if _ENDS_AT_BRACKET.fullmatch(window, end)
    ]
    if names:
        return [max(names, key=len)]
    letters = [letter for letter in short.casefold() if letter.isalpha()]
    words = before.split()[-len(letters) :]
    return [" ".join(words)] if [word[0].casefold() for word in words] == letters else []


# Names in the same passages


_JOINS = re.compile(r"\s(?:and|&|for|with|to)\s")
_ARTICLE = re.compile(r"^(?:The|the|An?)\s+(?=\S)")


def _count_names(
    snapshot: Snapshot, mentions: Iterable[_Mention], label: str, hidden: Collection[str]
) -> tuple[list[NameCount], list[NameCount]]:
    """Return the names that contain the name, and the other names in the same passages and rows, the most frequent
    first; of equally frequent ones first what is rarer elsewhere.

    Of names that overlap the longest counts that another passage has, too: "Boeing and Airbus" is two names.
    """
    distinct = list({mention.node.id: mention for mention in mentions}.values())
    names_of = [
        [
            (name, mention.node.text[start:end], start, end)
            for name, start, end, _ in linking_names(mention.node.text)
            if mention.window[0] <= start and end <= mention.window[1]
        ]
        for mention in distinct
    ]
    labels = sorted({name for names in names_of for name, *_ in names})
    as_name = dict(zip(labels, _frequencies(snapshot, labels, NAME).tolist(), strict=True))
    in_all = dict(zip(labels, _frequencies(snapshot, labels, NAME, INITIAL).tolist(), strict=True))
    passages: Counter[str] = Counter()
    documents: dict[str, set[str]] = {}
    forms: dict[str, Counter[str]] = {}
    for mention, names in zip(distinct, names_of, strict=True):
        node = mention.node
        taken: list[tuple[int, int]] = []
        own: set[str] = set()
        for name, form, start, end in sorted(
            names,
            key=lambda item: (
                in_all[item[0]] < 2 and _JOINS.search(item[1]) is not None,
                item[2] - item[3],
                item[2],
            ),
        ):
            is_column = node.kind == ROW and node.text[end : end + 1] == ":"
            is_taken = is_column or any(start < last and first < end for first, last in taken)
            if as_name[name] and not is_taken:
                taken.append((start, end))
                own.add(name)
                forms.setdefault(name, Counter())[_ARTICLE.sub("", " ".join(form.split()))] += 1
        passages.update(own)
        for name in own:
            documents.setdefault(name, set()).add(node.document)
    ranked = [
        NameCount(forms[name].most_common(1)[0][0], count, len(documents[name]))
        for name, count in sorted(passages.items(), key=lambda pair: (-pair[1], in_all[pair[0]], pair[0]))
        if name not in hidden and len(name) > 1
    ]
    longer = [item for item in ranked if f" {label} " in f" {normalise_name(item.name)} "]
    parts = set(longer) | {item for item in ranked if f" {normalise_name(item.name)} " in f" {label} "}
    return longer[:_LONGER], [item for item in ranked if item not in parts][:_COMPANIONS]


def _frequencies(snapshot: Snapshot, labels: Sequence[str], *kinds: int) -> NDArray[np.int64]:
    """Return how many nodes have each of the labels as a mention of these kinds, (labels,)."""
    postings = snapshot.postings("mention")
    keys = [
        np.array([mention_key(kind, label) for label in labels], dtype=np.uint64).reshape(-1)
        for kind in kinds
    ]
    frequencies: NDArray[np.int64] = np.sum(
        [postings.document_frequency(of_kind) for of_kind in keys], axis=0
    )
    return frequencies


# Names that are spelled nearly so


def _similar_nodes(graphs: Iterable[PropertyGraph], name: str) -> Iterator[str]:
    for graph in graphs:
        rows, likeness = graph.find_similar_names(name, _SUGGESTIONS)
        yield from (entity.name for entity in graph.entities(rows[likeness >= _LIKENESS]))


def _suggest_names(snapshot: Snapshot, label: str, of_graphs: Sequence[str]) -> list[NameCount]:
    """Return names of the base at a distance of one or two edits, the most frequent of the nearest first.

    The base has no list of its names, only their hashes, so that nothing stays of a removed document: spellings are
    made and looked up (Norvig, *How to Write a Spelling Corrector*, 2007). Numbers are left as they are.
    """

    def occurring(spellings: Iterable[str]) -> list[NameCount]:
        ordered = sorted(spellings)
        as_name, as_term = (_frequencies(snapshot, ordered, kind) for kind in (NAME, DEFINED))
        frequencies = np.maximum(as_name, as_term).tolist()  # a passage may have it as both
        counts = [NameCount(name, count) for name, count in zip(ordered, frequencies, strict=True) if count]
        return sorted(counts, key=lambda item: (-item.passages, item.name))

    near: list[NameCount] = []
    if len(label) >= _SHORTEST:
        near = occurring(_edit_once(label, _LETTERS + _ACCENTED))
        if not near and not of_graphs and _TWO_EDITS_FROM <= len(label) <= _TWO_EDITS_TO:
            edited = _edit_once(label, _LETTERS)
            near = occurring({further for spelling in edited for further in _edit_once(spelling, _LETTERS)})
    counts = {
        item.name: NameCount(_writing(snapshot, item.name), item.passages) for item in near[:_SUGGESTIONS]
    }
    for name in of_graphs:
        counts.setdefault(normalise_name(name), NameCount(name, 0))
    return list(counts.values())[:_SUGGESTIONS]


def _edit_once(word: str, letters: str) -> set[str]:
    """Return a text with a letter left out, inserted, exchanged, or swapped with the next; digits stay."""
    cuts = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    spellings = {before + letter + behind for before, behind in cuts for letter in letters}
    for before, behind in cuts[:-1]:
        if behind[0].isdigit():
            continue
        spellings.add(before + behind[1:])
        spellings.update(before + letter + behind[1:] for letter in letters)
        if len(behind) > 1 and not behind[1].isdigit():
            spellings.add(before + behind[1] + behind[0] + behind[2:])
    return spellings - {word}


def _writing(snapshot: Snapshot, label: str) -> str:
    """Return a normalised name as the first passage with it writes it."""
    for mention in _NameLookup(snapshot, None).mentions(label, True):
        for start, end in mention.spans:
            return " ".join(mention.node.text[start:end].split())
    return label
