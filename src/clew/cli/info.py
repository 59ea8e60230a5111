"""``clew info``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.options import Json, Kb

if TYPE_CHECKING:
    from clew.api import GraphSize
    from clew.kb import StoreInfo
    from clew.types import GraphInfo


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
    from clew.api.extracts import measure_staleness
    from clew.cli import graphextract
    from clew.cli.output import print_json

    with clew.open(kb) as base:
        if digest:
            print(base.store.digest())
            return
        sizes = base.info()
        built = base.graph_sizes(graphs) if graphs else []
        late = {one.name: graphextract.describe_staleness(one.name, measure_staleness(base, one)) for one in sizes.imported}
        where = str(base.path)
        unit = base.store.passage_unit
        encoder = base.encoder_name()
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
    from clew.cli.output import format_count, format_size

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
    lines += [(f"relation {name}", format_count(number, "edge")) for name, number in sorted(info.relations.items())]
    lines += [(f"graph {one.name}", one.url or _stored(one)) for one in info.imported]
    lines += [(f"graph {graph.name}", _graph(graph)) for graph in graphs]
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:<{width}}  {value}")


def _stored(graph: GraphInfo) -> str:
    from clew.api.extracts import extraction_maker
    from clew.cli.output import format_count

    sizes = f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}"
    return f"{sizes}, {'extracted' if extraction_maker(graph) else 'imported'}"


def _graph(graph: GraphSize) -> str:
    from clew.cli.output import format_count, format_duration

    return (
        f"{format_count(graph.nodes, 'node')}, {format_count(graph.edges, 'edge')}, density {graph.density:.5f}, "
        f"mean degree {graph.mean_degree:.1f}, {graph.isolated:,} without neighbours ({format_duration(graph.seconds)})"
    )
