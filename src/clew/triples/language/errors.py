"""What can be wrong with a chain as it is written: the eight syntactic errors of Su et al. (2024), Appendix B."""

from __future__ import annotations

from clew.core.errors import UsageError


class ChainError(UsageError):
    """A chain that does not follow the form; the hint says what was expected."""


class MaskUnderflowError(ChainError):
    """Fewer unknowns than the task allows."""


class MaskOverflowError(ChainError):
    """More unknowns than the task allows."""


class DiscontinuousMaskError(ChainError):
    """The numbers of the unknowns leave one out (#1, #3)."""


class MissingMaskNumberError(ChainError):
    """An unknown without a number that is not the final answer's ``#answer``."""


class MissingTripleMaskError(ChainError):
    """A triple without an unknown in its head or its tail."""


class IncorrectTripleRelationMaskError(ChainError):
    """An unknown in the relation of a triple."""


class IncorrectTripleFormatError(ChainError):
    """A triple that has not a head, a relation and a tail."""


class FinalAnswerFormatError(ChainError):
    """A chain that does not end with ``final answer: #answer`` or one of its unknowns."""
