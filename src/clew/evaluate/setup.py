"""Builds what an evaluation runs: data sets, corpora as knowledge bases, and methods over them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from clew.core.config import knowledge_base_path
from clew.core.errors import UsageError
from clew.core.recipe import parse_recipe
from clew.core.types import RETRIEVED_KINDS, Hit, Question, Scope
from clew.evaluate.corpora import (
    GoldEvidence,
    add_negatives,
    build_documents,
    document_location,
    group_by_document,
    pool_paragraphs,
)
from clew.evaluate.datasets import parse_dataset
from clew.evaluate.datasets.graphs import gold_triples, require_gold_triples

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, LanguageModel, Method
    from clew.evaluate.examples import Example, Paragraph
    from clew.evaluate.runner import MethodFor, QuestionFor
    from clew.parse.documents.builder import PassageUnit
    from clew.store.store import Store

#: The recipe that needs to know the gold evidence.
GOLDEN = "golden"
#: Sentences of a question's own corpus, negatives included: about what the paper's collections have (Table 2).
CORPUS_SENTENCES = 700
#: Corpora that an evaluation makes: of what the questions bring, or ``none``, for methods that answer from memory or
#: from the web; all others are knowledge bases. ``own`` is pooled, and each question is asked of its own documents.
BUILT_CORPORA = ("question", "pooled", "own", "none")
POOLED_CORPORA = ("pooled", "own")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A data set as it is asked: its name, the questions, and where their corpus comes from.

    ``corpus`` is ``question``, ``pooled``, ``own``, ``none``, ``kb`` or the folder of a knowledge base. ``data`` is
    ``NAME=PATH`` and ``limit`` how many questions were drawn from it with ``seed`` (None: all). ``pool`` names data
    sets, ``NAME=PATH``, of which a pooled corpus has all paragraphs as well, asked or not. ``triples``: each question
    comes with the triples that its data set spells out (:func:`clew.evaluate.datasets.graphs.gold_triples`), as
    :attr:`clew.core.types.Question.chain`.
    """

    name: str
    examples: Sequence[Example]
    corpus: str
    data: str
    limit: int | None
    seed: int
    pool: tuple[str, ...] = ()
    triples: bool = False

    @property
    def title(self) -> str:
        """Name and corpus, such as ``hotpotqa (pooled)``."""
        return f"{self.name} ({Path(self.corpus).name}{', gold triples' if self.triples else ''})"


def load_questions(
    data: str, corpus: str, limit: int | None, seed: int, pool: Sequence[str] = (), triples: bool = False
) -> QuestionSet:
    """Return the questions of ``NAME=PATH``: all, or ``limit`` drawn with the seed; with ``triples``, each with its
    gold triples. Raises UsageError."""
    if pool and corpus not in POOLED_CORPORA:
        raise UsageError(
            f"no pool is made where the corpus is '{corpus}'", "Pool paragraphs: --corpus pooled"
        )
    file = parse_dataset(data)
    examples = list(sample_examples(file.examples(), limit, seed))
    if not examples:
        raise UsageError(f"no questions in {file.path}")
    if corpus in BUILT_CORPORA and corpus != "none" and not any(example.corpus for example in examples):
        raise UsageError(
            f"the questions of {file.name} bring no paragraphs",
            "Name a knowledge base: --corpus FOLDER; or --corpus none for methods that need none",
        )
    if triples:
        require_gold_triples(examples)
    return QuestionSet(file.name, examples, corpus, data, limit, seed, tuple(pool), triples)


def sample_examples(examples: Iterator[Example], limit: int | None, seed: int) -> Iterator[Example]:
    """Yield all examples, or ``limit`` of them drawn at random (reservoir sampling), in their order."""
    if limit is None:
        yield from examples
        return
    import random

    rng = random.Random(seed)
    kept = list(enumerate(itertools.islice(examples, limit)))
    for number, example in enumerate(examples, limit):
        place = rng.randrange(number + 1)
        if place < limit:
            kept[place] = (number, example)
    yield from (example for _, example in sorted(kept, key=lambda one: one[0]))


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """What all recipes of a run share: models, the unit of passages, and the size of a question's corpus.

    ``llm_name`` is what names the model, or one per role; a rehearsal needs no more. ``encoder_name`` is what the
    encoder was asked for by. ``graphs`` are files, each a graph beside the corpus that is made, or places of graphs
    that are mounted there: URLs of SPARQL endpoints, folders of Oxigraph stores.
    """

    llm: LanguageModel | None = None
    encoder: Encoder | None = None
    passages: PassageUnit = "paragraph"
    sentences: int = CORPUS_SENTENCES
    seed: int = 0
    llm_name: str = ""
    encoder_name: str = ""
    graphs: tuple[str, ...] = ()


