import gzip
import json
import socket
import threading

import pytest

from clew.core.errors import BadCompletion, ModelError, TimedOut, Unavailable
from clew.core.prompts.replies import parse_json
from clew.core.protocols import Prompt
from clew.models.endpoint import Endpoint
from clew.models.openai import OpenAIModel
from raw_server import RawServer, drip, redirect, reply
from scripted import Reply, ScriptedServer, refusal

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def model_at(server, **options):
    return OpenAIModel(Endpoint(server.llm, server.url, "scripted", "secret"), **options)


def test_a_prompt_is_sent_whole_and_usage_comes_back():
    with ScriptedServer(["Paris"]) as server:
        prompt = Prompt("Capital of France?", "Be brief.", max_tokens=7, stop=("\n",))
        (completion,) = model_at(server).complete([prompt])
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer secret"
    assert request.body == {
        "model": "scripted",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Capital of France?"},
        ],
        "max_tokens": 7,
        "temperature": 0.0,
        "stop": ["\n"],
    }
    assert completion.text == "Paris"
    assert (completion.usage.calls, completion.usage.tokens_in, completion.usage.tokens_out) == (1, 11, 7)
    assert not completion.usage.estimated
    assert completion.usage.money is None
    assert completion.usage.seconds > 0
    assert completion.model == server.llm


def test_a_server_on_this_machine_is_asked_without_anybodys_certificates(tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with ScriptedServer(["Paris"]) as server:
        (completion,) = model_at(server).complete([Prompt("Capital of France?")])
    assert completion.text == "Paris"


def test_a_batch_comes_back_in_order_and_runs_at_once():
    together = threading.Barrier(3, timeout=10)

    def reply(request):
        together.wait()
        return request.user.upper()

    with ScriptedServer(reply) as server:
        completions = model_at(server, workers=3).complete([Prompt(text) for text in "abcdef"])
    assert [answer.text for answer in completions] == list("ABCDEF")


def test_no_more_calls_run_at_once_than_workers():
    running, most, lock = 0, 0, threading.Lock()

    def reply(request):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.02)
        with lock:
            running -= 1
        return "x"

    with ScriptedServer(reply) as server:
        model_at(server, workers=2).complete([Prompt(str(n)) for n in range(8)])
    assert most == 2


def test_missing_usage_is_counted_and_marked():
    with ScriptedServer([Reply("four words of text", usage=None)]) as server:
        (completion,) = model_at(server).complete([Prompt("12345678", "1234")])
    assert (completion.usage.tokens_in, completion.usage.tokens_out) == (2 + 4 + 1 + 4, 5)
    assert completion.usage.estimated


def test_structured_output_uses_the_schema_of_the_endpoint():
    with ScriptedServer([{"answer": "x"}]) as server:
        model_at(server).complete([Prompt("q", schema=SCHEMA, role="select")])
    sent = server.requests[0].body["response_format"]
    assert sent == {
        "type": "json_schema",
        "json_schema": {"name": "select", "schema": SCHEMA, "strict": True},
    }


def test_a_schema_with_optional_keys_is_not_called_strict():
    loose = SCHEMA | {"required": []}
    with ScriptedServer(["{}"]) as server:
        model_at(server).complete([Prompt("q", schema=loose)])
    assert server.requests[0].body["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize(
    ("refuses", "formats"),
    [
        (("json_schema",), ["json_schema", "json_object", "json_object"]),
        (("json_schema", "json_object"), ["json_schema", "json_object", "", ""]),
    ],
)
def test_a_refused_format_is_stepped_down_from_and_remembered(refuses, formats):
    with ScriptedServer(["{'answer': 'x',}"] * 2, refuses=refuses) as server:
        model = model_at(server)
        prompt = Prompt("q", "You answer.", schema=SCHEMA)
        texts = [model.complete([prompt])[0].text for _ in range(2)]
    assert [request.format for request in server.requests] == formats
    assert server.requests[-1].system.startswith("You answer.")
    assert json.dumps(SCHEMA) in server.requests[-1].system
    assert [parse_json(text, SCHEMA) for text in texts] == [{"answer": "x"}] * 2


def test_limits_temperature_and_system_messages_are_put_as_the_endpoint_takes_them():
    def reply(request):
        if "max_tokens" in request.body:
            return refusal(
                400, "Unsupported parameter: use 'max_completion_tokens' instead", param="max_tokens"
            )
        if "temperature" in request.body:
            return refusal(400, "Only the default (1) value is supported", param="temperature")
        if request.system:
            return refusal(400, "System role not supported")
        return "fine"

    with ScriptedServer(reply) as server:
        model = model_at(server)
        prompt = Prompt("question", "rules")
        assert model.complete([prompt])[0].text == "fine"
        assert model.complete([prompt])[0].text == "fine"
    assert len(server.requests) == 5
    assert server.requests[-1].user == "rules\n\nquestion"
    assert server.requests[-1].body["max_completion_tokens"] == 512


def test_a_refusal_for_another_reason_changes_nothing():
    script = [refusal(400, "maximum context length is 4096 tokens"), {"answer": "x"}]
    with ScriptedServer(script) as server:
        model = model_at(server)
        with pytest.raises(
            ModelError,
            match=r"does not fit: .* has a context of 4,096 tokens.*It says: maximum context length",
        ):
            model.complete([Prompt("q", schema=SCHEMA)])
        model.complete([Prompt("q", schema=SCHEMA)])
    assert [request.format for request in server.requests] == ["json_schema", "json_schema"]


def test_a_format_is_not_given_up_for_a_call_that_fails_either_way():
    def reply(request):
        return refusal(400, "no such thing") if "bad" in request.prompt else {"answer": "x"}

    with ScriptedServer(reply) as server:
        model = model_at(server)
        with pytest.raises(ModelError, match="no such thing"):
            model.complete([Prompt("bad", schema=SCHEMA)])
        model.complete([Prompt("good", schema=SCHEMA)])
    assert server.requests[-1].format == "json_schema"


def test_text_ends_at_a_stop_string_even_where_the_endpoint_ignores_it():
    with ScriptedServer(["one\ntwo END three"]) as server:
        (completion,) = model_at(server).complete([Prompt("q", stop=("END", "\n"))])
    assert completion.text == "one"


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (refusal(401, "bad key"), ModelError, "refused the key: bad key"),
        (refusal(404, "model not found"), ModelError, "has no model 'scripted'"),
        (refusal(429, "slow down", headers={"Retry-After": "7"}), Unavailable, "answered 429: slow down"),
        (refusal(503), Unavailable, "answered 503"),
        (Reply("x" * 999, cut=True), Unavailable, "broke off the connection"),
        (Reply("late", delay=1.0), Unavailable, "did not answer within 0.3 seconds"),
        (Reply(raw=b"{broken"), BadCompletion, "did not answer as an OpenAI-compatible"),
        (Reply(raw=b"<html>hello</html>", headers={"Content-Type": "text/html"}), BadCompletion, "hello"),
        (Reply(raw=b'{"choices": []}'), BadCompletion, "did not answer as"),
        (Reply(raw=b'{"detail": "Not Found"}'), BadCompletion, "did not answer as"),
    ],
)
def test_every_failure_says_what_is_wrong(reply, kind, words):
    with ScriptedServer([reply]) as server, pytest.raises(kind) as caught:
        model_at(server, timeout=0.3).complete([Prompt("q")])
    assert words in caught.value.problem
    assert server.url in caught.value.problem
    assert isinstance(caught.value, Unavailable) == (kind is Unavailable)
    if kind is Unavailable and "429" in words:
        assert caught.value.retry_after == 7.0


def test_a_server_that_does_not_run_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(ModelError) as caught:
        OpenAIModel(Endpoint(f"{url}#m", url, "m")).complete([Prompt("q")])
    assert str(caught.value).startswith(f"cannot reach {url}: ")
    assert caught.value.hint == "Is the server running?"
    assert not isinstance(caught.value, Unavailable)


def test_an_empty_reply_is_an_empty_text():
    with ScriptedServer([Reply(None)]) as server:
        assert model_at(server).complete([Prompt("q")])[0].text == ""


def test_keys_and_accounts_of_openai_are_not_sent_elsewhere(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "private")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/v1")
    with ScriptedServer(["x"]) as server:
        OpenAIModel(Endpoint(server.llm, server.url, "scripted")).complete([Prompt("q")])
    assert "private" not in str(server.requests[0].headers)


def test_a_reply_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr("clew.models.endpoint.REPLY_BYTES", 100_000)
    with (
        ScriptedServer([Reply("x" * 200_000)]) as server,
        pytest.raises(ModelError, match="a reply of more than"),
    ):
        model_at(server).complete([Prompt("Capital of France?", max_tokens=7)])


def test_a_reply_far_longer_than_was_asked_for_is_given_up():
    with (
        ScriptedServer([Reply("x" * 300_000)]) as server,
        pytest.raises(ModelError, match="of at most 7 tokens"),
    ):
        model_at(server).complete([Prompt("Capital of France?", max_tokens=7)])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_model_leads_nowhere_else(status):
    """Where prompts are sent is announced before they are."""
    with RawServer(lambda r: [reply(b"secret")]) as other:
        leads = redirect(f"{other.url}/v1/chat/completions", status)
        with RawServer(lambda r: [leads]) as server:
            model = OpenAIModel(Endpoint(f"{server.url}/v1#m", f"{server.url}/v1", "m", "key"))
            with pytest.raises(ModelError, match="redirects to another place"):
                model.complete([Prompt("Capital of France?")])
        assert other.connections == 0


def test_a_redirect_within_the_host_keeps_the_prompt():
    body = json.dumps({"choices": [{"message": {"content": "Paris"}, "finish_reason": "stop"}]}).encode()

    def answer(request):
        if b"/v1/chat" in request.partition(b"\r")[0]:
            return [redirect("/v2/chat/completions", 307)]
        return [reply(body if b"POST" in request else b"{}", Content_Type="application/json")]

    with RawServer(answer) as server:
        model = OpenAIModel(Endpoint(f"{server.url}/v1#m", f"{server.url}/v1", "m", "key"))
        assert model.complete([Prompt("Capital of France?")])[0].text == "Paris"
        assert b"Capital of France?" in server.asked[-1] and b"Bearer key" in server.asked[-1]
        # Prompts of one model go through one connection after the other.
        before = server.connections
        model.complete([Prompt("Capital of Spain?")])
        assert server.connections <= before + 1


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Slow: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
    ],
)
def test_a_reply_that_comes_byte_by_byte_is_given_up(head):
    """A limit on the time between two bytes alone would let it go on for ever."""
    with RawServer(lambda r: drip(head, b" ")) as server:
        model = OpenAIModel(Endpoint(f"{server.url}/v1#m", f"{server.url}/v1", "m"), timeout=0.5)
        with pytest.raises(TimedOut, match=r"did not answer within 0\.5 seconds"):
            model.complete([Prompt("Capital of France?")])


def test_a_reply_is_not_unpacked():
    packed = Reply(raw=gzip.compress(b"x" * 1_000_000), headers={"Content-Encoding": "gzip"})
    with ScriptedServer([packed]) as server, pytest.raises(ModelError, match="compressed a reply"):
        model_at(server).complete([Prompt("Capital of France?")])
    assert server.requests[0].headers["accept-encoding"] == "identity"
