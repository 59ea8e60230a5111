"""Training of ``clew:multilingual``: its network as a sentence-transformers folder, and what a training changed.

The weights of the encoder are those of another package (:mod:`clew.models.multilingual`). What clew ships is an
update of low rank (Hu et al., ICLR 2022, "LoRA") to the matrices of the layers: 1.3 million numbers at rank 16,
where the network has 118 million.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from clew.core.arrays import Vectors
from clew.core.config import cache_path
from clew.core.errors import UsageError
from clew.models import MULTILINGUAL
from clew.models.multilingual import (
    MATRICES,
    PackedModel,
    Update,
    add_update,
    build_tokenizer,
    read_update,
    shipped_update,
    weights_file,
)

#: The matrices of a layer by their names in transformers' BERT.
_BERT_NAMES = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "fi": "intermediate.dense",
    "fo": "output.dense",
}
_BERT_NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}


def trainable_folder() -> Path:
    """Return a sentence-transformers folder of the encoder as clew ships it; written at the first use, 450 MB.

    Raises MissingExtra, ModelError.
    """
    from filelock import FileLock

    weights, update = weights_file(), shipped_update()
    parent = cache_path() / "encoders"
    parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(update.read_bytes()).hexdigest()[:8]
    folder = parent / f"{MULTILINGUAL}-trainable-{weights.stat().st_size}-{digest}"
    with FileLock(parent / f"{MULTILINGUAL}-trainable.lock"):
        if not folder.is_dir():
            write_trainable_folder(weights, folder, read_update(update))
    return folder


def write_trainable_folder(weights: Path, folder: Path, update: Update | None = None) -> None:
    """Write the network of a packed file, with an update, as a new sentence-transformers folder.

    Raises ModelError for a packed file of another form.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Normalize, Pooling, Transformer
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    packed = PackedModel.read(weights)
    config = BertConfig(
        vocab_size=len(packed.pieces),
        hidden_size=packed.width,
        num_hidden_layers=packed.layers,
        num_attention_heads=packed.heads,
        intermediate_size=packed.inner,
        max_position_embeddings=packed.positions,
        type_vocab_size=1,
        layer_norm_eps=packed.epsilon,
        pad_token_id=packed.pieces.index("<pad>"),
    )
    model = BertModel(config)
    state = {name: torch.from_numpy(values) for name, values in _bert_weights(packed, update or {}).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or any(not name.startswith(("pooler.", "embeddings.position_ids")) for name in missing):
        raise UsageError(f"transformers' BERT has other weights: {missing}, {unexpected}", "Report it")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(build_tokenizer(packed))),
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        model_max_length=packed.positions,
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        network = Path(scratch) / "network"
        model.save_pretrained(network)
        tokenizer.save_pretrained(network)
        modules = [
            Transformer(str(network), max_seq_length=packed.positions),
            Pooling(packed.width, "mean"),
            Normalize(),
        ]
        whole = SentenceTransformer(
            modules=modules, device="cpu", prompts={"query": "query: ", "document": "passage: "}
        )
        finished = Path(scratch) / "finished"
        whole.save_pretrained(str(finished), create_model_card=False)
        shutil.move(finished, folder)


def _bert_weights(packed: PackedModel, update: Update) -> dict[str, Vectors]:
    """Return the weights of a packed model by their names in transformers' BERT."""
    width = packed.width
    weights = {
        "embeddings.word_embeddings.weight": packed.matrix("emb.word", width)[: len(packed.pieces)],
        "embeddings.position_embeddings.weight": packed.floats("emb.pos").reshape(-1, width)[
            : packed.positions
        ],
        "embeddings.token_type_embeddings.weight": packed.floats("emb.type").reshape(-1, width)[:1],
        "embeddings.LayerNorm.weight": packed.floats("emb.ln.w"),
        "embeddings.LayerNorm.bias": packed.floats("emb.ln.b"),
    }
    for number in range(packed.layers):
        ours, theirs = f"l{number}.", f"encoder.layer.{number}."
        for name, long_name in _BERT_NAMES.items():
            columns = packed.inner if name == "fo" else width
            matrix = add_update(packed.matrix(f"{ours}{name}.w", columns), update, ours + name)
            weights[f"{theirs}{long_name}.weight"] = matrix
            weights[f"{theirs}{long_name}.bias"] = packed.floats(f"{ours}{name}.b")
        for name, long_name in _BERT_NORMS.items():
            weights[f"{theirs}{long_name}.weight"] = packed.floats(f"{ours}{name}.w")
            weights[f"{theirs}{long_name}.bias"] = packed.floats(f"{ours}{name}.b")
    return weights


def find_update(weights: Path, trained: Path, rank: int) -> Update:
    """Return the update of ``rank`` that is nearest to what a training changed in the matrices of the layers.

    ``trained`` is the model's folder of a training that began from ``weights``, the packed file, without an update.
    For one with LoRA of that rank it is the change itself.
    """
    from safetensors.numpy import load_file

    packed = PackedModel.read(weights)
    (file,) = trained.rglob("model.safetensors")
    after: dict[str, Any] = load_file(file)
    update: Update = {}
    for number in range(packed.layers):
        for name in MATRICES:
            before = packed.matrix(f"l{number}.{name}.w", packed.inner if name == "fo" else packed.width)
            change = after[f"encoder.layer.{number}.{_BERT_NAMES[name]}.weight"] - before
            left, sizes, right = np.linalg.svd(change, full_matrices=False)
            roots = np.sqrt(sizes[:rank])
            update[f"l{number}.{name}"] = (
                (left[:, :rank] * roots).astype(np.float16),
                (roots[:, None] * right[:rank]).astype(np.float16),
            )
    return update
