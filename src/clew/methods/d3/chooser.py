"""A model chooses among entries by name and summary: sections of documents, or documents (D3, Section 3.3.1)."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from clew.core.types import Usage
from clew.methods.d3.context_window import ContextWindow
from clew.methods.d3.replies import EntryNames

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel, PromptTemplate


@dataclass(frozen=True, slots=True)
class Entry:
    """What a model is shown of a section or document.

    ``id`` is the node's; ``path`` the names that lead to it, its own last. ``about`` is what is added to its name
    (``pages 3-5``), ``hint`` the words of it that match. Where not all summaries fit, those of the greatest
    ``worth`` are shown.
    """

    id: str
    path: tuple[str, ...]
    summary: str = ""
    about: str = ""
    hint: str = ""
    priority: float = 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen, by index; what the reply named that is not there; how it was asked: calls, how many
    summaries were shown, what it cost, how many entries were not shown at all."""

    indexes: tuple[int, ...]
    unmatched: tuple[str, ...] = ()
    calls: int = 0
    summaries: int = 0
    usage: Usage = field(default_factory=Usage)
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Chooser:
    """Asks a model which entries may hold the answer.

    ``window`` is the model's context. ``form`` ``paper`` is the
    representation of Section 3.3.1, ``* Section: name`` with the names along the path concatenated, and the
    reply a list of names. ``numbered`` is ours: entries are numbered, so that equal names are told apart and a
    reply is short; names that lead to several entries are written once, above them; hints and pages are shown.

    An outline that exceeds the context is asked about in several calls, of as many whole entries as fit (a name
    is never cut), and their choices are united. ``condense`` (ours) first leaves out the summaries that are
    least worth, so that the entries with all their names take as few calls as they can, and no more than
    ``share`` of the tokens of what they stand for, which the caller gives as ``whole``.

    ``most`` bounds the calls of an outline: entries least worth are then left out, and their number is told. None
    leaves nothing out.

    ``names`` ``uuid`` shows in place of names what says nothing: the ablation of Table 4.
    """

    model: LanguageModel
    template: PromptTemplate
    window: ContextWindow
    form: Literal["paper", "numbered"] = "numbered"
    condense: bool = True
    share: float = 0.2
    calls: int | None = None
    names: Literal["headings", "uuid"] = "headings"

    def choose(self, question: str, entries: Sequence[Entry], whole: int | None = None) -> Choice:
        """Return the entries that the model names. Raises ModelError, BudgetExceeded."""
        if not entries:
            return Choice(())
        shown = [self._renamed(one) for one in entries]
        # A question that alone fills the context is the model's to refuse.
        room = max(self.window.room(self.template.render(outline="", question=question)), 1)
        kept = self._condensed(shown, room, whole) if self.condense else list(shown)
        pieces = list(self._pieces(kept, range(len(kept)), room))
        if self.calls is not None and len(pieces) > self.calls:
            pieces = self._narrowed(kept, room, self.calls)
        outlines = ["\n".join(self._lines(kept, piece)) for piece in pieces]
        prompts = [self.template.render(outline=outline, question=question) for outline in outlines]
        made = self.model.complete(prompts)
        found: dict[int, None] = {}
        unknown: list[str] = []
        for piece, one in zip(pieces, made, strict=True):
            # In the paper's form there are no numbers, and a "3." belongs to a heading.
            numbers = [index + 1 for index in piece] if self.form == "numbered" else []
            names = EntryNames([kept[index].path for index in piece], numbers)
            meant, strange = names.match_reply(one.text)
            found.update(dict.fromkeys(piece[index] for index in meant))
            unknown += strange
        usage = sum((one.usage for one in made), Usage())
        shown_now = [kept[index] for piece in pieces for index in piece]
        summaries = sum(bool(one.summary) for one in shown_now)
        left_out = len(kept) - len(shown_now)
        return Choice(tuple(sorted(found)), tuple(unknown), len(made), summaries, usage, left_out)

    def _renamed(self, entry: Entry) -> Entry:
        if self.names == "headings":
            return entry
        name = str(uuid.uuid5(uuid.NAMESPACE_URL, entry.id))
        return Entry(entry.id, (name,), entry.summary, entry.about, entry.hint, entry.priority)

    def _condensed(self, entries: Sequence[Entry], room: int, whole: int | None) -> list[Entry]:
        """Return the entries with the summaries that fit."""
        bare = [Entry(one.id, one.path, "", one.about, one.hint, one.priority) for one in entries]
        names = sum(self._sizes(bare, range(len(bare))))
        # As many calls as the names need, and no more than there may be.
        calls = -(-names // room)
        allowed = room * (calls if self.calls is None else min(calls, self.calls))
        if whole is not None:
            allowed = min(allowed, max(names, int(self.share * whole)))
        left = allowed - names
        for index in sorted(range(len(entries)), key=lambda n: (-entries[n].priority, n)):
            cost = self.window.tokens(entries[index].summary) + 1
            if cost <= left:
                bare[index] = entries[index]
                left -= cost
        return bare

    def _narrowed(self, entries: Sequence[Entry], room: int, most: int) -> list[list[int]]:
        """Return the calls for as many of the worthiest entries as ``most`` of them hold, in the outline's order."""
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

    def _sizes(self, entries: Sequence[Entry], indexes: range) -> Iterator[int]:
        return (self._size(entries, n, n - 1 if n else None) for n in indexes)

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
        yield from _ancestors(entry.path, above)
        about = f" ({entry.about})" if entry.about else ""
        yield f"[{index + 1}] {entry.path[-1]}{about}"
        if entry.summary:
            yield entry.summary
        if entry.hint:
            yield f"match: {entry.hint}"


def _ancestors(path: Sequence[str], above: Sequence[str]) -> Iterator[str]:
    """Yield the names of a path, without its own, that do not stand above it already."""
    shared = 0
    while shared < min(len(path) - 1, len(above)) and path[shared] == above[shared]:
        shared += 1
    for depth in range(shared, len(path) - 1):
        yield f"{'#' * (depth + 1)} {path[depth]}"
