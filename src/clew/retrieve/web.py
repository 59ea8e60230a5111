"""What a web search finds, as hits: SerpApi, or a service that answers in its form.

The text base of Su et al. (NAACL 2024, Section 4) for Bamboogle. The words of the question leave this machine and go
to the service; nothing of what comes back is stored in the knowledge base, and no node of it is there: ids begin
with ``web:``.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.client import HTTPException
from socket import gaierror
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from clew.core.component import component
from clew.core.config import SERPAPI_URL, web_search_endpoint
from clew.core.errors import RemoteError, UsageError, refuse_password
from clew.core.types import PASSAGE, Hit, Node, Question

#: What Google gives at most for one search.
MAX_RESULTS = 100
#: Searches that are remembered as long as the process lives: the same one is paid for once.
MAX_REMEMBERED = 1_000
_BUSY = frozenset({429, 500, 502, 503, 504})
_HEADERS = {"Accept": "application/json", "User-Agent": "clew (web search)"}
#: The parts of an answer box that say something, in the order in which they are read.
_BOX = ("answer", "result", "snippet", "definitions", "list", "population", "price", "date")
#: The parts of a knowledge graph's entry that stand first; the other texts follow with their names.
_ENTRY = ("title", "type", "description")
_LONGEST = 300


@component(
    "serpapi",
    summary="a web search: questions are sent to SerpApi (key: CLEW_SERPAPI_KEY) or to CLEW_SERPAPI_URL",
    traits=["web"],
)
@dataclass(slots=True)
class SerpApi:
    """The service at ``url``. ``timeout`` is seconds of waiting for an answer.

    A busy service is asked again, up to ``tries`` times in all: when it says (``Retry-After``), unless that is later
    than ``longest`` seconds, else after one and two seconds. The key is sent to ``url`` alone and is in no message.
    """

    url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 20.0
    tries: int = 3
    longest_wait: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    _known: dict[tuple[str, int], Sequence[Hit]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def build(cls, timeout: float = 20) -> SerpApi:
        """Return the service that the environment names: the same object each time, so that what it was asked before
        in this process is not asked again. Raises UsageError where it has no key."""
        url, key = web_search_endpoint()
        if key is None and url == SERPAPI_URL:
            raise UsageError(f"'serpapi' needs a key for {url}", "Set CLEW_SERPAPI_KEY")
        return _shared_service(url, key, timeout)

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"http", "https"} or not urlsplit(self.url).hostname:
            raise UsageError(
                f"no address of a web search: '{self.url}'", "CLEW_SERPAPI_URL is such as https://serpapi.com"
            )
        refuse_password(self.url, "the address of the web search", "Give it as CLEW_SERPAPI_KEY")

    def retrieve(self, question: Question, k: int) -> list[Hit]:
        """Return at most ``k`` hits, best first: an answer box, a knowledge graph's entry, the organic results.

        Their scores are 1 by rank. Raises RemoteError, and UsageError for a question that is restricted to documents.
        """
        if question.scope.documents is not None:
            raise UsageError(
                "a web search cannot be restricted to documents",
                "Leave --document out, or name another retriever",
            )
        if question.scope.kinds is not None and PASSAGE not in question.scope.kinds:
            return []
        words, number = " ".join(question.text.split()), min(k, MAX_RESULTS)
        if not words:
            return []
        hits = self._known.get((words, number))
        if hits is None:
            hits = _hits(self._asked(words, number))
            while len(self._known) >= MAX_REMEMBERED:
                self._known.pop(next(iter(self._known)), None)
            self._known[words, number] = hits
        return list(hits[:k])

    def _asked(self, words: str, number: int) -> Mapping[str, Any]:
        """Return the service's answer. Raises RemoteError."""
        problem, hint = "", ""
        for attempt in range(self.tries):
            if attempt:
                self.sleep(2.0 ** (attempt - 1))
            answer, problem, hint = self._once(words, number)
            if answer is not None:
                return answer
        raise RemoteError(problem, hint)

    def _once(self, words: str, number: int) -> tuple[Mapping[str, Any] | None, str, str]:
        """Return the answer, or a problem that may pass, with a hint. Raises RemoteError for one that will not."""
        fields = {"engine": "google", "q": words, "num": str(number)} | (
            {"api_key": self.key} if self.key else {}
        )
        # What a model wrote may hold halves of surrogate pairs, which no address can.
        query = urlencode(fields, errors="replace")
        try:
            request = Request(f"{self.url.rstrip('/')}/search.json?{query}", headers=_HEADERS)
            with urlopen(request, timeout=self.timeout) as response:
                return self._read(response.read()), "", ""
        except HTTPError as error:
            with error:
                return None, *self._refused(error)
        except (TimeoutError, URLError) as error:
            if isinstance(error, TimeoutError) or isinstance(error.reason, TimeoutError):
                return None, f"{self.url} did not answer within {self.timeout:g} seconds", "Ask again later"
            away = (
                f"{self.url} cannot be reached ({error.reason})",
                "Is there a network? See CLEW_SERPAPI_URL",
            )
            if isinstance(error.reason, ConnectionRefusedError | gaierror):
                # Nobody is there, or no network: that does not pass in a few seconds, and a person waits.
                raise RemoteError(*away) from error
            return None, *away
        except (OSError, HTTPException) as error:
            return None, f"{self.url} broke off the connection ({error})", "Ask again later"

    def _read(self, content: bytes) -> Mapping[str, Any]:
        try:
            answer = json.loads(content)
        except ValueError:
            answer = None
        if not isinstance(answer, Mapping):
            raise RemoteError(
                f"{self.url} answered with something other than a JSON object",
                "Does it speak SerpApi's form?",
            )
        return answer

    def _refused(self, error: HTTPError) -> tuple[str, str]:
        """Return what is wrong if it may pass, having waited as long as the service asks. Raises RemoteError."""
        said = self._complaint(error)
        if error.code in {401, 403}:
            what = "the key" if self.key else "a search without a key"
            raise RemoteError(f"{self.url} refused {what}{said}", "Check CLEW_SERPAPI_KEY") from error
        if error.code not in _BUSY:
            raise RemoteError(f"{self.url} refused the search (HTTP {error.code}){said}") from error
        if "run out" in said:
            raise RemoteError(f"{self.url}: the account has no searches left{said}") from error
        asked = error.headers.get("Retry-After", "")
        if asked.isdigit():
            if int(asked) > self.longest_wait:
                busy = f"{self.url} is busy and asks to wait {asked} seconds"
                raise RemoteError(busy, "Ask again then") from error
            self.sleep(float(asked))
        return f"{self.url} is busy (HTTP {error.code}){said}", "Ask again later"

    def _complaint(self, error: HTTPError) -> str:
        """Return what the service said, without the key, should it have repeated that."""
        content = error.read(2_000).decode("utf-8", "replace")
        try:
            said = str(json.loads(content)["error"])
        except (ValueError, KeyError, TypeError):
            said = ""
        said = said.replace(self.key, "...") if self.key else said
        return f": {' '.join(said.split())[:200]}" if said.strip() else ""


@lru_cache(maxsize=4)
def _shared_service(url: str, key: str | None, timeout: float) -> SerpApi:
    return SerpApi(url, key, timeout)


def _hits(answer: Mapping[str, Any]) -> Sequence[Hit]:
    nodes: dict[str, Node] = {}
    for title, link, text in _found(answer):
        node = _node(title or link, link, text)
        nodes.setdefault(node.id, node)
    return [Hit(node, 1 / rank, (node.id,)) for rank, node in enumerate(nodes.values(), 1)]


def _found(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield title, link and text of each result that has a text, best first; what has another form is passed over."""
    box = answer.get("answer_box")
    if isinstance(box, Mapping):
        text = "\n".join(dict.fromkeys(said for key in _BOX if (said := _said(box.get(key)))))
        if text:
            yield _said(box.get("title")) or "Answer box", _said(box.get("link")), text
    entry = answer.get("knowledge_graph")
    if isinstance(entry, Mapping) and (text := _entry(entry)):
        source = entry.get("source")
        link = _said(source.get("link")) if isinstance(source, Mapping) else ""
        yield _said(entry.get("title")) or "Knowledge graph", link, text
    organic = answer.get("organic_results")
    for one in organic if isinstance(organic, list) else ():
        if isinstance(one, Mapping) and (text := _said(one.get("snippet"))):
            yield _said(one.get("title")), _said(one.get("link")), text


def _entry(entry: Mapping[str, Any]) -> str:
    lead = ". ".join(said for key in _ENTRY if (said := _said(entry.get(key))))
    facts = [
        f"{key.replace('_', ' ').capitalize()}: {value.strip()}"
        for key, value in entry.items()
        if isinstance(value, str) and key not in _ENTRY and _is_fact(key, value)
    ]
    return "\n".join([lead, *facts] if lead else facts)


def _is_fact(key: str, value: str) -> bool:
    """Return whether a text of an entry says something, rather than where something is."""
    address = "://" in value or key in {"kgmid", "knowledge_graph_search_link", "entity_type", "image"}
    return bool(value.strip()) and not address and len(value) <= _LONGEST


def _said(value: Any) -> str:
    """Return what a value says: a text, a number, or a list of them."""
    if isinstance(value, list):
        return "; ".join(said for one in value if (said := _said(one)))
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _node(title: str, link: str, text: str) -> Node:
    digest = hashlib.blake2b(
        "\n".join((title, link, text)).encode("utf-8", "replace"), digest_size=12
    ).hexdigest()
    return Node(
        id=f"web:{digest}",
        kind=PASSAGE,
        text=text,
        document=link or f"web:{digest}",
        document_name=title or "Web",
        position=0,
        parent=None,
        name="",
        level=0,
        page=None,
        # Where it stands is shown with every hit, and for these that is their address.
        headings=(link,) if link else (),
        span=(0, len(text)),
    )
