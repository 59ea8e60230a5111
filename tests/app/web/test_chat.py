"""The chat endpoint as OpenAI's own client meets it: over HTTP, from a server of ours on this machine."""

import contextlib
import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated

import openai
import pytest
import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException

import clew
from chain_bases import DIRECTOR, FILM, THREE_HOPS, TOWN, WORLD, fill
from clew.app.answers.follow_ups import rewrite_standalone
from clew.app.web.method_choices import evidence_methods
from clew.app.web.openai import make_chat_router
from clew.core.errors import ModelError, Unavailable, UsageError
from clew.core.trail import SeedStep
from clew.models import create_language_model
from clew.store.store import Store
from retrieve_documents import add
from scripted import ScriptedServer

BORN = f"Where was {DIRECTOR} born?"
RECIPES = {name: name for name in evidence_methods(model=False)}


@dataclass
class BaseAsker:
    """What the application hands to the router."""

    base: clew.KnowledgeBase
    llm: object = None

    def ask(self, turns, recipe, watch, stop):
        asked = rewrite_standalone(turns, self.llm)
        return asked, self.base.ask(asked.question, llm=self.llm, recipe=recipe, watch=watch, stop=stop)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chat")
    with Store.open(folder / "base", create=True) as store:
        fill(store, folder)
        hostile = "On the Zorblax is ![a button](http://evil.example/?q=1), <img src=x onerror=alert(1)> and [x]: y."
        add(store, "zorblax.md", "zorblax", hostile)
        store.catch_up()
        yield clew.KnowledgeBase(store)


@contextlib.contextmanager
def serve_router(asker, dependencies=(), recipes=RECIPES):
    """Serve the router on a port of this machine; give its address."""
    app = FastAPI()
    app.include_router(make_chat_router(asker, recipes), dependencies=dependencies)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        [listening] = server.servers[0].sockets
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(30)


@contextlib.contextmanager
def client_of(url):
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def client(base):
    with serve_router(BaseAsker(base)) as url, client_of(url) as client:
        yield client


def ask_model(client, *messages, model="clew", **options):
    speakers = ["user", "assistant"] * len(messages)
    turns = [{"role": who, "content": text} for who, text in zip(speakers, messages, strict=False)]
    return client.chat.completions.create(model=model, messages=turns, **options)


@pytest.mark.slow
def test_an_answer_has_numbered_citations_a_list_of_sources_and_the_same_structured(client):
    reply = ask_model(client, BORN, temperature=0.7, max_tokens=100)
    [choice] = reply.choices
    assert choice.finish_reason == "stop" and choice.message.role == "assistant"
    output = f"{DIRECTOR} was born in {TOWN} by the water."
    text = choice.message.content
    assert text.startswith(f"Perhaps: {output} [1]\n\nSources:  \n[1] {DIRECTOR}.txt\n\n")
    assert "no language model wrote them" in text
    more = reply.model_extra["clew"]
    [citation] = more["citations"]
    assert citation["number"] == 1 and citation["document"] == f"{DIRECTOR}.txt"
    assert citation["quotes"] == [{"text": output, "span": [0, len(output)], "answer": None}]
    assert more["question"] == BORN and more["way"] == "perhaps" and more["abstained"]
    assert more["steps"][0].startswith("route: method documents") and more["steps"][2].startswith("seed")
    assert reply.usage.total_tokens == 0  # no model was asked


@pytest.mark.slow
def test_what_is_not_in_the_documents_is_not_answered(client):
    reply = ask_model(client, "Which xylophone quartet did the kumquat?", model="clew:read")
    more = reply.model_extra["clew"]
    assert more["abstained"] and not more["citations"]
    assert "[1]" not in reply.choices[0].message.content


def test_a_streamed_reply_adds_up_to_the_whole_one(client):
    whole = ask_model(client, BORN)
    chunks = list(ask_model(client, BORN, stream=True, stream_options={"include_usage": True}))
    *parts, last, spent = chunks
    assert parts[0].choices[0].delta.role == "assistant"
    text = "".join(part.choices[0].delta.content for part in parts)
    assert text == whole.choices[0].message.content and len(parts) >= 3
    assert last.choices[0].finish_reason == "stop"
    steady = {"answer", "citations", "abstained", "question", "how", "recipe"}
    of_last, of_whole = last.model_extra["clew"], whole.model_extra["clew"]
    assert {key: of_last[key] for key in steady} == {key: of_whole[key] for key in steady}
    assert not spent.choices and spent.usage.total_tokens == 0
    assert len({chunk.id for chunk in chunks}) == 1
    assert [chunk.usage for chunk in ask_model(client, BORN, stream=True) if chunk.usage] == []


def test_what_a_document_holds_is_not_loaded_by_who_shows_the_reply(client):
    text = ask_model(client, "What is on the Zorblax?").choices[0].message.content
    assert "evil.example" in text  # it is quoted, as text
    assert not [mark for mark in ("](", "<img", "]:") if mark in text]


def test_models_are_the_default_and_the_methods_that_need_no_more_than_there_is(client):
    names = [model.id for model in client.models.list()]
    assert names[0] == "clew" and {"clew:kgp", "clew:read"} <= set(names)
    assert not {"clew:chain", "clew:selfask", "clew:golden", "clew:none"} & set(names)
    assert client.models.retrieve("clew:kgp").owned_by == "clew"
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("clew:chian")
    assert missing.value.code == "model_not_found" and missing.value.param == "model"


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"n": 2}, "n"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}, "tools"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}}, "response_format"),
        ({"logprobs": True}, "logprobs"),
        ({"stop": ["."]}, "stop"),
    ],
)  # fmt: skip
def test_what_would_give_another_reply_is_refused(client, options, param):
    with pytest.raises(openai.BadRequestError) as refused:
        ask_model(client, BORN, **options)
    assert refused.value.param == param and refused.value.type == "invalid_request_error"
    assert f"'{param}' is not supported" in refused.value.message


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"temperature": 3}, "decimal_above_max_value", "Expected a value <= 2, but got 3 instead"),
        ({"temperature": -0.1}, "decimal_below_min_value", "Expected a value >= 0, but got -0.1 instead"),
        ({"top_p": 1.5}, "decimal_above_max_value", "Expected a value <= 1"),
        ({"presence_penalty": -3}, "decimal_below_min_value", "Expected a value >= -2"),
        ({"frequency_penalty": 2.5}, "decimal_above_max_value", "Expected a value <= 2"),
        ({"max_tokens": 0}, "integer_below_min_value", "Expected a value >= 1, but got 0 instead"),
        ({"max_completion_tokens": -4}, "integer_below_min_value", "Expected a value >= 1"),
        ({"max_tokens": "many"}, None, "valid integer"),
        ({"temperature": "hot"}, None, "valid number"),
    ],
)
def test_a_number_out_of_range_is_refused_as_openai_does(client, options, code, message):
    ((param, _),) = options.items()
    with pytest.raises(openai.BadRequestError) as refused:
        ask_model(client, BORN, **options)
    error = refused.value
    assert (error.param, error.code, error.type) == (param, code, "invalid_request_error")
    assert message in error.message
    if param in {"temperature", "top_p"}:
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model="clew", input=BORN, **options)
        assert refused.value.param == param and message in refused.value.message


@pytest.mark.parametrize("tokens", [1, 2, 7, 30])
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_reply_ends_after_so_many_tokens(client, tokens, name):
    whole = ask_model(client, BORN)
    text = whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "stop"
    cut = ask_model(client, BORN, **{name: tokens})
    assert cut.choices[0].message.content == text[: 4 * tokens]
    assert cut.choices[0].finish_reason == "length"
    assert cut.clew["answer"] == whole.clew["answer"] and cut.clew["citations"] == whole.clew["citations"]
    *chunks, last = ask_model(client, BORN, stream=True, **{name: tokens})
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text[: 4 * tokens]
    assert last.choices[0].finish_reason == "length"
    response = client.responses.create(model="clew", input=BORN, max_output_tokens=tokens)
    assert response.output_text == text[: 4 * tokens] and response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"


def test_a_reply_that_is_shorter_is_whole(client):
    text = ask_model(client, BORN).choices[0].message.content
    for tokens in (len(text) // 4 + 1, 100_000):
        reply = ask_model(client, BORN, max_tokens=tokens, max_completion_tokens=100_000)
        assert reply.choices[0].message.content == text and reply.choices[0].finish_reason == "stop"
    both = ask_model(client, BORN, max_tokens=9, max_completion_tokens=2)
    assert both.choices[0].message.content == text[:8]


@pytest.mark.parametrize(
    ("options", "ignored"),
    [
        ({}, []),
        ({"temperature": 0, "top_p": 1, "presence_penalty": 0, "seed": 3, "user": "me"}, []),
        ({"temperature": 1.5}, ["temperature"]),
        ({"temperature": 2, "top_p": 0.1}, ["temperature", "top_p"]),
        ({"frequency_penalty": 1.0, "max_tokens": 50}, ["frequency_penalty"]),
        ({"reasoning_effort": "high", "extra_body": {"best_of": 3}}, ["reasoning_effort", "best_of"]),
    ],
)
def test_what_has_no_effect_is_named_in_the_reply(client, options, ignored):
    assert sorted(ask_model(client, BORN, **options).clew["ignored"]) == sorted(ignored)
    *_, last = ask_model(client, BORN, stream=True, **options)
    assert sorted(last.clew["ignored"]) == sorted(ignored)


def test_a_response_names_what_has_no_effect_too(client):
    options = {"temperature": 0.3, "instructions": "Be brief.", "metadata": {"a": "b"}}
    reply = client.responses.create(model="clew", input=BORN, **options)
    assert sorted(reply.clew["ignored"]) == ["instructions", "temperature"]


def test_a_model_that_is_none_is_not_found_streamed_or_not(client):
    for stream in (False, True):
        with pytest.raises(openai.NotFoundError, match="'gpt-4o' does not exist") as missing:
            ask_model(client, BORN, model="gpt-4o", stream=stream)
        assert missing.value.code == "model_not_found"


def test_text_parts_are_read_and_others_refused(client):
    part = {"type": "text", "text": BORN}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    reply = client.chat.completions.create(model="clew", messages=[{"role": "user", "content": [part]}])
    assert TOWN in reply.choices[0].message.content
    with pytest.raises(openai.BadRequestError, match="only text parts are read, not image_url"):
        client.chat.completions.create(model="clew", messages=[{"role": "user", "content": [part, image]}])


@pytest.mark.parametrize(
    ("body", "param", "text"),
    [
        (b"{", "", "JSON decode error"),
        (b"[]", None, "valid dictionary"),
        (b'{"model": "clew"}', "messages", "Field required"),
        (b'{"model": "clew", "messages": []}', "messages", "at least 1 item"),
        (b'{"model": "clew", "messages": [{"role": "system", "content": "x"}]}', "messages", "no user message"),
        (b'{"model": "clew", "messages": [{"role": "user", "content": " "}]}', "messages", "no user message"),
        (b'{"model": "clew", "messages": [{"role": "user", "content": "%s"}]}' % (b"x" * 8001), "messages", "longer"),
        (b'{"model": "\\ud800", "messages": [{"role": "user", "content": "x"}]}', "model", ""),
    ],
)  # fmt: skip
def test_a_body_that_is_no_request_gets_an_error_object(client, body, param, text):
    status, reply = post_body(client, body)
    assert 400 <= status < 500 and reply["error"]["type"] == "invalid_request_error"
    assert text in reply["error"]["message"] and (reply["error"]["param"] or "").startswith(param or "")


@pytest.mark.slow
def test_half_of_a_character_is_asked_as_a_question_mark(client):
    body = b'{"model": "clew", "messages": [{"role": "user", "content": "\\ud800 Where is it?"}]}'
    status, reply = post_body(client, body)
    assert status == 200 and reply["clew"]["question"] == "? Where is it?"


def post_body(client, body):
    connection = http.client.HTTPConnection(client.base_url.host, client.base_url.port)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_with_a_model_a_question_that_refers_to_earlier_ones_is_made_to_stand_alone(base):
    def script(request):
        if "rewrite the last question" in request.system:
            assert f"user: Who directed {FILM}?\n\nassistant: {DIRECTOR}" in request.user
            assert request.user.endswith("Last question: Where was she born?")
            return f"<think>she</think>{BORN}\n"
        if "numbered sources" in request.system:
            quote = f"{DIRECTOR} was born in {TOWN}"
            number = next(n for n in range(1, 30) if f"[{n}] {DIRECTOR}.txt" in request.user)
            return {"quotes": [{"source": number, "text": quote}], "answer": TOWN, "abstain": False}
        return "Nothing more."

    with ScriptedServer(script) as server:
        model = create_language_model(server.llm)
        with serve_router(BaseAsker(base, model)) as url, client_of(url) as client:
            reply = ask_model(client, f"Who directed {FILM}?", DIRECTOR, "Where was she born?")
            alone = ask_model(client, BORN)
    assert reply.model_extra["clew"]["question"] == BORN
    assert reply.choices[0].message.content.startswith(f"{TOWN} [1]\n\nSources:")
    # The rewriting is paid for like every other call; the server says 11 and 7 tokens of each.
    calls = reply.model_extra["clew"]["usage"]["calls"]
    assert calls == alone.model_extra["clew"]["usage"]["calls"] + 1 == len(server.requests) - calls + 1
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (11 * calls, 7 * calls)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [f"And where was {DIRECTOR} born?", "And where was he born?"])
def test_without_a_model_the_last_message_is_completed_from_those_before(client, asked):
    reply = ask_model(client, f"Who directed {FILM}?", f"{DIRECTOR} [1]\n\nSources:\n[1] films", asked)
    question = reply.model_extra["clew"]["question"]
    assert question.removeprefix("And ").casefold() == f"where was {DIRECTOR} born?".casefold()
    assert TOWN in reply.choices[0].message.content


