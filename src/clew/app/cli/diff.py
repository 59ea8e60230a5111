"""``clew diff``: what changed between two documents."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.options import Json, Kb, limit_option, print_rest
from clew.app.cli.output import format_count, print_json, print_line
from clew.core.errors import NotFound
from clew.core.text import shorten
from clew.knowledge_base import open_or_empty

if TYPE_CHECKING:
    from clew.core.types import Document, Node
    from clew.knowledge_base.knowledge_base import KnowledgeBase
    from clew.retrieve.structure.comparison import Change, Comparison

#: Characters of a printed quote, and of a heading; --json prints them as a whole.
_WIDTH, _HEADING = 600, 80


def diff(
    before: Annotated[
        str, typer.Argument(metavar="BEFORE", help="The earlier document: file name, path or key.")
    ],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The later document.")],
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Print only what has another number than before.")
    ] = False,
    limit: Annotated[int, limit_option("changes")] = 50,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Print what changed between two documents: two editions, two versions, or two contracts.

    Headings are aligned first, then passages and table rows, then words: a clause that moved or got another number is
    no new one. Of a changed clause the sentences before and after are quoted, and numbers that changed are named. A
    file that is not in the knowledge base is read for this alone, and not added.

      clew diff lease-2022.pdf lease-2023.pdf

      clew diff 10K-2021.pdf 10K-2022.pdf --numbers

      clew diff drafts/v1.docx drafts/v2.docx --json
    """
    from clew.retrieve.structure.comparison import compare_nodes

    with ExitStack() as stack:
        base = stack.enter_context(open_or_empty(kb))
        sides = [_read(base, name, stack) for name in (before, after)]
        comparison = compare_nodes(*(nodes for _, nodes in sides))
    first, second = (document for document, _ in sides)
    if as_json:
        print_json({"before": first.to_dict(), "after": second.to_dict()} | comparison.to_dict())
        return
    _print_summary(first, second, comparison)
    changes = [change for change in comparison.changes if change.numbers or not numbers]
    for change in changes[: limit or None]:
        _print_change(change)
    print_rest(len(changes), limit)


def _read(base: KnowledgeBase, name: str, stack: ExitStack) -> tuple[Document, list[Node]]:
    """Return a document and its nodes; a file that is not in the base is read into a base of its own for that."""
    path = Path(name).expanduser()
    if base.match_documents(name).documents or not path.is_file():
        return base.store.document(name), base.tree(name)
    folder = stack.enter_context(TemporaryDirectory(prefix="clew-"))
    aside = stack.enter_context(clew.open(folder, create=True))
    aside.encoding.set(None)
    report = aside.add([path], workers=1)
    if not aside.documents():
        problem = report.failed[0].reason if report.failed else "it holds no text"
        raise NotFound(f"{path} cannot be read: {problem}")
    (document,) = [item for item in aside.documents() if str(path.resolve()) in item.paths]
    return document, aside.tree(document.key)


def _print_summary(first: Document, second: Document, comparison: Comparison) -> None:
    from clew.retrieve.structure.comparison import KINDS_OF_CHANGE

    counts = comparison.counts()
    if not comparison.changes and not comparison.headings:
        print_line(
            f"{first.name} and {second.name} say the same: {format_count(counts['same'], 'passage')} and rows."
        )
        return
    parts = [f"{counts[kind]:,} {kind}" for kind in KINDS_OF_CHANGE if counts[kind]]
    if counts["numbers"]:
        parts[0] += f" ({counts['numbers']:,} with other numbers)"
    parts.append(f"{counts['same']:,} the same")
    print_line(f"{first.name} -> {second.name}: {', '.join(parts)}")
    for pair in comparison.headings:
        old, new = (shorten(node.name, _HEADING) if node else "" for node in (pair.before, pair.after))
        print_line(
            f"  heading {f'“{old}” is now “{new}”' if old and new else f'+ {new}' if new else f'- {old}'}"
        )


def _print_change(change: Change) -> None:
    pairs = ", ".join(f"{pair.before or '(none)'} -> {pair.after or '(none)'}" for pair in change.numbers)
    heading = shorten(change.heading, _HEADING)
    print_line("", f"{change.kind}{f', {heading}' if heading else ''}{f': {pairs}' if pairs else ''}")
    for sign, node, quote in zip("-+", (change.before, change.after), change.quotes, strict=True):
        if node is not None:
            page = f", page {node.page}" if node.page is not None else ""
            print_line(f"  {sign} “{shorten(quote, _WIDTH)}”", f"    {node.document_name}{page}")
