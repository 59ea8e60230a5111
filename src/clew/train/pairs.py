"""Training pairs of an encoder: a query and the passage that it should be near.

They come from questions with ordered evidence, as MDR and DPR are trained (KGP paper, Supplementary 8.2); from
questions whose answers are nodes of a graph (:func:`pairs_from_nodes`), as STaRK trains its dense retriever; or from
a knowledge base alone (:func:`pairs_from_passages`), so that an encoder learns the connections between its documents.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from clew.core.arrays import Rows, Vectors, sorted_unique, union
from clew.core.errors import NotFound
from clew.core.text import add_headings, build_hop_query
from clew.evaluate.corpora import shuffle_paragraphs
from clew.retrieve.nodes import NodeTexts, answer_rows_or_all
from clew.train.evidence_chains import GoldPassage, evidence_chains, gold_passages

if TYPE_CHECKING:
    from clew.core.protocols import PropertyGraph
    from clew.evaluate.examples import Example, Paragraph

#: The number of queries that are compared with all texts at a time.
_BLOCK_SIZE = 256
#: MDR: every hop, with the passages so far in the query. DPR: the question with each gold passage.
Objective = Literal["mdr", "dpr"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A query, the text that it should be near, and texts that it should be far from.

    ``question`` is the question of the query: pairs of one question are never negatives of each other.
    """

    query: str
    positive: str
    negatives: tuple[str, ...] = ()
    question: str = ""


def pairs_from_examples(
    examples: Iterable[Example], objective: Objective, negatives: int, seed: int
) -> list[Pair]:
    """Return the pairs of all examples in order, without duplicates.

    Every pair has ``negatives`` paragraphs of the question's own corpus without gold evidence, different ones for
    each hop if there are enough, and none if there are none. A question without a chain has pairs for DPR only.
    """
    pairs = (pair for example in examples for pair in _example_pairs(example, objective, negatives, seed))
    return list({(pair.query, pair.positive): pair for pair in pairs}.values())


def _example_pairs(example: Example, objective: Objective, negatives: int, seed: int) -> Iterator[Pair]:
    gold = gold_passages(example)
    gold_keys = {(paragraph.title, paragraph.text) for paragraph in gold}
    others = [paragraph for paragraph in example.corpus if (paragraph.title, paragraph.text) not in gold_keys]
    negative_texts = [passage_text(paragraph) for paragraph in shuffle_paragraphs(example.id, others, seed)]
    if objective == "dpr":
        steps = [(example.question, passage_text(paragraph)) for paragraph in gold]
    else:
        steps = []
        for chain in evidence_chains(example):
            texts = [passage_text(paragraph) for paragraph in chain.passages]
            steps += [(build_hop_query(example.question, texts[:n]), text) for n, text in enumerate(texts)]
    for number, (query, positive) in enumerate(steps):
        pair_negatives = (
            [negative_texts[(number * negatives + n) % len(negative_texts)] for n in range(negatives)]
            if negative_texts
            else []
        )
        yield Pair(query, positive, tuple(pair_negatives), example.question)


def passage_text(passage: Paragraph | GoldPassage) -> str:
    """Return the text of a paragraph as a knowledge base encodes it."""
    return add_headings(passage.title, getattr(passage, "section", None) or (), passage.text)


@dataclass(frozen=True, slots=True)
class NodeQuestion:
    """A question with the rows of its right answers in a graph, ascending."""

    text: str
    rows: Rows


def find_node_questions(graph: PropertyGraph, examples: Iterable[Example]) -> list[NodeQuestion]:
    """Return the questions with at least one right answer in the graph.

    An answer is the id of a node, as STaRK writes answers, else the name of one, written identically if possible.
    """
    questions = []
    for example in examples:
        rows: list[int] = []
        for answer in example.answers:
            try:
                rows += graph.rows([f"{graph.name}:{answer}"]).tolist()
            except NotFound:
                named = graph.find_by_name(answer)
                entities = graph.entities(named)
                identical = [
                    row for row, entity in zip(named.tolist(), entities, strict=True) if entity.name == answer
                ]
                rows += identical or named.tolist()
        if rows:
            questions.append(NodeQuestion(example.question, sorted_unique(np.array(rows, dtype=np.int64))))
    return questions


