"""Training of what reads questions about outlines, on a part of the outlines that were written for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from clew.core.errors import UsageError
from clew.models.plan_judge import OUTLINES_FILE, create_plan_judge
from clew.questions.outline_reading import OUTLINE_FEATURES, OutlineModel
from clew.train.outline_data import build_outline, read_outline_source, read_plan
from clew.train.outlines import OPTIONS_FILE, OutlineSettings, read_content, train_outlines
from clew.train.plans import read_options

OUTLINES = Path(__file__).parents[2] / "benchmarks" / "data" / "outlines"


def write_part(folder: Path, name: str) -> Path:
    """Write the first four documents of a source with every third question."""
    written = json.loads((OUTLINES / f"{name}.json").read_text(encoding="utf-8"))
    documents = written["documents"][:4]
    names = {document["name"] for document in documents}
    questions = [row for row in written["questions"] if row["document"] in names][::3]
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"documents": documents, "questions": questions}), encoding="utf-8")
    return file


def test_a_training_writes_what_is_read_and_a_record(tmp_path: Path) -> None:
    sources = [write_part(tmp_path, name) for name in ("contracts", "manuals")]
    content = tmp_path / "content.jsonl"
    content.write_text("".join(json.dumps({"question": f"Who wrote book {n}?"}) + "\n" for n in range(20)))
    seen: list[tuple[str, int, int]] = []

    def train() -> dict[str, object]:
        return train_outlines(
            sources,
            [content],
            create_plan_judge(),
            OutlineSettings(most_content=8),
            tmp_path / "out",
            lambda *a: seen.append(a),
        )

    record = train()
    with np.load(tmp_path / "out" / OUTLINES_FILE, allow_pickle=False) as stored:
        model = OutlineModel.of_arrays(dict(stored))
    assert model.score.linear.shape == (len(OUTLINE_FEATURES),)
    assert "content" in model.wording.aspects["shape"].shapes
    figures = record["after"]
    assert isinstance(figures, dict)
    assert 0 < figures["right first"] <= figures["proposed"] <= 1
    assert figures["content left to the search"]["of"] > 3
    options = read_options(tmp_path / "out" / OPTIONS_FILE)
    assert len(options) > 2 * figures["of"]  # of the other folds
    assert all(each.gold in each.sentences for each in options if each.right.any())
    assert {each.gold is None for each in options} == {True, False}
    count = len(seen)
    assert train() == record and len(seen) == count  # a finished training is not done again


def test_plans_are_read_from_json() -> None:
    plan = read_plan(
        {
            "operation": "neighbour",
            "selectors": [
                {"kind": "page", "relation": "after", "anchor": {"kind": "table", "number": 1, "label": 1}}
            ],
        }
    )
    assert plan is not None and plan.operation == "show"
    (selector,) = plan.selectors
    assert selector.anchor is not None and selector.anchor.label == "1"
    assert read_plan({"operation": "content"}) is None


def test_an_outline_becomes_a_document_with_its_structure() -> None:
    written = {
        "name": "report.pdf",
        "title": "Report",
        "pages": 2,
        "printed": ["i", "1"],
        "sections": [{"name": "1 Tolls", "level": 1, "page": 2}],
        "tables": [{"caption": "Table 1. Tolls", "page": 2, "columns": ["What", "Pence"], "rows": ["Horse"]}],
        "figures": [{"caption": "Figure 1. The gate", "page": 1}],
    }
    kinds = [(node.kind, node.name, node.page) for node in build_outline(written).nodes]
    assert (
        ("page", "i", 1) in kinds
        and ("section", "1 Tolls", 2) in kinds
        and ("table", "Table 1. Tolls", 2) in kinds
    )


def test_what_cannot_be_trained_on_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no questions about outlines"):
        read_outline_source(tmp_path)
    (tmp_path / "other.jsonl").write_text('{"text": "no question"}\n')
    with pytest.raises(UsageError, match="no questions in"):
        read_content([tmp_path / "other.jsonl"])
