"""Follow-up questions: "and in 2021?", "who built it?", "what about the Bittern?" made to stand alone.

:func:`make_standalone` does so by rules, without a model: a pronoun is replaced by what the question before was about
or by its answer, and an ellipsis ("and in 2021?") by the question before with the part of the same kind exchanged.
It is a pure function of three texts. English, and bare years in other languages; what it cannot resolve it leaves.
:func:`rewrite_standalone` asks a model where there is one.

The kinds of answers follow from the question word (who: a person or company, where: a place, when: a time), as in the
typing of answers by Li and Roth, *Learning Question Classifiers* (COLING 2002), section 2; which of several names a
pronoun means follows the order of centring (Grosz, Joshi and Weinstein, *Centering*, Computational Linguistics 1995,
section 5): the subject before other names, and the question's name before the answer's where the answer is no name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import load_prompt
from clew.core.types import Usage

if TYPE_CHECKING:
    from clew.core.protocols import LanguageModel

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_YEAR = r"(?:1[4-9]|20)\d\d"
_TIME = re.compile(
    rf"\b(?:{_YEAR}|{_MONTHS}|Q[1-4]|quarter|half|month|week|day|year|season|century|summer|winter)\b", re.I
)
_PREPOSITIONS = frozenset(
    "in on at by for from to of during before after with without between within until since under over per "
    "through into against about among as than".split()
)
_AUXILIARIES = frozenset(
    "is are was were be been do does did has have had can could will would shall should may might must".split()
)
_WH = frozenset("who whom whose what which when where why how".split())
_DETERMINERS = frozenset("the a an this that these those its his her their our my your".split())
_STOPS = (
    _PREPOSITIONS
    | _AUXILIARIES
    | _WH
    | _DETERMINERS
    | frozenset("and or but if not it he she they them him there then that because while".split())
)
#: Verbs whose past participle is not their past tense.
_PARTICIPLES = {
    "wrote": "written",
    "gave": "given",
    "took": "taken",
    "chose": "chosen",
    "drew": "drawn",
    "began": "begun",
    "saw": "seen",
    "did": "done",
    "broke": "broken",
    "stole": "stolen",
    "sang": "sung",
    "wore": "worn",
    "spoke": "spoken",
    "became": "become",
    "grew": "grown",
    "knew": "known",
    "showed": "shown",
    "ran": "run",
    "overthrew": "overthrown",
    "drove": "driven",
}
#: What "it" stands for nothing before.
_WEATHER = re.compile(r"it (?:rain|snow|possible|true|likely|necessary|legal|allowed|worth|take|mean)", re.I)
_OPENERS = re.compile(
    r"^(?:(?:and|or|but|also|then|so|ok|okay|und|et|y|only|just)\b[\s,]*)*"
    r"(?:(?:what|how) about\b|what of\b)?[\s,]*(?:(?:only|just)\b\s*)?",
    re.I,
)
#: An answer to "who" that "it" can stand for.
_ORGANISATION = re.compile(
    r"\b(?:AG|SE|plc|PLC|LLP|LLC|Ltd|Inc|Corp|GmbH|Company|Corporation|Group|Bank|University|Council)\b| & "
)
#: Words of an answer that is inserted for a pronoun.
_MAX_ANSWER_WORDS = 8
#: Words of a fragment.
_MAX_FRAGMENT = 8


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of a question: its text with its article, where it lies, and whether it is a name."""

    text: str
    start: int
    end: int
    is_name: bool = False
    is_agent: bool = False

    @property
    def words(self) -> frozenset[str]:
        """Its words without articles, in lower case."""
        return frozenset(re.findall(r"\w+", self.text.casefold())) - {"the", "a", "an"}


def make_standalone(follow_up: str, question: str, answer: str = "") -> str:
    """Return a follow-up as a question that stands alone; unchanged where it does already or cannot be resolved.

    ``question`` is the question before, itself stand-alone, and ``answer`` its answer, "" for none.

    >>> make_standalone("and in 1930?", "How many people crossed in July 1931?")
    'How many people crossed in July 1930?'
    >>> make_standalone("who built it?", "How long is the Heron Queen?", "148 feet")
    'Who built the Heron Queen?'
    """
    before = " ".join(question.split()).rstrip("?!. ")
    typed = " ".join(follow_up.split())
    words = typed.rstrip("?!. ")
    if not before or not words or words.casefold() == before.casefold():
        return typed
    context = _Context(before, answer.strip())
    opener = _OPENERS.match(words)
    rest = words[opener.end() :] if opener else words
    if not rest:
        return typed
    rewritten = ""
    if _is_fragment(rest, has_opener=len(rest) < len(words), asks=typed.endswith("?")):
        rewritten = context.fill_ellipsis(context.resolve_pronouns(rest))
    elif (resolved := context.resolve_pronouns(rest)) != rest:
        rewritten = resolved
    if not rewritten:
        return typed
    return f"{rewritten[0].upper()}{rewritten[1:]}?"


