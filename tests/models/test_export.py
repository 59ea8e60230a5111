import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tiny_models
from clew.app.cli.commands import app
from clew.models.encoders import OnnxEncoder

try:
    import sentence_transformers
except ImportError:
    sentence_transformers = None

pytestmark = [
    pytest.mark.skipif(
        sentence_transformers is None, reason="needs the extra 'local' (sentence-transformers)"
    ),
    pytest.mark.filterwarnings("ignore"),
]
TEXTS = ["the river", "a", "one two three four five six seven", ""]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A tiny, randomly initialised sentence-transformers model in a folder."""
    words = "the river a one two three four five six seven".split()
    return tiny_models.encoder(tmp_path_factory.mktemp("source"), words)


def export(source, folder, *options):
    return CliRunner().invoke(app, ["encoder", "export", str(source), str(folder), *options])


@pytest.mark.parametrize(("weights", "tolerance"), [("fp32", 1e-5), ("half", 1e-5), ("int8", 0.05)])
def test_an_exported_folder_encodes_as_its_source(source, tmp_path, weights, tolerance):
    folder = tmp_path / "made"
    done = export(source, folder, "--weights", weights, "--query-prefix", "the ")
    assert done.exit_code == 0, done.output[-2000:]
    assert "worst cosine distance" in done.stdout
    item = OnnxEncoder(folder)
    model = sentence_transformers.SentenceTransformer(str(source), device="cpu")
    expected = np.vstack([model.encode([text], normalize_embeddings=True) for text in TEXTS])
    assert (1 - (item.encode(TEXTS) * expected).sum(axis=1)).max() < tolerance
    query = model.encode(["the river"], normalize_embeddings=True)
    assert 1 - float((item.encode(["river"], query=True) @ query.T)[0, 0]) < tolerance
    settings = json.loads((folder / "clew-encoder.json").read_text())
    assert (settings["dimension"], settings["max_tokens"], settings["pooling"]) == (32, 24, "mean")


def test_another_pooling_is_inside_the_graph_too(source, tmp_path):
    model = sentence_transformers.SentenceTransformer(str(source), device="cpu")
    model[1].pooling_mode = "cls"
    model.save(str(tmp_path / "cls"))
    done = export(tmp_path / "cls", tmp_path / "made")
    assert done.exit_code == 0, done.output[-2000:]
    expected = np.vstack([model.encode([text], normalize_embeddings=True) for text in TEXTS])
    np.testing.assert_allclose(OnnxEncoder(tmp_path / "made").encode(TEXTS), expected, atol=1e-5)
    assert json.loads((tmp_path / "made" / "clew-encoder.json").read_text())["pooling"] == "cls"


def test_a_folder_that_is_there_is_not_touched(source, tmp_path):
    (tmp_path / "made").mkdir()
    done = export(source, tmp_path / "made")
    assert done.exit_code == 2
    assert "exists already" in done.output
    assert list((tmp_path / "made").iterdir()) == []
