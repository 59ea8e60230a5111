"""Replace the pronouns of a question by what they refer to: a triple with "it" in it finds nothing.

The authors name this as future work (4StepFocus, Section 5).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import Template
from clew.core.protocols import LanguageModel, Trail
from clew.core.text import sentence_spans
from clew.core.trail import PronounsStep
from clew.triples.language.wordings import NUMBER_WORDS as NUMBERS

#: Words that stand for something said before, or for what is asked for.
_PRONOUNS = frozenset(
    "he him his she her hers it its they them their theirs himself herself itself themselves".split()
)
#: Words that point back where nothing follows that says what they mean.
_POINTING = frozenset("this that these those".split())
#: What may follow such a word where it opens a description of its own: "those who", "that of".
_OPENING = frozenset("who whose whom which that of in on with from by for at where when are is".split())
_ORDINAL = re.compile(r"\bthe\s+(?:former|latter)\b", re.IGNORECASE)
#: "It" that stands for nothing.
_EMPTY_IT = re.compile(
    r"\b(?:is|was)\s+it\s+(?:true|possible|known|likely)\b|\bit\s+(?:is|was)\s+(?:true|possible|known|likely)\b"
    r"|\bdo(?:es)?\s+it\s+(?:take|cost)\b|\bit\s+(?:takes?|took)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|«[^»]*»")
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CLAUSE = re.compile(r"[;:]\s")
#: Words that negate or count, each with the word that it is compared as.
_DECISIVE = {
    word: decisive
    for decisive, words in {
        "not": "not no none nor cannot neither",
        "never": "never",
        "without": "without",
        "except": "except excluding",
        "only": "only",
        "most": "most",
        "least": "least",
        "more": "more",
        "less": "less fewer",
        "exactly": "exactly",
        "all": "all every",
        "any": "any",
    }.items()
    for word in words.split()
} | {word: str(number) for word, number in NUMBERS.items() if word not in {"zero", "one"}}
_LABEL = re.compile(r"\A\W*(?:the\s+)?(?:rewritten\s+)?(?:question|rewrite|answer)\s*:\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PronounResolver:
    """Asks a model to replace the pronouns of a question; a question without any costs no call."""

    model: LanguageModel
    template: Template

    def resolve(self, question: str, trail: Trail) -> str:
        """Return the question without its pronouns, or as it is where it has none or the rewrite cannot be trusted;
        the trail then says why. Raises ModelError."""
        if not has_pronouns(question):
            return question
        started = time.perf_counter()
        (completion,) = self.model.complete([self.template.render(question=question)])
        rewritten = _clean_rewrite(completion.text)
        problem = rewrite_problem(question, rewritten)
        trail.add(
            PronounsStep(
                question,
                rewritten[: 2 * len(question) + 200],
                self.template.name,
                kept_as_it_was=problem or None,
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return question if problem else rewritten


def has_pronouns(question: str) -> bool:
    """Return whether a question has a pronoun that refers to something.

    A cheap rule. What is in quotation marks is a name, as is a capital within a sentence ("Who directed It?"); the
    first word of all has nothing before it; "it" of "is it true" stands for nothing; "those who" says itself whom it
    means; "this film" points back from the second sentence on.
    """
    text = _EMPTY_IT.sub(" ", _QUOTED.sub(" Q ", question))
    if _ORDINAL.search(text):
        return True
    for number, part in enumerate(_clauses(text)):
        words = _WORD.findall(part)
        for place, word in enumerate(words):
            first = place == 0
            if (first and number == 0) or (word[0].isupper() and not first):
                continue
            folded = word.casefold().removesuffix("'s").removesuffix("’s")
            after = words[place + 1].casefold() if place + 1 < len(words) else ""
            if folded in _PRONOUNS or (folded in _POINTING and _points_back(folded, after, number)):
                return True
    return False


def _clauses(text: str) -> list[str]:
    """Return the sentences of a text, which semicolons and colons end as well: "Heat is a film; this film ..."."""
    parts = [part for start, end in sentence_spans(text) for part in _CLAUSE.split(text[start:end])]
    return [part for part in parts if part.strip()]


def _points_back(word: str, after: str, sentence: int) -> bool:
    if after in {"one", "ones"}:
        return True
    if sentence == 0:
        return word in {"these", "those"} and not after
    # "That" joins clauses as well; what follows it then is no noun, and no rule tells.
    return word != "that" and after not in _OPENING


def rewrite_problem(question: str, rewritten: str) -> str:
    """Return why a rewrite cannot be trusted, "" if nothing speaks against it."""
    if not rewritten:
        return "the rewrite is empty"
    if len(rewritten) > 3 * len(question) + 100:
        return "the rewrite is much longer than the question"
    before, after = _names(question), _names(rewritten)
    words = {word.casefold() for word in _WORD.findall(rewritten)}
    if lost := sorted(before - words - _without_possessives(words)):
        return f"the rewrite loses {', '.join(lost)}"
    known = {word.casefold() for word in _WORD.findall(question)}
    if new := sorted(after - known - _without_possessives(known)):
        return f"the rewrite brings in {', '.join(new)}"
    if changed := sorted(_decisive(question) ^ _decisive(rewritten)):
        return f"the rewrite differs in {', '.join(changed)}"
    return ""


def _decisive(text: str) -> set[str]:
    """Return the words of a text that turn it round or count, each as the one that it stands for."""
    words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
    return {_DECISIVE[word] for word in words if word in _DECISIVE} | {
        "not" for word in words if word.endswith("n't")
    }


def _names(text: str) -> set[str]:
    """Return the words of names and the numbers: what is capitalised within a sentence, or has a digit."""
    names = set()
    for start, end in sentence_spans(text):
        for place, word in enumerate(_WORD.findall(text[start:end])):
            folded = word.casefold().removesuffix("'s").removesuffix("’s")
            if (word[0].isupper() and place and folded not in {"i", *_PRONOUNS}) or any(
                map(str.isdigit, word)
            ):
                names.add(folded)
    return names


def _without_possessives(words: set[str]) -> set[str]:
    """Return words without the ending of possessives."""
    return {word.removesuffix("'s").removesuffix("’s") for word in words}


def _clean_rewrite(reply: str) -> str:
    """Return a reply as one line, without a label or quotation marks around it."""
    lines = [line for line in clean_reply(reply).splitlines() if not line.strip().startswith("```")]
    text = _LABEL.sub("", " ".join(" ".join(lines).split()))
    return text.strip('"“”` *') if text[:1] in '"“`*' else text
