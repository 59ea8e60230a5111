"""A page of analyses, as Markdown and as HTML: what was found, by which command, over which questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.evaluate.reporting import markdown_table

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
