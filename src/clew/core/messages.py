"""What a process that clew started sends back: on a descriptor of its own, and read without calling anything.

A pickle can name any function for its reader to call, so a process that was taken over by what it reads could have
its parent do what it cannot do itself. Here a pickle is built of dataclasses and errors of named modules, and of
named types, and of nothing else.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from io import BytesIO
from typing import Any, BinaryIO

from clew.core.errors import ClewError

#: The line after which a process writes messages alone; what was printed as Python started stands before it.
OUTPUT_BEGINS = "--- messages of clew ---\n"


def take_output() -> BinaryIO:
    """Return this process's standard output, for messages alone; what a library prints, whether by Python or by C,
    goes to standard error from then on."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    output.write(f"\n{OUTPUT_BEGINS}".encode())
    output.flush()
    return output


def read_output(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a process that has called :func:`take_output`, without what was printed before."""
    all_lines = iter(lines)
    for line in all_lines:
        if line == OUTPUT_BEGINS:
            yield from all_lines


def read_message(data: bytes, modules: tuple[str, ...], types: frozenset[type]) -> Any:
    """Unpickle a message, accepting few classes.

    ``modules`` are prefixes of the modules whose dataclasses and errors are accepted, ``types`` are further accepted
    types. Raises pickle.UnpicklingError for any other class and for damaged data.
    """
    try:
        return _MessageReader(data, modules, types).load()
    except (EOFError, ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise pickle.UnpicklingError(f"it sent no message ({error})") from error


class ProtectedCall:
    """A function that a pickle may call. The instruction that gives an object its state cannot set its attributes."""

    __slots__ = ("_function",)
    _function: Callable[..., Any]

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self._function(*arguments)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


class _MessageReader(pickle.Unpickler):
    def __init__(self, data: bytes, modules: tuple[str, ...], types: frozenset[type]) -> None:
        super().__init__(BytesIO(data))
        self._modules = modules
        self._types = {(kind.__module__, kind.__qualname__): kind for kind in types}

    def find_class(self, module: str, name: str) -> Any:
        """Return a class that a message may have. Nothing is imported for it, and it cannot be changed."""
        kind = self._types.get((module, name))
        if kind is None and module.startswith(self._modules):
            kind = getattr(sys.modules.get(module), name, None)
            if not isinstance(kind, type) or not (is_dataclass(kind) or issubclass(kind, ClewError)):
                kind = None
        if kind is None:
            raise pickle.UnpicklingError(f"it sent {module}.{name}, which is no part of a message")
        # A pickle may give a state to the class itself. One that has this method fails then, since it wants an
        # instance; of another, as of a path, the attributes would be set.
        return kind if hasattr(kind, "__setstate__") else ProtectedCall(kind)
