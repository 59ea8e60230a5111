"""A reader: the best passage, in capitals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from clew.core.component import component
from clew.core.protocols import Trail
from clew.core.types import Answer, Hit, Question, Step


@dataclass(frozen=True, slots=True)
class ShoutStep(Step):
    """What the trail says of a reading."""

    name: ClassVar[str] = "read"
    reader: str = "shout"


@component("shout", summary="the best passage, in capitals")
@dataclass(frozen=True, slots=True)
class Shout:
    """Reads one passage."""

    mark: str = "!"

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the passage, or abstain where there is none."""
        trail.add(ShoutStep(hits=tuple(hits[:1])))
        if not hits:
            return Answer("not found", abstained=True, reader="shout")
        return Answer(hits[0].node.text.upper() + self.mark, (hits[0],), reader="shout")
