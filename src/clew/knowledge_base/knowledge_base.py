"""The public knowledge base: documents and graphs in one folder, searched and asked; and its encoder."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from clew.core.config import DEFAULT_ENCODER, default_encoder, knowledge_base_path
from clew.core.errors import (
    BaseReplaced,
    ClewError,
    NotFound,
    RemovedMeanwhile,
    UsageError,
)
from clew.core.installation import format_install_command
from clew.core.sources import Source, Sources, expand_path, list_sources, list_texts, read_source
from clew.core.text import clean_name, file_name
from clew.core.types import (
    EVIDENCE_FOR,
    RETRIEVED_KINDS,
    Answer,
    Document,
    Exclusion,
    Hit,
    Node,
    Question,
    Scope,
    Step,
)
from clew.knowledge_base.results import CitedSource, DocumentMatches, GraphSize, VectorCounts

if TYPE_CHECKING:
    from clew.core.arrays import Rows
    from clew.core.protocols import Encoder, LanguageModel
    from clew.knowledge_base.basket import Basket
    from clew.knowledge_base.cluster import Cluster
    from clew.knowledge_base.extraction import ExtractionReport
    from clew.knowledge_base.graphs import KnowledgeGraphs
    from clew.knowledge_base.ingest.estimate import Estimate
    from clew.knowledge_base.ingest.report import Progress, Report
    from clew.knowledge_base.name_profile import NameProfile
    from clew.knowledge_base.source_files import SourceFiles
    from clew.knowledge_base.tables import KnowledgeTables
    from clew.methods.focus.exact import ExactReading
    from clew.retrieve.structure.comparison import Comparison
    from clew.store.store import Finding, Store, StoreInfo

T = TypeVar("T")

#: The setting of a base that names its encoder.
ENCODER_SETTING = "encoder"
#: The value of that setting in a base without an encoder.
NO_ENCODER = "none"
#: How often a question begins again because what it was about to read was replaced or removed.
MAX_REPETITIONS = 5
#: Characters of a question: enough for any that a person types. What reads a question is not made for a document.
MAX_QUESTION = 20_000
#: How many documents a notebook lists.
SHOWN_DOCUMENTS = 20
#: The most characters of a tag.
MAX_TAG = 60
#: How many texts are encoded to estimate how long all take.
SAMPLE_SIZE = 24
#: Several threads of a server may ask for an encoder, or for the files, first; one of them loads it.
_LOADING = threading.Lock()
#: The passage graphs that need neither a model nor a service.
LOCAL_GRAPHS = ("keywords", "mentions", "structure")


def open(  # "clew.open" is what people look for
    path: str | Path | None = None,
    *,
    create: bool = False,
    passages: str | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> KnowledgeBase:
    """Open the knowledge base in the folder ``path`` (default: ``CLEW_HOME``, else ``./.clew``), or the copy at an
    address of object storage (``s3://bucket/base``), which is read where it lies and cannot be changed there.

    ``create`` makes one where there is none, whose passages are of the unit ``passages`` (``paragraph`` or
    ``sentence``). It has the encoder of ``CLEW_ENCODER``, by default the one that comes with clew, and other
    ``settings`` where they are given; it is made with all of them or not at all. Raises NotFound where there is no
    knowledge base, and UsageError where it has another unit.
    """
    from clew.store.store import Store

    folder = knowledge_base_path(path)
    if isinstance(folder, str):
        from clew.store.remote.store import RemoteStore

        return KnowledgeBase(RemoteStore.open_url(folder))
    settings = {ENCODER_SETTING: default_encoder(), **settings}
    store = Store.open(folder, create=create, passages=passages or "paragraph", settings=settings)
    unit = store.passage_unit
    if passages not in {None, unit}:
        store.close()
        raise UsageError(
            f"the knowledge base at {store.path} has {unit}s as passages, not {passages}s",
            "Make another: --kb OTHER",
        )
    base = KnowledgeBase(store)
    if (store.path / "uploads").is_dir():
        with suppress(OSError):  # nothing can be written
            base.files.finish_forgetting()
    return base


@contextmanager
def open_or_empty(path: str | Path | None = None) -> Iterator[KnowledgeBase]:
    """Open the knowledge base at ``path``; where there is none, a temporary empty one.

    For commands that only look: they create nothing in the place of a base that does not exist.
    """
    try:
        base = open(path)
    except NotFound:
        if isinstance(knowledge_base_path(path), str):
            raise
        with TemporaryDirectory(prefix="clew-") as folder, open(folder, create=True) as empty:
            yield empty
        return
    with base:
        yield base


class KnowledgeBase:
    """An open knowledge base: a context manager. Several processes may have the same one open.

    ``encoding`` is its encoder with the vectors, and ``store`` is what holds it on disk.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.encoding = Encoding(store)
        self._files: SourceFiles | None = None

    @property
    def graphs(self) -> KnowledgeGraphs:
        """The knowledge graphs of the base."""
        from clew.knowledge_base.graphs import KnowledgeGraphs

        return KnowledgeGraphs(self.store, self.encoding)

    @property
    def tables(self) -> KnowledgeTables:
        """The tables of the documents, as data."""
        from clew.knowledge_base.tables import KnowledgeTables

        return KnowledgeTables(self.store)

    @property
    def basket(self) -> Basket:
        """The quotes that were put aside for a memo."""
        from clew.knowledge_base.basket import Basket

        return Basket(self.store)

    @property
    def files(self) -> SourceFiles:
        """The files that the documents were read from."""
        with _LOADING:
            if self._files is None:
                from clew.knowledge_base.source_files import SourceFiles

                self._files = SourceFiles(self.store)
        return self._files

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the knowledge base."""
        if self._files is not None:
            self._files.close()
        self.store.close()

    @property
    def path(self) -> Path:
        """The folder of the knowledge base."""
        return self.store.path

    def __repr__(self) -> str:
        """Return the folder and the number of documents."""
        return f"<KnowledgeBase {self.store.place}: {len(self.documents())} documents>"

    def _repr_html_(self) -> str:
        """Return the base as a notebook shows it: its folder, and a table of its first documents."""
        from html import escape

        documents = self.documents()
        rows = "".join(
            f'<tr><td dir="auto">{escape(item.name)}</td><td dir="auto">{escape(item.title)}</td>'
            f"<td>{item.pages or ''}</td></tr>"
            for item in documents[:SHOWN_DOCUMENTS]
        )
        more = len(documents) - SHOWN_DOCUMENTS
        rest = f"<p>and {more} more</p>" if more > 0 else ""
        return (
            f"<p>Knowledge base <code>{escape(self.store.place)}</code>, {len(documents)} documents</p>"
            f"<table><tr><th>document</th><th>title</th><th>pages</th></tr>{rows}</table>{rest}"
        )

    # Documents

    def add(  # noqa: PLR0913 (one keyword for each choice of a person)
        self,
        paths: Sources,
        *,
        sync: bool = False,
        checksum: bool = False,
        workers: int | None = None,
        progress: Progress | None = None,
        allow_private: bool = False,
        anyway: bool = False,
        cluster: Cluster | None = None,
    ) -> Report:
        """Add files and folders (:mod:`clew.knowledge_base.ingest`), and encode new passages if there is an encoder.

        ``paths`` is one path or several. A path may be the address of a page (https://); ``allow_private`` allows one
        on this machine or a private network. A folder of the whole system and the home folder
        (:data:`clew.core.sources.SYSTEM_FOLDERS`) are read only with ``anyway``, else UsageError is raised.

        ``sync`` also removes documents whose files vanished from the folders; ``checksum`` compares the bytes of
        files whose size and time are unchanged. With a ``cluster`` (:mod:`clew.knowledge_base.cluster`) files are
        parsed and passages encoded there.
        """
        from clew.knowledge_base import ingest
        from clew.knowledge_base.ingest.web_page import PageFetcher

        self.encoding.cluster = cluster
        try:
            report = ingest.add(
                self.store,
                paths,
                sync=sync,
                checksum=checksum,
                workers=workers,
                progress=progress or ingest.ignore_event,
                encoder=self.encoding.encoder,
                fetcher=PageFetcher(allow_private),
                anyway=anyway,
                cluster=cluster,
            )
        finally:
            self.encoding.cluster = None
        self._update_extracted_graphs()
        return report

    def estimate(
        self, paths: Sources, *, sample: int = 3, workers: int | None = None, anyway: bool = False
    ) -> Estimate:
        """Return what adding ``paths`` would bring; see :func:`clew.knowledge_base.ingest.estimate`."""
        from clew.knowledge_base import ingest

        return ingest.estimate(self.store, paths, sample=sample, workers=workers, anyway=anyway)

    def documents(self) -> list[Document]:
        """Return every document, sorted by name."""
        return sorted(self.store.documents(), key=lambda document: (document.name, document.key))

    def tree(self, document: Source) -> list[Node]:
        """Return a document's nodes in reading order, itself first. Raises NotFound, UsageError."""
        return self.store.document_nodes(self.store.document(document).key)

    def node(self, id: str) -> Node:
        """Return a node. Raises NotFound."""
        return self.store.node(id)

    def trace_citation(self, id: str, document_name: str, words: str, page: int | None = None) -> CitedSource:
        """Return where a cited node is today, whose document may have been read again, changed or removed.

        ``words`` are the quoted ones, or the node's text. They are looked for in the documents with the file name
        ``document_name``, across passages too; of several places the one on ``page`` counts, else the first.
        """
        try:
            return CitedSource("unchanged", self.node(id))
        except NotFound:
            pass
        named = DocumentNames(self.documents()).match(document_name).documents
        places: list[Node] = []
        for document, _ in named:
            nodes = [node for node in self.store.document_nodes(document.key) if node.kind in RETRIEVED_KINDS]
            places += _nodes_with(words, nodes)
        if places:
            return CitedSource("moved", min(places, key=lambda node: node.page != page))
        return CitedSource("changed" if named else "removed")

    def match_documents(self, text: Source) -> DocumentMatches:
        """Return the documents that a text names: a path, a folder, a key, or a file name."""
        return DocumentNames(self.documents()).match(text)

    def document_keys(self, *names: Sources) -> frozenset[str]:
        """Return the keys of the documents that texts name: paths, folders, keys or file names. Raises NotFound."""
        documents = DocumentNames(self.documents())
        keys: set[str] = set()
        for name in dict.fromkeys(list_sources(*names)):
            matches = documents.match(name).documents
            # The store knows other ways to name a document, and the error for a name that nothing has.
            keys.update([document.key for document, _ in matches] or [self.store.document(name).key])
        return frozenset(keys)

    def select_documents(self, where: str, among: Sources | None = None) -> frozenset[str]:
        """Return the keys of the documents that meet a condition on their fields, of all or of those ``among``.

        Raises UsageError with the position of a mistake, NotFound where no document meets it.
        """
        from clew.core.document_filter import select_documents

        keys = select_documents(self.store.documents(), where)
        if among is not None:
            keys &= frozenset(list_sources(among))
        if not keys:
            raise NotFound(f"no document meets '{where}'", "See their fields: clew list --json")
        return keys

    def remove(self, *names: Sources) -> list[Document]:
        """Remove paths, folders, file names or keys, and return the documents that have no path left. Their earlier
        versions are deleted, too.

        Raises NotFound for a name that nothing has, and UsageError for a file name that several documents have.
        """
        paths: set[str] = set()
        documents = DocumentNames(self.documents())
        for name in list_sources(*names):
            matches = documents.match(name)
            if not matches.documents:
                raise NotFound(f"nothing in this knowledge base is '{name}'", "See: clew list")
            if matches.ambiguous:
                raise UsageError(
                    f"{len(matches.documents)} documents are named '{name}'",
                    "Give a path or a key; see: clew list",
                )
            paths.update(matches.paths)
        if (self.store.own_path / "versions").is_dir():  # first: a kill leaves no text of what is gone
            from clew.knowledge_base.trash import Trash

            Trash(self).forget_versions(paths)
        with self.files.forgetting_uploads(paths):
            removed = self.store.remove(sorted(paths))
        self._update_extracted_graphs()
        return removed

    def tag(self, *names: Sources, add: str | Iterable[str] = (), remove: str | Iterable[str] = ()) -> None:
        """Give tags to documents (paths, folders, keys or file names), or take tags away. ``tag = lease`` in a
        condition finds them, beside those that the files themselves state. Raises NotFound, UsageError."""
        labels, old = ([" ".join(label.split()) for label in list_texts(tags)] for tags in (add, remove))
        for label in labels:
            if not label or len(label) > MAX_TAG or "," in label:
                raise UsageError(f"'{label}' is no tag", f"A tag has 1 to {MAX_TAG} characters and no comma")
        keys = self.document_keys(*names)
        paths = [path for document in self.documents() if document.key in keys for path in document.paths]
        self.store.tag(paths, labels, old)

    def earlier_nodes(self, document: str) -> list[Node]:
        """Return the nodes of a document (a key) that was changed or removed, as it was when a watched folder changed
        or it was moved to the trash; [] where that was not kept."""
        from clew.knowledge_base.trash import Trash

        return Trash(self).earlier_nodes(document)

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
        documents: Sources | None = None,
        where: str = "",
    ) -> list[Hit]:
        """Return at most ``k`` hits, best first. ``documents`` (names, paths, folders, keys) restricts the search,
        and so does the condition ``where`` on their fields (:mod:`clew.core.document_filter`)."""
        from clew.knowledge_base.registry import build_retriever

        names = None if documents is None else list_sources(documents)  # once: a question may begin again

        def retrieve() -> list[Hit]:
            self._prefetch(question)
            searcher = build_retriever(retriever, self.store, encoder=self.encoding.encoder())
            return list(searcher.retrieve(self._question(question, names, where=where), k))

        return self._run_question(retrieve)

    def _prefetch(self, question: str) -> None:
        """Begin to fetch what the words of a question need, where the base lies in object storage."""
        if self.store.is_remote:
            from clew.retrieve.contextual import prefetch_question

            prefetch_question(question, self.store.snapshot())

    def _run_question(self, work: Callable[[], T], *, is_free: bool = True) -> T:
        """Return ``work()``, begun again where the base lies in object storage and was replaced meanwhile, or where
        something was removed that it was about to read, unless that costs (``is_free``).

        Matrix products use one thread meanwhile. The threads of OpenBLAS, which comes with numpy, go on spinning for
        some 20 ms after each product, and would take the cores from the encoder and the reader.
        """
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            for _ in range(MAX_REPETITIONS):
                begun = self.store.copy_id()
                try:
                    return work()
                except BaseReplaced:
                    self.store.refresh()
                    if self.store.copy_id() == begun:  # another thread may have taken up the new state
                        raise
                except RemovedMeanwhile:
                    if not is_free:
                        raise
            return work()

    def ask(  # noqa: PLR0913 (one keyword for each choice about a question)
        self,
        question: str,
        *,
        llm: str | LanguageModel | None = None,
        recipe: str = "default",
        documents: Sources | None = None,
        where: str = "",
        graphs: Sources | None = None,
        chain: str = "",
        evidence_for: int = EVIDENCE_FOR,
        watch: Callable[[Step], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Answer:
        """Answer a question from the documents and graphs; ``way`` of the answer says whether it is stated, possible
        ("perhaps") or not found.

        ``llm`` is a language model or its name, such as ``openai:gpt-4o-mini``; without it, the answer is a quote
        from the documents. ``documents``, ``where`` (a condition such as ``date >= 2021 and tag = lease``) and
        ``graphs`` restrict where the answer is looked for. ``chain`` is the
        question as triples (:mod:`clew.triples.language`), for the methods ``chain`` and ``focus``; ``question`` may
        then be empty. Of a ranked list of nodes, the first ``evidence_for`` carry their evidence. ``watch`` receives
        each step as it happens, and ``stop`` is asked between steps.
        """
        from clew.core.trail import TrailRecorder
        from clew.knowledge_base.registry import build_method

        names, chosen = (None if given is None else list_sources(given) for given in (documents, graphs))

        def answer() -> Answer:
            self._prefetch(question)
            method = build_method(recipe, self.store, llm=_model(llm), encoder=self.encoding.encoder())
            scoped = replace(
                self._question(question or chain, names, chosen, where),
                chain=chain,
                evidence_for=evidence_for,
            )
            return method.answer(scoped, TrailRecorder(watch, stop)).weigh()

        return self._run_question(answer, is_free=llm is None)

    async def aask(self, question: str, **options: Any) -> Answer:
        """Answer as :meth:`ask` does, with its ``options``, in a thread of its own."""
        import asyncio

        return await asyncio.to_thread(self.ask, question, **options)

    def stream(self, question: str, **options: Any) -> Generator[Step | Answer]:
        """Yield each step of :meth:`ask` as it happens, and the answer at the end; raise what ``ask`` raises.

        ``options`` are those of ``ask`` except ``watch`` and ``stop``. An iterator that is closed stops the work
        after the step that it is in.
        """
        events: SimpleQueue[Step | Answer | BaseException] = SimpleQueue()
        closed = threading.Event()

        def work() -> None:
            try:
                events.put(self.ask(question, watch=events.put, stop=closed.is_set, **options))
            except BaseException as error:  # noqa: BLE001 (it is raised where the steps are read)
                events.put(error)

        worker = threading.Thread(target=work, name="clew-stream", daemon=True)
        worker.start()
        try:
            while True:
                event = events.get()
                if isinstance(event, BaseException):
                    raise event
                yield event
                if isinstance(event, Answer):
                    return
        finally:
            closed.set()
            worker.join()

    async def astream(self, question: str, **options: Any) -> AsyncIterator[Step | Answer]:
        """Yield what :meth:`stream` yields, without blocking the event loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Step | None] = asyncio.Queue()
        closed = threading.Event()

        def watch(step: Step) -> None:
            loop.call_soon_threadsafe(events.put_nowait, step)

        answering = asyncio.create_task(
            self.aask(question, watch=watch, stop=closed.is_set, **options), name="clew-stream"
        )
        answering.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (step := await events.get()) is not None:
                yield step
            yield await answering
        finally:
            closed.set()

    def about(
        self,
        name: str,
        *,
        documents: Sources | None = None,
        where: str = "",
        graphs: Sources | None = None,
    ) -> NameProfile:
        """Return everything said of a person, company or term: sentences in the order of their dates, other names,
        who it occurs with, and its triples (:mod:`clew.knowledge_base.name_profile`).

        ``documents`` and ``where`` restrict the documents; ``graphs`` are by default all imported graphs. A misspelt
        name has no statements, but ``suggestions``. Raises UsageError for an empty name, NotFound.
        """
        from clew.knowledge_base.name_profile import describe_name

        snapshot = self.store.snapshot()
        scope = self._question(name, documents, graphs, where).scope if name.strip() else Scope()
        names = snapshot.graphs() if scope.graphs is None else sorted(scope.graphs)
        opened = [snapshot.graph(graph) for graph in names]
        if scope.graphs is None:
            opened = [graph for graph in opened if not graph.is_mounted]
        return describe_name(snapshot, name, documents=scope.documents, graphs=opened)

    def compare(self, before: Source, after: Source) -> Comparison:
        """Return what changed from one document to another: headings, clauses, numbers
        (:mod:`clew.retrieve.structure.comparison`). Documents are named by path, key or file name.

        Raises NotFound, and UsageError for a name that several documents have.
        """
        from clew.retrieve.structure.comparison import compare_nodes

        return compare_nodes(self.tree(before), self.tree(after))

    def why_not(
        self,
        name: str,
        triples: str,
        *,
        question: str = "",
        recipe: str = "focus",
        graphs: Sources | None = None,
    ) -> list[Exclusion]:
        """Return for each node called ``name`` why it is no answer to a question that is written as typed triples.

        ``triples`` may be a person's own, or those of a model: the step ``triples`` of an answer's trail has them.
        Raises UsageError, and NotFound where no graph has a node of this name.
        """
        from clew.knowledge_base.registry import explain_exclusions

        scoped = replace(self._question(question or triples, None, graphs), chain=triples)
        encoder = self.encoding.encoder()
        return explain_exclusions(self.store, scoped, name, recipe=recipe, encoder=encoder)

    def explain(
        self, triples: str, *, question: str = "", graphs: Sources | None = None
    ) -> list[ExactReading]:
        """Return for each graph what typed triples mean in it: the SPARQL query, how many answers each constraint
        leaves, or which of their names the graph does not have. Nothing is answered.

        Raises UsageError for triples that have no meaning.
        """
        from clew.knowledge_base.registry import explain_question

        scoped = replace(self._question(question or triples, None, graphs), chain=triples)
        return explain_question(self.store, scoped)

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
        self,
        text: str,
        documents: Sources | None,
        graphs: Sources | None = None,
        where: str = "",
    ) -> Question:
        if not text.strip():
            raise UsageError("the question is empty", 'For example: clew ask "What was revenue in 2023?"')
        if len(text) > MAX_QUESTION:
            raise UsageError(
                f"the question has {len(text):,} characters, more than {MAX_QUESTION:,}",
                "Add long texts as documents, and ask about them",
            )
        keys = names = None
        if documents is not None:
            keys = self.document_keys(documents)
        if where.strip():
            keys = self.select_documents(where, keys)
        if graphs is not None:
            names = frozenset(self.graphs.get(graph).name for graph in list_sources(graphs))
        # Line feeds divide triples; expressions that skip white space take the cube of longer runs.
        text = re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", text.strip()))
        return Question(text, Scope(documents=keys, graphs=names))

    # Graphs made of the documents

    def extract_graph(
        self,
        name: str,
        *,
        llm: str | LanguageModel | None = None,
        documents: Sources | None = None,
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
        extraction = GraphExtraction(self, name, _model(llm), documents)
        return extraction.run(lambda done, total: report(ingest.Event("extract", done, total)))

    def graph_sizes(self, names: Sources) -> list[GraphSize]:
        """Build graphs over the passages and return their sizes. ``all`` stands for :data:`LOCAL_GRAPHS`."""
        from clew.graph.passages import compute_statistics
        from clew.knowledge_base.registry import build_graph

        sizes = []
        given = list_sources(names)
        for recipe in (recipe for name in given for recipe in (LOCAL_GRAPHS if name == "all" else (name,))):
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

        Settings, vectors and other derived data may be missing or damaged; after a removal that was killed half-way,
        an extracted graph may hold triples of removed documents, and uploaded files may belong to no document.
        """
        from clew.knowledge_base.extraction import drop_removed_documents, measure_staleness
        from clew.store.store import PASSAGES_SETTING, Finding

        settings = {PASSAGES_SETTING: "paragraph", ENCODER_SETTING: default_encoder()}
        lacking = self.store.complete_settings(settings, repair=repair)
        findings = [Finding("settings", f"there is no setting '{name}'", repair) for name in lacking]
        findings += self.store.doctor(repair=repair, checksums=checksums)
        findings += self.encoding.check(repair)
        if leftovers := self.files.count_orphaned_uploads(repair):
            findings.append(Finding("uploads", f"{leftovers} kept files belong to no document", repair))
        stale = {graph.name: measure_staleness(self, graph).gone for graph in self.graphs.infos()}
        repaired = drop_removed_documents(self) if repair and any(stale.values()) else []
        return findings + [
            Finding(f"graph {name}", f"holds triples of {gone} documents that are gone", name in repaired)
            for name, gone in stale.items()
            if gone
        ]


def _nodes_with(words: str, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes in whose text words stand, however they are spaced and raised; where they go over several
    nodes, the one in which they begin."""
    from clew.core.text import normalise

    wanted, texts = normalise(words), [normalise(node.text) for node in nodes]
    places = [node for node, text in zip(nodes, texts, strict=True) if wanted and wanted in text]
    if places or not wanted or (start := " ".join(texts).find(wanted)) < 0:
        return places
    ends = accumulate(len(text) + 1 for text in texts)
    return [next(node for node, end in zip(nodes, ends, strict=True) if start < end)]


class DocumentNames:
    """The names of documents. Each name is looked up in tables, so that thousands take no longer than a list of them;
    a folder is compared with every path."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._by_key: dict[str, Document] = {}
        self._by_path: dict[str, Document] = {}
        self._by_file_name: dict[str, dict[str, Document]] = {}
        for document in documents:
            self._by_key[document.key] = document
            for path in document.paths:
                self._by_path[path] = document
                self._by_file_name.setdefault(file_name(path), {})[document.key] = document

    def match(self, source: Source) -> DocumentMatches:
        """Return the documents that a text names: a path, a folder, a key, or a file name."""
        text = read_source(source)
        # The path of an uploaded file is no path on disk: it is compared as it is written.
        for path in (text, str(expand_path(text))):
            if (document := self._by_path.get(path)) is not None:
                return DocumentMatches(text, ((document, (path,)),))
        if (document := self._by_key.get(text)) is not None:
            return DocumentMatches(text, ((document, document.paths),))
        folder = str(expand_path(text)).rstrip(os.sep) + os.sep
        in_folder = []
        for document in self._documents:
            if paths := tuple(path for path in document.paths if path.startswith(folder)):
                in_folder.append((document, paths))
        if in_folder:
            return DocumentMatches(text, tuple(in_folder))
        named = self._by_file_name.get(clean_name(text), {})
        by_name = tuple((document, document.paths) for document in named.values())
        return DocumentMatches(text, by_name, ambiguous=len(by_name) > 1)


def _model(llm: str | LanguageModel | None) -> LanguageModel | None:
    if not isinstance(llm, str):
        return llm
    from clew.knowledge_base.registry import load_language_model

    return load_language_model(llm)


def encoder_setting(name: str) -> str:
    """Return the name of an encoder, or ``none``, as a base stores it. Raises UsageError or MissingExtra where there
    is no such encoder."""
    if name == NO_ENCODER:
        return name
    from clew.knowledge_base.registry import load_encoder
    from clew.models import absolute_name

    load_encoder(name)
    # A folder's path is stored absolute: the base may be opened from anywhere.
    return absolute_name(name)


class Encoding:
    """The encoder of a knowledge base and its vectors of passages: ``base.encoding``.

    With its attribute ``cluster`` set, vectors are made there.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.cluster: Cluster | None = None
        self._encoder: Encoder | None = None
        self._loaded = ""  # the name of the encoder that is loaded; another process may set another one

    @property
    def name(self) -> str | None:
        """The name of the encoder as it was set, or None."""
        name = self._store.get_setting(ENCODER_SETTING)
        return None if name in {None, NO_ENCODER} else name

    def encoder(self) -> Encoder | None:
        """Return the encoder, loaded, or None where the base has none."""
        name = self.name
        if not name:
            return None
        if self._loaded != name:
            from clew.knowledge_base.registry import load_encoder

            with _LOADING:
                if self._loaded != name:
                    self._encoder, self._loaded = load_encoder(name), name
        if self.cluster is not None and self._encoder is not None:
            from clew.knowledge_base.cluster import spread_encoder

            return spread_encoder(self.cluster, self._encoder, name)
        return self._encoder

    def require(self) -> Encoder:
        """Return the encoder. Raises UsageError where the base has none."""
        encoder = self.encoder()
        if encoder is None:
            raise UsageError("this knowledge base has no encoder", "Set one: clew encoder set onnx:FOLDER")
        return encoder

    def set(self, name: str | None) -> None:
        """Make ``name`` the encoder of the base, or none with None. Vectors of other encoders stay.

        Encodes nothing yet. Raises UsageError or MissingExtra where there is no such encoder.
        """
        self._store.set_setting(ENCODER_SETTING, encoder_setting(name or NO_ENCODER))

    def suggest(self) -> str:
        """Return in a sentence that another encoder finds more in this base, "" where none is known to: most of its
        text is not in English, and its encoder is the one that clew trained on English."""
        from clew.core.languages import ENGLISH, language_name

        sizes: Counter[str] = Counter()
        for document in self._store.documents():
            sizes[document.language or ENGLISH] += document.nodes
        if self.name != DEFAULT_ENCODER or 2 * sizes[ENGLISH] >= sizes.total():
            return ""
        del sizes[ENGLISH]
        return (
            f"most of this knowledge base is not in English but in {language_name(sizes.most_common(1)[0][0])}, "
            f"which {DEFAULT_ENCODER} does not know; clew encoder set clew:multilingual does "
            f"({format_install_command('multilingual')})"
        )

    def vector_counts(self) -> list[VectorCounts]:
        """Return for each encoder that the base has vectors of how many there are."""
        snapshot = self._store.snapshot()
        return [
            VectorCounts(name, count, snapshot.vectors(name).missing_count())
            for name, count in self._store.info().encoders.items()
        ]

    def count_missing(self, documents: Sources | None = None) -> int:
        """Return how many searchable passages, of some ``documents`` (keys) or of all, have no vector yet; these are
        found by their words alone."""
        import numpy as np

        encoder = self.encoder()
        if encoder is None:
            return 0
        snapshot = self._store.snapshot()
        vectors = snapshot.vectors(encoder.name, encoder.dimension)
        missing = vectors.missing_count()
        if documents is None or not missing:
            return missing
        rows = np.flatnonzero(
            snapshot.mask(Scope(documents=frozenset(list_sources(documents))), RETRIEVED_KINDS)
        )
        return int((~vectors.vectors(rows).any(axis=1)).sum())

    def check(self, repair: bool) -> list[Finding]:
        """Return what is wrong with the encoder or lacking of its vectors; ``repair`` makes those that need no other
        machine."""
        from clew.models import leaves_machine
        from clew.store.store import Finding

        name = self.name
        try:
            missing = self.count_missing()
            if not name or not missing:
                return []
            is_repaired = repair and not leaves_machine(name)
            if is_repaired:
                self.encode_missing()
        except ClewError as error:
            return [Finding("encoder", f"{name} makes no vectors: {error.problem}", False)]
        return [Finding("vectors", f"{missing:,} passages have none of {name}", is_repaired)]

    def encode_missing(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing vectors and return how many. When interrupted, the next call continues.

        Raises UsageError where the base has no encoder.
        """
        return self._store.encode(self.require(), progress)

    def estimate(self) -> tuple[int, float | None]:
        """Return how many vectors are missing, and about how many seconds they take.

        The time is measured on a few passages; it is None for an encoder that sends texts to another machine.
        """
        import numpy as np

        from clew.models import leaves_machine

        encoder, name = self.encoder(), self.name
        if encoder is None or name is None:
            return 0, 0.0
        snapshot = self._store.snapshot()
        missing = snapshot.vectors(encoder.name, encoder.dimension).missing_count()
        if not missing or leaves_machine(name):
            return missing, None if missing else 0.0
        rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED_KINDS))
        return missing, missing * self.seconds_per_row(
            rows, lambda sample: [node.text for node in snapshot.nodes(sample)]
        )

    def seconds_per_row(self, rows: Rows, read_texts: Callable[[Rows], Sequence[str]]) -> float:
        """Return how long the encoder takes for the texts of a row, once its model is loaded.

        It is measured on at most :data:`SAMPLE_SIZE` of ``rows``, evenly spread. Raises UsageError where the base has
        no encoder.
        """
        import numpy as np

        encoder = self.require()
        sample = rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLE_SIZE)).astype(np.int64)]
        texts = read_texts(sample)
        encoder.encode(["the first text also loads the model"])
        started = perf_counter()
        encoder.encode(texts)
        return (perf_counter() - started) / max(len(sample), 1)