def _is_fragment(rest: str, has_opener: bool, asks: bool) -> bool:
    """Return whether a text without its "and" is a part of a question and not a whole one."""
    words = rest.casefold().split()
    first = words[0].strip(",")
    if len(words) > _MAX_FRAGMENT or first in _AUXILIARIES or _WH & set(words[1:]):
        return False
    if first in _WH:
        return _is_wh_phrase(words)
    if any(word in _AUXILIARIES for word in words):
        return False
    begins_part = first in _PREPOSITIONS or first in {"those", "ones", "the"} or _TIME.match(rest) is not None
    return has_opener or (asks and (begins_part or rest[0].isupper())) or first in {"those", "ones"}


def _is_wh_phrase(words: Sequence[str]) -> bool:
    """Return whether words are a question word alone: "when", "why not", "how long", "which ship"."""
    if len(words) == 1 or words == ["why", "not"]:
        return True
    return words[0] in {"how", "which"} and len(words) <= 2


class _Context:
    """The question before and its answer, and what they say that a follow-up can refer to."""

    def __init__(self, question: str, answer: str) -> None:
        self.question = question
        first = re.match(r"\w+", question)
        self.wh = first.group().casefold() if first else ""
        self.names = list(find_names(question))
        self.things = list(_find_things(question, self.names))
        self.answer = answer if _can_stand_for(answer) else ""
        self.main = _main_phrase(question)

    # Pronouns

    def resolve_pronouns(self, text: str) -> str:
        """Return a text with its pronouns replaced by what they stand for."""
        used: list[str] = []
        names = [phrase.start for phrase in find_names(text)]

        def replace(match: re.Match[str]) -> str:
            word = match.group()
            named_before = any(start < match.start() for start in names)
            replacement = self._antecedent(text, match, named_before, used)
            if not replacement:
                return word
            used.append(replacement)
            return replacement

        pattern = (
            r"\b(?:(?:this|that|these|those) (?!the\b|a\b|an\b)[a-z]+|the (?:latter|former)|it|its|itself|he|him|his|"
            r"she|her|hers|they|them|their|there|then|that|this|those|these)\b(?!['’])"
        )
        return re.sub(pattern, replace, text, flags=re.I)

    def _antecedent(self, text: str, match: re.Match[str], named_before: bool, used: list[str]) -> str:
        word = match.group().casefold()
        before = re.findall(r"\w+", text[: match.start()].casefold())
        after = re.findall(r"\w+", text[match.end() :].casefold())
        is_possessive = word in {"its", "his", "their"} or (
            word == "her" and bool(after) and after[0] not in _STOPS
        )
        if is_possessive and named_before:
            return ""
        if word in {"the latter", "the former"}:
            pair = sorted([*self.names, *self.things], key=lambda phrase: phrase.start)
            return pair[-1 if word.endswith("latter") else 0].text if len(pair) > 1 else ""
        if word == "then":
            return "" if not before else self._time()
        if word == "there":
            return "" if set(before[-1:] + after[:1]) & _AUXILIARIES and after else self._place(before)
        if " " in word or word in {"this", "that", "those", "these"}:
            # "the day that the ship sank": after a noun it begins a clause.
            if before and before[-1] not in _STOPS and word.startswith("th") and " " in word:
                return ""
            if word in {"this", "that"} and before and before[-1] not in _AUXILIARIES and after:
                return ""
            return self._resolve_demonstrative(word, used)
        if word == "it" and _WEATHER.match(text[match.start() :]):
            return ""
        candidates = [phrase for phrase in self._candidates(word) if phrase not in used]
        if is_possessive and len(candidates) > 1:
            # "its net income" after "Pfizer's revenue": the company's, not the revenue's.
            candidates.sort(key=lambda phrase: bool(re.search(r"['’]s? ", phrase)))
        if not candidates:
            return ""
        return _possessive(candidates[0]) if is_possessive else candidates[0]

    def _candidates(self, pronoun: str) -> Iterator[str]:
        """Yield what a pronoun may stand for, the likeliest first."""
        names = [phrase.text for phrase in self.names]
        persons = [phrase.text for phrase in self.names if not phrase.text.casefold().startswith("the ")]
        asks_name = self.wh in {"who", "whom"} or (self.wh in {"which", "what"} and self._asks_noun())
        if pronoun in {"he", "him", "his", "she", "her", "hers"}:
            if self.answer and self.wh in {"who", "whom", "which"}:
                yield self.answer
            yield from persons
            yield from (phrase.text for phrase in self.things if phrase.is_agent)
            yield from names
        elif pronoun in {"they", "them", "their"}:
            if self.answer and asks_name:
                yield self.answer
            yield from persons
            yield from names
            yield from (phrase.text for phrase in self.things)
        else:
            if self.answer and (
                (asks_name and self.wh in {"which", "what"}) or _ORGANISATION.search(self.answer)
            ):
                yield self.answer
            if self.main and self.wh == "what":
                yield self.main
            yield from names
            yield from (phrase.text for phrase in self.things if not phrase.is_agent)

    def _asks_noun(self) -> bool:
        """Whether the question word has a noun of its own: "which company"."""
        words = self.question.casefold().split()
        return len(words) > 1 and words[1] not in _AUXILIARIES

    def _resolve_demonstrative(self, word: str, used: list[str]) -> str:
        noun = word.partition(" ")[2]
        if noun in _STOPS:
            return ""
        if noun in {"year", "day", "month", "time", "date"}:
            return self._time().partition(" ")[2]
        if not noun and (event := self._event()):
            return event
        if not noun and (word in {"those", "these"}):
            return ""
        names = self._candidates("it")
        if self.answer and self.wh in _WH - {"how", "when", "why"}:
            return self.answer
        same = [phrase.text for phrase in [*self.things, *self.names] if noun and noun in phrase.words]
        return next((name for name in [*same, *names] if name not in used), "")

    def _event(self) -> str:
        """Return what happens in a question without an object, as a noun: "the sinking of the Heron Maid"."""
        match = re.fullmatch(r"(?:when|where|why|how) did (.+) ([a-z]+)", self.question, re.I)
        if match is None or not any(phrase.text == match[1] for phrase in [*self.names, *self.things]):
            return ""
        return f"the {_gerund(match[2])} of {match[1]}"

    def _time(self) -> str:
        """Return the time that the question or its answer gives, with its preposition."""
        if self.answer_is_time():
            has_day = re.search(rf"\b\d{{1,2}}\b.*(?:{_MONTHS})|(?:{_MONTHS}).*\b\d{{1,2}}\b", self.answer)
            return f"{'on' if has_day else 'in'} {self.answer}"
        for preposition, start, end in _find_prepositions(self.question):
            if _TIME.search(self.question[start:end]):
                return f"{preposition} {self.question[start:end]}"
        return ""

    def answer_is_time(self) -> bool:
        """Whether the answer is a time."""
        asks_time = re.match(r"when\b|(?:in )?(?:which|what) (?:year|month|day)\b", self.question, re.I)
        return bool(self.answer) and asks_time is not None

    def _place(self, before: Sequence[str]) -> str:
        place, preposition = "", "in"
        if self.wh == "where" and self.answer:
            place = self.answer
        else:
            for found_preposition, start, end in _find_prepositions(self.question):
                text = self.question[start:end]
                if found_preposition in {"in", "at", "on", "from", "to"} and not _TIME.search(text):
                    place, preposition = (
                        text,
                        found_preposition if found_preposition in {"in", "at", "on"} else "in",
                    )
        if not place:
            return ""
        return place if before and before[-1] in _PREPOSITIONS else f"{preposition} {place}"

    # Ellipsis

    def fill_ellipsis(self, part: str) -> str:
        """Return the question with the part of it that ``part`` replaces; "" where nothing fits."""
        words = part.split()
        first = words[0].casefold()
        if first in _WH:
            return self._ask_otherwise(part)
        part = re.sub(r"^(?:those|ones|the ones)\s+", "", part, flags=re.I)
        attempts: tuple[Callable[[str], str], ...] = (
            self._shift_year,
            self._replace_unit,
            self._replace_after_preposition,
            self._replace_time,
            self._replace_owned,
            self._replace_name,
            self._replace_thing,
            self._replace_last_word,
        )
        return next((text for attempt in attempts if (text := attempt(part))), "")

    def _ask_otherwise(self, part: str) -> str:
        """Ask the same with another question word."""
        word = part.casefold()
        rest = self.question
        if self.wh in _AUXILIARIES and word in {"why", "why not"}:
            subject = next(
                (phrase for phrase in [*self.names, *self.things] if phrase.start <= len(self.wh) + 1), None
            )
            if subject is None:
                return ""
            negation = " not" if word == "why not" else ""
            return f"why {rest[0].lower()}{rest[1 : subject.end]}{negation}{rest[subject.end :]}"
        if self.wh in {"who", "what"} and (match := re.match(r"(?:who|what) ([a-z]+) (.+)", rest, re.I)):
            verb, obj = match[1].casefold(), match[2]
            if verb not in _AUXILIARIES:
                if word not in {"when", "where", "why", "how"}:
                    return ""
                return f"{word} was {obj} {_PARTICIPLES.get(verb, verb)}"
        auxiliary = re.search(rf"\b(?:{'|'.join(sorted(_AUXILIARIES))})\b", rest, re.I)
        if self.wh not in _WH or auxiliary is None:
            return ""
        return f"{part} {rest[auxiliary.start() :]}"

    def _shift_year(self, part: str) -> str:
        """Replace the year by one before or after it."""
        match = re.fullmatch(
            r"(?:in )?(?:the )?(?:(year) (before|after|earlier|later)|a year (earlier|later|before)|"
            r"(previous|prior|preceding|following|next|last) year)",
            part,
            re.I,
        )
        years = list(re.finditer(rf"\b{_YEAR}\b", self.question))
        if match is None or not years:
            return ""
        direction = next(word for word in reversed(match.groups()) if word).casefold()
        step = 1 if direction in {"after", "later", "following", "next"} else -1
        year = years[-1]
        return f"{self.question[: year.start()]}{int(year.group()) + step}{self.question[year.end() :]}"

    def _replace_unit(self, part: str) -> str:
        """Replace "a day" by "a week"."""
        units = (
            r"(?:an?|per|each|every) (?:second|minute|hour|day|night|week|month|quarter|year|mile|ton|head)"
        )
        if not re.fullmatch(units, part, re.I):
            return ""
        return (
            re.sub(rf"\b{units}\b", part, self.question, count=1) if re.search(units, self.question) else ""
        )

    def _replace_after_preposition(self, part: str) -> str:
        first, _, rest = part.partition(" ")
        if first.casefold() not in _PREPOSITIONS or not rest or rest.casefold() in _WH:
            return ""
        is_time = bool(_TIME.search(rest))
        if is_time and first.casefold() in {"in", "for", "during"} and (text := self._replace_time(rest)):
            return text
        same = [
            (start, end)
            for preposition, start, end in _find_prepositions(self.question)
            if preposition == first.casefold() and bool(_TIME.search(self.question[start:end])) == is_time
        ]
        if same:
            start, end = same[-1]
            return f"{self.question[:start]}{rest}{self.question[end:]}"
        return f"{self.question} {first.lower()} {rest}"

    def _replace_time(self, part: str) -> str:
        """Replace a year by a year, a month by a month, both by both."""
        match = re.fullmatch(
            rf"(?:(fiscal (?:year )?)?({_YEAR})|({_MONTHS})|(?:({_MONTHS}) ({_YEAR})))", part, re.I
        )
        if match is None:
            return ""
        text = self.question
        year, month = match[2] or match[5], match[3] or match[4]
        replaced = False
        for pattern, value in (
            (rf"\b{_YEAR}\b", year),
            (rf"\b(?:{_MONTHS})\b", month and month.capitalize()),
        ):
            places = list(re.finditer(pattern, text)) if value else []
            if places:
                text = f"{text[: places[-1].start()]}{value}{text[places[-1].end() :]}"
                replaced = True
        return text if replaced else f"{text} in {part}"

    def _replace_name(self, part: str) -> str:
        """Replace a name by a name: one that shares a word with it, else the last one of the question."""
        bare = re.sub(r"^the ", "", part, flags=re.I)
        if not bare[0].isupper() or not self.names:
            return ""
        new = Phrase(part, 0, 0)
        has_article = part != bare
        # The likest name: shared words first, then an article as the new one has, then the last.
        old = max(
            self.names,
            key=lambda phrase: (
                len(phrase.words & new.words),
                phrase.text.casefold().startswith("the ") == has_article,
                phrase.start,
            ),
        )
        return f"{self.question[: old.start]}{_lower_article(part)}{self.question[old.end :]}"

    def _replace_owned(self, part: str) -> str:
        """Replace "revenue" in "Pfizer's revenue" by another noun, or all of it by "Verizon's revenue"."""
        owned = re.search(r"['’]s? ((?:[a-z-]+ ?)+)", self.question)
        if owned is None:
            return ""
        end = owned.start(1) + len(_cut_at_stop(owned[1]))
        if re.search(r"['’]s? ", part):
            names = [phrase.start for phrase in self.names if phrase.end == owned.start()]
            return f"{self.question[: names[0]]}{part}{self.question[end:]}" if names else ""
        bare = re.sub(r"^(?:the|an?) ", "", part, flags=re.I)
        if bare[0].isupper():
            return ""
        return f"{self.question[: owned.start(1)]}{bare}{self.question[end:]}"

    def _replace_last_word(self, part: str) -> str:
        """Replace the last word by one of the same form: "theft" by "fire", "opened" by "closed"."""
        before, _, last = self.question.rpartition(" ")
        is_same_form = last.endswith("ed") == part.endswith("ed")
        if " " in part or not part.islower() or not last.islower() or last in _STOPS or not is_same_form:
            return ""
        return f"{before} {part}"

    def _replace_thing(self, part: str) -> str:
        """Replace a noun with an article: one that shares a word with the new one, else the first."""
        bare = re.sub(r"^(?:the|an?) ", "", part, flags=re.I)
        new = Phrase(part, 0, 0)
        things = sorted(self.things, key=lambda phrase: (-len(phrase.words & new.words), phrase.start))
        if not things or not (part != bare or things[0].words & new.words):
            return ""
        old = things[0]
        return f"{self.question[: old.start]}{_lower_article(part)}{self.question[old.end :]}"


