"""Chains: a question as triples over constants and unknowns (Su et al., NAACL 2024, Section 3.1).

A term of a triple is a constant, an unknown (``#1``), or text that contains unknowns (``flag of the #1``). The same
type serves every method that writes a question down before it answers it.
"""

from clew.chains.consistency import agreed, agreed_typed, normal_form, typed_form
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
from clew.chains.parsing import Limits, parse
from clew.chains.quoting import quoted
from clew.chains.terms import Chain, Term, Triple
from clew.chains.typed import (
    NOT,
    ONLY,
    TESTS,
    Condition,
    Count,
    TypedChain,
    at_least,
    at_most,
    exactly,
)
from clew.chains.typed_parsing import TypedReading, parse_typed, read_typed

__all__ = [
    "NOT",
    "ONLY",
    "TESTS",
    "Chain",
    "ChainError",
    "Condition",
    "Count",
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
    "TypedReading",
    "agreed",
    "agreed_typed",
    "at_least",
    "at_most",
    "exactly",
    "normal_form",
    "parse",
    "parse_typed",
    "quoted",
    "read_typed",
    "typed_form",
]
