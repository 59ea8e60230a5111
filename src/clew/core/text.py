"""Text as clew counts it: tokens, term hashes, sentences, names. Pure functions of one text.

Changing what a function here returns changes what is stored: raise :data:`TEXT_VERSION`, and every base rebuilds
its postings at the next ``add``.
"""

from __future__ import annotations

import calendar
import hashlib
import math
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date
from functools import lru_cache
from urllib.parse import unquote

import snowballstemmer

TEXT_VERSION = 1

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
# A number keeps its decimals and loses its thousands separators; a word may hold digits and apostrophes.
_TOKEN = re.compile(
    rf"\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+\.\d+|[{_CJK}]+|(?:(?![{_CJK}])\w)+(?:['’](?:(?![{_CJK}])\w)+)?"
)
_CJK_RUN = re.compile(rf"^[{_CJK}]+$")
# FY2018, Q42021, H12022: people write the period as one word, documents the year alone.
_PERIOD = re.compile(r"^(?:fy|cy|q[1-4]|h[12])_?((?:19|20)\d\d)$")
_SHORT_PERIOD = re.compile(r"^(?:fy|cy)_?(\d\d)$")

STOPWORDS = frozenset(
    """a about above after again against all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further had has have having
    he her here hers herself him himself his how i if in into is it its itself just me more most my myself no
    nor not now of off on once only or other our ours ourselves out over own same she should so some such than
    that the their theirs them themselves then there these they this those through to too under until up very
    was we were what when where which while who whom whose why will with would you your yours yourself
    yourselves""".split()
)
"""English function words; left out of queries and keywords, never out of what is stored."""


def normalise(text: str) -> str:
    """Return ``text`` in NFKC, casefolded, with runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return the Porter2 stem of a casefolded word; a word with a digit or outside ASCII stays as it is."""
    if not word.isascii() or not word.isalpha():
        return word
    with _stemming:
        return str(_stemmer.stemWord(word))


_stemmer = snowballstemmer.stemmer("english")
# The stemmer keeps the word that it is at in itself: a second thread would spoil both stems, and they are kept.
_stemming = threading.Lock()


@lru_cache(maxsize=1 << 17)
def _terms_of(token: str) -> tuple[str, ...]:
    if _CJK_RUN.match(token):
        return tuple(token[i : i + 2] for i in range(len(token) - 1)) or (token,)
    word = token.replace("’", "'").removesuffix("'s")
    if word[0].isdigit() and "," in word:
        return (word.replace(",", ""),)
    if period := _PERIOD.match(word):
        return (word, period[1])
    if period := _SHORT_PERIOD.match(word):
        return (word, "20" + period[1])
    return (stem(word),)


def index_terms(text: str) -> list[str]:
    """Return the index terms of ``text`` in order: casefolded, stemmed; CJK runs as character pairs.

    >>> terms("The company's revenues were $1,577 million in FY2018")
    ['the', 'compani', 'revenu', 'were', '1577', 'million', 'in', 'fy2018', '2018']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [term for token in _TOKEN.findall(folded) for term in _terms_of(token)]


def query_terms(text: str) -> list[str]:
    """Return :func:`terms` without English function words; all of them where nothing else is left."""
    found = index_terms(text)
    return [term for term in found if term not in _STOP_TERMS] or found


_STOP_TERMS = frozenset(stem(word) for word in STOPWORDS) | STOPWORDS | {"s"}


def is_stop_term(term: str) -> bool:
    """Return whether an index term stands for an English function word."""
    return term in _STOP_TERMS


@lru_cache(maxsize=1 << 18)
def hash_term(term: str) -> int:
    """Return the 64-bit number under which a term is stored.

    Hashes rather than strings, so that the words of a removed document do not live on in a vocabulary file,
    and so that vocabularies merge as sorted arrays. Two of ten million terms share a hash with a probability
    of about 3e-6.
    """
    return int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")


def count_terms(text: str) -> Counter[int]:
    """Return how often each term, hashed, occurs in ``text``."""
    return Counter(map(hash_term, index_terms(text)))


# A full stop after one of these, or after a single capital, ends no sentence.
_ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof sr jr st vs etc eg ie e.g i.e sec fig figs eq vol pp al inc ltd co corp dept est
    approx jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k gen col lt sgt capt rev hon""".split()
)
_END = re.compile(r"[.!?。！？]+[\"'”’)\]]*(?=\s+|$)|(?<=[。！？])")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return the half-open character ranges of the sentences of ``text``, without surrounding white space."""
    spans, start = [], 0
    for end in _END.finditer(text):
        if end.end() <= start or not _ends_sentence(text, start, end):
            continue
        spans.append((start, end.end()))
        start = end.end()
    spans.append((start, len(text)))
    return [trimmed for span in spans if (trimmed := _trim(text, *span))[0] < trimmed[1]]


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    following = text[end.end() :].lstrip()[:1]
    if not end.group() or end.group()[0] != ".":
        return True
    if following.islower():
        return False
    last_word = text[start : end.start()].split()[-1:] or [""]
    word = last_word[0].lstrip("(\"'“‘[").casefold()
    if word in {"no", "nos"}:
        return not following.isdigit()
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
    "University of Ohio Press" holds "Ohio". Limit: a name without a capital or digit is not found.
    """
    words = [(match.group(), match.start(), match.end()) for match in _WORD.finditer(text)]
    for first, (word, start, _) in enumerate(words):
        if not _starts_name(word):
            continue
        for last in range(first, min(first + MAX_NAME_WORDS, len(words))):
            token, token_start, end = words[last]
            if last > first and not _joined(words[last - 1][0], text[words[last - 1][2] : token_start]):
                break
            if _starts_name(token):
                name = normalise_name(text[start:end])
                if last > first or name not in STOPWORDS:
                    yield name, start, end
            elif token.casefold() not in _JOINERS:
                break


