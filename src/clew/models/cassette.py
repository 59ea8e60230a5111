"""Record the prompts and completions of a model in a file, and replay them without the model.

A cassette is a JSONL file with one line per completion, ``{"prompt": {...}, "completion": {...}}``. It contains the
prompts in full, with whatever they quote from documents.
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
from clew.models.wrappers import ModelAround

#: Characters of a prompt that an error message shows.
_SHOWN = 80


class RecordingModel(ModelAround):
    """Appends every completion of ``model`` to the cassette ``path``, in the order of the prompts."""

    def __init__(self, model: LanguageModel, path: str | Path) -> None:
        self.model = model
        self.path = Path(path).expanduser()
        self._lock = threading.Lock()

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError."""
        completions = self.model.complete(prompts)
        lines = [
            json.dumps(
                {"prompt": prompt_to_dict(prompt), "completion": completion_to_dict(completion)},
                ensure_ascii=False,
            )
            for prompt, completion in zip(prompts, completions, strict=True)
        ]
        with self._lock, self.path.open("a", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(line + "\n" for line in lines)
        return completions


class ReplayModel:
    """Replays the completions that the cassette ``path`` has for the same prompts; any other prompt is an error.

    Prompts are compared by role, system text, user text and sample. Several completions of one prompt are replayed in
    their order, each once. To ask a prompt more often than it was recorded is an error, since it is another run.
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
        """Return the recorded completions. Raises ModelError where there is none, NotFound without the file."""
        with self._lock:
            return [self._next(prompt) for prompt in prompts]

    def _next(self, prompt: Prompt) -> Completion:
        key = _key(prompt)
        recorded = self._tape.get(key)
        if recorded is None:
            raise ModelError(
                f"{self.path} has no reply to this '{prompt.role}' prompt", self._explain_miss(prompt)
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
            # Not splitlines: a text may contain other line ends, which JSON does not escape.
            lines = (
                self.path.read_text(encoding="utf-8", errors="surrogatepass").removesuffix("\n").split("\n")
            )
        except FileNotFoundError:
            raise NotFound(f"no recording at {self.path}", "Make one with --record") from None
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                fields = entry["prompt"]
                prompt = Prompt(
                    fields["user"], fields["system"], fields["role"], sample=fields.get("sample", 0)
                )
                completion = completion_from_dict(entry["completion"])
            except (ValueError, KeyError, TypeError) as error:
                raise ModelError(
                    f"{self.path}, line {number} is no recorded completion: {error!r}", "Record it again"
                ) from error
            tape.setdefault(_key(prompt), []).append((prompt, completion))
        return tape

    def _explain_miss(self, prompt: Prompt) -> str:
        from rapidfuzz import fuzz

        recorded = [entries[0][0] for entries in self._tape.values() if entries[0][0].role == prompt.role]
        if not recorded:
            return f"It has none with that role at all; this one begins: {prompt.user[:_SHOWN]!r}"
        nearest = max(recorded, key=lambda other: fuzz.ratio(_full_text(other), _full_text(prompt)))
        text, other = _full_text(prompt), _full_text(nearest)
        differing = (n for n, (a, b) in enumerate(zip(text, other, strict=False)) if a != b)
        place = next(differing, min(len(text), len(other)))
        begin = max(0, place - _SHOWN // 4)
        return (
            f"The nearest recorded one differs at character {place}: it has {other[begin : begin + _SHOWN]!r}, "
            f"this one {text[begin : begin + _SHOWN]!r}"
        )


def _full_text(prompt: Prompt) -> str:
    return f"{prompt.system}\n{prompt.user}"


def _key(prompt: Prompt) -> str:
    return json_digest(prompt.role, prompt.system, prompt.user, prompt.sample)
