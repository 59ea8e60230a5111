"""Run the command line and count what it enters: python tests/entered.py ARGUMENTS...

Writes the number of modules and of functions of clew that were entered, as the last line of standard error. A
function is its file and qualified name; bodies of modules, comprehensions, generator expressions and lambdas are no
functions of their own, so that every version of Python counts alike.
"""

from __future__ import annotations

import runpy
import sys
import threading
from pathlib import Path
from types import FrameType

SOURCE = str(Path(__file__).parents[1] / "src" / "clew")


def count_entered(arguments: list[str]) -> tuple[int, int]:
    """Return how many modules and functions of clew a command enters, in all of its threads."""
    entered: set[tuple[str, str]] = set()

    def record(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            entered.add((code.co_filename, code.co_qualname))

    sys.argv = ["clew", *arguments]
    threading.setprofile(record)
    sys.setprofile(record)
    try:
        runpy.run_module("clew", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = {entry for entry in entered if not entry[1].endswith(">")}
    return len({path for path, _ in functions}), len(functions)


if __name__ == "__main__":
    modules, functions = count_entered(sys.argv[1:])
    sys.stderr.write(f"{modules} {functions}\n")
