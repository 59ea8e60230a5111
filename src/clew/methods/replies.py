"""What a model's free text says in the end, whatever it put around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from clew.errors import BadCompletion
from clew.prompts import parse_json, clean_reply
from clew.text import normalise, normalise_name, sentence_spans

_FINAL = re.compile(
    r"(?:\b(?:final|correct)\s+answer(?:\s+is\b)?|\bthe\s+answer\s+is\b|^[\s*_]*answer\b(?:\s+is\b|(?=[*_]*\s*:)))"
    r"[*_]*\s*:?[*_\s]*",
    re.IGNORECASE | re.MULTILINE,
)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_LISTED = re.compile(r"^(?:[-*•]\s+|\(?\d{1,2}[.)]\s+)")
_AROUND = " \t*_\"'“”`"
_OBJECT = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
#: A single line of at most so many words is an answer though nothing says that it is one.
_SHORT = 8


def parse_final_answer(reply: str) -> str:
    """Return what a reasoning gives as its answer in the end; "" where it gives none.

    >>> final_answer("Lamb was born in Ellery. So the answer is: **Ellery**.")
    'Ellery'
    """
    text = clean_reply(reply)
    if stated := _in_object(text):
        return stated
    if boxed := _BOXED.findall(text):
        return _one(boxed[-1])
    if found := [*_FINAL.finditer(text)]:
        return _one(text[found[-1].end() :])
    lines = _lines(text)
    return _one(lines[0]) if len(lines) == 1 and len(lines[0].split()) <= _SHORT else ""


def parse_short_answer(reply: str) -> str:
    """Return the answer where nothing but an answer was asked for: the first line that says something."""
    text = clean_reply(reply)
    if stated := _in_object(text):
        return stated
    found = _FINAL.search(text)
    return next((_one(line) for line in _lines(text[found.end() :] if found else text)), "")


def majority_vote(answers: Sequence[str]) -> tuple[str, dict[str, int]]:
    """Return the answer that most agree on, as the first of them wrote it, and the votes; of equals, the earliest.

    Case, punctuation and a leading article do not count (self-consistency: Wang et al., ICLR 2023). An empty answer
    has no vote.
    """
    given = [answer for answer in answers if answer]
    forms = [normalise_name(answer) or normalise(answer) for answer in given]
    first = dict(zip(reversed(forms), reversed(given), strict=True))
    # Counter keeps the order of first sight among equals.
    votes = {first[form]: count for form, count in Counter(forms).most_common()}
    return next(iter(votes), ""), votes


def _lines(text: str) -> list[str]:
    lines = (_LISTED.sub("", line.strip()).strip(_AROUND) for line in text.splitlines())
    return [line for line in lines if any(map(str.isalnum, line))]


def _one(said: str) -> str:
    """Return the first sentence of a line, without what stands around it."""
    said = said.strip().partition("\n")[0].strip(_AROUND)
    spans = sentence_spans(said)
    first = said[slice(*spans[0])] if spans else ""
    return first.strip(_AROUND).rstrip(".").strip(_AROUND)


def _in_object(text: str) -> str:
    """Return the ``answer`` of a JSON object that a model wrote though none was asked for."""
    if '"answer"' not in text:
        return ""
    try:
        return str(parse_json(text, _OBJECT)["answer"]).strip()
    except BadCompletion:
        return ""
