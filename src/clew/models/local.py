"""Hugging Face language models in this process. They need the extra ``local``."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clew.core.errors import ModelError, require_packages
from clew.core.prompts.replies import schema_instruction
from clew.core.protocols import Completion, Prompt
from clew.core.types import Usage
from clew.models.openai import cut_at_stop

BATCH_SIZE = 8
#: A stop string is searched for in this many tokens at the end of a text.
_TAIL = 32


@dataclass(slots=True)
class _Request:
    """A prompt that waits for the device, and what became of it."""

    prompt: Prompt
    completion: Completion | None = None
    error: ModelError | None = None

    @property
    def is_done(self) -> bool:
        return self.completion is not None or self.error is not None

    def fits(self, other: _Request) -> bool:
        """Return whether both can be generated in one batch."""
        return (self.prompt.temperature, self.prompt.stop) == (other.prompt.temperature, other.prompt.stop)


class LocalModel:
    """A causal or sequence-to-sequence model from a hub name or a folder, on a GPU where there is one.

    It decodes greedily unless a prompt sets a temperature. Prompts are written with the tokenizer's chat template
    where it has one; a sequence-to-sequence model (T5) gets the text alone. A schema is described in words. The
    weights may be downloaded from the hub; no prompt leaves the machine. Raises ModelError for a prompt that is
    longer than the model's window, since cutting it would lose the question or the evidence.

    Prompts of several threads (``clew eval run --workers 8``) that arrive while the model is busy are generated
    together afterwards, at most ``batch_size`` at once.
    """

    def __init__(self, source: str, *, batch_size: int = BATCH_SIZE) -> None:
        self.source = source
        self.batch_size = batch_size
        # One generation at a time: the device is shared.
        self._lock = threading.Lock()
        self._waiting: deque[_Request] = deque()

    @property
    def name(self) -> str:
        """``local:Qwen/Qwen3-0.6B``."""
        return f"local:{self.source}"

    def complete(self, prompts: Sequence[Prompt]) -> list[Completion]:
        """Return one completion per prompt, in order. Raises ModelError, MissingExtra."""
        requests = [_Request(prompt) for prompt in prompts]
        self._waiting.extend(requests)
        for request in requests:
            while not request.is_done:
                # Whoever gets the device works for all who wait, then for those who came meanwhile.
                with self._lock:
                    if not request.is_done:
                        self._complete_next()
            if request.error is not None:
                raise request.error
        return [request.completion for request in requests if request.completion is not None]

    def _complete_next(self) -> None:
        """Generate for the first request that waits, and for others that can share its batch."""
        first = self._waiting.popleft()
        batch = [first]
        others: list[_Request] = []
        while self._waiting and len(batch) < self.batch_size:
            request = self._waiting.popleft()
            (batch if request.fits(first) else others).append(request)
        self._waiting.extendleft(reversed(others))
        try:
            completions = self._generate([request.prompt for request in batch])
        except ModelError as error:
            if len(batch) == 1:
                first.error = error
                return
            # One prompt may be too long for the window: each is then generated alone, and answers for itself.
            for request in batch:
                try:
                    request.completion = self._generate([request.prompt])[0]
                except ModelError as alone:
                    request.error = alone
            return
        except BaseException:
            for request in batch[1:]:
                self._waiting.appendleft(request)
            first.error = ModelError(f"{self.name} failed while it generated")
            raise
        for request, completion in zip(batch, completions, strict=True):
            request.completion = completion

    def _generate(self, prompts: list[Prompt]) -> list[Completion]:
        """Return the completions of prompts with the same temperature and stop strings, padded to one batch."""
        started = time.perf_counter()
        encoded = tokenize_prompts(self._tokenizer, prompts, return_tensors="pt", padding=True)
        encoded = encoded.to(self._model.device)
        lengths = encoded["attention_mask"].sum(dim=1).tolist()
        self._check_window(lengths, prompts)
        import torch  # after the model was loaded, which raises MissingExtra without torch

        first = prompts[0]
        options: dict[str, Any] = {"do_sample": bool(first.temperature)}
        if first.temperature:
            options["temperature"] = first.temperature
        # A causal model's output starts with its input, a sequence-to-sequence model's with one start token.
        skip = 1 if self._model.config.is_encoder_decoder else encoded["input_ids"].shape[1]
        if first.stop:
            options["stopping_criteria"] = [self._stopping_test(first.stop, skip)]
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=max(prompt.max_tokens for prompt in prompts),
                pad_token_id=self._tokenizer.pad_token_id,
                **options,
            )
        seconds = (time.perf_counter() - started) / len(prompts)
        return [
            self._completion(prompt, row[skip : skip + prompt.max_tokens], length, seconds)
            for prompt, row, length in zip(prompts, output.tolist(), lengths, strict=True)
        ]

    def _completion(self, prompt: Prompt, ids: list[int], tokens_in: int, seconds: float) -> Completion:
        padding = {self._tokenizer.pad_token_id, self._tokenizer.eos_token_id}
        tokens_out = sum(token not in padding for token in ids)
        text = cut_at_stop(self._tokenizer.decode(ids, skip_special_tokens=True), prompt.stop)
        return Completion(text.strip(), Usage(1, int(tokens_in), tokens_out, seconds, 0.0), self.name)

    def _stopping_test(self, stops: Sequence[str], skip: int) -> Any:
        """Return a test of which rows have a stop string; the library's own test fails on some vocabularies."""
        import torch

        def has_stop(ids: Any, _scores: Any) -> Any:
            ends = self._tokenizer.batch_decode(ids[:, skip:][:, -_TAIL:], skip_special_tokens=True)
            return torch.tensor([any(stop in end for stop in stops) for end in ends], device=ids.device)

        return has_stop

    def _check_window(self, lengths: Sequence[int], prompts: Sequence[Prompt]) -> None:
        config = self._model.config
        room = context_window(config)
        if room is None:
            return
        for length, prompt in zip(lengths, prompts, strict=True):
            needed = length + (0 if config.is_encoder_decoder else prompt.max_tokens)
            if needed > room:
                raise ModelError(
                    f"a '{prompt.role}' prompt needs {needed} tokens, {self.name} has a window of {room}",
                    "Give it fewer passages, or use another model",
                )

    @cached_property
    def _model(self) -> Any:
        return load_model(self.source).to(choose_device()).eval()

    @cached_property
    def _tokenizer(self) -> Any:
        # Padding goes before a causal model's input, so that all inputs end where generation begins.
        side = "right" if self._model.config.is_encoder_decoder else "left"
        return load_tokenizer(self.source, side)


