"""Questions that take several steps, over small worlds of documents, a graph and tables: fits what chooses the steps.

    python benchmarks/sequences.py phrases                       # the score of phrases; worlds held out in turn
    python benchmarks/sequences.py nested                        # whether there is a phrase at all
    python benchmarks/sequences.py collect --out build/sequences # asks every world; goes on where it was
    python benchmarks/sequences.py fit --out build/sequences     # the scores of endings and their confidence

``phrases`` learns from questions whose steps are known: those of the worlds, MuSiQue's decompositions and the gold
triples of 2WikiMultihopQA. A phrase is right if no other has more words of the first step and fewer of the later
ones. ``collect`` keeps for each question what :meth:`clew.methods.mixed.MixedQuestions.find_endings` gives, and
whether it is right: the value of the first step, and the answer. ``fit`` prints the weights of
:mod:`clew.questions.sequences`, and for each world, with scores that were fitted without it, how many first endings
are right and how sure they are.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import clew
from clew.core.text import fold_name
from clew.core.trail import TrailRecorder
from clew.core.types import STATED_FROM, Question
from clew.core.values import parse_date, parse_number, same_value
from clew.knowledge_base import registry
from clew.methods.mixed import MixedQuestions, quote_answer
from clew.questions.linear import train_linear
from clew.questions.sequences import (
    CLOSED,
    CONFIDENCE,
    DOCUMENT,
    ENDING_FEATURES,
    FEATURES,
    NESTED_FROM,
    Ending,
    Reply,
    SplitFinder,
    measure_endings,
    measure_first,
    measure_nesting,
)
from clew.questions.text import QuestionText
from clew.train.plan_data import fit_logistic

DATA = Path(__file__).parents[2] / "shared" / "data"
#: Steps that know nothing of each other: the weights of :data:`ENDING_FEATURES` that the fit begins with.
PRIOR = np.array([0.5, 1, 1, 1, -1, 0, -0.7, 0, -1, 0, 0, -1, 0, 0])


@dataclass(frozen=True)
class Asked:
    """A question of a world with its endings, which of them are right, and which begin with a right value."""

    world: str
    id: str
    sources: int
    endings: list[Ending]
    whole: list[Reply]
    right: list[bool]
    begun: list[bool]

    @property
    def labels(self) -> np.ndarray:
        """The endings that are right for the right reason, where there are any, else those that are right."""
        both = np.array(self.right) & np.array(self.begun)
        return both if both.any() else np.array(self.right)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def say_alike(given: str, gold: str) -> bool:
    """Return whether a value says what a gold one says: as a number or date, or with all of its words in a row."""
    if same_value(given, gold) or fold_name(given) == fold_name(gold):
        return True
    if parse_number(gold) is not None or parse_date(gold):
        return bool(re.search(rf"(?<![\w.,]){re.escape(gold)}(?![\w,]|\.\d)", given)) and len(given) < 120
    words, own = (fold_name(text).removeprefix("the ").split() for text in (given, gold))
    return any(words[start : start + len(own)] == own for start in range(len(words) - len(own) + 1)) and (
        len(words) <= 40 + len(own)
    )


def is_right(record: dict[str, Any], reply: Reply) -> bool:
    """Return whether a reply is the answer of a question: one of its wordings, or all values of its last step and no
    other."""
    last = [value.strip() for value in str(record["steps"][-1]["value"]).split(";")]
    if reply.source != DOCUMENT and max(len(last), len(reply.values)) > 1:
        return len(reply.values) == len(last) and all(
            any(say_alike(given, gold) for given in reply.values) for gold in last
        )
    golds = [record["answer"], *record["also_right"], *(last if len(last) == 1 else [])]
    return any(say_alike(reply.text, gold) for gold in golds)


def begins_right(record: dict[str, Any], ending: Ending) -> bool:
    """Return whether the value of the first step is that of one of the steps before the last."""
    golds = [v.strip() for step in record["steps"][:-1] for v in str(step["value"]).split(";")]
    return any(say_alike(ending.link.value, gold) or say_alike(gold, ending.link.value) for gold in golds)


def open_world(world: Path, folder: Path) -> Any:
    """Return the base of a world, made where it is not there."""
    kb = folder / "kb" / world.name
    is_new = not kb.exists()
    base = clew.open(kb, create=is_new)
    if is_new:
        base.add([world / "documents", world / "tables"])
        base.graphs.add([world / "graph" / "nodes.csv", world / "graph" / "edges.csv"], name="g")
    return base


def collect(folder: Path) -> None:
    """Write what the questions of every world can be answered with: those of several sources, then every third of the
    others."""
    file = folder / "asked.pickle"
    asked: dict[tuple[str, str], Asked] = pickle.loads(file.read_bytes()) if file.is_file() else {}
    worlds = sorted(path for path in (DATA / "worlds").iterdir() if path.is_dir())
    for several in (True, False):
        for world in worlds:
            started = time.perf_counter()
            with open_world(world, folder) as base:
                method = registry.build_method("mixed", base.store)
                assert isinstance(method, MixedQuestions)
                records = [each for each in read_lines(world / "questions.jsonl") if each["steps"]]
                of_kind = [each for each in records if (len(each["sources"]) > 1) == several]
                for record in of_kind if several else of_kind[::3]:
                    key = (world.name, record["id"])
                    if key not in asked:
                        asked[key] = ask_steps(world.name, record, method)
                        file.with_suffix(".new").write_bytes(pickle.dumps(asked))
                        file.with_suffix(".new").replace(file)
            print(f"{world.name}: {len(asked)} questions, {time.perf_counter() - started:.0f} s", flush=True)


def ask_steps(world: str, record: dict[str, Any], method: MixedQuestions) -> Asked:
    question = Question(record["question"])
    whole = [*method.read(question), *quote_answer(method.documents.answer(question, TrailRecorder()))]
    endings = method.find_endings(question, whole, TrailRecorder())
    bare = [strip(ending) for ending in endings]
    return Asked(
        world,
        record["id"],
        len(record["sources"]),
        bare,
        [replace(reply, origin=None) for reply in whole],
        [is_right(record, ending.reply) for ending in bare],
        [begins_right(record, ending) for ending in bare],
    )


def strip(ending: Ending) -> Ending:
    """Return an ending without what its sources gave."""
    link = replace(ending.link, reply=replace(ending.link.reply, origin=None))
    return Ending(link, replace(ending.reply, origin=None))


def fit(folder: Path, show: bool) -> None:
    """Print the curve over worlds that were held out in turn, and the weights fitted to all."""
    asked = [each for each in pickle.loads((folder / "asked.pickle").read_bytes()).values() if each.endings]
    worlds = sorted({each.world for each in asked})
    first: dict[tuple[str, str], tuple[np.ndarray, bool, Ending]] = {}
    for world in worlds:
        weights = fit_endings([each for each in asked if each.world != world])
        for each in asked:
            if each.world == world:
                scores = measure_endings(each.endings) @ weights
                best = int(np.argmax(scores))
                features = measure_first(each.endings, scores, each.whole)
                first[world, each.id] = (features, each.right[best], each.endings[best])
    chances = {}
    for world in worlds:
        weights = fit_confidence([given for (other, _), given in first.items() if other != world])
        for key, (features, _, _) in first.items():
            if key[0] == world:
                chances[key] = 1 / (1 + np.exp(-float(features @ weights)))
    sources = {(each.world, each.id): each.sources for each in asked}
    for several in (True, False):
        keys = [key for key in first if (sources[key] > 1) == several]
        stated = [key for key in keys if chances[key] >= STATED_FROM]
        print(
            f"{'several sources' if several else 'one source'}: {len(keys)} questions, "
            f"{sum(any(each.right) for each in asked if (each.sources > 1) == several)} with a right ending, "
            f"{sum(first[key][1] for key in keys)} first; stated {sum(first[key][1] for key in stated)} right, "
            f"{sum(not first[key][1] for key in stated)} wrong"
        )
    for key in sorted(chances, key=lambda key: -chances[key]) if show else ():
        _, right, ending = first[key]
        link, reply = ending.link, ending.reply
        print(f"{chances[key]:.2f} {'right' if right else '     '} {key[1]} {link.split.text}")
        print(
            f"      {link.reply.source}: {link.split.asked} = {link.value}; {reply.source}: {reply.text[:80]}"
        )
    print_weights("ENDING_WEIGHTS", ENDING_FEATURES, fit_endings(asked))
    print_weights("CONFIDENCE_WEIGHTS", CONFIDENCE, fit_confidence(list(first.values())))


def fit_endings(asked: Sequence[Asked]) -> np.ndarray:
    several = [(measure_endings(each.endings), each.labels) for each in asked if each.sources > 1]
    score = train_linear(several, decay=0.3, rounds=200, prior=PRIOR)
    return score.weights / score.scales


def fit_confidence(first: Sequence[tuple[np.ndarray, bool, Ending]]) -> np.ndarray:
    return fit_logistic(np.array([each[0] for each in first]), np.array([each[1] for each in first]), 3.0)


def print_weights(name: str, features: Sequence[str], weights: np.ndarray) -> None:
    print(f"{name} = ({', '.join(f'{weight:.2f}' for weight in weights)})")
    print("   ", "; ".join(f"{each} {weight:+.2f}" for each, weight in zip(features, weights, strict=True)))


def known_steps() -> Iterator[tuple[str, str, str, str]]:
    """Yield the group, the question, the first step and the later ones of questions whose steps are known."""
    for world in sorted(path for path in (DATA / "worlds").iterdir() if path.is_dir()):
        for record in read_lines(world / "questions.jsonl"):
            steps = [step["ask"] for step in record["steps"]]
            if len(steps) > 1 and (len(record["sources"]) > 1 or record["kind"] == "graph"):
                yield world.name, record["question"], steps[0], " ".join(steps[1:])
    for record in read_lines(DATA / "musique" / "train100.jsonl"):
        steps = [re.sub(r">>", " ", step["question"]) for step in record["question_decomposition"]]
        if "#" in steps[1]:
            yield "musique", record["question"], steps[0], re.sub(r"#\d", " ", " ".join(steps[1:]))
    for number, record in enumerate(read_lines(DATA / "2wikimultihopqa" / "train500.jsonl")):
        if record["type"] in ("compositional", "inference") and number % 4 == 0:
            (head, relation, _), (_, second, _) = record["evidences"][:2]
            yield "2wikimultihopqa", record["question"], f"{head} {relation}", second


def stems_of(text: str) -> set[str]:
    return {word.stem for word in QuestionText(text).words if word.is_content and word.text not in CLOSED}


def fit_phrases() -> None:
    """Print how often the right phrase is among the first, and the weights."""
    examples: list[tuple[str, np.ndarray, np.ndarray]] = []
    for group, question, step, later in known_steps():
        splits = SplitFinder(QuestionText(question)).propose()
        whole, first = stems_of(question), stems_of(step)
        rest = stems_of(later) - first
        scores = []
        for split in splits:
            inside = stems_of(split.asked)
            outside = whole - inside
            scores.append(
                len(inside & first) + len(outside & rest) - len(inside & rest) - len(outside & first)
            )
        if scores and max(scores) >= 2:
            features = np.array([split.features for split in splits], dtype=np.float64)
            examples.append((group, features, np.array(scores) == max(scores)))
    for group in dict.fromkeys(group for group, _, _ in examples):
        score = train_linear([(x, y) for other, x, y in examples if other != group], decay=1e-2)
        ranks = [
            int(np.flatnonzero(y[np.argsort(-score.scores(x), kind="stable")])[0])
            for other, x, y in examples
            if other == group
        ]
        among = "; ".join(f"among {n} {np.mean([rank < n for rank in ranks]):.0%}" for n in (1, 3, 5))
        print(f"{group}: {len(ranks)} questions; {among}")
    score = train_linear([(x, y) for _, x, y in examples], decay=1e-2)
    print_weights("SPLIT_WEIGHTS", FEATURES, score.weights / score.scales)


def fit_nesting() -> None:
    """Print how many questions of several steps, and of others, are taken for such by weights that did not see their
    group, and the weights. Others are those of one source, and of ``reading2``."""
    groups: list[str] = []
    rows: list[np.ndarray] = []
    flags: list[bool] = []
    known = [(group, question, True) for group, question, _, _ in known_steps()]
    for world in sorted(path for path in (DATA / "worlds").iterdir() if path.is_dir()):
        lines = read_lines(world / "questions.jsonl")
        known += [(world.name, line["question"], False) for line in lines if len(line["steps"]) < 2]
    for file in sorted((DATA / "reading2").glob("*.jsonl")):
        known += [(file.stem, line["question"], False) for line in [*read_lines(file)][::3]]
    for group, question, is_nested in known:
        features = measure_nesting(QuestionText(question))
        if features is not None:
            groups.append(group)
            rows.append(features)
            flags.append(is_nested)
    features, nested, names = np.array(rows), np.array(flags), np.array(groups)
    taken = np.zeros(len(rows), dtype=bool)
    for group in dict.fromkeys(groups):
        weights = fit_logistic(features[names != group], nested[names != group], 3.0)
        own = names == group
        taken[own] = 1 / (1 + np.exp(-features[own] @ weights)) >= NESTED_FROM
        print(
            f"{group}: {taken[own & nested].sum()} of {(own & nested).sum()} of several steps, "
            f"{taken[own & ~nested].sum()} of {(own & ~nested).sum()} others"
        )
    print(f"of several steps {taken[nested].mean():.0%}, others {taken[~nested].mean():.0%}")
    weights = fit_logistic(features, nested, 3.0)
    print_weights("NESTED_WEIGHTS", ("constant", "score", "all", "phrases", *FEATURES), weights)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("phrases", "nested", "collect", "fit"))
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "sequences")
    parser.add_argument("--show", action="store_true", help="print every first ending")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.part == "phrases":
        fit_phrases()
    elif arguments.part == "nested":
        fit_nesting()
    elif arguments.part == "collect":
        collect(arguments.out)
    else:
        fit(arguments.out, arguments.show)


if __name__ == "__main__":
    main()
