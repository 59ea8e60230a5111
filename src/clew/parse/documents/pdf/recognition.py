"""Text recognition (OCR) of pictures of pages, by the PP-OCR models of RapidOCR: the extra ``ocr``.

A page that lies on its side or stands on its head is turned by quarters until its text reads well; lines that run
askew are straightened by turning the places of their words, not the picture. The models are part of RapidOCR's wheel:
nothing is downloaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from clew.core.installation import format_install_command
from clew.core.types import PAGE, Box, ParsedDocument, ParsedNode, Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clew.parse.documents.pdf.words import Page, Word

    Pixels = NDArray[np.uint8]

#: Pixels per point: 150 dots to the inch, which the models read as well as more, in less time.
SCALE = 150 / 72
#: A larger picture is drawn smaller.
MAX_PIXELS = 8_000_000
#: Processor time that a page may take: 9 seconds on the machine of the benchmarks, and twice that if it is turned.
SECONDS_PER_PAGE = 60.0
#: Memory that the models and the picture may take, in bytes.
MEMORY = 1536 << 20
#: Lines that are read with less confidence on average are probably upside down.
_UPRIGHT_CONFIDENCE = 0.85
#: A page whose pixels differ less than this from each other is blank.
_MIN_CONTRAST = 2.0
#: The share of the height of a line of text that is its font size, and that is below its baseline.
_SIZE_SHARE, _DESCENT_SHARE = 0.78, 0.22
#: A line whose height differs less from that of most lines has their size: boxes fit their text only roughly.
_SIZE_TOLERANCE = 0.3


def can_recognise() -> bool:
    """Return whether text recognition is installed."""
    return find_spec("rapidocr") is not None


def describe_recognition() -> str:
    """Return what to do so that text in pictures is read."""
    return f"To read text in pictures: {format_install_command('ocr')}"


@dataclass(frozen=True, slots=True)
class PageTurn:
    """How a page was turned to read it: quarters counter-clockwise, then the angle of its lines in radians.

    ``width`` and ``height`` are those of the page as it is shown, in points.
    """

    quarters: int
    angle: float
    width: float
    height: float

    @classmethod
    def from_page(cls, page: Page) -> PageTurn:
        """Return how a page with text of the file was turned."""
        width, height = (page.height, page.width) if page.quarters % 2 else (page.width, page.height)
        return cls(page.quarters, 0.0, width, height)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the upright page."""
        return (self.height, self.width) if self.quarters % 2 else (self.width, self.height)

    def straighten(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point of the page that was turned by quarters is when its lines are level."""
        return self._rotate(x, y, -self.angle)

    def _rotate(self, x: float, y: float, angle: float) -> tuple[float, float]:
        width, height = self.size
        dx, dy = x - width / 2, y - height / 2
        cosine, sine = math.cos(angle), math.sin(angle)
        return width / 2 + dx * cosine - dy * sine, height / 2 + dx * sine + dy * cosine

    def shown_point(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point of the upright page is on the page as it is shown."""
        x, y = self._rotate(x, y, self.angle)
        match self.quarters % 4:
            case 1:
                return self.width - y, x
            case 2:
                return self.width - x, self.height - y
            case 3:
                return y, self.height - x
        return x, y

    def shown_box(self, box: Box) -> Box:
        """Return the rectangle on the page as it is shown around a rectangle of the upright page."""
        corners = [self.shown_point(x, y) for x in (box.x0, box.x1) for y in (box.y0, box.y1)]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        edges = (max(min(xs), 0.0), max(min(ys), 0.0), min(max(xs), self.width), min(max(ys), self.height))
        x0, y0, x1, y1 = (round(edge, 1) for edge in edges)
        return Box(box.page, x0, y0, x1, y1, box.confidence)


@dataclass(frozen=True, slots=True)
class RecognisedLine:
    """A line of text in a picture: its four corners from the top left, clockwise, in pixels, and its words.

    A word is its text, its confidence from 0 to 1, and its corners.
    """

    corners: tuple[tuple[float, float], ...]
    words: tuple[tuple[str, float, tuple[tuple[float, float], ...]], ...]
    confidence: float


def recognise_page(pixels: Pixels, number: int, width: float, height: float) -> tuple[Page, PageTurn]:
    """Return a page with the words that are read from its picture, upright, and how it was turned.

    ``pixels`` has the shape (height, width, 3); ``width`` and ``height`` are the page's in points.
    """
    import numpy as np

    from clew.parse.documents.pdf.words import Page

    lines: Sequence[RecognisedLine] = ()
    quarters = 0
    if pixels[::4, ::4].std() >= _MIN_CONTRAST:
        lines = read_lines(pixels)
        if lines and _is_on_its_side(lines):
            quarters = 1
            lines = read_lines(np.ascontiguousarray(np.rot90(pixels)))
        if lines and _mean_confidence(lines) < _UPRIGHT_CONFIDENCE:
            turned = read_lines(np.ascontiguousarray(np.rot90(pixels, quarters + 2)))
            if _mean_confidence(turned) > _mean_confidence(lines):
                quarters, lines = quarters + 2, turned
    turn = PageTurn(quarters, _angle(lines), width, height)
    scale = (width if quarters % 2 == 0 else height) / (
        pixels.shape[1] if quarters % 2 == 0 else pixels.shape[0]
    )
    words = _place_words(lines, turn, scale)
    return Page(number, *turn.size, tuple(words), ()), turn


def _place_words(lines: Sequence[RecognisedLine], turn: PageTurn, scale: float) -> list[Word]:
    from clew.parse.documents.pdf.words import Word

    heights = sorted(math.dist(line.corners[0], line.corners[3]) * scale for line in lines)
    typical = heights[len(heights) // 2] if heights else 0.0
    words = []
    for line in lines:
        line_height = math.dist(line.corners[0], line.corners[3]) * scale
        if abs(line_height - typical) < _SIZE_TOLERANCE * typical:
            line_height = typical
        corners = [turn.straighten(x * scale, y * scale) for x, y in line.corners]
        bottom = (corners[2][1] + corners[3][1]) / 2
        for text, confidence, quad in line.words:
            xs = [turn.straighten(x * scale, y * scale)[0] for x, y in quad]
            words.append(
                Word(
                    text,
                    min(xs),
                    max(xs),
                    bottom - _DESCENT_SHARE * line_height,
                    _SIZE_SHARE * line_height,
                    0,
                    round(confidence, 3),
                )
            )
    return words


def _is_on_its_side(lines: Sequence[RecognisedLine]) -> bool:
    """Return whether most long lines are taller than wide."""
    shapes = [
        math.dist(line.corners[0], line.corners[1]) / max(math.dist(line.corners[0], line.corners[3]), 1)
        for line in lines
    ]
    tall, wide = sum(shape < 0.5 for shape in shapes), sum(shape > 2 for shape in shapes)
    return tall > wide


def _mean_confidence(lines: Sequence[RecognisedLine]) -> float:
    return sum(line.confidence for line in lines) / len(lines) if lines else 0.0


def _angle(lines: Sequence[RecognisedLine]) -> float:
    """Return the angle of the long lines, in radians, the median of them; 0 where it is too small to matter."""
    angles = []
    for line in lines:
        (x0, y0), (x1, y1) = line.corners[0], line.corners[1]
        if math.dist((x0, y0), (x1, y1)) > 8 * math.dist(line.corners[0], line.corners[3]):
            angles.append(math.atan2(y1 - y0, x1 - x0))
    angle = sorted(angles)[len(angles) // 2] if angles else 0.0
    return angle if math.radians(0.15) < abs(angle) < math.radians(20) else 0.0


def read_lines(pixels: Pixels) -> list[RecognisedLine]:
    """Return the lines of text in a picture, each with its words."""
    result = _engine()(pixels, use_cls=False, return_word_box=True)
    if result.boxes is None:
        return []
    lines = []
    for quad, text, score, words in zip(
        result.boxes, result.txts, result.scores, result.word_results, strict=True
    ):
        corners = _points(quad)
        parts = [(word, float(sure), _points(place)) for word, sure, place in words if word.strip()]
        lines.append(RecognisedLine(corners, tuple(parts or [(text, float(score), corners)]), float(score)))
    return lines


def _points(quad: Any) -> tuple[tuple[float, float], ...]:
    return tuple((float(x), float(y)) for x, y in quad)


@lru_cache(maxsize=1)
def _engine() -> Any:
    from rapidocr import RapidOCR

    # One thread: several files are read at once, each in a process of its own.
    threads = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    return RapidOCR(params={**threads, "Global.log_level": "critical"})


def show_boxes(document: ParsedDocument, turns: dict[int, PageTurn]) -> ParsedDocument:
    """Return a document whose boxes are those of the pages as they are shown; ``turns`` has the pages turned."""
    if not any(turn.quarters or turn.angle for turn in turns.values()):
        return document
    return replace(document, nodes=tuple(_show_node(node, turns) for node in document.nodes))


def _show_node(node: ParsedNode, turns: dict[int, PageTurn]) -> ParsedNode:
    turn = turns.get(node.page or 0)
    if node.kind == PAGE and turn:
        boxes = tuple(Box(box.page, 0, 0, round(turn.width, 1), round(turn.height, 1)) for box in node.boxes)
        return replace(node, boxes=boxes)
    table = node.table if node.table is None else _show_table(node.table, turns)
    cells = tuple(box and _show_box(box, turns) for box in node.cells)
    return replace(node, boxes=tuple(_show_box(box, turns) for box in node.boxes), table=table, cells=cells)


def _show_table(table: Table, turns: dict[int, PageTurn]) -> Table:
    cells = tuple(tuple(box and _show_box(box, turns) for box in row) for row in table.cell_boxes)
    return replace(table, boxes=tuple(_show_box(box, turns) for box in table.boxes), cell_boxes=cells)


def _show_box(box: Box, turns: dict[int, PageTurn]) -> Box:
    turn = turns.get(box.page)
    return turn.shown_box(box) if turn else box
