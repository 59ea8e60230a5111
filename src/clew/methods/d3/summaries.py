"""Whether a summary says only what its section says: the limit that D3's authors leave open (Limitations).

What is checked is what can be: every number and every name of a summary must occur in its section. A number
occurs if the section has it, thousands separators aside; 1.5 billion made of 1,500 million does not, and is
refused: a reader could not find it. A name occurs if its words stand there in a row, or, where several names
were run together, if each of its words does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from clew.core.component import Resources
from clew.core.errors import StoreError, unknown_name_error
from clew.core.prompts.templates import load_prompt
from clew.core.steps import SummariseStep, SummaryFallbackStep
from clew.core.text import (
    MAX_NAME_WORDS,
    STOPWORDS,
    candidate_names,
    index_terms,
    normalise_name,
    sentence_spans,
)
from clew.core.types import KINDS, PAGE, ROW, TABLE, Usage
from clew.methods.d3.segments import word_vectors
from clew.methods.d3.summarisers import (
    ExtractiveSummariser,
    ModelSummariser,
    SectionText,
    Summariser,
    select_covering,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Vectors
    from clew.core.protocols import Encoder, Snapshot, Trail
    from clew.core.types import Node
    from clew.methods.d3.outline import Outline, Outlines, Section

#: Words that summaries start sentences with, which are capitalised for that alone.
_OPENERS = frozenset(
    """according additionally although among article based besides company contains covers defines describes despite
    details discusses document explains finally first following furthermore given gives here highlights however
    importantly includes information instead it's lists many meanwhile moreover nevertheless notably note overall
    paragraph part passage presents provides report reports second section several shows similarly since some
    specifically states summary table text therefore third thus today topics two various""".split()
)


def find_invented(summary: str, source: str) -> list[str]:
    """Return the numbers and names of ``summary`` that ``source``, the section with its name, does not have.

    In the order of the summary, each once; empty for a faithful one.
    """
    held = set(index_terms(source))
    words = f" {normalise_name(source)} "
    found = [number for number in _numbers(summary) if not set(index_terms(number)) <= held]
    for name in _names(summary):
        plain = normalise_name(name)
        if f" {plain} " not in words and not all(set(index_terms(part)) <= held for part in plain.split()):
            found.append(name)
    return list(dict.fromkeys(found))


def _numbers(text: str) -> Iterator[str]:
    for word in text.split():
        trimmed = word.strip("()[]{}\"'“”‘’.,;:!?*_")
        if any(char.isdigit() for char in trimmed):
            yield trimmed


def _names(text: str) -> Iterator[str]:
    """Yield the longest names of a text, but for a single word at a sentence's start that is usual there."""
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        reached = 0
        spans = [(first, last) for _, first, last in candidate_names(sentence)]
        for first, last in sorted(spans, key=lambda span: (span[0], -span[1])):
            name = sentence[first:last]
            if first < reached or any(char.isdigit() for char in name):
                continue
            reached = last
            opener = first == 0 and name.casefold() in STOPWORDS | _OPENERS
            if not opener and len(name.split()) <= MAX_NAME_WORDS:
                yield name


