"""Plain questions over one table, read by rule: "How many orders were shipped to Norway?", "top 3 products by sales".

A question is taken apart into the cells that it names (conditions), days and bounds, an aggregate, the column that it
is computed of, and the column that groups it. Every word has to find its place: a word that the table does not know
is a doubt, and a reading with doubts is not answered.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property

from clew.core.cell_values import read_cell
from clew.core.text import fold_name, is_stop_term, stem
from clew.core.values import MONTH_PATTERN, month_number
from clew.methods.tables.query import Aggregate, Condition, Operator, TableArrays, TableQuery
from clew.parse.data_tables import DataTable

_TOKEN = re.compile(r"[^\W_]+")
#: Cells of at most so many words are looked for in a question.
_MAX_WORDS = 7
_MONTH = rf"(?P<{{0}}>{MONTH_PATTERN})"
_YEAR = r"(?P<{0}>(?:19|20)\d\d)"


def _day_pattern(name: str, year: str) -> str:
    """Return a pattern for a day as a group: 2021-03-05, 5 March 2021, the 5th of March 2021, March 5, 2021."""
    number = r"(?:the\s+)?\d\d?(?:st|nd|rd|th)?"
    words = rf"(?:{number}\s+(?:of\s+)?{MONTH_PATTERN}\b\.?|{MONTH_PATTERN}\b\.?\s+{number}\b){year}"
    return rf"(?<!\w)(?P<{name}>[12][0-9]{{3}}-[0-9]{{2}}-[0-9]{{2}}|{words})"


_OF_YEAR = r",?\s+(?:19|20)\d\d"
_BETWEEN = re.compile(
    rf"\b(?:between|from)\s+{_MONTH.format('m1')}(?:\s+{_YEAR.format('y1')})?\s+(?:and|to|until|through)\s+"
    rf"{_MONTH.format('m2')}\s+{_YEAR.format('y2')}\b"
    rf"|\b(?:between|from)\s+{_YEAR.format('y3')}\s+(?:and|to|until|through)\s+{_YEAR.format('y4')}\b"
    rf"|\b(?:between|from)\s+{_day_pattern('d1', f'(?:{_OF_YEAR})?')}\s+(?:and|to|until|through)\s+"
    rf"{_day_pattern('d2', _OF_YEAR)}\b",
    re.IGNORECASE,
)
_QUARTERS = {"q1": 1, "q2": 2, "q3": 3, "q4": 4, "first": 1, "second": 2, "third": 3, "fourth": 4, "last": 4}
#: What is asked of a day or period, by the words before it; other words ask for what lies within it.
_RELATIONS = {
    "after": "after", "later than": "after", "since": "since", "on or after": "since", "no earlier than": "since",
    "before": "before", "prior to": "before", "earlier than": "before", "until": "until", "by": "until",
    "on or before": "until", "no later than": "until", "up to": "until",
}  # fmt: skip
_PERIOD = re.compile(
    rf"(?:\b(?P<relation>{'|'.join(_RELATIONS)}|in|during|on|of|for|as of)\s+)?(?:the\s+)?"
    r"(?:(?:year|month)\s+(?:of\s+)?)?"
    rf"(?:(?P<quarter>q[1-4]|(?:first|second|third|fourth|last) quarter)(?:\s+of)?\s+{_YEAR.format('qyear')}"
    rf"|{_day_pattern('day', _OF_YEAR)}|{_MONTH.format('month')}(?:\s+(?:of\s+)?{_YEAR.format('myear')})?"
    rf"|{_YEAR.format('year')})\b",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?P<word>over|above|more than|greater than|larger than|higher than|exceed(?:s|ed|ing)?|longer than|at least"
    r"|no less than|under|below|less than|lower than|smaller than|fewer than|shorter than|at most|up to|no more than)"
    r"\s+(?P<number>[$€£]?\s?\d[\d,]*(?:\.\d+)?)\s*(?P<scale>k|thousand|million|m|billion)?\b",
    re.IGNORECASE,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9}
_AT_LEAST, _AT_MOST = ("at least", "no less than"), ("at most", "up to", "no more than")
_BELOW = ("under", "below", "less", "lower", "smaller", "fewer", "shorter")

_AGGREGATES: tuple[tuple[Aggregate, str], ...] = (
    (
        "share",
        r"\b(?:share|percentage|percent|proportion|fraction) of\b|\bwhat (?:percentage|percent|share|proportion)\b",
    ),
    ("median", r"\bmedian\b"),
    ("average", r"\b(?:average|mean|on average)\b"),
    ("count", r"\bhow many\b|\b(?:total )?(?:number|count) of\b|^(?:please )?count\b"),
    ("sum", r"\b(?:total|sum|overall|altogether|combined|in total)\b|\bhow much\b"),
)  # fmt: skip
_MOST = r"most|highest|largest|biggest|greatest|maximum|max|top|best|latest|newest|longest|latest|highly"
_LEAST = r"fewest|lowest|smallest|least|minimum|min|cheapest|worst|earliest|oldest|shortest|first"
_SUPERLATIVE = re.compile(rf"\b(?:(?P<most>{_MOST})|(?P<least>{_LEAST}))\b", re.IGNORECASE)
#: The first and the last of days; asked for the day itself ("when"), or for what has that day.
_FIRST_OR_LAST = re.compile(
    r"\b(?:(?P<last>most recent(?:ly)?|latest|newest|last)|(?P<first>earliest|oldest|first))\b", re.IGNORECASE
)
_WHEN = re.compile(r"\W*(?:when\b|(?:on )?(?:what|which) (?:day|date)\b)", re.IGNORECASE)
_COUNTS = {
    name: number
    for number, name in enumerate("one two three four five six seven eight nine ten".split(), start=1)
}
_LIMIT = re.compile(
    rf"\b(?:(?:top|first|bottom|last|best|worst)\s+(?P<number>\d{{1,9}}|{'|'.join(_COUNTS)})"
    rf"|(?P<before>\d{{1,9}}|{'|'.join(_COUNTS)})\s+(?={_MOST}|{_LEAST}))\b",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"\b(?:by|per|(?:(?:for|in|at|of|on|to|from|with)\s+)?(?:each|every)|across|grouped by)\s+(?:the\s+)?$",
    re.IGNORECASE,
)
_ASKED = re.compile(r"\b(?:which|what|list|name|show)\s+(?:are\s+|is\s+)?(?:the\s+|all\s+)?$", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(?:not|except|excluding|without|other than|never|neither|nor|but)\b|n't\b", re.IGNORECASE
)
#: The last verb of a question for a share: what stands after it is the part.
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|comes?|came|goes|went|belongs?)\b(?!.*\b(?:is|are|was|were)\b)",
    re.IGNORECASE,
)
_WITHIN = re.compile(r"\b(?:in|at|on|for|during|among|within)\s+(?:the\s+)?$", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?:not|except|excluding|other than|outside)\s+(?:(?:in|from|to|by|for|of)\s+)?(?:the\s+)?$",
    re.IGNORECASE,
)
_LIST = re.compile(r"^(?:please )?(?:list|name|show|give|find)\b", re.IGNORECASE)
#: Words of questions that say nothing of a table.
_IDLE = frozenset(
    map(
        stem,
        "list show give find tell calculate compute please made make sold sell placed work working works there"
        " many much"
        " number total sum average mean amount us me came come value values different distinct unique each every per"
        " all ordered altogether overall combined made using via through out data table file sheet spreadsheet rows"
        " question answer go went goes come came happen happened occur exist belong take took taken often contain"
        " contained include included bring get got top most least with"
        " within together year month quarter among how what which who list did".split(),
    )
)
_NUMBER_WORDS = frozenset(_COUNTS)
#: Nouns for the records of any table; people, where it has a column of names.
_RECORD_NOUNS = frozenset(
    map(stem, "record records row rows entry entries item items line lines case cases".split())
)
_PEOPLE = frozenset(map(stem, "people person persons staff members".split()))
#: What people call a column, by a word of its header. The first that fits wins.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "revenue": ("revenue", "sales", "turnover", "total", "amount", "value"),
    "sales": ("sales", "revenue", "turnover", "total", "amount", "value"),
    "turnover": ("turnover", "revenue", "sales", "total", "amount"),
    "value": ("value", "total", "amount", "worth", "price"),
    "amount": ("amount", "total", "value"),
    "spend": ("spend", "spending", "cost", "amount", "total"),
    "spending": ("spending", "spend", "cost", "amount", "total"),
    "earn": ("salary", "pay", "wage", "income"),
    "pay": ("pay", "salary", "wage", "price", "amount"),
    "paid": ("pay", "salary", "wage", "price", "amount"),
    "expensive": ("price", "cost", "rate", "fee"),
    "cost": ("cost", "price", "amount"),
    "cheapest": ("price", "cost", "rate", "fee"),
    "units": ("units", "quantity", "qty", "pieces"),
    "quantity": ("quantity", "qty", "units", "pieces"),
    "stay": ("nights", "days"),
    "old": ("age", "birth"),
    "oldest": ("age", "birth", "date"),
    "newest": ("date",),
    "latest": ("date",),
    "earliest": ("date",),
    "joined": ("hire", "joined", "start"),
    "started": ("start", "hire"),
    "role": ("role", "title", "position", "job"),
    "town": ("city", "town"),
    "nation": ("country",),
    "team": ("team", "department"),
}  # fmt: skip
_STEMMED_SYNONYMS = {stem(word): tuple(map(stem, words)) for word, words in _SYNONYMS.items()}
_PIECES = frozenset(map(stem, "quantity qty units pieces".split()))
_SOLD = re.compile(r"\b(?:sell|sold|buy|bought|ordered|shipped|delivered)\b", re.IGNORECASE)
#: Headers whose sums over rows mean something.
_ADDITIVE = frozenset(
    map(
        stem,
        "total amount revenue sales turnover value quantity qty units pieces cost spend nights guests hours"
        " passengers tons tonnes kilograms kg litres gallons barrels miles kilometres km".split(),
    )
)
_YES, _NO = frozenset({"yes", "true", "y"}), frozenset({"no", "false", "n"})
_ID = re.compile(r"\b(?:id|no|nr|number|code|key|ref|reference|sku)\b", re.IGNORECASE)
_PERSON_HEADER = re.compile(
    r"\b(?:name|person|employee|customer|client|player|author|manager|owner|member|tenant|captain|master|driver|"
    r"teacher|student|doctor|patient|director|artist|candidate|winner|seller|buyer|agent|contact)\b",
    re.IGNORECASE,
)


#: The doubt of a reading for a single cell to which no row leads.
_NO_ROW = "no row fits"


@dataclass(frozen=True, slots=True)
class TableReading:
    """A question as a query over one table. ``doubts`` say why it is not sure; ``words`` is the number of words of
    the question that found a place in the table."""

    query: TableQuery
    words: int
    doubts: tuple[str, ...] = ()

    @property
    def is_sure(self) -> bool:
        """Whether every word of the question is accounted for, and rows may fit."""
        return not self.doubts

    @property
    def is_understood(self) -> bool:
        """Whether every word of the question is accounted for, also where no row fits."""
        return self.doubts in {(), (_NO_ROW,)}

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.query.table.name

    @property
    def sql(self) -> str:
        """What the question means, in SQL."""
        return self.query.sql


@dataclass(frozen=True, slots=True)
class _Token:
    term: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Mention:
    """Tokens ``first`` to ``last`` (exclusive) of a question that name a column."""

    column: int
    first: int
    last: int


def _tokens(text: str) -> list[_Token]:
    return [_Token(stem(fold_name(match[0])), match[0], *match.span()) for match in _TOKEN.finditer(text)]


def _key(text: str) -> tuple[str, ...]:
    return tuple(token.term for token in _tokens(text))


class TableVocabulary:
    """Reads questions over one table (:class:`TableReading`)."""

    def __init__(self, arrays: TableArrays) -> None:
        self.arrays = arrays
        self.table = arrays.table
        #: Words of headers without units in brackets.
        self.headers = [_key(re.sub(r"\([^)]*\)", " ", column.header)) for column in self.table.columns]
        self.nouns = frozenset(_key(self.table.name)) | frozenset(
            word
            for place, words in enumerate(self.headers)
            if self.is_key(place)
            for word in words
            if word not in _ID_TERMS
        )

    @cached_property
    def cells(self) -> dict[tuple[str, ...], list[tuple[int, str]]]:
        """The cells of all columns of text by their words: (column, cell as it is spelled)."""
        index: dict[tuple[str, ...], list[tuple[int, str]]] = {}
        for place, column in enumerate(self.table.columns):
            if column.type == "text" and self.polarity(place) is None:
                for name in self.arrays.texts(place)[0]:
                    key = _key(name[:200])
                    if 0 < len(key) <= _MAX_WORDS:
                        index.setdefault(key, []).append((place, name))
        return index

    def polarity(self, place: int) -> tuple[str, str] | None:
        """Return the cells for yes and no of a column that has no others."""
        if self.table.columns[place].type != "text":
            return None
        names = self.arrays.texts(place)[0]
        folded = {fold_name(name): name for name in names}
        if not folded or not folded.keys() <= (_YES | _NO) or len(folded) < 2:
            return None
        yes = next((name for word, name in folded.items() if word in _YES), "")
        no = next((name for word, name in folded.items() if word in _NO), "")
        return (yes, no) if yes and no else None

    def is_key(self, place: int) -> bool:
        """Return whether no two rows have the same cell in a column that is called an id or stands first."""
        column = self.table.columns[place]
        if not (place == 0 or _ID.search(column.header)) or column.type == "date":
            return False
        cells = [row.cells[place] for row in self.table.rows]
        return len(set(cells)) == len(cells)

    def is_number(self, place: int) -> bool:
        """Return whether a column has numbers to compute with, not ids."""
        return self.table.columns[place].type == "number" and not (
            self.is_key(place) or _ID.search(self.table.columns[place].header)
        )

    def read(self, question: str) -> TableReading | None:
        """Return the reading of a question, None where nothing in it fits the table."""
        return _QuestionReader(self, " ".join(question.split())).read()


#: Words within headers that mean nothing alone.
_JOINERS = frozenset({"per", "by", "of", "in", "and", "for", "to"})
_ID_TERMS = frozenset(map(stem, "id no nr number code key ref reference sku".split()))


@dataclass
class _QuestionReader:
    """The state of reading one question: which of its tokens have found their place."""

    source: TableVocabulary
    text: str
    used: set[int] = field(default_factory=set)
    doubts: list[str] = field(default_factory=list)
    conditions: list[tuple[Condition, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table: DataTable = self.source.table
        self.tokens = _tokens(self.text)
        self.words = 0

    def read(self) -> TableReading | None:
        headers = self._match_whole_headers()
        self._match_polarity()
        self._match_cells()
        mentions = [*headers, *self._match_header_words()]
        self._match_days(mentions)
        mentions = self._match_bounds(mentions)
        if not mentions and not self.conditions and not self._names_records():
            return None
        mentions.sort(key=lambda mention: mention.first)
        query = self._first_or_last(mentions) or self._build(mentions)
        if query is None:
            return None
        self._check_rest()
        return TableReading(query, self.words, tuple(self.doubts))

    # Finding the table's words in the question

    def _take(self, first: int, last: int) -> None:
        self.words += last - first
        self.used.update(range(first, last))

    def _free(self, first: int, last: int) -> bool:
        return not self.used.intersection(range(first, last))

    def _match_whole_headers(self) -> list[_Mention]:
        """Return mentions of columns by their whole header of two words or more."""
        mentions = []
        for place, words in sorted(enumerate(self.source.headers), key=lambda pair: -len(pair[1])):
            if len(words) < 2 or self.source.polarity(place) is not None:
                continue
            for first in range(len(self.tokens) - len(words) + 1):
                last = first + len(words)
                is_header = tuple(token.term for token in self.tokens[first:last]) == words
                if is_header and self._free(first, last):
                    self._take(first, last)
                    mentions.append(_Mention(place, first, last))
        return mentions

    def _match_polarity(self) -> None:
        """Take the headers of columns of yes and no as conditions: "cancelled", "not cancelled"."""
        for place, words in enumerate(self.source.headers):
            polarity = self.source.polarity(place)
            for first in range(len(self.tokens) - len(words) + 1 if polarity and words else 0):
                last = first + len(words)
                if not self._free(first, last) or tuple(t.term for t in self.tokens[first:last]) != words:
                    continue
                before = self.text[: self.tokens[first].start]
                negated = re.search(r"(?:\bnot|\bnon|n't)[\s-]*(?:been\s+)?$", before, re.IGNORECASE)
                assert polarity is not None
                if negated:
                    self._take_text(negated.start(), len(before))
                self.conditions.append((Condition(place, "=", (polarity[bool(negated)],)), first))
                self._take(first, last)
                break

    def _match_cells(self) -> None:
        """Take the cells that the question names as conditions, longest first."""
        known = set().union(*self.source.headers) if self.source.headers else set()
        for size in range(min(_MAX_WORDS, len(self.tokens)), 0, -1):
            for first in range(len(self.tokens) - size + 1):
                last = first + size
                terms = tuple(token.term for token in self.tokens[first:last])
                cells = self.source.cells.get(terms)
                if not cells or not self._free(first, last):
                    continue
                text = self.text[self.tokens[first].start : self.tokens[last - 1].end]
                if size == 1 and not self._is_cell(terms[0], text, cells, known):
                    continue
                self._add_cells(cells, first, last, text)

    def _is_cell(self, term: str, text: str, cells: Sequence[tuple[int, str]], known: set[str]) -> bool:
        """Return whether a single word is meant as a cell rather than as a word of the language or of a header."""
        is_word = is_stop_term(term) or text.isdigit() or term in known or term in _IDLE
        is_word = is_word or bool(_SUPERLATIVE.fullmatch(text)) or term in _STEMMED_SYNONYMS
        return not is_word or (
            any(cell == text for _, cell in cells) and not text.islower() and not text.isdigit()
        )

    def _add_cells(self, cells: Sequence[tuple[int, str]], first: int, last: int, text: str) -> None:
        folded = fold_name(text)
        forms = {folded, folded.removesuffix("s"), folded.removesuffix("es"), f"{folded}s"}
        # "Engineer" rather than "Engineering" for engineers: both have the same stem.
        cells = [(place, cell) for place, cell in cells if fold_name(cell) in forms] or cells
        columns = list(dict.fromkeys(place for place, _ in cells))
        if len(columns) > 1:
            near = [place for place in columns if self._is_named_near(place, first, last)]
            if len(near) != 1:
                names = " and ".join(f"'{self.table.columns[place].header}'" for place in columns)
                self.doubts.append(f"'{text}' is in the columns {names}")
            columns = near or columns
        place = columns[0]
        spellings = tuple(cell for column, cell in cells if column == place)
        before = self.text[: self.tokens[first].start]
        negated = _NEGATED.search(before)
        if negated:
            self._take_text(negated.start(), len(before))
        operator: Operator = "<>" if negated else "="
        same = next(
            (n for n, (condition, _) in enumerate(self.conditions)
             if condition.column == place and condition.operator == operator),
            None,
        )  # fmt: skip
        if same is None:
            self.conditions.append((Condition(place, operator, spellings), first))
        else:  # Norway and Sweden: either
            condition, start = self.conditions[same]
            self.conditions[same] = (replace(condition, values=(*condition.values, *spellings)), start)
        self._take(first, last)

    def _is_named_near(self, place: int, first: int, last: int) -> bool:
        words = set(self.source.headers[place])
        around = self.tokens[max(first - 3, 0) : first] + self.tokens[last : last + 2]
        return any(token.term in words for token in around)

    def _take_text(self, start: int, end: int) -> None:
        for number, token in enumerate(self.tokens):
            if start <= token.start and token.end <= end:
                self.used.add(number)

    def _match_header_words(self) -> list[_Mention]:
        """Return mentions of columns by some words of their header, or by other words for it."""
        mentions: list[_Mention] = []
        nouns = {word: [n for n, words in enumerate(self.source.headers) if word in words]
                 for words in self.source.headers for word in words if word not in _JOINERS}  # fmt: skip
        first = 0
        while first < len(self.tokens):
            token = self.tokens[first]
            columns = nouns.get(token.term, []) if not self._is_operation(first) else []
            last = first + 1
            while columns and last < len(self.tokens) and last not in self.used:
                both = [place for place in columns if self.tokens[last].term in self.source.headers[place]]
                if not both or self.tokens[last].term in _JOINERS or is_stop_term(self.tokens[last].term):
                    break
                columns, last = both, last + 1
            if first in self.used or is_stop_term(token.term):
                first += 1
                continue
            if not columns and last == first + 1:
                columns = self._columns_by_synonym(token)
            columns = self._prefer(columns, self.tokens[first:last])
            if len(columns) == 1 and not self._is_idle_noun(columns[0], first, last):
                self._take(first, last)
                mentions.append(_Mention(columns[0], first, last))
            first = last
        return mentions

    def _is_operation(self, number: int) -> bool:
        """Return whether a token is a word of an operation ("total", "number of") before another noun."""
        text = self.tokens[number].text.lower()
        following = self.tokens[number + 1].text.lower() if number + 1 < len(self.tokens) else ""
        is_word = text in {
            "total",
            "average",
            "sum",
            "mean",
            "median",
            "maximum",
            "minimum",
            "most",
            "number",
            "count",
        }
        return (
            is_word
            and bool(following)
            and following not in {"in", "for", "by", "per", "between", "from", "over"}
        )

    def _is_idle_noun(self, place: int, first: int, last: int) -> bool:
        """Return whether a word that a key column's header has names the records: "orders" beside "Order ID"."""
        if _ASKED.search(self.text[: self.tokens[first].start]):
            return False  # "which department"
        return (
            self.source.is_key(place) and last - first == 1 and self.tokens[first].term in self.source.nouns
        )

    def _columns_by_synonym(self, token: _Token) -> list[int]:
        for word in _STEMMED_SYNONYMS.get(token.term, ()):
            columns = [place for place, words in enumerate(self.source.headers) if word in words]
            if columns:
                return columns
        return []

    def _prefer(self, columns: list[int], tokens: Sequence[_Token]) -> list[int]:
        """Return the columns that a word most likely means: that of a condition, one that is no key, a number."""
        if len(columns) < 2:
            return columns
        terms = tuple(token.term for token in tokens)
        if whole := [place for place in columns if self.source.headers[place] == terms]:
            return whole[:1]
        conditioned = [
            place for place in columns if any(condition.column == place for condition, _ in self.conditions)
        ]
        if len(conditioned) == 1:
            return conditioned
        columns = [place for place in columns if not self.source.is_key(place)] or columns
        # "order" beside "Order ID", "Order Date", "Order Total" names the records, not a column.
        if len(tokens) == 1 and tokens[0].term in self.source.nouns:
            return []
        heads = [place for place in columns if self.source.headers[place][-1:] == (tokens[-1].term,)]
        return heads if len(heads) == 1 else columns

    def _names_records(self) -> bool:
        return any(token.term in self.source.nouns | _RECORD_NOUNS for token in self.tokens)

    # Days and bounds

    def _day_column(self, mentions: Sequence[_Mention]) -> int | None:
        days = [place for place, column in enumerate(self.table.columns) if column.type == "date"]
        named = [mention.column for mention in mentions if mention.column in days]
        return named[0] if named else days[0] if len(days) == 1 else None

    def _match_days(self, mentions: Sequence[_Mention]) -> None:
        """Take years, months, quarters and days as conditions on the column of days, or of years."""
        spans: list[tuple[int, int]] = []
        for pattern in (_BETWEEN, _PERIOD):
            for match in pattern.finditer(self.text):
                start, end = match.span()
                numbers = [
                    n for n, token in enumerate(self.tokens) if start <= token.start and token.end <= end
                ]
                if self.used.intersection(numbers) or any(
                    start < last and first < end for first, last in spans
                ):
                    continue
                if match.re is _PERIOD and match["month"] and not match["myear"] and match["month"].islower():
                    continue  # "may" and "march" are words
                try:
                    bounds = _read_between(match) if pattern is _BETWEEN else _read_period(match)
                except ValueError:
                    continue  # 30 February is no day: its words are not understood
                spans.append((start, end))
                self._add_days(match, bounds, mentions)
                self.words += len(numbers)
                self.used.update(numbers)

    def _add_days(
        self, match: re.Match[str], bounds: tuple[date, date] | None, mentions: Sequence[_Mention]
    ) -> None:
        place = self._day_column(mentions)
        if place is None:
            self._add_years(match)
            return
        relation = _relation(match)
        if bounds is None:
            if relation:
                self.doubts.append(f"of which year '{match[0].strip()}' is not clear")
            month = month_number(match["month"])
            self.conditions.append((Condition(place, "month", (float(month),)), -1))
            return
        first, last = bounds
        after = last + timedelta(days=1)
        conditions: dict[str, tuple[tuple[Operator, date], ...]] = {
            "after": ((">=", after),),
            "since": ((">=", first),),
            "before": (("<", first),),
            "until": (("<", after),),
        }
        for operator, day in conditions.get(relation, ((">=", first), ("<", after))):
            self.conditions.append((Condition(place, operator, (day,)), -1))

    def _add_years(self, match: re.Match[str]) -> None:
        """Take a year as the cell of a column of years."""
        years = [
            place
            for place, words in enumerate(self.source.headers)
            if stem("year") in words and self.table.columns[place].type == "number"
        ]
        groups = match.groupdict()
        year, last = groups.get("year") or groups.get("y3"), groups.get("y4")
        if len(years) != 1 or year is None:
            self.doubts.append(f"which column has the time '{match[0].strip()}' is not clear")
            return
        operators: dict[str, Operator] = {"after": ">", "since": ">=", "before": "<", "until": "<="}
        if last:
            self.conditions.append((Condition(years[0], ">=", (float(year),)), -1))
            self.conditions.append((Condition(years[0], "<=", (float(last),)), -1))
        else:
            self.conditions.append(
                (Condition(years[0], operators.get(_relation(match), "="), (float(year),)), -1)
            )

    def _match_bounds(self, mentions: list[_Mention]) -> list[_Mention]:
        """Take "over 500" and "more than 3 nights" as conditions; return the mentions that no bound is of."""
        rest = list(mentions)
        for match in _BOUND.finditer(self.text):
            numbers = [
                n for n, t in enumerate(self.tokens) if match.start() <= t.start and t.end <= match.end()
            ]
            if self.used.intersection(numbers):
                continue
            value = (read_cell(match["number"]).number or 0.0) * _SCALES.get(
                (match["scale"] or "").lower(), 1.0
            )
            word = " ".join(match["word"].lower().split())
            operator: Operator = (
                ">=" if word in _AT_LEAST else "<=" if word in _AT_MOST
                else "<" if word.split()[0] in _BELOW else ">"
            )  # fmt: skip
            place = self._bounded_column(rest, numbers[0], numbers[-1])
            if place is None:
                self.doubts.append(f"'{match[0]}': of which column is not clear")
            else:
                self.conditions.append((Condition(place, operator, (value,)), numbers[0]))
                near = [
                    m
                    for m in rest
                    if m.column == place and (m.last == numbers[0] or m.first == numbers[-1] + 1)
                ]
                rest = [mention for mention in rest if mention not in near]
            self.words += len(numbers)
            self.used.update(numbers)
        return rest

    def _bounded_column(self, mentions: Sequence[_Mention], first: int, last: int) -> int | None:
        """Return the column of a bound: the one named right after or before it, else the only column of sums."""
        for mention in sorted(
            mentions, key=lambda mention: min(abs(mention.first - last), abs(first - mention.last))
        ):
            gap = mention.first - last if mention.first > last else first - mention.last
            if self.source.is_number(mention.column) and gap <= 2:
                return mention.column
        return self._only_measure()

    def _only_measure(self) -> int | None:
        """Return the column that a question means that names none: the only one of sums of money."""
        numbers = [place for place in range(len(self.table.columns)) if self.source.is_number(place)]
        for word in ("total", "revenue", "sales", "turnover", "amount", "value"):
            named = [place for place in numbers if stem(word) in self.source.headers[place]]
            if len(named) == 1:
                return named[0]
        return numbers[0] if len(numbers) == 1 else None

    # What is asked

    def _build(self, mentions: list[_Mention]) -> TableQuery | None:
        aggregate: Aggregate | None = None
        for name, form in _AGGREGATES:
            if match := re.search(form, self.text, re.IGNORECASE):
                aggregate = name
                self._take_text(*match.span())
                break
        limit = self._limit()
        superlative = self._superlative()
        group = next((m for m in mentions if self._stands_after(m, _GROUP)), None)
        conditioned = {condition.column for condition, _ in self.conditions}
        # The noun of a cell ("the Bergen office") and the verb of a day ("hired after 2019") say no more.
        others = [
            m for m in mentions if m is not group and not (m.column in conditioned and not self._is_asked(m))
        ]
        others = list({mention.column: mention for mention in reversed(others)}.values())[::-1]
        measures = [m for m in others if self.source.is_number(m.column)]
        labels = [m for m in others if not self.source.is_number(m.column)]
        conditions = tuple(condition for condition, _ in self.conditions)
        query = TableQuery(self.table, aggregate or "values", conditions=conditions)
        if aggregate == "share":
            return self._share(query, measures, labels)
        if group is not None and self.source.is_number(group.column) and (limit or superlative):
            measures, group = [group], None  # "top 3 products by revenue"
        if group is not None:
            query = replace(query, group=group.column)
        if superlative is not None:
            self._take_text(*superlative.span())
        if aggregate == "count" and not (superlative and labels):
            return self._count(query, measures, labels)
        if limit is not None or (superlative is not None and (labels or self._asks_who())):
            return self._rank(query, aggregate, measures, labels, limit, superlative)
        if superlative is not None and measures:
            if re.match(r"\W*(?:which|who)\b", self.text, re.IGNORECASE):
                self.doubts.append("whose name is asked for is not clear")
            query = replace(query, aggregate="maximum" if superlative["most"] else "minimum")
            return self._of_measure(query, measures, labels)
        if aggregate in {"sum", "average", "median"}:
            return self._of_measure(query, measures, labels)
        return self._lookup(query, measures, labels)

    def _first_or_last(self, mentions: Sequence[_Mention]) -> TableQuery | None:
        """Read "when was the first order placed" and "who was hired most recently", by the column of days."""
        used = [self.tokens[number].start for number in self.used]
        matches = _FIRST_OR_LAST.finditer(self.text)
        match = next((match for match in matches if match.start() not in used), None)
        day = self._day_column(mentions)
        asks_day = _WHEN.match(self.text)
        if match is None or day is None or _LIMIT.search(self.text):
            return None
        others = [mention for mention in mentions if mention.column != day]
        labels = [mention for mention in others if self._is_asked(mention)]
        if not asks_day and not (self._asks_who() or labels or self._asks_record(match)):
            return None
        if any(self.source.is_number(mention.column) for mention in others):
            return None
        name = labels[0].column if labels else self._name_column()
        if name is None and not asks_day:
            return None
        query = TableQuery(self.table, "values", day, tuple(condition for condition, _ in self.conditions))
        self._take_text(*match.span())
        self._take_records()
        if asks_day:
            self._take_text(*asks_day.span())
            self._doubt_others(others)
            return replace(query, aggregate="maximum" if match["last"] else "minimum")
        self._doubt_others([mention for mention in others if mention not in labels[:1]])
        return replace(query, group=name, descending=bool(match["last"]), limit=1, names_only=True)

    def _asks_record(self, superlative: re.Match[str]) -> bool:
        """Return whether a question asks which record is the first or last: "what was the first voyage"."""
        after = [token for token in self.tokens if token.start >= superlative.end()]
        asked = _ASKED.search(self.text[: superlative.start()]) or re.match(
            r"\W*(?:which|what) (?:is|was) the $", self.text[: superlative.start()], re.IGNORECASE
        )
        return bool(asked and after) and after[0].term in self.source.nouns | _RECORD_NOUNS

    def _stands_after(self, mention: _Mention, form: re.Pattern[str]) -> bool:
        before = self.text[: self.tokens[mention.first].start]
        match = form.search(before)
        if match is None:
            return False
        self._take_text(match.start(), len(before))
        return True

    def _is_asked(self, mention: _Mention) -> bool:
        return bool(_ASKED.search(self.text[: self.tokens[mention.first].start]))

    def _asks_who(self) -> bool:
        return re.match(r"\s*who\b", self.text, re.IGNORECASE) is not None

    def _superlative(self) -> re.Match[str] | None:
        """Return the first superlative that is not part of a condition, such as "first" of "the first quarter"."""
        used = [self.tokens[number].start for number in self.used]
        matches = _SUPERLATIVE.finditer(self.text)
        return next((match for match in matches if match.start() not in used), None)

    def _limit(self) -> int | None:
        match = _LIMIT.search(self.text)
        if match is None:
            return None
        self._take_text(*match.span())
        number = (match["number"] or match["before"]).lower()
        return _COUNTS.get(number) or int(number)

    def _doubt_others(self, mentions: Iterable[_Mention]) -> None:
        for mention in mentions:
            self.doubts.append(f"what '{self.table.columns[mention.column].header}' is for is not clear")

    def _share(
        self, query: TableQuery, measures: list[_Mention], labels: list[_Mention]
    ) -> TableQuery | None:
        """Read "what share of bookings in Oslo was cancelled": what stands after the verb is the part."""
        verb = _VERB.search(self.text)
        start = verb.end() if verb else 0
        if verb is not None and self.text[: verb.start()].strip().lower() in {"what", "which"}:
            start = 0  # "what is the share of ..."
        after = [(c, n) for c, n in self.conditions if n >= 0 and start and self.tokens[n].start >= start]
        # "were returned in Germany": of those in Germany.
        bare = [c for c, n in after if not _WITHIN.search(self.text[: self.tokens[n].start])]
        part = tuple(bare if len(after) > 1 and bare else [c for c, _ in after])
        whole = tuple(c for c in query.conditions if c not in part)
        if not part and len(whole) == 1:  # "the share of orders from Norway", of all orders
            part, whole = whole, ()
        if not part:
            self.doubts.append("which part is asked for is not clear")
            return replace(query, part=whole) if whole else None
        self._doubt_others([*measures[1:], *labels])
        return replace(query, column=measures[0].column if measures else None, conditions=whole, part=part)

    def _count(
        self, query: TableQuery, measures: list[_Mention], labels: list[_Mention]
    ) -> TableQuery | None:
        """Read "how many ..." as a count of records, of distinct names, or as a sum of what is counted."""
        if measures:
            self._doubt_others([*measures[1:], *labels])
            return replace(query, aggregate="sum", column=measures[0].column)
        if labels:
            self._doubt_others(labels[1:])
            if self.source.is_key(labels[0].column):
                return query
            return replace(query, aggregate="distinct", column=labels[0].column)
        records = self._take_records()
        if not records:
            pieces = [n for n, words in enumerate(self.source.headers) if _PIECES.intersection(words[-1:])]
            if len(pieces) == 1 and _SOLD.search(self.text):
                return replace(query, aggregate="sum", column=pieces[0])
        if not records and not any(n >= 0 for _, n in self.conditions):
            self.doubts.append("what is counted is not clear")
        return query

    def _take_records(self) -> bool:
        """Take the nouns for the records of the table; return whether there is one."""
        nouns = self.source.nouns | _RECORD_NOUNS
        if any(_PERSON_HEADER.search(column.header) for column in self.table.columns):
            nouns |= _PEOPLE
        numbers = [n for n, token in enumerate(self.tokens) if token.term in nouns and n not in self.used]
        for number in numbers:
            self._take(number, number + 1)
        return bool(numbers)

    def _of_measure(
        self, query: TableQuery, measures: list[_Mention], labels: list[_Mention]
    ) -> TableQuery | None:
        if not measures:
            place = self._only_measure()
            if place is None or not self._names_records():
                self.doubts.append("which column of numbers is meant is not clear")
                return None if place is None else replace(query, column=place)
            column = place
        else:
            column = measures[0].column
        self._take_records()
        self._doubt_others([*measures[1:], *labels])
        return replace(query, column=column)

    def _rank(
        self,
        query: TableQuery,
        aggregate: Aggregate | None,
        measures: list[_Mention],
        labels: list[_Mention],
        limit: int | None,
        superlative: re.Match[str] | None,
    ) -> TableQuery | None:
        """Read "which country has the most orders", "top 3 products by revenue", "who has the highest salary"."""
        descending = superlative is None or bool(superlative["most"])
        if limit and re.search(r"\b(?:bottom|worst|last)\b", self.text, re.IGNORECASE):
            descending = False
        name = labels[0].column if labels else query.group
        records = self._take_records()
        if name is None:
            name = self._name_column()
        if name is None:
            return None
        self._doubt_others([*measures[1:], *labels[1:]])
        column = measures[0].column if measures else None
        query = replace(query, descending=descending, limit=limit or 1, group=name, names_only=limit is None)
        is_unique = len({row.cells[name] for row in self.table.rows}) == len(self.table.rows)
        if aggregate in {"average", "median", "sum"} and column is not None:
            return replace(query, aggregate=aggregate, column=column)
        if column is None:
            if not records:
                self.doubts.append("what is compared is not clear")
            return replace(query, aggregate="count")
        additive = bool(_ADDITIVE.intersection(self.source.headers[column]))
        if is_unique or not additive:
            if not is_unique and (limit or 1) > 1:
                header = self.table.columns[name].header
                self.doubts.append(f"how the rows of one '{header}' are taken together is not clear")
            return replace(query, aggregate="values", column=column)
        return replace(query, aggregate="sum", column=column)

    def _name_column(self) -> int | None:
        headers = [column.header for column in self.table.columns]
        texts = [n for n, column in enumerate(self.table.columns) if column.type == "text"]
        names = [n for n in texts if _PERSON_HEADER.search(headers[n]) and not _ID.search(headers[n])]
        keys = [n for n in texts if self.source.is_key(n)]
        if self._asks_who() and not names:
            self.doubts.append("which column has the people is not clear")
        return next(iter([*names, *keys]), None)

    def _lookup(
        self, query: TableQuery, measures: list[_Mention], labels: list[_Mention]
    ) -> TableQuery | None:
        """Read "what is the budget of the Research department": one row, one column."""
        asked = [*measures, *labels]
        if not asked or not query.conditions or query.group is not None:
            return None
        self._take_records()
        self._doubt_others(asked[1:])
        query = replace(query, aggregate="values", column=asked[0].column)
        cells = {row.value for row in self.source.arrays.run(query)}
        is_list = _LIST.search(self.text) is not None and asked[0].column not in {m.column for m in measures}
        if not cells:
            self.doubts.append(_NO_ROW)
        elif len(cells) > 1 and not is_list:
            self.doubts.append(f"{len(cells):,} different values fit")
        return query

    def _check_rest(self) -> None:
        """Doubt a reading that leaves words of the question over."""
        self._take_records()
        rest = []
        for number, token in enumerate(self.tokens):
            if number in self.used or token.text.lower() in _NUMBER_WORDS:
                continue
            if _NEGATION.fullmatch(token.text) or (not is_stop_term(token.term) and token.term not in _IDLE):
                rest.append(token.text)
        if rest:
            self.doubts.append(f"not understood: {', '.join(rest)}")
        elif re.search(r"n't\b|\bper\b", self.text) and not any(
            self.tokens[n].text in {"t", "per"} for n in self.used
        ):
            self.doubts.append("not understood: a word like 'not' or 'per'")


