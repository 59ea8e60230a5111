"""A server on this machine that speaks the documented JSON of SerpApi's Google engine."""

import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTRY = {
    "title": "Wilmot Harker",
    "type": "Music teacher",
    "kgmid": "/m/0abc",
    "entity_type": "people, teacher",
    "image": "https://example.org/harker.png",
    "description": "Wilmot Harker taught in Boston.",
    "source": {"name": "Wikipedia", "link": "https://example.org/wiki/Wilmot_Harker"},
    "born": "3 May 1901, Dunmere",
    "born_links": [{"text": "Dunmere", "link": "https://example.org/dunmere"}],
}
PAGES = [
    (
        "Wilmot Harker - St. Louis",
        "https://example.org/harker",
        "Wilmot Harker was born in the village of Dunmere.",
    ),
    ("Alf Clausen", "https://example.org/clausen", "Alf Clausen was taught by Wilmot Harker in Boston."),
    ("No words", "https://example.org/empty", ""),
    ("Simpsons theme", "https://example.org/theme", "The Simpsons theme was arranged by Alf Clausen."),
]


def search_pages(fields):
    """Return the pages that share a word with the query, in the order of how many they share."""
    asked = set(fields["q"].casefold().replace("?", "").split())
    ranked = sorted(PAGES, key=lambda page: -len(asked & set(page[2].casefold().rstrip(".").split())))
    pages = [{"position": n, "title": t, "link": u, "snippet": s} for n, (t, u, s) in enumerate(ranked, 1)]
    return {"search_metadata": {"status": "Success"}, "organic_results": pages[: int(fields["num"])]}


class WebServer:
    """Answers what ``shape`` makes of a search's fields; ``script`` has what it answers first: status, headers,
    body, or seconds to wait."""

    def __init__(self, shape=search_pages, script=()):
        self.asked, self.script = [], list(script)
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                parts = urllib.parse.urlsplit(self.path)
                fields = dict(urllib.parse.parse_qsl(parts.query))
                server.asked.append((parts.path, fields))
                status, headers, body = 200, {}, json.dumps(shape(fields))
                if server.script:
                    turn = server.script.pop(0)
                    if isinstance(turn, float):
                        time.sleep(turn)
                    else:
                        status, headers, body = turn
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(body.encode())))
                    self.end_headers()
                    self.wfile.write(body.encode())
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
