"""Small real knowledge bases, made through the document builder and the store: shared fixtures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import schema_graphs
from chain_bases import WORLD
from clew.core.protocols import Snapshot
from clew.core.types import ParsedDocument
from clew.store.store import Store
from graph_corpora import locate
from retrieve_documents import add


@pytest.fixture
def base(tmp_path):
    with Store.open(tmp_path / "base", create=True) as opened:
        yield opened


@pytest.fixture
def snapshot_of(base):
    """Add documents, each (file name, title, blocks...), and return a caught-up snapshot."""

    def make(*documents):
        for document in documents:
            add(base, *document)
        base.catch_up()
        return base.snapshot()

    return make


class Bases:
    """Makes stores in one temporary folder and closes them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: list[Store] = []

    def base(self, documents: Sequence[ParsedDocument], names: Sequence[str] = ()) -> Store:
        base = Store.open(self._folder / str(len(self._open)), create=True)
        self._open.append(base)
        for number, parsed in enumerate(documents):
            base.put_document(parsed, locate(parsed, names[number] if names else ""))
        base.catch_up()
        return base

    def snapshot(self, documents: Sequence[ParsedDocument], names: Sequence[str] = ()) -> Snapshot:
        return self.base(documents, names).snapshot()

    def close(self) -> None:
        for base in self._open:
            base.close()


@pytest.fixture
def bases(tmp_path: Path) -> Iterator[Bases]:
    factory = Bases(tmp_path)
    yield factory
    factory.close()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bases]:
    """Stores that the tests of a module share and do not change."""
    factory = Bases(tmp_path_factory.mktemp("bases"))
    yield factory
    factory.close()


def fill_archive(store: Store) -> None:
    """Add long passages, many sections, and a graph of very many relations: more than a small context holds."""
    for film, director, town, mayor, studio, year in WORLD:
        blocks: list[object] = []
        for n in range(12):
            history = (
                f"Part {n} of the long history of {film}, directed by {director} for {studio} in {year}. "
                f"{director} was born in {town}, whose mayor is {mayor}. "
            )
            padding = f"The harbour of {town} was dredged in that winter for the {n}th time by hired crews. "
            blocks += [("heading", 1, f"Chapter {n} of {film}"), history + 12 * padding]
        add(store, f"{film}.txt", film, *blocks)
    store.catch_up()
    schema_graphs.films(store)
    schema_graphs.wide(store)
