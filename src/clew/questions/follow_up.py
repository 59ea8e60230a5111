"""Follow-up questions: what a question leaves out is taken from the turns before it.

Every way to complete a question is written out: as it was typed; with its pronoun replaced by what was named or
answered before; as the question before with a part exchanged for what is new, or with it added; and with what it may
be about in brackets. A question for the source of an answer is the question before, asked for its document. A linear
score over features of the question and of what is filled in, fitted to conversations, chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from clew.core.text import STOPWORDS
from clew.core.values import MONTH_PATTERN
from clew.questions.closed_words import ARTICLES, ASKING, AUXILIARIES, PREPOSITIONS
from clew.questions.text import QuestionText, Value

if TYPE_CHECKING:
    from clew.core.protocols import Encoder, PlanJudge

#: What begins a follow-up and adds nothing: a closed class.
OPENERS = frozenset(
    "and or but so also ok okay no now well then only just i mean meant what how about".split()
)
#: Behind these and a noun stands its verb: "does the hirer pay".
DOING = frozenset("do does did".split())
#: Pronouns by what they stand for, and those of them that own something.
PRONOUNS = {
    "person": frozenset("he she him his her hers".split()),
    "thing": frozenset("it its that this".split()),
    "group": frozenset("they them their those these".split()),
}
_PRONOUNS = frozenset().union(*PRONOUNS.values())
#: Other words that name nothing.
OTHERS = frozenset("yes none nobody nothing many much few more most too".split())
POSSESSIVES = frozenset("his her its their hers".split())
_CLOSED = STOPWORDS | OPENERS | ASKING | AUXILIARIES | PREPOSITIONS | OTHERS | _PRONOUNS
#: A year, the number of a day, and a month, each of which is exchanged inside a date.
_YEAR, _DAY = re.compile(r"\b[12]\d{3}\b"), re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?\b")
_DATE_PARTS = (_YEAR, _DAY, re.compile(rf"\b(?:{MONTH_PATTERN})\b", re.IGNORECASE))
_SHIFT = re.compile(r"\b(year|day) (before|after|earlier|later)\b", re.IGNORECASE)
#: Features of what a pronoun may stand for that depend on its kind.
_CROSSED = ("person", "asked name", "answer name", "noun")
#: Words of the longest fragment, answer and question that are filled in; turns that are looked back at.
LONGEST_FRAGMENT, LONGEST_ANSWER, LOOK_BACK = 8, 8, 3
#: Characters of a question or an answer that are read; a question that is longer stands alone.
LONGEST_TEXT = 400
#: How the plan to show the source of an answer reads in words.
SOURCE_QUESTIONS = ("Which document says so?", "Where does it say that?")


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation: the question as it was understood, its answer ("" for none), and whether that was
    stated as certain."""

    question: str
    answer: str = ""
    is_stated: bool = True


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to complete a question, and its features. With ``asks_source`` the document of the answer is wanted."""

    question: str
    features: Mapping[str, float]
    asks_source: bool = False


class FollowUpReader:
    """Completes follow-ups by fitted ``weights`` of features; ``encoder`` compares texts."""

    def __init__(self, weights: Mapping[str, float], encoder: Encoder) -> None:
        self.weights, self.encoder = weights, encoder

    def complete(self, typed: str, turns: Sequence[Turn]) -> Candidate:
        """Return the likeliest way to complete a question after ``turns``; as it was typed where there are none."""
        candidates = list_candidates(typed, turns, self.encoder)
        return max(candidates, key=self._score)

    def _score(self, candidate: Candidate) -> float:
        return sum(self.weights.get(name, 0.0) * value for name, value in candidate.features.items())


@cache
def create_follow_up_reader(judge: PlanJudge) -> FollowUpReader:
    """Return the reader with the weights that a judge holds, beside their encoder; the same one each time."""
    arrays = judge.follow_ups
    weights = zip(arrays["names"].tolist(), arrays["weights"].tolist(), strict=True)
    return FollowUpReader(dict(weights), judge.encoder)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A name, a number, a date or a run of other content words, from ``start`` to ``end``; ``article`` is where its
    article begins, else its start, and ``lead`` the word before that, "" for none."""

    text: str
    start: int
    end: int
    kind: str
    article: int
    lead: str

    @property
    def has_article(self) -> bool:
        """Whether an article stands before it."""
        return self.article < self.start


