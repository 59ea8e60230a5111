"""The parser of questions as typed triples, as a model or a person writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from clew.core.prompts.replies import remove_thoughts
from clew.core.text import normalise
from clew.triples.language.chain import (
    INTRODUCTION,
    LIST_MARK,
    NOT,
    Chain,
    Condition,
    DiscontinuousMaskError,
    FinalAnswerFormatError,
    IncorrectTripleFormatError,
    IncorrectTripleRelationMaskError,
    MaskOverflowError,
    MaskUnderflowError,
    MissingMaskNumberError,
    MissingTripleMaskError,
    Quantifier,
    Superlative,
    Term,
    Triple,
    TypedChain,
    mask_quotes,
    replace_outside_quotes,
    split_outside_quotes,
    split_statements,
    unquote,
)
from clew.triples.language.wordings import (
    NUMBER_WORDS,
    parse_conditions,
    parse_counted_tail,
    parse_tail_conditions,
    split_negation,
    split_quantifier,
)

UNKNOWN = re.compile(r"#(\d{1,10}(?!\d))")
#: The arrows of a triple, in either direction, for one step or (with +) for one or more.
CHEVRONS = re.compile(r"(?P<way>>>|<<)(?P<more>\+(?=[\s#\"]))?")
_NAMED = re.compile(r"(?<![\w#])\?([A-Za-z_]\w*)")
_LETTER = re.compile(
    r"(?P<before>\A|>>|->|→|[(,\[:]|\b(?:is|not|only|by)\b)(?P<space>\s*)(?P<name>[x-zX-Z](?:_?\d{1,2})?)"
    r"(?=\s*(?:\Z|>>|--|-\[|->|→|[,)\]:.~(]))"
)


def extract_statements(text: str) -> list[str]:
    """Return the statements of a reply, without fences, list marks and quotation marks around them."""
    lines = [line for line in remove_thoughts(text).split("\n") if not line.strip().startswith("```")]
    statements = []
    for line in lines:
        # A quotation mark that is not closed would hide the rest of the line.
        if line.count('"') % 2:
            line = line.replace('"', "'")
        for part in split_statements(INTRODUCTION.sub("", line)):
            part = LIST_MARK.sub("", part).strip().rstrip(",").strip()
            inside, quoted = unquote(part)
            if quoted and (CHEVRONS.search(inside) or UNKNOWN.search(inside)):
                part = inside
            if part and part != '"':
                statements.append(part)
    return statements


def number_unknowns(statements: list[str], names: dict[str, int]) -> list[str]:
    """Return the statements with numbers in place of named unknowns (``?film``, or ``X``), and enter each name with
    its number into ``names``. Single letters count as names only where no unknown is written otherwise."""
    numbers = [
        int(match[1])
        for statement in statements
        for match in UNKNOWN.finditer(mask_quotes(_join_numbers(statement)))
    ]
    first = max(numbers, default=0) + 1

    def unknown_of(name: str) -> str:
        return f"#{names.setdefault(name.casefold(), first + len(names))}"

    def replace_names(part: str) -> str:
        return _NAMED.sub(lambda match: unknown_of(match[1]), _join_numbers(part))

    def replace_letters(part: str) -> str:
        return _LETTER.sub(lambda match: match["before"] + match["space"] + unknown_of(match["name"]), part)

    numbered = [replace_outside_quotes(statement, replace_names) for statement in statements]
    if numbers or names:
        return numbered
    return [replace_outside_quotes(statement, replace_letters) for statement in numbered]


def _join_numbers(part: str) -> str:
    """Return the text with ``# 01`` written as ``#1``."""
    return re.sub(r"#\s*0*(\d{1,9})", r"#\1", part)


ARROW = re.compile(r"\s*(?:-{1,8}>|=>|→|⟶|⇒)\s*")
_WITHIN = (
    r"\s*\[?:?\s*(?P<relation>[^\s\[\]<>—–-](?:[^\[\]<>]*?[^\s\[\]<>—–-])?)\s*\]?\s*[-—–]{0,8}(?:->|→|⟶)\s*"
)
#: A relation within an arrow. One dash opens it after white space or the end of a term; a name may have hyphens.
_ARROWS_WITH = (
    re.compile(rf"\s*(?:[-—–]{{2,8}}|—){_WITHIN}"),
    re.compile(rf"(?:\A|\s+|(?<=[)\]\"])|(?<=#\d)|(?<=#\d\d))[-–]{_WITHIN}"),
)
_CALLED = re.compile(r"(?P<relation>[\w][\w ./-]*)\(\s*(?P<ends>.+)\s*\)")
_BRACKETED = re.compile(r"[(\[<{]\s*(?P<inside>.+)\s*[)\]>}]")


