"""Step 1 of 4StepFocus (Boer et al., 2024, Algorithm 1, line 1): a model writes the question as typed triples.

Its replies are parsed, aligned with the names of the graphs, and put in the order in which most of them agree.
"""

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
from clew.core.trail import TriplesStep
from clew.core.types import Question, Usage
from clew.methods.focus.pronouns import PronounResolver
from clew.methods.focus.schema import SchemaLimits, describe_schema
from clew.methods.focus.schema_alignment import align_to_schema
from clew.methods.prompting import sample_prompts
from clew.triples.language.consistency import rank_typed_by_agreement
from clew.triples.language.errors import ChainError, IncorrectTripleFormatError
from clew.triples.language.quantifiers import parse_counted_tail, split_negation, split_quantifier
from clew.triples.language.quoting import quote
from clew.triples.language.typed_chain import TypedChain
from clew.triples.language.typed_parsing import TypedParse, parse_typed_statements
from clew.triples.linking.relation_words import verbalise_relation, word_stems
from clew.triples.linking.relations import GraphRelationLinker

#: Keys that a reply must have; small models leave others out where they are empty.
_NEEDED = frozenset({"of", "type", "head", "relation", "tail", "property", "test", "value", "answer"})
_N = r"(?:#\s*\d+|\?[A-Za-z_]\w*)"
_UNKNOWN = re.compile(rf"{_N}|[x-zX-Z]_?\d{{0,2}}")
#: An unknown with its type.
_TYPED = re.compile(rf"{_N}\s*(?:[(\[{{][^()\[\]{{}}#]+[)\]}}]|:[^#:]+)")
#: An unknown after its type; names with a number look the same: "Mambo #1".
_TYPE_FIRST = re.compile(rf"(?:an?\s+|the\s+)?[(\[]?(?P<type>[^()\[\]#?]+?)[)\]]?\s*:?\s*{_N}")
_COMPARED = re.compile(r"[<>=≤≥≠¬]|!=?(?=[\w\s])")
_QUANTIFIER = 'A quantifier is "", "not", "only", "at least 2", "at most 2" or "exactly 2"'