@dataclass(frozen=True)
class Asked(QuestionText):
    """A question with its phrases."""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The words in lower case."""
        return tuple(word.text for word in self.words)

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        """The phrases, in order. A name has capitals all through."""
        phrases, place = [], 0
        while place < len(self.words):
            value, first = self._value_at(place), place
            if value is None and self._is_closed(place):
                place += 1
                continue
            place += 1
            if value is not None:
                kind = "date" if value.is_date else "number"
                while place < len(self.words) and self.words[place].start < value.end:
                    place += 1
            else:
                kind = "name" if self._is_capital(first) else "noun"
                while place < len(self.words) and self._continues(place, kind):
                    place += 1
            before = first - 1 if first and self.texts[first - 1] in ARTICLES | POSSESSIVES else first
            article = before if before < first and self.texts[before] in ARTICLES else first
            lead = self.texts[before - 1] if before else ""
            if kind == "noun" and lead in DOING and place - first > 1:
                place -= 1
            start, end = self.words[first].start, self.words[place - 1].end
            phrases.append(Phrase(self.text[start:end], start, end, kind, self.words[article].start, lead))
        return tuple(phrases)

    def _continues(self, place: int, kind: str) -> bool:
        """Return whether the phrase before a place goes on with it."""
        gap = self.text[self.words[place - 1].end : self.words[place].start]
        if gap == "-":
            return True
        if gap.strip("& '’s") or self._value_at(place) is not None:
            return False
        if self.texts[place] == "of":
            return kind == "name" and self._is_capital(place + 1)
        return not self._is_closed(place) and self._is_capital(place) == (kind == "name")

    def _is_closed(self, place: int) -> bool:
        """Return whether a word names nothing; "I'm" and "wasn't" neither."""
        return re.split(r"n?['’]", self.texts[place])[0] in _CLOSED

    def _value_at(self, place: int) -> Value | None:
        start = self.words[place].start
        return next((value for value in self.values if value.start <= start < value.end), None)

    def _is_capital(self, place: int) -> bool:
        return place < len(self.words) and self.text[self.words[place].start].isupper()

    @cached_property
    def names(self) -> tuple[Phrase, ...]:
        """The names but for the first word, which has a capital in any case."""
        return tuple(phrase for phrase in self.phrases if phrase.kind == "name" and phrase.start > 0)

    def find_other_ends(self, phrase: Phrase) -> Iterator[tuple[str, int]]:
        """Yield where a phrase ends with the one right behind it ("the Heron Queen lighter"; behind an auxiliary that
        may be a verb), and with those that prepositions join to it ("the rent of the office in Bern")."""
        end = phrase.end
        for other in self.phrases:
            if other.start == phrase.end + 1 and phrase.has_article and phrase.lead not in AUXILIARIES:
                yield "head", other.end
            between = [word for word in self.words if end < word.start < other.article]
            if other.start > end and other.lead in PREPOSITIONS and len(between) == 1:
                end = other.end
        if end > phrase.end:
            yield "long", end

    @cached_property
    def part(self) -> Asked:
        """What is left without the connectives at the beginning."""
        place = 0
        while place < len(self.words) and self.texts[place] in OPENERS:
            if self.texts[place] in ASKING and self.texts[place + 1 : place + 2] != ("about",):
                break
            place += 1
        return Asked(self.text[self.words[place].start :].rstrip("?!. ") if place < len(self.words) else "")

    @cached_property
    def pronoun(self) -> int | None:
        """The place of the first pronoun; "that" behind a noun or before a clause is none."""
        for place, text in enumerate(self.texts):
            stands = place in (0, len(self.texts) - 1) or self.texts[place - 1] in AUXILIARIES | PREPOSITIONS
            if text in _PRONOUNS and (text != "that" or stands):
                return place
        return None

    @cached_property
    def flags(self) -> dict[str, float]:
        """What the question is like, as features."""
        words = self.part.texts
        is_asked, has_verb = bool(ASKING & set(words)), bool(AUXILIARIES & set(words))
        pronoun = self.part.pronoun
        before = Asked(self.part.text[: self.part.words[pronoun].start] if pronoun is not None else "")
        is_whole = len(words) == len(self.texts)
        flags = {
            "": True,
            "own name": bool(self.names),
            "pronoun": pronoun is not None,
            "after a sentence": re.search(r"[.:;,] ", before.text) is not None,
            "asked": is_asked or "?" in self.text,
            "sentences": re.search(r"[.:] ", self.text) is not None,
            "fragment": not has_verb and not is_asked,
            "bare question word": not has_verb and is_asked and pronoun is None and len(words) <= 3,
            "remark": not has_verb and not is_asked and is_whole and "?" not in self.text,
            "preposition": bool(words) and words[0] in PREPOSITIONS,
        }
        content = sum(word.is_content for word in self.part.words)
        sizes = {
            "content": min(content, 5) / 5,
            "long": min(content, 15) / 15,
            "phrases before the pronoun": min(len(before.phrases), 4) / 4,
        }
        return {name: float(value) for name, value in flags.items()} | sizes


#: A way to complete a question before it is a candidate: its kind, the text and its features.
Way = tuple[str, str, dict[str, float]]


def list_candidates(typed: str, turns: Sequence[Turn], encoder: Encoder) -> list[Candidate]:
    """Return the ways to complete a question after ``turns``, as it was typed first."""
    asked = Asked(" ".join(typed.split()))
    if len(asked.text) > LONGEST_TEXT:
        return [Candidate(typed, {})]
    candidates = [Candidate(typed, name_features("typed", asked.flags))]
    if not turns or not asked.part.words:
        return candidates
    question = turns[-1].question
    turns = [replace(turn, question=turn.question[:LONGEST_TEXT].rstrip("?!. ")) for turn in turns]
    part, before = asked.part, Asked(turns[-1].question)
    others = list(name_other(before, turns)) if "other" in part.texts else []
    ways = [*replace_pronoun(part, turns), *others]
    if asked.flags["fragment"] and len(part.words) <= LONGEST_FRAGMENT and not others:
        ways += exchange_part(part, before)
    if asked.flags["bare question word"]:
        verbs = [word.start for word in before.words if word.text in AUXILIARIES]
        ways += [
            ("otherwise", f"{part.text} {before.text[start:]}", {})
            for start in (verbs or [word.start for word in before.words[1:]])[:1]
        ]
    for kind, text, features in ways:
        text = text.strip(" .?!")
        if text.casefold() != asked.text.rstrip("?!. ").casefold():
            every = name_features(kind, features | asked.flags)
            candidates.append(Candidate(f"{text[0].upper()}{text[1:]}?", every))
    vectors = encoder.encode([part.text, *SOURCE_QUESTIONS], query=True)
    likeness = {"likeness": 20 * float((vectors[1:] @ vectors[0]).max())}
    source = name_features("source", asked.flags | likeness)
    return [*candidates, Candidate(question, source, asks_source=True)]


def name_features(kind: str, features: Mapping[str, float]) -> dict[str, float]:
    """Return the features that are not zero under the name of a kind of way."""
    return {f"{kind}: {name}": value for name, value in features.items() if value}


def find_antecedents(turns: Sequence[Turn]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield what was named before, each once, with its features: from the last turn back the answer, the phrases of
    the question and the names in the answer."""
    texts: set[str] = set()
    for text, features in _list_mentions(turns):
        text = text.strip(" .")
        if text and text.casefold() not in texts:
            texts.add(text.casefold())
            mentions = [text.casefold() in f"{turn.question} {turn.answer}".casefold() for turn in turns[-4:]]
            features |= {"mentions": sum(mentions) / 4, "words": min(len(text.split()), 6) / 6}
            features["person"] = max(features.get("person", 0.0), len(re.findall(r"\b[A-Z]", text)) > 1)
            yield text, features


