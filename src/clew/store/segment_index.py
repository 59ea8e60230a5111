"""The segments of a base on disk: which there are, bringing them up to date, merging them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.errors import Damaged
from clew.store import segments
from clew.store.array_files import file_checksum, write_manifest
from clew.store.database import Database
from clew.store.documents import DocumentEntry, read_entries, read_parsed_document
from clew.store.segments import SEGMENTS_MAKER, Segment

MANIFEST = "segments.json"
#: Nodes that are indexed at a time: enough to make few segments, little enough to hold in memory.
BATCH = 100_000
#: A segment with a larger share of removed nodes is written anew.
MAX_DEAD_SHARE = 0.2
#: A segment is merged into the one before it once it has this share of its size, so that a base has a
#: logarithmic number of segments and a node is rewritten a logarithmic number of times.
MERGE_RATIO = 0.5


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    """The segments under ``folder``. Writing methods are called under ``index.lock``."""

    folder: Path

    def load(self) -> list[Segment]:
        """Return the segments in order of rows; none where one is damaged, so that all are made anew.

        All, because what is indexed later must have later rows: merging and searching rely on it.
        """
        listed = self.manifest()
        while True:
            try:
                return [segments.load_segment(one["name"], self.folder, one["files"]) for one in listed]
            except (Damaged, OSError, KeyError):
                before, listed = listed, self.manifest()
                if listed == before:
                    return []
                # Another process merged segments between our reading the list and opening what it names.

    def manifest(self) -> list[dict[str, Any]]:
        """Return what the manifest lists; nothing if there is none that this version can use."""
        try:
            content = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
            return list(content["segments"]) if content["maker"] == SEGMENTS_MAKER else []
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def unindexed_documents(
        self, truth: Sequence[DocumentEntry], have: Sequence[Segment]
    ) -> list[DocumentEntry]:
        """Return the documents that no segment holds."""
        known = {(int(d[0]), int(d[2])) for one in have for d in one.documents}
        return [one for one in truth if (one.first, one.stamp) not in known]

    def catch_up(self, database: Database, progress: Callable[[int, int], None]) -> int:
        """Index every document that is missing; drop what is gone; return how many documents were indexed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        have = self.load()
        files = {one["name"]: one["files"] for one in self.manifest()}
        with database.read_transaction() as connection:
            truth = read_entries(connection)
        missing = self.unindexed_documents(truth, have)
        done = 0
        for batch in _batches(missing):
            made = self._build(database, batch, have)
            done += len(batch)
            if made is not None:
                files[made.name] = segments.save_segment(made, self.folder)
                have = sorted([*have, made], key=lambda one: int(one.documents[0, 0]))
                self._keep(have, files)
            progress(done, len(missing))
        self._tidy(have, files, truth)
        return done

    def _build(
        self, database: Database, batch: Sequence[DocumentEntry], have: Sequence[Segment]
    ) -> Segment | None:
        read = []
        with database.read_transaction() as connection:
            # One that was removed since the list was made is left out.
            alive = {one.first: one.stamp for one in read_entries(connection)}
            for one in batch:
                if alive.get(one.first) == one.stamp:
                    read.append((one.first, one.stamp, read_parsed_document(connection, one).nodes))
        return segments.build_segment(_fresh_name(self.folder, have), read) if read else None

    def _tidy(self, have: list[Segment], files: dict[str, Any], truth: Sequence[DocumentEntry]) -> None:
        alive = {(one.first, one.stamp) for one in truth}

        def live(one: Segment) -> np.ndarray[Any, np.dtype[np.bool_]]:
            return np.array([(int(d[0]), int(d[2])) in alive for d in one.documents], dtype=np.bool_)

        for group in _to_merge(have, [float(one.documents[live(one), 1].sum()) for one in have]):
            made = segments.merge_segments(
                _fresh_name(self.folder, have), group, [live(one) for one in group]
            )
            have = [one for one in have if one not in group]
            if len(made.documents):
                files[made.name] = segments.save_segment(made, self.folder)
                have = sorted([*have, made], key=lambda one: int(one.documents[0, 0]))
        self._keep(have, files)

    def _keep(self, have: Sequence[Segment], files: dict[str, Any]) -> None:
        listed = [{"name": one.name, "files": files[one.name]} for one in have]
        documents = [[int(d[0]), int(d[2])] for one in have for d in one.documents]
        content = {"maker": SEGMENTS_MAKER, "segments": listed, "documents": documents}
        write_manifest(self.folder / MANIFEST, content)
        names = {one.name for one in have}
        for folder in self.folder.glob("s*"):
            if folder.is_dir() and folder.name not in names:
                shutil.rmtree(folder, ignore_errors=True)

    def find_faults(self) -> list[str]:
        """Return which files do not have the checksum that the manifest gives."""
        found = []
        for one in self.manifest():
            for file, (_, wanted) in one["files"].items():
                path = self.folder / one["name"] / file
                if not path.is_file() or file_checksum(path) != wanted:
                    found.append(f"{one['name']}/{file}")
        return found

    def delete(self) -> None:
        """Delete every segment; the next catch-up makes them anew."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _batches(missing: Sequence[DocumentEntry]) -> Iterator[list[DocumentEntry]]:
    batch: list[DocumentEntry] = []
    nodes = 0
    for one in missing:
        batch.append(one)
        nodes += one.end - one.first
        if nodes >= BATCH:
            yield batch
            batch, nodes = [], 0
    if batch:
        yield batch


def _to_merge(have: Sequence[Segment], sizes: Sequence[float]) -> list[list[Segment]]:
    """Return runs of neighbouring segments to write as one: small after large, or with many removed."""
    runs: list[list[int]] = []
    for number in range(len(have)):
        runs.append([number])
        while len(runs) > 1 and sum(sizes[n] for n in runs[-1]) > MERGE_RATIO * sum(
            sizes[n] for n in runs[-2]
        ):
            last = runs.pop()
            runs[-1] += last
    dead = [
        size < (1 - MAX_DEAD_SHARE) * float(one.documents[:, 1].sum())
        for one, size in zip(have, sizes, strict=True)
    ]
    return [[have[n] for n in run] for run in runs if len(run) > 1 or dead[run[0]]]


def _fresh_name(folder: Path, have: Sequence[Segment]) -> str:
    taken = {one.name for one in have} | {path.name.removesuffix(".new") for path in folder.glob("s*")}
    number = 1
    while f"s{number}" in taken:
        number += 1
    return f"s{number}"
