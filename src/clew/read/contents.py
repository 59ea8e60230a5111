"""A reader for questions about structure: what was asked for is the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from clew.protocols import Trail
from clew.types import Answer, Hit, Question, Step


@dataclass(frozen=True, slots=True)
class ContentsReader:
    """Gives back the pages, tables or sections that a question names, as they are; no language model.

    At most ``characters`` of them, whole passages only; the evidence is complete.
    """

    characters: int = 4_000

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the texts of the hits, in order."""
        started = time.perf_counter()
        texts: list[str] = []
        room = self.characters
        for hit in hits:
            if texts and len(hit.node.text) > room:
                texts.append(f"({len(hits) - len(texts)} more in the evidence)")
                break
            texts.append(hit.node.text)
            room -= len(hit.node.text)
        detail = {"reader": "extractive", "outcome": "what the question names"}
        trail.add(Step("read", detail, tuple(hits), seconds=time.perf_counter() - started))
        return Answer("\n\n".join(texts), tuple(hits), abstained=not hits)