@contextmanager
def open_methods(
    data: QuestionSet, bench: EvaluationSettings, progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[Callable[[str], MethodFor], str]]:
    """Give what makes of a recipe the method for each question, and the digest of the base (or ``""``).

    A question's own corpus is made into a base when the question comes up and is gone after it; the pooled
    one is made once, and the summaries that a recipe shows of its sections are made with it.
    """
    from clew.core.component import BuildContext as Parts
    from clew.knowledge_base.registry.retrievers import make_summaries

    with open_bases(data, bench, progress) as base_of_example:
        shared = None if data.corpus == "question" else base_of_example(data.examples[0])

        def of(recipe: str) -> MethodFor:
            if shared is None or parse_recipe(recipe).name == GOLDEN:
                return lambda example: _method(recipe, base_of_example(example), bench, example)
            if data.corpus in BUILT_CORPORA:
                # A base of the evaluation's own has no summaries yet; of another, making them is its owner's to ask.
                make_summaries(parse_recipe(recipe), Parts(shared.snapshot(), bench.llm, bench.encoder))
            made = _method(recipe, shared, bench)
            return lambda example: made

        yield of, shared.digest() if shared else ""


@contextmanager
def open_bases(
    data: QuestionSet, bench: EvaluationSettings, progress: Callable[[int, int], None] | None = None
) -> Iterator[Callable[[Example], Store]]:
    """Give what returns the base that a question is asked of."""
    from clew.store.store import Store

    if bench.graphs and data.corpus not in (*POOLED_CORPORA, "none"):
        raise UsageError(
            f"graphs are added to a corpus of all questions, not to '{data.corpus}'",
            "Name it --corpus pooled, or add them to a base of your own: clew graph add FILE --kb FOLDER",
        )
    if data.corpus == "question":
        with _OwnBases(bench, pool_paragraphs(data.examples)) as own:
            yield own.base
        return
    with TemporaryDirectory(prefix="clew-eval-") as folder:
        brought = data.corpus in BUILT_CORPORA
        path = Path(folder) / "base" if brought else base_folder(data.corpus)
        with Store.open(path, create=brought, passages=bench.passages) as base:
            if brought:
                fill_base(base, _paragraphs(data), bench, progress)
                _add_graphs(base, bench.graphs)
            elif bench.encoder is not None:
                base.encode(bench.encoder, progress)
            yield lambda example: base


def _paragraphs(data: QuestionSet) -> Sequence[Paragraph]:
    """Return the paragraphs of the corpus that is made for all questions."""
    if data.corpus == "none":
        return ()
    return pool_paragraphs(
        itertools.chain(data.examples, *(parse_dataset(one).examples() for one in data.pool))
    )


def _add_graphs(base: Store, places: Sequence[str]) -> None:
    """Add graphs from files, and mount those that stay where they are, each named by its place."""
    from clew.knowledge_base.ingest.graphs import GraphFiles, add_graph, default_graph_name
    from clew.parse.graphs.stark import is_stark
    from clew.store.sparql.mount_options import MountOptions
    from clew.store.sparql.mounted_graph import is_endpoint

    names = [
        (urlsplit(one).hostname or one) if is_endpoint(one) else default_graph_name(Path(one))
        for one in places
    ]
    for name, place in zip(names, places, strict=True):
        if names.count(name) > 1:
            raise UsageError(f"two graphs are called '{name}'", "A graph is called by its file: rename one")
        if is_endpoint(place) or (Path(place).is_dir() and not is_stark(Path(place))):
            base.graphs.mount(name, place, MountOptions())
        else:
            add_graph(base.graphs, name, GraphFiles((Path(place),)))


