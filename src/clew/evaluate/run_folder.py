"""The folder of an evaluation: ``run.json`` with the facts of the run, and one file of results per recipe.

:func:`evaluate_recipes` fills such a folder, :class:`Experiment` does so for the experiments of papers.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.component import parse_recipe
from clew.core.errors import UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.text import slugify
from clew.core.trail import TrailRecorder
from clew.core.types import Usage
from clew.evaluate.datasets import file_digest, parse_dataset
from clew.evaluate.metrics.grading import Grader
from clew.evaluate.report import Run
from clew.evaluate.runner import Progress, RunFile, answer_questions, grade_answers, read_results
from clew.evaluate.setup import (
    BUILT_CORPORA,
    EvaluationSettings,
    QuestionSet,
    build_question_for,
    load_questions,
    open_methods,
)
from clew.knowledge_base.registry import ranks_nodes

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel
    from clew.evaluate.cluster import ClusterRun

FACTS_FILE = "run.json"
#: The number of questions that are rehearsed to estimate the cost of a run.
REHEARSED_QUESTIONS = 3


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of the runs of one data set with one setting."""

    path: Path

    @property
    def facts(self) -> dict[str, Any]:
        """The content of ``run.json``. Raises UsageError for a folder without it."""
        try:
            return dict(json.loads((self.path / FACTS_FILE).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise UsageError(f"no evaluation in {self.path}", "Make one: clew eval run --help") from error

    def claim(self, facts: dict[str, Any]) -> None:
        """Write ``run.json``, or add recipes to it. Raises UsageError where the folder holds another run."""
        if (self.path / FACTS_FILE).exists():
            recorded = self.facts
            changed_keys = [key for key in facts if key != "recipes" and recorded.get(key) != facts[key]]
            if changed_keys:
                raise UsageError(
                    f"{self.path} holds another run: its {changed_keys[0]} is {recorded.get(changed_keys[0])!r}, "
                    f"not {facts[changed_keys[0]]!r}",
                    "Name another folder: --out DIR",
                )
            facts = {**facts, "recipes": {**recorded["recipes"], **facts["recipes"]}}
        self.path.mkdir(parents=True, exist_ok=True)
        # The rename is atomic: an interrupt leaves either the old or the new file.
        temporary = self.path / f"{FACTS_FILE}.new"
        temporary.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        temporary.replace(self.path / FACTS_FILE)

    def result_file(self, recipe: str) -> RunFile:
        """Return the file of a recipe's results."""
        return RunFile(self.path / result_file_name(recipe))

    def load_runs(self, recipes: Sequence[str] | None = None) -> list[Run]:
        """Return the runs of ``recipes`` (all, if None) with the results so far.

        Raises UsageError where the data set has changed since.
        """
        facts = self.facts
        triples = facts.get("triples") == "gold"
        questions = load_questions(
            facts["data"],
            facts["corpus"],
            facts["limit"],
            facts["seed"],
            triples=triples,
            where=facts.get("where", ""),
        )
        if parse_dataset(facts["data"]).digest() != facts["data_digest"]:
            raise UsageError(
                f"the data of {self.path} has changed: {facts['data']}", "Run it again elsewhere"
            )
        runs = []
        for recipe in facts["recipes"] if recipes is None else recipes:
            results, errors, _ = read_results(questions.examples, self.result_file(recipe))
            runs.append(Run(questions.title, recipe, results, errors, facts))
        return runs


def result_file_name(recipe: str) -> str:
    """Return a file name for a recipe: a readable prefix and a hash."""
    prefix = re.sub(r"[^A-Za-z0-9]+", "-", recipe).strip("-")[:40]
    return f"{prefix}-{hashlib.blake2b(recipe.encode(), digest_size=4).hexdigest()}.jsonl"


def folder_for(out: Path, questions: QuestionSet) -> RunFolder:
    """Return the folder in ``out`` for a data set and its corpus."""
    with_triples = "-triples" if questions.triples else ""
    where = f"-{slugify(questions.where)}" if questions.where else ""
    return RunFolder(out / f"{questions.name}-{Path(questions.corpus).name}{where}{with_triples}")


def evaluate_recipes(  # noqa: PLR0913 (one keyword for each choice of a person)
    out: Path,
    questions: QuestionSet,
    recipes: Sequence[str],
    settings: EvaluationSettings,
    *,
    workers: int = 1,
    progress: Callable[[str], Progress] | None = None,
    report_estimate: Callable[[str, Usage], None] | None = None,
    cluster: ClusterRun | None = None,
) -> RunFolder:
    """Run recipes over questions into a folder in ``out``, continuing an interrupted run; return the folder.

    ``progress`` returns the progress callback of a stage (``corpus``, or a recipe). With a language model,
    ``report_estimate`` receives the estimated usage of each unfinished recipe before the model is called: the first
    questions are rehearsed with a model that only counts. With a ``cluster`` the questions are answered there.
    Raises UsageError, RemoteError.
    """
    folder = folder_for(out, questions)
    if cluster is not None:
        settings = cluster.spread_encoders(settings)
    progress_of = progress or (lambda stage: lambda done, total: None)
    question_for = build_question_for(questions, settings)
    with open_methods(questions, settings, progress_of("corpus")) as corpus:
        folder.claim(run_facts(questions, settings, corpus.digest, recipes))
        if settings.llm is not None and report_estimate is not None:
            open_counts = {recipe: _count_open(questions, folder.result_file(recipe)) for recipe in recipes}
            for recipe, usage in _estimate_usage(questions, open_counts, settings):
                report_estimate(recipe, usage)
        work = None
        if cluster is not None:
            for (
                recipe
            ) in recipes:  # a method may need summaries, which are made with it and sent with the corpus
                corpus.create_method_for(recipe)
            work = cluster.send_work(questions, settings, corpus)
        for recipe in recipes:
            answer_questions(
                questions.examples,
                corpus.create_method_for(recipe),
                folder.result_file(recipe),
                workers=workers,
                progress=progress_of(recipe),
                question_for=question_for,
                elsewhere=None if work is None else partial(work.answer, recipe, question_for),
            )
    return folder


def _count_open(questions: QuestionSet, target: RunFile) -> int:
    """Return the number of questions without an answer in ``target``."""
    _, errors, missing = read_results(questions.examples, target)
    return len(errors) + len(missing)


def _estimate_usage(
    questions: QuestionSet, open_counts: Mapping[str, int], settings: EvaluationSettings
) -> Iterator[tuple[str, Usage]]:
    """Yield (recipe, estimated usage) for its open questions, assuming that every reply has the maximal length."""
    from clew.models.costs import Rehearsal

    examples = questions.examples[:REHEARSED_QUESTIONS]
    model = Rehearsal(settings.llm_name or (settings.llm.name if settings.llm else ""))
    sample = (
        replace(questions, examples=examples, pool=()) if questions.corpus in BUILT_CORPORA else questions
    )
    question_for = build_question_for(sample, settings)
    # All recipes share the stores of the sample, so that an encoder reads them once. Graphs are left out where no
    # recipe ranks nodes: they only save calls, and reading them may take longer than the rehearsal.
    open_recipes = [recipe for recipe, count in open_counts.items() if count]
    graphs = settings.graphs if any(ranks_nodes(parse_recipe(recipe)) for recipe in open_recipes) else ()
    with open_methods(sample, replace(settings, llm=model, graphs=graphs)) as corpus:
        for recipe in open_recipes:
            model.usage_by_role.clear()
            method_for = corpus.create_method_for(recipe)
            for example in examples:
                method_for(example).answer(question_for(example), TrailRecorder())
            total = sum(model.usage_by_role.values(), Usage())
            yield recipe, scale_usage(total, open_counts[recipe] / len(examples))


def scale_usage(total: Usage, factor: float) -> Usage:
    """Return the usage multiplied by ``factor``, marked as an estimate."""
    return Usage(
        calls=round(total.calls * factor),
        tokens_in=round(total.tokens_in * factor),
        tokens_out=round(total.tokens_out * factor),
        money=None if total.money is None else total.money * factor,
        estimated=True,
    )


def grade_folder(
    folder: RunFolder,
    model: LanguageModel,
    progress: Callable[[str], Progress],
    recipes: Sequence[str] | None = None,
) -> Usage:
    """Grade the answers of ``recipes`` (all, if None) in a folder with ``model`` (Listing 5 of the KGP paper); return
    the usage of the model."""
    facts = folder.facts
    questions = load_questions(facts["data"], facts["corpus"], facts["limit"], facts["seed"])
    grader = Grader(model, load_prompt("grade"))
    usages = [
        grade_answers(questions.examples, folder.result_file(recipe), grader, progress(recipe))
        for recipe in recipes or facts["recipes"]
    ]
    return sum(usages, Usage())


def run_facts(
    questions: QuestionSet, settings: EvaluationSettings, digest: str, recipes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the content of ``run.json``; ``digest`` is that of the shared store."""
    return {
        "data": questions.data,
        "data_digest": parse_dataset(questions.data).digest(),
        "questions": len(questions.examples),
        "limit": questions.limit,
        "seed": questions.seed,
        "corpus": questions.corpus,
        **({"pool": list(questions.pool)} if questions.pool else {}),
        **({"triples": "gold"} if questions.triples else {}),
        **({"where": questions.where} if questions.where else {}),
        **({"graphs": list(settings.graphs)} if settings.graphs else {}),
        "base_digest": digest,
        "passages": settings.passages,
        "sentences": settings.sentences
        if questions.corpus == "question" and settings.documents is None
        else None,
        **({"documents": settings.documents} if settings.documents is not None else {}),
        **({"articles": file_digest(settings.articles)} if settings.articles is not None else {}),
        **({"beside": settings.beside.name} if settings.beside is not None else {}),
        "llm": settings.llm.name if settings.llm else None,
        "encoder": settings.encoder.name if settings.encoder else None,
        "objective": settings.encoder.objective if settings.encoder else "",
        "clew": version("clew"),
        "python": platform.python_version(),
        "recipes": {recipe: result_file_name(recipe) for recipe in recipes},
    }


@dataclass(frozen=True, slots=True)
class Experiment:
    """The questions, settings and output folder of one experiment, and its callbacks (:func:`evaluate_recipes`)."""

    questions: QuestionSet
    settings: EvaluationSettings
    out: Path
    workers: int = 1
    progress: Callable[[str], Progress] = lambda stage: lambda done, total: None
    report_estimate: Callable[[str, Usage], None] | None = None

    @property
    def folder(self) -> RunFolder:
        """The folder of the answers."""
        return folder_for(self.out, self.questions)

    @property
    def graph_folder(self) -> RunFolder:
        """The folder of the measures of graphs, which do not depend on the language model."""
        return RunFolder(self.folder.path.with_name(f"{self.folder.path.name}-graphs"))

    def run(self, recipes: Sequence[str]) -> list[Run]:
        """Return the runs of ``recipes`` after answering their open questions. Raises UsageError."""
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
