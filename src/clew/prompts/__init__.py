"""Prompts: versioned files with declared variables, and what their replies must look like."""

from clew.prompts.replies import clean_reply
from clew.prompts.structured import parse_json, schema_instruction
from clew.prompts.template import Template, load_prompt

__all__ = ["Template", "load_prompt", "parse_json", "clean_reply", "schema_instruction"]
