"""Prompt files and their loader.

A prompt is ``<name>.v<version>.md``: a header between two lines ``---`` (``role``, ``variables``, and where
they differ from the defaults ``max_tokens`` and ``stop``), then ``# system`` (may be missing) and ``# user``.
``{{variable}}`` stands for a value. A prompt that wants JSON has its schema beside it, in
``<name>.v<version>.json``.

A folder of the user's (``CLEW_PROMPTS``, or given) may hold files of the same names that replace ours. They
must use the same variables and serve the same role, because the code that fills them in is the same; the
schema stays ours, because the code that reads the reply is the same.

A few-shot prompt names its exemplars in the header (``exemplars: chains 25``: the file and how many of it), says in a
part ``# exemplar`` how one is written, and has ``{{exemplars}}`` where they go (:mod:`clew.core.prompts.exemplars`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew.core.config import prompts_path
from clew.core.errors import UsageError, unknown_name_error
from clew.core.prompts.exemplars import load_exemplars
from clew.core.prompts.replies import parse_json
from clew.core.protocols import Prompt

_OURS = Path(__file__).parent
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_FILE = re.compile(r"\A---\n(?P<header>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_PART = re.compile(r"^# (system|user|exemplar)[ \t]*$", re.MULTILINE)
_KEYS = {"role", "variables", "max_tokens", "stop", "exemplars"}
#: Where the exemplars of a few-shot prompt go.
_SHOTS = re.compile(r"\{\{\s*exemplars\s*\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt whose variables are not filled in yet.

    ``name`` is ``read-cited.v1``; for a user's own file it ends with the hash of its content, so that a trail
    tells the two apart.
    """

    name: str
    role: str
    user: str
    system: str = ""
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the prompt uses."""
        return frozenset(_VARIABLE.findall(self.system + self.user))

    def render(self, **variables: str) -> Prompt:
        """Return the prompt with its variables filled in. Raises UsageError unless they are its own.

        Values are put in as they are: braces in a value mean nothing.
        """
        _same(f"prompt '{self.name}' is filled in", set(variables), self.variables)

        def fill(text: str) -> str:
            return _filled(text, variables)

        return Prompt(
            user=fill(self.user),
            system=fill(self.system),
            role=self.role,
            schema=self.schema,
            max_tokens=self.max_tokens,
            stop=self.stop,
        )

    def parse(self, reply: str) -> Any:
        """Return the JSON value in a reply, valid by the schema. Raises BadCompletion."""
        return parse_json(reply, self.schema or {})


def load_prompt(
    name: str,
    *,
    version: int = 1,
    folder: str | Path | None = None,
    shots: int | None = None,
    exemplars: str | None = None,
) -> Template:
    """Return a prompt: the user's file of that name where ``folder`` or ``CLEW_PROMPTS`` has one, else ours.

    ``shots`` is how many exemplars a few-shot prompt shows, and ``exemplars`` the file that they are from; by default
    what its header says. Raises UsageError for an unknown name, a damaged file, variables that do not match, or more
    shots than there are.
    """
    file = f"{name}.v{version}.md"
    if not (_OURS / file).is_file():
        known = {path.name.removesuffix(".md") for path in _OURS.glob("*.v*.md")}
        raise unknown_name_error("prompt", file.removesuffix(".md"), known)
    place = Path(folder).expanduser() if folder is not None else prompts_path()
    if place is not None and not place.is_dir():
        raise UsageError(
            f"no folder of prompts at {place}", "It is named by CLEW_PROMPTS; unset that to use ours"
        )
    ours = _read(_OURS / file, place, _Shown(shots, exemplars))
    schema = _OURS / f"{name}.v{version}.json"
    if schema.is_file():
        ours = replace(ours, schema=json.loads(schema.read_text(encoding="utf-8")))
    if place is None or not (place / file).is_file():
        return ours
    theirs = _read(place / file, place, _Shown(shots, exemplars))
    _same(f"prompt file {place / file} is written", theirs.variables, ours.variables)
    if theirs.role != ours.role:
        raise UsageError(f"prompt file {place / file} has role '{theirs.role}'", f"It must be '{ours.role}'")
    digest = hashlib.sha256((place / file).read_bytes()).hexdigest()[:8]
    return replace(theirs, name=f"{theirs.name}@{digest}", schema=ours.schema)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown instead of what a header says: how many exemplars, of which file."""

    shots: int | None = None
    exemplars: str | None = None


