"""A page of analyses, as Markdown and as HTML: what was found, by which command, over which questions."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.evaluate.report import Run, build_table, format_table, markdown_table
from clew.evaluate.run_folder import Experiment

if TYPE_CHECKING:
    from clew.evaluate.run_folder import RunFolder

_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:64em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;font-size:14px;display:block;overflow-x:auto}"
    "th,td{border:1px solid #bbb;padding:.2em .6em;text-align:left}"
    "pre{background:#f4f4f4;padding:.6em;overflow-x:auto}img{max-width:100%}"
)


@dataclass(frozen=True, slots=True)
class Section:
    """One analysis: its title, what it shows and how to read it, the command that makes it alone, a Markdown
    table, and the files of its figure (PNG first)."""

    title: str
    text: str
    command: str
    table: str
    figures: Sequence[Path] = field(default=())

    def to_markdown(self, folder: Path) -> str:
        """Return the section as Markdown; links are relative to ``folder``."""
        parts = [f"### {self.title}", self.text]
        if self.figures:
            parts.append(f"![{self.title}]({_link(self.figures[0], folder)})")
            parts.append(
                " ".join(f"[{one.suffix[1:].upper()}]({_link(one, folder)})" for one in self.figures)
            )
        parts += [self.table.rstrip(), f"```console\n{self.command}\n```"]
        return "\n\n".join(parts)


def points_table(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a Markdown table of points; ``columns`` are headings and the keys below them. A key that a point
    lacks leaves its cell empty."""
    return markdown_table(list(columns), ([_cell(row.get(key)) for key in columns.values()] for row in rows))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value < 1 else f"{value:,.1f}"
    return "" if value is None else str(value)


def _link(path: Path, folder: Path) -> str:
    # Angle brackets: a folder's name may have spaces in it.
    return f"<{path.relative_to(folder).as_posix()}>"


def page_to_html(text: str, title: str) -> str:
    """Return a Markdown page as an HTML page that needs nothing but the figures beside it."""
    from html import escape

    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n'


def write_json(folder: RunFolder, name: str, shape: Mapping[str, Any]) -> None:
    """Write what an analysis found as ``name.json`` into its folder, with the facts of the run."""
    facts = {key: value for key, value in folder.facts.items() if key != "recipes"}
    text = json.dumps(facts | dict(shape), indent=2, ensure_ascii=False)
    (folder.path / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def run_command(work: Experiment, recipes: Sequence[str]) -> str:
    """Return the command line that runs recipes over the questions of an analysis."""
    return command_line("run", [work], [word for recipe in recipes for word in ("--recipe", recipe)])


def runs_table(
    runs: Sequence[Run],
    metrics: Sequence[str],
    baseline: str = "",
    ranked_by: Sequence[str] | None = None,
) -> str:
    """Return the Markdown table of some runs."""
    return format_table(build_table(runs, metrics, baseline, ranked_by=ranked_by), "markdown")


def command_line(name: str, works: Sequence[Experiment], more: Sequence[str] = ()) -> str:
    """Return the command line that makes an analysis of data sets that share all else."""
    data, bench = works[0].questions, works[0].settings
    words = [word for work in works for word in ("--data", work.questions.data)]
    words += ["--corpus", data.corpus]
    # A paper's page has the passages of the paper.
    words += [] if name.startswith("paper ") else ["--passages", bench.passages]
    words += ["--sentences", str(bench.sentences)]
    words += [word for one in data.pool for word in ("--pool", one)]
    words += [word for place in bench.graphs for word in ("--graph", place)]
    words += ["--gold-triples"] if data.triples else []
    return add_shared_options(name, words, works[0], more)


def add_shared_options(name: str, words: Sequence[str], work: Experiment, more: Sequence[str] = ()) -> str:
    """Return the command line ``clew eval NAME`` with options of its own, and those that every analysis has: which
    questions are drawn, the models, where results go."""
    data, bench = work.questions, work.settings
    words = ["clew", "eval", *name.split(), *words]
    words += [] if data.limit is None else ["--limit", str(data.limit)]
    words += ["--seed", str(data.seed)]
    words += ["--llm", bench.llm_name] if bench.llm else []
    # Said even where there is none: without it, the command would take the one that comes with clew.
    words += ["--encoder", bench.encoder_name if bench.encoder else "none"]
    return shlex.join([*words, *more, "--out", str(work.out)])


def write_page(out: Path, text: str, title: str) -> tuple[Path, Path]:
    """Write a page as ``page.md`` and ``page.html`` into ``out``; return them."""
    target = out / "page.md"
    target.write_text(text, encoding="utf-8")
    target.with_suffix(".html").write_text(page_to_html(text, title), encoding="utf-8")
    return target, target.with_suffix(".html")


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
