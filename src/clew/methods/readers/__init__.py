"""Readers: an answer from a question and hits."""

from __future__ import annotations

NOT_FOUND = "Not found in these documents."
"""What every reader says when it abstains."""
