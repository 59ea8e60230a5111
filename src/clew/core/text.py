"""Text processing: terms, sentences, names, numbers. Pure functions of one text.

Stored indexes depend on what the functions here return. After changing one, raise :data:`TEXT_VERSION`: every base
then rebuilds its postings at the next ``add``.
"""

from __future__ import annotations

import calendar
import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath
from urllib.parse import quote, unquote

from clew.core.languages import ENGLISH, FUNCTION_WORDS, question_language
from clew.core.languages import stem as stem

TEXT_VERSION = 3

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
# Scripts without spaces between words: CJK, Thai, Lao, Burmese, Khmer. They are indexed as pairs of characters.
_PAIRED = rf"{_CJK}\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1780-\u17d3"
# A word of an Indian script has vowel signs, which are no letters for a regular expression.
_IN_WORD = rf"(?![{_PAIRED}])[\w\u0900-\u0963\u0971-\u0d7f\u0300-\u036f]"
_AS_WORDS = rf"[{_PAIRED}]+|(?:{_IN_WORD})+(?:['’](?:{_IN_WORD})+)?"
# A number keeps its decimals and loses its thousands separators; a word may hold digits and apostrophes.
_NUMBERS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+"
_TOKEN = re.compile(rf"{_NUMBERS}|{_AS_WORDS}")
# In English text words of other scripts are names and quotations: nothing but CJK is told apart.
_ENGLISH_TOKEN = re.compile(rf"{_NUMBERS}|[{_CJK}]+|(?:(?![{_CJK}])\w)+(?:['’](?:(?![{_CJK}])\w)+)?")
# The same where a comma is the decimal point: 2.850 is 2850, and 3,5 is 3.5.
_COMMA_TOKEN = re.compile(rf"\d{{1,3}}(?:\.\d{{3}})+(?:,\d+)?(?![.\d])|\d+,\d+|{_AS_WORDS}")
_DECIMAL_COMMA = frozenset("bg cs da de el es fi fr hu id it nl no pl pt ro ru sv tr uk vi".split())
_CJK_RUN = re.compile(rf"^[{_CJK}]+$")
_PAIRED_RUN = re.compile(rf"^[{_PAIRED}]+$")
# Short vowels and lengthenings of Arabic, points of Hebrew: most texts leave them out.
_POINTS = re.compile("[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]")
_GROUPED_DIGITS = re.compile("(?<=\\d)[\u00a0\u202f\u2009](?=\\d{3}(?!\\d))")
# FY2018, Q42021, H12022: people write the period as one word, documents the year alone.
_PERIOD = re.compile(r"^(?:fy|cy|q[1-4]|h[12])_?((?:19|20)\d\d)$")
_SHORT_PERIOD = re.compile(r"^(?:fy|cy)_?(\d\d)$")

STOPWORDS = FUNCTION_WORDS[ENGLISH]
"""English function words: left out of queries and keywords, never out of the index."""


