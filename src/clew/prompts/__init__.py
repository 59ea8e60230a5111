"""Prompts: versioned files with declared variables, and what their replies must look like."""

from clew.prompts.replies import plain
from clew.prompts.structured import parse_json, schema_words
from clew.prompts.template import Template, load

__all__ = ["Template", "load", "parse_json", "plain", "schema_words"]
