"""Every method that asks a model, with a real and very small one: SmolLM2-135M-Instruct in a llama.cpp server.

    PYTHONPATH=src python benchmarks/small_model.py --out rows.jsonl                    # 20 questions, ten methods
    PYTHONPATH=src python benchmarks/small_model.py --out rows.jsonl --minutes 15       # goes on where it stopped
    PYTHONPATH=src python benchmarks/small_model.py --out rows.jsonl --table            # the table alone
    PYTHONPATH=src python benchmarks/small_model.py --long --context 4096               # more text than fits

The questions are the first of the shared 2WikiMultihopQA; the base has their paragraphs, pooled, and a graph of their
gold triples. Checked for each answer: no exception, every quote verbatim in its source, the budget of calls kept, our
sum of tokens equal to the server's own, and the roles asked that the method cannot do without. How many answers are
right is printed too. Replies have at most ``--tokens`` tokens. Each question is a line of the file as soon as it is
answered.

``--long`` asks a question over the archive of ``tests/small_bases.py``, whose prompts are longer than contexts of
2,048 and 4,096 tokens (``--context``), of chain, focus and drill with the options they have by default: does each
fit, or what does it say? ``--batches 4`` asks the cited reader four questions over that archive, one by one and four
at a time, each twice, always of a new server with four slots, and prints the seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import clew
from chain_bases import WORLD
from clew.core.errors import ClewError
from clew.core.protocols import Completion, LanguageModel, Prompt, context_of
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
from small_bases import fill_archive

#: Few passages and short loops: every prompt is read by one thread of one processor.
METHODS = {
    "chain": "chain(k=3, values=1, tries=1, shots=5)",
    "focus": "focus(k=4)",
    "drill": "read(retriever=drill(words=24), k=5)",
    "kgp": "kgp(guide=generated, seeds=2, branch=2, budget=4, reader=cited)",
    "selfask": "selfask(k=3, rounds=2)",
    "react": "react(k=2, rounds=3)",
    "ircot": "ircot(each=2, rounds=2)",
    "iterretgen": "iterretgen(k=3)",
    "dsp": "dsp(k=2, hops=2)",
    "cited": "read(retriever=search, k=3, reader=cited)",
}
#: With the options they have by default, for the archive.
LONG = {"chain": "chain", "focus": "focus", "drill": "read(retriever=drill, k=30)"}
LONG_QUESTION = "In which town was the director of Low Water born?"
#: The role that a method asks whatever the question is: without it the method was not tried.
ASKED = {"drill": "select", "kgp": "guide", "cited": "read"}
CALLS = 25
#: The questions whose paragraphs and gold triples are in the base.
POOLED = 20


@dataclass
class ShortReplies:
    """A model whose replies have at most ``tokens`` tokens. ``roles`` counts what it was asked for,
    ``longest`` is the length of the longest prompt as the server counted it."""

    model: LanguageModel
    tokens: int
    roles: Counter[str] = field(default_factory=Counter)
    longest: int = 0

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    @property
    def context(self) -> int | None:
        """The context of the model inside, in tokens."""
        return context_of(self.model)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        self.roles.update(prompt.role for prompt in prompts)
        shorter = [replace(prompt, max_tokens=min(prompt.max_tokens, self.tokens)) for prompt in prompts]
        completions = self.model.complete(shorter)
        self.longest = max([self.longest, *(completion.usage.tokens_in for completion in completions)])
        return completions


def server_tokens(llm: str) -> tuple[int, int]:
    """Return the tokens that the server has read, from its cache or not, and written."""
    address = llm.partition("/v1")[0]
    counters: dict[str, int] = {}
    for line in urllib.request.urlopen(f"{address}/metrics").read().decode().splitlines():
        name, _, value = line.removeprefix("llamacpp:").partition(" ")
        if name.endswith("_total") and not line.startswith("#"):
            counters[name] = int(float(value))
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


def run_question(
    name: str, base: clew.KnowledgeBase, llm: str, example: Example, tokens: int
) -> dict[str, Any]:
    """Answer a question with a method, and return the row."""
    budget = Budget(calls=CALLS)
    model = ShortReplies(create_language_model(llm, budget=budget), tokens)
    method = registry.build_method(METHODS[name], base.store, llm=model, encoder=base.encoding.encoder())
    before, started = server_tokens(llm), time.perf_counter()
    row: dict[str, Any] = {"method": name, "question": example.question, "gold": example.answers[0]}
    try:
        answer = method.answer(Question(example.question), TrailRecorder())
    except ClewError as error:
        return row | {"problems": [f"{type(error).__name__}: {error}"]}
    row["seconds"] = round(time.perf_counter() - started, 1)
    used = [after - start for after, start in zip(server_tokens(llm), before, strict=True)]
    problems = check_answer(answer, used, (budget.spent.tokens_in, budget.spent.tokens_out))
    if ASKED.get(name) not in (None, *model.roles):
        problems.append(f"the role '{ASKED[name]}' was not asked")
    return row | {
        "text": answer.text,
        "abstained": answer.abstained,
        "right": any(exact_match(answer.text, gold) for gold in example.answers),
        "reader": answer.reader,
        "fallbacks": list(answer.fallbacks),
        "left_out": answer.usage.left_out,
        "calls": dict(model.roles),
        "tokens": used,
        "quotes": len(answer.quotes),
        "rejected": len(answer.rejected_quotes),
        "problems": problems,
    }


def ask_archive(context: int, most: int, names: Sequence[str], tokens: int) -> None:
    """Print for each method what was sent of the archive in at most so many calls, or what the error says."""
    print("| context | method | calls | longest prompt | left out | s | outcome |\n" + "|---" * 7 + "|")
    with (
        tempfile.TemporaryDirectory() as folder,
        clew.open(Path(folder) / "kb", create=True) as base,
    ):
        fill_archive(base.store)
        with llama_server(context) as llm:
            for name in names:
                model = ShortReplies(create_language_model(llm, budget=Budget(calls=most)), tokens)
                method = registry.build_method(LONG[name], base.store, llm=model)
                started = time.perf_counter()
                try:
                    answer = method.answer(Question(LONG_QUESTION), TrailRecorder())
                    outcome = "abstained" if answer.abstained else f"answered: {answer.text[:60]}"
                    outcome += " (calls spent)" * bool(answer.stop_reason)
                    left_out = answer.usage.left_out
                except ClewError as error:
                    outcome, left_out = f"{type(error).__name__}: {error}", 0
                calls, seconds = sum(model.roles.values()), time.perf_counter() - started
                cells = (
                    f"{context:,}",
                    name,
                    calls,
                    f"{model.longest:,}",
                    left_out,
                    f"{seconds:.0f}",
                    outcome,
                )
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def time_batches(slots: int, tokens: int) -> None:
    """Print the seconds that a server takes for four questions one by one, and ``slots`` at a time."""
    questions = [
        Question(text.format(film=film))
        for film, *_ in WORLD[:2]
        for text in ("Who directed {film}?", "For which studio was {film} made?")
    ]
    seconds: dict[int, list[float]] = {1: [], slots: []}
    busy: dict[int, list[float]] = {1: [], slots: []}
    with (
        tempfile.TemporaryDirectory() as folder,
        clew.open(Path(folder) / "kb", create=True) as base,
    ):
        fill_archive(base.store)
        for at_once in (1, slots, slots, 1):
            # A new server, so that none has read a prompt before.
            processor = used_by_children()
            with llama_server(2048, slots) as llm, ThreadPoolExecutor(at_once) as threads:
                model = ShortReplies(create_language_model(f"{llm}?parallel={slots}"), tokens)
                method = registry.build_method(
                    "read(retriever=bm25, k=2, reader=cited(otherwise=none))", base.store, llm=model
                )
                model.complete([Prompt("Say hello.", max_tokens=4)])  # nothing is timed cold
                started = time.perf_counter()
                answers = list(
                    threads.map(lambda asked, method=method: method.answer(asked, TrailRecorder()), questions)
                )
                seconds[at_once].append(time.perf_counter() - started)
                read = sum(answer.usage.tokens_in for answer in answers)
                written = sum(answer.usage.tokens_out for answer in answers)
            busy[at_once].append(used_by_children() - processor)
            print(
                f"{at_once} at once: {seconds[at_once][-1]:.1f} s, processor {busy[at_once][-1]:.1f} s, "
                f"{read:,} tokens read, {written:,} written",
                flush=True,
            )
    for name, spent in (("time", seconds), ("processor time", busy)):
        print(f"{slots} at once take {sum(spent[slots]) / sum(spent[1]):.2f} of the {name}")


def used_by_children() -> float:
    """Return the processor seconds of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def print_table(rows: Iterable[dict[str, Any]]) -> None:
    """Print a line for each method, and the problems."""
    by_method: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    print(
        "| method | questions | answered | abstained | right | fell back | quotes | rejected | left out | calls "
        "| tokens read, written | s | problems |"
    )
    print("|---" * 13 + "|")
    for name in filter(by_method.__contains__, METHODS):
        group = by_method[name]
        done = [row for row in group if "text" in row]
        cells = [
            len(group),
            sum(not row["abstained"] for row in done),
            sum(row["abstained"] for row in done),
            sum(row["right"] for row in done),
            sum(bool(row["fallbacks"]) for row in done),
            *(sum(row[key] for row in done) for key in ("quotes", "rejected", "left_out")),
            sum(sum(row["calls"].values()) for row in done),
            ", ".join(f"{sum(row['tokens'][place] for row in done):,}" for place in (0, 1)),
            f"{sum(row['seconds'] for row in done) / max(len(done), 1):.0f}",
            sum(len(row["problems"]) for row in group),
        ]
        print(f"| {name} | {' | '.join(map(str, cells))} |")
    for group in by_method.values():
        for row in group:
            for problem in row["problems"]:
                print(f"{row['method']}: {row['question']} {problem}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, help="a line for each method and question")
    parser.add_argument(
        "--long", action="store_true", help="more text than fits, contexts of 2,048 and 4,096"
    )
    parser.add_argument("--calls", type=int, default=CALLS, help="of a method over the archive, at most")
    parser.add_argument("--batches", type=int, metavar="SLOTS", help="time so many questions at once")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--tokens", type=int, default=128, help="of a reply, at most")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no question after so many")
    parser.add_argument("--only", default="", help="some of the methods, joined by commas")
    parser.add_argument("--table", action="store_true", help="print the table of the file and ask nothing")
    given = parser.parse_args()
    if model_file() is None:
        sys.exit(MISSING)
    if given.long:
        ask_archive(
            given.context, given.calls, given.only.split(",") if given.only else list(LONG), given.tokens
        )
        return
    if given.batches:
        time_batches(given.batches, given.tokens)
        return
    if given.out is None:
        parser.error("--out FILE is needed")
    lines = given.out.read_text(encoding="utf-8").splitlines() if given.out.exists() else []
    rows = [json.loads(line) for line in lines]
    if given.table:
        print_table(rows)
        return
    answered = {(row["method"], row["question"]) for row in rows}
    names = given.only.split(",") if given.only else list(METHODS)
    every = list(load_dataset("2wikimultihopqa", given.data / "2wikimultihopqa/train500.jsonl").examples())
    # Question by question, so that a run that was stopped has as many of each method.
    todo = [
        (name, example)
        for example in every[: given.questions]
        for name in names
        if (name, example.question) not in answered
    ]
    until = time.monotonic() + 60 * given.minutes
    with (
        tempfile.TemporaryDirectory() as folder,
        clew.open(Path(folder) / "kb", create=True) as base,
        llama_server(given.context) as llm,
        given.out.open("a", encoding="utf-8") as out,
    ):
        settings = EvaluationSettings(encoder=base.encoding.encoder())
        fill_store(base.store, pool_paragraphs(every[:POOLED]), settings)
        base.graphs.add(write_graph(every[:POOLED], Path(folder)), name="gold")
        for name, example in todo:
            if time.monotonic() > until:
                break
            row = run_question(name, base, llm, example, given.tokens)
            rows.append(row)
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()
    print(f"SmolLM2-135M-Instruct Q4_1, a context of {given.context} tokens, replies of {given.tokens}")
    print_table(rows)


if __name__ == "__main__":
    main()
