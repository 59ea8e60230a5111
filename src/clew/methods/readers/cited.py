"""A reader whose answers rest on quotes, each checked to be in its source.

Quotes are found verbatim (:func:`find_verbatim`). The comparison ignores what reading and retyping change without
changing the meaning: runs of white space, the shape of quotation marks, apostrophes and dashes, soft hyphens, a word
divided at the end of a line, ligatures, and whether an accent is a character of its own. Case counts, and so does
every digit and sign. A quote starts and ends at the edge of a word or number: "12" is not in "1,250".
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from clew.core.component import AUTO, NO_COMPONENT, PromptFile, Recipe, Resources, component
from clew.core.errors import BadCompletion
from clew.core.prompts.replies import clean_reply, is_refusal, parse_json
from clew.core.prompts.templates import Template
from clew.core.protocols import LanguageModel, Reader, Trail
from clew.core.trail import CitedReadStep
from clew.core.types import Answer, FallbackStep, Hit, Question, Quote
from clew.core.values import has_certain_support
from clew.methods.prompting import make_passages_optional, numbered_contexts, parse_final_answer, take_fitting
from clew.methods.readers import NOT_FOUND

#: What is the same in a quote: one character for one, and characters that stand for others or for nothing.
_SAME = {
    ord(char): same
    for chars, same in (("“”„‟«»″〝〞", '"'), ("‘’‚‛′`´", "'"), ("‐‑‒–—―−﹣－", "-"))
    for char in chars
}
_WRITTEN_OUT = {"\u00ad": "", "\u200b": "", "\u2060": "", "\ufeff": "", "…": "..."} | {
    **{"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"},
}
#: What a quote may have or lack: spaces, quotation marks, marks of emphasis around words, backslashes before marks.
_LOOSE = re.compile(r"\s+|\"|(?<!\w)['*_]+|['*_]+(?!\w)|\\(?=[^\w\s])")
#: A word divided at a line's end, whose hyphen a quote may have or lack; and what stands for it.
_DIVIDED = re.compile(r"(?<=[^\W\d])[-\u00ad]\s*\n\s*(?=[a-zà-öø-ÿ])")
_DIVISION = "\x1f"
#: Where a quote leaves something out.
_ELLIPSIS = re.compile(r"\s*(?:[\[(]\s*(?:\.\.\.|…)\s*[\])]|\.\.\.+|…)\s*")
#: A currency's sign before a number, which a quote may lack, and a place before a number.
_CURRENCY, _BEFORE_NUMBER = "[$€£¥₹]?", re.compile(r"(?<![\d$€£¥₹.,])(?=\d)")
_WORD = re.compile(r"[^\W_]")
_WORDS = re.compile(r"\w+")
#: A character of a script that puts spaces between words.
_SPACED = r"(?![\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])\w"
#: Models put these around a quote; they mean nothing.
_AROUND = " \t\r\n\"'“”„«»‘’…"


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text to find quotes in: its normalised form, and for each character of that the range it came from."""

    text: str
    normalised: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def from_text(cls, text: str) -> SourceText:
        """Normalise a text."""
        plain = text.translate(_SAME)
        left_out = {}
        for loose in _LOOSE.finditer(plain):
            around = plain[max(loose.start() - 1, 0) : loose.start()] + plain[loose.end() : loose.end() + 1]
            # "4 200" is not "4200".
            left_out[loose.start()] = (
                loose.end(),
                " " if loose[0].isspace() and around.isdigit() and len(around) == 2 else "",
            )
        left_out |= {division.start(): (division.end(), _DIVISION) for division in _DIVIDED.finditer(plain)}
        characters: list[str] = []
        ranges: list[tuple[int, int]] = []
        index = 0
        while index < len(plain):
            end, written = left_out.get(index) or (index + 1, _write_out(plain[index]))
            characters += written
            ranges += [(index, end)] * len(written)
            index = end
        return cls(
            text, "".join(characters), tuple(start for start, _ in ranges), tuple(end for _, end in ranges)
        )

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return the range of ``quote`` in the text, or None if it is not there.

        A full stop, comma or the like at its end may be missing in the source; spaces, quotation marks, emphasis, the
        hyphen of a line's end, a currency's sign and the case of the first letter may differ. What it leaves out
        ("...") lies in the range.
        """
        quote = quote.strip(_AROUND).removesuffix("...").removeprefix("...").strip(_AROUND)
        for form in (quote, quote.rstrip(".,;:!?")):
            parts = [part for part in _ELLIPSIS.split(form) if _WORD.search(part)]
            spans = [(0, 0)]
            for part in parts:
                if (span := self._find(SourceText.from_text(part).normalised, spans[-1][1])) is None:
                    break
                spans.append(span)
            if parts and len(spans) > len(parts):
                return spans[1][0], spans[-1][1]
        return None

    def _find(self, words: str, after: int) -> tuple[int, int] | None:
        """Return the range of the first place of normalised words that begins at ``after`` or later."""
        words = words.replace(_DIVISION, "")
        pieces = [re.escape(char) for char in words]
        for place in _BEFORE_NUMBER.finditer(words):
            if place.start():
                pieces[place.start()] = _CURRENCY + pieces[place.start()]
        # The hyphen of a word may be that of a line's end, and a division may be where the quote has none.
        first, *others = (f"[-{_DIVISION}]" if piece == r"\-" else piece for piece in pieces)
        rest = "".join(f"{_DIVISION}?{piece}" for piece in others)
        for start_of in (first, f"(?i:{first})"):
            for match in re.finditer(f"(?=({start_of}{rest}))", self.normalised):
                start, end = self.starts[match.start(1)], self.ends[match.end(1) - 1]
                if start >= after and self._stands_alone(start, end):
                    return start, end
        return None

    def _stands_alone(self, start: int, end: int) -> bool:
        """Return whether a range begins and ends where words and numbers do."""
        before, inside, behind = (
            self.text[max(start - 2, 0) : start],
            self.text[start:end],
            self.text[end : end + 2],
        )
        if re.match(_SPACED, inside) and re.search(rf"{_SPACED}\Z", before):
            return False
        if re.search(rf"{_SPACED}\Z", inside) and re.match(_SPACED, behind):
            return False
        is_cut = inside[0].isdigit() and re.fullmatch(r"\d[.,]", before)
        return not is_cut and not (inside[-1].isdigit() and re.fullmatch(r"[.,]\d", behind))


def _write_out(char: str) -> str:
    return _WRITTEN_OUT[char] if char in _WRITTEN_OUT else unicodedata.normalize("NFD", char)


def find_verbatim(text: str, hits: Sequence[Hit]) -> tuple[Quote, ...]:
    """Return a text as a quote from the first hit that has it verbatim, as a tuple of one; an empty one if none
    has."""
    for hit in hits:
        span = SourceText.from_text(hit.node.text).find(text)
        if span:
            return (Quote(hit.node.id, hit.node.text[slice(*span)], span),)
    return ()


#: A quote of at least this many words is also looked for in other sources than the one it names.
_LONG_QUOTE = 4
#: A quote of a letter alone, which stands in any source ("a", the "x" of an example).
_LETTER = re.compile(rf"(?!\d){_SPACED}")
#: How the outcome of an answer begins that nothing supports, and what the answer says of it.
_UNSUPPORTED = "unsupported"
_USED_INSTEAD = "no quote supports it, so the passages were read without the model"


@component("cited", summary="a model answers with quotes, each checked to be in its source; may abstain")
@dataclass(frozen=True, slots=True)
class CitedReader:
    """Asks for quotes, how the answer follows from them, the answer, and what no source states.

    ``template`` is the prompt ``read-cited``. An empty answer is an abstention. Every quote is looked up
    (:func:`find_verbatim`), and the characters of the source are shown. A quote that is not in the source it names,
    nor, if it has at least four words, in another one, goes to ``Answer.rejected_quotes`` and supports nothing; nor
    does a letter alone that is not a word of the answer.

    **An answer that no quote supports is not given.** The reader abstains, and the step has the model's answer as
    ``withheld``. One exception: if the model gave no quotes, but its answer of at least two words is itself verbatim
    in a source, then the answer is the quote.

    An answer that says that there is none, in whatever words, is an abstention. A reply in another form than asked is
    returned to the model once, with the problem. If the second reply cannot be read either, it is taken as text, with
    what it puts in quotation marks as its quotes, under the rule above. Hits beyond ``characters`` of text are
    not shown to the model; the step counts them (``left_out``).

    Where the model does answer but nothing supports that, ``otherwise`` reads in its place, and the trail and the
    answer say so: a model never yields less than no model would. As an option it is ``auto`` (the trained reader, if
    one is set), a reader, or ``none``.
    """

    model: LanguageModel
    template: Template
    otherwise: Reader | None = None
    characters: int = 48_000

    @classmethod
    def build(
        cls,
        resources: Resources,
        model: LanguageModel,
        template: Annotated[Template, PromptFile("read-cited")],
        otherwise: Recipe = AUTO,
    ) -> CitedReader:
        """Return the reader with the one that reads in its place."""
        instead = resources.reader_without_model() if otherwise == AUTO else otherwise
        return cls(model, template, None if instead == NO_COMPONENT else resources.reader(instead))

    def read(self, question: Question, hits: Sequence[Hit], trail: Trail) -> Answer:
        """Return the answer with the hits that it quotes, or abstain. Raises ModelError."""
        shown = take_fitting(hits, self.characters)
        left_out = len(hits) - len(shown)
        step = CitedReadStep("cited", self.template.name, len(shown), left_out=left_out or None)
        if not shown:
            trail.add(replace(step, outcome="nothing to read"))
            return Answer(NOT_FOUND, abstained=True, reader=self.model.name)
        started = time.perf_counter()
        reply, model, step = self._ask(question, shown, step)
        answer, step = _check_reply(reply, shown, step)
        trail.add(replace(step, hits=answer.evidence, seconds=time.perf_counter() - started))
        if self.otherwise is None or not (step.outcome or "").startswith(_UNSUPPORTED):
            return replace(answer, usage=step.usage, reader=model)
        trail.add(FallbackStep("answer", _USED_INSTEAD, (step.withheld or "")[:200] or None))
        instead = self.otherwise.read(question, hits, trail)
        return replace(instead, usage=instead.usage + step.usage, rejected_quotes=answer.rejected_quotes)

    def _ask(
        self, question: Question, hits: Sequence[Hit], step: CitedReadStep
    ) -> tuple[dict[str, Any], str, CitedReadStep]:
        """Return the reply as the schema has it, the model's name, and the step with how the reply came about."""
        contexts = numbered_contexts(hits)
        prompt = self.template.render(question=question.text, contexts="\n\n".join(contexts))
        prompt = make_passages_optional(prompt, contexts)
        completion = self.model.complete([prompt])[0]
        usage, model = completion.usage, completion.model
        try:
            return self._parse(completion.text), model, replace(step, model=model, usage=usage)
        except BadCompletion as error:
            problem = error.problem
        again = f"{prompt.user}\n\nYour last reply could not be used: {problem}. Reply with the JSON object alone."
        completion = self.model.complete([replace(prompt, user=again)])[0]
        model = completion.model
        step = replace(step, model=model, asked_again=problem, usage=usage + completion.usage)
        try:
            return self._parse(completion.text), model, step
        except BadCompletion as error:
            return _read_prose(completion.text), model, replace(step, taken_as_text=error.problem)

    def _parse(self, reply: str) -> dict[str, Any]:
        """Return a reply as the schema has it. Models leave ``abstain`` out, give quotes as plain texts, or write
        "[2]" for a source; all that can be understood without guessing. Raises BadCompletion."""
        try:
            parsed: dict[str, Any] = self.template.parse(reply)
            return parsed
        except BadCompletion:
            loose = parse_json(reply, _LOOSE_SCHEMA)
        items = loose.get("quotes") or []
        quotes = [quote for item in items if (quote := _read_quote(item)) is not None]
        texts = {key: _read_words(loose.get(key)) for key in ("answer", "why", "missing")}
        # Some models say so of themselves, beside an answer.
        return {"quotes": quotes, "abstain": loose.get("abstain") is True} | texts