def split_triple(text: str) -> list[str] | None:
    """Return the parts of a statement that has one of the forms of a triple, None for another statement."""
    masked = mask_quotes(text)
    if match := _BRACKETED.fullmatch(masked):
        inside = text[slice(*match.span("inside"))].strip()
        if CHEVRONS.search(mask_quotes(inside)):
            return split_outside_quotes(inside, CHEVRONS.pattern)
        parts = split_outside_quotes(inside, r",\s+")
        return parts if len(parts) == 3 else split_outside_quotes(inside, r",")
    if CHEVRONS.search(masked):
        return split_outside_quotes(text, CHEVRONS.pattern)
    if ARROW.search(masked):
        return _split_at_arrows(text, masked)
    if (match := _CALLED.fullmatch(masked)) and "#" in match["ends"]:
        ends = split_outside_quotes(text[slice(*match.span("ends"))], r",\s*")
        return [ends[0], match["relation"].strip(), ends[1]] if len(ends) == 2 else None
    if masked.count("|") == 2 and "#" in masked:
        return split_outside_quotes(text, r"\|")
    return None


def _split_at_arrows(text: str, masked: str) -> list[str]:
    """Return the parts of ``head -> relation -> tail`` or ``head --relation--> tail``."""
    parts = split_outside_quotes(text, ARROW.pattern)
    if len(parts) > 2:
        return parts
    for pattern in _ARROWS_WITH:
        if match := pattern.search(masked):
            relation = text[slice(*match.span("relation"))]
            return [text[: match.start()].strip(), relation.strip(), text[match.end() :].strip()]
    return parts


FORM = (
    "Write #1 : film; #1 >> directed_by >> David Lynch; not #1 >> starred_actors >> #2; "
    "#1.release_year between 1980 and 1990; #1 ~ slow and dreamlike; final answer: #1"
)
#: More unknowns than this come from a model that does not stop writing.
MAX_UNKNOWNS = 12
#: Longer statements, in characters, are ignored.
_MAX_STATEMENT = 1_000

_FINAL = re.compile(
    r"[\s*_'`(\[]*(?:(?:the\s+)?(?:final\s+answer|answer|target(?:\s+variable)?|x_?target)\s*(?:is\b|:|:?=)"
    r"|(?:return|select)\s+(?=[#(]))\s*(?P<what>.*?)[\s.'`*_]*",
    re.IGNORECASE | re.DOTALL,
)
_WHAT = r"(?:triples?|triplets?|conditions?|types?|constraints?|quantifiers?)"
_DENIED = r"(?:negat(?:ions?|ed|ives?)|not|without|exclu(?:de|ded|ding|sions?)|except)"
_LABEL = re.compile(
    rf"[*_`]*(?:(?P<denied>{_DENIED})(?:\s+{_WHAT})?|{_WHAT}(?:\s*\(?\s*(?P<after>{_DENIED})\s*\)?)?)"
    r"[*_`]*\s*:\s*[*_`]*\s*",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"(?P<not>not\s+)?(?:#\d+\s*)?~\s*(?P<wish>.+)|(?:wish(?:es)?|leftovers?)\s*:\s*(?P<labelled>.+)",
    re.IGNORECASE,
)
_TYPED = re.compile(
    r"#(\d{1,10}(?!\d))\s*(?::|(?:is|are)\s+(?:of\s+(?:the\s+)?type|an?|one\s+of\s+the)\s)\s*(?P<types>.+)",
    re.IGNORECASE,
)
_KIND = re.compile(r"(?P<name>\".*\"|.+?)\s*(?<!:):\s+(?P<types>[^:]+)")
_IS = frozenset(
    {"type", "is a", "isa", "is an", "is_a", "is of type", "has type", "rdf:type", "node type", "a"}
)

_OR = r"\s+or\s+|\s*[|,]\s*"
_TERM_TYPED = (
    re.compile(r"#(?P<number>\d{1,10}(?!\d))\s*[(\[{]\s*(?:an?\s+)?(?P<type>[^()\[\]{}]+?)\s*[)\]}]"),
    re.compile(r"#(?P<number>\d{1,10}(?!\d))\s*:\s*(?P<type>[^#]+)"),
    re.compile(r"[(\[]\s*(?P<type>[^()\[\]#]+?)\s*[)\]]\s*#(?P<number>\d{1,10}(?!\d))"),
    re.compile(r"(?:an?\s+|the\s+|some\s+)?(?P<type>[^#:]+?)\s*:?\s*#(?P<number>\d{1,10}(?!\d))"),
)
#: Words with an unknown that are more than its type: a quantifier, a negation, or which end of a triple it is.
_SAYS_MORE = re.compile(
    r"['’]s\b|\d|[!<>=≠≤≥¬∃∀~]|\A(?:head|tail|subject|object|answer|unknown|variable|target)\Z"
    r"|\b(?:of|by|in|the|from|for|with|who|that|and|or|not|no|none|never|without|only|except|every|each|all|any|some"
    r"|both|exists?|exactly|just|least|most|more|fewer|less|several|multiple|many|few|different|distinct|other"
    rf"|another|same|{'|'.join(NUMBER_WORDS)})\b",
    re.IGNORECASE,
)
#: Words that negate a type.
_NO_TYPE = re.compile(r"(?:an?\s+)?(?:not|no|never|without|except|neither|anything\s+but)\s", re.IGNORECASE)
#: Words of equality before a tail: "= Bob", "is not Bob".
_SAME = re.compile(
    r"(?:(?P<not>!=|≠|<>|(?:is|was|are|were)(?:\s+not|n['’]t)(?=\s))|==?)\s*(?=\S)", re.IGNORECASE
)
#: A superlative before a property or a triple: "highest", "the 3 lowest", "top 5 most".
_SUPERLATIVE = re.compile(
    r"(?:the\s+)?(?:(?P<count>\d{1,6})\s+|top\s+(?P<top>\d{1,6})\s+)?(?P<word>highest|lowest|most|fewest)"
    r"\s*:?\s+(?=[#(])",
    re.IGNORECASE,
)
_PROPERTY_OF = re.compile(r"#(?P<unknown>\d{1,10}(?!\d))\s*\.\s*(?P<property>\".+\"|[^\s\"=<>].*?)\s*")
SUPERLATIVE_FORM = (
    "Write highest #1.runtime, 3 lowest #1.runtime, most #1 >> directed >> #2, "
    "or 3 fewest #1 << directed << #2"
)
#: The most answers that a superlative may keep.
MAX_RANK = 100_000
#: The first number of unknowns that get their real number at the end.
_UNNUMBERED = 10**9


@dataclass(frozen=True, slots=True)
class TypedParse:
    """A parsed question: the chain, the triples of two constants that were dropped (Algorithm 3, line 6, of
    4StepFocus), and the lines that say nothing and were ignored."""

    chain: TypedChain
    dropped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def parse_typed(text: str) -> TypedChain:
    """Return the question that ``text`` writes, one statement on a line or separated by semicolons, in any order:

    ``#1 : film``, ``David Lynch : person`` (types) · ``#1 >> directed_by >> David Lynch`` (a triple; also
    ``(#1, directed_by, David Lynch)``, ``#1 --directed_by--> David Lynch``, ``directed_by(#1, David Lynch)``) ·
    ``not``, ``only``, ``at least 2``, ``at most 2`` or ``exactly 2`` before a triple ·
    ``#1 << directed << #2`` (a triple in the other direction) · ``#1 >> part_of >>+ #2`` (one or more steps) ·
    ``#1.release_year between 1980 and 1990`` (a condition) · ``highest #1.runtime``,
    ``3 most #1 >> starred_actors >> #2`` (superlatives) · ``#1 ~ slow and dreamlike`` (a preference) ·
    ``final answer: #1``.

    Text in quotation marks is a name or a value, whatever it looks like. The parser is tolerant of small models: it
    skips thoughts, fences, list marks and prose, takes ``?film`` or ``X`` for unknowns, and ``#1 (film)`` and
    ``film #1`` for typed ones. Raises the :class:`~clew.triples.language.chain.ChainError` of the first problem.
    """
    return parse_typed_statements(text).chain