#: Sections that are summarised between two writes: what a kill loses at the most.
BATCH_SIZE = 16
#: Rows by which a table is described.
SHOWN_ROW_NAMES = 24


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary as it is kept. ``invented`` are the numbers and names of what the summariser wrote that its section
    does not have; where there are any, ``text`` is not the summariser's but the extractive one."""

    text: str
    invented: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return what is stored."""
        shape = [self.text, *self.invented]
        return json.dumps(shape, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, value: bytes) -> Summary:
        """Return what :meth:`packed` wrote."""
        text, *invented = json.loads(value.decode("utf-8", "surrogatepass"))
        return cls(text, tuple(invented))


@dataclass(frozen=True, slots=True)
class Summaries:
    """The summaries of one summariser.

    Without a ``summariser`` they are the extractive ones of ``fallback``, which are made when they are asked for.
    Those of a summariser are made on request (:meth:`make`); ``fallback`` stands in for what is not made yet, or
    was not faithful. Where its ``words`` are 0 there are no summaries: all are empty.
    """

    snapshot: Snapshot
    fallback: ExtractiveSummariser
    summariser: Summariser | None = None
    batch_size: int = BATCH_SIZE

    @property
    def name(self) -> str:
        """The name under which the summaries are kept."""
        return (self.summariser or self.fallback).name

    def of(self, sections: Sequence[Section], trail: Trail | None = None) -> list[str]:
        """Return the summaries of ``sections``; extractive ones are made where they are missing, and kept.

        No model is asked: a section that has none of the summariser's yet is shown with its extractive one. The
        trail is told how many were made.
        """
        if self.fallback.words == 0:
            return [""] * len(sections)
        found = self.available(sections)
        missing = [one for one in sections if one.id not in found]
        if missing and self.summariser is not None:
            made = Summaries(self.snapshot, self.fallback).of(missing, trail)
            if trail is not None:
                trail.add(SummaryFallbackStep(self.name, len(missing), self.fallback.name))
            texts = dict(zip((one.id for one in missing), made, strict=True))
            return [texts[one.id] if one.id in texts else found[one.id].text for one in sections]
        if missing:
            self._make_now(missing, found, trail)
        return [found[one.id].text for one in sections]

    def _make_now(self, missing: Sequence[Section], found: dict[str, Summary], trail: Trail | None) -> None:
        started = time.perf_counter()
        not_kept = None
        for sections, made in self._batches(missing):
            found.update(zip((one.id for one in sections), made, strict=True))
            values = {one.id: summary.to_bytes() for one, summary in zip(sections, made, strict=True)}
            not_kept = try_save_values(self.snapshot, self.name, values) or not_kept
        if trail is not None:
            seconds = time.perf_counter() - started
            trail.add(SummariseStep(len(missing), self.name, not_kept, seconds=seconds))

    def available(self, sections: Sequence[Section]) -> dict[str, Summary]:
        """Return the summaries that need no making, by the section's id: kept ones, and short sections."""
        found: dict[str, Summary] = {}
        for key in dict.fromkeys(one.document for one in sections):
            kept = self.snapshot.read_derived(self.name, key)
            there = [one for one in sections if one.document == key and one.place in kept]
            found.update((one.id, Summary.from_bytes(kept[one.place])) for one in there)
        lengths = self.snapshot.postings("text").lengths
        rest = [one for one in sections if one.id not in found]
        short = [one for one in rest if lengths(np.array(one.rows)).sum() <= self.fallback.words]
        for one, text in zip(short, section_texts(self.snapshot, short), strict=True):
            found[one.id] = Summary(" ".join(text.text.split()))
        return found

    def make(self, sections: Sequence[Section], progress: Callable[[int, int], None] | None = None) -> int:
        """Make and keep the summaries that are missing; return how many.

        Kept after each batch: stopped, it continues. Raises ModelError, StoreError.
        """
        found = self.available(sections)
        missing = [one for one in sections if one.id not in found]
        done = 0
        for some, made in self._batches(missing):
            values = {one.id: summary.to_bytes() for one, summary in zip(some, made, strict=True)}
            save_values(self.snapshot, self.name, values)
            done += len(some)
            if progress is not None:
                progress(done, len(missing))
        return done

    def _batches(self, sections: Sequence[Section]) -> Iterator[tuple[Sequence[Section], list[Summary]]]:
        for start in range(0, len(sections), self.batch_size):
            some = sections[start : start + self.batch_size]
            yield some, self._made(section_texts(self.snapshot, some, self.fallback.encoder))

    def _made(self, texts: Sequence[SectionText]) -> list[Summary]:
        if self.summariser is None:
            return [Summary(text) for text in self.fallback.summarise(texts)]
        written = [" ".join(text.split()) for text in self.summariser.summarise(texts)]
        wrong = [
            find_invented(text, f"{one.name}\n{one.text}") if text else ["(nothing was written)"]
            for text, one in zip(written, texts, strict=True)
        ]
        bad = [one for one, found in zip(texts, wrong, strict=True) if found]
        instead = iter(self.fallback.summarise(bad))
        return [
            Summary(next(instead) if found else text, tuple(found))
            for text, found in zip(written, wrong, strict=True)
        ]


