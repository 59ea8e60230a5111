"""Verdicts on claims: the labels of FEVER (Thorne et al., NAACL 2018), and reading them out of what a model wrote."""

from __future__ import annotations

import re

from clew.prompts import clean_reply

SUPPORTS, REFUTES, NOT_ENOUGH = "SUPPORTS", "REFUTES", "NOT ENOUGH INFO"
LABELS = (SUPPORTS, REFUTES, NOT_ENOUGH)

_SAID = re.compile(r"\b(?:answer|label|verdict)\b\W*(?:(?:is|would be)\b)?", re.IGNORECASE)
_EXACT = re.compile(r"\b(?:(SUPPORT)(?:S|ED)|(REFUTE)[SD]|(NOT ENOUGH INFO)(?:RMATION)?)\b")
# The first that matches at a place counts, so what is denied stands before what is said.
_WORDS = re.compile(
    r"(?P<lacking>not[\s_-]+enough[\s_-]+(?:info\w*|evidence)|insufficient\s+(?:info\w*|evidence)"
    r"|neither\s+(?:true|support\w*|refut\w*|confirm\w*)|\bNEI\b|\bunverifi\w+|\bunsupported|\bunclear|\bunknown"
    r"|not\s+(?:\w+\s+)?(?:support\w*|refut\w*|known|clear|confirm\w*|verifi\w+)"
    r"|(?:can\s?not|can't|could\s+not|impossible\s+to)\s+(?:be\s+)?(?:determin|verif|confirm|tell|sa[iy]|know)\w*"
    r"|no\s+(?:\w+\s+)?(?:evidence|information))"
    r"|(?P<denied>not\s+(?:\w+\s+)?(?:false|incorrect|inaccurate|wrong|untrue))"
    r"|(?P<refutes>\brefut\w+|\bfalse\b|\bcontradict\w*|\bincorrect\b|\binaccurate\b|\bwrong\b|\buntrue\b"
    r"|\bdisprove\w*|not\s+(?:\w+\s+)?(?:true|correct|accurate|right))"
    r"|(?P<supports>\bsupport(?:s|ed)\b|\btrue\b|\bcorrect\b|\baccurate\b|\bconfirm(?:s|ed)\b|\bverified\b"
    r"|\bentail\w*)",
    re.IGNORECASE,
)
_YES_NO = re.compile(r"^\W*(?P<said>yes|no)\b(?!\s+(?:\w+\s+)?(?:evidence|information))", re.IGNORECASE)


def parse_label(reply: str) -> str:
    """Return the label that a reply gives, in FEVER's words or the usual ones (true, false, supported, refuted, not
    enough information); "" where it gives none.

    What follows "answer is", "label" or "verdict" counts first, then the label itself in capitals, then the first
    word for one. A reply that has several labels in capitals and no verdict has only repeated what was asked.

    >>> label_in("It was lit in 1871. So the answer is: SUPPORTS."), label_in("The claim is not true.")
    ('SUPPORTS', 'REFUTES')
    """
    text = clean_reply(reply)
    for said in reversed([*_SAID.finditer(text)]):
        if label := _first(text[said.end() :].lstrip(" \t\n*_:\"'`").partition("\n")[0]):
            return label
    return _first(text)


def _first(text: str) -> str:
    exact = {_label(found) for found in _EXACT.finditer(text)}
    if exact:
        return exact.pop() if len(exact) == 1 else ""
    if yes_or_no := _YES_NO.match(text):
        return SUPPORTS if yes_or_no["said"].casefold() == "yes" else REFUTES
    word = _WORDS.search(text)
    if word is None:
        return ""
    return NOT_ENOUGH if word["lacking"] else REFUTES if word["refutes"] else SUPPORTS


def _label(found: re.Match[str]) -> str:
    return SUPPORTS if found[1] else REFUTES if found[2] else NOT_ENOUGH
