"""``clew memo``: the quotes that were put aside, as a list and as a document with footnotes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import clew
from clew.app.cli.options import Json, Kb, option
from clew.app.cli.output import format_count, print_json, print_line, print_note
from clew.core.errors import UsageError
from clew.core.text import shorten

if TYPE_CHECKING:
    from clew.knowledge_base.basket import Basket

#: Characters of a quote in the list; --json and the memo have all.
_WIDTH = 200


def memo(
    pin: Annotated[
        list[str] | None,
        option(
            "ID", "Put this passage or table row aside; clew search --json prints ids. Repeat for several."
        ),
    ] = None,
    quote: Annotated[str, option("WORDS", "Of the passage of --pin only these words.")] = "",
    question: Annotated[str, option("TEXT", "The heading under which --pin goes.")] = "",
    note: Annotated[str, option("TEXT", "Your own words above the quote of --pin.")] = "",
    unpin: Annotated[list[str] | None, option("ID", "Take a quote out, by its id in the list.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take all quotes out.")] = False,
    out: Annotated[Path | None, option("FILE", "Write the memo: .docx or .md.", "--out")] = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="The title of the memo.")] = "Memo",
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """List the quotes that you put aside, or write them as a memo.

    Quotes are grouped by their questions. Each has a footnote with its document, page, section and the digest of the
    document. The list holds no text of documents: if you remove a document, its quotes are gone from the memo.

      clew ask "Who is the hirer?" --pin      put the quotes of an answer aside

      clew memo                               what is there

      clew memo --out memo.docx --title "Hire of the Bittern"
    """
    from clew.knowledge_base.memo import SUFFIXES, Memo

    if out is not None and out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"cannot write a memo to '{out.name}'", f"Known endings: {', '.join(SUFFIXES)}")
    if (quote or question or note) and len(pin or ()) != 1:
        raise UsageError("--quote, --question and --note belong to one --pin", "Pin one passage at a time")
    with clew.open(kb) as base:
        basket = base.basket
        for id in pin or ():
            basket.pin(id, quote, question=question, note=note)
        if unpin:
            basket.remove(*unpin)
        if clear:
            print_note(f"{format_count(basket.clear(), 'quote')} taken out")
        quotes, missing = basket.quotes(), basket.missing()
        if out is not None:
            Memo(quotes, title).write(out)
        if as_json:
            print_json({"quotes": [item.to_dict() for item in quotes], "missing": missing})
        elif out is not None:
            print_line(f"{format_count(len(quotes), 'quote')} written to {out}")
        else:
            _print_list(basket)
    if missing:
        print_note(
            f"clew: {format_count(missing, 'quote')} of documents that were removed or changed; left out"
        )


def _print_list(basket: Basket) -> None:
    quotes = basket.quotes()
    if not quotes:
        print_line('no quotes yet; to put those of an answer aside: clew ask "..." --pin')
    for item in quotes:
        print_line(f"{item.id}  {item.place}" + (f"  ({item.question})" if item.question else ""))
        if item.note:
            print_line(f"    {item.note}")
        print_line(f"    “{shorten(item.text, _WIDTH)}”")
