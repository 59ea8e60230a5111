"""Conversations over worlds of documents, a graph and tables: what is answered where follow-ups are completed.

    python benchmarks/conversations.py ../shared/data/worlds --bases build/conversations
    python benchmarks/conversations.py ../shared/data/worlds --bases build/conversations --show brewery
    python benchmarks/conversations.py ../shared/data/worlds --fit build/follow-ups.npz       # make follow-ups

Every turn is asked as the app asks it, after the questions as they were understood and the answers that clew itself
gave; the weights are fitted to the conversations of the other worlds. Beside it the turn as it was typed, and the
question that the author says it means. Right is a stated answer that says the gold one: its numbers and three fifths
of its other words, yes or no by the first word; and a refusal where there is nothing to answer. "shown" is a possible
answer, or the first quote of a stated one, that says it. "alike" is how much of the words of the author's question
the understood one has and the reverse (F1; names and numbers count twice), "named" how many turns have all its names
and numbers.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import clew
from clew.app.answers.follow_ups import name_source
from clew.core.types import Answer
from clew.models.plan_judge import create_plan_judge
from clew.questions.closed_words import ASKING
from clew.questions.follow_up import Asked, Candidate, FollowUpReader, Turn, list_candidates

WAYS = ("right", "shown", "wrong", "clutter", "refused")
MODES = ("as typed", "clew", "standalone")
#: Words of the longest text that is an answer, and the share of the gold answer's words that it has to say.
LONGEST, SHARE = 60, 0.6
#: An answer that is the name of a file.
FILE_NAME = re.compile(r"[\w-]+\.[a-z]{2,4}\b")
#: The author's other wordings of a turn beside the conversations: a question, its answer, a follow-up, what it means.
WORDINGS = Path(__file__).parent / "data" / "follow-ups.jsonl"
#: Of the fit: how sharp the goal is, the weight of small weights, steps and their length.
SHARPNESS, RIDGE, STEPS, RATE = 10.0, 3.0, 300, 0.05

Example = tuple[str, list[Candidate], list[float]]


def weigh_words(text: str) -> dict[str, float]:
    """Return the stems of what a question names and asks, names and numbers with twice the weight."""
    asked = Asked(text)
    weights = {word.text: 0.5 for word in asked.words if word.text in ASKING}
    for phrase in asked.phrases:
        inside = [word for word in asked.words if phrase.start <= word.start < phrase.end]
        weights |= {word.stem: 1.0 if phrase.kind == "noun" else 2.0 for word in inside}
    return weights | {f"#{value.texts[0]}": 2.0 for value in asked.values}


def compare_questions(first: str, second: str) -> float:
    """Return how much of the words of two questions is the same, from 0 to 1."""
    one_side, other_side = weigh_words(first), weigh_words(second)
    shared = sum(min(weight, other_side[word]) for word, weight in one_side.items() if word in other_side)
    whole = sum(one_side.values()) + sum(other_side.values())
    return 2 * shared / whole if whole else 1.0


def says(gold: str, text: str) -> bool:
    """Return whether a text gives the gold answer."""
    core = re.sub(r"\s*\([^)]*\)", "", gold)
    polar = re.match(r"(yes|no)\b[,.; ]*", core, re.IGNORECASE)
    if polar and (word := re.match(r"\W*(yes|no)\b", text, re.IGNORECASE)):
        return word[1].casefold() == polar[1].casefold()
    wanted, given = (
        set(weigh_words(each)) - ASKING for each in (core[polar.end() :] if polar else core, text)
    )
    if not wanted or len(text.split()) > LONGEST:
        return False
    numbers = {word for word in wanted if word.startswith("#")}
    if numbers and numbers <= given and len(text.split()) <= 4:
        return True
    return numbers <= given and len(wanted & given) >= SHARE * len(wanted)


def judge(gold: str, answer: Answer) -> str:
    """Return how an answer counts."""
    quotes = [quote.text for quote in answer.quotes[:1]]
    if answer.way == "answer":
        if says(gold, answer.text):
            return "right"
        return "shown" if any(says(gold, text) for text in quotes) else "wrong"
    if gold.startswith("(nothing") or gold.startswith("Not in the sources"):
        return "right" if answer.way == "not_found" else "clutter"
    if answer.way == "not_found":
        return "refused"
    texts = [
        text for each in answer.perhaps for text in (each.text, *(quote.text for quote in each.quotes[:1]))
    ]
    return "shown" if any(says(gold, text) for text in texts) else "clutter"


def find_mentions(text: str) -> set[str]:
    """Return the numbers and the stems of names in a question."""
    return {word for word, weight in weigh_words(text).items() if weight == 2.0}


def read_unrelated(world: Path) -> Iterator[tuple[str, list[Turn]]]:
    """Yield the questions of a world that stand alone, each with another one as the turn before it."""
    lines = (world / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    for other, case in pairwise(map(json.loads, lines)):
        yield case["question"], [Turn(other["question"], other["answer"])]


def read_examples(worlds: Path) -> list[Example]:
    """Return the ways to complete each follow-up with the world it is of and how like the author's question each is.

    Each follow-up comes thrice: after the gold answers, without the last answer, and after a wrong one that was not
    stated, since the app's own answers are such. Questions that stand alone come after another one of their world.
    "" is the world of the wordings beside.
    """
    encoder, examples = create_plan_judge().encoder, []

    def add(world: str, turn: dict[str, str], turns: Sequence[Turn]) -> None:
        asks_source = FILE_NAME.match(turn["answer"]) is not None
        candidates = list_candidates(turn["question"], turns, encoder)
        likeness = [
            float(asks_source)
            if candidate.asks_source
            else 0.0
            if asks_source
            else compare_questions(candidate.question, turn["standalone"])
            for candidate in candidates
        ]
        examples.append((world, candidates, likeness))

    for file in sorted(worlds.glob("*/conversations.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            before: list[Turn] = []
            for turn in json.loads(line)["turns"]:
                if before:
                    add(file.parent.name, turn, before)
                    last = before[-1].question
                    wrong = before[-2].answer if len(before) > 1 else ""
                    for answer in dict.fromkeys(("", wrong)):
                        add(file.parent.name, turn, [*before[:-1], Turn(last, answer, is_stated=False)])
                if not FILE_NAME.match(turn["answer"]):
                    before.append(Turn(turn["standalone"], turn["answer"]))
        for question, before in read_unrelated(file.parent):
            add(file.parent.name, {"question": question, "answer": "", "standalone": question}, before)
    for line in WORDINGS.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        turn = {"question": case["follow"], "answer": "", "standalone": case["expected"][0]}
        for answer in dict.fromkeys((case["answer"], "")):
            add("", turn, [Turn(case["question"], answer)])
    return examples


def fit_weights(examples: Sequence[Example]) -> dict[str, float]:
    """Return the weights of a softmax over the candidates whose goal is how like the author's question they are."""
    names = sorted({name for _, candidates, _ in examples for each in candidates for name in each.features})
    index, parts = {name: place for place, name in enumerate(names)}, []
    for _, candidates, likeness in examples:
        features = np.zeros((len(candidates), len(names)))
        for row, candidate in enumerate(candidates):
            for name, value in candidate.features.items():
                features[row, index[name]] = value
        goal = np.exp((np.array(likeness) - max(likeness)) * SHARPNESS)
        parts.append((features, goal / goal.sum()))
    weights, mean, spread = (np.zeros(len(names)) for _ in range(3))
    for step in range(1, STEPS + 1):
        gradient = RIDGE * weights
        for features, goal in parts:
            scores = features @ weights
            likely = np.exp(scores - scores.max())
            gradient = gradient + features.T @ (likely / likely.sum() - goal)
        mean, spread = 0.9 * mean + 0.1 * gradient, 0.999 * spread + 0.001 * gradient**2
        weights = weights - RATE * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.999**step)) + 1e-8)
    return dict(zip(names, weights.tolist(), strict=True))


