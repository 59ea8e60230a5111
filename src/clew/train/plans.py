"""Training of what reads plain questions over graphs: slots, shapes, linear scores, the judge, the confidence.

Domains are held out whole: in four folds for the scores that the judge starts from, and one of these folds from all
that is fitted, for the confidence and the figures of the record. The judge compares the tokens of a question with
those of a plan in words. It is trained on the hardest options of each question beside their linear scores, and in a
part of the questions without the right one, where "none of these" is right.
"""

from __future__ import annotations

import random
import shutil
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
from clew.models.encoders import MODEL_FILE, TOKENIZER_FILE
from clew.models.plan_judge import ARRAYS_FILE, PlanJudge
from clew.questions.catalogue import GraphCatalogue
from clew.questions.direction import DirectionScorer
from clew.questions.linear import (
    JUDGED,
    LinearScore,
    NetworkScore,
    add_outcomes,
    add_shapes,
    correct_scores,
    train_linear,
)
from clew.questions.names import NameScorer
from clew.questions.plans import YES_NO, GraphPlan, run_plan, say_plan, type_unknowns
from clew.questions.reading import (
    CONFIDENCE,
    RUN,
    Candidate,
    PlanModel,
    Ranking,
    Ways,
    answer_plan,
    measure_first,
    rank_candidates,
    weigh_ways,
)
from clew.questions.shapes import ShapeClassifier, ShapeExample
from clew.questions.slots import SlotScorer
from clew.questions.text import QuestionText
from clew.train.directions import (
    DirectionExample,
    DirectionQuestion,
    compare_ways,
    fit_directions,
    measure_directions,
    prepare_directions,
    read_directions,
    temper_directions,
)
from clew.train.network import train_network
from clew.train.plan_data import (
    Domain,
    PlanExample,
    PlanQuestion,
    PlanSource,
    SlotExample,
    fit_logistic,
    fit_names,
    fit_slots,
    read_source,
)
from clew.train.plan_fitting import (
    FOLDS,
    UnseenShapes,
    count_by,
    deal_folds,
    fit_mixture_of,
    measure_chances,
    remember,
)
from clew.train.plan_judge import JudgeExample, JudgeTrainer, PlanSettings, RunExample
from clew.train.sentence_questions import read_lines
from clew.train.table_data import CONTEXTS, TABLES
from clew.train.tables import (
    deal_tables,
    fit_table_confidence,
    judge_tables,
    measure_tables,
    prepare_tables,
)
from clew.train.training_folder import FINISHED, TrainingFolder

if TYPE_CHECKING:
    from clew.core.arrays import Floats, Rows
    from clew.core.protocols import Encoder
    from clew.questions.table_reading import TableModel

RECORD, EXPORT_FOLDER = "clew-plans-training.json", "onnx"
#: How the record calls the kinds of tables.
TABLE_KINDS = {"table": "tables", "report": "tables of reports"}
#: Questions of other domains that each graph is asked, as questions that it cannot answer.
FOREIGN = 24


