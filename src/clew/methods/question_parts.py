"""Several questions in one: "Who built the Heron Queen, and when?" taken apart by rule.

:func:`split_question` returns the parts, as they are written and as questions that stand alone. A part that names
nothing ("which countries does the note list?", "when?") is given what the first is about, in brackets.

A sentence that asks once stays whole: one with a condition before its question ("In 2019, what ..."), with relative
clauses ("the man who sang and who wrote it"), or with a clause that only looks like a question ("what it does and how
they use it"), where no verb comes before the subject.

Questions inside questions, where one needs the other's answer, are taken apart by
:mod:`clew.methods.nested_questions`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clew.questions.follow_up import Asked

#: A text with more questions than this is left as it is.
MAX_PARTS = 4
_LEAD = r"(?:(?:of|with|for|in|by|from|to|at|on|under|after|before) )?"
_WORD = r"(?:what|which|who|whom|when|where|why|how)\b(?!['’]s\b)"
_BORDER = re.compile(rf"(?:[?,;]? and|\? also|[?,;]) (?={_LEAD}{_WORD})", re.IGNORECASE)
_AUXILIARY = (
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)\b"
)
_PRONOUNS = "it its they them their he she his her him this that these those"
#: A question word is followed by its verb, or is the subject, or has a noun and a verb: no pronoun stands first.
_CLAUSE = re.compile(
    rf"{_LEAD}(?:(?:when|where|why|whom) {_AUXILIARY}"
    rf"|(?:who|what|which) (?!(?:{_PRONOUNS.replace(' ', '|')}|we|you)\b)\w"
    rf"|how (?:{_AUXILIARY}|(?:many|much) |[\w-]+ {_AUXILIARY}))",
    re.IGNORECASE,
)
#: A later part may be a question word alone, or with a noun.
_ELLIPSIS = re.compile(rf"{_LEAD}{_WORD}(?: [\w-]+)?$", re.IGNORECASE)
_RELATIVE = re.compile(r"\b(?:that|which|who|whom|whose|where|when|how|why)\b", re.IGNORECASE)
_ASKING = re.compile(
    rf"^{_LEAD}(?:how [\w-]+|{_WORD})(?: (?:share|percentage|percent|number|amount) of)?(?: {_AUXILIARY})?\s*",
    re.IGNORECASE,
)
_LAST_VERB = re.compile(r" ([a-z]+(?:ed|en|wn|ld|orn|lt|st|pt|nt|ade))$")
#: "when was the Heron Queen": a question for a time, a place or a reason that has an auxiliary and a subject alone.
_BARE_CLAUSE = re.compile(
    r"(?:when|where|why|how) (?:was|were|did|does|do) (?:the )?(?:[A-Z][\w.'’-]*(?: (?:of )?|$))+$"
)
_CHOICE = re.compile(r", .+ or ")
_BARE_WHICH = re.compile(rf"which {_AUXILIARY}", re.IGNORECASE)
_ASKED_NOUN = re.compile(rf"(?:which|what) (?!{_AUXILIARY})([a-z]+) ", re.IGNORECASE)
_OWNED = re.compile(r"\b(?:its|their)\b", re.IGNORECASE)
_PERSONAL = re.compile(r"\b(?:he|she|him)\b", re.IGNORECASE)
_PRONOUN = re.compile(rf"\b(?:{_PRONOUNS.replace(' ', '|')})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """One of several questions: as it is ``written``, and as a question that stands ``alone``."""

    written: str
    alone: str


def split_question(question: str) -> tuple[QuestionPart, ...]:
    """Return the questions that a text asks, in its order; () where it asks once.

    >>> [part.alone for part in split_question("Who built the Heron Queen, and when?")]
    ['Who built the Heron Queen?', 'When (the Heron Queen)?']
    >>> split_question("In 2019, what was the revenue?")
    ()
    """
    text = " ".join(question.split()).rstrip("?!. ")
    borders = [match.group().casefold() for match in _BORDER.finditer(text)]
    parts = [part.strip(" ,;?") for part in _BORDER.split(text)]
    # A comma alone joins a clause or a list's items; the last item comes after "and".
    if not 1 < len(parts) <= MAX_PARTS or not ("and" in borders[-1] or "?" in borders[-1]):
        return ()
    first, later = parts[0], parts[1:]
    asking = _ASKING.match(first)
    if asking is None or not _CLAUSE.match(first) or _RELATIVE.search(first, asking.end()):
        return ()
    if len(first.split()) < 3 or not all(_CLAUSE.match(part) or _ELLIPSIS.match(part) for part in later):
        return ()
    if any(_CHOICE.search(part) for part in later):
        return ()  # "Which is longer and which is older, A or B?"
    # What is done stands before what it is done to: "the report" for "Who wrote the report".
    topic = re.sub(r"^[a-z]+ (?=(?:the|an?) |[A-Z])", "", first[asking.end() :])
    return (
        QuestionPart(f"{first}?", f"{first}?"),
        *(QuestionPart(_as_question(part), _complete(part, first, topic)) for part in later),
    )


def _complete(part: str, first: str, topic: str) -> str:
    """Return a later part with what it leaves out. A year makes it a question of its own, as a name does."""
    names = [phrase.text for phrase in Asked(first).phrases if phrase.kind == "name" and phrase.start]
    owner = next(iter(names), "")
    if owner and (person := _PERSONAL.search(part)):
        return _as_question(f"{part[: person.start()]}{owner}{part[person.end() :]}")
    if owner and _OWNED.search(part) and _PRONOUN.search(_OWNED.sub(" ", part)) is None:
        owner = re.sub(r"['’]s?$", "", owner)
        return _as_question(_OWNED.sub(f"{owner}'s", part, count=1))
    if _BARE_WHICH.match(part) and (noun := _ASKED_NOUN.match(first)):
        return _as_question(f"{part[:5]} {noun[1]}{part[5:]}")
    if (verb := _left_out_verb(part, first)) is not None:
        return f"{_as_question(part)[:-1]} {verb}?"
    names_nothing = all(phrase.kind == "noun" for phrase in Asked(part).phrases)
    if _PRONOUN.search(part) or _ELLIPSIS.match(part) or (names_nothing and names):
        return f"{_as_question(part)[:-1]} ({topic})?"
    return _as_question(part)


def _left_out_verb(part: str, first: str) -> str | None:
    """Return the verb at the end of the first question that a later one leaves out: "built" for "When was the Heron
    Maid built, and when was the Heron Queen?"; None where it has its own."""
    verb = _LAST_VERB.search(first)
    form = _BARE_CLAUSE.match(part)
    if verb is None or form is None or _LAST_VERB.search(part):
        return None
    return verb[1]


def _as_question(part: str) -> str:
    return f"{part[:1].upper()}{part[1:]}?"
