"""Training of what reads plain questions over tables: columns and cells, shapes, linear scores, the confidence.

Worlds are held out whole: in four folds for the scores and the confidence, one of these folds from all that is
fitted, for the figures of the record. The judge is the one of questions over graphs, as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import UsageError
from clew.questions.linear import JUDGED, NetworkScore, correct_scores
from clew.questions.shapes import ShapeClassifier, ShapeExample
from clew.questions.table_reading import (
    MOST_RUN,
    OUTCOMES,
    TABLE_CONFIDENCE,
    TableModel,
    add_table_shapes,
    rank_tables,
)
from clew.train.network import train_network
from clew.train.plan_data import fit_logistic
from clew.train.plan_fitting import (
    FOLDS,
    UnseenShapes,
    count_by,
    deal_folds,
    fit_mixture_of,
    measure_chances,
    remember,
)
from clew.train.plan_judge import JudgeExample, PlanSettings
from clew.train.table_data import PARTS, TableExample, TableQuestion, TableSlots, TableSource

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder

#: Questions of other worlds that the tables of each are asked, as questions that they cannot answer.
FOREIGN = 16


@dataclass(slots=True, eq=False)
class RunTable:
    """A question with its likeliest options by scores that did not see its world: ``places`` in the example, their
    ``scores``, and how alike the judge finds the first of them, (judged, 3)."""

    example: TableExample
    fold: int
    places: list[int]
    scores: Floats
    likeness: Floats

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which options mean what the question means."""
        return self.example.right[self.places]

    @property
    def sentences(self) -> list[str]:
        """The options in words."""
        return [self.example.sentences[place] for place in self.places]

    def for_judge(self) -> JudgeExample:
        """Return what a judge is trained on."""
        right = np.flatnonzero(self.example.right)
        gold = self.example.sentences[int(right[0])] if len(right) else None
        return JudgeExample(self.example.question.question, self.sentences, self.scores, self.right, gold)


