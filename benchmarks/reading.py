"""Answers of the trained reader beside ``short`` and ``extractive``: gold passages, pooled search, filings. No model.

    python benchmarks/reading.py gold             # dev.jsonl, gold paragraphs of fold 0, held-out TAT-QA
    python benchmarks/reading.py baselines        # short and extractive over the same passages
    python benchmarks/reading.py gold --draw docs/images/reading-confidence.svg       # and draws the confidence
    python benchmarks/reading.py pooled --encoder onnx:folds/fold0/onnx       # over the pool of each set
    python benchmarks/reading.py filings --kb FOLDER --show      # 60 questions about eight filings
    python benchmarks/reading.py speed
    python benchmarks/reading.py rows --out FOLDER               # questions of several hops, for clew train sentences
    python benchmarks/reading.py train --fold 1 2 3 4 --from all-MiniLM-L6-v2 --out FOLDER     # two hours of one core
    python benchmarks/reading.py gold --fold 1 2 3 4 --model onnx:FOLDER/onnx
    python benchmarks/reading.py pooled --fold 1 2 3 4 --model onnx:FOLDER/onnx

The shipped reader was trained without fold 0 of the multi-hop sets and a fifth of the contexts of TAT-QA (seed 0);
``train`` makes a reader without other folds with the mixture of ``make reader``, and continues where it was killed.
``pooled`` needs an encoder that was not trained on the fold either (``benchmarks/folds.py`` makes it). The rules that
take questions apart were written with the wordings of all folds in sight. Intervals are 95 % bootstrap intervals.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import folds
from clew.app.cli.output import show_progress
from clew.core.protocols import Reader
from clew.core.trail import TrailRecorder
from clew.core.types import PASSAGE, Answer, Hit, Question, ReaderPassage
from clew.evaluate.corpora import document_location, pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.metrics.answers import exact_match, f1, normalise_answer
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.methods.readers.extractive import ExtractiveReader
from clew.models.span_reader import create_span_reader
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from clew.train.reader import ReaderSettings, is_right, train_reader
from clew.train.reading_data import collect_examples, gold_example, tatqa_questions
from clew.train.reading_examples import ReadingExample, marked_examples
from clew.train.sentence_questions import multihop_question
from clew.train.sentences import HOPS, ONE_HOP

if TYPE_CHECKING:
    from clew.core.arrays import Floats

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
QUESTIONS = Path(__file__).parent / "data" / "filing_answers.jsonl"
FOLD = 0
#: Files of questions that `clew train sentences` is fitted to, which the reader does not see.
UNSEEN = ("office3", "policies", "reports", "science2")
READERS = ("extractive", "span")
#: How the questions of a kind over a graph ask, as `clew train sentences` has it.
GRAPH_KINDS = {
    "one-hop": ONE_HOP,
    "inverse": ONE_HOP,
    "value": ONE_HOP,
    "two-hop": HOPS,
    "three-hop": HOPS,
}


def multihop(data: Path, numbers: Collection[int] = (FOLD,)) -> dict[str, list[Example]]:
    """Return the questions of some folds of each multi-hop set."""
    examples = {
        name: list(load_dataset(name, data / name / f"{part}.jsonl").examples())
        for name, part in folds.SETS.items()
    }
    fold_of = folds.folds(examples)
    return {
        name: [example for example in group if fold_of[name, example.id] in numbers]
        for name, group in examples.items()
    }


def tatqa_contexts(data: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the contexts of TAT-QA with their fold; the shipped reader has not seen those of fold 0."""
    contexts = json.loads((data / "tatqa" / "dev.json").read_text(encoding="utf-8"))
    order = list(range(len(contexts)))
    random.Random(0).shuffle(order)
    for position, context in zip(order, contexts, strict=True):
        yield position % 5, context


def held_out_tatqa(data: Path, numbers: Collection[int] = (FOLD,)) -> list[ReadingExample]:
    """Return the questions of the contexts of TAT-QA in some folds."""
    return [
        question
        for number, context in tatqa_contexts(data)
        if number in numbers
        for question in tatqa_questions(context)
    ]