def normalise(text: str) -> str:
    """Return ``text`` in NFKC, casefolded, with runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=1 << 17)
def _token_terms(token: str, language: str = ENGLISH) -> tuple[str, ...]:
    if (_CJK_RUN if language == ENGLISH else _PAIRED_RUN).match(token):
        return tuple(token[i : i + 2] for i in range(len(token) - 1)) or (token,)
    word = token.replace("’", "'").removesuffix("'s")
    if word[0].isdigit() and ("," in word or (language in _DECIMAL_COMMA and "." in word)):
        if language in _DECIMAL_COMMA:
            return (word.replace(".", "").replace(",", "."),)
        return (word.replace(",", ""),)
    if period := _PERIOD.match(word):
        return (word, period[1])
    if period := _SHORT_PERIOD.match(word):
        return (word, "20" + period[1])
    if "'" in word and language in _ELIDING:
        # l'eau is two words: an article and a noun.
        return tuple(stem(part, language) for part in word.split("'") if part)
    return (stem(word, language),)


#: Languages that join a short word to the next with an apostrophe.
_ELIDING = frozenset({"fr", "it"})


def index_terms(text: str, language: str = ENGLISH) -> list[str]:
    """Return the index terms of a text in a language, in order: casefolded, stemmed; scripts without spaces as pairs
    of characters, numbers without thousands separators and with a decimal point.

    >>> index_terms("The company's revenues were $1,577 million in FY2018")
    ['the', 'compani', 'revenu', 'were', '1577', 'million', 'in', 'fy2018', '2018']
    >>> index_terms("2.850,5 Kilometer durch die Wälder", "de")
    ['2850.5', 'kilom', 'durch', 'die', 'wald']
    """
    return [term for token in _tokens(text, language) for term in _token_terms(token, language)]


def _tokens(text: str, language: str) -> list[str]:
    if language == ENGLISH:
        return _ENGLISH_TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())
    if not text.isascii():
        text = _GROUPED_DIGITS.sub("", text)
    folded = unicodedata.normalize("NFKC", text).casefold()
    if not folded.isascii():
        folded = _POINTS.sub("", folded).translate(_DIGITS)
    return (_COMMA_TOKEN if language in _DECIMAL_COMMA else _TOKEN).findall(folded)


#: The digits of Arabic, Persian and Indian scripts, and the separators of Arabic numbers.
_DIGITS = {
    first + digit: str(digit) for first in (0x0660, 0x06F0, 0x0966, 0x09E6, 0x0E50) for digit in range(10)
} | {0x066B: ".", 0x066C: ","}


def query_terms(text: str, languages: Sequence[str] = (ENGLISH,)) -> list[str]:
    """Return the index terms of ``text`` without function words; all terms if it has only function words. Words are
    stemmed in each of ``languages``, the languages of the searched documents."""
    if tuple(languages) == (ENGLISH,):
        terms = index_terms(text)
        return [term for term in terms if term not in _STOP_TERMS] or terms
    return [term for forms in query_forms(text, languages) for term in forms]


def query_forms(text: str, languages: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each word of a query that is no function word its terms in each of ``languages``, each once; those
    of the query's own language come first."""
    language = question_language(text, list(dict.fromkeys((*languages, ENGLISH))))
    tokens = _tokens(text, language)
    content = [token for token in tokens if token.replace("’", "'") not in FUNCTION_WORDS[language]]
    codes = dict.fromkeys((language, *languages))
    return [
        tuple(dict.fromkeys(term for code in codes for term in _token_terms(token, code)))
        for token in content or tokens
    ]


_STOP_TERMS = frozenset(stem(word) for word in STOPWORDS) | STOPWORDS | {"s"}


def is_stop_term(term: str) -> bool:
    """Return whether an index term is the stem of an English function word."""
    return term in _STOP_TERMS


@lru_cache(maxsize=1 << 18)
def hash_term(term: str) -> int:
    """Return the 64-bit hash under which a term is stored.

    Hashes rather than strings, so that the words of a removed document do not remain in a vocabulary file,
    and so that vocabularies merge as sorted arrays. The probability that any two of ten million terms share a hash is
    about 3e-6.
    """
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")


def hash_terms(terms: Iterable[str]) -> bytes:
    """Return :func:`hash_term` of each term, as eight bytes each, the least significant first."""
    blake2b = hashlib.blake2b
    return b"".join([blake2b(term.encode(), digest_size=8).digest() for term in terms])


def count_terms(text: str, language: str = ENGLISH) -> Counter[int]:
    """Return the hash of each term of ``text`` and how often it occurs."""
    return Counter(map(hash_term, index_terms(text, language)))


