"""Whether a passage mentions what a question is about: its subjects, its names, its days.

A reader of spans marks the best words of the passages that it is given, also of those about somebody else. An answer
from such a passage is left out by :func:`is_about` and :func:`tells_of_another_day`, and a yes or no is refused by
:func:`unmentioned_names`. The ``subjects`` of a question are its names that documents are about, each with the keys
of its documents (:func:`clew.retrieve.document_fields.named_subjects`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from clew.core.text import candidate_names, is_stop_term, query_terms
from clew.core.types import ROW, Node
from clew.core.values import Date, find_dates, mentions_name

_NAME_PARTS = re.compile(r" (?:and|or|of|the) ")


def node_context(node: Node) -> str:
    """Return the text of a node with its headings and the name of its document, which say what it is about."""
    return " ".join((node.text, *node.headings, node.document_name))


def is_about(subjects: Mapping[str, frozenset[str]], node: Node) -> bool:
    """Return whether a node may tell about the subjects that a question names: it is in a document about one of them,
    or mentions one. Without subjects every node may."""
    return not subjects or any(
        node.document in documents or mentions_name(name, node.text) for name, documents in subjects.items()
    )


def _longest_names(question: str, is_name: Callable[[str], bool] = bool) -> list[str]:
    """Return the longest candidates for names that pass ``is_name`` and do not overlap, in order. The first word of a
    question begins none: it has a capital whatever it is."""
    names: list[str] = []
    last_end = 1
    for _, start, end in sorted(candidate_names(question), key=lambda name: (name[1], -name[2])):
        if start >= last_end and is_name(question[start:end]):
            names.append(question[start:end])
            last_end = end
    return names


def _split_names(names: Sequence[str]) -> list[str]:
    """Return "Ada Pell and Bo Lind" as two names."""
    return [part for name in names for part in _NAME_PARTS.split(name)]


def unmentioned_names(question: str, nodes: Sequence[Node]) -> list[str]:
    """Return the names of a question of which no node has all words, in its text, headings or document name.
    "Ada Pell and Bo Lind" are two names; the question's first word is none.

    Of 175 questions of HotpotQA and 2WikiMultihopQA that ask for yes or no, none has such a name where its own
    paragraphs are read.
    """
    names = _split_names(_longest_names(question, lambda words: words[0].isalpha()))
    texts = [frozenset(query_terms(node_context(node))) for node in nodes]
    missing = []
    for name in names:
        terms = {term for term in query_terms(name) if not is_stop_term(term)}
        if terms and not any(terms <= text for text in texts):
            missing.append(name)
    return missing


_ON = re.compile(r"\bon (?:the )?$", re.IGNORECASE)
#: Columns whose days begin or end what lasts longer.
_LASTING = re.compile(
    r"\b(?:since|from|start|began|effective|appointed|joined|opened|until|to|end|expir|left)", re.IGNORECASE
)


def tells_of_another_day(question: str, sentence: str, node: Node, nodes: Sequence[Node]) -> bool:
    """Return whether a question asks what was so on a day, and a ``sentence`` of a node has other days alone.

    What began on another day may still be so on that day. The sentence is therefore refused only where one of the
    ``nodes`` that were read has the day, where no calendar has it, and where the node is a row of a table that has
    no other time than its day.
    """
    asked = [date for date, start, _ in find_dates(question) if date.day and _ON.search(question[:start])]
    days = _days_of(sentence) if asked else frozenset()
    if not days or not days.isdisjoint(asked):
        return False
    if node.kind == ROW and len(_days_of(node.text)) == 1 and _LASTING.search(node.text) is None:
        return True
    return any(
        not date.is_in_calendar() or any(date in _days_of(other.text) for other in nodes) for date in asked
    )


def _days_of(text: str) -> frozenset[Date]:
    return frozenset(date for date, _, _ in find_dates(text) if date.day)
