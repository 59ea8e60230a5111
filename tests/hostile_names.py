"""Names that try to command a terminal, to look like other names, or to be read as markup."""

import re

_ESC = "\x1b"
_PARTS = (
    # Operating system commands: title, link, clipboard, image, colour; one without an end.
    f"{_ESC}]0;PWNED\x07",
    f"{_ESC}]2;PWNED{_ESC}\\",
    f"{_ESC}]8;;http:evil\x07click{_ESC}]8;;\x07",
    f"{_ESC}]52;c;ZXZpbA==\x07",
    f"{_ESC}]1337;File=:AAAA\x07",
    f"{_ESC}]4;1;?\x07",
    f"{_ESC}]0;PWNED",
    # Control sequences: erase, move, blink, hide, report, modes, margins.
    f"{_ESC}[2J",
    f"{_ESC}[H",
    f"{_ESC}[7A",
    f"{_ESC}[5m",
    f"{_ESC}[8m",
    f"{_ESC}[38;5;201m",
    f"{_ESC}[6n",
    f"{_ESC}[c",
    f"{_ESC}[?1049h",
    f"{_ESC}[?1000h",
    f"{_ESC}[1;3r",
    f"{_ESC}[",
    # Device control, application, privacy and start-of-string; reset, character sets, a lone escape.
    f"{_ESC}P$qm{_ESC}\\",
    f"{_ESC}_Gi=1;AAAA{_ESC}\\",
    f"{_ESC}^x{_ESC}\\",
    f"{_ESC}Xx{_ESC}\\",
    f"{_ESC}c",
    f"{_ESC}(0",
    f"{_ESC}",
    # C1 controls, which many terminals obey as well.
    "\x9b2J",
    "\x9d0;PWNED\x9c",
    "\x90q\x9c",
    "\x85FAKE",
    "\x8d",
    "\x9a",
    # C0 controls.
    "\rFAKE",
    "\nFAKE",
    "\r\nFAKE",
    "\x07",
    "\x08\x08\x08",
    "\x0bFAKE",
    "\x0cFAKE",
    "\x0e",
    "\x1a",
    "\x1cFAKE",
    "\x7f",
    "\u2028FAKE",
    "\u2029FAKE",
    # Directions of writing.
    "\u202egnp.exe",
    "\u202dx\u202c",
    "\u202ax\u202c",
    "\u2066x",
    "\u2067x\u2069",
    "\u2068x\u2069",
    "\u200e",
    "\u200f",
    "\u061c",
    # Marks without a width, joiners that join nothing, tags.
    "\u200b",
    "\u200c",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\u180e",
    "\u034f",
    "\u2063",
    "\u3164",
    "\U000e0001",
    "\U000e0069\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065\U000e007f",
    # Halves of characters.
    "\udc9b",
    "\udcff",
    "\ud83d",
    # Markup.
    "[red]x[,red]",
    "[link=http:evil]x[,link]",
    "[bold",
    ":skull:",
)
#: Each begins with its number, and none has a slash.
NAMES = tuple(f"n{number:02d} a{part}b" for number, part in enumerate(_PARTS))
#: Those that UTF-8 can hold.
TEXTS = tuple(name for name in NAMES if not re.search("[\ud800-\udfff]", name))

#: What rich writes: colours of the first sixteen, bold, dim, italic, underlined; and, for progress, hidden cursors,
#: cleared lines and the way up.
_OWN = re.compile(r"\x1b\[(?:0|[1-47]|3\d|4[0-7]|9\d|10[0-7])?(?:;(?:[1-47]|3[0-7]|4[0-7]|9[0-7]|10[0-7]))*m")
_OWN_PROGRESS = re.compile(r"\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r")
_HOSTILE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff"
    "\U000e0000-\U000e0fff\ud800-\udfff]|^ *FAKE",
    re.MULTILINE,
)


def hostile_parts(written: bytes, progress: bool = False) -> list[str]:
    """Return what a terminal was sent, with line ends as it has them, that the program does not write itself."""
    text = _OWN.sub("", written.decode("utf-8", "surrogateescape").replace("\r\n", "\n"))
    text = _OWN_PROGRESS.sub("", text) if progress else text
    return [repr(text[max(found.start() - 30, 0) : found.end() + 10]) for found in _HOSTILE.finditer(text)]
