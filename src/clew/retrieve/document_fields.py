"""Who a document is about, and for which periods: read from its file name, its title and its first page.

A folder of reports has many passages with nearly the same words: the same company's other years, other companies'
same tables. What tells them apart stands once in each document, on its cover or in its file name.
:func:`read_document_fields` reads it, :func:`read_periods` reads the periods of any text, and :func:`match_fields`
compares the fields of all documents with a question.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew.core.arrays import Floats
from clew.core.protocols import Snapshot
from clew.core.text import STOPWORDS, hash_term, index_terms
from clew.core.types import RETRIEVED_KINDS, Document, Scope
from clew.core.values import MONTHS, month_number


class Period(NamedTuple):
    """A year, and the number of its quarter or 0 for the whole year."""

    year: int
    quarter: int = 0


_YEAR = r"(?P<year>(?:19|20)\d\d|(?<=['’])\d\d|(?<=fy)\d\d|(?<=[1-4]q)\d\d)(?!\d)"
_OF = r"[\s,-]*(?:and (?:full|fiscal)?\s*year\s+)?(?:of\s+)?(?:the\s+)?(?:fiscal\s+)?(?:year\s+)?(?:[fc]y\s*)?['’]?"
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_QUARTER = rf"(?:q(?P<q>[1-4])|(?P<n>[1-4])q|(?P<ordinal>{'|'.join(_ORDINALS)})[\s-]+(?:fiscal\s+)?quarter)"
_QUARTERS = re.compile(rf"(?<![a-z0-9]){_QUARTER}(?:{_OF}{_YEAR})?")
_QUARTER_SIGN = re.compile(r"q[1-4]|[1-4]q|quarter")
_QUARTER_OF_YEAR = re.compile(r"(?<!\d)(?P<year>(?:19|20)\d\d)[\s-]*q(?P<q>[1-4])(?![a-z0-9])")
_FISCAL = re.compile(
    r"(?<![a-z0-9])(?:[fc]y\s*|fiscal\s+(?:year\s+)?)['’]?(?P<year>(?:19|20)\d\d|\d\d)(?!\d)"
)
_YEARS = re.compile(r"(?<![\d.,$€£])(?P<year>(?:19|20)\d\d)(?!\d|[.,]\d)")
_DIGIT = re.compile(r"\d")
_DATE = rf"(?P<month>{'|'.join(MONTHS)})\s+(?P<day>\d{{1,2}})\s*,?\s+(?P<year>(?:19|20)\d\d)"
_ENDED = re.compile(
    rf"(?P<span>year|quarter|quarterly period|months|weeks|period)\s+(?:then\s+)?ended:?\s+{_DATE}"
)
_ANNUAL = re.compile(
    r"annual report\s+(?:for\s+)?(?:the\s+)?(?:fiscal\s+)?(?:year\s+)?(?P<after>(?:19|20)\d\d)(?!\d)"
    r"|(?<!\d)(?P<before>(?:19|20)\d\d)\s+(?:annual|form\s+10-k)"
)
_REPORTED = re.compile(rf"date of (?:earliest event|report)\W.{{0,80}}?{_DATE}", re.DOTALL)


def read_periods(text: str) -> frozenset[Period]:
    """Return the periods that a text names: years, fiscal years and quarters.

    >>> sorted(read_periods("Has CVS Health paid dividends in Q2 of FY2022?"))
    [Period(year=2022, quarter=2)]
    >>> sorted(read_periods("EBITDAR in 4Q22 and the fourth quarter of 2021; PPNE between FY20 and FY21"))
    [Period(year=2020, quarter=0), Period(year=2021, quarter=0), Period(year=2021, quarter=4), Period(year=2022, quarter=4)]
    """  # noqa: E501
    text = text.casefold()
    if not _DIGIT.search(text):
        return frozenset()
    periods, quarters = set(), set()

    def take(match: re.Match[str], quarter: int = 0) -> str:
        periods.add(Period(_full_year(match["year"]), quarter))
        return " "

    def take_quarter(match: re.Match[str]) -> str:
        quarter = int(match["q"] or match["n"] or _ORDINALS[match["ordinal"]])
        if match["year"]:
            return take(match, quarter)
        quarters.add(quarter)
        return " "

    # What a pattern has read is taken out, so that its year is not read again as the whole year.
    text = _QUARTER_OF_YEAR.sub(lambda match: take(match, int(match["q"])), text)
    text = _QUARTERS.sub(take_quarter, text)
    for pattern in (_FISCAL, _YEARS):
        text = pattern.sub(take, text)
    if quarters and len(years := {period.year for period in periods}) == 1:
        # "In the third quarter, what did it earn (2022)?"
        return frozenset(Period(year, quarter) for year in years for quarter in quarters)
    return frozenset(periods)


def _full_year(digits: str) -> int:
    return int(digits) if len(digits) == 4 else 2000 + int(digits)


def _cover_periods(cover: str) -> frozenset[Period]:
    """Return the periods that a first page says it reports on."""
    cover = " ".join(cover.casefold().split())
    periods = set()
    for match in _ENDED.finditer(cover):
        year, month = int(match["year"]), month_number(match["month"])
        if match["span"] in ("quarter", "quarterly period"):
            periods.add(Period(year, (month + 2) // 3))
        elif match["span"] == "year":
            # A year that ends in the first days of January, or in January, is the year before for many.
            periods.update({Period(year), *([Period(year - 1)] if month == 1 else [])})
    if not periods:
        # Every cover of a base is read, and these patterns take ten times as long as looking for such words.
        if _QUARTER_SIGN.search(cover):
            periods.update(period for period in read_periods(cover) if period.quarter)
        if "annual" in cover or "10-k" in cover:
            periods.update(
                Period(int(match["after"] or match["before"])) for match in _ANNUAL.finditer(cover)
            )
    if not periods:
        periods.update(Period(int(match["year"])) for match in _REPORTED.finditer(cover))
    return frozenset(periods)


@dataclass(frozen=True, slots=True)
class DocumentFields:
    """Who a document is about: its ``names`` as words and its ``tickers``; and its ``periods``."""

    names: tuple[tuple[str, ...], ...] = ()
    tickers: tuple[str, ...] = ()
    periods: frozenset[Period] = frozenset()


_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,4}$")
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z’']+|\d+|&")
_LEGAL = frozenset(
    """inc incorporated corp corporation company companies co plc ltd limited llc lp llp nv sa ag se gmbh
    holdings group international""".split()
)
# Words of file names and titles that say what kind of document it is, and not about whom.
_GENERIC = frozenset(
    """annual quarterly quarter interim half full year fiscal report reports reporting earnings results release press
    form exhibit ex er k q h fy cy filing filed final draft version dated date copy signed scan document documents
    presentation transcript call statement statements financial financials consolidated proxy supplement letter
    shareholder shareholders investor investors untitled pdf doc docx for of the and in on to by from with""".split()
) | frozenset(MONTHS)
_PART_END = re.compile(r":\s|\s[-–—|]\s")
_BOILERPLATE = re.compile(r"united states securities and exchange commission|microsoft word", re.IGNORECASE)
_REGISTRANT = re.compile(r"\(\s*exact name of (?:the )?registrant", re.IGNORECASE)
_LISTED = re.compile(r"\(\s*(?:NYSE|NASDAQ|Nasdaq|LSE|AMEX|TSX)(?:\s\w+)?\s*:\s*([A-Z]{1,5})\s*\)")
_SYMBOL = re.compile(r"(?:Stock|Shares?|Units?)\b[^|\n]*\|[|\s]*([A-Z]{1,5})\s*\|")
# What stands before a name: another cell or line, a year ("ACT OF 1934 Verizon Communications Inc."), a place and
# date ("Nevada, February 8, 2023 – MGM Resorts International").
_BEFORE_NAME = re.compile(r"[()|\n;:☐☒–—]|\d{4,}\s")
_MAX_NAME_WORDS = 5


def read_document_fields(name: str, title: str, cover: str) -> DocumentFields:
    """Return the fields of a document from its file name, its title and the beginning of its text.

    The period of a file name counts more than that of a cover, whose year may be the one in which the report was
    published. A name is the longest run of words of a file name or a title that say neither a period nor a kind of
    document, or the name that a cover gives as the registrant's or with a stock exchange.

    >>> read_document_fields("JPMORGAN_2023Q2_10Q.pdf", "", "").names
    (('jpmorgan',),)
    """
    stem = re.sub(r"[_\s-]+", " ", _SUFFIX.sub("", name))
    periods, on_cover = read_periods(stem), _cover_periods(cover)
    if periods:
        years = {period.year for period in periods}
        if not any(period.quarter for period in periods):
            quarters = {period for period in on_cover if period.quarter and period.year in years}
            periods = frozenset(quarters) or periods
    else:
        periods = on_cover or ("filed" not in title.casefold() and read_periods(title)) or frozenset()
    listed = list(_LISTED.finditer(cover))[:1]
    texts = [_about(stem), _about(title) if title != name else ""]
    for match in (*list(_REGISTRANT.finditer(cover))[:2], *listed):
        before = cover[max(0, match.start() - 80) : match.start()].rstrip()
        texts.append(_BEFORE_NAME.split(before)[-1].strip())
    names = {words: None for text in texts if (words := _name_words(text))}
    tickers = {match[1]: None for match in (*listed, *list(_SYMBOL.finditer(cover))[:2])}
    return DocumentFields(tuple(names), tuple(tickers), periods)


def _about(text: str) -> str:
    """Return the run of words that say neither a period nor a kind of document: that with most capitals, of equal
    ones the longest. A colon or a dash ends a run: "Oskell Passage Company: ledger of freight and crew"."""
    runs = []
    for part in _PART_END.split(_BOILERPLATE.sub(" ", text)):
        runs.append("")
        for word in _NAME_WORD.findall(part):
            if word.isdigit() or word.casefold() in _GENERIC:
                runs.append("")
            else:
                runs[-1] += f" {word}"
    return max(runs, key=lambda run: (sum(word[0].isupper() for word in run.split()), len(run))).strip()


def _name_words(text: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, without "and" and its legal form; empty where it is no name."""
    words = [_plain(word) for word in re.split(r"[\s,]+", text)]
    words = [word for word in words if word and word not in ("&", "and", "the")]
    while len(words) > 1 and words[-1] in _LEGAL:
        words.pop()
    proper = (
        0 < len(words) <= _MAX_NAME_WORDS and len("".join(words)) > 1 and words[0] not in _GENERIC | _LEGAL
    )
    return tuple(words) if proper else ()


