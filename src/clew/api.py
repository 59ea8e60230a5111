"""The public Python API: one knowledge base, and what a person does with it.

>>> import clew
>>> with clew.open("notes.clew", create=True) as base:        # doctest: +SKIP
...     base.add(["notes/"])
...     answer = base.ask("Who leads the laboratory that built the probe?")
...     print(answer.text, [hit.node.document_name for hit in answer.evidence])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Self

from clew.config import base_path, cache_path, default_encoder
from clew.errors import NotFound, UsageError
from clew.types import RETRIEVED, Answer, Document, Hit, Node, Question, Scope, Step, Usage

if TYPE_CHECKING:
    from clew.ingest.estimate import Estimate
    from clew.ingest.report import Progress, Report
    from clew.kb import Finding, Info, KnowledgeBase
    from clew.protocols import Encoder, LanguageModel

#: The graphs that need neither a model nor a service.
ALL_GRAPHS = ("keywords", "mentions", "structure")
#: The setting of a base that names its encoder.
ENCODER = "encoder"
#: What it says in a base that has none.
NONE = "none"
#: Passages that are encoded to foresee how long all will take.
SAMPLED = 24


def open(  # "clew.open" is what people look for
    path: str | Path | None = None, *, create: bool = False, passages: str | None = None
) -> Base:
    """Open the knowledge base in the folder ``path`` (default: ``CLEW_HOME``, else ``./.clew``).

    ``create`` makes one where there is none, with ``passages`` (``paragraph`` or ``sentence``) as its unit and the
    encoder of ``CLEW_ENCODER``, else the one that comes with clew. Raises NotFound where there is none, UsageError
    where the base has another unit.
    """
    from clew.kb import KnowledgeBase

    fresh = not KnowledgeBase.exists(base_path(path))
    store = KnowledgeBase.open(base_path(path), create=create, passages=passages or "paragraph")
    if fresh:
        store.set_setting(ENCODER, default_encoder())
    unit = store.passages
    if passages not in {None, unit}:
        store.close()
        raise UsageError(
            f"the knowledge base at {store.path} has {unit}s as passages, not {passages}s",
            "Make another: --kb OTHER",
        )
    return Base(store)


@dataclass(frozen=True, slots=True)
class GraphSize:
    """How large a graph over the passages is (:class:`clew.graph.statistics.Statistics`), and how long that took."""

    name: str
    nodes: int
    edges: int
    density: float
    mean_degree: float
    isolated: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Held:
    """The vectors of one encoder in a base."""

    name: str
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache of model replies: where it is, and how large."""

    path: Path
    bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a language model is asked in one role costs, its replies as long as they may get."""

    role: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Matches:
    """Documents that a word of a person names, each with the paths meant: all of a document's for a key or
    a file name, those there for a path or folder. ``ambiguous``: several documents have that file name."""

    what: str
    found: tuple[tuple[Document, tuple[str, ...]], ...]
    ambiguous: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """All the paths meant."""
        return tuple(path for _, paths in self.found for path in paths)


class Base:
    """An open knowledge base. A context manager; several processes may have the same one open."""

    def __init__(self, store: KnowledgeBase) -> None:
        self.store = store
        self._encoder: Encoder | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the base."""
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
        """Add files and folders; see :func:`clew.ingest.add`. New passages are encoded if the base has an
        encoder."""
        from clew import ingest

        return ingest.add(
            self.store,
            paths,
            sync=sync,
            checksum=checksum,
            workers=workers,
            progress=progress or ingest.silent,
            encoder=self.encoder,
        )

    def documents(self) -> list[Document]:
        """Return every document, sorted by name."""
        return sorted(self.store.documents(), key=lambda document: (document.name, document.key))

    def tree(self, document: str) -> list[Node]:
        """Return a document's nodes in reading order, itself first. Raises NotFound, UsageError."""
        return self.store.tree(self.store.document(document).key)

    def node(self, id: str) -> Node:
        """Return a node. Raises NotFound."""
        return self.store.node(id)

    def matching(self, what: str) -> Matches:
        """Return the documents that ``what`` names: a path, a folder, a key, or a file name."""
        documents = self.documents()
        path = Path(what).expanduser().absolute()
        below = [
            (document, tuple(p for p in document.paths if Path(p) == path or path in Path(p).parents))
            for document in documents
        ]
        placed = tuple((document, paths) for document, paths in below if paths)
        if placed:
            return Matches(what, placed)
        named = tuple(
            (document, document.paths)
            for document in documents
            if what == document.key or what in {Path(p).name for p in document.paths}
        )
        return Matches(what, named, ambiguous=len(named) > 1)

    def remove(self, *what: str) -> list[Document]:
        """Forget paths, folders, file names or keys; return the documents that have no path left.

        Raises NotFound where one matches nothing, UsageError where a file name is that of several documents.
        """
        paths: set[str] = set()
        for one in what:
            matches = self.matching(one)
            if not matches.found:
                raise NotFound(f"nothing in this knowledge base is '{one}'", "See: clew list")
            if matches.ambiguous:
                raise UsageError(
                    f"{len(matches.found)} documents are named '{one}'",
                    "Give a path or a key; see: clew list",
                )
            paths.update(matches.paths)
        return self.store.remove(sorted(paths))

    def search(
        self,
        question: str,
        *,
        k: int = 10,
        retriever: str = "default",
        documents: Iterable[str] | None = None,
    ) -> list[Hit]:
        """Return at most ``k`` hits, best first. ``documents`` (names, paths, folders, keys) restricts."""
        from clew import catalog

        found = catalog.retriever(retriever, self.store, encoder=self.encoder())
        return list(found.retrieve(self._question(question, documents), k))

    def ask(
        self,
        question: str,
        *,
        llm: str | LanguageModel | None = None,
        recipe: str = "default",
        documents: Iterable[str] | None = None,
        watch: Callable[[Step], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Answer:
        """Answer a question from the documents, or abstain.

        Without ``llm`` (a name such as ``openai:gpt-4o-mini``, or a model) the answer is extracted, not
        written. ``watch`` receives each step as it happens; ``stop`` is asked between steps.
        """
        from clew import catalog
        from clew.trail import Recorder

        model = catalog.language_model(llm) if isinstance(llm, str) else llm
        method = catalog.method(recipe, self.store, llm=model, encoder=self.encoder())
        return method.answer(self._question(question, documents), Recorder(watch, stop))

    def info(self) -> Info:
        """Return the sizes of the base, its generation and its digest."""
        return self.store.info()

    def doctor(self, *, repair: bool = True, checksums: bool = True) -> list[Finding]:
        """Check the base; rebuild derived data that is missing or damaged."""
        return self.store.doctor(repair=repair, checksums=checksums)

    def estimate(
        self, paths: Sequence[str | Path], *, sample: int = 3, workers: int | None = None
    ) -> Estimate:
        """Return what adding ``paths`` would bring; see :func:`clew.ingest.estimate`."""
        from clew import ingest

        return ingest.estimate(self.store, paths, sample=sample, workers=workers)

    def graphs(self, names: Sequence[str]) -> list[GraphSize]:
        """Build graphs and return their sizes; ``all`` stands for those that need no model or service."""
        from clew import catalog
        from clew.graph.statistics import statistics

        wanted = [one for name in names for one in (ALL_GRAPHS if name == "all" else (name,))]
        sizes = []
        for name in wanted:
            started = perf_counter()
            graph = catalog.graph(name, self.store, encoder=self.encoder())
            found = statistics(self.store.snapshot(), graph)
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

    def vectors(self) -> list[Held]:
        """Return the encoders that this base has vectors of."""
        snapshot = self.store.snapshot()
        return [
            Held(name, count, snapshot.vectors(name).missing())
            for name, count in self.store.info().encoders.items()
        ]

    def set_encoder(self, name: str | None) -> None:
        """Make ``name`` the encoder of this base (None: have none). The vectors of others stay.

        Raises UsageError or MissingExtra where there is no such encoder; encodes nothing yet.
        """
        from clew import catalog
        from clew.models import anchored

        self._encoder = catalog.encoder(name) if name else None
        # A folder's path is kept absolute: the base may be opened from anywhere.
        self.store.set_setting(ENCODER, anchored(name) if name else NONE)

    def encoder_name(self) -> str | None:
        """Return the name of the base's encoder as it was set, or None."""
        name = self.store.setting(ENCODER)
        return None if name in {None, NONE} else name

    def encoder(self) -> Encoder | None:
        """Return the base's encoder, loaded, or None."""
        name = self.encoder_name()
        if name and self._encoder is None:
            from clew import catalog

            self._encoder = catalog.encoder(name)
        return self._encoder

    def encode(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the missing vectors of the base's encoder; return how many. Stopped, it continues next time.

        Raises UsageError where the base has no encoder.
        """
        encoder = self.encoder()
        if encoder is None:
            raise UsageError("this knowledge base has no encoder", "Set one: clew encoder set onnx:FOLDER")
        return self.store.encode(encoder, progress)

    def encoding_ahead(self) -> tuple[int, float | None]:
        """Return how many vectors of the base's encoder are missing, and about how many seconds they take.

        The time is that of some passages, encoded now; None for an encoder that sends texts elsewhere.
        """
        import numpy as np

        from clew.models import leaves_machine

        encoder, name = self.encoder(), self.encoder_name()
        if encoder is None or name is None:
            return 0, 0.0
        snapshot = self.store.snapshot()
        missing = snapshot.vectors(encoder.name).missing() + snapshot.pending
        if not missing or leaves_machine(name):
            return missing, None if missing else 0.0
        rows = np.flatnonzero(snapshot.mask(Scope(), RETRIEVED))
        some = snapshot.nodes(rows[np.linspace(0, len(rows) - 1, min(len(rows), SAMPLED)).astype(np.int64)])
        encoder.encode(["the first text also loads the model"])
        started = perf_counter()
        encoder.encode([node.text for node in some])
        return missing, missing * (perf_counter() - started) / max(len(some), 1)

    def not_annotated(self, service: str = "wat", language: str = "en", url: str = "") -> tuple[int, str]:
        """Return how many passages :meth:`annotate` would send, and where to."""
        from clew.graph.annotation import Annotations, Service, waiting

        asked = Service(None, service, language, url)
        return waiting(self.store.snapshot(), asked.maker, Annotations.usual()), asked.url

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
        from clew.config import annotation_token
        from clew.graph.annotation import Annotations, Service, annotate

        asked = Service(annotation_token(), service, language, url)
        return annotate(self.store.snapshot(), asked, Annotations.usual(), progress)

    def _question(self, text: str, documents: Iterable[str] | None) -> Question:
        if not text.strip():
            raise UsageError("the question is empty", 'For example: clew ask "What was revenue in 2023?"')
        if documents is None:
            return Question(text)
        keys = frozenset(key for one in documents for key in self._keys(one))
        return Question(text, Scope(documents=keys))

    def _keys(self, one: str) -> list[str]:
        found = self.matching(one).found
        # document() knows what else may name a document, and what to say about a name that is not there.
        return [document.key for document, _ in found] or [self.store.document(one).key]


def encoder_kinds() -> dict[str, str]:
    """Return the forms of encoders' names, with what they stand for."""
    from clew.models.names import ENCODERS

    said = {
        "clew": "the multi-hop encoder that comes with clew; runs here, without torch or download",
        "onnx": "a folder that clew encoder export made; runs here, without torch",
        "st": "a sentence-transformers model (extra: local)",
        "openai": "OpenAI's embeddings",
        "ollama": "a model of Ollama on this machine",
        "http": "any OpenAI-compatible endpoint",
    }
    return {ENCODERS[kind]: summary for kind, summary in said.items()}


def model_cache() -> Cache:
    """Return where the replies of language models are kept, and how many bytes that is."""
    from clew.models.cached import FILE

    path = cache_path() / FILE
    files = [one for one in path.parent.glob(f"{path.name}*") if one.is_file()]
    return Cache(path, sum(one.stat().st_size for one in files))


def clear_model_cache() -> None:
    """Delete the cache of model replies."""
    path = model_cache().path
    for one in path.parent.glob(f"{path.name}*"):
        one.unlink(missing_ok=True)


def estimate_question(
    base: Base,
    question: str,
    llm: str | None,
    recipe: str = "default",
    documents: Iterable[str] | None = None,
) -> list[Cost]:
    """Return what asking ``question`` costs for each role that the model of ``llm`` plays; nothing without one.

    The recipe is run over the base with a model that only counts (:mod:`clew.models.rehearsal`): prompts are
    the real ones, replies count as long as they may get. A reply that has to be asked for again is not
    foreseen.
    """
    if llm is None:
        return []
    from clew.models.rehearsal import Rehearsal

    rehearsal = Rehearsal(llm)
    base.ask(question, llm=rehearsal, recipe=recipe, documents=documents)
    return [Cost(role, usage) for role, usage in rehearsal.asked.items()]


@contextmanager
def open_or_empty(path: str | Path | None = None) -> Iterator[Base]:
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
