"""Pages of a PDF as images."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray

from clew.core.errors import UnreadableFile
from clew.core.types import Box
from clew.parse.documents.files import open_file
from clew.parse.documents.pdf.recognition import PageTurn
from clew.parse.documents.pdf.words import Page, read_page

#: How far letters reach above and below the baseline, in font sizes.
_ASCENT, _DESCENT = 0.8, 0.22


@dataclass(frozen=True, slots=True)
class PageWord:
    """A word of a page with its rectangle in points from the page's top left."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page as PNG. ``width`` and ``height`` are the page's in points, the unit of :class:`clew.core.types.Box`;
    ``words`` are those of its text layer, in reading order, none for a scanned page."""

    png: bytes
    width: float
    height: float
    words: tuple[PageWord, ...] = ()


def render_page(path: Path, *, unit: str = "", page: int, scale: float, max_pixels: int) -> PageImage:
    """Return page ``page`` (from 1) at ``scale`` pixels per point, or at less to keep to ``max_pixels``.

    A reader of :class:`clew.parse.documents.pool.ParsePool`, which passes ``unit``. Raises UnreadableFile.
    """
    try:
        with open_file(path) as file, pdfium.PdfDocument(file) as document:
            pdf_page = document[page - 1]
            width, height = pdf_page.get_size()
            if not (0 < width < 1e6 and 0 < height < 1e6):
                raise UnreadableFile(f"page {page} has no sensible size")
            fitting = min(scale, (max_pixels / (width * height)) ** 0.5)
            bitmap = pdf_page.render(scale=fitting, rev_byteorder=True, may_draw_forms=True)
            words = _shown_words(read_page(pdf_page, page))
            return PageImage(encode_png(bitmap.to_numpy()[:, :, :3]), width, height, words)
    except (pdfium.PdfiumError, IndexError) as error:
        raise UnreadableFile(f"page {page} cannot be drawn ({error})") from error


def _shown_words(page: Page) -> tuple[PageWord, ...]:
    """Return the words of a page with their boxes on the page as it is shown."""
    turn = PageTurn.from_page(page)
    words = []
    for word in page.words:
        top, bottom = word.y - _ASCENT * word.size, word.y + _DESCENT * word.size
        box = Box(page.number, word.x0, top, word.x1, bottom)
        shown = turn.shown_box(box) if page.quarters else box
        words.append(PageWord(word.text, shown.x0, shown.y0, shown.x1, shown.y1))
    return tuple(words)


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return RGB pixels, an array (height, width, 3), as a PNG.

    Each row is stored as its difference from the row above, so that white paper compresses well.
    """
    height, width, _ = pixels.shape
    rows = pixels.reshape(height, width * 3)
    filtered = np.empty((height, width * 3 + 1), dtype=np.uint8)
    filtered[:, 0] = 2  # the filter "Up"
    filtered[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(filtered.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