@dataclass(frozen=True, slots=True)
class TriplesWriter:
    """ASK_LLM_FOR_TRIPLETS: the model is shown the graphs' node types and relations, and writes triples with a
    target.

    ``template`` is ``focus-triples`` and ``pronouns`` is ``focus-pronouns``. Beyond the paper: pronouns are resolved
    first (its future work); the schema has counts, examples and properties, and a large one is cut to ``room`` with
    the help of ``linker``; there are conditions, quantifiers, negation and preferences; with several ``samples`` the
    interpretation that most agree on is first; if no reply can be used, the model is told why and asked once
    more. A type or a relation that no graph has is no error, since names are linked by likeness later.
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
        """Return the interpretations of a question, the one that most samples agree on first; none if no reply can be
        used.

        Raises ModelError, RemoteError, and ChainError for triples that come with the question and cannot be parsed.
        """
        if question.chain:
            return parse_given_triples(question, trail, graphs)
        text = PronounResolver(self.model, self.pronouns).resolve(question.text, trail)
        started = time.perf_counter()
        schema = describe_schema(graphs, text, self.linker, self.room)
        prompt = self.template.render(question=text, schema=schema.text)
        prompts = sample_prompts(prompt, self.samples)
        completions = self.model.complete(prompts)
        usage = sum((completion.usage for completion in completions), Usage())
        types = [type for graph in graphs for type in graph.types()]
        parses, errors = self._parse_replies(completions, types)
        if not parses:
            problems = "; ".join(dict.fromkeys(error.problem for error in errors))
            complaint = clean_reply(f"Your last reply could not be used: {problems}. {errors[-1].hint}")
            retried = self.model.complete([replace(prompt, user=f"{prompt.user}\n\n{complaint}")])
            usage += retried[0].usage
            parses, more_errors = self._parse_replies(retried, types)
            errors += more_errors
        alignments = [align_to_schema(parse.chain, graphs) for parse in parses]
        chains = rank_typed_by_agreement([alignment.chain for alignment in alignments])
        kinds = Counter(type(error).__name__ for error in errors)
        step = TriplesStep(
            "",
            prompt=self.template.name,
            usable=len(parses),
            schema=schema.summary,
            others=tuple(map(str, chains[1:])) or None,
            errors=", ".join(f"{name} {count}" for name, count in kinds.most_common()) or None,
            samples=len(prompts),
            usage=usage,
            seconds=time.perf_counter() - started,
        )
        if chains:
            first = next(n for n, alignment in enumerate(alignments) if alignment.chain is chains[0])
            notes = _dropped_and_fitted(parses[first], alignments[first].notes)
            step = replace(step, triples=str(chains[0]), dropped=notes[0], fitted=notes[1])
        trail.add(step)
        return chains

    def _parse_replies(
        self, completions: Sequence[Completion], types: Sequence[str]
    ) -> tuple[list[TypedParse], list[ChainError]]:
        """Return the parsed replies, and the errors of those that cannot be used."""
        parses: list[TypedParse] = []
        errors: list[ChainError] = []
        for completion in completions:
            try:
                parses.append(self._parse_reply(completion.text, types))
            except ChainError as error:
                errors.append(error)
        return parses, errors

    def _parse_reply(self, reply: str, types: Sequence[str]) -> TypedParse:
        """Return a parsed reply, JSON or text; ``types`` are those of the graphs. Raises ChainError."""
        if self.template.schema is None:
            return parse_typed_statements(reply)
        try:
            fields = parse_json(reply, _relax_schema(self.template.schema))
        except BadCompletion as error:
            try:
                return parse_typed_statements(reply)
            except ChainError:
                raise ChainError(error.problem, error.hint) from error
        return parse_typed_statements(reply_to_text(fields, types))


def parse_given_triples(
    question: Question, trail: Trail, graphs: Sequence[PropertyGraph] = ()
) -> list[TypedChain]:
    """Return the typed triples that come with a question, aligned with the names of ``graphs``.

    Raises ChainError, also for a line that says nothing; UsageError if the question has no triples; RemoteError.
    """
    if not question.chain:
        raise UsageError(
            "'focus' needs a language model to write the question as typed triples, and none is set",
            "Name one (--llm ollama:llama3.1), or write them yourself: "
            "--triples '#1 : film; #1 >> directed_by >> David Lynch; #1.release_year < 1990; final answer: #1'",
        )
    parse = parse_typed_statements(question.chain)
    if parse.ignored:
        raise IncorrectTripleFormatError(
            f"this says nothing: '{parse.ignored[0]}'",
            "Give the type of a constant only where a triple has it",
        )
    alignment = align_to_schema(parse.chain, graphs)
    dropped, fitted = _dropped_and_fitted(parse, alignment.notes)
    trail.add(TriplesStep(str(alignment.chain), written_by="hand", dropped=dropped, fitted=fitted))
    return [alignment.chain]


def reply_to_text(reply: Mapping[str, Any], types: Iterable[str] = ()) -> str:
    """Return a structured reply as text that :func:`clew.triples.language.typed_parsing.parse_typed` reads, with
    names in quotation marks; ``types`` are those of the graphs.

    Raises IncorrectTripleFormatError for an unknown quantifier and for a negated type.
    """
    typed = reply.get("types", ())
    known = frozenset(
        word_stems(verbalise_relation(type)) for type in (*types, *(row["type"] for row in typed))
    )
    lines = [
        f"{_format_term(row['of'], known)} : {_format_types(row['type'], types)}"
        for row in typed
        if row["type"].strip()
    ]
    for row in reply.get("triples", ()):
        head, tail = _format_term(row["head"], known), _format_tail(row["tail"], known)
        quantifier = _check_quantifier(row.get("quantifier") or "")
        lines.append(f"{quantifier} {head} >> {_format_relation(row['relation'])} >> {tail}".strip())
    for row in reply.get("conditions", ()):
        negation, test = ("not ", "=") if row["test"] == "!=" else ("", row["test"])
        value, high = _format_value(row["value"]), row.get("high")
        if test == "between" and high is not None:
            value = f"{value} and {_format_value(high)}"
        lines.append(f"{negation}{_format_term(row['of'], known)}.{quote(row['property'])} {test} {value}")
    lines += [f"~ {quote(wish)}" for wish in reply.get("wishes", ()) if wish.strip()]
    return "\n".join([*lines, f"final answer: {reply['answer']}"])


def _format_term(text: str, types: Collection[frozenset[str]]) -> str:
    """Return a head or a tail: in quotation marks, unless it is an unknown, perhaps with its type. A type before the
    unknown must be one of ``types``, as stems."""
    text = " ".join(text.split())
    bare = split_quantifier(text)[1]
    match = _TYPE_FIRST.fullmatch(bare)
    is_unknown = (
        _UNKNOWN.fullmatch(bare)
        or _TYPED.fullmatch(bare)
        or (match is not None and word_stems(verbalise_relation(match["type"])) in types)
    )
    return text if is_unknown or not text else quote(text)


def _format_tail(text: str, types: Collection[frozenset[str]]) -> str:
    """Return a tail as :func:`_format_term` does, and as it is if it counts or compares: "at least 2 actors"."""
    text = " ".join(text.split())
    return text if parse_counted_tail(text) or _COMPARED.match(text) else _format_term(text, types)


def _check_quantifier(text: str) -> str:
    text = " ".join(text.split())
    # "None" could mean "not", or that there is no quantifier.
    if text and (text.casefold() == "none" or split_quantifier(f"{text} #1")[1] != "#1"):
        raise IncorrectTripleFormatError(f"'{text}' is no quantifier", _QUANTIFIER)
    return text


def _format_types(text: str, known: Iterable[str]) -> str:
    types = [type for type in re.split(r"\s+or\s+|\s*\|\s*", text.strip()) if type]
    for type in types:
        if split_negation(type)[0] and type not in known:
            raise IncorrectTripleFormatError(
                f"the type '{type}' denies", "Deny a triple or a condition instead"
            )
    return " or ".join(map(quote, types))


def _format_relation(text: str) -> str:
    # Without quotation marks if possible: then the parser understands "not" before it, and refuses an unknown in it.
    return quote(text) if re.search(r'[>;"|]', text) else " ".join(text.split())


def _format_value(value: str | float) -> str:
    # A number is a number even if it was given as text; a name is quoted, since it may contain "and".
    text = " ".join(str(value).split())
    return text if re.fullmatch(r"[$€£]?[-+]?\d[\d.,]*(?:\s\w+)?", text) else quote(text)


def _dropped_and_fitted(
    parse: TypedParse, notes: Sequence[str]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return for the trail the triples that were dropped, and how others were aligned with the schema; None: none."""
    dropped = tuple(f"{triple} (nothing in it is unknown)" for triple in parse.dropped)
    return dropped or None, tuple(notes) or None


def _relax_schema(schema: Any) -> Any:
    """Return a JSON schema that requires only the keys in :data:`_NEEDED`."""
    if isinstance(schema, Mapping):
        relaxed = {key: _relax_schema(value) for key, value in schema.items()}
        if isinstance(schema.get("required"), Sequence):
            relaxed["required"] = [key for key in schema["required"] if key in _NEEDED]
        return relaxed
    return [_relax_schema(part) for part in schema] if isinstance(schema, list) else schema
