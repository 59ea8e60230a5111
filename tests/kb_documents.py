from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

import numpy as np

from clew.core.types import Location, ParsedDocument, Table
from clew.parse.documents.builder import DocumentBuilder

WORDS = [
    "river",
    "mill",
    "Ferry",
    "Garrow",
    "gauge",
    "1929",
    "stone",
    "Oskell",
    "water",
    "the",
    "of",
    "toll",
    "Hollow",
]


class HashEncoder:
    """Unit vectors that depend on the text alone; counts what it was asked to encode."""

    name = "hash-encoder"
    dimension = 16
    objective = ""

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], query: bool = False) -> np.ndarray:
        if not query:
            self.encoded += texts
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") for text in texts]
        vectors = np.array([np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def document(number: int, version: int = 0) -> ParsedDocument:
    """A document of random words: sections, passages, a table; the same for the same numbers."""
    rng = random.Random(number * 1000 + version)

    def words(n: int) -> str:
        return " ".join(rng.choice(WORDS) for _ in range(n))

    builder = DocumentBuilder()
    for page in range(1, rng.randint(2, 3)):
        builder.add_page(page)
        builder.add_heading(1, words(2))
        for _ in range(rng.randint(1, 4)):
            builder.add_paragraph(words(rng.randint(3, 12)) + ".")
        builder.add_table(Table(("name", "value"), ((words(1), words(1)), (words(1), words(1))), words(2)))
    data = f"{number}/{version}".encode()
    return builder.finish(
        data=data, title=f"Title {words(1)} {number}", media_type="text/plain", parser="test/1", pages=2
    )


def location(path: str, stamp: int = 0) -> Location:
    return Location(path, "/docs", 10, stamp, stamp)
