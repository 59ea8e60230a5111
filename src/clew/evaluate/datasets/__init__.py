"""Data sets in their official formats, or in clew's own, by name: ``parse_dataset("hotpotqa=dev.json")``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.core.errors import UsageError, unknown_name_error
from clew.evaluate.datasets import documents, graphs, multihop, tables
from clew.evaluate.datasets.records import distinct_texts, read_records, require_field
from clew.evaluate.examples import Example, Support


def read_own(path: Path) -> Iterator[Example]:
    """Yield the questions of a file in clew's own format. Raises UsageError, naming the line.

    Only ``question`` is required. ``answers`` (or ``answer``) is a text or a list of texts; without it the right
    response is to abstain. ``evidence`` is a list of file names, or of objects with ``document`` and optionally
    ``page`` (from 1) and ``text``. ``id`` and ``type`` are optional.

        {"question": "Who built the lighter?", "answers": ["Tolland Yard"], "evidence": [{"document": "r.pdf",
        "page": 3}]}
    """
    for place, record in read_records(path):
        value = record.get("answers", record.get("answer", ())) if isinstance(record, dict) else ()
        answers = [value] if isinstance(value, str) else value
        if not isinstance(answers, list | tuple) or not all(isinstance(answer, str) for answer in answers):
            raise UsageError(f"{place}: 'answers' is not a list of texts")
        evidence = record.get("evidence", []) if isinstance(record, dict) else []
        if not isinstance(evidence, list):
            raise UsageError(f"{place}: 'evidence' is not a list")
        question = require_field(place, record, "question")
        if not question.strip():
            raise UsageError(f"{place}: the question is empty")
        distinct_answers = distinct_texts(list(answers))
        yield Example(
            str(record.get("id") or place),
            question,
            distinct_answers,
            "span" if distinct_answers else "unanswerable",
            str(record.get("type", "")),
            tuple(_support(place, entry) for entry in evidence),
        )


def _support(place: str, evidence: Any) -> Support:
    if isinstance(evidence, str):
        return Support(title=evidence)
    page = evidence.get("page") if isinstance(evidence, dict) else None
    if not isinstance(evidence, dict) or not (evidence.get("document") or evidence.get("text")):
        raise UsageError(f"{place}: evidence is neither a file name nor an object with 'document'")
    if page is not None and (not isinstance(page, int) or page < 1):
        raise UsageError(f"{place}: 'page' is not a page number from 1: {page}")
    return Support(str(evidence.get("document", "")), page=page, text=str(evidence.get("text", "")))


#: Reads a file and yields its examples. Raises UsageError naming the line of a record in another format.
Reader = Callable[[Path], Iterator[Example]]
READERS: dict[str, Reader] = {
    "hotpotqa": multihop.read_hotpotqa,
    "2wikimultihopqa": multihop.read_hotpotqa,
    "hotpotqa-doc": multihop.read_hotpotqa_documents,
    "musique": multihop.read_musique,
    "musique-2hop": multihop.read_musique_two_hops,
    "bamboogle": multihop.read_bamboogle,
    "iirc": documents.read_iirc,
    "qasper": documents.read_qasper,
    "financebench": documents.read_financebench,
    "fever": documents.read_fever,
    "tatqa": tables.read_tatqa,
    "ottqa": tables.read_ottqa,
    "stark": graphs.read_stark,
    "metaqa": graphs.read_metaqa,
    "jsonl": read_own,
}
#: Lenient formats, and subsets of others: a hint names them only where no other format fits.
_LAST_RESORT = {"jsonl", "hotpotqa-doc", "musique-2hop"}


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A data set: a file in one format, optionally restricted to a split.

    ``split`` is a file with the ids of the split's questions, one per line; None for all questions.
    """

    name: str
    path: Path
    read: Reader
    split: Path | None = None

    def examples(self) -> Iterator[Example]:
        """Yield the questions in the order of the file, one in memory at a time.

        Raises UsageError for a record in another format, naming its line. If the first record is, the hint names the
        formats that it has instead.
        """
        seen: set[str] = set()
        # The ids of the questions of the split, None for all.
        wanted = None if self.split is None else frozenset(self.split.read_text(encoding="utf-8").split())
        try:
            for example in self.read(self.path):
                if example.id in seen:
                    raise UsageError(f"{self.path.name}: two questions have the id '{example.id}'")
                seen.add(example.id)
                if wanted is None or example.id in wanted:
                    yield example
        except UsageError as error:
            others = [] if seen else _matching_formats(self.path)
            if not others:
                raise
            hint = f"It looks like {' or '.join(others)}: --data {others[0]}={self.path}"
            raise UsageError(error.problem, hint) from error

        if wanted is not None and (missing := wanted - seen):
            raise UsageError(f"{self.split}: no question has the id '{min(missing)}'", f"In {self.path}")

    def digest(self) -> str:
        """Return the SHA-256 of the file and its split in hexadecimal digits."""
        with self.path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256")
        if self.split is not None:
            digest.update(self.split.read_bytes())
        return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _matching_formats(path: Path) -> list[str]:
    """Return the formats in which the first record of a file can be read."""
    matching = []
    for name, read in READERS.items():
        try:
            if next(iter(read(path)), None) is not None:
                matching.append(name)
        except UsageError:
            continue
    return sorted(name for name in matching if name not in _LAST_RESORT) or matching


def load_dataset(name: str, path: str | Path) -> DatasetFile:
    """Return the data set in the file ``path``, which has the format ``name``. Raises UsageError.

    ``stark_qa.csv#test`` names a split as STaRK has it: ``split/test.index`` beside the file or its folder.
    """
    if name not in READERS:
        raise unknown_name_error("form of data set", name, READERS)
    whole_path = Path(path).expanduser()
    file, mark, split = str(whole_path).rpartition("#")
    if mark and not whole_path.exists():
        return DatasetFile(name, Path(file), READERS[name], find_split(Path(file), split))
    if not whole_path.is_file():
        raise UsageError(f"no file at {whole_path}", f"Name the file of {name}: --data {name}=PATH")
    return DatasetFile(name, whole_path, READERS[name])


def find_split(file: Path, name: str) -> Path:
    """Return the file with the ids of a split. Raises UsageError for an unknown split."""
    if not file.is_file():
        raise UsageError(f"no file at {file}", "Name the file of the questions before the '#'")
    folders = [parent / "split" for parent in file.absolute().parents[:2] if (parent / "split").is_dir()]
    # The folder beside the file wins over the one beside its folder.
    splits = {path.stem: path for folder in reversed(folders) for path in sorted(folder.glob("*.index"))}
    if name not in splits:
        raise unknown_name_error(f"part of {file.name}", name, splits or {"(none)": None})
    return splits[name]


def parse_dataset(data: str) -> DatasetFile:
    """Return the data set of ``NAME=PATH``. Raises UsageError."""
    name, equals, path = data.partition("=")
    if not equals:
        raise UsageError(f"no data set in '{data}'", "Write NAME=PATH, such as hotpotqa=train.json")
    return load_dataset(name, path)
