"""Export of a sentence-transformers model to a folder that ``onnx:FOLDER`` reads without torch.

The folder gets ``model.onnx`` (inputs ``input_ids``, ``attention_mask`` and, where the source has them,
``token_type_ids``, all int64 of shape (texts, tokens); output ``embedding``, unit vectors), ``tokenizer.json`` and
``clew-encoder.json``. Pooling, dense layers and normalisation are inside the graph, so that the caller cannot get
them wrong.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from clew.core.errors import UsageError, require_packages, unknown_name_error
from clew.models import MULTILINGUAL
from clew.models.encoders import FORMAT, MODEL_FILE, SETTINGS_FILE, TOKENIZER_FILE, OnnxEncoder
from clew.models.multilingual import CONTRAST
from clew.train.encoder import RECORD, training_objective, training_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: fp32: unchanged. half: stored in 16 bits and widened on loading, for half the size at the same speed. int8: a
#: quarter of the size and faster, with one scale per output channel (one per tensor loses a fifth of the neighbours).
Weights = Literal["fp32", "half", "int8"]
SAMPLES = (
    "Revenue",
    "The river rises in the eastern hills and reaches the sea near the old harbour.",
    "Capital expenditure: fiscal year 2018: $1,577; fiscal year 2017: $1,373 (in millions)",
    "Who founded the company that built the lighthouse, and in which year was it lit for the first time?",
    "Die Brücke wurde 1907 von der Werft an der Förde gebaut. 東京の橋。",
    " ".join(["A passage that is longer than the window of the model, so that its end is cut off."] * 40),
)
#: The largest allowed cosine distance to the source: rounding for fp32 and half, the usual loss for int8.
TOLERANCE: dict[Weights, float] = {"fp32": 1e-4, "half": 1e-4, "int8": 0.1}
_OPSET = 17
#: Smaller tensors (scales, biases, shapes) stay unchanged.
_LARGE_TENSOR = 256


@dataclass(frozen=True, slots=True)
class ExportForm:
    """The form of an export. None stands for the declaration of the source, or, for ``name``, the folder's name."""

    weights: Weights = "fp32"
    name: str | None = None
    max_tokens: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None


def parse_form(weights: str, name: str | None = None) -> ExportForm:
    """Return the form with the named weights. Raises UsageError."""
    for weights_name in get_args(Weights):
        if weights == weights_name:
            return ExportForm(weights_name, name)
    raise unknown_name_error("form of weights", weights, get_args(Weights))


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export: the written settings, the size of the model in bytes, and the largest cosine distance
    to the source's vectors of sample texts, encoded one per call as clew does."""

    settings: dict[str, Any]
    size: int
    max_distance: float


