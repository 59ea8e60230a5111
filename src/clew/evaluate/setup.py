"""Sets up an evaluation: loads the questions, builds their corpora as stores, and builds methods over them."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clew.core.component import parse_recipe
from clew.core.config import knowledge_base_path
from clew.core.document_filter import select_documents
from clew.core.errors import UsageError
from clew.core.types import RETRIEVED_KINDS, Hit, Question, Scope
from clew.evaluate.corpora import (
    GoldEvidence,
    add_articles,
    add_negatives,
    build_documents,
    document_location,
    draw_document_set,
    group_by_document,
    pool_paragraphs,
    read_articles,
)
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.datasets.graphs import gold_triples, require_gold_triples
from clew.knowledge_base import registry
from clew.knowledge_base.ingest.graphs import GraphFiles, add_graph, default_graph_name
from clew.methods.d3.method import make_summaries
from clew.parse.graphs.stark import is_stark
from clew.store.sparql.mount_options import MountOptions
from clew.store.sparql.mounted_graph import is_endpoint
from clew.store.store import Store

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, LanguageModel, Method
    from clew.evaluate.examples import Example, Paragraph
    from clew.evaluate.runner import MethodFor, QuestionFor
    from clew.parse.documents.builder import PassageUnit

#: The recipe that reads the gold evidence.
GOLDEN = "golden"
#: Sentences of a question's own corpus, negatives included: about the size in the KGP paper (Table 2).
CORPUS_SENTENCES = 700
#: Corpora that an evaluation builds; any other name is the folder of a knowledge base. ``question``: each question's
#: paragraphs with negatives. ``pooled``: the paragraphs of all questions. ``own``: pooled, but each question is asked
#: of its own documents only. ``none``: empty, for methods that answer from memory or from the web.
BUILT_CORPORA = ("question", "pooled", "own", "none")
POOLED_CORPORA = ("pooled", "own")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """The questions of a data set, and the corpus that they are asked of.

    ``data`` is ``NAME=PATH``; ``limit`` is the number of questions sampled from it with ``seed``, None for all.
    ``corpus`` is one of :data:`BUILT_CORPORA`, ``kb`` or the folder of a knowledge base. ``pool`` names further data
    sets, ``NAME=PATH``, whose paragraphs a pooled corpus has too. With ``triples`` each question comes with its gold
    triples (:func:`clew.evaluate.datasets.graphs.gold_triples`). ``where`` is a condition on the documents of a
    knowledge base (:mod:`clew.core.document_filter`).
    """

    name: str
    examples: Sequence[Example]
    corpus: str
    data: str
    limit: int | None
    seed: int
    pool: tuple[str, ...] = ()
    triples: bool = False
    where: str = ""

    @property
    def title(self) -> str:
        """Name and corpus, such as ``hotpotqa (pooled)``."""
        where = f" where {self.where}" if self.where else ""
        return f"{self.name} ({Path(self.corpus).name}{where}{', gold triples' if self.triples else ''})"


def load_questions(
    data: str,
    corpus: str,
    limit: int | None,
    seed: int,
    pool: Sequence[str] = (),
    triples: bool = False,
    where: str = "",
) -> QuestionSet:
    """Return all questions of ``NAME=PATH``, or ``limit`` of them sampled with the seed.

    Raises UsageError for a corpus that the data set cannot have, and, with ``triples``, for missing gold triples.
    """
    if pool and corpus not in POOLED_CORPORA:
        raise UsageError(f"the corpus '{corpus}' has no pool", "Pool paragraphs: --corpus pooled")
    if where and corpus in BUILT_CORPORA:
        raise UsageError(
            f"the corpus '{corpus}' has no fields", "Name a knowledge base: --corpus kb, or FOLDER"
        )
    dataset = parse_dataset(data)
    examples = list(sample_examples(dataset.examples(), limit, seed))
    if not examples:
        raise UsageError(f"no questions in {dataset.path}")
    if corpus in BUILT_CORPORA and corpus != "none" and not any(example.corpus for example in examples):
        raise UsageError(
            f"the questions of {dataset.name} bring no paragraphs",
            "Name a knowledge base: --corpus FOLDER; or --corpus none for methods without a corpus",
        )
    if triples:
        require_gold_triples(examples)
    return QuestionSet(dataset.name, examples, corpus, data, limit, seed, tuple(pool), triples, where)


def sample_examples(examples: Iterator[Example], limit: int | None, seed: int) -> Iterator[Example]:
    """Yield all examples, or a random sample of ``limit`` of them (reservoir sampling), in their order."""
    if limit is None:
        yield from examples
        return
    rng = random.Random(seed)
    sample = list(enumerate(itertools.islice(examples, limit)))
    for number, example in enumerate(examples, limit):
        place = rng.randrange(number + 1)
        if place < limit:
            sample[place] = (number, example)
    yield from (example for _, example in sorted(sample, key=lambda item: item[0]))


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """The settings that all recipes of a run share.

    ``passages`` is the unit of passages, ``sentences`` the size of a question's own corpus, ``seed`` that of its
    negatives. ``llm_name`` and ``encoder_name`` are the names by which the models were requested. ``graphs`` are
    added to a built corpus: graph files, and places to mount (URLs of SPARQL endpoints, folders of Oxigraph stores).
    With ``documents`` a question's own corpus is its gold documents and random ones to that number; with ``articles``
    (JSON lines with title and text) documents are whole articles. ``beside`` is a second encoder, whose vectors a
    graph can be made of (``knn(vectors=NAME)``); ``beside_name`` is how it was requested.
    """

    llm: LanguageModel | None = None
    encoder: Encoder | None = None
    passages: PassageUnit = "paragraph"
    sentences: int = CORPUS_SENTENCES
    seed: int = 0
    llm_name: str = ""
    encoder_name: str = ""
    graphs: tuple[str, ...] = ()
    documents: int | None = None
    articles: Path | None = None
    beside: Encoder | None = None
    beside_name: str = ""


@dataclass(frozen=True, slots=True)
class OpenCorpus:
    """An open corpus: ``create_method_for`` returns the :data:`MethodFor` of a recipe. ``store`` is the one of all
    questions, None where each has its own; ``digest`` is that of the store, "" for None."""

    create_method_for: Callable[[str], MethodFor]
    store: Store | None
    digest: str


@contextmanager
def open_methods(
    questions: QuestionSet, settings: EvaluationSettings, progress: Callable[[int, int], None] | None = None
) -> Iterator[OpenCorpus]:
    """Give the methods over the corpus of the questions.

    The corpus ``question`` has a store per question, built when the question comes up. Any
    other corpus has one store, built once. Summaries that a recipe needs are made first in a store that is built
    here; making them in an existing base is left to its owner.
    """
    with open_stores(questions, settings, progress) as store_for:
        shared_store = None if questions.corpus == "question" else store_for(questions.examples[0])

        def create_method_for(recipe: str) -> MethodFor:
            if shared_store is None or parse_recipe(recipe).name == GOLDEN:
                return lambda example: _build_method(recipe, store_for(example), settings, example)
            if questions.corpus in BUILT_CORPORA:
                resources = registry.open_resources(shared_store, settings.llm, settings.encoder)
                make_summaries(parse_recipe(recipe), resources)
            method = _build_method(recipe, shared_store, settings)
            return lambda example: method

        yield OpenCorpus(create_method_for, shared_store, shared_store.digest() if shared_store else "")


@contextmanager
def open_stores(
    questions: QuestionSet, settings: EvaluationSettings, progress: Callable[[int, int], None] | None = None
) -> Iterator[Callable[[Example], Store]]:
    """Give a function from an example to the store of its corpus. Raises UsageError."""
    if settings.graphs and questions.corpus not in (*POOLED_CORPORA, "none"):
        raise UsageError(
            f"graphs are added to a corpus of all questions, not to '{questions.corpus}'",
            "Name it --corpus pooled, or add them to a base of your own: clew graph add FILE --kb FOLDER",
        )
    if settings.documents is not None and questions.corpus != "question":
        raise UsageError(
            f"the corpus '{questions.corpus}' has the documents of all questions",
            "A number of documents needs --corpus question",
        )
    if settings.articles is not None and settings.documents is None:
        raise UsageError("whole articles need a number of documents", "Name one: --documents 12")
    if questions.corpus == "question":
        others = pool_paragraphs(questions.examples)
        if settings.articles is not None:
            others = add_articles(others, read_articles(settings.articles))
        with _QuestionStores(settings, others) as own_stores:
            yield own_stores.store_for
        return
    with TemporaryDirectory(prefix="clew-eval-") as folder:
        is_built = questions.corpus in BUILT_CORPORA
        path = Path(folder) / "base" if is_built else base_folder(questions.corpus)
        with Store.open(path, create=is_built, passages=settings.passages) as store:
            if is_built:
                fill_store(store, _corpus_paragraphs(questions), settings, progress)
                _add_graphs(store, settings.graphs)
            else:
                _encode(store, settings, progress)
            yield lambda example: store


def _corpus_paragraphs(questions: QuestionSet) -> Sequence[Paragraph]:
    """Return the paragraphs of the corpus that all questions share."""
    if questions.corpus == "none":
        return ()
    return pool_paragraphs(
        itertools.chain(
            questions.examples, *(parse_dataset(dataset).examples() for dataset in questions.pool)
        )
    )


def _add_graphs(store: Store, places: Sequence[str]) -> None:
    """Add graph files, and mount endpoints and Oxigraph stores; each graph is named after its file or host."""
    names = [
        (urlsplit(place).hostname or place) if is_endpoint(place) else default_graph_name(Path(place))
        for place in places
    ]
    for name, place in zip(names, places, strict=True):
        if names.count(name) > 1:
            raise UsageError(f"two graphs are called '{name}'", "A graph is called by its file: rename one")
        if is_endpoint(place) or (Path(place).is_dir() and not is_stark(Path(place))):
            store.graphs.mount(name, place, MountOptions())
        else:
            add_graph(store.graphs, name, GraphFiles((Path(place),)))


@contextmanager
def graph_base(place: Path) -> Iterator[Store]:
    """Yield the knowledge base at ``place``, else a temporary one with the graph that is there. Raises UsageError,
    UnreadableFile."""
    if Store.exists(place):
        with Store.open(place) as base:
            yield base
        return
    if not place.exists():
        raise UsageError(f"no graph at {place}", "Name a file or folder that clew graph add reads")
    with TemporaryDirectory(prefix="clew-graph-") as folder, Store.open(Path(folder), create=True) as base:
        add_graph(base.graphs, default_graph_name(place), GraphFiles((place,)))
        yield base


def build_question_for(questions: QuestionSet, settings: EvaluationSettings) -> QuestionFor:
    """Return the function from an example to its question, with its scope and, if requested, its gold triples."""
    scope_for = _scope_builder(questions, settings)

    def build_question(example: Example) -> Question:
        triples = gold_triples(example) if questions.triples else ""
        return Question(example.question, scope_for(example), triples, excludes_named=bool(triples))

    return build_question


def _scope_builder(questions: QuestionSet, settings: EvaluationSettings) -> Callable[[Example], Scope]:
    """Return the function from an example to its scope: its own documents for the corpus ``own``, those that meet
    the condition of the questions, else everything."""
    if questions.where:
        with Store.open(base_folder(questions.corpus)) as store:
            scope = Scope(documents=select_documents(store.documents(), questions.where))
        return lambda example: scope
    if questions.corpus != "own":
        return lambda example: Scope()

    groups = group_by_document(pool_paragraphs(questions.examples))
    built = build_documents((paragraph for group in groups for paragraph in group), settings.passages)
    document_key = {
        (paragraph.title, paragraph.text, paragraph.section): document.key
        for group, document in zip(groups, built, strict=True)
        for paragraph in group
    }

    def own_scope(example: Example) -> Scope:
        return Scope(
            documents=frozenset(
                document_key[paragraph.title, paragraph.text, paragraph.section]
                for paragraph in example.corpus
            )
        )

    return own_scope


def _build_method(
    recipe: str, store: Store, settings: EvaluationSettings, example: Example | None = None
) -> Method:

    if parse_recipe(recipe).name != GOLDEN or example is None:
        return registry.build_method(recipe, store, llm=settings.llm, encoder=settings.encoder)
    resources = registry.open_resources(store, settings.llm, settings.encoder)
    return registry.build_golden(recipe, resources, gold_hits(store, example, settings.passages))


def gold_hits(store: Store, example: Example, unit: PassageUnit) -> list[Hit]:
    """Return the passages and table rows of a store that match gold evidence, in the order of its pieces."""
    gold = GoldEvidence(example)
    if example.corpus:
        keys = [document.key for document in build_documents(example.corpus, unit)]
    else:
        keys = [document.key for document in store.documents()]
    nodes = [node for key in keys if store.has_document(key) for node in store.document_nodes(key)]
    matched = [(node, gold.matching_pieces(node)) for node in nodes if node.kind in RETRIEVED_KINDS]
    ranked = [(min(pieces), node) for node, pieces in matched if pieces]
    return [
        Hit(node, 1.0, (node.id,)) for _, node in sorted(ranked, key=lambda item: (item[0], item[1].position))
    ]


def base_folder(corpus: str) -> Path:
    """Return the folder of a knowledge base; ``kb`` is the default one (``CLEW_HOME``, else ``./.clew``)."""
    if corpus != "kb":
        return Path(corpus).expanduser()
    place = knowledge_base_path(None)
    if isinstance(place, str):
        raise UsageError(f"{place} is no folder", f"Copy it to one: clew copy {place} FOLDER")
    return place


def fill_store(
    store: Store,
    paragraphs: Sequence[Paragraph],
    settings: EvaluationSettings,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Add paragraphs to a store, index them, and encode them if there is an encoder."""
    count = len(group_by_document(paragraphs))
    for number, document in enumerate(build_documents(paragraphs, settings.passages), 1):
        store.put_document(document, document_location(document))
        if progress:
            progress(number, count)
    store.catch_up()
    _encode(store, settings, progress)


