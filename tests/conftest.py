"""For all tests: new knowledge bases have no encoder, since most tests are about something else.

What comes with clew is tested where it matters: on the samples, in the README's commands, and in
``tests/models/test_embedded.py``.
"""

import functools
import gc
import itertools
import os

import pytest
from hypothesis import HealthCheck, settings
from typer.main import get_command

# The same code gives the same result: a rare example that fails belongs to the change that looks for it, with
# HYPOTHESIS_PROFILE=random, and not to the next change that happens to draw it.
# Neither deadlines nor "too slow": a test says nothing about the speed of the machine.
for profile, fixed in (("fixed", True), ("random", False)):
    settings.register_profile(
        profile, derandomize=fixed, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

_CACHES = itertools.count()

# Collecting makes a million objects that live to the end: looking among them for garbage takes a third of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was collected out of the garbage collector's later rounds."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Let libraries that look for leaks at the end of the process see that there are none."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def without_encoder():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_ENCODER", "none")
        patch.setenv("CLEW_READER", "none")
        yield


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory):
    """The folder of all caches of model replies. No test may read or write the cache of the person who runs it."""
    folder = tmp_path_factory.mktemp("caches")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_CACHE", str(folder))
        patch.setenv("CLEW_DATA", str(folder / "data"))  # projects and settings of the web app
        yield folder


@pytest.fixture(autouse=True)
def empty_cache(caches, monkeypatch):
    """Each test has its own cache: scripted servers get the same ports again, and with them the same names."""
    monkeypatch.setenv("CLEW_CACHE", str(caches / str(next(_CACHES))))


@pytest.fixture
def embedded(monkeypatch):
    """New knowledge bases have the encoder that comes with clew, and its trained reader reads."""
    monkeypatch.delenv("CLEW_ENCODER")
    monkeypatch.delenv("CLEW_READER")


@pytest.fixture(scope="session", autouse=True)
def one_command_tree():
    """A runner builds all commands for each invocation, which takes longer than most commands do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", functools.cache(get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def without_waiting_for_the_disk():
    """No test of this process survives a power cut; those that end processes start their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_reading_process():
    """Tests add a few small files: a second process takes longer to start than it saves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        yield


@pytest.fixture(scope="session")
def object_server():
    """An S3 server on loopback, which the tests of one process share."""
    from object_server import missing_package, serve_objects

    if missing := missing_package():
        pytest.skip(f"{missing}, which the S3 server of these tests needs, is not installed (extra dev)")
    with serve_objects() as server:
        yield server


@pytest.fixture
def address(object_server, monkeypatch, request):
    """An empty address on the S3 server, whose settings are in the environment."""
    for name, value in object_server.options().items():
        monkeypatch.setenv(name.upper(), value)
    yield f"s3://{object_server.bucket}/{request.node.name}"
    object_server.fault = object_server.delay = None
