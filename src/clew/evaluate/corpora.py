"""What a question is asked of, and which gold evidence a hit holds.

Four settings: the paragraphs that came with each question, with others drawn from other questions (the KGP
paper's, Supplementary 8.1: gold documents and randomly sampled negative ones); those of all questions pooled;
those pooled, each question asked of its own documents alone (the D3 paper's, Section 3.1); or a knowledge base
that is there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from clew.core.text import normalise
from clew.core.text import sentence_spans as text_sentences
from clew.core.types import ENTITY, PASSAGE, Location, ParsedNode
from clew.parse.documents.builder import DocumentBuilder, PassageUnit

if TYPE_CHECKING:
    from clew.core.types import Node, ParsedDocument
    from clew.evaluate.examples import Example, Paragraph, Support

PARSER = "evaluation/1"


def build_document(paragraph: Paragraph, unit: PassageUnit = "paragraph") -> ParsedDocument:
    """Return a paragraph as a document under its title.

    Passages are the whole paragraph, or the sentences that the data set numbers (the KGP paper's setting); where
    it numbers none, those that clew finds.
    """
    text = paragraph.text
    builder = DocumentBuilder(unit)
    builder.add_paragraph(text)
    divided = paragraph.sentences if unit == "sentence" else ()
    document = builder.finish(
        data="\0".join([paragraph.title, text, *divided]).encode(),
        title=paragraph.title,
        media_type="text/plain",
        parser=PARSER,
    )
    if unit == "paragraph":
        return document
    spans = sentence_spans(paragraph)
    passages = (ParsedNode(PASSAGE, text[start:end], 0, span=(start, end)) for start, end in spans)
    return replace(document, nodes=(document.nodes[0], *passages))


def build_documents(
    paragraphs: Iterable[Paragraph], unit: PassageUnit = "paragraph"
) -> Iterator[ParsedDocument]:
    """Yield the documents that paragraphs make: one each, and one for all those of a document that is whole."""
    for group in group_by_document(paragraphs):
        yield build_document(group[0], unit) if group[0].section is None else _whole(group, unit)


def group_by_document(paragraphs: Iterable[Paragraph]) -> list[tuple[Paragraph, ...]]:
    """Return the paragraphs that become one document, document by document."""
    found: dict[object, list[Paragraph]] = {}
    for paragraph in paragraphs:
        alone = paragraph.section is None
        found.setdefault(paragraph if alone else paragraph.title, []).append(paragraph)
    return [tuple(group) for group in found.values()]


def _whole(paragraphs: Sequence[Paragraph], unit: PassageUnit) -> ParsedDocument:
    builder = DocumentBuilder(unit)
    under: tuple[str, ...] = ()
    for paragraph in paragraphs:
        section = paragraph.section or ()
        known = next((n for n, (a, b) in enumerate(zip(under, section, strict=False)) if a != b), None)
        shared = min(len(under), len(section)) if known is None else known
        for level, heading in enumerate(section[shared:], shared + 1):
            builder.add_heading(level, heading)
        under = section
        builder.add_paragraph(paragraph.text)
    pieces = (piece for one in paragraphs for piece in (*(one.section or ()), "", one.text))
    title = paragraphs[0].title
    data = "\0".join([title, *pieces]).encode()
    return builder.finish(data=data, title=title, media_type="text/plain", parser=PARSER)


def document_location(document: ParsedDocument) -> Location:
    """Return a place for a document that is in no file; its name there is its title."""
    name = document.title.replace("/", " ")
    return Location(f"/evaluation/{document.key}/{name}.txt", "/evaluation", len(document.text), 0, 0)


def pool_paragraphs(examples: Iterable[Example]) -> list[Paragraph]:
    """Return the paragraphs of all questions in their order, each title and text once."""
    found: dict[tuple[str, str, object], Paragraph] = {}
    for example in examples:
        for paragraph in example.corpus:
            found.setdefault((paragraph.title, paragraph.text, paragraph.section), paragraph)
    return list(found.values())


def shuffle_paragraphs(example: str, others: Iterable[Paragraph], seed: int) -> list[Paragraph]:
    """Return ``others`` in the random order that a seed gives the example of that id; whole documents stay whole.

    Each document has its own random number, so that the order of two does not depend on which others there are,
    on how they were ordered, or on the process.
    """

    def number(group: tuple[Paragraph, ...]) -> bytes:
        text = "" if group[0].section is not None else group[0].text
        key = "\0".join([str(seed), example, group[0].title, text])
        return hashlib.blake2b(key.encode(), digest_size=16).digest()

    return [
        paragraph
        for group in sorted(group_by_document(dict.fromkeys(others)), key=number)
        for paragraph in group
    ]


def add_negatives(
    example: Example, others: Iterable[Paragraph], sentences: int, seed: int
) -> list[Paragraph]:
    """Return a question's paragraphs and others drawn at random, until there are ``sentences`` of them.

    A title of the question's own is not drawn again.
    """
    own = list(dict.fromkeys(example.corpus))
    titles = {paragraph.title for paragraph in own}
    count = sum(map(sentence_count, own))
    for group in group_by_document(shuffle_paragraphs(example.id, others, seed)):
        if count >= sentences:
            break
        if group[0].title not in titles:
            own.extend(group)
            count += sum(map(sentence_count, group))
    return own


def sentence_count(paragraph: Paragraph) -> int:
    """Return how many sentences a paragraph has: those of the data, or by rule where it is not divided."""
    return len(sentence_spans(paragraph))


def sentence_spans(paragraph: Paragraph) -> list[tuple[int, int]]:
    """Return the half-open ranges of the sentences in the paragraph's text, empty ones left out."""
    pieces = [sentence.strip() for sentence in paragraph.sentences if sentence.strip()]
    if len(pieces) < 2:
        return text_sentences(paragraph.text)
    starts = [0, *accumulate(len(piece) + 1 for piece in pieces)]
    return [(start, start + len(piece)) for start, piece in zip(starts, pieces, strict=False)]


@dataclass(frozen=True, slots=True)
class GoldEvidence:
    """Which pieces of gold evidence of one example a node holds.

    An entity of a graph holds the piece that its id names (STaRK's answers are ids of nodes), or its name where the
    data set knows answers by name (MetaQA), and no other. A piece
    that names a document is held within that document only. Beyond that, one that names a page is held by
    a node on that page; one that names a sentence, by a node with more than half of it (where the example does not
    come with the sentence, as in FEVER, by any node of the document); one that has only a text, by a node that
    contains it or is contained in it; and any other by any node of its document.
    """

    example: Example

    def matching_pieces(self, node: Node) -> frozenset[int]:
        """Return the numbers of the pieces in ``example.pieces`` that ``node`` holds."""
        return frozenset(n for n, one in enumerate(self.example.pieces) if self._holds(one, node))

    def _holds(self, support: Support, node: Node) -> bool:
        if node.kind == ENTITY:
            by_name = bool(support.entity) and node.name == support.entity
            return by_name or node.id.partition(":")[2] == support.title
        if support.title and not _same_document(support.title, node):
            return False
        if support.page is not None:
            return node.page == support.page
        if support.sentence is not None:
            named = [one for one in self.example.corpus if one.title == support.title]
            return not named or any(_has_sentence(node, one, support.sentence) for one in named)
        if support.text:
            gold, text = normalise(support.text), normalise(node.text)
            return bool(text) and (text in gold or gold in text)
        return bool(support.title)


def _has_sentence(node: Node, paragraph: Paragraph, number: int) -> bool:
    if number >= len(paragraph.sentences):
        return False
    sentence = paragraph.sentences[number].strip()
    if paragraph.text[slice(*node.span)] != node.text:  # of another text than ours, such as the whole article
        wanted, given = normalise(sentence), normalise(node.text)
        return bool(wanted) and (wanted in given or (given in wanted and len(given) > len(wanted) / 2))
    before = (one.strip() for one in paragraph.sentences[:number])
    start = sum(len(one) + 1 for one in before if one)
    shared = min(node.span[1], start + len(sentence)) - max(node.span[0], start)
    return shared > len(sentence) / 2


def _same_document(title: str, node: Node) -> bool:
    name = node.document_name
    return _folded(title) in {_folded(name), _folded(name.rpartition(".")[0])}


def _folded(name: str) -> str:
    """Return a title as file names may write it: without case, underscores as spaces, no slashes."""
    return normalise(name.replace("_", " ").replace("/", " "))
