"""``clew info``, ``doctor``, ``recipes`` and ``estimate``: contents, damage, and the cost of work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import clew
from clew.app.cli.command_group import EXIT_FAILED
from clew.app.cli.documents import failure_lines
from clew.app.cli.options import (
    Anyway,
    Documents,
    Json,
    Kb,
    Llm,
    Recipe,
    Retriever,
    Workers,
    model_name,
    option,
)
from clew.app.cli.output import (
    format_cost,
    format_count,
    format_duration,
    format_size,
    print_json,
    print_line,
    print_note,
)
from clew.core.languages import language_name

if TYPE_CHECKING:
    from clew.core.types import GraphInfo
    from clew.knowledge_base.copy_estimate import CopyEstimate
    from clew.knowledge_base.ingest.estimate import Estimate
    from clew.knowledge_base.results import GraphSize, RoleCost
    from clew.store.store import StoreInfo

#: With fewer passages to extrapolate from, it is said that they are few: postings are then read whole.
SMALL_SAMPLE = 5000


def info(
    digest: Annotated[
        bool, typer.Option("--digest", help="Print only the digest of the knowledge base's contents.")
    ] = False,
    graphs: Annotated[
        list[str] | None,
        option(
            "GRAPH",
            "Build this graph and print its size and density: keywords, mentions, structure, "
            "'keywords(n=20)', or all. Repeat for several.",
            "--graphs",
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Print the size, contents and state of the knowledge base.

    Two knowledge bases with the same digest hold the same documents, read the same way.

      clew info

      clew info --digest

      clew info --graphs keywords --graphs mentions
    """
    from clew.app.cli.graph_sources import describe_staleness
    from clew.knowledge_base.extraction import measure_staleness

    with clew.open(kb) as base:
        if digest:
            print_line(base.store.digest())
            return
        store_info = base.info()
        graph_sizes = base.graph_sizes(graphs) if graphs else []
        staleness = {
            graph.name: describe_staleness(graph.name, measure_staleness(base, graph))
            for graph in store_info.graphs
        }
        folder, unit, encoder = base.store.place, base.store.passage_unit, base.encoding.name
    stale = {name: text for name, text in staleness.items() if text}
    if as_json:
        sizes = [asdict(size) for size in graph_sizes]
        settings = {"path": folder, "unit": unit, "encoder": encoder, "graphs": sizes, "behind": stale}
        print_json(store_info.to_dict() | settings)
        return
    _print_info(store_info, folder, unit, encoder, graph_sizes)
    for name, text in stale.items():
        print_line(f"graph {name}: {text}")


def _describe_languages(languages: Mapping[str, int]) -> str:
    return ", ".join(f"{language_name(code)} {count:,}" for code, count in languages.items()) or "none"


def _print_info(
    info: StoreInfo, folder: str, unit: str, encoder: str | None, graphs: list[GraphSize]
) -> None:
    nodes: dict[str, int] = dict(info.nodes)
    lines: list[tuple[str, Any]] = [
        ("knowledge base", folder),
        ("documents", f"{info.documents:,}"),
        ("pages", f"{info.pages:,}"),
        ("passages", f"{nodes.get('passage', 0):,} (one per {unit})"),
        ("tables", f"{nodes.get('table', 0):,} with {format_count(nodes.get('row', 0), 'row')}"),
        ("sections", f"{nodes.get('section', 0):,}"),
        ("languages", _describe_languages(info.languages)),
        ("in storage" if "://" in folder else "on disk", format_size(info.bytes)),
        ("generation", info.generation),
        ("digest", info.digest),
        ("encoder", encoder or "none"),
    ]
    if info.pending:
        pending = format_count(info.pending, "document")
        lines.append(("not searchable yet", f"{pending}; run clew add again, or search"))
    lines += [(f"made by {name}", format_count(number, "part")) for name, number in info.derived.items()]
    relations = sorted(info.relations.items())
    lines += [(f"relation {name}", format_count(number, "edge")) for name, number in relations]
    lines += [(f"graph {graph.name}", graph.url or _describe_import(graph)) for graph in info.graphs]
    lines += [(f"graph {graph.name}", _describe_size(graph)) for graph in graphs]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print_line(f"{name:<{width}}  {value}")


def _describe_import(graph: GraphInfo) -> str:
    from clew.knowledge_base.extraction import extraction_maker

    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    return f"{sizes}, {'extracted' if extraction_maker(graph) else 'imported'}"


def _describe_size(graph: GraphSize) -> str:
    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    density = f"density {graph.density:.5f}, mean degree {graph.mean_degree:.1f}"
    return f"{sizes}, {density}, {graph.isolated:,} without neighbours ({format_duration(graph.seconds)})"