def _plain(word: str) -> str:
    """Return a word in lower case without its possessive, full stops, hyphens and apostrophes."""
    word = re.sub(r"['’]s$", "", word.casefold())
    return re.sub(r"[^\w&]|_", "", word).strip("&") or ("&" if "&" in word else "")


#: How an alias is written: as (the beginning of) a name; or shortened, which only capitals give away.
_NAME, _BEGINNING, _SHORT = 0, 1, 2


def subject_aliases(fields: DocumentFields) -> Iterator[tuple[str, int]]:
    """Yield the ways to write who a document is about, and the kind of each: joined words and short forms.

    A short form joins beginnings of up to three letters of each of two or three words (Am-Ex, J-n-J, G-S), or is the
    beginning of a long word (JPM), or a ticker symbol.
    """
    for words in fields.names:
        for count in range(1, len(words) + 1):
            if len(words[0]) > 1 and words[0] not in STOPWORDS:
                yield "".join(words[:count]), _NAME if count == len(words) or count > 1 else _BEGINNING
        for count in range(2, min(3, len(words)) + 1):
            for lengths in itertools.product((1, 2, 3), repeat=count):
                parts = [word[:length] for word, length in zip(words[:count], lengths, strict=True)]
                if 2 <= len("".join(parts)) <= 6:
                    yield "".join(parts), _SHORT
                if max(lengths) == 1 and count == 2:
                    yield from ((joiner.join(parts), _SHORT) for joiner in ("&", "n"))
        if len(words) > 3:
            yield "".join(word[0] for word in words), _SHORT
        if len(words[0]) > 5:
            yield from ((words[0][:length], _SHORT) for length in (3, 4))
    yield from ((ticker.casefold(), _SHORT) for ticker in fields.tickers if len(ticker) > 1)


@dataclass(frozen=True, slots=True)
class FieldIndex:
    """The fields of all documents, numbered in the order of their keys.

    ``aliases`` has the documents of each way to write a name, with its kind. ``documents``, ``years`` and
    ``quarters``, (periods,), have one entry for each period of each document.
    """

    aliases: dict[str, dict[int, int]]
    documents: NDArray[np.int64]
    years: NDArray[np.int64]
    quarters: NDArray[np.int64]


#: A document with fewer passages has no cover: all of it is equally near to its name.
MIN_PASSAGES = 10
#: What counts as the cover: so many characters of the document's text.
COVER_LENGTH = 4000


def field_index(snapshot: Snapshot) -> FieldIndex:
    """Return the fields of the documents; computed once per generation."""
    index: FieldIndex = snapshot.memoize("fields/index", lambda: _index_fields(snapshot), documents_only=True)
    return index


def _index_fields(snapshot: Snapshot) -> FieldIndex:
    aliases: dict[str, dict[int, int]] = {}
    periods: list[tuple[int, int, int]] = []
    for number, fields in _read_fields(snapshot):
        for alias, kind in subject_aliases(fields):
            kinds = aliases.setdefault(alias, {})
            kinds[number] = min(kind, kinds.get(number, kind))
        periods.extend((number, *period) for period in fields.periods)
    columns = np.array(periods, dtype=np.int64).reshape(-1, 3).T
    return FieldIndex(aliases, *columns)


