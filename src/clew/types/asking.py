"""Questions, hits, trails and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.types.documents import Node


@dataclass(frozen=True, slots=True)
class Scope:
    """What a question is restricted to; ``None`` means everything. ``documents`` are document keys, ``graphs`` names
    of graphs."""

    documents: frozenset[str] | None = None
    kinds: frozenset[str] | None = None
    graphs: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the part of the knowledge base that may answer it.

    ``chain`` is the question as a person wrote it down in triples (:mod:`clew.chains`), for the methods that would
    otherwise ask a model to; "" where none did.
    """

    text: str
    scope: Scope = Scope()
    chain: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved node, its score (higher is better, comparable within one result only), and its path.

    ``path`` holds the ids of the nodes by which it was reached, itself last; a hit of a plain search has a
    path of one. ``via`` says for each step after the first what joined it to its predecessor
    (``keywords: ohio, river``).
    """

    node: Node
    score: float
    path: tuple[str, ...] = ()
    via: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls cost: calls, tokens in and out, seconds of waiting, money in US dollars.

    ``money`` is ``None`` where no price is known for the model, which is not the same as free.
    ``estimated``: some of the tokens were counted by rule, because the model did not say.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    money: float | None = 0.0
    estimated: bool = False

    def __add__(self, other: Usage) -> Usage:
        """Add two usages; unknown money stays unknown."""
        known = self.money is not None and other.money is not None
        return Usage(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
            (self.money or 0.0) + (other.money or 0.0) if known else None,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a trail: what was done, on what, with what outcome.

    ``name`` is a short verb phrase (``seed``, ``expand``, ``generate``, ``read``, ``structure``); ``detail``
    holds what a person would want to check, JSON-compatible; ``hits`` the nodes that came back.
    """

    name: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    hits: tuple[Hit, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of the evidence on which an answer rests; ``span`` is the range in the node's own text."""

    node: str
    text: str
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ConstraintCheck:
    """A constraint of a question, and how far an answer meets it.

    ``text`` is the constraint as it is written (``#1 >> directed_by >> David Lynch``); ``met`` is from 0 to 1, None
    where nothing that is known says so; ``hits`` are the triples by which it is met.
    """

    text: str
    satisfaction: float | None
    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One answer of a ranked list, with what speaks for it and against it.

    ``hit`` is the node, its text what it was ranked by, its score comparable within the list; for a ``name`` that no
    graph has and that was read from a passage, the passage. ``firm``: it meets all constraints that were not given
    up; otherwise it only fills the list up, and stands below all that do. ``checks`` has every constraint; ``by``
    says what ranked it (``vector 0.71``, ``model 0.9``).
    """

    name: str
    hit: Hit
    meets_all: bool
    checks: tuple[ConstraintCheck, ...] = ()
    ranked_by: str = ""

    @property
    def missed_constraints(self) -> tuple[str, ...]:
        """The constraints that it is known not to meet."""
        return tuple(one.text for one in self.checks if one.satisfaction == 0)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a node is no answer to a question.

    ``constraints`` drop it: with ``alone`` each by itself, and without any one of them it would be an answer; else
    all of them would have to go. ``restricted`` says what keeps it out whatever the constraints. Where both are empty
    it is an answer. ``checks`` has every constraint, with the triples by which it is met.
    """

    id: str
    name: str
    constraints: tuple[str, ...]
    each_alone: bool
    restriction: str = ""
    checks: tuple[ConstraintCheck, ...] = ()

    @property
    def is_answer(self) -> bool:
        """Whether it is an answer after all."""
        return not self.constraints and not self.restriction


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with everything needed to check it.

    ``reader`` says how the text came about: ``extractive`` when no language model wrote it. ``abstained`` is
    true when the evidence does not hold the answer, or none was given for another reason; ``text`` then says
    so, and the evidence is what came nearest. ``rejected`` holds quotes that a model gave and that are not
    verbatim in their source; they support nothing. ``context`` is what the reader was given to read.
    ``values`` are the answers one by one where there are several. ``remembered`` says what rests on nothing but the
    model's memory. ``ranked`` are the answers of a ranked list, best first, those that fill it up among them.
    """

    text: str
    evidence: tuple[Hit, ...] = ()
    quotes: tuple[Quote, ...] = ()
    rejected_quotes: tuple[str, ...] = ()
    trail: tuple[Step, ...] = ()
    usage: Usage = Usage()
    abstained: bool = False
    reader: str = "extractive"
    recipe: str = ""
    context: tuple[Hit, ...] = ()
    values: tuple[str, ...] = ()
    from_memory: tuple[str, ...] = ()
    ranking: tuple[RankedAnswer, ...] = ()

    @property
    def stop_reason(self) -> str:
        """What ended the work on this answer before it was done (a spent budget); "" where nothing did."""
        return next((str(step.detail.get("budget", "")) for step in self.trail if step.name == "stopped"), "")
