"""Debian's Chromium: for the tests in a browser, the benchmark of pages, and the pictures of the README."""

import os
import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ABSENT = "no Chromium here; on Debian: apt install chromium"


@contextmanager
def chromium():
    """Start it without a window, and end it; needs playwright. Exits where there is no Chromium."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise SystemExit(ABSENT)
    # Its sandbox refuses to run as root, as containers do.
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=as_root)
        yield browser
        browser.close()
