"""Training of what reads plain questions about the structure of documents: shapes of wordings, what numbers are taken
for, the score of queries, the confidence.

Documents are held out whole, in four folds: the score of each question comes of the others, and so do the confidence
and the figures of the record. Questions about content, of any set, are asked of outlines that cannot answer them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import UsageError
from clew.core.types import STATED_FROM
from clew.models.plan_judge import OUTLINES_FILE
from clew.questions.outline_plans import CONTENT
from clew.questions.outline_reading import (
    ASPECTS,
    OUTLINE_CONFIDENCE,
    OutlineModel,
    OutlineWording,
    add_outline_shapes,
    aspects_of,
    rank_outlines,
)
from clew.questions.shapes import ShapeExample, train_shapes
from clew.train.network import train_network
from clew.train.outline_data import OutlineExample, OutlineQuestion, OutlineWorld, read_outline_source
from clew.train.plan_data import fit_logistic
from clew.train.plan_fitting import FOLDS, count_by, measure_chances, remember
from clew.train.training_folder import FINISHED, TrainingFolder

if TYPE_CHECKING:
    from clew.core.protocols import Encoder

RECORD = "clew-outlines-training.json"
#: Wrong options of a question that a score is fitted to.
MOST_OTHERS = 100


@dataclass(frozen=True, slots=True)
class OutlineSettings:
    """The settings of a training: ``most_content`` questions about content of each source's outlines, and the seed by
    which they are drawn."""

    most_content: int = 150
    seed: int = 1


@dataclass(slots=True, eq=False)
class Fitted:
    """A question with its fold, the order of its options and the features of its confidence, by what the other folds
    gave."""

    example: OutlineExample
    fold: int
    order: list[int]
    features: Any

    @property
    def is_right(self) -> bool:
        """Whether the first option is right."""
        return bool(self.example.right[self.order[0]])

    @property
    def is_content(self) -> bool:
        """Whether the first option is that no structure is asked for."""
        return self.example.read.options[self.order[0]].key == CONTENT


def train_outlines(
    sources: Sequence[Path],
    content: Sequence[Path],
    encoder: Encoder,
    settings: OutlineSettings,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Train into the folder ``out`` and return the record, which is also written there. After an interrupt the same
    call goes on. Raises UsageError."""
    output = TrainingFolder(out, RECORD)
    output.check()
    description = {
        "sources": [path.name for path in sources],
        "content": [path.name for path in content],
        "settings": asdict(settings),
    }
    if FINISHED in output.matching_record(description):
        return output.read()
    output.begin(description)
    questions = read_content(content)
    examples: list[OutlineExample] = []
    chooser = random.Random(settings.seed)
    for number, path in enumerate(sources):
        progress("options", number, len(sources))
        drawn = chooser.sample(questions, min(settings.most_content, len(questions)))
        examples += remember(
            out / f"outlines-{path.stem}.pickle", partial(prepare_source, path, encoder, drawn)
        )
    folds = deal_folds(examples)
    fitted: list[Fitted] = []
    for fold in range(FOLDS):
        progress("held-out fold", fold, FOLDS)
        model = fit_outlines([each for each in examples if folds[id(each)] != fold])
        for example in examples:
            if folds[id(example)] == fold:
                order, _, features = rank_outlines(model, example.read)
                fitted.append(Fitted(example, fold, order, features))
    measures = measure_outlines(fitted)
    model = fit_outlines(examples)
    stated = [each for each in fitted if not each.is_content]
    confidence = fit_logistic(
        np.array([each.features for each in stated]), np.array([each.is_right for each in stated])
    )
    model = replace(model, confidence=confidence)
    np.savez_compressed(out / OUTLINES_FILE, **model.to_arrays())  # type: ignore[arg-type]
    record = {**description, FINISHED: measures}
    output.write(record)
    return record


def read_content(files: Sequence[Path]) -> list[str]:
    """Return the questions of JSONL files. Raises UsageError for a file without ``question``."""
    questions = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if "question" not in row:
                raise UsageError(f"no questions in {file}", "Each line is a JSON object with question")
            questions.append(row["question"])
    return questions


