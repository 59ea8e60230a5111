"""The summaries of sections and documents of a base: made once, checked, and stored with their documents.

A summary is a pure function of its section's text and the summariser's name. It is stored in the base
(:meth:`clew.core.protocols.Snapshot.write_derived`), so it is removed with its document, and work that was stopped
continues where it was. The summary of a section that is no longer than a summary may be is its text.

A summary that a model wrote is checked for numbers and names that its section does not have (:func:`find_invented`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from clew.core.arrays import Vectors
from clew.core.component import Resources
from clew.core.errors import StoreError, unknown_name_error
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Encoder, Snapshot, Trail
from clew.core.text import (
    MAX_NAME_WORDS,
    STOPWORDS,
    candidate_names,
    index_terms,
    normalise_name,
    sentence_spans,
)
from clew.core.types import KINDS, PAGE, ROW, TABLE, FallbackStep, Node, ShownStep, Usage
from clew.methods.d3.outline import Outline, Outlines, Section
from clew.methods.d3.segments import word_vectors
from clew.methods.d3.summarisers import (
    ExtractiveSummariser,
    ModelSummariser,
    SectionText,
    Summariser,
    select_covering,
)

#: Sections that are summarised between two writes: a killed process loses no more.
BATCH_SIZE = 16
#: A table is described by its caption and the names of this many rows.
SHOWN_ROW_NAMES = 24
#: A document is summarised by the summaries of this many sections.
SOURCE_SECTIONS = 8


@dataclass(frozen=True, slots=True)
class Summary:
    """A stored summary.

    ``invented`` are the numbers and names in the summariser's text that its section does not have; if there are any,
    ``text`` is the extractive summary instead.
    """

    text: str
    invented: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the form that is stored."""
        content = [self.text, *self.invented]
        return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def from_bytes(cls, value: bytes) -> Summary:
        """Return the summary that :meth:`to_bytes` wrote."""
        text, *invented = json.loads(value.decode("utf-8", "surrogatepass"))
        return cls(text, tuple(invented))


