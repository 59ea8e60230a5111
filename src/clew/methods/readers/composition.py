"""Questions of several hops, taken apart by rule into questions of one hop, so that a reader can answer them in turn.

These questions are taken apart; every other question stays whole.

- Comparisons of two things, directly or by something of theirs: "Who was born first, A or B?", "Which film has the
  director who died later, A or B?", "Are A and B from the same country?". Each side is read by itself, and the rules
  of :mod:`clew.core.values` compare the values.
- Two questions in one: "What did the bridge cost, and who paid for it?".
- Nested questions: "When was the director of A born?" becomes "Who is the director of A?", and, with the answer in
  its place, "When was #1 born?".

Self-ask (Press et al., EMNLP Findings 2023) has a language model write such sub-questions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from clew.core.values import EITHER, POLAR, asks_for_equality, remove_names, settle_values

#: How a relation is asked for, best wording first; any other relation is asked for by its own name.
RELATION_QUESTIONS = {
    "director": ("Who directed {}?", "Who is the director of {}?"),
    "date of birth": ("When was {} born?", "What is the date of birth of {}?"),
    "date of death": ("When did {} die?", "What is the date of death of {}?"),
    "place of birth": ("Where was {} born?", "What is the place of birth of {}?"),
    "place of death": ("Where did {} die?", "What is the place of death of {}?"),
    "country of citizenship": ("What nationality is {}?", "Which country is {} from?"),
    "country of origin": ("Which country is {} from?", "What is the country of origin of {}?"),
    "country": ("In which country is {}?", "Which country is {} in?"),
    "publication date": ("When was {} released?", "In which year did {} come out?"),
    "performer": ("Who performed {}?", "Who is the performer of {}?"),
    "composer": ("Who composed {}?", "Who wrote the music of {}?"),
    "spouse": ("Who is the spouse of {}?", "Who was {} married to?"),
    "capital": ("What is the capital of {}?",),
    "headquarters": ("Where is the headquarters of {}?",),
    "birthplace": ("Where was {} born?",),
    "father": ("Who is the father of {}?",),
    "mother": ("Who is the mother of {}?",),
    "inception": ("When was {} founded?", "When was {} established?"),
}


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A question of one hop. ``text`` has ``#1``, ``#2``, ... in place of the answers of sub-questions before it;
    ``about`` is the name that it asks about: a name of the question, or such a reference, "" for none."""

    text: str
    about: str


@dataclass(frozen=True, slots=True)
class Composition:
    """A question as sub-questions, and how their answers make the answer.

    ``value``: the answer is that of the last sub-question. ``compare``: the answers of the sub-questions numbered
    ``sides`` (from 1), which are about ``names``, are compared as the question asks
    (:func:`clew.core.values.settle_values`). ``all``: every answer is part of the answer.
    """

    parts: tuple[SubQuestion, ...]
    ending: Literal["value", "compare", "all"]
    sides: tuple[int, int] = (0, 0)
    names: tuple[str, str] = ("", "")


#: What a comparison compares, by its words; the first that matches counts.
_COMPARED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), relation)
    for pattern, relation in (
        (r"\b(?:born|older|oldest|younger|youngest)\b", "date of birth"),
        (r"\b(?:died|dies|dead)\b", "date of death"),
        (r"\b(?:c[ao]me out|releas\w+|publi\w+|premiered|aired|debuted)\b", "publication date"),
        (
            r"\b(?:founded|established|started|form\w+|created|opened|incorporated|inception|built)\b",
            "inception",
        ),
        (r"\b(?:nationality|citizenship|citizens?)\b", "country of citizenship"),
        (r"\b(?:located|situated|in)\b.*\bcountry\b", "country"),
        (r"\bcountry\b", "country of origin"),
    )
)
#: People who belong to a work: "the directors of both films".
_POSSESSED = re.compile(r"\b(director|performer|composer|author|writer|founder|producer)s?\b", re.IGNORECASE)
#: Relations that a nested question may ask through, by their words.
_ROLES = (
    "director performer composer author writer founder producer creator singer editor publisher developer"
    " manufacturer owner father mother spouse husband wife son daughter child sibling brother sister employer"
    " birthplace capital headquarters predecessor successor"
).split()
_RELATIONS = rf"(?:place of birth|place of death|country of origin|{'|'.join(_ROLES)})"
#: Relations over two steps.
_TWO_STEPS = {
    "paternal grandfather": ("father", "father"),
    "paternal grandmother": ("father", "mother"),
    "maternal grandfather": ("mother", "father"),
    "maternal grandmother": ("mother", "mother"),
    "father-in-law": ("spouse", "father"),
    "mother-in-law": ("spouse", "mother"),
    "sibling-in-law": ("spouse", "sibling"),
    "stepfather": ("mother", "husband"),
    "stepmother": ("father", "wife"),
}
_NAME_START = r"(?:[\"“'‘¿¡]?[^\W_a-zà-öø-ÿ])"
#: Words between the beginning of a comparison and its first name: "both villages,", "the director of film".
_LEAD = r"(?:[a-z]+[,:]?\s+)*"
_NAME = rf"{_LEAD}(?P<{{}}>{_NAME_START}[^?]*?)"
_TAIL = (
    r"(?P<tail>,?\s+(?:both\s+|all\s+)?(?:from|of (?:the )?(?:same|different)|in|on|located|situated|that|share|have"
    r"|having|originat\w*|based|born|with)\b"
)
_FIRST, _SECOND = _NAME.format("first"), _NAME.format("second")
_ORDERS = (
    re.compile(rf"^(?:Was|Is|Did|Were|Does)\s+{_FIRST},? or {_SECOND}\s+(?P<tail>[a-z][a-z\s]*)\?*$"),
    re.compile(rf"^(?P<head>[^,:;]*?\b)(?:out of|between|among|of)\s+{_FIRST},? and {_SECOND}\s*\?*$"),
    re.compile(rf"^Between\s+{_FIRST},? and {_SECOND},\s*(?P<tail>.*)$"),
    re.compile(rf"^(?P<head>.*?)[,:;]\s*{_FIRST},? or {_SECOND}\s*\?*$"),
    re.compile(
        rf"^(?P<head>.*?\b(?:first|last|earlier|later|older|younger|longer))\s+{_FIRST},? or {_SECOND}\s*\?*$"
    ),
)
_EQUALITIES = (
    re.compile(rf"^\w+\s+{_FIRST}\s+(?:have|share|has)\s+the same (?P<tail>[a-z ]+?) as\s+{_SECOND}\s*\?*$"),
    re.compile(rf"^\w+\s+{_FIRST},?\s+and\s+{_SECOND}{_TAIL}[^?]*\b(?:same|different|share|common)\b.*)$"),
    re.compile(rf"^\w+\s+{_FIRST},?\s+and\s+{_SECOND}(?P<tail>\s+(?:share|differ)\b.*)$"),
)
#: Where the name of a nested question ends: words of the outer question behind it.
_BEHIND = (
    r"(?:born|die|died|is|was|are|were|from|located|educated|study|studied|graduate|graduated|work|worked|win|won|get|got"
    r"|marry|married|live|lived|buried|receive|received|hold|do|did|has|have|play|attend|birthday|a citizen of)"
)
_INNER = re.compile(
    rf"\b(?:[Tt]he )?(?P<relation>{_RELATIONS})s? of (?:the )?(?:[a-z]+ )?(?P<name>{_NAME_START}.*?)"
    rf"(?P<behind>(?: ?['’]s)?\s+{_BEHIND}\b[^A-Z]*)?\??$"
)
_POSSESSIVE = re.compile(
    rf"(?<=[a-z] )(?P<name>{_NAME_START}[^?]*?)['’]s? (?P<relation>{_RELATIONS}|{'|'.join(_TWO_STEPS)})"
    r"(?P<behind>\s[^A-Z]*)?\??$"
)
_TWO_STEPS_OF = re.compile(
    rf"\b[Tt]he (?P<relation>{'|'.join(_TWO_STEPS)}) of (?P<name>{_NAME_START}.*?)\??$"
)
#: Words that ask for nothing: a question with no others around the inner one is not nested.
_EMPTY_WORDS = frozenset(
    "what who which where when is was are were the a an of name s in did do does".split()
)


