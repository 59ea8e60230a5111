"""Pages that are fetched from a server on loopback: what is allowed, and every limit."""

import gzip
import re
import threading
import time
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import clew
from clew.core.errors import UnreadableFile
from clew.knowledge_base.ingest.web_page import PageFetcher, is_page_address

PAGE = b"<html><head><title>The quay</title></head><body><p>The quay was built in 1850.</p></body></html>"
ROBOTS = b"User-agent: *\nDisallow: /private\n\nUser-agent: other\nDisallow: /\n"


RUSSIAN = "<p>Шлюз построен в 1921 году.</p>"
#: What servers send beside plain pages: another encoding, packed, with a type that is too general.
ODD_PAGES = {
    "/ru": (RUSSIAN.encode("cp866"), {"Content_Type": 'text/html; charset="IBM866"'}),
    "/lying": ("<p>café</p>".encode(), {"Content_Type": "text/html; charset=ISO-8859-1"}),
    "/gzip": (gzip.compress(PAGE), {"Content_Type": "text/html", "Content_Encoding": "gzip"}),
    "/deflate": (zlib.compress(PAGE), {"Content_Type": "text/html", "Content_Encoding": "deflate"}),
    "/raw": (zlib.compress(PAGE)[2:-4], {"Content_Type": "text/html", "Content_Encoding": "deflate"}),
    "/bomb": (gzip.compress(bytes(1_000_000)), {"Content_Type": "text/html", "Content_Encoding": "gzip"}),
    "/torn": (gzip.compress(PAGE)[4:], {"Content_Type": "text/html", "Content_Encoding": "gzip"}),
    "/cut": (gzip.compress(PAGE)[:-12], {"Content_Type": "text/html", "Content_Encoding": "gzip"}),
    "/notes.md": (b"# Notes", {"Content_Type": "text/plain; charset=utf-8"}),
    "/feed": (b"<?xml version='1.0'?><rss/>", {"Content_Type": "application/rss+xml"}),
}


class SiteServer(ThreadingHTTPServer):
    asked: list[str]


class Site(BaseHTTPRequestHandler):
    server: SiteServer
    robots = (200, ROBOTS)

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.asked.append(self.path)
        path = self.path.partition("?")[0]
        if path == "/robots.txt":
            self.reply(*self.robots)
        elif path == "/loop":
            self.reply(302, Location="/loop")
        elif path == "/moved":
            self.reply(301, Location="/page?from=moved")
        elif path == "/away":
            self.reply(302, Location="ftp://example.org/file")
        elif path == "/hidden":
            self.reply(302, Location="/private/page")
        elif path == "/gone":
            self.reply(404)
        elif path == "/large":
            self.reply(200, b"x" * 300_000, Content_Type="text/plain")
        elif path == "/slow":
            self.send_response(200)
            self.end_headers()
            for _ in range(100):
                self.wfile.write(b"x")
                time.sleep(0.05)
        elif path == "/text":
            self.reply(200, b"The weir of the mill.", Content_Type="text/plain; charset=utf-8")
        elif path in ODD_PAGES:
            body, headers = ODD_PAGES[path]
            self.reply(200, body, **headers)
        else:
            self.reply(200, PAGE, Content_Type="text/html")


@contextmanager
def served(robots=(200, ROBOTS)):
    site = type("OneSite", (Site,), {"robots": robots})
    server = SiteServer(("127.0.0.1", 0), site)
    server.asked = []
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_is_fetched_and_what_is_refused():
    with served() as (server, site):
        fetcher = PageFetcher(allow_private=True, max_bytes=100_000, max_seconds=0.5)
        page = fetcher.fetch(f"{site}/moved")
        assert (page.address, page.name, page.data) == (f"{site}/moved", "page.html", PAGE)
        assert fetcher.fetch(f"{site}/text").name == "text.txt"
        # robots.txt is asked for once, and before the page.
        assert server.asked == ["/robots.txt", "/moved", "/page?from=moved", "/text"]
        for path, reason in {
            "/private/page": "does not allow programs",
            "/hidden": "does not allow programs",
            "/loop": "redirected more than 5 times",
            "/away": "not http or https",
            "/gone": "answered 404",
            "/large": "larger than",
            "/slow": "took longer than 0.5 seconds",
        }.items():
            with pytest.raises(UnreadableFile, match=re.escape(reason)):
                fetcher.fetch(site + path)
        assert "/private/page" not in server.asked
        with pytest.raises(UnreadableFile, match="user name or password"):
            fetcher.fetch(site.replace("//", "//me:secret@"))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
    ],
)
def test_private_addresses_are_refused_before_anything_is_sent(host):
    with pytest.raises(UnreadableFile, match=r"on this machine or a private network|cannot be read"):
        PageFetcher().fetch(f"http://{host}:9/")


@pytest.mark.parametrize(("robots", "is_read"), [((404, b""), True), ((503, b""), False), ((200, b""), True)])
def test_a_site_without_robots_may_be_read_and_one_that_cannot_say_may_not(robots, is_read):
    with served(robots) as (_, site):
        fetcher = PageFetcher(allow_private=True)
        if is_read:
            assert fetcher.fetch(f"{site}/page").data == PAGE
        else:
            with pytest.raises(UnreadableFile, match="whether it may be read"):
                fetcher.fetch(f"{site}/page")


@pytest.mark.slow
def test_a_page_is_a_document_with_its_address(tmp_path):
    with served() as (_, site), clew.open(tmp_path / "kb", create=True) as base:
        base.encoding.set(None)
        report = base.add([f"{site}/page", f"{site}/private"], workers=1, allow_private=True)
        assert report.added == [f"{site}/page"]
        assert [failure.path for failure in report.failed] == [f"{site}/private"]
        (document,) = base.documents()
        assert (document.name, document.title, document.paths) == ("page", "The quay", (f"{site}/page",))
        assert base.search("quay", documents=[f"{site}/page"])[0].node.text == "The quay was built in 1850."
        assert base.add([f"{site}/page"], workers=1, allow_private=True).unchanged == 1
        assert base.add([f"{site}/page"], workers=1).failed[0].keeps_version
        base.remove(f"{site}/page")
        assert not base.documents()
    assert is_page_address("HTTPS://example.org") and not is_page_address("/a/https.txt")


def test_encodings_packed_bodies_and_general_types():
    with served() as (_, site):
        fetcher = PageFetcher(allow_private=True, max_bytes=200_000)
        pages = {
            path: fetcher.fetch(f"{site}{path}")
            for path in ODD_PAGES
            if path not in {"/bomb", "/torn", "/cut"}
        }
        assert pages["/ru"].data.decode("utf-8-sig") == RUSSIAN
        assert pages["/lying"].data.decode() == "<p>café</p>"
        assert {pages[path].data for path in ("/gzip", "/deflate", "/raw")} == {PAGE}
        assert (pages["/notes.md"].name, pages["/feed"].name) == ("notes.md", "feed.xml")
        for path, problem in (
            ("/bomb", "larger than"),
            ("/torn", "packing is damaged"),
            ("/cut", "packing is damaged"),
        ):
            with pytest.raises(UnreadableFile, match=problem):
                fetcher.fetch(f"{site}{path}")
