"""Pages that are generated from the code when the site is built: command line, recipes, list of decisions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

DECISIONS = Path(__file__).parent / "decisions"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those of the folder."""
    from mkdocs.structure.files import File

    pages = {
        "reference/cli.md": describe_command_line(),
        "reference/recipes.md": describe_recipes(),
        "decisions/index.md": list_decisions(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(html: str, **_: object) -> str:
    """Leave out the roles of docstrings (``:func:``), which Markdown does not know."""
    return re.sub(r":(?:attr|class|data|func|meth|mod):(<code>)~?", r"\1", html)


def describe_command_line() -> str:
    """Return a page with the help of every command: its text, examples, arguments and options."""
    import typer

    from clew.app.cli.commands import app

    lines = [
        "# Command line",
        "",
        "Every command prints its own help with `--help`. `--json` prints JSON and nothing else.",
        "",
    ]

    def describe(command: typer.core.TyperCommand | typer.core.TyperGroup, path: str, level: int) -> None:
        context = typer.Context(command, info_name=path)
        lines.extend([f"{'#' * level} `{path}`", "", format_help(command.help or ""), ""])
        rows = [
            (name, parameter.help or "")
            for parameter in command.get_params(context)
            if getattr(parameter, "help", None) and not getattr(parameter, "hidden", False)
            for name in [", ".join(f"`{option}`" for option in parameter.opts) or f"`{parameter.name}`"]
            if parameter.name != "help"
        ]
        if rows:
            lines.extend(["| option | what it does |", "|---|---|"])
            lines.extend(
                f"| {name} | {' '.join(help_text.split()).replace('|', chr(92) + '|')} |"
                for name, help_text in rows
            )
            lines.append("")
        names = command.list_commands(context) if hasattr(command, "list_commands") else []
        for name in names:
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                describe(child, f"{path} {name}", min(level + 1, 4))

    root = typer.main.get_command(app)
    describe(root, "clew", 2)
    return "\n".join(lines)


def escape_cell(text: str) -> str:
    """Return a text on one line that stays in its cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def format_help(text: str) -> str:
    """Return a command's help as Markdown: indented lines, which are examples, become code blocks."""
    blocks = []
    for paragraph in re.split(r"\n\s*\n", text.replace("\f", "").strip()):
        rows = paragraph.splitlines()
        if all(row.startswith("  ") for row in rows):
            blocks.append("```sh\n" + "\n".join(row.strip() for row in rows) + "\n```")
        else:
            blocks.append(" ".join(row.strip() for row in rows).replace("<", "&lt;"))
    return "\n\n".join(blocks)


def describe_recipes() -> str:
    """Return a page with every component of the registry: what it is for, and its recipe with all defaults."""
    printed = subprocess.run(
        [sys.executable, "-m", "clew", "recipes", "--json"], capture_output=True, text=True, check=True
    ).stdout
    lines = [
        "# Recipes",
        "",
        "A recipe names a method with its parts and parameters, such as `kgp(graph=keywords(n=20), hops=3)`. Options",
        "that are left out have the defaults shown here. The full recipe of an answer stands in its trail; asking",
        "by it gives the same answer again.",
        "",
    ]
    for kind, components in json.loads(printed).items():
        lines += [f"## {kind}", ""]
        for described in components:
            lines += [f"### `{described['name']}`", "", described["summary"].replace("<", "&lt;"), ""]
            lines += ["```", described["recipe"], "```", ""]
    return "\n".join(lines)


def list_decisions() -> str:
    """Return a page that lists the decision records by number."""
    lines = [
        "# Decisions",
        "",
        "Why things are as they are. Each record says what was decided, why, and what was measured.",
        "",
    ]
    for path in sorted(DECISIONS.glob("0*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"
