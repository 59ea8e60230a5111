"""Training of what reads plain questions over graphs: slots, shapes, linear scores, the judge, the confidence.

Domains are held out whole: in four folds for the scores that the judge starts from, and one of these folds from all
that is fitted, for the confidence and the figures of the record. The judge compares the tokens of a question with
those of a plan in words. It is trained on the hardest options of each question beside their linear scores, and in a
part of the questions without the right one, where "none of these" is right.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clew.core.errors import UsageError, require_packages
from clew.core.types import STATED_FROM
from clew.models.plan_judge import ARRAYS_FILE, PlanJudge
from clew.questions.catalogue import GraphCatalogue
from clew.questions.linear import LinearScore, add_outcomes, train_linear
from clew.questions.plans import run_plan, say_plan, type_unknowns
from clew.questions.reading import (
    CONFIDENCE,
    JUDGED,
    RUN,
    Candidate,
    PlanModel,
    Ranking,
    correct_scores,
    rank_candidates,
)
from clew.questions.shapes import ShapeClassifier, ShapeExample, train_shapes
from clew.questions.slots import SlotScorer
from clew.train.plan_data import (
    Domain,
    PlanExample,
    PlanQuestion,
    SlotExample,
    fit_logistic,
    fit_slots,
    read_domain,
)
from clew.train.plan_judge import JudgeTrainer, PlanSettings, RunExample
from clew.train.training_folder import FINISHED, TrainingFolder

if TYPE_CHECKING:
    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder

RECORD, EXPORT_FOLDER = "clew-plans-training.json", "onnx"
#: Domains are dealt into so many folds; the first is held out from everything.
FOLDS = 4
#: Questions of other domains that each graph is asked, as questions that it cannot answer.
FOREIGN = 24


def train_plans(
    folders: Sequence[Path],
    source: str,
    encoder: Encoder,
    settings: PlanSettings,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> dict[str, Any]:
    """Train into the folder ``out`` and export; return the record, which is also written there. After an interrupt
    the same call goes on. Raises UsageError, MissingExtra."""
    require_packages("train", "torch", "transformers", "onnx")
    if len(folders) < FOLDS:
        raise UsageError(
            f"{len(folders)} domains are too few", f"Whole domains are held out: give at least {FOLDS}"
        )
    output = TrainingFolder(out, RECORD)
    output.check()
    description = {
        "model": Path(source).name,
        "domains": [folder.name for folder in folders],
        "settings": asdict(settings),
    }
    if FINISHED in output.matching_record(description):
        return output.read()
    output.begin(description)
    examples, scorer = prepare_examples(folders, encoder, settings, out, progress)
    folds = {folder.name: number % FOLDS for number, folder in enumerate(folders)}
    runs, parts = run_examples(folders, examples, folds, encoder, out, progress)
    judge = JudgeTrainer(source, settings, out / "state.pt")
    judge.train([run for run in runs if run.fold], lambda done, total: progress("judge", done, total))
    judge.export(out / EXPORT_FOLDER)
    model = PlanModel(scorer, *parts, *judge.fitted, np.zeros(len(CONFIDENCE)))
    write_arrays(model, out / EXPORT_FOLDER)
    # Measured as it is shipped, in 8 bits.
    exported, fold = PlanJudge(out / EXPORT_FOLDER, encoder), [run for run in runs if not run.fold]
    held_out = compare_held_out(
        model.after, fold, exported.compare, lambda done, total: progress("measure", done, total)
    )
    measures, _ = measure_held_out(model, held_out, sum(run.gold is not None for run in fold), len(fold))
    write_arrays(fit_confidence(model, held_out), out / EXPORT_FOLDER)
    record = {**description, FINISHED: measures}
    output.write(record)
    return record


def write_arrays(model: PlanModel, folder: Path) -> None:
    """Write the fitted arrays of a model beside its judge."""
    np.savez_compressed(folder / ARRAYS_FILE, **model.to_arrays())  # type: ignore[arg-type]


def prepare_examples(
    folders: Sequence[Path],
    encoder: Encoder,
    settings: PlanSettings,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> tuple[list[PlanExample], SlotScorer]:
    """Return the questions with their options, and the slot scorer that all domains but the held out ones gave; what
    is prepared is kept in ``out``."""
    chooser = random.Random(settings.seed)
    questions: dict[str, list[PlanQuestion]] = {}
    for folder in folders:
        own = read_domain(folder)
        questions[folder.name] = chooser.sample(own, min(settings.most, len(own)))
    slots: dict[str, list[SlotExample]] = {}
    for number, folder in enumerate(folders):
        progress("slots", number, len(folders))
        slots[folder.name] = _remember(
            out / f"slots-{folder.name}.pickle",
            partial(_slots_of, folder, encoder, questions[folder.name]),
        )
    examples: list[PlanExample] = []
    for number, folder in enumerate(folders):
        progress("options", number, len(folders))
        others = [name for place, name in enumerate(questions) if place % FOLDS != number % FOLDS]
        scorer = fit_slots([each for name in others for each in slots[name]])
        strangers = [
            PlanQuestion(folder.name, each.question, None)
            for place, name in enumerate(questions)
            if place % FOLDS == number % FOLDS and name != folder.name
            for each in questions[name]
        ]
        asked = questions[folder.name] + chooser.sample(strangers, min(FOREIGN, len(strangers)))
        examples += _remember(
            out / f"options-{folder.name}.pickle",
            partial(_options_of, folder, encoder, asked, scorer),
        )
    known = [each for number, name in enumerate(slots) if number % FOLDS for each in slots[name]]
    return examples, fit_slots(known)


def _remember(file: Path, make: Callable[[], Any]) -> Any:
    """Return what a file of this training has, made and written where it is not there."""
    if file.is_file():
        return pickle.loads(file.read_bytes())
    value = make()
    temporary = file.with_suffix(".new")
    temporary.write_bytes(pickle.dumps(value))
    temporary.replace(file)
    return value


def _slots_of(folder: Path, encoder: Encoder, questions: Sequence[PlanQuestion]) -> list[SlotExample]:
    with Domain(folder, encoder) as domain:
        return [domain.slots(question) for question in questions]


def _options_of(
    folder: Path, encoder: Encoder, questions: Sequence[PlanQuestion], scorer: SlotScorer
) -> list[PlanExample]:
    with Domain(folder, encoder) as domain:
        return [domain.prepare(question, scorer) for question in questions]


def run_examples(
    folders: Sequence[Path],
    examples: Sequence[PlanExample],
    folds: Mapping[str, int],
    encoder: Encoder,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> tuple[list[RunExample], tuple[ShapeClassifier, LinearScore, LinearScore]]:
    """Return each question with its likeliest options, run, scored by what the other folds gave; and the shapes and
    linear scores of all but the held out fold."""
    parts: tuple[ShapeClassifier, LinearScore] | None = None
    chosen: dict[int, list[int]] = {}
    for fold in range(FOLDS):
        progress("shapes", fold, FOLDS)
        known = [each for each in examples if folds[each.question.domain] != fold]
        shapes = train_shapes(
            [
                ShapeExample(each.buckets, each.vector, each.question.plan.shape)
                for each in known
                if each.question.plan is not None
            ]
        )
        for each in examples:
            if fold == folds[each.question.domain] or fold == 0:
                _add_shapes(each, shapes)
        before = train_linear([(each.features, each.right) for each in known])
        parts = (shapes, before) if parts is None else parts
        for number, each in enumerate(examples):
            if folds[each.question.domain] == fold:
                chosen[number] = np.argsort(-before.scores(each.features), kind="stable")[:RUN].tolist()
    assert parts is not None
    runs: list[RunExample] = []
    for place, folder in enumerate(folders):
        progress("run", place, len(folders))
        own = [(number, each) for number, each in enumerate(examples) if each.question.domain == folder.name]
        runs += _remember(
            out / f"runs-{folder.name}.pickle",
            partial(_run_domain, folder, encoder, own, chosen, folds[folder.name]),
        )
    after: LinearScore | None = None
    for fold in range(FOLDS):
        score = train_linear([(run.features, run.right) for run in runs if run.fold != fold])
        after = score if after is None else after
        for run in runs:
            if run.fold == fold:
                run.scores = score.scores(run.features)
    assert after is not None
    return runs, (*parts, after)


def _add_shapes(example: PlanExample, shapes: ShapeClassifier) -> None:
    logs = shapes.log_probabilities(example.buckets, example.vector)
    for row, option in enumerate(example.options):
        example.features[row, 0] = logs.get(option.plan.shape, -9.0)


def _run_domain(
    folder: Path,
    encoder: Encoder,
    examples: Sequence[tuple[int, PlanExample]],
    chosen: Mapping[int, Sequence[int]],
    fold: int,
) -> list[RunExample]:
    runs = []
    with Domain(folder, encoder) as domain:
        for number, example in examples:
            plans = {place: example.options[place].plan for place in chosen[number]}
            outcomes = {place: run_plan(domain.graph, plan) for place, plan in plans.items()}
            places = [place for place, rows in outcomes.items() if rows is not None]
            rows = [rows for rows in outcomes.values() if rows is not None]
            features = add_outcomes(
                example.features[places], [plans[place] for place in places], rows, example.names
            )
            gold = example.question.plan
            runs.append(
                RunExample(
                    example,
                    fold,
                    places,
                    features,
                    rows,
                    example.right[places],
                    [_say(domain.catalogue, plans[place]) for place in places],
                    None if gold is None else _say(domain.catalogue, gold),
                    np.zeros(len(places)),
                )
            )
    return runs


def _say(catalogue: GraphCatalogue, plan: Any) -> str:
    return say_plan(plan, type_unknowns(plan, catalogue))


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """A question that no score was fitted to: its options ``places``, the likelier by the linear score first, with
    that score and how alike the judge finds each, (options, 3). ``taken_away`` where the graph is asked without a
    relation that the question needs, so that no plan can be right."""

    run: RunExample
    places: list[int]
    scores: Floats
    likeness: Floats
    taken_away: bool

    @property
    def domain(self) -> str:
        """The domain of the question."""
        return self.run.example.question.domain

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which options mean what the question means."""
        return self.run.right[self.places]

    @property
    def candidates(self) -> list[Candidate]:
        """The options as a reader ranks them."""
        run = self.run
        graph: Any = SimpleNamespace(graph=SimpleNamespace(name=self.domain))
        return [
            Candidate(
                run.example.options[run.options[place]],
                graph,
                run.features[place],
                float(score),
                run.rows[place],
            )
            for place, score in zip(self.places, self.scores, strict=True)
        ]


