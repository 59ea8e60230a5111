"""``clew ask`` and ``clew search``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import clew
from clew.app.cli.command_group import EXIT_BUDGET
from clew.app.cli.options import (
    BudgetCalls,
    BudgetMoney,
    BudgetTokens,
    Documents,
    Graphs,
    Json,
    Kb,
    Llm,
    NoCache,
    Recipe,
    Record,
    Retriever,
    Where,
    announce_search_destination,
    announce_text_destination,
    configured_model,
    describe_encoder_input,
)
from clew.app.cli.output import (
    describe_unsearchable,
    format_count,
    make_console,
    print_json,
    print_line,
    print_note,
)
from clew.core.component import parse_recipe
from clew.core.errors import NotFound, UsageError
from clew.core.types import EVIDENCE_FOR, EVIDENCE_FOR_ALL

if TYPE_CHECKING:
    from clew.app.answers.view import AnswerView
    from clew.core.protocols import LanguageModel
    from clew.core.types import Answer, Exclusion, Hit, Step
    from clew.knowledge_base.knowledge_base import KnowledgeBase
    from clew.methods.focus.exact import ExactReading

_NO_MODEL = "No language model is set; to have answers written: --llm ollama:llama3.1 (or set CLEW_LLM)."

QuestionText: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="The question, in quotes; '-' reads it from standard input, as does a pipe without a question. "
        "Not needed with --chain or --triples.",
        show_default=False,
    ),
]
Chain: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="TRIPLES",
        help="The question as a chain of triples, for the method chain. See the examples.",
        show_default=False,
    ),
]
Triples: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="TRIPLES",
        help="The question as typed triples, for the method focus: #1 >> relation >> name, << backwards, >>+ "
        "repeatedly, not, at least 2, highest #1.year. See the examples.",
        show_default=False,
    ),
]
WhyNot: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Explain which constraint excludes NAME from the answers (method focus). Repeat for several.",
        show_default=False,
    ),
]
Why: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --above: explain why NAME ranks above another answer, or below it (method focus).",
        show_default=False,
    ),
]
Above: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="The other answer of --why.", show_default=False)
]
Explain: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--explain",
        help="Do not answer: print what --triples mean in each graph, as SPARQL, and how many answers each "
        "constraint leaves.",
    ),
]
Out: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the ranked answers (method focus) to FILE.csv, or any answer to FILE.json.",
        show_default=False,
    ),
]
Pin: TypeAlias = Annotated[
    bool, typer.Option("--pin", help="Put the quotes of the answer aside for a memo; see clew memo.")
]
EvidenceLimit: TypeAlias = Annotated[
    int, typer.Option("--k", "-k", min=1, metavar="N", help="Print at most N pieces of evidence.")
]
Alternatives: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--alternatives",
        "-a",
        help="Print the next best answers too, with their confidence and quotes, where the reader has them.",
    ),
]

ShowTrail: TypeAlias = Annotated[
    bool, typer.Option("--trail", help="Print the steps that led to the answer, and the recipe, too.")
]


def ask(
    question: QuestionText = "",
    llm: Llm = None,
    recipe: Recipe = "default",
    retriever: Retriever = None,
    documents: Documents = None,
    where: Where = "",
    graphs: Graphs = None,
    chain: Chain = "",
    triples: Triples = "",
    why_not: WhyNot = None,
    why: Why = None,
    above: Above = None,
    explain: Explain = False,
    out: Out = None,
    pin: Pin = False,
    k: EvidenceLimit = 5,
    alternatives: Alternatives = False,
    trail: ShowTrail = False,
    budget_calls: BudgetCalls = None,
    budget_tokens: BudgetTokens = None,
    budget_money: BudgetMoney = None,
    record: Record = None,
    no_cache: NoCache = False,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Answer a question from your documents and graphs.

    Prints the answer, the words it is quoted from with their places, and a line that says how; --trail adds the
    steps, --json has everything. What clew is not sure of is printed under "Perhaps", at most three possible answers.
    If the documents do not contain the answer, clew says so; that is not an error (exit status 0). If a budget runs
    out, clew prints what it has found so far (exit status 3).

      clew ask "Which bridge did the founder of Arlen Works design?"

      clew ask "What does the table on page 4 say?" -d report.pdf

      echo "Who led the inquiry?" | clew ask

    With a language model, answers are written instead of quoted. A budget limits what it may cost:

      clew ask "Who succeeded her?" --llm ollama:llama3.1 --budget-calls 20

    --method chooses how clew reasons, --retriever what it searches with (clew recipes lists both):

      clew ask "Who taught the arranger?" --method selfask --retriever bm25 --llm ollama:llama3.1

    The method chain answers hop by hop, from graphs and documents. A model writes the chain, or you do; then no
    model is needed:

      clew ask "Where was Kismet's director born?" --method chain --llm ollama:llama3.1

      clew ask --chain "Kismet >> director >> #1; #1 >> place of birth >> #2; final answer: #2"

    The method focus finds exactly the nodes of a graph that meet typed triples, perhaps none. Relations lead forwards
    (>>), backwards (<<) or repeatedly (>>+); "or" joins names or relations; not, only and counts (at least 2) stand
    before a triple; conditions (#1.year < 1990) and superlatives (highest #1.year, 3 most #1 >> cast >> #2) filter; a
    preference (~) only ranks. clew graph schema lists what a graph contains.

      clew ask "Which early films of David Lynch are slow and dreamlike?" --method focus --llm ollama:llama3.1

      clew ask --triples "#1 : film; #1 >> directed_by >> David Lynch; not #1 >> starred_actors >> Kyle MacLachlan;
      #1.release_year < 1990; #1 ~ slow and dreamlike; final answer: #1" --why-not Dune --out answers.csv

      clew ask --triples "#1 >> directed_by >> David Lynch; highest #1.release_year; final answer: #1" --explain
    """
    from clew.app.answers.view import AnswerView
    from clew.knowledge_base.registry import replace_retriever

    if explain:
        _check_explain(triples, recipe, {"--why-not": why_not, "--why": why or above, "--out": out})
        with clew.open(kb) as base:
            readings = base.explain(triples, question=question, graphs=graphs)
        _print_readings(readings, as_json)
        return
    is_piped = sys.stdin is not None and not sys.stdin.isatty()
    if question == "-" or (is_piped and not (question or chain or triples)):
        question = _read_question()
    model = configured_model(
        llm,
        budget_calls=budget_calls,
        budget_tokens=budget_tokens,
        budget_money=budget_money,
        record=record,
        cache=not no_cache,
    )
    recipe = _choose_recipe(recipe, chain, triples)
    _check_focus(recipe, why_not, out)
    _check_order(why, above)
    if retriever is not None:
        recipe = replace_retriever(recipe, retriever)
    with clew.open(kb) as base:
        remarks = describe_unsearchable(base)
        _announce_destinations(base, model, recipe, "the question", "the question and the queries made of it")
        with _show_steps(quiet=as_json) as watch:
            answer = base.ask(
                question,
                llm=model,
                recipe=recipe,
                documents=documents,
                where=where,
                graphs=graphs,
                chain=chain or triples,
                evidence_for=EVIDENCE_FOR_ALL if as_json or out is not None else max(k, EVIDENCE_FOR),
                watch=watch,
            )
        view = AnswerView.from_answer(answer)
        if pin:
            remarks.append(_pin_quotes(base, answer, question or chain or triples))
        with _print_answer(view, k, alternatives, trail, as_json) as added_json:
            if out is not None:
                _write_file(out, view)
            exclusions, unexplained = _explain_exclusions(base, view, why_not or (), question, recipe, graphs)
            order, unordered = _explain_order(view, why, above)
            added_json |= {"why_not": [each.to_dict() for each in exclusions]} if why_not else {}
            added_json |= {"order": order} if order else {}
    if as_json:
        remarks = []
    else:
        _print_explanations(exclusions, order)
        remarks = [*([_NO_MODEL] if model is None else []), *remarks]
    _print_notes(view, [*unexplained, *unordered, *remarks])
    if view.stopped:
        raise typer.Exit(EXIT_BUDGET)


