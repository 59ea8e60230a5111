"""What the model of a chain writes (Su et al., NAACL 2024).

:class:`ChainWriter` has questions written as chains (Section 3.1): samples, filtered and ordered. :class:`Memory` has
the model fill the unknowns that no source knows, and give the final answer (Section 3.2, last step).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clew.core.errors import BadCompletion, UsageError
from clew.core.prompts.replies import clean_reply, is_refusal
from clew.core.prompts.templates import Template
from clew.core.protocols import Completion, LanguageModel, PromptTemplate, Trail
from clew.core.text import normalise_name
from clew.core.trail import ChainStep
from clew.core.types import Question, ShownStep, Usage
from clew.methods.chain.unknowns import Candidate, FilledChain, Filling, is_solvable
from clew.methods.prompting import sample_prompts
from clew.triples.language.chain import (
    LIST_MARK,
    Chain,
    ChainError,
    Limits,
    MaskUnderflowError,
    Term,
    Triple,
    parse_chain,
    parse_chain_reply,
    write_arrows,
)
from clew.triples.language.consistency import rank_by_agreement
from clew.triples.linking.relation_words import word_stems

#: The limits of a chain that a person wrote.
UNLIMITED = Limits(1, 99)
DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class ChainWriter:
    """Asks for ``samples`` chains, drops those with syntactic errors (Appendix B), and orders the rest by
    self-consistency.

    ``template`` is ``chain-parse`` (25 exemplars, free text) or ``chain-structured`` (zero-shot, with a JSON schema,
    for models that follow instructions). One sample is drawn at temperature 0.

    Beyond the paper: a chain with fewer unknowns than ``limits`` allow is used if there is no other (a question of
    one triple). If no chain can be used, the model is told why and asked once more. A chain with an unknown that
    nothing leads to is dropped.
    """

    model: LanguageModel
    template: Template
    samples: int = 1
    limits: Limits = DEFAULT_LIMITS

    def write(self, question: Question, trail: Trail) -> list[Chain]:
        """Return the chains of a question, the one that most samples agree on first; an empty list if none can be
        used.

        Raises ModelError, and ChainError if the question comes with a chain that cannot be read.
        """
        if question.chain:
            return read_given_chain(question, trail)
        started = time.perf_counter()
        prompt = self.template.render(question=question.text)
        prompts = sample_prompts(prompt, self.samples)
        completions = self.model.complete(prompts)
        usage = sum((completion.usage for completion in completions), Usage())
        chains, errors = self._parse_replies(completions)
        if not chains:
            problems = "; ".join(dict.fromkeys(error.problem for error in errors))
            remark = clean_reply(f"Your last reply could not be used: {problems}. {errors[-1].hint}")
            completions = self.model.complete([replace(prompt, user=f"{prompt.user}\n\n{remark}")])
            usage += completions[0].usage
            chains, further_errors = self._parse_replies(completions)
            errors += further_errors
        ranked = rank_by_agreement(chains)
        kinds = Counter(type(error).__name__ for error in errors)
        trail.add(
            ChainStep(
                str(ranked[0]) if ranked else "",
                prompt=self.template.name,
                samples=len(prompts),
                usable=len(chains),
                others=tuple(str(chain) for chain in ranked[1:]) or None,
                errors=", ".join(f"{name} {count}" for name, count in kinds.most_common()) or None,
                usage=usage,
                seconds=time.perf_counter() - started,
            )
        )
        return ranked

    def _parse_replies(self, completions: Sequence[Completion]) -> tuple[list[Chain], list[ChainError]]:
        """Return the chains of the replies that can be used, and the errors of the others."""
        chains: list[Chain] = []
        short_chains: list[Chain] = []
        errors: list[ChainError] = []
        for completion in completions:
            try:
                text = self._to_chain_text(completion.text)
                try:
                    chain, group = parse_chain_reply(text, self.limits), chains
                except MaskUnderflowError as error:
                    errors.append(error)
                    chain, group = parse_chain_reply(text, replace(self.limits, least=1)), short_chains
                if is_solvable(chain):
                    group.append(chain)
                else:
                    errors.append(
                        ChainError("nothing leads to one of the unknowns", "Begin with what is known")
                    )
            except ChainError as error:
                errors.append(error)
        return chains or short_chains, errors

    def _to_chain_text(self, reply: str) -> str:
        """Return the chain of a reply, JSON or text, in the form that the parser reads."""
        if self.template.schema is None:
            return reply
        try:
            content = self.template.parse(reply)
        except BadCompletion as error:
            raise ChainError(error.problem, error.hint) from error
        triples = [" >> ".join((each["head"], each["relation"], each["tail"])) for each in content["triples"]]
        return "; ".join([*triples, f"final answer: {content['answer']}"])


def read_given_chain(question: Question, trail: Trail) -> list[Chain]:
    """Return the chain that a person wrote for a question. Raises ChainError; UsageError if there is none."""
    if not question.chain:
        raise UsageError(
            "'chain' needs a language model to write the question as triples, and none is set",
            "Name one (--llm ollama:llama3.1), or write it yourself: "
            "--chain 'Kismet >> director >> #1; #1 >> born in >> #2; final answer: #2'",
        )
    chain = parse_chain(question.chain, UNLIMITED)
    if not is_solvable(chain):
        raise ChainError(
            "nothing in the chain leads to one of its unknowns",
            "Each triple needs an end that is known by then",
        )
    trail.add(ChainStep(str(chain), written_by="hand"))
    return [chain]


_FINAL = re.compile(r"final\s+answer\s*(?:is|:)\s*(?P<answer>[^\n;]+)", re.IGNORECASE)
_FILLED = re.compile(r"\A.*?filled\s+(?:reasoning\s+)?chain[^\n:]{0,20}:[*_\s]*", re.IGNORECASE | re.DOTALL)
#: Models go on with another example of their own invention.
_NEXT = re.compile(r"\n[^\w\n]*(?:question|claim)\s*:.*\Z", re.IGNORECASE | re.DOTALL)
_AROUND = " \t.*_\"'`"
#: "Tom Strake (uncertain)"
_DOUBT = re.compile(
    r"\s*\((?:un(?:certain|sure|verified|confirmed|known)|not\s+(?:sure|certain|verified|known)|guess\w*|probabl[ey]|possibl[ey]"
    r"|likely|perhaps|maybe|estimated?|assum\w+|\?)[^()]*\)",
    re.IGNORECASE,
)
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
        text = _DOUBT.sub("", _FILLED.sub("", _NEXT.sub("", write_arrows(clean_reply(completion.text)))))
        values, ignored = _parse_values(text, chain)
        for number, value in values.items():
            filled.add(number, Filling(self.name, (Candidate(value, _SCORE),)))
        match = _FINAL.search(text)
        final = match["answer"].strip(_AROUND) if match else ""
        final = "" if is_refusal(final) or "#" in final else final
        trail.add(
            ShownStep(
                "remember",
                {
                    "source": self.name,
                    "prompt": self.template.name,
                    "chain": str(chain),
                    **{f"#{number}": value for number, value in values.items()},
                    "final": final,
                    "not as asked": "; ".join(ignored) or None,
                },
                usage=completion.usage,
                seconds=time.perf_counter() - started,
            )
        )
        return final


def _parse_values(text: str, chain: Chain) -> tuple[dict[int, str], list[str]]:
    """Return the values that a filled chain gives the unknowns of ``chain``, and the triples that are none of it.

    A written triple fills the triple of the chain that has its relation, its head and its tail as far as they are
    known: models change the order, leave triples out and add others.
    """
    written = [part.strip() for part in re.split(r"[;\n`]", text) if ">>" in part]
    values: dict[int, str] = {}
    triples = list(chain.triples)
    pending = [
        (part, [each.strip(_AROUND) for each in LIST_MARK.sub("", part).split(">>")]) for part in written
    ]
    # Triples whose head is known go first: they say what the heads of the others are.
    for open_heads in (False, True):
        before = len(pending) + 1
        while len(pending) < before:
            before, rest = len(pending), pending
            pending = []
            for part, pieces in rest:
                match = _match_triple(pieces, triples, values, open_heads) if len(pieces) == 3 else None
                if match is None:
                    pending.append((part, pieces))
                    continue
                triples.remove(match)
                for term, value in ((match.head, pieces[0]), (match.tail, pieces[2])):
                    if term.unknown is not None and term.unknown not in values and _is_value(value):
                        values[term.unknown] = value
    return values, [part for part, _ in pending]


def _is_value(text: str) -> bool:
    return "#" not in text and text != "?" and not is_refusal(text)


def _match_triple(
    pieces: Sequence[str], triples: Sequence[Triple], values: Mapping[int, str], open_heads: bool
) -> Triple | None:
    """Return the triple that a written one fills; ``open_heads``: its head may be an unknown without a value."""
    head, relation, tail = pieces
    for triple in triples:
        ends = ((triple.head, head, open_heads), (triple.tail, tail, True))
        if _same_relation(triple.relation, relation) and all(
            _fits_term(term, text, values, may_be_open) for term, text, may_be_open in ends
        ):
            return triple
    return None


def _same_relation(asked: str, written: str) -> bool:
    """Return whether a relation is the one that was asked for, perhaps with further words: "father is"."""
    if normalise_name(asked) == normalise_name(written):
        return True
    words = word_stems(asked)
    return bool(words) and words <= word_stems(written)


def _fits_term(term: Term, text: str, values: Mapping[int, str], may_be_open: bool) -> bool:
    known = values.get(term.unknown) if term.unknown is not None else term.fill(values).text
    if known is None:
        return may_be_open
    if "#" in known:
        return True
    return normalise_name(known) == normalise_name(text)
