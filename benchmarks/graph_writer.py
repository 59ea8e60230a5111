"""What comes of a language model that writes queries over graphs? Scripted models over questions with gold queries.

*Good* writes the gold query. *Faulty* writes it with one of twenty common faults, the same when it is told of it;
*once* makes the fault in its first reply alone. Every question is one that clew's own models are not sure of, or
would not be asked otherwise: all of them are sent to the model. *Wrong* are answers that are stated and not the gold
ones; an empty set is possible, not stated.

    python benchmarks/graph_writer.py --domain airline --domain genes --questions 60
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.core.protocols import Completion, Prompt
from clew.core.trail import TrailRecorder
from clew.core.types import Answer, Question, Usage
from clew.knowledge_base import registry
from clew.methods.graph_questions import GraphQuestions
from clew.store.store import Store

DATA = Path(__file__).parents[2] / "shared" / "data" / "plans"
DOMAINS = ("airline", "genes", "hospital", "theatre")
QUESTIONS = 60


def change_first(pattern: str, new: str) -> Callable[[dict[str, Any]], str]:
    """Return a fault that replaces the first match of a pattern in the statements."""

    def fault(fields: dict[str, Any]) -> str:
        text = re.sub(pattern, new, "\n".join(fields["statements"]), count=1)
        return json.dumps(fields | {"statements": text.split("\n")})

    return fault


def change(**fields: Any) -> Callable[[dict[str, Any]], str]:
    """Return a fault that sets keys of the reply."""
    return lambda right: json.dumps(right | fields)


FAULTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "a letter of a relation left out": change_first(r"(>> \w)\w", r"\1"),
    "another relation": change_first(r">> [^>#]+? >>", ">> is connected with >>"),
    "a relation with underscores": change_first(r"(>> \w+) (\w+)", r"\1_\2"),
    "a letter of a name left out": change_first(r"(>> \"?[^\W\d_]{2})\w([^>#]*)$", r"\1\2"),
    "a name in small letters": lambda fields: json.dumps(fields).lower(),
    "turned round": change_first(r"^(#\d+|[^#>\n]+) >> ([^>\n]+) >> (#\d+|[^#>\n]+)$", r"\3 >> \2 >> \1"),
    "the last statement left out": lambda fields: json.dumps(
        fields | {"statements": fields["statements"][:-1] or fields["statements"]}
    ),
    "a number left out": lambda fields: json.dumps(
        fields | {"statements": [each for each in fields["statements"] if not re.search(r"[=<>] ?\d", each)]}
    ),
    "a list for all": change(operation="list"),
    "a count for all": change(operation="count"),
    "another word for the operation": change(operation="count of nodes"),
    "prose": lambda fields: "The query would be: " + " and ".join(fields["statements"]),
    "a fence and a lead-in": lambda fields: (
        f"Here is the query:\n\n```json\n{json.dumps(fields)}\n```\nI hope this helps!"
    ),
    "variables": lambda fields: json.dumps(fields).replace("#", "?x"),
    "Cypher": change(statements=["MATCH (a)-[:CAPTAIN]->(b) RETURN b"]),
    "a type that is not there": lambda fields: json.dumps(
        fields | {"statements": [*fields["statements"], "#1 : individual thing"]}
    ),
    "gaps in the numbers": lambda fields: json.dumps(fields).replace("#2", "#5"),
    "the other unknown is asked for": lambda fields: json.dumps(
        fields | {"statements": [*fields["statements"], "final answer: #2"]}
    ),
    "a statement in words": lambda fields: json.dumps(
        fields | {"statements": [*fields["statements"], "the result is sorted by name"]}
    ),
    "cut off": lambda fields: json.dumps(fields)[: len(json.dumps(fields)) // 2],
}


@dataclass
class Script:
    """A model that gives its ``replies`` in turn, the last one again and again."""

    replies: Sequence[str]
    name: str = "script"
    asked: list[str] = field(default_factory=list)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return a reply to each prompt."""
        self.asked += [prompt.user for prompt in prompts]
        place = min(len(self.asked), len(self.replies)) - 1
        return [Completion(self.replies[place], Usage(calls=1)) for _ in prompts]


def gold_reply(row: dict[str, Any]) -> dict[str, Any]:
    """Return the query of a question as the prompt wants it."""
    statements = [part.strip() for part in row["triples"].split(";")]
    statements = [part for part in statements if part and not part.startswith("final answer")]
    return {"statements": statements, "operation": row["operation"], "property": row.get("property", "")}


def judge(answer: Answer | None, row: dict[str, Any]) -> str:
    """Return whether an answer is the gold one: right, wrong, possible or refused."""
    if answer is None:
        return "refused"
    said = {value.replace(",", "").casefold() for value in answer.values}
    gold = {str(value).replace(",", "").casefold() for value in row["answers"]}
    weighed = answer.weigh()
    if weighed.way == "perhaps":
        return "possible"
    return "right" if said == gold else "wrong"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domain", action="append", help=f"default: {', '.join(DOMAINS)}")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of each domain")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="show each wrong answer")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    counts: dict[str, Counter[str]] = {}
    calls: Counter[str] = Counter()
    for domain in options.domain or DOMAINS:
        rows = [
            json.loads(line) for line in (DATA / domain / "questions.jsonl").read_text("utf-8").splitlines()
        ]
        rows = [row for row in rows if row["operation"] != "none"]
        rows = random.Random(options.seed).sample(rows, min(options.questions, len(rows)))
        with tempfile.TemporaryDirectory() as folder:
            tables = ["--nodes", f"{DATA / domain}/nodes.csv", "--edges", f"{DATA / domain}/edges.csv"]
            command = [
                str(Path(sys.executable).with_name("clew")),
                "graph",
                "add",
                *tables,
                "--name",
                domain,
                "--kb",
                folder,
            ]
            subprocess.run(command, check=True, capture_output=True)
            with Store.open(Path(folder)) as base:
                for place, row in enumerate(rows):
                    ask_all(base, row, place, counts, calls, options.list)
    print("| model | questions | calls | right | wrong | possible | refused |\n|---|---|---|---|---|---|---|")
    for name, of in counts.items():
        shown = " | ".join(str(of[outcome]) for outcome in ("right", "wrong", "possible", "refused"))
        print(f"| {name} | {of.total()} | {calls[name] / of.total():.2f} | {shown} |")


def ask_all(
    base: Store,
    row: dict[str, Any],
    place: int,
    counts: dict[str, Counter[str]],
    calls: Counter[str],
    is_listed: bool,
) -> None:
    """Ask a question of each model, and count the outcomes and calls."""
    gold = gold_reply(row)
    fault, dress = list(FAULTS.items())[place % len(FAULTS)]
    faulty, right = dress(gold), json.dumps(gold)
    for name, replies in {
        "good": [right], "faulty": [faulty], f"faulty: {fault}": [faulty], "once": [faulty, right],
    }.items():  # fmt: skip
        script = Script(replies)
        method = registry.build_method("graph", base, llm=script)
        assert isinstance(method, GraphQuestions)
        answer = method._answer_by_model(Question(row["question"]), TrailRecorder())
        outcome = judge(answer, row)
        counts.setdefault(name, Counter())[outcome] += 1
        calls[name] += len(script.asked)
        if is_listed and outcome in ("wrong", "refused") and ":" not in name:
            problem = script.asked[-1].rpartition("Your last reply")[2][:200] if len(script.asked) > 1 else ""
            print(
                name,
                outcome,
                repr(row["question"]),
                replies[0],
                answer and answer.values[:3],
                problem,
                sep="\n  ",
            )


if __name__ == "__main__":
    main()
