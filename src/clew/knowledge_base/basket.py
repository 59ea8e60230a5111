"""The evidence basket of a knowledge base: quotes that a person put aside, for a memo.

``basket.jsonl`` in the base's folder has a line for each: the node, the character range in its text, the question and
the person's note. It holds no word of a document. So nothing of a document stays here when it is removed, and its
quotes are back when it is (from the trash, or added again: the same bytes have the same key).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any
from uuid import uuid4

from clew.core.errors import Damaged, NotFound, UsageError
from clew.core.files import replace_file
from clew.core.types import RETRIEVED_KINDS, Answer, Node
from clew.store.database import hold_lock
from clew.store.store import Store

FILE, LOCK = "basket.jsonl", "basket.lock"


@dataclass(frozen=True, slots=True)
class Pin:
    """A line of the file: the quote as the range ``start`` to ``end`` of the text of ``node``, and when it was
    pinned, in seconds since 1970."""

    id: str
    node: str
    start: int
    end: int
    question: str = ""
    note: str = ""
    pinned: float = 0.0


@dataclass(frozen=True, slots=True)
class PinnedQuote:
    """A quote of the basket with its source. ``id`` names it in the basket."""

    id: str
    node: Node
    text: str
    question: str
    note: str
    pinned: float

    @property
    def place(self) -> str:
        """The document, page and section."""
        return self.node.place

    @property
    def digest(self) -> str:
        """The key of the document: a hash of its bytes."""
        return self.node.document

    def to_dict(self) -> dict[str, Any]:
        """Return the quote, JSON-compatible."""
        return {
            "id": self.id,
            "text": self.text,
            "question": self.question,
            "note": self.note,
            "pinned": self.pinned,
            "node": self.node.id,
            "document": self.node.document_name,
            "key": self.node.document,
            "page": self.node.page,
            "section": " > ".join(self.node.headings),
        }


class Basket:
    """The quotes that were pinned, in order: ``base.basket``. Processes may share it; each change is written at once,
    as a whole. Raises Damaged for a file that is no basket, Locked where another process does not let go of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._file = store.path / FILE

    def quotes(self) -> list[PinnedQuote]:
        """Return the quotes whose documents are in the base."""
        quotes = []
        for pin in self._read():
            with suppress(NotFound):
                node = self._store.node(pin.node)
                text = node.text[pin.start : pin.end]
                quotes.append(PinnedQuote(pin.id, node, text, pin.question, pin.note, pin.pinned))
        return quotes

    def missing(self) -> int:
        """Return how many quotes are of documents that were removed or changed."""
        return len(self._read()) - len(self.quotes())

    def pin(self, node: str, text: str = "", *, question: str = "", note: str = "") -> PinnedQuote:
        """Put a quote into the basket and return it; what is pinned already is not added twice, but gets the note.

        ``node`` is the id of a passage or table row, ``text`` words of it (white space does not count), by default
        all. Raises NotFound, and UsageError for words that do not stand there.
        """
        source = self._store.node(node)
        if source.kind not in RETRIEVED_KINDS:
            raise UsageError(
                f"a {source.kind} cannot be pinned",
                "Pin a passage or a table row; clew search --json prints ids",
            )
        start, end = _find_words(source.text, text)
        new = Pin(uuid4().hex[:12], source.id, start, end, question.strip(), note.strip(), time.time())

        def add(pins: list[Pin]) -> list[Pin]:
            nonlocal new
            for place, pin in enumerate(pins):
                if (pin.node, pin.start, pin.end) == (new.node, new.start, new.end):
                    new = replace(pin, question=new.question or pin.question, note=new.note or pin.note)
                    return [*pins[:place], new, *pins[place + 1 :]]
            return [*pins, new]

        self._change(add)
        return PinnedQuote(new.id, source, source.text[start:end], new.question, new.note, new.pinned)

    def pin_answer(self, answer: Answer, question: str = "") -> list[PinnedQuote]:
        """Pin the quotes of an answer that are of documents, and return them; a triple of a graph is none."""
        return [
            self.pin(quote.node.id, quote.text, question=question)
            for quote in answer.citations
            if quote.node.kind in RETRIEVED_KINDS
        ]

    def annotate(self, id: str, note: str) -> None:
        """Set the note of a quote ("" for none). Raises NotFound."""
        self._check([id])
        self._change(lambda pins: [replace(pin, note=note.strip()) if pin.id == id else pin for pin in pins])

    def remove(self, *ids: str) -> None:
        """Take quotes out of the basket. Raises NotFound for an id that it does not have."""
        self._check(ids)
        self._change(lambda pins: [pin for pin in pins if pin.id not in ids])

    def clear(self) -> int:
        """Empty the basket, and return how many quotes it had; those of removed documents count, too."""
        count = len(self._read())
        self._change(lambda pins: [])
        return count

    def _check(self, ids: Iterable[str]) -> None:
        known = {pin.id for pin in self._read()}
        for id in ids:
            if id not in known:
                raise NotFound(f"no quote '{id}' in the basket", "See: clew memo")

    def _read(self) -> list[Pin]:
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        try:
            return [Pin(**json.loads(line)) for line in lines]
        except (ValueError, TypeError) as error:
            raise Damaged(
                f"{self._file} is damaged ({error})", "Delete it; only the basket is lost"
            ) from error

    def _change(self, edit: Callable[[list[Pin]], list[Pin]]) -> None:
        """Replace the pins by those that ``edit`` makes of them, in one step that other processes wait for."""
        with hold_lock(self._store.path / LOCK):
            lines = [json.dumps(asdict(pin), ensure_ascii=False) for pin in edit(self._read())]
            replace_file(self._file, "".join(f"{line}\n" for line in lines))


def _find_words(text: str, words: str) -> tuple[int, int]:
    """Return the range of words in a text, whose white space does not count; all of it for no words."""
    pieces: Sequence[str] = words.split()
    if not pieces:
        return 0, len(text)
    match = re.search(r"\s+".join(map(re.escape, pieces)), text)
    if match is None:
        raise UsageError(
            "these words are not in the passage", "A quote is verbatim; clew show prints the text"
        )
    return match.span()
