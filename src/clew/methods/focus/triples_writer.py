"""Step 1 of 4StepFocus (Boer et al., 2024, Algorithm 1, line 1): a model writes the question as typed triples.

Its replies are parsed, aligned with the schemas of the graphs, and put in the order in which most of them agree.
Only types and properties are aligned here, where it is plain which is meant. Relations and constants are linked
later, by likeness, with several candidates (:mod:`clew.methods.focus.pattern_builder`).
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
from clew.core.text import fold_name
from clew.core.trail import TriplesStep
from clew.core.types import Question, Usage
from clew.methods.focus.pattern_builder import property_test_for
from clew.methods.focus.schema import SchemaLimits, describe_schema
from clew.methods.prompting import sample_prompts
from clew.triples.language.chain import (
    NOT,
    ONLY,
    Chain,
    ChainError,
    Condition,
    IncorrectTripleFormatError,
    Quantifier,
    Term,
    Triple,
    TypedChain,
    quote,
)
from clew.triples.language.consistency import rank_typed_by_agreement
from clew.triples.language.typed_parsing import TypedParse, parse_typed_statements
from clew.triples.language.wordings import parse_counted_tail, split_negation, split_quantifier
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
#: Similarity of spelling, of 100, from which on a name is taken for another: "persno" for "person".
_SIMILAR = 83
#: Shorter names are one letter away from too many others: "genre" is not "gene".
_MIN_LENGTH = 6
_CALLED = re.compile(r"(?P<name>.+\S)\s*\((?P<type>[^()]+)\)")


@dataclass(frozen=True, slots=True)
class TriplesWriter:
    """ASK_LLM_FOR_TRIPLETS: the model is shown the graphs' node types and relations, and writes triples with a
    target.

    ``template`` is ``focus-triples``. Beyond the paper: the schema has counts, examples and properties, and a large
    one is cut to ``room`` with the help of ``linker``; there are conditions, quantifiers, negation and preferences;
    with several ``samples`` the interpretation that most agree on is first; if no reply can be used, the model is
    told why and asked once more. A type or a relation that no graph has is no error, since names are linked by
    likeness later.
    """

    model: LanguageModel
    template: Template
    linker: RelationLinker = field(default_factory=GraphRelationLinker)
    samples: int = 1
    room: SchemaLimits = field(default_factory=SchemaLimits)

    @classmethod
    def build(cls, model: LanguageModel, linker: RelationLinker, samples: int) -> TriplesWriter:
        """Return the writer of a recipe, with the prompts that come with clew."""
        return cls(model, load_prompt("focus-triples"), linker, samples)

    def write(self, question: Question, graphs: Sequence[PropertyGraph], trail: Trail) -> list[TypedChain]:
        """Return the interpretations of a question, the one that most samples agree on first; none if no reply can be
        used.

        Raises ModelError, RemoteError, and ChainError for triples that come with the question and cannot be parsed.
        """
        if question.chain:
            return parse_given_triples(question, trail, graphs)
        started = time.perf_counter()
        schema = describe_schema(graphs, question.text, self.linker, self.room)
        prompt = self.template.render(question=question.text, schema=schema.text)
        prompt = replace(prompt, optional=(*prompt.optional, *schema.optional))
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


def no_triples_error() -> UsageError:
    """Return the error of a question without triples where no model writes them."""
    return UsageError(
        "'focus' needs a language model to write the question as typed triples, and none is set",
        "Name one (--llm ollama:llama3.1), or write them yourself: "
        "--triples '#1 : film; #1 >> directed_by >> David Lynch; #1.release_year < 1990; final answer: #1'",
    )


def parse_given_triples(
    question: Question, trail: Trail, graphs: Sequence[PropertyGraph] = ()
) -> list[TypedChain]:
    """Return the typed triples that come with a question, aligned with the names of ``graphs``.

    Raises ChainError, also for a line that says nothing; UsageError if the question has no triples; RemoteError.
    """
    if not question.chain:
        raise no_triples_error()
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


@dataclass(frozen=True, slots=True)
class SchemaAlignment:
    """The aligned question, and notes on what was changed and what no graph has."""

    chain: TypedChain
    notes: tuple[str, ...] = ()


def align_to_schema(chain: TypedChain, graphs: Sequence[PropertyGraph]) -> SchemaAlignment:
    """Return the question with types and properties named as ``graphs`` name them.

    A type that no graph has stays as it is, unless a graph has its words or almost its spelling ("Films", "persno").
    A triple whose relation is the name of a property, and of no relation, becomes a condition. If no node is called
    ``David Lynch (person)`` and ``person`` is a type, it becomes David Lynch, a person. "not David Lynch", if no node
    is called so, negates its triple, as does a relation "not directed by" that no graph has. A name that negates is
    never aligned with one that does not. Raises RemoteError.
    """
    types = list(dict.fromkeys(type for graph in graphs for type in graph.types()))
    properties = list(dict.fromkeys(name for graph in graphs for name in graph.properties()))
    notes: dict[str, None] = {}
    # A mounted graph may not know its types and properties: it may have other names too.
    knows_types = all(graph.types() for graph in graphs)
    knows_properties = not any(graph.is_mounted for graph in graphs)

    def align_types(names: tuple[str, ...]) -> tuple[str, ...]:
        refused = [name for name in names if name not in types and _negates(name)]
        aligned = [
            _align_name("type", name, types, notes, knows_types) for name in names if name not in refused
        ]
        notes.update({f"type '{name}' left out: it denies": None for name in refused})
        return tuple(dict.fromkeys(aligned))

    chain = _move_negations(chain, graphs, properties, notes)
    chain = _move_types_out_of_names(chain, graphs, types)
    chain = _move_properties_to_conditions(chain, graphs, properties, notes)
    conditions = tuple(
        replace(
            condition,
            property=_align_name("property", condition.property, properties, notes, knows_properties),
        )
        for condition in _move_negations_of_conditions(chain.conditions, properties)
    )
    aligned = replace(
        chain,
        types={n: matching for n, names in chain.types.items() if (matching := align_types(names))},
        constant_types={
            constant: matching
            for constant, names in chain.constant_types.items()
            if (matching := align_types(names))
        },
        conditions=conditions,
    )
    return SchemaAlignment(aligned, tuple(notes))


def _align_name(what: str, name: str, known: Sequence[str], notes: dict[str, None], complete: bool) -> str:
    if name in known:
        return name
    near = _nearest(name, known)
    if near is None:
        if complete:
            notes[f"no graph has the {what} '{name}'"] = None
        return name
    if fold_name(near) != fold_name(name):
        notes[f"{what} '{name}' read as '{near}'"] = None
    return near


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name with the same words, or almost the same spelling; None if there is none or several."""
    from rapidfuzz import fuzz, process

    folded = fold_name(verbalise_relation(name))
    # Stems do not keep the words of a negation.
    known = [other for other in known if _negates(other) == _negates(name)]
    for same in (
        [other for other in known if fold_name(verbalise_relation(other)) == folded],
        [other for other in known if word_stems(verbalise_relation(other)) == word_stems(folded)],
        # "gene" for "gene/protein": each of the words must be one of the known name.
        [other for other in known if word_stems(folded) < word_stems(verbalise_relation(other))],
    ):
        if same:
            return same[0] if len(same) == 1 else None
    if len(folded) < _MIN_LENGTH:
        return None
    similar = process.extract(
        folded,
        [verbalise_relation(other) for other in known],
        scorer=fuzz.ratio,
        score_cutoff=_SIMILAR,
        limit=2,
    )
    is_clear = similar and (len(similar) == 1 or similar[0][1] > similar[1][1])
    return known[similar[0][2]] if is_clear else None


