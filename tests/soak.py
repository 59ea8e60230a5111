"""A long campaign against the store: random operations on a base, many of them killed or refused half-way.

    python tests/soak.py [--sequences 2000] [--seed 0] [--steps 14]                   # make soak

Each sequence adds, changes, moves and removes files and archives, synchronises, uploads, replaces and removes graphs,
changes the encoder, summarises, searches, reopens and runs the doctor. Operations also run in a process that is
killed at a random system call, or told there that the disk is full or fails. After every step the base is compared
with a model of what must be in it, and the bytes of its folder with all words that were ever removed. At the end of
a sequence the base equals one to which its files were added for the first time.

The campaign runs in batches of fifty, each with its own seed. Batches that passed are lines of build/soak/SEED.jsonl;
another run goes on after them. Documents are small, read in this process, and encoded by hashes.
"""

from __future__ import annotations

import argparse
import errno
import io
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent))

import clew
from clew.core.errors import ClewError, UnreadableFile
from clew.core.types import MEMBER_SEPARATOR, container_path
from clew.knowledge_base import registry
from clew.knowledge_base.knowledge_base import KnowledgeBase
from clew.knowledge_base.summaries import SummaryJob
from clew.parse.documents import pool
from clew.parse.documents.reader import read_file
from kb_documents import HashEncoder
from system_calls import CHANGING, SYNCS, WRITES, Interference, can_trace, run_traced

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "build" / "soak"
#: Sequences of a batch: what a stopped campaign does again.
BATCH = 50
#: Words that stand for themselves: they are in one text, one name of a file, or one node.
_WORD = re.compile(rb"zq[a-z]{7}")
_FORMS = ("txt", "md", "zip")
_GRAPHS = ("films", "rivers")
#: What there is in the folder of a base at rest.
BASE_FILES = {
    "base.sqlite",
    "base.sqlite-wal",
    "base.sqlite-shm",
    "write.lock",
    "index.lock",
    "derived",
    "uploads",
}


class InProcess:
    """Reads files here instead of in a pool of processes: the pool has its own tests."""

    def __init__(self, *_: Any, **options: Any) -> None:
        self._reader = options.get("reader", read_file)

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def close(self) -> None:
        """Nothing to end."""

    def read_files(self, paths: Any, unit: str = "paragraph", options: Any = None) -> Iterator[Any]:
        """Yield each path with its document or its refusal."""
        waiting = paths if hasattr(paths, "popleft") else list(paths)
        while waiting:
            path = waiting.popleft() if hasattr(waiting, "popleft") else waiting.pop(0)
            try:
                yield path, self._reader(path, unit=unit, **(options or {}).get(path, {}))
            except UnreadableFile as error:
                yield path, error


def load_encoder(name: str, *, remember: bool = False) -> HashEncoder:
    """Return the encoder ``name``: vectors that depend on the texts alone."""
    encoder = HashEncoder()
    encoder.name = name
    return encoder


@contextmanager
def without_processes() -> Iterator[None]:
    """Files are read in this process, and encoders are :class:`HashEncoder`."""
    os.environ |= {"CLEW_ENCODER": "none", "CLEW_READER": "none"}
    before = pool.ParsePool, registry.load_encoder
    pool.ParsePool, registry.load_encoder = InProcess, load_encoder  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        pool.ParsePool, registry.load_encoder = before  # type: ignore[misc]


def word_of(number: int) -> str:
    """Return the word of a number: no word begins another."""
    letters = []
    for _ in range(7):
        number, letter = divmod(number, 20)
        letters.append("bcdfghjklmnpqrstvwxz"[letter])
    return "zq" + "".join(letters)


def words_in(data: bytes) -> set[str]:
    return {word.decode() for word in _WORD.findall(data)}


@dataclass(frozen=True)
class State:
    """What a base holds: of each path and each graph its words; its settings."""

    documents: dict[str, frozenset[str]] = field(default_factory=dict)
    graphs: dict[str, frozenset[str]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=lambda: {"passages": "paragraph", "encoder": "none"})

    def words(self) -> set[str]:
        """Return all words, those in paths included."""
        texts = set().union(*self.documents.values(), *self.graphs.values())
        return texts | words_in(" ".join(self.documents).encode())

    def changed(self, **parts: Any) -> State:
        """Return this with other parts."""
        return replace(self, **parts)


