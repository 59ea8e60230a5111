"""What a model's free text says in the end, whatever it put around it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from clew.core.errors import BadCompletion
from clew.core.prompts.replies import clean_reply, parse_json
from clew.core.protocols import Prompt
from clew.core.text import normalise, normalise_name, sentence_spans

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


#: Of samples: how different they are.
TEMPERATURE = 0.7


def sample_prompts(prompt: Prompt, samples: int) -> list[Prompt]:
    """Return the prompt for each of some samples; one alone is taken at temperature 0."""
    if samples == 1:
        return [prompt]
    return [replace(prompt, temperature=TEMPERATURE, sample=n) for n in range(samples)]


# MERGED: Verdicts on claims: the labels of FEVER (Thorne et al., NAACL 2018), and reading them out of what a
# model wrote.
# MERGED: One prompt asked several times, for self-consistency (Wang et al., ICLR 2023).
