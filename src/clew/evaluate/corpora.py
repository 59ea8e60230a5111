"""The corpus of a question as documents, and the matching of nodes to gold evidence.

A question is asked of one of four corpora: its own paragraphs with negatives drawn from other questions, or its gold
documents with random ones to a number of documents (KGP paper, Supplementary 8.1); the paragraphs of all questions
pooled; the pool, restricted to the question's own documents (D3 paper, Section 3.1); or an existing knowledge base.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from clew.core.errors import UsageError
from clew.core.text import normalise, sentence_spans
from clew.core.types import ENTITY, PASSAGE, Location, Node, ParsedDocument, ParsedNode
from clew.evaluate.datasets.records import read_records, require_field
from clew.evaluate.examples import Example, Paragraph, Support
from clew.parse.documents.builder import DocumentBuilder, PassageUnit

PARSER = "evaluation/1"


def build_document(paragraph: Paragraph, unit: PassageUnit = "paragraph") -> ParsedDocument:
    """Return a paragraph as a document under its title.

    With the unit "paragraph" the document is one passage. With "sentence" (the KGP paper's setting) each sentence
    that the data set numbers is a passage; a paragraph without numbered sentences is split by rule.
    """
    text = paragraph.text
    builder = DocumentBuilder(unit)
    builder.add_paragraph(text)
    numbered_sentences = paragraph.sentences if unit == "sentence" else ()
    document = builder.finish(
        data="\0".join([paragraph.title, text, *numbered_sentences]).encode(),
        title=paragraph.title,
        media_type="text/plain",
        parser=PARSER,
    )
    if unit == "paragraph":
        return document
    spans = paragraph_spans(paragraph)
    passages = (ParsedNode(PASSAGE, text[start:end], 0, span=(start, end)) for start, end in spans)
    return replace(document, nodes=(document.nodes[0], *passages))


def build_documents(
    paragraphs: Iterable[Paragraph], unit: PassageUnit = "paragraph"
) -> Iterator[ParsedDocument]:
    """Yield the documents of paragraphs: one per paragraph, or one per title where paragraphs name their section."""
    for group in group_by_document(paragraphs):
        is_paragraph = len(group) == 1 and not group[0].section and group[0].table is None
        yield build_document(group[0], unit) if is_paragraph else _build_whole_document(group, unit)


def group_by_document(paragraphs: Iterable[Paragraph]) -> list[tuple[Paragraph, ...]]:
    """Return the paragraphs grouped by document: those with a section by title, every other one alone."""
    groups: dict[object, list[Paragraph]] = {}
    for paragraph in paragraphs:
        stands_alone = paragraph.section is None
        groups.setdefault(paragraph if stands_alone else paragraph.title, []).append(paragraph)
    return [tuple(group) for group in groups.values()]


def _build_whole_document(paragraphs: Sequence[Paragraph], unit: PassageUnit) -> ParsedDocument:
    builder = DocumentBuilder(unit)
    open_headings: tuple[str, ...] = ()
    for paragraph in paragraphs:
        section = paragraph.section or ()
        first_difference = next(
            (n for n, (a, b) in enumerate(zip(open_headings, section, strict=False)) if a != b), None
        )
        depth = min(len(open_headings), len(section)) if first_difference is None else first_difference
        for level, heading in enumerate(section[depth:], depth + 1):
            builder.add_heading(level, heading)
        open_headings = section
        if paragraph.table:
            builder.add_table(paragraph.table)
        else:
            builder.add_paragraph(paragraph.text)
    pieces = (piece for paragraph in paragraphs for piece in (*(paragraph.section or ()), "", paragraph.text))
    title = paragraphs[0].title
    data = "\0".join([title, *pieces]).encode()
    return builder.finish(data=data, title=title, media_type="text/plain", parser=PARSER)


def document_location(document: ParsedDocument) -> Location:
    """Return a made-up location for a document that is in no file; its file name is its title."""
    name = document.title.replace("/", " ")
    return Location(f"/evaluation/{document.key}/{name}.txt", "/evaluation", len(document.text), 0, 0)


def pool_paragraphs(examples: Iterable[Example]) -> list[Paragraph]:
    """Return the paragraphs of all questions in order, without duplicates of title, text and section."""
    paragraphs: dict[tuple[str, str, object], Paragraph] = {}
    for example in examples:
        for paragraph in example.corpus:
            paragraphs.setdefault((paragraph.title, paragraph.text, paragraph.section), paragraph)
    return list(paragraphs.values())


def shuffle_paragraphs(example: str, others: Iterable[Paragraph], seed: int) -> list[Paragraph]:
    """Return ``others`` in a random order that depends on the seed and the id ``example``; whole documents stay
    together.

    Documents are sorted by a hash of their own, so the order of two does not depend on the other documents, on the
    input order or on the process.
    """

    def random_key(group: tuple[Paragraph, ...]) -> bytes:
        text = "" if group[0].section is not None else group[0].text
        key = "\0".join([str(seed), example, group[0].title, text])
        return hashlib.blake2b(key.encode(), digest_size=16).digest()

    return [
        paragraph
        for group in sorted(group_by_document(dict.fromkeys(others)), key=random_key)
        for paragraph in group
    ]


def add_negatives(
    example: Example, others: Iterable[Paragraph], sentences: int, seed: int
) -> list[Paragraph]:
    """Return a question's paragraphs, followed by random others until there are ``sentences`` sentences.

    Documents with the title of one of the question's own paragraphs are not drawn.
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


def draw_document_set(
    example: Example, others: Iterable[Paragraph], documents: int, seed: int
) -> list[Paragraph]:
    """Return the gold documents of a question, followed by random other documents until there are ``documents``.

    It is the document set of the KGP paper (Supplementary 8.1; 12 documents in Table 4). A document is all that
    ``others``, which has the question's own paragraphs too, has under one title. The question's own documents that
    are not gold (a data set's distractors) are not drawn. A question whose evidence names no title keeps all its own.
    """
    by_title: dict[str, list[Paragraph]] = {}
    for paragraph in others:
        by_title.setdefault(paragraph.title, []).append(replace(paragraph, section=paragraph.section or ()))
    titles = dict.fromkeys(paragraph.title for paragraph in example.corpus)
    gold = {piece.title for piece in example.pieces}
    own = [title for title in titles if title in gold] or list(titles)

    def random_key(title: str) -> bytes:
        return hashlib.blake2b("\0".join([str(seed), example.id, title]).encode(), digest_size=16).digest()

    negatives = sorted(by_title.keys() - titles.keys(), key=random_key)
    chosen = [*own, *negatives[: max(0, documents - len(own))]]
    return [paragraph for title in chosen for paragraph in by_title[title]]


def add_articles(paragraphs: Iterable[Paragraph], articles: Mapping[str, str]) -> list[Paragraph]:
    """Return the paragraphs with the rest of the whole article of each title after them, and all other articles.

    ``articles`` maps a title to the text of its article, its paragraphs divided by empty lines. The paragraphs of a
    data set stay as they are, because its gold evidence counts their sentences; a paragraph of an article that says
    the same is not repeated.
    """
    known: dict[str, list[Paragraph]] = {}
    for paragraph in paragraphs:
        known.setdefault(paragraph.title, []).append(replace(paragraph, section=paragraph.section or ()))
    for title, article in articles.items():
        own = known.setdefault(title, [])
        texts = [normalise(paragraph.text) for paragraph in own]
        for text in map(str.strip, article.split("\n\n")):
            folded = normalise(text)
            if folded and not any(folded in other or other in folded for other in texts if other):
                own.append(Paragraph(title, (text,), ()))
    return [paragraph for group in known.values() for paragraph in group]


def read_articles(path: Path) -> dict[str, str]:
    """Return the articles of a JSON-lines file with ``title`` and ``text``. Raises UsageError."""
    articles: dict[str, str] = {}
    for place, record in read_records(path):
        title = require_field(place, record, "title")
        articles[title] = require_field(place, record, "text")
    if not articles:
        raise UsageError(f"no articles in {path}")
    return articles


def sentence_count(paragraph: Paragraph) -> int:
    """Return the number of sentences of a paragraph: as numbered by the data set, else split by rule."""
    return len(paragraph_spans(paragraph))


def paragraph_spans(paragraph: Paragraph) -> list[tuple[int, int]]:
    """Return the (start, end) character ranges of the non-empty sentences in the paragraph's text."""
    pieces = [sentence.strip() for sentence in paragraph.sentences if sentence.strip()]
    if len(pieces) < 2:
        return sentence_spans(paragraph.text)
    starts = [0, *accumulate(len(piece) + 1 for piece in pieces)]
    return [(start, start + len(piece)) for start, piece in zip(starts, pieces, strict=False)]


@dataclass(frozen=True, slots=True)
class GoldEvidence:
    """The gold evidence of one example, to be matched against nodes.

    An entity of a graph matches a piece by the entity's id (STaRK) or by its name (MetaQA). A passage matches a piece
    that names a document only if it is of that document, and then by what else the piece has:

    - a page: the node is on that page;
    - a sentence: the node has more than half of it (any node of the document, where the example comes without the
      sentence, as in FEVER);
    - a text alone: one of the two texts contains the other;
    - nothing else: any node of the document.
    """

    example: Example

    def matching_pieces(self, node: Node) -> frozenset[int]:
        """Return the positions in ``example.pieces`` of the pieces that ``node`` matches."""
        return frozenset(n for n, piece in enumerate(self.example.pieces) if self._matches(piece, node))

    def _matches(self, support: Support, node: Node) -> bool:
        if node.kind == ENTITY:
            by_name = bool(support.entity) and node.name == support.entity
            return by_name or node.id.partition(":")[2] == support.title
        if support.title and not _names_document(support.title, node):
            return False
        if support.page is not None:
            return node.page == support.page
        if support.sentence is not None:
            paragraphs = [paragraph for paragraph in self.example.corpus if paragraph.title == support.title]
            return not paragraphs or any(
                _has_sentence(node, paragraph, support.sentence) for paragraph in paragraphs
            )
        if support.text:
            gold, text = normalise(support.text), normalise(node.text)
            return bool(text) and (text in gold or gold in text)
        return bool(support.title)


def _has_sentence(node: Node, paragraph: Paragraph, number: int) -> bool:
    if number >= len(paragraph.sentences):
        return False
    sentence = paragraph.sentences[number].strip()
    if (
        paragraph.text[slice(*node.span)] != node.text
    ):  # the node is of another text, such as the whole article
        expected, actual = normalise(sentence), normalise(node.text)
        return bool(expected) and (
            expected in actual or (actual in expected and len(actual) > len(expected) / 2)
        )
    before = (text.strip() for text in paragraph.sentences[:number])
    start = sum(len(text) + 1 for text in before if text)
    shared = min(node.span[1], start + len(sentence)) - max(node.span[0], start)
    return shared > len(sentence) / 2


def _names_document(title: str, node: Node) -> bool:
    name = node.document_name
    return _fold_title(title) in {_fold_title(name), _fold_title(name.rpartition(".")[0])}


def _fold_title(name: str) -> str:
    """Return a title as a file name may spell it: case folded, underscores and slashes as spaces."""
    return normalise(name.replace("_", " ").replace("/", " "))