# A full stop after one of these, or after a single letter, does not end a sentence.
_ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof sr jr st vs etc eg ie e.g i.e sec fig figs eq vol pp al inc ltd co corp dept est
    approx jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k gen col lt sgt capt rev hon""".split()
)
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_SECTION_STARTS = frozenset("§0123456789")
#: A run of full stops is looked at once, and not from each of them.
_END = re.compile(r"(?<![.!?。！？])[.!?。！？]+[\"'”’)\]]*(?=\s|$)|(?<=[。！？])")
#: Characters before a full stop in which the last word is looked for.
_WORD_WINDOW = 100
_NEXT_WORD = re.compile(r"\s*(\S{0,30})")


#: The number of an item at the start of a line: 2. 2) (b) iv. and, before a capital, 2.1
_ITEM_NUMBER = re.compile(
    r"^[ \t]*(?:\(?(?:\d{1,3}(?:\.\d{1,3})*|[a-z]|[ivx]{2,5}|[IVX]{2,5})[.)](?=[ \t]+\S)"
    r"|\d{1,3}(?:\.\d{1,3})+(?=[ \t]+[A-Z]))",
    re.M,
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the half-open character ranges of the sentences of ``text``, without surrounding white space.

    The number of an item begins the item's first sentence, and is none of its own.
    """
    spans, start = [], 0
    numbers = [number.span() for number in _ITEM_NUMBER.finditer(text)]
    for (_, begin), (limit, _) in pairwise([(0, 0), *numbers, (len(text), 0)]):
        for end in _END.finditer(text, begin, limit):
            if end.end() <= start or not _ends_sentence(text, start, end):
                continue
            spans.append((start, end.end()))
            start = end.end()
        spans.append((start, limit))
        start = limit
    return [trimmed for span in spans if (trimmed := _trim(text, *span))[0] < trimmed[1]]


def item_number_end(line: str) -> int:
    """Return where a line's text begins behind the number of an item; 0 for a line without one.

    >>> item_number_end("2. Leave by noon."), item_number_end("Leave by noon.")
    (3, 0)
    """
    number = _ITEM_NUMBER.match(line)
    return len(line) - len(line[number.end() :].lstrip()) if number else 0


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    match = _NEXT_WORD.match(text, end.end())
    next_word = match[1] if match else ""
    if not end.group() or end.group()[0] != ".":
        return True
    if next_word[:1].islower():
        return False
    last_word = text[max(start, end.start() - _WORD_WINDOW) : end.start()].split()[-1:] or [""]
    word = last_word[0].lstrip("(\"'“‘[").casefold()
    if word in {"no", "nos", "nr"}:  # "Contract No. KV-4711", and not "She said no. B2 was gone."
        is_number = next_word[:1].isdigit() or last_word[0][-len(word)].isupper()
        return not (is_number and any(map(str.isdigit, next_word)))
    is_law = last_word[0].isupper() and _INITIALS.fullmatch(word)
    if is_law and (last_word[0][0] == "(" or next_word[:1] in _SECTION_STARTS):
        return False  # "40 U.S.C. § 11103", "(D.C. Official Code)", and not "in Washington, D.C. The city"
    return word not in _ABBREVIATIONS and not (len(word) == 1 and word.isalpha())


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


_WORD = re.compile(rf"[{_CJK}]+|[^\W_]+(?:['’.&-][^\W_]+)*")
_JOINERS = frozenset(
    "of the de la le du von van der den del di da and for in on at to y al el bin ibn".split()
)
MAX_NAME_WORDS = 5


