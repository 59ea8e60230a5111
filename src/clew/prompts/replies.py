"""Free text out of what a language model wrote."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
#: A thought that never ends says nothing.
_ENDLESS = re.compile(r"\A\s*<think(?:ing)?>.*\Z", re.DOTALL)
#: Characters that no text has: controls, and halves of pairs, which cannot be written to a file.
_UNWRITTEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_reply(reply: str) -> str:
    """Return a reply without the thoughts before it and without characters that no text has."""
    return _UNWRITTEN.sub(" ", _ENDLESS.sub("", _THOUGHT.sub("", reply))).strip()
