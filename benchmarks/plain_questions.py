"""Plain questions over graphs, read without a language model.

    python benchmarks/plain_questions.py train       # writes src/clew/triples/questions/weights.json
    python benchmarks/plain_questions.py metaqa      # cross-validation over question types and over templates
    python benchmarks/plain_questions.py answers     # MetaQA by the shipped parser: what is answered, what is not
    python benchmarks/plain_questions.py packages    # forty questions over Debian's packages, never trained on
    python benchmarks/plain_questions.py countries   # forty questions over countries; needs babel and pycountry
    python benchmarks/plain_questions.py countries --adapt 15   # the same, after learning from the graph's own schema
    python benchmarks/plain_questions.py library     # forty questions over Python's standard library, as a graph
    python benchmarks/plain_questions.py 2wiki       # 2WikiMultihopQA's questions over its gold triples
    python benchmarks/plain_questions.py ordinary    # questions about documents beside the film graph: false routing
    python benchmarks/plain_questions.py first       # what newcomers type first, about films and about the samples
    python benchmarks/plain_questions.py misspelt    # forty questions with a name that is spelt wrongly, or unknown
    python benchmarks/plain_questions.py speed --nodes 2000000

MetaQA's questions are asked in their own words, without the brackets around the topic. A template is a question with
its topic masked. In a fold, the scorer is trained on the other four fifths of the types, or of the templates;
``seen`` puts questions into folds one by one. The lexicon of words was written by hand, knowing MetaQA's domain.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import clew
from clew.core.protocols import Encoder, PropertyGraph
from clew.core.text import fold_name
from clew.core.types import Answer, RespellStep
from clew.evaluate.datasets.graphs import METAQA_RELATIONS
from clew.models.encoders import RememberingEncoder
from clew.triples.language.chain import TypedChain
from clew.triples.language.typed_parsing import parse_typed
from clew.triples.query import compile_question, solve_question
from clew.triples.questions.names import NameMatch, find_names
from clew.triples.questions.parser import PlainParser, Reading, open_space, write_path
from clew.triples.questions.paths import FEATURES, PathSpace, QuestionWords, measure_paths
from clew.triples.questions.scoring import PathScorer, load_scorer, train_scorer
from clew.triples.questions.words import split_words
from library_graph import write_library
from real_graphs import Packages, read_packages, write_countries, write_gold_triples, write_packages

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
WEIGHTS = ROOT / "src" / "clew" / "triples" / "questions" / "weights.json"
FOLDS = 5
REFUSED_RIGHTLY, NO_NAME_READ = "refused, as it should be", "no name read, as it should be"
#: Outcomes of which ``--show`` prints nothing.
EXPECTED_OUTCOMES = ("right", REFUSED_RIGHTLY, NO_NAME_READ)
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """A question with the features of all its paths, which of them are right, and what is needed to solve them."""

    text: str
    type: str
    template: str
    hops: int
    gold: frozenset[str]
    names: tuple[NameMatch, ...]
    owners: NDArray[np.int64]
    paths: NDArray[np.int64]
    features: Array
    right: NDArray[np.bool_]

    @property
    def of_training(self) -> tuple[Array, Array]:
        """The likeliest wrong paths, a sample of the others, and the right one."""
        scores = PathScorer.from_mapping({}).scores(self.features)
        spread = np.arange(0, len(scores), max(1, len(scores) // 20))
        chosen = np.unique(np.concatenate([np.argsort(-scores)[:50], np.flatnonzero(self.right), spread]))
        return self.features[chosen], self.right[chosen].astype(np.float64)


def base_with(folder: str, *files: tuple[str, Path]) -> clew.KnowledgeBase:
    """Return a base with graphs."""
    base = clew.open(folder, create=True)
    for name, path in files:
        base.graphs.add([path], name=name)
    return base


@dataclass(frozen=True)
class Verdict:
    """How a question came out, and what ``--show`` prints behind it."""

    outcome: str
    remark: str


def read_questions(file: str) -> list[tuple[str, str]]:
    """Return the questions of a file of ``benchmarks/data`` with what is expected of each."""
    lines = (ROOT / "benchmarks" / "data" / file).read_text(encoding="utf-8").splitlines()
    return [(question, expected) for question, _, expected in (line.partition("\t") for line in lines)]


def count_outcomes(
    questions: Sequence[tuple[str, str]], judge: Callable[[str, str], Verdict], show: bool
) -> Counter[str]:
    """Return how often each outcome is that of a question; with ``show``, print the questions that went wrong."""
    outcomes: Counter[str] = Counter()
    for question, expected in questions:
        verdict = judge(question, expected)
        outcomes[verdict.outcome] += 1
        if show and verdict.outcome not in EXPECTED_OUTCOMES:
            print(f"{verdict.outcome}: {question}{verdict.remark}")
    return outcomes


def print_outcomes(outcomes: Counter[str], indent: str = "") -> None:
    """Print the outcomes with their counts, a line each."""
    for outcome, number in sorted(outcomes.items()):
        print(f"{indent}{outcome:34s} {number}")


def read_metaqa(space: PathSpace, encoder: Encoder, number: int) -> Iterator[Candidates]:
    """Yield MetaQA's development questions with their candidates."""
    relations = {name.replace(" ", "_"): place for place, name in enumerate(space.relations)}
    for hops in (2, 3):
        lines = (DATA / "metaqa" / f"dev_{hops}hop.jsonl").read_text(encoding="utf-8").splitlines()
        for line in lines[:number]:
            record = json.loads(line)
            topic = re.search(r"\[(.+?)\]", record["question"])
            assert topic is not None
            gold = []
            for before, after in pairwise(record["type"].split("_to_")):
                inverse = after == "movie"
                gold.append(2 * relations[METAQA_RELATIONS[before if inverse else after]] + inverse)
            text = record["question"].replace("[", "").replace("]", "")
            words = split_words(text)
            names = tuple(find_names(space.graph, text, words))
            asked = QuestionWords.read(words, space, encoder, names)
            paths = [space.paths(space.at_rows(name.rows)) for name in names]
            features = [
                measure_paths(asked, name, of_name, space) for name, of_name in zip(names, paths, strict=True)
            ]
            owners = np.repeat(np.arange(len(names)), [len(of_name) for of_name in paths])
            together = np.concatenate(paths) if paths else np.empty((0, 3), dtype=np.int64)
            target = np.array([*gold, *[-1] * (3 - len(gold))])
            is_topic = np.array([name.name == topic[1] for name in names], dtype=np.bool_)
            right = (together == target).all(axis=1) & is_topic[owners]
            yield Candidates(
                text,
                record["type"],
                record["question"].replace(topic[0], "[]"),
                hops,
                frozenset(record["answers"]),
                names,
                owners,
                together,
                np.concatenate(features) if features else np.empty((0, len(FEATURES))),
                right,
            )


