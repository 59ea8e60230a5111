import pytest


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """No test finds what another one asked, or the model of whoever runs it."""
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("CLEW_LLM", raising=False)
