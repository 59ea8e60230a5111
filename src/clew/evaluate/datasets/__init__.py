"""Data sets in their official forms, by name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # noqa: F401

from clew.core.errors import UsageError, unknown_name_error
from clew.evaluate.examples import Example

#: Forms that are named in a hint only where no other fits: lenient ones, and parts of others.
_SPECIAL = {"jsonl", "hotpotqa-doc", "musique-2hop"}
#: Reads a file: yields examples. Raises UsageError naming the place of what is wrong.
Reader = Callable[[Path], Iterator[Example]]


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A data set: a file, read by the reader of its form. ``split`` is the file of the part of it that is asked: the
    ids of its questions, one a line; None: all are."""

    name: str
    path: Path
    read: Reader
    split: Path | None = None

    def examples(self) -> Iterator[Example]:
        """Yield the questions in the order of the file, one in memory at a time.

        Raises UsageError for a record in another form, naming its line; where the first one is, and the file
        has the form of another data set, the hint says which.
        """
        seen: set[str] = set()
        wanted = self._wanted()
        try:
            for example in self.read(self.path):
                if example.id in seen:
                    raise UsageError(f"{self.path.name}: two questions have the id '{example.id}'")
                seen.add(example.id)
                if wanted is None or example.id in wanted:
                    yield example
        except UsageError as error:
            others = [] if seen else _fitting(self.path)
            if not others:
                raise
            hint = f"It looks like {' or '.join(others)}: --data {others[0]}={self.path}"
            raise UsageError(error.problem, hint) from error

        if wanted is not None and (missing := wanted - seen):
            raise UsageError(f"{self.split}: no question has the id '{min(missing)}'", f"In {self.path}")

    def _wanted(self) -> frozenset[str] | None:
        """Return the ids of the questions of the split; None for all."""
        if self.split is None:
            return None
        return frozenset(self.split.read_text(encoding="utf-8").split())

    def digest(self) -> str:
        """Return the SHA-256 of the file's bytes and of its split's, in hexadecimal digits."""
        with self.path.open("rb") as stream:
            made = hashlib.file_digest(stream, "sha256")
        if self.split is not None:
            made.update(self.split.read_bytes())
        return made.hexdigest()


def _fitting(path: Path) -> list[str]:
    """Return the forms whose reader takes the first record of a file; the lenient ones where no other does."""
    found = []
    for name, read in _readers().items():
        try:
            if next(iter(read(path)), None) is not None:
                found.append(name)
        except UsageError:
            continue
    return sorted(name for name in found if name not in _SPECIAL) or found


def _readers() -> dict[str, Reader]:
    from clew.evaluate.datasets import claims, documents, graphs, multihop, own

    return {
        "hotpotqa": multihop.read_hotpotqa,
        "2wikimultihopqa": multihop.read_hotpotqa,
        "hotpotqa-doc": multihop.read_hotpotqa_documents,
        "musique": multihop.read_musique,
        "musique-2hop": multihop.read_musique_two_hops,
        "iirc": documents.read_iirc,
        "qasper": documents.read_qasper,
        "financebench": documents.read_financebench,
        "fever": claims.read_fever,
        "bamboogle": multihop.read_bamboogle,
        "stark": graphs.read_stark,
        "metaqa": graphs.read_metaqa,
        "jsonl": own.read_own,
    }


def dataset_forms() -> list[str]:
    """Return the names of the forms that can be read."""
    return sorted(_readers())


def load_dataset(name: str, path: str | Path) -> DatasetFile:
    """Return the data set in ``path``, which has the official form of ``name``. Raises UsageError.

    ``stark_qa.csv#test`` names a part of it: ``split/test.index`` beside the file or its folder, as STaRK has it.
    """
    readers = _readers()
    if name not in readers:
        raise unknown_name_error("form of data set", name, readers)
    found = Path(path).expanduser()
    file, mark, part = str(found).rpartition("#")
    if mark and not found.exists():
        return DatasetFile(name, Path(file), readers[name], find_split(Path(file), part))
    if not found.is_file():
        raise UsageError(f"no file at {found}", f"Name the file of {name}: --data {name}=PATH")
    return DatasetFile(name, found, readers[name])


def find_split(file: Path, part: str) -> Path:
    """Return the file of a part of a data set. Raises UsageError where there is none of that name."""
    if not file.is_file():
        raise UsageError(f"no file at {file}", "Name the file of the questions before the '#'")
    folders = [one / "split" for one in file.absolute().parents[:2] if (one / "split").is_dir()]
    known = {one.stem: one for folder in reversed(folders) for one in sorted(folder.glob("*.index"))}
    if part not in known:
        raise unknown_name_error(f"part of {file.name}", part, known or {"(none)": None})
    return known[part]


def parse_dataset(data: str) -> DatasetFile:
    """Return the data set of ``NAME=PATH``. Raises UsageError."""
    name, equals, path = data.partition("=")
    if not equals:
        raise UsageError(f"no data set in '{data}'", "Write NAME=PATH, such as hotpotqa=train.json")
    return load_dataset(name, path)
