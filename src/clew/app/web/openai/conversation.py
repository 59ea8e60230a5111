"""Rewrites the last question of a conversation so that it can be understood without the earlier turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import LanguageModel
from clew.core.types import Usage

#: Turns before the question that the model reads, and characters of each.
_MAX_TURNS, _MAX_TURN = 6, 1_500
#: A reply that is longer than the question by more characters is not a question.
_MAX_GROWTH = 2_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation; ``speaker`` is ``user`` or ``assistant``."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class StandaloneQuestion:
    """A question that stands alone, and what rewriting it cost."""

    question: str
    usage: Usage = field(default_factory=Usage)


def rewrite_standalone(turns: Sequence[Turn], model: LanguageModel | None) -> StandaloneQuestion:
    """Return the last turn's question, rewritten by ``model`` (prompt ``stand-alone``) to stand alone.

    It is returned unchanged without a model or earlier turns, and if the reply is empty or far longer than a
    question. Raises ModelError.
    """
    *before, last = turns
    if model is None or not before:
        return StandaloneQuestion(last.text)
    conversation = "\n\n".join(f"{turn.speaker}: {turn.text[:_MAX_TURN]}" for turn in before[-_MAX_TURNS:])
    prompt = load_prompt("stand-alone").render(conversation=conversation, question=last.text)
    reply = model.complete([prompt])[0]
    question = " ".join(clean_reply(reply.text).split()).strip('"“”')
    usable = 0 < len(question) <= len(last.text) + _MAX_GROWTH
    return StandaloneQuestion(question if usable else last.text, reply.usage)
