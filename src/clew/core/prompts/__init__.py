"""Prompts: versioned files with declared variables, and what their replies must look like."""

from __future__ import annotations

from clew.core.prompts.replies import clean_reply, parse_json, schema_instruction
from clew.core.prompts.templates import Template, load_prompt

__all__ = ["Template", "clean_reply", "load_prompt", "parse_json", "schema_instruction"]
