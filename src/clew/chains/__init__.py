"""Chains: a question as triples over constants and unknowns (Su et al., NAACL 2024, Section 3.1).

A term of a triple is a constant, an unknown (``#1``), or text that contains unknowns (``flag of the #1``). The same
type serves every method that writes a question down before it answers it.
"""

from clew.chains.consistency import rank_by_agreement, rank_typed_by_agreement, normal_form, typed_normal_form
from clew.chains.errors import (
    ChainError,
    DiscontinuousMaskError,
    FinalAnswerFormatError,
    IncorrectTripleFormatError,
    IncorrectTripleRelationMaskError,
    MaskOverflowError,
    MaskUnderflowError,
    MissingMaskNumberError,
    MissingTripleMaskError,
)
from clew.chains.parsing import Limits, parse_chain
from clew.chains.quoting import quote
from clew.chains.terms import Chain, Term, Triple
from clew.chains.typed import (
    NOT,
    ONLY,
    TESTS,
    Condition,
    Quantifier,
    TypedChain,
    at_least,
    at_most,
    exactly,
)
from clew.chains.typed_parsing import TypedParse, parse_typed, parse_typed_statements

__all__ = [
    "NOT",
    "ONLY",
    "TESTS",
    "Chain",
    "ChainError",
    "Condition",
    "Quantifier",
    "DiscontinuousMaskError",
    "FinalAnswerFormatError",
    "IncorrectTripleFormatError",
    "IncorrectTripleRelationMaskError",
    "Limits",
    "MaskOverflowError",
    "MaskUnderflowError",
    "MissingMaskNumberError",
    "MissingTripleMaskError",
    "Term",
    "Triple",
    "TypedChain",
    "TypedParse",
    "rank_by_agreement",
    "rank_typed_by_agreement",
    "at_least",
    "at_most",
    "exactly",
    "normal_form",
    "parse_chain",
    "parse_typed",
    "quote",
    "parse_typed_statements",
    "typed_normal_form",
]
