"""What a question is asked of, and which gold evidence a hit holds.

Three settings: the paragraphs that came with each question, with others drawn from other questions (the KGP
paper's, Supplementary 8.1: gold documents and randomly sampled negative ones); those of all questions pooled;
or a knowledge base that is there.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.parse.build import DocumentBuilder, Unit
from clew.text import normalise
from clew.types import Location

if TYPE_CHECKING:
    from clew.evaluate.examples import Example, Paragraph, Support
    from clew.types import Node, ParsedDocument

PARSER = "evaluation/1"


def as_document(paragraph: Paragraph, unit: Unit = "paragraph") -> ParsedDocument:
    """Return a paragraph as a document under its title."""
    builder = DocumentBuilder(unit)
    builder.paragraph(paragraph.text)
    return builder.finish(
        data=f"{paragraph.title}\0{paragraph.text}".encode(),
        title=paragraph.title,
        media_type="text/plain",
        parser=f"{PARSER}(passages={unit})",
    )


def located(document: ParsedDocument) -> Location:
    """Return a place for a document that is in no file; its name there is its title."""
    name = document.title.replace("/", " ")
    return Location(f"/evaluation/{document.key}/{name}.txt", "/evaluation", len(document.text), 0, 0)


def pooled(examples: Iterable[Example]) -> list[Paragraph]:
    """Return the paragraphs of all questions, each once, in their order."""
    return list(dict.fromkeys(paragraph for example in examples for paragraph in example.corpus))


def with_negatives(
    example: Example, others: Sequence[Paragraph], sentences: int, seed: int
) -> list[Paragraph]:
    """Return a question's paragraphs and others drawn at random, until there are ``sentences`` of them.

    The draw depends on the seed and the question's id alone, so that neither order nor a resumed run changes
    it. A title of the question's own is not drawn again.
    """
    own = list(dict.fromkeys(example.corpus))
    titles = {paragraph.title for paragraph in own}
    count = sum(len(paragraph.sentences) for paragraph in own)
    drawn = random.Random(f"{seed}/{example.id}").sample(range(len(others)), len(others))
    for index in drawn:
        if count >= sentences:
            break
        if others[index].title not in titles:
            own.append(others[index])
            count += len(others[index].sentences)
    return own


@dataclass(frozen=True, slots=True)
class Gold:
    """Which pieces of gold evidence of one example a node holds.

    A piece that names a sentence is held by a passage of its paragraph that covers more than half of it; one
    that names a paragraph, by any passage of it; one that names a page of a document, by a node on that page;
    one that has only a text, by a node that contains it or is contained in it.
    """

    example: Example

    def held(self, node: Node) -> frozenset[int]:
        """Return the numbers of the pieces in ``example.support`` that ``node`` holds."""
        return frozenset(n for n, one in enumerate(self.example.support) if self._holds(one, node))

    def _holds(self, support: Support, node: Node) -> bool:
        if support.title and not _same_document(support.title, node):
            return False
        if support.page is not None:
            return node.page == support.page
        if support.sentence is not None:
            return self._covers(support, node)
        if support.text:
            gold, text = normalise(support.text), normalise(node.text)
            return bool(text) and (text in gold or gold in text)
        return bool(support.title)

    def _covers(self, support: Support, node: Node) -> bool:
        for paragraph in self.example.corpus:
            if paragraph.title != support.title or (support.sentence or 0) >= len(paragraph.sentences):
                continue
            start = sum(
                len(sentence.strip()) + 1
                for sentence in paragraph.sentences[: support.sentence]
                if sentence.strip()
            )
            sentence = paragraph.sentences[support.sentence or 0].strip()
            # The paragraph is the whole document's text, so that spans are places in both.
            shared = min(node.span[1], start + len(sentence)) - max(node.span[0], start)
            if shared > len(sentence) / 2 and node.text in paragraph.text:
                return True
        return False


def _same_document(title: str, node: Node) -> bool:
    name = node.document_name
    return title.replace("/", " ") in {name, name.rpartition(".")[0]}