def read_state(base: KnowledgeBase) -> State:
    texts: dict[str, frozenset[str]] = {}
    documents = {}
    for path, (_, key) in base.store.locations().items():
        if key not in texts:
            texts[key] = frozenset(words_in(base.store.document_text(key).encode()))
        documents[path] = texts[key]
    graphs: dict[str, set[str]] = {}
    settings: dict[str, str] = {}
    for line in base.store.dump():
        record = json.loads(line)
        if "setting" in record:
            settings[record["setting"]] = record["value"]
        if "graph" in record:
            graphs.setdefault(record["graph"], set()).update(words_in(line.encode()))
    return State(documents, {name: frozenset(words) for name, words in graphs.items()}, settings)


def is_between(state: State, before: State, after: State) -> bool:
    """Return whether every path, graph and setting is as it was before, or as it is afterwards."""

    def agree(own: dict[str, Any], first: dict[str, Any], last: dict[str, Any]) -> bool:
        return all(own.get(key) in (first.get(key), last.get(key)) for key in {*own, *first, *last})

    return (
        agree(state.documents, before.documents, after.documents)
        and agree(state.graphs, before.graphs, after.graphs)
        and agree(state.settings, before.settings, after.settings)
    )


def leftover_words(folder: Path, gone: set[str]) -> dict[str, list[str]]:
    """Return the words of ``gone`` that are in the bytes or names of files, by the file."""
    results = {}
    for path in folder.rglob("*"):
        words = words_in(path.name.encode()) | (words_in(path.read_bytes()) if path.is_file() else set())
        if words & gone:
            results[str(path.relative_to(folder))] = sorted(words & gone)
    return results


@dataclass(frozen=True)
class Operation:
    """Something that is done to a base, and the state that it leads to."""

    name: str
    act: Callable[[KnowledgeBase], object]
    after: State


