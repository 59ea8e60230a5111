"""Chains: a question as triples over constants and unknowns, the parser of their written form, and typed chains.

Su et al. (NAACL 2024), Section 3.1. A term of a triple is a constant (``Lima``), an unknown (``#1``), or text that
contains unknowns (``flag of the #1``). A written chain can be wrong in eight ways (Appendix B), each an error of its
own.

:class:`TypedChain` is a question as typed triples (4StepFocus: Boer et al., 2024, Section 3). Beyond that paper it
has quantifiers, negation, conditions on properties, and preferences that no triple can express. In typed triples,
text in quotation marks is a name or a value, whatever it looks like (:func:`quote`). Its parser is
:mod:`clew.triples.language.typed_parsing`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from clew.core.errors import UsageError
from clew.core.prompts.replies import clean_reply


class ChainError(UsageError):
    """A chain that does not have the required form; the hint says what was expected."""


class MaskUnderflowError(ChainError):
    """Fewer unknowns than the task allows."""


class MaskOverflowError(ChainError):
    """More unknowns than the task allows."""


class DiscontinuousMaskError(ChainError):
    """The numbers of the unknowns have a gap (#1, #3)."""


class MissingMaskNumberError(ChainError):
    """An unknown without a number that is not the final answer's ``#answer``."""


class MissingTripleMaskError(ChainError):
    """A triple without an unknown in its head or its tail."""


class IncorrectTripleRelationMaskError(ChainError):
    """An unknown in the relation of a triple."""


class IncorrectTripleFormatError(ChainError):
    """A triple without exactly a head, a relation and a tail."""


class FinalAnswerFormatError(ChainError):
    """A chain that does not end with ``final answer: #answer`` or one of its unknowns."""


#: A number of more than ten digits is none of an unknown: it stays text.
UNKNOWN = re.compile(r"#(?P<number>\d{1,10}(?!\d))")
#: What a model may write before a chain, and before one of its triples.
INTRODUCTION = re.compile(r"\A\W*(?:(?:masked\s+)?reasoning\s+)?chain\s*:[*_\s]*", re.IGNORECASE)
LIST_MARK = re.compile(r"^\s*(?:[-*•]\s+|\(?\d{1,2}[.)]\s+)")
FINAL_ANSWER = re.compile(
    r"^[\s*_\"'`(\[]*(?:the\s+)?final\s+answer\s*(?:is|:)\s*(?P<what>.*?)[\s.)\]\"'`*_]*$", re.IGNORECASE
)
_ANSWER = re.compile(r"#\s*answer", re.IGNORECASE)
_MASK = re.compile(r"#\s*(?P<number>(?:\d{1,10}(?!\d))?)")
_QUOTED = re.compile(r'\A"(?P<inside>[^"]*)"\Z')
_FORM = "Write HEAD >> RELATION >> #1; #1 >> RELATION >> #2; final answer: #2"


@dataclass(frozen=True, slots=True)
class Term:
    """A head or a tail: a constant (``Lima``), an unknown (``#1``), or text with unknowns (``flag of the #1``).

    ``is_name``: it is a constant although it looks like an unknown, or like text with one (``"Mambo #1"``).
    """

    text: str
    is_name: bool = False

    @property
    def unknowns(self) -> tuple[int, ...]:
        """The numbers of the unknowns in the term, in their order, each once."""
        if self.is_name:
            return ()
        return tuple(dict.fromkeys(int(match["number"]) for match in UNKNOWN.finditer(self.text)))

    @property
    def unknown(self) -> int | None:
        """The unknown's number if the term is an unknown and nothing else, else None."""
        match = None if self.is_name else UNKNOWN.fullmatch(self.text)
        return int(match["number"]) if match else None

    def fill(self, values: Mapping[int, str]) -> Term:
        """Return the term with its unknowns replaced by their values, as far as they have one.

        >>> Term("flag of the #1").fill({1: "Bahamas"})
        Term(text='flag of the Bahamas', is_name=False)
        """
        if self.is_name:
            return self
        return Term(UNKNOWN.sub(lambda match: values.get(int(match["number"]), match.group()), self.text))

    def __str__(self) -> str:
        """The term as a chain writes it: in quotation marks if it contains a separator of chains."""
        return _quote_separators(self.text)


@dataclass(frozen=True, slots=True)
class Triple:
    """A head that has a relation to a tail.

    ``inverse``: the tail has the relation to the head (``#1 << directed << #2``). ``repeated``: the relation leads
    from one to the other in one or more steps (``#1 >> part_of >>+ #2``). Chains have neither.
    """

    head: Term
    relation: str
    tail: Term
    inverse: bool = False
    repeated: bool = False

    @property
    def unknowns(self) -> tuple[int, ...]:
        """The numbers of its unknowns, each once."""
        return tuple(dict.fromkeys((*self.head.unknowns, *self.tail.unknowns)))

    def fill(self, values: Mapping[int, str]) -> Triple:
        """Return the triple with its unknowns replaced by their values, as far as they have one."""
        return replace(self, head=self.head.fill(values), tail=self.tail.fill(values))

    def __str__(self) -> str:
        return f"{self.head} >> {_quote_separators(self.relation)} >> {self.tail}"


@dataclass(frozen=True, slots=True)
class Chain:
    """Triples, and the number of the unknown that answers the question; None is ``#answer``, made from all unknowns.

    Its string is what a model writes, and parses back.
    """

    triples: tuple[Triple, ...]
    answer: int | None = None

    @property
    def unknowns(self) -> tuple[int, ...]:
        """The numbers of all unknowns, ascending."""
        return tuple(sorted({number for triple in self.triples for number in triple.unknowns}))

    def fill(self, values: Mapping[int, str]) -> Chain:
        """Return the chain with its unknowns replaced by their values, as far as they have one."""
        return Chain(tuple(triple.fill(values) for triple in self.triples), self.answer)

    def __str__(self) -> str:
        answer = "#answer" if self.answer is None else f"#{self.answer}"
        return "; ".join([*map(str, self.triples), f"final answer: {answer}"])


@dataclass(frozen=True, slots=True)
class Limits:
    """How many different unknowns a chain may have (Appendix B: two to four for multi-hop questions)."""

    least: int = 2
    most: int = 4


def parse_chain(text: str, limits: Limits = Limits()) -> Chain:
    """Return the chain that ``text`` writes: ``head >> relation >> tail`` or ``(head, relation, tail)``, triples
    separated by semicolons or line ends, ``final answer: #2`` or ``#answer`` last.

    Skips what small models write around it: thoughts, ``Reasoning Chain:``, list marks, a full stop. Raises the
    :class:`~clew.triples.language.chain.ChainError` of the first problem.
    """
    body = INTRODUCTION.sub("", clean_reply(text).strip("`"))
    statements = [LIST_MARK.sub("", statement).strip() for statement in split_statements(body)]
    statements = [statement for statement in statements if statement]
    final = FINAL_ANSWER.match(statements[-1]) if statements else None
    if final is None:
        raise FinalAnswerFormatError("the chain does not end with its final answer", _FORM)
    triples = tuple(_parse_triple(statement) for statement in statements[:-1])
    if not triples:
        raise IncorrectTripleFormatError("the chain has no triples", _FORM)
    numbers = {number for triple in triples for number in triple.unknowns}
    if len(numbers) < limits.least:
        raise MaskUnderflowError(f"{len(numbers)} unknowns where {limits.least} are the least", _FORM)
    if len(numbers) > limits.most:
        raise MaskOverflowError(f"{len(numbers)} unknowns where {limits.most} are the most", _FORM)
    if numbers != set(range(1, len(numbers) + 1)):
        listed = ", ".join(f"#{number}" for number in sorted(numbers))
        raise DiscontinuousMaskError(f"the unknowns are {listed}", "Number them from #1 without gaps")
    return Chain(triples, _parse_answer(final["what"], numbers))


_ARROW = re.compile(r"\s*(?:→|⟶|⇒|->|=>|—>|–>|»)\s*")
_CODE = re.compile(r"`+")
_TRIPLE_START = re.compile(r">>|\A\W*\([^(),]+,[^(),]+,[^()]+\)")


def parse_chain_reply(reply: str, limits: Limits = Limits()) -> Chain:
    """Return the chain in a reply of a model: :func:`parse_chain`, with what models write around a chain left out.

    These are sentences before and after it, fences and inline code, the question repeated, further questions and
    chains of the model's own invention, and arrows in the place of ``>>``. The first chain counts: its triples are
    taken as they stand, none is left out. Raises the :class:`~clew.triples.language.chain.ChainError` of the whole
    reply if there is no such chain.
    """
    reply = _STEP.sub("", reply)
    try:
        return parse_chain(reply, limits)
    except ChainError as error:
        body = _find_chain(clean_reply(reply)) or _find_chain(clean_reply(reply).translate(_FULL_WIDTH))
        if not body:
            raise
        try:
            return parse_chain(body, limits)
        except ChainError as inner:
            raise inner from error


def write_arrows(text: str) -> str:
    """Return a text with ``>>`` for other arrows, if it has no ``>>``."""
    return text if ">>" in text else _ARROW.sub(" >> ", text)


def _find_chain(text: str) -> str:
    """Return the statements from the first triple to the first final answer after it, "" if there are none."""
    text = write_arrows(text)
    statements: list[str] = []
    for line in _CODE.sub("\n", text).splitlines():
        for part in split_statements(INTRODUCTION.sub("", line.strip())):
            statement = LIST_MARK.sub("", part).strip(" *_«»“”「」")
            if _TRIPLE_START.search(statement):
                # In "the chain is: Kismet >> director >> #1" the words before the colon are no head.
                statements.append(re.sub(r"\A[^>#:]*\bchain\b[^>#:]*:\s*", "", statement))
            elif statements and (final := _FINAL_INSIDE.match(statement)):
                return "; ".join([*statements, f"final answer: {final['what']}"])
            elif statements and statement:
                return ""
    return ""


#: "**Step 1:** Kismet >> director >> #1"
_STEP = re.compile(r"^[^\w\n]*(?:step|triple)\s*\d+\s*[:.)][^\w#]*", re.IGNORECASE | re.MULTILINE)
#: What keyboards for Chinese and Japanese write.
_FULL_WIDTH = str.maketrans("；：＞＃", ";:>#")
#: A final answer with more of the sentence behind it.
_FINAL_INSIDE = re.compile(
    r"(?:(?:so|thus|and)\W+)?(?:the\s+)?final\s+answer\s*(?:is|:)[\s*_\"'(]*(?P<what>#\s*(?:answer|\d+))\b",
    re.IGNORECASE,
)


def split_statements(text: str) -> Iterable[str]:
    """Yield the parts between semicolons and line ends; neither separates within quotation marks."""
    part, quoted = "", False
    for character in text:
        if character == '"':
            quoted = not quoted
        if character in ";\n" and not quoted:
            yield part
            part = ""
        else:
            part += character
    yield part


def _parse_triple(statement: str) -> Triple:
    pieces = _split_triple(statement)
    if len(pieces) != 3 or not all(pieces):
        raise IncorrectTripleFormatError(f"not a head, a relation and a tail: '{statement}'", _FORM)
    head, relation, tail = pieces
    if _MASK.search(relation):
        raise IncorrectTripleRelationMaskError(
            f"an unknown as relation: '{statement}'", "Only a head or a tail may be unknown"
        )
    terms = []
    for piece in (head, tail):
        if any(not match["number"] for match in _MASK.finditer(piece)):
            raise MissingMaskNumberError(f"an unknown without a number: '{statement}'", _FORM)
        terms.append(Term(_MASK.sub(lambda match: f"#{int(match['number'])}", piece)))
    triple = Triple(terms[0], relation, terms[1])
    if not triple.unknowns:
        raise MissingTripleMaskError(f"no unknown in '{statement}'", _FORM)
    return triple


def _split_triple(statement: str) -> list[str]:
    if ">>" in statement:
        pieces = re.split(r">>(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", statement)
        return [_QUOTED.sub(r"\g<inside>", piece.strip()) for piece in pieces]
    if statement.startswith("(") and statement.endswith(")"):
        # A comma within quotation marks, or within a number, does not separate.
        pieces = re.split(r",\s+(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", statement[1:-1])
        return [piece.strip().strip('"') for piece in pieces]
    return [statement]


def _parse_answer(text: str, numbers: set[int]) -> int | None:
    if _ANSWER.fullmatch(text):
        return None
    match = _MASK.fullmatch(text)
    if match is None or not match["number"] or int(match["number"]) not in numbers:
        raise FinalAnswerFormatError(
            f"the final answer is '{text}'", "Write final answer: #answer, or one of the chain's unknowns"
        )
    return int(match["number"])


def _quote_separators(text: str) -> str:
    if not re.search(r";|>>|\n", text):
        return text
    return '"' + text.replace('"', "'").replace("\n", " ") + '"'


#: Text in quotation marks; a mark within it is written twice.
QUOTED_TEXT = r'"(?:[^"]|"")*"'
_QUOTATION = re.compile(QUOTED_TEXT)
_SPLIT = re.compile(f"({QUOTED_TEXT})")
#: Text that the parser takes for nothing else than a name or a value.
_PLAIN = re.compile(r"[^\W\d_](?:[\w'’&/+!-]|\.(?=\w)|,(?=[ \w])| (?=[\w&]))*")
#: Words that may negate a relation or a property (:func:`clew.triples.language.wordings.split_negation`).
NEGATION = (
    r"(?i:(?:\A|[\s_-])(?:not|never|no|without|cannot|\w{1,6}n['’]?t)(?:[\s_-]|\Z))"
    r"|(?:[nN]ot|[nN]o|[nN]ever)(?=[A-Z])"
)
#: First words that show that something is not a name; X, Y and Z may be unknowns.
_RESERVED = re.compile(
    r"(?:an?|the|some|not|no|none|never|without|only|nothing|at|exactly|just|from|more|fewer|less|up|between|before"
    r"|after|since|until|is|isn|are|aren|was|wasn|were|do|does|doesn|did|didn|has|have|there|several|multiple|final"
    r"|answer|target|return|select|wish|wishes|leftovers?|type|triples?|triplets?|conditions?|types?|constraints?"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|negat(?:ions?|ed|ives?)|exclu(?:de|ded|ding|sions?)"
    r"|except|[x-z]_?\d*)\b",
    re.IGNORECASE,
)
#: Other quotation marks, and Markdown marks, around a name that a model writes.
_WRAPPED = tuple(
    re.compile(pattern)
    for pattern in (
        r"“([^“”]*)”",
        r"‘([^‘’]*)’",
        r"«([^«»]*)»",
        r"'([^']*)'",
        r"`([^`]*)`",
        r"\*\*([^*]*)\*\*",
    )
)


def quote(text: str) -> str:
    """Return text in quotation marks, on one line.

    >>> quote('a 12" record')
    '"a 12"" record"'
    """
    return '"' + " ".join(re.split(r"[\n\r]+", text)).replace('"', '""') + '"'


def quote_if_needed(text: str, reserved: str = "") -> str:
    """Return the text in quotation marks if the parser would take it for anything else than text, otherwise as it is.

    ``reserved`` is a pattern of further texts that must be quoted.

    >>> quote_if_needed("David Lynch"), quote_if_needed("Not Another Teen Movie"), quote_if_needed("gene/protein")
    ('David Lynch', '"Not Another Teen Movie"', 'gene/protein')
    """
    plain = (
        _PLAIN.fullmatch(text) and not _RESERVED.match(text) and not (reserved and re.search(reserved, text))
    )
    return text if plain else quote(text)


def unquote(text: str) -> tuple[str, bool]:
    """Return the text without quotation marks around it, and whether there were any."""
    text = text.strip()
    if _QUOTATION.fullmatch(text):
        return text[1:-1].replace('""', '"'), True
    for pattern in _WRAPPED:
        if match := pattern.fullmatch(text):
            return match[1].strip(), True
    return text, False


def replace_outside_quotes(text: str, change: Callable[[str], str]) -> str:
    """Return the text with ``change`` applied to its parts outside quotation marks."""
    return "".join(part if place % 2 else change(part) for place, part in enumerate(_SPLIT.split(text)))


def mask_quotes(text: str) -> str:
    """Replace each character inside quotation marks by one that no pattern matches; positions stay the same."""
    return _QUOTATION.sub(lambda match: '"' + "\0" * (len(match.group()) - 2) + '"', text)


def split_outside_quotes(text: str, at: str) -> list[str]:
    """Return the parts of a text between the matches of the pattern ``at``, ignoring matches in quotation marks."""
    parts, start = [], 0
    for match in re.finditer(at, mask_quotes(text)):
        parts.append(text[start : match.start()].strip())
        start = match.end()
    return [*parts, text[start:].strip()]


#: Tests of a property. ``contains`` looks for text anywhere, ``says`` for whole words.
TESTS = ("=", "<", "<=", ">", ">=", "between", "contains", "says")


@dataclass(frozen=True, slots=True)
class Quantifier:
    """How many different tails a head must have among the candidates of the tail; ``most`` None: no limit.

    ``only``: all its tails must be candidates. The candidates are those that the other triples leave the tail,
    counted as a set: whether other triples connect a tail to the same head matters only to :data:`NOT`. The
    candidates of a constant are those that it was given with.
    """

    least: int = 1
    most: int | None = None
    only: bool = False

    def __str__(self) -> str:
        """The quantifier as a question writes it before a triple.

        >>> str(NOT), str(ONLY), str(at_least(2)), str(Quantifier(2, 4))
        ('not', 'only', 'at least 2', 'from 2 to 4')
        """
        if self.only:
            return "only" if self == ONLY else f"only {Quantifier(self.least, self.most)._bounds()}"
        return "not" if self == NOT else self._bounds()

    def _bounds(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        if self.least == self.most:
            return f"exactly {self.least}"
        return f"from {self.least} to {self.most}" if self.least else f"at most {self.most}"


#: No tail. Where other triples connect head and tail already, not this tail (films whose director does not act in
#: them).
NOT = Quantifier(0, 0)
#: At least one tail, and only candidates.
ONLY = Quantifier(1, None, only=True)


def at_least(n: int) -> Quantifier:
    """Return the quantifier "at least n"."""
    return Quantifier(n, None)


def at_most(n: int) -> Quantifier:
    """Return the quantifier "at most n", which includes none."""
    return Quantifier(0, n)


def exactly(n: int) -> Quantifier:
    """Return the quantifier "exactly n"."""
    return Quantifier(n, n)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a property of an unknown: ``test`` is one of :data:`TESTS`, ``high`` the end of ``between``."""

    unknown: int
    property: str
    test: str
    value: str | float
    high: str | float | None = None
    negated: bool = False

    def __str__(self) -> str:
        """The condition as a question writes it.

        >>> str(Condition(1, "release_year", "between", 1980, 1990)), str(Condition(1, "title", "contains", "7"))
        ('#1.release_year between 1980 and 1990', '#1.title contains "7"')
        """
        property = quote_if_needed(self.property, reserved=rf"\W|{NEGATION}")
        values = _value(self.value) if self.high is None else f"{_value(self.value)} and {_value(self.high)}"
        return f"{'not ' if self.negated else ''}#{self.unknown}.{property} {self.test} {values}"


@dataclass(frozen=True, slots=True)
class Superlative:
    """Keeps the ``count`` answers with the highest (``highest`` False: lowest) number of a property, or with the most
    (fewest) tails of a triple; equals of the last are kept too. Either ``property`` or ``triple`` is given.
    """

    unknown: int
    highest: bool
    count: int = 1
    property: str = ""
    triple: Triple | None = None

    def __str__(self) -> str:
        """The superlative as a question writes it.

        >>> str(Superlative(1, True, property="runtime")), str(Superlative(1, False, 3, property="runtime"))
        ('highest #1.runtime', '3 lowest #1.runtime')
        """
        count = f"{self.count} " if self.count > 1 else ""
        if self.triple is None:
            property = quote_if_needed(self.property, reserved=rf"\W|{NEGATION}")
            return f"{count}{'highest' if self.highest else 'lowest'} #{self.unknown}.{property}"
        return f"{count}{'most' if self.highest else 'fewest'} {_statement(self.triple)}"


@dataclass(frozen=True, slots=True)
class TypedChain:
    """Triples over typed constants and unknowns, one of which is asked for.

    ``types`` has the types that an unknown may have, by its number; ``constant_types`` those of a constant, by its
    text; ``quantifiers`` the quantifier of a triple, by its place in ``chain.triples``. ``preferences`` say what an
    answer should be like where no triple and no condition can ("slow and dreamlike"): they rank answers and exclude
    none. ``superlatives`` keep the best of the answers that all else leaves. ``chain.answer`` is always a number,
    since nothing can be a candidate of ``#answer``. There may be no triples.
    """

    chain: Chain
    types: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    constant_types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quantifiers: Mapping[int, Quantifier] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    preferences: tuple[str, ...] = ()
    superlatives: tuple[Superlative, ...] = ()

    def statement(self, place: int) -> str:
        """Return a triple with its quantifier, as a question writes it: ``not #1 >> starred_actors >> Bob``."""
        quantifier = self.quantifiers.get(place)
        statement = _statement(self.chain.triples[place], quantifier)
        return statement if quantifier is None else f"{quantifier} {statement}"

    def __str__(self) -> str:
        """The question in the form in which a person or a model writes it; it parses back."""
        constant_types = [
            f"{quote_if_needed(name, reserved=_INTRODUCES)} : {_types(types)}"
            for name, types in self.constant_types.items()
        ]
        types = [f"#{number} : {_types(types)}" for number, types in self.types.items()]
        triples = [self.statement(place) for place in range(len(self.chain.triples))]
        answer = f"#{self.chain.answer}"
        preferences = [f"{answer} ~ {quote_if_needed(preference)}" for preference in self.preferences]
        return "; ".join(
            [
                *constant_types,
                *types,
                *triples,
                *map(str, self.conditions),
                *map(str, self.superlatives),
                *preferences,
                f"final answer: {answer}",
            ]
        )


#: "Chain : film" at the start of a reply introduces what follows (INTRODUCTION in chain.py).
_INTRODUCES = r"(?i:chain\Z)"


def _statement(triple: Triple, quantifier: Quantifier | None = None) -> str:
    head = _term(triple.head)
    if quantifier is not None and triple.head.unknown is None:
        head = quote(triple.head.text)  # "not b" could be a name
    arrow = "<<" if triple.inverse else ">>"
    last = f"{arrow}+" if triple.repeated else arrow
    return f"{head} {arrow} {quote_if_needed(triple.relation, reserved=NEGATION)} {last} {_term(triple.tail)}"


def _term(term: Term) -> str:
    return term.text if term.unknown is not None else quote_if_needed(term.text)


def _types(types: tuple[str, ...]) -> str:
    return " or ".join(quote_if_needed(type, reserved=rf"\bor\b|,|{NEGATION}") for type in types)


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return quote_if_needed(value, reserved=r"\band\b|\bto\b|,|\d-\d")
    if isinstance(value, float) and not (value.is_integer() and abs(value) < 1e15):
        return repr(value)
    return str(int(value))
