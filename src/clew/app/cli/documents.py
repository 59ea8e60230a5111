"""``clew add``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clew.app.cli.command_group import EXIT_FAILED, EXIT_INTERRUPTED
from clew.app.cli.options import Json, Kb, Workers
from clew.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from clew.core.types import Node
    from clew.knowledge_base.ingest.report import Report
    from clew.knowledge_base.knowledge_base import KnowledgeBase
    from clew.knowledge_base.results import DocumentMatches


def add(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Files and folders.", show_default=False)
    ],
    sync: Annotated[
        bool, typer.Option("--sync", help="Also forget files under the folders that no longer exist.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Set the base's encoder and encode with it (none: search by words and graph alone); see: "
            "clew encoder list.",
            show_default="clew:hops, which comes with clew",
        ),
    ] = None,
    passages: Annotated[
        Literal["paragraph", "sentence"] | None,
        typer.Option(
            help="The unit of a new base: what is searched and given as evidence.", show_default="paragraph"
        ),
    ] = None,
    workers: Workers = None,
    checksum: Annotated[
        bool, typer.Option("--checksum", help="Compare the bytes of files that look unchanged.")
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Add files and folders to the knowledge base, which is made if there is none.

    Unchanged files are skipped, changed ones replaced, moved and duplicate ones recognised. A file that cannot
    be read is named with the reason, the others are added, and the exit status is 1. It can be stopped at any
    time, even by a power cut; run it again to continue.

      clew add ~/Documents/reports

      clew add report.pdf notes.md --kb project.clew

      clew add --sync ~/Documents/reports      mirror the folder: what was deleted there goes
    """
    import clew
    from clew.app.cli.models import announce_text_destination
    from clew.app.cli.output import print_json, print_note
    from clew.app.cli.progress import progress_display

    with clew.open(kb, create=True, passages=passages) as base:
        if encoder is not None:
            base.encoding.set(None if encoder == "none" else encoder)
        announce_text_destination("the passages", base.encoding.encoder())
        with progress_display(quiet=as_json) as progress:
            report = base.add(paths, sync=sync, checksum=checksum, workers=workers, progress=progress)
        where = base.path
    for failure in report.failed:
        print_note(f"clew: {failure}")
    if as_json:
        print_json(_shape(report))
    else:
        _print(report)
    if report.interrupted:
        print_note(f"clew: stopped; what is done is kept in {where}. Run the same command again to continue.")
        raise typer.Exit(EXIT_INTERRUPTED)
    if report.failed:
        raise typer.Exit(EXIT_FAILED)


def _print(report: Report) -> None:
    from clew.app.cli.output import format_count, format_duration

    parts = [
        f"{len(report.added):,} added",
        f"{len(report.replaced):,} replaced",
        f"{len(report.located):,} found again at another path",
        f"{len(report.removed):,} removed",
        f"{report.unchanged:,} unchanged",
        f"{len(report.failed):,} could not be read",
    ]
    said = [part for part in parts if not part.startswith("0 ")]
    skipped = [f"{number:,} {reason}" for reason, number in sorted(report.skipped.items())]
    print(f"{', '.join(said) or 'nothing to add'} in {format_duration(report.seconds)}")
    if report.added or report.replaced:
        sums = (
            (report.pages, "page"),
            (report.passages, "passage"),
            (report.tables, "table"),
            (report.rows, "table row"),
        )
        print("  new: " + ", ".join(format_count(number, noun) for number, noun in sums if number))
    if report.encoded:
        print(f"  {format_count(report.encoded, 'vector')} made")
    if skipped:
        print(f"  skipped: {', '.join(skipped)}")
    for path, remark in report.notes:
        print(f"  note: {path}: {remark}")


def _shape(report: Report) -> dict[str, Any]:
    return {
        "added": report.added,
        "replaced": report.replaced,
        "located": report.located,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "failed": [{"path": f.path, "reason": f.reason, "kept": f.kept} for f in report.failed],
        "skipped": report.skipped,
        "notes": [{"path": path, "note": remark} for path, remark in report.notes],
        "pages": report.pages,
        "passages": report.passages,
        "tables": report.tables,
        "rows": report.rows,
        "encoded": report.encoded,
        "interrupted": report.interrupted,
        "seconds": round(report.seconds, 3),
    }


