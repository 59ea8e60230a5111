"""A question of a conversation, made to stand alone: what it refers to is put in by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import LanguageModel
from clew.core.types import Usage

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
class StandaloneQuestion:
    """The question that is asked in the end, and what finding it cost."""

    question: str
    usage: Usage = field(default_factory=Usage)


def rewrite_standalone(turns: Sequence[Turn], model: LanguageModel | None) -> StandaloneQuestion:
    """Return the last turn's question, by a call of ``model`` (the prompt ``stand-alone``) made to stand alone.

    Without a model, or where no turn stands before it, the question is asked as it is; also where the reply is
    empty or far longer than a question. Raises ModelError.
    """
    *before, last = turns
    if model is None or not before:
        return StandaloneQuestion(last.text)
    said = "\n\n".join(f"{turn.speaker}: {turn.text[:_SHOWN]}" for turn in before[-_TURNS:])
    made = model.complete([load_prompt("stand-alone").render(conversation=said, question=last.text)])[0]
    question = " ".join(clean_reply(made.text).split()).strip('"“”')
    usable = 0 < len(question) <= len(last.text) + _GROWTH
    return StandaloneQuestion(question if usable else last.text, made.usage)
