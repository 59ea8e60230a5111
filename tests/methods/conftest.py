import pytest

import chain_bases
import hop_base
import schema_graphs
from clew.store.store import Store
from small_bases import base

__all__ = ["base"]


@pytest.fixture(scope="session")
def hops(tmp_path_factory):
    with hop_base.make_base(tmp_path_factory.mktemp("hops") / "base") as base:
        yield base


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    with Store.open(folder / "base", create=True) as store:
        yield chain_bases.fill(store, folder)


@pytest.fixture(scope="session")
def schemas(tmp_path_factory):
    """A small graph of films and one of very many relations."""
    with Store.open(tmp_path_factory.mktemp("schemas") / "base", create=True) as store:
        schema_graphs.films(store)
        schema_graphs.wide(store)
        yield store
