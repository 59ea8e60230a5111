"""Drivers of local servers: what they are asked, what is respected, what a truncation says.

Ollama and vLLM are played by a server on loopback that answers as their documentation says; llama.cpp is real
(``tests/llama_server.py``).
"""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from clew.core.errors import ContextExceeded, ModelError, TimedOut, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Prompt, context_of
from clew.models import create_language_model, parse_name, parse_roles
from clew.models.endpoint import Endpoint
from clew.models.openai import ModelSettings, OpenAIModel
from clew.models.servers import GRAMMARS, PATTERNS
from clew.models.wrappers import RetryingModel, RetryPolicy, RoleRouter
from llama_server import MISSING, llama_server, model_file
from scripted import Reply, ScriptedServer, refusal

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
WORDS = " ".join(f"word{n}" for n in range(400))


class Player:
    """A server that plays ``pages``: by method and path, an object, or a function from the request's body to the list
    of lines or events to stream."""

    def __init__(self, pages):
        self.pages = pages
        self.requests = []

    @contextmanager
    def serve(self):
        player = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.play("GET", {})

            def do_POST(self):
                self.play("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def play(self, method, body):
                player.requests.append((f"{method} {self.path}", body))
                page = player.pages.get(f"{method} {self.path}")
                self.send_response(404 if page is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                try:
                    for part in page(body) if callable(page) else [json.dumps(page or {})]:
                        self.wfile.write(part.encode())
                        self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client gave up

            def log_message(self, *_):
                pass

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_address[1]}"
        finally:
            http.shutdown()
            thread.join()
            http.server_close()

    def sent(self, path):
        return [body for line, body in self.requests if line == path]


def ollama(
    text="Paris", thinking="", tokens=(20, 3), reason="stop", capabilities=("completion",), parameters=""
):
    def chat(body):
        for piece in text:
            yield json.dumps({"message": {"content": piece}, "done": False}) + "\n"
        last = {"done": True, "done_reason": reason, "prompt_eval_count": tokens[0], "eval_count": tokens[1]}
        yield json.dumps({"message": {"content": "", "thinking": thinking}} | last) + "\n"

    return Player(
        {
            "GET /api/version": {"version": "0.12.0"},
            "POST /api/show": {
                "capabilities": list(capabilities),
                "parameters": parameters,
                "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
            },
            "POST /api/chat": chat,
        }
    )


def vllm(text="Paris", tokens=(20, 3), finish="stop", context=4096, reasoning="", gap=0.0):
    def chat(body):
        if "stream" not in body:
            raise AssertionError("it is asked to stream")
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": body["model"]}
        for piece in [*text] or [""]:
            delta = {"content": piece, "reasoning_content": reasoning}
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            yield f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n"
            time.sleep(gap)
        last = {"index": 0, "delta": {}, "finish_reason": finish}
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
        yield f"data: {json.dumps(chunk | {'choices': [last]})}\n\n"
        yield f"data: {json.dumps(chunk | {'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n"

    models = {"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": context}]}
    return Player({"GET /v1/models": models, "POST /v1/chat/completions": chat})


def model_at(address, name="qwen", settings=""):
    endpoint = Endpoint(f"{address}/v1#{name}", f"{address}/v1", name)
    return OpenAIModel(endpoint, settings=ModelSettings.parse(settings))


def test_ollama_is_asked_in_its_own_way_with_a_context_and_without_thoughts():
    player = ollama(capabilities=("completion", "thinking"))
    with player.serve() as address:
        model = model_at(address)
        prompt = Prompt("Capital?", "Be brief.", schema=SCHEMA, max_tokens=9, stop=("\n",))
        (completion,) = model.complete([prompt])
        assert (model.server.kind, model.context) == ("ollama", 8192)
    (body,) = player.sent("POST /api/chat")
    assert body["options"] == {"num_ctx": 8192, "num_predict": 9, "temperature": 0.0, "stop": ["\n"]}
    assert (body["format"], body["think"], body["stream"]) == (SCHEMA, False, True)
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert completion.text == "Paris"
    assert (completion.usage.tokens_in, completion.usage.tokens_out) == (
        20,
        3,
    ) and not completion.usage.estimated


