"""Errors as replies: ``{"error": ..., "hint": ...}``, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from clew.app.web.log import LOG as LOG
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

#: The reply to an error of ours; the traceback goes into the server's log and nowhere else.
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
_MESSAGES = {
    404: "there is nothing at this address",
    405: "this address does not take that method",
    400: "the request makes no sense",
}


class Problem(BaseModel):
    """The body of a reply to a request that failed: the problem, and what can be done about it."""

    error: str
    hint: str = ""


def describe_errors(model: type[BaseModel], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return how the description of the API states that replies with these statuses have the form of ``model``."""
    return {status: {"model": model, "description": HTTPStatus(status).phrase} for status in statuses}


class RequestRefused(ClewError):
    """A request that is refused; ``status`` is the HTTP status of the reply."""

    def __init__(self, status: int, problem: str, hint: str = "") -> None:
        super().__init__(problem, hint)
        self.status = status


class BodyTooLarge(Exception):
    """More bytes arrived than the request may have."""


class BodyTimeout(Exception):
    """Nothing more of a request arrived for too long."""


class ServerBusy(RequestRefused):
    """The server has too much to do; ``retry_after`` is the number of seconds to wait."""

    def __init__(self, problem: str, retry_after: int, status: int = 429) -> None:
        super().__init__(status, problem, f"Try again in {retry_after} s")
        self.retry_after = retry_after


def status_code(error: ClewError) -> int:
    """Return the HTTP status of an error, by default 400."""
    if isinstance(error, RequestRefused):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def error_to_dict(error: ClewError) -> dict[str, str]:
    """Return an error as the API sends it."""
    return {"error": error.problem, "hint": error.hint}


def error_response(
    status: int, error: str, hint: str = "", headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return a reply with an error and a hint."""
    return JSONResponse({"error": error, "hint": hint}, status_code=status, headers=headers)


def response_for(error: ClewError) -> JSONResponse:
    """Return the reply to an error."""
    return JSONResponse(error_to_dict(error), status_code=status_code(error), headers=retry_headers(error))


def retry_headers(error: ClewError) -> dict[str, str]:
    """Return the Retry-After header of an error that has one."""
    if not isinstance(error, ServerBusy | Unavailable) or error.retry_after is None:
        return {}
    return {"Retry-After": f"{error.retry_after:.0f}"}


def install_error_handlers(app: FastAPI, error_page: Callable[[Request, int, str, str], Response]) -> None:
    """Install the handlers that turn every error of ``app`` into such a reply, or, where a person opened the address
    in a browser, into a page: ``error_page`` is called with the
    request, status, problem and hint."""

    def reply(
        request: Request, status: int, error: str, hint: str = "", headers: dict[str, str] | None = None
    ) -> Response:
        if not is_for_person(request):
            return error_response(status, error, hint, headers)
        page = error_page(request, status, error, hint)
        page.headers.update(headers or {})
        return page

    async def clew_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ClewError)
        return reply(request, status_code(error), error.problem, error.hint, retry_headers(error))

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return error_response(422, "; ".join(map(_describe_field, error.errors()[:5])), "See: /api/docs")

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = _MESSAGES.get(error.status_code, str(error.detail))
        return reply(request, error.status_code, message, headers=dict(error.headers or {}))

    async def too_large(request: Request, error: Exception) -> JSONResponse:
        return error_response(413, "more was sent than a request may hold", "Send less at a time")

    async def too_slow(request: Request, error: Exception) -> JSONResponse:
        return error_response(408, "nothing more of the request came", "Try again", {"Connection": "close"})

    async def answer_disconnect(request: Request, error: Exception) -> JSONResponse:
        return error_response(400, "the request broke off")

    app.add_exception_handler(BodyTooLarge, too_large)
    app.add_exception_handler(BodyTimeout, too_slow)
    app.add_exception_handler(ClientDisconnect, answer_disconnect)
    app.add_exception_handler(ClewError, clew_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def is_for_person(request: Request) -> bool:
    """Return whether a reply is shown to a person: a browser that opens an address asks for HTML before all else, and
    scripts and programs do not."""
    destination = request.headers.get("sec-fetch-dest", "document")
    return request.headers.get("accept", "").startswith("text/html") and destination in {"document", "iframe"}


def _describe_field(error: dict[str, Any]) -> str:
    """Return what is wrong with a field of a request, without repeating its value."""
    field = ".".join(str(part) for part in error.get("loc", ())[1:])
    message = str(error.get("msg", "is not valid")).removeprefix("Value error, ")
    return f"{field}: {message}" if field else message
