"""The model's own final answer beside that of our reader, over each question's gold documents alone.

    python benchmarks/final_answers.py                          # replies are the gold ones: what do we lose of them?
    python benchmarks/final_answers.py --small --questions 4    # SmolLM2-135M-Instruct behind a llama.cpp server

The questions are 2WikiMultihopQA's (seed 0). A question may search its own gold paragraphs only. The scripted model
takes a step for each gold triple, ends with the gold answer, and quotes a sentence with it where there is one (a
comparison has none): a method that scores less than 1 has lost an answer that the model gave. ``final=model`` is
what the methods' papers do; ``cited`` and ``span`` are ours, where a reader answers from the passages.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import clew
from clew.core.errors import ClewError
from clew.core.protocols import Completion, LanguageModel, Prompt
from clew.core.text import fold_name, sentence_spans
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope, Usage
from clew.evaluate.corpora import pool_paragraphs
from clew.evaluate.datasets import load_dataset
from clew.evaluate.examples import Example
from clew.evaluate.metrics.answers import exact_match, token_f1
from clew.evaluate.setup import EvaluationSettings, fill_store
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.models.wrappers import Budget
from llama_server import MISSING, llama_server, model_file
from small_model import ShortReplies

METHODS = {
    "selfask": "k=3, rounds=5",
    "react": "k=3",
    "ircot": "each=3",
    "iterretgen": "k=4",
    "dsp": "k=3",
}
FINALS = {"final=model": "final=model", "cited": "reader=cited", "span": "reader=span"}


@dataclass
class GoldReplies:
    """Replies as a model would give them that knows a question's gold triples and answer."""

    example: Example
    name: str = "gold"
    steps: int = 0

    def begin(self, example: Example) -> None:
        """Answer another question from now on."""
        self.example, self.steps = example, 0

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order."""
        return [Completion(self._reply(prompt), Usage(calls=1), self.name) for prompt in prompts]

    def _reply(self, prompt: Prompt) -> str:
        end = prompt.user[-400:]
        if prompt.schema is not None:
            return self._quote(prompt.user)
        if "create a final answer" in prompt.user:
            return self.example.answers[0]
        if "step by step" in prompt.system + prompt.user:
            return f"So the answer is: {self.example.answers[0]}."
        hop = self.example.chain[self.steps] if self.steps < len(self.example.chain) else None
        self.steps += 1
        if "Thought" in end.rpartition("\n")[2]:
            if hop is None:
                return f"I know enough.\nAction: Finish[{self.example.answers[0]}]"
            return f"I look for the {hop[1]} of {hop[0]}.\nAction: Search[{hop[1]} of {hop[0]}]"
        if end.endswith("Summary:"):
            before = self.example.chain[: self.steps - 1]
            facts = " ".join(f"The {relation} of {head} is {tail}." for head, relation, tail in before[-1:])
            return (
                f"{facts or 'Nothing is known.'}\nSearch query: {f'{hop[1]} of {hop[0]}' if hop else 'none'}"
            )
        if end.endswith("Reasoning:") or "Reasoning:" in end:
            answer = f"So the answer is: {self.example.answers[0]}."
            return f"The {hop[1]} of {hop[0]} is {hop[2]}." if hop else answer
        if hop is None:
            return f"So the final answer is: {self.example.answers[0]}"
        return f"Follow up: What is the {hop[1]} of {hop[0]}?"

    def _quote(self, text: str) -> str:
        """Return the reader's JSON: the gold answer, or that of a follow-up question, with a sentence that has it."""
        question = text.rpartition("Question: ")[2]
        answer = next(
            (
                tail
                for head, relation, tail in self.example.chain
                if f"What is the {relation} of {head}?" in question
            ),
            self.example.answers[0],
        )
        sources = text.partition("[1] ")[2].split("\n\n[")
        for number, source in enumerate(sources, 1):
            passage = source.partition("\n")[2].partition("\n\n")[0]
            for start, end in sentence_spans(passage):
                if fold_name(answer) in fold_name(passage[start:end]):
                    quote = {"source": number, "text": passage[start:end]}
                    return json.dumps({"quotes": [quote], "answer": answer, "abstain": False})
        first = sources[0].partition("\n")[2].partition("\n\n")[0]
        spans = sentence_spans(first)
        quotes = [{"source": 1, "text": first[slice(*spans[0])]}] if spans else []
        return json.dumps({"quotes": quotes, "answer": answer, "abstain": False})


