"""A base of three documents and a graph, made once; each module serves a copy."""

import shutil

import pytest

import clew
from serve_app import FILES, SAMPLES, ServedApp


@pytest.fixture(scope="session")
def made_base(tmp_path_factory, without_encoder):
    folder = tmp_path_factory.mktemp("serve") / "base"
    with clew.open(folder, create=True) as base:
        base.add([SAMPLES / name for name in FILES])
    return folder


@pytest.fixture(scope="module")
def folder(made_base, tmp_path_factory):
    copy = tmp_path_factory.mktemp("served") / "harbour"
    shutil.copytree(made_base, copy)
    return copy


@pytest.fixture(scope="module")
def app(folder):
    with ServedApp(folder) as served:
        yield served


@pytest.fixture(scope="module")
def keys(app):
    """The documents' keys by name."""
    return {one["document"]: one["key"] for one in app.get(f"{app.api}/documents")[1]["documents"]}