def _read(path: Path, folder: Path | None, shown: _Shown) -> Template:
    found = _FILE.match(path.read_text(encoding="utf-8").replace("\r\n", "\n"))
    if found is None:
        raise UsageError(f"prompt file {path} has no header", "It starts with lines between '---' and '---'")
    header = _header(path, found["header"])
    pieces = _PART.split(found["body"])
    parts = dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))
    if pieces[0].strip() or not parts.get("user"):
        raise UsageError(f"prompt file {path} has no '# user' part", "It needs one, after the header")
    limit = header.get("max_tokens", "512")
    if not limit.isdigit():
        raise UsageError(f"prompt file {path}: max_tokens is '{limit}'", "It must be a whole number")
    name, user = path.name.removesuffix(".md"), parts["user"]
    if "exemplars" in header:
        user, digest = _with_exemplars(path, header["exemplars"], parts, folder, shown)
        name += "".join(f"+{one}" for one in (shown.exemplars, digest) if one)
    template = Template(
        name=name,
        role=header["role"],
        user=user,
        system=parts.get("system", ""),
        max_tokens=int(limit),
        stop=tuple(header.get("stop", "").split()),
    )
    _same(f"prompt file {path} is declared", set(header["variables"].split()), template.variables)
    return template


def _with_exemplars(
    path: Path, said: str, parts: Mapping[str, str], folder: Path | None, shown: _Shown
) -> tuple[str, str]:
    """Return the user part with its exemplars in it, and the digest of their file if it is not ours."""
    name, _, number = said.partition(" ")
    if "exemplar" not in parts or not _SHOTS.search(parts["user"]) or not number.strip().isdigit():
        raise UsageError(
            f"prompt file {path} does not say how its exemplars are shown",
            "It needs 'exemplars: NAME NUMBER', a part '# exemplar', and {{exemplars}} in '# user'",
        )
    found = load_exemplars(shown.exemplars or name, folder)
    most = min(int(number), len(found.shots)) if shown.shots is None else shown.shots
    if most > len(found.shots):
        raise UsageError(f"{most} exemplars are asked for and {found.path} has {len(found.shots)}")
    wanted = set(_VARIABLE.findall(parts["exemplar"]))
    for place, one in enumerate(found.shots[:most], 1):
        if missing := sorted(wanted - one.keys()):
            raise UsageError(f"{found.path}: exemplar {place} has no '{missing[0]}'", f"{path.name} shows it")
    written = "\n\n".join(_filled(parts["exemplar"], one) for one in found.shots[:most])
    return _SHOTS.sub(lambda _: written, parts["user"]).strip(), found.digest


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: values[found[1]], text)


def _header(path: Path, text: str) -> dict[str, str]:
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    header = {key.strip(): value.strip() for key, _, value in lines}
    if wrong := sorted(header.keys() - _KEYS) or sorted({"role", "variables"} - header.keys()):
        raise UsageError(
            f"prompt file {path}: wrong or missing in the header: {', '.join(wrong)}",
            f"The keys are {', '.join(sorted(_KEYS))}",
        )
    return header


def _same(what: str, given: set[str] | frozenset[str], wanted: set[str] | frozenset[str]) -> None:
    problems = [f"without '{name}'" for name in sorted(wanted - given)]
    problems += [f"with '{name}', which does not belong there" for name in sorted(given - wanted)]
    if problems:
        raise UsageError(f"{what} {' and '.join(problems)}", f"Its variables are {', '.join(sorted(wanted))}")
