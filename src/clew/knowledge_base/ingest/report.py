"""Progress events, and the report on what happened to each file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Stage = Literal[
    "files", "pages", "index", "encode", "annotate", "summarise", "extract", "grid", "graph", "pack", "words"
]


@dataclass(frozen=True, slots=True)
class Event:
    """Progress: ``done`` of ``total`` units of ``stage`` are finished, the last of them ``path``.

    Units are files to read (``files``), pages of the file ``path`` (``pages``), documents to make searchable
    (``index``), passages or nodes of a graph to encode (``encode``), passages to annotate (``annotate``), sections to
    summarise (``summarise``), passages to extract triples from (``extract``), cells of a grid to answer (``grid``),
    bytes of the files of a graph (``graph``), or its nodes, to pack (``pack``) or to count the words of (``words``).
    ``outcome`` is the name of the :class:`Report`'s list that has the file, or "".
    """

    stage: Stage
    done: int
    total: int
    path: str = ""
    outcome: str = ""


Progress = Callable[[Event], None]
"""A function that receives events, called from the thread that adds."""


def ignore_event(event: Event) -> None:
    """Ignore an event: the default of ``progress``."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that was not added, and why. ``keeps_version``: the version that was added earlier stays."""

    path: str
    reason: str
    keeps_version: bool = False

    def __str__(self) -> str:
        suffix = " (the version added earlier is kept)" if self.keeps_version else ""
        return f"{self.path}: {self.reason}{suffix}"


@dataclass(slots=True)
class Report:
    """The report of an ``add``. Its lists hold paths, in the order in which the files were finished.

    ``located`` are files whose bytes the base already had from another path: one document with several locations.
    ``removed`` are paths whose file no longer exists (``sync`` only). ``skipped`` counts files that are left out on
    purpose, by reason; ``unsupported`` are the paths of those of a type that is not read. ``notes`` are remarks of
    parsers, as (path, remark). ``left_out`` counts the words that stand in a file and not in its document, by reason
    and path.
    """

    added: list[str]
    replaced: list[str]
    located: list[str]
    removed: list[str]
    failed: list[Failure]
    notes: list[tuple[str, str]]
    skipped: dict[str, int]
    unsupported: list[str] = field(default_factory=list)
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)
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
        """Return a report without files."""
        return cls([], [], [], [], [], [], {})

    @property
    def complete(self) -> bool:
        """Whether every file is in the base now."""
        return not self.failed and not self.interrupted

    def record(self, path: str, outcome: str) -> None:
        """Record the ``outcome`` of a file: added, replaced, located or unchanged."""
        if outcome == "unchanged":
            self.unchanged += 1
        else:
            lists = {"added": self.added, "replaced": self.replaced, "located": self.located}
            lists[outcome].append(path)
