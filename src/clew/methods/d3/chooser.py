"""A model chooses among entries by name and summary: sections of documents, or documents (D3, Section 3.3.1)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from clew.core.protocols import LanguageModel, PromptTemplate
from clew.core.types import Usage
from clew.methods.d3.context_window import ContextWindow
from clew.methods.d3.replies import EntryNames


@dataclass(frozen=True, slots=True)
class Entry:
    """A section or document as the model is shown it.

    ``id`` is the node's; ``path`` has the names that lead to it, its own last. ``about`` follows its name (``pages
    3-5``); ``hint`` is the beginning of a matching passage. If not all summaries fit, those of the entries with the
    highest ``priority`` are shown.
    """

    id: str
    path: tuple[str, ...]
    summary: str = ""
    about: str = ""
    hint: str = ""
    priority: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The entries that a model chose, by index, and how it was asked.

    ``unmatched`` are names in the replies that fit no entry, ``summaries`` the number of summaries that were shown,
    ``left_out`` the number of entries that were not shown at all.
    """

    indexes: tuple[int, ...]
    unmatched: tuple[str, ...] = ()
    calls: int = 0
    summaries: int = 0
    usage: Usage = field(default_factory=Usage)
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Chooser:
    """Asks a model which entries may have the answer.

    ``form`` ``paper`` is the representation of Section 3.3.1: ``* Section: name`` with the names along the path
    concatenated, and a list of names as the reply. ``numbered`` is ours: entries are numbered, so that equal names
    are told apart and a reply is short; names that lead to several entries are written once above them; hints and
    pages are shown.

    An outline that exceeds the context (``window``) is split into several calls of as many whole entries as fit (a
    name is never cut), and the choices are united. ``condense`` (ours) drops summaries, those of the lowest priority
    first, so that all entries with their names take as few calls as possible, and no more than ``share`` of the
    tokens of the full text. ``calls`` bounds the calls of an outline: the entries of the lowest priority are then
    left out; None leaves nothing out.

    ``names`` ``uuid`` shows UUIDs in place of names: the ablation of Table 4.
    """

    model: LanguageModel
    template: PromptTemplate
    window: ContextWindow
    form: Literal["paper", "numbered"] = "numbered"
    condense: bool = True
    share: float = 0.2
    calls: int | None = None
    names: Literal["headings", "uuid"] = "headings"

    def choose(self, question: str, entries: Sequence[Entry], total_tokens: int | None = None) -> Choice:
        """Return the entries that the model names; ``total_tokens`` is the size of the full text.

        Raises ModelError, BudgetExceeded.
        """
        if not entries:
            return Choice(())
        shown = [self._with_shown_name(entry) for entry in entries]
        # A question that alone fills the context is for the model to refuse.
        room = max(self.window.room(self.template.render(outline="", question=question)), 1)
        if self.condense:
            shown = self._drop_summaries(shown, room, total_tokens)
        pieces = list(self._pieces(shown, range(len(shown)), room))
        if self.calls is not None and len(pieces) > self.calls:
            pieces = self._drop_entries(shown, room, self.calls)
        outlines = ["\n".join(self._lines(shown, piece)) for piece in pieces]
        prompts = [self.template.render(outline=outline, question=question) for outline in outlines]
        completions = self.model.complete(prompts)
        chosen: dict[int, None] = {}
        unmatched: list[str] = []
        for piece, completion in zip(pieces, completions, strict=True):
            # The paper's form has no numbers: a "3." in a reply belongs to a heading.
            numbers = [index + 1 for index in piece] if self.form == "numbered" else []
            names = EntryNames([shown[index].path for index in piece], numbers)
            matches, others = names.match_reply(completion.text)
            chosen.update(dict.fromkeys(piece[index] for index in matches))
            unmatched += others
        sent = [shown[index] for piece in pieces for index in piece]
        return Choice(
            tuple(sorted(chosen)),
            tuple(unmatched),
            calls=len(completions),
            summaries=sum(bool(entry.summary) for entry in sent),
            usage=sum((completion.usage for completion in completions), Usage()),
            left_out=len(shown) - len(sent),
        )

    def _with_shown_name(self, entry: Entry) -> Entry:
        if self.names == "headings":
            return entry
        return replace(entry, path=(str(uuid.uuid5(uuid.NAMESPACE_URL, entry.id)),))

    def _drop_summaries(self, entries: Sequence[Entry], room: int, total_tokens: int | None) -> list[Entry]:
        """Return the entries with the summaries that fit."""
        condensed = [replace(entry, summary="") for entry in entries]
        size_of_names = sum(self._size(condensed, n, n - 1 if n else None) for n in range(len(condensed)))
        # As many calls as the names need, and no more than ``calls``.
        calls = -(-size_of_names // room)
        allowed = room * (calls if self.calls is None else min(calls, self.calls))
        if total_tokens is not None:
            allowed = min(allowed, max(size_of_names, int(self.share * total_tokens)))
        left = allowed - size_of_names
        for index in sorted(range(len(entries)), key=lambda n: (-entries[n].priority, n)):
            cost = self.window.tokens(entries[index].summary) + 1
            if cost <= left:
                condensed[index] = entries[index]
                left -= cost
        return condensed

    def _drop_entries(self, entries: Sequence[Entry], room: int, most: int) -> list[list[int]]:
        """Return the indexes of each of at most ``most`` calls, for as many entries of the highest priority as these
        hold, in the order of the outline."""
        order = sorted(range(len(entries)), key=lambda n: (-entries[n].priority, n))
        fits, over = 0, len(entries)
        pieces: list[list[int]] = []
        while over - fits > 1:
            middle = (fits + over) // 2
            tried = list(self._pieces(entries, sorted(order[:middle]), room))
            if len(tried) <= most:
                fits, pieces = middle, tried
            else:
                over = middle
        return pieces or [[order[0]]]

    def _pieces(self, entries: Sequence[Entry], indexes: Iterable[int], room: int) -> Iterator[list[int]]:
        """Yield the indexes of each call: as many whole entries as fit."""
        piece: list[int] = []
        used = 0
        for index in indexes:
            size = self._size(entries, index, piece[-1] if piece else None)
            if piece and used + size > room:
                yield piece
                piece, used = [], 0
                size = self._size(entries, index, None)
            piece.append(index)
            used += size
        yield piece

    def _size(self, entries: Sequence[Entry], index: int, before: int | None) -> int:
        return sum(self.window.tokens(line) + 1 for line in self._entry_lines(entries, index, before))

    def _lines(self, entries: Sequence[Entry], piece: Sequence[int]) -> Iterator[str]:
        for place, index in enumerate(piece):
            yield from self._entry_lines(entries, index, piece[place - 1] if place else None)

    def _entry_lines(self, entries: Sequence[Entry], index: int, before: int | None) -> Iterator[str]:
        """Yield an entry's lines, given the entry above it in the same call."""
        entry = entries[index]
        if self.form == "paper":
            yield f"* Section: {' > '.join(entry.path)}"
            if entry.summary:
                yield entry.summary
            return
        above = entries[before].path if before is not None else ()
        # Yield the names of a path, without its last, that are not above it already.
        shared = 0
        while shared < min(len(entry.path) - 1, len(above)) and entry.path[shared] == above[shared]:
            shared += 1
        for depth in range(shared, len(entry.path) - 1):
            yield f"{'#' * (depth + 1)} {entry.path[depth]}"
        about = f" ({entry.about})" if entry.about else ""
        yield f"[{index + 1}] {entry.path[-1]}{about}"
        if entry.summary:
            yield entry.summary
        if entry.hint:
            yield f"match: {entry.hint}"
