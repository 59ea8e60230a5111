"""EPUB books: their chapters in reading order, each read as the HTML page that it is (EPUB 3.3, W3C)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from itertools import starmap
from typing import TYPE_CHECKING
from urllib.parse import unquote

from clew.core.errors import UnreadableFile
from clew.core.types import ParsedDocument
from clew.parse.documents.blocks import Block, Field, Note, Paragraph, SourceFile, Title, build_document
from clew.parse.documents.builder import PassageUnit
from clew.parse.documents.fields import field_pairs
from clew.parse.documents.formats import DocumentFormat
from clew.parse.documents.html import decode_page, fragment_blocks
from clew.parse.documents.limits import LIMITS, Limits
from clew.parse.documents.office_package import OfficePackage, attribute_value, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element

PARSER = "epub/4"
MEDIA_TYPE = "application/epub+zip"

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml"))
_GENERATED_TITLE = re.compile(r"^(?:unknown(?: title)?|untitled|title|\[?no title\]?)$", re.I)
#: Ways to hide the letters of a font, which leave the text readable.
_FONT_SCRAMBLING = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


def parse(data: bytes, *, unit: PassageUnit, name: str, limits: Limits = LIMITS) -> ParsedDocument:
    """Parse an EPUB book. Raises UnreadableFile."""
    package = OfficePackage(data, limits)
    source = SourceFile(data, name, MEDIA_TYPE, PARSER, unit, limits)
    return build_document(_blocks(package, limits), source)


FORMAT = DocumentFormat(MEDIA_TYPE, "an EPUB book", (".epub",), parse, zip_mimetype=MEDIA_TYPE, parser=PARSER)


def _blocks(package: OfficePackage, limits: Limits) -> Iterator[Block]:
    main = next(
        (
            attribute_value(element, "full-path")
            for element in package.read_xml(_CONTAINER).iter("{*}rootfile")
        ),
        "",
    )
    if main not in package:
        raise UnreadableFile(f"is damaged: {main or 'its content.opf'} is missing")
    root = package.read_xml(main)
    encrypted = _encrypted_parts(package)
    yield from _metadata_blocks(root)
    missing = locked = damaged = chapters = 0
    for part in _chapters(root, posixpath.dirname(main)):
        if part in encrypted:
            locked += 1
        elif part not in package:
            missing += 1
        elif page := decode_page(package.read_bytes(part))[0].strip():
            try:
                blocks = list(fragment_blocks(page, limits, is_book=True))
            except UnreadableFile:
                damaged += 1
                continue
            chapters += 1
            yield from blocks
    if locked and not chapters:
        raise UnreadableFile("is protected against reading (DRM)")
    if (missing or damaged) and not chapters:
        raise UnreadableFile("is damaged: none of its chapters can be read")
    for count, problem in ((missing, "missing"), (locked, "encrypted"), (damaged, "damaged")):
        if count:
            yield Note(f"{count} chapter{'s are' if count > 1 else ' is'} {problem}")


def _metadata_blocks(root: _Element) -> Iterator[Block]:
    """Yield the title, and the authors and date as Markdown's front matter gives them."""
    values: dict[str, list[str]] = {}
    for element in root.iter("{http://purl.org/dc/elements/1.1/}*"):
        if text := " ".join((element.text or "").split()):
            values.setdefault(local_name(element), []).append(text)
    if "title" in values and not _GENERATED_TITLE.match(values["title"][0]):
        yield Title(values["title"][0])
    yield from starmap(Field, field_pairs(values))
    dates = [re.sub(r"T.*", "", date) for date in values.get("date", [])[:1] if not date.startswith("0101")]
    lines = [("author", values.get("creator", [])), ("date", dates)]
    if any(texts for _, texts in lines):
        yield Paragraph("\n".join(f"{name}: {', '.join(texts)}" for name, texts in lines if texts))


def _chapters(root: _Element, folder: str) -> Iterator[str]:
    """Yield the parts that are read, in order. The table of contents is left out where it is marked as such."""
    items = {attribute_value(item, "id"): item for item in root.iter("{*}item")}
    seen = set()
    for reference in root.iter("{*}itemref"):
        item = items.get(attribute_value(reference, "idref"))
        if item is None or attribute_value(item, "media-type") not in _PAGES:
            continue
        if "nav" in attribute_value(item, "properties").split():
            continue
        target = unquote(attribute_value(item, "href").partition("#")[0])
        part = posixpath.normpath(posixpath.join(folder, target))
        if part not in seen:
            seen.add(part)
            yield part


def _encrypted_parts(package: OfficePackage) -> set[str]:
    """Return the names of the parts whose text is encrypted."""
    parts: set[str] = set()
    if _ENCRYPTION not in package:
        return parts
    for element in package.read_xml(_ENCRYPTION).iter("{*}EncryptedData"):
        methods = [attribute_value(method, "Algorithm") for method in element.iter("{*}EncryptionMethod")]
        if not any(method in _FONT_SCRAMBLING for method in methods):
            parts.update(
                attribute_value(reference, "URI") for reference in element.iter("{*}CipherReference")
            )
    return parts