#: What a parser can do in words, by the names of :func:`clew.parse.documents.sandbox.try_confinement`.
_REACH = {"files": "writing files", "reading": "reading other files", "network": "the network"}


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair/--check-only", help="Rebuild damaged parts that can be rebuilt.")
    ] = True,
    checksums: Annotated[
        bool, typer.Option("--checksums/--quick", help="Check the contents of every file, or only its size.")
    ] = True,
    llm: Annotated[
        str | None, option("MODEL", "Check this language model instead, with twenty short prompts.", "--llm")
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Check the knowledge base, and rebuild indexes that are missing or damaged; with --llm, check a language model.

    It also says where this system cannot keep what reads a file from other files and the network.
    Exits with status 1 if a fault was found and not repaired. What a model can do is kept, and methods go by it where
    a recipe leaves a choice open.

      clew doctor

      clew doctor --llm ollama:llama3.1

      clew doctor --check-only --json
    """
    if llm is not None:
        _check_model(llm, as_json)
        return
    from clew.parse.documents.sandbox import try_confinement

    with clew.open(kb) as base:
        findings = base.doctor(repair=repair, checksums=checksums)
    if as_json:
        faults = [{"what": f.what, "problem": f.problem, "repaired": f.repaired} for f in findings]
        print_json({"findings": faults, "parsers_confined": try_confinement()})
    else:
        for finding in findings:
            print_line(f"{finding.what}: {finding.problem}{' (repaired)' if finding.repaired else ''}")
        print_line(format_count(len(findings), "finding") if findings else "all is well")
        missing = [what for what, is_confined in try_confinement().items() if not is_confined]
        if missing:
            print_note(
                f"clew: this system cannot keep parsers from {', '.join(_REACH[what] for what in missing)}"
            )
    if not all(finding.repaired for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def _check_model(llm: str, as_json: bool) -> None:
    from clew.knowledge_base.model_check import check_model, save_report
    from clew.models import create_language_model, describe_destination

    print_note(f"clew: twenty prompts over invented facts; {describe_destination(llm)}")
    report = check_model(create_language_model(llm), lambda name: print_note(f"clew: {name}"))
    save_report(report)
    if as_json:
        print_json(report.to_dict())
        return
    print_line(f"{report.model}, a context of {report.context or 'unknown'} tokens")
    for ability in report.abilities:
        problem = f"  {ability.problem}" if ability.problem else ""
        print_line(f"  {ability.name:18} {ability.right} of {ability.asked}{problem}")
    print_line(
        f"used where a recipe leaves it open: {', '.join(f'{k}={v}' for k, v in report.settings.items())}"
    )


def recipes(as_json: Json = False) -> None:
    """List the methods, retrievers, graphs and readers, with their options and defaults.

    A recipe is a method with options; options that are left out have the printed defaults.

      clew ask "..." --recipe "kgp(graph=keywords(n=20), hops=3)"
    """
    from clew.knowledge_base.registry import describe_components, plugin_problems

    kinds = describe_components()
    for problem in plugin_problems():
        print_note(problem)
    if as_json:
        print_json(
            {
                kind: [
                    {"name": name, "summary": component.summary, "recipe": str(component.defaults)}
                    for name, component in components.items()
                ]
                for kind, components in kinds.items()
            }
        )
        return
    for kind, components in kinds.items():
        print_line(f"{kind}:")
        for name, component in components.items():
            print_line(f"  {name}: {component.summary}")
            if str(component.defaults) != name:
                print_line(f"      {component.defaults}")


def estimate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files and folders that you would add.", metavar="PATH...", show_default=False),
    ] = None,
    ask: Annotated[str | None, option("QUESTION", "A question that you would ask.", "--ask")] = None,
    llm: Llm = None,
    recipe: Recipe = "default",
    retriever: Retriever = None,
    documents: Documents = None,
    sample: Annotated[
        int, typer.Option(min=0, metavar="N", help="Read N files of each type; 0 reads all of them.")
    ] = 3,
    workers: Workers = None,
    anyway: Anyway = False,
    storage: Annotated[
        bool, typer.Option("--storage", help="Estimate a copy of the knowledge base in object storage.")
    ] = False,
    passages: Annotated[int | None, option("N", "With --storage: for a base of N passages.", min=1)] = None,
    shards: Annotated[int | None, option("N", "With --storage: as in clew copy --shards.", min=1)] = None,
    price: Annotated[
        list[str] | None,
        option(
            "NAME=DOLLARS",
            "With --storage: storage (a GB for a month; 0.023), put and get (a thousand requests; 0.005 and "
            "0.0004), out (a GB that leaves the storage; 0.09), cpu (an hour of one CPU; 0.0408). Repeat for "
            "several.",
            "--price",
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Estimate what adding files, asking a question or a copy in object storage would take, without doing it.

    No model is called. Files are read as a sample; a question is rehearsed to count its model calls and tokens. A
    copy is written to a temporary folder in the form that it has in storage, and asked there. The default prices are
    Amazon's of June 2026 in us-east-1: S3 Standard, transfer to the internet, half of an m7g.large. Nothing is looked
    up. With --storage, PATH... adds the passages of these files.

      clew estimate ~/Documents/reports

      clew estimate --ask "Who built the mill?" --llm openai:gpt-4o-mini

      clew estimate --storage --passages 1000000 --price out=0
    """
    from clew.knowledge_base.copy_estimate import Prices, estimate_copy
    from clew.knowledge_base.knowledge_base import open_or_empty
    from clew.knowledge_base.models import estimate_question
    from clew.knowledge_base.registry import replace_retriever

    if not paths and not ask and not storage:
        raise typer.BadParameter("name files to add, a question with --ask, or --storage")
    if not storage and (passages is not None or shards is not None or price):
        raise typer.BadParameter("--passages, --shards and --price are for --storage")
    prices = Prices.parse(price or [])
    if retriever is not None:
        recipe = replace_retriever(recipe, retriever)
    with clew.open(kb) if ask or storage else open_or_empty(kb) as base:
        addition = base.estimate(paths, sample=sample, workers=workers, anyway=anyway) if paths else None
        costs = estimate_question(base, ask, model_name(llm), recipe, documents) if ask else []
        copy = None
        if storage:
            added = addition.passages + addition.rows if addition else 0
            copy = estimate_copy(base, ask, passages=passages, added=added, shards=shards, prices=prices)
    if as_json:
        record = {"add": asdict(addition) if addition else None, "ask": [asdict(cost) for cost in costs]}
        print_json(record | {"storage": copy.to_dict() if copy else None})
        return
    if addition:
        _print_addition(addition)
    if ask:
        _print_costs(costs)
    if copy:
        _print_copy(copy)


def _print_addition(addition: Estimate) -> None:
    files, size = format_count(addition.files, "new or changed file"), format_size(addition.bytes)
    print_line(f"{files} ({size}), {addition.unchanged:,} unchanged")
    counts = {"document": addition.documents, "page": addition.pages, "passage": addition.passages}
    texts = ", ".join(format_count(number, noun) for noun, number in counts.items())
    tables = f"{format_count(addition.tables, 'table')} with {format_count(addition.rows, 'row')}"
    print_line(f"  {'' if addition.exact else 'about '}{texts}, {tables}")
    print_line(f"  an encoder would read {addition.characters:,} characters; adding calls no language model")
    for line in failure_lines(addition.failed):
        print_note(f"clew: {line}")


def _print_copy(copy: CopyEstimate) -> None:
    """Print what a copy in object storage takes."""
    scaled = copy.passages != copy.measured
    basis = f", extrapolated from {copy.measured:,}" if scaled else ""
    print_line(f"a copy in object storage of {format_count(copy.passages, 'passage')}{basis}:")
    print_line(
        f"  {format_size(copy.bytes)} in {format_count(copy.objects, 'object')}, of which "
        f"{format_size(copy.vector_bytes)} vectors; {format_count(copy.shards, 'shard')}"
    )
    print_line(f"  to copy: {copy.puts:,} PUTs, {_describe_cpu(copy.copy_cpu_seconds)}")
    if copy.add_cpu_seconds is not None:
        print_line(f"  to index and encode: {_describe_cpu(copy.add_cpu_seconds)}, beside reading the files")
    for name, cost in (("the first question of a machine", copy.first), ("another one there", copy.later)):
        print_line(
            f"  {name}: {format_count(cost.gets, 'GET')}, {format_size(cost.bytes)}, "
            f"{_describe_cpu(cost.cpu_seconds)}"
        )
    for name, dollars in copy.dollars.items():
        print_line(f"  {name}: ${dollars:,.4f}")
    if scaled and copy.measured < SMALL_SAMPLE:
        print_note(
            f"fewer than {SMALL_SAMPLE:,} passages are little to extrapolate from: requests of questions may be more"
        )


def _describe_cpu(seconds: float) -> str:
    return f"{format_duration(seconds) if seconds < 3600 else f'{seconds / 3600:,.1f} hours'} of one CPU"


def _print_costs(costs: list[RoleCost]) -> None:
    if not costs:
        print_line("asking calls no language model: none is set (--llm)")
    for cost in costs:
        print_line(f"{cost.role}: {format_cost(cost.usage)}, if every reply is as long as it may get")
