"""Chains: a question as triples over constants and unknowns, and the parser of their written form.

Su et al. (NAACL 2024), Section 3.1. A term of a triple is a constant (``Lima``), an unknown (``#1``), or text that
contains unknowns (``flag of the #1``). A written chain can be wrong in eight ways (Appendix B), each an error of its
own. In typed triples, text in quotation marks is a name or a value, whatever it looks like (:func:`quote`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

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


UNKNOWN = re.compile(r"#(?P<number>\d+)")
#: What a model may write before a chain, and before one of its triples.
INTRODUCTION = re.compile(r"\A\W*(?:(?:masked\s+)?reasoning\s+)?chain\s*:[*_\s]*", re.IGNORECASE)
LIST_MARK = re.compile(r"^\s*(?:[-*•]\s+|\(?\d{1,2}[.)]\s+)")
FINAL_ANSWER = re.compile(
    r"^[\s*_\"'`(\[]*(?:the\s+)?final\s+answer\s*(?:is|:)\s*(?P<what>.*?)[\s.)\]\"'`*_]*$", re.IGNORECASE
)
_ANSWER = re.compile(r"#\s*answer", re.IGNORECASE)
_MASK = re.compile(r"#\s*(?P<number>\d*)")
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


_ARROW = re.compile(r"\s*(?:→|⟶|⇒|->|=>|—>|–>)\s*")
_CODE = re.compile(r"`+")
_TRIPLE_START = re.compile(r">>|\A\W*\([^()]+,[^()]+,[^()]+\)")


def parse_chain_reply(reply: str, limits: Limits = Limits()) -> Chain:
    """Return the chain in a reply of a model: :func:`parse_chain`, with what models write around a chain left out.

    These are sentences before and after it, fences and inline code, the question repeated, further questions and
    chains of the model's own invention, and arrows in the place of ``>>``. The first chain counts: its triples are
    taken as they stand, none is left out. Raises the :class:`~clew.triples.language.chain.ChainError` of the whole
    reply if there is no such chain.
    """
    try:
        return parse_chain(reply, limits)
    except ChainError as error:
        body = _find_chain(clean_reply(reply))
        if not body:
            raise
        try:
            return parse_chain(body, limits)
        except ChainError as inner:
            raise inner from error


def _find_chain(text: str) -> str:
    """Return the statements from the first triple to the first final answer after it, "" if there are none."""
    if ">>" not in text:
        text = _ARROW.sub(" >> ", text)
    statements: list[str] = []
    for line in _CODE.sub("\n", text).splitlines():
        for part in split_statements(INTRODUCTION.sub("", line.strip())):
            statement = LIST_MARK.sub("", part).strip(" *_")
            if _TRIPLE_START.search(statement):
                # In "the chain is: Kismet >> director >> #1" the words before the colon are no head.
                statements.append(re.sub(r"\A[^>#:]*\bchain\b[^>#:]*:\s*", "", statement))
            elif statements and (final := _FINAL_INSIDE.match(statement)):
                return "; ".join([*statements, f"final answer: {final['what']}"])
            elif statements and statement:
                return ""
    return ""


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
    """Return the text with each character between quotation marks replaced by one that no pattern matches. Positions
    in it are those in the text."""
    return _QUOTATION.sub(lambda match: '"' + "\0" * (len(match.group()) - 2) + '"', text)


def split_outside_quotes(text: str, at: str) -> list[str]:
    """Return the parts of a text between the matches of the pattern ``at``, ignoring matches in quotation marks."""
    parts, start = [], 0
    for match in re.finditer(at, mask_quotes(text)):
        parts.append(text[start : match.start()].strip())
        start = match.end()
    return [*parts, text[start:].strip()]
