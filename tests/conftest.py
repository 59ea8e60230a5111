"""For all tests: new knowledge bases have no encoder, since most tests are about something else.

What comes with clew is tested where it matters: on the samples, in the README's commands, and in
``tests/models/test_embedded.py``.
"""

import pytest


@pytest.fixture(scope="session", autouse=True)
def without_encoder():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_ENCODER", "none")
        yield


@pytest.fixture
def embedded(monkeypatch):
    """New knowledge bases have the encoder that comes with clew."""
    monkeypatch.delenv("CLEW_ENCODER")