def compose_question(question: str) -> Composition | None:
    """Return how a question is answered from several readings, None for a question that stays whole.

    >>> [part.text for part in compose_question("When was the director of film Red Dust born?").parts]
    ['Who directed Red Dust?', 'When was #1 born?']
    >>> compose_question("Who was born first, Ada Pell or Bo Lind?").names
    ('Ada Pell', 'Bo Lind')

    A question with a number sign of its own ("memo #1") stays whole: its parts name earlier answers so.
    """
    question = " ".join(question.split())
    if re.search(r"#\d", question):
        return None
    return _split_question(question) or _compose_comparison(question) or _compose_nested(question)


_SEVERAL = re.compile(
    r"^(?P<first>.{12,}?),? and "
    r"(?P<second>(?:(?:in|on|at|for|by|to|from|of) )?(?:what|who|when|where|which|how)\b.{8,}?)\?*$",
    re.IGNORECASE,
)


def _split_question(question: str) -> Composition | None:
    """Return the parts of a question that asks two things: "What did it cost, and who paid?"."""
    match = _SEVERAL.match(question)
    if match is None or not _ASKS.match(match["first"]):
        return None
    parts = (SubQuestion(f"{match['first']}?", ""), SubQuestion(_capitalise(match["second"]) + "?", ""))
    return Composition(parts, "all")


_ASKS = re.compile(r"^(?:(?:in|on|at|for|by|to|from|of) )?(?:what|who|when|where|which|how)\b", re.IGNORECASE)


def _capitalise(text: str) -> str:
    return text[0].upper() + text[1:]


def _compose_comparison(question: str) -> Composition | None:
    is_equality = bool(POLAR.search(question)) and asks_for_equality(question) is not None
    forms = _EQUALITIES if is_equality and not EITHER.search(question) else _ORDERS
    match = next(filter(None, (form.match(question) for form in forms)), None)
    if match is None:
        return None
    names = match["first"].strip(" ,"), match["second"].strip(" ,")
    words = remove_names(list(names), question)
    relation = next((relation for pattern, relation in _COMPARED if pattern.search(words)), "")
    if not relation:
        return None
    possessed = _POSSESSED.search(words)
    if possessed and relation.startswith("country"):
        relation = "country of citizenship"
    parts: list[SubQuestion] = []
    sides: list[int] = []
    for name in names:
        about = name
        if possessed:
            parts.append(SubQuestion(ask_relation(possessed[1].lower(), name), name))
            about = f"#{len(parts)}"
        parts.append(SubQuestion(ask_relation(relation, about), about))
        sides.append(len(parts))
    return Composition(tuple(parts), "compare", (sides[0], sides[1]), names)


def ask_relation(relation: str, name: str) -> str:
    """Return the question for a relation of a name."""
    return RELATION_QUESTIONS.get(relation, (f"Who is the {relation} of {{}}?",))[0].format(name)


def _compose_nested(question: str) -> Composition | None:
    for form in (_TWO_STEPS_OF, _INNER, _POSSESSIVE):
        if match := form.search(question):
            break
    else:
        return None
    name, relation = match["name"].strip(" ,"), match["relation"].lower()
    before = question[: match.start()]
    behind = (match.groupdict().get("behind") or "").strip(" ?")
    if steps := _TWO_STEPS.get(relation):
        first = SubQuestion(ask_relation(steps[0], name), name)
        return Composition((first, SubQuestion(ask_relation(steps[1], "#1"), "#1")), "value")
    words = [word for word in re.findall(r"[a-z]+", f"{before} {behind}".lower()) if word not in _EMPTY_WORDS]
    if not words:
        return None
    outer = " ".join(f"{before}#1 {behind}".replace(" 's", "'s").split()) + "?"
    inner = SubQuestion(ask_relation(relation, name), name)
    return Composition((inner, SubQuestion(outer.replace("#1 's", "#1's"), "#1")), "value")


def compose_answer(question: str, composition: Composition, values: list[str]) -> str:
    """Return the answer that the answers of all sub-questions make, "" where none follows."""
    if composition.ending == "value":
        return values[-1]
    if composition.ending == "all":
        return "; ".join(values)
    first, second = ([values[side - 1]] for side in composition.sides)
    settled = settle_values(question, composition.names, (first, second))
    return settled.text if settled else ""
