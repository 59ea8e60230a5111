"""One knowledge base, and what a person does with it."""

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
from clew.knowledge_base.encoding import ENCODER_SETTING
from clew.knowledge_base.graphs import WithGraphs
from clew.knowledge_base.originals import WithOriginals
from clew.knowledge_base.results import DocumentMatches, GraphSize

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, LanguageModel
    from clew.knowledge_base.ingest.estimate import Estimate
    from clew.knowledge_base.ingest.report import Progress, Report
    from clew.store.store import Finding, Store, StoreInfo

#: The graphs that need neither a model nor a service.
LOCAL_GRAPHS = ("keywords", "mentions", "structure")


def open(  # "clew.open" is what people look for
    path: str | Path | None = None, *, create: bool = False, passages: str | None = None
) -> KnowledgeBase:
    """Open the knowledge base in the folder ``path`` (default: ``CLEW_HOME``, else ``./.clew``).

    ``create`` makes one where there is none, with ``passages`` (``paragraph`` or ``sentence``) as its unit and the
    encoder of ``CLEW_ENCODER``, else the one that comes with clew. Raises NotFound where there is none, UsageError
    where the base has another unit.
    """
    from clew.store.store import Store

    fresh = not Store.exists(knowledge_base_path(path))
    store = Store.open(knowledge_base_path(path), create=create, passages=passages or "paragraph")
    if fresh:
        store.set_setting(ENCODER_SETTING, default_encoder())
    unit = store.passage_unit
    if passages not in {None, unit}:
        store.close()
        raise UsageError(
            f"the knowledge base at {store.path} has {unit}s as passages, not {passages}s",
            "Make another: --kb OTHER",
        )
    return KnowledgeBase(store)


