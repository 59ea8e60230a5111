"""Texts that come from other parts of clew and are shown in the app: errors with their hints, headings, names of
languages. They are English there, where the command line and the API show them, and are translated on a page.

A text with varying parts has them as ``%(name)s``. What is not listed here is shown in English: what is wrong inside
a file, and what a model, a system or another machine says.
"""

from __future__ import annotations

import re
from functools import lru_cache

from clew.app.web.pages.language import ENGLISH, current_language, gettext, mark

#: Answers and headings of answers.
_ANSWERS = (
    mark("Not found in these documents."),
    mark("Not answered: it was stopped before there was an answer. The evidence found so far is below."),
    mark("Meets everything, with exact names"),
    mark("Meets everything, with near names"),
    mark("Near misses"),
    mark("Others, which only fill the list up"),
)
#: Names of languages, of which most documents are written in one.
_LANGUAGES = (
    mark("English"), mark("German"), mark("French"), mark("Spanish"), mark("Italian"), mark("Portuguese"),
    mark("Dutch"), mark("Polish"), mark("Russian"), mark("Turkish"), mark("Arabic"), mark("Chinese"),
    mark("Japanese"), mark("Korean"), mark("unknown"), mark("about 100 languages"),
)  # fmt: skip
#: Errors, and what to do about them.
_PROBLEMS = (
    mark("the question is empty"),
    mark("Say what you want to know"),
    mark("the question has more than %(limit)s characters"),
    mark("Ask for less at a time"),
    mark("the form has more than %(limit)s fields"),
    mark("Choose fewer documents"),
    mark("the address or the form makes no sense"),
    mark("there is nothing at this address"),
    mark("there is no page at this address"),
    mark("The question or document may have been deleted"),
    mark("this question has no answer yet"),
    mark("no question '%(id)s'"),
    mark("It may have been forgotten"),
    mark("no knowledge base named '%(name)s'"),
    mark("something went wrong in the server"),
    mark("Its log says what"),
    mark("this address does not take that method"),
    mark("the request makes no sense"),
    mark("the request broke off"),
    mark("more was sent than a request may hold"),
    mark("Send less at a time"),
    mark("Try again"),
    mark("Try again in %(seconds)s s"),
    mark("It needs a language model, which whoever runs this server can set"),
    mark("'%(method)s' needs a language model and none is set"),
    mark("'focus' needs a language model to write the question as typed triples, and none is set"),
    mark("'chain' needs a language model to write the question as triples, and none is set"),
    mark("%(number)s questions are being answered or wait; more are not taken on"),
    mark("%(number)s uploaded files wait to be read; more are not taken on"),
    mark("documents are being added to this project"),
    mark("'%(name)s' has been read and is being made ready"),
    mark("too many pages are being drawn"),
    mark("the server is being shut down"),
    mark("only the person who runs this server can do that, on the machine where it runs"),
    mark("this server is read-only: documents and graphs cannot be changed"),
    mark("there is a graph named '%(name)s'"),
    mark("Remove it first, or give this one another name"),
    mark("the upload is not whole"),
    mark("more than %(limit)s files were sent at a time"),
    mark("Send it with the next ones"),
    mark("it is larger than %(size)s"),
    mark("is larger than %(size)s"),
    mark("it holds nothing"),
    mark("is empty"),
    mark("holds no text"),
    mark("is encrypted"),
    mark("Save it without a password and add that"),
    mark("is protected against reading (DRM)"),
    mark("is binary data, not text"),
    mark("is %(kind)s, which is not supported"),
    mark("is an old Microsoft Office file, which is not supported"),
    mark("is damaged: it is cut off"),
    mark("cannot be opened (%(reason)s)"),
    mark("no text on any of its %(pages)s pages; it looks scanned"),
    mark("no text is recognised in it"),
    mark("no text on %(pages)s. To read text in pictures: %(command)s"),
    mark("pictures are left out (%(number)s). To read text in pictures: %(command)s"),
    mark("To read text in pictures: %(command)s, or recognise its text into a PDF and add that"),
    mark("To read text in pictures: %(command)s, or run it through text recognition (OCR) first"),
    mark("the parser took longer than %(seconds)s seconds"),
    mark("its site does not allow programs to read it (robots.txt)"),
    mark("%(host)s is on this machine or a private network (%(address)s)"),
    mark("%(host)s cannot be read: %(reason)s"),
    mark("'%(address)s' is no address of a page"),
    mark("Such as %(example)s"),
    mark("'%(path)s' is no whole path"),
    mark("there is no folder %(folder)s"),
    mark("%(folder)s is a file"),
    mark("%(folder)s is a folder of clew itself"),
    mark("%(place)s is a source of this project already"),
    mark("the base cannot be written to: %(reason)s"),
    mark("Is the disk full?"),
    mark("Make room on the disk and try again; nothing that was stored is lost"),
    mark("the name of a project has 1 to %(limit)s characters"),
    mark("the sample documents are not installed"),
    mark("a grid has at most %(limit)s questions"),
    mark("this grid is being answered: stop it first"),
    mark("the service refuses this key"),
    mark("Is it complete, and for this service?"),
    mark("%(address)s cannot be reached"),
    mark("Is the address right?"),
    mark("this model was not chosen here"),
    mark("stays on this machine (%(address)s)"),
    mark("stays on this machine"),
    mark("sent to %(address)s"),
)


#: Characters of the longest text with varying parts that is looked up; an answer is longer.
_MAX_TEXT = 400


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return the texts that have varying parts, with what matches them; those with most fixed words come first."""
    texts = sorted((text for text in _PROBLEMS if "%(" in text), key=len, reverse=True)
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
