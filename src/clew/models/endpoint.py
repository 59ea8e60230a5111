"""An OpenAI-compatible endpoint: where it is, whose key it gets, and what its failures mean."""

from __future__ import annotations

import ipaddress
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.core.errors import ModelError, Unavailable

if TYPE_CHECKING:
    import openai

OPENAI = "https://api.openai.com/v1"
#: Seconds to wait for a connection; a server that is there answers at once.
_CONNECT = 10.0
_TRY_LATER = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address. ``name`` is canonical: it parses back, and never holds the key.

    ``key`` is sent to this address only; ``key_from`` is the variable that holds it.
    """

    name: str
    url: str
    model: str
    key: str | None = field(default=None, repr=False)
    key_variable: str = "CLEW_API_KEY"

    @property
    def on_this_machine(self) -> bool:
        """Whether the address is a loopback one."""
        return is_loopback(self.url)

    def connect(self, timeout: float, owner: object) -> openai.OpenAI:
        """Return a client that never retries by itself, so that every call is seen and counted; its connections
        are closed when ``owner`` is gone."""
        import openai

        client = openai.OpenAI(
            base_url=self.url,
            api_key=self.key or "none",
            max_retries=0,
            timeout=openai.Timeout(timeout, connect=min(_CONNECT, timeout)),
            http_client=self._plain(),
        )
        if self.url != OPENAI:
            # The SDK reads these from the environment; they are nobody else's business.
            client.organization = client.project = None
        weakref.finalize(owner, client.close)
        return client

    def _plain(self) -> Any:
        """Return what speaks plain HTTP with a server on this machine; None, for what the SDK would take, elsewhere.

        It knows no authority, since to read the certificates of all of them takes longer than many a reply; so a
        server on this machine cannot send the client on to another one by HTTPS either.
        """
        import ssl

        import openai

        if not self.on_this_machine or urlsplit(self.url).scheme != "http":
            return None
        return openai.DefaultHttpxClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def explain_error(self, error: openai.OpenAIError, timeout: float) -> ModelError:
        """Return what an error of the client means to a person."""
        import openai

        if isinstance(error, openai.APITimeoutError):
            return Unavailable(f"{self.url} did not answer within {timeout:g} seconds")
        if isinstance(error, openai.APIConnectionError):
            return self._unreachable(error)
        if isinstance(error, openai.APIStatusError):
            return self._refused(error)
        return ModelError(f"{self.url}: {error}")

    def _unreachable(self, error: openai.APIConnectionError) -> ModelError:
        cause = type(error.__cause__).__name__
        if cause == "ConnectError":
            return ModelError(f"cannot reach {self.url}: {error.__cause__}", "Is the server running?")
        return Unavailable(f"{self.url} broke off the connection: {error.__cause__ or error}")

    def _refused(self, error: openai.APIStatusError) -> ModelError:
        status, said = error.status_code, refusal_text(error)
        if status in {401, 403}:
            hint = "" if self.key else f"Set {self.key_variable}"
            return ModelError(
                f"{self.url} refused {'the key' if self.key else 'a call without a key'}: {said}", hint
            )
        if status == 404:
            hint = f"To get it: ollama pull {self.model}" if self.name.startswith("ollama:") else ""
            return ModelError(f"{self.url} has no model '{self.model}': {said}", hint)
        if error.code == "insufficient_quota":
            return ModelError(f"{self.url}: the account has no credit left: {said}")
        if status in _TRY_LATER or status >= 500:
            return Unavailable(f"{self.url} answered {status}: {said}", retry_after=_retry_after(error))
        return ModelError(f"{self.url} refused the call with {status}: {said}")


def refusal_text(error: Any) -> str:
    """Return what an endpoint said when it refused."""
    body = error.body if isinstance(error.body, dict) else {}
    return " ".join(str(body.get("message") or error.message).split())[:500]


def is_loopback(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _retry_after(error: openai.APIStatusError) -> float | None:
    # Seconds only; the other form, a date, is not used by any endpoint that we know of.
    try:
        return max(0.0, float(error.response.headers["retry-after"]))
    except (KeyError, ValueError):
        return None
