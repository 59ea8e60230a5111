"""Models as a person chooses them: kinds of encoders, the cache of replies, what a question will cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from clew.core.config import cache_path
from clew.knowledge_base.results import ReplyCache, RoleCost

if TYPE_CHECKING:
    from clew.knowledge_base.knowledge_base import KnowledgeBase


def encoder_kinds() -> dict[str, str]:
    """Return the forms of encoders' names, with what they stand for."""
    from clew.models.names import ENCODERS

    said = {
        "clew": "the multi-hop encoder that comes with clew; runs here, without torch or download",
        "onnx": "a folder that clew encoder export made; runs here, without torch",
        "st": "a sentence-transformers model (extra: local)",
        "openai": "OpenAI's embeddings",
        "ollama": "a model of Ollama on this machine",
        "http": "any OpenAI-compatible endpoint",
    }
    return {ENCODERS[kind]: summary for kind, summary in said.items()}


def reply_cache() -> ReplyCache:
    """Return where the replies of language models are kept, and how many bytes that is."""
    from clew.models.cache import CACHE_FILE

    path = cache_path() / CACHE_FILE
    files = [one for one in path.parent.glob(f"{path.name}*") if one.is_file()]
    return ReplyCache(path, sum(one.stat().st_size for one in files))


def clear_reply_cache() -> None:
    """Delete the cache of model replies."""
    path = reply_cache().path
    for one in path.parent.glob(f"{path.name}*"):
        one.unlink(missing_ok=True)


def estimate_question(
    base: KnowledgeBase,
    question: str,
    llm: str | None,
    recipe: str = "default",
    documents: Iterable[str] | None = None,
) -> list[RoleCost]:
    """Return what asking ``question`` costs for each role that the model of ``llm`` plays; nothing without one.

    The recipe is run over the base with a model that only counts (:mod:`clew.models.rehearsal`): prompts are
    the real ones, replies count as long as they may get. A reply that has to be asked for again is not
    foreseen.
    """
    if llm is None:
        return []
    from clew.models.rehearsal import Rehearsal

    rehearsal = Rehearsal(llm)
    base.ask(question, llm=rehearsal, recipe=recipe, documents=documents)
    return [RoleCost(role, usage) for role, usage in rehearsal.usage_by_role.items()]
