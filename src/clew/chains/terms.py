"""Triples over constants and unknowns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

UNKNOWN = re.compile(r"#(?P<number>\d+)")


@dataclass(frozen=True, slots=True)
class Term:
    """A head or a tail: a constant (``Lima``), an unknown (``#1``), or text with unknowns (``flag of the #1``)."""

    text: str

    @property
    def unknowns(self) -> tuple[int, ...]:
        """The numbers of the unknowns in it, in their order, each once."""
        return tuple(dict.fromkeys(int(match["number"]) for match in UNKNOWN.finditer(self.text)))

    @property
    def unknown(self) -> int | None:
        """The number of the unknown that it is, None for anything else."""
        match = UNKNOWN.fullmatch(self.text)
        return int(match["number"]) if match else None

    def fill(self, values: Mapping[int, str]) -> Term:
        """Return the term with the unknowns that have a value replaced by it.

        >>> Term("flag of the #1").filled({1: "Bahamas"})
        Term(text='flag of the Bahamas')
        """
        return Term(UNKNOWN.sub(lambda match: values.get(int(match["number"]), match.group()), self.text))

    def __str__(self) -> str:
        """The term as a chain writes it: in quotation marks where it holds what divides a chain."""
        return _written(self.text)


@dataclass(frozen=True, slots=True)
class Triple:
    """What a step of a question asks: the head has the relation to the tail."""

    head: Term
    relation: str
    tail: Term

    @property
    def unknowns(self) -> tuple[int, ...]:
        """The numbers of its unknowns, each once."""
        return tuple(dict.fromkeys((*self.head.unknowns, *self.tail.unknowns)))

    def fill(self, values: Mapping[int, str]) -> Triple:
        """Return the triple with the unknowns that have a value replaced by it."""
        return Triple(self.head.fill(values), self.relation, self.tail.fill(values))

    def __str__(self) -> str:
        return f"{self.head} >> {_written(self.relation)} >> {self.tail}"


@dataclass(frozen=True, slots=True)
class Chain:
    """Triples, and which unknown answers the question; ``answer`` None is ``#answer``, made of all of them.

    As a string it has the form in which a model writes it, and parses back.
    """

    triples: tuple[Triple, ...]
    answer: int | None = None

    @property
    def unknowns(self) -> tuple[int, ...]:
        """The numbers of all unknowns, ascending."""
        return tuple(sorted({number for triple in self.triples for number in triple.unknowns}))

    def fill(self, values: Mapping[int, str]) -> Chain:
        """Return the chain with the unknowns that have a value replaced by it."""
        return Chain(tuple(triple.fill(values) for triple in self.triples), self.answer)

    def __str__(self) -> str:
        answer = "#answer" if self.answer is None else f"#{self.answer}"
        return "; ".join([*map(str, self.triples), f"final answer: {answer}"])


def _written(text: str) -> str:
    if not re.search(r";|>>|\n", text):
        return text
    return '"' + text.replace('"', "'").replace("\n", " ") + '"'