def prepare_source(path: Path, encoder: Encoder, content: Sequence[str]) -> list[OutlineExample]:
    """Return the questions of a source with their options, and questions about content over the same outlines. Half
    of the questions that name their document are also asked of all documents of the source."""
    examples = []
    with OutlineWorld(path, encoder) as world:
        names = sorted(world.documents)
        for question in read_outline_source(path):
            examples.append(world.prepare(question))
            if question.document and world.names(question) and len(examples) % 2:
                examples.append(world.prepare(question, alone=False))
        for number, text in enumerate(content):
            question = OutlineQuestion(
                path.stem, names[number % len(names)], text, None, "content of other sets", ""
            )
            examples.append(world.prepare(question, alone=bool(number % 2)))
    return examples


def deal_folds(examples: Sequence[OutlineExample]) -> dict[int, int]:
    """Return the fold of each question by its document: whole documents are held out."""
    documents = sorted({(each.question.source, each.question.document) for each in examples})
    fold_of = {document: number % FOLDS for number, document in enumerate(documents)}
    return {id(each): fold_of[each.question.source, each.question.document] for each in examples}


def fit_outlines(examples: Sequence[OutlineExample]) -> OutlineModel:
    """Return the model that questions give, its confidence left open.

    What shapes and numbers are like is fitted twice: by each half for the other, so that the score learns how far to
    trust them on questions that they did not see; and by all, as what is kept.
    """
    usable = [each for each in examples if each.right.any()]
    halves = [usable[::2], usable[1::2]]
    score = train_network(
        [
            (add_outline_shapes(partly, each.read)[sample], each.fitting[sample])
            for own, other in (halves, halves[::-1])
            for partly in [fit_wording(other)]
            for each in own
            for sample in [_sample_options(each)]
        ]
    )
    return OutlineModel(fit_wording(usable), score, np.zeros(len(OUTLINE_CONFIDENCE)))


def _sample_options(example: OutlineExample) -> NDArray[np.int64]:
    """Return the options that a score is fitted to: the fitting ones, those that no structure is asked for, and a
    sample of the others; others that are right, too, are left out."""
    others = np.flatnonzero(~example.right[:-1])
    draw = np.random.default_rng(len(example.right))
    chosen = draw.choice(others, min(MOST_OTHERS, len(others)), replace=False)
    return np.union1d(np.append(chosen, len(example.right) - 1), np.flatnonzero(example.fitting))


def fit_wording(examples: Sequence[OutlineExample]) -> OutlineWording:
    """Return what is read from the wording of questions, and what their numbers are taken for."""
    aspects = {
        name: train_shapes(
            [
                ShapeExample(
                    each.read.gate if name == "gate" else each.read.buckets,
                    each.read.vector,
                    aspects_of(each.shape)[name],
                )
                for each in examples
            ]
        )
        for name in ASPECTS
    }
    roles = train_shapes(
        [
            ShapeExample(context, np.zeros(1), role)
            for each in examples
            for context, role in zip(each.read.contexts, each.roles, strict=False)
        ]
    )
    return OutlineWording(aspects, roles)


def measure_outlines(fitted: Sequence[Fitted]) -> dict[str, Any]:
    """Return figures over questions whose documents nothing was fitted to; the confidence without their fold.

    Right is a query that leads to the same places, counts or lists the same; a question about content is right where
    no structure is stated for it.
    """
    stated = [each for each in fitted if not each.is_content]
    chances = np.zeros(len(stated))
    for fold in range(FOLDS):
        known = [each for each in stated if each.fold != fold]
        weights = fit_logistic(
            np.array([each.features for each in known]), np.array([each.is_right for each in known])
        )
        for place, each in enumerate(stated):
            if each.fold == fold:
                chances[place] = 1 / (1 + np.exp(-each.features @ weights))
    stated_content = sum(
        chance >= STATED_FROM and each.example.question.plan is None
        for chance, each in zip(chances.tolist(), stated, strict=True)
    )
    asked = [each for each in fitted if each.example.question.plan is not None]
    own = [each for each in asked if each.example.right.any()]
    content = [each for each in fitted if each.example.question.plan is None]
    names = [
        (each.example.question.kind, each.example.question.wording, each.example.question.source)
        for each in fitted
    ]
    return {
        **measure_chances(chances, np.array([each.is_right for each in stated]), len(asked), len(fitted)),
        "proposed": round(len(own) / len(asked), 4),
        "content left to the search": {
            "right": len(content) - stated_content,
            "of": len(content),
        },
        "right first by": count_by(names, np.array([each.is_right for each in fitted])),
    }