def train(options: argparse.Namespace) -> None:
    """Train the reader of some folds: ``make reader`` without their questions and contexts of TAT-QA.

    A twentieth of the other folds and 700 questions of ``reading/dev.jsonl`` calibrate it, so that nothing is
    fitted to what it is asked.
    """
    without = options.out.with_name(f"{options.out.name}-data")
    without.mkdir(parents=True, exist_ok=True)
    for name, group in multihop(options.data, options.fold).items():
        left_out = {example.id for example in group}
        path = options.data / name / f"{folds.SETS[name]}.jsonl"
        examples = load_dataset(name, path).examples()
        lines = path.read_text(encoding="utf-8").splitlines()
        remaining = [line for line, item in zip(lines, examples, strict=True) if item.id not in left_out]
        (without / f"{name}.jsonl").write_text("\n".join(remaining) + "\n", encoding="utf-8")
    contexts = [context for number, context in tatqa_contexts(options.data) if number not in options.fold]
    (without / "tatqa.json").write_text(json.dumps(contexts), encoding="utf-8")
    sources = {name: without / f"{name}.jsonl" for name in folds.SETS} | {
        "reading": options.data / "reading" / "train.jsonl",
        "tatqa": without / "tatqa.json",
    }
    if options.start is None:  # the questions made of these are of the first stage alone
        sources |= {name: options.data / "ottqa" / f"{name}.jsonl" for name in ("tables", "passages")}
    own = Path(__file__).parent / "data"
    pairs = [options.data / "polar" / "pairs.jsonl", *sorted((own / "polar").glob("*.jsonl"))]
    written = [
        *sorted((options.data / "reading2").glob("*.jsonl")),
        *sorted((own / "reading").glob("*.jsonl")),
    ]
    named = [
        *sources.items(),
        *(("polar", file) for file in pairs),
        *(("unseen" if file.stem in UNSEEN else "written", file) for file in written),
    ]
    data = collect_examples([f"{name}={path}" for name, path in named], 0.05, 0, options.scale)
    calibrating = random.Random(0).sample(list(marked_examples(options.data / "reading" / "dev.jsonl")), 700)
    folds_named = "fold " + ", ".join(map(str, options.fold))
    shown = {stage: show_progress(f"{folds_named}: {stage}") for stage in ("words", "sentences")}
    record = train_reader(
        replace(data, held_out=[*data.held_out, *calibrating]),
        options.source,
        ReaderSettings(save_every=25),
        options.out,
        print,
        lambda stage, done, total: shown[stage](done, total),
        options.start,
    )
    print(json.dumps(record["after"], indent=1))


def interval(values: Sequence[float]) -> str:
    """Return the mean in percent with its interval."""
    estimate = bootstrap_interval(values)
    return f"{100 * estimate.mean:.1f} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"


def gold_examples(options: argparse.Namespace) -> list[ReadingExample]:
    """Return the questions of ``reading/dev.jsonl``, and those of the folds over their gold passages."""
    examples = list(marked_examples(options.data / "reading" / "dev.jsonl"))
    examples += [
        gold_example(name, example)
        for name, group in multihop(options.data, options.fold).items()
        for example in group
    ]
    examples += held_out_tatqa(options.data, options.fold)
    if options.source_name:
        examples = [example for example in examples if example.source.startswith(options.source_name)]
    if options.limit:
        examples = random.Random(0).sample(examples, options.limit)
    return examples


def baselines(options: argparse.Namespace) -> None:
    """Print EM and F1 of ``extractive`` and ``short`` over gold passages by source; refusing counts as wrong."""
    examples = [each for each in gold_examples(options) if each.verdict or each.places]
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "base", create=True) as base:
        keys = []
        for number, example in enumerate(examples):
            builder = DocumentBuilder()
            for passage in example.passages:
                builder.add_heading(1, passage.title or "Text")
                builder.add_paragraph(passage.text)
            data = str(number).encode()
            document = builder.finish(data=data, title="", media_type="text/plain", parser="gold/1")
            base.put_document(document, document_location(document))
            keys.append(document.key)
        base.catch_up()
        snapshot = base.snapshot()
        readers: dict[str, Reader] = {
            "extractive": ExtractiveReader.build(snapshot),
        }
        scores: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for key, example in zip(keys, examples, strict=True):
            nodes = snapshot.nodes(np.arange(*snapshot.document_rows(key)))
            hits = [Hit(node, 1.0, (node.id,)) for node in nodes if node.kind == PASSAGE]
            golds = [example.verdict] if example.verdict else list(example.answers)
            for name, reader in readers.items():
                answer = reader.read(Question(example.question), hits, TrailRecorder())
                text = "" if answer.abstained else answer.text
                pair = max(exact_match(text, each) for each in golds), max(f1(text, each) for each in golds)
                scores[example.source, name].append(pair)
    print("| source | questions | reader | EM | F1 |\n|---|---|---|---|---|")
    for (source, name), values in sorted(scores.items()):
        exact, token = zip(*values, strict=True)
        print(f"| {source} | {len(values)} | {name} | {interval(exact)} | {interval(token)} |")