def compare_held_out(
    after: LinearScore,
    runs: Sequence[RunExample],
    compare: Callable[[str, Sequence[str]], Floats],
    progress: Callable[[int, int], None],
) -> list[HeldOut]:
    """Return questions with what the linear score and the judge say of their options; a fifth of them once more with
    what they need taken away."""
    held_out = []
    for number, run in enumerate(runs):
        progress(number, len(runs))
        if not run.sentences:
            continue
        scores = after.scores(run.features)
        likeness = compare(run.example.question.question, run.sentences)
        choices = [(list(range(len(run.sentences))), False)]
        gold = run.example.question.plan
        if number % 5 == 0 and gold is not None and gold.edges:
            relation, plans = (
                gold.edges[-1].relations[0],
                [run.example.options[each].plan for each in run.options],
            )
            left = [
                place
                for place, plan in enumerate(plans)
                if all(relation not in edge.relations for edge in plan.edges)
            ]
            choices += [(left, True)] * bool(left)
        for places, taken_away in choices:
            order = sorted(places, key=lambda place: -scores[place])
            held_out.append(HeldOut(run, order, scores[order], likeness[order], taken_away))
    return held_out


def fit_mixture(held_out: Sequence[HeldOut]) -> tuple[float, Floats, float]:
    """Return the weights of the linear score and of the judge's likenesses beside each other, and the score of "none
    of these", under which the right options are likeliest."""
    questions = []
    for each in held_out:
        right = each.right[:JUDGED]
        features = np.zeros((len(right) + 1, 5))
        features[:-1, 0], features[:-1, 1:4] = each.scores[:JUDGED], each.likeness[:JUDGED]
        features[-1, 4] = 1.0
        questions.append((features, np.append(right, not right.any())))
    score = train_linear(questions)
    weights = score.weights / score.scales
    return float(weights[0]), weights[1:4], float(weights[4])


