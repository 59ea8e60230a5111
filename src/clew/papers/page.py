"""The page of a paper's experiments, as Markdown and HTML: its sections, its tables and the commands that repeat
it."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.evaluate.report import Run, build_table, format_table, markdown_table

if TYPE_CHECKING:
    from clew.evaluate.run_folder import Experiment, RunFolder

_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:64em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;font-size:14px;display:block;overflow-x:auto}"
    "th,td{border:1px solid #bbb;padding:.2em .6em;text-align:left}"
    "pre{background:#f4f4f4;padding:.6em;overflow-x:auto}img{max-width:100%}"
)


@dataclass(frozen=True, slots=True)
class Section:
    """One analysis: title, explanation, the command that runs it alone ("" where the page does), a Markdown table,
    and its figure files (PNG first)."""

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
                " ".join(f"[{figure.suffix[1:].upper()}]({_link(figure, folder)})" for figure in self.figures)
            )
        parts += [self.table.rstrip(), *([f"```console\n{self.command}\n```"] if self.command else [])]
        return "\n\n".join(parts)


def points_table(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return a Markdown table of ``rows``; ``columns`` maps each heading to the key of its cells. Missing keys leave
    empty cells."""
    return markdown_table(
        list(columns), ([_format_cell(row.get(key)) for key in columns.values()] for row in rows)
    )


def _format_cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value < 1 else f"{value:,.1f}"
    return "" if value is None else str(value)


def _link(path: Path, folder: Path) -> str:
    # Angle brackets, because folder names may contain spaces.
    return f"<{path.relative_to(folder).as_posix()}>"


def page_to_html(text: str, title: str) -> str:
    """Return a Markdown page as an HTML page that loads nothing but its figures."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark").enable("table").render(text)
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}</body>\n</html>\n'


def write_json(folder: RunFolder, name: str, content: Mapping[str, Any]) -> None:
    """Write the result of an analysis with the facts of the run as ``name.json`` into its folder."""
    facts = {key: value for key, value in folder.facts.items() if key != "recipes"}
    text = json.dumps(facts | dict(content), indent=2, ensure_ascii=False)
    (folder.path / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def run_command(experiment: Experiment, recipes: Sequence[str]) -> str:
    """Return the command line that runs recipes over the questions of an experiment."""
    return command_line("run", [experiment], [word for recipe in recipes for word in ("--recipe", recipe)])


def runs_table(
    runs: Sequence[Run],
    metrics: Sequence[str],
    baseline: str = "",
    ranked_by: Sequence[str] | None = None,
) -> str:
    """Return a Markdown table of runs."""
    return format_table(build_table(runs, metrics, baseline, ranked_by=ranked_by), "markdown")


def command_line(name: str, experiments: Sequence[Experiment], more_options: Sequence[str] = ()) -> str:
    """Return the command line ``clew eval NAME`` for experiments that differ only in their data sets."""
    questions, settings = experiments[0].questions, experiments[0].settings
    words = [word for experiment in experiments for word in ("--data", experiment.questions.data)]
    words += ["--corpus", questions.corpus]
    # The command of a paper fixes the unit of passages.
    words += [] if name.startswith("paper ") else ["--passages", settings.passages]
    if settings.documents is None:
        words += ["--sentences", str(settings.sentences)]
    else:
        words += ["--documents", str(settings.documents)]
    words += ["--articles", str(settings.articles)] if settings.articles is not None else []
    words += ["--beside", settings.beside_name] if settings.beside is not None else []
    words += [word for dataset in questions.pool for word in ("--pool", dataset)]
    words += [word for place in settings.graphs for word in ("--graph", place)]
    words += ["--gold-triples"] if questions.triples else []
    return add_shared_options(name, words, experiments[0], more_options)


def add_shared_options(
    name: str, words: Sequence[str], experiment: Experiment, more_options: Sequence[str] = ()
) -> str:
    """Return the command line ``clew eval NAME`` with ``words`` and the options that every command has: sampling of
    questions, models, output folder."""
    questions, settings = experiment.questions, experiment.settings
    words = ["clew", "eval", *name.split(), *words]
    words += [] if questions.limit is None else ["--limit", str(questions.limit)]
    words += ["--seed", str(questions.seed)]
    words += ["--llm", settings.llm_name] if settings.llm else []
    # "none" has to be written: without the option the command would use the default encoder.
    words += ["--encoder", settings.encoder_name if settings.encoder else "none"]
    return shlex.join([*words, *more_options, "--out", str(experiment.out)])


def write_page(out: Path, text: str, title: str) -> tuple[Path, Path]:
    """Write a page as ``page.md`` and ``page.html`` into ``out``; return both paths."""
    target = out / "page.md"
    target.write_text(text, encoding="utf-8")
    target.with_suffix(".html").write_text(page_to_html(text, title), encoding="utf-8")
    return target, target.with_suffix(".html")


def environment_table(experiments: Sequence[Experiment], command: str) -> str:
    """Return the command, the models and the versions that made a page, in Markdown."""
    settings = experiments[0].settings
    rows = [
        ("language model", settings.llm.name if settings.llm else "none"),
        ("encoder", settings.encoder.name if settings.encoder else "none"),
        ("clew", version("clew")),
        ("Python", platform.python_version()),
        ("numpy", version("numpy")),
        *_version_row("matplotlib"),
        ("machine", f"{platform.system()} {platform.machine()}"),
    ]
    return f"```console\n{command}\n```\n\n{markdown_table(['made with', ''], rows)}".rstrip()


def _version_row(package: str) -> list[tuple[str, str]]:
    """Return the row of an optional package, none where it is not installed."""
    try:
        return [(package, version(package))]
    except PackageNotFoundError:
        return []


def data_facts(experiment: Experiment, omissions: Mapping[str, str]) -> str:
    """Return the questions and the corpus of an experiment, and its omissions with their reasons, in Markdown."""
    facts = experiment.folder.facts
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
    return "\n\n".join([markdown_table(["", ""], rows).rstrip(), *skipped_lines(omissions)])


def skipped_lines(omissions: Mapping[str, str]) -> list[str]:
    """Return a line for each omission: ``Skipped: WHAT: WHY.``"""
    return [f"Skipped: {what}: {why}." for what, why in omissions.items()]
