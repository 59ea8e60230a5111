"""The quality of a graph, worked by hand, and the figure of it."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app
from clew.core.errors import MissingExtra
from clew.evaluate.corpora import build_document, document_location
from clew.evaluate.examples import Example, Paragraph, Support
from clew.knowledge_base import registry
from clew.papers.figures import draw_graph_quality
from clew.papers.kgp import average_quality, measure_graph_quality
from clew.store.store import Store

PARAGRAPHS = (
    Paragraph("Bittern", ("The lighter was built by Tolland.",)),
    Paragraph("Tolland", ("A yard that is no more.",)),
    Paragraph("Noise", ("A town has a mayor.",)),
    Paragraph("Heron", ("The steamer sank.",)),
)


class Wired:
    """A graph of given edges."""

    mutual = True
    name = "wired"

    def __init__(self, edges):
        self.edges = edges

    def neighbours(self, row):
        return np.array(sorted(b for a, b in self.edges if a == row), dtype=np.int64)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        # From the lighter to the yard: both pieces are held, by two of two.
        (("Bittern", "Tolland"), (2, 1.0, 1.0, 1.0)),
        (("Bittern", "Noise"), (2, 0.0, 0.5, 0.5)),
        (("Noise", "Heron"), (1, 0.0, 0.5, 1.0)),
    ],
)
def test_seeds_and_their_neighbours_by_hand(tmp_path, joined, expected):
    example = Example("1", "Who built the lighter?", ("Tolland",), corpus=PARAGRAPHS,
                      support=(Support("Bittern", 0), Support("Tolland", 0)))  # fmt: skip
    with Store.open(tmp_path / "base", create=True) as base:
        documents = {paragraph.title: build_document(paragraph) for paragraph in PARAGRAPHS}
        for document in documents.values():
            base.put_document(document, document_location(document))
        base.catch_up()
        snapshot = base.snapshot()
        first, other = (int(snapshot.rows([f"{documents[title].key}:1"])[0]) for title in joined)
        graph = Wired([(first, other), (other, first)])
        result = measure_graph_quality(
            example, snapshot, graph, registry.build_retriever("tfidf", base), seeds=1
        )
    assert (result.reached, result.sf_em, result.coverage, result.precision) == expected
    assert (result.passages, result.edges, result.density) == (4, 1, 1 / 6)
    assert average_quality([result, result])["precision"] == expected[3]


@pytest.mark.slow
def test_the_command_writes_table_and_figures(tmp_path):
    record = {
        "_id": "q", "question": "Who built the lighter?", "answer": "Tolland", "type": "bridge",
        "supporting_facts": [["Bittern", 0], ["Tolland", 0]],
        "context": [[paragraph.title, list(paragraph.sentences)] for paragraph in PARAGRAPHS],
    }  # fmt: skip
    path = tmp_path / "data.json"
    path.write_text(json.dumps([record]))
    out = tmp_path / "out"
    shown = CliRunner().invoke(app, ["eval", "graphs", "--data", f"hotpotqa={path}", "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    folder = out / "hotpotqa-question-graphs"
    result = json.loads((folder / "quality.json").read_text())
    assert result["questions"] == 1 and [point["knob"] for point in result["graphs"]["mentions"]][:2] == [
        0,
        2,
    ]
    assert (folder / "quality.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "quality.svg").read_text().count("<path") > 20
    for graph, item in (("structure", "no knob"), ("knn", "encoder")):
        words = ["eval", "graphs", "--data", f"hotpotqa={path}", "--out", str(out), "-g", graph]
        refused = CliRunner().invoke(app, words)
        assert refused.exit_code == 2 and item in refused.output


def test_a_figure_needs_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra) as error:
        draw_graph_quality({}, "t", tmp_path / "figure")
    assert "[plots]'" in error.value.hint
