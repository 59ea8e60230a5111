"""Texts that come from other parts of clew and are shown in the app: errors with their hints, headings, names of
languages. They are English there, where the command line and the API show them, and are translated on a page.

``texts.txt`` lists them; a text with varying parts has them as ``%(name)s``. What is not listed is shown in English:
what is wrong inside a file, and what a model, a system or another machine says.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from clew.app.web.pages.language import ENGLISH, current_language, gettext

#: Characters of the longest text with varying parts that is looked up; an answer is longer.
_MAX_TEXT = 400


def known_texts() -> list[str]:
    """Return the texts that are translated, with their varying parts as ``%(name)s``."""
    lines = (Path(__file__).parent / "texts.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the texts that have varying parts, with what matches them; those with most fixed words come first."""
    texts = sorted((text for text in known_texts() if "%(" in text), key=len, reverse=True)
    return tuple(
        (text, re.compile(re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.+)", re.escape(text)), re.S)) for text in texts
    )


def translate_text(text: str) -> str:
    """Return an error, a hint or another text of clew in the language of the page; as it is where none is known.

    >>> translate_text("there is no folder /tmp/x"), translate_text("disk I/O error")
    ('there is no folder /tmp/x', 'disk I/O error')
    """
    if "%" in text or not text or current_language() is ENGLISH:
        return text
    translated = gettext(text)
    if translated != text:
        return translated
    for pattern, expression in _patterns() if len(text) < _MAX_TEXT else ():
        if (match := expression.fullmatch(text)) is not None:
            return gettext(pattern, **match.groupdict())
    return text
