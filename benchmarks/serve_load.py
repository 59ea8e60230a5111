"""How long do questions take while many ask and files arrive? A real ``clew serve`` on loopback, without a model.

Clients, a thread each, post the sample questions in an order of the seed's and follow each to its last event; that
is its time, with what a refusal (429) made it wait. Meanwhile small notes are uploaded; afterwards each that was
accepted must be a document. Every level has a server and a base of its own. Then the memory of a server that only
answers, and what the question after a commit pays for its new snapshot. Processor times are the server's own;
"workers" are the processes below it, which read, index and encode.

    python benchmarks/serve_load.py [--clients 1 8 32] [--questions 200] [--memory 100 1000] [--seed 0]
    python benchmarks/serve_load.py --minutes 30 [--soak-clients 64] [--streams 500] [--slow 20] [--seed 0]

The second form is one long run: so many clients ask, with uploads and removals all the time; as many connections as
``--streams`` follow events from five other addresses, of which the server serves 400, and ``--slow`` clients send a
byte a second. Printed are, for each tenth of the time, questions, p50 and p95, errors, refusals, memory and
descriptors; then whether every upload that was accepted and not removed is a document, and none that was removed.

Needs the extra serve, and Linux: processor time and memory are read from /proc.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import clew

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from serve_app import BOUNDARY, multipart  # noqa: E402 (what the tests share lies beside them)

SAMPLES = ROOT / "samples"
#: Seconds that one question, and all uploads together, may take before they count as lost.
PATIENCE = 300.0
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Served:
    """A server that runs: its process and where it is reached."""

    process: subprocess.Popen[str]
    port: int
    api: str

    def request(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json"
    ) -> Any:
        """Return status, headers and JSON of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, self.api + path, body, {"Content-Type": kind} if body else {})
            reply = connection.getresponse()
            return reply.status, reply.headers, json.loads(reply.read())
        finally:
            connection.close()

    def last_event(self, id: str) -> tuple[str, str]:
        """Follow a question; return its last event and that event's data."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", f"{self.api}/questions/{id}/events")
            event = data = ""
            for line in iter(connection.getresponse().readline, b""):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                event, data = (value if name == "event" else event), (value if name == "data" else data)
            return event, data
        finally:
            connection.close()

    def spent(self) -> Spent:
        """Return what the server and its workers have used until now."""
        below = _below(self.process.pid)
        own, workers = _stat(self.process.pid), [_stat(item) for item in below]
        return Spent(
            own[0],
            sum(worker[0] + worker[1] for worker in workers) + own[1],
            _memory(self.process.pid),
            sum(map(_memory, below)),
        )


@dataclass(frozen=True)
class Spent:
    """Seconds of processor, and MiB of resident memory, of the server itself and of its workers."""

    seconds: float
    worker_seconds: float
    memory: float
    worker_memory: float


@dataclass
class Outcome:
    """What clients saw: seconds of each question, refusals that were tried again, and what went wrong."""

    times: list[float] = field(default_factory=list)
    refused: int = 0
    errors: list[str] = field(default_factory=list)


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--questions", type=int, default=200, help="of each level")
    parser.add_argument("--every", type=float, default=0.5, help="seconds from upload to upload; 0: none")
    parser.add_argument("--memory", type=int, nargs="*", default=[100, 1000], metavar="QUESTIONS")
    parser.add_argument("--commits", type=int, default=10, help="after which a question is timed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0.0, help="of the long run; 0: none")
    parser.add_argument("--soak-clients", type=int, default=64)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--slow", type=int, default=20)
    given = parser.parse_args()
    if given.minutes:
        LongRun(given).run()
        return
    print(
        f"{given.questions} questions a level of the {len(sample_questions())} samples, seed {given.seed}, ",
        end="",
    )
    print(f"{os.cpu_count()} cores; no model, the encoder as installed\n")
    print(
        "| clients | p50 s | p95 s | worst s | a second | server's CPU ms a question | workers' CPU s | errors ",
        end="",
    )
    print("| refused, retried | uploads done | lost | MiB: server + workers | load |")
    print("|" + " ---: |" * 13)
    for clients in given.clients:
        with serve_samples() as server:
            print(level(server, clients, given), flush=True)
    if given.memory:
        memory(given)
    if given.commits:
        commits(given)


def level(server: Served, clients: int, given: argparse.Namespace) -> str:
    """Return the line of the table for so many clients at once."""
    ask_all(server, sample_questions()[:3], 1)  # what is loaded once
    before, started = server.spent(), time.perf_counter()
    uploading = Uploading(server, given.every, random.Random(given.seed + clients))
    with uploading:
        outcome = ask_all(server, draw_questions(given.questions, given.seed), clients)
    seconds, after = time.perf_counter() - started, server.spent()
    load = os.getloadavg()[0]
    done, lost = uploading.settled()
    spent = server.spent()
    for error in outcome.errors + uploading.errors:
        print(f"error: {error}", file=sys.stderr)
    p50, p95 = np.percentile(outcome.times, [50, 95])
    each = 1000 * (after.seconds - before.seconds) / len(outcome.times)
    return (
        f"| {clients} | {p50:.2f} | {p95:.2f} | {max(outcome.times):.2f} | {len(outcome.times) / seconds:.1f} "
        f"| {each:.0f} | {spent.worker_seconds - before.worker_seconds:.1f} "
        f"| {len(outcome.errors) + len(uploading.errors)} | {outcome.refused} | {done} | {lost} "
        f"| {spent.memory:.0f} + {spent.worker_memory:.0f} | {load:.1f} |"
    )


def memory(given: argparse.Namespace) -> None:
    """Print how much memory a server takes after so many questions."""
    least = min(given.memory)
    print(f"\n| questions answered | MiB: server | workers | both, against {least} questions | load |")
    print("|" + " ---: |" * 5)
    questions, first, done = draw_questions(max(given.memory), given.seed), 0.0, 0
    with serve_samples() as server:
        for number in sorted(given.memory):
            outcome = ask_all(server, questions[done:number], 8)
            for error in outcome.errors:
                print(f"error: {error}", file=sys.stderr)
            done, spent = number, server.spent()
            whole = spent.memory + spent.worker_memory
            first = first or whole
            print(
                f"| {number} | {spent.memory:.0f} | {spent.worker_memory:.0f} | {100 * (whole / first - 1):+.1f} % "
                f"| {os.getloadavg()[0]:.1f} |",
                flush=True,
            )


def commits(given: argparse.Namespace) -> None:
    """Print what the question after an upload takes, and the same question asked again: one client, nothing else."""
    rng, question = random.Random(given.seed), sample_questions()[:1]
    rows: dict[str, list[tuple[float, float]]] = {"after an upload was done": [], "again": []}
    with serve_samples() as server:
        ask_all(server, question, 1)
        for number in range(given.commits):
            uploading = Uploading(server, 0, rng)
            uploading.send(f"commit-{number}.md")
            uploading.settled()
            time.sleep(1.0)  # what the server does by itself after a commit is done
            for times in rows.values():
                before = server.spent().seconds
                taken = ask_all(server, question, 1).times[0]
                times.append((taken, server.spent().seconds - before))
    print(f"\n| the first question ({given.commits} times) | median s | server's CPU ms |")
    print("| --- | ---: | ---: |")
    for what, times in rows.items():
        seconds, spent = np.median(np.array(times), axis=0)
        print(f"| {what} | {seconds:.3f} | {1000 * spent:.0f} |")


def ask_all(server: Served, questions: Sequence[str], clients: int) -> Outcome:
    """Ask every question, so many at once; a refused one again when the server said."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for question in questions:
        waiting.put(question)
    outcome = Outcome()

    def client() -> None:
        while True:
            try:
                question = waiting.get_nowait()
            except queue.Empty:
                return
            started = time.perf_counter()
            try:
                error, refused = ask(server, question)
            except (OSError, http.client.HTTPException, ValueError) as failed:
                error, refused = repr(failed), 0
            outcome.times.append(time.perf_counter() - started)
            outcome.refused += refused
            if error:
                outcome.errors.append(f"{question}: {error}")

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcome


def ask(server: Served, question: str, over: threading.Event | None = None) -> tuple[str, int]:
    """Return what went wrong, or nothing, and how often the question was refused. ``over`` ends the trying."""
    refused = 0
    while over is None or not over.is_set():
        status, headers, reply = server.request(
            "POST", "/questions", json.dumps({"question": question}).encode()
        )
        if status != 429:
            break
        refused += 1
        time.sleep(float(headers["Retry-After"]))
    else:
        return "", refused
    if status != 202:
        return f"{status} {reply}", refused
    event, data = server.last_event(reply["id"])
    return ("" if event == "answer" else f"{event} {data}"), refused


@dataclass
class LongRun:
    """Many clients for many minutes, with uploads and removals, slow clients and streams of events."""

    given: argparse.Namespace
    over: threading.Event = field(default_factory=threading.Event)
    times: list[tuple[float, float]] = field(default_factory=list)  # when a question ended, and its seconds
    errors: list[str] = field(default_factory=list)
    refused: int = 0
    uploaded: int = 0
    removed: set[str] = field(default_factory=set)
    streams: dict[str, int] = field(default_factory=dict)  # replies to requests for streams, by status

    def run(self) -> None:
        """Print the table."""
        given = self.given
        print(
            f"{given.minutes:g} minutes, {given.soak_clients} clients, {given.streams} streams, "
            f"{given.slow} slow clients, seed {given.seed}, {os.cpu_count()} cores; no model\n"
        )
        with serve_samples() as server:
            ask_all(server, sample_questions()[:3], 1)
            uploading = Uploading(server, 0, random.Random(given.seed))
            work = [
                *[lambda n=n: self.ask(server, n) for n in range(given.soak_clients)],
                lambda: self.upload_and_remove(server, uploading),
                *[lambda: self.send_slowly(server)] * given.slow,
                *[lambda n=n: self.follow(server, n) for n in range(given.streams)],
            ]
            threads = [threading.Thread(target=item, daemon=True) for item in work]
            for thread in threads:
                thread.start()
            self.report(server)
            self.over.set()
            for thread in threads:
                thread.join(PATIENCE)
            self.check(server, uploading)

    def report(self, server: Served) -> None:
        """Print a line for each tenth of the time."""
        print("| minute | questions | p50 s | p95 s | errors | refused, retried | uploads | removed ", end="")
        print("| MiB: server + workers | descriptors | load |")
        print("|" + " ---: |" * 11)
        started = time.perf_counter()
        for tenth in range(1, 11):
            before, errors, refused = len(self.times), len(self.errors), self.refused
            self.over.wait(max(0.0, started + 6 * self.given.minutes * tenth - time.perf_counter()))
            taken = [seconds for _, seconds in self.times[before:]] or [float("nan")]
            p50, p95 = np.percentile(taken, [50, 95])
            spent = server.spent()
            descriptors = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
            print(
                f"| {self.given.minutes * tenth / 10:g} | {len(self.times) - before} | {p50:.2f} | {p95:.2f} "
                f"| {len(self.errors) - errors} | {self.refused - refused} | {self.uploaded} | {len(self.removed)} "
                f"| {spent.memory:.0f} + {spent.worker_memory:.0f} | {descriptors} | {os.getloadavg()[0]:.1f} |",
                flush=True,
            )

    def check(self, server: Served, uploading: Uploading) -> None:
        """Print what is lost, and what came back."""
        uploading.settled()
        there = {document["document"] for document in server.request("GET", "/documents")[2]["documents"]}
        lost = set(uploading.accepted) - self.removed - there
        back = self.removed & there
        print(f"\nstreams: {dict(sorted(self.streams.items()))}; lost: {len(lost)}; came back: {len(back)}")
        for error in [*self.errors, *uploading.errors][:20]:
            print(f"error: {error}")

    def ask(self, server: Served, number: int) -> None:
        """Ask one question after another."""
        questions = draw_questions(5_000, 1_000 * self.given.seed + number)
        for question in questions:
            if self.over.is_set():
                return
            started = time.perf_counter()
            try:
                error, refused = ask(server, question, self.over)
            except (OSError, http.client.HTTPException, ValueError) as failed:
                error, refused = repr(failed), 0
            self.refused += refused
            if error:
                self.errors.append(f"{question}: {error}")
            elif not self.over.is_set():
                self.times.append((time.time(), time.perf_counter() - started))

    def upload_and_remove(self, server: Served, uploading: Uploading) -> None:
        """Upload a note every second, and remove every second one once it is a document."""
        while not self.over.wait(1.0):
            try:
                uploading.send(f"note-{self.uploaded}.md")
                self.uploaded += 1
                if self.uploaded % 2:
                    continue
                documents = server.request("GET", "/documents")[2]["documents"]
                notes = [item for item in documents if item["document"].startswith("note-")]
                if notes:
                    status, _, reply = server.request("DELETE", f"/documents/{notes[0]['key']}")
                    if status == 200:
                        self.removed.add(notes[0]["document"])
                    else:
                        self.errors.append(f"remove: {status} {reply}")
            except (OSError, http.client.HTTPException, ValueError) as failed:
                self.errors.append(f"upload or removal: {failed!r}")

    def send_slowly(self, server: Served) -> None:
        """Send a request a byte a second, again and again; the server may break it off."""
        head = (
            f"POST {server.api}/questions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\n".encode()
        )
        while not self.over.is_set():
            with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), 5) as connection:
                for byte in head:
                    connection.sendall(bytes([byte]))
                    if self.over.wait(1.0):
                        return

    def follow(self, server: Served, number: int) -> None:
        """Follow the events of uploads, without reading them fast, from one of five addresses that do not ask."""
        address = (f"127.0.0.{2 + number % 5}", 0)
        while not self.over.wait(random.random()):
            connection = http.client.HTTPConnection(
                "127.0.0.1", server.port, timeout=PATIENCE, source_address=address
            )
            try:
                connection.request("GET", f"{server.api}/uploads/events", headers={"Last-Event-ID": "0"})
                reply = connection.getresponse()
                status = str(reply.status)
                self.streams[status] = self.streams.get(status, 0) + 1
                while reply.status == 200 and not self.over.wait(0.5) and reply.readline():
                    pass
                self.over.wait(0.0 if reply.status == 200 else 10.0)
            except (OSError, http.client.HTTPException):
                self.streams["broken"] = self.streams.get("broken", 0) + 1
            finally:
                connection.close()