def prepare_tables(
    sources: Sequence[TableSource],
    folds: Mapping[str, int],
    encoder: Encoder,
    settings: PlanSettings,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> dict[str, tuple[TableModel, list[RunTable]]]:
    """Return what is fitted before there is a judge, and the questions of each source with their likeliest options,
    each source with its fold: for spreadsheets ("table"), and for reports ("report") where there are some. What is
    prepared is kept in ``out``."""
    chooser = random.Random(settings.seed)
    questions: dict[str, list[TableQuestion]] = {}
    for source in sources:
        own = source.read()
        questions[source.name] = chooser.sample(own, min(settings.most_tables, len(own)))
    slots: dict[str, list[TableSlots]] = {}
    for number, source in enumerate(sources):
        progress("cells", number, len(sources))
        file = out / f"cells-{source.name}.pickle"
        slots[source.name] = remember(file, partial(_slots_of, source, encoder, questions[source.name]))
    columns, cells = fit_cells([each for name, own in slots.items() if folds[name] for each in own])
    examples: dict[str, list[TableExample]] = {}
    for number, source in enumerate(sources):
        progress("queries", number, len(sources))
        file = out / f"queries-{source.name}.pickle"
        strangers = [
            TableQuestion(source.name, each.question, "", (), "foreign", each.wording)
            for other in sources
            if folds[other.name] == folds[source.name] and other is not source and other.is_world
            for each in questions[other.name]
        ]
        asked = questions[source.name] + chooser.sample(strangers, min(FOREIGN, len(strangers)))
        own = remember(file, partial(_options_of, source, encoder, asked, columns, cells))
        examples.setdefault("table" if source.is_world else "report", []).extend(own)
    prepared = {}
    for kind, known in examples.items():
        runs, parts = run_tables(known, folds, progress)
        confidence = np.zeros(len(TABLE_CONFIDENCE))
        prepared[kind] = TableModel(columns, cells, *parts, 1.0, np.ones(3), 0.0, confidence), runs
    return prepared


def judge_tables(
    runs: Sequence[RunTable],
    compare: Callable[[str, Sequence[str]], Floats],
    progress: Callable[[int, int], None],
) -> None:
    """Write into runs how alike a judge finds each of the likeliest options."""
    for number, run in enumerate(runs):
        progress(number, len(runs))
        run.likeness = compare(run.example.question.question, run.sentences[:JUDGED])


def deal_tables(
    worlds: Sequence[Path], beside: Sequence[Path], contexts: Sequence[Path]
) -> tuple[list[TableSource], dict[str, int]]:
    """Return what questions over tables are taken from, and the fold of each by name: 0 is held out, what is
    ``beside`` never is. ``contexts`` are files of TAT-QA. Raises UsageError for too few worlds."""
    if len(worlds) <= FOLDS:
        raise UsageError(
            f"{len(worlds)} worlds of tables are too few",
            f"Whole worlds are held out: give at least {FOLDS}",
        )
    parts = [TableSource(file, part) for file in contexts for part in range(PARTS)]
    folds = deal_folds([world.name for world in worlds], [world.name for world in beside])
    folds |= {each.name: 1 + each.part % (FOLDS - 1) if each.part % 5 else 0 for each in parts}
    return [*map(TableSource, (*worlds, *beside)), *parts], folds


def _slots_of(source: TableSource, encoder: Encoder, questions: Sequence[TableQuestion]) -> list[TableSlots]:
    with source.open(encoder) as tables:
        return [tables.slots(question) for question in questions]


def _options_of(
    source: TableSource, encoder: Encoder, questions: Sequence[TableQuestion], columns: Floats, cells: Floats
) -> list[TableExample]:
    with source.open(encoder) as tables:
        return [tables.prepare(question, columns, cells) for question in questions]


def fit_cells(slots: Sequence[TableSlots]) -> tuple[Floats, Floats]:
    """Return the weights of columns and of cells."""
    columns = fit_logistic(
        np.concatenate([each.columns for each in slots]),
        np.concatenate([each.named_columns for each in slots]),
    )
    features = []
    for each in slots:
        of_columns = np.append(each.columns @ columns, 0.0)
        features.append(each.with_columns(of_columns[each.cell_columns]))
    return columns, fit_logistic(
        np.concatenate(features), np.concatenate([each.named_cells for each in slots])
    )


def run_tables(
    examples: Sequence[TableExample],
    folds: Mapping[str, int],
    progress: Callable[[str, int, int], None],
) -> tuple[list[RunTable], tuple[ShapeClassifier, NetworkScore, NetworkScore]]:
    """Return each question with its likeliest options, scored by what the other folds gave; and the shapes and scores
    of all but the held out fold."""
    parts: tuple[ShapeClassifier, NetworkScore, NetworkScore] | None = None
    runs: list[RunTable] = []
    shapes = UnseenShapes(
        [
            (folds[each.question.world], ShapeExample(each.buckets, each.vector, each.meant))
            for each in examples
            if each.right.any()
        ]
    )
    for fold in range(FOLDS):
        progress("scores", fold, FOLDS)
        for each in examples:
            classifier = shapes.train_without(fold, folds[each.question.world])
            logs = classifier.log_probabilities(each.buckets, each.vector)
            add_table_shapes(each.features, logs, each.shapes)
        known = [each for each in examples if folds[each.question.world] != fold]
        # Before plans are run, nothing is known of what comes of them.
        before = train_network([(hide_outcomes(each.features), each.right) for each in known])
        chosen = {
            id(each): np.argsort(-before.scores(hide_outcomes(each.features)), kind="stable")[:MOST_RUN]
            for each in examples
        }
        after = train_network(
            [(each.features[chosen[id(each)]], each.right[chosen[id(each)]]) for each in known]
        )
        parts = (shapes.train_without(fold), before, after) if parts is None else parts
        for each in examples:
            if folds[each.question.world] == fold and len(each.right):
                scores = after.scores(each.features[chosen[id(each)]])
                order = np.argsort(-scores, kind="stable")
                places = chosen[id(each)][order].tolist()
                frozen = replace(each, features=each.features[places].astype(np.float64))
                runs.append(RunTable(frozen, fold, places, scores[order], np.zeros((0, 3))))
    assert parts is not None
    return runs, parts


def hide_outcomes(features: Floats) -> Floats:
    """Return features without those of what came of a plan."""
    hidden = features.copy()
    hidden[:, OUTCOMES : OUTCOMES + 5] = 0.0
    return hidden


def fit_table_confidence(model: TableModel, runs: Sequence[RunTable]) -> TableModel:
    """Return a model with the mixture and the confidence that questions give which no score was fitted to."""
    scale, judge, none = fit_mixture_of([(run.scores, run.likeness, run.right) for run in runs])
    model = replace(model, scale=scale, judge=judge, none=none)
    ranked = [rank_run(model, run) for run in runs]
    right = np.array([bool(run.right[order[0]]) for run, (order, _) in zip(runs, ranked, strict=True)])
    return replace(model, confidence=fit_logistic(np.array([features for _, features in ranked]), right))


def rank_run(model: TableModel, run: RunTable) -> tuple[list[int], Floats]:
    """Return the order of the options of a question, as a reader makes it, and the features of the confidence."""
    order, _, features = rank_tables(
        model,
        run.scores,
        run.example.features,
        [run.example.answers[place] for place in run.places],
        correct_scores(model.judge, run.likeness, len(run.places)),
    )
    return order, features


def measure_tables(model: TableModel, runs: Sequence[RunTable]) -> dict[str, Any]:
    """Return figures over the worlds of the fold that nothing was fitted to, mixture and confidence fitted without
    the world of each question."""
    held_out = [run for run in runs if not run.fold]
    chances, right, three = (np.zeros(len(held_out)) for _ in range(3))
    for world in sorted({run.example.question.world for run in held_out}):
        fitted = fit_table_confidence(model, [run for run in held_out if run.example.question.world != world])
        for place, run in enumerate(held_out):
            if run.example.question.world == world:
                order, features = rank_run(fitted, run)
                chances[place] = 1 / (1 + np.exp(-features @ fitted.confidence))
                right[place], three[place] = run.right[order[0]], run.right[order[:3]].any()
    questions = [run.example.question for run in held_out]
    known = np.array([bool(question.sql) for question in questions])
    names = [(each.kind, each.wording, each.world) for each in questions if each.sql]
    answerable = int(known.sum())
    return {
        **measure_chances(chances, right > 0, answerable, len(held_out)),
        "proposed": round(sum(bool(run.example.right.any()) for run in held_out) / answerable, 4),
        "right among three": round(float(three.sum()) / answerable, 4),
        "right first without the judge": round(sum(float(run.right[0]) for run in held_out) / answerable, 4),
        "right first by": count_by(names, right[known] > 0),
    }
