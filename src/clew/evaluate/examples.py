"""The questions of a data set with their answers and gold evidence, and the result of a method on one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

from clew.core.types import Table, Usage
from clew.parse.documents.tables import table_to_markdown

#: The type of the expected answer; a metric can be restricted to one (``F1(type=yes/no)``).
AnswerType = Literal["span", "yes/no", "number", "abstractive", "unanswerable", "entities", "label"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a question's own corpus, under the title of its document.

    ``sentences`` are the sentences as the data set numbers them; one entry where it does not divide its paragraphs.
    ``section`` holds the headings above the paragraph, outermost first, where the data set has whole documents; None
    where it has single paragraphs. A ``table`` stands in place of sentences.
    """

    title: str
    sentences: tuple[str, ...]
    section: tuple[str, ...] | None = None
    table: Table | None = None

    @property
    def text(self) -> str:
        """The sentences joined by spaces; of a table its cells."""
        if self.table:
            return table_to_markdown(self.table)
        return " ".join(sentence.strip() for sentence in self.sentences if sentence.strip())


@dataclass(frozen=True, slots=True)
class Support:
    """One piece of gold evidence: a sentence of a title, a page of a document, a text, or an entity.

    ``sentence`` counts from 0 within its paragraph, ``page`` from 1; None where the data does not say. ``entity`` is
    the name of a graph node, in data sets whose answers are names.
    """

    title: str = ""
    sentence: int | None = None
    page: int | None = None
    text: str = ""
    entity: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A question of a data set.

    ``answers`` holds the canonical answer, then its aliases. ``support`` is one sufficient set of evidence;
    ``alternatives`` holds several, each with its answers (FEVER's evidence sets, QASPER's annotators). ``chain`` is
    the gold decomposition where the data has one: triples (head, relation, tail), or sub-questions with their
    answers. ``corpus`` holds the question's own paragraphs, the gold ones among them.
    """

    id: str
    question: str
    answers: tuple[str, ...]
    answer_type: AnswerType = "span"
    question_type: str = ""
    support: tuple[Support, ...] = ()
    alternatives: tuple[Annotation, ...] = ()
    chain: tuple[tuple[str, ...], ...] = ()
    corpus: tuple[Paragraph, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pieces(self) -> tuple[Support, ...]:
        """All pieces of gold evidence without duplicates, those of ``support`` first; measures refer to them by
        position."""
        pieces = [*self.support, *(piece for annotation in self.alternatives for piece in annotation.support)]
        return tuple(dict.fromkeys(pieces))

    @property
    def gold_paragraphs(self) -> tuple[int, ...]:
        """For each piece the number of its paragraph; sentences of one paragraph and texts of one page share it."""
        number: dict[object, int] = {}
        return tuple(
            number.setdefault(
                (piece.title, piece.page, piece.text if _is_known_by_text(piece) else ""), len(number)
            )
            for piece in self.pieces
        )

    @property
    def evidence_sets(self) -> tuple[frozenset[int], ...]:
        """The sufficient sets of evidence, as positions in ``pieces``: one per alternative, or that of
        ``support``."""
        number = {piece: n for n, piece in enumerate(self.pieces)}
        supports = [annotation.support for annotation in self.alternatives] or [self.support]
        return tuple(dict.fromkeys(frozenset(number[piece] for piece in support) for support in supports))


def _is_known_by_text(support: Support) -> bool:
    return support.sentence is None and support.page is None


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotator's answers, their type, and the evidence for them."""

    answers: tuple[str, ...]
    answer_type: AnswerType = "span"
    support: tuple[Support, ...] = ()


def shuffle_examples(examples: Iterable[Example], seed: int) -> list[list[Example]]:
    """Return the examples grouped by the words of their question, in a random order of the groups.

    The order depends on the seed and the words alone. Equal questions of several data sets are one group, so that a
    split never has a question on both sides.
    """
    by_question: dict[str, list[Example]] = {}
    for example in examples:
        by_question.setdefault(" ".join(example.question.split()), []).append(example)

    def random_key(question: str) -> bytes:
        return blake2b(f"{seed} {question}".encode(), digest_size=16).digest()

    return [by_question[question] for question in sorted(by_question, key=random_key)]


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a method on one example.

    ``hit_pieces`` has for each hit, best first, the set of gold pieces that it matches, as positions in
    ``example.pieces``; ``cited_pieces`` the same for each cited passage. ``answer_pieces`` has the gold pieces of
    each answer of a method that returns a list of answers, None for other methods. ``grade`` is the grading model's
    verdict, if there is one. ``retrieval`` is the part of ``usage`` spent on finding evidence, None where it was not
    recorded. ``walk_seconds`` is the time spent choosing neighbours, None where no graph was walked.
    """

    example: Example
    answer: str = ""
    abstained: bool = False
    hit_pieces: Sequence[frozenset[int]] = ()
    cited_pieces: Sequence[frozenset[int]] = ()
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    grade: float | None = None
    walk_seconds: float | None = None
    retrieval: Usage | None = None
    answer_pieces: Sequence[frozenset[int]] | None = None
