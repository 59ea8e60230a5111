"""Search the web with SerpApi, or with a service that speaks the same protocol, and return the results as hits.

Su et al. (NAACL 2024, Section 4) use it for Bamboogle. The words of the question are sent to the service. Its results
are not stored in the knowledge base and are no nodes of it: their ids begin with ``web:``.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit

from clew.core.component import component
from clew.core.config import SERPAPI_URL, web_search_endpoint
from clew.core.errors import RemoteError, UsageError, refuse_password
from clew.core.http_client import HttpClient, Reply, Service
from clew.core.types import PASSAGE, Hit, Node, Question

#: Google returns at most this many results for one search.
MAX_RESULTS = 100
#: At most this many searches are remembered while the process lives: repeating one costs nothing.
MAX_REMEMBERED = 1_000
_BUSY = frozenset({429, 500, 502, 503, 504})
_HEADERS = {"Accept": "application/json", "User-Agent": "clew (web search)"}
#: The keys of an answer box that hold text, in the order in which they are read.
_BOX_KEYS = ("answer", "result", "snippet", "definitions", "list", "population", "price", "date")
#: The keys of a knowledge graph's entry that come first; the other texts follow with their names.
_ENTRY_KEYS = ("title", "type", "description")
#: A longer text in such an entry is no fact.
_MAX_FACT = 300


@component(
    "serpapi",
    summary="a web search: questions are sent to SerpApi (key: CLEW_SERPAPI_KEY) or to CLEW_SERPAPI_URL",
    traits=["web"],
)
@dataclass(slots=True)
class SerpApi:
    """Searches with the service at ``url``, waiting at most ``timeout`` seconds for an answer.

    A busy service is asked up to ``tries`` times: after as many seconds as it says (``Retry-After``), unless those
    are more than ``longest_wait``, else after one and two seconds. The key is sent to ``url`` only and never appears
    in a message.
    """

    url: str
    key: str | None = field(default=None, repr=False)
    timeout: float = 20.0
    tries: int = 3
    longest_wait: float = 30.0
    sleep: Callable[[float], None] = time.sleep
    _known: dict[tuple[str, int], Sequence[Hit]] = field(default_factory=dict, init=False, repr=False)
    _client: HttpClient = field(
        default_factory=lambda: HttpClient(is_named=True), init=False, repr=False, compare=False
    )

    @classmethod
    def build(cls, timeout: float = 20) -> SerpApi:
        """Return the search service that the environment names, one object for the process, which caches its replies.
        Raises UsageError without a key."""
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
        """Return at most ``k`` hits: the answer box, the entry of the knowledge graph, then the organic results.

        The score of a hit is 1 / rank. Raises RemoteError, and UsageError for a question restricted to documents.
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
            hits = _read_hits(self._search(words, number))
            while len(self._known) >= MAX_REMEMBERED:
                self._known.pop(next(iter(self._known)), None)
            self._known[words, number] = hits
        return list(hits[:k])

    def _search(self, words: str, number: int) -> Mapping[str, Any]:
        """Return the service's answer. Raises RemoteError."""
        service = Service(
            self.url.rstrip("/"),
            self.timeout,
            self.tries,
            self.longest_wait,
            away="Is there a network? See CLEW_SERPAPI_URL",
            sleep=self.sleep,
            client=self._client,
        )
        fields = {"engine": "google", "q": words, "num": str(number)} | (
            {"api_key": self.key} if self.key else {}
        )
        # A model may write halves of surrogate pairs, which cannot be part of a URL.
        query = f"/search.json?{urlencode(fields, errors='replace')}"
        try:
            answer = json.loads(service.ask(None, self._explain_refusal, query=query, headers=_HEADERS).data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, Mapping):
            raise RemoteError(
                f"{self.url} answered with something other than a JSON object",
                "Does it speak SerpApi's protocol?",
            )
        return answer

    def _explain_refusal(self, reply: Reply) -> RemoteError | None:
        """Return the error of a refusal with the service's message, with dots for the key should it repeat that."""
        try:
            message = str(json.loads(reply.data)["error"])
        except (ValueError, KeyError, TypeError, RecursionError):
            message = ""
        message = " ".join((message.replace(self.key, "...") if self.key else message).split())[:200]
        message = f": {message}" if message else ""
        if reply.status in {401, 403}:
            what = "the key" if self.key else "a search without a key"
            return RemoteError(f"{self.url} refused {what}{message}", "Check CLEW_SERPAPI_KEY")
        if reply.status not in _BUSY:
            return RemoteError(f"{self.url} refused the search (HTTP {reply.status}){message}")
        if "run out" in message:
            return RemoteError(f"{self.url}: the account has no searches left{message}")
        return None


@lru_cache(maxsize=4)
def _shared_service(url: str, key: str | None, timeout: float) -> SerpApi:
    return SerpApi(url, key, timeout)


def _read_hits(answer: Mapping[str, Any]) -> Sequence[Hit]:
    nodes: dict[str, Node] = {}
    for title, link, text in _read_results(answer):
        node = _make_node(title or link, link, text)
        nodes.setdefault(node.id, node)
    return [Hit(node, 1 / rank, (node.id,)) for rank, node in enumerate(nodes.values(), 1)]


def _read_results(answer: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield title, link and text of each result that has a text, best first; unexpected forms are skipped."""
    box = answer.get("answer_box")
    if isinstance(box, Mapping):
        text = "\n".join(dict.fromkeys(part for key in _BOX_KEYS if (part := _as_text(box.get(key)))))
        if text:
            yield _as_text(box.get("title")) or "Answer box", _as_text(box.get("link")), text
    entry = answer.get("knowledge_graph")
    if isinstance(entry, Mapping) and (text := _read_entry(entry)):
        source = entry.get("source")
        link = _as_text(source.get("link")) if isinstance(source, Mapping) else ""
        yield _as_text(entry.get("title")) or "Knowledge graph", link, text
    organic = answer.get("organic_results")
    for result in organic if isinstance(organic, list) else ():
        if isinstance(result, Mapping) and (text := _as_text(result.get("snippet"))):
            yield _as_text(result.get("title")), _as_text(result.get("link")), text


def _read_entry(entry: Mapping[str, Any]) -> str:
    lead = ". ".join(part for key in _ENTRY_KEYS if (part := _as_text(entry.get(key))))
    facts = [
        f"{key.replace('_', ' ').capitalize()}: {value.strip()}"
        for key, value in entry.items()
        if isinstance(value, str) and key not in _ENTRY_KEYS and _is_fact(key, value)
    ]
    return "\n".join([lead, *facts] if lead else facts)


def _is_fact(key: str, value: str) -> bool:
    """Return whether a text of an entry is a statement, and not an address or an id."""
    is_address = "://" in value or key in {"kgmid", "knowledge_graph_search_link", "entity_type", "image"}
    return bool(value.strip()) and not is_address and len(value) <= _MAX_FACT


def _as_text(value: Any) -> str:
    """Return a text, a number or a list of them as one line of text; "" for anything else."""
    if isinstance(value, list):
        return "; ".join(text for item in value if (text := _as_text(item)))
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _make_node(title: str, link: str, text: str) -> Node:
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
        # The headings are shown with every hit; for a web page they are its address.
        headings=(link,) if link else (),
        span=(0, len(text)),
    )