def pairs_from_nodes(
    graph: PropertyGraph, questions: Sequence[NodeQuestion], answers: int, negatives: int, seed: int
) -> list[Pair]:
    """Return pairs of a question and the text of a right answer, as the dense retriever of STaRK is trained.

    Source: Wu et al., NeurIPS 2024, as 4StepFocus describes it (Section 2). A question with more than ``answers``
    right answers has a pair for that many of them, drawn with the seed. Each pair has up to ``negatives`` other nodes
    of the types that may answer, drawn too. Deviations: one encoder for questions and nodes where STaRK trains two,
    and these negatives beside those of the batch.
    """
    rng = np.random.default_rng(seed)
    others = answer_rows_or_all(graph)
    drawn: list[tuple[str, int, Rows]] = []
    for question in questions:
        chosen = question.rows
        if len(chosen) > answers:
            chosen = np.sort(rng.choice(chosen, answers, replace=False))
        for row in chosen.tolist():
            candidates = rng.choice(others, negatives + len(question.rows))
            drawn.append((question.text, row, candidates[~np.isin(candidates, question.rows)][:negatives]))
    needed = union(
        [np.array([row for _, row, _ in drawn], dtype=np.int64), *(wrong for _, _, wrong in drawn)]
    )
    texts = dict(zip(needed.tolist(), NodeTexts(graph).documents(needed), strict=True))
    return [
        Pair(text, texts[row], tuple(texts[other] for other in wrong.tolist()), text)
        for text, row, wrong in drawn
    ]


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
    """Return a random sample of at most ``limit`` pairs made of the passages of a base; no labels are needed.

    There are three kinds, up to a third each: a passage that names another document with the first passage of that
    document; a passage with the next one of its section; headings with the passage below them, whose text is taken
    without its headings. ``titles`` has the names of each document by key.
    """
    rng = random.Random(seed)
    kinds = [
        list(_link_pairs(passages, titles)),
        list(_neighbour_pairs(passages)),
        list(_heading_pairs(passages)),
    ]
    for pairs in kinds:
        rng.shuffle(pairs)
    share = -(-limit // len(kinds))
    chosen = [pair for pairs in kinds for pair in pairs[:share]]
    remaining = [pair for pairs in kinds for pair in pairs[share:]]
    rng.shuffle(remaining)
    chosen += remaining[: max(limit - len(chosen), 0)]
    rng.shuffle(chosen)
    return list({(pair.query, pair.positive): pair for pair in chosen[:limit]}.values())


def _text_with_headings(passage: Passage) -> str:
    return add_headings(passage.title, passage.headings, passage.text)


def _link_pairs(passages: Sequence[Passage], titles: dict[str, frozenset[str]]) -> Iterator[Pair]:
    first_passage: dict[str, Passage] = {}
    for passage in passages:
        first_passage.setdefault(passage.document, passage)
    documents_by_name: dict[str, list[str]] = defaultdict(list)
    for key, names in titles.items():
        for name in names:
            documents_by_name[name].append(key)
    for passage in passages:
        for name in sorted(passage.names):
            # A name that several documents share leads to none of them.
            if len(documents_by_name.get(name, ())) == 1 and documents_by_name[name][0] != passage.document:
                yield Pair(passage.text, _text_with_headings(first_passage[documents_by_name[name][0]]))


def _neighbour_pairs(passages: Sequence[Passage]) -> Iterator[Pair]:
    for passage, next_passage in pairwise(passages):
        if (passage.document, passage.headings) == (next_passage.document, next_passage.headings):
            yield Pair(passage.text, _text_with_headings(next_passage))


def _heading_pairs(passages: Sequence[Passage]) -> Iterator[Pair]:
    for passage in passages:
        if passage.headings:
            yield Pair(add_headings(passage.title, passage.headings, "").rstrip(": "), passage.text)


def add_mined_negatives(
    pairs: Sequence[Pair], encode: Callable[[Sequence[str], bool], Vectors], count: int
) -> list[Pair]:
    """Return the pairs with ``count`` hard negatives more each, as in DPR and MDR.

    These are the texts nearest to the query, by the encoder before its training, that are no positives of its
    question. ``encode`` returns unit vectors of texts, which are queries or not. Queries are compared in blocks, so
    that memory grows linearly with the texts.
    """
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.positive, *pair.negatives)))
    positives: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        positives[pair.question or pair.query].add(pair.positive)
    vectors = encode(texts, False)
    mined_pairs = []
    for start in range(0, len(pairs), _BLOCK_SIZE):
        block = pairs[start : start + _BLOCK_SIZE]
        scores_of_block = encode([pair.query for pair in block], True) @ vectors.T
        for pair, scores in zip(block, scores_of_block, strict=True):
            excluded = positives[pair.question or pair.query].union(pair.negatives)
            ranked_texts = (texts[row] for row in np.argsort(-scores, kind="stable"))
            # Texts within the query are nearest to it, and were found already.
            hard_negatives = islice(
                (text for text in ranked_texts if text not in excluded and text not in pair.query), count
            )
            mined_pairs.append(replace(pair, negatives=(*pair.negatives, *hard_negatives)))
    return mined_pairs
