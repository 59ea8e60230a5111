"""What commands print: JSON, and plain lines for people."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from clew.core.types import Usage
    from clew.knowledge_base.knowledge_base import KnowledgeBase


def print_json(value: Any) -> None:
    """Print ``value`` as JSON on stdout."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def print_note(line: str) -> None:
    """Print a remark on stderr, so that programs that read stdout do not see it."""
    print(line, file=sys.stderr)


def make_console(stderr: bool = False) -> Console:
    """Return a rich console that prints texts as they are: no markup, no emoji codes, colours only where we set
    them."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=False)


def format_count(number: int, noun: str) -> str:
    """Return ``1 page``, ``2 pages``, ``1,037 pages``."""
    plural = noun if number == 1 else f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def format_duration(seconds: float) -> str:
    """Return ``0.12 s``, ``3.4 s``, ``2 min 5 s``."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def format_size(number: int) -> str:
    """Return a number of bytes in words: ``12 KB``, ``3.4 MB``."""
    amount = float(number)
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit in {"bytes", "KB"} else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def format_cost(usage: Usage) -> str:
    """Return the cost of model calls: ``3 calls, 1,200 tokens in, 80 out, $0.0004``; "" for none."""
    if not usage.calls:
        return ""
    money = "price unknown" if usage.money is None else f"${usage.money:.4f}"
    return f"{format_count(usage.calls, 'call')}, {usage.tokens_in:,} tokens in, {usage.tokens_out:,} out, {money}"


def describe_unsearchable(base: KnowledgeBase) -> list[str]:
    """Return lines that say what a search cannot find yet: documents without an index, passages without vectors."""
    pending, unencoded = base.store.snapshot().pending, base.encoding.count_missing()
    lines = [f"{format_count(pending, 'document')} added but not searchable yet."] if pending else []
    if unencoded:
        passages = format_count(unencoded, "passage")
        lines.append(f"{passages} can be found by words alone; to make the vectors: clew encoder encode")
    return lines
