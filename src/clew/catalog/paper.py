"""The KGP paper's experiments over data sets of one's own, and the page of them."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from clew.catalog.analysis import Experiment, branching_recipes, density_recipes, find_buildable_graphs
from clew.catalog.evaluation import EvaluationSettings
from clew.catalog.runs import grade_folder
from clew.catalog.sections import branching_section, command_line, density_section, graph_sections
from clew.evaluate.page import Section, page_to_html
from clew.evaluate.reporting import Run, markdown_table, build_table, format_table

#: Columns of the main table, and by which of them methods are ranked: with a language model as in Table 1.
TABLE_1_ANSWERS = ("Acc", "EM", "F1")
TABLE_1_EVIDENCE = ("SF-EM", "recall@5", "MRR")
TABLE_1_COSTS = ("seconds",)
TITLE = "Knowledge Graph Prompting: the paper's analyses"


def table_1_recipes(bench: EvaluationSettings) -> list[str]:
    """Return the recipes of Table 1 that the models allow, 30 passages each (Supplementary 8.2), then ours.

    With a language model all are read by the paper's prompt. DPR and MDR search with whatever encoder is given.
    """
    retrievers = [*(["knn"] if bench.encoder else []), "tfidf", "bm25"]
    reader = "paper" if bench.llm else "extractive"
    read = [f"read(k=30, reader={reader}, retriever={name})" for name in retrievers]
    read += [f"{name}(reader={reader})" for name in ("dpr", "mdr")] if bench.encoder else []
    walks = ["kgp-paper"]
    walks += ["kgp-paper(graph=knn, guide=encoder)"] if bench.encoder else []
    walks += ["kgp-paper(guide=generated)"] if bench.llm else []
    asked = ["ircot(reader=paper)"] if bench.llm else []
    first = ["none"] if bench.llm else []
    return [*first, *read, *asked, *walks, f"kgp(reader={reader})", f"golden(reader={reader})"]


def write_kgp_page(works: Sequence[Experiment]) -> tuple[Path, Path]:
    """Run what the paper ran over each data set and write ``page.md`` and ``page.html``; return them.

    What is there already is not run again. All works have the same models and the same ``out``. Raises UsageError.
    """
    bench, out = works[0].settings, works[0].out
    recipes = table_1_recipes(bench)
    runs: list[Run] = []
    parts: list[str] = []
    for work in works:
        graphs, missing = find_buildable_graphs(work)
        sections = [*graph_sections(work, graphs)]
        # All at once, so that the base of a question is made, and encoded, one time for all of them.
        work.run([*dict.fromkeys([*recipes, *density_recipes(graphs), *branching_recipes()])])
        if bench.llm is not None:
            grade_folder(work.folder, bench.llm, work.progress, recipes)
        runs += work.folder.load_runs(recipes)
        sections += [density_section(work, graphs), branching_section(work)]
        parts += [
            f"## {work.questions.title}",
            data_facts(work, {f"the graph `{name}`": why for name, why in missing.items()}),
        ]
        parts += [section.to_markdown(out) for section in sections]
    text = (
        "\n\n".join(
            [
                f"# {TITLE}",
                environment_table(works, command_line("paper kgp", works)),
                _main(works, runs).to_markdown(out),
                *parts,
            ]
        )
        + "\n"
    )
    return write_page(out, text, TITLE)


def write_page(out: Path, text: str, title: str) -> tuple[Path, Path]:
    """Write a page as ``page.md`` and ``page.html`` into ``out``; return them."""
    target = out / "page.md"
    target.write_text(text, encoding="utf-8")
    target.with_suffix(".html").write_text(page_to_html(text, title), encoding="utf-8")
    return target, target.with_suffix(".html")


def _main(works: Sequence[Experiment], runs: Sequence[Run]) -> Section:
    bench = works[0].settings
    ranked = TABLE_1_ANSWERS if bench.llm else TABLE_1_EVIDENCE
    metrics = [*dict.fromkeys([*ranked, *TABLE_1_EVIDENCE, *TABLE_1_COSTS])]
    left_out = [
        *([] if bench.llm else ["None, IRCoT and a generated guide (they need --llm)"]),
        *([] if bench.encoder else ["KNN, DPR and MDR (they need --encoder)"]),
    ]
    return Section(
        "Methods",
        f"Means with 95 % bootstrap intervals; ranks by {', '.join(ranked)} over the data sets (paper: Table 1). "
        "Each method gives 30 passages or paths to read; every passage of a path counts."
        + (f" Left out: {'; '.join(left_out)}." if left_out else ""),
        command_line("run", works, [word for recipe in table_1_recipes(bench) for word in ("--recipe", recipe)]),
        format_table(build_table(runs, metrics, ranked_by=ranked), "markdown"),
    )


def environment_table(works: Sequence[Experiment], command: str) -> str:
    """Say what made a page: the command, the models, the versions."""
    bench = works[0].settings
    rows = [
        ("language model", bench.llm.name if bench.llm else "none"),
        ("encoder", bench.encoder.name if bench.encoder else "none"),
        ("clew", version("clew")),
        ("Python", platform.python_version()),
        ("numpy", version("numpy")),
        *_version("matplotlib"),
        ("machine", f"{platform.system()} {platform.machine()}"),
    ]
    return f"```console\n{command}\n```\n\n{markdown_table(['made with', ''], rows)}".rstrip()


def _version(package: str) -> list[tuple[str, str]]:
    """Return the row of a package that not every page needs, none where it is not installed."""
    try:
        return [(package, version(package))]
    except PackageNotFoundError:
        return []


def data_facts(work: Experiment, missing: Mapping[str, str]) -> str:
    """Say what was asked of what, and what was left out and why."""
    facts = work.folder.facts
    limit = "all" if facts["limit"] is None else f"{facts['limit']} drawn"
    rows = [
        ("data", facts["data"]),
        ("SHA-256 of the file", facts["data_digest"]),
        ("questions", f"{facts['questions']} ({limit})"),
        ("seed", str(facts["seed"])),
        ("corpus", f"{facts['corpus']}, passages are {facts['passages']}s"),
        *((key, ", ".join(facts[key])) for key in ("pool", "graphs") if facts.get(key)),
        *([("sentences of a corpus", f"{facts['sentences']}")] if facts["sentences"] else []),
    ]
    skipped = [f"Skipped: {what}: {why}." for what, why in missing.items()]
    return "\n\n".join([markdown_table(["", ""], rows).rstrip(), *skipped])