def export_encoder(source: Path | str, folder: Path, form: ExportForm) -> ExportResult:
    """Export the model of a folder or hub name; nothing is written unless it encodes like its source.

    Raises UsageError, MissingExtra.
    """
    require_packages("train", "torch", "sentence_transformers", "onnx")
    if folder.exists():
        raise UsageError(f"{folder} exists already", "Name a new folder")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(source), device="cpu", model_kwargs={"attn_implementation": "eager"}
    ).eval()
    settings = _encoder_settings(model, folder, form, training_objective(Path(source).parent))
    if training_source(Path(source).parent) == f"clew:{MULTILINGUAL}":
        settings["contrast"] = CONTRAST  # its cosines still lie close together
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent) as scratch_folder:
        export_folder = Path(scratch_folder) / folder.name
        export_folder.mkdir()
        tokenizer = model.tokenizer.backend_tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.save(str(export_folder / TOKENIZER_FILE))
        (export_folder / SETTINGS_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        _write_onnx(model, export_folder / MODEL_FILE)
        convert_weights(export_folder / MODEL_FILE, form.weights)
        model.max_seq_length = settings["max_tokens"]
        prefix = settings["passage_prefix"]
        encoder = OnnxEncoder(export_folder)
        expected = np.vstack([model.encode([prefix + text], normalize_embeddings=True) for text in SAMPLES])
        max_distance = float((1 - (encoder.encode(SAMPLES) * expected).sum(axis=1)).max())
        if max_distance > TOLERANCE[form.weights]:
            raise UsageError(
                f"the export is {max_distance:.2e} off its source, more than {TOLERANCE[form.weights]:g}: "
                "not written",
                "Choose other weights: --weights half",
            )
        if (record := Path(source).parent / RECORD).is_file():
            shutil.copy(record, export_folder / RECORD)
        shutil.move(export_folder, folder)
    return ExportResult(settings, (folder / MODEL_FILE).stat().st_size, max_distance)


def _encoder_settings(model: Any, folder: Path, form: ExportForm, objective: str) -> dict[str, Any]:
    """Return the settings that a caller needs beside the graph."""
    prompts = model.prompts or {}
    query, passage = form.query_prefix, form.passage_prefix
    return {
        "format": FORMAT,
        "name": form.name or folder.name,
        "dimension": int(model.encode(["length"]).shape[1]),
        "pooling": _describe_pooling(model),
        "normalise": True,
        "max_tokens": form.max_tokens or model.max_seq_length,
        "query_prefix": prompts.get("query", "") if query is None else query,
        "passage_prefix": prompts.get("document", prompts.get("passage", "")) if passage is None else passage,
        "weights": form.weights,
        "objective": objective,
    }


def _describe_pooling(model: Any) -> str:
    """Return a description of the model's pooling, for people; the graph contains the pooling."""
    module: Any = next((module for module in model if type(module).__name__ == "Pooling"), None)
    if module is None:
        return "its own"
    if not hasattr(module, "pooling_mode"):
        return str(module.get_pooling_mode_str())
    return "+".join([module.pooling_mode] if isinstance(module.pooling_mode, str) else module.pooling_mode)


def _write_onnx(model: Any, target: Path) -> None:
    """Write the model with all its modules and normalisation as one ONNX graph with dynamic batch and length."""
    import torch

    sample = model.tokenizer(["a first text", "and a second, longer one"], padding=True, return_tensors="pt")
    inputs = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in sample]

    class EncoderGraph(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.source = model

        def forward(self, *tensors: Any) -> Any:
            features = self.source(dict(zip(inputs, tensors, strict=True)))
            return torch.nn.functional.normalize(features["sentence_embedding"], dim=-1)

    torch.onnx.export(
        EncoderGraph(),
        tuple(sample[name] for name in inputs),
        str(target),
        input_names=inputs,
        output_names=["embedding"],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in inputs} | {"embedding": {0: "texts"}},
        opset_version=_OPSET,
        dynamo=False,
    )


def convert_weights(model: Path, weights: Weights) -> None:
    """Store the weights of an ONNX model in a smaller form, in place."""
    match weights:
        case "int8":
            _quantise_int8(model)
        case "half":
            _store_half(model)


def _quantise_int8(model: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = model.with_suffix(".prepared.onnx")
    quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
    quantize_dynamic(str(prepared), str(model), per_channel=True, weight_type=QuantType.QInt8)
    prepared.unlink()


def _store_half(model: Path) -> None:
    """Store large weights in 16 bits, each widened by a Cast that onnxruntime folds away on loading."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = onnx.load(str(model))
    casts = []
    for tensor in graph.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if tensor.data_type == TensorProto.FLOAT and values.size >= _LARGE_TENSOR:
            name = tensor.name
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
            casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    for cast in reversed(casts):
        graph.graph.node.insert(0, cast)
    onnx.save(graph, str(model))


def read_int8(model: Path) -> dict[str, NDArray[np.float32]]:
    """Return the weights of an ONNX model that :func:`convert_weights` stored in eight bits, as torch names them."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(str(model)).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights: dict[str, NDArray[np.float32]] = {}

    def widen(name: str) -> NDArray[np.float32]:
        zero, scale = stored[f"{name}_zero_point"], stored[f"{name}_scale"]
        weights: NDArray[np.float32] = (stored[f"{name}_quantized"].astype(np.float32) - zero) * scale
        return weights

    for name, values in stored.items():
        if name.endswith("_quantized") and "::" not in name:
            weights[name.removesuffix("_quantized")] = widen(name.removesuffix("_quantized"))
        elif name.endswith((".bias", ".weight")):
            weights[name] = values.astype(np.float32)
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.input[1].endswith("_quantized"):
            # "/encoder/encoder/layer.0/output/dense/MatMul_quant" holds the weights of one linear layer, turned.
            layer = node.name.strip("/").rpartition("/")[0].replace("/", ".")
            weights[f"{layer}.weight"] = widen(node.input[1].removesuffix("_quantized")).T
    return weights
