"""``clew add``, ``list``, ``remove`` and ``show``: documents."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import clew
from clew.app.cli.command_group import EXIT_FAILED, EXIT_INTERRUPTED
from clew.app.cli.options import Anyway, Json, Kb, On, Workers, announce_text_destination, cluster_session
from clew.app.cli.output import (
    format_count,
    format_duration,
    format_size,
    make_console,
    print_json,
    print_line,
    print_note,
    progress_display,
)
from clew.core.errors import UsageError
from clew.core.sources import refuse_system_folders
from clew.core.text import shorten
from clew.core.types import container_path, picture_mark

if TYPE_CHECKING:
    from rich.text import Text

    from clew.core.types import Node
    from clew.knowledge_base.ingest.report import Failure, Report
    from clew.knowledge_base.results import DocumentMatches


#: Characters of a passage in a line of a document's tree.
_PREVIEW = 100


def add(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Files, folders, and addresses of pages.", show_default=False),
    ],
    sync: Annotated[
        bool, typer.Option("--sync", help="Also remove documents whose files in these folders are gone.")
    ] = False,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Make this the encoder of the knowledge base (none: search by words and graph alone); see "
            "clew encoder list.",
            show_default="clew:hops, which comes with clew",
        ),
    ] = None,
    passages: Annotated[
        Literal["paragraph", "sentence"] | None,
        typer.Option(
            help="How a new knowledge base divides texts: the unit that is searched and given as evidence.",
            show_default="paragraph",
        ),
    ] = None,
    workers: Workers = None,
    on: On = None,
    checksum: Annotated[
        bool, typer.Option("--checksum", help="Compare the contents of files, not only size and time.")
    ] = False,
    allow_private: Annotated[
        bool,
        typer.Option("--allow-private", help="Also fetch pages from this machine and private networks."),
    ] = False,
    anyway: Anyway = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Add files and folders to the knowledge base. It is created if it does not exist.

    Reads PDF, Office and OpenDocument files, web pages, e-books, mail, Markdown, text, CSV, JSON, subtitles,
    notebooks, LaTeX and ZIP archives; scans and pictures with the extra ocr. Unchanged files are skipped, changed
    files are replaced, and moved or duplicate files are recognised. If a file cannot be read, clew prints the reason,
    adds the others, and exits with status 1. You can stop at any time; run the same command again to continue.

      clew add ~/Documents/reports

      clew add report.pdf notes.md --kb project.clew

      clew add https://example.org/report.html      one page, if its site allows it; nothing is crawled

      clew add --sync ~/Documents/reports      also removes documents whose files were deleted

      clew add --on local ~/Documents/reports      reads and encodes on a cluster; see clew cluster
    """
    from clew.knowledge_base.knowledge_base import ENCODER_SETTING, encoder_setting
    from clew.parse.documents.formats import format_problems

    if not anyway:
        refuse_system_folders(paths)  # before a knowledge base is made
    settings = {} if encoder is None else {ENCODER_SETTING: encoder_setting(encoder)}
    with (
        cluster_session(on, workers) as cluster,
        clew.open(kb, create=True, passages=passages, settings=settings) as base,
    ):
        if encoder is not None:  # of a base that was there
            base.encoding.set(encoder)
        announce_text_destination("the passages", base.encoding.encoder())
        with progress_display(quiet=as_json) as progress:
            report = base.add(
                paths,
                sync=sync,
                checksum=checksum,
                workers=workers,
                progress=progress,
                allow_private=allow_private,
                anyway=anyway,
                cluster=cluster,
            )
        folder, suggestion = base.path, base.encoding.suggest()
    # A format that cannot be loaded may be why a file was skipped.
    for problem in format_problems():
        print_note(f"clew: {problem}")
    for line in failure_lines(report.failed):
        print_note(f"clew: {line}")
    if as_json:
        print_json(_report_to_dict(report))
    else:
        _print_report(report)
        if suggestion:
            print_line(f"  note: {suggestion}")
    if report.interrupted:
        print_note(
            f"clew: stopped; what is done is kept in {folder}. Run the same command again to continue."
        )
        raise typer.Exit(EXIT_INTERRUPTED)
    if report.failed:
        raise typer.Exit(EXIT_FAILED)


#: Files of an unsupported type that are named, for each suffix; --json names all.
MAX_SKIPPED_NAMES = 5
#: Files within one archive or mail whose refusals, or whose notes, are printed; --json has all.
MAX_MEMBER_LINES = 10


def failure_lines(failures: Sequence[Failure]) -> list[str]:
    """Return a line for each file that could not be read, but for an archive only a few of the files within it."""
    return _shorten_members([(failure.path, str(failure)) for failure in failures], "could not be read")


def _shorten_members(lines: Sequence[tuple[str, str]], problem: str) -> list[str]:
    """Return the lines about files, given as (path, line), with no more than a few about the files of an archive."""
    shown: list[str] = []
    members: Counter[str] = Counter()
    for path, line in lines:
        container = container_path(path)
        members[container] += path != container
        if path == container or members[container] <= MAX_MEMBER_LINES:
            shown.append(line)
    for container, count in members.items():
        if count > MAX_MEMBER_LINES:
            shown.append(
                f"{container}: {count - MAX_MEMBER_LINES:,} more files in it {problem} (--json names all)"
            )
    return shown


