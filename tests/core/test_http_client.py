"""The client for HTTP against real servers on this machine: where it may go, and every limit."""

import ast
import base64
import gzip
import socket
import threading
import zlib
from pathlib import Path

import pytest

import clew
from clew.core.addresses import is_public, without_password
from clew.core.errors import RemoteError
from clew.core.http_client import ConnectFailed, HttpClient, Service
from raw_server import RawServer, drip, endless, redirect, reply

HEAD = b"HTTP/1.1 200 OK\r\n"
UNPACKED = 1_000_000


def named(**limits):
    return HttpClient(is_named=True, **limits)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "127.255.255.254",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
        ),
        *("100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "2001:0:7f00:1::1"),
        *("64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.0.0.1", "64:ff9b:1::1"),
        *("2002:7f00:1::1", "2002:a9fe:a9fe::1", "2002:a00:1::", "2002:808:808::1"),
    ],
)
def test_addresses_of_this_machine_and_of_private_networks(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
)
def test_addresses_of_the_public_internet(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "017700000001"),
        *("localhost", "LOCALHOST", "localhost.", "0", "0.0.0.0", "①②⑦.⓪.⓪.①", "127。0。0。1"),
        *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"),
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_spelling_of_this_machine_is_asked(host, scheme):
    with RawServer(lambda request: [reply(b"secret")]) as server:
        with pytest.raises((RemoteError, ConnectFailed)) as refused:
            HttpClient(max_seconds=5).request(f"{scheme}://{host}:{server.port}/")
        assert server.connections == 0
    # A spelling that this system does not resolve at all is as good.
    assert isinstance(refused.value, ConnectFailed) or "private network" in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        *(["127.0.0.1"], ["::1"], ["10.0.0.7"], ["169.254.169.254"], ["64:ff9b::7f00:1"], ["2002:7f00:1::"]),
        *(["192.88.99.1", "127.0.0.1"], ["2606:4700::1", "fd00::1"]),
    ],
)
def test_a_name_that_leads_inside_is_refused_if_any_of_its_addresses_does(answer):
    with pytest.raises(RemoteError, match=r"pages\.example is on this machine or a private network"):
        HttpClient(resolve=lambda host, port: answer).request("http://pages.example:9/")


@pytest.mark.parametrize("later", [["127.0.0.1"], ["::1", "127.0.0.1"]])
def test_an_answer_that_changes_after_the_check_is_never_seen(later):
    """The first answer is checked and connected to: a network for documentation of relays, where nobody is."""
    answers = []

    def resolve(host, port):
        answers.append(host)
        return ["192.88.99.1"] if len(answers) == 1 else later

    with RawServer(lambda request: [reply(b"secret")]) as server:
        with pytest.raises(OSError):
            HttpClient(resolve=resolve, max_seconds=0.3).request(f"http://pages.example:{server.port}/")
        assert server.connections == 0
    assert answers == ["pages.example"]


def test_the_next_address_is_tried_where_the_first_takes_no_connection():
    with RawServer(lambda request: [reply(b"text")]) as server:
        client = HttpClient(allow_private=True, resolve=lambda host, port: ["127.0.0.9", "127.0.0.1"])
        got = client.request(f"http://pages.example:{server.port}/a?b=c")
        assert got.data == b"text" and f"Host: pages.example:{server.port}".encode() in server.asked[0]
        client.close()


