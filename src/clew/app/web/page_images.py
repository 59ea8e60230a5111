"""Pictures of pages that were drawn lately."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from clew.app.web.errors import ServerBusy
from clew.core.errors import UnreadableFile

if TYPE_CHECKING:
    from clew.app.web.bases import ServedBase
    from clew.parse.documents.pdf.page_images import PageImage

#: Scales that a page is drawn in: an address is not to make a thousand pictures of one page.
SCALES = (0.5, 1.0, 1.5, 2.0, 3.0)


#: Pictures that are drawn or wait for it at once: each holds a thread, and a page may take long.
MAX_CONCURRENT = 8
#: Pages that could not be drawn and are remembered.
_FAILED = 256


class PageImageCache:
    """Pages as pictures; the least recently seen go where they take more than ``most`` bytes. What cannot be drawn is
    tried once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str, int, float], PageImage] = OrderedDict()
        self._failed: OrderedDict[tuple[str, str, int], UnreadableFile] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(MAX_CONCURRENT)

    def get(self, base: ServedBase, key: str, page: int, scale: float) -> PageImage:
        """Return a page of a document at the nearest of :data:`SCALES`; raises as
        :meth:`clew.knowledge_base.Base.page_image`, and Busy where too many are being drawn."""
        scale = nearest_scale(scale)
        place = (base.name, key, page, scale)
        with self._lock:
            if place in self._kept:
                self._kept.move_to_end(place)
                return self._kept[place]
            if (failed := self._failed.get(place[:3])) is not None:
                raise failed
        if not self._room.acquire(blocking=False):
            raise ServerBusy("too many pages are being drawn", 5)
        try:
            made = base.knowledge_base.files.page_image(key, page, scale)
        except UnreadableFile as error:
            with self._lock:
                self._failed[place[:3]] = error
                while len(self._failed) > _FAILED:
                    self._failed.popitem(last=False)
            raise
        finally:
            self._room.release()
        with self._lock:
            if place not in self._kept:
                self._kept[place] = made
                self._bytes += len(made.png)
            while self._bytes > self._most and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._bytes -= len(old.png)
        return made

    def forget(self, base: ServedBase, key: str) -> None:
        """Forget the pages of a document."""
        with self._lock:
            for place in [one for one in self._kept if one[:2] == (base.name, key)]:
                self._bytes -= len(self._kept.pop(place).png)


def nearest_scale(scale: float) -> float:
    """Return the one of :data:`SCALES` that is nearest."""
    return min(SCALES, key=lambda one: abs(one - scale))
