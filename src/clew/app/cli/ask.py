"""``clew ask``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.app.cli.options import (
    BudgetCalls,
    BudgetMoney,
    BudgetTokens,
    Documents,
    Json,
    Kb,
    Llm,
    Recipe,
    Retriever,
)

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel
    from clew.core.types import Answer, Exclusion, Hit, Step
    from clew.knowledge_base.knowledge_base import KnowledgeBase


def ask(
    question: Annotated[
        str,
        typer.Argument(
            help="The question, in quotes; may be left out with --chain and --triples.", show_default=False
        ),
    ] = "",
    llm: Llm = None,
    recipe: Recipe = "default",
    retriever: Retriever = None,
    documents: Documents = None,
    graphs: Annotated[
        list[str] | None,
        typer.Option(
            "--graph",
            "-g",
            metavar="NAME",
            help="Only in this graph. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    chain: Annotated[
        str,
        typer.Option(
            metavar="TRIPLES",
            help="The question as a chain of triples, for the method chain; see below.",
            show_default=False,
        ),
    ] = "",
    triples: Annotated[
        str,
        typer.Option(
            metavar="TRIPLES",
            help="The question as typed triples, for the method focus, which ranks what meets them; see below.",
            show_default=False,
        ),
    ] = "",
    why_not: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Say which constraint keeps this from being an answer (focus). Repeat for several.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the ranked answers (focus) to FILE.csv, or the whole answer to FILE.json.",
            show_default=False,
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("--k", "-k", min=1, metavar="N", help="How much evidence to print at most.")
    ] = 5,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record every model call, to repeat the run without a model: --llm replay:FILE.",
            show_default=False,
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Ask the model even what it has answered before.")
    ] = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Answer a question from the documents: the answer, its evidence, and the trail that led to it.

    If the documents do not hold the answer, it says so; that is not an error (exit status 0). Where a budget ends
    the work, what was found so far is shown (exit status 3).

      clew ask "Which bridge did the founder of Arlen Works design?"

      clew ask "What does the table on page 4 say?" -d report.pdf

      clew ask "Who succeeded her?" --llm ollama:llama3.1 --budget-calls 20

      clew ask "Who taught the arranger?" --method selfask --retriever bm25 --llm ollama:llama3.1

    With graphs beside the documents, the method chain looks up each hop where it is known. A chain that a model wrote
    is in the trail; change it, or write one yourself, without any model:

      clew ask "Where was Kismet's director born?" --method chain --llm ollama:llama3.1

      clew ask --chain "Kismet >> director >> #1; #1 >> place of birth >> #2; final answer: #2"

    The method focus ranks the nodes of a graph that meet all triples of a question. They are typed, may be denied
    or counted, and properties may be compared; what no triple can say ranks (~). What a graph has: clew graph schema.

      clew ask --triples "#1 : film; #1 >> directed_by >> David Lynch; not #1 >> starred_actors >> Kyle MacLachlan;
      #1.release_year < 1990; #1 ~ slow and dreamlike; final answer: #1" --why-not Dune --out answers.csv

      clew ask "Which early films of David Lynch are slow and dreamlike?" --method focus --llm ollama:llama3.1
    """
    import clew
    from clew.app.cli.command_group import EXIT_BUDGET
    from clew.app.cli.models import (
        announce_search_destination,
        announce_text_destination,
        configured_model,
        describe_encoder_input,
    )
    from clew.app.cli.output import describe_unsearchable, print_note
    from clew.app.cli.ranked import print_exclusions, write_answer_file
    from clew.core.errors import UsageError
    from clew.knowledge_base.registry import replace_retriever

    model = configured_model(
        llm,
        budget_calls=budget_calls,
        budget_tokens=budget_tokens,
        budget_money=budget_money,
        record=record,
        cache=not no_cache,
    )
    if chain and triples:
        raise UsageError("a question is written as --chain or as --triples, not both")
    if (chain or triples) and recipe == "default":
        recipe = "chain" if chain else "focus"
    _check_focus(recipe, why_not, out)
    if retriever is not None:
        recipe = replace_retriever(recipe, retriever)
    with clew.open(kb) as base:
        behind = describe_unsearchable(base)
        announce_text_destination("the question and passages", model)
        announce_text_destination(describe_encoder_input("the question", [recipe]), base.encoding.encoder())
        announce_search_destination("the question and the queries made of it", [recipe])
        with _watching(quiet=as_json) as watch:
            answer = base.ask(
                question,
                llm=model,
                recipe=recipe,
                documents=documents,
                graphs=graphs,
                chain=chain or triples,
                watch=watch,
            )
        with _printed(answer, k, as_json) as shown:
            if out is not None:
                write_answer_file(out, answer)
            excluded, unknown = _excluded(base, answer, why_not or (), question, recipe, graphs)
            if why_not:
                shown["why_not"] = [exclusion.to_dict() for exclusion in excluded]
    if not as_json:
        print_exclusions(excluded)
    for remark in unknown if as_json else [*unknown, *_without_model(model), *behind]:
        print_note(remark)
    if answer.stop_reason:
        print_note(f"clew: stopped before the answer was complete: {answer.stop_reason}")
        raise typer.Exit(EXIT_BUDGET)