def _read_question() -> str:
    """Return the text on standard input, up to where it is too long for a question. Raises UsageError for bytes that
    are no text, and where there is no standard input."""
    from clew.knowledge_base.knowledge_base import MAX_QUESTION

    if not isinstance(sys.stdin, TextIOWrapper):
        raise UsageError("standard input is closed", 'Give the question: clew ask "QUESTION"')
    sys.stdin.reconfigure(encoding="utf-8-sig")
    try:
        return sys.stdin.read(MAX_QUESTION + 1)
    except UnicodeDecodeError:
        raise UsageError("standard input is not text in UTF-8", "Convert it, such as with iconv") from None


def _check_explain(triples: str, recipe: str, others: Mapping[str, object]) -> None:
    """Raise UsageError without typed triples for focus, or if one of the ``others``, options by name, is given."""
    if not triples or (recipe != "default" and parse_recipe(recipe).name != "focus"):
        raise UsageError(
            "--explain needs the question as typed triples, for the method focus",
            'Such as --triples "#1 >> directed_by >> David Lynch; final answer: #1"',
        )
    for name in [name for name, value in others.items() if value]:
        raise UsageError(f"--explain does not answer, so {name} has nothing to work on", "Leave one out")


def _print_readings(readings: Sequence[ExactReading], as_json: bool) -> None:
    if as_json:
        print_json({"readings": [reading.to_dict() for reading in readings]})
        return
    from clew.app.cli.answer import print_reading

    for reading in readings:
        print_reading(reading)