def _list_mentions(turns: Sequence[Turn]) -> Iterator[tuple[str, dict[str, float]]]:
    for distance, turn in enumerate(turns[: -LOOK_BACK - 1 : -1]):
        question, answer = Asked(turn.question), Asked(turn.answer[:LONGEST_TEXT].rstrip(". "))
        asking = next((text for text in question.texts if text in ASKING), "")
        common = {"far": distance / 2}
        of_answer = common | {"unsure": float(not turn.is_stated), "person": float(asking in ("who", "whom"))}
        if answer.phrases and len(answer.words) <= LONGEST_ANSWER:
            is_name = len(answer.phrases) == 1 and answer.phrases[0].kind == "name"
            named = {
                "answer name": float(is_name),
                "asked name": float(is_name and asking in ("who", "which")),
            }
            yield answer.text, {"answer": 1.0} | of_answer | named
        for kind in ("name", "noun"):
            phrases = [
                each
                for each in question.phrases
                if each.kind == kind and (kind == "name" or each.has_article)
            ]
            for phrase in phrases:
                begins, first, last = (
                    float(each) for each in (phrase.start == 0, phrase is phrases[0], phrase is phrases[-1])
                )
                features = {kind: 1.0, "begins": begins, "first": first, "last": last} | common
                yield question.text[phrase.article : phrase.end], dict(features)
                for name, end in question.find_other_ends(phrase):
                    yield question.text[phrase.article : end], features | {name: 1.0}
        for phrase in answer.phrases:
            if phrase.kind == "name":
                first = float(phrase is answer.phrases[0])
                yield phrase.text, {"name of answer": 1.0, "first": first} | of_answer


