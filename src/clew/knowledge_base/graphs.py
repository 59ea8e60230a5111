"""The knowledge graphs of a base: adding, mounting and removing them, and looking things up in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

from clew.core.errors import NotFound, UsageError
from clew.core.sources import Source, Sources, list_paths, list_sources, read_source
from clew.core.text import fold_name
from clew.core.types import Entity, GraphInfo
from clew.knowledge_base.results import EntityDescription, EntityTriples

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import NodeTexts, NodeVectors, ProgressCallback, PropertyGraph
    from clew.knowledge_base.ingest.graphs import GraphEditReport, GraphReport
    from clew.knowledge_base.ingest.report import Progress
    from clew.knowledge_base.knowledge_base import Encoding
    from clew.methods.focus.schema import Schema
    from clew.parse.graphs.formats import GraphReadOptions
    from clew.store.graphs.graph_edits import GraphEdits
    from clew.store.graphs.sparql_query import QueryResult
    from clew.store.sparql.mount_options import MountOptions
    from clew.store.sparql.mounted_graph import MountedGraph
    from clew.store.store import Store
    from clew.triples.linking.entity_alignment import EntityAlignment


#: Titles of fewer words and characters may stand in a text by chance.
_TITLE_WORDS, _TITLE_LENGTH = 3, 20
#: Characters before a short title in which its author, and around it in which its year is looked for.
_NEAR = 80


@dataclass(frozen=True, slots=True)
class _Reference:
    """How a work is recognised in the text of another: by its title, a short one beside author and year."""

    titles: tuple[str, ...]
    authors: tuple[str, ...]
    year: str

    @classmethod
    def of_work(cls, work: Entity, authors: Sequence[str]) -> _Reference:
        """Return that of a work with these authors."""
        main = fold_name(work.name.partition(": ")[0])
        titles = [fold_name(work.name), *([main] if _is_distinct(main) else [])]
        last_names = (fold_name(name).rpartition(" ")[2] for name in authors)
        return cls(
            tuple(dict.fromkeys(filter(None, titles))),
            tuple(filter(None, last_names)),
            str(work.properties.get("year", "")),
        )

    def stands_in(self, text: str) -> bool:
        """Return whether a folded text refers to the work."""
        return any(
            _is_distinct(title) or self._is_near(text, place, place + len(title) + 2)
            for title in self.titles
            if (place := text.find(f" {title} ")) >= 0
        )

    def _is_near(self, text: str, start: int, end: int) -> bool:
        """Return whether an author stands before the place of a short title, or of its last mention, and the year
        near it."""
        last = text.rfind(text[start:end])
        return any(
            any(f" {author} " in text[max(0, at - _NEAR) : at + 1] for author in self.authors)
            and bool(self.year)
            and self.year in text[max(0, at - _NEAR) : at + end - start + _NEAR]
            for at in (start, last)
        )


def _is_distinct(title: str) -> bool:
    return len(title) >= _TITLE_LENGTH and title.count(" ") >= _TITLE_WORDS - 1


class KnowledgeGraphs:
    """The imported, extracted and mounted graphs of a knowledge base: ``base.graphs``."""

    def __init__(self, store: Store, encoding: Encoding) -> None:
        self._store = store
        self._encoding = encoding

    def add(
        self,
        files: Sources = (),
        *,
        name: str | None = None,
        nodes: Sources = (),
        edges: Sources = (),
        options: GraphReadOptions | None = None,
        skip_bad: bool = False,
        progress: Progress | None = None,
    ) -> GraphReport:
        """Add a graph from files (triples, tables, JSON lines, Parquet, RDF), in place of one of that name.

        ``name`` is by default that of the first file, without its endings; then only a graph of that file is
        replaced, and UsageError raised for a graph of others. ``nodes`` and ``edges`` are tables that do not say by
        their columns what they are. Raises UnreadableFile (with BadRows, unless ``skip_bad``), UsageError,
        MissingExtra; then nothing is added.
        """
        from clew.knowledge_base import ingest

        graph_files = ingest.GraphFiles(*map(list_paths, (files, nodes, edges)))
        return ingest.add_graph(
            self._store.graphs,
            name or ingest.name_graph(self._store.graphs, graph_files, options.format if options else ""),
            graph_files,
            options,
            skip_bad=skip_bad,
            progress=progress or ingest.ignore_event,
        )

    def link_citations(self, name: str) -> int:
        """Add to a bibliography the edges ``cites`` that its works' documents show; return how many are new.

        A document is a work's if it has the name of the work's ``file`` or the work's title. It cites each other work
        whose title, or main title, stands in its text; one of fewer than three words or twenty characters counts
        only behind the last name of an author and near the year. Raises UsageError.
        """
        from clew.parse.graphs.bibliography import AUTHOR, CITES, PAPER
        from clew.store.graphs.graph_edits import GraphEdits

        graph = self.get(name)
        if PAPER not in graph.types():
            raise UsageError(f"'{name}' is no bibliography", "Add one: clew graph add library.bib")
        rows = graph.rows_of_type(PAPER)
        works = {entity.id.removeprefix(f"{name}:"): entity for entity in graph.entities(rows)}
        titles = {key: fold_name(work.name) for key, work in works.items()}
        authors: list[Sequence[str]] = [()] * len(works)
        if AUTHOR in graph.relations():
            starts, tails = graph.neighbours(rows, AUTHOR)
            names = [person.name for person in graph.entities(tails)]
            authors = [names[start:end] for start, end in pairwise(starts)]
        references = {
            key: _Reference.of_work(work, people)
            for (key, work), people in zip(works.items(), authors, strict=True)
        }
        documents: dict[str, str] = {}
        for document in self._store.documents():
            for text in (fold_name(document.title), *(PurePath(path).name for path in document.paths)):
                documents.setdefault(text, document.key)
        known: set[tuple[str, str]] = set()
        if CITES in graph.relations():
            starts, tails = graph.neighbours(rows, CITES)
            cited = [id.removeprefix(f"{name}:") for id in graph.ids(tails)]
            for number, key in enumerate(works):
                known.update((key, other) for other in cited[starts[number] : starts[number + 1]])
        edits = GraphEdits()
        for key, work in works.items():
            own = documents.get(PurePath(str(work.properties.get("file", ""))).name) or documents.get(
                titles[key]
            )
            if own is None:
                continue
            text = f" {fold_name(self._store.document_text(own))} "
            for other, reference in references.items():
                if other != key and (key, other) not in known and reference.stands_in(text):
                    edits.add_edge(key, CITES, other)
        if len(edits):
            self._store.graphs.edit_graph(name, edits)
        return len(edits)

    def edit(
        self,
        name: str,
        edits: GraphEdits | None = None,
        *,
        add: Sources = (),
        remove: Sources = (),
        options: GraphReadOptions | None = None,
        skip_bad: bool = False,
        progress: Progress | None = None,
    ) -> GraphEditReport:
        """Remove and add edges and nodes of an imported graph, in one transaction and without reading it again.

        ``edits`` are edges and nodes; ``remove`` and ``add`` are files of them, in any format of :meth:`add` (of RDF
        only relations between nodes). All removals come first. Of nodes to be removed only the ids count, and their
        edges go with them; an end of an edge that nothing describes goes with its last edge. A node that is there is
        described anew. Afterwards the graph is the same as if it were read from files with these nodes and edges, and
        adding its old files replaces it. What was to be removed and is not there is reported as missing.

        Raises UsageError for a graph that is not there, mounted, or extracted from documents, and where no node would
        be left; UnreadableFile (with BadRows, unless ``skip_bad``), MissingExtra; then nothing is changed.
        """
        import time

        from clew.knowledge_base import ingest
        from clew.knowledge_base.extraction import extraction_maker
        from clew.parse.graphs.files import RowErrors
        from clew.parse.graphs.formats import GraphReadOptions, has_rdf_ids
        from clew.store.graphs.graph_edits import GraphEdits

        started = time.monotonic()
        info = next((info for info in self.infos() if info.name == name), None)
        if info is not None and extraction_maker(info):
            raise UsageError(
                f"'{name}' is extracted from the documents, and the next extraction would undo an edit",
                "Add a graph of your own beside it: clew graph add FILE",
            )
        all_edits, errors = GraphEdits(), RowErrors(skip_bad)
        iris = info is not None and has_rdf_ids(info.options)
        ingest.read_edits(
            all_edits,
            iris=iris,
            add=list_paths(add),
            remove=list_paths(remove),
            options=options or GraphReadOptions(),
            errors=errors,
            progress=progress or ingest.ignore_event,
        )
        all_edits.update(edits or GraphEdits())
        counts = self._store.graphs.edit_graph(name, all_edits, iris=iris)
        (edited,) = (info for info in self.infos() if info.name == name)
        return ingest.GraphEditReport(
            edited,
            counts,
            errors.count,
            tuple(errors.messages),
            dict(errors.omitted),
            time.monotonic() - started,
        )

    def mount(self, name: str, url: Source, options: MountOptions | None = None) -> MountedGraph:
        """Mount a SPARQL 1.1 endpoint, or the folder of an Oxigraph store, read-only, as a graph of that name.

        It is asked when it is needed. Raises UsageError, UnreadableFile for a table of titles that is none,
        MissingExtra, and RemoteError where it does not answer; then nothing is mounted.
        """
        from clew.store.sparql.mount_options import MountOptions

        return self._store.graphs.mount(name, read_source(url), options or MountOptions())

    def schema(self, question: str, graphs: Sources = ()) -> Schema:
        """Return the schema that a model is shown when it writes a question as typed triples: the types, relations
        and properties of ``graphs`` (all, if none are named), cut to what the question may need where they are
        many.

        Raises NotFound for a graph that is not there.
        """
        from clew.methods.focus.schema import describe_schema
        from clew.triples.linking.relations import GraphRelationLinker

        names = list_sources(graphs) or [graph.name for graph in self.infos()]
        return describe_schema(
            [self.get(name) for name in names], question, GraphRelationLinker(self._encoding.encoder())
        )

    def infos(self) -> list[GraphInfo]:
        """Return the imported and mounted graphs, sorted by name."""
        return self._store.graphs.graph_infos()

    def get(self, name: str) -> PropertyGraph:
        """Return a graph by its name. Raises UsageError where there is none."""
        return self._store.snapshot().graph(name)

    def entities(self, graph: str, text: str) -> list[Entity]:
        """Return the entities of a graph with this id, name or alias, sorted by id. Raises NotFound, UsageError."""
        opened = self.get(graph)
        for id in (text, f"{graph}:{text}"):
            try:
                return opened.entities(opened.rows([id]))
            except NotFound:
                continue
        rows = opened.find_by_name(text)
        if not len(rows):
            raise NotFound(
                f"nothing in the graph '{graph}' is called '{text}'",
                f"What it holds: clew graph schema {graph}",
            )
        return opened.entities(rows)

    def query(
        self,
        graph: str,
        query: str,
        *,
        limit: int | None = None,
        timeout: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> QueryResult:
        """Return the result of a SPARQL query (SELECT, ASK, CONSTRUCT, DESCRIBE) over a graph, at most ``limit``
        solutions or triples.

        An imported graph is seen as :mod:`clew.store.graphs.rdf_view` says: ``?film r:directed_by ?x . ?film
        n:release_year ?year``, with prefixes that need not be declared. The first query builds its store on disk;
        ``progress`` is called with the nodes and edges done, and the total. A mounted graph is queried where it is.

        Raises UsageError for an update, a syntax error (with its place), and after ``timeout`` seconds; MissingExtra
        without pyoxigraph; RemoteError where a mounted graph does not answer.
        """
        from clew.store.graphs.imported_graph import ImportedGraph
        from clew.store.graphs.sparql_query import check_query, query_imported_graph, query_mounted_graph
        from clew.store.sparql.mounted_graph import MountedGraph

        opened = self.get(graph)
        if isinstance(opened, MountedGraph):
            return query_mounted_graph(opened, query, limit, timeout)
        if not isinstance(opened, ImportedGraph):
            raise UsageError(f"the graph '{graph}' cannot be queried by SPARQL")
        check_query(query)  # before a store is built, which may take minutes
        store = self._store.graphs.open_rdf_store(opened, progress)
        return query_imported_graph(opened, store, query, limit, timeout)

    def describe(self, graph: str, entities: Sequence[Entity], limit: int = 10) -> list[EntityDescription]:
        """Return entities of a graph with their triples, at most ``limit`` of each relation, and with the entities of
        other graphs that have the same ids or names. Raises UsageError where there is no such graph."""
        opened = self.get(graph)
        return [
            EntityDescription(
                entity,
                tuple(entity_triples(opened, entity, limit)),
                self.equivalents(entity.id, thorough=False),
            )
            for entity in entities
        ]

    def equivalents(self, id: str, *, thorough: bool = True) -> tuple[EntityAlignment, ...]:
        """Return the nodes of other graphs, and the documents, that are the same thing as a node (``films:Q42``),
        each with the evidence for it, the surest first.

        ``thorough`` also compares identifying properties such as ``imdb_id``, for which every graph is read once.
        Raises NotFound, UsageError.
        """
        from clew.triples.linking import align_entity

        return align_entity(self._store.snapshot(), id, remote=self._mounts(), thorough=thorough)

    def links(self, graph: str | None = None) -> Iterator[EntityAlignment]:
        """Yield the nodes of different graphs that are the same thing, and the documents about a node, with the
        evidence. ``graph`` restricts to one graph. Mounted graphs are queried, never read whole. Raises
        UsageError."""
        from clew.triples.linking import align_graphs

        snapshot = self._store.snapshot()
        if graph is not None:
            snapshot.graph(graph)
        return align_graphs(snapshot, graph, remote=self._mounts())

    def _mounts(self) -> list[str]:
        return [graph.name for graph in self.infos() if graph.url]

    def encode(
        self, name: str, *, names: bool = False, every: bool = False, progress: Progress | None = None
    ) -> int:
        """Make the missing vectors of a graph's nodes with the base's encoder, and return of how many nodes.

        Vectors are made of the text and relations of the nodes that may answer a question, or with ``every`` of all
        nodes; with ``names``, of their names alone, which helps to link names. The words of the texts are counted
        first. When interrupted, the next call continues. Raises ModelError, and UsageError for a mounted graph or a
        base without an encoder.
        """
        from clew.knowledge_base import ingest
        from clew.retrieve.nodes import NodeTexts

        report = progress or ingest.ignore_event
        graph, vectors, rows, texts = self._node_vectors(name, names, every)
        if not names:
            node_texts = NodeTexts(graph)
            graph.node_postings(
                node_texts.document_name,
                node_texts.single_texts,
                lambda done, total: report(ingest.Event("words", done, total)),
            )
        return vectors.encode_missing(
            rows, texts, lambda done, total: report(ingest.Event("encode", done, total))
        )

    def estimate_encoding(
        self, name: str, *, names: bool = False, every: bool = False
    ) -> tuple[int, float | None]:
        """Return how many vectors :meth:`encode` would make, and about how many seconds that takes.

        The time is measured on a few nodes; it is None for an encoder that sends texts to another machine.
        """
        from clew.models import leaves_machine

        _, vectors, rows, texts = self._node_vectors(name, names, every)
        missing = vectors.rows_without_vectors(rows)
        if not len(missing) or leaves_machine(self._encoding.name or ""):
            return len(missing), None if len(missing) else 0.0
        return len(missing), len(missing) * self._encoding.seconds_per_row(
            missing, lambda sample: [part for parts in texts(sample) for part in parts]
        )

    def _node_vectors(
        self, name: str, names: bool, every: bool
    ) -> tuple[PropertyGraph, NodeVectors, Rows, NodeTexts]:
        """Return a graph, the vectors of its nodes, the rows that should have one, and the function that gives
        their texts."""
        import numpy as np

        from clew.retrieve.nodes import NodeTexts, answer_rows_or_all
        from clew.triples.linking.nearest_names import NAME_VECTORS, node_names

        graph, encoder = self.get(name), self._encoding.require()
        if names:
            return (
                graph,
                graph.node_vectors(encoder, NAME_VECTORS),
                np.arange(graph.size),
                lambda rows: node_names(graph, rows),
            )
        texts = NodeTexts(graph)
        chosen = np.arange(graph.size) if every else answer_rows_or_all(graph)
        return graph, graph.node_vectors(encoder, texts.document_name), chosen, texts.single_texts

    def remove(self, name: str) -> GraphInfo:
        """Remove a graph: the base is as if it had never been added. Raises UsageError where there is no such
        graph."""
        return self._store.graphs.remove(name)


def entity_triples(graph: PropertyGraph, entity: Entity, limit: int = 10) -> list[EntityTriples]:
    """Return the triples of an entity by relation, at most ``limit`` of each; those that it is the head of first."""
    row = graph.rows([entity.id])
    triples = []
    # Wikidata has ten thousand relations; only those at the entity are asked about.
    relations = graph.relations_at(row)
    for inverse in (False, True):
        for relation in relations:
            _, others = graph.neighbours(row, relation, inverse)
            if not len(others):
                continue
            shown = others[:limit]
            pairs = [(int(other), int(row[0])) if inverse else (int(row[0]), int(other)) for other in shown]
            statements = tuple(graph.edge_properties(head, relation, tail) for head, tail in pairs)
            ends = tuple(graph.entities(shown))
            triples.append(EntityTriples(relation, inverse, ends, statements, len(others)))
    return triples
