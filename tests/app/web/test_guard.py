"""Who may ask, from where: Host, Origin, token, and the command that starts a server."""

import json

import pytest
from typer.testing import CliRunner

import clew.app.web
from clew.app.cli.commands import app as commands
from clew.app.web.guard import allowed_hosts, cookie_name, parse_host, session_value
from clew.app.web.settings import Settings, name_bases, name_models, new_token
from clew.core.errors import UsageError
from clew.core.installation import format_install_command
from serve_app import ServedApp

TOKEN = "a-token-of-the-tests-0123456789"


@pytest.fixture(scope="module")
def locked(folder):
    """A server with a token, read-only."""
    with ServedApp(folder, token=TOKEN, read_only=True) as app:
        yield app


@pytest.mark.parametrize(
    ("given", "host"),
    [
        ("localhost", "localhost"),
        ("127.0.0.1:8321", "127.0.0.1"),
        ("[::1]:8321", "::1"),
        ("[::1]", "::1"),
        ("LOCALHOST:1", "localhost"),
        ("", None),
        (":8321", None),
        ("localhost:8a", None),
        ("localhost:0", None),
        ("localhost:65535", "localhost"),
        ("localhost:65536", None),
        ("localhost:" + "1" * 5_000, None),
        ("user@localhost", None),
        ("localhost/evil", None),
        ("[evil]:80", None),
        ("::1", None),
        ("lоcalhost", None),  # with a Cyrillic o
    ],
)
def test_a_host_header_is_taken_apart(given, host) -> None:
    assert parse_host(given) == host


def test_who_is_known_by_which_name(tmp_path) -> None:
    bases, token = {"kb": tmp_path}, new_token()
    assert "localhost" in allowed_hosts(Settings(bases)) and "*" not in allowed_hosts(Settings(bases))
    everywhere = allowed_hosts(Settings(bases, host="0.0.0.0", token=token, hosts=("Clew.Example.org",)))
    assert {"*", "clew.example.org"} <= everywhere
    assert "10.1.2.3" in allowed_hosts(Settings(bases, host="10.1.2.3", token=token))


def test_a_server_for_others_needs_a_token_that_nobody_guesses(tmp_path) -> None:
    for host in ("0.0.0.0", "::", "10.1.2.3", "myhost"):
        with pytest.raises(UsageError, match="token"):
            Settings({"kb": tmp_path}, host=host)
    with pytest.raises(UsageError, match="guessed"):
        Settings({"kb": tmp_path}, token="short")
    assert len(new_token()) >= 32 and new_token() != new_token()
    assert TOKEN not in repr(Settings({"kb": tmp_path}, token=TOKEN))


def test_bases_and_models_have_names_for_addresses(tmp_path) -> None:
    found = name_bases(
        [tmp_path / "a.clew", tmp_path / "b" / ".clew", tmp_path / "c" / "b", tmp_path / "a.clew"]
    )
    assert list(found) == ["a", "b", "b-2"]
    one, two = name_models(["http://127.0.0.1:9/v1#small", "guide=ollama:x,read=ollama:small"])
    assert one.id == "small" and "127.0.0.1:9/v1" not in one.id + one.goes + repr(one) and not one.leaves
    assert two.id == "x+small"
    far = name_models(["https://example.org/v1#big"])[0]
    assert far.leaves and far.goes == "sent to https://example.org"


@pytest.mark.parametrize("path", ["/api/bases", "/api/openapi.json", "/api/docs", "/nothing"])
def test_without_the_token_nothing_is_told(locked, path) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer \xff\xfe"},
        {"Cookie": f"{cookie_name(TOKEN)}={TOKEN}"},
        {"Cookie": f"{cookie_name(TOKEN)}={session_value('another')}"},
        {"Cookie": "=;;;\x7f"},
    ):
        status, got, body = locked.request("GET", path, headers=headers)
        assert status in {401, 303}, headers
        assert TOKEN.encode() not in body and b"harbour" not in body
        if status == 401:
            assert set(json.loads(body)) == {"error", "hint"} and got["www-authenticate"] == "Bearer"
        else:
            assert got["location"] == "/login"
    assert locked.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})[0] in {200, 404}


