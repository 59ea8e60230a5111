"""The trained reader: three logits a token over an encoder, exported to ONNX, that mark answers in passages.

The input is one sequence, as BERT reads SQuAD (Devlin et al., NAACL 2019, Section 4.2), here with several passages::

    [CLS] question [SEP] yes no [SEP] title 1 : text 1 [SEP] title 2 : text 2 [SEP]

The answer is a span of a text or of a title, one of the words "yes" and "no", or [CLS] for "no answer" (SQuAD 2.0:
the score of a span is compared with that of [CLS]). Several passages in one window let an answer depend on both.
The first two logits are those of a start and an end; the mean of the third over a sentence says whether it answers.
Training and reading share :func:`build_windows`, so that a model sees what it was trained on.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import ModelError, NotFound, UsageError
from clew.core.types import ReaderPassage, Span, SpanKind
from clew.models.encoders import (
    MODEL_FILE,
    TOKENIZER_FILE,
    embedded_folder,
    hash_files,
    open_onnx_session,
    read_tokenizer,
)
from clew.models.wrappers import map_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats

    Ints = NDArray[np.int64]

SETTINGS_FILE = "clew-reader.json"
#: The version of the files of an exported reader.
FORMAT = 2
#: A question and a title are cut at so many tokens.
MAX_QUESTION, MAX_TITLE = 64, 24
#: The longest span that is an answer, in tokens.
MAX_SPAN = 40
#: The starts and the ends that spans are built from, per window.
_CANDIDATES = 20
#: The words in front of the passages; a span on one of them is the answer.
_VERDICTS = "yes no"


@dataclass(frozen=True, slots=True)
class Window:
    """One input of the model. ``places`` has for each token (passage, start, end) in characters of that passage's
    text; the passage is -1 for tokens that are no answer, and ``in_title`` marks tokens of titles."""

    ids: Ints
    type_ids: Ints
    places: Ints
    in_title: NDArray[np.bool_]

    @property
    def answers(self) -> NDArray[np.bool_]:
        """The tokens that may be part of a span in a passage."""
        allowed: NDArray[np.bool_] = self.places[:, 0] >= 0
        return allowed


class Tokens:
    """The tokenizer of a reader, with the ids of its special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.cls, self.sep = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))
        if self.cls is None or self.sep is None:
            raise ModelError("the reader's tokenizer has no [CLS] or no [SEP]", "Export the reader again")
        self.verdicts: list[int] = self.encode(_VERDICTS)[0]

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text's tokens and their character ranges, without special tokens."""
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, encoding.offsets


#: The places of "yes" and "no" in every window, counted from the end of the question.
YES_OFFSET, NO_OFFSET = 0, 1


def build_windows(
    tokens: Tokens, question: str, passages: Sequence[ReaderPassage], max_tokens: int
) -> list[Window]:
    """Return the windows that hold all passages in order: as many whole passages each as fit.

    A passage that fits no window is cut into parts that overlap by half; each part has the title.
    """
    question_ids = tokens.encode(question)[0][:MAX_QUESTION]
    head = [tokens.cls, *question_ids, tokens.sep, *tokens.verdicts, tokens.sep]
    room = max_tokens - len(head)
    windows: list[Window] = []
    parts: list[_Part] = []
    used = 0
    for part in _passage_parts(tokens, passages, room):
        if parts and used + len(part) > room:
            windows.append(_join_parts(head, len(question_ids), parts))
            parts, used = [], 0
        parts.append(part)
        used += len(part)
    if parts:
        windows.append(_join_parts(head, len(question_ids), parts))
    return windows


@dataclass(frozen=True, slots=True)
class _Part:
    passage: int
    ids: list[int]
    offsets: list[tuple[int, int]]
    title: int

    def __len__(self) -> int:
        return len(self.ids)


