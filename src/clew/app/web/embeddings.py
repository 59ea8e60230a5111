"""``/v1/embeddings`` and ``/v1/rerank``: the encoder of a base for other programs.

Embeddings have the form of OpenAI's, reranking that of Cohere and Jina. The model is ``clew`` or the encoder's name.
Tokens in ``usage`` are counted by rule: the encoder's own tokens are nobody's bill.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Annotated, Any, Literal
from uuid import uuid4

import numpy as np
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, ConfigDict, Field

from clew.app.web.openai import MODEL_NAME, ChatError, make_openai_router
from clew.app.web.server import Server
from clew.app.web.settings import Settings
from clew.core.arrays import Vectors
from clew.core.protocols import Encoder
from clew.models.costs import count_tokens

#: Texts of one request, and characters of each.
MAX_TEXTS, MAX_CHARACTERS = 512, 32_000

_Text = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


class EmbeddingsRequest(BaseModel):
    """Texts to encode. Clients of OpenAI ask for base64 unless they are told otherwise."""

    model_config = ConfigDict(extra="allow")
    model: str = Field(description="clew, or the name of the base's encoder")
    input: _Text | Annotated[list[_Text], Field(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class RerankDocument(BaseModel):
    """A text to rank, as an object."""

    text: _Text


class RerankRequest(BaseModel):
    """A question and texts to rank by it."""

    model_config = ConfigDict(extra="allow")
    model: str = Field(description="clew, or the name of the base's encoder")
    query: _Text
    documents: list[_Text | RerankDocument] = Field(min_length=1, max_length=MAX_TEXTS)
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False


def make_embeddings_router(
    lend_encoder: Callable[[], AbstractContextManager[Encoder]], executor: Executor
) -> APIRouter:
    """Return the routes; the threads of ``executor`` load the encoder and encode.

    ``lend_encoder`` gives the encoder for the time of one request, or raises ClewError.
    """
    router = make_openai_router()

    def encode(model: str, dimensions: int | None, texts: Sequence[str], query: str | None = None) -> Vectors:
        with lend_encoder() as encoder:
            if model not in {MODEL_NAME, encoder.name}:
                problem = f"The model '{model}' does not exist. There are: {MODEL_NAME}, {encoder.name}"
                raise ChatError(problem, "model", "model_not_found", 404)
            if dimensions not in {None, encoder.dimension}:
                raise ChatError(
                    f"vectors of {encoder.name} have {encoder.dimension} dimensions", "dimensions"
                )
            vectors = encoder.encode(texts)
            return vectors if query is None else np.vstack([encoder.encode([query], query=True), vectors])

    async def run(*arguments: Any) -> Vectors:
        return await asyncio.get_running_loop().run_in_executor(executor, encode, *arguments)

    @router.post("/embeddings")
    async def embed(asked: EmbeddingsRequest) -> dict[str, Any]:
        """Return a unit vector for each text, by the encoder of the base."""
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        vectors = await run(asked.model, asked.dimensions, texts)
        data = [
            {"object": "embedding", "index": number, "embedding": _to_json(vector, asked.encoding_format)}
            for number, vector in enumerate(vectors)
        ]
        return {"object": "list", "model": asked.model, "data": data, "usage": _usage(texts)}

    @router.post("/rerank")
    async def rerank(asked: RerankRequest) -> dict[str, Any]:
        """Return the texts ordered by the cosine of their vectors with that of `query`, from 0 to 1, best first."""
        texts = [item if isinstance(item, str) else item.text for item in asked.documents]
        vectors = await run(asked.model, None, texts, asked.query)
        scores = np.clip(vectors[1:] @ vectors[0], 0, 1)
        order = np.argsort(-scores, kind="stable")[: asked.top_n].tolist()
        results = [
            {"index": index, "relevance_score": float(scores[index])}
            | ({"document": {"text": texts[index]}} if asked.return_documents else {})
            for index in order
        ]
        usage = _usage([asked.query, *texts])
        return {"id": f"rerank-{uuid4().hex}", "model": asked.model, "results": results, "usage": usage}

    return router


def _to_json(vector: Vectors, encoding: str) -> list[float] | str:
    if encoding == "float":
        return [float(value) for value in vector]
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")


def _usage(texts: Sequence[str]) -> dict[str, int]:
    tokens = sum(map(count_tokens, texts))
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def make_embeddings_routers(
    app: FastAPI, settings: Settings, executor: Executor, bases: Sequence[str]
) -> Iterator[tuple[str, APIRouter]]:
    """Yield the routes of each of the ``bases`` with their prefix; the server's first base has them twice."""

    @contextmanager
    def lend(base: str) -> Iterator[Encoder]:
        server: Server = app.state.server
        with server.questions.search_slots.admit():
            yield server.bases[base].knowledge_base.encoding.require()

    for name in bases:
        router = make_embeddings_router(partial(lend, name), executor)
        if name == next(iter(settings.bases)):
            yield "", router
        yield f"/api/bases/{name}", router
