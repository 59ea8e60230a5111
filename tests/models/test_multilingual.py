"""The export of a packed model against the same network in numpy, with a tiny model of random weights."""

import json
import struct

import numpy as np
import pytest

from clew.core.errors import MissingExtra, ModelError
from clew.models.encoders import OnnxEncoder

WIDTH, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 4, 96, 16
PIECES = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "▁",
    "▁query",
    ":",
    "▁passage",
    "▁haus",
    "▁haus",
    "s",
    "東",
    "京",
    "a",
]
PIECES[9] = "▁b"
SCORES = [0, 0, 0, 0, -3, -2, -1, -2, -2.5, -4, -2, -3, -3, -5]


def packed_matrix(values):
    """Return a matrix in 4 bits and its exact values."""
    blocks = values.reshape(len(values), -1, 32)
    scales = (np.abs(blocks).max(axis=2, keepdims=True) / 7).astype("<f2")
    whole = np.clip(np.rint(blocks / scales.astype("f4")) + 8, 0, 15).astype("u1")
    raw = np.zeros(blocks.shape[:2], np.dtype([("scale", "<f2"), ("halves", "u1", 16)]))
    raw["scale"] = scales[..., 0]
    raw["halves"] = whole[..., :16] | whole[..., 16:] << 4
    exact = ((whole.astype("f4") - 8) * scales.astype("f4")).reshape(values.shape)
    return raw.tobytes(), exact


def packed_file(path):
    """Write a packed model; return its tensors, widened."""
    rng = np.random.default_rng(0)
    shapes = {"emb.word": (len(PIECES), WIDTH)}
    for n in range(LAYERS):
        shapes |= {f"l{n}.{name}.w": (WIDTH, WIDTH) for name in ("q", "k", "v", "ao")}
        shapes |= {f"l{n}.fi.w": (INNER, WIDTH), f"l{n}.fo.w": (WIDTH, INNER)}
    plain = {"emb.pos": POSITIONS * WIDTH, "emb.type": WIDTH, "emb.ln.w": WIDTH, "emb.ln.b": WIDTH}
    for n in range(LAYERS):
        plain |= {f"l{n}.{name}.b": WIDTH for name in ("q", "k", "v", "ao", "aln", "fo", "oln")}
        plain |= {f"l{n}.fi.b": INNER, f"l{n}.aln.w": WIDTH, f"l{n}.oln.w": WIDTH}
    tensors, parts = {}, []
    for name, shape in shapes.items():
        data, tensors[name] = packed_matrix(rng.normal(size=shape).astype("f4") * 0.3)
        parts.append((name, 1, data))
    for name, size in plain.items():
        tensors[name] = rng.normal(size=size).astype("<f4") * 0.3 + name.endswith("ln.w")
        parts.append((name, 0, tensors[name].astype("<f4").tobytes()))
    blob = "".join(PIECES).encode()
    starts = np.cumsum([0, *(len(piece.encode()) for piece in PIECES)]).astype("<u4")
    head = b"E5S1" + struct.pack(
        "<I7ifi", 1, WIDTH, LAYERS, HEADS, INNER, len(PIECES), POSITIONS, 1, 1e-5, 32
    )
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, len(blob))
    head += starts.tobytes() + np.array(SCORES, "<f4").tobytes() + blob
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 0x2003, 1, 32)
    directory = sum(2 + len(name) + 21 for name, _, _ in parts)
    place = len(head) + 4 + directory
    entries = struct.pack("<i", len(parts))
    for name, kind, data in parts:
        entries += struct.pack("<H", len(name)) + name.encode()
        entries += struct.pack("<BIQQ", kind, 0, place, len(data))
        place += len(data)
    path.write_bytes(head + entries + b"".join(data for _, _, data in parts))
    return tensors


