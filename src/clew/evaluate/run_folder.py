"""The folder of an evaluation: what was run, and a file of results for each recipe."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.errors import UsageError
from clew.core.recipe import parse_recipe
from clew.core.types import Usage
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.metrics.grading import Grader
from clew.evaluate.report import Run
from clew.evaluate.runner import RunFile, answer_questions, grade_answers, read_results
from clew.evaluate.setup import (
    BUILT_CORPORA,
    EvaluationSettings,
    QuestionSet,
    load_questions,
    open_methods,
    question_builder,
)
from clew.knowledge_base.registry.retrievers import ranks_nodes

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel
    from clew.evaluate.runner import Progress

FACTS_FILE = "run.json"
#: Questions that are rehearsed to foresee what a run costs.
REHEARSED_QUESTIONS = 3


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one data set in one setting. ``facts`` is what ``run.json`` says."""

    path: Path

    @property
    def facts(self) -> dict[str, Any]:
        """Return what was run. Raises UsageError for a folder that holds no run."""
        try:
            return dict(json.loads((self.path / FACTS_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UsageError(f"no evaluation in {self.path}", "Make one: clew eval run --help") from error

    def claim(self, facts: dict[str, Any]) -> None:
        """Write down what is run here; refuse to mix it with another run. Recipes may be added."""
        if (self.path / FACTS_FILE).exists():
            before = self.facts
            differ = [key for key in facts if key != "recipes" and before.get(key) != facts[key]]
            if differ:
                raise UsageError(
                    f"{self.path} holds another run: its {differ[0]} is {before.get(differ[0])!r}, "
                    f"not {facts[differ[0]]!r}",
                    "Name another folder: --out DIR",
                )
            facts = {**facts, "recipes": {**before["recipes"], **facts["recipes"]}}
        self.path.mkdir(parents=True, exist_ok=True)
        # Replaced whole, so that a kill leaves the one or the other.
        new = self.path / f"{FACTS_FILE}.new"
        new.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        new.replace(self.path / FACTS_FILE)

    def result_file(self, recipe: str) -> RunFile:
        """Return the file of a recipe's results."""
        return RunFile(self.path / result_file_name(recipe))

    def load_runs(self, recipes: Sequence[str] | None = None) -> list[Run]:
        """Return the runs of ``recipes`` (all, if None), as far as they are. Raises UsageError where the data has
        changed."""
        facts = self.facts
        triples = facts.get("triples") == "gold"
        data = load_questions(facts["data"], facts["corpus"], facts["limit"], facts["seed"], triples=triples)
        if parse_dataset(facts["data"]).digest() != facts["data_digest"]:
            raise UsageError(
                f"the data of {self.path} has changed: {facts['data']}", "Run it again elsewhere"
            )
        made = []
        for recipe in facts["recipes"] if recipes is None else recipes:
            found, errors, _ = read_results(data.examples, self.result_file(recipe))
            made.append(Run(data.title, recipe, found, errors, facts))
        return made


def result_file_name(recipe: str) -> str:
    """Return a readable file name for a recipe, and a hash that tells alike ones apart."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", recipe).strip("-")[:40]
    return f"{readable}-{hashlib.blake2b(recipe.encode(), digest_size=4).hexdigest()}.jsonl"


def folder_for(out: Path, questions: QuestionSet) -> RunFolder:
    """Return the folder in ``out`` of a data set asked of a corpus."""
    with_triples = "-triples" if questions.triples else ""
    return RunFolder(out / f"{questions.name}-{Path(questions.corpus).name}{with_triples}")


def evaluate_recipes(
    out: Path,
    questions: QuestionSet,
    recipes: Sequence[str],
    bench: EvaluationSettings,
    *,
    workers: int = 1,
    progress: Callable[[str], Progress] | None = None,
    report_estimate: Callable[[str, Usage], None] | None = None,
) -> RunFolder:
    """Run recipes over questions into a folder in ``out``, continuing what is there; return the folder.

    ``progress`` gives what is told of each stage (``corpus``, or a recipe). Where there is a language model,
    ``foreseen`` is told what each recipe that is not done will cost before any is asked: the first few questions
    are rehearsed with a model that only counts. Raises UsageError.
    """
    folder = folder_for(out, questions)
    tell = progress or (lambda stage: lambda done, total: None)
    question_of = question_builder(questions, bench)
    with open_methods(questions, bench, tell("corpus")) as (method_of, digest):
        folder.claim(run_facts(questions, bench, digest, recipes))
        if bench.llm is not None and report_estimate is not None:
            left = {recipe: _left(questions, folder.result_file(recipe)) for recipe in recipes}
            for recipe, usage in _rehearsed(questions, left, bench):
                report_estimate(recipe, usage)
        for recipe in recipes:
            answer_questions(
                questions.examples,
                method_of(recipe),
                folder.result_file(recipe),
                workers=workers,
                progress=tell(recipe),
                question_for=question_of,
            )
    return folder


def _left(questions: QuestionSet, target: RunFile) -> int:
    """Return how many questions have no answer yet."""
    _, errors, missing = read_results(questions.examples, target)
    return len(errors) + len(missing)


def _rehearsed(
    questions: QuestionSet, left: Mapping[str, int], bench: EvaluationSettings
) -> Iterator[tuple[str, Usage]]:
    """Yield about what each recipe costs over the questions ``left``, if every reply is as long as it may get."""
    from clew.core.trail import TrailRecorder
    from clew.models.rehearsal import Rehearsal

    some = questions.examples[:REHEARSED_QUESTIONS]
    model = Rehearsal(bench.llm_name or (bench.llm.name if bench.llm else ""))
    few = replace(questions, examples=some, pool=()) if questions.corpus in BUILT_CORPORA else questions
    question_of = question_builder(few, bench)
    # The bases of the few questions serve all recipes: an encoder reads them once. Graphs are left out: what they
    # would fill, nobody need be asked, and reading them may take longer than the rehearsal; but not where their nodes
    # are what a model is asked about.
    graphs = (
        bench.graphs if any(ranks_nodes(parse_recipe(one)) for one, count in left.items() if count) else ()
    )
    with open_methods(few, replace(bench, llm=model, graphs=graphs)) as (method_of, _):
        for recipe, count in left.items():
            if not count:
                continue
            model.usage_by_role.clear()
            method_for = method_of(recipe)
            for example in some:
                method_for(example).answer(question_of(example), TrailRecorder())
            total = sum(model.usage_by_role.values(), Usage())
            yield recipe, scale_usage(total, count / len(some))


def scale_usage(total: Usage, share: float) -> Usage:
    """Return about what ``share`` times as many questions cost as were rehearsed."""
    return Usage(
        calls=round(total.calls * share),
        tokens_in=round(total.tokens_in * share),
        tokens_out=round(total.tokens_out * share),
        money=None if total.money is None else total.money * share,
        estimated=True,
    )


def grade_folder(
    folder: RunFolder,
    model: LanguageModel,
    progress: Callable[[str], Progress],
    recipes: Sequence[str] | None = None,
) -> Usage:
    """Grade what ``recipes`` (all, if None) answered in a folder with ``model`` (Listing 5 of the KGP paper);
    return what that cost."""
    from clew.core.prompts.templates import load_prompt

    facts = folder.facts
    data = load_questions(facts["data"], facts["corpus"], facts["limit"], facts["seed"])
    grader = Grader(model, load_prompt("grade"))
    costs = [
        grade_answers(data.examples, folder.result_file(recipe), grader, progress(recipe))
        for recipe in recipes or facts["recipes"]
    ]
    return sum(costs, Usage())


def run_facts(
    questions: QuestionSet, bench: EvaluationSettings, digest: str, recipes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return what ``run.json`` says of recipes over questions; ``digest`` is that of the base they share."""
    return {
        "data": questions.data,
        "data_digest": parse_dataset(questions.data).digest(),
        "questions": len(questions.examples),
        "limit": questions.limit,
        "seed": questions.seed,
        "corpus": questions.corpus,
        **({"pool": list(questions.pool)} if questions.pool else {}),
        **({"triples": "gold"} if questions.triples else {}),
        **({"graphs": list(bench.graphs)} if bench.graphs else {}),
        "base_digest": digest,
        "passages": bench.passages,
        "sentences": bench.sentences if questions.corpus == "question" else None,
        "llm": bench.llm.name if bench.llm else None,
        "encoder": bench.encoder.name if bench.encoder else None,
        "objective": bench.encoder.objective if bench.encoder else "",
        "clew": version("clew"),
        "python": platform.python_version(),
        "recipes": {one: result_file_name(one) for one in recipes},
    }


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the analyses of one data set share: the questions, the models, where results go, who is told."""

    questions: QuestionSet
    settings: EvaluationSettings
    out: Path
    workers: int = 1
    progress: Callable[[str], Progress] = lambda stage: lambda done, total: None
    report_estimate: Callable[[str, Usage], None] | None = None

    @property
    def folder(self) -> RunFolder:
        """The folder of what walks and other methods answered."""
        return folder_for(self.out, self.questions)

    @property
    def graph_folder(self) -> RunFolder:
        """The folder of what was measured of graphs, whatever the language model."""
        return RunFolder(self.folder.path.with_name(f"{self.folder.path.name}-graphs"))

    def run(self, recipes: Sequence[str]) -> list[Run]:
        """Return the runs of some recipes after running what is missing of them. Raises UsageError."""
        evaluate_recipes(
            self.out,
            self.questions,
            recipes,
            self.settings,
            workers=self.workers,
            progress=self.progress,
            report_estimate=self.report_estimate,
        )
        return self.folder.load_runs(recipes)
