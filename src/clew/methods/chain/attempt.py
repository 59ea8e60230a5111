"""One chain on its way to an answer: its values so far, and what the answer rests on."""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.core.trail import ChainFilling
from clew.core.types import Hit, Quote
from clew.methods.chain.derived_answers import DerivedAnswer, find_strands
from clew.methods.chain.unknowns import SHOWN_VALUES, Candidate, FilledChain
from clew.triples.language.chain import Chain

#: The text of an answer lists this many values; ``Answer.values`` has all.
LISTED_VALUES = 20
#: ``Answer.values`` has at most this many values, each with its evidence.
MAX_VALUES = 10_000


@dataclass(slots=True)
class ChainAttempt:
    """A chain as far as it is filled.

    ``derived`` is the answer that follows by rule, ``model_answer`` the one that the model gave, and ``mismatch``
    says why the answer cannot be right, "" if nothing is known against it.
    """

    filled: FilledChain = field(default_factory=lambda: FilledChain(Chain(())))
    derived: DerivedAnswer | None = None
    model_answer: str = ""
    mismatch: str = ""
    claims: bool = False

    @property
    def needs_model(self) -> bool:
        """Whether neither the sources nor a rule gave the whole answer."""
        return bool(self.filled.unfilled) or not self.values

    @property
    def lacks_only_answer(self) -> bool:
        """Whether all unknowns are filled, but only the model can give the answer that follows from them."""
        return not self.filled.unfilled and not self.text

    @property
    def is_complete(self) -> bool:
        """Whether every unknown is filled and the answer is of the kind that is asked for."""
        return bool(self.text) and not self.filled.unfilled and not self.mismatch

    @property
    def worth(self) -> tuple[bool, bool, bool, int]:
        """A sort key: the better of two attempts has the greater one."""
        return self.is_complete, bool(self.text), not self.mismatch, len(self.filled.fillings)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The values of the unknown that answers the question, if there is such an unknown."""
        number = self.filled.chain.answer
        return () if number is None else self._values_of(number)

    @property
    def values(self) -> tuple[str, ...]:
        """The answers one by one."""
        if self.derived is not None:
            return (self.derived.text,)
        from_model = (self.model_answer,) if self.model_answer else ()
        if self.claims:
            return from_model
        names = tuple(dict.fromkeys(candidate.value for candidate in self.candidates))
        return names or from_model or self._last_values()

    def _last_values(self) -> tuple[str, ...]:
        """Return the values of the last unknown of a chain of one strand: ``#answer`` can be nothing else."""
        chain = self.filled.chain
        strands = find_strands(chain) if chain.answer is None else []
        if len(strands) != 1:
            return ()
        candidates = self._values_of(strands[0].last_unknown)
        return tuple(dict.fromkeys(candidate.value for candidate in candidates))

    def _values_of(self, number: int) -> tuple[Candidate, ...]:
        fillings = self.filled.fillings.get(number)
        return fillings[0].values(MAX_VALUES) if fillings else ()

    @property
    def text(self) -> str:
        """The text of the answer: its first values."""
        values = self.values
        more = f" and {len(values) - LISTED_VALUES} more" if len(values) > LISTED_VALUES else ""
        return ", ".join(values[:LISTED_VALUES]) + more

    @property
    def from_memory(self) -> tuple[str, ...]:
        """The values that rest on the model's memory alone: unknowns, and a final answer that no rule derived."""
        remembered = [
            f"#{number}: {fillings[0].candidates[0].value}"
            for number, fillings in sorted(self.filled.fillings.items())
            if fillings[0].source == "model"
        ]
        if self.model_answer and self.derived is None and not self.candidates:
            remembered.append(f"the answer: {self.model_answer}")
        return tuple(remembered)

    def evidence(self) -> tuple[tuple[Hit, ...], tuple[Quote, ...]]:
        """Return the hits and quotes of the best value of every unknown, hop after hop, and of every listed
        answer."""
        best = [fillings[0].candidates[0] for _, fillings in sorted(self.filled.fillings.items())]
        candidates = [*best, *self.candidates[:LISTED_VALUES]]
        hits = dict.fromkeys(hit for candidate in candidates for hit in candidate.hits)
        quotes = dict.fromkeys(quote for candidate in candidates for quote in candidate.quotes)
        return tuple(hits), tuple(quotes)

    def to_filling(self) -> ChainFilling:
        """Return the chain with the first values of its unknowns for the trail."""
        values = {
            f"#{number}": tuple(candidate.value for candidate in fillings[0].values(SHOWN_VALUES))
            for number, fillings in sorted(self.filled.fillings.items())
        }
        return ChainFilling(str(self.filled.chain), values, self.worth)