def solve(space: PathSpace, candidates: Candidates, place: int) -> frozenset[str]:
    """Return the names of the answers of a path."""
    hops = [hop for hop in candidates.paths[place].tolist() if hop >= 0]
    if space.is_property(hops[-1]):
        return frozenset()
    name = candidates.names[candidates.owners[place]].name
    # The data set leaves its topic out of every answer; that Woody Allen directed films that he wrote is no error.
    return names_of(space.graph, write_path(name, hops, space)) - {name}


def names_of(graph: PropertyGraph, typed: TypedChain, aliases: bool = False) -> frozenset[str]:
    """Return the names of the answers to typed triples, with ``aliases`` all of them."""
    question = compile_question(graph, typed).question
    if question is None:
        return frozenset()
    rows = solve_question(graph, question).astype(np.int64)
    entities = graph.entities(rows)
    names = frozenset(entity.name for entity in entities)
    return names | {alias for entity in entities for alias in entity.aliases} if aliases else names


def train(questions: Sequence[Candidates]) -> PathScorer:
    """Return the scorer trained on the questions that have a right path."""
    return train_scorer([each.of_training for each in questions if each.right.any()])


def choose_temperature(pairs: Sequence[tuple[Array, bool]]) -> float:
    """Return the temperature under which the probability of the best path is right most nearly; at least 1, because
    a person's questions are harder than MetaQA's."""

    def loss(temperature: float) -> float:
        total = 0.0
        for scores, is_right in pairs:
            likelihood = np.exp((scores - scores.max()) / temperature)
            probability = float(np.clip(1 / likelihood.sum(), 1e-6, 1 - 1e-6))
            total -= np.log(probability if is_right else 1 - probability)
        return total

    return float(min(np.arange(1.0, 4.01, 0.1), key=loss))