def list_documents(kb: Kb = None, as_json: Json = False) -> None:
    """List the documents, with their sizes and where they were found.

    clew list

    clew list --json | jq -r '.documents[].document'
    """
    import clew
    from clew.app.cli.output import format_count, print_json

    with clew.open(kb) as base:
        documents = base.documents()
    if as_json:
        print_json({"documents": [document.to_dict() for document in documents]})
        return
    for document in documents:
        size = (
            format_count(document.pages, "page") if document.pages else format_count(document.nodes, "node")
        )
        print(f"{document.name}  ({size})  {document.key[:12]}")
        if document.title and document.title != document.name:
            print(f"    {document.title}")
        for path in document.paths:
            print(f"    {path}")
    if not documents:
        print("no documents yet; add some: clew add FOLDER")


def remove(
    what: Annotated[
        list[str],
        typer.Argument(metavar="WHAT...", help="Paths, folders, file names or keys.", show_default=False),
    ],
    clear_cache: Annotated[
        bool | None,
        typer.Option(
            "--clear-cache/--keep-cache",
            help="Whether to empty the cache of model replies, which may hold passages of what is removed.",
            show_default="ask on a terminal, else keep",
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Forget documents: afterwards the base is as if they had never been added. Their files stay.

    A document that was found at several paths goes with the last of them. A file name that several documents
    have is asked about on a terminal and refused elsewhere.

      clew remove report.pdf

      clew remove ~/Documents/old-project
    """
    import clew
    from clew.app.cli.output import print_json

    with clew.open(kb) as base:
        chosen = [path for one in what for path in _chosen(base, base.match_documents(one))]
        removed = base.remove(*chosen)
        remaining = len(base.documents())
    cleared = _cache(clear_cache, asking=not as_json and bool(removed))
    if as_json:
        shapes = [document.to_dict() for document in removed]
        print_json({"removed": shapes, "paths": chosen, "remaining": remaining, "cache_cleared": cleared})
        return
    for document in removed:
        print(f"removed {document.name}  {document.key[:12]}")
    if not removed:
        print(f"forgot {', '.join(chosen)}; the document is still at another path")


def _chosen(base: KnowledgeBase, matches: DocumentMatches) -> list[str]:
    """Return the paths meant; an ambiguous name is asked about where a person can answer."""
    if not matches.documents or (matches.ambiguous and not sys.stdin.isatty()):
        return [matches.text]  # removing it says what is wrong
    if not matches.ambiguous:
        return list(matches.paths)
    print(f"{len(matches.documents)} documents are named '{matches.text}':")
    for number, (_, paths) in enumerate(matches.documents, 1):
        print(f"  {number}  {', '.join(paths)}")
    number = typer.prompt("Which one", type=int)
    if not 1 <= number <= len(matches.documents):
        raise typer.BadParameter(f"there is no number {number}")
    return list(matches.documents[number - 1][1])


def _cache(clear: bool | None, asking: bool) -> bool:
    """Say that replies of models may hold what was removed, and empty their cache if that is wanted."""
    from clew import knowledge_base as api
    from clew.app.cli.output import format_size, print_note

    held = api.reply_cache()
    if not held.bytes:
        return False
    if clear is None:
        print_note(
            f"The cache of model replies ({held.path}, {format_size(held.bytes)}) may hold passages of it."
        )
        if asking and sys.stdin.isatty():
            clear = typer.confirm("Empty the cache?", default=False)
        else:
            print_note("To empty it: clew remove --clear-cache ...")
    if clear:
        api.clear_reply_cache()
    return bool(clear)


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
    from clew.app.cli.output import print_json
    from clew.knowledge_base.document_parts import find_table, nodes_on_page

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
        print_json({"nodes": [node.to_dict() for node in nodes]})
    elif page is None and len(nodes) > 1:
        _print_tree(nodes)
    else:
        _print_texts(nodes)


def _is_id(what: str) -> bool:
    key, _, position = what.rpartition(":")
    return bool(key) and position.isdigit()


def _print_texts(nodes: Sequence[Node]) -> None:
    from rich.text import Text

    from clew.app.cli.output import make_console
    from clew.methods.readers.contexts import describe_place

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

    from clew.app.cli.output import make_console

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

    from clew.core.text import shorten

    preview = shorten(node.name or node.text, _PREVIEW)
    where = f"  page {node.page}" if node.page is not None and node.kind != "page" else ""
    if node.kind == "page":
        return Text(f"page {node.page}" + (f" ({node.name})" if node.name else ""), style="dim")
    style = "bold" if node.kind == "section" else ""
    kind = "" if node.kind in {"section", "passage"} else f"{node.kind}  "
    return Text.assemble((kind, "dim"), (preview, style), (f"{where}  :{node.position}", "dim"))


# MERGED: ``clew list`` and ``clew remove``: which documents there are, and that some shall not be.
# MERGED: ``clew show``: a document's tree, one of its pages or tables, or a node.
