"""Language models, encoders, rerankers, and what they are asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from clew.types import Usage

if TYPE_CHECKING:
    from clew.protocols.arrays import Floats, Vectors


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a language model is asked. ``schema`` is a JSON schema for the reply, or None for free text.

    ``role`` says for what (``guide``, ``select``, ``summarise``, ``read``, ``grade``, ``structure``, ``extract``), so
    that roles may use different models and the ledger can tell them apart. ``sample`` tells equal prompts apart whose
    replies are to be drawn independently, at a temperature: it is part of what a reply is remembered and recorded
    under, and not sent.
    """

    user: str
    system: str = ""
    role: str = "read"
    schema: Mapping[str, Any] | None = None
    max_tokens: int = 512
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    sample: int = 0


class PromptTemplate(Protocol):
    """A prompt with declared variables (:mod:`clew.prompts`)."""

    @property
    def name(self) -> str:
        """Name with version, such as ``read-cited.v1``."""
        ...

    @property
    def variables(self) -> frozenset[str]:
        """The variables that it declares."""
        ...

    def render(self, **variables: str) -> Prompt:
        """Return the prompt with its variables filled in. Raises UsageError unless they are its own."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """What a language model replied, and what it cost."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    cached: bool = False


class LanguageModel(Protocol):
    """A language model. Batched: the implementation decides how many calls run at once."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``openai:gpt-4o-mini``."""
        ...

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        ...


class Encoder(Protocol):
    """Turns texts into unit vectors. A vector depends on its text alone, not on the batch."""

    @property
    def name(self) -> str:
        """Canonical name; vectors are stored under it."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def objective(self) -> str:
        """What it was trained for: ``mdr``, to find what comes next when asked with a question and the passages so
        far; ``dpr``, to find what answers a question; "" where that is not known."""
        ...

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. ``query`` marks questions, for models that differ."""
        ...


class Reranker(Protocol):
    """Scores texts against a question, each by reading both together."""

    @property
    def name(self) -> str:
        """Canonical name, such as ``monot5:castorini/monot5-base-msmarco``."""
        ...

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """Return one score per text, (n,), float64; higher is better, comparable for one question only."""
        ...
