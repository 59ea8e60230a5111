"""A base of the sample documents, made once, of which each module has a copy."""

import shutil
from pathlib import Path

import pytest

from command_line import run

SAMPLES = Path(__file__).parents[3] / "samples" / "documents"


@pytest.fixture(scope="session")
def made(tmp_path_factory, without_encoder):
    folder = tmp_path_factory.mktemp("samples") / "base"
    run("add", SAMPLES, "--kb", folder)
    return folder


@pytest.fixture(scope="module")
def kb(made, tmp_path_factory):
    return shutil.copytree(made, tmp_path_factory.mktemp("cli") / "base")
