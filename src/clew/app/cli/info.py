"""``clew info``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.app.cli.command_group import EXIT_FAILED
from clew.app.cli.options import Documents, Json, Kb, Llm, Recipe, Retriever, Workers

if TYPE_CHECKING:
    from clew.core.types import GraphInfo
    from clew.knowledge_base.ingest.estimate import Estimate
    from clew.knowledge_base.results import GraphSize, RoleCost
    from clew.store.store import StoreInfo


def info(
    digest: Annotated[
        bool, typer.Option("--digest", help="Print only the digest of what the base holds.")
    ] = False,
    graphs: Annotated[
        list[str] | None,
        typer.Option(
            "--graphs",
            metavar="GRAPH",
            help="Build this graph and print its size and density: keywords, mentions, structure, "
            "'keywords(n=20)', or all. Repeat for several.",
            show_default=False,
        ),
    ] = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Say how large the knowledge base is, what is in it, and which state it is in.

    Two bases with the same digest hold the same documents, read the same way.

      clew info

      clew info --digest

      clew info --graphs keywords --graphs mentions
    """
    import clew
    from clew.app.cli import graph_sources as graphextract
    from clew.app.cli.output import print_json
    from clew.knowledge_base.extraction import measure_staleness

    with clew.open(kb) as base:
        if digest:
            print(base.store.digest())
            return
        sizes = base.info()
        built = base.graph_sizes(graphs) if graphs else []
        late = {
            one.name: graphextract.describe_staleness(one.name, measure_staleness(base, one))
            for one in sizes.imported
        }
        where = str(base.path)
        unit = base.store.passage_unit
        encoder = base.encoding.name
    if as_json:
        shape = {"path": where, "unit": unit, "encoder": encoder, "graphs": [asdict(size) for size in built]}
        behind_them = {"behind": {name: said for name, said in late.items() if said}}
        print_json(asdict(sizes) | shape | behind_them)
    else:
        _print(sizes, where, unit, encoder, built)
        for name, said in late.items():
            if said:
                print(f"graph {name}: {said}")


def _print(info: StoreInfo, where: str, unit: str, encoder: str | None, graphs: list[GraphSize]) -> None:
    from clew.app.cli.output import format_count, format_size

    nodes: dict[str, int] = dict(info.nodes)
    lines: list[tuple[str, Any]] = [
        ("knowledge base", where),
        ("documents", f"{info.documents:,}"),
        ("pages", f"{info.pages:,}"),
        ("passages", f"{nodes.get('passage', 0):,} (one per {unit})"),
        ("tables", f"{nodes.get('table', 0):,} with {format_count(nodes.get('row', 0), 'row')}"),
        ("sections", f"{nodes.get('section', 0):,}"),
        ("on disk", format_size(info.bytes)),
        ("generation", info.generation),
        ("digest", info.digest),
        ("encoder", encoder or "none"),
    ]
    if info.pending:
        lines.append(
            ("not searchable yet", f"{format_count(info.pending, 'document')}; run clew add again, or search")
        )
    lines += [(f"made by {name}", format_count(number, "part")) for name, number in info.kept.items()]
    lines += [
        (f"relation {name}", format_count(number, "edge")) for name, number in sorted(info.relations.items())
    ]
    lines += [(f"graph {one.name}", one.url or _stored(one)) for one in info.imported]
    lines += [(f"graph {graph.name}", _graph(graph)) for graph in graphs]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:<{width}}  {value}")


def _stored(graph: GraphInfo) -> str:
    from clew.app.cli.output import format_count
    from clew.knowledge_base.extraction import extraction_maker

    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    return f"{sizes}, {'extracted' if extraction_maker(graph) else 'imported'}"