@pytest.mark.parametrize("address", ["/b/kb" + "%FF" * 4_000, "/b/kb?" + "a" * 50_001])
def test_a_very_long_address_is_refused(locked, address) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    status, _, reply = locked.request("GET", address, headers=headers)
    assert status == 414 and b"more than" in reply
    status, sent, _ = locked.request("GET", address[:3_000], headers=headers)
    assert status == 307 and sent["location"].partition("?")[0].endswith("/")


def test_logging_in_sets_a_cookie_that_is_not_the_token(locked) -> None:
    page = locked.request("GET", "/login")
    assert page[0] == 200 and b"<form" in page[2]
    form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
    status, headers, body = locked.request("POST", "/login", b"token=wrong", form)
    assert status == 401 and "set-cookie" not in headers and b"not the access key" in body
    status, headers, _ = locked.request("POST", "/login", f"token={TOKEN}".encode(), form)
    cookie = headers["set-cookie"]
    assert status == 303 and "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    given = {"Cookie": cookie.partition(";")[0]}
    assert locked.get("/api/bases", **given)[0] == 200
    # The cookie is what another site's page would send along: it may not use it.
    cross = {**given, "Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    assert locked.post(f"{locked.api}/questions", {"question": "x"}, **cross)[0] == 403
    assert locked.get("/api/bases", **{**given, "Sec-Fetch-Site": "cross-site"})[0] == 403
    # Signing out, which a page offers only where there is a token, makes the browser forget.
    page = locked.request("GET", f"/b/{locked.base}/", headers=given)[2]
    assert b"Sign out" in page
    assert locked.request("POST", "/logout", headers=cross)[0] == 403
    status, headers, _ = locked.request("POST", "/logout", headers=given)
    assert status == 303 and headers["location"] == "/login"
    assert (
        headers["set-cookie"].startswith(f'{cookie_name(TOKEN)}=""') and "Max-Age=0" in headers["set-cookie"]
    )
    # What the login page looks like is no secret.
    assert locked.request("GET", "/static/clew.css")[0] == 200


def test_read_only_means_read_only(locked) -> None:
    key = {"Authorization": f"Bearer {TOKEN}"}
    documents = locked.get(f"{locked.api}/documents", **key)[1]["documents"]
    status, said = locked.delete(f"{locked.api}/documents/{documents[0]['key']}", **key)
    assert status == 403 and "read-only" in said["error"]
    for place in ("uploads", "graphs"):
        assert locked.post(f"{locked.api}/{place}", {}, **key)[0] == 403
    assert locked.delete(f"{locked.api}/graphs/x", **key)[0] == 403
    assert locked.get(f"{locked.api}/documents", **key)[1]["documents"] == documents


def test_a_fault_of_ours_tells_nothing_and_ends_nothing_else(locked, caplog) -> None:
    def boom() -> None:
        raise RuntimeError("with a secret path /home/someone")

    locked.serving.app.add_api_route("/api/boom", boom)
    key = {"Authorization": f"Bearer {TOKEN}"}
    status, headers, body = locked.request("GET", "/api/boom", headers=key)
    assert status == 500 and b"secret" not in body and set(json.loads(body)) == {"error", "hint"}
    assert headers["x-content-type-options"] == "nosniff" and "/home/someone" in caplog.text
    assert locked.get("/api/bases", **key)[0] == 200


def test_the_command_says_what_is_wrong(tmp_path, monkeypatch) -> None:
    def run(*words):
        return CliRunner().invoke(commands, ["serve", *words, "--kb", str(tmp_path / "kb")])

    assert "guessed" in run("--token", "short").stderr
    assert "no recipe named 'kpg'" in run("--recipe", "kpg", "--port", "0").stderr
    assert "openai" in run("--llm", "opnai:gpt").stderr
    assert not (tmp_path / "kb").exists()
    monkeypatch.setattr(clew.app.web, "_PACKAGES", ("a_package_that_is_not_there",))
    refused = run()
    assert refused.exit_code == 2 and format_install_command("serve") in refused.stderr


@pytest.mark.slow
def test_listing_commands_do_not_import_the_server() -> None:
    import subprocess
    import sys

    code = "import sys, clew.app.cli.commands; sys.exit(any(m in sys.modules for m in ('fastapi', 'uvicorn', 'jinja2')))"  # noqa: E501
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