def _check_focus(recipe: str, why_not: Sequence[str] | None, out: Path | None) -> None:
    """Raise UsageError for what only the method focus can do, before anything is asked."""
    from clew.app.cli.ranked import check_output_file
    from clew.core.errors import UsageError
    from clew.core.recipe import parse_recipe

    focused = parse_recipe(recipe).name == "focus"
    if why_not and not focused:
        raise UsageError(
            "only the method focus says why something is no answer", "--triples, or --method focus"
        )
    if out is not None:
        check_output_file(out)
        if out.suffix.lower() == ".csv" and not focused:
            raise UsageError(
                "only the method focus ranks answers for a CSV file", "--out FILE.json has any answer"
            )


def _excluded(
    base: KnowledgeBase,
    answer: Answer,
    names: Sequence[str],
    question: str,
    recipe: str,
    graphs: Sequence[str] | None,
) -> tuple[list[Exclusion], list[str]]:
    """Return why things are no answers, by the reading of the question that was answered; and a remark for each name
    that nothing has."""
    from clew.core.errors import NotFound

    written = answer.constraints.triples if answer.constraints else ""
    found: list[Exclusion] = []
    unknown: list[str] = []
    for name in names:
        if not written:
            unknown.append(
                f"Why not {name}: the question was not read as triples, so no constraint drops it."
            )
            continue
        try:
            found += base.why_not(name, written, question=question, recipe=recipe, graphs=graphs)
        except NotFound as error:
            unknown.append(f"Why not {name}: {error.problem}.")
    return found, unknown


@contextmanager
def _printed(answer: Answer, k: int, as_json: bool) -> Iterator[dict[str, Any]]:
    """Print an answer: as text at once, as JSON at the end, with what was added to it until then. What fails beside
    the answer does not lose it: it may have cost calls."""
    from clew.app.cli.answer import print_answer
    from clew.app.cli.output import print_json

    if not as_json:
        print_answer(answer, k)
        yield {}
        return
    shown = answer.to_dict()
    try:
        yield shown
    finally:
        print_json(shown)


def _without_model(model: LanguageModel | None) -> list[str]:
    """Say what a language model would do where none is set."""
    said = "No language model is set; to have answers written: --llm ollama:llama3.1 (or set CLEW_LLM)."
    return [said] if model is None else []


@contextmanager
def _watching(quiet: bool) -> Iterator[Callable[[Step], None]]:
    """Give a receiver of steps that shows on a terminal what is being done."""
    import sys

    if quiet or not sys.stderr.isatty():
        yield lambda step: None
        return
    from clew.app.cli.output import make_console

    with make_console(stderr=True).status("searching") as status:
        yield lambda step: status.update(f"{step.name}: {len(step.hits)} found")


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
    from clew.app.cli.models import (
        announce_search_destination,
        announce_text_destination,
        describe_encoder_input,
    )
    from clew.app.cli.output import describe_unsearchable, print_json, print_note

    with clew.open(kb) as base:
        announce_text_destination(
            describe_encoder_input("the question", [retriever]), base.encoding.encoder()
        )
        announce_search_destination("the question", [retriever])
        hits = base.search(query, k=k, retriever=retriever, documents=documents)
        behind = describe_unsearchable(base)
    if as_json:
        print_json({"hits": [hit.to_dict() for hit in hits]})
    else:
        _print(hits)
        for remark in behind:
            print_note(remark)


def _print(hits: list[Hit]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from clew.app.cli.output import make_console
    from clew.methods.readers.contexts import describe_place

    out = make_console()
    for number, hit in enumerate(hits, 1):
        out.print(Text.assemble(f"{number:>2}. ", (describe_place(hit.node), "bold"), f"  {hit.score:.3f}"))
        out.print(Padding(Text(hit.node.text), (0, 0, 0, 4)))
    if not hits:
        print("nothing found")


# MERGED: ``clew search``.
