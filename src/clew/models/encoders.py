"""Encoders other than ONNX ones: an embeddings endpoint, sentence-transformers, and a wrapper that remembers."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import BadCompletion, MissingExtra, ModelError
from clew.models.endpoint import Endpoint
from clew.models.pool import map_threads
from clew.models.wrappers import RetryPolicy

if TYPE_CHECKING:
    import openai

    from clew.core.arrays import Vectors
    from clew.core.protocols import Encoder

#: Texts per request to an endpoint.
_BATCH = 64
_TIMEOUT = 60.0
_WEIGHTS = ("*.safetensors", "*.bin", "*.json", "*/*.safetensors", "*/*.bin", "*/*.json")


class OpenAIEncoder:
    """The embeddings of an OpenAI-compatible endpoint, with ``workers`` requests at once, retried by ``retries``.

    Whether a vector depends on its text alone is up to the endpoint; endpoints that pad batches differ in the last
    digits. ``dimension`` is found by encoding one word. Raises ModelError.
    """

    def __init__(self, endpoint: Endpoint, *, workers: int = 4, retries: RetryPolicy | None = None) -> None:
        self.endpoint = endpoint
        self.workers = workers
        self.retries = retries or RetryPolicy()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Canonical name, such as ``openai:text-embedding-3-small``."""
        return self.endpoint.name

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.encode(["dimension"]).shape[1])

    @property
    def objective(self) -> str:
        """Unknown."""
        return ""

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:
            self._client  # noqa: B018 - created once, before the threads start
        batches = [list(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        parts = map_threads(
            lambda batch: self.retries.call(lambda: self._embed(batch)), batches, self.workers
        )
        return scale_to_unit_length(np.vstack(parts))

    @cached_property
    def _client(self) -> openai.OpenAI:
        return self.endpoint.connect(_TIMEOUT, self)

    def _embed(self, texts: list[str]) -> Any:
        import openai

        try:
            reply = self._client.embeddings.create(
                model=self.endpoint.model,
                input=[text or " " for text in texts],  # endpoints refuse an empty text
                encoding_format="float",
            )
        except openai.OpenAIError as error:
            raise self.endpoint.explain_error(error, _TIMEOUT) from error
        except ValueError as error:  # a damaged body, or no data in it
            raise self._wrong_reply(str(error)) from error
        vectors = {item.index: item.embedding for item in getattr(reply, "data", None) or ()}
        if vectors.keys() != set(range(len(texts))) or len({len(vector) for vector in vectors.values()}) != 1:
            raise self._wrong_reply(f"{len(vectors)} vectors for {len(texts)} texts")
        return np.array([vectors[index] for index in range(len(texts))], dtype=np.float64)

    def _wrong_reply(self, reply: str) -> BadCompletion:
        return BadCompletion(f"{self.endpoint.url} did not answer as an embeddings endpoint does: {reply}")


class SentenceTransformerEncoder:
    """A sentence-transformers model in this process, from a hub name or a folder. Needs the extra ``local``.

    It encodes one text per call, so that a vector depends on its text alone. The ``name`` of a folder has a hash of
    its files.
    """

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def name(self) -> str:
        """``st:all-MiniLM-L6-v2``, or ``st:<folder's name>@<hash>``."""
        folder = Path(self.source).expanduser()
        if not folder.is_dir():
            return f"st:{self.source}"
        digest = hashlib.sha256()
        for file in sorted({path for pattern in _WEIGHTS for path in folder.glob(pattern)}):
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
        return f"st:{folder.absolute().name}@{digest.hexdigest()[:8]}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.encode(["dimension"]).shape[1])

    @property
    def objective(self) -> str:
        """Unknown."""
        return ""

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        prefixes = getattr(self._model, "prompts", None) or {}
        prefix = prefixes.get("query" if query else "document", "")
        vectors = [
            self._model.encode([prefix + text], prompt="", show_progress_bar=False)[0] for text in texts
        ]
        return scale_to_unit_length(np.array(vectors, dtype=np.float64))

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise MissingExtra("sentence-transformers", "local") from None
        try:
            return SentenceTransformer(str(Path(self.source).expanduser()))
        except (OSError, ValueError) as error:
            raise ModelError(
                f"cannot load '{self.source}': {error}", "Give a folder or a hub name"
            ) from error


def scale_to_unit_length(vectors: Any) -> Vectors:
    """Return the rows of a matrix scaled to length 1, as float32; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


@dataclass(frozen=True, slots=True)
class RememberingEncoder:
    """Remembers the vectors of passages while the process lives, in 4 bytes per dimension each.

    It serves evaluations, where a passage occurs in the corpora of many questions. Only the time changes, since a
    vector depends on its text alone. Questions are encoded anew every time, because the cost of a search is measured.
    """

    encoder: Encoder
    _known: dict[str, Vectors] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """The encoder's own name."""
        return self.encoder.name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.encoder.dimension

    @property
    def objective(self) -> str:
        """The encoder's own objective."""
        return self.encoder.objective

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. Raises ModelError."""
        if query or not texts:
            return self.encoder.encode(texts, query)
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self.encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])