_LOOSE_SCHEMA = {
    "type": "object",
    "properties": {
        "quotes": {"type": ["array", "null"]},
        "answer": {"type": ["string", "number", "boolean", "array", "null"]},
        "abstain": {},
        "why": {},
        "missing": {},
    },
    "required": ["answer"],
}
#: How a model says that nothing is missing where it was asked to leave that empty.
_NOTHING = re.compile(r"\W*(?:n/?a|null|none|nothing|no (?:further|more|other|additional|missing))\b", re.I)
_QUOTATION = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»")


def _read_words(value: Any) -> str:
    """Return what a reply has in the place of a text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(filter(None, map(_read_words, value)))
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _read_quote(item: Any) -> dict[str, Any] | None:
    """Return a quote as the schema has it; source 0, which no source has, for one that names none."""
    if isinstance(item, str):
        return {"source": 0, "text": item}
    if not isinstance(item, dict):
        return None
    text = item.get("text") or item.get("quote")
    number = re.search(r"(?<!\d)\d{1,9}(?!\d)", str(item.get("source", "")))
    return {"source": int(number[0]) if number else 0, "text": text} if isinstance(text, str) else None


def _read_prose(reply: str) -> dict[str, Any]:
    """Return a reply in prose as the schema has it: the answer that it announces, or all of it, and what it puts in
    quotation marks."""
    text = clean_reply(reply)
    quotes = [
        {"source": 0, "text": quote}
        for match in _QUOTATION.finditer(text)
        if len((quote := match[1] or match[2] or match[3]).split()) >= _LONG_QUOTE
    ]
    answer = parse_final_answer(text) if quotes else ""
    return {"quotes": quotes if answer else [], "answer": answer or text, "why": "", "missing": ""}


def _check_reply(
    reply: dict[str, Any], hits: Sequence[Hit], step: CitedReadStep
) -> tuple[Answer, CitedReadStep]:
    """Return the answer that a reply supports, and the step with the outcome."""
    claim, missing = reply["answer"].strip(), reply["missing"].strip()
    missing = "" if _NOTHING.match(missing) else missing
    quotes, rejected, moved = _check_quotes(reply["quotes"], claim, hits)
    step = replace(step, quotes=len(quotes), rejected=len(rejected), found_elsewhere=moved or None)
    step = replace(step, why=reply["why"].strip() or None, missing=missing or None)
    cited = {quote.node for quote in quotes}
    evidence = tuple(hit for hit in hits if hit.node.id in cited)
    if not claim or reply.get("abstain") or is_refusal(claim):
        answer = Answer(NOT_FOUND, evidence, rejected_quotes=rejected, abstained=True, missing=missing)
        return answer, replace(step, outcome="the model abstains", withheld=claim or None)
    if not reply["quotes"] and len(claim.split()) > 1:
        quotes = find_verbatim(claim, hits)
        evidence = tuple(hit for hit in hits if hit.node.id in {quote.node for quote in quotes})
    if not quotes:
        outcome = f"{_UNSUPPORTED}: " + (
            "no quote in its source supports it" if rejected else "it quotes nothing"
        )
        answer = Answer(NOT_FOUND, rejected_quotes=rejected, abstained=True)
        return answer, replace(step, outcome=outcome, withheld=claim)
    if not has_certain_support(claim, [hit.node for hit in evidence], [hit.node for hit in hits]):
        answer = Answer(NOT_FOUND, rejected_quotes=rejected, abstained=True)
        outcome = f"{_UNSUPPORTED}: a number is quoted only from a table with uncertain headers"
        return answer, replace(step, outcome=outcome, withheld=claim)
    outcome = "answered" if reply["quotes"] else "answered in a source's own words"
    return Answer(claim, evidence, quotes, rejected, missing=missing), replace(step, outcome=outcome)


def _check_quotes(
    replied: Sequence[dict[str, Any]], claim: str, hits: Sequence[Hit]
) -> tuple[tuple[Quote, ...], tuple[str, ...], int]:
    """Return the quotes that are in a source and may support the ``claim``, the others, and how many were in another
    source than they named."""
    sources: dict[int, SourceText] = {}

    def quote_from(index: int, text: str) -> Quote | None:
        node = hits[index].node
        source = sources.setdefault(index, SourceText.from_text(node.text))
        span = source.find(text)
        return Quote(node.id, node.text[slice(*span)], span) if span else None

    quotes: dict[Quote, None] = {}
    rejected: dict[str, None] = {}
    moved = 0
    for item in replied:
        named = item["source"] - 1
        text = item["text"].strip()
        quote = quote_from(named, text) if 0 <= named < len(hits) else None
        if quote is None and len(text.split()) >= _LONG_QUOTE:
            others = (quote_from(index, text) for index in range(len(hits)) if index != named)
            quote = next((other for other in others if other), None)
            moved += quote is not None
        if quote is not None and (not _LETTER.fullmatch(quote.text) or quote.text in _WORDS.findall(claim)):
            quotes[quote] = None
        elif text:
            rejected[text] = None
    return tuple(quotes), tuple(rejected), moved
