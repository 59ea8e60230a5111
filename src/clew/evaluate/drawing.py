"""Figures, as PNG and SVG; needs the extra ``plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.errors import MissingExtra

#: Colours that can be told apart by people who see few, and in grey by their markers (Okabe and Ito, 2008).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = "osD^vP"


def graph_quality(
    series: Mapping[str, Sequence[Mapping[str, float]]], title: str, target: Path
) -> list[Path]:
    """Draw SF-EM (full lines) and precision (dashed) against the mean number of neighbours, as Figure 5 has them.

    ``series`` holds for each graph its points, each with ``neighbours``, ``sf_em`` and ``precision``. Returns
    the files written: ``target`` with the endings ``.png`` and ``.svg``. Raises MissingExtra.
    """
    plt = _pyplot()
    figure, left = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    right = left.twinx()
    for number, (name, points) in enumerate(series.items()):
        ordered = sorted(points, key=lambda point: point["neighbours"])
        x = [point["neighbours"] for point in ordered]
        style = {"color": _COLOURS[number % 6], "marker": _MARKERS[number % 6], "markersize": 4}
        left.plot(x, [point["sf_em"] for point in ordered], label=name, **style)
        right.plot(x, [point["precision"] for point in ordered], linestyle="--", alpha=0.7, **style)
    left.set_xscale("symlog", linthresh=1)
    left.set(xlabel="neighbours of a passage (mean)", ylabel="SF-EM (full lines)", title=title)
    left.set_ylim(0, 1.02)
    right.set_ylabel("precision (dashed)")
    right.set_ylim(bottom=0)
    left.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(series) or 1, fontsize=8)
    written = [target.with_suffix(ending) for ending in (".png", ".svg")]
    for path in written:
        figure.savefig(path, dpi=160)
    plt.close(figure)
    return written


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("matplotlib, which draws figures,", "plots") from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot
