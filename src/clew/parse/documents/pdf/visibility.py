"""Which words of a PDF page nobody sees: without ink, in the colour of their ground, tiny, off the page, covered.

Where the order and the colours of what is painted say that a word is not seen, the page is drawn, and whether there
is any contrast at its place decides. Text without ink on a picture is that of a scan, and stays. Boxes are in
the file's own coordinates: x0, y0, x1, y1, y upwards.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pypdfium2.raw as raw

from clew.core.arrays import Floats

Box = tuple[float, float, float, float]
Colour = tuple[int, int, int]
_Matrix = tuple[float, float, float, float, float, float]

#: A page has no more objects that are looked at, and no forms within each other deeper than this.
MAX_OBJECTS, _MAX_DEPTH = 20_000, 4
#: Points: lower letters are not seen; a shape that is no wider or higher is neither ground nor cover.
_TINY, _LEAST = 1.0, 3.0
#: Two colours that differ by less than this in each of red, green and blue (0 to 255) look alike.
_ALIKE = 13
_WHITE: Colour = (255, 255, 255)
#: Text render modes that draw the outline of letters, nothing but that, and nothing.
_STROKED, _UNFILLED, _INVISIBLE = {1, 2, 5, 6}, {1, 5}, 3
#: Pixels a point, where a page is drawn, and the most pixels of its longer side.
_SCALE, _MAX_PIXELS = 2.0, 4_000


@dataclass
class Visibility:
    """What is painted on a pypdfium2 ``page``, in order: the ``boxes`` of filled shapes and pictures, the place of
    each in the order, and its colour (None: several, or see-through); ``texts`` has the place of each text object."""

    page: Any
    boxes: Floats = field(default_factory=lambda: np.empty((0, 4)))
    orders: list[int] = field(default_factory=list)
    colours: list[Colour | None] = field(default_factory=list)
    texts: dict[int, int] = field(default_factory=dict)
    _inks: dict[int, tuple[int, list[Colour | None]]] = field(default_factory=dict)

    @classmethod
    def from_page(cls, page: Any) -> Visibility:
        """Return what a page paints."""
        painted = cls(page)
        boxes: list[Box] = []
        objects = _walk(page.raw, raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject)
        for order, (item, matrix) in enumerate(islice(objects, MAX_OBJECTS)):
            kind = raw.FPDFPageObj_GetType(item)
            if kind == raw.FPDF_PAGEOBJ_TEXT:
                painted.texts[_address(item)] = order
                continue
            is_path = kind == raw.FPDF_PAGEOBJ_PATH
            box = None if is_path and not _is_filled(item) else _bounds(item, matrix)
            if box is not None and min(box[2] - box[0], box[3] - box[1]) > _LEAST:
                boxes.append(box)
                painted.orders.append(order)
                painted.colours.append(_read_colour(item, raw.FPDFPageObj_GetFillColor) if is_path else None)
        painted.boxes = np.array(boxes).reshape(-1, 4)
        return painted

    def hides_word(self, textpage: Any, index: int, box: Box, size: float) -> bool:
        """Return whether a word is not seen that begins with the character ``index``, in letters of ``size``."""
        if max(size, box[3] - box[1]) < _TINY:
            return True
        item = raw.FPDFText_GetTextObject(textpage.raw, index)
        if not item:
            return False
        address = _address(item)
        mode, colours = self._inks.get(address) or self._inks.setdefault(address, _read_ink(item))
        around = self._find_around(box)
        if mode == _INVISIBLE:
            return all(self.colours[place] is not None for place in around)
        order = self.texts.get(address, MAX_OBJECTS)
        below = [place for place in around if self.orders[place] < order]
        ground = self.colours[below[-1]] if below else _WHITE
        is_covered = len(below) < len(around) and self.colours[around[-1]] is not None
        return (is_covered or _looks_like(colours, ground)) and not self._has_contrast(box)

    def _find_around(self, box: Box) -> list[int]:
        """Return the places of the shapes around a box, in the order in which they are painted."""
        if not len(self.boxes):
            return []
        x0, y0, x1, y1 = self.boxes.T
        inside = (x0 <= box[0] + 1) & (y0 <= box[1] + 1) & (x1 >= box[2] - 1) & (y1 >= box[3] - 1)
        places: list[int] = np.flatnonzero(inside).tolist()
        return places

    @cached_property
    def _pixels(self) -> Any:
        """The page as it is drawn: height, width, colours."""
        scale = min(_SCALE, _MAX_PIXELS / max(self.page.get_size()))
        return self.page.render(scale=scale, may_draw_forms=False).to_numpy()[:, :, :3]

    def _has_contrast(self, box: Box) -> bool:
        """Return whether anything is seen in a box."""
        pixels = self._pixels
        height, width = pixels.shape[:2]
        x, y = ctypes.c_int(), ctypes.c_int()
        shown = []
        for corner in (box[:2], box[2:]):
            raw.FPDF_PageToDevice(
                self.page.raw, 0, 0, width, height, 0, *corner, ctypes.byref(x), ctypes.byref(y)
            )
            shown.append((x.value, y.value))
        (x0, x1), (y0, y1) = (sorted(each) for each in zip(*shown, strict=True))
        inside = pixels[max(y0, 0) : y1 + 1, max(x0, 0) : x1 + 1].reshape(-1, 3).astype(int)
        return len(inside) > 0 and int((inside.max(axis=0) - inside.min(axis=0)).max()) > 2 * _ALIKE


def _read_ink(text: Any) -> tuple[int, list[Colour | None]]:
    """Return the render mode of a text object, and the colours that it is drawn in."""
    mode = raw.FPDFTextObj_GetTextRenderMode(text)
    getters = [raw.FPDFPageObj_GetStrokeColor] if mode in _STROKED else []
    getters += [raw.FPDFPageObj_GetFillColor] if mode not in _UNFILLED else []
    return mode, [_read_colour(text, get) for get in getters]


def _looks_like(colours: Iterable[Colour | None], ground: Colour | None) -> bool:
    return ground is not None and all(
        colour is not None and all(abs(a - b) < _ALIKE for a, b in zip(colour, ground, strict=True))
        for colour in colours
    )


def _walk(
    holder: Any, count: Any, get: Any, matrix: _Matrix = (1, 0, 0, 1, 0, 0), depth: int = 0
) -> Iterator[tuple[Any, _Matrix]]:
    """Yield the objects of a page or form in the order of painting, with the map of their places to the page's."""
    for index in range(min(count(holder), MAX_OBJECTS)):
        item = get(holder, index)
        if raw.FPDFPageObj_GetType(item) != raw.FPDF_PAGEOBJ_FORM:
            yield item, matrix
        elif depth < _MAX_DEPTH:
            own = raw.FS_MATRIX()
            raw.FPDFPageObj_GetMatrix(item, ctypes.byref(own))
            inner = _multiply((own.a, own.b, own.c, own.d, own.e, own.f), matrix)
            yield from _walk(item, raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject, inner, depth + 1)