def question_builder(data: QuestionSet, bench: EvaluationSettings) -> QuestionFor:
    """Return what gives what is asked for each question: within its own documents where the corpus is ``own``, with
    its gold triples where they are asked for."""
    scope_of = _scopes(data, bench)

    def question(example: Example) -> Question:
        return Question(example.question, scope_of(example), gold_triples(example) if data.triples else "")

    return question


def _scopes(data: QuestionSet, bench: EvaluationSettings) -> Callable[[Example], Scope]:
    """Return what gives the scope of each question: its own documents where the corpus is ``own``, else all."""
    if data.corpus != "own":
        return lambda example: Scope()

    groups = group_by_document(pool_paragraphs(data.examples))
    made = build_documents((one for group in groups for one in group), bench.passages)
    key_of = {
        (one.title, one.text, one.section): document.key
        for group, document in zip(groups, made, strict=True)
        for one in group
    }

    def own(example: Example) -> Scope:
        return Scope(documents=frozenset(key_of[one.title, one.text, one.section] for one in example.corpus))

    return own


def _method(recipe: str, base: Store, bench: EvaluationSettings, example: Example | None = None) -> Method:
    from clew.core.component import BuildContext as Parts
    from clew.knowledge_base import registry as catalog
    from clew.knowledge_base.registry.methods import build_golden

    if parse_recipe(recipe).name != GOLDEN or example is None:
        return catalog.build_method(recipe, base, llm=bench.llm, encoder=bench.encoder)
    parts = Parts(base.snapshot(), bench.llm, bench.encoder)
    return build_golden(parts, parse_recipe(recipe), gold_hits(base, example, bench.passages))


def gold_hits(base: Store, example: Example, unit: PassageUnit) -> list[Hit]:
    """Return the passages and rows of a base that hold gold evidence, in the order of its pieces."""
    gold = GoldEvidence(example)
    keys = [document.key for document in build_documents(example.corpus, unit)]
    held = [
        (node, gold.matching_pieces(node))
        for key in keys
        if base.has_document(key)
        for node in base.document_nodes(key)
    ]
    if not example.corpus:
        held = [
            (node, gold.matching_pieces(node))
            for one in base.documents()
            for node in base.document_nodes(one.key)
        ]
    found = [(min(pieces), node) for node, pieces in held if pieces and node.kind in RETRIEVED_KINDS]
    return [
        Hit(node, 1.0, (node.id,)) for _, node in sorted(found, key=lambda one: (one[0], one[1].position))
    ]


def base_folder(corpus: str) -> Path:
    """Return the folder of a knowledge base: ``kb`` is the usual one (``CLEW_HOME``, else ``./.clew``)."""
    return knowledge_base_path(None) if corpus == "kb" else Path(corpus).expanduser()


def fill_base(
    base: Store,
    paragraphs: Sequence[Paragraph],
    bench: EvaluationSettings,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Commit paragraphs, index them, and encode them where there is an encoder."""
    count = len(group_by_document(paragraphs))
    for number, document in enumerate(build_documents(paragraphs, bench.passages), 1):
        base.put_document(document, document_location(document))
        if progress:
            progress(number, count)
    base.catch_up()
    if bench.encoder is not None:
        base.encode(bench.encoder, progress)


class _OwnBases:
    """The bases of questions' own corpora: made when a question first comes up, one open in each thread."""

    def __init__(self, bench: EvaluationSettings, others: Sequence[Paragraph]) -> None:
        self._bench, self._others = bench, others
        self._folder = TemporaryDirectory(prefix="clew-eval-")
        self._here = threading.local()
        self._open: list[Store] = []

    def __enter__(self) -> _OwnBases:
        return self

    def __exit__(self, *_: object) -> None:
        for base in self._open:
            base.close()
        self._folder.cleanup()

    def base(self, example: Example) -> Store:
        """Return the base of the example's own corpus with its negatives."""
        from clew.store.store import Store

        path = Path(self._folder.name) / blake2b(example.id.encode(), digest_size=12).hexdigest()
        held: Store | None = getattr(self._here, "base", None)
        if held is not None:
            if held.path == path:
                return held
            self._open.remove(held)
            held.close()
        new = not path.exists()
        base = Store.open(path, create=new, passages=self._bench.passages)
        self._here.base = base
        self._open.append(base)
        if new:
            bench = self._bench
            fill_base(base, add_negatives(example, self._others, bench.sentences, bench.seed), bench)
        return base
