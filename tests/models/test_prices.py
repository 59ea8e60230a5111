"""What calls cost: prices by name, and the most that prompts can come to."""

import pytest

from clew.core.errors import UsageError
from clew.core.protocols import Prompt
from clew.core.types import Usage
from clew.models.costs import cost_in_dollars, count_tokens, estimate_usage, price


def test_prices_are_known_by_name_snapshot_and_place(monkeypatch, tmp_path):
    monkeypatch.delenv("CLEW_PRICES", raising=False)
    assert price("openai:gpt-4o-mini") == (0.15, 0.6)
    assert price("openai:gpt-4o-mini-2024-07-18") == (0.15, 0.6)
    assert cost_in_dollars("openai:gpt-4o", 1_000_000, 100_000) == 2.5 + 1.0
    assert price("ollama:llama3.1") == price("local:x") == (0.0, 0.0)
    assert price("ollama:gpt-oss:120b-cloud") is None
    assert price("http://localhost:8000/v1#m") is None
    mine = tmp_path / "p.json"
    mine.write_text('{"models": {"openai:gpt-4o": [1, 1]}}')
    monkeypatch.setenv("CLEW_PRICES", str(mine))
    assert price("openai:gpt-4o") == (1.0, 1.0)
    assert price("openai:gpt-4o-mini") == (0.15, 0.6)
    mine.write_text('{"models": {"openai:gpt-4o": [1]}} ')
    with pytest.raises(UsageError, match="cannot read the prices"):
        price("openai:gpt-4o")
    monkeypatch.setenv("CLEW_PRICES", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="no price file"):
        price("openai:gpt-4o")


def test_an_estimate_is_the_most_that_prompts_can_cost():
    prompts = [Prompt("x" * 400, "y" * 10, max_tokens=50), Prompt("東京の橋", max_tokens=5)]
    assert estimate_usage(prompts, "openai:gpt-4o") == Usage(
        2, 100 + 4 + 3 + 4 + 4 + 4, 55, money=pytest.approx((119 * 2.5 + 55 * 10) / 1e6), estimated=True
    )
    assert estimate_usage(prompts, "http://x/v1#m").money is None
    assert count_tokens("") == 0


def test_money_and_estimates_stay_unknown_when_added():
    known, unknown = Usage(1, money=1.0), Usage(1, money=None, estimated=True)
    assert (known + unknown).money is None
    assert (known + unknown).estimated
    assert not (known + known).estimated