def _negates(name: str) -> bool:
    return split_negation(verbalise_relation(name))[0]


def _move_negations_of_conditions(
    conditions: Iterable[Condition], properties: Sequence[str]
) -> Iterable[Condition]:
    """Yield conditions with the negation of a property's words moved to the condition: "not year" above 3 is a year
    that is not above 3."""
    names = {fold_name(verbalise_relation(name)) for name in properties}
    for condition in conditions:
        negated, property = split_negation(condition.property)
        if negated and fold_name(verbalise_relation(condition.property)) not in names:
            yield replace(condition, property=property, negated=not condition.negated)
        else:
            yield condition


def _move_negations(
    chain: TypedChain, graphs: Sequence[PropertyGraph], properties: Sequence[str], notes: dict[str, None]
) -> TypedChain:
    """Return the question with negations moved from the words of relations and names to quantifiers, unless a graph
    has a relation, a property or a node of that name."""
    relations = [name for graph in graphs for name in graph.relations()]
    names = {fold_name(verbalise_relation(name)) for name in (*relations, *properties)}
    negations = {
        fold_name(rest): name
        for name in relations
        for negated, rest in [split_negation(verbalise_relation(name))]
        if negated
    }
    triples: list[Triple] = []
    quantifiers = dict(chain.quantifiers)
    constant_types = dict(chain.constant_types)
    for place, triple in enumerate(chain.chain.triples):
        own_quantifier = quantifiers.get(place)
        relation, quantifier = _split_relation_negation(triple.relation, own_quantifier, names, negations)
        if (relation, quantifier) != (triple.relation, own_quantifier):
            notes[f"'{triple.relation}' read as '{'not ' if quantifier == NOT else ''}{relation}'"] = None
        ends = []
        for end in (triple.head, triple.tail):
            of_name, name = (
                (None, end.text) if end.unknown is not None else _split_name_quantifier(end.text, graphs)
            )
            if of_name is not None:
                quantifier = of_name if of_name == NOT or quantifier is None else quantifier
                constant_types |= (
                    {name: constant_types.pop(end.text)}
                    if end.text in constant_types and name not in constant_types
                    else {}
                )
                notes[f"'{end.text}' read as '{of_name}' of '{name}': no node is called so"] = None
            ends.append(Term(name))
        triples.append(replace(triple, head=ends[0], relation=relation, tail=ends[1]))
        quantifiers.pop(place, None)
        if quantifier is not None:
            quantifiers[place] = quantifier
    if tuple(triples) == chain.chain.triples and quantifiers == chain.quantifiers:
        return chain
    constants = set(_constants(triples))
    constant_types = {name: types for name, types in constant_types.items() if name in constants}
    return replace(
        chain,
        chain=Chain(tuple(triples), chain.chain.answer),
        quantifiers=quantifiers,
        constant_types=constant_types,
    )


