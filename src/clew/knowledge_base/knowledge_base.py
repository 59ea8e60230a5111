"""The public knowledge base: documents and graphs in one folder, searched and asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Self

from clew.core.config import default_encoder, expand_path, knowledge_base_path
from clew.core.errors import ClewError, NotFound, UsageError
from clew.core.types import Answer, Document, Exclusion, Hit, Node, Question, Scope, Step
from clew.knowledge_base.encoding import ENCODER_SETTING, Encoding
from clew.knowledge_base.graphs import KnowledgeGraphs
from clew.knowledge_base.results import DocumentMatches, GraphSize
from clew.knowledge_base.source_files import SourceFiles

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel
    from clew.knowledge_base.extraction import ExtractionReport
    from clew.knowledge_base.ingest.estimate import Estimate
    from clew.knowledge_base.ingest.report import Progress, Report
    from clew.store.store import Finding, Store, StoreInfo

#: The passage graphs that need neither a model nor a service.
LOCAL_GRAPHS = ("keywords", "mentions", "structure")


def open(  # "clew.open" is what people look for
    path: str | Path | None = None, *, create: bool = False, passages: str | None = None
) -> KnowledgeBase:
    """Open the knowledge base in the folder ``path`` (default: ``CLEW_HOME``, else ``./.clew``).

    ``create`` makes one where there is none, whose passages are of the unit ``passages`` (``paragraph`` or
    ``sentence``). It has the encoder of ``CLEW_ENCODER``, by default the one that comes with clew. Raises NotFound
    where there is no knowledge base, and UsageError where it has another unit.
    """
    from clew.store.store import Store

    folder = knowledge_base_path(path)
    is_new = not Store.exists(folder)
    store = Store.open(folder, create=create, passages=passages or "paragraph")
    if is_new:
        store.set_setting(ENCODER_SETTING, default_encoder())
    unit = store.passage_unit
    if passages not in {None, unit}:
        store.close()
        raise UsageError(
            f"the knowledge base at {store.path} has {unit}s as passages, not {passages}s",
            "Make another: --kb OTHER",
        )
    return KnowledgeBase(store)


class KnowledgeBase:
    """An open knowledge base: a context manager. Several processes may have the same one open.

    ``graphs`` are its knowledge graphs, ``encoding`` is its encoder with the vectors, ``files`` are the files that
    its documents were read from, and ``store`` is what holds it on disk.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.encoding = Encoding(store)
        self.graphs = KnowledgeGraphs(store, self.encoding)
        self.files = SourceFiles(store)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the knowledge base."""
        self.files.close()
        self.store.close()

    @property
    def path(self) -> Path:
        """The folder of the knowledge base."""
        return self.store.path

    # Documents

    def add(
        self,
        paths: Sequence[str | Path],
        *,
        sync: bool = False,
        checksum: bool = False,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Add files and folders (:mod:`clew.knowledge_base.ingest`), and encode new passages if there is an encoder.

        ``sync`` also removes documents whose files vanished from the folders; ``checksum`` compares the bytes of
        files whose size and time are unchanged.
        """
        from clew.knowledge_base import ingest

        report = ingest.add(
            self.store,
            paths,
            sync=sync,
            checksum=checksum,
            workers=workers,
            progress=progress or ingest.ignore_event,
            encoder=self.encoding.encoder,
        )
        self._update_extracted_graphs()
        return report

    def estimate(
        self, paths: Sequence[str | Path], *, sample: int = 3, workers: int | None = None
    ) -> Estimate:
        """Return what adding ``paths`` would bring; see :func:`clew.knowledge_base.ingest.estimate`."""
        from clew.knowledge_base import ingest

        return ingest.estimate(self.store, paths, sample=sample, workers=workers)

    def documents(self) -> list[Document]:
        """Return every document, sorted by name."""
        return sorted(self.store.documents(), key=lambda document: (document.name, document.key))

    def tree(self, document: str) -> list[Node]:
        """Return a document's nodes in reading order, itself first. Raises NotFound, UsageError."""
        return self.store.document_nodes(self.store.document(document).key)

    def node(self, id: str) -> Node:
        """Return a node. Raises NotFound."""
        return self.store.node(id)

    def match_documents(self, text: str) -> DocumentMatches:
        """Return the documents that a text names: a path, a folder, a key, or a file name."""
        documents = self.documents()
        by_path = []
        for document in documents:
            # The path of an uploaded file is no path on disk: it is compared as it is written.
            paths = tuple(path for path in document.paths if path == text or _is_within(path, text))
            if paths:
                by_path.append((document, paths))
        if by_path:
            return DocumentMatches(text, tuple(by_path))
        by_name = tuple(
            (document, document.paths)
            for document in documents
            if text == document.key or text in {Path(path).name for path in document.paths}
        )
        return DocumentMatches(text, by_name, ambiguous=len(by_name) > 1)

    def document_keys(self, text: str) -> list[str]:
        """Return the keys of the documents that a text names: a path, folder, key or file name. Raises NotFound."""
        matches = self.match_documents(text).documents
        # The store knows other ways to name a document, and the error for a name that nothing has.
        return [document.key for document, _ in matches] or [self.store.document(text).key]

    def remove(self, *names: str) -> list[Document]:
        """Remove paths, folders, file names or keys, and return the documents that have no path left.

        Raises NotFound for a name that nothing has, and UsageError for a file name that several documents have.
        """
        paths: set[str] = set()
        for name in names:
            matches = self.match_documents(name)
            if not matches.documents:
                raise NotFound(f"nothing in this knowledge base is '{name}'", "See: clew list")
            if matches.ambiguous:
                raise UsageError(
                    f"{len(matches.documents)} documents are named '{name}'",
                    "Give a path or a key; see: clew list",
                )
            paths.update(matches.paths)
        removed = self.store.remove(sorted(paths))
        self.files.forget_uploads(paths)
        self._update_extracted_graphs()
        return removed

    def _update_extracted_graphs(self) -> None:
        """Remove the triples of removed documents from the graphs that were extracted from them."""
        from clew.knowledge_base.extraction import drop_removed_documents

        drop_removed_documents(self)

    # Questions

    def search(
        self,
        question: str,
        *,
        k: int = 10,
        retriever: str = "default",
        documents: Iterable[str] | None = None,
    ) -> list[Hit]:
        """Return at most ``k`` hits, best first. ``documents`` (names, paths, folders, keys) restricts the search."""
        from clew.knowledge_base.registry import build_retriever

        searcher = build_retriever(retriever, self.store, encoder=self.encoding.encoder())
        return list(searcher.retrieve(self._question(question, documents), k))

    def ask(  # noqa: PLR0913 (one keyword for each choice about a question)
        self,
        question: str,
        *,
        llm: str | LanguageModel | None = None,
        recipe: str = "default",
        documents: Iterable[str] | None = None,
        graphs: Iterable[str] | None = None,
        chain: str = "",
        watch: Callable[[Step], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Answer:
        """Answer a question from the documents and graphs, or abstain.

        ``llm`` is a language model or its name, such as ``openai:gpt-4o-mini``; without it, the answer is a quote
        from the documents. ``documents`` and ``graphs`` restrict where the answer is looked for. ``chain`` is the
        question as triples (:mod:`clew.triples.language`), for the methods ``chain`` and ``focus``; ``question`` may
        then be empty. ``watch`` receives each step as it happens, and ``stop`` is asked between steps.
        """
        from clew.core.trail import TrailRecorder
        from clew.knowledge_base.registry import build_method

        method = build_method(recipe, self.store, llm=_model(llm), encoder=self.encoding.encoder())
        scoped = replace(self._question(question or chain, documents, graphs), chain=chain)
        return method.answer(scoped, TrailRecorder(watch, stop))

    def why_not(
        self,
        name: str,
        triples: str,
        *,
        question: str = "",
        recipe: str = "focus",
        graphs: Iterable[str] | None = None,
    ) -> list[Exclusion]:
        """Return for each node called ``name`` why it is no answer to a question that is written as typed triples.

        ``triples`` may be a person's own, or those of a model: the step ``triples`` of an answer's trail has them.
        Raises UsageError, and NotFound where no graph has a node of this name.
        """
        from clew.knowledge_base.registry import explain_exclusions

        scoped = replace(self._question(question or triples, None, graphs), chain=triples)
        encoder = self.encoding.encoder()
        return explain_exclusions(self.store, scoped, name, recipe=recipe, encoder=encoder)

    def recipe_error(self, recipe: str, llm: str | LanguageModel | None = None) -> ClewError | None:
        """Return why a recipe cannot answer from this base with this model (a model is missing, passages are of
        another unit), or None where it can."""
        from clew.knowledge_base.registry import build_method

        model = _model(llm)
        try:
            build_method(recipe, self.store, llm=model, encoder=self.encoding.encoder())
        except ClewError as error:
            return error
        return None

    def _question(
        self, text: str, documents: Iterable[str] | None, graphs: Iterable[str] | None = None
    ) -> Question:
        if not text.strip():
            raise UsageError("the question is empty", 'For example: clew ask "What was revenue in 2023?"')
        keys = names = None
        if documents is not None:
            keys = frozenset(key for document in documents for key in self.document_keys(document))
        if graphs is not None:
            names = frozenset(self.graphs.get(graph).name for graph in graphs)
        return Question(text, Scope(documents=keys, graphs=names))

    # Graphs made of the documents

    def extract_graph(
        self,
        name: str,
        *,
        llm: str | LanguageModel | None = None,
        documents: Iterable[str] | None = None,
        progress: Progress | None = None,
    ) -> ExtractionReport:
        """Extract the triples of every passage by a language model, as the knowledge graph ``name``; see
        :class:`clew.knowledge_base.extraction.GraphExtraction`.

        Only passages that it has not read yet are sent; without ``llm`` the graph is built again from what is known.
        Raises UsageError, ModelError, StoreError.
        """
        from clew.knowledge_base import ingest
        from clew.knowledge_base.extraction import GraphExtraction

        report = progress or ingest.ignore_event
        restriction = None if documents is None else tuple(documents)
        extraction = GraphExtraction(self, name, _model(llm), restriction)
        return extraction.run(lambda done, total: report(ingest.Event("extract", done, total)))

    def graph_sizes(self, names: Sequence[str]) -> list[GraphSize]:
        """Build graphs over the passages and return their sizes. ``all`` stands for :data:`LOCAL_GRAPHS`."""
        from clew.graph.passages import compute_statistics
        from clew.knowledge_base.registry import build_graph

        sizes = []
        recipes = [recipe for name in names for recipe in (LOCAL_GRAPHS if name == "all" else (name,))]
        for recipe in recipes:
            started = perf_counter()
            graph = build_graph(recipe, self.store, encoder=self.encoding.encoder())
            statistics = compute_statistics(self.store.snapshot(), graph)
            sizes.append(
                GraphSize(
                    statistics.graph,
                    statistics.nodes,
                    statistics.edges,
                    statistics.density,
                    statistics.mean_degree,
                    statistics.isolated,
                    perf_counter() - started,
                )
            )
        return sizes

    def count_unannotated(self, service: str = "wat", language: str = "en", url: str = "") -> tuple[int, str]:
        """Return how many passages :meth:`annotate` would send, and to which address."""
        from clew.graph.annotation import AnnotationCache, AnnotationService, count_unannotated

        annotator = AnnotationService(None, service, language, url)
        count = count_unannotated(self.store.snapshot(), annotator.maker, AnnotationCache.default())
        return count, annotator.url

    def annotate(
        self,
        service: str = "wat",
        language: str = "en",
        url: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Send every passage that was not sent yet to TAGME or WAT, for the graph ``entities``; return how many.

        Each answer is stored at once: when interrupted, the next call continues. Raises UsageError, ModelError.
        """
        from clew.core.config import annotation_token
        from clew.graph.annotation import AnnotationCache, AnnotationService, annotate_passages

        annotator = AnnotationService(annotation_token(), service, language, url)
        return annotate_passages(self.store.snapshot(), annotator, AnnotationCache.default(), progress)

    # Care

    def info(self, *, digest: bool = True) -> StoreInfo:
        """Return the sizes of the base, its generation and, with ``digest``, the digest of its content."""
        return self.store.info(digest=digest)

    def doctor(self, *, repair: bool = True, checksums: bool = True) -> list[Finding]:
        """Check the base and return what is wrong; with ``repair``, rebuild what can be rebuilt.

        Derived data may be missing or damaged; after a removal that was killed half-way, an extracted graph may hold
        triples of removed documents, and uploaded files may belong to no document.
        """
        from clew.knowledge_base.extraction import drop_removed_documents, measure_staleness
        from clew.store.store import Finding

        findings = self.store.doctor(repair=repair, checksums=checksums)
        if leftovers := self.files.count_orphaned_uploads(repair):
            findings.append(Finding("uploads", f"{leftovers} kept files belong to no document", repair))
        stale = {graph.name: measure_staleness(self, graph).gone for graph in self.graphs.infos()}
        repaired = drop_removed_documents(self) if repair and any(stale.values()) else []
        return findings + [
            Finding(f"graph {name}", f"holds triples of {gone} documents that are gone", name in repaired)
            for name, gone in stale.items()
            if gone
        ]


@contextmanager
def open_or_empty(path: str | Path | None = None) -> Iterator[KnowledgeBase]:
    """Open the knowledge base at ``path``; where there is none, a temporary empty one.

    For commands that only look: they create nothing in the place of a base that does not exist.
    """
    try:
        base = open(path)
    except NotFound:
        with TemporaryDirectory(prefix="clew-") as folder, open(folder, create=True) as empty:
            yield empty
        return
    with base:
        yield base


def _is_within(path: str, text: str) -> bool:
    """Return whether a path on disk is the one that ``text`` names, or lies in that folder."""
    folder = expand_path(text)
    return Path(path) == folder or folder in Path(path).parents


def _model(llm: str | LanguageModel | None) -> LanguageModel | None:
    if not isinstance(llm, str):
        return llm
    from clew.knowledge_base.registry import load_language_model

    return load_language_model(llm)
