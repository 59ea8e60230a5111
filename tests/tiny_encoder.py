"""A tiny encoder folder of the kind that ``onnx:FOLDER`` names, for tests: mean of word vectors, normalised."""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WORDS = "[CLS] [UNK] a one two three four five six seven eight nine ten the river rises".split()


@dataclass(frozen=True)
class TinyEncoder:
    """The folder, and what its graph computes."""

    path: Path
    table: np.ndarray

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self.table.shape[1]

    def by_hand(self, text: str) -> np.ndarray:
        """Return the vector of a text, computed without tokenizer and graph. (Words by white space only.)"""
        ids = [0, *(WORDS.index(word) if word in WORDS else 1 for word in text.split())]
        mean = self.table[ids].mean(axis=0)
        return mean / np.linalg.norm(mean)

    def with_settings(self, **changed: object) -> Path:
        """Return a copy of the folder with other settings."""
        copy = Path(tempfile.mkdtemp(dir=self.path.parent)) / self.path.name
        shutil.copytree(self.path, copy)
        file = copy / "clew-encoder.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changed))
        return copy


def make_encoder(path: Path, dimension: int = 6) -> TinyEncoder:
    """Write an encoder folder to ``path``, the same for the same ``dimension``, and return it."""
    path.mkdir(parents=True)
    table = np.random.default_rng(7).normal(size=(len(WORDS), dimension)).astype(np.float32)
    _write_graph(path / "model.onnx", table)
    _write_tokenizer(path / "tokenizer.json")
    settings = {
        "format": 1,
        "name": path.name,
        "dimension": dimension,
        "pooling": "mean",
        "normalise": True,
        "max_tokens": 32,
        "query_prefix": "",
        "passage_prefix": "",
    }
    (path / "clew-encoder.json").write_text(json.dumps(settings))
    return TinyEncoder(path, table)


def _write_graph(file: Path, table: np.ndarray) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["words"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["words", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "tokens"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["column", "tokens"], ["count"], keepdims=0),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("LpNormalization", ["mean"], ["embedding"], axis=-1, p=2),
    ]
    shape = ["texts", "tokens"]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, shape)
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", table.shape[1]])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(np.array([-1], dtype=np.int64), "last"),
            numpy_helper.from_array(np.array([1], dtype=np.int64), "tokens"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(file))


def _write_tokenizer(file: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 0)])
    tokenizer.save(str(file))
