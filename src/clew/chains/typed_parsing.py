"""Reading a question as typed triples, as a model, or a person, writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from clew.chains.conditions import conditions, tail_condition
from clew.chains.errors import (
    DiscontinuousMaskError,
    FinalAnswerFormatError,
    IncorrectTripleFormatError,
    IncorrectTripleRelationMaskError,
    MaskOverflowError,
    MaskUnderflowError,
    MissingMaskNumberError,
    MissingTripleMaskError,
)
from clew.chains.parsing import INTRODUCED, LISTED, divided
from clew.chains.quantifiers import negated, quantified
from clew.chains.quoting import blanked, outside, pieces, unquoted
from clew.chains.terms import Chain, Term, Triple
from clew.chains.typed import NOT, Condition, Count, TypedChain
from clew.prompts import plain
from clew.text import normalise

FORM = (
    "Write #1 : film; #1 >> directed_by >> David Lynch; not #1 >> starred_actors >> #2; "
    "#1.release_year between 1980 and 1990; #1 ~ slow and dreamlike; final answer: #1"
)
#: A question with more unknowns than this is a model that does not stop.
MOST = 12
#: A statement longer than this, in characters, is none.
_LONGEST = 1_000

_FINAL = re.compile(
    r"[\s*_'`(\[]*(?:(?:the\s+)?(?:final\s+answer|answer|target(?:\s+variable)?|x_?target)\s*(?:is\b|:|:?=)"
    r"|(?:return|select)\s+(?=[#(]))\s*(?P<what>.*?)[\s.'`*_]*",
    re.IGNORECASE | re.DOTALL,
)
_LABEL = re.compile(
    r"(?:triples?|triplets?|conditions?|types?|constraints?|negat(?:ion|ed)|quantifiers?)\s*:\s*(?=\S)",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"(?P<not>not\s+)?(?:#\d+\s*)?~\s*(?P<wish>.+)|(?:wish(?:es)?|leftovers?)\s*:\s*(?P<said>.+)",
    re.IGNORECASE,
)
_TYPED = re.compile(
    r"#(\d+)\s*(?::|(?:is|are)\s+(?:of\s+(?:the\s+)?type|an?|one\s+of\s+the)\s)\s*(?P<types>.+)",
    re.IGNORECASE,
)
_KIND = re.compile(r"(?P<name>\".*\"|.+?)\s*(?<!:):\s+(?P<types>[^:]+)")
_IS = frozenset(
    {"type", "is a", "isa", "is an", "is_a", "is of type", "has type", "rdf:type", "node type", "a"}
)

_ARROW_WITH = re.compile(r"\s*[-—–]{1,8}\s*\[?:?\s*([^-—–\[\]<>]+?)\s*\]?\s*[-—–]{0,8}(?:->|→|⟶)\s*")
_ARROW = re.compile(r"\s*(?:-{1,8}>|=>|→|⟶|⇒)\s*")
_CALLED = re.compile(r"(?P<relation>[\w][\w ./-]*)\(\s*(?P<ends>.+)\s*\)")
_BRACKETED = re.compile(r"[(\[<{]\s*(?P<inside>.+)\s*[)\]>}]")

_UNKNOWN = re.compile(r"#(\d+)")
_NAMED = re.compile(r"(?<![\w#])\?([A-Za-z_]\w*)")
_LETTER = re.compile(
    r"(?P<before>\A|>>|->|→|[(,\[:]|\b(?:is|not|only|by)\b)(?P<space>\s*)(?P<name>[x-zX-Z](?:_?\d{1,2})?)"
    r"(?=\s*(?:\Z|>>|--|-\[|->|→|[,)\]:.~(]))"
)
_TERM_TYPED = (
    re.compile(r"#(?P<number>\d+)\s*[(\[{]\s*(?:an?\s+)?(?P<type>[^()\[\]{}]+?)\s*[)\]}]"),
    re.compile(r"#(?P<number>\d+)\s*:\s*(?P<type>[^#]+)"),
    re.compile(r"[(\[]\s*(?P<type>[^()\[\]#]+?)\s*[)\]]\s*#(?P<number>\d+)"),
    re.compile(r"(?:an?\s+|the\s+|some\s+)?(?P<type>[^#:]+?)\s*:?\s*#(?P<number>\d+)"),
)
#: Words with an unknown that say more than its type.
_SAYS_MORE = re.compile(r"['’]s\b|\b(?:of|by|in|the|from|for|with|who|that|and|or)\b|\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TypedReading:
    """What was read: the question, triples of two constants that were dropped (Algorithm 3, line 6, of 4StepFocus),
    and lines that say nothing and were passed over."""

    chain: TypedChain
    dropped: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()


def parse_typed(text: str) -> TypedChain:
    """Return the question that ``text`` writes, one statement a line or divided by semicolons, in any order:

    ``#1 : film``, ``David Lynch : person`` (types) · ``#1 >> directed_by >> David Lynch`` (a triple; also
    ``(#1, directed_by, David Lynch)``, ``#1 --directed_by--> David Lynch``, ``directed_by(#1, David Lynch)``) ·
    before it ``not``, ``only``, ``at least 2``, ``at most 2``, ``exactly 2`` ·
    ``#1.release_year between 1980 and 1990`` (a condition) · ``#1 ~ slow and dreamlike`` (a wish) ·
    ``final answer: #1``.

    What stands in quotation marks is text, whatever it looks like. Tolerant of small models: thoughts, fences, list
    marks and prose around it; ``?film`` or ``X`` as unknowns; ``#1 (film)`` and ``film #1`` as typed ones. Raises the
    :class:`~clew.chains.errors.ChainError` of what is wrong first.
    """
    return read_typed(text).chain


def read_typed(text: str) -> TypedReading:
    """Return the question that ``text`` writes as :func:`parse_typed` does, with what of it was left out."""
    statements = _statements(text)
    names: dict[str, int] = {}
    reading = _Reading(names)
    for statement in _numbered(statements, names):
        reading.take(statement)
    return reading.done()


def _statements(text: str) -> list[str]:
    """Return the statements of a reply without what stands around them."""
    lines = [line for line in plain(text).split("\n") if not line.strip().startswith("```")]
    found = []
    for line in lines:
        # A mark that is not closed would hide the rest of the line.
        if line.count('"') % 2:
            line = line.replace('"', "'")
        for part in divided(INTRODUCED.sub("", line)):
            part = LISTED.sub("", part).strip().rstrip(",").strip()
            bare, marked = unquoted(part)
            if marked and (">>" in bare or _UNKNOWN.search(bare)):
                part = bare
            if part and part != '"':
                found.append(part)
    return found


def _numbered(statements: list[str], names: dict[str, int]) -> list[str]:
    """Return the statements with named unknowns as numbers, and note the number of each name."""
    used = [int(match[1]) for one in statements for match in _UNKNOWN.finditer(blanked(_spaced(one)))]
    first = max(used, default=0) + 1

    def number(name: str) -> str:
        return f"#{names.setdefault(name.casefold(), first + len(names))}"

    def named(part: str) -> str:
        return _NAMED.sub(lambda match: number(match[1]), _spaced(part))

    made = [outside(one, named) for one in statements]
    if used or names:
        return made

    def lettered(part: str) -> str:
        return _LETTER.sub(lambda match: match["before"] + match["space"] + number(match["name"]), part)

    return [outside(one, lettered) for one in made]


def _spaced(part: str) -> str:
    return re.sub(r"#\s*0*(\d{1,9})", r"#\1", part)


@dataclass(slots=True)
class _Reading:
    """Collects what statements say. ``names`` are the numbers of named unknowns."""

    names: dict[str, int]
    triples: dict[tuple[Triple, Count | None], None] = field(default_factory=dict)
    types: dict[int, dict[str, None]] = field(default_factory=dict)
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    conditions: dict[Condition, None] = field(default_factory=dict)
    wishes: dict[str, None] = field(default_factory=dict)
    answer: str | None = None
    dropped: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)

    def take(self, statement: str) -> None:
        """Take one statement."""
        shown = blanked(statement)
        if len(statement) > _LONGEST:
            self.passed.append(f"{statement[:80]} ...")
            return
        if ">>" not in shown and (match := _FINAL.fullmatch(statement)):
            self.answer = match["what"]
            return
        if match := _WISH.fullmatch(shown):
            group = "wish" if match["wish"] else "said"
            wish = unquoted(statement[slice(*match.span(group))])[0]
            if wish.strip():
                self.wishes[f"not {wish}" if match["not"] else wish] = None
            return
        if (match := _LABEL.match(shown)) and (">>" in shown or "#" in shown):
            statement = statement[match.end() :]
        count, rest = quantified(statement)
        shown = blanked(rest)
        if ">>" not in shown and count in (None, NOT) and (found := conditions(rest, count == NOT)):
            self.conditions.update(dict.fromkeys(found))
            return
        match = None if ">>" in shown or _ARROW.search(shown) else _TYPED.fullmatch(shown)
        if match:
            self._typed(int(match[1]), _types(rest[match.start("types") :]))
            return
        if (parts := _triple_parts(rest)) is not None:
            self._triple(parts, count, statement)
        elif (match := _KIND.fullmatch(shown)) and "#" not in shown:
            name, types = rest[: match.end("name")], rest[match.start("types") :]
            if given := _types(types):
                self.kinds[normalise(unquoted(name)[0])] = given
            self.passed.append(statement)
        elif "#" not in shown or shown.endswith(":"):
            self.passed.append(statement)
        else:
            raise IncorrectTripleFormatError(f"not a head, a relation and a tail: '{statement}'", FORM)

    def _triple(self, parts: list[str], count: Count | None, said: str) -> None:
        if len(parts) != 3 or not all(parts):
            raise IncorrectTripleFormatError(f"not a head, a relation and a tail: '{said}'", FORM)
        relation, marked = unquoted(parts[1])
        if not relation.strip():
            raise IncorrectTripleFormatError(f"a triple without a relation: '{said}'", FORM)
        if not marked:
            if "#" in relation or relation.startswith("?"):
                raise IncorrectTripleRelationMaskError(
                    f"an unknown as relation: '{said}'", "Only a head or a tail may be unknown"
                )
            denied, relation = negated(relation)
            count = NOT if denied and count is None else count
        head = self._term(parts[0], said)
        within, rest = quantified(parts[2])
        if within is not None and count is None:
            count, parts[2] = within, rest
        if head.unknown is not None and not marked and not parts[2].startswith('"'):
            found = tail_condition(head.unknown, relation, parts[2], count == NOT)
            if found is not None and count in (None, NOT):
                self.conditions[found] = None
                return
            if normalise(relation) in _IS and "#" not in parts[2] and count is None:
                self._typed(head.unknown, _types(parts[2]))
                return
        triple = Triple(head, relation, self._term(parts[2], said))
        if triple.head.unknown is None and triple.tail.unknown is None:
            self.dropped.append(said)
            return
        self.triples[triple, count] = None

    def _term(self, piece: str, said: str) -> Term:
        text, marked = unquoted(piece)
        if marked and piece.strip().startswith('"'):
            if not text.strip():
                raise IncorrectTripleFormatError(f"an empty name: '{said}'", FORM)
            return Term(text)
        if _UNKNOWN.fullmatch(text):
            return Term(text)
        if text in {"?", "_", "[]"} or re.search(r"#(?!\d)", text):
            raise MissingMaskNumberError(f"an unknown without a number: '{said}'", FORM)
        if not _UNKNOWN.search(text):
            return Term(text)
        for pattern in _TERM_TYPED:
            if (match := pattern.fullmatch(text)) and not _SAYS_MORE.search(match["type"]):
                self._typed(int(match["number"]), _types(match["type"]))
                return Term(f"#{match['number']}")
        raise IncorrectTripleFormatError(
            f"words around an unknown: '{said}'",
            "A head or a tail is one unknown or one name; what joins them is a triple of its own",
        )

    def _typed(self, number: int, types: tuple[str, ...]) -> None:
        if not types:
            return
        self.types.setdefault(number, {}).update(dict.fromkeys(types))

    def done(self) -> TypedReading:
        """Return what was read, checked as a whole."""
        triples = [triple for triple, _ in self.triples]
        numbers = {number for triple in triples for number in triple.unknowns}
        numbers |= self.types.keys() | {one.unknown for one in self.conditions}
        if (
            self.answer
            and (match := _UNKNOWN.fullmatch(self.answer.strip("()[] .")))
            and (self.wishes or numbers)
        ):
            numbers.add(int(match[1]))
        self._check(numbers)
        answer = self._answer(numbers)
        constants = {
            normalise(term.text): term.text
            for triple in triples
            for term in (triple.head, triple.tail)
            if term.unknown is None
        }
        kinds = {constants[name]: types for name, types in self.kinds.items() if name in constants}
        counts = {place: count for place, (_, count) in enumerate(self.triples) if count is not None}
        types = {number: tuple(self.types[number]) for number in sorted(self.types)}
        chain = TypedChain(
            Chain(tuple(triples), answer), types, kinds, counts, tuple(self.conditions), tuple(self.wishes)
        )
        used = {normalise(name) for name in kinds}
        passed = [one for one in self.passed if not _names_kind(one, used)]
        return TypedReading(chain, tuple(self.dropped), tuple(passed))

    def _check(self, numbers: set[int]) -> None:
        if not numbers and self.dropped:
            raise MissingTripleMaskError(f"no unknown in '{self.dropped[0]}'", FORM)
        if not numbers:
            raise MaskUnderflowError("nothing is asked for: no unknown", FORM)
        if len(numbers) > MOST:
            raise MaskOverflowError(f"{len(numbers)} unknowns where {MOST} are the most", FORM)
        if numbers != set(range(1, len(numbers) + 1)):
            said = ", ".join(f"#{number}" for number in sorted(numbers))
            raise DiscontinuousMaskError(f"the unknowns are {said}", "Number them from #1 without gaps")

    def _answer(self, numbers: set[int]) -> int:
        """Return which unknown is asked for; where that is not said there can be but one."""
        said = "" if self.answer is None else self.answer.strip()
        bare = said.strip("()[] .")
        match = _UNKNOWN.fullmatch(bare) or next(
            (found for one in _TERM_TYPED if (found := one.fullmatch(said) or one.fullmatch(bare))), None
        )
        if match is not None and (number := int(match[match.re.groupindex.get("number", 1)])) in numbers:
            return number
        if (name := bare.casefold().lstrip("?")) in self.names:
            return self.names[name]
        if len(numbers) == 1 and said.casefold() in {"", "#answer"}:
            return next(iter(numbers))
        problem = f"the final answer is '{said}'" if self.answer is not None else "no final answer is said"
        raise FinalAnswerFormatError(problem, "End with final answer: #1, or another of the unknowns")


def _names_kind(statement: str, used: set[str]) -> bool:
    match = _KIND.fullmatch(blanked(statement))
    return match is not None and normalise(unquoted(statement[: match.end("name")])[0]) in used


def _types(said: str) -> tuple[str, ...]:
    """Return the types that are said: "film or series"."""
    found = []
    for one in pieces(said.strip(), r"\s+or\s+|\s*[|,]\s*"):
        text, marked = unquoted(re.sub(r"\A(?:an?|the)\s+", "", one))
        found.append(text if marked else text.rstrip(".").strip())
    return tuple(dict.fromkeys(one for one in found if one.strip()))


def _triple_parts(text: str) -> list[str] | None:
    """Return the parts of what has the form of a triple, None for what has not."""
    shown = blanked(text)
    if match := _BRACKETED.fullmatch(shown):
        inside = text[slice(*match.span("inside"))].strip()
        if ">>" in blanked(inside):
            return pieces(inside, ">>")
        parts = pieces(inside, r",\s+")
        return parts if len(parts) == 3 else pieces(inside, r",")
    if ">>" in shown:
        return pieces(text, ">>")
    if match := _ARROW_WITH.search(shown):
        relation = text[slice(*match.span(1))]
        return [text[: match.start()].strip(), relation.strip(), text[match.end() :].strip()]
    if _ARROW.search(shown):
        return pieces(text, _ARROW.pattern)
    if (match := _CALLED.fullmatch(shown)) and "#" in match["ends"]:
        ends = pieces(text[slice(*match.span("ends"))], r",\s*")
        return [ends[0], match["relation"].strip(), ends[1]] if len(ends) == 2 else None
    if shown.count("|") == 2 and "#" in shown:
        return pieces(text, r"\|")
    return None
