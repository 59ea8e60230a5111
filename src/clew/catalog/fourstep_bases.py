"""The bases that the questions of 4StepFocus's page are asked of: one's own, or made of a graph and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.catalog.evaluation import base_folder
from clew.errors import UsageError
from clew.ingest import GraphFiles, add_graph, default_graph_name

if TYPE_CHECKING:
    from clew.kb import Store
    from clew.protocols import Encoder, PropertyGraph

#: Where the page keeps the bases that it makes.
BASES_FOLDER = "graphs"
Tick = Callable[[int, int], None]


def open_graph_bases(places: Sequence[str], out: Path, tick_of: Callable[[str], Tick]) -> list[Path]:
    """Return for each place what :func:`base_with` does. Raises UsageError also for two graphs of one name, since a
    base is called by its graph."""
    named: dict[str, str] = {}
    for place in dict.fromkeys(places):
        name = default_graph_name(Path(place))
        if name in named:
            raise UsageError(
                f"two graphs are called '{name}': {named[name]} and {place}",
                "Rename the folder or file of one",
            )
        named[name] = place
    made = {place: open_graph_base(place, out, tick_of(f"graph {place}")) for place in named.values()}
    return [made[place] for place in places]


def open_graph_base(place: str, out: Path, tick: Tick) -> Path:
    """Return the folder of a base that has the graph at ``place``: ``place`` itself where it is a base (``kb``: the
    usual one), else one below ``out``, to which the graph is added where that was not done before.

    ``tick`` is told how much of the graph is read. Raises UsageError, UnreadableFile.
    """
    from clew.kb import Store

    own = base_folder(place)
    if Store.exists(own):
        with Store.open(own) as base:
            _only(base, place)
        return own
    if not Path(place).exists():
        raise UsageError(
            f"no graph at {place}",
            "Name a folder in STaRK's layout, a file that clew graph add reads, or a knowledge base",
        )
    name = default_graph_name(Path(place))
    made = out / BASES_FOLDER / name
    with Store.open(made, create=True) as base:
        add_graph(
            base.graphs,
            name,
            GraphFiles((Path(place),)),
            progress=lambda event: tick(event.done, event.total),
        )
        _only(base, place)
    return made


def describe_vectors(folder: Path, encoder: Encoder, make: bool, tick: Tick) -> str:
    """Say how many of the nodes that may answer have a vector, having made all that are missing with ``make``.

    Stopped, what was made is kept. Raises ModelError.
    """
    from clew.kb import Store
    from clew.retrieve.entities import answer_rows_or_all
    from clew.retrieve.nodetexts import NodeTexts

    with Store.open(folder) as base:
        graph = _only(base, str(folder))
        rows, texts = answer_rows_or_all(graph), NodeTexts(graph)
        kept = graph.node_vectors(encoder, texts.document_name)
        if make:
            graph.node_postings(texts.document_name, texts.single_texts)
            kept.encode_missing(rows, texts.single_texts, tick)
        missing = len(kept.rows_without_vectors(rows))
    return f"{len(rows) - missing:,} of the {len(rows):,} nodes that may answer"


def _only(base: Store, place: str) -> PropertyGraph:
    """Return the graph of a base. Raises UsageError for none and for several: ids of answers name no graph."""
    names = [one.name for one in base.graphs.graph_infos()]
    if len(names) != 1:
        said = f"the graphs {', '.join(names)}" if names else "no graph"
        raise UsageError(
            f"{place} has {said}, where questions are asked of one", "Name the file of the graph"
        )
    return base.snapshot().graph(names[0])