def cross_validate(
    questions: Sequence[Candidates], space: PathSpace, key: Callable[[Candidates], object], label: str
) -> list[tuple[Array, bool]]:
    """Print Hits@1 and exact sets by folds over ``key``; return the scores of each question and whether the best is
    right."""
    keys = sorted({str(key(each)) for each in questions})
    random.Random(0).shuffle(keys)
    fold_of = {each: place % FOLDS for place, each in enumerate(keys)}
    outcomes: dict[int, list[tuple[bool, bool, bool]]] = {2: [], 3: []}
    pairs: list[tuple[Array, bool]] = []
    for fold in range(FOLDS):
        scorer = train([each for each in questions if fold_of[str(key(each))] != fold])
        for each in questions:
            if fold_of[str(key(each))] != fold:
                continue
            if not len(each.paths):
                outcomes[each.hops].append((False, False, False))
                continue
            scores = scorer.scores(each.features)
            answers, best = frozenset[str](), int(scores.argmax())
            for place in np.argsort(-scores, kind="stable")[:3].tolist():
                answers = solve(space, each, place)
                if answers:
                    best = place
                    break
            first = min(answers) if answers else ""
            outcomes[each.hops].append((first in each.gold, answers == each.gold, bool(each.right[best])))
            pairs.append((scores, answers == each.gold))
    for hops, of_hops in outcomes.items():
        shares = np.mean(np.array(of_hops), axis=0)
        print(
            f"{label:10s} {hops} hops  {len(of_hops):5d} questions  Hits@1 {shares[0]:.3f}  exact set {shares[1]:.3f}"
            f"  gold path {shares[2]:.3f}"
        )
    return pairs


def report_calibration(pairs: Sequence[tuple[Array, bool]], temperature: float) -> None:
    """Print how often the best path is right by its probability."""
    bins: dict[str, list[tuple[float, bool]]] = {}
    for scores, is_right in pairs:
        likelihood = np.exp((scores - scores.max()) / temperature)
        probability = float(1 / likelihood.sum())
        name = next(
            name
            for least, name in ((0.9, ">= 0.9"), (0.6, "0.6 - 0.9"), (0.0, "< 0.6"))
            if probability >= least
        )
        bins.setdefault(name, []).append((probability, is_right))
    for name, values in sorted(bins.items()):
        probabilities, right = zip(*values, strict=True)
        print(
            f"probability {name:9s} {len(values):5d} questions  mean {np.mean(probabilities):.3f}"
            f"  right {np.mean(right):.3f}"
        )


def run_metaqa(number: int, write: bool) -> None:
    """Cross-validate; with ``write``, train on everything and write the weights."""
    with tempfile.TemporaryDirectory() as folder:
        base = base_with(folder, ("films", DATA / "metaqa" / "graph.tsv"))
        with base:
            graph = base.store.snapshot().graph("films")
            encoder = base.encoding.encoder()
            assert encoder is not None
            space = open_space(graph)
            questions = list(read_metaqa(space, RememberingEncoder(encoder), number))
            reached = np.mean([bool(each.right.any()) for each in questions])
            print(f"{len(questions)} questions; the gold path is among the candidates of {reached:.3f}")
            pairs = cross_validate(questions, space, lambda each: each.type, "types")
            if write:
                scorer = train(questions)
                temperature = choose_temperature(pairs)
                weights = {
                    name: round(float(weight), 3)
                    for name, weight in zip(FEATURES, scorer.weights, strict=True)
                }
                content = {"temperature": round(temperature, 2), "weights": weights}
                WEIGHTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
                print(f"temperature {temperature:.1f}; wrote {WEIGHTS.name}")
                return
            report_calibration(pairs, json.loads(WEIGHTS.read_text(encoding="utf-8"))["temperature"])
            cross_validate(questions, space, lambda each: (each.type, each.template), "templates")
            cross_validate(questions, space, lambda each: each.text, "seen")


