"""Training of what reads plain questions about the structure of documents: shapes of wordings, what numbers are taken
for, the score of queries, the confidence.

Documents are held out whole, in four folds: the score of each question comes of the others. One of the folds is held
out from the judge, too (:data:`OPTIONS_FILE` is what it may be trained on), for its weight beside the score, the
confidence and the figures of the record. Questions about content, of any set, are asked of outlines that cannot
answer them.
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
from clew.questions.linear import train_linear
from clew.questions.outline_plans import CONTENT
from clew.questions.outline_reading import (
    ASPECTS,
    OUTLINE_CONFIDENCE,
    OutlineModel,
    OutlineWording,
    add_outline_shapes,
    aspects_of,
    choose_judged,
    rank_outlines,
    score_outlines,
)
from clew.questions.shapes import ShapeExample, train_shapes
from clew.train.network import train_network
from clew.train.outline_data import OutlineExample, OutlineQuestion, OutlineWorld, read_outline_source
from clew.train.plan_data import fit_logistic
from clew.train.plan_fitting import FOLDS, count_by, measure_chances, remember
from clew.train.training_folder import FINISHED, TrainingFolder

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, PlanJudge

RECORD = "clew-outlines-training.json"
#: What the judge may be trained on: JSON lines that ``clew train plans --options`` reads.
OPTIONS_FILE = "clew-outlines-options.jsonl"
#: The fold that is held out from everything.
HELD_OUT = 0
#: Wrong options of a question that a score is fitted to.
MOST_OTHERS = 100


@dataclass(frozen=True, slots=True)
class OutlineSettings:
    """The settings of a training: ``most_content`` questions about content of each source's outlines, and the seed by
    which they are drawn."""

    most_content: int = 150
    seed: int = 1


@dataclass(slots=True, eq=False)
class ScoredOutline:
    """A question with its fold and what the other folds gave: the ``features`` and ``scores`` of its options, the
    places of those that the judge reads, and how alike it finds each to the question, (judged, 3)."""

    example: OutlineExample
    fold: int
    features: Floats
    scores: Floats
    judged: list[int]
    likeness: Floats

    @property
    def is_content(self) -> bool:
        """Whether it asks for no structure."""
        return self.example.question.plan is None

    @property
    def sentences(self) -> list[str]:
        """In words what the judge reads."""
        return [self.example.read.say(place) for place in self.judged]

    def write_options(self) -> dict[str, Any]:
        """Return what a judge is trained on, as a line of :data:`OPTIONS_FILE`."""
        example = self.example
        right = example.right.copy()
        right[-1] = False  # "no structure is asked for" is none of these
        likeliest = example.read.say(int(np.argmax(np.where(right, self.scores, -np.inf))))
        return {
            "question": example.question.question,
            "sentences": self.sentences,
            "scores": self.scores[self.judged].round(4).tolist(),
            "right": right[self.judged].tolist(),
            "gold": likeliest if right.any() else None,
        }

    def rank(self, model: OutlineModel) -> tuple[list[int], Floats]:
        """Return the order of its options by a model's mixture, and the features of the confidence."""
        order, _, features = rank_outlines(
            model, self.example.read, self.features, self.scores, self.judged, self.likeness
        )
        return order, features


def train_outlines(
    sources: Sequence[Path],
    content: Sequence[Path],
    judge: PlanJudge,
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
            out / f"outlines-{path.stem}.pickle", partial(prepare_source, path, judge.encoder, drawn)
        )
    scored = score_examples(examples, progress)
    with (out / OPTIONS_FILE).open("w", encoding="utf-8") as file:
        for each in scored:
            if each.fold != HELD_OUT and (each.is_content or each.example.right[:-1].any()):
                file.write(json.dumps(each.write_options(), ensure_ascii=False) + "\n")
    held_out = [each for each in scored if each.fold == HELD_OUT]
    for number, each in enumerate(held_out):
        progress("judge", number, len(held_out))
        each.likeness = judge.compare(each.example.question.question, each.sentences)
    model = fit_outlines(examples)
    measures = measure_outlines(model, held_out)
    model = fit_confidence(model, held_out)
    np.savez_compressed(out / OUTLINES_FILE, **model.to_arrays())  # type: ignore[arg-type]
    record = {**description, FINISHED: measures}
    output.write(record)
    return record