def _print_report(report: Report) -> None:
    counts = {
        "added": len(report.added),
        "replaced": len(report.replaced),
        "found again at another path": len(report.located),
        "removed": len(report.removed),
        "unchanged": report.unchanged,
        "could not be read": len(report.failed),
    }
    summary = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
    print_line(f"{summary or 'nothing to add'} in {format_duration(report.seconds)}")
    if report.added or report.replaced:
        sums = {
            "page": report.pages,
            "passage": report.passages,
            "table": report.tables,
            "table row": report.rows,
        }
        print_line(
            "  new: " + ", ".join(format_count(number, noun) for noun, number in sums.items() if number)
        )
    if report.encoded:
        print_line(f"  {format_count(report.encoded, 'vector')} made")
    if report.skipped:
        skipped = ", ".join(f"{number:,} {reason}" for reason, number in sorted(report.skipped.items()))
        print_line(f"  skipped: {skipped}")
    for suffix, paths in _group_by_suffix(report.unsupported).items():
        print_line(f"    {suffix or 'no suffix'}: {_list_names(paths)}")
    if report.left_out:
        words = sum(sum(counts.values()) for counts in report.left_out.values())
        print_line(f"  left out: {format_count(words, 'word')}; clew show FILE --left-out shows them")
    for reason, counts in report.left_out.items():
        print_line(f"    {reason}: {sum(counts.values()):,} ({_list_names(list(counts))})")
    notes = [(path, f"{path}: {remark}") for path, remark in report.notes]
    for line in _shorten_members(notes, "have notes"):
        print_line(f"  note: {line}")


def _list_names(paths: Sequence[str]) -> str:
    names = ", ".join(Path(path).name for path in paths[:MAX_SKIPPED_NAMES])
    return names + (f" and {len(paths) - MAX_SKIPPED_NAMES:,} more" if len(paths) > MAX_SKIPPED_NAMES else "")