def _read_fields(snapshot: Snapshot) -> Iterator[tuple[int, DocumentFields]]:
    """Yield the number and the fields of each document that is long enough and names a period."""
    searched = np.cumsum(np.r_[0, snapshot.mask(Scope(), RETRIEVED_KINDS)])
    covered = []
    for number, document in enumerate(snapshot.documents()):
        start, end = snapshot.document_rows(document.key)
        if searched[end] - searched[start] >= MIN_PASSAGES:
            covered.append((number, document))
    unknown = [document for _, document in covered if _cache_key(document) not in _known_fields]
    if len(_known_fields) + len(unknown) > _MAX_KNOWN:
        _known_fields.clear()
        unknown = [document for _, document in covered]
    covers = snapshot.document_openings([document.key for document in unknown], COVER_LENGTH)
    fields_of = _known_fields.copy()
    for document, cover in zip(unknown, covers, strict=True):
        key = _cache_key(document)
        fields_of[key] = _known_fields[key] = read_document_fields(document.name, document.title, cover)
    for number, document in covered:
        fields = fields_of[_cache_key(document)]
        if fields.periods:
            yield number, fields


#: The fields of documents that this process has read: a change of one document leaves those of the others.
_known_fields: dict[tuple[str, str, str], DocumentFields] = {}
_MAX_KNOWN = 200_000


def _cache_key(document: Document) -> tuple[str, str, str]:
    # The key stands for the text.
    return document.key, document.name, document.title


_WORD = re.compile(r"[^\W_][\w&.’'-]*|&")


def match_fields(question: str, snapshot: Snapshot) -> tuple[Floats, Floats]:
    """Return how well each document's subject fits a question, and its period, in the order of
    :meth:`Snapshot.documents`; both from 0 to 1, (documents,).

    A period counts only where the subject fits, and as much as that. Where the question names nobody that a document
    is about, all documents with a period are compared by it. Where it names neither, everything is 0.
    """
    count = len(snapshot.documents())
    index = field_index(snapshot)
    if count < 2 or not len(index.documents):
        return np.zeros(count), np.zeros(count)
    subjects = _subject_fits(question, index, snapshot)
    periods = period_fits(read_periods(question), index, count)
    return subjects, periods * subjects if subjects.any() else periods


#: How much of a name's occurrences has to be in the documents that are about it for a question to mean them by it.
_MEANT = 0.5


def named_subjects(question: str, snapshot: Snapshot) -> dict[str, frozenset[str]]:
    """Return the names in a question that documents are about, as it writes them, with these documents' keys."""
    index = field_index(snapshot)
    documents = snapshot.documents()
    subjects: dict[str, frozenset[str]] = {}
    for alias, words, is_followed in _aliases_in(question, index) if len(documents) > 1 else ():
        kinds = {n: kind for n, kind in index.aliases[alias].items() if _may_mean(kind, words)}
        own = 1.0 if len(words) > 1 else _own_share(words[0], list(kinds), snapshot) if kinds else 0.0
        meant = [n for n, kind in kinds.items() if not (is_followed and kind == _BEGINNING)]
        if own >= _MEANT and meant:
            subjects[re.sub(r"['’]s?$", "", " ".join(words))] = frozenset(documents[n].key for n in meant)
    return subjects


