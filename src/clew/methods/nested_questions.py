"""Questions inside questions, taken apart by rule: "How long is the vessel that Ottilie Brandt commands?".

A noun phrase that is described instead of named is a question of its own: which vessel does Ottilie Brandt command?
Its answer takes its place in the question around it: how long is it? The innermost phrase is taken out first:

- "the son of NAME", where the noun names a relation or somebody who does something ("the purser of the Heron Queen");
- "the ship captained by NAME";
- "the vessel that NAME commands", "the firm that built NAME", "the ship whose captain is NAME", "the man to whom";
- "NAME's son".

Where a relative clause ends is known from its words alone: at the verb after a name, at a verb of the question around
it ("Where was the diver who raised the bell *born*?"), else at the end of the question.

:mod:`clew.methods.readers.composition` takes fewer questions apart, for a reader of passages alone; there a wrong cut
costs an answer, here the whole question is asked as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from clew.core.text import is_stop_term, stem
from clew.triples.language.chain import Chain, Term, Triple

#: Function words of questions that a list of stop words for passages does not have.
QUESTION_WORDS = frozenset(
    "who whom whose which what when where how does did do list name find give show tell me".split()
)
#: A question is taken apart into at most this many.
MAX_HOPS = 4
#: Characters of the longest question that is taken apart: looking for its phrases takes the square of them.
_MAX_LENGTH = 1000

_CAPITAL = r"(?:[^\W\d_a-zà-öø-ÿ](?:[\w.&-]|['’](?!s\b))*|#\d|\d+)"
#: A name: words with capitals, and small words between them.
_NAME = rf"(?:\"[^\"]+\"|{_CAPITAL}(?:(?: (?:at|of|the|in|and|&|de|von|van|for|on|to))* {_CAPITAL})*)"
_NOUN = r"(?:[a-z][\w-]* ){0,2}?[a-z][\w-]*"
_PARTICIPLE = (
    r"(?:\w+ed|built|made|written|sung|led|sold|bought|held|kept|run|found|taught|won|drawn|sent|lent|given)"
)
_DESCRIBED = re.compile(
    rf"\b[Tt]he (?P<noun>{_NOUN}) (?P<link>of|that|which|who|whose|(?:to|for|by|from|with) (?:whom|which)"
    rf"|{_PARTICIPLE} (?:by|at|in|for|to|from|on))(?= )"
)
_POSSESSIVE = re.compile(rf"(?P<name>{_NAME})(?:['’]s|(?<=s)['’]) (?P<noun>{_NOUN})\b")
_STARTS_WITH_NAME = re.compile(rf" (?:the )?(?P<name>{_NAME})")
_AUXILIARY = re.compile(r"\b(?:is|was|are|were|did|does|do|has|have|had|may|can|could|will|would)\s*$", re.I)
_LAST_VERB = re.compile(
    rf"\s(?P<verb>(?:{_PARTICIPLE}|born|based|lost|die|died|lie|live|come from|located|buried))$"
)
#: Nouns that end as if they did something, and do not.
_NO_AGENTS = frozenset(
    "number order chapter letter paper river water quarter centre center corner border layer tower weather winter "
    "summer power matter factor error colour color silver powder register charter harbour offer answer question "
    "version edition section other another former latter rather whether either neither over under".split()
)
_AGENT = re.compile(r"(?:er|or|ist|man|woman|ian|ess|eer|ier|ant)$")
_PERSONS = frozenset("man woman person people one somebody someone".split())


@dataclass(frozen=True, slots=True)
class HopQuestion:
    """A question of one hop. ``text`` has ``#1``, ``#2``, ... for the answers of the hops before it. ``head`` and
    ``relation`` say the same as the triple ``head >> relation >> #n``."""

    text: str
    head: str
    relation: str


@dataclass(frozen=True, slots=True)
class NestedQuestion:
    """A question as hops; the answer of the last is the answer."""

    hops: tuple[HopQuestion, ...]

    @property
    def chain(self) -> Chain:
        """The hops as a chain, which a person can change and ask again."""
        triples = [
            Triple(Term(hop.head), hop.relation, Term(f"#{number}"))
            for number, hop in enumerate(self.hops, 1)
        ]
        return Chain(tuple(triples), len(triples))


def take_apart(question: str, names_relation: Callable[[str], bool]) -> NestedQuestion | None:
    """Return the hops of a question, innermost first; None where it is of one hop.

    ``names_relation`` says whether a noun names a relation of a graph.

    >>> [hop.text for hop in take_apart("How long is the vessel that Ottilie Brandt commands?", bool).hops]
    ['Which vessel Ottilie Brandt commands?', 'How long is #1?']
    >>> [hop.text for hop in take_apart("Who founded the firm that built the Lady Annis?", bool).hops]
    ['Which firm built the Lady Annis?', 'Who founded #1?']

    A question with a number sign of its own ("memo #1") is of one hop: hops name earlier answers so.
    """
    text = " ".join(question.split()).rstrip(" ?.!")
    if len(text) > _MAX_LENGTH or re.search(r"#\d", text):
        return None
    hops: list[HopQuestion] = []
    while len(hops) < MAX_HOPS - 1:
        phrase = _innermost_phrase(text, names_relation)
        if phrase is None:
            break
        start, end, asked = phrase
        outer = f"{text[:start]}#{len(hops) + 1}{text[end:]}"
        if not _asks_more(outer):
            break  # "Who is the son of #1?" asks for the phrase itself
        hops.append(_to_hop(asked))
        text = outer
    if not hops:
        return None
    return NestedQuestion((*hops, _to_hop(f"{text}?")))


