"""Prompts: versioned files with declared variables, and what their replies must look like."""

from clew.prompts.structured import parse_json, schema_words
from clew.prompts.template import Template, load

__all__ = ["Template", "load", "parse_json", "schema_words"]
