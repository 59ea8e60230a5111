"""Follow-up questions made to stand alone: by a language model where there is one, else by what is trained for it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.core.prompts.replies import parse_question, undress_value
from clew.core.prompts.templates import load_prompt
from clew.core.types import Answer, Usage
from clew.questions.follow_up import Turn, create_follow_up_reader

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel

#: Messages before the question that the model reads, and characters of each.
_MAX_MESSAGES, _MAX_MESSAGE = 6, 1_500
#: A reply that is longer than the question by more characters is not a question.
_MAX_GROWTH = 2_000
#: What our own replies have besides the answer: numbers of citations, and the list of sources after a blank line.
_CITATION_MARK = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a conversation; ``speaker`` is ``user`` or ``assistant``."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class StandaloneQuestion:
    """A question that stands alone, and what rewriting it cost. With ``asks_source`` the document that its answer is
    from is wanted (:func:`name_source`)."""

    question: str
    usage: Usage = field(default_factory=Usage)
    asks_source: bool = False


def complete_question(typed: str, turns: Sequence[Turn]) -> StandaloneQuestion:
    """Return a question completed from the turns before it, without a language model."""
    from clew.models.plan_judge import create_plan_judge

    if not turns:
        return StandaloneQuestion(typed)
    likeliest = create_follow_up_reader(create_plan_judge()).complete(typed, turns)
    return StandaloneQuestion(likeliest.question, asks_source=likeliest.asks_source)


def name_source(answer: Answer) -> Answer:
    """Return an answer as one that names the document of its first quote; unchanged where nothing is quoted."""
    documents = {hit.node.id: hit.node.document_name for hit in answer.evidence}
    names = [documents[quote.node] for quote in answer.quotes if documents.get(quote.node)]
    return replace(answer, text=names[0], values=(), alternatives=(), others=()) if names else answer


def rewrite_standalone(messages: Sequence[ChatMessage], model: LanguageModel | None) -> StandaloneQuestion:
    """Return the last message's question, rewritten by ``model`` (prompt ``stand-alone``) to stand alone.

    Without a model each question is completed from those before it (:func:`complete_question`). Without earlier
    messages, and if the reply is empty or far longer than a question, it is unchanged. Raises ModelError.
    """
    *before, last = messages
    if not before:
        return StandaloneQuestion(last.text)
    if model is None:
        return _complete_last(messages)
    conversation = "\n\n".join(
        f"{message.speaker}: {message.text[:_MAX_MESSAGE]}" for message in before[-_MAX_MESSAGES:]
    )
    prompt = load_prompt("stand-alone").render(conversation=conversation, question=last.text)
    reply = model.complete([prompt])[0]
    question = parse_question(reply.text) or " ".join(undress_value(reply.text).split()).strip('"“”')
    usable = 0 < len(question) <= len(last.text) + _MAX_GROWTH
    return StandaloneQuestion(question if usable else last.text, reply.usage)


def _complete_last(messages: Sequence[ChatMessage]) -> StandaloneQuestion:
    """Return the last question of a conversation, each completed from those before it and their answers."""
    turns: list[Turn] = []
    asked = StandaloneQuestion("")
    for message in messages:
        if message.speaker == "user":
            asked = complete_question(message.text, turns)
            if not asked.asks_source:
                turns.append(Turn(asked.question))
        elif turns and not asked.asks_source:
            answer = _CITATION_MARK.sub("", message.text.partition("\n\n")[0]).strip()
            turns[-1] = replace(turns[-1], answer=answer)
    return asked
