"""The language of a page: the messages of the app, numbers and dates in it.

The messages are gettext's: English texts in templates, scripts and Python are the keys, and ``words/de.po`` and its
like hold the translations (GNU gettext manual, section 10.1, "The Format of PO Files"). A message that is missing
there is shown in English. The standard library's :class:`gettext.GNUTranslations` looks them up.

A message names what is put into it: ``gettext("page %(page)s", page=3)``. Whole numbers are written as the language
does.
"""

from __future__ import annotations

import gettext as standard
import json
import re
import struct
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from io import BytesIO
from pathlib import Path

#: The folder of the catalogues.
WORDS = Path(__file__).parent / "words"
#: The cookie with the language that a browser was set to.
LANGUAGE_COOKIE = "clew_language"
#: Between the context of a message and its text, in a compiled catalogue.
_CONTEXT_MARK = "\x04"


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the app: ISO 639-1 code, its own name, direction of the script, and number format. Numbers with
    fewer than ``least_grouped`` digits are not grouped."""

    code: str
    name: str
    direction: str = "ltr"
    group: str = ","
    decimal: str = "."
    least_grouped: int = 4


#: The languages of the app. Digits are those of the documents (0 to 9) in Arabic, too: page numbers and figures of an
#: answer are compared with the page beside it.
LANGUAGES = {
    language.code: language
    for language in (
        Language("en", "English"),
        Language("de", "Deutsch", group=".", decimal=","),
        Language("es", "Español", group=".", decimal=",", least_grouped=5),
        Language("zh", "简体中文"),
        Language("ar", "العربية", "rtl"),
    )
}
ENGLISH = LANGUAGES["en"]
_CURRENT: ContextVar[Language] = ContextVar("language", default=ENGLISH)


def current_language() -> Language:
    """Return the language of the page that is being made; English where none is."""
    return _CURRENT.get()


def set_language(language: Language) -> None:
    """Make pages in a language from here on, within this request."""
    _CURRENT.set(language)


def choose_language(accepted: str, chosen: str = "") -> Language:
    """Return the language that was ``chosen`` by its code, else the one that a browser likes best of those that the
    app has; English where it likes none. ``accepted`` is its header Accept-Language (RFC 9110, section 12.5.4).

    >>> [choose_language(text).code for text in ("de-AT,de;q=0.9,en;q=0.8", "fr, ar;q=0.5, es;q=0.7", "zh-CN;q=0")]
    ['de', 'es', 'en']
    """
    if chosen in LANGUAGES:
        return LANGUAGES[chosen]
    ranked = []
    for place, part in enumerate(accepted.split(",")):
        tag, _, parameter = part.partition(";")
        weight = re.fullmatch(r"\s*q=([01](?:\.\d{0,3})?)\s*", parameter)
        ranked.append((-(float(weight[1]) if weight else 1.0), place, tag.strip().partition("-")[0].lower()))
    codes = [code for weight, _, code in sorted(ranked) if weight and code in LANGUAGES]
    return LANGUAGES[codes[0]] if codes else ENGLISH


@dataclass(frozen=True, slots=True)
class Message:
    """An entry of a catalogue: English text, English plural ("" for none), context, places of use, and one
    translation for each plural form of the language."""

    text: str
    plural: str = ""
    context: str = ""
    places: tuple[str, ...] = ()
    translations: tuple[str, ...] = field(default=(), compare=False)

    @property
    def key(self) -> str:
        """The text with its context, as a compiled catalogue has it."""
        return f"{self.context}{_CONTEXT_MARK}{self.text}" if self.context else self.text

    @property
    def is_translated(self) -> bool:
        """Whether all its forms have a translation."""
        return bool(self.translations) and all(self.translations)


def read_catalogue(text: str) -> Iterator[Message]:
    """Yield the messages of a ``.po`` file; the first, whose text is empty, is the header. Raises ValueError for a
    line that makes no sense."""
    parts: dict[str, str] = {}
    places: list[str] = []
    keyword = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#:"):
            places += line[2:].split()
        elif match := re.fullmatch(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?) )?(".*")', line):
            keyword = match[1] or keyword
            parts[keyword] = parts.get(keyword, "") + json.loads(match[2])
        elif line and not line.startswith("#"):
            raise ValueError(f"no line of a catalogue: {line}")
        elif not line and parts:
            forms = tuple(value for name, value in sorted(parts.items()) if name.startswith("msgstr"))
            yield Message(
                parts["msgid"], parts.get("msgid_plural", ""), parts.get("msgctxt", ""), tuple(places), forms
            )
            parts, places = {}, []


def catalogue_text(code: str) -> str:
    """Return the catalogue of a language as its file has it, "" for English."""
    return (WORDS / f"{code}.po").read_text("utf-8") if code != ENGLISH.code else ""


@lru_cache(maxsize=len(LANGUAGES))
def translations(code: str) -> standard.NullTranslations:
    """Return the messages of a language."""
    entries = {
        message.key + ("\0" + message.plural if message.plural else ""): "\0".join(message.translations)
        for message in read_catalogue(catalogue_text(code))
        if message.is_translated
    }
    return standard.GNUTranslations(BytesIO(_compile(entries))) if entries else standard.NullTranslations()


def _compile(entries: Mapping[str, str]) -> bytes:
    """Return messages in the form in which gettext reads them (GNU gettext manual, section 10.3)."""
    pairs = sorted((key.encode(), value.encode()) for key, value in entries.items())
    start = 28 + 16 * len(pairs)
    tables, texts = [], b""
    for column in (0, 1):
        for pair in pairs:
            tables += [len(pair[column]), start + len(texts)]
            texts += pair[column] + b"\0"
    head = (0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, start)
    return struct.pack(f"<{7 + len(tables)}I", *head, *tables) + texts


def gettext(message: str, **values: object) -> str:
    """Return a message in the language of the page, with ``values`` put into it."""
    return _fill(translations(current_language().code).gettext(message), values)


def pgettext(context: str, message: str, **values: object) -> str:
    """Return a message that has another meaning elsewhere; ``context`` tells the two apart."""
    return _fill(translations(current_language().code).pgettext(context, message), values)


def ngettext(singular: str, plural: str, number: int, **values: object) -> str:
    """Return a message in the form that a number asks for, which stands in it as ``%(num)s``."""
    text = translations(current_language().code).ngettext(singular, plural, number)
    return _fill(text, {"num": number} | values)


def mark(message: str) -> str:
    """Mark a message for translation; it is translated when it is shown."""
    return message


def _fill(text: str, values: Mapping[str, object]) -> str:
    return text % {
        name: format_integer(value) if type(value) is int else value for name, value in values.items()
    }


def format_integer(number: int) -> str:
    """Return a whole number as the language of the page writes it."""
    language = current_language()
    text = f"{number:,}"
    return (
        str(number) if len(str(abs(number))) < language.least_grouped else text.replace(",", language.group)
    )


def format_decimal(text: str) -> str:
    """Return a number with a decimal point as the language of the page writes it."""
    return text.replace(".", current_language().decimal)


#: What is counted on pages, by its noun in English.
COUNTS = {
    noun: (f"%(num)s {noun}", f"%(num)s {noun}s")
    for noun in (
        *"alternative call document fact file name neighbour node page passage question".split(),
        *("removed document", "sentence", "step", "table"),
    )
}


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, which is one of :data:`COUNTS`.

    >>> format_count(1, "page"), format_count(2000, "page"), format_count(0, "passage")
    ('1 page', '2,000 pages', '0 passages')
    """
    return ngettext(*COUNTS[noun], number)


