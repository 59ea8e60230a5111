"""Encoders: onnxruntime over an exported folder, an embeddings endpoint, sentence-transformers, and a wrapper that
remembers.

:class:`OnnxEncoder` needs neither torch nor a download. ``clew encoder export`` writes its folder from any
sentence-transformers model: ``model.onnx`` (with pooling and normalisation inside the graph), ``tokenizer.json`` and
``clew-encoder.json``. The encoders that clew ships are such folders, each with its model card, under ``embedded/``
beside this file.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.core.errors import (
    BadCompletion,
    ModelError,
    NotFound,
    require_packages,
    unknown_name_error,
)
from clew.core.protocols import Encoder, encoder_batch, encoder_contrast
from clew.models.endpoint import Endpoint
from clew.models.wrappers import RetryPolicy, map_threads

if TYPE_CHECKING:
    import openai

    from clew.core.arrays import Vectors

MODEL_FILE, TOKENIZER_FILE, SETTINGS_FILE = "model.onnx", "tokenizer.json", "clew-encoder.json"
FORMAT = 1
_EMBEDDED = Path(__file__).with_name("embedded")


def embedded_folder(name: str, settings_file: str = "clew-encoder.json") -> Path:
    """Return the folder of a model that clew ships, whose kind its settings file tells. Raises UsageError for an
    unknown name."""
    known = sorted(path.parent.name for path in _EMBEDDED.glob(f"*/{settings_file}"))
    if name not in known:
        kind = settings_file.removeprefix("clew-").removesuffix(".json")
        raise unknown_name_error(f"{kind} that comes with clew", name, known)
    return _EMBEDDED / name


class OnnxEncoder:
    """Encodes with the model in ``folder``, with ``threads`` runs at once (default: one per core).

    A run has one text and one thread. One text at a time is faster here than padded batches, and it makes a vector
    depend on its text alone: the texts of a batch would be padded and would share the scales of dynamic int8
    quantisation.

    ``name`` is ``onnx:<name>@<hash of the files>``: vectors stored under it were made with exactly these weights,
    wherever the folder is. Raises NotFound where the folder lacks a file, ModelError where one is damaged.
    """

    def __init__(self, folder: str | Path, threads: int | None = None) -> None:
        self.folder = Path(folder).expanduser().absolute()
        self.threads = threads or os.cpu_count() or 1
        missing = [
            name for name in (MODEL_FILE, TOKENIZER_FILE, SETTINGS_FILE) if not (self.folder / name).is_file()
        ]
        if missing:
            raise NotFound(
                f"no encoder in {self.folder}: {', '.join(missing)} missing",
                "Make one: clew encoder export --help",
            )
        self._settings = _read_settings(self.folder / SETTINGS_FILE)
        self.dimension: int = self._settings["dimension"]
        # Guards the lazy loading, which several threads of a server may start at once.
        self._lock = threading.Lock()

    @cached_property
    def name(self) -> str:
        """``onnx:minilm@3f2a9c1d``: the name in the settings and eight digits of the hash of the files."""
        files = [self.folder / file for file in (MODEL_FILE, TOKENIZER_FILE, SETTINGS_FILE)]
        return f"onnx:{self._settings['name']}@{hash_files(files)}"

    @property
    def objective(self) -> str:
        """The objective that the weights were trained for, as ``clew-encoder.json`` states it; "" for none."""
        return str(self._settings.get("objective", ""))

    @property
    def contrast(self) -> float:
        """By how much the differences of its cosines have to be multiplied to be as large as those of ``clew:hops``,
        as ``clew-encoder.json`` states it; 1 where it states nothing."""
        return float(self._settings.get("contrast", 1.0))

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. A text beyond ``max_tokens`` is cut there."""
        prefix = self._settings["query_prefix" if query else "passage_prefix"]
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        with self._lock:
            self._session  # noqa: B018 - loads once, before the threads start

        def encode_one(index: int) -> None:
            vectors[index] = self._run(prefix + texts[index])

        map_threads(encode_one, range(len(texts)), self.threads)
        return vectors

    def _run(self, text: str) -> Vectors:
        tokenizer, session, inputs = self._session
        encoding = tokenizer.encode(text)
        if not encoding.ids:
            # An empty text and a tokenizer that adds no tokens: the mean of nothing is not a number.
            return np.zeros(self.dimension, dtype=np.float32)
        columns = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.array([columns[name]], dtype=np.int64) for name in inputs}
        vector: Vectors = session.run(None, feed)[0][0]
        return vector

    @cached_property
    def _session(self) -> tuple[Any, Any, list[str]]:
        session = open_onnx_session(self.folder / MODEL_FILE)
        tokenizer = read_tokenizer(self.folder / TOKENIZER_FILE)
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._settings["max_tokens"])
        inputs = [tensor.name for tensor in session.get_inputs()]
        width = session.get_outputs()[0].shape[-1]
        if isinstance(width, int) and width != self.dimension:
            raise ModelError(
                f"encoder {self.folder} makes vectors of {width}, its settings say {self.dimension}",
                "Export it again",
            )
        return tokenizer, session, inputs


