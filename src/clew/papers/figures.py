"""The figures of the KGP and D3 papers' analyses, as PNG and SVG; needs the extra ``plots``.

Each function returns the files that it wrote: ``target`` with the endings ``.png`` and ``.svg``. All raise
MissingExtra without matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.core.errors import require_packages

#: Colours that can be told apart by people who see few, and in grey by their markers (Okabe and Ito, 2008).
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = "osD^vP"


def draw_graph_quality(
    series: Mapping[str, Sequence[Mapping[str, float]]], title: str, target: Path
) -> list[Path]:
    """Draw SF-EM (full lines) and precision (dashed) against the mean number of neighbours, as in Figure 5.

    ``series`` holds for each graph its points, each with ``neighbours``, ``sf_em`` and ``precision``.
    """
    plt = load_pyplot()
    figure, left = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    right = left.twinx()
    for number, (name, points) in enumerate(series.items()):
        x, ordered = _sort_by_neighbours(points)
        style = _style(number)
        left.plot(x, [point["sf_em"] for point in ordered], label=name, **style)
        right.plot(x, [point["precision"] for point in ordered], linestyle="--", alpha=0.7, **style)
    left.set(title=title, ylabel="SF-EM (full lines)")
    right.set_ylabel("precision (dashed)")
    right.set_ylim(bottom=0)
    _label_neighbours(left)
    _limit_to_share(left)
    return _save_figure(plt, figure, left, target)


def draw_density(
    series: Mapping[str, Sequence[Mapping[str, Any]]], measure: str, title: str, target: Path
) -> list[Path]:
    """Draw performance and latency against the mean number of neighbours in two panels, as in Figures 6 and 10.

    ``series`` holds for each graph its points, each with ``neighbours``, ``measure``, ``walk-seconds`` and the
    ``intervals`` of both; a point that lacks the measure is left out.
    """
    plt = load_pyplot()
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(6.4, 6.4), sharex=True, layout="constrained", height_ratios=(3, 2)
    )
    for number, (name, points) in enumerate(series.items()):
        measured = [point for point in points if measure in point]
        x, ordered = _sort_by_neighbours(measured)
        style = _style(number)
        _plot_intervals(upper, x, ordered, measure, label=name, **style)
        lower.plot(x, [1000 * point["walk-seconds"] for point in ordered], **style)
    upper.set(title=title, ylabel=f"{measure} (95 % interval)")
    lower.set_ylabel("latency, ms a question")
    lower.set_ylim(bottom=0)
    lower.grid(alpha=0.3)
    _label_neighbours(lower)
    _limit_to_share(upper)
    return _save_figure(plt, figure, upper, target)


def draw_branching(
    points: Sequence[Mapping[str, Any]], measures: Sequence[str], title: str, target: Path
) -> list[Path]:
    """Draw measures of performance against the branching factor at a constant budget, as in Figure 7.

    Each point has ``branch``, ``seeds``, the measures and their ``intervals``; one that lacks a measure is left
    out of its line.
    """
    plt = load_pyplot()
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for number, measure in enumerate(measures):
        measured = [point for point in points if measure in point]
        # Shifted sideways, so that equal values do not hide each other.
        offset = 0.09 * (number - (len(measures) - 1) / 2)
        x = [point["branch"] + offset for point in measured]
        _plot_intervals(axes, x, measured, measure, label=measure, **_style(number))
    axes.set_xticks(
        [point["branch"] for point in points], [f"{point['branch']}\n{point['seeds']}" for point in points]
    )
    axes.set(title=title, xlabel="branching factor, and seeds below it", ylabel="mean (95 % interval)")
    _limit_to_share(axes)
    return _save_figure(plt, figure, axes, target)


def draw_lines(
    points: Sequence[Mapping[str, Any]],
    series: str,
    x: str,
    measures: Sequence[str],
    label: str,
    title: str,
    target: Path,
) -> list[Path]:
    """Draw one panel per measure against ``x``, with a line for each value of ``series``, as in Figures 3 and 4 of
    the D3 paper.

    A point without a measure is left out of its line. Measures from 0 to 1 are drawn over that whole range.
    """
    plt = load_pyplot()
    figure, panels = plt.subplots(
        len(measures),
        1,
        figsize=(6.4, 2.4 * len(measures) + 0.8),
        sharex=True,
        layout="constrained",
        squeeze=False,
    )
    for axes, measure in zip(panels[:, 0], measures, strict=True):
        for number, name in enumerate(dict.fromkeys(point[series] for point in points)):
            measured = [point for point in points if point[series] == name and measure in point]
            ordered = sorted(measured, key=lambda point: point[x])
            values = [point[measure] for point in ordered]
            axes.plot([point[x] for point in ordered], values, label=name, **_style(number))
        axes.set_ylabel(measure)
        axes.set_ylim(bottom=0, top=1.02 if axes.dataLim.y1 <= 1 else None)
        axes.grid(alpha=0.3)
    panels[0, 0].set_title(title)
    panels[-1, 0].set_xlabel(label)
    return _save_figure(plt, figure, panels[0, 0], target)


def _sort_by_neighbours(
    points: Sequence[Mapping[str, Any]],
) -> tuple[list[float], list[Mapping[str, Any]]]:
    ordered = sorted(points, key=lambda point: point["neighbours"])
    return [point["neighbours"] for point in ordered], ordered


def _plot_intervals(
    axes: Any, x: Sequence[float], points: Sequence[Mapping[str, Any]], measure: str, **style: Any
) -> None:
    """Draw a line with a thin bar for the interval of each point."""
    y = [point[measure] for point in points]
    ends = [point["intervals"][measure] for point in points]
    below = [mean - low for mean, (low, _) in zip(y, ends, strict=True)]
    above = [high - mean for mean, (_, high) in zip(y, ends, strict=True)]
    axes.errorbar(x, y, yerr=(below, above), elinewidth=0.6, **style)


def _style(number: int) -> dict[str, Any]:
    return {"color": _COLOURS[number % 6], "marker": _MARKERS[number % 6], "markersize": 4}


def _label_neighbours(axes: Any) -> None:
    """Label the axis of the mean number of neighbours: linear below 1, where many points lie, logarithmic above."""
    low, high = axes.dataLim.intervalx
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(0.85 * low - 0.05, 1.15 * high)
    ticks = [step * 10**power for power in range(7) for step in (1, 2, 5)]
    shown = [tick for tick in (0, 0.5, *ticks) if 0.85 * low - 0.05 <= tick <= 1.15 * high]
    axes.set_xticks(shown, [f"{tick:,}" for tick in shown], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("neighbours of a passage (mean)")


def _limit_to_share(axes: Any) -> None:
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.3)


def _save_figure(plt: Any, figure: Any, labelled: Any, target: Path) -> list[Path]:
    """Save a figure with the legend of ``labelled``, one of its axes, below it; return the files."""
    handles, labels = labelled.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=max(len(labels), 1), fontsize=8)
    written = [target.with_suffix(ending) for ending in (".png", ".svg")]
    for path in written:
        figure.savefig(path, dpi=160)
    plt.close(figure)
    return written


def load_pyplot() -> Any:
    """Return matplotlib's interface, drawing to files only. Raises MissingExtra."""
    require_packages("plots", "matplotlib", part="matplotlib, which draws figures,")
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot
