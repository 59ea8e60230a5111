"""Addresses, ports and install lines of the documentation: each leads somewhere, and is that of a clone."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from packaging.requirements import Requirement

from clew.app.web.settings import MODEL_SERVERS, Settings
from clew.models import ENCODERS, LANGUAGE_MODELS
from serve_app import ServedApp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.*")),
    *sorted((ROOT / "samples").rglob("*.md")),
]
OWN_PORT = Settings(bases={"kb": Path("kb")}).port
#: Ports of this machine that the documentation names, and what answers there.
PORTS = {
    OWN_PORT: "clew serve",
    5000: "moto.server, which the page starts",
    7878: "a SPARQL endpoint",
    10001: "Ray's client port, the default of clew cluster up",
    9: "nothing: an address that cannot be read",
    **{urlsplit(url).port: title for title, url in MODEL_SERVERS},
    **{urlsplit(LANGUAGE_MODELS["http"]).port: "a server of language models"},
}
#: What the one page that describes other installations writes.
OTHER_INSTALLATIONS = {"index.md": {"pip install 'clew[serve]'", "pip install -e '.[serve]'"}}
#: Packages that a page has people install and that clew does not depend on.
OTHER_PACKAGES = {"babel", "pycountry", "flask", "flask-cors", "moto"}
#: Interfaces of other servers, which clew calls.
OTHER_PATHS = {"/api/chat", "/api/show", "/api/version", "/props", "/v1/models"}


def lines_with(pattern: str) -> Iterator[tuple[Path, str]]:
    """Yield what matches in the documentation, with its page."""
    for path in PAGES:
        if path.suffix in {".md", ".py", ".ipynb"} and path.name != "CHANGELOG.md":
            for match in re.finditer(pattern, path.read_text(encoding="utf-8")):
                yield path, match[0]


def test_every_install_line_is_one_of_a_clone() -> None:
    count = 0
    for path, text in lines_with(r"pip install\b[^`&#\n]*"):
        words = shlex.split(text.strip().rstrip("."))[2:] if not text.strip().endswith(" .") else ["."]
        case = f"{path.relative_to(ROOT)}: {text}"
        if text.strip() in OTHER_INSTALLATIONS.get(path.name, ()):
            continue
        count += 1
        for before, word in zip(["", *words], words, strict=False):
            if before in {"-r", "--requirement"}:
                assert (ROOT / word.rstrip(",")).is_file(), case
            elif word.startswith("-"):
                assert word in {"-r", "--no-cache-dir", "--require-hashes", "--no-deps"}, case
            elif own := re.fullmatch(r"(?:\.|/clew)(?:\[([\w,-]+)\])?", word):
                assert set(filter(None, (own[1] or "").split(","))) <= set(EXTRAS), case
            else:
                name = Requirement(word).name
                known = {Requirement(line).name for lines in EXTRAS.values() for line in lines}
                assert name != "clew" and name in OTHER_PACKAGES | known, case
    assert count >= 12


def test_the_pages_that_name_an_extra_name_one_that_exists() -> None:
    named = {name for _, text in lines_with(r"extra `[\w-]+`") for name in re.findall(r"`([\w-]+)`", text)}
    assert {"ocr", "multilingual", "serve"} <= named <= set(EXTRAS)
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    table = page[page.index("| extra |") :]
    listed = [
        name
        for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in re.findall(r"`([\w-]+)`", cell)
    ]
    assert sorted(listed) == sorted(set(EXTRAS) - {"dev", "docs"})


def test_every_port_of_this_machine_has_something_that_answers_there() -> None:
    hosts = r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])"
    named = [(path, int(text.rpartition(":")[2])) for path, text in lines_with(rf"{hosts}:\d+")]
    assert {8321, 8000, 5000} <= {port for _, port in named}
    assert [(path.name, port) for path, port in named if port not in PORTS] == []
    # clew's own paths are on clew's own port: another is that of a model, which names it behind a "#".
    for path, text in lines_with(rf"https?://{hosts}:\d+[^\s`\"')\]|]*"):
        assert urlsplit(text).port in {OWN_PORT, 5000, 9} or "#" in text, (path.name, text)
    # The app finds these at their usual ports; the page says which.
    page = (ROOT / "docs" / "how-to" / "server.md").read_text(encoding="utf-8")
    for title, url in MODEL_SERVERS:
        assert f"{title} {urlsplit(url).port}" in page


def test_the_other_addresses_are_those_of_pages() -> None:
    for path, text in lines_with(r"\bhttps?://[^\s`\"'<>()\[\]|\\{}]+"):
        parts = urlsplit(text.rstrip(".,;:"))
        if "..." in text or parts.hostname in {"127.0.0.1", "localhost", "host", None}:
            continue
        assert parts.scheme == "https" and "." in parts.hostname and parts.username is None, (path.name, text)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedApp]:
    with ServedApp(tmp_path_factory.mktemp("documented") / "kb", encoder="none") as served:
        yield served


def test_every_path_is_one_of_the_app(app: ServedApp) -> None:
    """A path in the documentation has a route; one without parts that stand for something is asked for."""
    pattern = (
        r"(?<=[`\s\d])(?:GET |POST )?/(?:api|v1|b|docs|static|settings|projects|redoc|openapi)\b[^\s`\"'),#]*"
    )
    paths = {text.split(" ")[-1] for _, text in lines_with(pattern)} - OTHER_PATHS
    assert {"/api/docs", "/api/openapi.json", "/v1/chat/completions", "/v1/rerank"} <= paths
    for path in paths - {"/api", "/v1"}:
        address = path.replace("BASE", app.base).replace("...", "x")
        status, _, reply = app.request("GET", address)
        assert status != 404 or b"there is nothing at this address" not in reply, path
    for path in ("/api/docs", "/api/openapi.json", "/settings", "/projects"):
        assert app.request("GET", path)[0] == 200, path
    assert b"there is nothing at this address" in app.request("GET", "/docs")[2]
    listed = app.request("GET", "/api/docs")[2].decode()
    assert "/v1/chat/completions" in listed and "/api/bases/{base}/diff" in listed


def test_the_models_of_the_examples_are_forms_that_clew_knows() -> None:
    known = {*LANGUAGE_MODELS, *ENCODERS}
    for path, text in lines_with(r"--llm \"?[\w.-]+:[^\s`\"|]+"):
        assert text.split()[-1].strip('"').partition(":")[0].rpartition("=")[2] in known, (path.name, text)