def _relation(match: re.Match[str]) -> str:
    """Return what a match asks of its period: "after", "since", "before", "until", or "" for within it."""
    words = (match.groupdict().get("relation") or "").lower().split()
    return _RELATIONS.get(" ".join(words), "")


def _month_end(year: int, month: int) -> date:
    return date(year, month, monthrange(year, month)[1])


def _read_day(text: str, year: int = 0) -> date:
    """Return a day, of ``year`` where none is written. Raises ValueError for a day that no calendar has."""
    if "-" in text:
        return date.fromisoformat(text)
    day, *written = (int(number) for number in re.findall(r"\d+", text))
    month = re.search(MONTH_PATTERN, text, re.IGNORECASE)
    assert month is not None
    return date(written[0] if written else year, month_number(month[0]), day)


def _read_between(match: re.Match[str]) -> tuple[date, date]:
    """Return the first and last day of a range. Raises ValueError for a day that no calendar has."""
    if match["d1"]:
        last = _read_day(match["d2"])
        return _read_day(match["d1"], last.year), last
    if match["y3"]:
        return date(int(match["y3"]), 1, 1), date(int(match["y4"]), 12, 31)
    last_year = int(match["y2"])
    return (
        date(int(match["y1"] or last_year), month_number(match["m1"]), 1),
        _month_end(last_year, month_number(match["m2"])),
    )


def _read_period(match: re.Match[str]) -> tuple[date, date] | None:
    """Return the first and last day of a period, None for a month of any year.

    Raises ValueError for a day that no calendar has.
    """
    if match["quarter"]:
        quarter, year = _QUARTERS[match["quarter"].lower().split()[0]], int(match["qyear"])
        return date(year, 3 * quarter - 2, 1), _month_end(year, 3 * quarter)
    if match["day"]:
        return (_read_day(match["day"]),) * 2
    if match["month"]:
        if not match["myear"]:
            return None
        year, month = int(match["myear"]), month_number(match["month"])
        return date(year, month, 1), _month_end(year, month)
    return date(int(match["year"]), 1, 1), date(int(match["year"]), 12, 31)