def test_the_context_of_ollama_is_that_of_the_name_then_of_the_models_file():
    for settings, parameters, context in (
        ("context=16384", "", 16384),
        ("", "num_ctx 2048\ntemperature 0.7", 2048),
    ):
        player = ollama(parameters=parameters)
        with player.serve() as address:
            model_at(address, settings=settings).complete([Prompt("Capital?")])
        assert player.sent("POST /api/chat")[0]["options"]["num_ctx"] == context


def test_ollama_says_that_a_model_is_missing():
    player = ollama()
    player.pages["POST /api/chat"] = lambda body: [json.dumps({"error": "model 'qwen' not found"}) + "\n"]
    with player.serve() as address, pytest.raises(ModelError, match="model 'qwen' not found"):
        model_at(address).complete([Prompt("Capital?")])


def test_vllm_is_asked_for_a_form_and_without_thoughts():
    player = vllm(text="2, 4")
    with player.serve() as address:
        model = model_at(address)
        (completion,) = model.complete([load_prompt("drill-sections").render(question="q", outline="[1] A")])
        assert (model.server.kind, context_of(RetryingModel(model))) == ("vllm", 4096)
    (body,) = player.sent("POST /v1/chat/completions")
    assert body["structured_outputs"] == {"regex": PATTERNS["numbers"]} and completion.text == "2, 4"
    assert body["chat_template_kwargs"] == {"enable_thinking": False} and "response_format" not in body


def test_a_model_that_spends_its_tokens_on_thoughts_is_given_more():
    lengths = []

    def chat(body):
        lengths.append(body["max_tokens"])
        return (
            thought(body)
            if len(lengths) == 1
            else vllm(text="Paris").pages["POST /v1/chat/completions"](body)
        )

    thought = vllm(text="", reasoning="Hm. ", finish="length").pages["POST /v1/chat/completions"]
    player = vllm()
    player.pages["POST /v1/chat/completions"] = chat
    with player.serve() as address:
        completions = model_at(address).complete([Prompt("Capital?", max_tokens=16)])
    assert lengths == [16, 16 + 2048] and completions[0].text == "Paris"


def test_passages_and_exemplars_are_left_out_of_a_prompt_that_is_too_long():
    player = vllm(context=1024)
    passages = [f"[{n}] {WORDS[:1500]}" for n in range(1, 5)]
    user = "\n\n".join([*passages, "Question: q"])
    prompt = Prompt(user, max_tokens=64, optional=tuple(f"\n\n{each}" for each in reversed(passages[1:])))
    with player.serve() as address:
        (completion,) = model_at(address).complete([prompt])
    (body,) = player.sent("POST /v1/chat/completions")
    sent = body["messages"][0]["content"]
    assert "[1]" in sent and "[4]" not in sent and sent.endswith("Question: q")
    assert completion.usage.left_out == 4 - sent.count(WORDS[:1500]) > 0
    assert completion.usage.to_dict()["left_out"] == completion.usage.left_out


def test_a_prompt_that_cannot_be_shortened_is_an_error_with_a_hint():
    with vllm(context=512).serve() as address, pytest.raises(ContextExceeded) as error:
        model_at(address).complete([Prompt(WORDS * 3, role="guide")])
    assert "a 'guide' prompt of about" in error.value.problem and "512 tokens" in error.value.problem
    assert "--max-model-len" in error.value.hint


def test_a_server_that_cuts_a_prompt_without_a_word_is_noticed():
    with (
        ollama(tokens=(300, 3)).serve() as address,
        pytest.raises(ContextExceeded, match="read 300 tokens of"),
    ):
        model_at(address).complete([Prompt(WORDS)])
    usage = {"prompt_tokens": 300, "completion_tokens": 1, "total_tokens": 301}
    with (
        ScriptedServer([Reply("x", usage=usage)]) as server,
        pytest.raises(ContextExceeded, match="cut the rest"),
    ):
        OpenAIModel(Endpoint(server.llm, server.url, "scripted")).complete([Prompt(WORDS)])


