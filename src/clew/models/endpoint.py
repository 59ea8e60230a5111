"""OpenAI-compatible endpoints: address, key, client, and what their errors mean."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.core.errors import ModelError, RemoteError, TimedOut, Unavailable

if TYPE_CHECKING:
    import openai

    from clew.core.http_client import Exchange

OPENAI = "https://api.openai.com/v1"
#: Bytes of a reply, and of one line (an event) of a reply that comes in pieces. A thousand tokens are some 300,000
#: bytes, a batch of embeddings a few million.
REPLY_BYTES, EVENT_BYTES = 64 << 20, 1 << 20
_TRY_LATER = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address. ``name`` is canonical: it parses back, and never contains the key.

    ``key`` is sent to this address only; ``key_variable`` is the environment variable that it comes from.
    """

    name: str
    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    key_variable: str = "CLEW_API_KEY"

    def connect(self, timeout: float, owner: object = None, total: float | None = None) -> openai.OpenAI:
        """Return a client whose connections are closed when ``owner`` is garbage collected, if there is one.

        It sends by :class:`~clew.core.http_client.HttpClient`, never retries by itself, so that every call is
        counted, and reads no reply of more than ``REPLY_BYTES``. A reply may take ``timeout`` seconds as a whole, or
        ``total`` where it comes in pieces.
        """
        import openai

        client = openai.OpenAI(
            base_url=self.url,
            api_key=self.key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultHttpxClient(
                transport=self._transport(total or timeout), follow_redirects=False, trust_env=False
            ),
        )
        if self.url != OPENAI:
            # The SDK reads these from the environment; no other endpoint may see them.
            client.organization = client.project = None
        if owner is not None:
            weakref.finalize(owner, client.close)
        return client

    def _transport(self, total: float) -> Any:
        """Return what the SDK's client of HTTP sends requests with: ours, in the classes of its library."""
        import openai

        from clew.core.http_client import HttpClient

        # Which library that is depends on the version of the SDK.
        library: Any = import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
        endpoint, sender = self, HttpClient(is_named=True)

        class Body(library.SyncByteStream):  # type: ignore[misc]
            def __init__(self, pieces: Iterator[bytes], exchange: Exchange, last: float) -> None:
                self._pieces, self._exchange, self._last = pieces, exchange, last

            def __iter__(self) -> Iterator[bytes]:
                with endpoint._as_errors_of(library, self._last, total):
                    yield from self._pieces

            def close(self) -> None:
                self._exchange.close()

        class Transport(library.BaseTransport):  # type: ignore[misc]
            def handle_request(_, request: Any) -> Any:  # noqa: N805 - self is the endpoint
                # What was asked for decides, not what the reply says that it is. In a prompt the quotes are escaped.
                is_lines = b'"stream":true' in request.content.replace(b" ", b"")
                pause = request.extensions["timeout"]["read"] or total
                headers = dict(request.headers)
                del headers["host"], headers["accept-encoding"]
                deadline = time.monotonic() + (total if is_lines else pause)
                last = deadline if is_lines else math.inf
                with endpoint._as_errors_of(library, last, total):
                    exchange = sender.open(
                        str(request.url),
                        request.method,
                        request.content,
                        headers,
                        deadline=deadline,
                        pause=pause,
                    )
                # A few bytes could become any number, and no compression was asked for.
                if dict(exchange.headers).get("content-encoding", "identity") != "identity":
                    exchange.close()
                    raise self._too_large("compressed a reply though it was asked not to")
                # One byte more than is allowed, for the error of a model.
                pieces = self._count_bytes(exchange.pieces(REPLY_BYTES + 1, cut=True), is_lines)
                return library.Response(
                    exchange.status, headers=exchange.headers, stream=Body(pieces, exchange, last)
                )

            def close(_) -> None:  # noqa: N805
                sender.close()

        return Transport()

    @contextmanager
    def _as_errors_of(self, library: Any, last: float, total: float) -> Iterator[None]:
        """Raise errors of the connection as the library of the SDK names them. ``last`` is when the limit of a whole
        reply in pieces, ``total`` seconds, is reached."""
        from clew.core.http_client import ConnectFailed

        try:
            yield
        except ConnectFailed as error:
            raise library.ConnectError(str(error)) from error
        except TimeoutError as error:
            if time.monotonic() >= last:
                raise self.too_slow(f"did not finish its reply within {total:g} seconds") from error
            raise library.ReadTimeout(str(error)) from error
        except OSError as error:
            raise library.ReadError(str(error)) from error
        except RemoteError as error:
            raise ModelError(f"{self.url} cannot be used: {error.problem}", error.hint) from error

    def _count_bytes(self, stream: Iterable[bytes], is_lines: bool) -> Iterator[bytes]:
        """Yield the pieces of a reply. Raises ModelError where they are too many, or one line of events too long."""
        total = line = 0
        for piece in stream:
            total += len(piece)
            end = piece.rfind(b"\n")
            line = line + len(piece) if end < 0 else len(piece) - end - 1
            if total > REPLY_BYTES:
                raise self._too_large(f"sent a reply of more than {REPLY_BYTES >> 20} MiB")
            if is_lines and line > EVENT_BYTES:
                raise self._too_large(f"sent an event of more than {EVENT_BYTES >> 20} MiB")
            yield piece

    def _too_large(self, what: str) -> ModelError:
        return ModelError(f"{self.url} {what}", "The reply was given up; is this the server that you mean?")

    def explain_error(self, error: openai.OpenAIError, timeout: float) -> ModelError:
        """Return the error to show for an error of the SDK's client."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return self.too_slow(f"did not answer within {timeout:g} seconds")
        if isinstance(error, openai.APIConnectionError):
            return self._explain_connection_error(error)
        if isinstance(error, openai.APIStatusError):
            return self._explain_status(error)
        return ModelError(f"{self.url}: {error}")

    def too_slow(self, what: str) -> TimedOut:
        """Return the error of a call that took too long; ``what`` says which limit it reached."""
        return TimedOut(
            f"{self.url} {what}",
            f"Allow it more ({self.name}?first=600&total=1800, in seconds), a shorter prompt, or a smaller model",
        )

    def _explain_connection_error(self, error: openai.APIConnectionError) -> ModelError:
        if isinstance(error.__cause__, ModelError):
            return error.__cause__
        cause = type(error.__cause__).__name__
        if cause == "ConnectError":
            return ModelError(f"cannot reach {self.url}: {error.__cause__}", "Is the server running?")
        return Unavailable(f"{self.url} broke off the connection: {error.__cause__ or error}")

    def _explain_status(self, error: openai.APIStatusError) -> ModelError:
        status, message = error.status_code, refusal_text(error)
        if status in {401, 403}:
            hint = "" if self.key else f"Set {self.key_variable}"
            return ModelError(
                f"{self.url} refused {'the key' if self.key else 'a call without a key'}: {message}", hint
            )
        if status == 404:
            hint = f"To get it: ollama pull {self.model}" if self.name.startswith("ollama:") else ""
            return ModelError(f"{self.url} has no model '{self.model}': {message}", hint)
        if error.code == "insufficient_quota":
            return ModelError(f"{self.url}: the account has no credit left: {message}")
        if status in _TRY_LATER or status >= 500:
            return Unavailable(f"{self.url} answered {status}: {message}", retry_after=_retry_after(error))
        return ModelError(f"{self.url} refused the call with {status}: {message}")


def refusal_text(error: Any) -> str:
    """Return the message of an endpoint's error, at most 500 characters."""
    body = error.body if isinstance(error.body, dict) else {}
    return " ".join(str(body.get("message") or error.message).split())[:500]


def _retry_after(error: openai.APIStatusError) -> float | None:
    # Seconds only: no endpoint that we know of uses the other form, a date.
    try:
        return max(0.0, float(error.response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
