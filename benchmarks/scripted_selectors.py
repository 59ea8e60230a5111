"""Scripted language models that choose: an oracle and a blind one. They see the prompt and nothing else.

The oracle knows what it is to find: the text of the gold pages, and what their sections and document are called. It
names exactly what holds them among what it is offered. The blind one knows nothing: an encoder compares the question
with the names and summaries that the prompt shows, and the three nearest are named. Usage is counted by rule, as
clew counts it where an endpoint says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from clew.core.protocols import Completion, Encoder, Prompt, Snapshot
from clew.core.types import TABLE, Usage
from clew.methods.d3.outline import Outlines, Section
from clew.models.costs import count_prompt_tokens, count_tokens

#: Entries that the blind selector names.
TOP = 3
_ENTRY = re.compile(r"^\[(?P<number>\d+)\] (?P<name>.*)$")
_OUTER = re.compile(r"^(?P<marks>#+) (?P<name>.*)$")
_PAPER = re.compile(r"^\* Section: (?P<name>.*)$")
_PARAGRAPH = re.compile(r"^(?P<number>\d+): (?P<text>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """A section or document as a prompt shows it: what names it in a reply, what it is called there, the names that
    are shown above it and its own, its summary."""

    reply: str
    called: str
    path: tuple[str, ...]
    summary: str

    @property
    def text(self) -> str:
        """Names and summary, which is all that the blind selector goes by."""
        return f"{'. '.join(self.path)}: {self.summary}" if self.summary else ". ".join(self.path)


@lru_cache(maxsize=1 << 16)
def letters(text: str) -> str:
    """Return what is compared of a text: its letters and digits, in lower case."""
    return re.sub(r"[\W_]+", "", text.casefold())


@lru_cache(maxsize=1 << 16)
def words(text: str) -> frozenset[str]:
    """Return the words and figures of a text, in lower case; a figure without its separators."""
    return frozenset(re.findall(r"[^\W_]+", re.sub(r"(?<=\d)[.,](?=\d)", "", text.casefold())))


def entries(outline: str) -> list[Entry]:
    """Return the entries of an outline, in either form; hints are no part of them."""
    results: list[tuple[str, str, tuple[str, ...], list[str]]] = []
    above: list[str] = []
    for line in outline.splitlines():
        if entry := _ENTRY.match(line):
            results.append((entry["number"], entry["name"], (*above, entry["name"]), []))
        elif paper := _PAPER.match(line):
            results.append((paper["name"], f"section {paper['name']}", (paper["name"],), []))
        elif outer := _OUTER.match(line):
            above = [*above[: len(outer["marks"]) - 1], outer["name"]]
        elif results and not line.startswith("match: "):
            results[-1][3].append(line)
    return [Entry(reply, called, path, " ".join(summary)) for reply, called, path, summary in results]


def replies(prompt: Prompt, choose: Callable[[list[Entry]], list[int]]) -> str:
    """Return the reply to a prompt that shows an outline."""
    shown = prompt.user.removeprefix("Document section structure:\n").rpartition("Question:")[0]
    offered = entries(shown)
    return ", ".join(offered[n].reply for n in choose(offered))


@dataclass
class Oracle:
    """Knows the text of the gold ``pages``, what sections with paragraphs on them are called, and their document."""

    pages: Sequence[str]
    sections: frozenset[str] = frozenset()
    document: str = ""
    name: str = "oracle"

    @classmethod
    def of(
        cls, snapshot: Snapshot, encoder: Encoder | None, key: str, pages: Sequence[int], texts: Sequence[str]
    ) -> Oracle:
        """Return the oracle of a question about some pages of a document."""
        page_of = snapshot.column("page")
        held = [
            section for section in Outlines(snapshot, encoder).of(key).sections
            if any(page_of[row] in pages for row in section.rows)
        ]  # fmt: skip
        document = next(item.name for item in snapshot.documents() if item.key == key)
        called = frozenset(name for item in held for name in _call_section(item))
        return cls(texts, called, document)

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return for each prompt what holds the gold pages."""
        return [make_reply(prompt, self._reply(prompt), self.name) for prompt in prompts]

    def _reply(self, prompt: Prompt) -> str:
        if prompt.user.startswith("Paragraphs:"):
            return ", ".join(
                item["number"] for item in _PARAGRAPH.finditer(prompt.user) if self._holds(item["text"])
            )
        if prompt.user.startswith("Paragraph:"):
            text = prompt.user.removeprefix("Paragraph:\n").rpartition("\nQuestion:\n")[0]
            return "yes" if self._holds(text) else "no"
        return replies(prompt, self._chosen)

    def _holds(self, text: str) -> bool:
        if any(letters(text) in letters(page) for page in self.pages):
            return bool(letters(text))
        # A table row names its column headers beside its cells, where the page does not: all its words have to be
        # there, figures among them.
        given = words(text)
        return any(len(word) > 2 and word.isdigit() for word in given) and any(
            given <= words(page) for page in self.pages
        )

    def _chosen(self, offered: list[Entry]) -> list[int]:
        if documents := [n for n, item in enumerate(offered) if item.path[-1].startswith(self.document)]:
            return documents
        return [n for n, item in enumerate(offered) if letters(item.called) in self.sections]


def _call_section(section: Section) -> list[str]:
    """Return what a section is called in a prompt: by its own name and pages, or (the paper's form) by its path."""
    rows = f"table, {len(section.rows)} rows" if section.kind == TABLE else ""
    first, last = section.pages or (0, 0)
    pages = "" if not section.pages else f"page {first}" if first == last else f"pages {first}-{last}"
    return [letters(f"{section.path[-1]} {rows} {pages}"), letters(f"section {section.name}")]


@dataclass
class Blind:
    """Goes by the encoder: the entries whose names and summaries are nearest to the question.

    ``known`` keeps the vectors of texts, for as many questions as share it.
    """

    encoder: Encoder
    question: str
    known: dict[str, np.ndarray] = field(default_factory=dict)
    name: str = "blind"

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return for each prompt its three entries, or paragraphs, that are nearest."""
        return [make_reply(prompt, self._reply(prompt), self.name) for prompt in prompts]

    def _reply(self, prompt: Prompt) -> str:
        if prompt.user.startswith("Paragraphs:"):
            shown = list(_PARAGRAPH.finditer(prompt.user))
            return ", ".join(shown[n]["number"] for n in self._nearest([item["text"] for item in shown]))
        return replies(prompt, lambda offered: self._nearest([item.text for item in offered]))

    def _nearest(self, texts: Sequence[str]) -> list[int]:
        if missing := [text for text in dict.fromkeys(texts) if text not in self.known]:
            self.known.update(zip(missing, self.encoder.encode(missing), strict=True))
        asked = self.encoder.encode([self.question], query=True)[0]
        scores = np.array([self.known[text] @ asked for text in texts])
        return sorted(np.argsort(-scores, kind="stable")[:TOP].tolist())


def make_reply(prompt: Prompt, text: str, model: str) -> Completion:
    """Return a reply with what it costs, by rule."""
    return Completion(text, Usage(1, count_prompt_tokens(prompt), count_tokens(text), estimated=True), model)