@lru_cache(maxsize=64)  # a question is parsed for each of its readings
def parse_typed_statements(text: str) -> TypedParse:
    """Return the question that ``text`` writes as :func:`parse_typed` does, with what was left out of it."""
    names: dict[str, int] = {}
    parser = _Parser(names)
    for statement in number_unknowns(extract_statements(text), names):
        parser.take(statement)
    return parser.finish()


@dataclass(slots=True)
class _Parser:
    """Collects the contents of statements. ``names`` has the numbers of named unknowns."""

    names: dict[str, int]
    triples: dict[tuple[Triple, Quantifier | None], None] = field(default_factory=dict)
    types: dict[int, dict[str, None]] = field(default_factory=dict)
    constant_types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    conditions: dict[Condition, None] = field(default_factory=dict)
    superlatives: dict[Superlative, None] = field(default_factory=dict)
    preferences: dict[str, None] = field(default_factory=dict)
    answer: str | None = None
    dropped: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def take(self, statement: str) -> None:
        """Take one statement. Raises ChainError."""
        masked = mask_quotes(statement)
        if len(statement) > _MAX_STATEMENT:
            self.ignored.append(f"{statement[:80]} ...")
            return
        if not CHEVRONS.search(masked) and (match := _FINAL.fullmatch(statement)):
            self.answer = match["what"]
            return
        if match := _WISH.fullmatch(masked):
            group = "wish" if match["wish"] else "labelled"
            preference = unquote(statement[slice(*match.span(group))])[0]
            if preference.strip():
                self.preferences[f"not {preference}" if match["not"] else preference] = None
            return
        if self._take_superlative(statement, masked):
            return
        whole, label = statement, self._match_label(statement, masked)
        statement = statement[label.end() :] if label else statement
        quantifier, rest = split_quantifier(statement)
        if label and (label["denied"] or label["after"]):
            quantifier = _combine(NOT, quantifier, whole)
        masked = mask_quotes(rest)
        if (
            not CHEVRONS.search(masked)
            and quantifier in (None, NOT)
            and (conditions := parse_conditions(rest, quantifier == NOT))
        ):
            self.conditions.update(dict.fromkeys(conditions))
            return
        match = None if CHEVRONS.search(masked) or ARROW.search(masked) else _TYPED.fullmatch(masked)
        if match:
            if quantifier is not None:
                raise IncorrectTripleFormatError(f"a type cannot be denied or counted: '{whole}'", FORM)
            self._add_types(int(match[1]), _parse_types_of_unknown(rest[match.start("types") :], whole))
        elif (parts := split_triple(rest)) is not None:
            triple = self._parse_triple(parts, quantifier, statement)
            if triple is not None:
                self.triples[triple] = None
        else:
            self._take_other(rest, statement)

    def _take_other(self, rest: str, statement: str) -> None:
        """Take the types of a constant; ignore a statement that says nothing."""
        masked = mask_quotes(rest)
        if (match := _KIND.fullmatch(masked)) and "#" not in masked:
            name, types = rest[: match.end("name")], rest[match.start("types") :]
            if parsed := _parse_types(types):
                self.constant_types[normalise(unquote(name)[0])] = parsed
        elif "#" in masked and not masked.endswith(":"):
            raise IncorrectTripleFormatError(f"not a head, a relation and a tail: '{statement}'", FORM)
        self.ignored.append(statement)

    def _match_label(self, statement: str, masked: str) -> re.Match[str] | None:
        """Return the label before a statement: "Negated triple: ..."."""
        match = _LABEL.match(masked)
        if match and match.end() == len(masked) and (match["denied"] or match["after"]):
            raise IncorrectTripleFormatError(
                f"a heading that would deny what follows: '{statement}'",
                "Write not before each triple instead",
            )
        return (
            match
            if match and match.end() < len(masked) and (CHEVRONS.search(masked) or "#" in masked)
            else None
        )

    def _take_superlative(self, statement: str, masked: str) -> bool:
        """Take ``highest #1.runtime`` or ``3 most #1 >> directed >> #2``; return whether it was one of them."""
        match = _SUPERLATIVE.match(masked)
        if match is None:
            return False
        count = int(match["count"] or match["top"] or 1)
        if not 1 <= count <= MAX_RANK:
            raise IncorrectTripleFormatError(f"not from 1 to {MAX_RANK}: '{statement}'", SUPERLATIVE_FORM)
        word, rest = match["word"].casefold(), statement[match.end() :].strip()
        if word in ("highest", "lowest"):
            property = _PROPERTY_OF.fullmatch(rest)
            if property is None:
                raise IncorrectTripleFormatError(
                    f"no property of an unknown: '{statement}'", SUPERLATIVE_FORM
                )
            name = unquote(property["property"])[0]
            superlative = Superlative(int(property["unknown"]), word == "highest", count, property=name)
        else:
            parts = split_triple(rest)
            parsed = None if parts is None else self._parse_triple(parts, None, rest, counted=True)
            if parsed is None or parsed[1] is not None or parsed[0].head.unknown is None:
                raise IncorrectTripleFormatError(
                    f"no triple from an unknown: '{statement}'", SUPERLATIVE_FORM
                )
            triple = parsed[0]
            if triple.tail.unknown is None:
                raise IncorrectTripleFormatError(
                    f"'{triple.tail.text}' is one node, so nothing is counted: '{statement}'",
                    SUPERLATIVE_FORM,
                )
            superlative = Superlative(int(triple.head.text[1:]), word == "most", count, triple=triple)
        self.superlatives[superlative] = None
        return True

    def _parse_triple(
        self, parts: list[str], quantifier: Quantifier | None, statement: str, counted: bool = False
    ) -> tuple[Triple, Quantifier | None] | None:
        """Return the triple of a statement with its quantifier; None for a statement that is a condition, a type or
        a triple of two constants, which are taken. The tail of a ``counted`` triple stays its tail."""
        inverse, repeated = _read_arrows(statement)
        if len(parts) != 3 or not all(parts):
            raise IncorrectTripleFormatError(f"not a head, a relation and a tail: '{statement}'", FORM)
        relation, quoted = unquote(parts[1])
        if not relation.strip():
            raise IncorrectTripleFormatError(f"a triple without a relation: '{statement}'", FORM)
        if not quoted:
            is_iri = "://" in relation and not UNKNOWN.fullmatch(relation)
            if ("#" in mask_quotes(relation) and not is_iri) or relation.startswith("?"):
                raise IncorrectTripleRelationMaskError(
                    f"an unknown as relation: '{statement}'", "Only a head or a tail may be unknown"
                )
            negated, relation = split_negation(relation)
            quantifier = _combine(NOT if negated else None, quantifier, statement)
        for end in (0, 2):
            of_end, parts[end] = split_quantifier(parts[end])
            if end == 0 and of_end == quantifier == NOT:
                raise IncorrectTripleFormatError(
                    f"negated twice: '{statement}'", "Write the triple without not"
                )
            quantifier = _combine(quantifier, of_end, statement)
        head = self._parse_term(parts[0], statement)
        if head.unknown is not None and not parts[2].startswith('"'):
            plain = not (quoted or inverse or repeated or counted)
            if plain and self._take_test_or_type(head.unknown, relation, parts[2], quantifier, statement):
                return None
            quantifier, parts[2] = self._split_tail(parts[2], quantifier, statement)
        triple = Triple(head, relation, self._parse_term(parts[2], statement), inverse, repeated)
        if triple.unknowns and triple.head == triple.tail and not UNKNOWN.fullmatch(parts[2]):
            raise IncorrectTripleFormatError(
                f"an unknown that is its own tail: '{statement}'", 'Quote a name with a number: "Mambo #1"'
            )
        if triple.head.unknown is None and triple.tail.unknown is None:
            self.dropped.append(statement)
            return None
        if inverse and quantifier in (None, NOT) and not counted:
            # Nothing is counted, so either end may be the head.
            triple = Triple(triple.tail, relation, triple.head, repeated=repeated)
        return triple, quantifier

    def _take_test_or_type(
        self, unknown: int, relation: str, tail: str, quantifier: Quantifier | None, statement: str
    ) -> bool:
        """Take a triple whose tail is a test or a type; return whether it was one."""
        may_be_test = quantifier in (None, NOT) and not parse_counted_tail(tail)
        if may_be_test and (conditions := parse_tail_conditions(unknown, relation, tail, quantifier == NOT)):
            self.conditions.update(dict.fromkeys(conditions))
            return True
        if normalise(relation) not in _IS or "#" in tail:
            return False
        if quantifier is not None:
            raise IncorrectTripleFormatError(f"a type cannot be denied or counted: '{statement}'", FORM)
        self._add_types(unknown, _parse_types_of_unknown(tail, statement))
        return True

    def _split_tail(
        self, tail: str, quantifier: Quantifier | None, statement: str
    ) -> tuple[Quantifier | None, str]:
        """Return the quantifier of a triple with the one that its tail begins with ("is not Bob", "at least 2
        actors"), and the rest of the tail."""
        if match := _SAME.match(tail):
            return _combine(quantifier, NOT if match["not"] else None, statement), tail[match.end() :]
        if re.match(r"!(?=\w)", tail):
            raise IncorrectTripleFormatError(
                f"denied, or a name that begins so: '{statement}'", "Write not, or quote the name"
            )
        if quantifier is None and (counted := parse_counted_tail(tail)):
            of_tail, noun = counted
            if _SAYS_MORE.search(noun):
                raise IncorrectTripleFormatError(
                    f"more than a type is counted: '{statement}'",
                    "Count an unknown, and say what it is in triples of its own",
                )
            number = _UNNUMBERED + len(self.triples)
            self._add_types(number, _parse_types(noun))
            return of_tail, f"#{number}"
        return quantifier, tail

    def _parse_term(self, piece: str, statement: str) -> Term:
        text, quoted = unquote(piece)
        if quoted and piece.strip().startswith('"'):
            if not text.strip():
                raise IncorrectTripleFormatError(f"an empty name: '{statement}'", FORM)
            return Term(text, is_name=UNKNOWN.search(text) is not None)
        if UNKNOWN.fullmatch(text):
            return Term(text)
        if text in {"?", "_", "[]"} or re.search(r"#(?!\d)", text):
            raise MissingMaskNumberError(f"an unknown without a number: '{statement}'", FORM)
        if not UNKNOWN.search(text):
            return Term(text)
        for pattern in _TERM_TYPED:
            if (match := pattern.fullmatch(text)) and not _SAYS_MORE.search(match["type"]):
                self._add_types(int(match["number"]), _parse_types(match["type"]))
                return Term(f"#{match['number']}")
        raise IncorrectTripleFormatError(
            f"words around an unknown: '{statement}'",
            "A head or a tail is one unknown or one name; what joins them is a triple of its own",
        )

    def _add_types(self, number: int, types: tuple[str, ...]) -> None:
        if types:
            self.types.setdefault(number, {}).update(dict.fromkeys(types))

    def finish(self) -> TypedParse:
        """Return the parsed question, checked as a whole. Raises ChainError."""
        self._number_the_rest()
        triples = [triple for triple, _ in self.triples]
        numbers = {number for triple in triples for number in triple.unknowns}
        for superlative in self.superlatives:
            numbers |= {superlative.unknown, *(superlative.triple.unknowns if superlative.triple else ())}
        numbers |= self.types.keys() | {condition.unknown for condition in self.conditions}
        if (
            self.answer
            and (match := UNKNOWN.fullmatch(self.answer.strip("()[] .")))
            and (self.preferences or numbers)
        ):
            numbers.add(int(match[1]))
        self._check(numbers)
        answer = self._parse_answer(numbers)
        constants = {
            normalise(term.text): term.text
            for triple in triples
            for term in (triple.head, triple.tail)
            if term.unknown is None
        }
        constant_types = {
            constants[name]: types for name, types in self.constant_types.items() if name in constants
        }
        quantifiers = {
            place: quantifier for place, (_, quantifier) in enumerate(self.triples) if quantifier is not None
        }
        types = {number: tuple(self.types[number]) for number in sorted(self.types)}
        chain = TypedChain(
            Chain(tuple(triples), answer),
            types,
            constant_types,
            quantifiers,
            tuple(self.conditions),
            tuple(self.preferences),
            tuple(self.superlatives),
        )
        used = {normalise(name) for name in constant_types}
        ignored = [statement for statement in self.ignored if not _types_constant(statement, used)]
        return TypedParse(chain, tuple(self.dropped), tuple(ignored))

    def _number_the_rest(self) -> None:
        """Number the unknowns without a number of their own after the others."""
        numbers = {number for triple, _ in self.triples for number in triple.unknowns} | self.types.keys()
        numbers |= {condition.unknown for condition in self.conditions}
        last = max((number for number in numbers if number < _UNNUMBERED), default=0)
        unnumbered = sorted(number for number in numbers if number >= _UNNUMBERED)
        new = {number: last + place for place, number in enumerate(unnumbered, 1)}
        self.types = {new.get(number, number): types for number, types in self.types.items()}
        self.triples = {
            (replace(triple, tail=_renumber(triple.tail, new)), quantifier): None
            for triple, quantifier in self.triples
        }

    def _check(self, numbers: set[int]) -> None:
        if not numbers and self.dropped:
            raise MissingTripleMaskError(f"no unknown in '{self.dropped[0]}'", FORM)
        if not numbers:
            raise MaskUnderflowError("nothing is asked for: no unknown", FORM)
        if len(numbers) > MAX_UNKNOWNS:
            raise MaskOverflowError(f"{len(numbers)} unknowns where {MAX_UNKNOWNS} are the most", FORM)
        if numbers != set(range(1, len(numbers) + 1)):
            listed = ", ".join(f"#{number}" for number in sorted(numbers))
            raise DiscontinuousMaskError(f"the unknowns are {listed}", "Number them from #1 without gaps")

    def _parse_answer(self, numbers: set[int]) -> int:
        """Return the unknown that is asked for; it need not be written if there is only one."""
        written = "" if self.answer is None else self.answer.strip()
        bare = written.strip("()[] .")
        match = UNKNOWN.fullmatch(bare) or next(
            (m for pattern in _TERM_TYPED if (m := pattern.fullmatch(written) or pattern.fullmatch(bare))),
            None,
        )
        if match is not None:
            number = int(match[match.re.groupindex.get("number", 1)])
            if number in numbers:
                return number
        if (name := bare.casefold().lstrip("?")) in self.names:
            return self.names[name]
        if len(numbers) == 1 and written.casefold() in {"", "#answer"}:
            return next(iter(numbers))
        problem = f"the final answer is '{written}'" if self.answer is not None else "no final answer is said"
        raise FinalAnswerFormatError(problem, "End with final answer: #1, or another of the unknowns")