def _graph(graph: GraphSize) -> str:
    from clew.app.cli.output import format_count, format_duration

    return (
        f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}, density {graph.density:.5f}, "
        f"mean degree {graph.mean_degree:.1f}, {graph.isolated:,} without neighbours ({format_duration(graph.seconds)})"  # noqa: E501
    )


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair/--check-only", help="Rebuild what is damaged and can be rebuilt.")
    ] = True,
    checksums: Annotated[
        bool, typer.Option("--checksums/--quick", help="Read every file whole; --quick looks at sizes only.")
    ] = True,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Check the knowledge base, and rebuild indexes that are missing or damaged.

    Exit status 1 if something is wrong and was not repaired.

      clew doctor

      clew doctor --check-only --json
    """
    import clew
    from clew.app.cli.output import format_count, print_json

    with clew.open(kb) as base:
        findings = base.doctor(repair=repair, checksums=checksums)
    if as_json:
        shapes = [{"what": f.what, "problem": f.problem, "repaired": f.repaired} for f in findings]
        print_json({"findings": shapes})
    else:
        for finding in findings:
            print(f"{finding.what}: {finding.problem}{' (repaired)' if finding.repaired else ''}")
        print(format_count(len(findings), "finding") if findings else "all is well")
    if not all(finding.repaired for finding in findings):
        raise typer.Exit(EXIT_FAILED)


def recipes(as_json: Json = False) -> None:
    """List methods, retrievers, graphs and readers, with their options and defaults.

    clew ask "..." --recipe "kgp(graph=keywords(n=20), hops=3)"
    """
    from clew.app.cli.output import print_json, print_note
    from clew.knowledge_base import registry

    components = registry.describe_components()
    for problem in registry.plugin_problems():
        print_note(problem)
    if as_json:
        print_json(
            {
                kind: [
                    {"name": name, "summary": component.summary, "recipe": str(component.defaults)}
                    for name, component in named.items()
                ]
                for kind, named in components.items()
            }
        )
        return
    for kind, named in components.items():
        print(f"{kind}:")
        for name, component in named.items():
            print(f"  {name}: {component.summary}")
            if str(component.defaults) != name:
                print(f"      {component.defaults}")


def estimate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="What would be added.", metavar="PATH...", show_default=False),
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option("--ask", metavar="QUESTION", help="What asking this would cost.", show_default=False),
    ] = None,
    llm: Llm = None,
    recipe: Recipe = "default",
    retriever: Retriever = None,
    documents: Documents = None,
    sample: Annotated[
        int, typer.Option(min=0, metavar="N", help="Files of each type to read; 0 reads all of them.")
    ] = 3,
    workers: Workers = None,
    kb: Kb = None,
    as_json: Json = False,
) -> None:
    """Say what adding files or asking a question would bring and cost, before it happens.

    clew estimate ~/Documents/reports

    clew estimate --ask "Who built the mill?" --llm openai:gpt-4o-mini
    """
    import clew
    from clew.app.cli.models import model_name
    from clew.app.cli.output import print_json
    from clew.knowledge_base.knowledge_base import open_or_empty
    from clew.knowledge_base.models import estimate_question
    from clew.knowledge_base.registry import replace_retriever

    if not paths and not ask:
        raise typer.BadParameter("name files to add, or a question with --ask")
    if retriever is not None:
        recipe = replace_retriever(recipe, retriever)
    with clew.open(kb) if ask else open_or_empty(kb) as base:
        added = base.estimate(paths, sample=sample, workers=workers) if paths else None
        costs = estimate_question(base, ask, model_name(llm), recipe, documents) if ask else []
    if as_json:
        print_json({"add": asdict(added) if added else None, "ask": [asdict(cost) for cost in costs]})
        return
    if added:
        _print_added(added)
    if ask:
        _print_costs(costs)


def _print_added(added: Estimate) -> None:
    from clew.app.cli.output import format_count, format_size, print_note

    about = "" if added.exact else "about "
    print(
        f"{format_count(added.files, 'new or changed file')} ({format_size(added.bytes)}), {added.unchanged:,} unchanged"  # noqa: E501
    )
    print(
        f"  {about}{format_count(added.documents, 'document')}, {format_count(added.pages, 'page')}, "
        f"{format_count(added.passages, 'passage')}, {format_count(added.tables, 'table')} with {format_count(added.rows, 'row')}"  # noqa: E501
    )
    print(f"  an encoder would read {added.characters:,} characters; adding calls no language model")
    for failure in added.failed:
        print_note(f"clew: {failure}")


def _print_costs(costs: list[RoleCost]) -> None:
    from clew.app.cli.output import format_cost

    if not costs:
        print("asking calls no language model: none is set (--llm)")
    for one in costs:
        print(f"{one.role}: {format_cost(one.usage)}, if every reply is as long as it may get")


# MERGED: ``clew doctor``.
# MERGED: ``clew recipes``.
# MERGED: ``clew estimate``.
