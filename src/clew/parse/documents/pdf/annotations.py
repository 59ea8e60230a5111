"""Words that lie on a PDF page without being part of its text: values of form fields, and typed-in notes.

A ticked box or button is the word ``[x]``. Sizes and places are estimated from the rectangle of the field.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pypdfium2.raw as raw

from clew.parse.documents.pdf.words import HIDDEN, Page, PageView, Rule, Word

_TEXTS = {raw.FPDF_FORMFIELD_TEXTFIELD, raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX}
_TICKS = {raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON}
_TICKED = "[x]"
#: A page has no more annotations that are read, and a value no more bytes.
_MAX_ANNOTATIONS, _MAX_BYTES = 5_000, 200_000
#: The size of letters in points where a field does not bound it; a letter is about half as wide.
_SIZE, _WIDTH = 10.0, 0.5
_UNSEEN = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW


def add_annotations(read: Page, page: Any) -> Page:
    """Return a page with the words that are filled in or typed onto it; ``page`` is that of pypdfium2."""
    added = list(_read_annotations(page, PageView.from_page(page).turn(read.quarters, *page.get_size())))
    words = tuple(_align(word, read.words) for word, reason in added if not reason)
    left_out = tuple((reason, word.text) for word, reason in added if reason)
    return replace(read, words=read.words + words, left_out=read.left_out + left_out) if added else read


def _align(word: Word, beside: Sequence[Word]) -> Word:
    """Return a word on the baseline of the page's words beside it, where there are some: its label's."""
    y = min((other.y for other in beside), key=lambda y: abs(y - word.y), default=word.y)
    return replace(word, y=y) if abs(y - word.y) < 0.6 * word.size else word


def _read_annotations(page: Any, view: PageView) -> Iterator[tuple[Word, str]]:
    """Yield the words of annotations, each with the reason why it is left out, "" for what is read."""
    form = page.formenv.raw if page.formenv else None
    for number in range(min(raw.FPDFPage_GetAnnotCount(page.raw), _MAX_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page.raw, number)
        if not annotation:
            continue
        try:
            text = _read_text(form, annotation)
            place = raw.FS_RECTF()
            if text.strip() and raw.FPDFAnnot_GetRect(annotation, ctypes.byref(place)):
                reason = HIDDEN if raw.FPDFAnnot_GetFlags(annotation) & _UNSEEN else ""
                box = view.map_box(place.left, place.bottom, place.right, place.top)
                yield from ((word, reason) for word in _lay_out(text, box))
        finally:
            raw.FPDFPage_CloseAnnot(annotation)


def _read_text(form: Any, annotation: Any) -> str:
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    if kind == raw.FPDF_ANNOT_FREETEXT:
        return _read_string(lambda *place: raw.FPDFAnnot_GetStringValue(annotation, b"Contents", *place))
    if kind != raw.FPDF_ANNOT_WIDGET or form is None:
        return ""
    field = raw.FPDFAnnot_GetFormFieldType(form, annotation)
    if field in _TICKS:
        return _TICKED if raw.FPDFAnnot_IsChecked(form, annotation) else ""
    if field not in _TEXTS:
        return ""
    return _read_string(lambda *place: raw.FPDFAnnot_GetFormFieldValue(form, annotation, *place))


def _read_string(get: Callable[..., int]) -> str:
    """Return the UTF-16 text that a function of pdfium writes to the place that it is given."""
    size = get(None, 0)
    if not 2 < size <= _MAX_BYTES:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    get(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").rstrip("\0")


def _lay_out(text: str, box: Rule) -> Iterator[Word]:
    """Yield the words of a text within a box, a line below the other from its top."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    size = max(min(_SIZE, 0.8 * (box[3] - box[1]) / len(lines)), 1.0)
    for number, line in enumerate(lines):
        x0 = box[0] + 1
        middle = (box[1] + box[3]) / 2 if len(lines) == 1 else box[1] + (number + 0.6) * 1.2 * size
        for word in line.split():
            x1 = x0 + _WIDTH * size * len(word)
            yield Word(word, x0, x1, middle + 0.35 * size, size, 0)
            x0 = x1 + _WIDTH * size