def _group_by_suffix(paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the paths by the suffix of the file, the suffix of most files first."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        groups.setdefault(Path(path).suffix.lower(), []).append(path)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def _report_to_dict(report: Report) -> dict[str, Any]:
    return {
        "added": report.added,
        "replaced": report.replaced,
        "located": report.located,
        "removed": report.removed,
        "unchanged": report.unchanged,
        "failed": [
            {"path": failure.path, "reason": failure.reason, "kept": failure.keeps_version}
            for failure in report.failed
        ],
        "skipped": report.skipped,
        "unsupported": report.unsupported,
        "left_out": report.left_out,
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
    """List the documents with their sizes, keys and paths.

    clew list

    clew list --json | jq -r '.documents[].document'
    """
    with clew.open(kb) as base:
        documents = base.documents()
    if as_json:
        print_json({"documents": [document.to_dict() for document in documents]})
        return
    for document in documents:
        pages, nodes = format_count(document.pages, "page"), format_count(document.nodes, "node")
        print_line(f"{document.name}  ({pages if document.pages else nodes})  {document.key[:12]}")
        if document.title and document.title != document.name:
            print_line(f"    {document.title}")
        for path in document.paths:
            print_line(f"    {path}")
    if not documents:
        print_line("no documents yet; add some: clew add FOLDER")


def remove(
    what: Annotated[
        list[str],
        typer.Argument(metavar="WHAT...", help="Paths, folders, file names or keys.", show_default=False),
    ],
    clear_cache: Annotated[
        bool | None,
        typer.Option(
            "--clear-cache/--keep-cache",
            help="Also empty the cache of model replies, which may quote the removed documents.",
            show_default="ask on a terminal, else keep",
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Remove documents from the knowledge base. The files themselves are not touched.

    Afterwards the knowledge base is as if the documents had never been added. A document that was found at several
    paths is removed with the last of them. If several documents have the name, clew asks which one you mean; without
    a terminal it refuses.

      clew remove report.pdf

      clew remove ~/Documents/old-project
    """
    with clew.open(kb) as base:
        paths = [path for name in what for path in _choose_paths(base.match_documents(name))]
        removed = base.remove(*paths)
        remaining = len(base.documents())
    cleared = _clear_cache(clear_cache, ask=not as_json and bool(removed))
    if as_json:
        documents = [document.to_dict() for document in removed]
        print_json({"removed": documents, "paths": paths, "remaining": remaining, "cache_cleared": cleared})
        return
    for document in removed:
        print_line(f"removed {document.name}  {document.key[:12]}")
    if not removed:
        print_line(f"forgot {', '.join(paths)}; the document is still at another path")


def _choose_paths(matches: DocumentMatches) -> list[str]:
    """Return the paths that a name stands for; if it is ambiguous, ask on a terminal."""
    if not matches.documents or (matches.ambiguous and not sys.stdin.isatty()):
        return [matches.text]  # the removal raises the error
    if not matches.ambiguous:
        return list(matches.paths)
    print_line(f"{len(matches.documents)} documents are named '{matches.text}':")
    for number, (_, paths) in enumerate(matches.documents, 1):
        print_line(f"  {number}  {', '.join(paths)}")
    choice = typer.prompt("Which one", type=int)
    if not 1 <= choice <= len(matches.documents):
        raise typer.BadParameter(f"there is no number {choice}")
    return list(matches.documents[choice - 1][1])


def _clear_cache(clear: bool | None, ask: bool) -> bool:
    """Empty the cache of model replies, which may quote what was removed; return whether it was emptied.

    With ``clear`` None a notice is printed, and on a terminal the user is asked if ``ask``.
    """
    from clew.knowledge_base import clear_reply_cache, reply_cache

    cache = reply_cache()
    if not cache.bytes:
        return False
    if clear is None:
        size = format_size(cache.bytes)
        print_note(f"The cache of model replies ({cache.path}, {size}) may hold passages of it.")
        if ask and sys.stdin.isatty():
            clear = typer.confirm("Empty the cache?", default=False)
        else:
            print_note("To empty it: clew remove --clear-cache ...")
    if clear:
        clear_reply_cache()
    return bool(clear)


def show(
    what: Annotated[
        str,
        typer.Argument(
            metavar="DOCUMENT|NODE",
            help="A document's file name, path or key; or a node's id.",
            show_default=False,
        ),
    ],
    page: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show the text of page N.", show_default=False)
    ] = None,
    table: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Show the document's Nth table.", show_default=False),
    ] = None,
    left_out: Annotated[
        bool, typer.Option("--left-out", help="Show what stands in the file and was left out, and why.")
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Show a document as clew read it: a tree of sections, pages, tables and passages.

    clew show report.pdf

    clew show report.pdf --page 4

    clew show report.pdf --table 2

    clew show report.pdf --left-out        hidden or struck-out words, repeated headers

    clew show 3f0c2a...:17                 a node, by the id that search --json prints
    """
    from clew.knowledge_base.document_parts import find_table, nodes_on_page

    if (page is not None) + (table is not None) + left_out > 1:
        raise UsageError("two of --page, --table and --left-out", "Give one of them")
    with clew.open(kb) as base:
        if left_out:
            _print_left_out(base.store.document(what).left_out, as_json)
            return
        if page is not None:
            nodes = nodes_on_page(base.tree(what), page)
        elif table is not None:
            nodes = [find_table(base.tree(what), table)]
        elif _is_node_id(what):
            nodes = [base.node(what)]
        else:
            nodes = base.tree(what)
    if as_json:
        print_json({"nodes": [node.to_dict() for node in nodes]})
    elif page is None and len(nodes) > 1:
        _print_tree(nodes)
    else:
        _print_texts(nodes)


def _print_left_out(left_out: Sequence[tuple[str, str, int]], as_json: bool) -> None:
    if as_json:
        keys = ("reason", "text", "times")
        print_json({"left_out": [dict(zip(keys, each, strict=True)) for each in left_out]})
        return
    for reason, text, times in left_out:
        print_line(f"{reason}{f', {times:,} times' if times > 1 else ''}: {text}")
    if not left_out:
        print_line("no words were left out")


def _is_node_id(text: str) -> bool:
    key, _, position = text.rpartition(":")
    return bool(key) and position.isdecimal()


def _print_texts(nodes: Sequence[Node]) -> None:
    from rich.text import Text

    out = make_console()
    if len(nodes) == 1:
        out.print(Text(f"{nodes[0].kind} in {nodes[0].place}  {nodes[0].id}", style="dim"))
    for node in nodes:
        out.print(Text(node.text, style="bold" if node.kind == "section" else ""))
        out.print()
    if not nodes:
        print_line("this page has no text")


def _print_tree(nodes: Sequence[Node]) -> None:
    from rich.text import Text
    from rich.tree import Tree

    document = nodes[0]
    root = Tree(Text.assemble((document.name or document.document_name, "bold"), f"  {document.id}"))
    branches = {document.id: root}
    row_counts: Counter[str] = Counter()
    for node in nodes[1:]:
        if node.kind == "row":  # counted below its table; --table shows the rows
            row_counts[node.parent or ""] += 1
        else:
            branches[node.id] = branches.get(node.parent or "", root).add(_node_line(node))
    for table, count in row_counts.items():
        if table:
            branches[table].add(Text(f"{count} rows", style="dim"))
    make_console().print(root)


def _node_line(node: Node) -> Text:
    from rich.text import Text

    if node.kind == "page":
        return Text(f"page {node.page}" + (f" ({node.name})" if node.name else ""), style="dim")
    preview = shorten(node.name or node.text, _PREVIEW)
    style = "bold" if node.kind == "section" else ""
    kind = "" if node.kind in {"section", "passage"} else f"{node.kind}  "
    page = f"  page {node.page}" if node.page is not None else ""
    page += f"  {mark}" if (mark := picture_mark(node.boxes)) else ""
    return Text.assemble((kind, "dim"), (preview, style), (f"{page}  :{node.position}", "dim"))