def save_values(snapshot: Snapshot, maker: str, made: Mapping[str, bytes]) -> None:
    """Keep what a maker made of sections, by their ids. Raises StoreError."""
    by_document: dict[str, dict[str, bytes]] = {}
    for id, value in made.items():
        key, _, place = id.rpartition(":")
        by_document.setdefault(key, {})[place] = value
    for key, values in by_document.items():
        snapshot.write_derived(maker, key, values)


def try_save_values(snapshot: Snapshot, maker: str, made: Mapping[str, bytes]) -> str:
    """Keep the same, and return what stood in the way, if anything: who only asks a question can do without."""
    try:
        save_values(snapshot, maker, made)
    except StoreError as error:
        return error.problem
    return ""


def section_texts(
    snapshot: Snapshot, sections: Sequence[Section], encoder: Encoder | None = None
) -> list[SectionText]:
    """Return what summaries of ``sections`` are made of, with the paragraphs' vectors where all have one."""
    rows = np.unique(np.array([row for one in sections for row in one.rows], dtype=np.int64))
    nodes = dict(zip(rows.tolist(), snapshot.nodes(rows), strict=True))
    parents = snapshot.column("parent")
    tables = np.unique(parents[rows[snapshot.column("kind")[rows] == KINDS.index(ROW)]])
    captions = {row: node.name for row, node in zip(tables.tolist(), snapshot.nodes(tables), strict=True)}
    vectors = snapshot.vectors(encoder.name, encoder.dimension).vectors(rows) if encoder is not None else None
    place = {row: n for n, row in enumerate(rows.tolist())}
    made = []
    for one in sections:
        groups = [
            (above, list(group))
            for above, group in groupby(one.rows, lambda row: _table(nodes, parents, row))
        ]
        texts = tuple(
            nodes[group[0]].text
            if above < 0
            else _digest(captions.get(above, ""), [nodes[row] for row in group])
            for above, group in groups
        )
        held = None
        if vectors is not None:
            held = _means([vectors[[place[row] for row in group]] for _, group in groups])
        made.append(SectionText(one.name, texts, held))
    return made


def _table(nodes: Mapping[int, Node], parents: NDArray[np.int64], row: int) -> int:
    """Return what groups a row with its neighbours: its table, or itself as a negative number."""
    return int(parents[row]) if nodes[row].kind == ROW else -row - 1


def _digest(caption: str, rows: Sequence[Node]) -> str:
    """Return a table in a line: its caption, and what its rows are called. Cells are left to the rows themselves."""
    heads = [row.text.removeprefix(f"{caption}. ").partition(": ")[0] for row in rows]
    named = "; ".join(dict.fromkeys(head for head in heads[:SHOWN_ROW_NAMES] if head))
    return f"{caption}: {named}" if caption and named else caption or named


def _means(groups: Sequence[Vectors]) -> Vectors | None:
    """Return the unit mean of each group's vectors, None where one has no vector yet."""
    if not all(np.any(group, axis=1).all() for group in groups):
        return None
    sums = np.array([group.sum(axis=0) for group in groups])
    made: Vectors = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return made


#: Sections by whose summaries a document is summarised.
SOURCE_SECTIONS = 8


