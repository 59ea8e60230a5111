"""The graphs of a knowledge base, and what a person looks up in them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.api.shapes import Triples
from clew.errors import NotFound
from clew.types import Entity, GraphInfo

if TYPE_CHECKING:
    from clew.ingest import GraphReport, Progress
    from clew.kb import KnowledgeBase
    from clew.kb.graphs.mounted import MountedGraph
    from clew.kb.graphs.mounting import MountOptions
    from clew.protocols import PropertyGraph
    from clew.triples import Options


class WithGraphs:
    """The part of :class:`clew.Base` that is about graphs."""

    store: KnowledgeBase

    def add_graph(
        self,
        files: str | Path | Sequence[str | Path] = (),
        *,
        name: str | None = None,
        nodes: Sequence[str | Path] = (),
        edges: Sequence[str | Path] = (),
        options: Options | None = None,
        skip_bad: bool = False,
        progress: Progress | None = None,
    ) -> GraphReport:
        """Add a graph from files (triples, tables, JSON lines, Parquet, RDF), in place of one of that name.

        ``name`` is by default that of the first file, without its endings. ``nodes`` and ``edges`` are tables that
        do not say by their columns what they are. Raises UnreadableFile (with BadRows, unless ``skip_bad``),
        UsageError, MissingExtra; then nothing is added.
        """
        from clew import ingest

        given = (files,) if isinstance(files, (str, Path)) else files
        chosen = ingest.GraphFiles(
            *(tuple(Path(one).expanduser() for one in part) for part in (given, nodes, edges))
        )
        return ingest.add_graph(
            self.store.graphs,
            name or ingest.graph_name(chosen.every[0] if chosen.every else Path()),
            chosen,
            options,
            skip_bad=skip_bad,
            progress=progress or ingest.silent,
        )

    def mount_graph(self, name: str, url: str, options: MountOptions | None = None) -> MountedGraph:
        """Mount a SPARQL 1.1 endpoint, or the folder of an Oxigraph store, read-only, as a graph of that name.

        It is asked when it is needed. Raises UsageError, UnreadableFile for a table of titles that is none,
        MissingExtra, and RemoteError where it does not answer; then nothing is mounted.
        """
        from clew.kb.graphs.mounting import MountOptions as Usual

        return self.store.graphs.mount(name, url, options or Usual())

    def graphs(self) -> list[GraphInfo]:
        """Return the imported and mounted graphs, sorted by name."""
        return self.store.graphs.infos()

    def graph(self, name: str) -> PropertyGraph:
        """Return a graph by its name. Raises UsageError where there is none."""
        return self.store.snapshot().graph(name)

    def entities(self, graph: str, what: str) -> list[Entity]:
        """Return the entities of a graph with this id, name or alias, sorted by id. Raises NotFound, UsageError."""
        opened = self.graph(graph)
        for id in (what, f"{graph}:{what}"):
            try:
                return opened.entities(opened.rows([id]))
            except NotFound:
                continue
        rows = opened.named(what)
        if not len(rows):
            raise NotFound(
                f"nothing in the graph '{graph}' is called '{what}'",
                f"What it holds: clew graph schema {graph}",
            )
        return opened.entities(rows)

    def remove_graph(self, name: str) -> GraphInfo:
        """Forget a graph: the base is as if it had never been added. Raises UsageError where there is none."""
        return self.store.graphs.remove(name)


def triples_of(graph: PropertyGraph, entity: Entity, limit: int = 10) -> list[Triples]:
    """Return the triples of an entity, relation by relation, those that it is the head of first; at most ``limit``
    of each."""
    from clew.kb.graphs.mounted import MountedGraph

    row = graph.rows([entity.id])
    found = []
    for inverse in (False, True):
        # Wikidata has ten thousand relations, and each would be a question over the network.
        relations = (
            graph.relations_of(int(row[0]), inverse) if isinstance(graph, MountedGraph) else graph.relations()
        )
        for relation in sorted(relations):
            _, others = graph.adjacent(row, relation, inverse)
            if not len(others):
                continue
            some = others[:limit]
            pairs = [(int(other), int(row[0])) if inverse else (int(row[0]), int(other)) for other in some]
            said = tuple(graph.statements(head, relation, tail) for head, tail in pairs)
            found.append(Triples(relation, inverse, tuple(graph.entities(some)), said, len(others)))
    return found
