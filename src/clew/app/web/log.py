"""The server's log: what it quotes of requests and documents commands no terminal."""

from __future__ import annotations

import logging

from clew.core.text import clean_name


def _clean_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = clean_name(record.getMessage()), ()
    return True


LOG = logging.getLogger("clew.app.web")
LOG.addFilter(_clean_record)