def run_answers(number: int, show: bool) -> None:
    """Print how many of MetaQA's questions the shipped parser answers, how many of these rightly, and the readings
    shown for the others."""
    with (
        tempfile.TemporaryDirectory() as folder,
        base_with(folder, ("films", DATA / "metaqa" / "graph.tsv")) as base,
    ):
        graph = base.store.snapshot().graph("films")
        parser = PlainParser(base.encoding.encoder())
        for hops in (2, 3):
            lines = (
                (DATA / "metaqa" / f"dev_{hops}hop.jsonl").read_text(encoding="utf-8").splitlines()[:number]
            )
            counts = {"right": 0, "wrong": 0, "unsure, right among the readings": 0, "unsure": 0}
            for line in lines:
                record = json.loads(line)
                topic = re.findall(r"\[(.+?)\]", record["question"])[0]
                readings = parser.read(record["question"].replace("[", "").replace("]", ""), [graph])
                given = [
                    answers_of(graph, reading) - {topic} == set(record["answers"]) for reading in readings
                ]
                if readings and readings[0].is_sure:
                    outcome = "right" if given[0] else "wrong"
                else:
                    outcome = "unsure, right among the readings" if any(given) else "unsure"
                counts[outcome] += 1
                if show and outcome in ("wrong", "unsure"):
                    print(f"{outcome}: {record['question']}\n    {readings[0].triples if readings else '-'}")
            print(f"{hops} hops, {len(lines)} questions: " + ", ".join(f"{k} {v}" for k, v in counts.items()))


def run_ordinary(show: bool) -> None:
    """Print how many questions about documents would be answered from the film graph."""
    from structure import ordinary_questions

    questions = list(ordinary_questions())
    for name, file in (
        ("2WikiMultihopQA", "2wikimultihopqa/train500.jsonl"),
        ("HotpotQA", "hotpotqa/train100.jsonl"),
    ):
        lines = (DATA / file).read_text(encoding="utf-8").splitlines()
        known = {question for _, question in questions}
        questions += [
            (f"{name}, the rest", text)
            for text in (json.loads(line)["question"] for line in lines)
            if text not in known
        ]
    with (
        tempfile.TemporaryDirectory() as folder,
        base_with(folder, ("films", DATA / "metaqa" / "graph.tsv")) as base,
    ):
        parser = PlainParser(base.encoding.encoder())
        graph = base.store.snapshot().graph("films")
        routed: dict[str, list[tuple[str, str]]] = {}
        sizes: dict[str, int] = {}
        for source, question in questions:
            sizes[source] = sizes.get(source, 0) + 1
            readings = parser.read(question, [graph])
            if readings and readings[0].is_sure:
                routed.setdefault(source, []).append((question, readings[0].triples))
        for source, size in sizes.items():
            print(f"{source:26s} {size:4d} questions  {len(routed.get(source, [])):3d} to the graph")
        for source, of_source in routed.items() if show else ():
            for question, triples in of_source:
                print(f"{source}: {question}\n    {triples}")


def run_misspelt(show: bool) -> None:
    """Print for the questions with misspelt names whether the default reads the name that is meant, with the graphs
    alone and beside the sample documents. Right is an answer with the values of the question spelt rightly, and a
    note that says how the name was read; where no name is meant, that none was read."""
    path = ROOT / "benchmarks" / "data" / "misspelt_questions.tsv"
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    questions = [(question, meant) for _, question, meant in (line.split("\t") for line in lines)]
    for place, documents in (
        ("graphs alone", []),
        ("beside the sample documents", [ROOT / "samples" / "documents"]),
    ):
        seconds: list[float] = []
        outcomes = ask_misspelt(questions, documents, seconds, show)
        print(f"{len(questions)} questions, {place}")
        print_outcomes(outcomes, "  ")
        print(f"  seconds in the median {statistics.median(seconds):.3f}, at most {max(seconds):.3f}")


