"""The training of what reads plain questions over graphs: all of it but the judge without torch."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tiny_models
from clew.core.errors import UsageError
from clew.models.encoders import OnnxEncoder, embedded_folder
from clew.models.plan_judge import create_plan_judge
from clew.questions.plans import Kind, run_plan
from clew.questions.reading import PlanModel
from clew.train.plan_data import Domain, PlanSource, read_source
from clew.train.plan_fitting import calibration_error, right_at
from clew.train.plan_judge import PlanSettings
from clew.train.plans import (
    EXPORT_FOLDER,
    compare_held_out,
    deal_sources,
    measure_held_out,
    prepare_examples,
    read_options,
    run_examples,
    train_plans,
)
from misspelling import misspell
from table_worlds import HEADERS, write_world

DATA = Path(__file__).parents[1] / "questions" / "data"
SETTINGS = PlanSettings(most=8, most_untyped=1, steps=4, batch=2, options=3, save_every=2)


@pytest.fixture(scope="module")
def domains(tmp_path_factory):
    """Five domains: two graphs, each under several names, with a few questions."""
    folder = tmp_path_factory.mktemp("domains")
    for number, (name, source) in enumerate(
        [("a", "kitchen"), ("b", "hospital"), ("c", "kitchen"), ("d", "hospital"), ("e", "hospital")]
    ):
        shutil.copytree(DATA / source, folder / name)
        lines = (DATA / source / "questions.jsonl").read_text(encoding="utf-8").splitlines()
        (folder / name / "questions.jsonl").write_text("\n".join(lines[number::6]) + "\n", encoding="utf-8")
    return [folder / name for name in "abcde"]


@pytest.fixture(scope="module")
def runs(domains, tmp_path_factory):
    """The questions with their options, run, and what was fitted to them."""
    out = tmp_path_factory.mktemp("training")
    encoder, seen = OnnxEncoder(embedded_folder("hops")), []
    sources, folds = deal_sources(domains)
    prepared = partial(prepare_examples, sources, folds, encoder, SETTINGS, out)
    examples, names, scorer = prepared(lambda *told: seen.append(told))
    ran, parts = run_examples(sources, examples, folds, encoder, out, lambda *told: seen.append(told))
    assert {part for part, _, _ in seen} == {"names", "slots", "options", "shapes", "run"}
    again, _, _ = prepared(lambda *told: None)
    assert [each.question for each in again] == [each.question for each in examples]  # what was done is kept
    return ran, (names, scorer, *parts)


def test_the_options_of_a_question_are_run_and_scored_by_what_other_domains_gave(runs):
    ran, _ = runs
    assert len(ran) > 15 and {run.fold for run in ran} == {0, 1, 2, 3}
    answerable = [run for run in ran if run.gold is not None]
    assert 0 < len(answerable) < len(ran)  # questions of other domains cannot be asked
    assert all(len(run.options) == len(run.rows) == len(run.scores) == len(run.sentences) for run in ran)
    assert any(run.right.any() for run in answerable)
    assert not any(run.right.any() for run in ran if run.gold is None)


def test_held_out_questions_are_measured_with_and_without_what_they_need(runs):
    ran, parts = runs
    judge = create_plan_judge()
    shipped = PlanModel.of_arrays(judge.arrays)
    names, scorer, shapes, before, after = parts
    model = replace(shipped, names=names, slots=scorer, shapes=shapes, before=before, after=after)
    held_out = compare_held_out(model.after, ran, judge.compare, lambda done, total: None)
    away = [each for each in held_out if each.taken_away]
    assert away and not any(each.right.any() for each in away)
    measures, chances = measure_held_out(model, held_out, sum(run.gold is not None for run in ran), len(ran))
    assert len(chances) == len(held_out) and ((chances >= 0) & (chances <= 1)).all()
    assert 0 < measures["right first"] <= measures["right among three"] <= 1
    assert measures["stated with what is asked taken away"]["of"] == len(away)


def test_what_is_right_at_a_share_of_wrong_answers_is_counted_from_the_surest():
    right = np.array([True, True, False, True, False])
    chances = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    assert right_at(chances, right, 0.05, 20) == 3  # one of twenty may be wrong
    assert right_at(chances, right, 0.0, 20) == 2
    assert calibration_error(np.array([0.25, 0.25, 0.25, 0.25]), np.array([True, False, False, False])) == 0
    assert calibration_error(np.array([0.95, 0.95]), np.array([False, False])) == pytest.approx(0.95)


def test_too_few_domains_and_folders_without_questions_are_refused(domains, tmp_path):
    with pytest.raises(UsageError, match="no questions over a graph"):
        read_source(PlanSource(tmp_path))
    with pytest.raises(UsageError, match="3 domains are too few"):
        deal_sources(domains[:3])


def test_a_graph_is_also_asked_without_its_types(domains):
    sources, folds = deal_sources(domains)
    assert len(sources) == 2 * len(domains) and folds["a"] == folds["a without types"] == folds["e"] == 0
    _, folds = deal_sources(domains[1:], domains[:1])
    assert (
        folds["a"] == folds["a without types"] == 1 and folds["b"] == 0
    )  # what stands beside is never held out
    typed, untyped = (read_source(PlanSource(domains[0], each)) for each in (True, False))
    assert {each.question for each in untyped} <= {each.question for each in typed}
    assert not any(isinstance(part, Kind) for each in untyped if each.plan for part in each.plan.statements)
    with Domain(PlanSource(domains[0], False), None) as domain:
        assert not domain.catalogue.types and domain.catalogue.properties


def test_a_public_set_is_never_held_out_and_its_paths_never_come_back(tmp_path):
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "graph.tsv").write_text(
        "Rain\tdirected by\tAda\nSnow\tdirected by\tAda\nSnow\thas genre\tDrama\n"
    )
    for file, type, answers in [
        ("dev_2hop", "movie_to_director_to_movie", ["Snow"]),
        ("dev_3hop", "movie_to_director_to_movie_to_genre", ["Drama"]),
    ]:
        row = {"question": "what is like [Rain]", "answers": answers, "type": type}
        (folder / f"{file}.jsonl").write_text(json.dumps(row) + "\n")
    source = PlanSource(folder)
    two, three = read_source(source)
    assert two.question == "What is like Rain?"
    with Domain(source, None) as domain:
        for question, answer in ((two, "Snow"), (three, "Drama")):
            assert [each.name for each in domain.graph.entities(run_plan(domain.graph, question.plan))] == [
                answer
            ]


def test_a_word_is_misspelt_in_its_middle():
    text = "Which ward does the senior consultant of cardiology supervise?"
    spelt = {misspell(text, seed) for seed in range(20)}
    assert len(spelt) > 3 and all(sorted(each) == sorted(text) for each in spelt)


@pytest.mark.slow
@pytest.mark.skipif(
    any(find_spec(package) is None for package in ("torch", "transformers", "onnx")),
    reason="needs the extra 'train'",
)
@pytest.mark.filterwarnings("ignore")
def test_a_judge_is_trained_exported_and_goes_on_where_it_was_stopped(domains, tmp_path):
    domains = [*domains, *(write_world(tmp_path / "worlds", name) for name in HEADERS)]
    words = sorted(
        {
            word
            for folder in domains
            for line in (folder / "questions.jsonl").read_text().splitlines()
            for word in json.loads(line)["question"].split()
        }
    )
    source = tiny_models.encoder(tmp_path / "source", words, window=112)

    options = tmp_path / "options.jsonl"
    row = {
        "question": "how many tables",
        "sentences": ["count the tables", "list the tables"],
        "scores": [1.0, 0.5],
    }
    rows = [
        row | {"right": [True, False], "gold": "count the tables"},
        row | {"right": [False] * 2, "gold": None},
    ]
    options.write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert [each.gold for each in read_options(options)] == ["count the tables", None]
    (tmp_path / "others.jsonl").write_text('{"question": "?"}\n')
    with pytest.raises(UsageError, match="no questions with options"):
        read_options(tmp_path / "others.jsonl")
    train = partial(
        train_plans, domains, str(source), OnnxEncoder(embedded_folder("hops")), SETTINGS, tmp_path / "out"
    )

    class Stop(Exception):
        pass

    def stop(part, done, total):
        if part == "judge" and done == 2:
            raise Stop

    with pytest.raises(Stop):
        train(stop, options=[options])
    seen = []
    record = train(lambda *told: seen.append(told), options=[options])
    assert [done for part, done, _ in seen if part == "judge"] == [3, 4]
    assert record == train(stop, options=[options])
    assert record["options"] == ["options.jsonl"]
    assert json.dumps(record)
    assert {file.name for file in (tmp_path / "out" / EXPORT_FOLDER).iterdir()} == {
        "model.onnx",
        "tokenizer.json",
        "plans.npz",
    }