def candidate_names(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield candidate names with their character range: normalised name, start, end.

    A candidate is a span of at most :data:`MAX_NAME_WORDS` words that starts and ends with a word that is
    capitalised or starts with a digit, or is written in CJK, with nothing but joining words (``of``, ``the``)
    and single spaces or hyphens between. Every sub-span of a longer one is a candidate as well, so that
    "University of Ohio Press" contains "Ohio". Limit: a name without a capital or digit is not found.
    """
    spans = [match.span() for match in _WORD.finditer(text)]
    # Most words of a text are in lower case: they are left out first, by what is quickest to ask.
    starts = [not text[start].islower() and _starts_name(text[start:end]) for start, end in spans]
    for first, (start, end) in enumerate(spans):
        if not starts[first]:
            continue
        name = normalise_name(text[start:end])
        if name not in STOPWORDS:
            yield name, start, end
        before_start, before_end = start, end
        for next_start, next_end in spans[first + 1 : first + MAX_NAME_WORDS]:
            gap = text[before_end:next_start]
            if gap != " " and not _gap_joins_words(text[before_start:before_end], gap):
                break
            word = text[next_start:next_end]
            if _starts_name(word):
                yield normalise_name(text[start:next_end]), start, next_end
            elif word.casefold() not in _JOINERS:
                break
            before_start, before_end = next_start, next_end


def _starts_name(word: str) -> bool:
    first = word[0]
    # Every word of every text is asked: the expression only where it can match.
    return first.isupper() or first.isdigit() or (first > "\u3000" and bool(_CJK_RUN.match(word)))


def _gap_joins_words(before: str, gap: str) -> bool:
    # A full stop joins only after an initial ("J. Smith"); elsewhere it may end a sentence.
    return gap in {"", " ", "-", " & ", "\n"} or (gap == ". " and len(before) == 1)


def normalise_name(name: str) -> str:
    """Return a name in the form in which mentions are compared.

    It is normalised, with punctuation as spaces, without possessive and without a leading article.
    """
    # The same names stand in many texts, and the same few in the cells of a large table.
    return _normalise_short_name(name) if len(name) <= _SHORT_NAME else _normalise_name(name)


#: Characters of a name that is remembered.
_SHORT_NAME = 60


def _normalise_name(name: str) -> str:
    folded = re.sub(r"['’]s\b", "", normalise(name))
    words = re.sub(r"[^\w]+", " ", folded).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in {"the", "a", "an"} else words)


_normalise_short_name = lru_cache(maxsize=1 << 16)(_normalise_name)


# Letters without a Unicode decomposition, and what people type instead of them.
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
)
_NOT_NAME = re.compile(r"[\W_]+")


def fold_name(name: str) -> str:
    """Return a name in the form in which names of graph nodes are compared.

    It ignores case, diacritics, punctuation and white space. A name of nothing but punctuation is only normalised.

    >>> fold_name("  Amélie Poulain's  (2001)"), fold_name("$")
    ('amelie poulain s 2001', '$')
    """
    folded = _NOT_NAME.sub(" ", name.lower()) if name.isascii() else _strip_diacritics(name)
    return " ".join(folded.split()) or normalise(name)


def fold_names(names: Sequence[str]) -> list[str]:
    """Return :func:`fold_name` of each name; many at once take a quarter of the time."""
    joined = "\n".join(names)
    if not joined.isascii() or joined.count("\n") >= max(len(names), 1):
        plain = [name for name in names if name.isascii() and "\n" not in name]
        folded_plain = iter(fold_names(plain) if len(plain) < len(names) else map(fold_name, names))
        return [
            next(folded_plain) if name.isascii() and "\n" not in name else fold_name(name) for name in names
        ]
    lines = joined.encode().translate(_FOLDED_BYTES).decode().split("\n") if names else []
    return [" ".join(line.split()) or normalise(name) for line, name in zip(lines, names, strict=True)]


#: ASCII as fold_name has it: letters in lower case, digits, and spaces for the rest; line breaks stay.
_FOLDED_BYTES = bytes(
    ord(character.lower()) if character.isalnum() or character == "\n" else 32
    for character in map(chr, range(128))
) + bytes(range(128, 256))


def _strip_diacritics(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name).casefold().translate(_PLAIN_LETTERS)
    # The marks of this block are diacritics; those of other scripts (Devanagari) are vowels, and stay.
    plain = _DIACRITIC.sub("", unicodedata.normalize("NFD", folded))
    return "".join(
        letter if letter.isalnum() or unicodedata.category(letter)[0] == "M" else " "
        for letter in unicodedata.normalize("NFC", plain)
    )


_DIACRITIC = re.compile(r"[\u0300-\u036f]")


_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:T.*)?")


def scalar_text(value: object) -> str:
    """Return a JSON scalar as text.

    >>> scalar_text(True), scalar_text(1994), scalar_text("Lima")
    ('true', '1994', 'Lima')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


#: A weak model may write blanks or line feeds until its reply is cut off. An expression that skips white space in
#: several places takes the cube of the length of such a run.
_LONG_SPACE = re.compile(r"\s{41,}")


def shorten_space(text: str) -> str:
    """Return a text with runs of white space cut to 40 characters."""
    return _LONG_SPACE.sub(lambda run: run[0][:40], text)


def shorten(text: str, length: int) -> str:
    r"""Return a text on one line of at most ``length`` characters; a longer text is cut and ends with "…".

    >>> shorten("a\n  b", 4), shorten("abcdef", 4)
    ('a b', 'abc…')
    """
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


#: Marks that nobody sees: they turn the direction of writing, join nothing, or hide letters (tags).
_UNSEEN = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# A joiner (U+200C, U+200D) means something between letters of scripts that join them (Arabic, Syriac, those of India,
# Khmer, Mongolian), and between the pictures of one emoji.
_JOINED = (
    "\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u180d\u180f-\u18af\ufb50-\ufdff\ufe70-\ufefc"
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_HIDDEN_CHARACTER = (
    rf"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f{_UNSEEN}]"
    rf"|(?<![{_JOINED}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![{_JOINED}])"
)
_BREAK, _HALF = r"[\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029]", "[\ud800-\udfff]"
# Of what begins with ESC, a whole sequence: CSI; or OSC, DCS, PM, APC and SOS up to their ends.
_HIDDEN = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[]PX^_][^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\))|" + _HIDDEN_CHARACTER
)
_ESCAPED = re.compile(f"{_HIDDEN_CHARACTER}|{_BREAK}|{_HALF}")