def _read_arrows(statement: str) -> tuple[bool, bool]:
    """Return whether the arrows of a statement point to its head, and whether they stand for more than one step.
    Raises IncorrectTripleFormatError for arrows in both directions."""
    arrows = list(CHEVRONS.finditer(mask_quotes(statement)))
    if len({match["way"] for match in arrows}) > 1:
        raise IncorrectTripleFormatError(
            f"arrows in both directions: '{statement}'", "Write #1 >> relation >> #2 or #1 << relation << #2"
        )
    return bool(arrows) and arrows[0]["way"] == "<<", any(match["more"] for match in arrows)


def _types_constant(statement: str, names: set[str]) -> bool:
    """Return whether a statement gives the types of one of the constants."""
    match = _KIND.fullmatch(mask_quotes(statement))
    return match is not None and normalise(unquote(statement[: match.end("name")])[0]) in names


def _combine(first: Quantifier | None, second: Quantifier | None, statement: str) -> Quantifier | None:
    """Return the quantifier of a triple that has been given two, each perhaps None."""
    if first is not None and second is not None and first != second:
        raise IncorrectTripleFormatError(f"'{first}' and '{second}' of one triple: '{statement}'", FORM)
    return second if first is None else first


def _renumber(term: Term, numbers: dict[int, int]) -> Term:
    return Term(f"#{numbers[term.unknown]}") if term.unknown in numbers else term


def _parse_types_of_unknown(text: str, statement: str) -> tuple[str, ...]:
    """Return the types of an unknown. Raises IncorrectTripleFormatError for a negated type."""
    for part in split_outside_quotes(text.strip(), _OR):
        type, quoted = unquote(part)
        if not quoted and (_NO_TYPE.match(type) or "#" in type):
            raise IncorrectTripleFormatError(f"no type, or one that is denied: '{statement}'", FORM)
    return _parse_types(text)


def _parse_types(text: str) -> tuple[str, ...]:
    """Return the types in a text such as "film or series"."""
    types = []
    for part in split_outside_quotes(text.strip(), _OR):
        type, quoted = unquote(re.sub(r"\A(?:an?|the)\s+", "", part))
        types.append(type if quoted else type.rstrip(".").strip())
    return tuple(dict.fromkeys(type for type in types if type.strip()))
