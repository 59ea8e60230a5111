"""Every method that asks a model, with a real and very small one: SmolLM2-135M-Instruct in a llama.cpp server.

    PYTHONPATH=src python benchmarks/small_model.py                        # 20 questions with each method: hours
    PYTHONPATH=src python benchmarks/small_model.py --questions 2 --context 2048 --only ircot,dsp

The questions are the first of the shared 2WikiMultihopQA; the base has their paragraphs, pooled, and a graph of their
gold triples. Checked for each answer: no exception, every quote verbatim in its source, the budget of calls kept, and
our sum of tokens equal to the server's own. How many answers are right is printed too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import clew
from clew.core.errors import ClewError
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Question
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.metrics.answers import exact_match
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.models.wrappers import Budget
from llama_server import MISSING, llama_server, model_file

#: Few passages and short loops: every prompt is read by one thread of one processor.
METHODS = {
    "chain": "chain(k=3, values=1, tries=1)",
    "focus": "focus",
    "drill": "read(retriever=drill(words=24), k=5)",
    "kgp": "kgp(guide=generated, seeds=3, branch=2, budget=6)",
    "selfask": "selfask(k=3, rounds=2)",
    "react": "react(k=2, rounds=3)",
    "ircot": "ircot(each=2, rounds=2)",
    "iterretgen": "iterretgen(k=3)",
    "dsp": "dsp(k=2, hops=2)",
    "cited": "read(retriever=search, k=3, reader=cited)",
}
CALLS = 25


@dataclass
class Row:
    """What happened to the questions of a method."""

    answered: int = 0
    abstained: int = 0
    right: int = 0
    fallbacks: int = 0
    left_out: int = 0
    calls: int = 0
    seconds: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        mean = sum(self.seconds) / max(len(self.seconds), 1)
        cells = (self.answered, self.abstained, self.right, self.fallbacks, self.left_out, self.calls)
        return " | ".join([*map(str, cells), f"{mean:.0f}", str(len(self.problems))])


def server_tokens(llm: str) -> tuple[int, int]:
    """Return the tokens that the server has read, from its cache or not, and written."""
    address = llm.partition("/v1")[0]
    counters: dict[str, int] = {}
    for line in urllib.request.urlopen(f"{address}/metrics").read().decode().splitlines():
        name, _, value = line.removeprefix("llamacpp:").partition(" ")
        if name.endswith("_total") and value.isdigit():
            counters[name] = int(value)
    read = counters["prompt_tokens_total"] + counters["prompt_tokens_cached_total"]
    return read, counters["tokens_predicted_total"]


def check_answer(answer: Answer, used: Sequence[int], counted: Sequence[int]) -> list[str]:
    """Return what is wrong with an answer; ``used`` and ``counted`` are tokens in and out, the server's and ours."""
    texts = {hit.node.id: hit.node.text for hit in (*answer.context, *answer.evidence)}
    problems = [
        f"a quote that is not in its source: {quote.text!r}"
        for quote in answer.quotes
        if quote.text not in texts.get(quote.node, "")
    ]
    if answer.usage.calls > CALLS:
        problems.append(f"{answer.usage.calls} calls")
    if list(used) != list(counted):
        problems.append(f"tokens: the server's {used}, ours {counted}")
    return problems


def write_graph(examples: Sequence[Example], folder: Path) -> Path:
    path = folder / "gold.tsv"
    lines = {"\t".join(triple) for example in examples for triple in example.chain}
    path.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    return path


def run_method(
    recipe: str, base: clew.KnowledgeBase, llm: str, examples: Sequence[Example], verbose: bool
) -> Row:
    """Answer every question with a method."""
    row = Row()
    encoder = base.encoding.encoder()
    for example in examples:
        budget = Budget(calls=CALLS)
        model = create_language_model(llm, budget=budget)
        method = registry.build_method(recipe, base.store, llm=model, encoder=encoder)
        before, started = server_tokens(llm), time.perf_counter()
        try:
            answer = method.answer(Question(example.question), TrailRecorder())
        except ClewError as error:
            row.problems.append(f"{type(error).__name__}: {error}")
            continue
        row.seconds.append(time.perf_counter() - started)
        used = [after - start for after, start in zip(server_tokens(llm), before, strict=True)]
        row.problems += check_answer(answer, used, (budget.spent.tokens_in, budget.spent.tokens_out))
        row.answered += not answer.abstained
        row.abstained += answer.abstained
        row.right += any(exact_match(answer.text, gold) for gold in example.answers)
        row.fallbacks += bool(answer.fallbacks)
        row.left_out += answer.usage.left_out
        row.calls += answer.usage.calls
        if verbose:
            print(
                f"  {example.question} | gold {example.answers[0]} | {answer.text!r}",
                file=sys.stderr,
                flush=True,
            )
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--only", default="", help="some of the methods, joined by commas")
    parser.add_argument("--verbose", action="store_true", help="print every answer")
    given = parser.parse_args()
    if model_file() is None:
        sys.exit(MISSING)
    names = given.only.split(",") if given.only else list(METHODS)
    every = list(load_dataset("2wikimultihopqa", given.data / "2wikimultihopqa/train500.jsonl").examples())
    examples = every[: given.questions]
    with (
        tempfile.TemporaryDirectory() as folder,
        clew.open(Path(folder) / "kb", create=True) as base,
        llama_server(given.context) as llm,
    ):
        settings = EvaluationSettings(encoder=base.encoding.encoder())
        fill_store(base.store, pool_paragraphs(every[:20]), settings)
        base.graphs.add(write_graph(every[:20], Path(folder)), name="gold")
        print(f"{len(examples)} questions, SmolLM2-135M-Instruct Q4_1, a context of {given.context} tokens")
        print("| method | answered | abstained | right | fallbacks | left out | calls | s | problems |")
        print("|---|---|---|---|---|---|---|---|---|")
        problems = []
        for name in names:
            row = run_method(METHODS[name], base, llm, examples, given.verbose)
            print(f"| {name} | {row} |", flush=True)
            problems += [f"{name}: {problem}" for problem in row.problems]
    print("\n".join(problems))


if __name__ == "__main__":
    main()