def gold_titles(example: Example) -> frozenset[str]:
    return frozenset(piece.title for piece in example.pieces)


def keep_gold(examples: Iterable[Example]) -> list[Example]:
    """Return the questions with their gold paragraphs alone."""
    return [
        replace(
            example,
            corpus=tuple(
                paragraph for paragraph in example.corpus if paragraph.title in gold_titles(example)
            ),
        )
        for example in examples
    ]


@dataclass
class Score:
    """Sums over the questions of a method: exact matches, F1, abstentions, seconds."""

    exact: float = 0.0
    f1: float = 0.0
    abstained: int = 0
    errors: int = 0
    seconds: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="ask SmolLM2 instead of the gold script")
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--tokens", type=int, default=96, help="of a reply of SmolLM2, at most")
    parser.add_argument("--show", action="store_true", help="print every answer that is not exact")
    given = parser.parse_args()
    if given.small and model_file() is None:
        sys.exit(MISSING)
    every = list(load_dataset("2wikimultihopqa", given.data / "2wikimultihopqa/train500.jsonl").examples())
    asked = keep_gold(random.Random(given.seed).sample(every, given.questions))
    finals = {name: FINALS[name] for name in (("final=model", "cited") if given.small else FINALS)}
    scores: dict[str, dict[str, Score]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        clew.open(Path(folder) / "kb", create=True) as base,
        llama_server(given.context) if given.small else nullcontext("") as llm,
    ):
        encoder = base.encoding.encoder()
        fill_store(base.store, pool_paragraphs(asked), EvaluationSettings(encoder=encoder))
        documents = {document.title: document.key for document in base.store.documents()}
        script = GoldReplies(asked[0])
        for name, options in METHODS.items():
            for final, option in finals.items():
                model: LanguageModel = script
                if llm:
                    model = ShortReplies(create_language_model(llm, budget=Budget(calls=1000)), given.tokens)
                recipe = f"{name}(retriever=search, {options}, {option})"
                method = registry.build_method(recipe, base.store, llm=model, encoder=encoder)
                score = scores.setdefault(name, {})[final] = Score()
                for example in asked:
                    script.begin(example)
                    keys = frozenset(documents[title] for title in gold_titles(example) if title in documents)
                    started = time.perf_counter()
                    try:
                        answer = method.answer(
                            Question(example.question, Scope(documents=keys)), TrailRecorder()
                        )
                    except ClewError as error:
                        score.errors += 1
                        print(f"{name} {final}: {example.question} {type(error).__name__}: {error}")
                        continue
                    score.seconds += time.perf_counter() - started
                    text = "" if answer.abstained else answer.text
                    score.exact += max(exact_match(text, gold) for gold in example.answers)
                    score.f1 += max(token_f1(text, gold) for gold in example.answers)
                    score.abstained += answer.abstained
                    if given.show and not any(exact_match(text, gold) for gold in example.answers):
                        print(f"{name} {final}: {example.question} {text!r}, gold {example.answers[0]!r}")
    model_name = "SmolLM2-135M-Instruct" if given.small else "the gold script"
    print(f"{len(asked)} questions of 2WikiMultihopQA, seed {given.seed}, gold documents alone, {model_name}")
    print(f"| method | {' | '.join(f'{final}: EM, F1, abstained' for final in finals)} |")
    print("|---" * (len(finals) + 1) + "|")
    for name, by_final in scores.items():
        cells = [
            f"{score.exact / len(asked):.3f}, {score.f1 / len(asked):.3f}, {score.abstained}"
            for score in by_final.values()
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    seconds = [f"{name} {sum(each.seconds for each in s.values()):.0f} s" for name, s in scores.items()]
    print("; ".join(seconds))


if __name__ == "__main__":
    main()
