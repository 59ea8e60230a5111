import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from clew.core.errors import BadCompletion, MissingExtra, ModelError, NotFound
from clew.models import create_encoder
from clew.models.encoders import OnnxEncoder, OpenAIEncoder, RememberingEncoder, open_onnx_session
from clew.models.endpoint import Endpoint
from clew.models.wrappers import RetryPolicy
from scripted import Reply, ScriptedServer, refusal, scripted_vector
from tiny_encoder import make_encoder

TEXTS = ["the river rises", "a", "", "one two three four five six seven eight nine ten", "Zwei Brücken 東京"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


def at(server, **options):
    return OpenAIEncoder(Endpoint(server.llm, server.url, "scripted"), **options)


def test_an_onnx_folder_encodes_what_its_graph_computes(folder):
    vectors = OnnxEncoder(folder.path).encode(TEXTS)
    expected = np.array([folder.by_hand(text) for text in TEXTS])
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), OnnxEncoder(folder.path).dimension)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_a_vector_depends_on_its_text_alone(folder):
    together = OnnxEncoder(folder.path, threads=3).encode(TEXTS * 5)
    alone = np.vstack([OnnxEncoder(folder.path, threads=1).encode([text]) for text in TEXTS])
    assert np.array_equal(together, np.tile(alone, (5, 1)))


def test_questions_and_passages_get_their_prefixes(folder):
    item = OnnxEncoder(folder.path)
    prefixed = OnnxEncoder(folder.with_settings(query_prefix="one ", passage_prefix="two "))
    assert np.array_equal(prefixed.encode(["three"], query=True), item.encode(["one three"]))
    assert np.array_equal(prefixed.encode(["three"]), item.encode(["two three"]))


def test_a_long_text_is_cut_at_the_models_window(folder):
    short = OnnxEncoder(folder.with_settings(max_tokens=5))  # one of them is [CLS]
    words = "one two three four five six".split()
    assert np.array_equal(short.encode([" ".join(words)]), short.encode([" ".join(words[:4])]))
    assert not np.array_equal(short.encode([" ".join(words[:3])]), short.encode([" ".join(words[:4])]))


def test_the_name_identifies_the_weights_wherever_they_lie(folder, tmp_path):
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder.path, moved)
    name = OnnxEncoder(folder.path).name
    assert name == OnnxEncoder(moved).name
    prefix, _, digest = name.partition("@")
    assert prefix == "onnx:tiny"
    assert len(digest) == 8
    content = bytearray((moved / "model.onnx").read_bytes())
    content[-1] ^= 1
    (moved / "model.onnx").write_bytes(content)
    assert OnnxEncoder(moved).name != name


def test_nothing_is_loaded_before_it_is_used(folder, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(folder.path, broken)
    (broken / "model.onnx").write_bytes(b"nonsense")
    vectors = create_encoder(f"onnx:{broken}")
    assert vectors.dimension == folder.dimension
    assert vectors.name.startswith("onnx:tiny@")


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("model.onnx", b"nonsense", "damaged model"),
        ("model.onnx", b"", "damaged model"),
        ("tokenizer.json", b"{", "damaged tokenizer"),
        ("tokenizer.json", b"{}", "damaged tokenizer"),
        ("tokenizer.json", b'{"model": 3}', "damaged tokenizer"),
        ("clew-encoder.json", b"{", "damaged encoder settings"),
        ("clew-encoder.json", b"[]", "damaged encoder settings"),
        ("clew-encoder.json", b'{"format": 2}', "this version of clew reads 1"),
        ("clew-encoder.json", b'{"format": 1, "name": "x"}', "damaged encoder settings"),
    ],
)
def test_a_damaged_folder_is_refused(folder, tmp_path, file, content, problem):
    broken = tmp_path / "broken"
    shutil.copytree(folder.path, broken)
    (broken / file).write_bytes(content)
    with pytest.raises(ModelError) as caught:
        OnnxEncoder(broken).encode(["a"])
    assert problem in caught.value.problem


def test_settings_that_do_not_fit_the_graph_are_refused(folder):
    with pytest.raises(ModelError, match="makes vectors of 6, its settings say 7"):
        OnnxEncoder(folder.with_settings(dimension=7)).encode(["a"])


def test_a_missing_file_is_named(folder, tmp_path):
    incomplete = tmp_path / "incomplete"
    shutil.copytree(folder.path, incomplete)
    (incomplete / "tokenizer.json").unlink()
    with pytest.raises(NotFound, match=r"tokenizer\.json missing"):
        create_encoder(f"onnx:{incomplete}")