def _split_relation_negation(
    relation: str, quantifier: Quantifier | None, names: Collection[str], negations: Mapping[str, str]
) -> tuple[str, Quantifier | None]:
    """Return a relation without its negation, and the quantifier of its triple. If only the negation is a relation of
    a graph ("not compatible with"), it is that relation, without a quantifier."""
    own = fold_name(verbalise_relation(relation))
    if own in names:
        return relation, quantifier
    negated, rest = split_negation(relation)
    if negated and quantifier in (None, NOT):
        relation, quantifier = rest, NOT
        own = fold_name(verbalise_relation(rest))
    if quantifier == NOT and own not in names and own in negations:
        return negations[own], None
    return relation, quantifier


def _split_name_quantifier(name: str, graphs: Sequence[PropertyGraph]) -> tuple[Quantifier | None, str]:
    """Return the quantifier that a name begins with and the rest; no quantifier if a node has the whole name."""
    count, rest = (NOT, name[4:].strip()) if name[:4].casefold() == "not " else split_quantifier(name)
    if count not in (NOT, ONLY) or not rest or any(len(graph.find_by_name(name)) for graph in graphs):
        return None, name
    # "Not Another Teen Movie" is a name, though no node is called so; "Not David Lynch" is that of a node denied.
    titled = name[0].isupper() and not name[:3].isupper()
    return (
        (None, name)
        if titled and not any(len(graph.find_by_name(rest)) for graph in graphs)
        else (count, rest)
    )


def _move_types_out_of_names(
    chain: TypedChain, graphs: Sequence[PropertyGraph], types: Sequence[str]
) -> TypedChain:
    renamed: dict[str, str] = {}
    kinds = dict(chain.constant_types)
    for name in _constants(chain.chain.triples):
        match = _CALLED.fullmatch(name)
        type = _nearest(match["type"], types) if match and types else None
        if match is None or type is None or any(len(graph.find_by_name(name)) for graph in graphs):
            continue
        renamed[name] = match["name"]
        kinds.setdefault(match["name"], kinds.pop(name, (type,)))
    if not renamed:
        return chain

    def rename(term: Term) -> Term:
        return Term(renamed[term.text]) if term.text in renamed else term

    triples = tuple(
        replace(triple, head=rename(triple.head), tail=rename(triple.tail)) for triple in chain.chain.triples
    )
    return replace(chain, chain=Chain(triples, chain.chain.answer), constant_types=kinds)


def _move_properties_to_conditions(
    chain: TypedChain, graphs: Sequence[PropertyGraph], properties: Sequence[str], notes: dict[str, None]
) -> TypedChain:
    relations = {fold_name(verbalise_relation(name)) for graph in graphs for name in graph.relations()}
    called: Mapping[str, str] = {fold_name(verbalise_relation(name)): name for name in reversed(properties)}
    triples: list[Triple] = []
    counts: dict[int, Quantifier] = {}
    conditions = list(chain.conditions)
    for place, triple in enumerate(chain.chain.triples):
        count = chain.quantifiers.get(place)
        relation = fold_name(verbalise_relation(triple.relation))
        property = called.get(relation) if relation not in relations else None
        unknown = triple.head.unknown
        if property and unknown is not None and triple.tail.unknown is None and count in (None, NOT):
            value = triple.tail.text
            conditions.append(
                Condition(unknown, property, property_test_for(value), value, None, count == NOT)
            )
            notes[f"'{triple.relation}' is a property, so its triple is a condition"] = None
            continue
        if count is not None:
            counts[len(triples)] = count
        triples.append(triple)
    if len(triples) == len(chain.chain.triples):
        return chain
    left = set(_constants(triples))
    return replace(
        chain,
        chain=Chain(tuple(triples), chain.chain.answer),
        quantifiers=counts,
        conditions=tuple(dict.fromkeys(conditions)),
        constant_types={name: types for name, types in chain.constant_types.items() if name in left},
    )


def _constants(triples: Iterable[Triple]) -> list[str]:
    ends = (end for triple in triples for end in (triple.head, triple.tail))
    return list(dict.fromkeys(end.text for end in ends if end.unknown is None))
