"""Pictures of pages that were drawn lately."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.parse.pdf.picture import Picture
    from clew.serve.shelf import Shelved

#: Scales that a page is drawn in: an address is not to make a thousand pictures of one page.
SCALES = (0.5, 1.0, 1.5, 2.0, 3.0)


class Pictures:
    """Pages as pictures; the least recently seen go where they take more than ``most`` bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str, int, float], Picture] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, shelved: Shelved, key: str, page: int, scale: float) -> Picture:
        """Return a page of a document at the nearest of :data:`SCALES`; raises as
        :meth:`clew.api.Base.page_image`."""
        scale = nearest(scale)
        place = (shelved.name, key, page, scale)
        with self._lock:
            if place in self._kept:
                self._kept.move_to_end(place)
                return self._kept[place]
        made = shelved.base.page_image(key, page, scale)
        with self._lock:
            if place not in self._kept:
                self._kept[place] = made
                self._bytes += len(made.png)
            while self._bytes > self._most and len(self._kept) > 1:
                _, old = self._kept.popitem(last=False)
                self._bytes -= len(old.png)
        return made

    def forget(self, shelved: Shelved, key: str) -> None:
        """Forget the pages of a document."""
        with self._lock:
            for place in [one for one in self._kept if one[:2] == (shelved.name, key)]:
                self._bytes -= len(self._kept.pop(place).png)


def nearest(scale: float) -> float:
    """Return the one of :data:`SCALES` that is nearest."""
    return min(SCALES, key=lambda one: abs(one - scale))
