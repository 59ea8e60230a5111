"""OpenAI-compatible endpoints: address, key, client, and what their errors mean."""

from __future__ import annotations

import ipaddress
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.core.errors import ModelError, TimedOut, Unavailable

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
#: Seconds to wait for a connection; a running server accepts one at once.
CONNECT = 10.0
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

    @property
    def on_this_machine(self) -> bool:
        """Whether the address is a loopback address."""
        return is_loopback(self.url)

    def connect(self, timeout: float, owner: object) -> openai.OpenAI:
        """Return a client whose connections are closed when ``owner`` is garbage collected.

        It never retries by itself, so that every call is counted.
        """
        import openai

        client = openai.OpenAI(
            base_url=self.url,
            api_key=self.key or "none",
            max_retries=0,
            timeout=openai.Timeout(timeout, connect=min(CONNECT, timeout)),
            http_client=self._local_client(),
        )
        if self.url != OPENAI:
            # The SDK reads these from the environment; no other endpoint may see them.
            client.organization = client.project = None
        weakref.finalize(owner, client.close)
        return client

    def _local_client(self) -> Any:
        """Return an HTTP client for a server on this machine, None (the SDK's own client) for others.

        It loads no certificates, which would take longer than many replies do. So a server on this machine cannot
        redirect the client to another machine by HTTPS either.
        """
        import ssl

        import openai

        if not self.on_this_machine or urlsplit(self.url).scheme != "http":
            return None
        return openai.DefaultHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

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


def is_loopback(url: str) -> bool:
    """Return whether the host of a URL is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _retry_after(error: openai.APIStatusError) -> float | None:
    # Seconds only: no endpoint that we know of uses the other form, a date.
    try:
        return max(0.0, float(error.response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
