"""Rerankers in this process: MonoT5 and cross-encoders. They need the extra ``local``.

Each pair of question and text is scored on its own. Texts beyond a model's window are cut at their end, as in the
models' training. The models are small, and their calls are not counted in a usage (as in D3: Nair et al., EMNLP 2023,
Section 5).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from clew.core.arrays import Floats
from clew.core.errors import ModelError, require_packages
from clew.core.protocols import Reranker
from clew.models import parse_name
from clew.models.local import choose_device, load_error, load_model, load_tokenizer, resolve_source

T = TypeVar("T")

#: An example of each form of name.
RERANKERS = {
    "monot5": "monot5:castorini/monot5-base-msmarco-10k",
    "cross-encoder": "cross-encoder:cross-encoder/ms-marco-MiniLM-L-12-v2",
}
#: Tokens of a pair, as in the training of MonoT5 and of the cross-encoders of MS MARCO.
WINDOW = 512
BATCH_SIZE = 16


def create_reranker(name: str) -> Reranker:
    """Return the reranker of a name such as ``monot5:FOLDER``. Raises UsageError; weights load at the first use."""
    parsed = parse_name(name, RERANKERS)
    return MonoT5(parsed.rest) if parsed.scheme == "monot5" else CrossEncoder(parsed.rest)


class MonoT5:
    """MonoT5 (Nogueira et al., Findings of EMNLP 2020): the probability that a T5 replies ``true`` to a text.

    The input is ``Query: QUESTION Document: TEXT Relevant:`` (Section 3), and the score is the softmax over the
    logits of ``true`` and ``false`` at the first decoder step. In an input beyond ``window`` tokens the end of the
    text is cut, but never ``Relevant:``, to which the model replies. ``source`` is a hub name or a folder.
    """

    def __init__(self, source: str, *, window: int = WINDOW, batch_size: int = BATCH_SIZE) -> None:
        self.source, self.window, self.batch_size = source, window, batch_size
        # The device is shared.
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """``monot5:castorini/monot5-base-msmarco-10k``."""
        return f"monot5:{self.source}"

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """Return the probability that each text is relevant, (n,). Raises ModelError, MissingExtra."""
        with self._lock:
            inputs = [self._input(question, text) for text in texts]
            return _score_batches(inputs, self.batch_size, len, self._scores)

    def _input(self, question: str, text: str) -> list[int]:
        tail = self._ids("Relevant:") + self._end
        head = self._ids(f"Query: {question} Document: {text}")
        return head[: self.window - len(tail)] + tail

    def _ids(self, text: str) -> list[int]:
        # Not verbose: the tokenizer warns of too many tokens, which are cut here.
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _scores(self, inputs: Sequence[list[int]]) -> Floats:
        import torch

        padded = self._tokenizer.pad({"input_ids": list(inputs)}, return_tensors="pt").to(self._model.device)
        start = torch.full(
            (len(inputs), 1), self._model.config.decoder_start_token_id, device=self._model.device
        )
        with torch.inference_mode():
            logits = self._model(
                input_ids=padded["input_ids"],
                attention_mask=padded["attention_mask"],
                decoder_input_ids=start,
            ).logits[:, 0, list(self._words)]
            scores: Floats = logits.double().softmax(dim=-1)[:, 0].cpu().numpy()
        return scores

    @cached_property
    def _model(self) -> Any:
        model = load_model(self.source)
        if not model.config.is_encoder_decoder:
            raise ModelError(f"'{self.source}' is no sequence-to-sequence model", "Name a MonoT5")
        return model.to(choose_device()).eval()

    @cached_property
    def _tokenizer(self) -> Any:
        self._model  # noqa: B018 - raises MissingExtra first
        return load_tokenizer(self.source, "right")

    @cached_property
    def _words(self) -> tuple[int, int]:
        """The tokens of ``true`` and ``false``."""
        tokens = [self._ids(word) for word in ("true", "false")]
        if any(len(ids) != 1 or ids[0] == self._tokenizer.unk_token_id for ids in tokens):
            raise ModelError(f"'{self.source}' has no tokens 'true' and 'false'", "Name a MonoT5")
        return tokens[0][0], tokens[1][0]

    @cached_property
    def _end(self) -> list[int]:
        end = self._tokenizer.eos_token_id
        return [] if end is None else [end]


class CrossEncoder:
    """A cross-encoder of sentence-transformers: one number for a question and a text read together.

    The score is the model's own, with the activation function that it was saved with. ``source`` is a hub name or a
    folder.
    """

    def __init__(self, source: str, *, batch_size: int = BATCH_SIZE) -> None:
        self.source, self.batch_size = source, batch_size
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """``cross-encoder:cross-encoder/ms-marco-MiniLM-L-12-v2``."""
        return f"cross-encoder:{self.source}"

    def score(self, question: str, texts: Sequence[str]) -> Floats:
        """Return the score of each text, (n,). Raises ModelError, MissingExtra."""
        with self._lock:
            return _score_batches(
                texts, self.batch_size, len, lambda batch: self._scores([(question, text) for text in batch])
            )

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> Floats:
        predictions = self._model.predict(list(pairs), batch_size=self.batch_size, show_progress_bar=False)
        scores = np.asarray(predictions, dtype=np.float64)
        if scores.shape != (len(pairs),):
            raise ModelError(
                f"'{self.source}' gives {scores.shape[1:]} numbers per pair", "Name one that gives one"
            )
        return scores

    @cached_property
    def _model(self) -> Any:
        require_packages("local", "sentence_transformers")
        from sentence_transformers import CrossEncoder as Loaded

        try:
            return Loaded(resolve_source(self.source), device=choose_device())
        except (OSError, ValueError) as error:
            raise load_error(self.source, error) from error


def _score_batches(
    items: Sequence[T], size: int, length: Callable[[T], int], score: Callable[[list[T]], Floats]
) -> Floats:
    """Return the score of each item, (n,). Items of similar length share a batch, so that little is padding."""
    scores = np.empty(len(items))
    order = sorted(range(len(items)), key=lambda n: -length(items[n]))
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        scores[batch] = score([items[n] for n in batch])
    return scores