def _starts_name(word: str) -> bool:
    return word[0].isupper() or word[0].isdigit() or bool(_CJK_RUN.match(word))


def _joined(before: str, gap: str) -> bool:
    # A full stop joins only after an initial ("J. Smith"); elsewhere it may end a sentence.
    return gap in {"", " ", "-", " & ", "\n"} or (gap == ". " and len(before) == 1)


def normalise_name(name: str) -> str:
    """Return a name as mentions compare it: normalised, punctuation as spaces, no possessive, no article."""
    folded = re.sub(r"['’]s\b", "", normalise(name))
    words = re.sub(r"[^\w]+", " ", folded).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in {"the", "a", "an"} else words)


# Letters that have no decomposition, and what people write who lack them on their keyboard.
_PLAIN_LETTERS = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
)
_NOT_NAME = re.compile(r"[\W_]+")


def fold_name(name: str) -> str:
    """Return a name as graphs compare it: without case, diacritics, punctuation, or differences of white space.

    A name of nothing but punctuation stays as :func:`normalise` leaves it.

    >>> folded_name("  Amélie Poulain's  (2001)"), folded_name("$")
    ('amelie poulain s 2001', '$')
    """
    folded = _NOT_NAME.sub(" ", name.lower()) if name.isascii() else _without_marks(name)
    return " ".join(folded.split()) or normalise(name)


def _without_marks(name: str) -> str:
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

    >>> said(True), said(1994), said("Lima")
    ('true', '1994', 'Lima')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def shorten(text: str, length: int) -> str:
    r"""Return a text in one line of at most ``length`` characters, the last of them "…" where it is longer.

    >>> shortened("a\n  b", 4), shortened("abcdef", 4)
    ('a b', 'abc…')
    """
    text = " ".join(text.split())
    return text if len(text) <= length else text[: length - 1] + "…"


def parse_number(value: object) -> float:
    """Return the number that a value of a property is, or NaN. A day is its year and the share of it that is over, so
    that days and years can be compared.

    >>> number_of("12.5"), number_of(3), number_of("1994-01-01"), number_of("12 films")
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
            gone = date(year, month, day).timetuple().tm_yday - 1
        except ValueError:
            return math.nan
        return year + gone / (366 if calendar.isleap(year) else 365) if year else math.nan
    return math.nan


def slugify(name: str) -> str:
    """Return a name as part of a file's or an address: what is neither a letter, a digit nor ``_.-`` is one hyphen.

    It may be empty, and it never starts with a dot.

    >>> slug("A day's wages / 1931"), slug("../..")
    ('A-day-s-wages-1931', '')
    """
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")


def title_names(title: str) -> list[str]:
    """Return the normalised names of a title: itself, and without a trailing "(disambiguation)".

    >>> title_names("Inception (2010 film)")
    ['inception 2010 film', 'inception']
    """
    whole = normalise_name(title)
    short = normalise_name(re.sub(r"\s*\([^)]*\)\s*$", "", title))
    return [name for name in dict.fromkeys([whole, short]) if name]


def add_headings(title: str, headings: Iterable[str], text: str) -> str:
    """Return the text that stands for a passage as a vector: ``title. heading > heading: text``.

    A passage that only says "it" is then near what "it" is. Headings that repeat the title are left out.
    """
    path = " > ".join(name for name in headings if name and name != title)
    lead = ". ".join(part for part in (title, path) if part)
    return f"{lead}: {text}" if lead else text


def build_hop_query(question: str, passages: Iterable[str]) -> str:
    """Return what a multi-hop encoder is asked after some passages: the question and they, joined by spaces
    (MDR, Xiong et al., ICLR 2021, Section 2.2; KGP, Supplementary 8.2)."""
    return " ".join((question, *passages))


_LAST_PART = re.compile(r"[^/#:]+(?=[/#]?$)")


def iri_label(iri: str) -> str:
    """Return the part of an IRI that people read.

    >>> readable("http://dbpedia.org/resource/Kismet_(1944_film)"), readable("http://example.org/ns#directedBy")
    ('Kismet (1944 film)', 'directedBy')
    """
    found = _LAST_PART.search(iri)
    return unquote(found.group()).replace("_", " ").strip() or iri if found else iri