def _innermost_phrase(text: str, names_relation: Callable[[str], bool]) -> tuple[int, int, str] | None:
    """Return where the last described noun phrase begins and ends, and the question that it is."""
    phrases = []
    for match in _each_match(_DESCRIBED, text):
        phrase = _described_phrase(text, match, names_relation)
        if phrase is not None:
            phrases.append(phrase)
    for match in _POSSESSIVE.finditer(text):
        if _is_role(match["noun"], names_relation):
            phrases.append((match.start(), match.end(), _ask_role(match["noun"], match["name"])))
    # The whole of a question that begins with what it describes ("The son of Ada is who?") is no phrase inside it.
    inside = [phrase for phrase in phrases if phrase[0] > 0]
    return max(inside, default=None)


def _each_match(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the matches that begin at each place: one phrase may begin inside another."""
    matches = []
    position = 0
    while (match := pattern.search(text, position)) is not None:
        matches.append(match)
        position = match.start() + 1
    return matches


def _described_phrase(
    text: str, match: re.Match[str], names_relation: Callable[[str], bool]
) -> tuple[int, int, str] | None:
    noun, link, rest = match["noun"], match["link"], text[match.end() :]
    words = noun.split()
    if any(word in {"of", "in", "and", "or", "on", "at", "that", "which", "who", "by"} for word in words):
        return None
    if link == "of":
        if not _is_role(noun, names_relation):
            return None
        own = _STARTS_WITH_NAME.match(rest)
        size = own.end() if own else _without_last_verb(text[: match.start()], rest)
        return match.start(), match.end() + size, _ask_role(noun, rest[:size].strip())
    if link in {"that", "which", "who"}:
        size, is_object = _clause_size(text[: match.start()], rest)
        clause = rest[:size].strip()
        if words[-1] in _PERSONS and not is_object:
            return match.start(), match.end() + size, f"Who {clause}?"
        return match.start(), match.end() + size, f"Which {noun} {clause}?"
    if link == "whose" or link.endswith(("whom", "which")):
        size = _without_last_verb(text[: match.start()], rest)
        clause = rest[:size].strip()
        asked = (
            f"Which {noun}'s {clause}?"
            if link == "whose"
            else f"{link.split()[0].title()} which {noun} {clause}?"
        )
        return match.start(), match.end() + size, asked
    own = _STARTS_WITH_NAME.match(rest)
    size = own.end() if own else _without_last_verb(text[: match.start()], rest)
    return match.start(), match.end() + size, f"Which {noun} was {link} {rest[:size].strip()}?"


def _clause_size(before: str, rest: str) -> tuple[int, bool]:
    """Return how many characters of ``rest`` belong to a relative clause, and whether its subject stands in it: "that
    Ottilie commands" ends with its verb, "that built the Annis" where the question ends or its own verb begins."""
    own = _STARTS_WITH_NAME.match(rest)
    if own is not None:
        verb = re.match(
            r" [a-z][\w-]*(?: (?:by|for|in|at|to|on|with|of)(?= (?!the\b)[a-z]|$))?", rest[own.end() :]
        )
        return own.end() + (verb.end() if verb else 0), True
    return _without_last_verb(before, rest), False


def _without_last_verb(before: str, rest: str) -> int:
    """Return the length of ``rest`` without the verb of the question around it: "Where was the diver ... born?"."""
    last = _LAST_VERB.search(rest) if _AUXILIARY.search(before) else None
    return last.start() if last and last.start() > 1 else len(rest)


def _is_role(noun: str, names_relation: Callable[[str], bool]) -> bool:
    """Return whether a noun before "of" leads to another thing: by a relation, or as one who does something."""
    word = noun.split()[-1]
    if word in _NO_AGENTS or (word.endswith("s") and not word.endswith("ss")):
        return False  # "the authors of": of several things the next hop cannot be asked as of one
    return names_relation(word) or bool(_AGENT.search(word))


def _ask_role(noun: str, name: str) -> str:
    word = noun.split()[-1]
    asks = "Who" if _AGENT.search(word) else "What"
    return f"{asks} is the {noun} of {name}?"


def _asks_more(text: str) -> bool:
    """Return whether a question still asks something about the hops that were taken out of it."""
    words = re.findall(r"[a-z]+", re.sub(r"#\d", " ", text.lower()))
    return "#" in text and any(word not in QUESTION_WORDS and not is_stop_term(stem(word)) for word in words)


_HEAD = re.compile(rf"#\d|{_NAME}")


def _to_hop(asked: str) -> HopQuestion:
    """Return a question of one hop with its triple: the last name in it, and its other words."""
    text = asked.rstrip("?")
    references = re.findall(r"#\d", text)
    names = [match.group() for match in _HEAD.finditer(text) if match.start() > 0 or match.group()[0] in '#"']
    head = references[-1] if references else names[-1] if names else ""
    if not head:
        words = text.split()
        return HopQuestion(asked, " ".join(words[2:]) or text, " ".join(words[1:2]) or "is")
    others = re.findall(r"[\w'’-]+", text.replace(head, " ", 1))
    relation = " ".join(
        word for word in others if word.lower() not in QUESTION_WORDS and not is_stop_term(stem(word.lower()))
    )
    return HopQuestion(asked, head, relation or "is")
