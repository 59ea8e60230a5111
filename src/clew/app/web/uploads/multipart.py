"""Receives uploads: each file is written to the spool as it arrives, and its bytes are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from clew.app.web.errors import RequestRefused
from clew.app.web.uploads.spool import Spool, display_name
from clew.core.files import system_error
from clew.parse.documents.limits import format_size

if TYPE_CHECKING:
    from fastapi import Request

    from clew.app.web.settings import Limits

#: Bytes of a field beside the files, and the number of such fields.
_MAX_FIELD, _MAX_FIELDS = 1_000, 20


@dataclass(slots=True)
class ReceivedFile:
    """A file of an upload. ``error`` says why it was refused; then nothing of it is kept."""

    id: str
    name: str
    size: int = 0
    error: str = ""
    hint: str = ""


@dataclass(slots=True)
class UploadForm:
    """An upload: its files, and the fields beside them."""

    files: list[ReceivedFile] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)


async def receive_upload(
    request: Request, spool: Spool, limits: Limits, take: Callable[[int], None]
) -> UploadForm:
    """Receive a whole multipart request. Its files are then in the spool, not yet accepted; if this raises, none is.

    ``take`` is called with the number of bytes of each part that arrives, and may raise. Raises RequestRefused for a
    request that is not an upload or breaks off, and the exceptions of ``take``.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise RequestRefused(
            415, "this is no upload of files", "Send multipart/form-data, as a form with files does"
        )
    receiver = _Receiver(spool, limits)
    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": receiver.begin,
                "on_header_field": receiver.header_field,
                "on_header_value": receiver.header_value,
                "on_header_end": receiver.header_end,
                "on_headers_finished": receiver.headers_end,
                "on_part_data": receiver.data,
                "on_part_end": receiver.end,
                "on_end": receiver.finish,
            },
        )
        async for chunk in request.stream():
            take(len(chunk))
            # Written in a thread, so that other requests are answered meanwhile.
            await run_in_threadpool(parser.write, chunk)
        if not receiver.whole:
            raise RequestRefused(400, "the upload is not whole", "Try again")
    except FormParserError as error:
        receiver.drop()
        raise RequestRefused(400, "the upload is not in the form that multipart/form-data has") from error
    except OSError as error:
        receiver.drop()
        raise storage_error(error) from error
    except BaseException:
        receiver.drop()
        raise
    return receiver.form


def storage_error(error: OSError) -> RequestRefused:
    """Return the error for an upload that cannot be written."""
    problem = system_error(error)
    return RequestRefused(507, f"the upload cannot be stored: {problem.problem}", problem.hint)


class _Receiver:
    """Receives the parser's callbacks, part by part."""

    def __init__(self, spool: Spool, limits: Limits) -> None:
        self.form = UploadForm()
        self.whole = False
        self._spool = spool
        self._limits = limits
        self._headers: dict[bytes, bytes] = {}
        self._field, self._value = b"", b""
        self._file: IO[bytes] | None = None
        self._arriving: ReceivedFile | None = None
        self._named: str | None = None
        self._content = b""

    def begin(self) -> None:
        self._headers, self._field, self._value = {}, b"", b""

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        self._headers[self._field.lower()] = self._value
        self._field, self._value = b"", b""

    def headers_end(self) -> None:
        kind, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if kind != b"form-data":
            raise RequestRefused(400, "a part of the upload does not say what it is")
        filename = options.get(b"filename")
        if filename is None:
            self._named, self._content = options.get(b"name", b"").decode("utf-8", "replace"), b""
            if len(self.form.fields) >= _MAX_FIELDS:
                raise RequestRefused(400, "the upload has too many fields")
            return
        name = display_name(filename.decode("utf-8", "replace"))
        arriving = self._arriving = ReceivedFile("", name)
        self.form.files.append(arriving)
        if len(self.form.files) > self._limits.files:
            if len(self.form.files) > 10 * self._limits.files:
                raise RequestRefused(413, f"more than {self._limits.files} files were sent at a time")
            arriving.error = f"more than {self._limits.files} files were sent at a time"
            arriving.hint = "Send it with the next ones"
            return
        arriving.id, self._file = self._spool.begin()

    def data(self, data: bytes, start: int, end: int) -> None:
        if self._named is not None:
            self._content += data[start:end]
            if len(self._content) > _MAX_FIELD:
                raise RequestRefused(400, f"the field '{self._named[:50]}' is too long")
        elif self._arriving is not None and self._file is not None:
            self._arriving.size += end - start
            if self._arriving.size > self._limits.file_bytes:
                self._refuse(f"it is larger than {format_size(self._limits.file_bytes)}")
            else:
                self._file.write(data[start:end])

    def end(self) -> None:
        if self._named is not None:
            self.form.fields[self._named] = self._content.decode("utf-8", "replace").strip()
            self._named = None
        if self._arriving is not None and self._file is not None and not self._arriving.size:
            self._refuse("it is empty")
        if self._file is not None:
            self._file.close()
        self._file = self._arriving = None

    def finish(self) -> None:
        self.whole = True

    def drop(self) -> None:
        """Delete what has arrived."""
        if self._file is not None:
            self._file.close()
        for file in self.form.files:
            if file.id:
                self._spool.discard(file.id)

    def _refuse(self, error: str) -> None:
        assert self._arriving is not None and self._file is not None
        self._file.close()
        self._spool.discard(self._arriving.id)
        self._arriving.id, self._arriving.error, self._file = "", error, None