def gold(options: argparse.Namespace) -> None:
    """Print EM and F1 over gold passages by source, and how often the confidence is right."""
    model = create_span_reader(options.model)
    examples = gold_examples(options)
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    refused: dict[str, list[float]] = defaultdict(list)
    confidences: list[tuple[float, bool]] = []
    started = time.process_time()
    for example in examples:
        spans = model.read(example.question, [example.passages])[0]
        text, confidence = (spans[0].text, model.confidence(spans[0].score)) if spans else ("", 0.0)
        golds = [example.verdict] if example.verdict else list(example.answers)
        is_answerable = bool(example.verdict or example.places)
        if is_answerable:
            scores[example.source].append(
                (
                    max(exact_match(text, answer) for answer in golds),
                    max(f1(text, answer) for answer in golds),
                )
            )
        else:
            refused[example.source].append(float(confidence < options.threshold))
        confidences.append((confidence, is_answerable and is_right(example, text)))
    milliseconds = (time.process_time() - started) / len(examples) * 1000
    print("| source | questions | EM | F1 |\n|---|---|---|---|")
    for source, values in sorted(scores.items()):
        exact, token = zip(*values, strict=True)
        print(f"| {source} | {len(values)} | {interval(exact)} | {interval(token)} |")
    for source, refusals in refused.items():
        print(
            f"\n{source}: {len(refusals)} without an answer, refused at {options.threshold}: {interval(refusals)}"
        )
    print(f"\n{milliseconds:.0f} ms of CPU a question")
    ordered = sorted(confidences, reverse=True)
    confidence_of = np.array([confidence for confidence, _ in ordered])
    right = np.array([was_right for _, was_right in ordered], dtype=float)
    print_calibration(confidence_of, right)
    if options.draw:
        draw_confidence(confidence_of, right, options.draw)