def clean_text(text: str) -> str:
    r"""Return a text without what commands a terminal and without marks that nobody sees; line feeds and tabs stay.

    Joiners stay where they mean something (Persian, Hindi, emoji); half a character becomes U+FFFD.

    >>> clean_text("\x1b]0;owned\x07rep\u202egnp.\x1b[2Jpdf\r\nx"), clean_text("می\u200cخواهم a\u200cb")
    ('repgnp.pdf\nx', 'می\u200cخواهم ab')
    """
    if text.isprintable() and text.isascii():
        return text
    return re.sub(_HALF, "\ufffd", re.sub(_BREAK, " ", _HIDDEN.sub("", text.replace("\r\n", "\n"))))


def clean_name(name: str) -> str:
    r"""Return a name on one line, as :func:`clean_text`; a name with nothing to clean as it is.

    >>> clean_name("n\x07et\n \u200bsales"), clean_name("net  sales")
    ('net sales', 'net  sales')
    """
    text = re.sub(r"[\n\t]", " ", clean_text(name))
    return name if text == name else re.sub(" +", " ", text).strip(" ")


def clean_names(names: Sequence[str]) -> Sequence[str]:
    """Return :func:`clean_name` of each name; many at once take little time where there is nothing to clean."""
    joined = "".join(names)
    return names if joined.isprintable() and joined.isascii() else list(map(clean_name, names))


def file_name(path: str) -> str:
    r"""Return the name of the file at a path, as it is shown; U+FFFD where nothing of it can be seen.

    >>> file_name("/mails/offer.eml//pl\x1ban.pdf")
    'plan.pdf'
    """
    return clean_name(PurePath(path).name) or "\ufffd" * bool(path)


def has_hidden(text: str) -> bool:
    """Return whether :func:`clean_text` changes a text."""
    return _ESCAPED.search(text) is not None


def escape_hidden(text: str, escape: Callable[[str], str]) -> str:
    """Return a text with each character that :func:`clean_text` changes escaped, in a language that has escapes."""
    return _ESCAPED.sub(lambda match: escape(match[0]), text)


#: A number, or a dash for none, which a spreadsheet takes for what it is.
_PLAIN_CELL = re.compile(r"[-+]?[.,]?\d[\d.,'’\s]*(?:[eE][-+]?\d+)?%?|-+")


def escape_formula(cell: str) -> str:
    """Return a cell of a CSV file that no spreadsheet takes for a formula: with an apostrophe before such a one.

    >>> escape_formula("=1+1"), escape_formula("-5"), escape_formula("-5+A1"), escape_formula("a=b")
    ("'=1+1", '-5', "'-5+A1", 'a=b')
    """
    start = clean_text(cell).lstrip()[:1]
    is_formula = bool(start) and start in "=+-@＝＋－＠" and not _PLAIN_CELL.fullmatch(cell.strip())
    return f"'{cell}" if is_formula or cell[:1] in ("\t", "\r", "\n") else cell


