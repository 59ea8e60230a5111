"""Set-up in the app: models of this machine and elsewhere, keys in the system's keyring, and who may do that."""

from __future__ import annotations

import json
import types
from importlib import import_module
from typing import Any

import pytest

from clew.app.web.setup import LocalServer, find_local_servers
from clew.core.errors import UsageError
from clew.models import keys, parse_roles, resolve_endpoint
from page_reader import fetch_page
from scripted import ScriptedServer
from serve_app import FILES, QUESTION, SAMPLES, ServedApp

QUOTING = {"quotes": [{"source": 1, "text": "$9"}], "answer": "nine dollars", "abstain": False}


class Backend:
    """A keyring in memory, with the interface of the package."""

    name = "Memory"

    def __init__(self):
        self.entries = {}
        self.errors = types.SimpleNamespace(KeyringError=type("KeyringError", (Exception,), {}))

    def get_keyring(self):
        return self

    def get_password(self, service, name):
        return self.entries.get((service, name))

    def set_password(self, service, name, password):
        self.entries[service, name] = password

    def delete_password(self, service, name):
        if self.entries.pop((service, name), None) is None:
            raise self.errors.KeyringError("no such entry")


@pytest.fixture
def memory(monkeypatch):
    """The package keyring, as far as it is used, over a backend in memory."""
    backend = Backend()
    monkeypatch.setattr(keys, "find_spec", lambda name: True)
    monkeypatch.setattr(keys, "import_module", lambda name: backend)
    return backend


@pytest.fixture
def model():
    with ScriptedServer() as server:
        yield server


def test_servers_on_this_machine_are_found_and_used_without_a_key(own, own_folder, model) -> None:
    address = model.url.removesuffix("/v1")
    known = [("LM Studio", address), ("Ollama", "http://127.0.0.1:9")]
    assert find_local_servers(known) == [LocalServer("LM Studio", address, (model.llm,))]
    status, reply = own.post("/api/setup/models", {"name": model.llm})
    assert status == 201 and reply == {
        "id": "scripted",
        "goes": f"stays on this machine ({address})",
        "leaves_machine": False,
    }
    assert json.loads((own_folder / "settings.json").read_text())["models"] == [model.llm]
    page = fetch_page(own, "/settings")
    assert "stays on this machine" in page.text and "used unless you choose another" in page.text
    assert own.get("/api/config")[1]["model"] == "scripted"
    assert own.get("/api/setup")[1]["models"][0]["name"] == model.llm
    assert own.post("/api/setup/models/remove", {"name": model.llm})[0] == 200
    assert own.get("/api/config")[1]["model"] == "none"
    assert own.post("/api/setup/models/remove", {"name": model.llm})[0] == 400
    for name in ("local:x", "replay:x", "read=ollama:a,guide=ollama:b", "nothing", "http://127.0.0.1:1/v1"):
        assert own.post("/api/setup/models", {"name": name})[0] == 400, name


def test_only_the_person_at_this_machine_sets_up(own) -> None:
    proxied = {"X-Forwarded-For": "203.0.113.7"}
    assert own.get("/api/setup", **proxied)[0] == 403
    assert own.post("/api/setup/models", {"name": "ollama:x"}, **proxied)[0] == 403
    assert own.post("/api/setup/models/remove", {"name": "ollama:x"}, **proxied)[0] == 403
    assert own.post(f"{own.api}/encoder", {"name": "clew:hops"}, **proxied)[0] == 403
    page = own.request("GET", "/settings", headers=proxied)[2].decode()
    assert "set by whoever runs this server" in page and "Key <input" not in page
    assert own.post(f"{own.api}/encoder", {"name": "onnx:/tmp"})[0] == 400


def test_a_theme_is_that_of_the_browser(own) -> None:
    for theme, shown in (("dark", True), ("light", True), ("pink", False)):
        page = own.request("GET", "/settings", headers={"Cookie": f"clew_theme={theme}"})[2].decode()
        assert (f'data-theme="{theme}"' in page) == shown
    assert (
        'data-theme="dark"'
        in own.request("GET", "/projects", headers={"Cookie": "clew_theme=dark"})[2].decode()
    )


def test_a_key_is_checked_kept_and_sent_to_its_address_alone(own, model, memory, monkeypatch) -> None:
    model.key = "the-right-key"
    # As if the service were another machine's: a loopback address needs no stored key.
    monkeypatch.setattr("clew.models.is_loopback", lambda url: False)
    status, problem = own.post("/api/setup/models", {"name": model.llm, "key": "a-wrong-key"})
    assert status == 400 and "refuses this key" in problem["error"] and not memory.entries
    status, _ = own.post("/api/setup/models", {"name": model.llm, "key": " the-right-key "})
    place = model.url.removesuffix("/v1")
    assert status == 201 and memory.entries == {("clew", place): "the-right-key"}
    assert resolve_endpoint(parse_roles(model.llm)[""]).key == "the-right-key"
    assert resolve_endpoint(parse_roles("https://other.example/v1#m")[""]).key is None
    assert b"the-right-key" not in own.request("GET", "/settings")[2]
    assert own.get("/api/setup")[1]["keyring"] == "Memory"
    assert own.post("/api/setup/models/remove", {"name": model.llm, "key": True})[0] == 200
    assert memory.entries == {}
    status, problem = own.post("/api/setup/models", {"name": "http://127.0.0.1:9/v1#m", "key": "k"})
    assert status == 400 and "cannot be reached" in problem["error"]


