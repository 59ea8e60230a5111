import pytest

import chain_bases
import hop_base
from clew.kb import KnowledgeBase
from small_bases import base

__all__ = ["base"]


@pytest.fixture(scope="session")
def hops(tmp_path_factory):
    with hop_base.made(tmp_path_factory.mktemp("hops") / "base") as base:
        yield base


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain")
    with KnowledgeBase.open(folder / "base", create=True) as made:
        yield chain_bases.fill(made, folder)