def _passage_parts(tokens: Tokens, passages: Sequence[ReaderPassage], room: int) -> Iterator[_Part]:
    separator = tokens.encode(":")[0]
    for number, passage in enumerate(passages):
        title_ids, title_offsets = tokens.encode(passage.title)
        title_ids, title_offsets = title_ids[:MAX_TITLE], title_offsets[:MAX_TITLE]
        lead = [*title_ids, *separator] if title_ids else []
        ids, offsets = tokens.encode(passage.text)
        lead_offsets = [*title_offsets, *([(0, 0)] * (len(lead) - len(title_ids)))]
        size = max(room - len(lead) - 1, 32)
        step = max(size // 2, 1) if len(ids) > size else size
        for start in range(0, max(len(ids) - size + step, 1), step):
            yield _Part(
                number,
                [*lead, *ids[start : start + size], tokens.sep],
                [*lead_offsets, *offsets[start : start + size], (0, 0)],
                len(title_ids),
            )


def _join_parts(head: Sequence[int], question_length: int, parts: Sequence[_Part]) -> Window:
    ids = np.array([*head, *(token for part in parts for token in part.ids)], dtype=np.int64)
    places = np.full((len(ids), 3), -1, dtype=np.int64)
    in_title = np.zeros(len(ids), dtype=bool)
    position = len(head)
    for part in parts:
        places[position : position + len(part), 1:] = part.offsets
        # A token of a text has a range; separators have none.
        is_answer = places[position : position + len(part), 2] > 0
        places[position : position + len(part), 0][is_answer] = part.passage
        in_title[position : position + part.title] = True
        position += len(part)
    type_ids = np.zeros(len(ids), dtype=np.int64)
    type_ids[question_length + 2 :] = 1
    return Window(ids, type_ids, places, in_title)


def verdict_positions(window: Window) -> tuple[int, int]:
    """Return the positions of "yes" and "no" in a window."""
    first = int(np.argmax(window.type_ids))
    return first + YES_OFFSET, first + NO_OFFSET


def option_tokens(window: Window, passage: int, start: int, end: int) -> NDArray[np.bool_]:
    """Return which tokens of a window stand in a passage's text from ``start`` to ``end``."""
    places = window.places
    inside: NDArray[np.bool_] = (
        (places[:, 0] == passage) & ~window.in_title & (places[:, 1] < end) & (places[:, 2] > start)
    )
    return inside


def best_spans(
    window: Window, start_logits: Floats, end_logits: Floats, passages: Sequence[ReaderPassage], limit: int
) -> list[Span]:
    """Return the best spans of a window, best first, at most ``limit``; logits are (tokens,) each.

    A span lies within the title or within the text of one passage, and has at most :data:`MAX_SPAN` tokens. Its words
    are whole, though tokens may be parts of words.
    """
    null = float(start_logits[0] + end_logits[0])
    verdicts: tuple[SpanKind, SpanKind] = ("yes", "no")
    spans = [
        Span(word, word, -1, 0, 0, float(start_logits[place] + end_logits[place]) - null)
        for word, place in zip(verdicts, verdict_positions(window), strict=True)
    ]
    allowed = np.flatnonzero(window.answers)
    if len(allowed):
        starts = allowed[np.argsort(-start_logits[allowed], kind="stable")[:_CANDIDATES]]
        ends = allowed[np.argsort(-end_logits[allowed], kind="stable")[:_CANDIDATES]]
        first, last = (grid.ravel() for grid in np.meshgrid(starts, ends, indexing="ij"))
        fits = (
            (first <= last)
            & (last - first < MAX_SPAN)
            & (window.places[first, 0] == window.places[last, 0])
            & (window.in_title[first] == window.in_title[last])
        )
        first, last = first[fits], last[fits]
        scores = start_logits[first] + end_logits[last] - null
        ranges: set[tuple[SpanKind, int, int, int]] = set()
        for index in np.argsort(-scores, kind="stable").tolist():
            passage = int(window.places[first[index], 0])
            kind: SpanKind = "title" if window.in_title[first[index]] else "text"
            source = passages[passage].title if kind == "title" else passages[passage].text
            start, end = widen_to_words(
                source, int(window.places[first[index], 1]), int(window.places[last[index], 2])
            )
            if (kind, passage, start, end) in ranges:
                continue
            ranges.add((kind, passage, start, end))
            spans.append(Span(source[start:end], kind, passage, start, end, float(scores[index])))
            if len(ranges) == limit:
                break
    return sorted(spans, key=lambda span: -span.score)[:limit]


def score_option(
    windows: Sequence[tuple[Window, Floats]], passage: int, start: int, end: int
) -> float | None:
    """Return the mean of the third logit over the tokens of an option, in the window that has most of them; None
    where no window has any. Each window comes with its logits, (tokens, 3)."""
    inside = [(option_tokens(window, passage, start, end), logits) for window, logits in windows]
    tokens, logits = max(inside, key=lambda each: int(each[0].sum()), default=(np.zeros(0, bool), None))
    return float(logits[tokens, 2].mean()) if logits is not None and tokens.any() else None


def _score_unread(scores: Sequence[float | None]) -> list[float]:
    """Return scores with the lowest of them where an option was not read."""
    lowest = min((score for score in scores if score is not None), default=0.0)
    return [lowest if score is None else score for score in scores]


def _best_of_all(
    windows: Sequence[tuple[Window, Floats]], passages: Sequence[ReaderPassage], limit: int
) -> list[Span]:
    spans = [
        span
        for window, logits in windows
        for span in best_spans(window, logits[:, 0], logits[:, 1], passages, limit)
    ]
    return sorted(spans, key=lambda span: -span.score)[:limit]


def widen_to_words(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the range of the whole words and numbers that text[start:end] touches; scripts without spaces keep their
    range."""
    while 0 < start < len(text) and _joins(text, start):
        start -= 1
    while 0 < end < len(text) and _joins(text, end):
        end += 1
    return start, end


def _joins(text: str, place: int) -> bool:
    """Return whether the characters before and after a place belong to the same word, or to a number (1,928.11)."""
    before, after = text[place - 1], text[place]
    if before in ".," or after in ".,":
        return re.match(r"\d[.,]\d", text[max(place - 2, 0) if before in ".," else place - 1 :]) is not None
    # From Thai (U+0E00) on there are scripts that put no spaces between words.
    return before.isalnum() and after.isalnum() and max(before, after) < "\u0e00"


class SpanReader:
    """A reader exported by ``clew train reader``: ``model.onnx``, ``tokenizer.json`` and ``clew-reader.json``.

    The inputs of the graph are ``input_ids``, ``attention_mask`` and ``token_type_ids``, int64 (windows, tokens); the
    output is ``logits``, float32 (windows, tokens, 3): start, end, sentence. Each window is one call, so that an
    answer depends on its window alone; windows are read by ``threads`` threads. Raises NotFound, ModelError.
    """

    def __init__(self, folder: Path | str, threads: int | None = None) -> None:
        self.folder = Path(folder)
        self.threads = threads or os.cpu_count() or 1
        for name in (MODEL_FILE, TOKENIZER_FILE, SETTINGS_FILE):
            if not (self.folder / name).is_file():
                raise NotFound(
                    f"no reader in {self.folder}: {name} missing", "Make one: clew train reader --help"
                )
        self.settings = _read_settings(self.folder / SETTINGS_FILE)
        self._lock = threading.Lock()

    @cached_property
    def name(self) -> str:
        """``onnx:reader@3f2a9c1d``: the name in the settings and eight digits of the hash of the files."""
        files = [self.folder / file for file in (MODEL_FILE, TOKENIZER_FILE, SETTINGS_FILE)]
        return f"onnx:{self.settings['name']}@{hash_files(files)}"

    def confidence(self, score: float) -> float:
        """Return the probability that a span is right, by Platt's scaling of its score."""
        slope, intercept = self.settings["calibration"]
        return float(1 / (1 + np.exp(-(slope * score + intercept))))

    @property
    def max_tokens(self) -> int:
        """The tokens of a window."""
        return int(self.settings["max_tokens"])

    def read(
        self, question: str, contexts: Sequence[Sequence[ReaderPassage]], limit: int = 5
    ) -> list[list[Span]]:
        """Return for each context its best spans over all of its windows."""
        return [
            _best_of_all(windows, passages, limit)
            for windows, passages in zip(self._run(question, contexts), contexts, strict=True)
        ]

    def read_options(
        self,
        question: str,
        passages: Sequence[ReaderPassage],
        options: Sequence[tuple[int, int, int]],
        limit: int = 5,
    ) -> tuple[list[Span], list[float]]:
        """Return the best spans and the scores of the options."""
        windows = self._run(question, [passages])[0]
        scores = [score_option(windows, *option) for option in options]
        return _best_of_all(windows, passages, limit), _score_unread(scores)

    def read_alone(self, question: str, options: Sequence[tuple[ReaderPassage, int, int]]) -> list[float]:
        """Return the score of each option (passage, start, end) that is read with its passage alone."""
        read = self._run(question, [[passage] for passage, _, _ in options])
        return _score_unread(
            [
                score_option(windows, 0, start, end)
                for windows, (_, start, end) in zip(read, options, strict=True)
            ]
        )

    def _run(
        self, question: str, contexts: Sequence[Sequence[ReaderPassage]]
    ) -> list[list[tuple[Window, Floats]]]:
        """Return for each context its windows with their logits, (tokens, 3)."""
        with self._lock:
            tokens, session = self._session
        windows = [
            (number, window)
            for number, passages in enumerate(contexts)
            for window in build_windows(tokens, question, passages, self.max_tokens)
        ]

        def run_window(index: int) -> Floats:
            window = windows[index][1]
            feed = {
                "input_ids": window.ids[None],
                "attention_mask": np.ones((1, len(window.ids)), dtype=np.int64),
                "token_type_ids": window.type_ids[None],
            }
            logits: Floats = session.run(None, feed)[0][0].astype(np.float64)
            return logits

        read: list[list[tuple[Window, Floats]]] = [[] for _ in contexts]
        all_logits = map_threads(run_window, range(len(windows)), self.threads)
        for (number, window), logits in zip(windows, all_logits, strict=True):
            read[number].append((window, logits))
        return read

    @cached_property
    def _session(self) -> tuple[Tokens, Any]:
        session = open_onnx_session(self.folder / MODEL_FILE)
        return Tokens(read_tokenizer(self.folder / TOKENIZER_FILE)), session


def _read_settings(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        if settings["format"] != FORMAT:
            raise ValueError(f"format {settings['format']}, this version of clew reads {FORMAT}")
        if not isinstance(settings["name"], str) or not 64 <= settings["max_tokens"] <= 4096:
            raise ValueError("bad values: name, max_tokens")
        slope, intercept = map(float, settings["calibration"])
        if not (slope > 0 and np.isfinite(intercept)):
            raise ValueError("bad values: calibration")
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"damaged reader settings {file}: {error}", "Export the reader again") from error
    return dict(settings)


@cache
def create_span_reader(name: str) -> SpanReader:
    """Return the reader of a name, ``clew:reader`` or ``onnx:FOLDER``; the same one for the same name.

    Raises UsageError, NotFound, ModelError.
    """
    scheme, _, rest = name.partition(":")
    if scheme == "clew":
        return SpanReader(embedded_folder(rest, SETTINGS_FILE))
    if scheme == "onnx" and rest:
        return SpanReader(Path(rest).expanduser())
    raise UsageError(
        f"'{name}' is no reader", "Name one: clew:reader, or onnx:FOLDER (clew train reader --help)"
    )
