"""How often is a language model called, and what is it shown? The default method with a scripted model in its place.

The model knows the gold passages of each question. It quotes those that it is shown, and answers when it has seen all
of them; until then it says what is missing: the first gold passage that it has not seen, by its title and 35 % of its
words (*says what is missing*), or nothing (*only reads*). 100 questions of each set over its pooled paragraphs, no
encoder. *Gold* is the share of gold passages shown in all calls together; *first ten* that of the walk's first ten.

    python benchmarks/reading_calls.py
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from clew.core.protocols import Completion, Prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Node, Question, Scope, Usage
from clew.evaluate.corpora import GoldEvidence, pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.evaluate.statistics import bootstrap_interval
from clew.knowledge_base import registry
from clew.store.store import Store

DATA = Path(__file__).parents[2] / "shared" / "data"
SETS = {"hotpotqa": "train100", "musique": "train100", "2wikimultihopqa": "train500"}
QUESTIONS = 100
SHARE = 0.35


@dataclass
class Oracle:
    """A model that answers with ``answer`` once it has seen the texts of all ``gold`` passages."""

    gold: Sequence[Node]
    answer: str
    says_missing: bool
    name: str = "oracle"
    seen: set[str] = field(default_factory=set)
    tokens: list[int] = field(default_factory=list)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return a reply to each prompt."""
        return [Completion(json.dumps(self.reply(prompt)), Usage(calls=1)) for prompt in prompts]

    def reply(self, prompt: Prompt) -> dict[str, Any]:
        """Quote the gold passages that are shown."""
        self.tokens.append(len(prompt.system + prompt.user) // 4)
        shown = [node.text for node in self.gold if node.text in prompt.user]
        self.seen.update(shown)
        left = [node for node in self.gold if node.text not in self.seen]
        quotes = [{"source": 0, "text": text} for text in shown]
        if not left or not self.says_missing:
            return {"quotes": quotes, "why": "", "answer": self.answer, "missing": ""}
        words = left[0].text.split()
        some = random.Random(left[0].id).sample(words, max(1, round(SHARE * len(words))))
        missing = " ".join([left[0].document_name.rpartition(".")[0], *some])
        return {"quotes": quotes, "why": "", "answer": "", "missing": missing}


def gold_passages(base: Store, example: Example) -> list[Node]:
    """Return the gold passages of a question, in the order of its evidence."""
    snapshot, gold = base.snapshot(), GoldEvidence(example)
    titles = {piece.title for piece in example.pieces}
    keys = frozenset(entry.key for entry in base.documents() if entry.title in titles)
    rows = np.flatnonzero(snapshot.mask(Scope(documents=keys), ("passage",)))
    found = [(min(pieces), node) for node in snapshot.nodes(rows) if (pieces := gold.matching_pieces(node))]
    return [node for _, node in sorted(found, key=lambda item: item[0])]


def measure(name: str, base: Store, count: int) -> Iterator[str]:
    """Yield a row for each kind of model: calls, tokens and gold passages shown, means over the questions."""
    examples = list(load_dataset(name, DATA / name / f"{SETS[name]}.jsonl").examples())[:count]
    walk = registry.build_retriever("kgp", base)
    for says_missing, label in ((False, "only reads"), (True, "says what is missing")):
        calls, most, tokens, shown, first = [], 0, [], [], []
        for example in examples:
            gold = gold_passages(base, example)
            oracle = Oracle(gold, example.answers[0], says_missing)
            method = registry.build_method("kgp(structures=no)", base, llm=oracle)
            method.answer(Question(example.question), TrailRecorder())
            ten = {hit.node.id for hit in walk.retrieve(Question(example.question), 10)}
            calls.append(len(oracle.tokens))
            most = max(most, len(oracle.tokens))
            tokens.append(sum(oracle.tokens))
            shown.append(len(oracle.seen) / len({node.text for node in gold}))
            first.append(mean(node.id in ten for node in gold))
        told, ten_told = bootstrap_interval(shown), bootstrap_interval(first)
        yield (
            f"| {name} | {label} | {len(examples)} | {mean(calls):.2f} | {most} | {mean(tokens):,.0f} "
            f"| {told.mean:.3f} [{told.low:.3f}, {told.high:.3f}] "
            f"| {ten_told.mean:.3f} [{ten_told.low:.3f}, {ten_told.high:.3f}] |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--set", action="append", choices=sorted(SETS), help="default: all")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    print("| set | model | questions | calls | most | tokens shown | gold [95 %] | first ten [95 %] |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.set or SETS:
            examples = load_dataset(name, DATA / name / f"{SETS[name]}.jsonl").examples()
            with Store.open(Path(temporary) / name, create=True) as base:
                fill_store(base, pool_paragraphs(list(examples)), EvaluationSettings())
                for row in measure(name, base, options.questions):
                    print(row, flush=True)


if __name__ == "__main__":
    main()
