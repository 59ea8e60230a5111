"""``clew encoder``: the encoder of a base is listed, set and taken away, and missing vectors are made."""

import json

import pytest

import clew
from command_line import run


@pytest.fixture
def kb(tmp_path):
    (tmp_path / "birds.md").write_text("# Birds\n\nThe stork nests on chimneys.\n")
    with clew.open(tmp_path / "kb", create=True) as base:
        base.add([tmp_path / "birds.md"])
    return tmp_path / "kb"


def test_an_encoder_is_set_encodes_and_is_taken_away(kb):
    assert "encoder of this base: none" in run("encoder", "list", "--kb", kb).stdout
    result = run("encoder", "set", "clew:hops", "--later", "--kb", kb)
    assert "clew:hops; 0 vectors made" in result.stdout
    listed = json.loads(run("encoder", "list", "--kb", kb, "--json").stdout)
    assert (
        listed["vectors"] == [] and listed["encoder"] == "clew:hops" and "onnx" in " ".join(listed["kinds"])
    )
    result = run("encoder", "encode", "--kb", kb)
    assert "1 vector to make" in result.stderr and "1 vector made" in result.stdout
    assert "1 vector, 0 missing" in run("encoder", "list", "--kb", kb).stdout
    assert json.loads(run("encoder", "set", "none", "--kb", kb, "--json").stdout) == {
        "encoder": None,
        "encoded": 0,
    }
    assert "no encoder" in run("encoder", "set", "clew:nothing", "--kb", kb, status=2).stderr
