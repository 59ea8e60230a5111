"""What documents state of those whom they are about: who holds an office, where the headquarters are, how many people
work there, and why something is so.

These are what people ask first, and a reader of spans rarely has the passage that says it among its few. Each is
looked for in the documents that the question names, or else in those of the best hits, whether search returned the
passage or not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from clew.core.protocols import Snapshot
from clew.core.text import fold_name
from clew.core.types import Hit, Node
from clew.core.values import mentions_name
from clew.methods.readers.headcounts import find_headcount, parse_headcount_question
from clew.methods.readers.headquarters import find_headquarters, parse_headquarters_question, same_company
from clew.methods.readers.mentions import is_about
from clew.methods.readers.office_holders import find_holder, parse_office_question, same_name
from clew.methods.readers.reasons import find_reason, parse_reason_question
from clew.retrieve.document_fields import named_subjects

#: How sure the holder of an office is who is named beside it in several mentions, and in one; the place of a
#: company's headquarters; the number of its employees (all set by hand).
_OFTEN_NAMED, _NAMED_ONCE, _HEADQUARTERS, _HEADCOUNT = 0.8, 0.6, 0.7, 0.7


@dataclass(frozen=True, slots=True)
class StatedFact:
    """An answer as ``node`` prints it at ``start`` to ``end``, by which rule it was read, and how sure it is."""

    rule: str
    text: str
    node: Node
    start: int
    end: int
    confidence: float


def find_stated_fact(
    question: str, hits: Sequence[Hit], snapshot: Snapshot, best_hits: int
) -> StatedFact | None:
    """Return what documents state about a question of one of these kinds, None for any other and where they state
    nothing. The documents of the first ``best_hits`` hits are looked at where the question names none."""
    subjects = named_subjects(question, snapshot)
    documents = {hit.node.document for hit in hits[:best_hits]}
    return (
        _find_holder(question, subjects, documents, snapshot)
        or _find_headquarters(question, subjects, documents, snapshot)
        or _find_headcount(question, subjects, snapshot)
        or _find_reason(question, subjects, hits, snapshot)
    )


def _find_holder(
    question: str, subjects: Mapping[str, frozenset[str]], documents: Collection[str], snapshot: Snapshot
) -> StatedFact | None:
    asked = parse_office_question(question)
    if asked is None:
        return None
    about = {key for name, keys in subjects.items() if same_name(name, asked.whose) for key in keys}
    if asked.whose:
        holder = find_holder(asked, about or documents, snapshot, is_subject=bool(about))
    else:
        holders = [find_holder(asked, {key}, snapshot, is_subject=True) for key in sorted(documents)]
        named = [each for each in holders if each is not None]
        holder = named[0] if len({fold_name(each.name) for each in named}) == 1 else None
    if holder is None:
        return None
    confidence = _OFTEN_NAMED if holder.mentions > 1 else _NAMED_ONCE
    rule = "names beside the office"
    return StatedFact(rule, holder.name, holder.node, holder.start, holder.end, confidence)


def _find_headquarters(
    question: str, subjects: Mapping[str, frozenset[str]], documents: Collection[str], snapshot: Snapshot
) -> StatedFact | None:
    asked = parse_headquarters_question(question)
    if asked is None:
        return None
    about = {key for name, keys in subjects.items() if same_name(name, asked.whose) for key in keys}
    is_subject = bool(about) or _is_alone(asked.whose, snapshot)
    place = find_headquarters(asked, about or documents, snapshot, is_subject)
    if place is None:
        return None
    rule = "what is said of headquarters"
    return StatedFact(rule, place.place, place.node, place.start, place.end, _HEADQUARTERS)


def _find_headcount(
    question: str, subjects: Mapping[str, frozenset[str]], snapshot: Snapshot
) -> StatedFact | None:
    asked = parse_headcount_question(question)
    if asked is None:
        return None
    about = {key for name, keys in subjects.items() if same_company(name, asked.whose) for key in keys}
    if not about and _is_alone(asked.whose, snapshot):
        about = {document.key for document in snapshot.documents()}
    count = find_headcount(asked, about, snapshot)
    if count is None:
        return None
    rule = "what is said of employees"
    return StatedFact(rule, count.text, count.node, count.start, count.end, _HEADCOUNT)


def _find_reason(
    question: str, subjects: Mapping[str, frozenset[str]], hits: Sequence[Hit], snapshot: Snapshot
) -> StatedFact | None:
    asked = parse_reason_question(question)
    if not asked:
        return None
    nodes = [hit.node for hit in hits if is_about(subjects, hit.node)]
    documents = frozenset().union(*subjects.values())
    reason = find_reason(asked, subjects, nodes, documents, snapshot)
    if reason is None:
        return None
    rule = "the cause that is stated"
    return StatedFact(rule, reason.text, reason.node, reason.start, reason.end, reason.confidence)


def _is_alone(name: str, snapshot: Snapshot) -> bool:
    """Return whether the base has one document and its name or title mentions a name."""
    documents = snapshot.documents()
    words = " ".join(f"{document.name} {document.title}".replace("_", " ") for document in documents)
    return len(documents) == 1 and mentions_name(name, words)