def _can_stand_for(answer: str) -> bool:
    """Return whether an answer can be inserted for a pronoun: a few words, and not a number."""
    words = answer.split()
    if not 0 < len(words) <= _MAX_ANSWER_WORDS or "\n" in answer:
        return False
    if re.search(rf"\b(?:{_YEAR}|{_MONTHS})\b", answer):
        return True
    return not re.match(r"[-(]?[$€£]?\d", answer) and answer.casefold() not in {"yes", "no"}


def find_names(text: str) -> Iterator[Phrase]:
    """Yield the names of a question, each with the article before it. A question word at its start is no name."""
    # From each digit of a long number again, a search would take the square of its length.
    word = r"[A-Z][\w.-]*[\w]|[A-Z]\.?|(?<!\d)\d+[A-Z]\w*"
    for match in re.finditer(rf"(?:\b[Tt]he )?(?:{word})(?:(?: & | of (?=[A-Z])| )(?:{word}))*", text):
        phrase, start = match.group(), match.start()
        first = phrase.split()[0].casefold()
        while first in _STOPS - {"the"} or (
            first == "the" and start == 0 and not phrase.partition(" ")[2][:1].isupper()
        ):
            cut = len(phrase.split()[0])
            phrase, start = phrase[cut:].lstrip(), start + len(phrase) - len(phrase[cut:].lstrip())
            if not phrase:
                break
            first = phrase.split()[0].casefold()
        bare = re.sub(r"^the ", "", phrase, flags=re.I)
        if not bare or re.fullmatch(rf"(?:{_MONTHS}|Q[1-4]|The)", bare) or (start == 0 and " " not in bare):
            continue
        yield Phrase(phrase, start, start + len(phrase), is_name=True)


def _find_things(text: str, names: Sequence[Phrase]) -> Iterator[Phrase]:
    """Yield the nouns with an article that are no names and no times, such as "the lighter"."""
    for match in re.finditer(r"\b(?:the|an?) (?=((?:[a-z-]+ ?)+))", text):
        noun = _cut_at_stop(match[1])
        end = match.start(1) + len(noun)
        if not noun or any(name.start < end and match.start() < name.end for name in names):
            continue
        asked = re.search(r"\b(?:do|does|did)\s*$", text[: match.start()], re.I)
        is_agent = False
        if asked and " " in noun:
            # "does the hirer pay": the last word is the verb, and its subject acts.
            noun = noun.rpartition(" ")[0]
            end = match.start(1) + len(noun)
            is_agent = bool(re.search(r"(?:er|or|ee|ant|ist|man|woman)$", noun))
        asked = re.search(r"\b(?:is|are|was|were|been)\s*$", text[: match.start()], re.I)
        while asked and " " in noun and noun.endswith("ed"):  # "was the bridge opened"
            noun = noun.rpartition(" ")[0]
            end = match.start(1) + len(noun)
        if not _TIME.fullmatch(noun.split()[-1]):
            yield Phrase(text[match.start() : end], match.start(), end, is_agent=is_agent)


