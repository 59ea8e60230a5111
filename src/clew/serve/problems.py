"""What goes wrong, as a reply: ``{"error": ..., "hint": ...}``, never a traceback."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from clew.errors import (
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

LOG = logging.getLogger("clew.serve")
#: What is said of a fault of ours; the traceback goes to the person who runs the server, and to nobody else.
FAULT = {"error": "something went wrong in the server", "hint": "Its log says what"}

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


class Refused(ClewError):
    """A request that is refused, with the status of the reply."""

    def __init__(self, status: int, problem: str, hint: str = "") -> None:
        super().__init__(problem, hint)
        self.status = status


class TooMuch(Exception):
    """More was sent than the request may hold: noticed while it is read."""


class TooSlow(Exception):
    """Nothing more of a request came for long."""


class Busy(Refused):
    """Too much is waiting; ``retry_after`` seconds say when to come again."""

    def __init__(self, problem: str, retry_after: int, status: int = 429) -> None:
        super().__init__(status, problem, f"Try again in {retry_after} s")
        self.retry_after = retry_after


def status_of(error: ClewError) -> int:
    """Return the status of the reply to an error: 400 for what makes no sense."""
    if isinstance(error, Refused):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 400)


def problem_shape(error: ClewError) -> dict[str, str]:
    """Return an error as it is sent."""
    return {"error": error.problem, "hint": error.hint}


def problem(status: int, error: str, hint: str = "", headers: dict[str, str] | None = None) -> JSONResponse:
    """Return the reply that says what is wrong."""
    return JSONResponse({"error": error, "hint": hint}, status_code=status, headers=headers)


def reply_to(error: ClewError) -> JSONResponse:
    """Return the reply to an error."""
    return JSONResponse(problem_shape(error), status_code=status_of(error), headers=again_after(error))


def again_after(error: ClewError) -> dict[str, str]:
    """Return the header that says when the same may be asked again, where the error says so."""
    if not isinstance(error, Busy | Unavailable) or error.retry_after is None:
        return {}
    return {"Retry-After": f"{error.retry_after:.0f}"}


def handle_problems(app: FastAPI) -> None:
    """Make every error of ``app`` such a reply."""

    async def ours(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ClewError)
        return reply_to(error)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return problem(422, "; ".join(_field(one) for one in error.errors()[:5]), "See: /api/docs")

    async def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        said = _SAID.get(error.status_code, str(error.detail))
        return problem(error.status_code, said, headers=dict(error.headers or {}))

    async def too_much(request: Request, error: Exception) -> JSONResponse:
        return problem(413, "more was sent than a request may hold", "Send less at a time")

    async def too_slow(request: Request, error: Exception) -> JSONResponse:
        return problem(408, "nothing more of the request came", "Try again", {"Connection": "close"})

    async def gone(request: Request, error: Exception) -> JSONResponse:
        return problem(400, "the request broke off")

    app.add_exception_handler(TooMuch, too_much)
    app.add_exception_handler(TooSlow, too_slow)
    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(ClewError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


def _field(error: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in error.get("loc", ())[1:])
    # What was sent is not repeated.
    said = str(error.get("msg", "is not valid")).removeprefix("Value error, ")
    return f"{place}: {said}" if place else said
