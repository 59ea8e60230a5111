"""A Ray cluster of this machine alone, for ``--on local``: started, found again, and stopped.

Ray runs whatever reaches its ports. So this one listens on loopback only, and asks for a token that the user alone
can read. Its files lie in a folder of its own, which is deleted when it stops, since they may have texts of documents
in them. It reports nothing to anybody.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from clew.core.config import cache_path, environment_with
from clew.core.errors import RemoteError, UsageError, require_packages

LOOPBACK = "127.0.0.1"
#: The port of Ray's client, and MiB of memory for what tasks send and return, unless others are given.
PORT, OBJECT_MEMORY = 10001, 200
#: Seconds that starting may take, and stopping, on a busy machine.
_START_LIMIT, _STOP_LIMIT = 90.0, 40.0
#: Ray refuses less memory for objects than this, in bytes.
_LEAST_MEMORY = 80 << 20


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A cluster that was started here: the process that holds it, its port and token, and the folder of its files."""

    process: int
    port: int
    token: str
    folder: str

    @property
    def address(self) -> str:
        """The address that clients connect to."""
        return f"ray://{LOOPBACK}:{self.port}"

    def client_environment(self) -> dict[str, str]:
        """Return the environment variables by which Ray's client is let in."""
        return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}

    def answers(self) -> bool:
        """Return whether something listens at the port."""
        with socket.socket() as client:
            client.settimeout(2)
            return client.connect_ex((LOOPBACK, self.port)) == 0


def state_file() -> Path:
    """Return the file that says which cluster runs here."""
    return cache_path() / "cluster.json"


def read_local_cluster() -> LocalCluster | None:
    """Return the cluster that was started here and answers, or None."""
    cluster = _read_state()
    return cluster if cluster is not None and cluster.answers() else None


def _read_state() -> LocalCluster | None:
    try:
        return LocalCluster(**json.loads(state_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def start_local_cluster(
    cores: int | None = None, memory: int = OBJECT_MEMORY, port: int = PORT
) -> LocalCluster:
    """Start a cluster of this machine with ``cores`` (default: all) and ``memory`` MiB for objects.

    Raises UsageError where one runs, or the port is taken; MissingExtra; RemoteError where Ray does not start.
    """
    require_packages("scale", "ray", "grpc", part="Ray")
    if sys.platform == "win32":
        raise UsageError("a local cluster needs Linux or macOS", "Name a cluster elsewhere: ray://HOST:10001")
    if (running := read_local_cluster()) is not None:
        raise UsageError(
            f"a cluster runs on this machine: {running.address}", "To stop it: clew cluster down"
        )
    stop_local_cluster()  # what is left of an earlier one
    with socket.socket() as probe:
        if probe.connect_ex((LOOPBACK, port)) == 0:
            raise UsageError(f"the port {port} is taken", "Name another: clew cluster up --port 10002")
    # Not in the cache: paths of sockets are short, and the cache is deep in some homes.
    folder = Path(tempfile.mkdtemp(prefix="clew-ray-"))
    token, log = secrets.token_hex(32), folder / "start.log"
    # Ray opens the folder that it is given to everybody; the one around it stays closed.
    inner = folder / "ray"
    inner.mkdir()
    command = [
        *(sys.executable, "-c", "from ray.scripts.scripts import main; main()", "start", "--head", "--block"),
        *(f"--node-ip-address={LOOPBACK}", "--port=0", f"--ray-client-server-port={port}"),
        # Random ones. By default workers take ports from 10002 on, and the client's must not be among them.
        *("--min-worker-port=0", "--max-worker-port=0"),
        *(f"--num-cpus={cores or os.cpu_count() or 1}", "--num-gpus=0"),
        f"--object-store-memory={max(memory << 20, _LEAST_MEMORY)}",
        *("--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={inner}"),
    ]
    variables = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
        # Seconds for the process that serves a command to start, on a busy machine, too; by default 30.
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "90",
        # By default workers give way to whatever else runs, at 15, and hardly work beside it.
        "RAY_worker_niceness": "0",
        # Elsewhere than on Linux Ray keeps to loopback unless this is 1; on Linux it would listen on all addresses.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # Files of workers are deleted with the cluster.
        "TMPDIR": str(inner),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment_with(variables),
            cwd="/",
            start_new_session=True,  # Ctrl-C in this terminal is not for it
        )
    cluster = LocalCluster(process.pid, port, token, str(folder))
    _write_state(cluster)
    _await_start(cluster, process, log)
    return cluster


def _await_start(cluster: LocalCluster, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_LIMIT
    while not cluster.answers():
        if process.poll() is not None or time.monotonic() > deadline:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            stop_local_cluster()
            raise RemoteError(f"Ray did not start: {lines[-1] if lines else 'it says nothing'}")
        time.sleep(0.1)


def stop_local_cluster() -> LocalCluster | None:
    """Stop the cluster that was started here, and delete its files; return it, or None where there was none."""
    cluster = _read_state()
    if cluster is None:
        return None
    deadline = time.monotonic() + _STOP_LIMIT
    if cluster.process in _processes_of(cluster):
        with suppress(OSError):
            os.kill(cluster.process, signal.SIGTERM)
        while cluster.process in _processes_of(cluster) and time.monotonic() < deadline:
            time.sleep(0.1)
    # Nothing is left, unless the process that holds the others was killed.
    for process in _processes_of(cluster):
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)
    shutil.rmtree(cluster.folder, ignore_errors=True)
    state_file().unlink(missing_ok=True)
    return cluster


def _write_state(cluster: LocalCluster) -> None:
    path = state_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    # Readable by the user alone from the start: whoever knows the token can run programs.
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        json.dump(asdict(cluster), stream)
    temporary.replace(path)


def _processes_of(cluster: LocalCluster) -> set[int]:
    """Return the running processes that were started with the cluster's folder on their command line, so that no
    other process is ended that has got the number of an old one."""
    return {process for process, command in _list_commands() if cluster.folder in command}


def _list_commands() -> Iterator[tuple[int, str]]:
    if sys.platform == "linux":
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                yield int(path.parent.name), path.read_text(encoding="utf-8", errors="replace")
        return
    listed = subprocess.run(["ps", "-xo", "pid=,args="], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        number, _, command = line.strip().partition(" ")
        yield int(number), command
