"""Writing questions as chains (Su et al., NAACL 2024, Section 3.1): samples of a model, filtered and ordered."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.core.errors import BadCompletion, UsageError
from clew.core.prompts.replies import clean_reply
from clew.core.prompts.templates import Template
from clew.core.protocols import Completion, LanguageModel, Trail
from clew.core.trail import ChainStep
from clew.core.types import Question, Usage
from clew.methods.chain.unknowns import is_solvable
from clew.methods.prompting import sample_prompts
from clew.triples.language.chain import Chain, Limits, parse_chain
from clew.triples.language.consistency import rank_by_agreement
from clew.triples.language.errors import ChainError, MaskUnderflowError

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
                    chain, group = parse_chain(text, self.limits), chains
                except MaskUnderflowError as error:
                    errors.append(error)
                    chain, group = parse_chain(text, replace(self.limits, least=1)), short_chains
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
