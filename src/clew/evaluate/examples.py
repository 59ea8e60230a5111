"""What an evaluation asks about: questions with their answers and what supports them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal, Protocol

from clew.core.types import Usage

#: What kind of answer is expected; metrics can be taken over one kind (``F1(type=yes/no)``).
AnswerType = Literal["span", "yes/no", "number", "abstractive", "unanswerable", "entities", "label"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a question's own corpus, under the title of its document.

    ``sentences`` are those that the data set numbers; a single one where it does not divide its paragraphs.
    ``section`` is the heading that the paragraph stands under, outer headings before inner ones, of a document
    that the question comes with as a whole; None for a paragraph that stands alone.
    """

    title: str
    sentences: tuple[str, ...]
    section: tuple[str, ...] | None = None

    @property
    def text(self) -> str:
        """The sentences, one space between them."""
        return " ".join(sentence.strip() for sentence in self.sentences if sentence.strip())


@dataclass(frozen=True, slots=True)
class Support:
    """One piece of gold evidence: by title and sentence, by page of a document, or by its own text.

    ``sentence`` counts from 0 within its paragraph, ``page`` from 1; both are None where the data says less.
    ``entity`` is the name of a node of a graph, where the data set knows its answers by name.
    """

    title: str = ""
    sentence: int | None = None
    page: int | None = None
    text: str = ""
    entity: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """A question of a data set.

    ``answers`` holds the canonical answer first, then its aliases; several annotators' answers are in
    ``alternatives``, where each has its own support. ``support`` is one set of evidence that suffices;
    ``alternatives`` holds others (FEVER's evidence sets, QASPER's annotators). ``chain`` is the gold order of
    hops where the data gives one: triples (head, relation, tail), or sub-questions with their answers.
    ``corpus`` holds the paragraphs that came with the question, gold ones among them.
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
        """Every piece of gold evidence once, those of ``support`` first; measures number them by their place."""
        every = [*self.support, *(piece for one in self.alternatives for piece in one.support)]
        return tuple(dict.fromkeys(every))

    @property
    def gold_paragraphs(self) -> tuple[int, ...]:
        """For each piece the number of its paragraph: sentences of one paragraph, texts on one page, share it."""
        number: dict[object, int] = {}
        return tuple(
            number.setdefault((one.title, one.page, one.text if _text_tells(one) else ""), len(number))
            for one in self.pieces
        )

    @property
    def evidence_sets(self) -> tuple[frozenset[int], ...]:
        """The sets of pieces, by number, each of which suffices: of each alternative, or that of ``support``."""
        number = {piece: n for n, piece in enumerate(self.pieces)}
        sets = [one.support for one in self.alternatives] or [self.support]
        return tuple(dict.fromkeys(frozenset(number[piece] for piece in one) for one in sets))


def _text_tells(support: Support) -> bool:
    return support.sentence is None and support.page is None


@dataclass(frozen=True, slots=True)
class Annotation:
    """What one annotator said: the answers, of which kind they are, and the evidence for them."""

    answers: tuple[str, ...]
    answer_type: AnswerType = "span"
    support: tuple[Support, ...] = ()


class Dataset(Protocol):
    """Questions, streamed in the order of the file."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``hotpotqa``."""
        ...

    def examples(self) -> Iterator[Example]:
        """Yield the questions. Raises UsageError for a record in another form, naming its line."""
        ...


def shuffle_examples(examples: Iterable[Example], seed: int) -> list[list[Example]]:
    """Return examples in an order that the seed and the words of each question make, those of one question together.

    A question is known by its words, whatever its data sets call it: divided, no question is on both sides.
    """
    found: dict[str, list[Example]] = {}
    for example in examples:
        found.setdefault(" ".join(example.question.split()), []).append(example)

    def number(question: str) -> bytes:
        return blake2b(f"{seed} {question}".encode(), digest_size=16).digest()

    return [found[question] for question in sorted(found, key=number)]


@dataclass(frozen=True, slots=True)
class Result:
    """What a method made of one example.

    ``found`` are the pieces of gold evidence, by their number in ``example.pieces``, that each hit holds, in the
    order of the hits; a hit that holds none is an empty set. ``cited`` says the same of each passage that the
    answer rests on. ``abstained`` says that no answer was given, ``grade`` what a grading model said, if asked.
    ``retrieval`` is the part of ``usage`` that finding evidence took, None where that was not told apart.
    ``walk_seconds`` says how long choosing neighbours took, None where no graph was walked. ``given`` says of each
    answer that was given for true which gold pieces it is, None where answers were not given one by one.
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
