"""The syntactic errors of a written chain: the eight of Su et al. (NAACL 2024), Appendix B."""

from __future__ import annotations

from clew.core.errors import UsageError


class ChainError(UsageError):
    """A chain that does not have the required form; the hint says what was expected."""


class MaskUnderflowError(ChainError):
    """Fewer unknowns than the task allows."""


class MaskOverflowError(ChainError):
    """More unknowns than the task allows."""


class DiscontinuousMaskError(ChainError):
    """The numbers of the unknowns have a gap (#1, #3)."""


class MissingMaskNumberError(ChainError):
    """An unknown without a number that is not the final answer's ``#answer``."""


class MissingTripleMaskError(ChainError):
    """A triple without an unknown in its head or its tail."""


class IncorrectTripleRelationMaskError(ChainError):
    """An unknown in the relation of a triple."""


class IncorrectTripleFormatError(ChainError):
    """A triple without exactly a head, a relation and a tail."""


class FinalAnswerFormatError(ChainError):
    """A chain that does not end with ``final answer: #answer`` or one of its unknowns."""
