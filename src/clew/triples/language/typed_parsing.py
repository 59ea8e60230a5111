"""The statements of a question as typed triples, without what a model puts around them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from clew.core.prompts.replies import clean_reply
from clew.core.text import normalise
from clew.triples.language.chain import INTRODUCTION, LIST_MARK, Chain, Term, Triple, split_statements
from clew.triples.language.conditions import parse_conditions, parse_tail_conditions
from clew.triples.language.errors import (
    DiscontinuousMaskError,
    FinalAnswerFormatError,
    IncorrectTripleFormatError,
    IncorrectTripleRelationMaskError,
    MaskOverflowError,
    MaskUnderflowError,
    MissingMaskNumberError,
    MissingTripleMaskError,
)
from clew.triples.language.quantifiers import (
    NUMBER_WORDS,
    parse_counted_tail,
    split_negation,
    split_quantifier,
)
from clew.triples.language.quoting import mask_quotes, replace_outside_quotes, split_outside_quotes, unquote
from clew.triples.language.typed_chain import NOT, Condition, Quantifier, TypedChain

UNKNOWN = re.compile(r"#(\d+)")
_NAMED = re.compile(r"(?<![\w#])\?([A-Za-z_]\w*)")
_LETTER = re.compile(
    r"(?P<before>\A|>>|->|→|[(,\[:]|\b(?:is|not|only|by)\b)(?P<space>\s*)(?P<name>[x-zX-Z](?:_?\d{1,2})?)"
    r"(?=\s*(?:\Z|>>|--|-\[|->|→|[,)\]:.~(]))"
)


def extract_statements(text: str) -> list[str]:
    """Return the statements of a reply without what stands around them."""
    lines = [line for line in clean_reply(text).split("\n") if not line.strip().startswith("```")]
    found = []
    for line in lines:
        # A mark that is not closed would hide the rest of the line.
        if line.count('"') % 2:
            line = line.replace('"', "'")
        for part in split_statements(INTRODUCTION.sub("", line)):
            part = LIST_MARK.sub("", part).strip().rstrip(",").strip()
            bare, marked = unquote(part)
            if marked and (">>" in bare or UNKNOWN.search(bare)):
                part = bare
            if part and part != '"':
                found.append(part)
    return found


def number_unknowns(said: list[str], names: dict[str, int]) -> list[str]:
    """Return the statements with named unknowns as numbers, and note the number of each name."""
    used = [int(match[1]) for one in said for match in UNKNOWN.finditer(mask_quotes(_spaced(one)))]
    first = max(used, default=0) + 1

    def number(name: str) -> str:
        return f"#{names.setdefault(name.casefold(), first + len(names))}"

    def named(part: str) -> str:
        return _NAMED.sub(lambda match: number(match[1]), _spaced(part))

    made = [replace_outside_quotes(one, named) for one in said]
    if used or names:
        return made

    def lettered(part: str) -> str:
        return _LETTER.sub(lambda match: match["before"] + match["space"] + number(match["name"]), part)

    return [replace_outside_quotes(one, lettered) for one in made]


def _spaced(part: str) -> str:
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
    """Return the parts of what has the form of a triple, None for what has not."""
    shown = mask_quotes(text)
    if match := _BRACKETED.fullmatch(shown):
        inside = text[slice(*match.span("inside"))].strip()
        if ">>" in mask_quotes(inside):
            return split_outside_quotes(inside, ">>")
        parts = split_outside_quotes(inside, r",\s+")
        return parts if len(parts) == 3 else split_outside_quotes(inside, r",")
    if ">>" in shown:
        return split_outside_quotes(text, ">>")
    if ARROW.search(shown):
        return _around_arrows(text, shown)
    if (match := _CALLED.fullmatch(shown)) and "#" in match["ends"]:
        ends = split_outside_quotes(text[slice(*match.span("ends"))], r",\s*")
        return [ends[0], match["relation"].strip(), ends[1]] if len(ends) == 2 else None
    if shown.count("|") == 2 and "#" in shown:
        return split_outside_quotes(text, r"\|")
    return None


def _around_arrows(text: str, shown: str) -> list[str]:
    """Return the parts of ``head -> relation -> tail`` or ``head --relation--> tail``."""
    parts = split_outside_quotes(text, ARROW.pattern)
    if len(parts) > 2:
        return parts
    for pattern in _ARROWS_WITH:
        if match := pattern.search(shown):
            relation = text[slice(*match.span("relation"))]
            return [text[: match.start()].strip(), relation.strip(), text[match.end() :].strip()]
    return parts


FORM = (
    "Write #1 : film; #1 >> directed_by >> David Lynch; not #1 >> starred_actors >> #2; "
    "#1.release_year between 1980 and 1990; #1 ~ slow and dreamlike; final answer: #1"
)
#: A question with more unknowns than this is a model that does not stop.
MAX_UNKNOWNS = 12
#: A statement longer than this, in characters, is none.
_LONGEST = 1_000

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

_OR = r"\s+or\s+|\s*[|,]\s*"
_TERM_TYPED = (
    re.compile(r"#(?P<number>\d+)\s*[(\[{]\s*(?:an?\s+)?(?P<type>[^()\[\]{}]+?)\s*[)\]}]"),
    re.compile(r"#(?P<number>\d+)\s*:\s*(?P<type>[^#]+)"),
    re.compile(r"[(\[]\s*(?P<type>[^()\[\]#]+?)\s*[)\]]\s*#(?P<number>\d+)"),
    re.compile(r"(?:an?\s+|the\s+|some\s+)?(?P<type>[^#:]+?)\s*:?\s*#(?P<number>\d+)"),
)
#: Words with an unknown that say more than its type: how many, whether at all, or which end of a triple it is.
_SAYS_MORE = re.compile(
    r"['’]s\b|\d|[!<>=≠≤≥¬∃∀~]|\A(?:head|tail|subject|object|answer|unknown|variable|target)\Z"
    r"|\b(?:of|by|in|the|from|for|with|who|that|and|or|not|no|none|never|without|only|except|every|each|all|any|some"
    r"|both|exists?|exactly|just|least|most|more|fewer|less|several|multiple|many|few|different|distinct|other"
    rf"|another|same|{'|'.join(NUMBER_WORDS)})\b",
    re.IGNORECASE,
)
#: What denies a type.
_NO_TYPE = re.compile(r"(?:an?\s+)?(?:not|no|never|without|except|neither|anything\s+but)\s", re.IGNORECASE)
#: A tail that is the same as a head, or another: "= Bob", "is not Bob".
_SAME = re.compile(
    r"(?:(?P<not>!=|≠|<>|(?:is|was|are|were)(?:\s+not|n['’]t)(?=\s))|==?)\s*(?=\S)", re.IGNORECASE
)
#: Unknowns that have no number yet are numbered from here on.
_UNNUMBERED = 10**9


@dataclass(frozen=True, slots=True)
class TypedParse:
    """What was read: the question, triples of two constants that were dropped (Algorithm 3, line 6, of 4StepFocus),
    and lines that say nothing and were passed over."""

    chain: TypedChain
    dropped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def parse_typed(text: str) -> TypedChain:
    """Return the question that ``text`` writes, one statement a line or divided by semicolons, in any order:

    ``#1 : film``, ``David Lynch : person`` (types) · ``#1 >> directed_by >> David Lynch`` (a triple; also
    ``(#1, directed_by, David Lynch)``, ``#1 --directed_by--> David Lynch``, ``directed_by(#1, David Lynch)``) ·
    before it ``not``, ``only``, ``at least 2``, ``at most 2``, ``exactly 2`` ·
    ``#1.release_year between 1980 and 1990`` (a condition) · ``#1 ~ slow and dreamlike`` (a wish) ·
    ``final answer: #1``.

    What stands in quotation marks is text, whatever it looks like. Tolerant of small models: thoughts, fences, list
    marks and prose around it; ``?film`` or ``X`` as unknowns; ``#1 (film)`` and ``film #1`` as typed ones. Raises the
    :class:`~clew.triples.language.errors.ChainError` of what is wrong first.
    """
    return parse_typed_statements(text).chain


def parse_typed_statements(text: str) -> TypedParse:
    """Return the question that ``text`` writes as :func:`parse_typed` does, with what of it was left out."""
    found = extract_statements(text)
    names: dict[str, int] = {}
    reading = _Reading(names)
    for statement in number_unknowns(found, names):
        reading.take(statement)
    return reading.done()


@dataclass(slots=True)
class _Reading:
    """Collects what statements say. ``names`` are the numbers of named unknowns."""

    names: dict[str, int]
    triples: dict[tuple[Triple, Quantifier | None], None] = field(default_factory=dict)
    types: dict[int, dict[str, None]] = field(default_factory=dict)
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    conditions: dict[Condition, None] = field(default_factory=dict)
    wishes: dict[str, None] = field(default_factory=dict)
    answer: str | None = None
    dropped: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)

    def take(self, statement: str) -> None:
        """Take one statement."""
        shown = mask_quotes(statement)
        if len(statement) > _LONGEST:
            self.passed.append(f"{statement[:80]} ...")
            return
        if ">>" not in shown and (match := _FINAL.fullmatch(statement)):
            self.answer = match["what"]
            return
        if match := _WISH.fullmatch(shown):
            group = "wish" if match["wish"] else "said"
            wish = unquote(statement[slice(*match.span(group))])[0]
            if wish.strip():
                self.wishes[f"not {wish}" if match["not"] else wish] = None
            return
        said, label = statement, self._label(statement, shown)
        statement = statement[label.end() :] if label else statement
        count, rest = split_quantifier(statement)
        if label and (label["denied"] or label["after"]):
            count = _both(NOT, count, said)
        shown = mask_quotes(rest)
        if ">>" not in shown and count in (None, NOT) and (found := parse_conditions(rest, count == NOT)):
            self.conditions.update(dict.fromkeys(found))
            return
        match = None if ">>" in shown or ARROW.search(shown) else _TYPED.fullmatch(shown)
        if match:
            if count is not None:
                raise IncorrectTripleFormatError(f"a type cannot be denied or counted: '{said}'", FORM)
            self._typed(int(match[1]), _types_of_unknown(rest[match.start("types") :], said))
        elif (parts := split_triple(rest)) is not None:
            self._triple(parts, count, statement)
        else:
            self._other(rest, statement)

    def _other(self, rest: str, statement: str) -> None:
        """Take the type of a constant; pass over what says nothing."""
        shown = mask_quotes(rest)
        if (match := _KIND.fullmatch(shown)) and "#" not in shown:
            name, types = rest[: match.end("name")], rest[match.start("types") :]
            if given := _types(types):
                self.kinds[normalise(unquote(name)[0])] = given
        elif "#" in shown and not shown.endswith(":"):
            raise IncorrectTripleFormatError(f"not a head, a relation and a tail: '{statement}'", FORM)
        self.passed.append(statement)

    def _label(self, statement: str, shown: str) -> re.Match[str] | None:
        """Return the label before a statement: "Negated triple: ..."."""
        match = _LABEL.match(shown)
        if match and match.end() == len(shown) and (match["denied"] or match["after"]):
            raise IncorrectTripleFormatError(
                f"a heading that would deny what follows: '{statement}'",
                "Write not before each triple instead",
            )
        return match if match and match.end() < len(shown) and (">>" in shown or "#" in shown) else None

    def _triple(self, parts: list[str], count: Quantifier | None, said: str) -> None:
        if len(parts) != 3 or not all(parts):
            raise IncorrectTripleFormatError(f"not a head, a relation and a tail: '{said}'", FORM)
        relation, marked = unquote(parts[1])
        if not relation.strip():
            raise IncorrectTripleFormatError(f"a triple without a relation: '{said}'", FORM)
        if not marked:
            if "#" in relation or relation.startswith("?"):
                raise IncorrectTripleRelationMaskError(
                    f"an unknown as relation: '{said}'", "Only a head or a tail may be unknown"
                )
            denied, relation = split_negation(relation)
            count = _both(NOT if denied else None, count, said)
        for end in (0, 2):
            within, parts[end] = split_quantifier(parts[end])
            count = _both(count, within, said)
        head = self._term(parts[0], said)
        if head.unknown is not None and not parts[2].startswith('"'):
            if not marked and self._said_of(head.unknown, relation, parts[2], count, said):
                return
            count, parts[2] = self._tail(parts[2], count, said)
        triple = Triple(head, relation, self._term(parts[2], said))
        if triple.unknowns and triple.head == triple.tail and not UNKNOWN.fullmatch(parts[2]):
            raise IncorrectTripleFormatError(
                f"an unknown that is its own tail: '{said}'", 'Quote a name with a number: "Mambo #1"'
            )
        if triple.head.unknown is None and triple.tail.unknown is None:
            self.dropped.append(said)
            return
        self.triples[triple, count] = None

    def _said_of(self, unknown: int, relation: str, tail: str, count: Quantifier | None, said: str) -> bool:
        """Take a triple whose tail is a test or a type; return whether it was one."""
        tested = count in (None, NOT) and not parse_counted_tail(tail)
        if tested and (found := parse_tail_conditions(unknown, relation, tail, count == NOT)):
            self.conditions.update(dict.fromkeys(found))
            return True
        if normalise(relation) not in _IS or "#" in tail:
            return False
        if count is not None:
            raise IncorrectTripleFormatError(f"a type cannot be denied or counted: '{said}'", FORM)
        self._typed(unknown, _types_of_unknown(tail, said))
        return True

    def _tail(self, tail: str, count: Quantifier | None, said: str) -> tuple[Quantifier | None, str]:
        """Return the quantifier with what the tail says of it: "is not Bob", "at least 2 actors"; and the tail."""
        if match := _SAME.match(tail):
            return _both(count, NOT if match["not"] else None, said), tail[match.end() :]
        if re.match(r"!(?=\w)", tail):
            raise IncorrectTripleFormatError(
                f"denied, or a name that begins so: '{said}'", "Write not, or quote the name"
            )
        if count is None and (several := parse_counted_tail(tail)):
            if _SAYS_MORE.search(several[1]):
                raise IncorrectTripleFormatError(
                    f"more than a type is counted: '{said}'",
                    "Count an unknown, and say what it is in triples of its own",
                )
            number = _UNNUMBERED + len(self.triples)
            self._typed(number, _types(several[1]))
            return several[0], f"#{number}"
        return count, tail

    def _term(self, piece: str, said: str) -> Term:
        text, marked = unquote(piece)
        if marked and piece.strip().startswith('"'):
            if not text.strip():
                raise IncorrectTripleFormatError(f"an empty name: '{said}'", FORM)
            return Term(text)
        if UNKNOWN.fullmatch(text):
            return Term(text)
        if text in {"?", "_", "[]"} or re.search(r"#(?!\d)", text):
            raise MissingMaskNumberError(f"an unknown without a number: '{said}'", FORM)
        if not UNKNOWN.search(text):
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

    def done(self) -> TypedParse:
        """Return what was read, checked as a whole."""
        self._number()
        triples = [triple for triple, _ in self.triples]
        numbers = {number for triple in triples for number in triple.unknowns}
        numbers |= self.types.keys() | {one.unknown for one in self.conditions}
        if (
            self.answer
            and (match := UNKNOWN.fullmatch(self.answer.strip("()[] .")))
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
        return TypedParse(chain, tuple(self.dropped), tuple(passed))

    def _number(self) -> None:
        """Give the unknowns that have no number yet those after the others."""
        numbers = {number for triple, _ in self.triples for number in triple.unknowns} | self.types.keys()
        numbers |= {one.unknown for one in self.conditions}
        last = max((number for number in numbers if number < _UNNUMBERED), default=0)
        without = sorted(number for number in numbers if number >= _UNNUMBERED)
        new = {number: last + place for place, number in enumerate(without, 1)}
        self.types = {new.get(number, number): types for number, types in self.types.items()}
        self.triples = {
            (Triple(triple.head, triple.relation, _renumbered(triple.tail, new)), count): None
            for triple, count in self.triples
        }

    def _check(self, numbers: set[int]) -> None:
        if not numbers and self.dropped:
            raise MissingTripleMaskError(f"no unknown in '{self.dropped[0]}'", FORM)
        if not numbers:
            raise MaskUnderflowError("nothing is asked for: no unknown", FORM)
        if len(numbers) > MAX_UNKNOWNS:
            raise MaskOverflowError(f"{len(numbers)} unknowns where {MAX_UNKNOWNS} are the most", FORM)
        if numbers != set(range(1, len(numbers) + 1)):
            said = ", ".join(f"#{number}" for number in sorted(numbers))
            raise DiscontinuousMaskError(f"the unknowns are {said}", "Number them from #1 without gaps")

    def _answer(self, numbers: set[int]) -> int:
        """Return which unknown is asked for; where that is not said there can be but one."""
        said = "" if self.answer is None else self.answer.strip()
        bare = said.strip("()[] .")
        match = UNKNOWN.fullmatch(bare) or next(
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
    match = _KIND.fullmatch(mask_quotes(statement))
    return match is not None and normalise(unquote(statement[: match.end("name")])[0]) in used


def _both(one: Quantifier | None, other: Quantifier | None, said: str) -> Quantifier | None:
    """Return the quantifier of a triple that is said to have one and another, None: none."""
    if one is not None and other is not None and one != other:
        raise IncorrectTripleFormatError(f"'{one}' and '{other}' of one triple: '{said}'", FORM)
    return other if one is None else one


def _renumbered(term: Term, new: dict[int, int]) -> Term:
    return Term(f"#{new[term.unknown]}") if term.unknown in new else term


def _types_of_unknown(said: str, statement: str) -> tuple[str, ...]:
    """Return the types that are said of an unknown, which none of them may deny."""
    for one in split_outside_quotes(said.strip(), _OR):
        text, marked = unquote(one)
        if not marked and (_NO_TYPE.match(text) or "#" in text):
            raise IncorrectTripleFormatError(f"no type, or one that is denied: '{statement}'", FORM)
    return _types(said)


def _types(said: str) -> tuple[str, ...]:
    """Return the types that are said: "film or series"."""
    found = []
    for one in split_outside_quotes(said.strip(), _OR):
        text, marked = unquote(re.sub(r"\A(?:an?|the)\s+", "", one))
        found.append(text if marked else text.rstrip(".").strip())
    return tuple(dict.fromkeys(one for one in found if one.strip()))


# MERGED: The head, the relation and the tail of a triple, in the forms in which triples are written.
# MERGED: Reading a question as typed triples, as a model, or a person, writes it.
