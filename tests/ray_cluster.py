"""A Ray cluster on loopback for tests and benchmarks, and the loss of its processes at random instants.

The kinds of processes are ``worker``, ``driver`` (the command itself), ``proxy`` (the process of the cluster that
speaks with the command), ``machine`` (the raylet of a second machine, which is started for it), and ``head`` (the
raylet of the first machine, with which the cluster ends).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from object_server import free_port

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples" / "documents"
#: What is added while processes are killed: a sample of each format, beside short texts and a mail.
KILL_SAMPLES = (
    "gauge-keepers-diary.txt",
    "lighter-hire-contract.pdf",
    "merrowgate-charter.md",
    "merrowgate-council-minutes.docx",
    "company-ledger-1928-29.xlsx",
    "hesper-marrable.html",
)
KINDS = ("worker", "driver", "proxy", "machine", "head")
#: On loopback Ray refuses a second machine, and else it looks for the address of its network.
_SECOND_MACHINE = """
from ray._private import ray_constants, services
ray_constants.ENABLE_RAY_CLUSTER = True
services.get_node_ip_address = lambda address=None: "127.0.0.1"
from ray.scripts.scripts import main
main()
"""
#: Processes of Ray that are no workers of tasks.
_AGENTS = ("ray::RuntimeEnv", "ray::Dashboard")


def missing_ray() -> str | None:
    """Return which package of the extra scale is needed and not installed."""
    return next((name for name in ("ray", "grpc", "obstore") if find_spec(name) is None), None)


@dataclass
class RayCluster:
    """A cluster that ``clew cluster up`` started, with a cache of its own in ``folder``."""

    folder: Path
    cpus: int = 2
    variables: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands that use the cluster."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "CLEW_CACHE": str(self.folder / "cache"),
            "CLEW_ENCODER": "clew:hops",
            "PYTHONPATH": str(ROOT / "src"),
            **self.variables,
        }

    def start_command(self, *words: object) -> subprocess.Popen[str]:
        """Start a command of clew."""
        return subprocess.Popen(
            [sys.executable, "-m", "clew", *map(str, words)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: object, status: int = 0) -> str:
        """Run a command of clew, which must end with ``status``; return what it printed."""
        child = self.start_command(*words)
        output, errors = child.communicate(timeout=300)
        assert child.returncode == status, f"{words}: {child.returncode} {output} {errors}"
        return output

    def up(self) -> None:
        self.run("cluster", "up", "--cpus", self.cpus, "--memory", 200, "--port", self.port)

    def down(self) -> None:
        self.run("cluster", "down")

    @property
    def state(self) -> dict[str, Any]:
        """The state that clew stores of the cluster."""
        return dict(json.loads((self.folder / "cache" / "cluster.json").read_text()))

    def raylets(self) -> list[int]:
        """Return the process numbers of the raylets, the first machine's first."""
        folder = self.state["folder"]
        return sorted(
            number
            for number, words in processes()
            if words[0].endswith("raylet/raylet") and folder in " ".join(words)
        )

    def workers(self) -> list[int]:
        """Return the process numbers of the workers that run tasks, or wait for one."""
        raylets = set(self.raylets())
        return [
            number
            for number, words in processes()
            if words[0].startswith("ray::") and not words[0].startswith(_AGENTS) and parent(number) in raylets
        ]

    def proxies(self) -> list[int]:
        """Return the process numbers of the processes by which commands are served."""
        holder = self.state["process"]
        return [
            number
            for number, words in processes()
            if "--mode=specific-server" in words and holder in (parent(number), parent(parent(number)))
        ]

    def add_machine(self) -> subprocess.Popen[bytes]:
        """Start a second machine of one core, on this one, and wait until its raylet runs."""
        (raylet,) = self.raylets()
        words = next(words for number, words in processes() if number == raylet)
        address = next(word.partition("=")[2] for word in words if word.startswith("--gcs-address="))
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.state["token"]}
        child = subprocess.Popen(
            [
                *(sys.executable, "-c", _SECOND_MACHINE, "start", "--block"),
                *(
                    f"--address={address}",
                    "--node-ip-address=127.0.0.1",
                    "--num-cpus=1",
                    "--disable-usage-stats",
                ),
                "--object-store-memory=80000000",
                *("--min-worker-port=0", "--max-worker-port=0"),
            ],
            env={
                **self.environment,
                **token,
                "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
                "TMPDIR": self.state["folder"],
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        wait_for(lambda: len(self.raylets()) == 2)
        return child


def processes() -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the words of the command line of each process (Linux)."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().rstrip(b"\0").decode(errors="replace").split("\0")
            if words[0]:
                yield int(path.parent.name), words


def parent(number: int) -> int:
    with suppress(OSError):
        return int((Path("/proc") / str(number) / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


def wait_for(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextmanager
def serve_cluster(folder: Path, cpus: int = 2, **variables: str) -> Iterator[RayCluster]:
    """Start a cluster on loopback whose state and documents are in ``folder``, and stop it afterwards."""
    cluster = RayCluster(folder, cpus, variables)
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()


def write_documents(folder: Path, count: int, samples: Sequence[str] | None = None) -> None:
    """Write samples (all for None), ``count`` short texts, and a mail with an attachment."""
    folder.mkdir()
    for sample in SAMPLES.iterdir():
        if samples is None or sample.name in samples:
            shutil.copy(sample, folder)
    rng = random.Random(25)
    nouns = "lighter quay ledger tide pilot crane barge mill bridge charter dredger beacon".split()
    for number in range(count):
        lines = [
            f"The {rng.choice(nouns)} of {rng.choice(nouns)} {number} passed the {rng.choice(nouns)} in 18{line}0."
            for line in range(8)
        ]
        (folder / f"note-{number:03}.md").write_text(f"# Note {number}\n\n" + "\n\n".join(lines) + "\n")
    (folder / "mail.eml").write_text(
        "From: a@example.org\nSubject: Two lighters\nMIME-Version: 1.0\n"
        'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/plain\n\nThe list is attached.\n'
        "--x\nContent-Type: text/plain; name=list.txt\n"
        'Content-Disposition: attachment; filename="list.txt"\n\nThe Bittern and the Heron lie at the quay.\n--x--\n'
    )


def read_base(path: Path) -> tuple[str, list[str], dict[str, bytes], int]:
    """Return digest and locations of a base, its vectors by the ids of their nodes, and the number of vectors."""
    from clew.store.store import Store
    from clew.store.vectors import VectorFiles

    with Store.open(path) as store:
        vectors, total = {}, 0
        for folder in store.derived.glob("vectors/*"):
            slots, rows, _ = VectorFiles(folder).open()
            total += len(rows)
            for node, vector in zip(store.snapshot().nodes(rows), slots, strict=True):
                vectors[node.id] = vector.tobytes()
        return store.digest(), sorted(store.locations()), vectors, total


@dataclass
class Tally:
    """What happened: instants at which a process of the kind was killed, commands that ended with it, repetitions."""

    instants: int = 0
    ended: int = 0
    repeated: int = 0
    bases: int = 0


def victims(cluster: RayCluster, kind: str, command: subprocess.Popen[str]) -> list[int]:
    """Return the processes of a kind that run now."""
    if kind == "driver":
        return [command.pid]
    if kind == "worker":
        return cluster.workers()
    if kind == "proxy":
        return cluster.proxies()
    return cluster.raylets()[:1] if kind == "head" else cluster.raylets()[1:]


def lose_processes(
    cluster: RayCluster, kind: str, instants: int, seed: int, longest: float, report: Callable[[str], None]
) -> Tally:
    """Kill processes of a kind at random instants, at most ``longest`` seconds apart, until there were ``instants``.

    Bases are filled by ``clew add --on local``; at most five of the instants are in the course of one. Where the
    command has ended with the process, it is given again. In the end a base must have the digest, the locations and
    the vectors of one that was filled by ``clew add`` alone, and the command must have nothing left to do.
    """
    rng, tally = random.Random(f"{kind} {seed}"), Tally()
    documents = cluster.folder / "documents"
    if not documents.exists():
        write_documents(documents, 15, KILL_SAMPLES)
        cluster.run("add", documents, "--kb", cluster.folder / "plain.clew", "--workers", 2, "--json")
    plain = read_base(cluster.folder / "plain.clew")
    while tally.instants < instants:
        base = cluster.folder / f"{kind}-{tally.bases}.clew"
        losses = min(5, instants - tally.instants)
        _fill_with_losses(cluster, kind, base, (rng, losses, longest), tally, report)
        again = json.loads(cluster.run("add", documents, "--kb", base, "--json"))
        assert not any(again[what] for what in ("added", "replaced", "failed", "encoded")), again
        result = read_base(base)
        assert result[0] == plain[0], "another digest"
        assert result[1] == plain[1], "other locations"
        assert result[2] == plain[2], "other vectors"
        assert result[3] == plain[3], "vectors twice"
        shutil.rmtree(base)
        tally.bases += 1
        report(f"{kind}: {tally}")
    return tally


def _fill_with_losses(
    cluster: RayCluster,
    kind: str,
    base: Path,
    losses: tuple[random.Random, int, float],
    tally: Tally,
    report: Callable[[str], None],
) -> None:
    """Give the command until it succeeds; meanwhile, as long as it runs, kill processes of the kind."""
    rng, left, longest = losses
    words = ("add", cluster.folder / "documents", "--kb", base, "--on", "local", "--json")
    for _ in range(40):
        machine = cluster.add_machine() if kind == "machine" and len(cluster.raylets()) == 1 else None
        command = cluster.start_command(*words)
        while left and command.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                command.wait(rng.uniform(0, longest))
            running = victims(cluster, kind, command)
            if command.poll() is None and running:
                os.kill(rng.choice(running), signal.SIGKILL)
                tally.instants, left = tally.instants + 1, left - 1
                if kind == "machine":
                    if machine is not None:
                        machine.wait(60)
                    wait_for(lambda: len(cluster.raylets()) == 1)
                    machine = cluster.add_machine()
                elif kind in {"driver", "head", "proxy"}:
                    break
        output, errors = command.communicate(timeout=300)
        if machine is not None:
            machine.terminate()
            machine.wait(60)
        if command.returncode == 0:
            return
        tally.ended += 1
        if kind != "driver":
            assert command.returncode in {1, 2}, (command.returncode, output, errors)
            report(f"  ended with {command.returncode}: {' '.join(errors.split())[-400:]}")
        if kind == "head":
            cluster.up()
        tally.repeated += 1
    raise AssertionError("the command does not succeed")
