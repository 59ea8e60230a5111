"""Builds what an encoder is trained on: from data sets, or from a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.errors import UsageError
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.examples import shuffle_examples
from clew.text import candidate_names, title_names
from clew.train.encoder import EncoderSettings, Training
from clew.train.heldout import HeldOutQuestions
from clew.train.pairs import Passage, pairs_from_passages, pairs_from_examples
from clew.types import PASSAGE, Scope

if TYPE_CHECKING:
    from clew.kb import Store

#: Pairs that are drawn from a knowledge base: more than this takes hours on two cores and brings little.
MAX_BASE_PAIRS = 4000


def training_from_data(
    data: Sequence[str], source: str, settings: EncoderSettings, held_out: float, limit: int | None = None
) -> Training:
    """Return the training on the questions of data sets, a share of which is held out.

    ``limit`` questions are drawn by the seed (None: all). Raises UsageError.
    """
    sets = [parse_dataset(one) for one in data]
    examples = (example for one in sets for example in one.examples())
    drawn = [same[0] for same in shuffle_examples(examples, settings.seed)][:limit]
    held = drawn[: round(held_out * len(drawn))]
    learnt = drawn[len(held) :]
    pairs = pairs_from_examples(learnt, settings.objective, settings.negatives, settings.seed)
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
    return Training(pairs, source, settings, made_from, HeldOutQuestions(held, learnt, hops) if held else None)


def training_from_base(base: Store, source: str, settings: EncoderSettings, pairs: int = MAX_BASE_PAIRS) -> Training:
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
            frozenset(name for name, _, _ in candidate_names(node.text)),
        )
        for node in snapshot.nodes(rows)
    ]
    named = {key: frozenset(title_names(title)) for key, title in titles.items()}
    found = pairs_from_passages(passages, named, pairs, settings.seed)
    if not found:
        raise UsageError(f"{base.path} has no passages to learn from", "Add documents: clew add FOLDER")
    return Training(found, source, settings, {"base": base.digest(), "pairs_asked": pairs})
