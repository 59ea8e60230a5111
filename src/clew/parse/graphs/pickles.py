"""Plain data out of pickles and out of torch's files, without running anything that they ask for.

A pickle is a program: it may name any function and have it called. Here every name that it gives is looked up in a
short table of our own functions, which make numbers, texts and arrays; any other name ends the reading. torch is not
needed: its files are zip archives of a pickle and of the bytes of each tensor.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from clew.core.errors import UnreadableFile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: The types of numbers that a tensor's storage may have.
_STORAGES = {
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
    "FloatStorage": "f4",
    "DoubleStorage": "f8",
}
#: Kinds of numpy's types that are numbers or texts; an object could be anything.
_KINDS = frozenset("biufSU")


def load_plain(stream: IO[bytes], name: str) -> Any:
    """Return the plain data in a pickle: dictionaries, lists, texts, numbers. Raises UnreadableFile."""
    return _read(_Plain(stream, _PLAIN), name)


def load_tensor(stream: IO[bytes], name: str) -> NDArray[Any]:
    """Return the tensor in a file that ``torch.save`` wrote (torch 1.6 or later). Raises UnreadableFile."""
    import numpy as np

    try:
        with zipfile.ZipFile(stream) as archive:
            (content,) = [one for one in archive.namelist() if one.endswith("/data.pkl")]
            folder = content.removesuffix("data.pkl")
            order = ">" if _text(archive, f"{folder}byteorder") == "big" else "<"

            def storage(key: str, kind: str) -> NDArray[Any]:
                return np.frombuffer(archive.read(f"{folder}data/{key}"), np.dtype(f"{order}{kind}"))

            with archive.open(content) as opened:
                found = _read(_Tensors(opened, storage), name)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise UnreadableFile(
            f"{name}: not a tensor of torch ({error})",
            "It must be as torch.save of torch 1.6 or later writes it",
        ) from error
    if not isinstance(found, np.ndarray):
        raise UnreadableFile(f"{name}: holds no tensor, but {type(found).__name__}")
    return found


def _text(archive: zipfile.ZipFile, member: str) -> str:
    return archive.read(member).decode().strip() if member in archive.namelist() else ""


def _read(reader: pickle.Unpickler, name: str) -> Any:
    try:
        return reader.load()
    except _NotPlain as error:
        raise UnreadableFile(
            f"{name}: it asks for '{error}', which is no plain data",
            "clew runs nothing that a file asks for; is it really the published one?",
        ) from error
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
    ) as error:
        raise UnreadableFile(f"{name}: damaged, or not a pickle ({error})") from error


class _NotPlain(Exception):
    """The name of something that would have to be run."""


class _Call:
    """A function of the table. A pickle may also set attributes of what it was given; it cannot of this."""

    __slots__ = ("_made",)
    _made: Callable[..., Any]

    def __init__(self, made: Callable[..., Any]) -> None:
        object.__setattr__(self, "_made", made)

    def __call__(self, *arguments: Any) -> Any:
        return self._made(*arguments)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


class _Plain(pickle.Unpickler):
    """Finds names in a table, and nowhere else."""

    def __init__(self, stream: IO[bytes], known: Mapping[tuple[str, str], Any]) -> None:
        super().__init__(stream)
        self._known = known

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name. Raises _NotPlain for all that is not in the table."""
        try:
            return self._known[module, name]
        except KeyError:
            raise _NotPlain(f"{module}.{name}") from None


class _Tensors(_Plain):
    """The same, with the storages of tensors."""

    def __init__(self, stream: IO[bytes], storage: Callable[[str, str], NDArray[Any]]) -> None:
        kinds = {("torch", name): kind for name, kind in _STORAGES.items()}
        more = {("torch._utils", "_rebuild_tensor_v2"): _Call(_tensor)}
        super().__init__(stream, {**_PLAIN, **kinds, **more})
        self._storage = storage

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        """Return the numbers of a storage: ("storage", type, key, device, count)."""
        _, kind, key, _, count = pid
        found = self._storage(str(key), str(kind))
        if len(found) < count:
            raise ValueError("a storage is too short")
        return found[:count]


def _tensor(
    storage: NDArray[Any], offset: int, size: Sequence[int], stride: Sequence[int], *_: object
) -> NDArray[Any]:
    """Return the part of a storage that a tensor is."""
    import numpy as np

    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    empty = 0 in size
    if (
        offset < 0
        or min(stride, default=0) < 0
        or min(size, default=0) < 0
        or (not empty and last >= len(storage))
    ):
        raise ValueError("a tensor reaches beyond its storage")
    if empty:
        return np.empty(tuple(size), storage.dtype)
    strides = tuple(step * storage.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(storage[offset:], tuple(size), strides, writeable=False)


class _Dtype:
    """What stands for ``numpy.dtype``: numbers and texts alone."""

    def __init__(self, said: str, *_: object) -> None:
        self.said, self.order = said, "<"

    def __setstate__(self, state: Sequence[Any]) -> None:
        if isinstance(state[1], str) and state[1] in "<>|":
            self.order = state[1].replace("|", "<")

    def made(self) -> np.dtype[Any]:
        """Return the type of numbers or texts. Raises _NotPlain for any other."""
        import numpy as np

        found = np.dtype(self.said)
        if found.kind not in _KINDS:
            raise _NotPlain(f"numpy.dtype({self.said!r})")
        return found.newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """What stands for ``numpy.ndarray``."""

    def __init__(self, *_: object) -> None:
        self.values: Any = []

    def __setstate__(self, state: Sequence[Any]) -> None:
        import numpy as np

        _, shape, dtype, fortran, data = state
        if isinstance(data, list):  # an array of objects: they were read as plain data themselves
            self.values = data
            return
        found = np.frombuffer(data, dtype.made())
        self.values = found.reshape(shape, order="F" if fortran else "C").tolist()


def _from_buffer(data: bytes, dtype: _Dtype, shape: Sequence[int], order: str) -> _Array:
    """Return an array as pickles of protocol 5 keep it."""
    made = _Array()
    made.__setstate__((1, tuple(shape), dtype, order == "F", bytes(data)))
    return made


def _scalar(dtype: _Dtype, data: bytes) -> Any:
    """Return a number or text of numpy as Python's own."""
    import numpy as np

    return np.frombuffer(data, dtype.made(), 1)[0].item()


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """Return bytes that an old pickle keeps as text."""
    if encoding != "latin1":
        raise ValueError(f"bytes in {encoding}")
    return text.encode("latin1")


_PLAIN: Mapping[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): dict,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("_codecs", "encode"): _Call(_encode),
    ("numpy", "dtype"): _Call(_Dtype),
    ("numpy", "ndarray"): None,  # named, and never made
    ("numpy.core.numeric", "_frombuffer"): _Call(_from_buffer),
    ("numpy._core.numeric", "_frombuffer"): _Call(_from_buffer),
    **{
        (module, name): stands
        for module in ("numpy.core.multiarray", "numpy._core.multiarray")
        for name, stands in (("scalar", _Call(_scalar)), ("_reconstruct", _Call(_Array)))
    },
}


def to_list(value: Any) -> Any:
    """Return an array that was read as a list, anything else as it is."""
    return value.values if isinstance(value, _Array) else value
