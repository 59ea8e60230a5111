"""Pictures of pages (PNG, JPEG, TIFF): documents of one page, or of the pages of a TIFF, read by text recognition.

They are formats only where the extra ``ocr`` is installed; elsewhere pictures are refused as before.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.limits import LIMITS
from clew.parse.documents.pdf.recognition import can_recognise

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from clew.parse.documents.pdf.recognition import Pixels

PARSER = "image/2+ocr"
#: Dots to the inch of a picture that does not say.
_RESOLUTION = 150.0
_MAX_FRAMES = 2_000
#: A picture with more pixels is refused: it would take gigabytes.
_MAX_PIXELS = 100_000_000


def parse(data: bytes, *, unit: PassageUnit, name: str) -> ParsedDocument:
    """Parse a picture. Raises UnreadableFile."""
    from clew.parse.documents.pdf.reader import build_recognised_document

    media_type = next(form.media_type for form in KINDS if data.startswith(form.magic))
    return build_recognised_document(
        _read_pages(data), data, unit=unit, title=PurePath(name).stem, media_type=media_type, parser=PARSER
    )


def _read_pages(data: bytes) -> Iterator[tuple[Pixels, float, float]]:
    """Yield the pixels of each page, and its width and height in points."""
    import warnings

    import numpy as np
    from PIL import Image, ImageOps, UnidentifiedImageError

    from clew.parse.documents.pdf.recognition import MAX_PIXELS

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a large picture, which is checked here
            with Image.open(BytesIO(data)) as image:
                for number in range(getattr(image, "n_frames", 1)):
                    LIMITS.check("too many pages", number + 1, _MAX_FRAMES)
                    image.seek(number)
                    if image.width * image.height > _MAX_PIXELS:
                        raise UnreadableFile(f"has more than {_MAX_PIXELS // 1_000_000} million pixels")
                    upright = ImageOps.exif_transpose(_on_white(image))
                    resolution = _resolution(image)
                    width, height = (side * 72 / resolution for side in upright.size)
                    if (share := (MAX_PIXELS / (upright.width * upright.height)) ** 0.5) < 1:
                        upright = upright.resize(
                            (round(upright.width * share), round(upright.height * share))
                        )
                    yield np.asarray(upright), width, height
    except (
        UnidentifiedImageError,
        OSError,
        ValueError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as error:
        raise UnreadableFile("is damaged: the picture cannot be decoded") from error


def _on_white(image: Picture) -> Picture:
    """Return a picture in RGB; what is transparent is white."""
    from PIL import Image

    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        colours = image.convert("RGBA")
        white = Image.new("RGBA", colours.size, "white")
        return Image.alpha_composite(white, colours).convert("RGB")
    return image.convert("RGB")


def _resolution(image: Picture) -> float:
    stated = image.info.get("dpi", (0, 0))
    try:
        resolution = float(stated[0])
    except (TypeError, ValueError, ZeroDivisionError, IndexError):
        resolution = 0.0
    return resolution if 50 <= resolution <= 2_400 else _RESOLUTION


KINDS = (
    DocumentFormat("image/png", "a PNG image", (".png",), parse, magic=b"\x89PNG\r\n\x1a\n", parser=PARSER),
    DocumentFormat(
        "image/jpeg", "a JPEG image", (".jpg", ".jpeg"), parse, magic=b"\xff\xd8\xff", parser=PARSER
    ),
    DocumentFormat("image/tiff", "a TIFF image", (".tif", ".tiff"), parse, magic=b"II*\0", parser=PARSER),
    DocumentFormat("image/tiff", "a TIFF image", (".btf",), parse, magic=b"MM\0*", parser=PARSER),
)
FORMATS = KINDS if can_recognise() else ()
