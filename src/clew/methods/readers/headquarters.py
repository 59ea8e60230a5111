"""Where a company has its headquarters: "Where is Adobe based?", answered by the sentence or cover page that says so.

Search does not bring such passages: in reports "executive offices" and "executive officers" are the same words once
stemmed, and a cover page is no sentence. All passages with words for headquarters are looked at in the documents
about the company, whether search returned them or not. A passage counts where it speaks of the company itself ("Our
principal executive offices are located at ..."); the headquarters of a segment or a subsidiary are its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from clew.core.protocols import Snapshot
from clew.core.text import fold_name, query_terms
from clew.core.types import PASSAGE, ROW, Node
from clew.methods.readers.passages import nodes_with_words

_ADJECTIVES = (
    "global world worldwide main principal primary current corporate registered executive head home".split()
)
_ADJECTIVE = rf"(?:{'|'.join(_ADJECTIVES)})"
_SEAT = rf"(?:(?:{_ADJECTIVE} )*(?:head ?quarters?|head ?offices?)|(?:{_ADJECTIVE} )+offices?)"
_TOWN = r"(?:city|town|place|country|state|street)"
#: The groups of whose headquarters, and of what they are called.
_QUESTIONS = tuple(
    re.compile(rf"^{pattern}\W*$", re.IGNORECASE)
    for pattern in (
        rf"where(?:'s| is| are| was| were) (?P<whose>.+?)['’]s? (?P<seat>{_SEAT})(?: located| based)?",
        rf"where(?:'s| is| are| was| were) the (?P<seat>{_SEAT}) (?:of|for) (?P<whose>.+?)(?: located| based)?",
        r"where(?:'s| is| was) (?P<whose>.+?) (?P<seat>headquartered|based)",
        rf"(?:where|in (?:which|what) {_TOWN}) (?:does|do|did|has) (?P<whose>.+?)(?: have)? (?:its|their)"
        rf" (?P<seat>{_SEAT})",
        rf"(?:in )?(?:which|what) {_TOWN} (?:is|are) (?P<whose>.+?)(?:['’]s?)? "
        rf"(?P<seat>headquartered|based|{_SEAT})(?: located)?(?: in)?",
        rf"what(?:'s| is| are) the address of (?P<whose>.+?)(?:['’]s? (?P<seat>{_SEAT}))?",
        rf"what(?:'s| is| are) (?P<whose>.+?)['’]s? (?:(?P<seat>{_SEAT}) )?address",
    )
)
_ADDRESS = re.compile(r"\baddress\b", re.IGNORECASE)
#: Names, places and what stands before a place are of bounded length, so that a long text takes linear time.
_NAME = r"[A-Z][\w’'&.-]*(?: (?:of |& )?[A-Z][\w’'&.-]*){0,7}"
#: A town, or an address with its numbers; no full stop is part of it but that of "St. Helier".
_PLACE = (
    r"(?P<place>(?:lower |downtown |central |the )?(?:\d[\w-]*|St\.(?= [A-Z])|[A-Z][\w’'&-]*)"
    r"(?:(?:,? | (?:of|de) (?:the )?)(?:\d[\w-]*|St\.(?= [A-Z])|[A-Z][\w’'&-]*)){0,12})"
)
_LEADING_TO = r"(?:(?:an?|the) (?:[^.;]|\.\d){0,120}?\b(?:in|at|near) )?"
_IS = r" (?:is|are)(?: currently)?(?: (?:located|situated|based|maintained))?"
#: "Our principal executive offices are located at 12 Quay Street", "the headquarters for AENB in Sandy, Utah".
_STATEMENT = re.compile(
    rf"(?:(?P<whose>(?:{_NAME}|[Tt]he [Cc]ompany|[Rr]egistrant)['’]s?|[Oo]ur|[Ii]ts|[Tt]he) )?"
    rf"(?P<seat>(?i:{_SEAT}))(?: (?:of|for) (?:the )?(?P<of>{_NAME}))?(?: address\b[^.;]{{0,120}}?)?"
    rf"(?:{_IS}(?: (?:in|at))?| located (?:in|at)| in| at) {_LEADING_TO}{_PLACE}"
)
#: "We are headquartered in Corran", "Acme, based in Corran".
_BASED = re.compile(
    rf"\b(?P<whose>{_NAME}|[Ww]e|[Tt]he [Cc]ompany)(?:,| is| are|, which is)? (?P<seat>headquartered|based)"
    rf" (?:in|at) {_PLACE}"
)
#: The cover of a report: "12 Quay Street, Corran (Address of principal executive offices)".
_COVER = re.compile(r"\(Address of (?:its )?(?P<seat>principal executive offices?)\)?", re.IGNORECASE)
_SELF = re.compile(r"(?:we|our|its|the|(?:the )?(?:company|registrant))(?:['’]s?)?", re.IGNORECASE)
_WORDS = ("headquarters", "headquartered", "based", *(f"{word} offices" for word in _ADJECTIVES))
_FORMS = frozenset("the inc incorporated plc corporation corp company co ltd limited llc group".split())
_MAX_NODES, _MAX_COVER = 400, 120
_LETTERS = re.compile(r"[A-Z][a-z]{2}")


@dataclass(frozen=True, slots=True)
class HeadquartersQuestion:
    """A question for the headquarters of ``whose``; ``seat`` is what it calls them, "" for an address."""

    whose: str
    seat: str
    wants_address: bool


@dataclass(frozen=True, slots=True)
class Headquarters:
    """A place as ``node`` prints it at ``start`` to ``end``, and what it is called there (``seat``)."""

    place: str
    seat: str
    node: Node
    start: int
    end: int


def parse_headquarters_question(text: str) -> HeadquartersQuestion | None:
    """Return a question for the place of a company's headquarters, None for any other.

    >>> parse_headquarters_question("Where are Adobe's executive offices?")
    HeadquartersQuestion(whose='Adobe', seat='executive offices', wants_address=False)
    >>> parse_headquarters_question("Where was the founder of Adobe born?")
    """
    text = " ".join(text.split())
    match = next(filter(None, (pattern.match(text) for pattern in _QUESTIONS)), None)
    if match is None or not match["whose"][:1].isupper():
        return None
    return HeadquartersQuestion(
        match["whose"], (match["seat"] or "").casefold(), _ADDRESS.search(text) is not None
    )


def find_headquarters(
    question: HeadquartersQuestion, documents: Collection[str], snapshot: Snapshot, is_subject: bool
) -> Headquarters | None:
    """Return the place that documents (keys) give for the headquarters, None where they give none. Unless they are
    about whose these are (``is_subject``), the passage has to name that."""
    places = [
        place
        for node in nodes_with_words(_WORDS, documents, snapshot, _MAX_NODES)
        for place in _read_places(node, question, snapshot, is_subject)
    ]
    # A registered office is where letters go; few companies work there.
    is_registered = "registered" in question.seat
    places = [place for place in places if ("registered" in place.seat.casefold()) == is_registered]
    asked = frozenset(query_terms(question.seat))

    def fit(place: Headquarters) -> tuple[bool, int]:
        has_number = any(map(str.isdigit, place.place))
        return has_number and question.wants_address, len(asked & set(query_terms(place.seat)))

    return max(places, key=fit, default=None)


def _read_places(
    node: Node, question: HeadquartersQuestion, snapshot: Snapshot, is_subject: bool
) -> Iterator[Headquarters]:
    for pattern in (_STATEMENT, _BASED):
        for match in pattern.finditer(node.text):
            groups = match.groupdict()
            owner = groups.get("of") or re.sub(r"['’]s?$", "", groups["whose"] or "the")
            is_own = is_subject and _SELF.fullmatch(owner) is not None
            if (is_own or same_company(owner, question.whose)) and _LETTERS.search(match["place"]):
                yield Headquarters(match["place"], match["seat"], node, *match.span("place"))
    cover = _COVER.search(node.text) if is_subject else None
    if cover is not None and (node.kind == PASSAGE or cover.start() == 0):
        address = node.text[: cover.start()].rstrip()
        if not address:
            # The address is the heading above the line that says what it is.
            row = int(snapshot.rows([(node.parent if node.kind == ROW else None) or node.id])[0])
            node = snapshot.nodes(np.array([row - 1]))[0]
            address = node.text
        if len(address) <= _MAX_COVER and _LETTERS.search(address) and any(map(str.isdigit, address)):
            yield Headquarters(address, cover["seat"], node, 0, len(address))


def same_company(first: str, second: str) -> bool:
    """Return whether two names are those of one company, but for its legal form: "Adobe" and "Adobe Inc."."""
    names = [fold_name(name).split() for name in (first, second)]
    bare = [[word for word in name if word not in _FORMS] for name in names]
    return bool(bare[0]) and bare[0] == bare[1]
