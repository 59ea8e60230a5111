"""Small real bases, made through the document builder and the store: fixtures that several folders share."""

import pytest

from clew.store.store import Store
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
