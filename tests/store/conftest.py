import pytest

from clew.store.store import Store
from kb_documents import HashEncoder


@pytest.fixture
def base(tmp_path):
    with Store.open(tmp_path / "base", create=True) as opened:
        yield opened


@pytest.fixture
def encoder() -> HashEncoder:
    return HashEncoder()