PLACES = [
    "http://127.0.0.1:{port}/",
    "http://[::1]:{port}/",
    "http://2130706433:{port}/",
    "//localhost:{port}/x",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_page_may_not_redirect_to_an_inner_address(place, status, monkeypatch):
    monkeypatch.setattr("clew.core.http_client.is_public", lambda ip: ip == "127.0.0.2" or is_public(ip))
    with RawServer(lambda request: [reply(b"secret")]) as inner:
        leads = redirect(place.format(port=inner.port), status)
        with RawServer(lambda request: [leads], "127.0.0.2") as outer:
            with pytest.raises((RemoteError, ConnectFailed)):
                HttpClient(max_seconds=5).request(outer.url)
            assert len(outer.asked) == 1
        assert inner.connections == 0


@pytest.mark.parametrize("place", [*PLACES, "http://169.254.169.254/latest/meta-data", "https://127.0.0.1/"])
@pytest.mark.parametrize("data", [None, b"query=SELECT"])
def test_a_named_address_redirects_to_its_own_host_and_port_alone(place, data):
    with RawServer(lambda request: [reply(b"secret")]) as other:
        leads = redirect(place.format(port=other.port), 307)
        with (
            RawServer(lambda request: [leads]) as server,
            pytest.raises(RemoteError, match="redirects to another place"),
        ):
            named().request(server.url, data)
        assert other.connections == 0


def test_redirects_within_a_host_are_followed_with_what_was_sent():
    def answer(request):
        path = request.split()[1]
        places = {b"/303": ("/get", 303), b"/307": ("end", 307), b"/301": ("//{host}/end", 301)}
        if path in places:
            place, status = places[path]
            return [redirect(place.replace("{host}", server.url.partition("//")[2]), status)]
        return [reply(request.splitlines()[-1] if b"POST" in request else b"GET")]

    with RawServer(answer) as server:
        assert named().request(f"{server.url}/307", b"query").data == b"query"
        assert named().request(f"{server.url}/301", b"query").data == b"query"
        got = named().request(f"{server.url}/303", b"query")
        assert (got.data, got.address) == (b"GET", f"{server.url}/get")


@pytest.mark.parametrize(
    "place",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://x/",
        "javascript:1",
        "data:,x",
        "//[",
    ],
)
def test_other_schemes_and_what_is_no_address_are_refused(place):
    with RawServer(lambda request: [redirect(place)]) as server:
        for client in (named(), HttpClient(allow_private=True)):
            with pytest.raises(RemoteError, match=r"not http or https|makes no sense"):
                client.request(server.url)
    if "//" in place:
        with pytest.raises(RemoteError, match=r"not http or https|makes no sense"):
            named().request(place)


@pytest.mark.parametrize("place", ["http://me:secret@{}/", "http://me@{}/", "HTTPS://:secret@{}/"])
def test_a_password_is_neither_sent_nor_repeated(place):
    with RawServer(lambda request: [redirect(place.format(server.url[7:]))]) as server:
        for address in (server.url, place.format(server.url[7:])):
            with pytest.raises(RemoteError, match="user name or password") as refused:
                HttpClient(allow_private=True).request(address)
            assert "secret" not in str(refused.value)
        assert len(server.asked) == 1


def test_what_is_stored_of_an_address_is_without_its_password():
    for address, stored in {
        "http://me:secret@host/a@b?c=@": "http://host/a@b?c=@",
        "https://me@[::1]:8/": "https://[::1]:8/",
        "http://a:b@c@host": "http://host",
        "http://host/x@y": "http://host/x@y",
        "HTTP://me:secret@host#@": "HTTP://host#@",
    }.items():
        assert without_password(address) == stored


def test_a_redirect_without_end_is_left():
    with RawServer(lambda request: [redirect("/again")]) as server:
        with pytest.raises(RemoteError, match="redirected more than 3 times"):
            named(max_redirects=3).request(server.url)
        assert len(server.asked) == 4


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: endless(HEAD + b"\r\n"),
        lambda request: endless(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        ),
        lambda request: endless(HEAD + b"Content-Length: 9000000000\r\n\r\n"),
        lambda request: endless(HEAD + b"Content-Encoding: gzip\r\n\r\n"),
    ],
)
def test_a_body_without_end_is_given_up_at_the_limit(answer):
    with RawServer(answer) as server, pytest.raises(RemoteError, match="larger than 100,000 bytes"):
        named(max_bytes=100_000).request(server.url)
    assert server.sent < 20 << 20  # what the buffers of the system hold


