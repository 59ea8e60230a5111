"""Few-shot prompts, the passages in them, and the replies: the final answer of a reasoning, a majority of samples, a
FEVER label.

Models put reasoning, markup, list marks or JSON around an answer even if they are asked for the answer alone. A task
is answering questions, or judging claims (Su et al., NAACL 2024, Appendix F).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from clew.core.errors import BadCompletion
from clew.core.prompts.replies import clean_reply, parse_json, undress_value
from clew.core.prompts.templates import Template, load_prompt
from clew.core.protocols import Prompt
from clew.core.text import normalise, normalise_name, sentence_spans
from clew.core.types import ENTITY, Hit

Task = Literal["question", "claim"]
#: A number that a recipe may leave to the prompt file or the method: ``auto``.
AutoCount = int | Literal["auto"]


def load_task_prompt(name: str, task: Task, shots: AutoCount = "auto", exemplars: str = "auto") -> Template:
    """Return the prompt ``name`` for a task, with ``shots`` exemplars of the file ``exemplars``.

    ``auto`` is what the prompt file says. Raises UsageError.
    """
    return load_prompt(
        f"{name}-claim" if task == "claim" else name,
        shots=None if shots == "auto" else shots,
        exemplars=None if exemplars == "auto" else exemplars,
    )


#: The temperature at which a prompt is sampled more than once.
TEMPERATURE = 0.7
#: The labels of claims in FEVER (Thorne et al., NAACL 2018).
SUPPORTS, REFUTES, NOT_ENOUGH = "SUPPORTS", "REFUTES", "NOT ENOUGH INFO"
LABELS = (SUPPORTS, REFUTES, NOT_ENOUGH)

# Passages

#: The suffix of a file name; "St. Louis" has none.
_ENDING = re.compile(r"\.\w{1,8}$")


def numbered_contexts(hits: Sequence[Hit]) -> list[str]:
    """Return hits as numbered sources, each with its place."""
    return [f"[{n}] {hit.node.place}\n{hit.node.text}" for n, hit in enumerate(hits, 1)]


def make_passages_optional(prompt: Prompt, passages: Sequence[str], separator: str = "\n\n") -> Prompt:
    """Return a prompt whose passages, shown divided by ``separator``, may be left out one by one where it is too
    long for the model: the last, least relevant, first. The first one stays."""
    parts = [separator + passage for passage in reversed(passages[1:])]
    return replace(prompt, optional=(*prompt.optional, *parts))


def take_fitting(hits: Sequence[Hit], characters: int) -> list[Hit]:
    """Return the first hits whose texts together have at most ``characters``; at least the first hit."""
    fitting: list[Hit] = []
    room = characters
    for hit in hits:
        room -= len(hit.node.text)
        if room < 0 and fitting:
            break
        fitting.append(hit)
    return fitting


def hit_title(hit: Hit) -> str:
    """Return the name of a passage's document without its suffix; of an entity of a graph, its name."""
    if hit.node.kind == ENTITY:
        return hit.node.name
    return _ENDING.sub("", hit.node.document_name) or hit.node.document_name


def titled_contexts(hits: Sequence[Hit]) -> list[str]:
    """Return hits as passages under the titles of their documents, as in the prompts of the papers."""
    return [f"Title: {hit_title(hit)}\n{hit.node.text}" for hit in hits]


# Answers

_FINAL = re.compile(
    r"(?:\b(?:final|correct)\s+answer(?:\s+is\b)?|\bthe\s+answer\s+is\b|^[ \t*_]*answer\b(?:\s+is\b|(?=[*_]*\s*:)))"
    r"[*_]*\s*:?[*_\s]*",
    re.IGNORECASE | re.MULTILINE,
)
#: A sentence with its answer in bold.
_ONE_IN_BOLD = re.compile(r"\A[^*\n]*\*\*(?P<value>[^*\n]{1,60})\*\*[^*\n]*\Z")
_LIST_MARK = re.compile(r"^(?:[-*•]\s+|\(?\d{1,2}[.)]\s+)")
_AROUND = " \t*_\"'“”`"
_ANSWER_OBJECT = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
#: A single line of at most this many words is an answer although nothing announces it as one.
_SHORT = 8


def parse_final_answer(reply: str) -> str:
    """Return the answer that a reasoning ends with, "" if it has none.

    >>> parse_final_answer("Lamb was born in Ellery. So the answer is: **Ellery**.")
    'Ellery'
    """
    text = undress_value(reply)
    if answer := _answer_in_json(text):
        return answer
    if announcements := [*_FINAL.finditer(text)]:
        return _first_sentence(text[announcements[-1].end() :])
    lines = _lines(text)
    return _first_sentence(lines[0]) if len(lines) == 1 and len(lines[0].split()) <= _SHORT else ""