def ask_misspelt(
    questions: Sequence[tuple[str, str]], documents: Sequence[Path], seconds: list[float], show: bool
) -> Counter[str]:
    """Ask the questions of a base with both graphs and the documents; put the seconds of each into ``seconds``."""
    graphs = [
        ("films", DATA / "metaqa" / "graph.tsv"),
        ("oskell", ROOT / "samples" / "graphs" / "oskell-people-and-ships.tsv"),
    ]
    with tempfile.TemporaryDirectory() as folder, base_with(folder + "/kb", *graphs) as base:
        base.add(documents)
        base.ask("Who directed Kismet?")  # nothing is timed cold

        def judge(question: str, meant: str) -> Verdict:
            started = time.perf_counter()
            answer = base.ask(question)
            seconds.append(time.perf_counter() - started)
            outcome = judge_spelling(base, question, answer, meant)
            return Verdict(outcome, f"  {answer.text[:60]!r}  {answer.fallbacks} {answer.route[:150]}")

        return count_outcomes(questions, judge, show)


def judge_spelling(base: clew.KnowledgeBase, question: str, answer: Answer, meant: str) -> str:
    """Return whether the name that is ``meant`` ("-" for none) was read in a question with a misspelt name."""
    steps = [step for step in answer.trail if isinstance(step, RespellStep)]
    if meant == "-":
        return "read as another name WRONGLY" if steps else NO_NAME_READ
    if not steps:
        return "not read" + (", abstained" if answer.abstained else ", answered otherwise")
    right = base.ask(question.replace(steps[0].written, meant))
    is_right = fold_name(steps[0].read_as) == fold_name(meant)
    is_right &= answer.values == right.values and not answer.abstained
    is_right &= any("read as" in note for note in answer.fallbacks)
    return "right" if is_right else "read as another name WRONGLY"


def run_first(show: bool, file: str, graph_file: Path) -> None:
    """Print how many questions that a newcomer might type are answered rightly by the default, with one graph beside
    the sample documents. Gold as in :func:`run_forty`; ``||`` stands between two that are accepted."""
    with (
        tempfile.TemporaryDirectory() as folder,
        base_with(folder + "/kb", ("first", graph_file)) as base,
    ):
        base.add([ROOT / "samples" / "documents"])
        graph = base.store.snapshot().graph("first")

        def judge(question: str, expected: str) -> Verdict:
            answer = base.ask(question)
            return Verdict(judge_answer(graph, answer, expected), f"  {answer.text[:80]!r}")

        questions = read_questions(file)
        outcomes = count_outcomes(questions, judge, show)
    print(f"{len(questions)} questions of {file}, beside the sample documents")
    print_outcomes(outcomes, "  ")


def judge_answer(graph: PropertyGraph, answer: Answer, expected: str) -> str:
    """Return whether an answer is right, wrong or refused."""
    golds = [_expected_names(graph, each.strip()) for each in expected.split("||")]
    wanted = [gold and frozenset(map(fold_name, gold)) for gold in golds]
    if answer.abstained:
        if wanted == [None]:
            return REFUSED_RIGHTLY
        return "refused, readings shown" if "It may mean" in answer.text else "refused"
    is_value = expected.startswith("value ")
    given = frozenset(map(fold_name, (answer.text,) if is_value else answer.values or (answer.text,)))
    is_counted = not expected.startswith("count ") or answer.text.startswith(f"{len(given):,}:")
    return "right" if given in wanted and is_counted else "WRONG"


def run_packages(show: bool, adapt: int) -> None:
    """Print how many of the forty questions over Debian's packages are right, wrong, or left as readings."""
    packages = read_packages()
    if packages is None:
        raise SystemExit("apt-cache knows no packages here")
    with tempfile.TemporaryDirectory() as folder:
        path = write_packages(packages, Path(folder) / "debian.jsonl")
        with base_with(folder + "/kb", ("debian", path)) as base:
            graph = base.store.snapshot().graph("debian")
            encoder = base.encoding.encoder()
            parser = PlainParser(encoder, adapt_scorer(graph, encoder, adapt) if adapt else load_scorer())

            def judge(question: str, expected: str) -> Verdict:
                readings = parser.read(question, [graph])
                outcome = judge_readings(graph, readings, follow(packages, expected), expected)
                return Verdict(outcome, f"\n    {readings[0].triples if readings else '-'}")

            print_outcomes(count_outcomes(read_questions("package_questions.tsv"), judge, show))


