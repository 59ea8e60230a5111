"""The pages of how well plain questions are read, from the records of ``clew train plans`` and ``outlines``.

    python benchmarks/plan_curves.py results/plans.json --draw docs/images > docs/benchmarks/plans.md
    python benchmarks/plan_curves.py build/outlines/clew-outlines-training.json > docs/benchmarks/outlines.md
    python benchmarks/plan_curves.py results/sentences.json > docs/benchmarks/sentences.md

Nothing is measured here: the training asked whole graphs, worlds of tables and documents that nothing was fitted to,
with the mixture and the confidence fitted without what is asked. Intervals are Wilson's, 95 %. ``--draw`` draws how
many are right at each share of wrong answers, and how often each probability is right, for each kind of source.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

WORDINGS = {"plain", "typed", "talk", "odd"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("record", type=Path, help="clew-plans-training.json or clew-outlines-training.json")
    parser.add_argument("--draw", type=Path, metavar="FOLDER", help="draw curves of plans into it")
    options = parser.parse_args()
    record = json.loads(options.record.read_text(encoding="utf-8"))
    measures, seed = record["after"], record.get("settings", {}).get("seed", 0)
    if "files" in record:
        print(SENTENCES)
        print("\n".join(describe_source("sentences", measures)))
        return
    if "graphs" not in measures:
        print(OUTLINES.format(seed=seed))
        print("\n".join(describe_source("outlines", measures)))
        return
    print(INTRODUCTION.format(seed=seed))
    for source in [name for name in ("graphs", "tables", "tables of reports") if name in measures]:
        lines = describe_source(source, measures[source])
        if options.draw:
            name = f"plans-{source.replace(' ', '-')}.svg"
            draw_source(measures[source], options.draw / name)
            shown = f"![Right against wrong, and calibration, of questions over {source}](../images/{name})"
            lines[3:3] = ["", shown]
        print("\n".join(lines))


def draw_source(measures: dict[str, Any], file: Path) -> None:
    """Draw how many are right at each share of wrong ones, and how often each probability is right."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "clew", "svg.fonttype": "none", "font.size": 9}
    import matplotlib.pyplot as plt

    figure, (curve, reliability) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    rights = [100 * share for share in measures["right by percent wrong"]]
    curve.plot(range(len(rights)), rights, color="#2a6f97")
    curve.set(xlabel="wrong at most, % of all", ylabel="right, % of the answerable", ylim=(0, 100))
    curve.set_title("Right against wrong")
    bins = measures["reliability"]
    reliability.plot((0, 100), (0, 100), color="#999999", lw=1, ls="--")
    said, right = ([100 * each[name] for each in bins] for name in ("probability", "right"))
    reliability.plot(said, right, color="#2a6f97", marker="o", ms=4)
    for x, y, each in zip(said, right, bins, strict=True):
        reliability.annotate(
            str(each["questions"]), (x, y), xytext=(5, -9), textcoords="offset points", fontsize=7
        )
    reliability.set(xlabel="said, %", ylabel="right, %", xlim=(0, 100), ylim=(0, 100))
    reliability.set_title(f"Calibration: error {measures['expected calibration error']:.3f}")
    for axes in (curve, reliability):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


INTRODUCTION = """# Plain questions over graphs and tables

How well plain questions are read without a language model, on graphs and tables that nothing was fitted to: the
held-out fold of `clew train plans` (seed {seed}). All figures are development: the questions were in sight of the
people who wrote the code, though not of what was fitted. Over graphs right is what the question's own plan answers;
yes, no and nothing are right only from a plan that agrees with it on a copy with rewired edges, too. Over tables it
is the result of the question's SQL, over its table and with no column that this SQL does not name but another of the
same tables does. Tables of reports are those of TAT-QA, each asked beside two others, and also what its paragraphs
alone answer; right is a plan over the right table that gives the answer. One number is fitted to the same held-out
graphs that are measured: the factor by which ways round are made less sure.

<!-- generated: python benchmarks/plan_curves.py results/plans.json --draw docs/images > docs/benchmarks/plans.md -->
"""


OUTLINES = """# Plain questions over outlines

How well plain questions about pages, sections, tables, cells and figures are read without a language model, over a
quarter of the documents that nothing was fitted to, the judge included (`clew train outlines`, seed {seed}). All
figures are development. Right is a query that leads to the same places as the question's own, or counts or lists the
same; of a document whose parsing lost what is asked for, no query can be. Kinds and sources count questions about
content, too, which are right where they are left to the search, and about half of the questions that name their
document twice: it is asked alone, and among the others of its source.

<!-- generated: python benchmarks/plan_curves.py RECORD > docs/benchmarks/outlines.md -->
"""


