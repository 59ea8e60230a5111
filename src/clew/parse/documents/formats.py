"""Document formats: what each one declares about itself, and the list of those that are installed."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Protocol

from clew.core.component import PARSER_PLUGINS, declaration_problems, usable_declarations
from clew.core.types import Document, ParsedDocument
from clew.parse.documents.builder import PassageUnit


class ParseFunction(Protocol):
    """Parses the bytes of a file called ``name``. Raises UnreadableFile for a file that cannot be read."""

    def __call__(self, data: bytes, *, unit: PassageUnit, name: str) -> ParsedDocument:
        """Return the document with one passage per ``unit``."""


@dataclass(frozen=True, slots=True)
class MemberFile:
    """A file within a file: its name, perhaps with folders, and a function that reads its bytes or raises
    UnreadableFile."""

    name: str
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A document format: how its files are recognised, and the function that parses them.

    To add a format, put a module with a ``FORMAT`` (or several ``FORMATS``) into ``clew.parse.documents``, or name
    the object in the entry point group ``clew.parsers`` of another package. The module is imported even where only
    file names are checked, so it imports its parsing library inside the parse function.

    ``label`` names the format in messages ("a Word document"). ``suffixes`` are in lower case and have their dot;
    ``add`` picks files with these suffixes up from folders. The content of a file decides before its suffix does:

    - ``magic`` are bytes that stand at the start of a file, or anywhere in its first ``magic_window`` bytes;
    - ``zip_folder`` is a folder at the top of a zip container;
    - ``zip_mimetype`` is the content, or its beginning, of the file ``mimetype`` in a zip container;
    - ``matches`` examines the start of a text file: 4,096 bytes without byte order mark and NULs.

    A text file that no format claims by its content is parsed as its suffix says, else as plain text.

    ``read_members`` yields the files within a file (an archive, a mail with attachments), which become documents of
    their own. It is called after ``parse`` has accepted the same bytes, and raises UnreadableFile.

    ``parser`` is the name and version that its documents carry (``docx/1``). Once the version is raised, files that
    were read by an earlier one are read again when they are next added; "" never.
    """

    media_type: str
    label: str
    suffixes: tuple[str, ...]
    parse: ParseFunction
    magic: bytes = b""
    magic_window: int = 0
    zip_folder: str = ""
    zip_mimetype: str = ""
    matches: Callable[[bytes], bool] | None = None
    read_members: Callable[[bytes], Iterable[MemberFile]] | None = None
    parser: str = ""

    @property
    def is_text(self) -> bool:
        """Whether files of this format are text in some encoding."""
        return self.media_type.startswith("text/") or not (self.magic or self.zip_folder or self.zip_mimetype)


@lru_cache(maxsize=1)
def document_formats() -> tuple[DocumentFormat, ...]:
    """Return the installed formats. Those of other packages come first, so that they can replace clew's own."""
    package = import_module(__name__.rpartition(".")[0])
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    own: list[DocumentFormat] = []
    for module in modules:
        own += [module.FORMAT] if hasattr(module, "FORMAT") else getattr(module, "FORMATS", ())
    return (*usable_declarations(PARSER_PLUGINS, DocumentFormat), *own)


def is_outdated(document: Document) -> bool:
    """Return whether another version of the same parser reads documents of this type today."""
    name, _, version = _parser_version(document.parser)
    versions = [
        _parser_version(form.parser)
        for form in document_formats()
        if form.parser and form.media_type == document.media_type
    ]
    return any(known == name and current != version for known, _, current in versions)


def _parser_version(parser: str) -> tuple[str, str, str]:
    """Return name, slash and version without what was done besides: ``pdf/2+ocr(passages=paragraph)`` is pdf/2."""
    return parser.partition("(")[0].partition("+")[0].partition("/")


def format_of_suffix(suffix: str) -> DocumentFormat | None:
    """Return the format that a file with this suffix (``.pdf``) promises to have."""
    return next((form for form in document_formats() if suffix.lower() in form.suffixes), None)


def format_problems() -> list[str]:
    """Return for each format of another package that cannot be used why that is."""
    return declaration_problems(PARSER_PLUGINS, DocumentFormat)
