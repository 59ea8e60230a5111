"""The training of what reads plain questions over tables, with small worlds and the shipped judge."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.models.encoders import OnnxEncoder, embedded_folder
from clew.models.plan_judge import create_plan_judge
from clew.questions.table_plans import TableOption, TablePlan
from clew.questions.table_query import ResultRow, TableQuery
from clew.questions.table_reading import TableModel, TableReader, TableResult
from clew.train.plan_judge import PlanSettings
from clew.train.table_data import TableSource, World, gives_result, read_world
from clew.train.tables import deal_tables, fit_table_confidence, judge_tables, measure_tables, prepare_tables
from table_worlds import HEADERS, write_world

FOLD_OF = {name: number % 4 for number, name in enumerate(HEADERS)}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("worlds")
    return [write_world(folder, name) for name in HEADERS]


def test_weights_of_worlds_find_the_plans_of_a_world_left_out(worlds, tmp_path):
    encoder, judge, seen = OnnxEncoder(embedded_folder("hops")), create_plan_judge(), []
    settings, sources = PlanSettings(most_tables=6), [TableSource(world) for world in worlds]
    model, runs = prepare_tables(
        sources, FOLD_OF, encoder, settings, tmp_path, lambda *told: seen.append(told[0])
    )["table"]
    assert set(seen) == {"cells", "queries", "scores"} and {run.fold for run in runs} == {0, 1, 2, 3}
    judge_tables(runs, judge.compare, lambda done, total: None)
    measures, model = measure_tables(model, runs), fit_table_confidence(model, runs)
    assert measures["questions"] == 10 and measures["of"] == 24 and measures["proposed"] == 1.0
    assert measures["right among three"] >= 0.6 and measures["right first by"]["count"][1] == 2
    arrays = model.to_arrays()
    assert all(np.isfinite(array).all() for name, array in arrays.items() if array.dtype.kind == "f")
    again = TableModel.of_arrays(arrays)
    assert again.shapes.shapes == model.shapes.shapes
    # What was prepared is kept: the same training reads it.
    _, same = prepare_tables(sources, FOLD_OF, encoder, settings, tmp_path, lambda *told: None)["table"]
    assert [run.sentences for run in same] == [run.sentences for run in runs]
    example = runs[0].for_judge()
    assert example.gold is not None and len(example.sentences) == len(example.scores) == len(example.right)
    with World(worlds[0], encoder) as world:
        reader = TableReader(judge)
        reader.model = model
        readings = reader.read("How many orders of Norway?", world.catalogues)
        assert readings[0].plan.sql == "select count(*) from orders where country = 'Norway'"
        assert 0 < readings[0].probability < 1


def test_a_result_is_compared_in_any_notation(worlds):
    judge = create_plan_judge()
    model = TableModel.of_arrays(judge.arrays)
    with World(worlds[0], judge.encoder) as world:
        example = world.prepare(read_world(worlds[0])[0], model.columns, model.cells)
    right = {said for said, is_right in zip(example.sentences, example.right, strict=True) if is_right}
    assert "orders: total where order is A3" in right and "orders: quantity where order is A3" not in right


def test_no_result_is_that_of_a_plan_that_found_nothing(worlds):
    encoder = OnnxEncoder(embedded_folder("hops"))
    with World(worlds[0], encoder) as world:
        example = world.prepare(read_world(worlds[0])[5], np.ones(12), np.ones(11))
    assert not example.right.any()
    assert not gives_result(TableResult(()), None, [])


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("2014-09-08", "08 Sep 2014"),
        ("2014-09-08", "9/8/2014"),
        ("2026-06-30", "06/2026"),
        ("2024-03-05 09:30:00", "05.03.2024 09:30"),
    ],
)
def test_a_day_of_a_result_is_that_of_a_cell_in_any_notation(cell, written):
    option = TableOption(TablePlan(TableQuery(None, "values", 1)), "cell", (0.0,), frozenset())
    result = TableResult((ResultRow("", written, np.array([0])),))
    assert gives_result(result, option, [(cell,)])
    assert not gives_result(result, option, [("2013-12-31",)])


def test_too_few_worlds_and_folders_without_questions_are_refused(worlds, tmp_path):
    with pytest.raises(UsageError, match="4 worlds of tables are too few"):
        deal_tables(worlds[:4], [], [])
    with pytest.raises(UsageError, match="no questions over tables"):
        read_world(tmp_path)


def test_contexts_of_tat_qa_are_asked_beside_other_tables(tmp_path):
    contexts = [
        {
            "table": {"uid": f"t{number}", "table": [["", "2019", "2018"], *rows]},
            "paragraphs": [{"text": "Nothing of it."}],
            "questions": [
                {
                    "uid": f"q{number}",
                    "question": f"What was the {asked} of {rows[0][0].lower()} in 2019 and 2018?",
                    "answer": answer,
                    "derivation": "",
                    "answer_type": kind,
                    "answer_from": source,
                    "scale": "",
                }
                for asked, answer, kind, source in (
                    ("average", 15, "arithmetic", "table"),
                    ("reason", ["rain"], "span", "text"),
                )
            ],
        }
        for number, rows in enumerate(
            [[name, "$20", "$10"], ["Wages", "7", "8"]] for name in ("Salt", "Coal", "Tin", "Rope") * 5
        )
    ]
    file = tmp_path / "dev.json"
    file.write_text(json.dumps(contexts), encoding="utf-8")
    judge, source = create_plan_judge(), TableSource(file, 3)
    model = TableModel.of_arrays(judge.arrays)
    with source.open(judge.encoder) as tables:
        asked, other = source.read()[:2]
        example = tables.prepare(asked, model.columns, model.cells)
        assert len(tables.choose_tables(asked)) == len(tables.catalogues) == 2
        assert not tables.prepare(other, model.columns, model.cells).right.any()
    said = {text for text, is_right in zip(example.sentences, example.right, strict=True) if is_right}
    assert any(text.startswith("table: average of 2019 and 2018 where") for text in said)
    _, folds = deal_tables([tmp_path / str(number) for number in range(5)], [], [file])
    assert [name for name, fold in folds.items() if not fold] == ["0", "4", "TAT-QA 0", "TAT-QA 5"]