def parse_number(value: object) -> float:
    """Return the value of a property as a number, or NaN where it is none.

    A date becomes its year plus the elapsed fraction of that year, so that dates and years can be compared.

    >>> parse_number("12.5"), parse_number(3), parse_number("1994-01-01"), parse_number("12 films")
    (12.5, 3.0, 1994.0, nan)
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    text = value.strip() if isinstance(value, str) else ""
    if _NUMBER.fullmatch(text):
        return float(text)
    if match := _DATE.fullmatch(text):
        year, month, day = map(int, match.groups())
        try:
            elapsed_days = date(year, month, day).timetuple().tm_yday - 1
        except ValueError:
            return math.nan
        return year + elapsed_days / (366 if calendar.isleap(year) else 365) if year else math.nan
    return math.nan


def read_count(text: str) -> int | None:
    """Return the whole number that a text consists of, None for any other text and for more than 18 digits: nothing
    has so many rows or pages, and Python refuses to read thousands of digits.

    >>> read_count("042"), read_count("²"), read_count("-1"), read_count("9" * 5_000)
    (42, None, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= _COUNT_DIGITS else None


_COUNT_DIGITS = 18


def slugify(name: str) -> str:
    """Return a name for use in a file name or URL. Runs of characters other than letters, digits and ``_.-`` become
    one hyphen.

    The result may be empty, and it never starts with a dot.

    >>> slugify("A day's wages / 1931"), slugify("../..")
    ('A-day-s-wages-1931', '')
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")


def encode_iri_name(name: str) -> str:
    """Return the name of a relation or a property as it stands at the end of an IRI.

    >>> encode_iri_name("directed by"), encode_iri_name("50% réel")
    ('directed%20by', '50%25%20réel')
    """
    return "".join(
        character if character.isalnum() or character in "_-." else quote(character, safe="")
        for character in name
    )


def strip_qualifier(name: str) -> str:
    """Return a name without the words in brackets at its end.

    >>> strip_qualifier("Inception (2010 film)"), strip_qualifier("Rule (b) of Heron")
    ('Inception', 'Rule (b) of Heron')
    """
    whole = name.rstrip()
    if not whole.endswith(")"):
        return name
    start = whole.find("(", whole.rfind(")", 0, -1) + 1)
    return name if start < 0 else whole[:start].rstrip()


def title_names(title: str) -> list[str]:
    """Return the normalised names of a title: the whole title, and the title without a trailing "(...)".

    >>> title_names("Inception (2010 film)")
    ['inception 2010 film', 'inception']
    """
    whole = normalise_name(title)
    short = normalise_name(strip_qualifier(title))
    return [name for name in dict.fromkeys([whole, short]) if name]


def add_headings(title: str, headings: Iterable[str], text: str) -> str:
    """Return the text to encode for a passage: ``title. heading > heading: text``.

    The headings tell what a passage is about that only says "it". Headings that repeat the title are left out.
    """
    path = " > ".join(name for name in headings if name and name != title)
    lead = ". ".join(part for part in (title, path) if part)
    return f"{lead}: {text}" if lead else text


def build_hop_query(question: str, passages: Iterable[str]) -> str:
    """Return the query of a multi-hop encoder for the next passage: the question and the passages so far.

    They are joined by spaces (MDR, Xiong et al., ICLR 2021, Section 2.2; KGP, Supplementary 8.2).
    """
    return " ".join((question, *passages))


#: The part begins behind a divider: looked for from each of its characters it would take the square of its length.
_LAST_PART = re.compile(r"(?<![^/#:])[^/#:]+(?=[/#]?$)")


def iri_label(iri: str) -> str:
    """Return the human-readable part of an IRI.

    >>> iri_label("http://dbpedia.org/resource/Kismet_(1944_film)"), iri_label("http://example.org/ns#directedBy")
    ('Kismet (1944 film)', 'directedBy')
    """
    last_part = _LAST_PART.search(iri)
    return clean_name(unquote(last_part.group()).replace("_", " ")).strip() or iri if last_part else iri