def test_a_refusal_without_end_is_cut():
    with RawServer(lambda request: endless(b"HTTP/1.1 400 No\r\n\r\n")) as server:
        got = named(max_bytes=1 << 30).request(server.url)
    assert got.status == 400 and len(got.data) == 1 << 16


@pytest.mark.parametrize(
    "answer",
    [
        lambda request: [10.0],
        lambda request: drip(HEAD + b"\r\n"),
        lambda request: drip(HEAD + b"X-Slow: "),
        lambda request: drip(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"),
        lambda request: drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;x="),
        lambda request: drip(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
)
def test_a_reply_that_is_never_whole_is_given_up_in_time(answer):
    with RawServer(answer) as server, pytest.raises(TimeoutError):
        named(max_seconds=0.4).request(server.url)


def test_redirects_and_connections_share_the_time_of_a_request():
    with RawServer(lambda request: [0.1, redirect("/again")]) as server:
        with pytest.raises(TimeoutError):
            named(max_seconds=0.35, max_redirects=1000).request(server.url)
        assert len(server.asked) < 10


@pytest.mark.parametrize("kind", ["gzip", "x-gzip", "deflate"])
def test_a_packed_body_is_unpacked_within_the_limit(kind):
    pack = zlib.compress if kind == "deflate" else gzip.compress
    bodies = {b"/small": b"text", b"/bomb": bytes(200 * UNPACKED), b"/bombs": pack(bytes(20 * UNPACKED))}
    with RawServer(lambda r: [reply(pack(bodies[r.split()[1]]), Content_Encoding=kind)]) as server:
        client = named(max_bytes=UNPACKED)
        assert client.request(f"{server.url}/small").data == b"text"
        with pytest.raises(RemoteError, match="larger than"):
            client.request(f"{server.url}/bomb")
        # Packed twice: one layer is unpacked.
        assert client.request(f"{server.url}/bombs").data == bodies[b"/bombs"]


@pytest.mark.parametrize(
    ("body", "kind", "problem"),
    [
        (gzip.compress(b"text", mtime=0)[:-9], "gzip", "damaged"),
        (b"text", "gzip", "damaged"),
        (b"text", "deflate", "damaged"),
        (b"text", "br", "br packing is unknown"),
        (gzip.compress(b"text", mtime=0), "gzip, gzip", "unknown"),
    ],
)
def test_what_cannot_be_unpacked_is_said(body, kind, problem):
    packed = reply(body, Content_Encoding=kind)
    with RawServer(lambda request: [packed]) as server, pytest.raises(RemoteError, match=problem):
        named().request(server.url)


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD + b"Content-Length: 10\r\n\r\nhalf", b""],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", b""],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\n8\r\nhalf", b""],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b""],
        [b""],
        [b"SSH-2.0-OpenSSH_9.9\r\n", b""],
        [HEAD + b"A: b\r\n" * 200, b""],
        [HEAD + b"A: " + b"b" * 70_000, b""],
    ],
)
def test_a_reply_that_breaks_off_or_is_none_is_an_error_of_the_connection(pieces):
    with RawServer(lambda request: pieces) as server, pytest.raises(ConnectionError):
        named(max_seconds=5).request(server.url)


def test_connections_are_kept_and_used_again_while_they_are_open():
    def answer(request):
        yield reply(b"text")
        if b"/last" in request:
            yield b""

    with RawServer(answer) as server:
        client = named()
        for path in ("/1", "/2", "/last"):
            assert client.request(server.url + path).data == b"text"
        assert server.connections == 1
        while client.request(f"{server.url}/1").data != b"text":
            pass
        assert server.connections == 2
        client.close()


