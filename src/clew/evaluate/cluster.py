"""Answers the questions of a data set on a cluster, a task for each; their records are written here, each once.

A worker opens the corpus once and keeps it open. How it gets there:

- A corpus that the evaluation builds is built here, packed, and sent once to each machine; but with the corpus
  ``question`` each question's own is built where it is asked.
- A knowledge base is opened where it lies, in the same folder on every machine, and must have the same digest there.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import ClewError, RemoteError, UsageError
from clew.evaluate.runner import MethodFor, QuestionFor, answer_example
from clew.evaluate.setup import (
    BUILT_CORPORA,
    EvaluationSettings,
    OpenCorpus,
    QuestionSet,
    base_folder,
    open_methods,
)
from clew.knowledge_base import registry
from clew.knowledge_base.cluster import Cluster, Refusal, WorkerLost, check_software, spread_encoder

if TYPE_CHECKING:
    from clew.core.types import Question
    from clew.evaluate.examples import Example
    from clew.store.store import Store


@dataclass(frozen=True, slots=True)
class _Work:
    """What a worker needs to answer questions: models by their names, and the corpus, a folder or a packed one."""

    questions: QuestionSet
    settings: EvaluationSettings
    cached: bool
    digest: str
    archive: bytes | None


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """The cluster of an evaluation. ``cached``: workers take replies of a language model from their cache."""

    cluster: Cluster
    cached: bool = True

    def spread_encoders(self, settings: EvaluationSettings) -> EvaluationSettings:
        """Return the settings with encoders that work on the cluster, by which a corpus is encoded here."""

        def spread(encoder: Any, name: str) -> Any:
            # The vectors of an evaluation are remembered around it, not within.
            inner = getattr(encoder, "encoder", encoder)
            return replace(encoder, encoder=spread_encoder(self.cluster, inner, name)) if name else encoder

        return replace(
            settings,
            encoder=spread(settings.encoder, settings.encoder_name),
            beside=spread(settings.beside, settings.beside_name),
        )

    def send_work(self, questions: QuestionSet, settings: EvaluationSettings, corpus: OpenCorpus) -> SentWork:
        """Send the corpus and the names of the models once."""
        store, archive = corpus.store, None
        if store is not None and questions.corpus in BUILT_CORPORA:
            archive = pack_base(store)
        elif store is not None:
            questions = replace(questions, corpus=str(base_folder(questions.corpus).absolute()))
        if store is not None:  # a question of them all is enough to open the corpus
            questions = replace(questions, examples=questions.examples[:1], pool=())
        named = replace(settings, llm=None, encoder=None, beside=None)
        content = pickle.dumps(_Work(questions, named, self.cached, corpus.digest, archive))
        key = blake2b(content, digest_size=16).hexdigest()
        # An array is shared by the workers of a machine; bytes would be copied for every task.
        return SentWork(self.cluster, key, self.cluster.executor.put(np.frombuffer(content, np.uint8)))


@dataclass(frozen=True, slots=True)
class SentWork:
    """A corpus that is on the cluster."""

    cluster: Cluster
    key: str
    content: Any

    def answer(
        self, recipe: str, question_for: QuestionFor, examples: Sequence[Example]
    ) -> Iterator[dict[str, Any]]:
        """Yield the record of each question, in the order in which they end. Raises RemoteError."""
        waiting = deque(examples)

        def take() -> tuple[str, tuple[Any, ...]] | None:
            if not waiting:
                return None
            example = waiting.popleft()
            return example.id, (self.key, self.content, recipe, example, question_for(example))

        for id, result in self.cluster.run_tasks(answer_question, take):
            if isinstance(result, WorkerLost):
                yield {"id": id, "error": f"WorkerLost: {result}", "seconds": 0.0}
                continue
            if isinstance(result, Refusal):
                raise RemoteError(result.problem, result.hint)
            yield result


def answer_question(
    software: Sequence[str],
    key: str,
    content: np.ndarray[Any, np.dtype[np.uint8]],
    recipe: str,
    example: Example,
    question: Question,
) -> dict[str, Any] | Refusal:
    """Answer a question and return its record. The task of :class:`SentWork`."""
    try:
        check_software(software)
        method_for = _open_work(key, content)(recipe)
    except ClewError as error:
        return Refusal(error.problem, error.hint)
    return answer_example(example, method_for, lambda _: question)


class _OpenWork:
    """The work that is open in this worker, until other work comes: its folder, stores and methods."""

    def __init__(self) -> None:
        self.key = ""
        self.resources = ExitStack()
        self.create: Callable[[str], MethodFor] | None = None
        self.methods: dict[str, MethodFor] = {}


_OPEN = _OpenWork()


def _open_work(key: str, content: np.ndarray[Any, np.dtype[np.uint8]]) -> Callable[[str], MethodFor]:
    """Return the function from a recipe to its method, over the corpus that was sent."""
    if _OPEN.key != key or _OPEN.create is None:
        _OPEN.resources.close()
        _OPEN.key, _OPEN.create, _OPEN.methods = "", None, {}
        work: _Work = pickle.loads(content.tobytes())
        with ExitStack() as resources:
            questions = work.questions
            if work.archive is not None:
                folder = Path(resources.enter_context(TemporaryDirectory(prefix="clew-eval-")))
                with zipfile.ZipFile(io.BytesIO(work.archive)) as stream:
                    stream.extractall(folder)
                questions = replace(questions, corpus=str(folder / "base"))
            corpus = resources.enter_context(open_methods(questions, _load_models(work)))
            if corpus.digest != work.digest:
                raise UsageError(
                    f"{questions.corpus} is another knowledge base on the cluster",
                    "Use a folder that all machines have mounted",
                )
            _OPEN.resources = resources.pop_all()
        _OPEN.key, _OPEN.create = key, corpus.create_method_for

    def method_for(recipe: str) -> MethodFor:
        if recipe not in _OPEN.methods:
            assert _OPEN.create is not None
            _OPEN.methods[recipe] = _OPEN.create(recipe)
        return _OPEN.methods[recipe]

    return method_for


def _load_models(work: _Work) -> EvaluationSettings:
    """Return the settings with the models loaded that they name; graphs are in the corpus already."""
    settings = work.settings
    model = None
    if settings.llm_name:
        model = registry.load_language_model(settings.llm_name, cache=work.cached, charged=True)
    encoders = [
        registry.load_encoder(name, remember=True) if name else None
        for name in (settings.encoder_name, settings.beside_name)
    ]
    return replace(settings, llm=model, encoder=encoders[0], beside=encoders[1], graphs=())


def pack_base(store: Store) -> bytes:
    """Return a base as one archive: a whole copy, made while nobody writes."""
    with TemporaryDirectory(prefix="clew-eval-") as folder, io.BytesIO() as stream:
        (Path(folder) / "base").mkdir()
        store.write_copy(Path(folder) / "base")
        with zipfile.ZipFile(stream, "w") as archive:
            for path in sorted(Path(folder).rglob("*")):
                archive.write(path, path.relative_to(folder))
        return stream.getvalue()
