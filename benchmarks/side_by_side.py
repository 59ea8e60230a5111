"""Questions over an imported graph and documents together, by ``focus`` and by ``chain``, their trails side by side.

    python benchmarks/side_by_side.py --data ../shared/data
    python benchmarks/side_by_side.py --trails           # and each question's two trails

Compositional questions of 2WikiMultihopQA with two gold triples. One of the two is put into the graph, of every other
question the first and of the others the second; the other one stands only in the question's own ten paragraphs, which
are the documents, pooled. The graph also holds MetaQA's films, so that linking has something to miss. Each question
is asked as its gold triples with the tails masked, by both methods, from graph and text and without a model: the
trained reader reads the text. An answer is right where it is an exact match (of several, where the gold is one).
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Question, Step
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.metrics.answers import exact_match
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.knowledge_base import registry
from clew.papers.gold_hops import gold_chain

METHODS = {
    "focus": "focus",
    "chain": "chain(sources='kg,text')",
    "order=paper": "chain(sources='kg,text', order=paper)",
}


def choose_examples(examples: Sequence[Example], count: int, seed: int) -> list[Example]:
    """Return some of the compositional questions of two triples, the same for the same seed."""
    fit = [
        example
        for example in examples
        if example.question_type == "compositional" and len(example.chain) == 2
    ]
    random.Random(seed).shuffle(fit)
    return fit[:count]


def graph_of(examples: Sequence[Example], films: Path, folder: Path) -> Path:
    """Write the films with one gold triple of each question."""
    path = folder / "half.tsv"
    stored = ["\t".join(example.chain[number % 2]) for number, example in enumerate(examples)]
    path.write_text(
        films.read_text(encoding="utf-8").rstrip("\n") + "\n" + "\n".join(stored) + "\n", encoding="utf-8"
    )
    return path


def answer_texts(answer: Answer) -> list[str]:
    """Return the answer's text, and the first of its values."""
    return [] if answer.abstained else [answer.text, *answer.values[:1]]


def describe_step(step: Step) -> str:
    """Return a step in a few words."""
    detail = step.detail
    if step.name == "substitute":
        sets = [
            f"{name}: {', '.join(value['first'][:3]) or 'anything'}"
            for name, value in detail["candidates"].items()
        ]
        return f"substitute {'; '.join(sets)}"
    if step.name == "prepare":
        return f"prepare {'; '.join(f'not here: {item}' for item in detail['dropped']) or 'all in the graph'}"
    if step.name == "fill":
        values = ", ".join(detail.get("values", ())[:3]) or "nothing"
        return f"fill {detail['unknown']} from {detail['source']}: {values}"
    if step.name in ("filled", "ranked"):
        return f"{step.name} {detail['answer']}"
    return step.name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoder", default="clew:hops", help="none: by words alone")
    parser.add_argument("--trails", action="store_true")
    given = parser.parse_args()
    examples = list(load_dataset("2wikimultihopqa", given.data / "2wikimultihopqa/train500.jsonl").examples())
    asked = choose_examples(examples, given.questions, given.seed)
    encoder = None if given.encoder == "none" else registry.load_encoder(given.encoder)
    rows, trails, right = list[str](), list[str](), dict.fromkeys(METHODS, 0)
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        fill_store(base.store, pool_paragraphs(asked), EvaluationSettings(encoder=encoder))
        base.graphs.add(graph_of(asked, given.data / "metaqa/graph.tsv", Path(folder)), name="half")
        methods = {
            name: registry.build_method(item, base.store, encoder=encoder) for name, item in METHODS.items()
        }
        for number, example in enumerate(asked):
            written = str(gold_chain(example)[0])
            answers: dict[str, Answer] = {}
            for name, method in methods.items():
                answers[name] = method.answer(Question(example.question, chain=written), TrailRecorder())
                right[name] += any(
                    exact_match(item, gold)
                    for gold in example.answers
                    for item in answer_texts(answers[name])
                )
            hop = "first" if number % 2 == 0 else "second"
            cells = [("-" if value.abstained else value.text[:60]) for value in answers.values()]
            rows.append(f"| {example.question} | {hop} | {example.answers[0]} | {' | '.join(cells)} |")
            trails.append(f"### {example.question}\n\n`{written}`\n")
            trails += [
                f"*{name}*: " + " → ".join(map(describe_step, answer.trail)) + "\n"
                for name, answer in answers.items()
            ]
    print(f"{len(asked)} questions, seed {given.seed}, encoder {given.encoder}\n")
    print(f"| question | in the graph | gold | {' | '.join(METHODS)} |\n|---|---|---|{'---|' * len(METHODS)}")
    print("\n".join(rows))
    print(f"| right | | | {' | '.join(f'{count} of {len(asked)}' for count in right.values())} |")
    if given.trails:
        print("\n" + "\n".join(trails))


if __name__ == "__main__":
    main()