def open_onnx_session(file: Path) -> Any:
    """Return the onnxruntime session of a model, with one thread a call. Raises ModelError for a damaged file."""
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import (  # type: ignore[import-untyped,unused-ignore]
        Fail,
        InvalidArgument,
        InvalidProtobuf,
        NoSuchFile,
    )

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # On x64 processors without VNNI, sums of products of 8-bit numbers saturate by default: vectors and answers
    # differ from those of other machines. This takes exact, slower sums there; elsewhere nothing changes.
    options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except (Fail, InvalidArgument, InvalidProtobuf, NoSuchFile) as error:
        raise ModelError(f"damaged model {file}: {error}", "Export it again") from error


def read_tokenizer(file: Path) -> Any:
    """Return the tokenizer of a file of the tokenizers library. Raises ModelError for a damaged file."""
    from tokenizers import Tokenizer

    # Checked here, because the tokenizers library raises a bare Exception for a file that is no tokenizer.
    try:
        content = file.read_text(encoding="utf-8")
        if not json.loads(content)["model"]["vocab"]:
            raise ValueError("no vocabulary in it")
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"damaged tokenizer {file}: {error}", "Export it again") from error
    return Tokenizer.from_str(content)


_TYPES: dict[str, type] = {
    "name": str,
    "dimension": int,
    "max_tokens": int,
    "query_prefix": str,
    "passage_prefix": str,
}


def _read_settings(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        if settings["format"] != FORMAT:
            raise ValueError(f"format {settings['format']}, this version of clew reads {FORMAT}")
        wrong = [key for key, kind in _TYPES.items() if not isinstance(settings[key], kind)]
        if wrong or settings["dimension"] < 1 or settings["max_tokens"] < 1:
            raise ValueError(f"bad values: {', '.join(wrong) or 'dimension, max_tokens'}")
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"damaged encoder settings {file}: {error}", "Export the encoder again") from error
    return dict(settings)


#: Texts per request to an endpoint, and requests at once.
_BATCH, _WORKERS = 64, 4
_TIMEOUT = 60.0
_WEIGHTS = ("*.safetensors", "*.bin", "*.json", "*/*.safetensors", "*/*.bin", "*/*.json")


class OpenAIEncoder:
    """The embeddings of an OpenAI-compatible endpoint, asked for in several requests at once, which are retried.

    Whether a vector depends on its text alone is up to the endpoint; endpoints that pad batches differ in the last
    digits. ``dimension`` is found by encoding one word. Raises ModelError.
    """

    #: Unknown.
    objective = ""

    def __init__(self, endpoint: Endpoint, retries: RetryPolicy | None = None) -> None:
        self.endpoint = endpoint
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

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with self._lock:
            self._client  # noqa: B018 - created once, before the threads start
        batches = [list(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        parts = map_threads(lambda batch: self.retries.call(lambda: self._embed(batch)), batches, _WORKERS)
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

    #: Unknown.
    objective = ""

    def __init__(self, source: str) -> None:
        self.source = source

    @cached_property
    def name(self) -> str:
        """``st:all-MiniLM-L6-v2``, or ``st:<folder's name>@<hash>``."""
        folder = Path(self.source).expanduser()
        if not folder.is_dir():
            return f"st:{self.source}"
        files = sorted({path for pattern in _WEIGHTS for path in folder.glob(pattern)})
        return f"st:{folder.absolute().name}@{hash_files(files)}"

    @cached_property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self.encode(["dimension"]).shape[1])

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
        require_packages("local", "sentence_transformers")
        from sentence_transformers import SentenceTransformer

        try:
            return SentenceTransformer(str(Path(self.source).expanduser()))
        except (OSError, ValueError) as error:
            raise ModelError(
                f"cannot load '{self.source}': {error}", "Give a folder or a hub name"
            ) from error


def hash_files(files: Iterable[Path]) -> str:
    """Return eight digits of the hash of files, for the name of the model that they are."""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()[:8]


def scale_to_unit_length(vectors: Any) -> Vectors:
    """Return the rows of a matrix scaled to length 1, as float32; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


@dataclass(frozen=True, slots=True)
class EncoderWrapper:
    """Has the properties of the ``encoder`` that it wraps; what encodes is up to its subclasses."""

    encoder: Encoder

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

    @property
    def contrast(self) -> float:
        """The encoder's own contrast."""
        return encoder_contrast(self.encoder)

    @property
    def batch(self) -> int:
        """How many texts the encoder wants at a time."""
        return encoder_batch(self.encoder)


@dataclass(frozen=True, slots=True)
class RememberingEncoder(EncoderWrapper):
    """Remembers the vectors of passages while the process lives, in 4 bytes per dimension each.

    It serves evaluations, where a passage occurs in the corpora of many questions. Only the time changes, since a
    vector depends on its text alone. Questions are encoded anew every time, because the cost of a search is measured.
    """

    _known: dict[str, Vectors] = field(default_factory=dict, repr=False)

    def encode(self, texts: Sequence[str], query: bool = False) -> Vectors:
        """Return unit vectors, (n, dimension), float32. Raises ModelError."""
        if query or not texts:
            return self.encoder.encode(texts, query)
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self.encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])