def train_plans(  # noqa: PLR0913 (the options of the command)
    folders: Sequence[Path],
    source: str,
    encoder: Encoder,
    settings: PlanSettings,
    out: Path,
    progress: Callable[[str, int, int], None],
    trained: Path | None = None,
    beside: Sequence[Path] = (),
    written: Sequence[Path] = (),
    options: Sequence[Path] = (),
) -> dict[str, Any]:
    """Train into the folder ``out`` and export; return the record, which is also written there. After an interrupt
    the same call goes on. Folders ``beside`` the others are trained on, and never held out. The judge of the folder
    ``trained``, where one is given, is taken as it is, and only what surrounds it is fitted. ``written`` are files of
    questions about relations between two names, ``options`` such as ``clew train outlines`` writes: questions with
    queries in words, on which the judge is trained, too. Raises UsageError, MissingExtra."""
    if trained is None:
        require_packages("train", "torch", "transformers", "onnx")
    worlds = [folder for folder in (*folders, *beside) if (folder / TABLES).is_dir()]
    contexts = [folder for folder in folders if (folder / CONTEXTS).is_file()]
    sources, folds = deal_sources(
        [folder for folder in folders if folder not in (*worlds, *contexts)],
        [folder for folder in beside if folder not in worlds],
    )
    table_sources, table_folds = deal_tables(
        [world for world in worlds if world in folders],
        [world for world in worlds if world in beside],
        [folder / CONTEXTS for folder in contexts],
    )
    output = TrainingFolder(out, RECORD)
    output.check()
    description = {
        "model": Path(source).name,
        "domains": [each.name for each in sources],
        "worlds": [source.name for source in table_sources],
        "directions": [file.name for file in written],
        "options": [file.name for file in options],
        "settings": asdict(settings),
    }
    if FINISHED in output.matching_record(description):
        return output.read()
    output.begin(description)
    examples, names, scorer = prepare_examples(sources, folds, encoder, settings, out, progress)
    runs, parts = run_examples(sources, examples, folds, encoder, out, progress)
    tables = prepare_tables(table_sources, table_folds, encoder, settings, out, progress)
    asked_ways = _directions_of(sources, written, encoder, names, out, progress)
    known_ways = [each for each in asked_ways if folds.get(each.domain, 1)]
    fitted: tuple[float, Floats, float] = (1.0, np.ones(3), 0.0)
    (out / EXPORT_FOLDER).mkdir(exist_ok=True)
    if trained is None:
        known = [run.for_judge() for run in runs if run.fold]
        known += [run.for_judge() for _, own in tables.values() for run in own if run.fold]
        known += [each.for_judge() for each in known_ways]
        known += [example for file in options for example in read_options(file)]
        fitted = train_judge(source, known, settings, out, partial(progress, "judge"))
    else:
        for name in (MODEL_FILE, TOKENIZER_FILE):
            shutil.copyfile(trained / name, out / EXPORT_FOLDER / name)
    no_direction = DirectionScorer({}, np.zeros(3))
    model = PlanModel(names, scorer, *parts, *fitted, np.zeros(len(CONFIDENCE)), no_direction, no_direction)
    write_arrays(model, out / EXPORT_FOLDER)
    # Measured as it is shipped, in 8 bits.
    exported, fold = PlanJudge(out / EXPORT_FOLDER, encoder), [run for run in runs if not run.fold]
    directions = compare_ways(asked_ways, exported, partial(progress, "ways"))
    held_out = compare_held_out(model.after, fold, exported.compare, partial(progress, "measure"))
    scale, likenesses, none = fit_mixture(held_out)
    model = replace(model, scale=scale, judge=likenesses, none=none)
    judged_ways = [each for each in directions if folds.get(each.question.domain, 1)]
    unseen_ways = [each for each in directions if not folds.get(each.question.domain, 1)]
    model = _fit_ways(model, judged_ways, unseen_ways)
    unseen = [each for each in sources if not folds[each.name]]
    held_out = weigh_held_out(model, exported, unseen, held_out)
    measures, _ = measure_held_out(model, held_out, sum(run.gold is not None for run in fold), len(fold))
    measured, fitted_tables = {}, {}
    for kind, (table_model, table_runs) in tables.items():
        held_out_tables = [run for run in table_runs if not run.fold]
        judge_tables(held_out_tables, exported.compare, partial(progress, "judge tables"))
        measured[TABLE_KINDS[kind]] = measure_tables(table_model, held_out_tables)
        fitted_tables[kind] = fit_table_confidence(table_model, held_out_tables)
    model = fit_confidence(model, held_out)
    write_arrays(model, out / EXPORT_FOLDER, fitted_tables)
    for name, is_asked in (("which way round", False), ("which end is asked for", True)):
        measures[name] = measure_directions(*_split_ways(judged_ways, unseen_ways, is_asked=is_asked))
    record = {**description, FINISHED: {"graphs": measures, **measured}}
    output.write(record)
    return record


def _fit_ways(
    model: PlanModel, known: Sequence[DirectionExample], unseen: Sequence[DirectionExample]
) -> PlanModel:
    """Return a model with which way round and which end is asked for, of questions about one relation."""
    between, asked = (
        temper_directions(fit_directions(own), others)
        for own, others in (_split_ways(known, unseen, is_asked=is_asked) for is_asked in (False, True))
    )
    return replace(model, direction=between, asked=asked)


