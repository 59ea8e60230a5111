"""Gold chains over an oracle graph: how much of a question is filled right where the graph holds all of it.

    python benchmarks/oracle_chains.py --data ../shared/data

The gold triples of 2WikiMultihopQA's questions are merged with the film graph of MetaQA, so that linking has
something to miss. Each question's chain is its gold triples with the tails masked; it is answered by the method
``chain`` from the graph alone, with no model. Then again with other words for every relation, and with names spelled
otherwise.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Question
from clew.core.values import same_value
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.metrics.answers import exact_match
from clew.knowledge_base import registry
from clew.papers.gold_hops import gold_chain
from clew.triples.language.chain import Chain, Term, Triple
from perturbed import CHANGES

Change = Callable[[Triple], Triple]
PARAPHRASES = Path(__file__).parent / "data" / "relation_paraphrases.tsv"


def graph_of(
    examples: list[Example],
    films: Path,
    folder: Path,
    held: Callable[[tuple[str, ...]], bool],
) -> Path:
    """Write the film graph with the gold triples of the questions that are ``held``, as one file of triples."""
    path = folder / "oracle.tsv"
    with path.open("w", encoding="utf-8") as out:
        out.write(films.read_text(encoding="utf-8").rstrip("\n") + "\n")
        for example in examples:
            out.writelines("\t".join(triple) + "\n" for triple in example.chain if held(triple))
    return path


def change_triples(chain: Chain, change: Change) -> Chain:
    return Chain(tuple(change(triple) for triple in chain.triples), chain.answer)


def paraphrases() -> list[dict[str, str]]:
    """Return the first other words for each relation, and the second ones."""
    lines = PARAPHRASES.read_text(encoding="utf-8").splitlines()
    others: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        if not line.startswith("#"):
            relation, _, words = line.partition("\t")
            others[relation].append(words)
    return [{relation: words[number] for relation, words in others.items()} for number in range(2)]


def reword(words: Mapping[str, str], triple: Triple) -> Triple:
    """Return a triple with another word for its relation."""
    return Triple(triple.head, words[triple.relation], triple.tail)


def settings() -> Iterator[tuple[str, Change]]:
    """Yield how chains are changed: not at all, other words for relations, other spellings of names."""
    for number, words in enumerate(paraphrases(), 1):
        yield (
            f"relation words {number}",
            partial(reword, words),
        )
    for name, (perturb, fits) in CHANGES.items():
        yield name if name == "as given" else f"names: {name}", spell_changes(perturb, fits, random.Random(0))


def spell_changes(
    perturb: Callable[[str, random.Random], str], fits: Callable[[str], bool], draw: random.Random
) -> Change:
    def change(triple: Triple) -> Triple:
        if triple.head.unknowns or not fits(triple.head.text):
            return triple
        return Triple(Term(perturb(triple.head.text, draw)), triple.relation, triple.tail)

    return change


def options(description: str | None) -> argparse.ArgumentParser:
    """Return what these benchmarks are told: where the data lies, how many questions, which encoder."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int)
    parser.add_argument(
        "--encoder", default=None, help="default: the one that comes with clew; none: lexical"
    )
    return parser


@contextmanager
def oracle(
    given: argparse.Namespace, held: Callable[[tuple[str, ...]], bool] = lambda triple: True
) -> Iterator[tuple[list[Example], Any]]:
    """Give the questions, and the method ``chain`` over a graph with those of their triples that are ``held``."""
    examples = list(load_dataset("2wikimultihopqa", given.data / "2wikimultihopqa/train500.jsonl").examples())
    examples = examples[: given.limit]
    with tempfile.TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        if given.encoder:
            base.encoding.set(None if given.encoder == "none" else given.encoder)
        films = given.data / "metaqa/graph.tsv"
        base.graphs.add(graph_of(examples, films, Path(folder), held), name="oracle")
        yield (
            examples,
            registry.build_method("chain(sources=kg)", base.store, encoder=base.encoding.encoder()),
        )


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--verbose", action="store_true", help="print what was not filled right")
    given = parser.parse_args()
    with oracle(given) as (examples, method):
        types = sorted({example.question_type for example in examples})
        print(f"{len(examples)} questions; unknowns: first value right / a value right; EM by type")
        print(
            "| chains | unknowns | first | any | "
            + " | ".join(f"EM {item}" for item in types)
            + " | EM | ms |"
        )
        print("|" + "---|" * (6 + len(types)))
        for name, change in settings():
            print(row(name, change, examples, method, given.verbose), flush=True)


def row(name: str, change: Change, examples: list[Example], method: object, verbose: bool) -> str:
    """Answer every question and return a row of the table."""
    unknowns = first = anywhere = 0
    right: dict[str, list[float]] = defaultdict(list)
    started = time.perf_counter()
    for example in examples:
        chain, gold = gold_chain(example)
        asked = Question(example.question, chain=str(change_triples(chain, change)))
        answer = method.answer(asked, TrailRecorder())  # type: ignore[attr-defined]
        values = {
            int(step.detail["unknown"].removeprefix("#")): step.detail.get("values", [])
            for step in answer.trail
            if step.name == "fill"
        }
        for number, tail in gold.items():
            result = values.get(number, [])
            unknowns += 1
            first += bool(result) and same_value(result[0], tail)
            anywhere += any(same_value(item, tail) for item in result)
        equal = max((exact_match(answer.text, item) for item in example.answers), default=0.0)
        right[example.question_type].append(equal)
        if verbose and not equal:
            print(f"  {example.question_type}: {example.question} | {asked.chain}")
            print(f"      gold {gold} | {values} | {answer.text}")
    seconds = time.perf_counter() - started
    types = sorted(right)
    every = [item for some in right.values() for item in some]
    cells = [name, str(unknowns), f"{first / unknowns:.3f}", f"{anywhere / unknowns:.3f}"]
    cells += [f"{sum(right[item]) / len(right[item]):.3f} ({len(right[item])})" for item in types]
    cells += [f"{sum(every) / len(every):.3f}", f"{1000 * seconds / len(examples):.0f}"]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
