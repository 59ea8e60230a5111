"""Work on a cluster: files are parsed, passages encoded and questions answered on its machines (Ray, Apache-2.0).

Only the process that was started by the command writes to the knowledge base, one document at a time, as it does
without a cluster. So a task is a function of its arguments: Ray may run it twice, or again elsewhere when a worker or
a machine is lost, and nothing is stored twice. What ends the command itself ends it between two commits, and the same
command, given again, continues.

- **Back pressure.** At most two tasks for each core of the cluster are out at a time. A file is read from disk when
  its task is sent.
- **Equal results.** A task carries the versions of clew, its parsers and their libraries; a machine that has others
  refuses it. Files are parsed by the same confined process, under the same limits, as on one machine
  (:mod:`clew.parse.documents.pool`), and a vector depends on its text alone.

Workers have clew installed: functions are sent by name, never as code. Decision 41.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

import numpy as np
from filelock import FileLock, Timeout

from clew.core.config import reading_limits, set_environment
from clew.core.errors import ClewError, RemoteError, UnreadableFile, UsageError, require_packages
from clew.core.types import Member
from clew.knowledge_base.local_cluster import read_local_cluster
from clew.models import create_encoder
from clew.models.encoders import EncoderWrapper, OnnxEncoder
from clew.parse.documents.files import read_bytes
from clew.parse.documents.formats import document_formats
from clew.parse.documents.limits import MIB
from clew.parse.documents.pdf.recognition import can_recognise
from clew.parse.documents.pool import Outcome, ParsePool

if TYPE_CHECKING:
    from clew.core.arrays import Vectors
    from clew.core.protocols import Encoder

#: The name of the cluster of this machine, which ``clew cluster up`` starts.
LOCAL = "local"
#: Tasks that are out at a time for each core: one that runs, and one that its worker takes up next.
TASKS_PER_CORE = 2
#: How often Ray runs a task again whose worker was lost.
RETRIES = 3
#: How often a cluster is asked to serve a command.
CONNECTIONS = 3
#: Passages that are encoded by one task: a fraction of a second of work.
TEXTS_PER_TASK = 64
#: Libraries by which the same file may be read otherwise, and a text have another vector.
_LIBRARIES = (
    "pypdfium2",
    "lxml",
    "markdown-it-py",
    "olefile",
    "charset-normalizer",
    "tokenizers",
    "onnxruntime",
)
#: Seconds after which the number of cores is asked again, since clusters grow.
_CORES_EVERY = 10.0

Task = Any


class Executor(Protocol):
    """Runs functions elsewhere."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Task:
        """Begin a call; return its task, which can be a key of a dictionary."""
        ...

    def wait(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """Wait until one of the tasks has ended, and return those that have."""
        ...

    def result(self, task: Task) -> Any:
        """Return what an ended task returned. Raises WorkerLost, RemoteError."""
        ...

    def put(self, value: Any) -> Any:
        """Send a value once, and return what stands for it as an argument of many tasks."""
        ...

    def cores(self) -> int:
        """Return the number of cores."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return its address, machines, cores, bytes of memory, and version."""
        ...


class WorkerLost(RemoteError):
    """The worker of a task was lost, and those that repeated it."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a task returns that raised an error of clew."""

    problem: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that tasks are sent to. ``limit`` is the greatest number of tasks at a time, None for the default."""

    executor: Executor
    limit: int | None = None

    def run_tasks(
        self, function: Callable[..., Any], take: Callable[[], tuple[Any, tuple[Any, ...]] | None]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the key and the result of each call as they end, a WorkerLost or a Refusal as a value.

        ``take`` returns the key and the arguments of the next call, or None; it is asked again when a call has
        ended. Raises RemoteError when the cluster is lost.
        """
        running: dict[Task, Any] = {}
        while True:
            while len(running) < self.tasks_at_once() and (call := take()) is not None:
                key, arguments = call
                running[self.executor.submit(function, describe_software(), *arguments)] = key
            if not running:
                return
            for task in self.executor.wait(list(running)):
                key = running.pop(task)
                try:
                    result = self.executor.result(task)
                except WorkerLost as error:
                    result = error
                yield key, result

    def tasks_at_once(self) -> int:
        """Return how many tasks may be out now."""
        return self.limit or max(TASKS_PER_CORE * self.executor.cores(), 1)


@contextmanager
def connect_cluster(place: str, limit: int | None = None) -> Iterator[Cluster]:
    """Connect to ``local`` or ``ray://HOST:PORT``, and disconnect afterwards.

    Raises UsageError, MissingExtra, and RemoteError where it cannot be reached.
    """
    if place == LOCAL:
        state = read_local_cluster()
        if state is None:
            raise UsageError("no cluster runs on this machine", "Start one: clew cluster up")
        set_environment(state.client_environment())
        place = state.address
    parts = urlsplit(place)
    if parts.scheme != "ray" or not parts.hostname:
        raise UsageError(f"no cluster at '{place}'", f"Name one: ray://HOST:10001, or {LOCAL}")
    executor = RayExecutor(place)
    try:
        yield Cluster(executor, limit)
    finally:
        executor.close()


class RayExecutor:
    """Runs functions as tasks of Ray, through the port of its client (10001)."""

    def __init__(self, address: str) -> None:
        require_packages("scale", "ray", "grpc", part="Ray")
        import ray

        self._ray, self._address = ray, address
        self._functions: dict[Callable[..., Any], Any] = {}
        self._cores, self._asked = 0, -_CORES_EVERY
        # A RuntimeError for another version of Python or Ray, or a wrong token.
        refusals: tuple[type[BaseException], ...] = (*self._failures(), RuntimeError)
        for attempt in range(1, CONNECTIONS + 1):
            try:
                with warnings.catch_warnings():  # of what is raised at once
                    warnings.simplefilter("ignore")
                    ray.init(address, log_to_driver=False, logging_level="critical")
                return
            except refusals as error:
                # The process that would serve this command did not start, on a cluster that is starting or busy.
                if attempt < CONNECTIONS and ("server failed" in str(error) or "Proxy failed" in str(error)):
                    time.sleep(attempt)
                    continue
                raise RemoteError(
                    f"the cluster at {address} cannot be reached: {_last_line(error)}",
                    "Its address is ray://HOST:10001; see clew cluster --help",
                ) from error

    def close(self) -> None:
        """Disconnect. The tasks that still run are stopped by Ray."""
        with suppress(*self._failures(), RuntimeError):
            self._ray.shutdown()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Task:
        """Begin a call on one core."""
        if function not in self._functions:
            options = self._ray.remote(num_cpus=1, max_retries=RETRIES)
            self._functions[function] = options(function)
        with self._connection():
            return self._functions[function].remote(*arguments)

    def wait(self, tasks: Sequence[Task]) -> Sequence[Task]:
        """Wait until one of the tasks has ended, and return those that have."""
        with self._connection():
            ended, _ = self._ray.wait(list(tasks), num_returns=1)
            if len(tasks) > 1:  # and whatever else has
                ended, _ = self._ray.wait(list(tasks), num_returns=len(tasks), timeout=0)
        return list(ended)

    def result(self, task: Task) -> Any:
        """Return what an ended task returned. Raises WorkerLost, RemoteError."""
        lost = (
            self._ray.exceptions.WorkerCrashedError,
            self._ray.exceptions.NodeDiedError,
            self._ray.exceptions.ObjectLostError,
            self._ray.exceptions.OutOfMemoryError,
        )
        with self._connection():
            try:
                return self._ray.get(task)
            except lost as error:
                raise WorkerLost(
                    f"the workers of a task were lost {RETRIES + 1} times ({type(error).__name__})",
                    "What was finished is stored: give the same command again to continue",
                ) from error

    def put(self, value: Any) -> Any:
        """Send a value once."""
        with self._connection():
            return self._ray.put(value)

    def cores(self) -> int:
        """Return the number of cores, as it was at most ten seconds ago."""
        if time.monotonic() - self._asked >= _CORES_EVERY:
            with self._connection():
                self._cores = int(self._ray.cluster_resources().get("CPU", 0))
            self._asked = time.monotonic()
        return self._cores

    def describe(self) -> dict[str, Any]:
        """Return its address, machines, cores, bytes of memory, and version."""
        with self._connection():
            total, nodes = self._ray.cluster_resources(), self._ray.nodes()
        return {
            "address": self._address,
            "machines": sum(node["Alive"] for node in nodes),
            "cores": int(total.get("CPU", 0)),
            "memory": int(total.get("memory", 0)),
            "ray": self._ray.__version__,
        }

    def _failures(self) -> tuple[type[BaseException], ...]:
        """Return the errors by which Ray and its connection fail."""
        import grpc

        return (self._ray.exceptions.RayError, grpc.RpcError, ConnectionError)

    @contextmanager
    def _connection(self) -> Iterator[None]:
        failures: tuple[type[BaseException], ...] = (*self._failures(), ValueError)
        try:
            yield
        except failures as error:
            # gRPC's own word for a connection that was lost; any other ValueError is none.
            if isinstance(error, ValueError) and "closed channel" not in str(error):
                raise
            raise RemoteError(
                f"the cluster at {self._address} failed: {_last_line(error)}",
                "What was finished is stored. When the cluster runs again, give the same command again to continue",
            ) from error


def _last_line(error: BaseException) -> str:
    """Return what an error says in the end: Ray's errors hold tracebacks of other machines."""
    details = getattr(error, "details", None)  # of gRPC, whose str() is a block of lines
    text = str(details() if callable(details) else error)
    return " ".join((text.strip().splitlines() or [type(error).__name__])[-1].split())[:200]


# What tasks have in common


@lru_cache(maxsize=1)
def describe_software() -> tuple[str, ...]:
    """Return what the results of a task depend on, beside its arguments: clew, its parsers, and their libraries."""
    parsers = sorted(f"{form.media_type} {form.parser}" for form in document_formats())
    recognition = "text in pictures is read" if can_recognise() else "text in pictures is not read"
    libraries = (f"{name} {version(name)}" for name in ("clew", *_LIBRARIES))
    return (*libraries, recognition, *parsers)


def check_software(expected: Sequence[str]) -> None:
    """Raise UsageError where the software of this machine is not that of the process that sent the task."""
    actual = describe_software()
    if tuple(expected) != actual:
        ours = sorted(set(actual) - set(expected)) or ["nothing else"]
        theirs = sorted(set(expected) - set(actual)) or ["nothing else"]
        raise UsageError(
            f"the cluster has other software: {', '.join(ours[:3])} there, {', '.join(theirs[:3])} here",
            "Install the same version of clew, with the same extras, on both",
        )


def compare_software(software: Sequence[str]) -> str | Refusal:
    """Return which version of clew a worker has. The task of :func:`describe_cluster`."""
    try:
        check_software(software)
    except ClewError as error:
        return Refusal(error.problem, error.hint)
    return f"clew {version('clew')}, the same as here"


def describe_cluster(cluster: Cluster) -> dict[str, Any]:
    """Return what a cluster consists of, and whether a worker of it has the software of this process."""
    calls = deque([("", ())])
    ((_, answer),) = cluster.run_tasks(compare_software, lambda: calls.popleft() if calls else None)
    software = f"{answer.problem}. {answer.hint}" if isinstance(answer, Refusal) else str(answer)
    return {**cluster.executor.describe(), "software": software}


def raise_refusal(result: Any) -> Any:
    """Return the result of a task. Raises RemoteError for a Refusal or a lost worker."""
    if isinstance(result, Refusal):
        raise RemoteError(result.problem, result.hint)
    if isinstance(result, WorkerLost):
        raise result
    return result


# Files


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that a task has parsed, and the contents of the files within it, in the order of its members."""

    outcome: Outcome
    members: tuple[bytes, ...] = ()


def read_sent_file(
    software: Sequence[str], data: bytes, name: str, unit: str, limits: tuple[float, float], has_members: bool
) -> ReadFile | Refusal:
    """Parse a file that was sent. The task of :class:`ClusterPool`.

    A parser's process is started once for each worker of Ray, and ends with it.
    """
    try:
        check_software(software)
        pool, folder = _open_pool(*limits)
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "file"
            path.write_bytes(data)
            options = {"name": name, **({"members": folder} if has_members else {})}
            ((_, outcome),) = pool.read_files([path], unit, {path: options})
        if isinstance(outcome, UnreadableFile) or not outcome.members:
            return ReadFile(outcome)
        paths = [Path(member.path) for member in outcome.members if member.path]
        contents = tuple(path.read_bytes() for path in paths)
        for parent in {path.parent for path in paths}:
            shutil.rmtree(parent, ignore_errors=True)
        return ReadFile(outcome, contents)
    except ClewError as error:
        return Refusal(error.problem, error.hint)


@lru_cache(maxsize=1)
def _open_pool(seconds: float, mebibytes: float) -> tuple[ParsePool, Path]:
    """Return the parser's process of this worker, and the folder that it may write to."""
    folder, _ = _make_scratch_folder()
    pool = ParsePool(1, processor_limit=seconds, memory_limit=int(mebibytes * MIB), folder=folder)
    return pool, folder


@lru_cache(maxsize=1)
def _make_scratch_folder() -> tuple[Path, FileLock]:
    """Return a folder for files of this worker, and its lock, which is held as long as the worker lives.

    Folders of workers that were killed are deleted: they may have texts of documents in them.
    """
    parent = Path(tempfile.gettempdir()) / f"clew-cluster-{os.getuid() if hasattr(os, 'getuid') else 0}"
    parent.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and parent.stat().st_uid != os.getuid():
        raise UsageError(f"{parent} belongs to another user", "Set TMPDIR where the cluster is started")
    with FileLock(parent / "lock"):
        for folder in parent.iterdir():
            if folder.is_dir():
                with suppress(Timeout):
                    FileLock(folder / "lock", timeout=0).acquire()
                    shutil.rmtree(folder, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=parent))
        lock = FileLock(folder / "lock", timeout=0)
        lock.acquire()
    return folder, lock