def _find_prepositions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each preposition with the range of what follows it, up to the next preposition or verb."""
    for match in re.finditer(rf"\b({'|'.join(sorted(_PREPOSITIONS))}) ", text, re.I):
        rest = text[match.end() :]
        article = re.match(r"(?:the|an?) ", rest)
        skipped = article.end() if article else 0
        body = _cut_at_stop(rest[skipped:])
        if body:
            yield match[1].casefold(), match.end(), match.end() + skipped + len(body)


def _cut_at_stop(text: str) -> str:
    """Return the beginning of a text, up to the first word that ends a noun phrase."""
    end = 0
    for match in re.finditer(r"\S+", text):
        if match.group().casefold().strip(",") in _STOPS:
            break
        end = match.end()
        if match.group().endswith(","):
            end -= 1
            break
    return text[:end]


def _main_phrase(question: str) -> str:
    """Return what "what is ..." asks about, with what belongs to it: "the total revenue of MGM Resorts"."""
    match = re.match(r"what (?:is|was|are|were) (.+)", question, re.I)
    if match is None:
        return ""
    end = len(match[1])
    for preposition in re.finditer(rf"\b({'|'.join(sorted(_PREPOSITIONS - {'of'}))}) ", match[1]):
        end = min(end, preposition.start())
    return match[1][:end].strip()


def _possessive(name: str) -> str:
    return f"{name}’" if name.endswith("s’") else f"{name}'s"


def _lower_article(text: str) -> str:
    return f"the {text[4:]}" if text.startswith("The ") else text


def _gerund(verb: str) -> str:
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")):
        return f"{verb[:-1]}ing"
    return f"{verb}ing"


#: Turns before the question that the model reads, and characters of each.
_MAX_TURNS, _MAX_TURN = 6, 1_500
#: A reply that is longer than the question by more characters is not a question.
_MAX_GROWTH = 2_000
#: What our own replies have besides the answer: numbers of citations, and the list of sources after a blank line.
_CITATION_MARK = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation; ``speaker`` is ``user`` or ``assistant``."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class StandaloneQuestion:
    """A question that stands alone, and what rewriting it cost."""

    question: str
    usage: Usage = field(default_factory=Usage)


def rewrite_standalone(turns: Sequence[Turn], model: LanguageModel | None) -> StandaloneQuestion:
    """Return the last turn's question, rewritten by ``model`` (prompt ``stand-alone``) to stand alone.

    Without a model the questions are rewritten by rules, each with the one before (:func:`make_standalone`). Without
    earlier turns, and if the reply is empty or far longer than a question, it is unchanged. Raises ModelError.
    """
    *before, last = turns
    if not before:
        return StandaloneQuestion(last.text)
    if model is None:
        return StandaloneQuestion(_rewrite_by_rules(turns))
    conversation = "\n\n".join(f"{turn.speaker}: {turn.text[:_MAX_TURN]}" for turn in before[-_MAX_TURNS:])
    prompt = load_prompt("stand-alone").render(conversation=conversation, question=last.text)
    reply = model.complete([prompt])[0]
    question = " ".join(clean_reply(reply.text).split()).strip('"“”')
    usable = 0 < len(question) <= len(last.text) + _MAX_GROWTH
    return StandaloneQuestion(question if usable else last.text, reply.usage)


def _rewrite_by_rules(turns: Sequence[Turn]) -> str:
    """Return the last question of a conversation, each made to stand alone by the one before it and its answer."""
    question = answer = ""
    for turn in turns:
        if turn.speaker == "user":
            question, answer = make_standalone(turn.text, question, answer) if question else turn.text, ""
        else:
            answer = _CITATION_MARK.sub("", turn.text.partition("\n\n")[0]).strip()
    return question