@dataclass(frozen=True, slots=True)
class Summaries:
    """The summaries of one summariser.

    Without a ``summariser`` they are the extractive ones of ``fallback``, made when they are needed. Those of a
    summariser are made in advance (:meth:`make`); ``fallback`` replaces those that are missing or were not faithful.
    If its ``words`` are 0, all summaries are empty.
    """

    snapshot: Snapshot
    fallback: ExtractiveSummariser
    summariser: Summariser | None = None
    batch_size: int = BATCH_SIZE

    @property
    def name(self) -> str:
        """The name under which the summaries are stored."""
        return (self.summariser or self.fallback).name

    def of(self, sections: Sequence[Section], trail: Trail | None = None) -> list[str]:
        """Return the summaries of ``sections``. Missing extractive ones are made and stored.

        No model is called: a section without a summary of the summariser is shown with its extractive one. The trail
        says how many were made.
        """
        if self.fallback.words == 0:
            return [""] * len(sections)
        summaries = self.available(sections)
        missing = [section for section in sections if section.id not in summaries]
        if missing and self.summariser is not None:
            texts = Summaries(self.snapshot, self.fallback).of(missing, trail)
            if trail is not None:
                results = {"without": self.name, "sections": len(missing), "instead": self.fallback.name}
                trail.add(ShownStep("summarise", results))
                used = f"{len(missing):,} sections have none yet and were shown by extracted sentences"
                trail.add(FallbackStep("summaries", f"{used} (clew summarise writes them)"))
            for section, text in zip(missing, texts, strict=True):
                summaries[section.id] = Summary(text)
        elif missing:
            summaries |= self._make_now(missing, trail)
        return [summaries[section.id].text for section in sections]

    def _make_now(self, missing: Sequence[Section], trail: Trail | None) -> dict[str, Summary]:
        """Return new summaries by section id; they are stored if the base can be written to."""
        started = time.perf_counter()
        summaries: dict[str, Summary] = {}
        not_kept = None
        for sections, batch in self._batches(missing):
            by_id = dict(zip((section.id for section in sections), batch, strict=True))
            summaries |= by_id
            values = {id: summary.to_bytes() for id, summary in by_id.items()}
            not_kept = try_save_values(self.snapshot, self.name, values) or not_kept
        if trail is not None:
            seconds = time.perf_counter() - started
            results = {"made": len(missing), "summariser": self.name, "not kept": not_kept}
            trail.add(ShownStep("summarise", results, seconds=seconds))
        return summaries

    def available(self, sections: Sequence[Section]) -> dict[str, Summary]:
        """Return the summaries that need not be made, by section id: stored ones, and those of short sections."""
        summaries: dict[str, Summary] = {}
        for key in dict.fromkeys(section.document for section in sections):
            stored = self.snapshot.read_derived(self.name, key)
            for section in sections:
                if section.document == key and section.place in stored:
                    summaries[section.id] = Summary.from_bytes(stored[section.place])
        lengths = self.snapshot.postings("text").lengths
        short = [
            section
            for section in sections
            if section.id not in summaries and lengths(np.array(section.rows)).sum() <= self.fallback.words
        ]
        for section, source in zip(short, section_texts(self.snapshot, short), strict=True):
            summaries[section.id] = Summary(" ".join(source.text.split()))
        return summaries

    def make(self, sections: Sequence[Section], progress: Callable[[int, int], None] | None = None) -> int:
        """Make and store the summaries that are missing; return how many.

        They are stored after each batch, so that work that was stopped continues. Raises ModelError, StoreError.
        """
        available = self.available(sections)
        missing = [section for section in sections if section.id not in available]
        done = 0
        for batch, summaries in self._batches(missing):
            values = {
                section.id: summary.to_bytes() for section, summary in zip(batch, summaries, strict=True)
            }
            save_values(self.snapshot, self.name, values)
            done += len(batch)
            if progress is not None:
                progress(done, len(missing))
        return done

    def _batches(self, sections: Sequence[Section]) -> Iterator[tuple[Sequence[Section], list[Summary]]]:
        for start in range(0, len(sections), self.batch_size):
            batch = sections[start : start + self.batch_size]
            yield batch, self._summarise(section_texts(self.snapshot, batch, self.fallback.encoder))

    def _summarise(self, sources: Sequence[SectionText]) -> list[Summary]:
        """Return new summaries, extractive ones for those that are not faithful."""
        if self.summariser is None:
            return [Summary(text) for text in self.fallback.summarise(sources)]
        texts = [" ".join(text.split()) for text in self.summariser.summarise(sources)]
        invented = [
            find_invented(text, f"{source.name}\n{source.text}") if text else ["(nothing was written)"]
            for text, source in zip(texts, sources, strict=True)
        ]
        unfaithful = [source for source, terms in zip(sources, invented, strict=True) if terms]
        replacements = iter(self.fallback.summarise(unfaithful))
        return [
            Summary(next(replacements) if terms else text, tuple(terms))
            for text, terms in zip(texts, invented, strict=True)
        ]


def save_values(snapshot: Snapshot, maker: str, values: Mapping[str, bytes]) -> None:
    """Store what a maker made of sections, by their ids. Raises StoreError."""
    by_document: dict[str, dict[str, bytes]] = {}
    for id, value in values.items():
        key, _, place = id.rpartition(":")
        by_document.setdefault(key, {})[place] = value
    for key, values_of_document in by_document.items():
        snapshot.write_derived(maker, key, values_of_document)


def try_save_values(snapshot: Snapshot, maker: str, values: Mapping[str, bytes]) -> str:
    """Store the same if possible, and return the problem, "" for none: a question can be answered without storing."""
    try:
        save_values(snapshot, maker, values)
    except StoreError as error:
        return error.problem
    return ""