def test_threads_share_a_client_without_mixing_replies():
    with RawServer(lambda request: [reply(request.split()[1])]) as server:
        client, problems = named(), []

        def ask(number):
            for turn in range(20):
                path = f"/{number}/{turn}"
                if client.request(server.url + path).data != path.encode():
                    problems.append(path)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems and server.connections <= 8
        client.close()


@pytest.fixture
def proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with RawServer(
        lambda r: [reply(b"by proxy") if r.startswith(b"GET") else reply(status="403 No")]
    ) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url.replace("//", "//me:p%40ss@"))
        monkeypatch.setenv("HTTPS_PROXY", server.url)
        monkeypatch.setenv("NO_PROXY", "inside.invalid")
        yield server


def test_named_addresses_are_asked_through_the_proxy_of_the_environment(proxy):
    assert named().request("http://service.invalid/a?b=c").data == b"by proxy"
    account = base64.b64encode(b"me:p@ss")
    assert proxy.asked[0].startswith(b"GET http://service.invalid/a?b=c HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic " + account in proxy.asked[0].replace(b"proxy-auth", b"Proxy-Auth")
    with pytest.raises(ConnectFailed, match="the proxy refused it"):
        named().request("https://service.invalid/a", b"query")
    assert (
        proxy.asked[1].startswith(b"CONNECT service.invalid:443 HTTP/1.1\r\n")
        and b"query" not in proxy.asked[1]
    )
    # Neither what NO_PROXY names, nor this machine, nor a page whose place could not be checked there.
    with RawServer(lambda request: [reply(b"direct")]) as server:
        assert named().request(server.url).data == b"direct"
    for client, address in ((named(), "http://inside.invalid/"), (HttpClient(), "http://page.invalid/")):
        with pytest.raises(ConnectFailed):
            client.request(address)
    assert len(proxy.asked) == 2


def test_a_service_says_what_it_may_not_do_with_its_name():
    with RawServer(lambda request: [redirect("http://127.0.0.1:1/inner")]) as server:
        service = Service(server.url, 5.0, sleep=lambda seconds: None)
        with pytest.raises(RemoteError, match=f"{server.url} cannot be used: it redirects to another place"):
            service.ask(b"query", lambda reply: None)
        assert len(server.asked) == 1


def test_a_service_is_asked_again_for_what_may_pass_alone():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    pauses = []
    with pytest.raises(RemoteError, match=r"cannot be reached \(.*refused"):
        Service(url, 5.0, sleep=pauses.append).ask(None, lambda reply: None)
    assert pauses == []
    answers = [[b""], [HEAD + b"Content-Length: 9\r\n\r\nx", b""], [reply(b"text")]]
    with RawServer(lambda request: answers.pop(0)) as server:
        assert Service(server.url, 5.0, sleep=pauses.append).ask(None, lambda reply: None).data == b"text"
    assert pauses == [1.0, 2.0]


#: What can send a request, and who may use it: the client; Ray's address on this machine is looked at by its port.
SENDERS = {
    "urllib.request",
    "http.client",
    "socket",
    "ssl",
    "httpx",
    "httpx2",
    "requests",
    "aiohttp",
    "urllib3",
}
OTHERS = {
    "core/http_client.py": SENDERS,
    "core/config.py": {"urllib.request"},  # the proxies of the environment
    "core/installation.py": {"urllib.request"},  # url2pathname, as below
    "core/sources.py": {"urllib.request"},
    "app/web/application.py": {"socket"},  # the server itself, from here on
    "app/web/guard.py": {"socket"},
    "knowledge_base/base_copy.py": {"socket"},  # the name of this machine
    "knowledge_base/local_cluster.py": {"socket"},
    "parse/documents/pool.py": {"socket"},  # descriptors of files go through it
}


def test_no_other_module_sends_requests():
    root = Path(clew.__file__).parent
    for path in sorted(root.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        own = str(path.relative_to(root).as_posix())
        assert names & SENDERS <= OTHERS.get(own, set()), own