def open_world(world: Path, folder: Path) -> clew.KnowledgeBase:
    """Return the base of a world: its documents, tables and graph."""
    if (folder / world.name).exists():
        return clew.open(folder / world.name)
    base = clew.open(folder / world.name, create=True)
    base.add([world / "documents", world / "tables"])
    base.graphs.add(sorted((world / "graph").iterdir()))
    return base


def ask_turns(
    base: clew.KnowledgeBase, turns: Sequence[dict[str, str]], mode: str, reader: FollowUpReader
) -> Iterator[tuple[dict[str, str], Candidate, Answer]]:
    """Yield each turn of a conversation with how it was understood and answered."""
    before: list[Turn] = []
    for turn in turns:
        if mode == "clew":
            asked = reader.complete(turn["question"], before)
        else:
            asked = Candidate(turn["question" if mode == "as typed" else "standalone"], {})
        answer = base.ask(asked.question)
        if asked.asks_source:
            answer = name_source(answer)
        else:
            text = "" if answer.way == "not_found" else answer.text
            before.append(Turn(asked.question, text, answer.way == "answer"))
        yield turn, asked, answer


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", type=Path, help="a folder of worlds with conversations.jsonl")
    parser.add_argument("--bases", type=Path, help="where the bases are, or are made")
    parser.add_argument("--fit", type=Path, help="only write the weights that are fitted to all of it")
    parser.add_argument("--mode", choices=MODES, action="append", help="ask only so")
    parser.add_argument("--show", help="print the turns of this world")
    arguments = parser.parse_args()
    examples = read_examples(arguments.worlds)
    if arguments.fit:
        weights = fit_weights(examples)
        np.savez_compressed(
            arguments.fit,
            names=np.array(list(weights)),
            weights=np.array(list(weights.values()), dtype=np.float32),
        )
        return
    arguments.bases.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    changed: list[bool] = []
    for world in sorted(path.parent for path in arguments.worlds.glob("*/conversations.jsonl")):
        weights = fit_weights([example for example in examples if example[0] != world.name])
        reader = FollowUpReader(weights, create_plan_judge().encoder)
        changed += [reader.complete(text, before).question != text for text, before in read_unrelated(world)]
        lines = (world / "conversations.jsonl").read_text(encoding="utf-8").splitlines()
        with open_world(world, arguments.bases) as base:
            for mode in arguments.mode or MODES:
                for line in lines:
                    turns = ask_turns(base, json.loads(line)["turns"], mode, reader)
                    for number, (turn, asked, answer) in enumerate(turns):
                        verdict = judge(turn["answer"], answer)
                        rows.append(
                            turn | {"mode": mode, "later": number > 0, "verdict": verdict, "asked": asked}
                        )
                        if world.name == arguments.show:
                            source = " [its document]" if asked.asks_source else ""
                            print(f"{mode} {verdict}: {turn['question']} -> {asked.question}{source}")
                            print(f"    {answer.way} {answer.text[:160]!r}; gold: {turn['answer']}")
    report(rows)
    print(f"questions that stand alone, changed after another one: {sum(changed)} of {len(changed)}")


def report(rows: Sequence[dict[str, Any]]) -> None:
    """Print how the turns were answered in each mode, and how near their questions are to the author's."""
    print(f"{'':18}{'turns':>6}" + "".join(f"{way:>9}" for way in WAYS) + f"{'alike':>9}{'named':>9}")
    for mode in dict.fromkeys(row["mode"] for row in rows):
        for later in (False, True):
            chosen = [row for row in rows if row["mode"] == mode and row["later"] == later]
            counts = Counter(row["verdict"] for row in chosen)
            plain = [row for row in chosen if not FILE_NAME.match(row["answer"])]
            alike = [compare_questions(row["asked"].question, row["standalone"]) for row in plain]
            named = [
                find_mentions(row["standalone"]) <= find_mentions(row["asked"].question) for row in plain
            ]
            title = f"{mode}, {'later' if later else 'first'}"
            print(f"{title:18}{len(chosen):6}" + "".join(f"{counts[way]:9}" for way in WAYS), end="")
            print(f"{np.mean(alike):9.2f}{sum(named):5}/{len(plain)}")


if __name__ == "__main__":
    main()
