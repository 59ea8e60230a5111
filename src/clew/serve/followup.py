"""A question of a conversation, made to stand alone: what it refers to is put in by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.prompts import load
from clew.prompts.replies import plain
from clew.protocols import LanguageModel
from clew.types import Usage

#: How many turns before the question the model is shown, and how many characters of each.
_TURNS, _SHOWN = 6, 1_500
#: A reply that is so much longer than the question is no question.
_GROWTH = 2_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation; ``speaker`` is ``user`` or ``assistant``."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The question that is asked in the end, and what finding it cost."""

    question: str
    usage: Usage = field(default_factory=Usage)


def standing_alone(turns: Sequence[Turn], model: LanguageModel | None) -> Asked:
    """Return the last turn's question, by a call of ``model`` (the prompt ``stand-alone``) made to stand alone.

    Without a model, or where no turn stands before it, the question is asked as it is; also where the reply is
    empty or far longer than a question. Raises ModelError.
    """
    *before, last = turns
    if model is None or not before:
        return Asked(last.text)
    said = "\n\n".join(f"{turn.speaker}: {turn.text[:_SHOWN]}" for turn in before[-_TURNS:])
    made = model.complete([load("stand-alone").render(conversation=said, question=last.text)])[0]
    question = " ".join(plain(made.text).split()).strip('"“”')
    usable = 0 < len(question) <= len(last.text) + _GROWTH
    return Asked(question if usable else last.text, made.usage)
