"""Chains: a question as triples over constants and unknowns (Su et al., NAACL 2024, Section 3.1).

A term of a triple is a constant, an unknown (``#1``), or text that contains unknowns (``flag of the #1``). The same
type serves every method that writes a question down before it answers it.
"""

from __future__ import annotations

from clew.triples.language.chain import (
    NOT,
    ONLY,
    TESTS,
    Chain,
    ChainError,
    Condition,
    DiscontinuousMaskError,
    FinalAnswerFormatError,
    IncorrectTripleFormatError,
    IncorrectTripleRelationMaskError,
    Limits,
    MaskOverflowError,
    MaskUnderflowError,
    MissingMaskNumberError,
    MissingTripleMaskError,
    Quantifier,
    Term,
    Triple,
    TypedChain,
    at_least,
    at_most,
    exactly,
    parse_chain,
    quote,
)
from clew.triples.language.consistency import (
    normal_form,
    rank_by_agreement,
    rank_typed_by_agreement,
    typed_normal_form,
)
from clew.triples.language.typed_parsing import TypedParse, parse_typed, parse_typed_statements

__all__ = [
    "NOT",
    "ONLY",
    "TESTS",
    "Chain",
    "ChainError",
    "Condition",
    "DiscontinuousMaskError",
    "FinalAnswerFormatError",
    "IncorrectTripleFormatError",
    "IncorrectTripleRelationMaskError",
    "Limits",
    "MaskOverflowError",
    "MaskUnderflowError",
    "MissingMaskNumberError",
    "MissingTripleMaskError",
    "Quantifier",
    "Term",
    "Triple",
    "TypedChain",
    "TypedParse",
    "at_least",
    "at_most",
    "exactly",
    "normal_form",
    "parse_chain",
    "parse_typed",
    "parse_typed_statements",
    "quote",
    "rank_by_agreement",
    "rank_typed_by_agreement",
    "typed_normal_form",
]