def _multiply(first: _Matrix, then: _Matrix) -> _Matrix:
    a, b, c, d, e, f = first
    g, h, i, j, k, m = then
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def _address(item: Any) -> int:
    return ctypes.cast(item, ctypes.c_void_p).value or 0


def _bounds(item: Any, matrix: _Matrix) -> Box | None:
    """Return the box of an object on the page; None where it has none."""
    edges = [ctypes.c_float() for _ in range(4)]
    if not raw.FPDFPageObj_GetBounds(item, *map(ctypes.byref, edges)):
        return None
    x0, y0, x1, y1 = (edge.value for edge in edges)
    a, b, c, d, e, f = matrix
    corners = [(a * x + c * y + e, b * x + d * y + f) for x in (x0, x1) for y in (y0, y1)]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _is_filled(path: Any) -> bool:
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    return bool(raw.FPDFPath_GetDrawMode(path, ctypes.byref(fill), ctypes.byref(stroke)) and fill.value)


def _read_colour(item: Any, get: Any) -> Colour | None:
    """Return a colour of an object, None where it is no single one or lets the ground through."""
    parts = [ctypes.c_uint() for _ in range(4)]
    if not get(item, *map(ctypes.byref, parts)) or raw.FPDFPageObj_HasTransparency(item):
        return None
    red, green, blue, alpha = (part.value for part in parts)
    return (red, green, blue) if alpha == 255 else None
