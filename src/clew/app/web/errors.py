"""What goes wrong, as a reply: ``{"error": ..., "hint": ...}``, never a traceback."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from clew.core.errors import (
    BudgetExceeded,
    ClewError,
    Locked,
    ModelError,
    NotFound,
    RemoteError,
    StoreError,
    Unavailable,
)

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

LOG = logging.getLogger("clew.app.web")
#: What is said of a fault of ours; the traceback goes to the person who runs the server, and to nobody else.
SERVER_FAULT = {"error": "something went wrong in the server", "hint": "Its log says what"}

_STATUS: tuple[tuple[type[ClewError], int], ...] = (
    (NotFound, 404),
    (Locked, 503),
    (StoreError, 500),
    (BudgetExceeded, 429),
    (Unavailable, 503),
    (ModelError, 502),
    (RemoteError, 502),
)
_SAID = {
    404: "there is nothing at this address",
    405: "this address does not take that method",
    400: "the request makes no sense",
}


class RequestRefused(ClewError):
    """A request that is refused, with the status of the reply."""

    def __init__(self, status: int, problem: str, hint: str = "") -> None:
        super().__init__(problem, hint)
        self.status = status


class BodyTooLarge(Exception):
    """More was sent than the request may hold: noticed while it is read."""


class BodyTimeout(Exception):
    """Nothing more of a request came for long."""


class ServerBusy(RequestRefused):
    """Too much is waiting; ``retry_after`` seconds say when to come again."""

    def __init__(self, problem: str, retry_after: int, status: int = 429) -> None:
        super().__init__(status, problem, f"Try again in {retry_after} s")
        self.retry_after = retry_after


def status_code(error: ClewError) -> int:
    """Return the status of the reply to an error: 400 for what makes no sense."""
    if isinstance(error, RequestRefused):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def error_to_dict(error: ClewError) -> dict[str, str]:
    """Return an error as it is sent."""
    return {"error": error.problem, "hint": error.hint}


def error_response(
    status: int, error: str, hint: str = "", headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return the reply that says what is wrong."""
    return JSONResponse({"error": error, "hint": hint}, status_code=status, headers=headers)


def response_for(error: ClewError) -> JSONResponse:
    """Return the reply to an error."""
    return JSONResponse(error_to_dict(error), status_code=status_code(error), headers=retry_headers(error))


def retry_headers(error: ClewError) -> dict[str, str]:
    """Return the header that says when the same may be asked again, where the error says so."""
    if not isinstance(error, ServerBusy | Unavailable) or error.retry_after is None:
        return {}
    return {"Retry-After": f"{error.retry_after:.0f}"}


def install_error_handlers(app: FastAPI) -> None:
    """Make every error of ``app`` such a reply."""

    async def ours(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ClewError)
        return response_for(error)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return error_response(422, "; ".join(_field(one) for one in error.errors()[:5]), "See: /api/docs")

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        said = _SAID.get(error.status_code, str(error.detail))
        return error_response(error.status_code, said, headers=dict(error.headers or {}))

    async def too_much(request: Request, error: Exception) -> JSONResponse:
        return error_response(413, "more was sent than a request may hold", "Send less at a time")

    async def too_slow(request: Request, error: Exception) -> JSONResponse:
        return error_response(408, "nothing more of the request came", "Try again", {"Connection": "close"})

    async def gone(request: Request, error: Exception) -> JSONResponse:
        return error_response(400, "the request broke off")

    app.add_exception_handler(BodyTooLarge, too_much)
    app.add_exception_handler(BodyTimeout, too_slow)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(ClewError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def _field(error: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in error.get("loc", ())[1:])
    # What was sent is not repeated.
    said = str(error.get("msg", "is not valid")).removeprefix("Value error, ")
    return f"{place}: {said}" if place else said