@pytest.mark.parametrize("lacks", ["package", "keyring"])
def test_without_a_keyring_a_key_is_kept_until_clew_ends(own, own_folder, model, monkeypatch, lacks) -> None:
    if lacks == "package":
        monkeypatch.setattr(keys, "find_spec", lambda name: None)
    else:
        keyring: Any = pytest.importorskip("keyring", reason="keyring is not installed: pip install '.[dev]'")
        monkeypatch.setattr(keyring, "get_keyring", import_module("keyring.backends.fail").Keyring)
    # As if the service were another machine's: a loopback address needs no stored key.
    monkeypatch.setattr("clew.models.is_loopback", lambda url: False)
    page = fetch_page(own, "/settings")
    assert "until clew is ended" in page.text and 'name="key"' in own.request("GET", "/settings")[2].decode()
    assert own.get("/api/setup")[1]["keyring"] == ""
    model.key = "the-right-key"
    status, problem = own.post("/api/setup/models", {"name": model.llm, "key": "a-wrong-key"})
    assert status == 400 and "refuses this key" in problem["error"]
    assert own.post("/api/setup/models", {"name": model.llm, "key": "the-right-key"})[0] == 201
    assert resolve_endpoint(parse_roles(model.llm)[""]).key == "the-right-key"
    assert resolve_endpoint(parse_roles("https://other.example/v1#m")[""]).key is None
    assert all("the-right-key" not in path.read_text() for path in own_folder.glob("*.json"))
    assert own.post("/api/setup/models/remove", {"name": model.llm, "key": True})[0] == 200
    assert resolve_endpoint(parse_roles(model.llm)[""]).key is None and not keys.delete_key(model.url)


def test_the_package_keyring_itself(monkeypatch) -> None:
    keyring: Any = pytest.importorskip("keyring", reason="keyring is not installed: pip install '.[dev]'")
    fail: Any = import_module("keyring.backends.fail")

    class Memory(keyring.backend.KeyringBackend):  # type: ignore[misc]
        priority = 1
        name = "Memory"

        def __init__(self):
            super().__init__()
            self.entries = {}

        def get_password(self, service, username):
            return self.entries.get((service, username))

        def set_password(self, service, username, password):
            self.entries[service, username] = password

        def delete_password(self, service, username):
            if self.entries.pop((service, username), None) is None:
                raise keyring.errors.PasswordDeleteError("no such entry")

    class Refusing(Memory):
        def set_password(self, service, username, password):
            raise keyring.errors.PasswordSetError("it is locked")

    before = keyring.get_keyring()
    try:
        keyring.set_keyring(Memory())
        assert keys.name_keyring() == "Memory"
        keys.store_key("https://a.example/v1", "k")
        assert keys.read_key("https://a.example/v2") == "k" and keys.read_key("https://b.example") is None
        assert keys.delete_key("https://a.example") and not keys.delete_key("https://a.example")
        keyring.set_keyring(fail.Keyring())
        assert keys.name_keyring() == "" and keys.read_key("https://a.example") is None
        keyring.set_keyring(Refusing())
        with pytest.raises(UsageError, match="cannot be kept"):
            keys.store_key("https://a.example", "k")
        assert keys.read_key("https://a.example") is None
    finally:
        keyring.set_keyring(before)


@pytest.mark.slow
def test_a_chosen_model_answers_and_is_there_again_after_a_restart(tmp_path) -> None:
    settings = {"encoder": "none", "own_settings": tmp_path / "settings.json"}
    with ScriptedServer(lambda request: QUOTING) as model:
        with ServedApp(tmp_path / "kb", **settings) as app:
            app.upload(FILES[0], (SAMPLES / FILES[0]).read_bytes())
            assert app.post("/api/setup/models", {"name": model.llm})[0] == 201
            assert app.ask(QUESTION, recipe="read")["answer"] == "nine dollars" and model.requests
        with ServedApp(tmp_path / "kb", **settings) as app:
            assert app.get("/api/config")[1]["model"] == "scripted"
        # A server for other machines does not use what its person chose for their own.
        others = {"host": "0.0.0.0", "token": "a-token-of-the-tests"}
        with ServedApp(tmp_path / "kb", **settings, **others) as app:
            token = {"Authorization": "Bearer a-token-of-the-tests"}
            assert app.get("/api/config", **token)[1]["model"] == "none"
            assert app.get("/api/setup", **token)[0] == 403
    (tmp_path / "settings.json").write_text(json.dumps({"models": ["nothing:x", "http://127.0.0.1:9/v1#m"]}))
    with ServedApp(tmp_path / "kb", **settings) as app:
        assert app.get("/api/config")[1]["model"] == "m"
