"""The chat endpoints of a running server, as OpenAI's own client meets them."""

import shutil
from urllib.parse import quote

import numpy as np
import openai
import pytest

import clew
from clew.app.web.method_choices import method_for_triples
from scripted import ScriptedServer
from serve_app import FILES, QUESTION, SAMPLES, ServedApp

TOKEN = "a-token-of-enough-characters"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    with clew.open(folder / "one", create=True) as base:
        base.add([SAMPLES / FILES[0]])
    with ServedApp(folder / "one", folder / "two", token=TOKEN, encoder="none") as app:
        yield app


def client(app, path="", key=TOKEN):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{app.port}{path}/v1", api_key=key, max_retries=0)


@pytest.mark.slow
def test_the_first_base_answers_and_each_has_an_address_of_its_own(app):
    asked = {"model": "clew", "messages": [{"role": "user", "content": QUESTION}]}
    reply = client(app).chat.completions.create(**asked)
    assert "$9" in reply.choices[0].message.content and reply.model_extra["clew"]["citations"]
    own = client(app, "/api/bases/one").chat.completions.create(**asked)
    assert own.choices[0].message.content == reply.choices[0].message.content
    other = client(app, "/api/bases/two").chat.completions.create(**asked)
    assert other.model_extra["clew"]["abstained"]


@pytest.mark.slow
def test_a_running_server_embeds_and_ranks_with_the_encoder_of_its_base(tmp_path):
    """As OpenAI's client asks for vectors, and a plain request for an order."""
    texts = ["The stork nests on chimneys.", "Herring swim in shoals."]
    body = {"model": "clew", "query": "Where does the stork nest?", "documents": texts[::-1], "top_n": 1}
    with ServedApp(tmp_path / "birds", encoder="clew:hops") as app, client(app) as asked:
        vectors = [item.embedding for item in asked.embeddings.create(model="clew", input=texts).data]
        encoder = app.serving.app.state.bases["birds"].knowledge_base.encoding.require()
        np.testing.assert_allclose(vectors, encoder.encode(texts), atol=1e-6)
        cosine = float(encoder.encode([body["query"]], query=True)[0] @ np.array(vectors[0]))
        for path in ("", "/api/bases/birds"):
            status, ranked = app.post(f"{path}/v1/rerank", body)
            [best] = ranked["results"]
            assert (status, best["index"]) == (200, 1)
            assert best["relevance_score"] == pytest.approx(cosine, abs=1e-5)
        assert app.post("/v1/rerank", body | {"documents": []})[0] == 400


@pytest.mark.slow
def test_a_base_without_an_encoder_says_so(app):
    with client(app) as asked, pytest.raises(openai.BadRequestError, match="has no encoder"):
        asked.embeddings.create(model="clew", input="a text")


@pytest.mark.slow
def test_without_the_token_nothing_is_said(app):
    with pytest.raises(openai.AuthenticationError):
        client(app, key="wrong").models.list()


@pytest.mark.slow
def test_only_methods_that_answer_from_evidence_are_models(app):
    names = {item.id for item in client(app).models.list()}
    assert (
        "clew" in names and "clew:kgp" in names and not names & {"clew:none", "clew:golden", "clew:fewshot"}
    )


@pytest.mark.slow
def test_the_servers_own_model_is_asked(tmp_path):
    record = {"quotes": [], "answer": "", "abstain": True}
    with (
        ScriptedServer(lambda request: record) as model,
        ServedApp(tmp_path / "kb", models=[model.llm], encoder="none") as app,
    ):
        app.upload("a.md", b"# Bridge\n\nThe bridge was built by Ada Pell.")
        asked = [{"role": "user", "content": "Who built the bridge?"}]
        client(app, key="none").chat.completions.create(model="clew", messages=asked)
        assert model.requests


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "method"),
    [
        ("Kismet >> director >> #1; #1 >> born in >> #2; final answer: #2", "chain"),
        ("#1 : film; #1 >> director >> Ludwig Berger; final answer: #1", "focus"),
        ("#1 >> director >> Ludwig Berger; #1.year < 1940; final answer: #1", "focus"),
    ],
)
def test_triples_go_to_the_method_that_understands_them(written, method):
    assert method_for_triples(written) == method


@pytest.mark.slow
def test_a_base_may_have_a_name_of_other_letters(tmp_path, made_base):
    shutil.copytree(made_base, tmp_path / "Größe & 日本")
    with ServedApp(tmp_path / "Größe & 日本", encoder="none") as app:
        name = quote(app.base)
        asked = {"model": "clew", "messages": [{"role": "user", "content": QUESTION}]}
        reply = client(app, f"/api/bases/{name}").chat.completions.create(**asked)
        assert "$9" in reply.choices[0].message.content
        # Addresses that the API gives can be followed as they are.
        status, reply = app.post(f"/api/bases/{name}/questions", {"question": QUESTION})
        assert status == 202 and list(app.events(reply["events"]))[-1][0] == "answer"
        assert app.get(reply["url"])[1]["state"] == "done"
        assert app.request("GET", f"/b/{name}/q/{reply['id']}")[0] == 200
