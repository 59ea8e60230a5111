"""What an encoder learns from: pairs of a query and the passage that it should be near.

From questions with ordered evidence, as MDR and DPR are trained (KGP paper, Supplementary 8.2); and from a
knowledge base alone (``from_base``), so that an encoder learns how one's own documents lead to each other.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.text import add_headings, build_hop_query
from clew.evaluate.corpora import shuffle_paragraphs
from clew.train.evidence_chains import evidence_chains, gold_passages

if TYPE_CHECKING:
    from clew.core.arrays import Vectors
    from clew.evaluate.examples import Example, Paragraph
    from clew.train.evidence_chains import GoldPassage

#: Queries that are compared with all texts at a time.
_BLOCK = 256
#: MDR: every hop, the passages so far in the query. DPR: the question and any gold passage.
Objective = Literal["mdr", "dpr"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A query, the text that it should be near, and texts that it should be far from.

    ``question`` is what the query began with: pairs of one question are no negatives of each other.
    """

    query: str
    positive: str
    negatives: tuple[str, ...] = ()
    question: str = ""


def pairs_from_examples(
    examples: Iterable[Example], objective: Objective, negatives: int, seed: int
) -> list[Pair]:
    """Return the pairs of all examples, none twice, in their order.

    ``negatives`` are paragraphs of the question's own corpus without gold evidence, other ones for each hop as
    far as there are enough, so many for every pair or, of a question without such paragraphs, none. A question
    whose order cannot be told trains DPR alone.
    """
    found = (pair for example in examples for pair in _pairs(example, objective, negatives, seed))
    return list({(pair.query, pair.positive): pair for pair in found}.values())


def _pairs(example: Example, objective: Objective, negatives: int, seed: int) -> Iterator[Pair]:
    gold = gold_passages(example)
    known = {(one.title, one.text) for one in gold}
    others = [one for one in example.corpus if (one.title, one.text) not in known]
    far = [passage_text(one) for one in shuffle_paragraphs(example.id, others, seed)]
    if objective == "dpr":
        steps = [(example.question, passage_text(one)) for one in gold]
    else:
        steps = []
        for chain in evidence_chains(example):
            texts = [passage_text(one) for one in chain.passages]
            steps += [(build_hop_query(example.question, texts[:n]), text) for n, text in enumerate(texts)]
    for number, (query, positive) in enumerate(steps):
        some = [far[(number * negatives + n) % len(far)] for n in range(negatives)] if far else []
        yield Pair(query, positive, tuple(some), example.question)


def passage_text(passage: Paragraph | GoldPassage) -> str:
    """Return a paragraph as a knowledge base encodes it."""
    return add_headings(passage.title, getattr(passage, "section", None) or (), passage.text)


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a knowledge base: its document's key and title, its headings, its text, the names in it."""

    document: str
    title: str
    headings: tuple[str, ...]
    text: str
    names: frozenset[str]


def pairs_from_passages(
    passages: Sequence[Passage], titles: dict[str, frozenset[str]], limit: int, seed: int
) -> list[Pair]:
    """Return pairs that a base itself makes, at most ``limit`` drawn at random; no labels are needed.

    Three kinds, as many of each as there are, up to a third each: a passage that names another document and
    the first passage of that document; a passage and the next one of its section; headings and the passage
    below them, without what stands for them in its text. ``titles`` holds the names of each document, by key.
    """
    rng = random.Random(seed)
    kinds = [list(_links(passages, titles)), list(_neighbours(passages)), list(_headings(passages))]
    for pairs in kinds:
        rng.shuffle(pairs)
    share = -(-limit // len(kinds))
    chosen = [pair for pairs in kinds for pair in pairs[:share]]
    left = [pair for pairs in kinds for pair in pairs[share:]]
    rng.shuffle(left)
    chosen += left[: max(limit - len(chosen), 0)]
    rng.shuffle(chosen)
    return list({(pair.query, pair.positive): pair for pair in chosen[:limit]}.values())


def _standing(passage: Passage) -> str:
    return add_headings(passage.title, passage.headings, passage.text)


def _links(passages: Sequence[Passage], titles: dict[str, frozenset[str]]) -> Iterator[Pair]:
    first: dict[str, Passage] = {}
    for passage in passages:
        first.setdefault(passage.document, passage)
    named: dict[str, list[str]] = defaultdict(list)
    for key, names in titles.items():
        for name in names:
            named[name].append(key)
    for passage in passages:
        for name in sorted(passage.names):
            # A name of several documents leads to none of them in particular.
            if len(named.get(name, ())) == 1 and named[name][0] != passage.document:
                yield Pair(passage.text, _standing(first[named[name][0]]))


def _neighbours(passages: Sequence[Passage]) -> Iterator[Pair]:
    for one, other in pairwise(passages):
        if (one.document, one.headings) == (other.document, other.headings):
            yield Pair(one.text, _standing(other))


def _headings(passages: Sequence[Passage]) -> Iterator[Pair]:
    for passage in passages:
        if passage.headings:
            yield Pair(add_headings(passage.title, passage.headings, "").rstrip(": "), passage.text)


def add_mined_negatives(
    pairs: Sequence[Pair], encode: Callable[[Sequence[str]], Vectors], count: int
) -> list[Pair]:
    """Return pairs with ``count`` more negatives each: the texts of all pairs that are nearest to its query and
    are no positive of its question (hard negatives, as of DPR and MDR; here by the encoder that is to be trained).

    ``encode`` returns unit vectors. A block of queries is compared at a time: memory grows with texts, not with
    their square.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.positive, *pair.negatives)))
    right: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        right[pair.question or pair.query].add(pair.positive)
    vectors = encode(texts)
    made = []
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        near = encode([pair.query for pair in block]) @ vectors.T
        for pair, scores in zip(block, near, strict=True):
            known = right[pair.question or pair.query].union(pair.negatives)
            best = (texts[row] for row in np.argsort(-scores, kind="stable"))
            # What the query holds is nearest to it and was found already.
            hard = islice((text for text in best if text not in known and text not in pair.query), count)
            made.append(replace(pair, negatives=(*pair.negatives, *hard)))
    return made
