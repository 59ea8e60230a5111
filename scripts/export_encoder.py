"""Exports a sentence-transformers model to a folder that ``onnx:FOLDER`` reads.

    python scripts/export_encoder.py all-MiniLM-L6-v2 minilm --int8

The source is a folder or a name on the Hugging Face hub. The folder gets ``model.onnx`` (inputs
``input_ids``, ``attention_mask`` and, where the source has them, ``token_type_ids``, all int64 of shape
(texts, tokens); output ``embedding``, unit vectors), ``tokenizer.json`` and ``clew-encoder.json``. Pooling,
dense layers and normalisation are inside the graph, so that whoever runs it can get none of them wrong.
``--int8`` quantises the weights per channel; per tensor would lose a fifth of the nearest neighbours.

The result is checked against the source on sample sentences, one text per call as clew encodes, and the worst
cosine difference is printed. Needs ``clew[local]`` and ``onnx``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from clew.models.onnx import MODEL, SETTINGS, TOKENIZER, OnnxEncoder

SAMPLES = (
    "Revenue",
    "The river rises in the eastern hills and reaches the sea near the old harbour.",
    "Capital expenditure: fiscal year 2018: $1,577; fiscal year 2017: $1,373 (in millions)",
    "Who founded the company that built the lighthouse, and in which year was it lit for the first time?",
    "Die Brücke wurde 1907 von der Werft an der Förde gebaut. 東京の橋。",
    " ".join(["A passage that is longer than the window of the model, so that its end is cut off."] * 40),
)
#: Largest allowed cosine distance to the source; rounding alone for fp32, what int8 costs otherwise.
TOLERANCE = {"fp32": 1e-4, "int8": 0.1}
OPSET = 17


class Whole(torch.nn.Module):
    """The source with all its modules, and normalisation, as one graph of tensors."""

    def __init__(self, source: SentenceTransformer, inputs: list[str]) -> None:
        super().__init__()
        self.source = source
        self.inputs = inputs

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """Return unit vectors for a batch of token ids and masks."""
        features = self.source(dict(zip(self.inputs, tensors, strict=True)))
        return torch.nn.functional.normalize(features["sentence_embedding"], dim=-1)


def main() -> None:
    """Export, verify, and only then put the folder where it was asked for."""
    options = parsed_options()
    if options.folder.exists():
        sys.exit(f"{options.folder} exists already")
    source = SentenceTransformer(
        options.source, device="cpu", model_kwargs={"attn_implementation": "eager"}
    ).eval()
    settings = described(source, options)
    with tempfile.TemporaryDirectory(dir=options.folder.absolute().parent) as scratch:
        made = Path(scratch) / options.folder.name
        made.mkdir()
        source.tokenizer.backend_tokenizer.no_padding()
        source.tokenizer.backend_tokenizer.no_truncation()
        source.tokenizer.backend_tokenizer.save(str(made / TOKENIZER))
        (made / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")
        export(source, made / MODEL)
        if options.int8:
            quantise(made / MODEL)
        worst = worst_difference(source, made, settings["passage_prefix"])
        print(f"worst cosine difference to the source on {len(SAMPLES)} texts: {worst:.2e}")
        if worst > TOLERANCE[settings["weights"]]:
            sys.exit("that is too much; nothing was written")
        shutil.move(made, options.folder)
    size = (options.folder / MODEL).stat().st_size / 2**20
    print(f"{options.folder}: {size:.0f} MiB, {settings['dimension']} dimensions, {settings['weights']}")


def parsed_options() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", help="a sentence-transformers model: a folder or a hub name")
    parser.add_argument("folder", type=Path, help="the folder to make")
    parser.add_argument("--name", help="what the encoder is called (default: the folder's name)")
    parser.add_argument("--int8", action="store_true", help="quantise the weights, per channel")
    parser.add_argument("--max-tokens", type=int, help="cut texts here (default: where the source does)")
    parser.add_argument("--query-prefix", help="put before a question (default: what the source declares)")
    parser.add_argument("--passage-prefix", help="put before a passage (default: what the source declares)")
    return parser.parse_args()


def described(source: SentenceTransformer, options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of the folder: what a caller must know that the graph does not hold."""
    declared = source.prompts or {}
    query, passage = options.query_prefix, options.passage_prefix
    return {
        "format": 1,
        "name": options.name or options.folder.name,
        "dimension": dimension(source),
        "pooling": pooling(source),
        "normalise": True,
        "max_tokens": options.max_tokens or source.max_seq_length,
        "query_prefix": declared.get("query", "") if query is None else query,
        "passage_prefix": declared.get("document", declared.get("passage", ""))
        if passage is None
        else passage,
        "weights": "int8" if options.int8 else "fp32",
    }


def pooling(source: SentenceTransformer) -> str:
    """Return how the source makes one vector of its tokens', for people to read: the graph does it."""
    module = next((module for module in source if type(module).__name__ == "Pooling"), None)
    if hasattr(module, "pooling_mode"):
        return "+".join(
            [module.pooling_mode] if isinstance(module.pooling_mode, str) else module.pooling_mode
        )
    return str(module.get_pooling_mode_str()) if module is not None else "its own"


def dimension(source: SentenceTransformer) -> int:
    """Return the length of the source's vectors."""
    return int(source.encode(["length"]).shape[1])


def export(source: SentenceTransformer, target: Path) -> None:
    """Write the source as one ONNX graph with free batch and length."""
    encoded = source.tokenizer(
        ["a first text", "and a second, longer one"], padding=True, return_tensors="pt"
    )
    inputs = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in encoded]
    torch.onnx.export(
        Whole(source, inputs),
        tuple(encoded[name] for name in inputs),
        str(target),
        input_names=inputs,
        output_names=["embedding"],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in inputs} | {"embedding": {0: "texts"}},
        opset_version=OPSET,
        dynamo=False,
    )


def quantise(model: Path) -> None:
    """Replace the model by one with int8 weights, one scale per output channel."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared = model.with_suffix(".prepared.onnx")
    quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
    quantize_dynamic(str(prepared), str(model), per_channel=True, weight_type=QuantType.QInt8)
    prepared.unlink()


def worst_difference(source: SentenceTransformer, folder: Path, prefix: str) -> float:
    """Return the largest cosine distance between the source's vectors and the folder's."""
    encoder = OnnxEncoder(folder)
    wanted = np.vstack([source.encode([prefix + text], normalize_embeddings=True) for text in SAMPLES])
    return float((1 - (encoder.encode(SAMPLES) * wanted).sum(axis=1)).max())


if __name__ == "__main__":
    main()
