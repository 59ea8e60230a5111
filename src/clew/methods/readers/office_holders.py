"""Who holds an office: "Who is Pfizer's chief financial officer?", answered by who is named beside the office.

Reports name officers in lists, tables, signatures and certifications ("Albert Bourla: Age: 60; Position: ... Chief
Executive Officer since January 2019"), which are no sentences that a reader of spans learnt. All passages of the
document that have the words of the office are looked at, whether search returned them or not. A mention counts where
a person's name stands beside the office with nothing between but other offices, an age or a date; former offices
("from 2013 until 2018", "former"), deputies and offices in other companies do not count. The person whom most
mentions name is the answer; where two are named about as often, there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from clew.core.protocols import Snapshot
from clew.core.text import fold_name, query_terms
from clew.core.types import ROW, Node
from clew.core.values import mentions_name
from clew.methods.readers.mentions import list_item_at, node_context
from clew.methods.readers.passages import nodes_with_words

_ACRONYMS = {
    "chief executive officer": "ceo",
    "chief financial officer": "cfo",
    "chief operating officer": "coo",
    "chief technology officer": "cto",
}
#: The deputy chairman is not the chairman, unless "deputy" is asked for.
_NO_DEPUTY = "".join(f"(?<!\\b{word}[ -])" for word in ("deputy", "vice", "assistant", "former"))
_ENDINGS = (
    r"(?:officer|president|chair(?:man|woman|person)|ceo|cfo|coo|cto|treasurer|secretary|controller|general counsel"
    r"|chief accountant|director|mayor|governor|captain|master|engineer|clerk|surveyor|superintendent|manager"
    r"|minister|headmaster|headmistress|principal|dean|rector|chaplain|curator|librarian|editor|judge)"
)
#: Of these, a word before them makes another office; a chairman is one whatever stands before.
_ROLE_WORD = re.compile(
    r"director|captain|master|engineer|clerk|surveyor|superintendent|manager|minister|judge", re.I
)
_QUESTION = re.compile(
    rf"^who(?:(?P<began> became| (?:is|was) (?:named|appointed|elected)(?: as)?)|'s| is| was| serves as| acts as)"
    rf" (?:(?P<owner>.+?)['’]s? )?(?:the |its |our )?(?:new |current |present )?"
    rf"(?P<office>(?:[\w-]+,? ){{0,5}}?{_ENDINGS})(?: (?:of|at|for|in) (?:the )?(?P<of>.+?))?"
    rf"(?: in (?:[a-z]+ )?(?P<year>(?:19|20)\d\d))?\W*$",
    re.IGNORECASE,
)
_AUDITOR_QUESTION = re.compile(
    r"^(?:who|which (?:\w+ )?firm|what (?:\w+ )?firm)(?:'s| is| was| has been| serves as| acts as)"
    r" (?:(?P<owner>.+?)['’]s? )?(?:the |its |our )?(?:(?:current|present|independent|external|outside) )*"
    r"(?:auditors?|(?:registered )?(?:public )?accounting firm|accountants?)"
    r"(?: (?:of|at|for) (?:the )?(?P<of>.+?))?(?: (?:since|in|for) .*)?\W*$",
    re.IGNORECASE,
)
#: "Who audits Acme?", "Which firm audited the accounts of Acme in 2022?"
_AUDITS_QUESTION = re.compile(
    r"^(?:who|which (?:\w+ )?firm|what (?:\w+ )?firm) audit(?:s|ed)"
    r"(?: the (?:accounts|books|financial statements) of)?"
    r" (?P<of>.+?)(?:['’]s? (?:accounts|books|financial statements))?(?: (?:since|in|for) .*)?\W*$",
    re.IGNORECASE,
)
#: "Who runs Acme?" asks for its chief executive.
_RUNS_QUESTION = re.compile(r"^who (?:runs|leads|heads) (?P<of>[A-Z].*?)\W*$", re.IGNORECASE)
#: What reports call an auditor, and the name of a firm.
_AUDITOR_NAMES = ("independent registered public accounting firm", "independent auditor", "auditor")
_FIRM = re.compile(
    r"\b[A-Z][\w’'-]+(?:(?: & | and | )[A-Z][\w’'-]+){0,3}(?: & Co\.?)?,? (?:LLP|L\.L\.P\.|LLC|AG)(?!\w)"
)
_SELF = re.compile(r"(?:the |our |this )?(?:company|corporation|registrant|firm)", re.IGNORECASE)
#: Words with capitals that are no part of a person's name.
_NO_NAME = frozenset(
    "accounting act age ages agreement and annual april august board by captain certification chair chairman "
    "chairperson chairwoman chief clerk committee company compensation controller corporation councillor "
    "counsel date december director dr employment engineer executive exhibit february financial form former "
    "general global group head held inc independent interim international item its january july june letter "
    "ltd managing march master may mayor mr mrs ms name named names note november october of offer officer "
    "officers operating our plan plc position positions prepared president principal prior pursuant registrant "
    "report secretary section senior september signature since states superintendent surveyor the title to "
    "town treasurer united vice".split()
)
_WORD = r"[A-ZÀ-Þ][\w’'-]+"
_PERSON = re.compile(
    rf"(?:(?:Mr|Ms|Mrs|Dr)\. )?{_WORD}(?: (?:[A-Z]\.|de|van|von|di|la|Le|{_WORD})){{1,3}}|(?:Mr|Ms|Mrs|Dr)\. {_WORD}"
)
_HONORIFIC = re.compile(r"^(?:Mr|Ms|Mrs|Dr)\. ")
#: Between a name and an office: offices and words with capitals, ages, dates, and a few small words.
#: Possessive quantifiers keep this linear in the length of the text.
_BETWEEN = re.compile(
    r"(?:[\s,:()–—\-&/|’']|\d++|[A-Z][\w.'’-]*+|(?:since|age[ds]?|and|of|the|our|is|was|has|been|as|currently|serves"
    r"|served|appointed|a|i)\b)*+"
)
_PAST = re.compile(
    r"^(?! since\b)(?:,? (?:[\w&.'’-]+ ){0,8}?)?(?:from (?:\w+ )?(?:19|20)\d\d|until|through (?:\w+ )?(?:19|20)\d\d)"
)
_FORMER = re.compile(
    r"\b(?:former(?:ly)?|previous(?:ly)?|prior to|prior thereto|successor to|reports? to)\b[^.;]*$", re.I
)
_ELSEWHERE = re.compile(
    r"^,? (?:of|at|for) (?!the |our |its |this )(?P<company>[A-Z][\w&’'-]*(?: [A-Z][\w&’'-]*)*)"
)
_AFTER = re.compile(rf"^,? (?:is |was |our )?(?P<name>{_PERSON.pattern})")
_MAX_GAP, _MAX_MENTIONS = 160, 400


@dataclass(frozen=True, slots=True)
class OfficeQuestion:
    """A question for who holds an office: its ``names`` (spelt out, and its acronym), and ``whose``, "" for nobody
    named. An auditor is a firm (``is_firm``). ``since`` is the year in which the holder began, "" for any."""

    names: tuple[str, ...]
    whose: str
    is_firm: bool = False
    since: str = ""


@dataclass(frozen=True, slots=True)
class OfficeHolder:
    """A person's name as ``node`` prints it at ``start`` to ``end``, and the number of ``mentions`` that agree."""

    name: str
    node: Node
    start: int
    end: int
    mentions: int


def parse_office_question(text: str) -> OfficeQuestion | None:
    """Return a question for the holder of an office, None for any other.

    >>> parse_office_question("Who is the CFO of Adobe?")
    OfficeQuestion(names=('chief financial officer', 'cfo'), whose='Adobe', is_firm=False, since='')
    >>> parse_office_question("Who signed the lease?")
    """
    text = " ".join(text.split())
    if auditor := _AUDITOR_QUESTION.match(text) or _AUDITS_QUESTION.match(text):
        return OfficeQuestion(_AUDITOR_NAMES, _whose(auditor), is_firm=True)
    if leader := _RUNS_QUESTION.match(text):
        return OfficeQuestion(office_names("ceo"), _whose(leader))
    match = _QUESTION.match(text)
    if match is None:
        return None
    since = match["year"] if match["began"] else None
    return OfficeQuestion(office_names(match["office"]), _whose(match), since=since or "")


def office_names(office: str) -> tuple[str, ...]:
    """Return the names of an office in small letters: spelt out, and its acronym if it has one.

    >>> office_names("CFO"), office_names("Treasurer")
    (('chief financial officer', 'cfo'), ('treasurer',))
    """
    asked = office.casefold()
    full = next((name for name, acronym in _ACRONYMS.items() if acronym == asked), asked)
    return (full, _ACRONYMS[full]) if full in _ACRONYMS else (full,)


