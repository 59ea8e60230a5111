"""The costs of language models: tokens, and prices in US dollars.

Prices change: the table that clew ships (``prices.json``) has a date, and a file named by ``CLEW_PRICES`` overrides
it. Its form is ``{"models": {"openai:gpt-4o-mini": [0.15, 0.60], "http://gpu-box:8000/v1#qwen": [0, 0]}}``, in US
dollars per million tokens in and out.

Where an endpoint does not report tokens, they are counted by a rule: one token per four characters, one per character
of Chinese, Japanese or Korean, and four per message for what an endpoint adds. On English papers, notes and code it
gives 0.86 to 1.04 times the count of a WordPiece tokenizer. A usage counted this way is marked ``estimated``.

:class:`Rehearsal` stands in for a model and counts what a run would ask, so that its cost is known before.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from clew.core.config import prices_path
from clew.core.errors import UsageError
from clew.core.protocols import Completion, Prompt
from clew.core.types import Usage
from clew.models import parse_roles

_SHIPPED_PRICES = Path(__file__).with_name("prices.json")
_DATE_SUFFIX = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_MILLION = 1_000_000


def price(model: str) -> tuple[float, float] | None:
    """Return the dollars per million tokens in and out, None where no price is known.

    A dated version (``openai:gpt-4o-2024-08-06``) has the price of its model. Models of Ollama and of this process
    are free, except those that Ollama forwards to its cloud.
    """
    prices = _read_prices(_SHIPPED_PRICES) | (_read_prices(path) if (path := prices_path()) else {})
    for name in (model, _DATE_SUFFIX.sub("", model)):
        if name in prices:
            return prices[name]
    is_local = model.startswith(("ollama:", "local:", "replay:")) and not model.endswith("cloud")
    return (0.0, 0.0) if is_local else None


def cost_in_dollars(model: str, tokens_in: int, tokens_out: int) -> float | None:
    """Return the cost of tokens in US dollars, None where no price is known."""
    prices = price(model)
    return None if prices is None else (tokens_in * prices[0] + tokens_out * prices[1]) / _MILLION


def _read_prices(path: Path) -> dict[str, tuple[float, float]]:
    try:
        return _parse_prices(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        raise UsageError(f"no price file at {path}", "CLEW_PRICES names it") from None


@lru_cache(maxsize=4)
def _parse_prices(path: Path, _changed: int) -> dict[str, tuple[float, float]]:
    try:
        models = json.loads(path.read_text(encoding="utf-8"))["models"]
        return {
            name: (float(tokens_in), float(tokens_out)) for name, (tokens_in, tokens_out) in models.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"cannot read the prices in {path}: {error}", 'Its form is {"models": {"NAME": [0.15, 0.60]}}'
        ) from error


CHARACTERS_PER_TOKEN = 4
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
#: Tokens that an endpoint adds around a message.
_TOKENS_PER_MESSAGE = 4


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text by the rule."""
    wide_characters = len(_CJK.findall(text))
    return wide_characters + -(-(len(text) - wide_characters) // CHARACTERS_PER_TOKEN)


def count_prompt_tokens(prompt: Prompt) -> int:
    """Return the number of tokens of a prompt by the rule."""
    return sum(count_tokens(text) + _TOKENS_PER_MESSAGE for text in (prompt.system, prompt.user) if text)


def estimate_usage(prompts: Iterable[Prompt], model: str = "") -> Usage:
    """Return the most that prompts can cost: their own tokens, and replies of the greatest length allowed.

    ``money`` is None where no price is known for ``model``.
    """
    prompts = list(prompts)
    tokens_in = sum(map(count_prompt_tokens, prompts))
    tokens_out = sum(prompt.max_tokens for prompt in prompts)
    money = cost_in_dollars(model, tokens_in, tokens_out)
    return Usage(len(prompts), tokens_in, tokens_out, money=money, estimated=True)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Stands in for the model of ``name`` (or for one per role) and sums up the usage of the prompts of each role.

    Its replies are the smallest that a prompt's schema allows: no structure, no quote, the first choice. Of numbered
    candidates (role ``select``) it takes the first; to a few-shot prompt it replies as the last example does, so that
    a chain of triples is followed hop by hop. A rehearsed run asks what a real run asks, as long as no prompt depends
    on an earlier reply. Tokens out are counted for replies of the greatest length allowed. Raises UsageError for a
    name that makes no sense; needs no key.
    """

    name: str
    usage_by_role: defaultdict[str, Usage] = field(default_factory=lambda: defaultdict(Usage))

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return the smallest reply to each prompt, and count what asking for it would cost."""
        models = parse_roles(self.name)
        default = models.get("", models.get("read"))
        completions = []
        for prompt in prompts:
            model = str(models.get(prompt.role, default) or "")
            usage = estimate_usage([prompt], model)
            self.usage_by_role[prompt.role] += usage
            if prompt.schema:
                text = json.dumps(_smallest_value(prompt.schema))
            else:
                text = "1" if prompt.role == "select" else _last_example_reply(prompt.user)
            completions.append(Completion(text, usage, model))
        return completions


def _last_example_reply(user: str) -> str:
    r"""Return the last example's reply to the words that the prompt ends with; "" without one, or for several lines.

    >>> _last_example_reply("Question: Who?\nAnswer: Ada\n\nQuestion: Where?\nAnswer:")
    'Ada'
    """
    examples, line_end, label = user.rstrip().rpartition("\n")
    _, separator, rest = examples.rpartition(line_end + label)
    reply = rest.partition("\n\n")[0].strip()
    return reply if separator and label.endswith(":") and "\n" not in reply else ""


def _smallest_value(schema: Mapping[str, Any]) -> Any:
    """Return the smallest value that a JSON schema describes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "null")
    match kind if isinstance(kind, str) else kind[0]:
        case "object":
            return {key: _smallest_value(value) for key, value in schema.get("properties", {}).items()}
        case "array":
            return []
        case "string":
            return ""
        case "boolean":
            return True
        case "integer" | "number":
            return 0
        case _:
            return None
