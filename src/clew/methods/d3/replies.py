"""Reading replies of language models: paragraph numbers, verdicts, and names of sections or documents.

The paper asks for a comma-separated list of names (Section 3.3.1). Models answer with numbers, quotes, bullets, JSON
or sentences, they shorten and mistype names, and names themselves contain commas. The parts of a reply that match
nothing are returned as well, so that the trail can show them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rapidfuzz import fuzz

from clew.core.errors import BadCompletion
from clew.core.prompts.replies import (
    clean_reply,
    cut_remarks,
    is_refusal,
    parse_json,
    refuses_in_other_language,
)
from clew.core.text import normalise

_RANGE = re.compile(
    r"(?<!\d)(\d{1,9})(?!\d)"
    r"(?:\s*(?:-|–|—|\.\.\.?|\bto\b|\bthrough\b)\s*(?:p(?:aragraph)?\s*)?(\d{1,9})(?!\d))?",
    re.IGNORECASE,
)
#: Words that may be around numbers in a line that is nothing but a list of them.
_AROUND = re.compile(
    r"(?:relevant|paragraphs?|paragraph_ids|ids?|numbers?|and|to|through|answer|output|list|the|are|is|p)(?![a-z])"
    r"|p(?=\d)",
    re.IGNORECASE,
)
_LIST = re.compile(r"[\W_]*\d[\d\W_]*")
#: A label of any language before a line that is nothing but a list of numbers; and what begins a conclusion.
_LABELLED_LIST = re.compile(
    r"^[^\d\n:：{}\[\]|]{1,40}[:：](?P<list>[^\w\n]*\d(?:[^\w\n]|[\d_])*)$", re.MULTILINE
)
_THEREFORE = re.compile(r"\W*(?:therefore|thus|so|hence|in\s+conclusion|overall)\b[^\n]*\d", re.IGNORECASE)
# In "1. Paragraph 12" the first number is that of the line.
_NUMBERED = re.compile(r"^\s*\d+[.)]\s+(?=[\[(\"'*]*(?:paragraph|id\b|p\d)|\d+\s*$)", re.IGNORECASE)
_LEAD = re.compile(
    r"^[\s\[(\"'*•-]*(?:(?:paragraph|id|p)\s*)?(\d+(?:\s*[-–]\s*\d+)?)[\])\"'*]*\s*[:.)—–-]", re.I
)
#: Each divider can be read in one way alone: a list that ends before its bracket took two to the number of its items.
_SERIES = r"\d+(?:(?:[,;&\s–-]|\b(?:and|to|through)\b)+(?:paragraph\s*)?\d+)*"
_MARKED = re.compile(
    rf"\b(?:paragraphs?|ids?)\s*(?:ids?|numbers?)?\s*(?:is|are)?\s*[:#]?\s*({_SERIES})|\[\s*({_SERIES})\s*\]",
    re.I,
)
#: "3 and 5 contain the relevant information."
_SUBJECT = re.compile(
    rf"^[\s\[(\"'*•-]*({_SERIES})[\])\"'*]*\s+(?:both\s+)?(?:contains?|are|is|ha(?:s|ve)|holds?|gives?|mentions?|provides?"
    r"|seems?|appears?|says?|states?|answers?)\b",
    re.I,
)
#: "3 and 5 (not 1, 2 or 4)"
_DENIED_NUMBERS = re.compile(r"\((?:but\s+)?(?:not|except|excluding|without)\b[^()]*\)", re.IGNORECASE)
_NONE = re.compile(r"^\W*(?:none|no|not|nothing|n/?a|empty|null|there (?:is|are) no)\b", re.IGNORECASE)
_ALL = re.compile(
    r"^\W*(?:all|every)(?:\s+(?:of\s+)?(?:the\s+)?(?:given\s+)?paragraphs?)?\b[^\d]*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ParagraphNumbers:
    """The numbers in a reply: those that were offered, each once, in the order of the reply; and others
    (``unknown``).

    ``readable``: the reply has numbers, is empty, or says that there are none.
    """

    chosen: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    readable: bool = True


def parse_numbers(reply: str, offered: range) -> ParagraphNumbers:
    """Return the numbers in a reply.

    Lists in any punctuation, ranges (``3-5``, ``3 to 5``), ``[3]``, ``P3``, ``paragraph 3``, JSON, one to a
    line, and paragraphs repeated behind their numbers. Where a line is a list of numbers, what stands around
    it is commentary and its numbers mean nothing.
    """
    text = _conclusion(_DENIED_NUMBERS.sub("", clean_reply(reply)))
    lines = [
        _NUMBERED.sub("", line) for line in text.splitlines() if line.strip("` \t") and "```" not in line
    ]
    lists = [line for line in lines if _LIST.fullmatch(_AROUND.sub(" ", line))]
    if not lists and _ALL.match(text):
        return ParagraphNumbers(tuple(offered))
    if not lists and (not text or _NONE.match(text)):
        return ParagraphNumbers(())
    named = [
        n for line in lists or lines for n in (_in_list(line, offered) if lists else _in_prose(line, offered))
    ]
    known = [n for n in named if n in offered]
    unknown = [n for n in named if n not in offered]
    empty = not text.strip("[]{}()\"'`.- \n")
    return ParagraphNumbers(tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown)), bool(named) or empty)


def _conclusion(text: str) -> str:
    """Return the last list of numbers that has a label in a reply, or its last line if that concludes; else all."""
    if lists := [*_LABELLED_LIST.finditer(text)]:
        return lists[-1]["list"].strip()
    last = text.rstrip().rpartition("\n")[2]
    return last if _THEREFORE.match(last) else text


def _in_prose(line: str, offered: range) -> Iterator[int]:
    if lead := _LEAD.match(line):
        yield from _in_list(lead[1], offered)
        return
    if subject := _SUBJECT.match(line):
        yield from _in_list(subject[1], offered)
        return
    for series in _MARKED.finditer(line):
        yield from _in_list(series[1] or series[2], offered)


def _in_list(text: str, offered: range) -> Iterator[int]:
    for numbers in _RANGE.finditer(text):
        first, last = int(numbers[1]), int(numbers[2] or numbers[1])
        # A range beyond what was offered is unknown by its ends: nobody wants its million members.
        if first > last or last - first > len(offered):
            yield from dict.fromkeys((first, last))
        else:
            yield from range(first, last + 1)


#: Models of many languages fall back into theirs for a single word.
_YES = re.compile(r"^\W*(?:yes|true|relevant|1|是的?|对|はい|예|네|да|ja|oui|sí)(?!\w)", re.IGNORECASE)
_NO = re.compile(
    r"^\W*(?:no|false|irrelevant|not|none|0|否|不是|不|いいえ|아니요|нет|nein|nee|non)(?!\w)", re.IGNORECASE
)
#: The choice repeated.
_CHOICE = re.compile(r"[\"'“]?\byes\b[\"'”]?\s*(?:or|/)\s*[\"'“]?no\b[\"'”]?", re.IGNORECASE)
#: A verdict in JSON or after "answer". Two parts of the expression match the marks behind that word, and the first
#: keeps them: thousands took the square of their number.
_VERDICT = re.compile(
    r"(?:\banswer\b\W*+(?:is|would\s+be)?:?|\b(?:decision|verdict|judge?ment|conclusion)\b[*_]*\s*:"
    r"|[\"'][\w ]+[\"']\s*:|\brelevant\s*:)[\s*_\"']*"
    r"\b(?P<verdict>yes|no|true|false)\b",
    re.IGNORECASE,
)
_REPEATED_QUESTION = re.compile(r"(?:^|(?<=[.!?]))[^.!?\n]*\?", re.MULTILINE)
_CLAIM = r"(?:relevant|helpful|useful|related|contain|include|provide|mention|answer|give|hold|state|address|help)\w*"
_DENIED = re.compile(
    rf"(?:\b(?:not|never|cannot|fails?\s+to)|n['’]t)\s+(?:\w+\s+){{0,3}}?{_CLAIM}|\birrelevant\b|\bno\s+relevant\b",
    re.IGNORECASE,
)
_STATED = re.compile(
    rf"\b(?:it|this|that|paragraph|text|passage|which)\b['’]?s?\s+(?:(?:is|does|do|seems|appears|indeed|clearly|directly|also"
    rf"|explicitly|to|be)\s+)*{_CLAIM}",
    re.IGNORECASE,
)


def parse_verdict(reply: str) -> bool | None:
    """Return the answer of a reply to a yes-or-no question, or None if it is neither.

    The first word counts; where that says nothing, what stands behind "answer" or a key of JSON; then the only one of
    ``yes`` and ``no`` that occurs; then whether it says that the paragraph is relevant, or that it is not.
    """
    text = _REPEATED_QUESTION.sub("", _CHOICE.sub(" ", clean_reply(reply)))
    if named := [*_VERDICT.finditer(text)]:
        return named[-1]["verdict"].lower() in {"yes", "true"}
    if _YES.match(text) or _NO.match(text):
        return bool(_YES.match(text))
    # "no" of another language is no verdict: "Lo siento, pero no puedo determinarlo."
    words = (
        set()
        if refuses_in_other_language(text)
        else {word.lower() for word in re.findall(r"\b(?:yes|no|true|false)\b", text, re.IGNORECASE)}
    )
    verdicts = {word in {"yes", "true"} for word in words}
    if len(verdicts) == 1:
        return verdicts.pop()
    if not verdicts and _DENIED.search(text):
        return False
    return True if not verdicts and not is_refusal(text) and _STATED.search(text) else None


#: Two names are the same if this alike (0 to 100) and none is as alike or more.
MIN_SIMILARITY = 88.0
#: A name of fewer letters is never guessed from a part of it, nor found in a sentence.
MIN_NAME_LENGTH = 5
#: A piece of this many words is a sentence that may mention names.
SENTENCE_WORDS = 6
#: More pieces than this are never joined to one name: names have few commas.
MAX_PIECES = 8

_FENCE = re.compile(r"^```[\w-]*[ \t]*$", re.MULTILINE)
#: Small models write the prompt again, to its end, before they answer.
_PROMPT_QUESTION = re.compile(r"^[^\w\n]*question\s*:", re.IGNORECASE | re.MULTILINE)
_PROMPT_END = re.compile(
    r"^[^\w\n]*(?:answer|response|output|sections?)\s*:\s*(?=\S)", re.IGNORECASE | re.MULTILINE
)
_NOTHING = re.compile(
    r"\A\W*(?:none|nothing|n/?a|null|empty(?: response| list)?|no(?:ne of the)? (?:relevant )?"
    r"(?:sections?|documents?|names?)\b.*|\(?(?:an )?empty response\)?)\W*\Z",
    re.IGNORECASE | re.DOTALL,
)
_LEAD_NAME = re.compile(
    r"\A(?:(?:the |all )?(?:relevant |following )?(?:sections?|documents?|answer|response|names?|numbers?|list)"
    r"(?: names?| numbers?| list)?(?: (?:is|are|may be relevant))?\s*:)\s*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\A\s*(?:[*•–—>+]+|-(?!\d))\s*")
_NUMBERED_NAME = re.compile(r"\A[(\[#]?\s*(\d{1,5})\s*[)\]]?\s*(?:[.:)\]-]\s*|\s+(?=\S)|\Z)(.*)\Z", re.DOTALL)
_NUMBER_RANGE = re.compile(r"\A[(\[#]?(\d{1,5})[)\]]?\s*(?:-|–|to)\s*[(\[#]?(\d{1,5})[)\]]?\Z")
_DIVIDER = re.compile(r"[,;|]")
#: Numbers behind the word for an entry, in a sentence.
_LABELLED = re.compile(
    r"\b(?:sections?|documents?|entry|entries|numbers?)\s*(?:numbers?\s*)?(?:(?:is|are|would\s+be)\s*)?[:#]?\s*"
    r"(?P<numbers>\[?\d{1,5}\]?(?:(?:\s*(?:,|and|&|or))+\s*\[?\d{1,5}\]?)*)(?![\d.]*\d)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\A(?:(?:item|note|part|section|chapter|appendix)\s+)?(?:\d+(?:\.\d+)*|[ivxl]+|[a-z])\b[\s.:)–—-]+",
    re.IGNORECASE,
)
_TRIMMED = " \t\r\n\"'“”‘’`*_<>"


@dataclass(slots=True)
class EntryNames:
    """The names and numbers by which a reply may refer to entries.

    ``paths`` are the names along each entry's path, (n,); ``numbers`` the numbers under which the entries are shown,
    by default their indexes plus one.
    """

    paths: Sequence[Sequence[str]]
    numbers: Sequence[int] | None = None
    _exact: dict[str, list[int]] = field(default_factory=dict, init=False)
    _divided: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        # A whole path has precedence over the end of another, and that over a name without its number ("Item 7.").
        depths = range(max(map(len, self.paths), default=0))
        self._add_names(lambda path: [" ".join(path)])
        self._add_names(lambda path: [" ".join(path[start:]) for start in depths if start < len(path)])
        self._add_names(lambda path: [_NUMBER.sub("", path[-1])] if path else [])

    def _add_names(self, names_of: Callable[[Sequence[str]], list[str]]) -> None:
        """Add further names of entries, except for names that others already have."""
        called: dict[str, list[int]] = defaultdict(list)
        for index, path in enumerate(self.paths):
            for name in names_of(path):
                if (key := _key(name)) and index not in called[key]:
                    called[key].append(index)
                if _DIVIDER.search(name):
                    self._divided.add(_key(name))
        self._exact = dict(called) | self._exact

    def match_reply(self, reply: str) -> tuple[list[int], list[str]]:
        """Return the indexes of the entries in ``reply``, each once, and the pieces of it that match none."""
        text = _conclusion(_FENCE.sub("", cut_remarks(clean_reply(_remove_prompt(reply)))).strip())
        if not text or _NOTHING.match(text):
            return [], []
        lines = [list(self._match_line(line)) for line in _lines(text)]
        # Where a line is a list of names, a sentence is commentary.
        is_list = [bool(line) and all(self._match_exactly(piece) for _, piece in line) for line in lines]
        if any(is_list):
            lines = [
                line for line, is_it in zip(lines, is_list, strict=True) if is_it or not _is_sentence(line)
            ]
        matches = dict.fromkeys(index for line in lines for indexes, _ in line for index in indexes)
        return list(matches), [piece for line in lines for indexes, piece in line if not indexes and piece]

    def _match_line(self, line: str) -> Iterator[tuple[list[int], str]]:
        """Yield each piece of a line with the entries it refers to; a name may extend over several pieces."""
        pieces = [piece for piece in (_trim(part) for part in _DIVIDER.split(line)) if piece]
        start = 0
        while start < len(pieces):
            for end in range(min(len(pieces), start + MAX_PIECES), start, -1):
                joined = ", ".join(pieces[start:end])
                indexes = self._match_whole(joined) if end > start + 1 else self._match_piece(joined)
                if indexes or end == start + 1:
                    yield indexes, joined
                    start = end
                    break

    def _match_whole(self, piece: str) -> list[int]:
        """Return the entries whose name, with commas in it, is exactly several pieces together."""
        bare = _trim(_NUMBERED_NAME.sub(r"\2", piece))
        return self._match_exactly(piece) if {_key(piece), _key(bare)} & self._divided else []

    def _match_exactly(self, piece: str) -> list[int]:
        """Return the entries with exactly this name, numbering aside."""
        if indexes := self._exact.get(_key(piece)):
            return indexes
        numbered = _NUMBERED_NAME.match(piece)
        return self._match_numbered(numbered) if numbered else []

    def _match_numbered(self, match: re.Match[str]) -> list[int]:
        """Return the entry of ``12``, ``[12]`` or ``12. Results``: of several with the name, the one with the
        number."""
        index, rest = self._index_of(int(match[1])), _trim(match[2])
        same = self._exact.get(_key(rest), []) if rest else []
        if index is not None and (index in same or not rest):
            return [index]
        return same

    def _index_of(self, number: int) -> int | None:
        """Return the index of the entry with a number."""
        if self.numbers is None:
            return number - 1 if 0 < number <= len(self.paths) else None
        return self.numbers.index(number) if number in self.numbers else None

    def _match_piece(self, piece: str) -> list[int]:
        if indexes := self._match_exactly(piece):
            return indexes
        if re.fullmatch(r"\d{1,5}(?:\s+(?:and\s+)?\d{1,5})+", piece):
            return [index for number in re.findall(r"\d+", piece) for index in self._match_exactly(number)]
        if match := _NUMBER_RANGE.match(piece):
            wanted = range(int(match[1]), min(int(match[2]), int(match[1]) + len(self.paths)) + 1)
            return [index for number in wanted if (index := self._index_of(number)) is not None]
        unlabelled = re.sub(
            r"\A(?:sections?|documents?|numbers?|nos?\.?)\s*[:#]?\s*", "", piece, flags=re.IGNORECASE
        )
        if unlabelled != piece and (indexes := self._match_exactly(_trim(unlabelled))):
            return indexes
        return (
            self._match_beginning(piece)
            or self._match_similar(piece)
            or self._match_labelled(piece)
            or self._match_mentions(piece)
        )

    def _match_labelled(self, piece: str) -> list[int]:
        """Return the entries whose numbers stand in a sentence behind the word for them: "sections are 2 and 4"."""
        numbers = [
            int(number)
            for series in _LABELLED.finditer(piece)
            for number in re.findall(r"\d+", series["numbers"])
        ]
        return [index for number in dict.fromkeys(numbers) if (index := self._index_of(number)) is not None]

    def _match_beginning(self, piece: str) -> list[int]:
        """Return the entry that a shortened name stands for, if there is just one."""
        key = _key(piece)
        if len(key) < MIN_NAME_LENGTH:
            return []
        longer_names = [name for name in self._exact if name.startswith(key + " ")]
        matches = {index for name in longer_names for index in self._exact[name]}
        return sorted(matches) if len(matches) == 1 else []

    def _match_similar(self, piece: str) -> list[int]:
        key = _key(piece)
        if len(key) < MIN_NAME_LENGTH:
            return []
        scored = sorted(
            ((fuzz.ratio(key, name), name) for name in self._exact if len(name) >= MIN_NAME_LENGTH),
            reverse=True,
        )
        if not scored or scored[0][0] < MIN_SIMILARITY or (len(scored) > 1 and scored[1][0] == scored[0][0]):
            return []
        return self._exact[scored[0][1]]

    def _match_mentions(self, piece: str) -> list[int]:
        """Return the entries that a sentence mentions; of names within names the longest counts."""
        key = _key(piece)
        rest, mentions = f" {key} ", []
        for name in sorted(self._exact, key=lambda name: (-len(name), name)):
            if len(name) >= MIN_NAME_LENGTH and f" {name} " in rest:
                mentions.append((rest.index(f" {name} "), self._exact[name]))
                rest = rest.replace(f" {name} ", " " + "\0" * len(name) + " ")
        left = len(rest.replace("\0", "").replace(" ", ""))
        # A few words around a name make it another name; a sentence does not.
        if len(key.split()) < SENTENCE_WORDS and left > len(key.replace(" ", "")) / 2:
            return []
        return [index for _, indexes in sorted(mentions) for index in indexes]


def _is_sentence(line: Sequence[tuple[list[int], str]]) -> bool:
    return sum(len(piece.split()) for _, piece in line) >= 2 * SENTENCE_WORDS


def _remove_prompt(text: str) -> str:
    """Return what stands after the last line that asks for an answer, if a line with a question is before it, and the
    list of what there is before that."""
    question = _PROMPT_QUESTION.search(text)
    if question and "\n" not in text[: question.start()].strip():
        return text
    ends = [match.end() for match in _PROMPT_END.finditer(text, question.end())] if question else []
    return text[ends[-1] :] if ends else text


def _lines(text: str) -> list[str]:
    """Return the lines of a reply, or the texts and numbers in it if it is JSON."""
    if text[:1] in "[{" and not re.match(r"\A\[\d+\]", text):
        try:
            return list(_leaves(parse_json(text, {"type": ["array", "object"]})))
        except BadCompletion:
            text = text.strip("[]{}")
    return text.splitlines()


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield str(value)


def _trim(piece: str) -> str:
    bare = _BULLET.sub("", piece).strip(_TRIMMED)
    bare = _LEAD_NAME.sub("", bare).strip(_TRIMMED)
    return bare[:-1].strip(_TRIMMED) if bare.endswith((".", ":")) else bare


def _key(name: str) -> str:
    """Return a name as names are compared: letters and digits only, without case."""
    return " ".join(re.sub(r"[\W_]+", " ", normalise(name)).split())
