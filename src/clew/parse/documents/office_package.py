"""Office packages: the zip containers of XML parts that Word documents and Excel workbooks are (ECMA-376 part 2), and
OpenDocument files and EPUB books with them.

The container is checked before anything is unpacked: the sizes that it claims (Python reads no more than is
claimed), the compression ratio, encryption. Only parts that a parser asks for by name are opened, so a zip within
the zip stays closed. A document type declaration, which the format forbids (part 2, 8.1.4), is refused before any
entity could be expanded.
"""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import starmap
from typing import IO, TYPE_CHECKING
from xml.parsers import expat

from clew.core.errors import UnreadableFile
from clew.parse.documents.blocks import Block, Field, Note
from clew.parse.documents.fields import field_pairs
from clew.parse.documents.limits import SIMPLER, Limits, format_size

if TYPE_CHECKING:
    from lxml.etree import _Element

_ENCRYPTED_FLAG = 1
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError, ValueError)


def local_name(element: _Element) -> str:
    """Return an element's name without its namespace: strict and transitional files differ in nothing else."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute_value(element: _Element, name: str, default: str = "") -> str:
    """Return an attribute by its local name."""
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return default


class OfficePackage:
    """An open office package. Raises UnreadableFile where the container is damaged or too large."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._limits = limits
        with _refusing_damage("the zip container"):
            self._zip = zipfile.ZipFile(BytesIO(data))
            self._parts = {info.filename.lstrip("/"): info for info in self._zip.infolist()}
        self._check(self._zip.infolist())

    def _check(self, parts: list[zipfile.ZipInfo]) -> None:
        limits = self._limits
        limits.check("too many parts", len(parts), limits.parts)
        if any(part.flag_bits & _ENCRYPTED_FLAG for part in parts):
            raise UnreadableFile("is encrypted", "Save it without a password and add that")
        if sum(part.file_size for part in parts) > limits.unpacked_bytes:
            raise UnreadableFile(
                f"unpacks to more than {format_size(limits.unpacked_bytes)} (a zip bomb?)", SIMPLER
            )
        for part in parts:
            ratio = part.file_size / max(part.compress_size, 1)
            if part.file_size > limits.ratio_floor and ratio > limits.unpacked_ratio:
                raise UnreadableFile(
                    f"{part.filename} unpacks to {ratio:,.0f} times its size (a zip bomb?)", SIMPLER
                )

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def main_part(self, fallback: str) -> str:
        """Return the name of the main document's part. Raises UnreadableFile where there is none."""
        for kind, target, _ in self.relationships(""):
            if kind == "officeDocument" and target in self:
                return target
        if fallback in self:
            return fallback
        raise UnreadableFile(f"is damaged: {fallback} is missing")

    def related_part(self, part: str, kind: str, fallback: str = "") -> str:
        """Return the name of the part of ``kind`` that belongs to ``part``; "" where there is none."""
        for relation_kind, target, _ in self.relationships(part):
            if relation_kind == kind and target in self:
                return target
        return fallback if fallback in self else ""

    def relationships(self, part: str) -> Iterator[tuple[str, str, str]]:
        """Yield the relationships of a part as kind, target and id; those of "" are the package's own."""
        folder, name = posixpath.split(part)
        file = posixpath.join(folder, "_rels", f"{name}.rels")
        if file not in self:
            return
        for relation in self.read_xml(file):
            if relation.get("TargetMode") == "External":
                continue
            target = relation.get("Target", "")
            path = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
            yield (
                relation.get("Type", "").rpartition("/")[2],
                posixpath.normpath(path),
                relation.get("Id", ""),
            )

    def title(self) -> str:
        """Return the title in the core properties, "" where there is none or they are damaged."""
        try:
            return self._properties().get("title", "")
        except UnreadableFile:  # property_blocks says so
            return ""

    def property_blocks(self) -> Iterator[Block]:
        """Yield the fields among the core properties; a note where these are damaged, for the text is not."""
        try:
            yield from starmap(Field, field_pairs(self._properties()))
        except UnreadableFile as error:
            yield Note(f"its properties are not read: {error.problem.removeprefix('is damaged: ')}")

    def _properties(self) -> dict[str, str]:
        """Return the core properties by name: title, creator, created, keywords, category."""
        core = self.related_part("", "core-properties", "docProps/core.xml")
        children = self.read_xml(core) if core else ()
        return {local_name(child): text for child in children if (text := (child.text or "").strip())}

    def read_bytes(self, name: str) -> bytes:
        """Return the content of a part that need not be XML."""
        if name not in self._parts:
            raise UnreadableFile(f"is damaged: {name} is missing")
        with _refusing_damage(name):
            return self._zip.read(self._parts[name])

    def read_xml(self, name: str) -> _Element:
        """Return the root of an XML part."""
        from lxml import etree

        with self.open_part(name) as stream, _refusing_damage(name):
            data = stream.read()
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
        )
        try:
            return etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            raise xml_error(name, error) from error

    @contextmanager
    def open_part(self, name: str) -> Iterator[IO[bytes]]:
        """Open a part. Raises UnreadableFile where it is missing or damaged, or declares a document type."""
        if name not in self._parts:
            raise UnreadableFile(f"is damaged: {name} is missing")
        with _refusing_damage(name):
            with self._zip.open(self._parts[name]) as stream:
                _refuse_doctype(stream, name)
            stream = self._zip.open(self._parts[name])
        with stream:
            yield stream


def xml_error(name: str, error: Exception) -> UnreadableFile:
    """Return the error for a part that is not well-formed XML."""
    if "depth" in str(error):
        return UnreadableFile(f"nested too deeply: {name}", SIMPLER)
    return UnreadableFile(f"is damaged: {name} is not well-formed XML ({error})")


@contextmanager
def _refusing_damage(name: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        raise UnreadableFile(f"is damaged: {name} cannot be unpacked ({error})") from error


class _RootReached(Exception):
    """The root element begins, and no document type was declared before it."""


def _refuse_doctype(stream: IO[bytes], name: str) -> None:
    def refuse(*_: object) -> None:
        raise UnreadableFile(f"{name} declares a document type or entities, which is not allowed")

    def stop(*_: object) -> None:
        raise _RootReached

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = stop
    try:
        while chunk := stream.read(1 << 14):
            parser.Parse(chunk, False)
    except _RootReached:
        return
    except (expat.ExpatError, LookupError, ValueError) as error:  # the latter two: of an encoding
        raise xml_error(name, error) from error
