"""Prints an answer: its text, the evidence with the quoted words marked, and the trail as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from clew.app.cli.output import format_cost, format_count, format_duration, make_console
from clew.core.text import shorten
from clew.methods.answering import describe_origin
from clew.methods.readers.contexts import describe_place

if TYPE_CHECKING:
    from clew.core.types import Answer, Hit, Node, Quote, Step

#: How many characters of a passage are shown around its quotes, how many in a line of the trail.
_AROUND, _LINE = 300, 90
#: How many hits of a step the trail shows, a line each; the rest are counted. --json gives all.
_SHOWN = 4


def print_answer(answer: Answer, most: int) -> None:
    """Print the whole answer, with at most ``most`` pieces of evidence."""
    out = make_console()
    nodes = _nodes(answer)
    out.print(_heading(answer))
    out.print(Padding(Text(answer.text), (0, 0, 1, 2)))
    if answer.ranking:
        from clew.app.cli.ranked import print_ranked, print_relaxed_constraints

        print_relaxed_constraints(answer)

        print_ranked(answer, most)
    elif answer.evidence:
        out.print(Text("What came nearest" if answer.abstained else "Evidence", style="bold"))
    for number, hit in enumerate(() if answer.ranking else answer.evidence[:most], 1):
        out.print(
            Text.assemble(f"{number:>3}. ", (describe_place(hit.node), "bold"), (f"  {hit.score:.2g}", "dim"))
        )
        quotes = [quote for quote in answer.quotes if quote.node == hit.node.id]
        out.print(Padding(_excerpt(hit.node.text, quotes), (0, 0, 0, 5)))
        if len(hit.path) > 1:
            out.print(Padding(_thread(hit, nodes), (0, 0, 0, 5)))
    if len(answer.evidence) > most and not answer.ranking:
        out.print(Text(f"     and {len(answer.evidence) - most} more; see them with --k", style="dim"))
    for text in answer.from_memory:
        out.print(Text(f"  from the model's memory, without evidence: {text}", style="red"))
    for text in answer.rejected_quotes:
        out.print(Text(f"  not in its source, so not counted as evidence: “{text}”", style="red"))
    out.print()
    out.print(_trail(answer))


def _heading(answer: Answer) -> Text:
    if answer.abstained:
        return Text("Not answered", style="bold yellow")
    how = describe_origin(answer.reader, answer.from_memory, [one.ranked_by for one in answer.ranking])
    return Text.assemble(("Answer", "bold green"), (f"  ({how})", "dim"))


def _nodes(answer: Answer) -> dict[str, Node]:
    """Return every node that the answer mentions, by id."""
    hits = [*answer.evidence, *(hit for step in answer.trail for hit in step.hits)]
    return {hit.node.id: hit.node for hit in hits}


def _excerpt(text: str, quotes: Sequence[Quote]) -> Text:
    """Return a passage, cut to the neighbourhood of its quotes, with these marked."""
    first = min((quote.span[0] for quote in quotes), default=0)
    last = max((quote.span[1] for quote in quotes), default=min(len(text), _AROUND))
    start, end = max(0, first - _AROUND), min(len(text), last + _AROUND)
    # A cut of a few characters would cost more than it saves.
    start, end = (0 if start < 80 else start), (len(text) if len(text) - end < 80 else end)
    shown = Text(text)
    for quote in quotes:
        shown.stylize("bold black on yellow", *quote.span)
    parts = [Text("… ") if start else Text(), shown[start:end], Text(" …") if end < len(text) else Text()]
    return Text.assemble(*parts)


def _thread(hit: Hit, nodes: Mapping[str, Node]) -> Text:
    """Return how a hit was reached: each passage before it, and what joined the two."""
    thread = Text("reached from ", style="dim")
    for position, id in enumerate(hit.path[:-1]):
        node = nodes.get(id)
        via = hit.via[position] if position < len(hit.via) else ""
        said = f"{describe_place(node)} “{shorten(node.text, 60)}”" if node else _document(id, nodes)
        thread.append(said, style="dim")
        thread.append(f" —{via or 'next'}→ ", style="cyan")
    return thread.append("this", style="dim")


def _trail(answer: Answer) -> Tree:
    seconds = sum(step.seconds for step in answer.trail)
    total = "; ".join(
        part for part in (answer.recipe, format_cost(answer.usage), format_duration(seconds)) if part
    )
    tree = Tree(Text.assemble(("Trail", "bold"), (f"  {total}", "dim")))
    nodes = _nodes(answer)
    for step in answer.trail:
        branch = tree.add(_step(step))
        for detail in _details(step.detail, nodes):
            branch.add(detail)
        for hit in step.hits[:_SHOWN]:
            branch.add(_hop(hit, nodes))
        if len(step.hits) > _SHOWN:
            branch.add(Text(f"and {len(step.hits) - _SHOWN} more", style="dim"))
    return tree


def _step(step: Step) -> Text:
    plain = [
        f"{key} {value}"
        for key, value in step.detail.items()
        if isinstance(value, str | int | float)
        and value != ""
        and not (key == "triples" and step.name == "prepare")
    ]
    facts = [
        *plain,
        format_count(len(step.hits), "node") if step.hits else "",
        format_cost(step.usage),
        format_duration(step.seconds),
    ]
    return Text.assemble((step.name, "bold"), (f"  {', '.join(fact for fact in facts if fact)}", "dim"))


def _details(detail: Mapping[str, Any], nodes: Mapping[str, Node]) -> Iterable[Text]:
    """Yield what was expected to come next, for each path that a model was asked about; what was chosen, and why."""
    for path in detail.get("paths", ()):
        if isinstance(path, Mapping) and path.get("expected"):
            last = nodes.get(path["path"][-1])
            after = f"after {describe_place(last)}: " if last else ""
            yield Text.assemble(
                (after, "dim"), "expects ", (f"“{shorten(str(path['expected']), _LINE)}”", "italic")
            )
    if values := detail.get("values"):
        more = detail.get("of", len(values)) - len(values)
        listed = "; ".join(map(str, values)) + (f"; and {more} more" if more > 0 else "")
        yield Text.assemble(("= ", "dim"), (shorten(listed, _LINE), "bold"))
    yield from _substituted(detail)
    for key in ("taken", "also"):
        if isinstance(side := detail.get(key), Mapping):
            yield Text.assemble((f"{side['source']} says ", "dim"), ("; ".join(side["values"]), "bold"))
    chosen = detail.get("chosen", ())
    for one in chosen if isinstance(chosen, list) else ():
        name, why = (one["section"], one["why"]) if isinstance(one, Mapping) else (one, ())
        yield Text.assemble(
            (shorten(str(name), _LINE), "bold"), (f"  {'; '.join(why)}" if why else "", "dim")
        )


def _substituted(detail: Mapping[str, Any]) -> Iterable[Text]:
    """Yield what the words of a question stand for in a graph, and what its unknowns can be."""
    for name, some in detail.get("constants", {}).items():
        meant = [f"{one['name']} {one['id']} {one['score']:g} ({one['how']})" for one in some[:_SHOWN]]
        yield Text.assemble((name, "bold"), (f" is {shorten('; '.join(meant) or 'nothing', _LINE)}", "dim"))
    for words, how in detail.get("relations", {}).items():
        yield Text.assemble((words, "bold"), (f" is {how}", "dim"))
    dropped = detail.get("dropped", {})
    for text, why in dropped.items() if isinstance(dropped, Mapping) else ():
        yield Text.assemble((text, "yellow"), (f"  ranks only: {why}", "dim"))
    sets = detail.get("candidates", {})
    for name, one in sets.items() if isinstance(sets, Mapping) else ():
        many = "anything" if one["count"] is None else f"{one['count']:,}"
        yield Text.assemble(
            (f"{name} ", "bold"),
            f"{many}: " if one["first"] else many,
            (shorten("; ".join(one["first"]), _LINE), "dim"),
        )
    for text in detail.get("given up", ()):
        yield Text.assemble((text, "yellow"), ("  given up", "dim"))


def _hop(hit: Hit, nodes: Mapping[str, Node]) -> Text:
    parts: list[Any] = [f"{hit.score:.2g}  "]
    if len(hit.path) > 1:
        before = nodes.get(hit.path[-2])
        via = hit.via[-1] if hit.via else "next"
        said = _short(before) if before else _document(hit.path[-2], nodes)
        parts += [(said, "dim"), (f" —{shorten(via, 40)}→ ", "cyan")]
    parts += [(_short(hit.node), "bold"), f"  {shorten(hit.node.text, _LINE)}"]
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _document(id: str, nodes: Mapping[str, Node]) -> str:
    """Return the name of the document of a node that is not among ``nodes``, where another one of it is."""
    key = id.rpartition(":")[0]
    return next((node.document_name for node in nodes.values() if node.document == key), id)


def _short(node: Node) -> str:
    """Return a node's place in few characters: ``report.pdf p. 4``."""
    return node.document_name + (f" p. {node.page}" if node.page is not None else "")
