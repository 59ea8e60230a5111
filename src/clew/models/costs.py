"""What models cost. Prices change: the table is dated, and a file of the user's wins over it.

``CLEW_PRICES`` names a JSON file of the form of ``prices.json`` here: ``{"models": {"openai:gpt-4o-mini":
[0.15, 0.60], "http://gpu-box:8000/v1#qwen": [0, 0]}}``, in US dollars per million tokens in and out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from clew.core.config import prices_path
from clew.core.errors import UsageError
from clew.core.protocols import Prompt
from clew.core.types import Usage

_OURS = Path(__file__).with_name("prices.json")
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_MILLION = 1_000_000


def price(model: str) -> tuple[float, float] | None:
    """Return dollars per million tokens in and out, or None where no price is known.

    A dated snapshot (``openai:gpt-4o-2024-08-06``) costs what its model costs; models of Ollama and of this
    process cost nothing, except those that Ollama forwards to its cloud.
    """
    known = _table(_OURS) | (_table(theirs) if (theirs := prices_path()) else {})
    for name in (model, _SNAPSHOT.sub("", model)):
        if name in known:
            return known[name]
    on_this_machine = model.startswith(("ollama:", "local:", "replay:")) and not model.endswith("cloud")
    return (0.0, 0.0) if on_this_machine else None


def cost_in_dollars(model: str, tokens_in: int, tokens_out: int) -> float | None:
    """Return what tokens cost in US dollars, or None where no price is known."""
    known = price(model)
    return None if known is None else (tokens_in * known[0] + tokens_out * known[1]) / _MILLION


def _table(path: Path) -> dict[str, tuple[float, float]]:
    try:
        return _read(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        raise UsageError(f"no file of prices at {path}", "It is named by CLEW_PRICES") from None


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int) -> dict[str, tuple[float, float]]:
    try:
        models = json.loads(path.read_text(encoding="utf-8"))["models"]
        return {name: (float(given), float(made)) for name, (given, made) in models.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"cannot read the prices in {path}: {error}", 'Its form is {"models": {"NAME": [0.15, 0.60]}}'
        ) from error


CHARACTERS_PER_TOKEN = 4
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_AROUND_MESSAGE = 4


def count_tokens(text: str) -> int:
    """Return the tokens of a text by the rule."""
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // CHARACTERS_PER_TOKEN)


def count_prompt_tokens(prompt: Prompt) -> int:
    """Return the tokens that a prompt sends, by the rule."""
    return sum(count_tokens(text) + _AROUND_MESSAGE for text in (prompt.system, prompt.user) if text)


def estimate_usage(prompts: Iterable[Prompt], model: str = "") -> Usage:
    """Return what prompts will cost at most: their own tokens, and replies as long as they may get.

    ``money`` is None where no price is known for ``model``.
    """
    asked = list(prompts)
    given, made = sum(map(count_prompt_tokens, asked)), sum(prompt.max_tokens for prompt in asked)
    return Usage(len(asked), given, made, money=cost_in_dollars(model, given, made), estimated=True)


# MERGED: How many tokens a text has, where nobody says.
