"""Builds what an encoder is trained on: from data sets, or from a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.errors import UsageError
from clew.evaluate.datasets import named
from clew.evaluate.examples import shuffled
from clew.text import names, title_names
from clew.train.encoder import Settings, Training
from clew.train.heldout import HeldOut
from clew.train.pairs import Passage, from_base, of_examples
from clew.types import PASSAGE, Scope

if TYPE_CHECKING:
    from clew.kb import KnowledgeBase

#: Pairs that are drawn from a knowledge base: more than this takes hours on two cores and brings little.
PAIRS = 4000


def from_data(
    data: Sequence[str], source: str, settings: Settings, held_out: float, limit: int | None = None
) -> Training:
    """Return the training on the questions of data sets, a share of which is held out.

    ``limit`` questions are drawn by the seed (None: all). Raises UsageError.
    """
    sets = [named(one) for one in data]
    examples = (example for one in sets for example in one.examples())
    drawn = [same[0] for same in shuffled(examples, settings.seed)][:limit]
    held = drawn[: round(held_out * len(drawn))]
    learnt = drawn[len(held) :]
    pairs = of_examples(learnt, settings.objective, settings.negatives, settings.seed)
    if not pairs:
        raise UsageError(
            f"no question of {', '.join(data)} has gold passages in an order that can be told",
            "hotpotqa, 2wikimultihopqa and musique have the order of their evidence; "
            "--objective dpr needs none",
        )
    made_from: dict[str, Any] = {
        "data": [{"form": one.name, "digest": one.digest()} for one in sets],
        "questions": len(learnt),
        "held_out": len(held),
        "limit": limit,
    }
    hops = 1 if settings.objective == "dpr" else 2
    return Training(pairs, source, settings, made_from, HeldOut(held, learnt, hops) if held else None)


def from_knowledge_base(base: KnowledgeBase, source: str, settings: Settings, pairs: int = PAIRS) -> Training:
    """Return the training on pairs that a base itself makes. Raises UsageError for a base without any."""
    snapshot = base.snapshot()
    rows = np.flatnonzero(snapshot.mask(Scope(), (PASSAGE,)))
    titles = {document.key: document.title for document in snapshot.documents()}
    passages = [
        Passage(
            node.document,
            titles[node.document],
            node.headings,
            node.text,
            frozenset(name for name, _, _ in names(node.text)),
        )
        for node in snapshot.nodes(rows)
    ]
    named = {key: frozenset(title_names(title)) for key, title in titles.items()}
    found = from_base(passages, named, pairs, settings.seed)
    if not found:
        raise UsageError(f"{base.path} has no passages to learn from", "Add documents: clew add FOLDER")
    return Training(found, source, settings, {"base": base.digest(), "pairs_asked": pairs})
