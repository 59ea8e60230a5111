"""Typed triples from questions: asked of a model, checked, fitted to the graphs, and put in order."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clew.core.errors import BadCompletion, UsageError
from clew.core.prompts.replies import clean_reply, parse_json
from clew.core.prompts.templates import Template, load_prompt
from clew.core.protocols import Completion, LanguageModel, PropertyGraph, RelationLinker, Trail
from clew.core.steps import TriplesStep
from clew.core.types import Question, Usage
from clew.methods.focus.pronouns import PronounResolver
from clew.methods.focus.schema import SchemaLimits, describe_schema
from clew.methods.focus.schema_alignment import align_to_schema
from clew.methods.replies import sample_prompts
from clew.triples.language.consistency import rank_typed_by_agreement
from clew.triples.language.errors import ChainError, IncorrectTripleFormatError
from clew.triples.language.quantifiers import parse_counted_tail, split_negation, split_quantifier
from clew.triples.language.quoting import quote
from clew.triples.language.typed_chain import TypedChain
from clew.triples.language.typed_parsing import TypedParse, parse_typed_statements
from clew.triples.linking.relation_words import verbalise_relation, word_stems
from clew.triples.linking.relations import GraphRelationLinker

#: Keys that a reply must have; small models leave empty ones out.
_NEEDED = frozenset({"of", "type", "head", "relation", "tail", "property", "test", "value", "answer"})
_N = r"(?:#\s*\d+|\?[A-Za-z_]\w*)"
_UNKNOWN = re.compile(rf"{_N}|[x-zX-Z]_?\d{{0,2}}")
#: An unknown with its type.
_TYPED = re.compile(rf"{_N}\s*(?:[(\[{{][^()\[\]{{}}#]+[)\]}}]|:[^#:]+)")
#: The same the other way round, as which names with a number look as well: "Mambo #1".
_TYPE_FIRST = re.compile(rf"(?:an?\s+|the\s+)?[(\[]?(?P<type>[^()\[\]#?]+?)[)\]]?\s*:?\s*{_N}")
_COMPARED = re.compile(r"[<>=≤≥≠¬]|!=?(?=[\w\s])")
_QUANTIFIER = 'A quantifier is "", "not", "only", "at least 2", "at most 2" or "exactly 2"'


@dataclass(frozen=True, slots=True)
class TriplesWriter:
    """ASK_LLM_FOR_TRIPLETS of 4StepFocus (Boer et al., 2024, Algorithm 1, line 1): the model is shown node types and
    relations, and writes the question as triples with a target variable.

    ``template`` is ``focus-triples`` and ``pronouns`` is ``focus-pronouns``. Beyond the paper: pronouns are resolved
    first (its future work); the schema has counts, examples and properties, and where it is large is cut to ``room``
    by ``linker``; conditions, quantifiers, negation and wishes; with several ``samples`` the question that most agree
    on is first; where no reply can be used, the model is told why and asked once more. A type or a relation that no
    graph has is no error, since both are linked by likeness later.
    """

    model: LanguageModel
    template: Template
    pronouns: Template
    linker: RelationLinker = field(default_factory=GraphRelationLinker)
    samples: int = 1
    room: SchemaLimits = field(default_factory=SchemaLimits)

    @classmethod
    def build(cls, model: LanguageModel, linker: RelationLinker, samples: int) -> TriplesWriter:
        """Return the writer of a recipe, with the prompts that come with clew."""
        return cls(model, load_prompt("focus-triples"), load_prompt("focus-pronouns"), linker, samples)

    def write(self, question: Question, graphs: Sequence[PropertyGraph], trail: Trail) -> list[TypedChain]:
        """Return the question as typed triples, the version that most samples agree on first; none where no reply can
        be used: the question can then be compared with texts alone.

        Raises ModelError, RemoteError, and ChainError for triples of the question's own that are none.
        """
        if question.chain:
            return parse_given_triples(question, trail, graphs)
        text = PronounResolver(self.model, self.pronouns).resolve(question.text, trail)
        started = time.perf_counter()
        schema = describe_schema(graphs, text, self.linker, self.room)
        prompt = self.template.render(question=text, schema=schema.text)
        prompts = sample_prompts(prompt, self.samples)
        made = self.model.complete(prompts)
        usage = sum((one.usage for one in made), Usage())
        types = [type for graph in graphs for type in graph.types()]
        read, errors = self._read(made, types)
        if not read:
            problems = "; ".join(dict.fromkeys(error.problem for error in errors))
            wrong = clean_reply(f"Your last reply could not be used: {problems}. {errors[-1].hint}")
            again = self.model.complete([replace(prompt, user=f"{prompt.user}\n\n{wrong}")])
            usage += again[0].usage
            read, more = self._read(again, types)
            errors += more
        alignments = [align_to_schema(one.chain, graphs) for one in read]
        chains = rank_typed_by_agreement([one.chain for one in alignments])
        kinds = Counter(type(error).__name__ for error in errors)
        step = TriplesStep(
            "",
            prompt=self.template.name,
            usable=len(read),
            schema=schema.summary,
            others=tuple(str(one) for one in chains[1:]) or None,
            errors=", ".join(f"{name} {count}" for name, count in kinds.most_common()) or None,
            samples=len(prompts),
            usage=usage,
            seconds=time.perf_counter() - started,
        )
        if chains:
            first = next(place for place, one in enumerate(alignments) if one.chain is chains[0])
            notes = _dropped_and_fitted(read[first], alignments[first].notes)
            step = replace(step, triples=str(chains[0]), dropped=notes[0], fitted=notes[1])
        trail.add(step)
        return chains

    def _read(
        self, made: Sequence[Completion], types: Sequence[str]
    ) -> tuple[list[TypedParse], list[ChainError]]:
        """Return the questions of replies that can be used, and what is wrong with the others."""
        found: list[TypedParse] = []
        errors: list[ChainError] = []
        for one in made:
            try:
                found.append(self._reading(one.text, types))
            except ChainError as error:
                errors.append(error)
        return found, errors

    def _reading(self, reply: str, types: Sequence[str]) -> TypedParse:
        """Return the question of a reply, JSON or text, over graphs of some types. Raises ChainError."""
        if self.template.schema is None:
            return parse_typed_statements(reply)
        try:
            said = parse_json(reply, _lenient(self.template.schema))
        except BadCompletion as error:
            try:
                return parse_typed_statements(reply)
            except ChainError:
                raise ChainError(error.problem, error.hint) from error
        return parse_typed_statements(reply_to_text(said, types))


def parse_given_triples(
    question: Question, trail: Trail, graphs: Sequence[PropertyGraph] = ()
) -> list[TypedChain]:
    """Return the typed triples that a person wrote for a question, fitted to ``graphs``.

    Raises ChainError, also for a line that says nothing; UsageError where nobody wrote any; RemoteError.
    """
    if not question.chain:
        raise UsageError(
            "'focus' needs a language model to write the question as typed triples, and none is set",
            "Name one (--llm ollama:llama3.1), or write them yourself: "
            "--triples '#1 : film; #1 >> directed_by >> David Lynch; #1.release_year < 1990; final answer: #1'",
        )
    read = parse_typed_statements(question.chain)
    if read.ignored:
        raise IncorrectTripleFormatError(
            f"this says nothing: '{read.ignored[0]}'",
            "Give the type of a constant only where a triple has it",
        )
    fit = align_to_schema(read.chain, graphs)
    dropped, fitted = _dropped_and_fitted(read, fit.notes)
    trail.add(TriplesStep(str(fit.chain), written_by="hand", dropped=dropped, fitted=fitted))
    return [fit.chain]


def reply_to_text(said: Mapping[str, Any], types: Iterable[str] = ()) -> str:
    """Return a structured reply in the form that :func:`clew.triples.language.typed_parsing.parse_typed`
    reads, names quoted; ``types`` are
    those of the graphs. Raises IncorrectTripleFormatError for a quantifier that is none, and a type that denies."""
    known = frozenset(
        word_stems(verbalise_relation(one))
        for one in (*types, *(one["type"] for one in said.get("types", ())))
    )
    lines = [
        f"{_term(one['of'], known)} : {_types(one['type'], types)}"
        for one in said.get("types", ())
        if one["type"].strip()
    ]
    for one in said.get("triples", ()):
        triple = f"{_term(one['head'], known)} >> {_relation(one['relation'])} >> {_tail(one['tail'], known)}"
        lines.append(f"{_quantifier(one.get('quantifier') or '')} {triple}".strip())
    for one in said.get("conditions", ()):
        denied = "not " if one["test"] == "!=" else ""
        test = "=" if one["test"] == "!=" else one["test"]
        high = one.get("high")
        value = _value(one["value"]) + (
            f" and {_value(high)}" if test == "between" and high is not None else ""
        )
        lines.append(f"{denied}{_term(one['of'], known)}.{quote(one['property'])} {test} {value}")
    lines += [f"~ {quote(wish)}" for wish in said.get("wishes", ()) if wish.strip()]
    return "\n".join([*lines, f"final answer: {said['answer']}"])


def _term(text: str, types: Collection[frozenset[str]]) -> str:
    """Return a head or a tail: quoted, unless it is an unknown, perhaps with its type: one of the reply's or the
    graphs', as stems, where it stands first."""
    text = " ".join(text.split())
    bare = split_quantifier(text)[1]
    match = _TYPE_FIRST.fullmatch(bare)
    unknown = (
        _UNKNOWN.fullmatch(bare)
        or _TYPED.fullmatch(bare)
        or (match is not None and word_stems(verbalise_relation(match["type"])) in types)
    )
    return text if unknown or not text else quote(text)