def test_an_endpoint_encodes_in_batches_and_by_index():
    texts = [f"text {n}" for n in range(150)]
    with ScriptedServer(dimension=5) as server:
        item = at(server)
        vectors = item.encode(texts)
        assert sorted(len(request.body["input"]) for request in server.requests) == [22, 64, 64]
        assert item.dimension == 5
    expected = np.array([scripted_vector(text, 5) for text in texts])
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert vectors.dtype == np.float32


def test_an_empty_batch_is_no_request_and_an_empty_text_is_no_empty_input():
    with ScriptedServer() as server:
        item = at(server)
        assert item.encode([""]).shape == (1, 8)
        assert server.requests[0].body["input"] == [" "]
        assert item.encode([]).shape == (0, 8)


def test_a_busy_endpoint_is_waited_for():
    waits = []

    class Busy(ScriptedServer):
        def _embeddings(self, request):
            return super()._embeddings(request) if waits else refusal(429, headers={"Retry-After": "2"})

    with Busy() as server:
        assert at(server, retries=RetryPolicy(sleep=waits.append)).encode(["a"]).shape == (1, 8)
    assert waits == [2.0]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"{broken", "did not answer as an embeddings endpoint"),
        (b'{"data": []}', "did not answer as"),
        (b'{"object": "list", "data": [{"index": 5, "embedding": [1.0]}]}', "1 vectors for 1 texts"),
    ],
)
def test_what_is_no_embedding_is_refused(raw, problem):
    class Odd(ScriptedServer):
        def _embeddings(self, request):
            return Reply(raw=raw)

    with Odd() as server, pytest.raises(BadCompletion) as caught:
        at(server).encode(["a"])
    assert problem in caught.value.problem


def test_a_sentence_transformer_needs_its_extra():
    try:
        import sentence_transformers  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match=r"pip install .*\[local\]'"):
            create_encoder("st:all-MiniLM-L6-v2").encode(["a"])
    else:
        pytest.skip("sentence-transformers is installed here")


def test_settings_hold_what_a_caller_must_know(folder):
    settings = json.loads((folder.path / "clew-encoder.json").read_text())
    assert settings["format"] == 1


def test_a_passage_is_read_once_and_a_question_every_time(folder):
    class Counting(OnnxEncoder):
        def encode(self, texts, query=False):
            read.append((tuple(texts), query))
            return super().encode(texts, query)

    read = []
    remembering = RememberingEncoder(Counting(folder.path))
    plain = OnnxEncoder(folder.path)
    assert (remembering.name, remembering.dimension) == (plain.name, plain.dimension)
    for texts in (["a", "one", "a"], ["one", "two"], ["a"], []):
        assert np.array_equal(remembering.encode(texts), plain.encode(texts))
    assert [texts for texts, _ in read] == [("a", "one"), ("two",), ()]
    for _ in range(2):
        remembering.encode(["a"], query=True)
    assert read[3:] == [(("a",), True)] * 2


def test_products_of_large_numbers_do_not_saturate(tmp_path):
    """A sum of 64 products of 255 and 127, which 16 bits do not hold two of: exact on every processor."""
    onnx = pytest.importorskip("onnx")
    shape = (1, 64)
    numbers = onnx.helper.make_tensor_value_info("numbers", onnx.TensorProto.UINT8, shape)
    total = onnx.helper.make_tensor_value_info("total", onnx.TensorProto.INT32, (1, 8))
    weights = onnx.numpy_helper.from_array(np.full((64, 8), 127, dtype=np.int8), "weights")
    node = onnx.helper.make_node("MatMulInteger", ["numbers", "weights"], ["total"])
    graph = onnx.helper.make_graph([node], "sums", [numbers], [total], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "model.onnx")
    session = open_onnx_session(tmp_path / "model.onnx")
    (sums,) = session.run(None, {"numbers": np.full(shape, 255, dtype=np.uint8)})
    assert (sums == 64 * 255 * 127).all()


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere it keeps its files in other places"
)
def test_the_library_that_runs_models_keeps_no_record_of_the_machine(tmp_path):
    """onnxruntime queues events about the machine in the user's cache, and sends them, unless it is told not to."""
    encode = "from clew.models import create_encoder; create_encoder('clew:hops').encode(['a text'])"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CLEW_CACHE": str(tmp_path / "clew")}
    subprocess.run([sys.executable, "-c", encode], env=environment, check=True)
    assert [path.name for path in tmp_path.rglob("*") if "onnxruntime" in path.name.lower()] == []
