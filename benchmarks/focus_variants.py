"""The variants of ``focus``: the paper's own form, constants that are widened, scores of fields, a learned fusion.

    python benchmarks/focus_variants.py paper      # sets by gold triples: as printed, corrected, ours
    python benchmarks/focus_variants.py constants  # misspelled names: near names, and widened as in AF-Retriever
    python benchmarks/focus_variants.py fields     # rows of tables by two of their cells: whole texts, fields
    python benchmarks/focus_variants.py fusion     # learns the weights of the score, beside the fixed ones

``paper``, ``constants`` and ``fusion`` ask the shared MetaQA questions over their graph, by gold triples; candidates
are sorted by words. Names are changed by :mod:`perturbed`. ``fields`` asks for rows of OTT-QA's tables
(:mod:`real_graphs`), each among the rows of its table, with clew:hops. Questions are drawn by ``--seed``; what is
learned or tuned is learned on one half and measured on the other, with no topic (no table) in both.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope
from clew.evaluate.datasets.graphs import gold_triples, read_metaqa
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.methods.focus import ranking
from clew.methods.focus.method import FocusMethod
from clew.methods.focus.solutions import Solution
from clew.retrieve.nodes import FieldWeights, NodeBM25, NodeFieldSearch, NodeTexts, NodeVectorSearch
from perturbed import CHANGES
from real_graphs import write_tables

DATA = Path(__file__).parents[2] / "shared" / "data"
#: The ways in which names are changed.
CHANGED = ("one typo", "two typos", "one word left out")


@dataclass(frozen=True)
class Asked:
    """A question with its triples and the names of the right answers; ``topic`` decides about its half."""

    text: str
    triples: str
    answers: frozenset[str]
    topic: str


def read_questions(number: int, seed: int) -> list[Asked]:
    """Return ``number`` questions of two hops and as many of three, with their gold triples."""
    questions = []
    for hops in ("2hop", "3hop"):
        examples = list(read_metaqa(DATA / f"metaqa/dev_{hops}.jsonl"))
        for example in random.Random(seed).sample(examples, number):
            text = example.question.replace("[", "").replace("]", "")
            topic = str(example.meta["topic"])
            questions.append(Asked(text, gold_triples(example), frozenset(example.answers), topic))
    return questions


def change_names(questions: Sequence[Asked], seed: int) -> Iterator[tuple[str, Asked]]:
    """Yield each question with its topic changed in each way that can be, with the name of the way."""
    draw = random.Random(seed)
    for question in questions:
        for way in CHANGED:
            change, fits = CHANGES[way]
            if not fits(question.topic) or '"' in question.topic:
                continue
            name = change(question.topic, draw).strip()
            if not name or question.topic not in question.triples:
                continue
            triples = question.triples.replace(question.topic, name.replace(";", " "))
            text = question.text.replace(question.topic, name)
            yield way, Asked(text, triples, question.answers, question.topic)


def build(base: clew.KnowledgeBase, options: str, sort: str = "words") -> FocusMethod:
    """Return the method without a model."""
    encoder = None if sort == "words" else registry.load_encoder("clew:hops")
    recipe = f"focus(form=none, sort={sort}, sources=none, {options})"
    method = registry.build_method(recipe, base.store, encoder=encoder)
    assert isinstance(method, FocusMethod)
    return method


def solve(method: FocusMethod, question: Asked) -> Solution:
    """Return what the triples of a question leave, near names included."""
    asked, record = Question(question.text, Scope(), question.triples, excludes_named=True), TrailRecorder()
    graphs = [method.snapshot.graph("films")]
    chains = method.parse(asked, graphs, record)
    exact = method.solve_exactly(graphs, chains, asked, record)
    return method.solve(graphs, chains, asked, record, exact)[0]


def show(mean: float, values: Sequence[float]) -> str:
    """Return a mean with its 95 % interval."""
    estimate = bootstrap_interval(values)
    return f"{mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def names_of(solution: Solution, rows: np.ndarray) -> list[str]:
    return [entity.name for entity in solution.graph.entities(rows)]


def measure_paper(base: clew.KnowledgeBase, number: int, seed: int) -> None:
    """Print how often C_filtered is the set of right answers."""
    questions = read_questions(number, seed)
    print(f"\n{len(questions)} questions, seed {seed}\n")
    print("| recipe | exact sets | recall | precision | ms p50 |\n|---|---|---|---|---|")
    recipes = (
        "paper=yes",
        "paper=yes, lines=corrected",
        "paper=yes, lines=corrected, relations=any",
        "paper=no",
    )
    for options in recipes:
        method = build(base, options)
        exact, recall, precision, seconds = [], [], [], []
        for question in questions:
            started = time.perf_counter()
            solution = solve(method, question)
            seconds.append(time.perf_counter() - started)
            rows = solution.substitution.rows
            names = set(names_of(solution, rows if rows is not None else np.empty(0, dtype=np.int64)))
            right = len(names & question.answers)
            exact.append(float(names == question.answers))
            recall.append(right / len(question.answers))
            precision.append(right / len(names) if names else 0.0)
        cells = [show(float(np.mean(values)), values) for values in (exact, recall, precision)]
        print(f"| focus({options}) | {' | '.join(cells)} | {np.median(seconds) * 1000:.1f} |", flush=True)


def measure_constants(base: clew.KnowledgeBase, number: int, seed: int) -> None:
    """Print measures of the ranked list for misspelled names."""
    changed = list(change_names(read_questions(number, seed), seed))
    print(f"\n{len(changed)} questions with a changed name, seed {seed}\n")
    print("| names | constants | questions | Hit@1 | recall@20 | right set |\n|---|---|---|---|---|---|")
    methods = {options: build(base, options) for options in ("constants=near", "constants=widened")}
    for way in CHANGED:
        for options, method in methods.items():
            hits, recalls, sets = [], [], []
            for question in (question for of_way, question in changed if of_way == way):
                asked = Question(question.text, Scope(), question.triples, excludes_named=True)
                answer = method.answer(asked, TrailRecorder())
                names = [ranked.name for ranked in answer.ranking]
                hits.append(float(bool(names) and names[0] in question.answers))
                recalls.append(len(question.answers & set(names[:20])) / len(question.answers))
                sets.append(float(set(answer.values) == question.answers))
            cells = " | ".join(show(float(np.mean(values)), values) for values in (hits, recalls, sets))
            print(f"| {way} | {options} | {len(hits)} | {cells} |", flush=True)


def measure_fields(number: int, seed: int) -> None:
    """Print how often the row of a table is first by two of its cells, and tune the weights of fields."""
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        tables = Path(folder) / "tables.jsonl"
        write_tables(DATA / "ottqa/tables.jsonl", tables)
        nodes = [json.loads(line) for line in tables.read_text(encoding="utf-8").splitlines()]
        base.graphs.add(tables, name="tables")
        graph, encoder = base.graphs.get("tables"), registry.load_encoder("clew:hops")
        texts = NodeTexts(graph)
        search = NodeVectorSearch(encoder, texts)
        fields = NodeFieldSearch(search)
        questions = list(draw_cells(nodes, number, seed))
        scored = []
        ranks: dict[str, list[int]] = {"vss": [], "bm25-nodes": []}
        for text, id, siblings in questions:
            rows = np.sort(graph.rows([f"tables:{sibling}" for sibling in siblings]))
            (right,) = graph.rows([f"tables:{id}"]).tolist()
            for name, ranker in (("vss", search), ("bm25-nodes", NodeBM25(texts))):
                ranked = ranker.rank(text, len(rows), rows).rows.tolist()
                ranks[name].append(ranked.index(right) if right in ranked else len(rows))
            scored.append((*fields.score_fields(text, rows)[:2], rows.tolist().index(right)))
    half = len(questions) // 2

    def places(weights: FieldWeights) -> list[int]:
        results = []
        for likeness, scores, right in scored:
            combined = np.einsum("mf,mfn->n", weights(likeness), scores)
            results.append(int((combined > combined[right]).sum()))
        return results

    grid = [
        FieldWeights(*values) for values in product((0.0, 2.0, 5.0, 10.0, 20.0), (-2.0, -1.0, 0.0, 1.0, 2.0))
    ]
    best = max(grid, key=lambda weights: np.mean([1 / (place + 1) for place in places(weights)[:half]]))
    print(f"\n{len(questions)} questions, half to tune on, seed {seed}; best on the first half: {best}\n")
    print("| ranked by | Hit@1, held out | MRR, held out |\n|---|---|---|")
    ranks |= {"fields, all alike": places(FieldWeights(0.0, 0.0)), "fields, tuned": places(best)}
    for name, of_name in ranks.items():
        first = [float(place == 0) for place in of_name[half:]]
        reciprocal = [1 / (place + 1) for place in of_name[half:]]
        print(
            f"| {name} | {show(float(np.mean(first)), first)} | {show(float(np.mean(reciprocal)), reciprocal)} |"
        )
    difference = [
        1 / (a + 1) - 1 / (b + 1) for a, b in zip(places(best)[half:], ranks["vss"][half:], strict=True)
    ]
    print(f"\nMRR, fields tuned - vss: {show(float(np.mean(difference)), difference)}")


def draw_cells(nodes: Sequence[Any], number: int, seed: int) -> Iterator[tuple[str, str, list[str]]]:
    """Yield questions for a row of a table by two of its cells: text, the id of the row, the ids of its table. Each
    table is asked once."""
    draw = random.Random(seed)
    rows = [node for node in nodes if isinstance(node, dict) and node["id"].startswith("row/")]
    tables: dict[str, list[Any]] = {}
    for row in rows:
        tables.setdefault(row["id"].rsplit("/", 1)[0], []).append(row)
    for key in draw.sample(sorted(tables), len(tables)):
        several = tables[key][:25]
        row = draw.choice(several)
        cells = [name for name in row if name.startswith("cell ")]
        if len(several) < 5 or len(cells) < 3:
            continue
        first, second = draw.sample(cells, 2)
        same = [other for other in several if all(other.get(name) == row[name] for name in (first, second))]
        if len(same) > 1:
            continue
        text = " and ".join(f"{name.removeprefix('cell ').lower()} {row[name]}" for name in (first, second))
        yield f"Which entry has {text}?", row["id"], [other["id"] for other in several]
        number -= 1
        if not number:
            return


def wishes(base: clew.KnowledgeBase, number: int, seed: int) -> list[Asked]:
    """Return questions whose second condition is a wish: films of an actor with, say, a genre in their text."""
    graph, draw = base.graphs.get("films"), random.Random(seed)
    offsets, films = graph.neighbours(np.arange(graph.size), "starred actors", True)
    actors = [row for row in range(graph.size) if offsets[row + 1] - offsets[row] >= 4]
    questions = []
    for actor in draw.sample(actors, min(len(actors), 4 * number)):
        rows = films[offsets[actor] : offsets[actor + 1]]
        relation = draw.choice(["has genre", "in language", "directed by", "has tags"])
        ends = graph.neighbours(rows, relation)[1]
        if not len(ends):
            continue
        value = int(draw.choice(ends.tolist()))
        right = np.intersect1d(rows, graph.neighbours(np.array([value]), relation, True)[1])
        (name,) = graph.entities(np.array([actor]))
        (end,) = graph.entities(np.array([value]))
        if len(right) == len(rows) or any(mark in name.name + end.name for mark in '";~#'):
            continue
        words = f"{relation} {end.name}"
        triples = f'#1 >> starred_actors >> "{name.name}"; #1 ~ "{words}"; final answer: #1'
        answers = frozenset(entity.name for entity in graph.entities(right))
        questions.append(Asked(f"Which films with {name.name} {words}?", triples, answers, name.name))
        if len(questions) == number:
            break
    return questions


@dataclass(frozen=True)
class Candidates:
    """The features of the candidates of one question, and which are right."""

    features: np.ndarray
    right: np.ndarray
    topic: str


def read_features(method: FocusMethod, question: Asked) -> Candidates | None:
    """Return the candidates of a question with their features; None where all are right or all are wrong."""
    solution = solve(method, question)
    rows = solution.substitution.rows
    if rows is None or not 1 < len(rows) <= ranking.MAX_RANKED:
        return None
    asked, sorter = Question(question.text, Scope(), question.triples, excludes_named=True), method.sorter
    captured: list[np.ndarray] = []
    by_row: dict[int, np.ndarray] = {}
    original = ranking._Scorer.features

    def capture(scorer: Any, of_rows: np.ndarray) -> np.ndarray:
        features = original(scorer, of_rows)
        captured.append(features)
        by_row.update(zip(of_rows.tolist(), features, strict=True))
        return features

    ranking._Scorer.features = capture  # type: ignore[method-assign, assignment]
    try:
        sorter.sort(solution, asked, TrailRecorder())
    finally:
        ranking._Scorer.features = original  # type: ignore[method-assign]
    rows = np.array([row for row in rows.tolist() if row in by_row])
    right = np.array([name in question.answers for name in names_of(solution, rows)])
    if right.all() or not right.any():
        return None
    return Candidates(np.array([by_row[row] for row in rows.tolist()]), right, question.topic)


def learn(questions: Sequence[Candidates], penalty: float = 0.01, steps: int = 3000) -> np.ndarray:
    """Return the weights of a pairwise logistic model (RankNet without layers; Burges et al., ICML 2005): each right
    candidate should score more than each wrong one of its question; every question counts alike. Their sum is that of
    the fixed weights."""
    differences, weights_of = [], []
    for question in questions:
        right, wrong = question.features[question.right], question.features[~question.right]
        pairs = (right[:, None, :] - wrong[None, :, :]).reshape(-1, question.features.shape[1])
        differences.append(pairs)
        weights_of.append(np.full(len(pairs), 1 / len(pairs)))
    pairs, counts = np.concatenate(differences), np.concatenate(weights_of) / len(questions)
    weights = np.zeros(pairs.shape[1])
    for _ in range(steps):
        slope = counts / (1 + np.exp(pairs @ weights))
        # None may be negative: that answers share no word with MetaQA's questions says nothing elsewhere.
        weights = np.maximum(weights + slope @ pairs - penalty * weights, 0.0)
    weights *= sum(ranking.FIXED_WEIGHTS) / weights.sum()
    return weights


def score(weights: Any, questions: Sequence[Candidates]) -> tuple[list[float], list[float]]:
    """Return Hit@1 and reciprocal rank of each question; candidates that score alike share their place."""
    hits, reciprocal = [], []
    for question in questions:
        scores = (question.features @ np.array(weights)).round(6)
        best = scores[question.right].max()
        above, alike = int((scores > best).sum()), scores == best
        expected = above + int((alike & ~question.right).sum()) / (int((alike & question.right).sum()) + 1)
        reciprocal.append(1 / (expected + 1))
        hits.append(float((alike & question.right).sum() / alike.sum()) if not above else 0.0)
    return hits, reciprocal


def measure_fusion(base: clew.KnowledgeBase, number: int, seed: int, sort: str) -> None:
    """Learn the weights on one half of the topics and compare them with the fixed ones on the other."""
    method = build(base, "fusion=learned", sort)
    # All features are computed only where their weights are not zero.
    object.__setattr__(method.sorter, "weights", (1.0,) * len(ranking.FIXED_WEIGHTS))
    sets: dict[str, list[Asked]] = {}
    for way, question in change_names(read_questions(number, seed), seed):
        sets.setdefault(way, []).append(question)
    sets["wishes"] = wishes(base, number, seed)
    learned_from, held_out = list[Candidates](), dict[str, list[Candidates]]()
    for name, questions in sets.items():
        for question in questions:
            candidates = read_features(method, question)
            if candidates is None:
                continue
            if random.Random(f"{seed} {candidates.topic}").random() < 0.5:
                learned_from.append(candidates)
            else:
                held_out.setdefault(name, []).append(candidates)
    weights = learn(learned_from)
    print(f"\nsorted by {sort}, {len(learned_from)} questions to learn from, seed {seed}")
    print(f"weights learned: {weights.round(2).tolist()}\n")
    print("| questions, held out | number | Hit@1 fixed | learned | MRR fixed | learned | MRR, difference |")
    print("|---|---|---|---|---|---|---|")
    groups = held_out | {"all": [candidates for group in held_out.values() for candidates in group]}
    for name, group in groups.items():
        (fixed_hits, fixed), (hits, learned) = (
            score(ranking.FIXED_WEIGHTS, group),
            score(weights, group),
        )
        difference = [b - a for a, b in zip(fixed, learned, strict=True)]
        cells = [f"{np.mean(values):.3f}" for values in (fixed_hits, hits, fixed, learned)]
        shown = show(float(np.mean(difference)), difference)
        print(f"| {name} | {len(group)} | {' | '.join(cells)} | {shown} |", flush=True)


def main() -> None:
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("paper", "constants", "fields", "fusion"))
    parser.add_argument("--number", type=int, default=50, help="questions of each kind")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--sort", choices=("words", "vector"), default="words", help="for fusion")
    chosen = parser.parse_args()
    if chosen.what == "fields":
        measure_fields(chosen.number, chosen.seed)
        return
    measures: dict[str, Callable[[clew.KnowledgeBase, int, int], None]] = {
        "paper": measure_paper,
        "constants": measure_constants,
        "fusion": partial(measure_fusion, sort=chosen.sort),
    }
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        base.graphs.add(DATA / "metaqa/graph.tsv", name="films")
        measures[chosen.what](base, chosen.number, chosen.seed)


if __name__ == "__main__":
    main()
