"""``clew show``: a document's tree, one of its pages or tables, or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.options import Json, Kb
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from clew.types import Node

#: How much of a passage a line of the tree shows.
_PREVIEW = 100


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENT|NODE", help="A file name, path or key; or a node's id.", show_default=False
        ),
    ],
    page: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="What is on page N.", show_default=False)
    ] = None,
    table: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The document's Nth table.", show_default=False)
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Show what clew made of a document: its sections, pages, tables and passages as a tree.

    clew show report.pdf

    clew show report.pdf --page 4

    clew show report.pdf --table 2

    clew show 3f0c2a...:17                 a node, by the id that search --json prints
    """
    import clew
    from clew.api.outline import find_table, nodes_on_page
    from clew.cli.output import print_json
    from clew.shapes import node_to_dict

    if page is not None and table is not None:
        raise UsageError("--page and --table together", "Give one of them")
    with clew.open(kb) as base:
        if page is not None:
            nodes = nodes_on_page(base.tree(what), page)
        elif table is not None:
            nodes = [find_table(base.tree(what), table)]
        elif _is_id(what):
            nodes = [base.node(what)]
        else:
            nodes = base.tree(what)
    if as_json:
        print_json({"nodes": [node_to_dict(node) for node in nodes]})
    elif page is None and len(nodes) > 1:
        _print_tree(nodes)
    else:
        _print_texts(nodes)


def _is_id(what: str) -> bool:
    key, _, position = what.rpartition(":")
    return bool(key) and position.isdigit()


def _print_texts(nodes: Sequence[Node]) -> None:
    from rich.text import Text

    from clew.cli.output import make_console
    from clew.read.contexts import describe_place

    out = make_console()
    if len(nodes) == 1:
        out.print(Text(f"{nodes[0].kind} in {describe_place(nodes[0])}  {nodes[0].id}", style="dim"))
    for node in nodes:
        out.print(Text(node.text, style="bold" if node.kind == "section" else ""))
        out.print()
    if not nodes:
        print("this page has no text")


def _print_tree(nodes: Sequence[Node]) -> None:
    from rich.text import Text
    from rich.tree import Tree

    from clew.cli.output import make_console

    root = Tree(Text.assemble((nodes[0].name or nodes[0].document_name, "bold"), f"  {nodes[0].id}"))
    branches = {nodes[0].id: root}
    for node in nodes[1:]:
        above = branches.get(node.parent or "", root)
        if node.kind == "row":
            continue  # the table says how many it has; --table shows them
        branches[node.id] = above.add(_label(node))
    rows: dict[str, int] = {}
    for node in nodes:
        if node.kind == "row" and node.parent:
            rows[node.parent] = rows.get(node.parent, 0) + 1
    for table, number in rows.items():
        branches[table].add(Text(f"{number} rows", style="dim"))
    make_console().print(root)


def _label(node: Node) -> Text:
    from rich.text import Text

    from clew.text import shorten

    preview = shorten(node.name or node.text, _PREVIEW)
    where = f"  page {node.page}" if node.page is not None and node.kind != "page" else ""
    if node.kind == "page":
        return Text(f"page {node.page}" + (f" ({node.name})" if node.name else ""), style="dim")
    style = "bold" if node.kind == "section" else ""
    kind = "" if node.kind in {"section", "passage"} else f"{node.kind}  "
    return Text.assemble((kind, "dim"), (preview, style), (f"{where}  :{node.position}", "dim"))
