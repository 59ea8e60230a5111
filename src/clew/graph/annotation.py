"""A client for the public TAGME and WAT services, which find Wikipedia entities in a text.

TAGME: Ferragina and Scaiella, CIKM 2010; WAT, its successor, is what the paper's published code calls. Both
are hosted by D4Science and need a personal token (free; register for the TagMe VRE at D4Science). Texts are
sent to that service; nothing is sent before :func:`annotate` is called.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.core.config import cache_path
from clew.core.errors import BadCompletion, ModelError, UsageError
from clew.core.text import sentence_spans
from clew.graph.passages import passage_rows

if TYPE_CHECKING:
    from clew.core.protocols import Snapshot

URLS = {"tagme": "https://tagme.d4science.org/tagme/tag", "wat": "https://wat.d4science.org/wat/tag/tag"}
#: Characters sent in one request; both services take the text in the address.
MAX_CHARACTERS = 3_000
#: Passages read from the base at a time.
_BATCH = 500


@dataclass(frozen=True, slots=True)
class Annotation:
    """An entity that a text mentions: its Wikipedia page id and title, the words, and how sure it is.

    ``rho`` is the service's confidence; ``prior`` the probability that these words are a link at all
    (TAGME's ``link_probability``) or lead to this entity (WAT's mention probability): the paper's "prior
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
    """The annotation service ``name`` (``tagme`` or ``wat``), asked politely: one request per ``interval`` s.

    ``attempts`` requests are made where the service is busy or out of reach, waiting as long as it asks or
    twice as long each time.
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
        """What made an annotation: service and language, the part of a cached one that is not its text."""
        return f"{self.name}/{self.language}"

    def annotate(self, text: str) -> list[Annotation]:
        """Return the entities of ``text``, whatever their confidence. Raises ModelError."""
        if not self.token:
            raise ModelError(
                f"no token for the {self.name} service",
                "Register for the TagMe VRE at D4Science and set CLEW_TAGME_TOKEN",
            )
        return [
            annotation
            for start, piece in split_text(text)
            for annotation in self._read(self._ask(piece), start)
        ]

    def _ask(self, text: str) -> Any:
        fields = {"lang": self.language, "gcube-token": self.token, "text": text}
        query = urllib.parse.urlencode({key: value or "" for key, value in fields.items()})
        # WAT answers GET only; TAGME takes both.
        data = query.encode() if self.name == "tagme" else None
        request = urllib.request.Request(self.url if data else f"{self.url}?{query}", data)
        for attempt in range(self.attempts):
            self._wait()
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                problem, pause = self._problem(error), error.headers.get("Retry-After", "")
            except (OSError, TimeoutError) as error:
                problem, pause = f"cannot be reached ({error})", ""
            except ValueError as error:
                raise BadCompletion(f"{self.name} answered with something other than JSON") from error
            if attempt + 1 < self.attempts:
                time.sleep(float(pause) if pause.isdigit() else self.interval * 2**attempt)
        raise ModelError(f"{self.name} {problem}", "What was annotated so far is kept; run it again later")

    def _problem(self, error: urllib.error.HTTPError) -> str:
        """Return what is wrong if asking again may help. Raises ModelError if it cannot."""
        with error:
            if error.code in {401, 403}:
                raise ModelError(f"{self.name} refused the token", "Check CLEW_TAGME_TOKEN") from error
            if error.code != 429 and error.code < 500:
                raise ModelError(f"{self.name} refused the request (HTTP {error.code})") from error
            return f"is busy (HTTP {error.code})"

    def _wait(self) -> None:
        time.sleep(max(0.0, self._last + self.interval - time.monotonic()))
        self._last = time.monotonic()

    def _read(self, reply: Any, offset: int) -> Iterator[Annotation]:
        if not isinstance(reply, Mapping) or not isinstance(reply.get("annotations"), list):
            raise BadCompletion(f"{self.name} answered without a list of annotations")
        for one in reply["annotations"]:
            # A spot that the service could not resolve has no entity.
            if isinstance(one, Mapping) and one.get("id") is not None and one.get("title"):
                yield Annotation(
                    int(one["id"]),
                    str(one["title"]).replace("_", " "),
                    str(one.get("spot", "")),
                    int(one.get("start", 0)) + offset,
                    int(one.get("end", 0)) + offset,
                    float(one.get("rho", 0.0)),
                    _prior(one),
                )


def _prior(one: Mapping[str, Any]) -> float:
    if "link_probability" in one:
        return float(one["link_probability"])
    explanation = one.get("explanation") or {}
    return float((explanation.get("prior_explanation") or {}).get("entity_mention_probability", 1.0))


def split_text(text: str, longest: int = MAX_CHARACTERS) -> list[tuple[int, str]]:
    """Cut ``text`` into runs of whole sentences of at most ``longest`` characters, with where each starts."""
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if spans and end - spans[-1][0] <= longest:
            spans[-1] = (spans[-1][0], end)
        else:
            # A single sentence may itself be too long.
            spans += [(at, min(at + longest, end)) for at in range(start, end, longest)]
    return [(start, text[start:end]) for start, end in spans]


class AnnotationCache:
    """What a service said of texts, in one SQLite file outside every base, keyed by a hash of the text.

    It can be thrown away at the price of asking again. Thresholds are not part of the key: all annotations
    are kept, with their confidences.
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
        """Return those kept in the cache folder (``CLEW_CACHE``)."""
        return cls(cache_path() / "annotations.sqlite")

    def get(self, maker: str, texts: list[str]) -> list[list[Annotation] | None]:
        """Return what ``maker`` found in each text, None where it has not been asked."""
        with closing(self._open()) as connection:
            found = [
                connection.execute(
                    "SELECT found FROM annotation WHERE maker = ? AND text = ?", (maker, _digest(text))
                ).fetchone()
                for text in texts
            ]
        return [row and [Annotation(**one) for one in json.loads(row[0])] for row in found]

    def put(self, maker: str, text: str, found: list[Annotation]) -> None:
        """Keep what ``maker`` found in ``text``."""
        value = json.dumps([asdict(one) for one in found], ensure_ascii=False)
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
    """Ask the service about every passage and table row that was not asked about; return how many.

    Each answer is kept at once, so that a run that was stopped goes on where it was. Raises ModelError.
    ``progress`` is called with passages done and all passages.
    """
    rows, asked = passage_rows(snapshot), 0
    for start in range(0, len(rows), _BATCH):
        texts = [node.text for node in snapshot.nodes(rows[start : start + _BATCH])]
        known = annotations.get(service.maker, texts)
        done: set[str] = set()
        for at, (text, found) in enumerate(zip(texts, known, strict=True)):
            if found is None and text not in done:
                annotations.put(service.maker, text, service.annotate(text))
                done.add(text)
                asked += 1
            if progress:
                progress(start + at + 1, len(rows))
    return asked


def count_unannotated(snapshot: Snapshot, maker: str, annotations: AnnotationCache) -> int:
    """Return how many different texts ``maker`` was not asked about."""
    rows = passage_rows(snapshot)
    texts: set[str] = set()
    for start in range(0, len(rows), _BATCH):
        batch = [node.text for node in snapshot.nodes(rows[start : start + _BATCH])]
        texts.update(
            text for text, found in zip(batch, annotations.get(maker, batch), strict=True) if found is None
        )
    return len(texts)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