def _split_ways(*groups: Sequence[DirectionExample], is_asked: bool) -> list[list[DirectionExample]]:
    return [[each for each in group if each.question.is_asked == is_asked] for group in groups]


def train_judge(
    source: str,
    examples: Sequence[JudgeExample],
    settings: PlanSettings,
    out: Path,
    progress: Callable[[int, int], None],
) -> tuple[float, Floats, float]:
    """Train and export a judge; return the weights that were fitted with it, as :attr:`JudgeTrainer.fitted` has
    them."""
    judge = JudgeTrainer(source, settings, out / "state.pt")
    judge.train(examples, progress)
    judge.export(out / EXPORT_FOLDER)
    return judge.fitted


def _directions_of(
    sources: Sequence[PlanSource],
    written: Sequence[Path],
    encoder: Encoder,
    names: NameScorer,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> list[DirectionQuestion]:
    """Return the questions about one relation, of all sources with types and of files."""
    questions: list[DirectionQuestion] = []
    typed = [source for source in sources if source.typed and not source.is_public]
    for number, source in enumerate(typed):
        progress("directions", number, len(typed))
        file = out / f"directions-{source.name}.pickle"
        questions += remember(file, partial(prepare_directions, source, encoder, names))
    return [*questions, *(question for file in written for question in read_directions(file))]


def read_options(file: Path) -> list[JudgeExample]:
    """Return the questions of JSON lines: ``question``, ``sentences``, their ``scores``, which are ``right``, and
    ``gold``, a right one or null. Raises UsageError."""
    examples = []
    for row in read_lines(file):
        if not {"question", "sentences", "scores", "right", "gold"} <= row.keys():
            raise UsageError(f"no questions with options in {file}", "See: clew train plans --help")
        scores, right = np.array(row["scores"]), np.array(row["right"], dtype=bool)
        examples.append(JudgeExample(row["question"], row["sentences"], scores, right, row["gold"]))
    return examples


def write_arrays(model: PlanModel, folder: Path, tables: Mapping[str, TableModel] | None = None) -> None:
    """Write the fitted arrays for graphs, and for tables of each kind, beside their judge. Tables of reports are read
    as spreadsheets are where the training had none."""
    arrays = dict(model.to_arrays())
    if tables:
        for kind in TABLE_KINDS:
            arrays |= tables.get(kind, tables["table"]).to_arrays(kind)
    np.savez_compressed(folder / ARRAYS_FILE, **arrays)  # type: ignore[arg-type]


def deal_sources(
    folders: Sequence[Path], beside: Sequence[Path] = ()
) -> tuple[list[PlanSource], dict[str, int]]:
    """Return what questions are taken from, each graph also without types, and the fold of each by name: 0 is held
    out, a public set and what is ``beside`` never are. Raises UsageError for too few domains."""
    own = sorted(map(PlanSource, (*folders, *beside)), key=lambda source: source.is_public)
    domains = [each for each in own if not each.is_public]
    dealt = deal_folds(
        *([each.name for each in domains if each.folder in given] for given in (folders, beside))
    )
    if sum(each.folder in folders for each in domains) < FOLDS:
        raise UsageError(
            f"{len(domains)} domains are too few", f"Whole domains are held out: give at least {FOLDS}"
        )
    untyped = [replace(domain, typed=False) for domain in domains]
    folds = {each.name: 1 for each in own if each.is_public} | dealt
    folds |= {each.name: dealt[domain.name] for each, domain in zip(untyped, domains, strict=True)}
    return [*own, *untyped], folds


def prepare_examples(
    sources: Sequence[PlanSource],
    folds: Mapping[str, int],
    encoder: Encoder,
    settings: PlanSettings,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> tuple[list[PlanExample], NameScorer, SlotScorer]:
    """Return the questions with their options, and what weighs names and slots, which all sources but the held out
    ones gave; what is prepared is kept in ``out``."""
    chooser = random.Random(settings.seed)
    questions: dict[str, list[PlanQuestion]] = {}
    for source in sources:
        own, most = read_source(source), settings.most if source.typed else settings.most_untyped
        most = settings.most_public if source.is_public else most
        questions[source.name] = chooser.sample(own, min(most, len(own)))
    measured: dict[str, list[tuple[Floats, NDArray[np.bool_]]]] = {}
    for number, source in enumerate(sources):
        progress("names", number, len(sources))
        file = out / f"names-{source.name}.pickle"
        measured[source.name] = remember(file, partial(_names_of, source, encoder, questions[source.name]))
    names = fit_names([each for name, own in measured.items() if folds[name] for each in own])
    slots: dict[str, list[SlotExample]] = {}
    for number, source in enumerate(sources):
        progress("slots", number, len(sources))
        slots[source.name] = remember(
            out / f"slots-{source.name}.pickle",
            partial(_slots_of, source, encoder, questions[source.name], names),
        )
    examples: list[PlanExample] = []
    for number, source in enumerate(sources):
        progress("options", number, len(sources))
        own_fold = folds[source.name]
        scorer = fit_slots([each for name in slots if folds[name] != own_fold for each in slots[name]])
        strangers = [
            PlanQuestion(source.name, each.question, None)
            for other in sources
            if folds[other.name] == own_fold and other.folder != source.folder and other.typed
            for each in questions[other.name]
        ]
        foreign = min(FOREIGN, len(strangers), len(questions[source.name]) // 8)
        asked = questions[source.name] + chooser.sample(strangers, foreign)
        examples += remember(
            out / f"options-{source.name}.pickle",
            partial(_options_of, source, encoder, asked, names, scorer),
        )
    known = [each for name in slots if folds[name] for each in slots[name]]
    return examples, names, fit_slots(known)


def _names_of(
    source: PlanSource, encoder: Encoder, questions: Sequence[PlanQuestion]
) -> list[tuple[Floats, NDArray[np.bool_]]]:
    with Domain(source, encoder) as domain:
        return [domain.names(question) for question in questions if question.plan is not None]


def _slots_of(
    source: PlanSource, encoder: Encoder, questions: Sequence[PlanQuestion], names: NameScorer
) -> list[SlotExample]:
    with Domain(source, encoder) as domain:
        return [domain.slots(question, names) for question in questions]


def _options_of(
    source: PlanSource,
    encoder: Encoder,
    questions: Sequence[PlanQuestion],
    names: NameScorer,
    scorer: SlotScorer,
) -> list[PlanExample]:
    with Domain(source, encoder) as domain:
        return [domain.prepare(question, names, scorer) for question in questions]


def run_examples(
    sources: Sequence[PlanSource],
    examples: Sequence[PlanExample],
    folds: Mapping[str, int],
    encoder: Encoder,
    out: Path,
    progress: Callable[[str, int, int], None],
) -> tuple[list[RunExample], tuple[ShapeClassifier, LinearScore, NetworkScore]]:
    """Return each question with its likeliest options, run, scored by what the other folds gave; and the shapes and
    scores of all but the held out fold."""
    parts: tuple[ShapeClassifier, LinearScore] | None = None
    chosen: dict[int, list[int]] = {}
    shapes = UnseenShapes(
        [
            (folds[each.question.domain], ShapeExample(each.buckets, each.vector, each.question.plan.shape))
            for each in examples
            if each.question.plan is not None
        ]
    )
    for number, each in enumerate(examples):
        progress("shapes", number, len(examples))
        classifier = shapes.train_without(folds[each.question.domain])
        add_shapes(each.features, classifier.log_probabilities(each.buckets, each.vector), each.options)
    for fold in range(FOLDS):
        known = [each for each in examples if folds[each.question.domain] != fold]
        before = train_linear([(each.features, each.right) for each in known])
        parts = (shapes.train_without(fold), before) if parts is None else parts
        for number, each in enumerate(examples):
            if folds[each.question.domain] == fold:
                chosen[number] = np.argsort(-before.scores(each.features), kind="stable")[:RUN].tolist()
    assert parts is not None
    runs: list[RunExample] = []
    for place, source in enumerate(sources):
        progress("run", place, len(sources))
        own = [(number, each) for number, each in enumerate(examples) if each.question.domain == source.name]
        runs += remember(
            out / f"runs-{source.name}.pickle",
            partial(_run_domain, source, encoder, own, chosen, folds[source.name]),
        )
    after: NetworkScore | None = None
    for fold in range(FOLDS):
        score = train_network([(run.features, run.right) for run in runs if run.fold != fold])
        after = score if after is None else after
        for run in runs:
            if run.fold == fold:
                run.scores = score.scores(run.features)
    assert after is not None
    return runs, (*parts, after)


def _run_domain(
    source: PlanSource,
    encoder: Encoder,
    examples: Sequence[tuple[int, PlanExample]],
    chosen: Mapping[int, Sequence[int]],
    fold: int,
) -> list[RunExample]:
    runs = []
    with Domain(source, encoder) as domain:
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
                    _answer_alike(
                        domain, gold, [plans[place] for place in places], rows, example.right[places]
                    ),
                    [_say(domain.catalogue, plans[place]) for place in places],
                    None if gold is None else _say(domain.catalogue, gold),
                    np.zeros(len(places)),
                )
            )
    return runs


def _answer_alike(
    domain: Domain,
    gold: GraphPlan | None,
    plans: Sequence[GraphPlan],
    rows: Sequence[Rows],
    right: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Return which plans give the answer of the one that is meant. Of yes, no and an empty set only the same plan
    does: what they say is the plan itself."""
    given = None if gold is None else run_plan(domain.graph, gold)
    if gold is None or given is None or not len(given) or gold.operation == YES_NO:
        return right
    wanted = set(answer_plan(domain.graph, gold, given))
    return right | [
        plan.operation == gold.operation
        and len(own) > 0
        and set(answer_plan(domain.graph, plan, own)) == wanted
        for plan, own in zip(plans, rows, strict=True)
    ]


def _say(catalogue: GraphCatalogue, plan: Any) -> str:
    return say_plan(plan, type_unknowns(plan, catalogue))


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """A question that no score was fitted to: its options ``places``, the likelier without the judge first, with
    that score and how alike the judge finds each, (options, 3). ``taken_away`` where the graph is asked without a
    relation that the question needs, so that no plan can be right. ``ways`` are those of the likeliest option, where
    it can be turned, and ``turned_right`` says whether the turned one answers as the question's plan does."""

    run: RunExample
    places: list[int]
    scores: Floats
    likeness: Floats
    taken_away: bool
    ways: Ways | None = None
    turned_right: bool = False

    def judge_first(self, ranking: Ranking, *, alone: bool) -> tuple[Floats, bool, float]:
        """Return the features of the confidence in the first of a ranking, whether that answers rightly, and the most
        that the confidence can be."""
        first, is_right = self.candidates[ranking.order[0]], bool(self.answer[ranking.order[0]])
        ways = self.ways if self.ways is not None and self.ways.first.option is first.option else None
        if ways is not None and ways.likelier is ways.turned:
            first, is_right = ways.turned, self.turned_right
        features = measure_first(ranking.features, first, ways, alone=alone)
        return features, is_right, 1.0 if ways is None else ways.certainty

    @property
    def domain(self) -> str:
        """The domain of the question."""
        return self.run.example.question.domain

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which options mean what the question means."""
        return self.run.right[self.places]

    @property
    def answer(self) -> NDArray[np.bool_]:
        """Which options answer as what the question means does."""
        return self.run.answer[self.places]

    @property
    def is_foreign(self) -> bool:
        """Whether the graph is asked what only a base with other sources would be."""
        question = self.run.example.question
        return self.taken_away or (question.plan is None and not question.kind)

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
    after: NetworkScore,
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
    return fit_mixture_of([(each.scores, each.likeness, each.right) for each in held_out])


def fit_confidence(model: PlanModel, held_out: Sequence[HeldOut]) -> PlanModel:
    """Return a model with the mixture and the confidence that questions give which no score was fitted to. The
    confidence is that of the answer. Each question is asked of a base with other sources, too, and what is foreign to
    the graph only of such a base."""
    scale, judge, none = fit_mixture(held_out)
    model = replace(model, scale=scale, judge=judge, none=none)
    firsts = [
        each.judge_first(rank_held_out(model, each), alone=alone)
        for alone in (False, True)
        for each in held_out
        if not (alone and each.is_foreign)
    ]
    features, right, _ = (np.array(own) for own in zip(*firsts, strict=True))
    return replace(model, confidence=fit_logistic(features, right))


def rank_held_out(model: PlanModel, question: HeldOut) -> Ranking:
    """Return the ranking of the options of a question, as a reader makes it."""
    corrections = correct_scores(model.judge, question.likeness[:JUDGED], len(question.places))
    return rank_candidates(model, question.candidates, corrections)


def weigh_held_out(
    model: PlanModel, judge: PlanJudge, sources: Sequence[PlanSource], held_out: Sequence[HeldOut]
) -> list[HeldOut]:
    """Return questions with the ways of their likeliest options; ``model`` has the mixture already."""
    weighed: list[HeldOut] = []
    for source in sources:
        own = [each for each in held_out if each.domain == source.name]
        with Domain(source, judge.encoder) as domain:
            weighed += [_weigh_first(model, judge, domain, each) for each in own]
    return weighed


def _weigh_first(model: PlanModel, judge: PlanJudge, domain: Domain, each: HeldOut) -> HeldOut:
    question = each.run.example.question
    first = each.candidates[rank_held_out(model, each).order[0]]
    within = replace(first, catalogue=domain.catalogue)
    ways = weigh_ways(model, judge, QuestionText(question.question), within)
    if ways is None:
        return each
    turned = ways.turned.option.plan
    is_right = domain.compare(question, [ways.turned.option])
    answers = _answer_alike(domain, question.plan, [turned], [ways.turned.rows], is_right)
    # The catalogue is closed with its domain.
    ways = Ways(first, replace(ways.turned, catalogue=first.catalogue), ways.chance)
    return replace(each, ways=ways, turned_right=bool(answers[0]) and not each.taken_away)


def measure_held_out(
    model: PlanModel, held_out: Sequence[HeldOut], answerable: int, total: int
) -> tuple[dict[str, Any], Floats]:
    """Return figures over questions of domains that nothing was fitted to, mixture and confidence fitted without the
    domain of each; and how likely each first answer was said to be, (questions,), those with what is asked taken away
    included. Right is what answers as the plan does that is meant."""
    chances, of_graphs, right, three, linear = (np.zeros(len(held_out)) for _ in range(5))
    for domain in sorted({each.domain for each in held_out}):
        fitted = fit_confidence(model, [each for each in held_out if each.domain != domain])
        for place, each in enumerate(held_out):
            if each.domain == domain:
                ranking = rank_held_out(fitted, each)
                for stated, is_alone in ((chances, False), (of_graphs, True)):
                    features, right[place], most = each.judge_first(ranking, alone=is_alone)
                    stated[place] = min(float(1 / (1 + np.exp(-features @ fitted.confidence))), most)
                three[place] = right[place] or each.turned_right or each.answer[ranking.order[:3]].any()
                linear[place] = each.answer[0]
    asked = np.array([not each.taken_away for each in held_out])
    own = np.array([not each.is_foreign for each in held_out])
    questions = [each.run.example.question for each in held_out if not each.taken_away]
    names = [(each.kind, each.wording, each.domain) for each in questions if each.plan is not None]
    known = np.array([each.plan is not None for each in questions])
    measures = {
        **measure_chances(chances[asked], right[asked] > 0, answerable, total),
        "right among three": round(float(three[asked].sum()) / answerable, 4),
        "right first without the judge": round(float(linear[asked].sum()) / answerable, 4),
        "graphs alone": measure_chances(of_graphs[own], right[own] > 0, answerable, int(own.sum())),
        "stated with what is asked taken away": {
            "wrong": int((chances[~asked] >= STATED_FROM).sum()),
            "of": int((~asked).sum()),
        },
        "right first by": count_by(names, right[asked][known] > 0),
    }
    return measures, chances