SENTENCES = """# Sentences that answer

How often the sentence, list or row that stands first answers a question, without a language model. Each file of
questions is a base of all of its passages; each question is asked of the whole base, so that what search does not
find is counted as missed. The reader has not seen these documents, and each file is held out in turn (`clew train
sentences`) from what chooses among sentences. `hops` are the questions of HotpotQA, MuSiQue and 2WikiMultihopQA that
the reader has not seen, of which a sentence is right that has the answer. A quarter as many questions about something
else are asked of each base, too: nothing in it is right. All figures are development.

<!-- generated: python benchmarks/plan_curves.py results/sentences.json > docs/benchmarks/sentences.md -->
"""


def describe_source(source: str, measures: dict[str, Any]) -> list[str]:
    """Return the lines about one kind of source."""
    n = measures["questions"]
    lines = [
        f"## {source.capitalize()}",
        "",
        f"{n:,} answerable questions of {measures['of']:,}.",
        "",
        "| | share of the answerable |",
        "|---|---|",
    ]
    if "proposed" in measures:
        lines.append(f"| the plan is among the options | {write_share(measures['proposed'], n)} |")
    for name in (
        "an option is right",
        "nearest by vector right first",
        "right first without the judge",
        "right first",
        "right among three",
        "right at 5% wrong",
        "right at 10% wrong",
    ):
        if name in measures:
            lines.append(f"| {name} | {write_share(measures[name], n)} |")
    stated = measures["stated"]
    lines += [
        "",
        f"Stated (a probability of {100 * stated['from']:.0f} % and more): {stated['right']} right, "
        f"{stated['wrong']} wrong. "
        f"Expected calibration error {measures['expected calibration error']:.3f}, ten bins.",
    ]
    if alone := measures.get("graphs alone"):
        lines.append(
            f"Of these, where nothing but the graph is asked: {alone['stated']['right']} right and "
            f"{alone['stated']['wrong']} wrong of {alone['of']}; right at 5% wrong "
            f"{write_share(alone['right at 5% wrong'], n)}, calibration error "
            f"{alone['expected calibration error']:.3f}."
        )
    if away := measures.get("stated with what is asked taken away"):
        lines.append(
            f"Asked of a graph without a relation that the question needs: {away['wrong']} of {away['of']} stated."
        )
    if ways := measures.get("which way round"):
        lines.append(
            f"Which way round a relation is meant is read rightly for {ways['right']} of {ways['questions']} "
            f"questions as asked and with their names exchanged; where it is said with 80 % or more, for "
            f"{ways['of these right']} of {ways['of 80 % and more']}."
        )
    if ends := measures.get("which end is asked for"):
        lines.append(
            f"Which end of a relation is asked for is read rightly for {ends['right']} of {ends['questions']} "
            f"questions; where it is said with 80 % or more, for {ends['of these right']} of "
            f"{ends['of 80 % and more']}."
        )
    if content := measures.get("content left to the search"):
        lines.append(
            f"Of {content['of']:,} questions about content, {content['right']:,} are left to the search."
        )
    if marked := measures.get("marked words right"):
        verdicts = measures["yes or no right"]
        lines.append(
            f"In a sentence that answers, marked words are the value for {marked['right']} of {marked['of']}, and "
            f"yes or no is right for {verdicts['right']} of {verdicts['of']}."
        )
    counts = measures["right first by"]
    kinds = {name for name in counts if name and name not in WORDINGS and not name[0].isupper()}
    lines += ["", "| wording, kind or source | right first | n |", "|---|---|---|"]
    for name in [*sorted(WORDINGS & set(counts)), *sorted(kinds)]:
        right, of = counts[name]
        lines.append(f"| {name} | {write_share(right / of, of)} | {of} |")
    lines += ["", "| said | right | n |", "|---|---|---|"]
    for each in measures["reliability"]:
        lines.append(
            f"| {each['probability']:.0%} | {write_share(each['right'], each['questions'])} | {each['questions']} |"
        )
    return [*lines, ""]


def write_share(share: float, n: int) -> str:
    """Return a share with its interval (Wilson, 95 %)."""
    z = 1.96
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    spread = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return f"{share:.2f} [{middle - spread:.2f}, {middle + spread:.2f}]"


if __name__ == "__main__":
    main()