def adapt_scorer(graph: PropertyGraph, encoder: Encoder | None, number: int) -> PathScorer:
    """Return the shipped scorer after learning from ``number`` questions for each relation of a graph and direction,
    generated from its schema ("What is the currency of Chad?"), their names drawn with seed 0."""
    space = open_space(graph)
    draw = random.Random(0)
    questions = []
    for relation in range(space.edge_relations):
        label = space.labels[relation].text
        for inverse in (False, True):
            directed = 2 * relation + inverse
            adjacency = graph.adjacency(space.relations[relation], not inverse)
            if adjacency is None:
                continue
            rows = np.unique(adjacency.tails).astype(np.int64)
            rows = rows[draw.sample(range(len(rows)), min(number, len(rows)))]
            types = [space.type_labels[place].text for place in np.flatnonzero(space.types_at[directed])] or [
                "node"
            ]
            for entity in graph.entities(rows):
                forms = [f"Which {types[0]} has the {label} {entity.name}?"] if inverse else [
                    f"What is the {label} of {entity.name}?", f"Which {label} does {entity.name} have?"
                ]  # fmt: skip
                text = draw.choice(forms)
                words = split_words(text)
                names = [name for name in find_names(graph, text, words) if name.name == entity.name]
                if not names:
                    continue
                asked = QuestionWords.read(words, space, encoder, names)
                paths = space.paths(space.at_rows(names[0].rows))
                right = (paths == np.array([directed, -1, -1])).all(axis=1).astype(np.float64)
                if right.any():
                    questions.append((measure_paths(asked, names[0], paths, space), right))
    started = time.perf_counter()
    scorer = train_scorer(questions, start=load_scorer())
    print(f"adapted to {len(questions)} questions in {time.perf_counter() - started:.1f} s")
    return scorer


def run_countries(show: bool, adapt: int, use_encoder: bool) -> None:
    """Print how many of the forty questions over countries, languages and currencies are right, wrong, or unsure."""
    with tempfile.TemporaryDirectory() as folder, clew.open(folder + "/kb", create=True) as base:
        nodes, edges = write_countries(Path(folder))
        base.graphs.add(nodes=[nodes], edges=[edges], name="countries")
        graph = base.store.snapshot().graph("countries")
        encoder = base.encoding.encoder() if use_encoder else None
        parser = PlainParser(encoder, adapt_scorer(graph, encoder, adapt) if adapt else load_scorer())
        run_forty(graph, parser, "country_questions.tsv", show)