class Campaign(RuleBasedStateMachine):
    """The machine of hypothesis: a rule for each thing that a person, or fate, may do to a base."""

    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.work = Path(tempfile.mkdtemp(prefix="soak-", dir=_fast_folder()))
        self.files, self.folder = self.work / "files", self.work / "base"
        self.temporary = self.work / "temporary"
        for path in (self.files, self.temporary):
            path.mkdir()
        self.number = 0
        self.disk: dict[str, bytes] = {}
        self.state = State()
        self.seen: set[str] = set()
        self.clock = 0

    @initialize(forms=st.lists(st.sampled_from(_FORMS), min_size=1, max_size=4), empty=st.booleans())
    def begin(self, forms: list[str], empty: bool) -> None:
        """Make the base, empty or with a few documents and a graph."""
        tempfile.tempdir = str(self.temporary)
        self.base = clew.open(self.folder, create=True)
        for form in forms:
            self.create_file(form)
        if not empty:
            self.do("add", 0)
            self.do("graph", 3)

    # What changes on the disk of the person

    def new_word(self) -> str:
        self.number += 1
        return word_of(self.number)

    def new_text(self, heading: str = "") -> bytes:
        parts = [f"The mill {self.new_word()} stands at the river." for _ in range(1 + self.number % 3)]
        return "\n\n".join([*([heading] if heading else []), *parts]).encode() + b"\n"

    def write(self, name: str, data: bytes) -> None:
        path = self.files / name
        path.write_bytes(data)
        self.disk[name] = data
        # The clock goes forward and back, but shows no time twice.
        self.clock += 1
        seconds = 1_000_000_000 + self.clock * (-1) ** self.clock
        os.utime(path, (seconds, seconds))

    @rule(form=st.sampled_from(_FORMS))
    def create_file(self, form: str) -> None:
        """Write a new file."""
        self.write(self.new_name(form), self.content(form))

    def new_name(self, form: str) -> str:
        self.number += 1
        return f"file{self.number:04d}.{form}"

    def content(self, form: str) -> bytes:
        if form == "md":
            return self.new_text("# Mills\n\n## Of the river")
        if form == "txt":
            return self.new_text()
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for _ in range(1 + self.number % 3):
                archive.writestr(zipfile.ZipInfo(f"{self.new_word()}.txt"), self.new_text())
        return stream.getvalue()

    def pick(self, names: Iterable[str], at: int) -> str:
        every = sorted(names)
        return every[at % len(every)]

    @rule(at=st.integers(0, 99))
    def change_file(self, at: int) -> None:
        """Write other content to a file."""
        if self.disk:
            name = self.pick(self.disk, at)
            self.write(name, self.content(name.rpartition(".")[2]))

    @rule(at=st.integers(0, 99), copy=st.booleans())
    def move_file(self, at: int, copy: bool) -> None:
        """Move or copy a file."""
        if self.disk:
            name = self.pick(self.disk, at)
            data = self.disk[name]
            if not copy:
                self.delete_file(at)
            self.write(self.new_name(name.rpartition(".")[2]), data)

    @rule(at=st.integers(0, 99))
    def delete_file(self, at: int) -> None:
        """Delete a file."""
        if self.disk:
            name = self.pick(self.disk, at)
            (self.files / name).unlink()
            del self.disk[name]

    # What is done to the base

    def of_file(self, name: str) -> dict[str, frozenset[str]]:
        path, data = str(self.files / name), self.disk[name]
        if not name.endswith(".zip"):
            return {path: frozenset(words_in(data))}
        results: dict[str, frozenset[str]] = {path: frozenset()}
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                results[path] |= words_in(member.encode())
                results[f"{path}{MEMBER_SEPARATOR}{member}"] = frozenset(words_in(archive.read(member)))
        return results

    def of_disk(self) -> dict[str, frozenset[str]]:
        return {path: words for name in self.disk for path, words in self.of_file(name).items()}

    def adding(self, sync: bool) -> Operation:
        there = self.of_disk()
        before = {
            path: words
            for path, words in self.state.documents.items()
            if path.startswith("upload:")
            or (not sync if not Path(container_path(path)).exists() else path in there)
        }
        return Operation(
            "sync" if sync else "add",
            lambda base: _no_failure(base.add([self.files], sync=sync)),
            self.state.changed(documents=before | there),
        )

    def removing(self, at: int) -> Operation | None:
        tops = {path for path in self.state.documents if MEMBER_SEPARATOR not in path}
        if not tops:
            return None
        path = self.pick(tops, at)
        left = {
            other: words
            for other, words in self.state.documents.items()
            if other != path and not other.startswith(path + MEMBER_SEPARATOR)
        }
        return Operation("remove", lambda base: base.remove(path), self.state.changed(documents=left))

    def storing_graph(self, at: int, size: int) -> Operation:
        name = _GRAPHS[at % 2]
        nodes = [self.new_word() for _ in range(size + 1)]
        file = self.work / f"{name}.tsv"
        lines = [f"{left}\tknows\t{right}\n" for left, right in itertools.pairwise(nodes)]
        file.write_text("".join(lines))
        graphs = self.state.graphs | {name: frozenset(nodes)}
        return Operation(
            "graph", lambda base: base.graphs.add(file, name=name), self.state.changed(graphs=graphs)
        )

    def removing_graph(self, at: int) -> Operation | None:
        if not self.state.graphs:
            return None
        name = self.pick(self.state.graphs, at)
        graphs = {other: words for other, words in self.state.graphs.items() if other != name}
        return Operation(
            "remove graph", lambda base: base.graphs.remove(name), self.state.changed(graphs=graphs)
        )

    def setting_encoder(self, at: int) -> Operation:
        name = (None, "st:first", "st:second")[at % 3]

        def act(base: KnowledgeBase) -> None:
            base.encoding.set(name)
            if name:
                base.encoding.encode_missing()

        return Operation(
            "encoder", act, self.state.changed(settings=self.state.settings | {"encoder": name or "none"})
        )

    def summarising(self) -> Operation:
        return Operation("summarise", lambda base: SummaryJob(base, words=12).make(), self.state)

    def uploading(self) -> Operation:
        name, data = f"{self.new_word()}.md", self.new_text("# Uploaded")
        file = self.work / "upload"
        file.write_bytes(data)
        words = frozenset(words_in(data))

        def act(base: KnowledgeBase) -> None:
            with base.files.open_uploads(20.0, 1 << 30) as uploads:
                uploads.add(file, name)
            base.store.catch_up()

        from clew.parse.documents.reader import parse

        key = parse(data, name).key
        documents = self.state.documents | {f"upload:{key}/{name}": words}
        return Operation("upload", act, self.state.changed(documents=documents))

    def operation(self, kind: str, at: int) -> Operation | None:
        return {
            "add": lambda: self.adding(False),
            "sync": lambda: self.adding(True),
            "remove": lambda: self.removing(at),
            "graph": lambda: self.storing_graph(at, at % 4 + 1),
            "remove graph": lambda: self.removing_graph(at),
            "encoder": lambda: self.setting_encoder(at),
            "summarise": self.summarising,
            "upload": self.uploading,
        }[kind]()

    KINDS = ("add", "add", "sync", "remove", "graph", "remove graph", "encoder", "summarise", "upload")

    @rule(kind=st.sampled_from(KINDS), at=st.integers(0, 99))
    def do(self, kind: str, at: int) -> None:
        """Do something to the base."""
        operation = self.operation(kind, at)
        if operation is not None:
            operation.act(self.base)
            self.counts[operation.name] += 1
            self.expect(operation.after)

    @rule(
        kind=st.sampled_from(KINDS),
        at=st.integers(0, 99),
        point=st.integers(1, 300),
        action=st.sampled_from(["kill", "kill", "kill", "ENOSPC", "EIO"]),
        lasting=st.booleans(),
    )
    def do_interrupted(self, kind: str, at: int, point: int, action: str, lasting: bool) -> None:
        """Do something that is killed, or that the disk refuses, and then do it again."""
        operation = self.operation(kind, at)
        if operation is None:
            return
        if action != "kill":
            point = 1 + point // 8
        self.base.close()

        def act() -> None:
            with clew.open(self.folder) as base:
                operation.act(base)

        calls = None if action == "kill" and lasting else WRITES | SYNCS if action != "kill" else CHANGING
        outcome = run_traced(act, Interference(point, action, calls, lasting, folder=self.work))
        if outcome.error is not None:
            # The command line says an error of the system in a sentence, too.
            number = getattr(outcome.error, "errno", None)
            assert isinstance(outcome.error, ClewError) or number == getattr(errno, action), repr(
                outcome.error
            )
            assert outcome.hits
            self.counts[str(outcome.error).partition("base.sqlite")[2][:60]] += 1
            assert "restore it from a backup" not in str(outcome.error), outcome.error
        self.counts[
            f"{operation.name}: {'killed' if outcome.killed else action if outcome.hits else 'not reached'}"
        ] += 1
        self.base = clew.open(self.folder)
        between = read_state(self.base)
        assert is_between(between, self.state, operation.after), (between, self.state, operation.after)
        self.expect(between)
        if between != operation.after or not operation.name.startswith("remove"):
            operation.act(self.base)
        self.expect(operation.after)
        assert not list(self.temporary.iterdir()), list(self.temporary.rglob("*"))

    @rule()
    def reopen(self) -> None:
        """Close the base and open it."""
        self.base.close()
        self.base = clew.open(self.folder)
        self.expect(self.state)

    @rule()
    def run_doctor(self) -> None:
        """Nothing is ever to be repaired but what is made when it is asked for."""
        later = ("not indexed", "not built yet", "passages have none")
        problems = [
            finding for finding in self.base.doctor() if not any(words in finding.problem for words in later)
        ]
        assert not problems, problems
        self.counts["doctor"] += 1

    @rule(at=st.integers(0, 999))
    def search(self, at: int) -> None:
        """A word is in the first hit if the base has it, and in none if not."""
        if not self.seen:
            return
        word = self.pick(self.seen, at)
        hits = self.base.search(word, k=3, retriever="bm25")
        is_there = any(word in words for words in self.state.documents.values())
        texts = [hit.node.text for hit in hits]
        assert any(word in text for text in texts) == is_there, (word, texts, self.state.documents)
        self.counts["search"] += 1

    def expect(self, state: State) -> None:
        """Compare the base with a state, and its folder with what is gone from it."""
        actual = read_state(self.base)
        assert actual == state, (actual, state)
        self.state = actual
        self.seen |= actual.words()
        # A graph says which file it is of, and that file has no word of ours in its name.
        left = leftover_words(self.folder, self.seen - actual.words())
        assert not left, left
        strange = {path.name for path in self.folder.iterdir()} - BASE_FILES
        assert not strange, strange

    def teardown(self) -> None:
        """Compare the base with one that never saw anything else."""
        try:
            if sys.exc_info()[0] is None:  # not after a step that failed
                self.compare_with_twin()
        finally:
            self.base.close()
            shutil.rmtree(self.work)

    def compare_with_twin(self) -> None:
        self.base.add([self.files], sync=True)
        documents = self.of_disk()
        uploads = [path for path in self.state.documents if path.startswith("upload:")]
        if uploads:
            self.base.remove(*uploads)
        for name in sorted(self.state.graphs):
            self.base.graphs.remove(name)
        self.base.encoding.set(None)
        self.expect(State(documents))
        with clew.open(self.work / "twin", create=True) as twin:
            twin.add([self.files])
            difference = set(_unnamed(twin)) ^ set(_unnamed(self.base))
            assert not difference, difference
            for word in sorted(word for words in documents.values() for word in words)[:3]:
                assert _ranking(twin, word) == _ranking(self.base, word)