def section_texts(
    snapshot: Snapshot, sections: Sequence[Section], encoder: Encoder | None = None
) -> list[SectionText]:
    """Return the texts that summaries of ``sections`` are made of, with the paragraphs' vectors if all have one."""
    rows = np.unique(np.array([row for section in sections for row in section.rows], dtype=np.int64))
    nodes = dict(zip(rows.tolist(), snapshot.nodes(rows), strict=True))
    parents = snapshot.column("parent")
    tables = np.unique(parents[rows[snapshot.column("kind")[rows] == KINDS.index(ROW)]])
    captions = {row: node.name for row, node in zip(tables.tolist(), snapshot.nodes(tables), strict=True)}
    vectors = snapshot.vectors(encoder.name, encoder.dimension).vectors(rows) if encoder is not None else None
    index_of_row = {row: n for n, row in enumerate(rows.tolist())}

    def table_of(row: int) -> int:
        # A paragraph that is no table row is a group of its own, under a negative number.
        return int(parents[row]) if nodes[row].kind == ROW else -row - 1

    texts = []
    for section in sections:
        groups = [(table, list(group)) for table, group in groupby(section.rows, table_of)]
        paragraphs = tuple(
            nodes[group[0]].text
            if table < 0
            else _describe_table(captions.get(table, ""), [nodes[row] for row in group])
            for table, group in groups
        )
        means = None
        if vectors is not None:
            means = _unit_means([vectors[[index_of_row[row] for row in group]] for _, group in groups])
        texts.append(SectionText(section.name, paragraphs, means))
    return texts


def _describe_table(caption: str, rows: Sequence[Node]) -> str:
    """Return a table in a line: its caption and the names of its rows, without the cells."""
    names = [row.text.removeprefix(f"{caption}. ").partition(": ")[0] for row in rows]
    listed = "; ".join(dict.fromkeys(name for name in names[:SHOWN_ROW_NAMES] if name))
    return f"{caption}: {listed}" if caption and listed else caption or listed


def _unit_means(groups: Sequence[Vectors]) -> Vectors | None:
    """Return the unit mean of each group's vectors, None if a row has no vector yet."""
    if not all(np.any(group, axis=1).all() for group in groups):
        return None
    sums = np.array([group.sum(axis=0) for group in groups])
    means: Vectors = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return means


@dataclass(frozen=True, slots=True)
class DocumentSummaries:
    """Summaries of documents, made of the extractive summaries of the sections that best cover each.

    The sections are chosen by the mean vectors of their words, so that no more than :data:`SOURCE_SECTIONS` of a long
    document need a summary. They are always extractive, so that a document's summary does not depend on the sections
    that a model has summarised so far.
    """

    snapshot: Snapshot
    outlines: Outlines
    summaries: Summaries

    def of(self, keys: Sequence[str], trail: Trail | None = None) -> list[str]:
        """Return the summaries of documents. Missing ones are made and stored."""
        if self.summaries.fallback.words == 0:
            return [""] * len(keys)
        maker = f"documents({self.summaries.fallback.name})"
        stored = {key: self.snapshot.read_derived(maker, key) for key in dict.fromkeys(keys)}
        texts = {key: value["0"].decode("utf-8", "surrogatepass") for key, value in stored.items() if value}
        missing = [key for key in stored if key not in texts]
        new_texts = self._summarise([self.outlines.of(key) for key in missing], trail)
        for key, text in zip(missing, new_texts, strict=True):
            texts[key] = text
            try_save_values(self.snapshot, maker, {f"{key}:0": text.encode("utf-8", "surrogatepass")})
        return [texts[key] for key in keys]

    def _summarise(self, outlines: Sequence[Outline], trail: Trail | None) -> list[str]:
        covering = [self._covering_sections(outline) for outline in outlines]
        extractive = Summaries(self.snapshot, self.summaries.fallback)
        summaries = iter(extractive.of([section for group in covering for section in group], trail))
        sources = [
            SectionText(outline.document.title, tuple(next(summaries) for _ in sections))
            for outline, sections in zip(outlines, covering, strict=True)
        ]
        return self.summaries.fallback.summarise(sources)

    def _covering_sections(self, outline: Outline) -> list[Section]:
        """Return the sections of a document that cover it best, in reading order."""
        sections = [section for section in outline.sections if section.kind not in {TABLE, PAGE}]
        rows = np.array([row for section in sections for row in section.rows], dtype=np.int64)
        if not len(rows):
            return []
        postings = self.snapshot.postings("text")
        starts = np.cumsum([0, *(len(section.rows) for section in sections)])[:-1]
        sums = np.add.reduceat(word_vectors(postings, rows).astype(np.float64), starts)
        vectors = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        lengths = np.add.reduceat(postings.lengths(rows).astype(np.float64), starts)
        best = select_covering(vectors @ vectors.T, lengths, np.ones(len(sections)), SOURCE_SECTIONS)
        return [sections[n] for n in sorted(best)]


