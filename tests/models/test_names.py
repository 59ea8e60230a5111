import subprocess
import sys

import pytest

from clew.core.errors import NotFound, UsageError
from clew.core.protocols import Prompt
from clew.models import (
    LANGUAGE_MODELS,
    absolute_name,
    create_encoder,
    create_language_model,
    describe_destination,
    leaves_machine,
    parse_name,
    parse_roles,
    resolve_endpoint,
)
from scripted import ScriptedServer


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CLEW_API_KEY", "CLEW_PRICES"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "url", "model"),
    [
        ("openai:gpt-4o-mini", "https://api.openai.com/v1", "gpt-4o-mini"),
        ("ollama:llama3.1:8b", "http://localhost:11434/v1", "llama3.1:8b"),
        ("http://localhost:8000/v1#org/name", "http://localhost:8000/v1", "org/name"),
        ("https://models.example.org/api/v1/#name", "https://models.example.org/api/v1", "name"),
    ],
)
def test_a_name_says_where_its_model_is(monkeypatch, name, url, model):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    place = resolve_endpoint(parse_name(name, LANGUAGE_MODELS))
    assert (place.url, place.model) == (url, model)
    assert resolve_endpoint(parse_name(place.name, LANGUAGE_MODELS)) == place


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("opena:gpt-4o", "Did you mean 'openai'? The forms are openai:gpt-4o-mini, "),
        ("gpt-4o", "no model named 'gpt-4o'"),
        ("openai:", "names no model. Write it as openai:gpt-4o-mini"),
        ("http://localhost:8000/v1", "needs an address and a model"),
        ("http://#name", "needs an address and a model"),
        ("st:minilm", "no kind of model named 'st'"),
        ("raed=openai:gpt-4o", "no role named 'raed'. Did you mean 'read'?"),
        ("read=ollama:a,read=ollama:b", "two models for the role 'read'"),
        ("", "no model named ''"),
        ("openai:gpt-4o", "needs a key. Set OPENAI_API_KEY"),
    ],
)
def test_a_name_that_makes_no_sense_is_refused_with_a_hint(name, words):
    with pytest.raises(UsageError) as caught:
        create_language_model(name)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words", "leaves"),
    [
        ("openai:gpt-4o", "sent to https://api.openai.com (OpenAI)", True),
        ("ollama:llama3.1", "stays on this machine (http://localhost:11434)", False),
        ("ollama:gpt-oss:120b-cloud", "sent to https://ollama.com (by the Ollama on this machine)", True),
        ("http://127.0.0.2:8000/v1#m", "stays on this machine (http://127.0.0.2:8000)", False),
        ("http://[::1]:8000/v1#m", "stays on this machine (http://[::1]:8000)", False),
        ("http://localhost.example.org/v1#m", "sent to http://localhost.example.org", True),
        ("http://10.0.0.7:8000/v1#m", "sent to http://10.0.0.7:8000", True),
        ("local:Qwen/Qwen3-0.6B", "stays on this machine", False),
        ("replay:a.jsonl", "stays on this machine", False),
        ("onnx:folder", "stays on this machine", False),
        ("onnx:minilm@0123abcd", "stays on this machine", False),
        (
            "read=openai:gpt-4o,ollama:a",
            "read: sent to https://api.openai.com (OpenAI); others: stays on this machine (http://localhost:11434)",
            True,
        ),
    ],
)
def test_where_texts_go_is_said_in_words(name, words, leaves):
    assert describe_destination(name) == words
    assert leaves_machine(name) is leaves


def test_another_base_of_openai_is_named_by_its_address(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://proxy.example.org/v1/")
    assert describe_destination("openai:gpt-4o") == "sent to https://proxy.example.org"
    assert create_language_model("openai:gpt-4o").name == "https://proxy.example.org/v1#gpt-4o"


def test_each_role_is_served_by_its_model():
    with ScriptedServer(lambda r: "one " + r.user) as item, ScriptedServer(lambda r: "two " + r.user) as two:
        model = create_language_model(f"guide={item.llm},{two.llm}")
        prompts = [Prompt("a", role="read"), Prompt("b", role="guide"), Prompt("c", role="grade")]
        assert [reply.text for reply in model.complete(prompts)] == ["two a", "one b", "two c"]
        assert model.name == f"guide={item.llm},{two.llm}"
        assert parse_roles(model.name).keys() == {"guide", ""}


def test_roles_that_are_not_named_are_served_by_the_reader():
    with ScriptedServer(lambda r: "one") as item, ScriptedServer(lambda r: "two") as two:
        model = create_language_model(f"guide={item.llm},read={two.llm}")
        assert model.complete([Prompt("q", role="structure")])[0].text == "two"


def test_a_role_without_any_model_is_an_error_that_says_how_to_name_one():
    model = create_language_model("guide=ollama:llama3.1")
    with pytest.raises(UsageError, match=r"for the role 'read'\. Name one: read=MODEL"):
        model.complete([Prompt("q", role="read")])


def test_keys_go_where_they_belong(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "for-openai")
    monkeypatch.setenv("CLEW_API_KEY", "for-others")
    with ScriptedServer(["x", "x"]) as server:
        create_language_model(server.llm).complete([Prompt("q")])
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        create_language_model("openai:scripted").complete([Prompt("q")])
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer for-others", "Bearer for-openai"]


def test_encoders_have_names_too(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.chdir(tmp_path)
    assert create_encoder("openai:text-embedding-3-small").name == "openai:text-embedding-3-small"
    assert create_encoder("st:all-MiniLM-L6-v2").name == "st:all-MiniLM-L6-v2"
    with pytest.raises(NotFound, match=r"model\.onnx, tokenizer\.json, clew-encoder\.json missing"):
        create_encoder("onnx:nowhere")
    with pytest.raises(UsageError, match="Did you mean 'onnx'"):
        create_encoder("onxx:folder")
    assert absolute_name("onnx:folder") == f"onnx:{tmp_path}/folder"
    assert absolute_name("st:all-MiniLM-L6-v2") == "st:all-MiniLM-L6-v2"


@pytest.mark.slow
def test_naming_models_imports_nothing_heavy():
    code = (
        "import sys; from clew.models import create_language_model, describe_destination; "
        "create_language_model('http://localhost:1/v1#m'); describe_destination('onnx:x'); "
        "print([m for m in ('numpy', 'openai', 'onnxruntime', 'torch', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_password_in_an_address_is_refused_and_not_repeated(monkeypatch):
    with pytest.raises(UsageError, match="the address of a model has a password in it") as refused:
        create_language_model("https://me:secret@example.org/v1#m")
    assert "secret" not in str(refused.value)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:secret@127.0.0.1:9/v1")
    with pytest.raises(UsageError, match="OPENAI_BASE_URL has a password in it") as refused:
        create_language_model("openai:gpt-4o")
    assert "secret" not in str(refused.value)


def test_whoever_names_a_model_while_it_is_in_use_gets_the_same(monkeypatch):
    def bare(name):
        return create_language_model(name).model  # below what retries

    item = bare("http://127.0.0.1:9/v1#m")
    assert bare("http://127.0.0.1:9/v1#m") is item and bare("http://127.0.0.1:9/v1#n") is not item
    monkeypatch.setenv("CLEW_API_KEY", "another")
    assert bare("http://127.0.0.1:9/v1#m") is not item
