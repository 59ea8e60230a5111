"""What a confined process may send, and what nobody unpickles."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from uuid import UUID

import pytest

from clew.core.errors import UnreadableFile
from clew.core.messages import read_message
from clew.core.types import Location

MODULES = ("clew.core.",)


class Call:
    """Its pickle has its reader call a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("value", [Location("/a", "/", 1, 2, 3), [{"a": (1, b"b", None)}], Path("/a/b.txt")])
def test_documents_and_plain_values_are_read(value):
    assert read_message(pickle.dumps(value), MODULES, frozenset({type(Path())})) == value


def test_errors_are_read():
    error = read_message(pickle.dumps(UnreadableFile("is empty", "Fill it")), MODULES, frozenset())
    assert (type(error), error.problem, error.hint) == (UnreadableFile, "is empty", "Fill it")


def test_functions_are_not_called(tmp_path):
    folder = tmp_path / "made"
    for call in (
        Call(os.mkdir, str(folder)),
        Call(eval, f"__import__('os').mkdir({str(folder)!r})"),
        Call(getattr, "a", "b"),
    ):
        with pytest.raises(pickle.UnpicklingError, match=r"it sent .*, which is no part of a message"):
            read_message(pickle.dumps([call]), MODULES, frozenset())
    assert not folder.exists()


@pytest.mark.parametrize(
    "text", ["cclew.core.text\nre\n.", "cclew.core.text\nshorten\n.", "cclew.core.errors\nos.system\n."]
)
def test_modules_and_functions_of_clew_are_no_part_of_a_message(text):
    with pytest.raises(pickle.UnpicklingError, match="no part of a message"):
        read_message(text.encode(), MODULES, frozenset())


def test_a_module_is_not_imported_for_a_message():
    assert "this" not in sys.modules
    with pytest.raises(pickle.UnpicklingError):
        read_message(b"cthis\nA\n.", ("this",), frozenset())
    assert "this" not in sys.modules


@pytest.mark.parametrize("kind", [Location, UnreadableFile, type(Path()), UUID])
def test_a_message_cannot_change_a_class(kind):
    """A pickle may give a class a state; here attributes as those of a class with slots."""
    data = f"c{kind.__module__}\n{kind.__qualname__}\nN}}S'spoilt'\nI1\ns".encode() + b"\x86b."
    with pytest.raises(pickle.UnpicklingError):
        read_message(data, MODULES, frozenset({type(Path()), UUID}))
    assert not hasattr(kind, "spoilt")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no pickle",
        pickle.dumps(["a"])[:-3],
        b"I1\nb.",
        b"cclew.core.types\nLocation\n)R.",
        b"(lp0\n(dp1\nR.",
    ],
)
def test_what_is_no_pickle_is_no_message(data):
    with pytest.raises(pickle.UnpicklingError):
        read_message(data, MODULES, frozenset())


def test_a_path_is_read_only_where_it_is_expected():
    with pytest.raises(pickle.UnpicklingError, match="Path"):
        read_message(pickle.dumps(Path("/a")), MODULES, frozenset())