def test_a_refusal_tells_the_context_and_the_prompt_is_sent_again_shorter():
    said = "request (900 tokens) exceeds the available context size (600 tokens), try increasing it"
    passages = [f"[{n}] {WORDS[:900]}" for n in range(1, 4)]
    prompt = Prompt(
        "\n\n".join(passages), max_tokens=32, optional=tuple(f"\n\n{text}" for text in passages[:0:-1])
    )
    with ScriptedServer([refusal(400, said), "Paris"]) as server:
        model = OpenAIModel(Endpoint(server.llm, server.url, "scripted"))
        (completion,) = model.complete([prompt])
        assert len(server.requests[1].user) < len(server.requests[0].user)
    assert completion.text == "Paris" and completion.usage.left_out and model.context == 600


def test_the_first_token_and_the_last_have_limits_of_their_own_and_neither_is_retried():
    with (
        vllm(text="P" * 60, gap=0.05).serve() as address,
        pytest.raises(TimedOut, match=r"did not finish .* 1 seconds"),
    ):
        model_at(address, settings="total=1").complete([Prompt("q")])
    calls = []

    def slow(body):
        calls.append(body)
        time.sleep(3)
        return []

    player = vllm()
    player.pages["POST /v1/chat/completions"] = slow
    with player.serve() as address, pytest.raises(TimedOut, match="did not answer within 1 seconds"):
        RetryingModel(model_at(address, settings="first=1"), RetryPolicy(first_wait=0)).complete(
            [Prompt("q")]
        )
    assert len(calls) == 1


def test_the_settings_of_a_model_stand_behind_its_name():
    name = parse_name("http://localhost:1/v1#a/b?context=8192&think=on&tries=2", {"http": "http://..."})
    assert str(name) == "http://localhost:1/v1#a/b?context=8192&think=on&tries=2"
    assert name.canonical == "http://localhost:1/v1#a/b"
    model = create_language_model(str(name))
    assert model.name == name.canonical and context_of(model) == 8192 and model.policy.tries == 2
    assert ModelSettings.parse("think=512&parallel=3&first=5&total=9") == ModelSettings(
        None, 3, 5, 9, None, 512
    )
    assert RoleRouter({"read": model}, None).context == 8192
    for wrong, hint in (("ollama:a?contxt=1", "context"), ("ollama:a?context=many", "whole number")):
        with pytest.raises(UsageError) as error:
            parse_roles(wrong)
        assert hint in str(error.value)


def test_every_form_of_the_prompts_has_a_grammar():
    assert (
        set(GRAMMARS)
        == set(PATTERNS)
        >= {
            load_prompt(name).form
            for name in ("drill-sections", "drill-boolean", "focus-rerank", "chain-parse")
        }
    )


# A real llama.cpp


@pytest.fixture(scope="module")
def smollm():
    if model_file() is None:
        pytest.skip(MISSING)
    with llama_server(1024) as llm:
        yield llm


@pytest.mark.slow
def test_llama_cpp_keeps_to_a_grammar_and_a_schema_and_counts_tokens(smollm):
    model = create_language_model(smollm)
    assert context_of(model) == 1024 and model.model.server.kind == "llama.cpp"
    verdict = load_prompt("drill-boolean").render(
        question="Who lit it?", paragraph="It was lit by Ada Strake."
    )
    form = Prompt("Name the town of Ada Strake in JSON.", schema=SCHEMA, max_tokens=48)
    yes, answer = model.complete([verdict, form])
    assert yes.text in {"yes", "no"} and yes.usage.tokens_out <= 4
    assert answer.text.lstrip().startswith("{") and not answer.usage.estimated


@pytest.mark.slow
def test_llama_cpp_is_sent_no_more_than_its_context_holds(smollm):
    model = create_language_model(smollm)
    prompt = replace(
        load_prompt("chain-parse").render(question="Who is the mother of the director?"), max_tokens=32
    )
    (completion,) = model.complete([prompt])
    assert 0 < completion.usage.left_out < 25 and completion.usage.tokens_in <= 1024
    with pytest.raises(ContextExceeded, match="1,024 tokens"):
        model.complete([Prompt(WORDS * 3)])