def plain_forward(ids, t):
    def normalise(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return (
            centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * t[f"{name}.w"] + t[f"{name}.b"]
        )

    def linear(x, name):
        return x @ t[f"{name}.w"].T + t[f"{name}.b"]

    erf = np.vectorize(__import__("math").erf)
    x = t["emb.word"][ids] + t["emb.pos"].reshape(-1, WIDTH)[: len(ids)] + t["emb.type"]
    x = normalise(x, "emb.ln")
    for n in range(LAYERS):
        q, k, v = (linear(x, f"l{n}.{name}").reshape(len(ids), HEADS, -1) for name in "qkv")
        scores = np.einsum("ahd,bhd->hab", q, k) / np.sqrt(WIDTH / HEADS)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = np.einsum("hab,bhd->ahd", shares, v).reshape(len(ids), WIDTH)
        x = normalise(x + linear(mixed, f"l{n}.ao"), f"l{n}.aln")
        inner = linear(x, f"l{n}.fi")
        x = normalise(x + linear(0.5 * inner * (1 + erf(inner / np.sqrt(2))), f"l{n}.fo"), f"l{n}.oln")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def test_the_export_computes_what_the_packed_network_does(tmp_path):
    pytest.importorskip("onnx")
    from clew.models.multilingual import CONTRAST, PackedModel, export_multilingual

    tensors = packed_file(tmp_path / "packed.bin")
    model = PackedModel.read(tmp_path / "packed.bin")
    assert model.pieces == PIECES and model.unknown == 3
    np.testing.assert_array_equal(model.matrix("l0.fo.w", INNER), tensors["l0.fo.w"])
    export_multilingual(tmp_path / "packed.bin", tmp_path / "encoder")
    encoder = OnnxEncoder(tmp_path / "encoder", threads=1)
    assert json.loads((tmp_path / "encoder" / "clew-encoder.json").read_text())["query_prefix"] == "query: "
    assert OnnxEncoder(tmp_path / "encoder").contrast == CONTRAST > 1
    # Words begin with U+2581; full width becomes plain; what is in no piece is unknown.
    expected = {"hauss": [0, 7, 6, 8, 10, 2], "Ｂ 東京": [0, 7, 6, 4, 3, 4, 11, 12, 2]}
    for text, ids in expected.items():
        vector = encoder.encode([text])[0]
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
        assert vector @ plain_forward(ids, tensors) > 0.999  # rounding to 8 bits


def random_update(rank):
    """Return an update of low rank of every matrix of the tiny model."""
    rng = np.random.default_rng(1)
    shapes = {"fi": (INNER, WIDTH), "fo": (WIDTH, INNER)}
    return {
        f"l{n}.{name}": tuple(
            (rng.normal(size=shape) * 0.2).astype(np.float16)
            for shape in (
                (shapes.get(name, (WIDTH, WIDTH))[0], rank),
                (rank, shapes.get(name, (WIDTH, WIDTH))[1]),
            )
        )
        for n in range(LAYERS)
        for name in ("q", "k", "v", "ao", "fi", "fo")
    }


def updated(tensors, update):
    """Return the tensors with an update."""
    added = {f"{name}.w": left.astype("f4") @ right.astype("f4") for name, (left, right) in update.items()}
    return {name: values + added.get(name, 0) for name, values in tensors.items()}


def test_an_update_of_low_rank_is_added_to_the_matrices(tmp_path):
    pytest.importorskip("onnx")
    from clew.models.multilingual import export_multilingual, read_update, write_update

    tensors = packed_file(tmp_path / "packed.bin")
    write_update(random_update(2), tmp_path / "update.npz")
    update = read_update(tmp_path / "update.npz")
    assert update.keys() == random_update(2).keys()
    export_multilingual(tmp_path / "packed.bin", tmp_path / "encoder", update)
    encoder = OnnxEncoder(tmp_path / "encoder", threads=1)
    assert encoder.objective == "mdr"
    vector, ids = encoder.encode(["hauss"])[0], [0, 7, 6, 8, 10, 2]
    assert vector @ plain_forward(ids, updated(tensors, update)) > 0.99  # rounding to 8 bits
    assert vector @ plain_forward(ids, tensors) < 0.95


def test_the_update_that_clew_ships_fits_the_layers():
    from clew.models.multilingual import MATRICES, read_update, shipped_update

    update = read_update(shipped_update())
    assert update.keys() == {f"l{n}.{name}" for n in range(12) for name in MATRICES}
    for name, (left, right) in update.items():
        rows, columns = {"fi": (1536, 384), "fo": (384, 1536)}.get(name.partition(".")[2], (384, 384))
        assert (left.shape, right.shape) == ((rows, 16), (16, columns))
        assert np.isfinite(left).all() and np.isfinite(right).all() and left.any() and right.any()


@pytest.mark.filterwarnings("ignore")
def test_it_is_trained_from_a_folder_that_encodes_the_same(tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("torch")
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from clew.train.encoder import encode_texts
    from clew.train.multilingual import find_update, write_trainable_folder

    tensors = packed_file(tmp_path / "packed.bin")
    update = random_update(2)
    write_trainable_folder(tmp_path / "packed.bin", tmp_path / "trainable", update)
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "trainable"), device="cpu")
    for query, ids in ((False, [0, 7, 6, 8, 10, 2]), (True, [0, 5, 6, 8, 10, 2])):
        vector = encode_texts(model, ["hauss"], query=query)[0]
        assert vector @ plain_forward(ids, updated(tensors, update)) > 0.9999
    # What was changed in the folder is what is written as an update, to the digits of float16.
    read = find_update(tmp_path / "packed.bin", tmp_path / "trainable", 2)
    for name, (left, right) in update.items():
        again = read[name][0].astype("f4") @ read[name][1].astype("f4")
        assert np.abs(again - left.astype("f4") @ right.astype("f4")).max() < 5e-3


def test_weights_of_another_form_are_refused(tmp_path, monkeypatch):
    from clew.models import create_encoder, multilingual

    file = tmp_path / "packed.bin"
    packed_file(file)
    whole = file.read_bytes()
    for damaged in (b"", b"GGUF" + whole[4:], whole[:60], whole[:4] + b"\xff" * 60):
        file.write_bytes(damaged)
        with pytest.raises(ModelError, match="has not the form"):
            multilingual.PackedModel.read(file)
    monkeypatch.setattr(multilingual, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="multilingual"):
        create_encoder("clew:multilingual")