def _choose_recipe(recipe: str, chain: str, triples: str) -> str:
    """Return the recipe: by default, the method that answers a chain or typed triples. Raises UsageError for both."""
    if chain and triples:
        raise UsageError("a question is written as --chain or as --triples, not both")
    if recipe != "default" or not (chain or triples):
        return recipe
    return "chain" if chain else "focus"


def _check_focus(recipe: str, why_not: Sequence[str] | None, out: Path | None) -> None:
    """Raise UsageError, before any work is done, for options that need the method focus."""
    focus = parse_recipe(recipe).name == "focus"
    if why_not and not focus:
        raise UsageError(
            "only the method focus says why something is no answer", "--triples, or --method focus"
        )
    if out is not None:
        from clew.app.cli.answer import check_output_file

        check_output_file(out)
        if out.suffix.lower() == ".csv" and not focus:
            raise UsageError(
                "only the method focus ranks answers for a CSV file", "--out FILE.json has any answer"
            )


def _check_order(why: str | None, above: str | None) -> None:
    if (why is None) != (above is None):
        raise UsageError("--why and --above go together", "Such as --why Dune --above Eraserhead")


def _announce_destinations(
    base: KnowledgeBase, model: LanguageModel | None, recipe: str, question: str, queries: str
) -> None:
    """Print where models, encoders and a web search will receive ``question`` or ``queries``, as they are called."""
    announce_text_destination(f"{question} and passages", model)
    announce_text_destination(describe_encoder_input(question, [recipe]), base.encoding.encoder())
    announce_search_destination(queries, [recipe])


def _pin_quotes(base: KnowledgeBase, answer: Answer, question: str) -> str:
    """Put the quotes of an answer aside; return a remark that says how many."""
    count = len(base.basket.pin_answer(answer, question))
    return f"{format_count(count, 'quote')} put aside; to see them: clew memo"


def _explain_exclusions(
    base: KnowledgeBase,
    view: AnswerView,
    names: Sequence[str],
    question: str,
    recipe: str,
    graphs: Sequence[str] | None,
) -> tuple[list[Exclusion], list[str]]:
    """Return why the named nodes are no answers, and a remark for each name that cannot be explained."""
    triples = view.constraint_summary.triples if view.constraint_summary else ""
    exclusions: list[Exclusion] = []
    remarks: list[str] = []
    for name in names:
        if not triples:
            remarks.append(
                f"Why not {name}: the question was not read as triples, so no constraint drops it."
            )
            continue
        try:
            exclusions += base.why_not(name, triples, question=question, recipe=recipe, graphs=graphs)
        except NotFound as error:
            remarks.append(f"Why not {name}: {error.problem}.")
    return exclusions, remarks


def _explain_order(view: AnswerView, why: str | None, above: str | None) -> tuple[list[str], list[str]]:
    """Return why one answer stands above another, and a remark where one of them is not ranked."""
    if why is None or above is None:
        return [], []
    try:
        return view.explain_order(why, above), []
    except NotFound as error:
        return [], [f"Why {why} above {above}: {error.problem}."]


@contextmanager
def _print_answer(
    view: AnswerView, limit: int, alternatives: bool, trail: bool, as_json: bool
) -> Iterator[dict[str, Any]]:
    """Print an answer; yield a dictionary for what is to be added to its JSON.

    JSON is printed at the end, even if the work in between fails: the answer may have cost money.
    """
    if not as_json:
        from clew.app.cli.answer import print_answer

        print_answer(view, limit, alternatives, trail)
        yield {}
        return
    data = dict(view.data)
    try:
        yield data
    finally:
        print_json(data)


