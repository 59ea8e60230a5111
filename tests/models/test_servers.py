"""Drivers of local servers: what they are asked, what is respected, what a truncation says.

Ollama and vLLM are played by a server on loopback that answers as their documentation says; llama.cpp is real
(``tests/llama_server.py``).
"""

import json
import time
from dataclasses import replace

import pytest

from clew.core.errors import ContextExceeded, ModelError, TimedOut, UsageError
from clew.core.prompts.templates import load_prompt
from clew.core.protocols import Prompt, context_of
from clew.models import create_language_model, parse_name, parse_roles
from clew.models.endpoint import Endpoint
from clew.models.openai import ModelSettings, OpenAIModel
from clew.models.servers import GRAMMARS, PATTERNS
from clew.models.wrappers import RetryingModel, RetryPolicy, RoleRouter
from context_servers import Player, SmallContext
from llama_server import MISSING, llama_server, model_file
from scripted import Reply, ScriptedServer, refusal

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
WORDS = " ".join(f"word{n}" for n in range(400))


def ollama(
    text="Paris",
    thinking="",
    tokens=(20, 3),
    reason="stop",
    capabilities=("completion",),
    parameters="",
    gap=0.0,
):
    def chat(body):
        for piece in text:
            yield json.dumps({"message": {"content": piece}, "done": False}) + "\n"
            time.sleep(gap)
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


def test_thoughts_that_take_every_token_are_an_error_with_a_hint():
    with (
        vllm(text="", reasoning="Hm. ", finish="length", tokens=(20, 2064)).serve() as address,
        pytest.raises(ModelError, match="spent 2,064 tokens on thoughts about a 'guide' prompt") as error,
    ):
        model_at(address).complete([Prompt("Capital?", role="guide", max_tokens=16)])
    assert "?think=8192" in error.value.hint


def test_replies_that_were_thrown_away_are_counted():
    replies = iter(
        [
            vllm(text="", reasoning="Hm. ", finish="length", tokens=(20, 16)),
            vllm(text="Paris", tokens=(20, 40)),
        ]
    )
    player = vllm()
    player.pages["POST /v1/chat/completions"] = lambda body: next(replies).pages["POST /v1/chat/completions"](
        body
    )
    with player.serve() as address:
        (completion,) = model_at(address).complete([Prompt("Capital?", max_tokens=16)])
    usage = completion.usage
    assert (usage.calls, usage.tokens_in, usage.tokens_out, completion.text) == (2, 40, 56, "Paris")


def test_a_reply_that_the_context_ended_is_asked_for_again_with_fewer_passages():
    passages = [f"[{n}] {WORDS[:600]}" for n in range(1, 5)]
    # Many pieces for one token of the client's rule: the server's count is the higher one.
    passages_in_pieces = [each.replace("word", "w o r d ") for each in passages]
    optional = tuple(f"\n\n{each}" for each in reversed(passages_in_pieces[1:]))
    prompt = Prompt("\n\n".join([*passages_in_pieces, "Question: q"]), max_tokens=160, optional=optional)
    server = SmallContext("llama.cpp", 1830, lambda body, text: "one two three " * 40)
    with server.serve() as llm:
        (completion,) = model_at(llm.partition("/v1")[0]).complete([prompt])
    assert completion.usage.left_out and completion.text.count("three") == 40
    assert server.read[-1][0] + server.read[-1][1] <= 1830


def test_a_reply_that_hardly_began_when_the_context_ended_is_an_error():
    server = SmallContext("llama.cpp", 1000, lambda body, text: "one two three " * 80)
    # One word of nine letters is two tokens of the rule, and nine of the server's.
    prompt = Prompt("w o r d s " * 192, role="guide", max_tokens=200)
    with server.serve() as llm, pytest.raises(ContextExceeded, match="a 'guide' prompt of about") as error:
        model_at(llm.partition("/v1")[0]).complete([prompt])
    assert "--ctx-size" in error.value.hint


def test_a_vllm_server_is_asked_for_no_longer_reply_than_its_context_has_room_for():
    server = SmallContext("vllm", 1000, lambda body, text: "Paris")
    with server.serve() as llm:
        (completion,) = model_at(llm.partition("/v1")[0]).complete([Prompt(WORDS[:2000], max_tokens=768)])
    assert completion.text == "Paris" and server.read[0][1] < 768 and not server.refused


def test_a_refused_length_of_a_reply_teaches_nothing_about_tokens():
    said = (
        "maximum context length is 512 tokens. However, you requested 600 tokens (88 in the messages, 512 in"
    )
    with ScriptedServer([refusal(400, said), "Paris"]) as server:
        model = OpenAIModel(Endpoint(server.llm, server.url, "scripted"))
        (completion,) = model.complete([Prompt("Capital? " * 30, max_tokens=512)])
        assert server.requests[1].user == server.requests[0].user
        assert server.requests[1].body["max_tokens"] <= 512 - 88
    assert completion.text == "Paris" and not completion.usage.left_out


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


@pytest.mark.slow
@pytest.mark.parametrize("play", [ollama, vllm])
@pytest.mark.parametrize(("text", "gap"), [("P" * 60, 0.05), ("PP", 3.0)])
def test_a_reply_that_is_written_too_slowly_or_stops_reaches_its_limit(play, text, gap):
    with (
        play(text=text, gap=gap).serve() as address,
        pytest.raises(TimedOut, match=r"did not finish its reply within 1 seconds"),
    ):
        model_at(address, settings="total=1").complete([Prompt("q")])


@pytest.mark.slow
def test_a_first_token_has_a_limit_of_its_own_and_is_not_asked_for_again():
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
    for wrong, hint in (
        ("ollama:a?contxt=1", "context"),
        ("ollama:a?context=many", "whole number"),
        ("ollama:a?context=²", "whole number"),
    ):
        with pytest.raises(UsageError) as error:
            parse_roles(wrong)
        assert hint in str(error.value)


def test_every_form_of_the_prompts_has_a_grammar():
    assert (
        set(GRAMMARS)
        == set(PATTERNS)
        >= {
            load_prompt(name).form
            for name in ("drill-sections", "drill-boolean", "focus-rerank", "chain-parse", "chain-memory")
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


@pytest.mark.slow
@pytest.mark.parametrize("play", [ollama, vllm])
def test_a_server_that_does_not_stop_is_given_up(play):
    """A hundred megabytes in small pieces once took a minute of processor time, and all of it was kept."""
    player = play("word " * 5_000)
    with player.serve() as url, pytest.raises(ModelError, match="for a reply of at most 20 tokens"):
        create_language_model(f"{url}/v1#qwen").complete([Prompt("Capital of France?", max_tokens=20)])


@pytest.mark.parametrize("play", [ollama, vllm])
def test_an_event_that_does_not_end_is_given_up(play, monkeypatch):
    monkeypatch.setattr("clew.models.endpoint.EVENT_BYTES", 10_000)
    player = play()
    path = next(path for path in player.pages if path.endswith(("/api/chat", "/completions")))
    player.pages[path] = lambda body: ["data: {" if "completions" in path else "{", *["x" * 1_000] * 1_000]
    with player.serve() as url, pytest.raises(ModelError, match="sent an event of more than"):
        create_language_model(f"{url}/v1#qwen").complete([Prompt("Capital of France?", max_tokens=20)])
