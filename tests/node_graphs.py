"""A small graph whose nodes have texts, and what is looked at where these are embedded."""

from __future__ import annotations

from pathlib import Path

from clew.store.store import Store
from retrieve_encoders import WordEncoder

FILMS = {
    "k1": {"name": "Kismet", "types": ["film"], "text": "A beggar of Baghdad.", "properties": {"year": 1944}},
    "k2": {"name": "Love Letters", "types": ["film"], "text": "A soldier writes letters."},
    "k3": {"name": "Juarez", "types": ["film"], "text": "An emperor in Mexico."},
    "d": {"name": "William Dieterle", "types": ["person"], "aliases": ["Wilhelm Dieterle"]},
}
EDGES = [
    ("k1", "director", "d"),
    ("k2", "director", "d"),
    ("k3", "director", "d"),
    ("k1", "near", "k3"),
    ("k3", "near", "k1"),
]


class Counted(WordEncoder):
    """Notes what it was given to encode."""

    def __init__(self, *words: str) -> None:
        super().__init__(*words)
        self.seen: list[str] = []

    def encode(self, texts, query=False):
        if not query:
            self.seen += list(texts)
        return super().encode(texts, query)


def node_files(base: Store) -> list[Path]:
    return sorted((base.path / "derived" / "nodes").glob("*/*"))
