"""The questions about structure of ``benchmarks/data/structure.jsonl``, which nothing is trained on: a scored set."""

import csv
import importlib.util
import json
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "structure.py"


@pytest.fixture(scope="module")
def structure():
    spec = importlib.util.spec_from_file_location("benchmark_structure", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    limit = csv.field_size_limit(1 << 24)  # an invented table is a field of two thousand lines
    yield module
    csv.field_size_limit(limit)


def test_questions_of_the_development_part_are_read_as_often_as_before(structure, tmp_path):
    lines = [json.loads(line) for line in structure.QUESTIONS.read_text().splitlines()]
    (tmp_path / "issue").mkdir()
    files = {
        "samples": list((BENCHMARK.parents[1] / "samples" / "documents").iterdir()),
        "issue": list(structure.write_documents(tmp_path / "issue").iterdir()),
    }
    asked = [line for line in lines if line["part"] == "development" and line["base"] in files]
    assert len(asked) > 40
    bases = {name: structure.base_of_files(tmp_path / f"{name}.clew", paths) for name, paths in files.items()}
    outcomes = structure.ask_all(asked, bases, show=False)
    for base in bases.values():
        base.close()
    assert outcomes.count("right") >= 40
    assert outcomes.count("wrong") <= 4