def _encode(
    store: Store, settings: EvaluationSettings, progress: Callable[[int, int], None] | None = None
) -> None:
    for encoder in (settings.encoder, settings.beside):
        if encoder is not None:
            store.encode(encoder, progress)


class _QuestionStores:
    """The stores of the questions' own corpora: built when a question first comes up, one open per thread."""

    def __init__(self, settings: EvaluationSettings, others: Sequence[Paragraph]) -> None:
        self._settings, self._negatives = settings, others
        self._folder = TemporaryDirectory(prefix="clew-eval-")
        self._local = threading.local()
        self._open_stores: list[Store] = []

    def __enter__(self) -> _QuestionStores:
        return self

    def __exit__(self, *_: object) -> None:
        for store in self._open_stores:
            store.close()
        self._folder.cleanup()

    def store_for(self, example: Example) -> Store:
        """Return the store of the example's own paragraphs and their negatives."""
        path = Path(self._folder.name) / blake2b(example.id.encode(), digest_size=12).hexdigest()
        current: Store | None = getattr(self._local, "base", None)
        if current is not None:
            if current.path == path:
                return current
            self._open_stores.remove(current)
            current.close()
        is_new = not path.exists()
        store = Store.open(path, create=is_new, passages=self._settings.passages)
        self._local.base = store
        self._open_stores.append(store)
        if is_new:
            settings = self._settings
            if settings.documents is None:
                corpus = add_negatives(example, self._negatives, settings.sentences, settings.seed)
            else:
                corpus = draw_document_set(example, self._negatives, settings.documents, settings.seed)
            fill_store(store, corpus, settings)
        return store