_MONTHS = (
    mark("January"), mark("February"), mark("March"), mark("April"), mark("May"), mark("June"), mark("July"),
    mark("August"), mark("September"), mark("October"), mark("November"), mark("December"),
)  # fmt: skip
_WEEKDAYS = (
    mark("Monday"), mark("Tuesday"), mark("Wednesday"), mark("Thursday"), mark("Friday"), mark("Saturday"),
    mark("Sunday"),
)  # fmt: skip


def format_day(day: date) -> str:
    """Return a day of this year, such as "Monday 3 November"."""
    weekday, month = gettext(_WEEKDAYS[day.weekday()]), gettext(_MONTHS[day.month - 1])
    return gettext("%(weekday)s %(day)s %(month)s", weekday=weekday, day=day.day, month=month)


def format_month(day: date) -> str:
    """Return the month of a day, such as "November 2025"."""
    return gettext("%(month)s %(year)s", month=gettext(_MONTHS[day.month - 1]), year=str(day.year))


def format_moment(moment: datetime) -> str:
    """Return date and time, such as "3 November 2025, 14:05"."""
    month, time = gettext(_MONTHS[moment.month - 1]), f"{moment:%H:%M}"
    date_parts = {"day": moment.day, "month": month, "year": str(moment.year)}
    return gettext("%(day)s %(month)s %(year)s, %(time)s", **date_parts, time=time)


@lru_cache(maxsize=len(LANGUAGES))
def script_words(code: str) -> str:
    """Return the messages of the scripts in a language as a script of their own, which runs before them.

    The rule for plural forms is that of the catalogue: gettext's expressions are JavaScript, too. Scripts also show
    errors of the API, which is English; those that the catalogue knows and that have no varying parts are among the
    messages.
    """
    rule, words = "0", {}
    for message in read_catalogue(catalogue_text(code)):
        if not message.text:
            rule = re.search(r"plural=([\dn%&|=!<>?:() ]+);", message.translations[0])[1]  # type: ignore[index]
        elif message.is_translated and _is_for_scripts(message):
            words[message.text] = message.translations if message.plural else message.translations[0]
    form = f"(n) => Number({rule})"
    return f"globalThis.clewWords = {{ form: {form}, words: {json.dumps(words, ensure_ascii=False)} }};\n"


def _is_for_scripts(message: Message) -> bool:
    is_known_text = "texts.txt" in message.places and "%(" not in message.text
    return is_known_text or any(place.endswith(".js") for place in message.places)