def office_pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of an office by any of its names, in any case."""
    return re.compile(_NO_DEPUTY + r"\b(?:" + "|".join(map(re.escape, names)) + r")\b", re.IGNORECASE)


def _whose(match: re.Match[str]) -> str:
    whose = match.groupdict().get("owner") or match["of"] or ""
    return "" if _SELF.fullmatch(whose) else whose


def same_name(first: str, second: str) -> bool:
    """Return whether a name stands in another: "Pfizer" in "Pfizer Inc."."""
    return (
        f" {fold_name(first)} " in f" {fold_name(second)} "
        or f" {fold_name(second)} " in f" {fold_name(first)} "
    )


def find_holder(
    question: OfficeQuestion, documents: Collection[str], snapshot: Snapshot, is_subject: bool
) -> OfficeHolder | None:
    """Return who holds the office by most mentions in documents (keys); None where nobody is named beside it or two
    persons are. Unless the documents are about whose office it is (``is_subject``), a mention has to name that."""
    votes: Counter[str] = Counter()
    mentions: dict[str, list[OfficeHolder]] = {}
    office = office_pattern(question.names)
    for node in nodes_with_words(question.names, documents, snapshot, _MAX_MENTIONS):
        if question.whose and not is_subject and not mentions_name(question.whose, node_context(node)):
            continue
        if question.since not in node.text:
            continue
        holders = (
            _read_firms(node, office) if question.is_firm else _read_mentions(node, office, question.whose)
        )
        for holder in holders:
            # A person is known by the last name, a firm by all.
            name = fold_name(holder.name)
            key = name if question.is_firm else name.split()[-1]
            votes[key] += 1
            mentions.setdefault(key, []).append(holder)
    if not votes:
        return None
    (key, count), *others = votes.most_common(2)
    if others and 2 * others[0][1] > count:
        return None
    named = [holder for holder in mentions[key] if _HONORIFIC.match(holder.name) is None] or mentions[key]
    best = max(named, key=lambda holder: (not holder.name.isupper(), len(holder.name.split()) < 5))
    return OfficeHolder(best.name, best.node, best.start, best.end, count)


def _read_mentions(node: Node, office: re.Pattern[str], whose: str) -> list[OfficeHolder]:
    holders = []
    for match in office.finditer(node.text):
        first, last = list_item_at(node.text, match.start()) or (0, len(node.text))
        after = node.text[match.end() : min(match.end() + _MAX_GAP, last)]
        before = node.text[max(match.start() - _MAX_GAP, first) : match.start()]
        elsewhere = _ELSEWHERE.match(after)
        if elsewhere and whose and not _is_same_company(elsewhere["company"], whose):
            continue
        if _PAST.match(after) or _FORMER.search(before) or _is_longer_office(match.group(), before):
            continue
        place = _name_before(node, match.start(), first) or _name_after(node, match.end(), last)
        if place is not None:
            holders.append(OfficeHolder(node.text[place[0] : place[1]], node, *place, 1))
    return holders


def _is_longer_office(office: str, before: str) -> bool:
    """Return whether the word before a role of one word makes another office of it: the "Harbour Master"."""
    return _ROLE_WORD.fullmatch(office) is not None and re.search(r"\b[A-Z][a-z]+ $", before) is not None


def _read_firms(node: Node, office: re.Pattern[str]) -> list[OfficeHolder]:
    """Return the firms that a passage with the office names: "Consent of KPMG LLP, Independent Registered Public
    Accounting Firm"."""
    if office.search(node.text) is None or re.search(r"\b(?:former|predecessor)", node.text, re.IGNORECASE):
        return []
    firms = {match.group(): match for match in _FIRM.finditer(node.text)}
    return [OfficeHolder(name, node, match.start(), match.end(), 1) for name, match in firms.items()]


def _is_same_company(company: str, whose: str) -> bool:
    return not set(query_terms(company)).isdisjoint(query_terms(whose))


def _name_before(node: Node, office: int, first: int) -> tuple[int, int] | None:
    """Return where the last person's name from ``first`` to an office stands, None where other words are between."""
    text = node.text
    if node.kind == ROW and (label := text.find(": ")) >= 0:
        # The label of a row names the person that its cells are about.
        label = text.rfind(". ", 0, label) + 2 if ". " in text[:label] else 0
        person = _person_at(text, label)
        if person is not None and text.startswith(":", person[1]):
            return person
    start = max(office - _MAX_GAP, first)
    for match in reversed(list(_PERSON.finditer(text, start, office))):
        person = _without_titles(text, match.start(), match.end())
        if person is not None and _BETWEEN.fullmatch(text, person[1], office):
            return person
    return None


def _name_after(node: Node, office: int, last: int) -> tuple[int, int] | None:
    match = _AFTER.match(node.text[office : min(office + _MAX_GAP, last)])
    if match is None:
        return None
    return _without_titles(node.text, office + match.start("name"), office + match.end("name"))


def _person_at(text: str, start: int) -> tuple[int, int] | None:
    match = _PERSON.match(text, start)
    return None if match is None else _without_titles(text, match.start(), match.end())


def _without_titles(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the range of a name without the offices at its end; None for what is no person's name."""
    words = list(re.finditer(r"\S+", text[start:end]))
    while words and words[-1].group().strip(".,").casefold() in _NO_NAME:
        words.pop()
    while (
        words
        and words[0].group().strip(".,").casefold() in _NO_NAME
        and not _HONORIFIC.match(text[start:end])
    ):
        words.pop(0)
    # Signatures print a name twice: "Ada Pell Ada Pell, Chairman".
    again = next((n for n, word in enumerate(words) if n and word.group() == words[0].group()), len(words))
    words = words[:again]
    if len(words) < 2 or any(word.group().strip(".,").casefold() in _NO_NAME for word in words[1:]):
        return None
    return start + words[0].start(), start + words[-1].end()