@dataclass(frozen=True, slots=True)
class DocumentSummaries:
    """Summaries of documents, each of the extractive summaries of the sections that best cover it.

    Sections of which the summary is made are chosen by the mean vectors of their words, so that no more than
    :data:`SOURCE_SECTIONS` of a long document need one. Always extractive: a document's summary does not
    depend on which
    sections a model has summarised so far. Kept like those of sections.
    """

    snapshot: Snapshot
    outlines: Outlines
    summaries: Summaries

    def of(self, keys: Sequence[str], trail: Trail | None = None) -> list[str]:
        """Return the summaries of documents; those missing are made and kept."""
        if self.summaries.fallback.words == 0:
            return [""] * len(keys)
        maker = f"documents({self.summaries.fallback.name})"
        stored = {key: self.snapshot.read_derived(maker, key) for key in dict.fromkeys(keys)}
        kept = {key: value["0"].decode("utf-8", "surrogatepass") for key, value in stored.items() if value}
        missing = [key for key in stored if key not in kept]
        made = dict(zip(missing, self._made([self.outlines.of(key) for key in missing], trail), strict=True))
        for key, text in made.items():
            try_save_values(self.snapshot, maker, {f"{key}:0": text.encode("utf-8", "surrogatepass")})
        return [kept[key] if key in kept else made[key] for key in keys]

    def _made(self, outlines: Sequence[Outline], trail: Trail | None) -> list[str]:
        chosen = [self._telling(one) for one in outlines]
        extracts = Summaries(self.snapshot, self.summaries.fallback)
        flat = extracts.of([section for one in chosen for section in one], trail)
        texts, start = [], 0
        for outline, sections in zip(outlines, chosen, strict=True):
            parts = tuple(flat[start : start + len(sections)])
            texts.append(SectionText(outline.document.title, parts))
            start += len(sections)
        return self.summaries.fallback.summarise(texts)

    def _telling(self, outline: Outline) -> list[Section]:
        """Return the sections of a document that cover it best, in reading order."""
        sections = [one for one in outline.sections if one.kind not in {TABLE, PAGE}]
        rows = np.array([row for one in sections for row in one.rows], dtype=np.int64)
        if not len(rows):
            return []
        postings = self.snapshot.postings("text")
        starts = np.cumsum([0, *(len(one.rows) for one in sections)])[:-1]
        sums = np.add.reduceat(word_vectors(postings, rows).astype(np.float64), starts)
        vectors = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        lengths = np.add.reduceat(postings.lengths(rows).astype(np.float64), starts)
        best = select_covering(vectors @ vectors.T, lengths, np.ones(len(sections)), SOURCE_SECTIONS)
        return [sections[n] for n in sorted(best)]


#: The names of summarisers.
SUMMARISERS = ("extractive", "model", "local:facebook/bart-large-cnn")
#: Tokens of a section that a summariser is given: bart-large's window less what the count by rule may miss.
LOCAL_INPUT, MODEL_INPUT = 800, 3000


def open_summaries(
    resources: Resources, summariser: str, words: int, on_usage: Callable[[Usage], None] = lambda usage: None
) -> Summaries:
    """Return the summaries of a summariser: ``extractive``, ``model`` (the configured one) or ``local:NAME``.

    ``on_usage`` is told what each batch of prompts cost. Raises UsageError for another name, and where there is no
    model.
    """
    extractive = ExtractiveSummariser(words, resources.encoder)
    if summariser == "extractive" or not words:
        return Summaries(resources.snapshot, extractive)
    if summariser == "model":
        model, template = resources.require_model("summariser=model"), load_prompt("drill-summarise")
        room = MODEL_INPUT
    elif summariser.startswith("local:"):
        # A model that was trained to summarise is given the text alone.
        model, template = resources.tools.language_model(summariser), load_prompt("drill-text")
        room = LOCAL_INPUT
    else:
        raise unknown_name_error("summariser", summariser, SUMMARISERS)
    written = ModelSummariser(model, template, words, room, resources.tools.count_tokens, on_usage)
    return Summaries(resources.snapshot, extractive, written)


# MERGED: The summaries of a base: made once per summariser and section, checked, and kept with their documents.
# MERGED: Many documents: the level above sections. The search narrows them, and a model chooses by name and summary.