class KnowledgeBase(WithGraphs, WithOriginals):
    """An open knowledge base. A context manager; several processes may have the same one open."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._encoder: Encoder | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the base."""
        self._close_originals()
        self.store.close()

    @property
    def path(self) -> Path:
        """The base's folder."""
        return self.store.path

    def add(
        self,
        paths: Sequence[str | Path],
        *,
        sync: bool = False,
        checksum: bool = False,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Add files and folders; see :func:`clew.knowledge_base.ingest.documents`. New passages are encoded if
        the base has an
        encoder."""
        from clew.knowledge_base import ingest

        report = ingest.add(
            self.store,
            paths,
            sync=sync,
            checksum=checksum,
            workers=workers,
            progress=progress or ingest.ignore_event,
            encoder=self.encoder,
        )
        self._leave_out_what_is_gone()
        return report

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
        """Return the documents that ``what`` names: a path, a folder, a key, or a file name."""
        documents = self.documents()
        path = expand_path(text)
        below = [
            (
                document,
                # An uploaded file's path is no path on disk, and written as it is.
                tuple(p for p in document.paths if p == text or Path(p) == path or path in Path(p).parents),
            )
            for document in documents
        ]
        placed = tuple((document, paths) for document, paths in below if paths)
        if placed:
            return DocumentMatches(text, placed)
        named = tuple(
            (document, document.paths)
            for document in documents
            if text == document.key or text in {Path(p).name for p in document.paths}
        )
        return DocumentMatches(text, named, ambiguous=len(named) > 1)

    def remove(self, *what: str) -> list[Document]:
        """Forget paths, folders, file names or keys; return the documents that have no path left.

        Raises NotFound where one matches nothing, UsageError where a file name is that of several documents.
        """
        paths: set[str] = set()
        for one in what:
            matches = self.match_documents(one)
            if not matches.documents:
                raise NotFound(f"nothing in this knowledge base is '{one}'", "See: clew list")
            if matches.ambiguous:
                raise UsageError(
                    f"{len(matches.documents)} documents are named '{one}'",
                    "Give a path or a key; see: clew list",
                )
            paths.update(matches.paths)
        gone = self.store.remove(sorted(paths))
        self._forget_uploads(paths)
        self._leave_out_what_is_gone()
        return gone

    def _leave_out_what_is_gone(self) -> None:
        """Make the graphs that were extracted from documents without those that are gone."""
        from clew.knowledge_base.extraction import drop_removed_documents

        drop_removed_documents(self)

    def search(
        self,
        question: str,
        *,
        k: int = 10,
        retriever: str = "default",
        documents: Iterable[str] | None = None,
    ) -> list[Hit]:
        """Return at most ``k`` hits, best first. ``documents`` (names, paths, folders, keys) restricts."""
        from clew.knowledge_base import registry as catalog

        found = catalog.build_retriever(retriever, self.store, encoder=self.encoder())
        return list(found.retrieve(self._question(question, documents), k))

    def ask(  # noqa: PLR0913 (a keyword for each thing that a person may say of a question)
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

        Without ``llm`` (a name such as ``openai:gpt-4o-mini``, or a model) the answer is extracted, not
        written. ``documents`` and ``graphs`` restrict where it is looked for. ``chain`` is the question as triples
        (:mod:`clew.triples.language`), for the methods ``chain`` and ``focus``; the question may then be
        empty. ``watch``
        receives each step as it happens; ``stop`` is asked between steps.
        """
        from clew.core.trail import TrailRecorder
        from clew.knowledge_base import registry as catalog

        model = catalog.load_language_model(llm) if isinstance(llm, str) else llm
        method = catalog.build_method(recipe, self.store, llm=model, encoder=self.encoder())
        asked = self._question(question or chain, documents, graphs)
        return method.answer(replace(asked, chain=chain), TrailRecorder(watch, stop))

    def why_not(
        self,
        name: str,
        triples: str,
        *,
        question: str = "",
        recipe: str = "focus",
        graphs: Iterable[str] | None = None,
    ) -> list[Exclusion]:
        """Return why what ``name`` may stand for is no answer to a question that is written as typed triples.

        ``triples`` are a person's, or those that a model wrote: the step ``triples`` of an answer's trail has them.
        Raises UsageError, NotFound where no graph has anything called so.
        """
        from clew.knowledge_base import registry as catalog

        asked = replace(self._question(question or triples, None, graphs), chain=triples)
        return catalog.explain_exclusions(self.store, asked, name, recipe=recipe, encoder=self.encoder())

    def recipe_error(self, recipe: str, llm: str | LanguageModel | None = None) -> ClewError | None:
        """Return why this base cannot be asked by a recipe with this model, or none (a model that is not set,
        passages of another unit); None where nothing speaks against it."""
        from clew.knowledge_base import registry as catalog

        model = catalog.load_language_model(llm) if isinstance(llm, str) else llm
        try:
            catalog.build_method(recipe, self.store, llm=model, encoder=self.encoder())
        except ClewError as error:
            return error
        return None

    def info(self, *, digest: bool = True) -> StoreInfo:
        """Return the sizes of the base, its generation and, unless that is not wanted, its digest."""
        return self.store.info(digest=digest)

    def doctor(self, *, repair: bool = True, checksums: bool = True) -> list[Finding]:
        """Check the base; rebuild derived data that is missing or damaged, and the extracted graphs that hold triples
        of documents that are gone (a removal that was killed half-way)."""
        from clew.knowledge_base.extraction import drop_removed_documents, measure_staleness
        from clew.store.store import Finding

        found = self.store.doctor(repair=repair, checksums=checksums)
        if left := self._left_uploads(repair):
            found.append(Finding("uploads", f"{left} kept files belong to no document", repair))
        late = {graph.name: measure_staleness(self, graph).gone for graph in self.graphs()}
        done = drop_removed_documents(self) if repair and any(late.values()) else []
        return found + [
            Finding(f"graph {name}", f"holds triples of {gone} documents that are gone", name in done)
            for name, gone in late.items()
            if gone
        ]

    def estimate(
        self, paths: Sequence[str | Path], *, sample: int = 3, workers: int | None = None
    ) -> Estimate:
        """Return what adding ``paths`` would bring; see :func:`clew.knowledge_base.ingest.estimate`."""
        from clew.knowledge_base import ingest

        return ingest.estimate(self.store, paths, sample=sample, workers=workers)

    def graph_sizes(self, names: Sequence[str]) -> list[GraphSize]:
        """Build graphs over the passages and return their sizes; ``all``: those that need no model or service."""
        from clew.graph.statistics import compute_statistics
        from clew.knowledge_base import registry as catalog

        wanted = [one for name in names for one in (LOCAL_GRAPHS if name == "all" else (name,))]
        sizes = []
        for name in wanted:
            started = perf_counter()
            graph = catalog.build_graph(name, self.store, encoder=self.encoder())
            found = compute_statistics(self.store.snapshot(), graph)
            sizes.append(
                GraphSize(
                    found.graph,
                    found.nodes,
                    found.edges,
                    found.density,
                    found.mean_degree,
                    found.isolated,
                    perf_counter() - started,
                )
            )
        return sizes

    def count_unannotated(self, service: str = "wat", language: str = "en", url: str = "") -> tuple[int, str]:
        """Return how many passages :meth:`annotate` would send, and where to."""
        from clew.graph.annotation import AnnotationCache, AnnotationService, count_unannotated

        asked = AnnotationService(None, service, language, url)
        return count_unannotated(self.store.snapshot(), asked.maker, AnnotationCache.default()), asked.url

    def annotate(
        self,
        service: str = "wat",
        language: str = "en",
        url: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Send every passage that was not sent yet to TAGME or WAT, for the graph ``entities``; return how many.

        Each answer is kept at once: stopped, it continues next time. Raises UsageError, ModelError.
        """
        from clew.core.config import annotation_token
        from clew.graph.annotation import AnnotationCache, AnnotationService, annotate_passages

        asked = AnnotationService(annotation_token(), service, language, url)
        return annotate_passages(self.store.snapshot(), asked, AnnotationCache.default(), progress)

    def _question(
        self, text: str, documents: Iterable[str] | None, graphs: Iterable[str] | None = None
    ) -> Question:
        if not text.strip():
            raise UsageError("the question is empty", 'For example: clew ask "What was revenue in 2023?"')
        keys = (
            None
            if documents is None
            else frozenset(key for one in documents for key in self.document_keys(one))
        )
        names = None if graphs is None else frozenset(self.graph(one).name for one in graphs)
        return Question(text, Scope(documents=keys, graphs=names))

    def document_keys(self, text: str) -> list[str]:
        """Return the keys of the documents that ``one`` names: a path, folder, key or file name. Raises NotFound."""
        found = self.match_documents(text).documents
        # document() knows what else may name a document, and what to say about a name that is not there.
        return [document.key for document, _ in found] or [self.store.document(text).key]


@contextmanager
def open_or_empty(path: str | Path | None = None) -> Iterator[KnowledgeBase]:
    """Open the knowledge base at ``path``; where there is none, an empty one that is gone afterwards.

    For what only looks: nothing is made in the place of a base that does not exist.
    """
    try:
        base = open(path)
    except NotFound:
        with TemporaryDirectory(prefix="clew-") as folder, open(folder, create=True) as empty:
            yield empty
        return
    with base:
        yield base