def _tail(text: str, types: Collection[frozenset[str]]) -> str:
    """Return a tail as :func:`_term` does; bare as well where it counts or compares: "at least 2 actors"."""
    text = " ".join(text.split())
    return text if parse_counted_tail(text) or _COMPARED.match(text) else _term(text, types)


def _quantifier(said: str) -> str:
    said = " ".join(said.split())
    # "None" says "not" as well as that there is no quantifier.
    if said and (said.casefold() == "none" or split_quantifier(f"{said} #1")[1] != "#1"):
        raise IncorrectTripleFormatError(f"'{said}' is no quantifier", _QUANTIFIER)
    return said


def _types(text: str, known: Iterable[str]) -> str:
    found = [one for one in re.split(r"\s+or\s+|\s*\|\s*", text.strip()) if one]
    for one in found:
        if split_negation(one)[0] and one not in known:
            raise IncorrectTripleFormatError(
                f"the type '{one}' denies", "Deny a triple or a condition instead"
            )
    return " or ".join(map(quote, found))


def _relation(text: str) -> str:
    # Bare: "not" before a relation is understood, and an unknown in it refused.
    return quote(text) if re.search(r'[>;"|]', text) else " ".join(text.split())


def _value(value: str | float) -> str:
    # A number is one however it was given; a name may hold "and".
    text = " ".join(str(value).split())
    return text if re.fullmatch(r"[$€£]?[-+]?\d[\d.,]*(?:\s\w+)?", text) else quote(text)


def _dropped_and_fitted(
    read: TypedParse, notes: Sequence[str]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return for the trail the triples that were left out and how others were fitted to the schema, None for none."""
    dropped = tuple(f"{one} (nothing in it is unknown)" for one in read.dropped)
    return dropped or None, tuple(notes) or None


def _lenient(schema: Any) -> Any:
    """Return a schema that requires only what nothing can be made of without."""
    if isinstance(schema, Mapping):
        made = {key: _lenient(value) for key, value in schema.items()}
        if isinstance(schema.get("required"), Sequence):
            made["required"] = [key for key in schema["required"] if key in _NEEDED]
        return made
    return [_lenient(one) for one in schema] if isinstance(schema, list) else schema
