"""A library that prints, as some do: when Python starts, and for as long as the process runs; by Python, by C's own
buffers, and straight into the descriptor."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

_NOISE = """
    import ctypes, os, sys, threading

    def print_noise():
        print("\\rnoise of Python", flush=True)
        sys.__stdout__.write("{\\"noise\\": 1}\\n")
        sys.__stdout__.flush()
        library = ctypes.CDLL(None)
        library.puts(b"\\rnoise of C")
        library.fflush(None)
        os.write(1, b"\\x80\\x05\\xff noise without an end of line")

    def go_on():
        while True:
            try:
                print_noise()
            except (OSError, ValueError):
                pass
            gone.wait(0.002)

    gone = threading.Event()
    print_noise()
    threading.Thread(target=go_on, daemon=True).start()
"""


def install_noise(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every Python that this process starts from now on print."""
    (folder / "sitecustomize.py").write_text(textwrap.dedent(_NOISE))
    monkeypatch.setenv("PYTHONPATH", str(folder))