def _write_file(path: Path, view: AnswerView) -> None:
    from clew.app.cli.answer import write_answer_file

    write_answer_file(path, view)


def _print_explanations(exclusions: Sequence[Exclusion], order: Sequence[str]) -> None:
    if exclusions:
        from clew.app.cli.answer import print_exclusions

        print_exclusions(exclusions)
    for line in order:
        print_line(line)


def _print_notes(view: AnswerView, remarks: Sequence[str]) -> None:
    """Print remarks, the notes of an answer, and why it stopped early, on standard error."""
    for remark in remarks:
        print_note(remark)
    for note in view.notes:
        print_note(f"clew: {note}")
    if view.stopped:
        print_note(f"clew: stopped before the answer was complete: {view.stopped}")


@contextmanager
def _show_steps(quiet: bool) -> Iterator[Callable[[Step], None]]:
    """Yield a receiver of steps that shows the current one on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda step: None
        return
    with make_console(stderr=True).status("searching") as status:
        yield lambda step: status.update(f"{step.name}: {len(step.hits)} found")


def chat(
    llm: Llm = None,
    recipe: Recipe = "default",
    documents: Documents = None,
    k: EvidenceLimit = 2,
    kb: Kb = None,
) -> None:
    """Ask question after question; each may refer to the one before.

    A follow-up such as "and in 2021?", "who built it?" or "what about the Bittern?" is completed from the questions
    before, without a model, and printed as it is asked; "which document says so?" names the source of the last
    answer. An empty line, Ctrl-D or Ctrl-C ends the conversation.

      clew chat

      clew chat -d annual-report.pdf

      clew chat < questions.txt
    """
    from clew.app.answers.follow_ups import complete_question, name_source
    from clew.app.answers.view import AnswerView
    from clew.app.cli.answer import print_answer
    from clew.questions.follow_up import Turn

    model = configured_model(llm)
    with clew.open(kb) as base:
        _announce_destinations(
            base, model, recipe, "the questions", "the questions and the queries made of them"
        )
        for remark in describe_unsearchable(base):
            print_note(remark)
        turns: list[Turn] = []
        while typed := _read_line():
            asked = complete_question(typed, turns)
            if asked.question != typed:
                print_note(f"asked as: {asked.question}")
            with _show_steps(quiet=False) as watch:
                answer = base.ask(asked.question, llm=model, recipe=recipe, documents=documents, watch=watch)
            if asked.asks_source:
                answer = name_source(answer)
            else:
                text = "" if answer.way == "not_found" else answer.text
                turns.append(Turn(asked.question, text, is_stated=answer.way == "answer"))
            print_answer(AnswerView.from_answer(answer), k)


def _read_line() -> str:
    """Return the next line that a person types, or of a file; "" at the end."""
    try:
        return input("\n> " if sys.stdin.isatty() else "").strip()
    except EOFError:
        return ""


def search(
    query: Annotated[str, typer.Argument(help="Words or a question.", show_default=False)],
    retriever: Annotated[
        str,
        typer.Option(
            "--retriever",
            "--recipe",
            "-r",
            metavar="RECIPE",
            help="How to search: default, bm25, tfidf, dense, hybrid, kgp, drill, ...; see clew recipes.",
        ),
    ] = "default",
    k: Annotated[int, typer.Option("-k", "--k", min=1, metavar="N", help="Return at most N passages.")] = 10,
    documents: Documents = None,
    where: Where = "",
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Find passages and table rows, best first.

    Prints each with its document, page, section and score. Never calls a language model unless the retriever needs
    one.

      clew search "purchases of property" -k 5

      clew search "river crossings" -d atlas.pdf --retriever bm25

      clew search "bridge" --json | jq '.hits[].page'
    """
    with clew.open(kb) as base:
        _announce_destinations(base, None, retriever, "the question", "the question")
        hits = base.search(query, k=k, retriever=retriever, documents=documents, where=where)
        remarks = describe_unsearchable(base)
    if as_json:
        print_json({"hits": [hit.to_dict() for hit in hits]})
        return
    _print_hits(hits)
    for remark in remarks:
        print_note(remark)


def _print_hits(hits: Sequence[Hit]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = make_console()
    for number, hit in enumerate(hits, 1):
        place, score = (hit.node.place, "bold"), f"  {hit.score:.3f}"
        out.print(Text.assemble(f"{number:>2}. ", place, score))
        out.print(Padding(Text(hit.node.text), (0, 0, 0, 4)))
    if not hits:
        print_line("nothing found")