def choose_device() -> str:
    """Return the torch device for models of this process: a GPU where there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


def load_config(source: str) -> Any:
    """Return the configuration of the model of a hub name or folder. Raises ModelError, MissingExtra."""
    require_packages("local", "transformers", "torch")
    import transformers

    try:
        return transformers.AutoConfig.from_pretrained(resolve_source(source))
    except (OSError, ValueError) as error:
        raise load_error(source, error) from error


def load_model(source: str, dtype: Any = "auto") -> Any:
    """Return the causal or sequence-to-sequence model of a hub name or folder, on the CPU.

    ``dtype`` is a torch dtype, or ``auto`` for the one that it was saved in. Raises ModelError, MissingExtra.
    """
    encoder_decoder = load_config(source).is_encoder_decoder
    import transformers

    kind = transformers.AutoModelForSeq2SeqLM if encoder_decoder else transformers.AutoModelForCausalLM
    try:
        return kind.from_pretrained(resolve_source(source), dtype=dtype)
    except (OSError, ValueError) as error:
        raise load_error(source, error) from error


def load_tokenizer(source: str, padding_side: str) -> Any:
    """Return the tokenizer of a hub name or folder; one without a padding token pads with its end of text.

    Raises ModelError.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(resolve_source(source), padding_side=padding_side)
    except (OSError, ValueError) as error:
        raise load_error(source, error) from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def render_prompt(tokenizer: Any, prompt: Prompt) -> str:
    """Return the text of a prompt for a model: written with its chat template, or the prompt's words alone."""
    system = prompt.system
    if prompt.schema is not None:
        system = f"{system}\n\n{schema_instruction(prompt.schema)}".strip()
    if not tokenizer.chat_template:
        return f"{system}\n\n{prompt.user}".strip()
    messages = [{"role": "user", "content": prompt.user}]
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


def tokenize_prompts(tokenizer: Any, prompts: Sequence[Prompt], **form: Any) -> Any:
    """Return the token ids of each prompt for a model; ``form`` has the tokenizer's own options.

    Training uses it too (:mod:`clew.train.traverser`), so that a model is trained on what it is later asked.
    """
    # A chat template writes the special tokens itself.
    special = not tokenizer.chat_template
    return tokenizer(
        [render_prompt(tokenizer, prompt) for prompt in prompts], add_special_tokens=special, **form
    )


def context_window(config: Any) -> int | None:
    """Return the number of tokens that a model takes, None for any number.

    They are input and output of a causal model together, and the input of a sequence-to-sequence model.
    """
    room = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
    return None if room is None else int(room)


def resolve_source(source: str) -> str:
    """Return the path of a folder with ``~`` expanded, or a hub name as it is."""
    folder = Path(source).expanduser()
    return str(folder) if folder.is_dir() else source


def load_error(source: str, error: Exception) -> ModelError:
    """Return the error for a model that could not be loaded."""
    return ModelError(f"cannot load '{source}': {error}", "Give a folder or a Hugging Face hub name")
