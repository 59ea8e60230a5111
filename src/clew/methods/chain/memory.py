"""What the model knows: the step that fills whatever is left, and settles the final answer."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from clew.core.prompts.replies import clean_reply
from clew.core.protocols import LanguageModel, PromptTemplate, Trail
from clew.core.steps import RememberStep
from clew.core.text import normalise
from clew.core.types import Question
from clew.methods.chain.unknowns import Candidate, FilledChain, Filling
from clew.triples.language.chain import Chain

_FINAL = re.compile(r"final\s+answer\s*(?:is|:)\s*(?P<answer>[^\n;]+)", re.IGNORECASE)
_FILLED = re.compile(r"^.*filled\s+(?:reasoning\s+)?chain\s*:\s*", re.IGNORECASE | re.DOTALL)
#: What follows is another example that the model makes up.
_NEXT = re.compile(r"^\s*(?:question|claim)\s*:.*\Z", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_UNSURE = {"", "unknown", "none", "n/a", "not known", "?"}
_AROUND = " \t.*_\"'`"
#: How sure a memory is taken to be: less than anything that has evidence.
_REMEMBERED = 0.3


@dataclass(frozen=True, slots=True)
class Memory:
    """Parametric memory (Section 3.2, last step): the model writes the chain again with every unknown filled.

    ``template`` is ``chain-memory`` (25 exemplars). What was filled before stays: a triple that the model changes is
    passed over, and the trail says so.
    """

    model: LanguageModel
    template: PromptTemplate
    name: str = "model"

    def recall(self, question: Question, filled: FilledChain, trail: Trail) -> str:
        """Fill what is open and return the final answer as the model gives it, "" where it gives none.

        Raises ModelError.
        """
        started = time.perf_counter()
        chain = filled.chain.fill(filled.best_values)
        made = self.model.complete([self.template.render(question=question.text, chain=str(chain))])[0]
        text = _NEXT.sub("", _FILLED.sub("", clean_reply(made.text)))
        values, ignored = _read(text, chain)
        for number, value in values.items():
            filled.add(number, Filling(self.name, (Candidate(value, _REMEMBERED),)))
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
                usage=made.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return final


def _read(text: str, chain: Chain) -> tuple[dict[int, str], list[str]]:
    """Return the values that a filled chain gives to the unknowns of ``chain``, and the triples that do not fit."""
    parts = [part.strip() for part in re.split(r"[;\n]", text) if ">>" in part]
    values: dict[int, str] = {}
    ignored: list[str] = []
    for triple, part in zip(chain.triples, parts, strict=False):
        pieces = [piece.strip(_AROUND) for piece in part.split(">>")]
        if len(pieces) != 3 or normalise(pieces[1]) != normalise(triple.relation):
            ignored.append(part)
            continue
        for term, piece in ((triple.head, pieces[0]), (triple.tail, pieces[2])):
            number = term.unknown
            if (
                number is not None
                and number not in values
                and "#" not in piece
                and normalise(piece) not in _UNSURE
            ):
                values[number] = piece
    return values, ignored