class Uploading:
    """A context in which a small note is uploaded every so many seconds; it knows which were accepted."""

    def __init__(self, server: Served, every: float, rng: random.Random) -> None:
        self._server, self._every, self._rng = server, every, rng
        self._words = sorted(
            {word for question in sample_questions() for word in question.split() if word.isalpha()}
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.accepted: list[str] = []
        self.errors: list[str] = []

    def __enter__(self) -> Uploading:
        if self._every:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._every:
            self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._over.wait(self._every):
            self.send(f"note-{number}.md")
            number += 1

    def send(self, name: str) -> None:
        """Upload a note of eight paragraphs; a refused one again when the server said."""
        text = "\n\n".join(" ".join(self._rng.choices(self._words, k=40)) + "." for _ in range(8))
        body = multipart((name, f"# {name}\n\n{text}\n".encode()))
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        while True:
            status, headers, reply = self._server.request("POST", "/uploads", body, kind)
            if status != 429:
                break
            time.sleep(float(headers["Retry-After"]))
        if status == 202 and not reply["refused"]:
            self.accepted.append(name)
        else:
            self.errors.append(f"{name}: {status} {reply}")

    def settled(self) -> tuple[int, int]:
        """Wait until everything is read and encoded; return how many of what was accepted are documents, and not."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            states = {upload["state"] for upload in self._server.request("GET", "/uploads")[2]["uploads"]}
            if states <= {"done", "failed"}:
                break
            time.sleep(0.2)
        there = {
            document["document"] for document in self._server.request("GET", "/documents")[2]["documents"]
        }
        done = len(there.intersection(self.accepted))
        return done, len(self.accepted) - done


@contextmanager
def serve_samples() -> Iterator[Served]:
    """Start ``clew serve`` over a new base of the sample documents."""
    with TemporaryDirectory() as folder:
        result = Path(folder) / "samples"
        with clew.open(result, create=True) as base:
            base.add([SAMPLES / "documents"])
        command = [sys.executable, "-m", "clew", "serve", "--kb", str(result), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                output = process.stdout.readline()  # clew: http://127.0.0.1:40123
                yield Served(process, int(output.rpartition(":")[2]), "/api/bases/samples")
            finally:
                process.terminate()


def sample_questions() -> list[str]:
    """Return the sample questions."""
    lines = (SAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


def draw_questions(number: int, seed: int) -> list[str]:
    """Return so many questions: every sample before one comes again, in an order of the seed's."""
    rng, every = random.Random(seed), sample_questions()
    results: list[str] = []
    while len(results) < number:
        results += rng.sample(every, len(every))
    return results[:number]


def _below(pid: int) -> list[int]:
    """Return the processes that a process has started, and theirs."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    results = [int(item) for path in children for item in path.read_text().split()]
    return results + [further for item in results for further in _below(item)]


def _stat(pid: int) -> tuple[float, float]:
    """Return the seconds of processor of a process, and of its children that have ended."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own, ended = sum(map(int, parts[11:13])), sum(map(int, parts[13:15]))
    return own / _TICK, ended / _TICK


def _memory(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:"))


if __name__ == "__main__":
    main()
