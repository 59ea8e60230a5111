"""Reads plain data from pickles and from torch's files, without running code that they name.

A pickle is a program: it may name any function and have it called. Here each name is looked up in a short table of
our own functions, which return numbers, texts and arrays; any other name ends the reading. torch is not needed: its
files are zip archives of a pickle and the bytes of each tensor.
"""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from clew.core.errors import UnreadableFile
from clew.core.messages import ProtectedCall

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
    return _load(_PlainUnpickler(stream, _PLAIN), name)


def load_tensor(stream: IO[bytes], name: str) -> NDArray[Any]:
    """Return the tensor in a file that ``torch.save`` wrote (torch 1.6 or later). Raises UnreadableFile."""
    import numpy as np

    try:
        with zipfile.ZipFile(stream) as archive:
            (content,) = [member for member in archive.namelist() if member.endswith("/data.pkl")]
            folder = content.removesuffix("data.pkl")
            order = ">" if _read_member(archive, f"{folder}byteorder") == "big" else "<"

            def read_storage(key: str, kind: str) -> NDArray[Any]:
                return np.frombuffer(archive.read(f"{folder}data/{key}"), np.dtype(f"{order}{kind}"))

            with archive.open(content) as opened:
                array = _load(_TensorUnpickler(opened, read_storage), name)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise UnreadableFile(
            f"{name}: not a tensor of torch ({error})",
            "It must be as torch.save of torch 1.6 or later writes it",
        ) from error
    if not isinstance(array, np.ndarray):
        raise UnreadableFile(f"{name}: holds no tensor, but {type(array).__name__}")
    return array


def _read_member(archive: zipfile.ZipFile, member: str) -> str:
    return archive.read(member).decode().strip() if member in archive.namelist() else ""


def _load(reader: pickle.Unpickler, name: str) -> Any:
    try:
        return reader.load()
    except _NotPlain as error:
        raise UnreadableFile(
            f"{name}: it names '{error}', which is no plain data",
            "clew runs no code of a file; is this the published file?",
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
    """A pickle names something that is not in the table; the name."""


class _PlainUnpickler(pickle.Unpickler):
    """Looks names up in a table, and nowhere else."""

    def __init__(self, stream: IO[bytes], table: Mapping[tuple[str, str], Any]) -> None:
        super().__init__(stream)
        self._table = table

    def find_class(self, module: str, name: str) -> Any:
        """Return the table's entry for a name. Raises _NotPlain for a name that is not in the table."""
        try:
            return self._table[module, name]
        except KeyError:
            raise _NotPlain(f"{module}.{name}") from None


class _TensorUnpickler(_PlainUnpickler):
    """Also builds tensors from their storages."""

    def __init__(self, stream: IO[bytes], read_storage: Callable[[str, str], NDArray[Any]]) -> None:
        kinds = {("torch", name): kind for name, kind in _STORAGES.items()}
        rebuild = {("torch._utils", "_rebuild_tensor_v2"): ProtectedCall(_rebuild_tensor)}
        super().__init__(stream, {**_PLAIN, **kinds, **rebuild})
        self._read_storage = read_storage

    def persistent_load(self, pid: Any) -> NDArray[Any]:
        """Return the numbers of a storage: ("storage", type, key, device, count)."""
        _, kind, key, _, count = pid
        numbers = self._read_storage(str(key), str(kind))
        if len(numbers) < count:
            raise ValueError("a storage is too short")
        return numbers[:count]


def _rebuild_tensor(
    storage: NDArray[Any], offset: int, size: Sequence[int], stride: Sequence[int], *_: object
) -> NDArray[Any]:
    """Return a tensor as a view of its storage. Raises ValueError where it reaches beyond the storage."""
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
    """Stands for ``numpy.dtype``, of numbers and texts only."""

    def __init__(self, code: str, *_: object) -> None:
        self.code, self.order = code, "<"

    def __setstate__(self, state: Sequence[Any]) -> None:
        if isinstance(state[1], str) and state[1] in "<>|":
            self.order = state[1].replace("|", "<")

    def to_numpy(self) -> np.dtype[Any]:
        """Return the type of numbers or texts. Raises _NotPlain for any other."""
        import numpy as np

        dtype = np.dtype(self.code)
        if dtype.kind not in _KINDS:
            raise _NotPlain(f"numpy.dtype({self.code!r})")
        return dtype.newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """Stands for ``numpy.ndarray``; ``values`` are nested lists."""

    def __init__(self, *_: object) -> None:
        self.values: Any = []

    def __setstate__(self, state: Sequence[Any]) -> None:
        import numpy as np

        _, shape, dtype, fortran, data = state
        if isinstance(data, list):  # an array of objects, which were read as plain data themselves
            self.values = data
            return
        numbers = np.frombuffer(data, dtype.to_numpy())
        self.values = numbers.reshape(shape, order="F" if fortran else "C").tolist()


def _from_buffer(data: bytes, dtype: _Dtype, shape: Sequence[int], order: str) -> _Array:
    """Return an array from the form that it has in pickles of protocol 5."""
    array = _Array()
    array.__setstate__((1, tuple(shape), dtype, order == "F", bytes(data)))
    return array


def _scalar(dtype: _Dtype, data: bytes) -> Any:
    """Return a scalar of numpy as a number or text of Python."""
    import numpy as np

    return np.frombuffer(data, dtype.to_numpy(), 1)[0].item()


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """Return the bytes that an old pickle stores as text."""
    if encoding != "latin1":
        raise ValueError(f"bytes in {encoding}")
    return text.encode("latin1")


_PLAIN: Mapping[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): dict,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("_codecs", "encode"): ProtectedCall(_encode),
    ("numpy", "dtype"): ProtectedCall(_Dtype),
    ("numpy", "ndarray"): None,  # named, but never called
    ("numpy.core.numeric", "_frombuffer"): ProtectedCall(_from_buffer),
    ("numpy._core.numeric", "_frombuffer"): ProtectedCall(_from_buffer),
    **{
        (module, name): function
        for module in ("numpy.core.multiarray", "numpy._core.multiarray")
        for name, function in (("scalar", ProtectedCall(_scalar)), ("_reconstruct", ProtectedCall(_Array)))
    },
}


def to_list(value: Any) -> Any:
    """Return an array that was read as nested lists, any other value as it is."""
    return value.values if isinstance(value, _Array) else value
