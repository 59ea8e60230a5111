"""The description of the API says what requests are answered with."""

import http.client
import json
import re
from importlib.util import find_spec

import pytest

from serve_app import PATIENCE

HAS_SCHEMATHESIS = find_spec("schemathesis") is not None
if HAS_SCHEMATHESIS:  # In the environment of `make integrations`.
    # Before any server runs: pytest rewrites it as it is imported, and where two threads do such a thing at once,
    # Python 3.11.7 says "AST constructor recursion depth mismatch" (python/cpython#106905).
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

#: What stands for a part of an address that names nothing.
NOWHERE = "nothing-of-that-name"


def operations(app):
    """Return method, address and description of each operation."""
    described = app.get("/api/openapi.json")[1]
    return described, [
        (method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]


def form_of(described, operation, status):
    """Return the properties that the body of a reply has."""
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    return set(described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"])


def test_every_address_with_a_name_in_it_says_that_there_may_be_nothing(app) -> None:
    described, listed = operations(app)
    named = [(method, path, operation) for method, path, operation in listed if "{" in path]
    assert len(named) >= 25
    for method, path, operation in named:
        assert "404" in operation["responses"], (method, path)
        openai_form = {"error"} if "/v1/" in path else {"error", "hint"}
        assert form_of(described, operation, 404) == openai_form, (method, path)


def test_what_a_request_for_nothing_is_answered_is_described(app) -> None:
    """Each address is asked for something that is not there, without a body and with one of the wrong form."""
    described, listed = operations(app)
    wrong = []
    for method, path, operation in listed:
        if path.endswith("/events"):
            continue
        # A base that is there, and one that is not.
        for base in (app.base, NOWHERE):
            address = re.sub(r"\{[^}]*\}", NOWHERE, path.replace("{base}", base))
            for body in (b"", b"{}", b"[1]", b'{"question": "?", "documents": ["nothing"]}'):
                if method == "GET" and body:
                    continue
                status = answered(app, method, address, body, described, operation)
                if status:
                    wrong.append(f"{method} {path} {body!r}: {status}")
    assert wrong == []


def answered(app, method, address, body, described, operation):
    """Send a request; return what of the reply is not described, or None."""
    connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=PATIENCE)
    try:
        connection.request(method, address, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status < 400:
            return None
        shape = json.loads(reply.read())
    finally:
        connection.close()
    if str(reply.status) not in operation["responses"]:
        return reply.status if "default" not in operation["responses"] else None
    return None if shape.keys() <= form_of(described, operation, reply.status) else shape


@pytest.mark.slow
@pytest.mark.skipif(not HAS_SCHEMATHESIS, reason="schemathesis is not installed")
def test_schemathesis_finds_no_reply_that_is_not_described(served) -> None:
    from hypothesis import HealthCheck, given, settings

    checks = [not_a_server_error, status_code_conformance, response_schema_conformance]
    described = schemathesis.openapi.from_url(f"http://127.0.0.1:{served.port}/api/openapi.json")
    for result in described.get_all_operations():
        operation = result.ok()
        # What does not end, and what would follow a folder of this machine.
        if operation.path.endswith(("/events", "/sources")):
            continue

        @given(case=operation.as_strategy())
        @settings(max_examples=5, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        def ask(case):
            case.call_and_validate(checks=checks, timeout=PATIENCE)

        ask()
