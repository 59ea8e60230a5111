"""The figures of the papers' analyses: what is drawn is what was measured, as PNG and SVG."""

import pytest

from clew.papers.figures import draw_branching, draw_density, draw_graph_quality, draw_lines

pytest.importorskip("matplotlib")


def measured(neighbours, f1):
    intervals = {"f1": (f1 - 0.1, f1 + 0.1), "walk-seconds": (0.01, 0.02)}
    return {"neighbours": neighbours, "f1": f1, "walk-seconds": 0.015, "intervals": intervals}


SERIES = {"tfidf": [measured(40, 0.5), measured(0.3, 0.2)], "knn": [measured(8, 0.4), {"neighbours": 2}]}


def draw_quality(target):
    points = [{"neighbours": n, "sf_em": n / 20, "precision": 1 / (n + 1)} for n in (2, 9)]
    return draw_graph_quality({"tagme": points}, "Quality", target)


def draw_branches(target):
    points = [measured(1, 0.3) | {"branch": branch, "seeds": 12 // branch} for branch in (1, 2, 3)]
    return draw_branching([*points, {"branch": 4, "seeds": 3}], ["f1"], "Branching", target)


def draw_depths(target):
    points = [{"model": "a", "depth": depth, "f1": 0.2 * depth, "calls": 9 * depth} for depth in (2, 1)]
    return draw_lines(points, "model", "depth", ["f1", "calls"], "depth of the outline", "Depth", target)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (draw_quality, ["SF-EM", "precision", "tagme", "Quality"]),
        (lambda target: draw_density(SERIES, "f1", "Density", target), ["latency", "f1", "tfidf", "knn"]),
        (draw_branches, ["branching factor", "Branching", "f1"]),
        (draw_depths, ["depth of the outline", "calls", "Depth"]),
    ],
)
def test_a_figure_names_what_it_shows(tmp_path, monkeypatch, draw, words):
    from clew.papers.figures import load_pyplot

    monkeypatch.setitem(load_pyplot().rcParams, "svg.fonttype", "none")  # text as text
    png, svg = draw(tmp_path / "figure")
    assert png.read_bytes().startswith(b"\x89PNG") and png.stat().st_size > 5_000
    text = svg.read_text(encoding="utf-8")
    assert [word for word in words if word not in text] == []
