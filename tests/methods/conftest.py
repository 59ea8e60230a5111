import pytest

import hop_base


@pytest.fixture(scope="session")
def hops(tmp_path_factory):
    with hop_base.made(tmp_path_factory.mktemp("hops") / "base") as base:
        yield base
