"""The model's memory: it fills the unknowns that no source knows, and gives the final answer."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from clew.core.prompts.replies import clean_reply
from clew.core.protocols import LanguageModel, PromptTemplate, Trail
from clew.core.text import normalise
from clew.core.trail import RememberStep
from clew.core.types import Question
from clew.methods.chain.unknowns import Candidate, FilledChain, Filling
from clew.triples.language.chain import Chain

_FINAL = re.compile(r"final\s+answer\s*(?:is|:)\s*(?P<answer>[^\n;]+)", re.IGNORECASE)
_FILLED = re.compile(r"^.*filled\s+(?:reasoning\s+)?chain\s*:\s*", re.IGNORECASE | re.DOTALL)
#: Models go on with another example of their own invention.
_NEXT = re.compile(r"^\s*(?:question|claim)\s*:.*\Z", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_UNSURE = {"", "unknown", "none", "n/a", "not known", "?"}
_AROUND = " \t.*_\"'`"
#: The score of a remembered value: less than that of any with evidence.
_SCORE = 0.3


@dataclass(frozen=True, slots=True)
class Memory:
    """Parametric memory (Section 3.2, last step): the model writes the chain again with every unknown filled.

    ``template`` is ``chain-memory`` (25 exemplars). Values from the sources stay: a triple that the model changes is
    ignored, and the trail says so.
    """

    model: LanguageModel
    template: PromptTemplate
    name: str = "model"

    def recall(self, question: Question, filled: FilledChain, trail: Trail) -> str:
        """Fill the open unknowns, and return the model's final answer, "" if it gives none.

        Raises ModelError.
        """
        started = time.perf_counter()
        chain = filled.chain.fill(filled.best_values)
        prompt = self.template.render(question=question.text, chain=str(chain))
        completion = self.model.complete([prompt])[0]
        text = _NEXT.sub("", _FILLED.sub("", clean_reply(completion.text)))
        values, ignored = _parse_values(text, chain)
        for number, value in values.items():
            filled.add(number, Filling(self.name, (Candidate(value, _SCORE),)))
        match = _FINAL.search(text)
        final = match["answer"].strip(_AROUND) if match else ""
        final = "" if normalise(final) in _UNSURE or "#" in final else final
        trail.add(
            RememberStep(
                self.name,
                self.template.name,
                str(chain),
                {f"#{number}": value for number, value in values.items()},
                final,
                not_as_asked="; ".join(ignored) or None,
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return final


def _parse_values(text: str, chain: Chain) -> tuple[dict[int, str], list[str]]:
    """Return the values that a filled chain gives the unknowns of ``chain``, and the triples that differ from it."""
    written = [part.strip() for part in re.split(r"[;\n]", text) if ">>" in part]
    values: dict[int, str] = {}
    ignored: list[str] = []
    for triple, text_of_triple in zip(chain.triples, written, strict=False):
        parts = [part.strip(_AROUND) for part in text_of_triple.split(">>")]
        if len(parts) != 3 or normalise(parts[1]) != normalise(triple.relation):
            ignored.append(text_of_triple)
            continue
        for term, value in ((triple.head, parts[0]), (triple.tail, parts[2])):
            is_value = "#" not in value and normalise(value) not in _UNSURE
            if term.unknown is not None and term.unknown not in values and is_value:
                values[term.unknown] = value
    return values, ignored