class ClusterPool:
    """Parses files on a cluster. It does what :class:`clew.parse.documents.pool.ParsePool` does for one machine.

    Files are read here, so that the machines need none of the folders; those within a file are written here, to the
    folder that its options name. How far a file is, is not reported.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.on_pages: Callable[[Path, int, int], None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing has to be closed: the processes are the cluster's."""

    def read_files(
        self,
        paths: Iterable[Path],
        unit: str = "paragraph",
        options: Mapping[Path, Mapping[str, Any]] = MappingProxyType({}),
    ) -> Iterator[tuple[Path, Outcome]]:
        """Yield each path with its document, or with the error that says why there is none, as they finish.

        To a deque of paths, and to the options, the caller may add while it iterates. Raises RemoteError, WorkerLost.
        """
        queue = paths if isinstance(paths, deque) else deque(paths)
        unreadable: deque[tuple[Path, Outcome]] = deque()
        limits = reading_limits()

        def take() -> tuple[Path, tuple[Any, ...]] | None:
            while queue:
                path = queue.popleft()
                chosen = options.get(path, {})
                try:
                    data = read_bytes(path)
                except UnreadableFile as error:
                    unreadable.append((path, error))
                    continue
                return path, (data, chosen.get("name") or path.name, unit, limits, "members" in chosen)
            return None

        for path, result in self._cluster.run_tasks(read_sent_file, take):
            yield from _drain(unreadable)
            # A lost worker ends the command: were it the file's fault in the report, a file within an archive would
            # not be read again before the archive changes.
            yield path, _receive_file(raise_refusal(result), options.get(path, {}).get("members"))
        yield from _drain(unreadable)


