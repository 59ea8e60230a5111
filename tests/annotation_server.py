"""A server on this machine that speaks the documented JSON of TAGME and WAT."""

import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ENTITIES = {"Ohio": 22199, "Quill": 7, "Marrable": 9}


class AnnotationServer:
    """Finds the words of ENTITIES; answers what ``script`` says first."""

    def __init__(self, shape):
        self.asked, self.script = [], []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(urllib.parse.urlparse(self.path).query)

            def do_POST(self):
                self.answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

            def answer(self, query):
                fields = dict(urllib.parse.parse_qsl(query))
                server.asked.append((self.command, fields))
                status, headers, body = 200, {}, json.dumps(shape(fields["text"]))
                if server.script:
                    status, headers, body = server.script.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/tag"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def spots(text):
    return [(word, text.index(word), number) for word, number in ENTITIES.items() if word in text]


def tagme(text):
    results = [
        {
            "spot": word,
            "start": at,
            "end": at + len(word),
            "link_probability": 0.9 if number == 22199 else 0.2,
            "rho": 0.5,
            "id": number,
            "title": f"{word} (place)",
        }
        for word, at, number in spots(text)
    ]
    unresolved = {"spot": "x", "start": 0, "end": 1, "link_probability": 0.1, "rho": 0.0}
    return {"api": "tag", "lang": "en", "time": 3, "annotations": [*results, unresolved]}


def wat(text):
    return {
        "annotations": [
            {
                "spot": word,
                "start": at,
                "end": at + len(word),
                "rho": 0.6,
                "id": number,
                "title": f"{word}_(place)",
                "explanation": {"prior_explanation": {"entity_mention_probability": 0.95}},
            }
            for word, at, number in spots(text)
        ]
    }
