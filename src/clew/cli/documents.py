"""``clew list`` and ``clew remove``: which documents there are, and that some shall not be."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.options import Json, Kb

if TYPE_CHECKING:
    from clew.api import KnowledgeBase, DocumentMatches


def list_documents(kb: Kb = None, as_json: Json = False) -> None:
    """List the documents, with their sizes and where they were found.

    clew list

    clew list --json | jq -r '.documents[].document'
    """
    import clew
    from clew.cli.output import format_count, print_json
    from clew.shapes import document_to_dict

    with clew.open(kb) as base:
        documents = base.documents()
    if as_json:
        print_json({"documents": [document_to_dict(document) for document in documents]})
        return
    for document in documents:
        size = format_count(document.pages, "page") if document.pages else format_count(document.nodes, "node")
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
    from clew.cli.output import print_json
    from clew.shapes import document_to_dict

    with clew.open(kb) as base:
        chosen = [path for one in what for path in _chosen(base, base.match_documents(one))]
        removed = base.remove(*chosen)
        remaining = len(base.documents())
    cleared = _cache(clear_cache, asking=not as_json and bool(removed))
    if as_json:
        shapes = [document_to_dict(document) for document in removed]
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
    from clew import api
    from clew.cli.output import print_note, format_size

    held = api.reply_cache()
    if not held.bytes:
        return False
    if clear is None:
        print_note(f"The cache of model replies ({held.path}, {format_size(held.bytes)}) may hold passages of it.")
        if asking and sys.stdin.isatty():
            clear = typer.confirm("Empty the cache?", default=False)
        else:
            print_note("To empty it: clew remove --clear-cache ...")
    if clear:
        api.clear_reply_cache()
    return bool(clear)
