"""Vectors and rankings of the base's encoder, as OpenAI's own client and a plain request ask for them."""

import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import openai
import pytest
import uvicorn
from fastapi import FastAPI

from clew.app.web.embeddings import make_embeddings_router
from clew.models import create_encoder

STORK, HERRING = "The stork nests on chimneys.", "Herring swim in shoals."


@pytest.fixture(scope="module")
def encoder():
    return create_encoder("clew:hops")


@pytest.fixture(scope="module")
def url(encoder):
    app = FastAPI()
    with ThreadPoolExecutor(1) as pool:
        app.include_router(make_embeddings_router(lambda: nullcontext(encoder), pool))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        [listening] = server.servers[0].sockets
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        server.should_exit = True
        thread.join()


def post(url, **body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_vectors_are_those_of_the_encoder(url, encoder):
    with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
        reply = client.embeddings.create(model="clew", input=[STORK, HERRING])
        plain = client.embeddings.create(model=encoder.name, input=STORK, encoding_format="float")
        with pytest.raises(openai.NotFoundError, match="clew"):
            client.embeddings.create(model="text-embedding-3-small", input=STORK)
        with pytest.raises(openai.BadRequestError, match="dimensions"):
            client.embeddings.create(model="clew", input=STORK, dimensions=7)
    expected = encoder.encode([STORK, HERRING])
    assert np.allclose([item.embedding for item in reply.data], expected, atol=1e-6)
    assert np.allclose(plain.data[0].embedding, expected[0], atol=1e-6)
    assert reply.usage.prompt_tokens > 0


def test_texts_are_ranked_by_a_question(url):
    texts = [HERRING, {"text": STORK}, "Rent is due on the first."]
    status, reply = post(
        f"{url}/rerank", model="clew", query="Where do storks nest?", documents=texts, top_n=2
    )
    assert status == 200 and reply["results"][0]["index"] == 1
    first, second = (item["relevance_score"] for item in reply["results"])
    assert 1 >= first > second >= 0 and "document" not in reply["results"][0]
    _, reply = post(f"{url}/rerank", model="clew", query="storks", documents=texts, return_documents=True)
    assert reply["results"][0]["document"] == {"text": STORK} and len(reply["results"]) == 3
    status, reply = post(f"{url}/rerank", model="clew", query="storks", documents=[])
    assert status == 400 and "documents" in reply["error"]["message"]