def fit_confidence(model: PlanModel, held_out: Sequence[HeldOut]) -> PlanModel:
    """Return a model with the mixture and the confidence that questions give which no score was fitted to."""
    scale, judge, none = fit_mixture(held_out)
    model = replace(model, scale=scale, judge=judge, none=none)
    rankings = [rank_held_out(model, each) for each in held_out]
    right = [bool(each.right[ranking.order[0]]) for each, ranking in zip(held_out, rankings, strict=True)]
    features = np.array([ranking.features for ranking in rankings])
    return replace(model, confidence=fit_logistic(features, np.array(right)))


def rank_held_out(model: PlanModel, question: HeldOut) -> Ranking:
    """Return the ranking of the options of a question, as a reader makes it."""
    return rank_candidates(
        model, question.candidates, correct_scores(model, question.likeness[:JUDGED], len(question.places))
    )


def measure_held_out(
    model: PlanModel, held_out: Sequence[HeldOut], answerable: int, total: int
) -> tuple[dict[str, Any], Floats]:
    """Return figures over questions of domains that nothing was fitted to, mixture and confidence fitted without the
    domain of each; and how likely each first plan was said to be, (questions,), those with what is asked taken away
    included."""
    chances, right, three = (np.zeros(len(held_out)) for _ in range(3))
    for domain in sorted({each.domain for each in held_out}):
        fitted = fit_confidence(model, [each for each in held_out if each.domain != domain])
        for place, each in enumerate(held_out):
            if each.domain == domain:
                ranking = rank_held_out(fitted, each)
                chances[place] = 1 / (1 + np.exp(-ranking.features @ fitted.confidence))
                right[place], three[place] = each.right[ranking.order[0]], each.right[ranking.order[:3]].any()
    asked = np.array([not each.taken_away for each in held_out])
    stated, own = chances[asked] >= STATED_FROM, right[asked] > 0
    measures = {
        "questions": answerable,
        "right first": round(float(own.sum()) / answerable, 4),
        "right among three": round(float(three[asked].sum()) / answerable, 4),
        **{
            f"right at {share:.0%} wrong": round(right_at(chances[asked], own, share, total) / answerable, 4)
            for share in (0.05, 0.10)
        },
        "stated": {"right": int(own[stated].sum()), "wrong": int((~own[stated]).sum()), "of": total},
        "stated with what is asked taken away": {
            "wrong": int((chances[~asked] >= STATED_FROM).sum()),
            "of": int((~asked).sum()),
        },
        "expected calibration error": round(calibration_error(chances[asked], own), 4),
    }
    return measures, chances


def calibration_error(chances: Floats, right: NDArray[np.bool_], bins: int = 10) -> float:
    """Return the mean distance of stated probability and share that is right, over bins of equal width."""
    bin_of = np.minimum((chances * bins).astype(int), bins - 1)
    gaps = [
        (own := bin_of == number).sum() * abs(chances[own].mean() - right[own].mean())
        for number in range(bins)
        if (bin_of == number).any()
    ]
    return float(sum(gaps) / len(chances))


def right_at(chances: Floats, right: NDArray[np.bool_], share: float, total: int) -> int:
    """Return how many are right, at most, with a threshold at which at most a share of all is wrong."""
    order = np.argsort(-chances, kind="stable")
    hits, misses = np.cumsum(right[order]), np.cumsum(~right[order])
    allowed = misses <= share * total
    return int(hits[allowed].max(initial=0))
