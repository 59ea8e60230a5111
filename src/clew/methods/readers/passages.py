"""Passages for a reader of spans: hits chosen by a name or by a question's words, and the part of them to read."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from clew.core.protocols import Postings
from clew.core.text import fold_name, hash_term, query_terms, sentence_spans, title_names
from clew.core.types import Hit, ReaderPassage
from clew.core.values import mentions_name

#: At most this many characters of a passage are read, those around the question's words.
_READ_CHARACTERS = 2400
#: Of names of files; other documents are named by a title, which may be an answer.
_SUFFIXES = ".pdf .docx .xlsx .html .htm .md .markdown .txt .csv .tsv .json .jsonl .srt .vtt".split()


def passage_of_hit(hit: Hit, question: str) -> ReaderPassage:
    """Return a hit as the reader reads it: document and last heading as its title, at most 2,400 characters around
    the question's words as its text (from its beginning where that is short enough)."""
    node = hit.node
    document = PurePath(node.document_name)
    name = document.stem if is_file_name(node.document_name) else node.document_name
    name = name.replace("_", " ")
    heading = node.headings[-1] if node.headings else ""
    title = f"{name}, {heading}" if heading and fold_name(heading) != fold_name(name) else name
    return ReaderPassage(
        title, node.text if len(node.text) <= _READ_CHARACTERS else _cut_text(node.text, question)
    )


def weigh_terms(postings: Postings | None, terms: Sequence[str]) -> list[float]:
    """Return the inverse document frequencies of terms; all the same where they are not counted."""
    if postings is None:
        return [1.0] * len(terms)
    hashes = np.array([hash_term(term) for term in terms], dtype=np.uint64)
    count, frequencies = postings.node_count, postings.document_frequency(hashes).tolist() if terms else []
    return [math.log1p((count - frequency + 0.5) / (frequency + 0.5)) for frequency in frequencies]


def is_file_name(name: str) -> bool:
    """Return whether the name of a document is that of a file, and not the title of an article."""
    return PurePath(name).suffix.lower() in _SUFFIXES


def _cut_text(text: str, question: str) -> str:
    """Return the lines or sentences of a long text with most of the question's words, in order, blank elsewhere.

    Characters that are not read become spaces, so that places in the text stay the same.
    """
    words = frozenset(query_terms(question))
    lines = [match.span() for match in re.finditer(r"[^\n]+", text)]
    spans = lines if len(lines) > 3 else sentence_spans(text)
    shared = [len(words & frozenset(query_terms(text[start:end]))) for start, end in spans]
    ranked = sorted(range(len(spans)), key=lambda number: (-shared[number], number))
    chosen: set[int] = set()
    room = _READ_CHARACTERS
    for number in ranked:
        start, end = spans[number]
        if end - start <= room:
            chosen.add(number)
            room -= end - start
    pieces, position = [], 0
    for number in sorted(chosen):
        start, end = spans[number]
        pieces += [" " * (start - position), text[start:end]]
        position = end
    return "".join(pieces)


def select_hits_about(name: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits about a name: those with that title first, then those whose text mentions it."""
    folded = {fold_name(form) for form in title_names(name)}

    def has_title(hit: Hit) -> bool:
        titles = (PurePath(hit.node.document_name).stem, hit.node.document_name, *hit.node.headings)
        return any(fold_name(form) in folded for title in titles for form in title_names(title))

    titled = [hit for hit in hits if has_title(hit)]
    return [*titled, *(hit for hit in hits if hit not in titled and mentions_name(name, hit.node.text))]


def sort_by_words(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits by the number of the question's words in them; of equal ones the better hit first.

    The hits were found for the whole question; a part of it has its own words.
    """
    words = frozenset(query_terms(question))
    texts = (" ".join((hit.node.text, hit.node.document_name, *hit.node.headings)) for hit in hits)
    shared = [len(words & frozenset(query_terms(text))) for text in texts]
    return [hits[number] for number in sorted(range(len(hits)), key=lambda number: (-shared[number], number))]