def parse_short_answer(reply: str) -> str:
    """Return the answer of a reply to a prompt that asks for nothing else: its first line with a word in it."""
    text = undress_value(reply)
    if answer := _answer_in_json(text):
        return answer
    if emphasised := _ONE_IN_BOLD.match(text):
        return emphasised["value"]
    announcement = _FINAL.search(text)
    lines = _lines(text[announcement.end() :] if announcement else text)
    return _first_sentence(lines[0]) if lines else ""


def _lines(text: str) -> list[str]:
    """Return the lines that have a letter or digit, without list marks and markup."""
    lines = (_LIST_MARK.sub("", line.strip()).strip(_AROUND) for line in text.splitlines())
    return [line for line in lines if any(map(str.isalnum, line))]


def _first_sentence(text: str) -> str:
    """Return the first sentence of the first line, without markup and full stop."""
    line = text.strip().partition("\n")[0].strip(_AROUND)
    spans = sentence_spans(line)
    sentence = line[slice(*spans[0])] if spans else ""
    return sentence.strip(_AROUND).rstrip(".").strip(_AROUND)


def _answer_in_json(text: str) -> str:
    """Return the ``answer`` of a JSON object that a model wrote although none was asked for, "" if there is none."""
    if '"answer"' not in text:
        return ""
    try:
        return str(parse_json(text, _ANSWER_OBJECT)["answer"]).strip()
    except BadCompletion:
        return ""


# Self-consistency (Wang et al., ICLR 2023)


def sample_prompts(prompt: Prompt, samples: int) -> list[Prompt]:
    """Return the prompt once for each sample, at :data:`TEMPERATURE`; a single sample keeps temperature 0."""
    if samples == 1:
        return [prompt]
    return [replace(prompt, temperature=TEMPERATURE, sample=n) for n in range(samples)]


def majority_vote(answers: Sequence[str]) -> tuple[str, dict[str, int]]:
    """Return the most frequent answer and the votes of each; the earliest of equally frequent ones wins.

    Case, punctuation and a leading article do not count; the answer is returned in its first spelling. Empty answers
    have no vote.
    """
    answers = [answer for answer in answers if answer]
    forms = [normalise_name(answer) or normalise(answer) for answer in answers]
    first_spelling = dict(zip(reversed(forms), reversed(answers), strict=True))
    # Counter keeps the order of first sight among equals.
    votes = {first_spelling[form]: count for form, count in Counter(forms).most_common()}
    return next(iter(votes), ""), votes


# Labels of claims

_VERDICT = re.compile(r"\b(?:answer|label|verdict)\b\W*(?:(?:is|would be)\b)?", re.IGNORECASE)
#: Verdicts of a reply that are read, the last first: each is read to the end of its line.
_MAX_VERDICTS = 20
_EXACT = re.compile(r"\b(?:(SUPPORT)(?:S|ED)|(REFUTE)[SD]|(NOT ENOUGH INFO)(?:RMATION)?)\b")
# The first alternative that matches at a place counts, so negations stand before what they negate.
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
_YES_NO = re.compile(r"^\W*(?P<answer>yes|no)\b(?!\s+(?:\w+\s+)?(?:evidence|information))", re.IGNORECASE)


def parse_label(reply: str) -> str:
    """Return the label that a reply gives, as FEVER writes it, "" if it gives none.

    Usual words for a label are understood as well: true, false, supported, refuted, not enough information. The words
    after "answer is", "label" or "verdict" count first, then a label in capitals, then the first word for one. A
    reply with several labels in capitals and no verdict has only repeated the question.

    >>> parse_label("It was lit in 1871. So the answer is: SUPPORTS."), parse_label("The claim is not true.")
    ('SUPPORTS', 'REFUTES')
    """
    text = clean_reply(reply)
    for verdict in reversed([*_VERDICT.finditer(text)][-_MAX_VERDICTS:]):
        if label := _first_label(text[verdict.end() :].lstrip(" \t\n*_:\"'`").partition("\n")[0]):
            return label
    return _first_label(text)


def _first_label(text: str) -> str:
    exact = {SUPPORTS if label[1] else REFUTES if label[2] else NOT_ENOUGH for label in _EXACT.finditer(text)}
    if exact:
        return exact.pop() if len(exact) == 1 else ""
    if yes_or_no := _YES_NO.match(text):
        return SUPPORTS if yes_or_no["answer"].casefold() == "yes" else REFUTES
    word = _WORDS.search(text)
    if word is None:
        return ""
    return NOT_ENOUGH if word["lacking"] else REFUTES if word["refutes"] else SUPPORTS
