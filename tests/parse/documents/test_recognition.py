"""Text recognition: places of words, turned pages, marks and limits, with a scripted engine; and with the real one
where the extra is installed."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pytest

from bad_files import good_pdf
from clew.core.errors import UnreadableFile
from clew.core.types import Box, Node
from clew.parse.documents import image
from clew.parse.documents.pdf import reader, recognition
from clew.parse.documents.pdf.recognition import PageTurn, RecognisedLine, recognise_page
from clew.parse.documents.reader import parse
from clew.store.documents import pack_boxes, unpack_boxes
from parse_trees import check

Corners = tuple[tuple[float, float], ...]


def rectangle(x0: float, y0: float, x1: float, y1: float) -> Corners:
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


def line(text: str, y: float, confidence: float = 0.9, x: float = 100) -> RecognisedLine:
    """A line of words that are ten pixels wide for each letter, twenty high, with a space of ten between them."""
    words = []
    start = x
    for word in text.split():
        words.append((word, confidence, rectangle(start, y, start + 10 * len(word), y + 20)))
        start += 10 * len(word) + 10
    return RecognisedLine(rectangle(x, y, start - 10, y + 20), tuple(words), confidence)


class Engine:
    """Returns prepared lines for each picture, and notes the shapes of the pictures."""

    def __init__(self, *replies: list[RecognisedLine]) -> None:
        self.replies, self.shapes = list(replies), []

    def __call__(self, pixels: Any) -> list[RecognisedLine]:
        self.shapes.append(pixels.shape[:2])
        return self.replies.pop(0)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(*replies: list[RecognisedLine]) -> Engine:
        engine = Engine(*replies)
        monkeypatch.setattr(recognition, "read_lines", engine)
        monkeypatch.setattr(reader, "can_recognise", lambda: True)
        monkeypatch.setattr(reader, "extend_memory_limit", lambda size: None)
        monkeypatch.setattr(reader, "extend_processor_limit", lambda seconds: None)
        return engine

    return use


PIXELS = (np.arange(600 * 400 * 3) % 251).astype(np.uint8).reshape(600, 400, 3)


def test_words_have_places_in_points(scripted: Any) -> None:
    scripted([line("The lock", 50), line("opens.", 80)])
    page, turn = recognise_page(PIXELS, 3, 200.0, 300.0)
    assert (page.number, page.width, page.height, turn.quarters, turn.angle) == (3, 200.0, 300.0, 0, 0.0)
    assert [(word.text, word.x0, word.x1, word.confidence) for word in page.words] == [
        ("The", 50.0, 65.0, 0.9),
        ("lock", 70.0, 90.0, 0.9),
        ("opens.", 50.0, 80.0, 0.9),
    ]
    assert page.words[0].y == pytest.approx(35 - 0.22 * 10)
    assert page.words[0].size == pytest.approx(7.8)


def test_a_blank_page_is_not_read(scripted: Any) -> None:
    engine = scripted()
    page, _ = recognise_page(np.full((60, 40, 3), 255, np.uint8), 1, 20.0, 30.0)
    assert page.words == () and engine.shapes == []


def test_a_page_on_its_side_and_on_its_head_is_turned_until_it_reads_well(scripted: Any) -> None:
    sideways = [RecognisedLine(rectangle(50, 10, 70, 400), (("x", 0.4, rectangle(50, 10, 70, 400)),), 0.4)]
    engine = scripted(sideways, [line("umop", 50, 0.5)], [line("The lock opens.", 50)])
    page, turn = recognise_page(PIXELS, 1, 200.0, 300.0)
    assert engine.shapes == [(600, 400), (400, 600), (400, 600)]
    assert turn.quarters == 3 and (page.width, page.height) == (300.0, 200.0)
    # At the upper left of the upright page; three quarters back is at the lower left of the page as it is shown.
    assert turn.shown_box(Box(1, 50, 25, 90, 35, 0.9)) == Box(1, 25, 210, 35, 250, 0.9)


@pytest.mark.parametrize("quarters", range(4))
def test_turning_a_page_and_back_is_nothing(quarters: int) -> None:
    turn = PageTurn(quarters, math.radians(1.5), 200.0, 300.0)
    pixels = np.zeros((300, 200), np.uint8)
    pixels[30, 170] = 1  # x 170, y 30 on the page as it is shown
    (y,), (x,) = np.nonzero(np.rot90(pixels, quarters))
    straight = turn.straighten(float(x), float(y))
    assert turn.shown_point(*straight) == pytest.approx((170, 30), abs=1.1)


def test_lines_that_run_askew_are_level(scripted: Any) -> None:
    angle = math.radians(2)

    def skewed(text: str, y: float) -> RecognisedLine:
        flat = line(text, y, x=60)

        def turned(corners: Corners) -> Corners:
            cosine, sine = math.cos(angle), math.sin(angle)
            return tuple(
                (200 + (x - 200) * cosine - (y - 300) * sine, 300 + (x - 200) * sine + (y - 300) * cosine)
                for x, y in corners
            )

        words = tuple((word, sure, turned(corners)) for word, sure, corners in flat.words)
        return RecognisedLine(turned(flat.corners), words, flat.confidence)

    scripted([skewed("The lock at Saltreach was", 50), skewed("opened in the spring.", 80)])
    page, turn = recognise_page(PIXELS, 1, 200.0, 300.0)
    assert turn.angle == pytest.approx(angle)
    assert len({round(word.y, 3) for word in page.words}) == 2
    assert page.words[0].x0 == pytest.approx(30, abs=0.4)


def mixed_pdf(*pages: str) -> bytes:
    """Return a PDF whose pages are "text" or a picture of a page with text."""
    source = pdfium.PdfDocument(good_pdf())
    target = pdfium.PdfDocument.new()
    for kind in pages:
        if kind == "text":
            target.import_pages(source)
            continue
        picture = pdfium.PdfImage.new(target)
        picture.set_bitmap(source[0].render(scale=1))
        picture.set_matrix(pdfium.PdfMatrix().scale(612, 792))
        page = target.new_page(612, 792)
        page.insert_obj(picture)
        page.gen_content()
    import io

    stream = io.BytesIO()
    target.save(stream)
    return stream.getvalue()


def test_pages_without_text_are_read_and_marked(scripted: Any) -> None:
    engine = scripted([line("The lock opens in June.", 200, 0.93)])
    document = parse(mixed_pdf("text", "scan"), "a.pdf")
    check(document)
    assert len(engine.shapes) == 1 and engine.shapes[0][1] == 1275
    assert document.notes == ("page 2 read from a picture, confidence 0.93",)
    assert "+ocr(" in document.parser
    node = document.nodes[-1]
    assert (node.text, node.page, node.boxes[0].confidence) == ("The lock opens in June.", 2, 0.93)
    assert document.nodes[2].boxes[0].confidence is None
    assert unpack_boxes(pack_boxes(node.boxes)) == node.boxes
    stored = Node("k:1", "passage", node.text, "k", "a.pdf", 1, None, "", 0, 2, (), node.span, node.boxes)
    assert stored.place == "a.pdf, page 2, read from a picture, confidence 0.93"
    assert stored.to_dict()["confidence"] == 0.93 and len(stored.to_dict()["boxes"][0]) == 5


def test_without_the_extra_a_hint_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "can_recognise", lambda: False)
    document = parse(mixed_pdf("text", "scan"), "a.pdf")
    assert document.notes == (f"no text on page 2. {recognition.describe_recognition()}",)
    assert "+ocr" not in document.parser
    with pytest.raises(UnreadableFile) as refused:
        parse(mixed_pdf("scan"), "a.pdf")
    assert "no text on any of its 1 pages" in refused.value.problem and "[ocr]'" in refused.value.hint


def test_a_scan_without_text_is_refused(scripted: Any) -> None:
    scripted([])
    with pytest.raises(UnreadableFile, match="no text on any of its 1 pages"):
        parse(mixed_pdf("scan"), "a.pdf")


def test_pictures_are_documents_of_their_pages(scripted: Any, tmp_path: Path) -> None:
    images = pytest.importorskip("PIL.Image")
    frames = [images.fromarray(PIXELS), images.fromarray(PIXELS[:300])]
    frames[0].save(tmp_path / "a.tiff", save_all=True, append_images=frames[1:], dpi=(144, 144))
    scripted([line("First page.", 50)], [line("Second page.", 50)])
    document = image.parse((tmp_path / "a.tiff").read_bytes(), unit="paragraph", name="a.tiff")
    check(document)
    assert (document.pages, document.title, document.media_type) == (2, "a", "image/tiff")
    assert document.nodes[1].boxes[0].to_list() == [1, 0, 0, 200.0, 300.0]
    frames[0].save(tmp_path / "a.png")
    scripted([line("Words.", 50)])
    assert (
        image.parse((tmp_path / "a.png").read_bytes(), unit="paragraph", name="a.png").media_type
        == "image/png"
    )
    with pytest.raises(UnreadableFile, match="cannot be decoded"):
        image.parse((tmp_path / "a.png").read_bytes()[:60], unit="paragraph", name="a.png")
    scripted([])
    with pytest.raises(UnreadableFile, match="no text is recognised"):
        image.parse((tmp_path / "a.png").read_bytes(), unit="paragraph", name="a.png")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("rapidocr") is None, reason="needs the extra ocr")
def test_the_real_engine_reads_a_page() -> None:
    document = parse(mixed_pdf("scan"), "a.pdf")
    assert "A line of text that says something." in document.text
