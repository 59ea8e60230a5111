"""``clew search``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.options import Documents, Json, Kb

if TYPE_CHECKING:
    from clew.types import Hit


def search(
    query: Annotated[str, typer.Argument(help="Words or a question.", show_default=False)],
    retriever: Annotated[
        str,
        typer.Option(
            "--retriever",
            "--recipe",
            "-r",
            metavar="RECIPE",
            help="How to search: default, bm25, tfidf, dense, hybrid, kgp, drill, ...; see: clew recipes.",
        ),
    ] = "default",
    k: Annotated[int, typer.Option("-k", "--k", min=1, metavar="N", help="How many passages at most.")] = 10,
    documents: Documents = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Find passages and table rows, best first, with where they lie.

    clew search "purchases of property" -k 5

    clew search "river crossings" -d atlas.pdf --retriever bm25

    clew search "bridge" --json | jq '.hits[].page'
    """
    import clew
    from clew.cli.output import describe_unsearchable, print_note, print_json
    from clew.cli.remote import announce_search_destination, announce_text_destination, describe_encoder_input
    from clew.shapes import hit_to_dict

    with clew.open(kb) as base:
        announce_text_destination(describe_encoder_input("the question", [retriever]), base.encoder())
        announce_search_destination("the question", [retriever])
        hits = base.search(query, k=k, retriever=retriever, documents=documents)
        behind = describe_unsearchable(base)
    if as_json:
        print_json({"hits": [hit_to_dict(hit) for hit in hits]})
    else:
        _print(hits)
        for remark in behind:
            print_note(remark)


def _print(hits: list[Hit]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from clew.cli.output import make_console
    from clew.read.contexts import describe_place

    out = make_console()
    for number, hit in enumerate(hits, 1):
        out.print(Text.assemble(f"{number:>2}. ", (describe_place(hit.node), "bold"), f"  {hit.score:.3f}"))
        out.print(Padding(Text(hit.node.text), (0, 0, 0, 4)))
    if not hits:
        print("nothing found")