# Faithfulness (left open in the paper's Limitations)

#: Words that begin sentences of summaries, capitalised for that reason alone.
_OPENERS = frozenset(
    """according additionally although among article based besides company contains covers defines describes despite
    details discusses document explains finally first following furthermore given gives here highlights however
    importantly includes information instead it's lists many meanwhile moreover nevertheless notably note overall
    paragraph part passage presents provides report reports second section several shows similarly since some
    specifically states summary table text therefore third thus today topics two various""".split()
)


def find_invented(summary: str, source: str) -> list[str]:
    """Return the numbers and names of ``summary`` that are not in ``source``, the section with its name.

    They are in the order of the summary, each once. A number has to be in the section, apart from thousands
    separators: "1.5 billion" for 1,500 million counts as invented, since a reader could not find it. A name has to be
    there with its words in a row, or, since several names may have been run together, with each of its words.
    """
    source_terms = set(index_terms(source))
    source_words = f" {normalise_name(source)} "
    invented = [number for number in _numbers(summary) if not set(index_terms(number)) <= source_terms]
    for name in _names(summary):
        words = normalise_name(name)
        in_a_row = f" {words} " in source_words
        if not in_a_row and not all(set(index_terms(word)) <= source_terms for word in words.split()):
            invented.append(name)
    return list(dict.fromkeys(invented))


def _numbers(text: str) -> Iterator[str]:
    for word in text.split():
        number = word.strip("()[]{}\"'“”‘’.,;:!?*_")
        if any(char.isdigit() for char in number):
            yield number


def _names(text: str) -> Iterator[str]:
    """Yield the longest names of a text, except for usual words at the beginning of a sentence."""
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        last_end = 0
        spans = [(first, last) for _, first, last in candidate_names(sentence)]
        for first, last in sorted(spans, key=lambda span: (span[0], -span[1])):
            name = sentence[first:last]
            if first < last_end or any(char.isdigit() for char in name):
                continue
            last_end = last
            opener = first == 0 and name.casefold() in STOPWORDS | _OPENERS
            if not opener and len(name.split()) <= MAX_NAME_WORDS:
                yield name


#: The names of summarisers.
SUMMARISERS = ("extractive", "model", "local:facebook/bart-large-cnn")
#: A summariser is given this many tokens of a section: the window of bart-large, less the error of our token count.
LOCAL_INPUT, MODEL_INPUT = 800, 3000


def open_summaries(
    resources: Resources, summariser: str, words: int, on_usage: Callable[[Usage], None] = lambda usage: None
) -> Summaries:
    """Return the summaries of a summariser: ``extractive``, ``model`` (the configured one) or ``local:NAME``.

    ``on_usage`` is called with the cost of each batch of prompts. Raises UsageError for another name, and if there is
    no model.
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
