"""An answer on a terminal: its text or the possible answers, the quoted words with their places, ranked answers with
the constraints they meet, and a line that says how; on request the trail as a tree. Also ranked answers as a CSV
file.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree

from clew.app.answers.view import (
    AlternativeView,
    AnswerView,
    CheckView,
    Evidence,
    HitView,
    NodeView,
    StepView,
    SupportView,
    TextPiece,
    excerpt,
    exclusion_checks,
    format_confidence,
)
from clew.app.cli.output import format_cost, format_count, format_duration, make_console, print_code
from clew.core.errors import UsageError
from clew.core.text import escape_formula, shorten
from clew.core.types import EXACT_LIST, ConstraintSummary, Exclusion

if TYPE_CHECKING:
    from clew.methods.focus.exact import ExactReading

#: Formats of a file of ranked answers, by the ending of its name.
OUTPUT_FORMATS = (".csv", ".json")
#: Characters of a passage around its quotations, of a line of the trail, of the evidence for a constraint.
_AROUND, _LINE, _EVIDENCE = 300, 90, 100
#: Hits of a step that the trail lists; the others are counted. --json gives all.
_MAX_HITS = 4


def print_answer(view: AnswerView, limit: int, alternatives: bool = False, trail: bool = False) -> None:
    """Print an answer with at most ``limit`` pieces of evidence or ranked answers; ``alternatives``: and its
    alternatives; ``trail``: and the steps that led to it."""
    out = make_console()
    out.print(Text(view.heading, style="bold green" if view.way == "answer" else "bold yellow"))
    if view.way != "perhaps":
        out.print(Padding(_text(view), (0, 0, 0, 2)))
    if view.ranked or view.substitutions:
        _print_unmet_constraints(view)
    if view.way == "perhaps":
        _print_perhaps(view, limit)
    if view.ranked and (trail or view.way != "perhaps"):
        _print_ranked(view, limit)
    elif view.way != "perhaps" and (view.nearest or (view.answer_first and view.supports)):
        _print_supports(view, limit)
    elif view.evidence and not any(item.supports for item in view.perhaps):
        _print_evidence(view, limit, trail)
    _print_alternatives(view, alternatives)
    for text in view.from_memory:
        out.print(Text(f"  from the model's memory, without evidence: {text}", style="red"))
    for text in view.rejected:
        out.print(Text(f"  not in its source, so not counted as evidence: “{text}”", style="red"))
    out.print()
    out.print(Text(_how(view) + (" (--trail)" if not trail else ""), style="dim"))
    if trail:
        if route := view.data.get("route"):
            out.print(Text(route, style="dim"))
        out.print(_trail(view))


def _how(view: AnswerView) -> str:
    """Say in a line how the answer came about, and what that took."""
    passages = len({hit.node.id for step in view.steps for hit in step.hits})
    how = view.origin or f"looked through {format_count(passages, 'passage')}"
    seconds = format_duration(sum(step.seconds for step in view.steps))
    return "How: " + "; ".join(part for part in (how, format_cost(view.usage), seconds) if part)


def _text(view: AnswerView) -> Text:
    if view.confidence is None or view.way != "answer":
        return Text(view.text)
    confidence = (f"   confidence {format_confidence(view.confidence)}", "dim")
    return Text.assemble((view.text, "bold"), confidence, f"\n{view.formula}" if view.formula else "")


# Evidence


def _print_perhaps(view: AnswerView, limit: int) -> None:
    """Print the possible answers, each with its quotations."""
    for number, item in enumerate(view.perhaps, 1):
        _print_candidate(number, item, limit, "" if item.number else view.formula)


def _print_supports(view: AnswerView, limit: int) -> None:
    """Print what an answer is quoted from, or the nearest candidates."""
    out = make_console()
    out.print()
    if view.nearest:
        out.print(Text("Nearest", style="bold"))
        for number, item in enumerate(view.nearest[:limit], 1):
            _print_candidate(number, item, limit)
        return
    out.print(Text("Evidence", style="bold"))
    for number, support in enumerate(view.supports[:limit], 1):
        out.print(Text.assemble(f"{number:>3}. ", (support.place, "bold")))
        _print_quotation(support)
    _print_rest(len(view.supports) - limit)


def _print_alternatives(view: AnswerView, wanted: bool) -> None:
    """Print the alternatives that are not printed already, or how to see them."""
    others = () if view.nearest else view.alternatives[max(0, len(view.perhaps) - 1) :]
    if not others:
        return
    if not wanted:
        count = format_count(len(others), "alternative")
        make_console().print(Text(f"     {count} with --alternatives", style="dim"))
        return
    make_console().print(Text("Alternatives", style="bold"))
    for item in others:
        _print_candidate(item.number, item, 1)


def _print_candidate(number: int, item: AlternativeView, limit: int, formula: str = "") -> None:
    """Print a possible answer, how it was computed, and at most ``limit`` of its quotations."""
    out = make_console()
    row = Table.grid(Column(width=5), Column())
    confidence = "" if item.confidence is None else f"  {format_confidence(item.confidence)}"
    row.add_row(f"{number:>3}.", Text.assemble(item.text, (confidence, "dim")))
    out.print(row)
    before = ""
    if formula:
        out.print(Padding(Text(formula, style="dim"), (0, 0, 0, 5)))
    for support in item.supports[:limit]:
        if support.place != before:
            out.print(Padding(Text(support.place, style="dim"), (0, 0, 0, 5)))
        _print_quotation(support)
        before = support.place
    _print_rest(len(item.supports) - limit)


def _print_rest(number: int) -> None:
    if number > 0:
        make_console().print(Text(f"     and {number} more; see them with --k", style="dim"))


def _print_quotation(support: SupportView) -> None:
    make_console().print(Padding(_mark_quotes(support.pieces), (0, 0, 0, 5)))


def _mark_quotes(pieces: Iterable[TextPiece]) -> Text:
    """Return a text with the quoted words on yellow, and the answer among them underlined."""
    styles = {(True, False): "bold black on yellow", (True, True): "bold underline black on bright_yellow"}
    return Text.assemble(*((piece.text, styles.get((piece.marked, piece.is_answer), "")) for piece in pieces))


def _print_evidence(view: AnswerView, limit: int, trail: bool) -> None:
    out = make_console()
    out.print()
    out.print(Text("What came nearest" if view.way == "not_found" else "Evidence", style="bold"))
    for item in view.evidence[:limit]:
        out.print(Text.assemble(f"{item.number:>3}. ", (item.node.place, "bold")))
        out.print(Padding(_excerpt(item), (0, 0, 0, 5)))
        if trail and len(item.path) > 1:
            out.print(Padding(_thread(item, view.nodes), (0, 0, 0, 5)))
    _print_rest(len(view.evidence) - limit)


def _excerpt(item: Evidence) -> Text:
    """Return a passage, cut to the neighbourhood of its quotations, with these marked."""
    first = 0 if item.quotes else _AROUND
    return _mark_quotes(excerpt(item.node.text, item.spans, _AROUND, first, item.answers))


def _thread(item: Evidence, nodes: Mapping[str, NodeView]) -> Text:
    """Return how a piece of evidence was reached: each passage before it, and the edge between the two."""
    thread = Text("reached from ", style="dim")
    for position, id in enumerate(item.path[:-1]):
        node = nodes.get(id)
        via = item.via[position] if position < len(item.via) else ""
        before = f"{node.place} “{shorten(node.text, 60)}”" if node else _document_of(id, nodes)
        thread.append(before, style="dim")
        thread.append(f" —{via or 'next'}→ ", style="cyan")
    return thread.append("this", style="dim")


def _document_of(id: str, nodes: Mapping[str, NodeView]) -> str:
    """Return the name of the document of a node that is not among ``nodes``, if another node of it is."""
    key = id.rpartition(":")[0]
    return next((node.document for node in nodes.values() if node.key == key), id)


# Ranked answers


def _print_unmet_constraints(view: AnswerView) -> None:
    """Print the names that were taken for others, and the constraints that the answer does not rest on, and why."""
    out = make_console()
    summary = view.constraint_summary or ConstraintSummary("")
    for name, taken in view.substitutions.items():
        out.print(Text.assemble(("Near names: ", "yellow"), f"taking '{name}' as {taken}"))
    for text, reason in summary.dropped.items():
        out.print(Text.assemble(("Not looked up: ", "yellow"), text, (f"  {reason}", "dim")))
    for text in summary.relaxed:
        reason = "  nothing meets it with the others"
        out.print(Text.assemble(("Given up: ", "yellow"), text, (reason, "dim")))


def _print_ranked(view: AnswerView, limit: int) -> None:
    """Print the first ranked answers, each with the constraints that it meets, their triples, and those that it
    misses."""
    out = make_console()
    out.print()
    total = view.constraint_summary.matching if view.constraint_summary else 0
    listed = sum(row.meets_all for row in view.ranked)
    summary = f"{total:,} meet all constraints" if total else "nothing restricts what may answer"
    if view.constraint_summary and view.constraint_summary.exact:
        summary = f"{total:,} meet all constraints exactly"
    elif view.constraint_summary and view.constraint_summary.matching_rest:
        summary = f"{total:,} meet all constraints, {view.constraint_summary.matching_rest:,} meet the rest"
    if listed < total:
        summary += f"; the first {listed} are listed"
    out.print(Text.assemble(("Ranked", "bold"), (f"  {summary}", "dim")))
    lists = view.lists
    room = limit
    for heading, rows in lists:
        if room > 0 and (len(lists) > 1 or rows[0][1].list_name != EXACT_LIST):
            out.print(Text(f"  {heading}", style="yellow" if rows[0][1].list_name != EXACT_LIST else "green"))
        for number, row in rows[: max(room, 0)]:
            origin = (f"  {row.id}  {row.ranked_by}", "dim")
            out.print(Text.assemble(f"{number:>3}. ", (row.name, "bold"), origin))
            for check in row.checks:
                out.print(Padding(_check(check), (0, 0, 0, 5)))
        room -= len(rows)
    if len(view.ranked) > limit:
        more = f"     and {len(view.ranked) - limit} more; see them with --k, or --out FILE.csv"
        out.print(Text(more, style="dim"))


def _check(check: CheckView) -> Text:
    evidence = [" ".join(text.split()) for text in check.evidence]
    if check.met is None:
        remark = "  not known; it ranks, and drops nothing"
        if evidence:
            remark = f"  not known, but mentioned: {evidence[0]}"[:_EVIDENCE]
        return Text.assemble(("? ", "dim"), (check.constraint, "dim"), (remark, "dim"))
    if check.met == 0:
        return Text.assemble(("✗ ", "red"), check.constraint)
    certainty = f" ({check.met:.2f})" if check.met < 1 else ""
    triples = "; ".join(evidence[:2])[:_EVIDENCE]
    return Text.assemble(
        ("✓ ", "green"), check.constraint, certainty, (f"  {triples}" if triples else "", "dim")
    )


def print_exclusions(exclusions: Sequence[Exclusion]) -> None:
    """Print why nodes are no answers."""
    out = make_console()
    for exclusion in exclusions:
        checks = exclusion_checks(exclusion)
        name, id = (f"{exclusion.name}?", "bold"), (f"  {exclusion.id}", "dim")
        out.print(Text.assemble(("Why not ", "bold"), name, id))
        out.print(Padding(Text(_reason(exclusion, checks)), (0, 0, 0, 2)))
        if not exclusion.is_answer and not exclusion.restriction:
            for text in exclusion.constraints:
                out.print(Padding(Text(text, style="bold"), (0, 0, 0, 4)))
        for check in checks:
            out.print(Padding(_check(check), (0, 0, 0, 5)))


def _reason(exclusion: Exclusion, checks: Sequence[CheckView]) -> str:
    if exclusion.is_answer:
        unknown = any(check.met is None for check in checks)
        met = "all that the graph can hold" if unknown else "all constraints"
        return f"It is an answer: it meets {met}."
    if exclusion.restriction:
        return f"Whatever the constraints: {exclusion.restriction}."
    if len(exclusion.constraints) == 1:
        return "This drops it:"
    if exclusion.each_alone and exclusion.constraints:
        return "Each of these drops it, and without any one of them it would be an answer:"
    return "All of these would have to go:"


def print_reading(reading: ExactReading) -> None:
    """Print what a question means in a graph: its query, and how many answers each constraint leaves."""
    out = make_console()
    if not reading.sparql:
        missing = "; ".join(reading.missing)
        out.print(Text.assemble((reading.graph, "bold"), "  no exact reading. It lacks: ", missing))
        return
    answers = f"  {format_count(reading.funnel[-1].left, 'answer')}" if reading.funnel else "  no constraints"
    out.print(Text.assemble((reading.graph, "bold"), (answers, "dim")))
    print_code(f"\n{reading.sparql}\n")  # to be run by clew graph query
    table = Table(
        "constraint", Column("left", justify="right"), Column("without it", justify="right"), box=None
    )
    for step in reading.funnel:
        table.add_row(Text(step.text), f"{step.left:,}", f"{step.without:,}")
    for preference in reading.preferences:
        table.add_row(Text(f"~ {preference}"), "ranks", "")
    out.print(table)


# Files


def check_output_file(path: Path) -> None:
    """Raise UsageError for a file that ranked answers cannot be written to."""
    if path.suffix.lower() not in OUTPUT_FORMATS:
        raise UsageError(f"'{path.name}' is neither .csv nor .json", "Such as --out answers.csv")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"no folder {path.absolute().parent}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder")


def write_answer_file(path: Path, view: AnswerView) -> None:
    """Write an answer to a file: its JSON, or as CSV its ranked answers with a column for each constraint."""
    if path.suffix.lower() == ".json":
        path.write_text(json.dumps(view.data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        return
    constraints = view.constraints
    header = [
        "rank",
        "name",
        "id",
        "score",
        "by",
        "list",
        "meets_all",
        *constraints,
        "missed",
        "evidence",
        "text",
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(map(escape_formula, header))
        for rank, row in enumerate(view.ranked, 1):
            met = {check.constraint: check.met for check in row.checks}
            evidence = dict.fromkeys(text for check in row.checks for text in check.evidence)
            cells: list[Any] = [
                rank,
                row.name,
                row.id,
                round(row.score, 6),
                row.ranked_by,
                row.list_name,
                row.meets_all,
            ]
            cells += ["" if met.get(text) is None else met[text] for text in constraints]
            cells += ["; ".join(row.missed), "; ".join(evidence), row.text]
            writer.writerow([escape_formula(str(cell)) for cell in cells])


# The trail


def _trail(view: AnswerView) -> Tree:
    seconds = format_duration(sum(step.seconds for step in view.steps))
    summary = "; ".join(part for part in (view.recipe, format_cost(view.usage), seconds) if part)
    tree = Tree(Text.assemble(("Trail", "bold"), (f"  {summary}", "dim")))
    for step in view.steps:
        branch = tree.add(_step(step))
        for line in _details(step.detail, view.nodes):
            branch.add(line)
        for hit in step.hits[:_MAX_HITS]:
            branch.add(_hop(hit, view.nodes))
        if len(step.hits) > _MAX_HITS:
            branch.add(Text(f"and {len(step.hits) - _MAX_HITS} more", style="dim"))
    return tree


def _step(step: StepView) -> Text:
    # The triples of a step "prepare" are its constants and relations, which have their own lines.
    words = [
        f"{key} {value}"
        for key, value in step.facts.items()
        if not (key == "triples" and step.name == "prepare")
    ]
    hits = format_count(len(step.hits), "node") if step.hits else ""
    facts = [*words, hits, format_cost(step.usage), format_duration(step.seconds)]
    return Text.assemble((step.name, "bold"), (f"  {', '.join(fact for fact in facts if fact)}", "dim"))


def _details(detail: Mapping[str, Any], nodes: Mapping[str, NodeView]) -> Iterable[Text]:
    """Yield a step's own lines: the evidence that a model expected next, the values and sources of an unknown, the
    sections that were chosen and why."""
    for path in detail.get("paths", ()):
        if isinstance(path, Mapping) and path.get("expected"):
            last = nodes.get(path["path"][-1])
            after = f"after {last.place}: " if last else ""
            expected = f"“{shorten(str(path['expected']), _LINE)}”"
            yield Text.assemble((after, "dim"), "expects ", (expected, "italic"))
    if values := detail.get("values"):
        more = detail.get("of", len(values)) - len(values)
        listed = "; ".join(map(str, values)) + (f"; and {more} more" if more > 0 else "")
        yield Text.assemble(("= ", "dim"), (shorten(listed, _LINE), "bold"))
    yield from _substitution(detail)
    for reading in detail.get("readings", ()):
        chance, answers = f"{reading['probability']:.0%}", format_count(reading["answers"], "node")
        yield Text.assemble((f"{chance}  ", "dim"), reading["sentence"], (f"  {answers}", "dim"))
    for key in ("taken", "also"):
        if isinstance(side := detail.get(key), Mapping):
            yield Text.assemble((f"{side['source']} says ", "dim"), ("; ".join(side["values"]), "bold"))
    chosen = detail.get("chosen", ())
    for choice in chosen if isinstance(chosen, list) else ():
        name, reasons = (choice["section"], choice["why"]) if isinstance(choice, Mapping) else (choice, ())
        why = f"  {'; '.join(reasons)}" if reasons else ""
        yield Text.assemble((shorten(str(name), _LINE), "bold"), (why, "dim"))


def _substitution(detail: Mapping[str, Any]) -> Iterable[Text]:
    """Yield what the words of a question stand for in a graph, and the candidates of its unknowns; or the possible
    answers that were read."""
    for name, entities in detail.get("constants", {}).items():
        meanings = [
            f"{entity['name']} {entity['id']} {entity['score']:g} ({entity['how']})"
            for entity in entities[:_MAX_HITS]
        ]
        meaning = shorten("; ".join(meanings) or "nothing", _LINE)
        yield Text.assemble((name, "bold"), (f" is {meaning}", "dim"))
    for words, relation in detail.get("relations", {}).items():
        yield Text.assemble((words, "bold"), (f" is {relation}", "dim"))
    dropped = detail.get("dropped", {})
    for text, reason in dropped.items() if isinstance(dropped, Mapping) else ():
        yield Text.assemble((text, "yellow"), (f"  ranks only: {reason}", "dim"))
    for text, confidence in detail.get("confidences", {}).items():
        yield Text.assemble((text, "bold"), (f"  {format_confidence(confidence)}", "dim"))
    candidates = detail.get("candidates", {})
    for name, values in candidates.items() if isinstance(candidates, Mapping) else ():
        total = "anything" if values["count"] is None else f"{values['count']:,}"
        first = shorten("; ".join(values["first"]), _LINE)
        yield Text.assemble((f"{name} ", "bold"), f"{total}: " if values["first"] else total, (first, "dim"))
    for text in detail.get("given up", ()):
        yield Text.assemble((text, "yellow"), ("  given up", "dim"))


def _hop(hit: HitView, nodes: Mapping[str, NodeView]) -> Text:
    """Return a hit in a line, with the node and the edge before it."""
    parts: list[Any] = [f"{hit.score:.2g}  "]
    if len(hit.path) > 1:
        before = nodes.get(hit.path[-2])
        via = hit.via[-1] if hit.via else "next"
        place = _short_place(before) if before else _document_of(hit.path[-2], nodes)
        parts += [(place, "dim"), (f" —{shorten(via, 40)}→ ", "cyan")]
    parts += [(_short_place(hit.node), "bold"), f"  {shorten(hit.node.text, _LINE)}"]
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _short_place(node: NodeView) -> str:
    """Return a node's place in few characters: ``report.pdf p. 4``."""
    return node.document + (f" p. {node.page}" if node.page is not None else "")
