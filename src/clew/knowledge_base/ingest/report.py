"""What happened to each file of an ``add``, while it happens and afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Stage = Literal["files", "index", "encode", "annotate", "summarise", "extract", "graph", "pack", "words"]


@dataclass(frozen=True, slots=True)
class Event:
    """Progress: ``done`` of ``total`` units of ``stage`` are finished, the last of them ``path``.

    Units are files to read (``files``), documents to make searchable (``index``), passages or nodes of a graph to
    encode (``encode``), passages to annotate (``annotate``), sections to summarise (``summarise``), passages to
    extract triples from (``extract``), bytes of the files of a graph (``graph``), or its nodes, to pack (``pack``) or
    to count the words of (``words``). ``outcome`` is what :class:`Report` calls the list that the file went to, or
    "".
    """

    stage: Stage
    done: int
    total: int
    path: str = ""
    outcome: str = ""


Progress = Callable[[Event], None]
"""Receives events; called from the thread that adds."""


def ignore_event(event: Event) -> None:
    """Ignore an event: the progress of those who want none."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that was not added, and why. ``kept`` is true where an earlier version of it stays."""

    path: str
    reason: str
    kept: bool = False

    def __str__(self) -> str:
        kept = " (the version added earlier is kept)" if self.kept else ""
        return f"{self.path}: {self.reason}{kept}"


@dataclass(slots=True)
class Report:
    """What an ``add`` did. Every list holds paths, in the order in which they were dealt with.

    ``located`` are files whose bytes the base already had, from another path: one document, several
    locations. ``removed`` are paths whose file vanished (``sync`` only). ``skipped`` counts what was passed
    over on purpose, by reason. ``notes`` are remarks of parsers, as (path, remark).
    """

    added: list[str]
    replaced: list[str]
    located: list[str]
    removed: list[str]
    failed: list[Failure]
    notes: list[tuple[str, str]]
    skipped: dict[str, int]
    unchanged: int = 0
    pages: int = 0
    passages: int = 0
    tables: int = 0
    rows: int = 0
    encoded: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    @classmethod
    def empty(cls) -> Report:
        """Return the report of nothing."""
        return cls([], [], [], [], [], [], {})

    @property
    def complete(self) -> bool:
        """Whether every file is in the base now."""
        return not self.failed and not self.interrupted

    def record(self, path: str, outcome: str) -> None:
        """Note what the base said about ``path``: added, replaced, located or unchanged."""
        if outcome == "unchanged":
            self.unchanged += 1
        else:
            lists = {"added": self.added, "replaced": self.replaced, "located": self.located}
            lists[outcome].append(path)