def _subject_fits(question: str, index: FieldIndex, snapshot: Snapshot) -> Floats:
    fits = np.zeros(len(snapshot.documents()))
    for alias, words, is_followed in _aliases_in(question, index):
        kinds = {n: kind for n, kind in index.aliases[alias].items() if _may_mean(kind, words)}
        if kinds:
            numbers = list(kinds)
            fit = 1.0 if len(words) > 1 else _own_share(words[0], numbers, snapshot)
            # "American Airlines" is hardly American Express.
            followed = np.array([is_followed and kind == _BEGINNING for kind in kinds.values()])
            fits[numbers] = np.maximum(fits[numbers], fit * np.where(followed, 0.5, 1.0))
    return fits


def _own_share(word: str, numbers: Sequence[int], snapshot: Snapshot) -> float:
    """Return the share of a word's occurrences that are in the given documents.

    "American" occurs in every company's report, "Adobe" mainly in Adobe's. A word that these documents lack counts as
    1 in capitals, since it is a short form that others use (JnJ), else as 0. A word that is no single index term
    (J&J) counts as 1.
    """
    terms = index_terms(word)
    if len(terms) != 1:
        return 1.0
    documents = snapshot.documents()
    rows, counts = snapshot.postings("text").rows_with(hash_term(terms[0]))
    before = np.cumsum(np.r_[0, counts])
    bounds = np.searchsorted(rows, [snapshot.document_rows(documents[number].key) for number in numbers])
    own = int(np.diff(before[bounds], axis=1).sum())
    return own / int(before[-1]) if own else float(_is_capitals(word))


def _is_capitals(word: str) -> bool:
    return sum(letter.isupper() for letter in word) > 1


def _may_mean(kind: int, words: Sequence[str]) -> bool:
    """Return whether words as a question writes them may be an alias of this kind."""
    return kind != _SHORT or (len(words) == 1 and words[0][0].isupper())


def _aliases_in(question: str, index: FieldIndex) -> Iterator[tuple[str, list[str], bool]]:
    """Yield the aliases in a question, longest first from left to right, their words, and whether another
    capitalised word follows."""
    words = _WORD.findall(question)
    # Of the first letter alone, as in "Who runs adobe?", a capital says nothing.
    has_capitals = question[1:] != question[1:].lower()
    first = 0
    while first < len(words):
        if words[first].casefold() not in STOPWORDS and (
            not has_capitals or words[first][0].isupper() or words[first][0].isdigit()
        ):
            for last in range(min(len(words), first + _MAX_NAME_WORDS), first, -1):
                span = words[first:last]
                alias = "".join(p for word in span if (p := _plain(word)) not in ("&", "and"))
                if alias in index.aliases and span[-1] != "&":
                    following = words[last] if last < len(words) else ""
                    followed = following[:1].isupper() and following[1:].islower()
                    yield alias, span, followed and not words[last - 1].endswith(("'s", "’s", "."))
                    first = last - 1
                    break
        first += 1


def period_fits(asked: frozenset[Period], index: FieldIndex, count: int) -> Floats:
    """Return how well the periods of each document fit those asked for, from 0 to 1, (count,).

    The latest year asked for counts: a report of 2022 has the figures of 2021 for comparison, and "between 2021 and
    2022" is answered there. The reports of the two years after it also have its figures, with less text about them;
    the one of the year before tells only plans. Where a quarter is asked for, the report of that quarter comes first,
    then that of the year, then those of other quarters; where none is, that of the whole year comes first.
    """
    fits = np.zeros(count)
    if not asked:
        return fits
    year = max(period.year for period in asked)
    quarters = {period.quarter for period in asked if period.year == year}
    by_distance = np.array([0.25, 1.0, 0.5, 0.25, 0.0])
    distance = np.clip(index.years - year + 1, -1, 4)
    fit = np.where(distance < 0, 0.0, by_distance[distance])
    same = np.isin(index.quarters, list(quarters))
    fit *= np.where(same, 1.0, np.where(index.quarters == 0, 0.7, 0.5))
    np.maximum.at(fits, index.documents, fit)
    return fits
