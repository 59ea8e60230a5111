"""Readers: each turns a question and hits into an answer."""

from __future__ import annotations

#: The answer of a reader that abstains.
NOT_FOUND = "No answer that clew is sure of."
