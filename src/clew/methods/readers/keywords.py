"""Keywords in place of a question: "amcor ceo", "Verizon net income 2022 vs 2021".

People type into a question box what they type into a search engine. Keywords that name something that documents are
about ask for something of it: who holds an office, how many people work there, where it is, or a line item in some
years. They are read as the question that says so; other keywords stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from clew.methods.readers.headquarters import parse_headquarters_question
from clew.methods.readers.office_holders import parse_office_question

#: With such words a text is a question or a request already.
_SENTENCE = re.compile(
    r"\?|^\W*(?:list|name|tell|show|give|explain|describe|compare|summari[sz]e|find)\b"
    r"|\b(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|will"
    r"|would|shall|should|must|may)\b",
    re.IGNORECASE,
)
_MAX_WORDS = 12
_PERIOD = (
    r"(?:(?:(?:first|second|third|fourth) quarter(?: of)?|Q[1-4]|FY|fiscal(?: year)?|year) ?)*"
    r"(?<![\d.,])(?:19|20)\d\d\b"
)
#: "2022", "fiscal 2022 vs 2021", "fourth quarter 2022".
_LINK = r"(?:vs\.?|versus|to|or|against|compared (?:to|with))"
_PERIODS = re.compile(
    rf"(?:\b(?:in|for|of|during) )?{_PERIOD}(?:,? (?:and|{_LINK}) {_PERIOD})*", re.IGNORECASE
)
_LINKS = re.compile(rf"\s*\b{_LINK}(?= )", re.IGNORECASE)
#: What may stand between a name and what is asked of it.
_BORDER = re.compile(
    r"^(?:\W*(?:['’]s?|of|for|at|by|in|the)\b)*\W*|(?:\W*\b(?:of|for|at|by|in|the))*\W*$", re.IGNORECASE
)
_HEADCOUNT = re.compile(
    r"(?:(?:total )?number of |total )?(?:employees|staff|people|workers|workforce|head ?count)(?: number| count)?",
    re.IGNORECASE,
)
_SEAT = re.compile(r"hq|location", re.IGNORECASE)
#: "shares repurchased", "stores opened"; "dividends paid" is an amount.
_DONE = re.compile(r"([a-z]+s) (?!paid)([a-z]+ed)", re.IGNORECASE)


def is_keywords(text: str) -> bool:
    """Return whether a text is neither a question nor a request."""
    return _SENTENCE.search(text) is None


def complete_keywords(text: str, names: Collection[str]) -> str:
    """Return the question that keywords stand for, "" for a text that is a question or asks nothing of one of
    ``names``, the names in it that documents are about.

    >>> complete_keywords("amcor ceo", ["amcor"])
    "Who is Amcor's ceo?"
    >>> complete_keywords("net income of Verizon 2022 vs 2021", ["Verizon"])
    "What was Verizon's net income in 2022 and 2021?"
    """
    words = " ".join(text.split())
    periods = list(_PERIODS.finditer(words))
    if len(names) != 1 or len(periods) > 1 or not is_keywords(words) or len(words.split()) > _MAX_WORDS:
        return ""
    (name,) = names
    without_period = words if not periods else words[: periods[0].start()] + words[periods[0].end() :]
    parts = re.split(rf"(?<!\w){re.escape(name)}(?!\w)", without_period, maxsplit=1, flags=re.IGNORECASE)
    # What is asked stands on one side of the name.
    asked = [part for part in (_BORDER.sub("", part) for part in parts) if part]
    if len(parts) < 2 or len(asked) != 1:
        return ""
    when = re.sub(r"^(?:in|for|of|during) ", "", periods[0].group(), flags=re.IGNORECASE) if periods else ""
    return _ask(name.title() if name.islower() else name, asked[0], _LINKS.sub(" and", when))


def _ask(name: str, asked: str, when: str) -> str:
    office = f"Who is {name}'s {re.sub(r' names?$', '', asked)}?"
    if parse_office_question(office):
        return office
    if _HEADCOUNT.fullmatch(asked):
        return f"How many employees does {name} have?"
    for place in (f"What is {name}'s {asked}?", f"Where are {name}'s {asked}?"):
        if parse_headquarters_question(place):
            return place
    if _SEAT.fullmatch(asked):
        return f"Where is {name} based?"
    if done := _DONE.fullmatch(asked):
        return f"How many {done[1]} were {done[2]} by {name}{f' in {when}' if when else ''}?"
    return f"What was {name}'s {asked} in {when}?" if when else f"What is {name}'s {asked}?"
