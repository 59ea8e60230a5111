"""Models as a user chooses them: the kinds of encoders, the cache of replies, and what a question costs."""

from __future__ import annotations

from clew.core.config import cache_path
from clew.core.sources import Sources
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.results import ReplyCache, RoleCost


def encoder_kinds() -> dict[str, str]:
    """Return the kinds of encoders: an example of a name, and what it stands for."""
    from clew.models import ENCODERS

    summaries = {
        "clew": "the multi-hop encoder that comes with clew; clew:multilingual for about 100 languages (extra)",
        "onnx": "a folder that clew encoder export made; runs here, without torch",
        "st": "a sentence-transformers model (extra: local)",
        "openai": "OpenAI's embeddings",
        "ollama": "a model of Ollama on this machine",
        "http": "any OpenAI-compatible endpoint",
    }
    return {ENCODERS[kind]: summary for kind, summary in summaries.items()}


def reply_cache() -> ReplyCache:
    """Return where the replies of language models are cached, and the size of the cache in bytes."""
    from clew.models.cache import CACHE_FILE

    path = cache_path() / CACHE_FILE
    files = [file for file in path.parent.glob(f"{path.name}*") if file.is_file()]
    return ReplyCache(path, sum(file.stat().st_size for file in files))


def clear_reply_cache() -> None:
    """Delete the cache of model replies."""
    path = reply_cache().path
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink(missing_ok=True)


def estimate_question(
    base: KnowledgeBase,
    question: str,
    llm: str | None,
    recipe: str = "default",
    documents: Sources | None = None,
) -> list[RoleCost]:
    """Return what asking ``question`` costs for each role that the model of ``llm`` plays; nothing without one.

    The recipe is run over the base with a model that only counts (:mod:`clew.models.costs`): prompts are
    the real ones, replies count as long as they may get. A reply that has to be asked for again is not
    foreseen.
    """
    if llm is None:
        return []
    from clew.models.costs import Rehearsal

    rehearsal = Rehearsal(llm)
    base.ask(question, llm=rehearsal, recipe=recipe, documents=documents)
    return [RoleCost(role, usage) for role, usage in rehearsal.usage_by_role.items()]