def speed(options: argparse.Namespace) -> None:
    """Print the processor time of a question over one and six passages of HotpotQA, and the memory of the process."""
    model = create_span_reader(options.model)
    examples = multihop(options.data)["hotpotqa"]
    model.read("What?", [[ReaderPassage("", "Nothing.")]])
    for count in (1, 6):
        started, wall = time.process_time(), time.perf_counter()
        for example in examples:
            passages = [
                ReaderPassage(paragraph.title, paragraph.text) for paragraph in example.corpus[:count]
            ]
            model.read(example.question, [passages], 12)
        cpu, elapsed = time.process_time() - started, time.perf_counter() - wall
        print(
            f"{count} passages: {1000 * cpu / len(examples):.0f} ms of CPU a question, "
            f"{1000 * elapsed / len(examples):.0f} ms in all"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")


def confidence_bins(values: Floats, right: Floats) -> tuple[list[tuple[float, float, int]], float]:
    """Return mean confidence, share of right answers and size of each of ten bins, and the expected calibration
    error: the mean over all answers of the distance between the first two."""
    numbers = np.minimum((values * 10).astype(int), 9)
    bins = [
        (float(values[numbers == n].mean()), float(right[numbers == n].mean()), int((numbers == n).sum()))
        for n in np.unique(numbers)
    ]
    return bins, sum(abs(mean - share) * size for mean, share, size in bins) / len(values)


def draw_confidence(values: Floats, right: Floats, path: Path) -> None:
    """Draw the risk-coverage curve and the reliability diagram of answers, the most confident first."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "clew", "svg.fonttype": "none", "font.size": 9}
    import matplotlib.pyplot as plt

    count = np.arange(1, len(right) + 1)
    bins, error = confidence_bins(values, right)
    figure, (risk, reliability) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    rng = np.random.default_rng(0)
    draws = np.sort(rng.integers(0, len(right), (400, len(right))), axis=1)
    curves = 1 - np.cumsum(right[draws], axis=1) / count
    low, high = np.percentile(curves, (2.5, 97.5), axis=0)
    shown = slice(len(right) // 50, None, max(1, len(right) // 300))  # of fewer than 2 % a share says nothing
    coverage = 100 * count / len(right)
    risk.fill_between(coverage[shown], 100 * low[shown], 100 * high[shown], color="#2a6f97", alpha=0.2, lw=0)
    risk.plot(coverage[shown], 100 * (1 - np.cumsum(right) / count)[shown], color="#2a6f97")
    for threshold in (0.25, 0.7):
        place = int((values >= threshold).sum()) - 1
        wrong = 100 * (1 - right[: place + 1].mean())
        risk.plot(coverage[place], wrong, "o", color="#c1440e", ms=4)
        risk.annotate(
            f"confidence {threshold}", (coverage[place], wrong), xytext=(-8, 6), ha="right",
            textcoords="offset points",
        )  # fmt: skip
    risk.set(xlabel="answered, %", ylabel="wrong among these, %", xlim=(0, 100), ylim=(0, None))
    risk.set_title("Risk and coverage")
    reliability.plot((0, 100), (0, 100), color="#999999", lw=1, ls="--")
    means, shares, sizes = map(np.array, zip(*bins, strict=True))
    reliability.plot(100 * means, 100 * shares, color="#2a6f97", marker="o", ms=4)
    for mean, share, size in zip(means, shares, sizes, strict=True):
        reliability.annotate(
            f"{size:,}", (100 * mean, 100 * share), xytext=(5, -9), textcoords="offset points", fontsize=7
        )
    reliability.set(xlabel="confidence, %", ylabel="right, %", xlim=(0, 100), ylim=(0, 100))
    reliability.set_title(f"Calibration: error {error:.3f}, {len(right):,} questions")
    for axes in (risk, reliability):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")


def print_calibration(values: Floats, right: Floats) -> None:
    """Print the calibration error in ten bins, and the share of right answers at several coverages."""
    _, error = confidence_bins(values, right)
    print(f"expected calibration error {error:.3f} (right: half of token F1 or more)\n")
    print("| answered | confidence from | right |\n|---|---|---|")
    for share in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0):
        count = max(1, round(share * len(right)))
        print(f"| {100 * share:.0f} % | {values[count - 1]:.2f} | {100 * right[:count].mean():.1f} % |")


def reader_recipe(reader: str, model: str) -> str:
    """Return the reader of a recipe."""
    return f"span(model='{model}')" if reader == "span" else reader


def pooled(options: argparse.Namespace) -> None:
    """Print EM and F1 of whole answers of the default method over the pool of each data set."""
    encoder = registry.load_encoder(options.encoder)
    print("| data set | questions | reader | EM | F1 | abstained |\n|---|---|---|---|---|---|")
    for name, group in multihop(options.data, options.fold).items():
        everything = list(load_dataset(name, options.data / name / f"{folds.SETS[name]}.jsonl").examples())
        with tempfile.TemporaryDirectory() as folder:
            base = Store.open(options.bases / name if options.bases else Path(folder), create=True)
            if not base.documents():
                fill_store(base, pool_paragraphs(everything), EvaluationSettings())
            base.encode(encoder)
            for reader in options.readers:
                recipe = f"kgp(reader={reader_recipe(reader, options.model)})"
                method = registry.build_method(recipe, base, encoder=encoder)
                answers = [method.answer(Question(example.question), TrailRecorder()) for example in group]
                print_pooled(name, reader, group, answers)
            base.close()


def write_rows(options: argparse.Namespace) -> None:
    """Write multi-hop questions as ``clew train sentences`` reads them, each with the sentences that have its answer:
    those of the folds, in halves that are held out in turn (``hops-1``, ``hops-2``), and all others (``known``), of
    each set as many, with the questions over graphs that ask through one thing or more."""
    files: dict[str, list[str]] = {"hops-1": [], "hops-2": []}
    others: list[list[str]] = []
    chosen = multihop(options.data, options.fold)
    for name, group in multihop(options.data, range(folds.FOLDS)).items():
        own = {example.id for example in chosen[name]}
        others.append([])
        for number, example in enumerate(group):
            row = write_row(example)
            if row["answers"]:
                file = files[f"hops-{1 + number % 2}"] if example.id in own else others[-1]
                file.append(json.dumps(row, ensure_ascii=False))
    most = max(map(len, others))
    files["known"] = [lines[number % len(lines)] for lines in others for number in range(most)]
    for path in sorted((options.data / "plans").glob("*/questions.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if kind := GRAPH_KINDS.get(row["kind"]):
                files["known"].append(
                    json.dumps({"question": row["question"], "kind": kind}, ensure_ascii=False)
                )
    options.out.mkdir(parents=True, exist_ok=True)
    for part, lines in files.items():
        (options.out / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{part}: {len(lines)} questions")


def write_row(example: Example) -> dict[str, Any]:
    """Return a multi-hop question as a line of a file of questions."""
    question = multihop_question(example)
    passages = question.example.passages
    return {
        "question": example.question,
        "kind": HOPS,
        "polar": question.example.verdict,
        "passages": [{"title": each.title, "text": each.text} for each in passages],
        "answers": [
            {"passage": number, "text": passages[number].text[start:end]}
            for number, start, end, is_right in question.options
            if is_right
        ],
        "value": None if question.example.verdict else {"text": example.answers[0]},
    }


def print_pooled(name: str, reader: str, examples: Sequence[Example], answers: Sequence[Answer]) -> None:
    """Print a row of the table, and one for each type of question."""
    rows: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for example, answer in zip(examples, answers, strict=True):
        text = "" if answer.abstained else answer.text
        values = (
            max(exact_match(text, gold) for gold in example.answers),
            max(f1(text, gold) for gold in example.answers),
            float(answer.abstained),
        )
        for kind in ("", example.question_type):
            rows[kind].append(values)
    for kind, group in sorted(rows.items()):
        exact, token, abstained = zip(*group, strict=True)
        print(
            f"| {name} {kind} | {len(group)} | {reader} | {interval(exact)} | {interval(token)} "
            f"| {100 * np.mean(abstained):.0f} % |",
            flush=True,
        )


def filing_questions(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the questions about the filings; those without answers have to be refused."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def filings(options: argparse.Namespace) -> None:
    """Print how many of the questions about filings each reader answers right, partly, wrong, or refuses."""
    base = Store.open(options.kb)
    encoder = registry.load_encoder(options.encoder)
    for reader in options.readers:
        method = registry.build_method(
            f"kgp(reader={reader_recipe(reader, options.model)})", base, encoder=encoder
        )
        counts: dict[tuple[str, str], int] = defaultdict(int)
        seconds = []
        for question in filing_questions(options.questions):
            started = time.perf_counter()
            answer = method.answer(Question(question["question"]), TrailRecorder())
            seconds.append(time.perf_counter() - started)
            grade = grade_answer(answer, question["answers"])
            counts["answerable" if question["answers"] else "unanswerable", grade] += 1
            if options.show:
                text = " ".join(answer.text.split())[:90]
                confidence = "" if answer.confidence is None else f" {answer.confidence:.2f}"
                print(
                    f"{reader} {grade}{confidence}: {question['question']} -> {text} {question['answers'][:1]}"
                )
        print(
            f"{reader}: {dict(sorted(counts.items()))}, median {1000 * np.median(seconds):.0f} ms a question"
        )


def grade_answer(answer: Answer, golds: Sequence[str]) -> str:
    """Return ``right`` for the gold words and at most two more, ``partly`` if they stand in the answer."""
    if answer.abstained:
        return "refused"
    text = f" {normalise_answer(answer.text)} "
    extra = [
        len(text.split()) - len(normalise_answer(gold).split())
        for gold in golds
        if f" {normalise_answer(gold)} " in text
    ]
    if not extra:
        return "wrong"
    return "right" if min(extra) <= 2 else "partly"


def main() -> None:
    parts = {
        "gold": gold, "baselines": baselines, "pooled": pooled, "filings": filings, "train": train,
        "speed": speed, "rows": write_rows,
    }  # fmt: skip
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=tuple(parts))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--model", default="clew:reader")
    parser.add_argument("--encoder", default="clew:hops")
    parser.add_argument("--readers", nargs="+", default=list(READERS))
    parser.add_argument("--kb", type=Path, help="a base of the shared filings")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="the questions about the filings")
    parser.add_argument("--bases", type=Path, help="a folder that keeps the pools")
    parser.add_argument("--limit", type=int, help="a sample of the gold questions")
    parser.add_argument(
        "--source", dest="source_name", help="gold: only sources of this beginning, such as subjqa"
    )
    parser.add_argument("--threshold", type=float, default=0.25)
    parser.add_argument("--draw", type=Path, help="draw risk, coverage and calibration to this file")
    parser.add_argument("--show", action="store_true", help="print each answer")
    parser.add_argument(
        "--fold", type=int, nargs="+", default=[FOLD], help="the folds that the reader has not seen"
    )
    parser.add_argument("--from", dest="source", default="all-MiniLM-L6-v2", help="train: the encoder")
    parser.add_argument("--start", type=Path, help="train: a reader to train further")
    parser.add_argument("--out", type=Path, help="train: the folder of the reader")
    parser.add_argument("--scale", type=float, default=1.0, help="train: multiply the numbers of examples")
    options = parser.parse_args()
    parts[options.part](options)


if __name__ == "__main__":
    main()