def score_examples(
    examples: Sequence[OutlineExample], progress: Callable[[str, int, int], None]
) -> list[ScoredOutline]:
    """Return the questions with the scores of their options by what the other folds gave."""
    folds, scored = deal_folds(examples), []
    for fold in range(FOLDS):
        progress("scores", fold, FOLDS)
        model = fit_outlines([each for each in examples if folds[id(each)] != fold])
        for example in examples:
            if folds[id(example)] == fold:
                features, scores = score_outlines(model, example.read)
                judged = choose_judged(example.read, scores)
                scored.append(ScoredOutline(example, fold, features, scores, judged, np.zeros((0, 3))))
    return scored


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
    without_judge = np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    return OutlineModel(fit_wording(usable), score, without_judge, np.zeros(len(OUTLINE_CONFIDENCE)))


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


def fit_confidence(model: OutlineModel, scored: Sequence[ScoredOutline]) -> OutlineModel:
    """Return a model with the mixture and the confidence that questions give which no score was fitted to."""
    mixture = fit_mixture(scored)
    model = replace(model, mixture=mixture)
    ranked = [(each, *each.rank(model)) for each in scored]
    stated = [
        (each, order, features) for each, order, features in ranked if not _starts_with_content(each, order)
    ]
    right = np.array([bool(each.example.right[order[0]]) for each, order, _ in stated])
    confidence = fit_logistic(np.array([features for _, _, features in stated]), right)
    return replace(model, confidence=confidence)


def fit_mixture(scored: Sequence[ScoredOutline]) -> Floats:
    """Return the weights of the score, of the judge's likenesses and of "no structure is asked for" beside each other
    (5,)."""
    questions = []
    for each in scored:
        features = np.zeros((len(each.judged) + 1, 5))
        features[:, 0] = each.scores[[*each.judged, -1]]
        features[:-1, 1:4] = each.likeness
        features[-1, 4] = 1.0
        questions.append((features, np.append(each.example.right[each.judged], each.example.right[-1])))
    score = train_linear(questions)
    return score.weights / score.scales


def _starts_with_content(scored: ScoredOutline, order: Sequence[int]) -> bool:
    """Return whether the first option of an order is that no structure is asked for."""
    return scored.example.read.options[order[0]].key == CONTENT


def measure_outlines(model: OutlineModel, scored: Sequence[ScoredOutline]) -> dict[str, Any]:
    """Return figures over questions whose documents nothing was fitted to; mixture and confidence without the part of
    their documents that each is in.

    Right is a query that leads to the same places, counts or lists the same; a question about content is right where
    no structure is stated for it.
    """
    parts = deal_folds([each.example for each in scored])
    ranked: list[tuple[ScoredOutline, list[int], float]] = []
    for part in range(FOLDS):
        fitted = fit_confidence(model, [each for each in scored if parts[id(each.example)] != part])
        for each in scored:
            if parts[id(each.example)] == part:
                order, features = each.rank(fitted)
                ranked.append((each, order, float(1 / (1 + np.exp(-features @ fitted.confidence)))))
    stated = [
        (each, order, chance) for each, order, chance in ranked if not _starts_with_content(each, order)
    ]
    right = np.array([bool(each.example.right[order[0]]) for each, order, _ in stated])
    asked = [(each, order) for each, order, _ in ranked if not each.is_content]
    content = [each for each, _, _ in ranked if each.is_content]
    stated_content = sum(each.is_content and chance >= STATED_FROM for each, _, chance in stated)
    proposed = sum(bool(each.example.right.any()) for each, _ in asked)
    alone = sum(bool(each.example.right[int(np.argmax(each.scores))]) for each, _ in asked)
    questions = [each.example.question for each, _, _ in ranked]
    return {
        **measure_chances(np.array([chance for _, _, chance in stated]), right, len(asked), len(ranked)),
        "proposed": round(proposed / len(asked), 4),
        "right first without the judge": round(alone / len(asked), 4),
        "content left to the search": {"right": len(content) - stated_content, "of": len(content)},
        "right first by": count_by(
            [(each.kind, each.wording, each.source) for each in questions],
            np.array([bool(each.example.right[order[0]]) for each, order, _ in ranked]),
        ),
    }
