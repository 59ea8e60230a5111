"""A base of three documents and a graph, made once, of which each module serves a copy; and a real browser."""

import re
import shutil

import pytest

import clew
from chromium import ABSENT, CHROMIUM, chromium
from serve_app import FILES, PATIENCE, SAMPLES, ServedApp


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


@pytest.fixture
def served(made_base, tmp_path):
    """A base of three documents, and nothing asked of it."""
    shutil.copytree(made_base, tmp_path / "harbour")
    with ServedApp(tmp_path / "harbour") as app:
        yield app


@pytest.fixture(scope="session")
def own_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="session")
def running(own_folder, without_encoder):
    """The app of a person on this machine, who may make projects, follow folders and choose models."""
    settings = {"projects": own_folder / "projects", "own_settings": own_folder / "settings.json"}
    with ServedApp(own_folder / "kb", encoder="none", model_servers=(), **settings) as app:
        yield app


@pytest.fixture
def own(running):
    yield running
    running.base = "kb"


@pytest.fixture
def own_served(made_base, tmp_path):
    """A base of three documents, with a person on this machine."""
    shutil.copytree(made_base, tmp_path / "harbour")
    settings = {"projects": tmp_path / "projects", "own_settings": tmp_path / "settings.json"}
    with ServedApp(tmp_path / "harbour", model_servers=(), **settings) as app:
        yield app


@pytest.fixture(scope="module")
def keys(app):
    """The documents' keys by name."""
    return {
        document["document"]: document["key"] for document in app.get(f"{app.api}/documents")[1]["documents"]
    }


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip(ABSENT)
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[dev]'")
    with chromium() as launched:
        yield launched


@pytest.fixture
def open_page(browser):
    """Opens pages of an app. Afterwards: no error was logged, nothing was asked of another address."""
    contexts, problems, asked = [], [], []

    def open_(app, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{app.port}/")
        return page

    yield open_
    for context in contexts:
        context.close()
    # A server that a test has ended is still asked for news.
    assert not [problem for problem in problems if "ERR_CONNECTION_REFUSED" not in problem]
    assert all(re.match(r"http://127\.0\.0\.1:\d+/|data:|blob:", url) for url in asked), asked