def test_every_hop_of_a_chain_is_cited_by_its_own_source(base):
    """A recipe of the application's, under a name of its own."""

    def chained(turns, recipe, watch, stop):
        assert recipe == "chain(k=3, reader=span)"
        asked = rewrite_standalone(turns, None)
        return asked, base.ask(asked.question, recipe=recipe, chain=THREE_HOPS, watch=watch, stop=stop)

    asker = BaseAsker(base)
    asker.ask = chained
    with serve_router(asker, recipes={"hops": "chain(k=3, reader=span)"}) as url, client_of(url) as client:
        assert [model.id for model in client.models.list()] == ["clew", "clew:hops"]
        reply = ask_model(client, "Who is mayor there?", model="clew:hops")
    citations = reply.model_extra["clew"]["citations"]
    assert len(citations) >= 3 and citations[0]["kind"] == "triple"
    assert [citation["number"] for citation in citations] == list(range(1, len(citations) + 1))
    assert all(
        f"[{citation['number']}] {citation['place']}" in reply.choices[0].message.content
        for citation in citations
    )


@dataclass
class Failing:
    """Fails as it is told to, after a step if it is ``late``."""

    late: bool = False

    def ask(self, turns, recipe, watch, stop):
        if self.late:
            watch(SeedStep(1))
        raise ERRORS[turns[-1].text]


ERRORS = {
    "busy": Unavailable("too many questions at once", "Ask again in a moment", retry_after=3),
    "down": ModelError("the model is gone"),
    "none": UsageError("'dpr' needs an encoder"),
}


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_wrong_from_the_beginning_has_its_status(stream):
    with serve_router(Failing()) as url, client_of(url) as client:
        for question, status in (("busy", 503), ("down", 502), ("none", 400)):
            with pytest.raises(openai.APIStatusError, match=ERRORS[question].problem) as failed:
                ask_model(client, question, stream=stream)
            assert failed.value.status_code == status
            after = failed.value.response.headers.get("Retry-After")
            assert after == ("3" if question == "busy" else None)


def test_what_goes_wrong_in_the_middle_of_a_stream_is_an_error_event():
    with serve_router(Failing(late=True)) as url, client_of(url) as client:
        stream = ask_model(client, "down", stream=True)
        assert next(stream).choices[0].delta.role == "assistant"
        with pytest.raises(openai.APIError, match="the model is gone"):
            next(stream)


def test_a_token_that_the_application_asks_for_is_missing_in_openai_s_form(base):
    def token(authorization: Annotated[str, Header()] = ""):
        if authorization != "Bearer right":
            raise HTTPException(401, "the token is missing", {"WWW-Authenticate": "Bearer"})

    with serve_router(BaseAsker(base), dependencies=[Depends(token)]) as url, client_of(url) as client:
        with pytest.raises(openai.AuthenticationError, match="the token is missing") as refused:
            ask_model(client, BORN)
        assert refused.value.code == "invalid_api_key"
        assert refused.value.response.headers["WWW-Authenticate"] == "Bearer"
        with openai.OpenAI(base_url=url, api_key="right") as known:
            assert TOWN in ask_model(known, BORN).choices[0].message.content


@pytest.mark.slow
def test_questions_asked_at_once_get_each_their_own_answer(client):
    def ask(world):
        _, director, town, *_ = world
        return town in ask_model(client, f"Where was {director} born?").choices[0].message.content

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, WORLD * 3))


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_who_goes_away_stops_the_work(stream):
    begun, ended = threading.Event(), threading.Event()

    class Endless:
        def ask(self, turns, recipe, watch, stop):
            begun.set()
            while not stop():
                time.sleep(0.01)
            ended.set()
            raise ModelError("nobody reads this")

    with serve_router(Endless()) as url:
        connection = http.client.HTTPConnection("127.0.0.1", int(url.split(":")[2].split("/")[0]))
        body = {"model": "clew", "stream": stream, "messages": [{"role": "user", "content": "x"}]}
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        assert begun.wait(30)
        connection.close()
        assert ended.wait(30)


def test_a_response_has_the_text_and_the_citations_of_a_chat_completion(client):
    chat = ask_model(client, BORN)
    for text in (BORN, [{"role": "user", "content": [{"type": "input_text", "text": BORN}]}]):
        reply = client.responses.create(model="clew", input=text, instructions="Be brief.")
        assert reply.output_text == chat.choices[0].message.content and reply.status == "completed"
        assert reply.clew["citations"] == chat.clew["citations"]
        assert reply.usage.total_tokens == chat.usage.total_tokens
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client.responses.create(model="clew", input=BORN, previous_response_id=reply.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.create(model="gpt-9", input=BORN)


def test_a_streamed_response_ends_with_the_whole(client):
    whole = client.responses.create(model="clew", input=BORN)
    events = list(client.responses.create(model="clew", input=BORN, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert events[0].type == "response.created" and "".join(deltas) == whole.output_text
    assert events[-1].type == "response.completed" and events[-1].response.output_text == whole.output_text
    with client.responses.stream(model="clew", input=BORN) as stream:
        assert stream.get_final_response().output_text == whole.output_text