def _drain(queue: deque[tuple[Path, Outcome]]) -> Iterator[tuple[Path, Outcome]]:
    while queue:
        yield queue.popleft()


def _receive_file(read: ReadFile, folder: Path | None) -> Outcome:
    """Return the document of a task, its members written to a new folder in ``folder``."""
    outcome = read.outcome
    if isinstance(outcome, UnreadableFile) or not read.members or folder is None:
        return outcome
    place, contents = Path(tempfile.mkdtemp(dir=folder)), iter(read.members)
    members: list[Member] = []
    for number, member in enumerate(outcome.members):
        if member.path:
            path = place / str(number)
            path.write_bytes(next(contents))
            member = replace(member, path=str(path))
        members.append(member)
    return replace(outcome, members=tuple(members))


# Passages


@dataclass(frozen=True, slots=True)
class ClusterEncoder(EncoderWrapper):
    """An encoder whose passages are encoded on a cluster, questions here. ``requested`` is its name as it was set."""

    cluster: Cluster
    requested: str

    @property
    def batch(self) -> int:
        """How many texts keep the cluster busy."""
        return TEXTS_PER_TASK * self.cluster.tasks_at_once()

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. Raises RemoteError."""
        if query:
            return self.encoder.encode(texts, query=True)
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        starts = deque(range(0, len(texts), TEXTS_PER_TASK))

        def take() -> tuple[int, tuple[Any, ...]] | None:
            if not starts:
                return None
            start = starts.popleft()
            return start, (self.requested, self.name, list(texts[start : start + TEXTS_PER_TASK]))

        for start, result in self.cluster.run_tasks(encode_texts, take):
            vectors[start : start + TEXTS_PER_TASK] = raise_refusal(result)
        return vectors


def spread_encoder(cluster: Cluster, encoder: Encoder, requested: str) -> Encoder:
    """Return an encoder that works on the cluster, if it is one of clew's own format; else ``encoder`` itself.

    A service is asked from here, since its key is here; so is a model of another library, which the cluster may lack.
    """
    return ClusterEncoder(encoder, cluster, requested) if isinstance(encoder, OnnxEncoder) else encoder


def encode_texts(
    software: Sequence[str], requested: str, name: str, texts: Sequence[str]
) -> Vectors | Refusal:
    """Encode passages. The task of :class:`ClusterEncoder`."""
    try:
        check_software(software)
        encoder = _load_encoder(requested)
        if encoder.name != name:
            raise UsageError(f"the cluster's encoder is {encoder.name}, not {name}", "Copy its folder there")
        return encoder.encode(texts)
    except ClewError as error:
        return Refusal(error.problem, error.hint)


@lru_cache(maxsize=2)
def _load_encoder(requested: str) -> Encoder:
    encoder = create_encoder(requested)
    if isinstance(encoder, OnnxEncoder):
        encoder.threads = 1  # a task has one core
    return encoder
