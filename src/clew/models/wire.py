"""Prompts and completions as JSON: for cache keys and cassettes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from clew.protocols import Completion, Prompt
from clew.types import Usage


def prompt_to_dict(prompt: Prompt) -> dict[str, Any]:
    """Return everything that the reply may depend on, the role, and which sample it is.

    The first sample has the shape of a prompt that is asked once, so that what was kept before is still found.
    """
    shape = asdict(prompt) | {"stop": list(prompt.stop), "schema": prompt.schema and dict(prompt.schema)}
    if not prompt.sample:
        del shape["sample"]
    return shape


def completion_to_dict(completion: Completion) -> dict[str, Any]:
    """Return a completion without whether it came from a cache: that is not its own property."""
    return {"text": completion.text, "model": completion.model, "usage": asdict(completion.usage)}


def completion_from_dict(shape: dict[str, Any]) -> Completion:
    """Return the completion of a shape. Raises KeyError and TypeError where it is damaged."""
    return Completion(str(shape["text"]), Usage(**shape["usage"]), str(shape["model"]))


def json_digest(*parts: Any) -> str:
    """Return the SHA-256 of JSON-compatible values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