def run_library(show: bool) -> None:
    """Print how many of the forty questions over Python's standard library are right, wrong, or unsure."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_library(Path(folder) / "library.jsonl")
        with base_with(folder + "/kb", ("library", path)) as base:
            graph = base.store.snapshot().graph("library")
            run_forty(graph, PlainParser(base.encoding.encoder()), "library_questions.tsv", show)


def run_forty(graph: PropertyGraph, parser: PlainParser, file: str, show: bool) -> None:
    """Print how many questions of a file over a graph are right, wrong, or unsure.

    The gold is typed triples, ``chain`` and the triple of a property, ``value`` and what is to be said (``yes``, or
    which of two), or ``none`` where the graph does not know.
    """

    def judge(question: str, expected: str) -> Verdict:
        readings = parser.read(question, [graph])
        outcome = judge_readings(graph, readings, _expected_names(graph, expected), expected)
        descriptions = (
            f"\n    {reading.triples}  {reading.probability:.2f} {reading.count} {reading.doubts}"
            for reading in readings
        )
        return Verdict(outcome, "".join(descriptions))

    questions = read_questions(file)
    outcomes = count_outcomes(questions, judge, show)
    print(f"{graph.size:,} nodes, {len(questions)} questions")
    print_outcomes(outcomes)


def judge_readings(
    graph: PropertyGraph, readings: Sequence[Reading], gold: frozenset[str] | None, expected: str
) -> str:
    """Return whether the best reading is right, wrong or unsure; ``gold`` is what ``expected`` means, None where the
    graph does not know."""
    best = readings[0] if readings else None
    if best is not None and best.is_sure:
        is_right = answers_of(graph, best) == gold
        is_right &= best.asks_count == expected.startswith("count ")
        return "right" if is_right else "WRONG"
    if gold is None:
        return "unsure, as it should be"
    is_shown = any(answers_of(graph, reading) == gold for reading in readings)
    return "unsure, right among the readings" if is_shown else "unsure"


def _expected_names(graph: PropertyGraph, expected: str) -> frozenset[str] | None:
    """Return the names or values that are meant; None where the graph does not know."""
    if expected == "none":
        return None
    if expected.startswith("value "):
        return frozenset({expected.removeprefix("value ")})
    if expected.startswith("chain "):
        name, property, _ = expected.removeprefix("chain ").split(" >> ")
        entities = graph.entities(graph.find_by_name(name))
        return frozenset(
            str(entity.properties[property]) for entity in entities if property in entity.properties
        )
    triples = expected.removeprefix("count ")
    last = max(re.findall(r"#(\d)", triples))
    return names_of(
        graph, parse_typed(triples if "final" in triples else f"{triples}; final answer: #{last}")
    )


def answers_of(graph: PropertyGraph, reading: Reading, aliases: bool = False) -> frozenset[str]:
    """Return the names or values that a reading gives, with ``aliases`` also those; for a chain to a property, that
    property of the name."""
    if reading.settled:
        return frozenset({reading.settled})
    if not reading.is_chain:
        return names_of(graph, parse_typed(reading.triples), aliases)
    if len(reading.hops) != 1:
        return frozenset()
    entities = graph.entities(graph.find_by_name(reading.name))
    return frozenset(
        str(entity.properties[reading.hops[0]]) for entity in entities if reading.hops[0] in entity.properties
    )


def follow(packages: Packages, text: str) -> frozenset[str] | None:
    """Return the names that the steps of ``package_questions.tsv`` lead to; None for a question without an answer."""
    if text == "none":
        return None
    words = re.split(r"\s+(?=[<>!&?.-]\s(?!\d)|max\s)", text.removeprefix("count "))
    first = words.pop(0)
    return _step_into(packages, first.removeprefix("@"), words)


def _step_into(packages: Packages, start: str, steps: Sequence[str]) -> frozenset[str]:
    names = {start}
    steps = list(steps)
    while steps:
        sign, _, rest = steps.pop(0).partition(" ")
        rest = rest.strip()
        if sign == ">":
            names = {clean(other) for name in names for other in packages.targets(rest).get(name, ())}
        elif sign == "<":
            names = {
                name for name, others in packages.targets(rest).items() if names & set(map(clean, others))
            }
        elif sign == "-":
            names -= {rest}
        elif sign in "&!":
            others = _step_into(packages, rest.removeprefix("@"), [steps.pop(0)])
            names = names & others if sign == "&" else names - others
        elif sign == "?":
            property, _, least = rest.partition(" > ")
            names = {name for name in names if packages.properties[name].get(property, 0) > float(least)}
        elif sign == "max":
            most = max(packages.properties[name][rest] for name in names)
            names = {name for name in names if packages.properties[name][rest] == most}
        elif sign == ".":
            names = {str(packages.properties[name][rest]) for name in names}
    return frozenset(names)


def clean(name: str) -> str:
    """Return a maintainer without the address."""
    return name.split(" <")[0] or name


def run_2wiki(show: bool) -> None:
    """Print how many questions of 2WikiMultihopQA, in their own words, the graph of their gold triples answers."""
    source = DATA / "2wikimultihopqa" / "train500.jsonl"
    with tempfile.TemporaryDirectory() as folder:
        path = write_gold_triples(source, Path(folder) / "2wiki.jsonl")
        with base_with(folder + "/kb", ("2wiki", path)) as base:
            graph = base.store.snapshot().graph("2wiki")
            parser = PlainParser(base.encoding.encoder())
            outcomes: dict[str, list[str]] = {}
            for line in source.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                readings = parser.read(record["question"], [graph])
                outcome = "no reading"
                if readings:
                    gold = fold_name(record["answer"])
                    given = [
                        gold in map(fold_name, answers_of(graph, reading, aliases=True))
                        for reading in readings
                    ]
                    if readings[0].is_sure:
                        outcome = "right" if given[0] else "wrong"
                    else:
                        outcome = "unsure, right first" if given[0] else "unsure"
                        outcome = "unsure, right among others" if any(given[1:]) and not given[0] else outcome
                outcomes.setdefault(record["type"], []).append(outcome)
                if show and outcome == "wrong":
                    print(f"wrong: {record['question']}\n    {readings[0].triples}")
            for kind, of_kind in sorted(outcomes.items()):
                counts = ", ".join(f"{outcome} {of_kind.count(outcome)}" for outcome in sorted(set(of_kind)))
                print(f"{kind:18s} {len(of_kind):4d} questions: {counts}")


def run_speed(nodes: int) -> None:
    """Print how long reading a question takes beside a generated film graph of so many nodes."""
    draw = np.random.default_rng(0)
    films, people = nodes // 2, nodes // 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "films.tsv"
        with path.open("w", encoding="utf-8") as file:
            for relation in ("directed by", "starred actors", "written by"):
                of_film = draw.integers(0, people, films)
                file.writelines(
                    f"The Film {film}\t{relation}\tPerson {person}\n"
                    for film, person in enumerate(of_film.tolist())
                )
        with base_with(folder + "/kb", ("films", path)) as base:
            graph = base.store.snapshot().graph("films")
            parser = PlainParser(base.encoding.encoder())
            questions = []
            for number in draw.integers(0, films, 100).tolist():
                questions += [
                    f"Who directed The Film {number}?",
                    f"Which films did Person {number % people} write?",
                    f"who acted in the films directed by the director of The Film {number}",
                    f"Which awards were given to Person {number % people} by the academy?",
                    "What was the revenue of the company in the third quarter?",
                ]
            started = time.perf_counter()
            parser.read(questions[0], [graph])
            first = time.perf_counter() - started
            times, processor = [], []
            for question in questions:
                started, used = time.perf_counter(), time.process_time()
                parser.read(question, [graph])
                times.append(1e3 * (time.perf_counter() - started))
                processor.append(1e3 * (time.process_time() - used))
            print(
                f"{graph.size:,} nodes; the first question {1e3 * first:.0f} ms; {len(times)} questions: "
                f"p50 {statistics.median(times):.1f} ms, p95 {float(np.percentile(times, 95)):.1f} ms; "
                f"of the processor p50 {statistics.median(processor):.1f} ms"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what",
        choices=[
            "train",
            "metaqa",
            "answers",
            "ordinary",
            "packages",
            "countries",
            "library",
            "2wiki",
            "first",
            "misspelt",
            "speed",
        ],
    )
    parser.add_argument("--show", action="store_true", help="print the questions that went wrong")
    parser.add_argument("--number", type=int, default=2000, help="questions of each number of hops")
    parser.add_argument(
        "--adapt", type=int, default=0, help="countries, packages: generated questions per relation"
    )
    parser.add_argument(
        "--no-encoder", action="store_true", help="countries: words by stems and lexicon alone"
    )
    parser.add_argument("--nodes", type=int, default=2_000_000, help="nodes of the generated graph")
    arguments = parser.parse_args()
    if arguments.what in ("train", "metaqa"):
        run_metaqa(arguments.number, write=arguments.what == "train")
    elif arguments.what == "answers":
        run_answers(arguments.number, arguments.show)
    elif arguments.what == "ordinary":
        run_ordinary(arguments.show)
    elif arguments.what == "packages":
        run_packages(arguments.show, arguments.adapt)
    elif arguments.what == "countries":
        run_countries(arguments.show, arguments.adapt, not arguments.no_encoder)
    elif arguments.what == "library":
        run_library(arguments.show)
    elif arguments.what == "2wiki":
        run_2wiki(arguments.show)
    elif arguments.what == "first":
        films = DATA / "metaqa" / "graph.tsv"
        run_first(arguments.show, "film_questions.tsv", films)
        run_first(arguments.show, "film_questions_fresh.tsv", films)
        ships = ROOT / "samples" / "graphs" / "oskell-people-and-ships.tsv"
        run_first(arguments.show, "ship_questions.tsv", ships)
    elif arguments.what == "misspelt":
        run_misspelt(arguments.show)
    else:
        run_speed(arguments.nodes)


if __name__ == "__main__":
    main()
