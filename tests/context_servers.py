"""Local servers with a small context, on loopback: what they do with a prompt that is too long is theirs.

A llama.cpp server refuses a prompt that is longer than its context, a vLLM server one that together with the longest
reply asked for is longer, and both say so in their words. Ollama cuts the beginning of a prompt off without a word.
Tokens are counted as a tokenizer does that is not the client's rule: in pieces of at most five characters.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PIECE = re.compile(r"\w{1,5}|[^\w\s]")
#: Tokens of the chat template around a prompt.
_TEMPLATE = 12


def count_pieces(text: str) -> int:
    return len(_PIECE.findall(text))


class Player:
    """A server that plays ``pages``: by method and path, an object, or a function from the request's body to the list
    of lines or events to stream, or to a status and that list."""

    def __init__(self, pages: Mapping[str, Any]) -> None:
        self.pages = pages
        self.requests: list[tuple[str, dict[str, Any]]] = []

    @contextmanager
    def serve(self) -> Iterator[str]:
        player = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.play("GET", {})

            def do_POST(self) -> None:
                self.play("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def play(self, method: str, body: dict[str, Any]) -> None:
                player.requests.append((f"{method} {self.path}", body))
                page = player.pages.get(f"{method} {self.path}")
                reply = (
                    page(body) if callable(page) else (404 if page is None else 200, [json.dumps(page or {})])
                )
                status, parts = reply if isinstance(reply, tuple) else (200, reply)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                try:
                    for part in parts:
                        self.wfile.write(part.encode())
                        self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client gave up

            def log_message(self, *_: object) -> None:
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

    def sent(self, path: str) -> list[dict[str, Any]]:
        return [body for line, body in self.requests if line == path]


class SmallContext:
    """A server of ``kind`` (``llama.cpp``, ``vllm``, ``ollama``) with a context of so many tokens.

    ``reply`` makes the reply from the body of a request and its messages' text. ``read`` has the tokens of each
    prompt that was read, and of the longest reply that was asked for with it; ``refused`` counts refusals, ``cut``
    prompts of which the beginning was dropped.
    """

    def __init__(self, kind: str, context: int, reply: Callable[[dict[str, Any], str], str]) -> None:
        self.kind = kind
        self.context = context
        self.reply = reply
        self.read: list[tuple[int, int]] = []
        self.prompts: list[str] = []
        self.refused = 0
        self.cut = 0

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Yield the name of its model as ``--llm`` takes it."""
        row = {"id": "small", "owned_by": "llamacpp" if self.kind == "llama.cpp" else "vllm"}
        pages = {
            "ollama": {
                "GET /api/version": {"version": "0.12.0"},
                "POST /api/show": {"parameters": f"num_ctx {self.context}", "capabilities": []},
                "POST /api/chat": self._chat_ollama,
            },
            "llama.cpp": {
                "GET /v1/models": {"data": [row]},
                "GET /props": {"default_generation_settings": {"n_ctx": self.context}, "total_slots": 1},
                "POST /v1/chat/completions": self._chat,
            },
            "vllm": {
                "GET /v1/models": {"data": [row | {"max_model_len": self.context}]},
                "POST /v1/chat/completions": self._chat,
            },
        }
        with Player(pages[self.kind]).serve() as address:
            yield f"{address}/v1#small"

    def _chat(self, body: dict[str, Any]) -> tuple[int, list[str]]:
        text = "\n".join(message["content"] for message in body["messages"])
        tokens = count_pieces(text) + _TEMPLATE
        longest = body["max_tokens"]
        refusal = ""
        if self.kind == "llama.cpp" and tokens >= self.context:
            refusal = f"request ({tokens} tokens) exceeds the available context size ({self.context} tokens)"
        elif self.kind == "vllm" and tokens + longest > self.context:
            refusal = (
                f"This model's maximum context length is {self.context} tokens. However, you requested "
                f"{tokens + longest} tokens ({tokens} in the messages, {longest} in the completion)."
            )
        if refusal:
            self.refused += 1
            return 400, [json.dumps({"error": {"message": refusal, "code": 400}})]
        reply, finish, usage = self._answer(body, text, tokens, longest)
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "small"}
        choice = {"index": 0, "delta": {"content": reply}, "finish_reason": finish}
        usage |= {"total_tokens": sum(usage.values())}
        return 200, [
            f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n",
            f"data: {json.dumps(chunk | {'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n",
        ]

    def _chat_ollama(self, body: dict[str, Any]) -> tuple[int, list[str]]:
        text = "\n".join(message["content"] for message in body["messages"])
        tokens = count_pieces(text) + _TEMPLATE
        options = body["options"]
        if tokens > options["num_ctx"]:
            # It reads what fills the context, and reports that.
            self.cut += 1
            tokens = options["num_ctx"]
            text = text[-3 * tokens :]
        reply, finish, usage = self._answer(body, text, tokens, options["num_predict"])
        done = {"done": True, "done_reason": finish, "prompt_eval_count": tokens}
        return 200, [
            json.dumps({"message": {"content": reply}, "done": False}) + "\n",
            json.dumps(done | {"eval_count": usage["completion_tokens"]}) + "\n",
        ]

    def _answer(
        self, body: dict[str, Any], text: str, tokens: int, longest: int
    ) -> tuple[str, str, dict[str, Any]]:
        """Return the reply, as long as the context and the request allow."""
        self.read.append((tokens, longest))
        self.prompts.append(text)
        reply = self.reply(body, text)
        pieces = [match.end() for match in _PIECE.finditer(reply)]
        room = max(min(longest, self.context - tokens), 1)
        finish = "length" if len(pieces) > room else "stop"
        reply = reply[: pieces[room - 1]] if finish == "length" else reply
        usage = {"prompt_tokens": tokens, "completion_tokens": min(len(pieces), room)}
        return reply, finish, usage
