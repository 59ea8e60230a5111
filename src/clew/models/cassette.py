"""Record what a model was asked and replied; replay it without the model.

A cassette is a JSONL file: one line for each completion, ``{"prompt": {...}, "completion": {...}}``. It holds
the prompts in full, and so whatever of the documents they quote.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from clew.core.errors import ModelError, NotFound
from clew.core.protocols import Completion, LanguageModel, Prompt
from clew.models.cache import completion_from_dict, completion_to_dict, json_digest, prompt_to_dict

_SHOWN = 80


class RecordingModel:
    """Appends every completion of ``model`` to the cassette ``path``, in the order of the prompts."""

    def __init__(self, model: LanguageModel, path: str | Path) -> None:
        self.model = model
        self.path = Path(path).expanduser()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        completions = self.model.complete(prompts)
        lines = [
            json.dumps(
                {"prompt": prompt_to_dict(prompt), "completion": completion_to_dict(made)}, ensure_ascii=False
            )
            for prompt, made in zip(prompts, completions, strict=True)
        ]
        with self._lock, self.path.open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(line + "\n" for line in lines)
        return completions


class ReplayModel:
    """Replies from the cassette ``path`` what was recorded for the same prompt, and to nothing else.

    Prompts are compared by role, system and user text, and by which sample they are. What was recorded several
    times for one prompt is replayed in that order, each once: the third asking of what was asked twice is another
    run, and an error.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self._played: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """``replay:file.jsonl``."""
        return f"replay:{self.path}"

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return what was recorded. Raises ModelError where it was not, NotFound without the file."""
        with self._lock:
            return [self._next(prompt) for prompt in prompts]

    def _next(self, prompt: Prompt) -> Completion:
        key = _key(prompt)
        recorded = self._tape.get(key)
        if recorded is None:
            raise ModelError(
                f"{self.path} has no reply to this '{prompt.role}' prompt", self._nearest(prompt)
            )
        number = self._played.get(key, 0)
        if number == len(recorded):
            raise ModelError(
                f"{self.path} has {number} replies to this '{prompt.role}' prompt, and one more was needed",
                "The recorded run took another way; record it again",
            )
        self._played[key] = number + 1
        return recorded[number][1]

    @cached_property
    def _tape(self) -> dict[str, list[tuple[Prompt, Completion]]]:
        tape: dict[str, list[tuple[Prompt, Completion]]] = {}
        try:
            # Not splitlines: a text may hold other line ends, which JSON does not escape.
            lines = (
                self.path.read_text(encoding="utf-8", errors="surrogatepass").removesuffix("\n").split("\n")
            )
        except FileNotFoundError:
            raise NotFound(f"no recording at {self.path}", "Make one with --record") from None
        for number, line in enumerate(lines, 1):
            try:
                shape = json.loads(line)
                asked = shape["prompt"]
                prompt = Prompt(asked["user"], asked["system"], asked["role"], sample=asked.get("sample", 0))
                completion = completion_from_dict(shape["completion"])
            except (ValueError, KeyError, TypeError) as error:
                raise ModelError(
                    f"{self.path}, line {number} is no recorded completion: {error!r}", "Record it again"
                ) from error
            tape.setdefault(_key(prompt), []).append((prompt, completion))
        return tape

    def _nearest(self, prompt: Prompt) -> str:
        from rapidfuzz import fuzz

        asked = [recorded[0][0] for recorded in self._tape.values() if recorded[0][0].role == prompt.role]
        if not asked:
            return f"It has none with that role at all; this one begins: {prompt.user[:_SHOWN]!r}"
        near = max(asked, key=lambda other: fuzz.ratio(_whole(other), _whole(prompt)))
        mine, other = _whole(prompt), _whole(near)
        at = next(
            (n for n, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b),
            min(len(mine), len(other)),
        )
        begin = max(0, at - _SHOWN // 4)
        return (
            f"The nearest recorded one differs at character {at}: it has {other[begin : begin + _SHOWN]!r}, "
            f"this one {mine[begin : begin + _SHOWN]!r}"
        )


def _whole(prompt: Prompt) -> str:
    return f"{prompt.system}\n{prompt.user}"


def _key(prompt: Prompt) -> str:
    return json_digest(prompt.role, prompt.system, prompt.user, prompt.sample)