def _ranking(base: KnowledgeBase, word: str) -> list[tuple[str, float]]:
    return [(hit.node.id, hit.score) for hit in base.search(f"{word} mill", k=5, retriever="bm25")]


def _unnamed(base: KnowledgeBase) -> Iterator[str]:
    """Yield the dump without names of files: a document at several paths is called after the first that was added."""
    for line in base.store.dump():
        yield re.sub(r"file\d{4}", "file", line)


def _no_failure(report: Any) -> None:
    assert not report.failed, report.failed


def _fast_folder() -> str | None:
    """Return a folder in memory where there is one: no test survives a power cut."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def run_sequences(sequences: int, number: int, steps: int, shrink: bool = False) -> None:
    """Run so many sequences. Raises what the first that fails raises; hypothesis prints it, shortened."""
    chosen = settings(
        max_examples=sequences,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
    )
    before = tempfile.tempdir
    with without_processes():
        try:
            run_state_machine_as_test(seed(number)(Campaign), settings=chosen)
        finally:
            tempfile.tempdir = before


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=14, help="at most, of a sequence")
    parser.add_argument("--records", type=Path, default=RECORDS, metavar="FOLDER")
    parser.add_argument(
        "--shrink", action="store_true", help="look for the shortest sequence that fails, too"
    )
    given = parser.parse_args()
    if not can_trace():
        sys.stdout.write("soak needs Linux on x86-64, and leave to trace a process (ptrace)\n")
        return 2
    given.records.mkdir(parents=True, exist_ok=True)
    record = given.records / f"{given.seed}.jsonl"
    passed = (
        {json.loads(line)["batch"] for line in record.read_text().splitlines()} if record.exists() else set()
    )
    for batch in range((given.sequences + BATCH - 1) // BATCH):
        if batch in passed:
            continue
        Campaign.counts = Counter()
        started = time.monotonic()
        run_sequences(min(BATCH, given.sequences), given.seed * 100_000 + batch, given.steps, given.shrink)
        line = {
            "batch": batch,
            "seconds": round(time.monotonic() - started),
            **dict(sorted(Campaign.counts.items())),
        }
        with record.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
