"""A client for the public TAGME and WAT services, which find Wikipedia entities in a text.

TAGME is by Ferragina and Scaiella (CIKM 2010); WAT, its successor, is called by the published code of the KGP paper.
Both are hosted by D4Science and need a personal token (free; register for the TagMe VRE at D4Science). Passages are
sent to that service when :func:`annotate_passages` is called, and not before.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from clew.core.config import cache_path
from clew.core.errors import BadCompletion, ModelError, RemoteError, UsageError
from clew.core.http_client import Reply, Service
from clew.core.protocols import Snapshot
from clew.core.text import sentence_spans
from clew.graph.passages import passage_rows

URLS = {"tagme": "https://tagme.d4science.org/tagme/tag", "wat": "https://wat.d4science.org/wat/tag/tag"}
#: Characters sent in one request; both services take the text in the address.
MAX_CHARACTERS = 3_000
#: Passages read from the knowledge base at a time.
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Annotation:
    """An entity that a text mentions: its Wikipedia page id and title, and the words with their range.

    ``rho`` is the service's confidence. ``prior`` is the probability that these words are a link at all (TAGME's
    ``link_probability``), or that they refer to this entity (WAT's mention probability): the paper's "prior
    threshold" (Table 6). Both are from 0 to 1.
    """

    entity: int
    title: str
    spot: str
    start: int
    end: int
    rho: float
    prior: float


@dataclass(slots=True)
class AnnotationService:
    """The annotation service ``name`` (``tagme`` or ``wat``), with at most one request per ``interval`` seconds.

    Where the service is busy or cannot be reached, up to ``attempts`` requests are made, after as many seconds as it
    asks for, else after a time that doubles.
    """

    token: str | None
    name: str = "wat"
    language: str = "en"
    url: str = ""
    interval: float = 0.5
    timeout: float = 30.0
    attempts: int = 4
    _last: float = field(default=float("-inf"), repr=False)

    def __post_init__(self) -> None:
        if self.name not in URLS:
            raise UsageError(f"no annotation service named '{self.name}'", f"Known: {', '.join(URLS)}")
        self.url = self.url or URLS[self.name]

    @property
    def maker(self) -> str:
        """Service and language, which together with a text identify a cached annotation."""
        return f"{self.name}/{self.language}"

    def annotate(self, text: str) -> list[Annotation]:
        """Return the entities that ``text`` mentions, whatever their confidence. Raises ModelError."""
        if not self.token:
            raise ModelError(
                f"no token for the {self.name} service",
                "Register for the TagMe VRE at D4Science and set CLEW_TAGME_TOKEN",
            )
        return [
            annotation
            for start, piece in split_text(text)
            for annotation in self._read_reply(self._request(piece), start)
        ]

    def _request(self, text: str) -> Any:
        service = Service(
            self.url, self.timeout, self.attempts, float("inf"), pause=self.interval, name=self.name
        )
        query = urlencode({"lang": self.language, "gcube-token": self.token or "", "text": text})
        # WAT accepts GET only, TAGME both.
        data, query = (query.encode(), "") if self.name == "tagme" else (None, f"?{query}")
        headers = {"Content-Type": "application/x-www-form-urlencoded"} if data else {}
        try:
            reply = service.ask(data, self._explain_refusal, query=query, headers=headers, before=self._wait)
        except RemoteError as error:
            hint = (
                error.hint
                if "CLEW_" in error.hint
                else "What was annotated so far is kept; run it again later"
            )
            raise ModelError(error.problem, hint) from error
        try:
            return json.loads(reply.data)
        except (ValueError, RecursionError) as error:
            raise BadCompletion(f"{self.name} answered with something other than JSON") from error

    def _explain_refusal(self, reply: Reply) -> RemoteError | None:
        if reply.status in {401, 403}:
            return RemoteError(f"{self.name} refused the token", "Check CLEW_TAGME_TOKEN")
        if reply.status != 429 and reply.status < 500:
            return RemoteError(f"{self.name} refused the request (HTTP {reply.status})")
        return None

    def _wait(self) -> None:
        time.sleep(max(0.0, self._last + self.interval - time.monotonic()))
        self._last = time.monotonic()

    def _read_reply(self, reply: Any, offset: int) -> Iterator[Annotation]:
        if not isinstance(reply, Mapping) or not isinstance(reply.get("annotations"), list):
            raise BadCompletion(f"{self.name} answered without a list of annotations")
        for mention in reply["annotations"]:
            # A mention that the service could not resolve has no entity.
            if isinstance(mention, Mapping) and mention.get("id") is not None and mention.get("title"):
                yield Annotation(
                    int(mention["id"]),
                    str(mention["title"]).replace("_", " "),
                    str(mention.get("spot", "")),
                    int(mention.get("start", 0)) + offset,
                    int(mention.get("end", 0)) + offset,
                    float(mention.get("rho", 0.0)),
                    _prior(mention),
                )


def _prior(mention: Mapping[str, Any]) -> float:
    if "link_probability" in mention:
        return float(mention["link_probability"])
    explanation = mention.get("explanation") or {}
    return float((explanation.get("prior_explanation") or {}).get("entity_mention_probability", 1.0))


def split_text(text: str, longest: int = MAX_CHARACTERS) -> list[tuple[int, str]]:
    """Return ``text`` in runs of whole sentences of at most ``longest`` characters, each with its start."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if spans and end - spans[-1][0] <= longest:
            spans[-1] = (spans[-1][0], end)
        else:
            # A single sentence may itself be too long.
            spans += [(at, min(at + longest, end)) for at in range(start, end, longest)]
    return [(start, text[start:end]) for start, end in spans]


class AnnotationCache:
    """The annotations of texts in one SQLite file outside every knowledge base, keyed by a hash of the text.

    The file can be deleted at the price of asking again. Thresholds are not part of the key: all annotations are
    stored, with their confidences.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        with closing(self._open()) as connection, connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS annotation (maker TEXT, text BLOB, found TEXT NOT NULL, "
                "PRIMARY KEY (maker, text)) WITHOUT ROWID"
            )

    @classmethod
    def default(cls) -> AnnotationCache:
        """Return the cache in the cache folder (``CLEW_CACHE``)."""
        return cls(cache_path() / "annotations.sqlite")

    def get(self, maker: str, texts: list[str]) -> list[list[Annotation] | None]:
        """Return the annotations of each text by ``maker``, None where it has not been asked."""
        with closing(self._open()) as connection:
            rows = [
                connection.execute(
                    "SELECT found FROM annotation WHERE maker = ? AND text = ?", (maker, _digest(text))
                ).fetchone()
                for text in texts
            ]
        return [row and [Annotation(**fields) for fields in json.loads(row[0])] for row in rows]

    def put(self, maker: str, text: str, annotations: list[Annotation]) -> None:
        """Store the annotations of ``text`` by ``maker``."""
        value = json.dumps([asdict(annotation) for annotation in annotations], ensure_ascii=False)
        with closing(self._open()) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO annotation VALUES (?, ?, ?)", (maker, _digest(text), value)
            )

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=30)


def annotate_passages(
    snapshot: Snapshot,
    service: AnnotationService,
    annotations: AnnotationCache,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Annotate every passage and table row whose text is not in the cache; return the number of texts sent.

    Each answer is stored at once, so that a stopped run continues where it was. ``progress`` is called with the
    number of passages done and of all passages. Raises ModelError.
    """
    rows, sent = passage_rows(snapshot), 0
    for start in range(0, len(rows), _BATCH):
        texts = [node.text for node in snapshot.nodes(rows[start : start + _BATCH])]
        cached = annotations.get(service.maker, texts)
        done: set[str] = set()
        for place, (text, mentions) in enumerate(zip(texts, cached, strict=True), start + 1):
            if mentions is None and text not in done:
                annotations.put(service.maker, text, service.annotate(text))
                done.add(text)
                sent += 1
            if progress:
                progress(place, len(rows))
    return sent


def count_unannotated(snapshot: Snapshot, maker: str, annotations: AnnotationCache) -> int:
    """Return the number of different texts that ``maker`` has not been asked about."""
    rows = passage_rows(snapshot)
    missing: set[str] = set()
    for start in range(0, len(rows), _BATCH):
        texts = [node.text for node in snapshot.nodes(rows[start : start + _BATCH])]
        cached = annotations.get(maker, texts)
        missing.update(text for text, mentions in zip(texts, cached, strict=True) if mentions is None)
    return len(missing)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