def replace_pronoun(part: Asked, turns: Sequence[Turn]) -> Iterator[Way]:
    """Yield a question with its first pronoun replaced."""
    if part.pronoun is None:
        return
    place = part.pronoun
    word, after = part.words[place], part.words[place + 1 : place + 2]
    is_owner = word.text in POSSESSIVES and bool(after) and after[0].is_content
    kind = next(kind for kind, words in PRONOUNS.items() if word.text in words)
    for text, features in find_antecedents(turns):
        filled = f"{text}'s" if is_owner else text
        crossed = {f"{name} for {kind}": features.get(name, 0.0) for name in _CROSSED}
        yield "pronoun", _exchange(part.text, word.start, word.end, filled), features | crossed


def name_other(before: Asked, turns: Sequence[Turn]) -> Iterator[Way]:
    """Yield the question before with its last name exchanged for one of earlier turns: "the other one"."""
    for slot in before.names[-1:]:
        for distance, turn in enumerate(turns[-2 : -LOOK_BACK - 1 : -1]):
            for text, is_answer in ((turn.question, 0.0), (turn.answer[:LONGEST_TEXT], 1.0)):
                for phrase in Asked(text).phrases:
                    if phrase.kind == "name" and phrase.text not in before.text:
                        name = text[phrase.article : phrase.end]
                        features = {"far": distance / 2, "answer": is_answer}
                        yield "other", _exchange(before.text, slot.article, slot.end, name), features


def exchange_part(part: Asked, before: Asked) -> Iterator[Way]:
    """Yield the question before with a phrase exchanged for a fragment, with a date moved, or with it added."""
    if not part.phrases:
        return
    new, lead = part.phrases[0], part.texts[0] if part.texts[0] in PREPOSITIONS else ""
    text = part.text[new.start :]
    same_kind = [slot for slot in before.phrases if slot.kind == new.kind]
    if lead:
        yield "append", f"{before.text} {part.text}", {"same kind": float(bool(same_kind))}
    for slot in before.phrases:
        is_bare = slot.kind == "noun" and not slot.has_article
        if new.has_article and is_bare and slot.lead in AUXILIARIES:
            continue  # "returned late" in "if it is returned late"
        features = {
            f"{new.kind} for {slot.kind}": 1.0,
            "same kind": float(slot in same_kind),
            "same preposition": float(bool(lead) and slot.lead == lead),
            "other preposition": float(bool(lead) and slot.lead != lead),
            "same article": float(
                part.text[new.article : new.start] == before.text[slot.article : slot.start]
            ),
            "article lost": float(new.has_article and is_bare),
            "last": float(slot is before.phrases[-1]),
            "last of kind": float(slot in same_kind[-1:]),
            "shared words": float(bool(set(Asked(slot.text).texts) & set(Asked(text).texts))),
            "same ending": float(slot.text[-1] == text[-1]),
        }
        for form in _DATE_PARTS:
            if form.fullmatch(text) and form.search(slot.text) and not form.fullmatch(slot.text):
                inner = form.sub(re.sub(r"(?<=\d)[a-z]+$", "", text), slot.text, count=1)
                yield (
                    "exchange",
                    _exchange(before.text, slot.start, slot.end, inner),
                    features | {"inner": 1.0},
                )
        yield "exchange", _exchange(before.text, slot.start, slot.end, text), features
        for name, end in before.find_other_ends(slot):
            yield "exchange", _exchange(before.text, slot.start, end, text), features | {name: 1.0}
    if shift := _SHIFT.search(part.text):
        form, step = (
            _YEAR if shift[1].casefold() == "year" else _DAY,
            -1 if shift[2] in ("before", "earlier") else 1,
        )
        dated = [slot for slot in before.phrases if form.search(slot.text)]
        for slot in dated[-1:]:
            moved = form.sub(lambda match: str(int(re.sub(r"\D", "", match[0])) + step), slot.text, count=1)
            yield "shift", _exchange(before.text, slot.start, slot.end, moved), {}


def _exchange(question: str, start: int, end: int, text: str) -> str:
    return f"{question[:start]}{text}{question[end:]}"
