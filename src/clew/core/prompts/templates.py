"""Prompt files and the exemplars that they show, with their loaders.

A prompt is ``<name>.v<version>.md``: a header between two lines ``---`` (``role``, ``variables``, and optionally
``max_tokens``, ``stop`` and ``exemplars``), then ``# system`` (optional) and ``# user``. ``{{variable}}`` is replaced
by a value. A prompt whose reply is JSON has its schema beside it, in ``<name>.v<version>.json``.

A folder of the user's (``CLEW_PROMPTS``, or ``folder``) may contain files of the same names, which replace the
built-in ones. They must use the same variables and have the same role, because the code that fills them in is the
same; the schema cannot be replaced, because the code that reads the reply is the same.

A few-shot prompt names its exemplars in the header (``exemplars: chains 25``: the file and the number), shows in a
part ``# exemplar`` how one is written, and has ``{{exemplars}}`` where they go. A file of
exemplars is ``exemplars/<name>.jsonl``: one JSON object a line, all its values text. Several prompts may show the
same exemplars, each the fields that its part ``# exemplar`` mentions. A file of the same name in the folder
``exemplars`` of the user's prompts replaces the built-in one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew.core.config import prompts_path
from clew.core.errors import UsageError, unknown_name_error
from clew.core.prompts.replies import parse_json
from clew.core.protocols import Prompt

_BUILT_IN_EXEMPLARS = Path(__file__).parent / "exemplars"


@dataclass(frozen=True, slots=True)
class Exemplars:
    """The exemplars of one file. ``digest`` is the start of the SHA-256 of a user's file, "" for a built-in one."""

    path: Path
    shots: Sequence[Mapping[str, str]]
    digest: str = ""


def load_exemplars(name: str, folder: Path | None = None) -> Exemplars:
    """Return the exemplars called ``name``: the user's where ``folder`` has them, else the built-in ones.

    Raises UsageError for an unknown name, or a line that is not an object of texts.
    """
    built_in = _BUILT_IN_EXEMPLARS / f"{name}.jsonl"
    users = folder / "exemplars" / built_in.name if folder is not None else None
    if users is None or not users.is_file():
        if not built_in.is_file():
            places = [_BUILT_IN_EXEMPLARS, *([folder / "exemplars"] if folder is not None else [])]
            known = {path.stem for place in places for path in place.glob("*.jsonl")}
            raise unknown_name_error("file of exemplars", name, known)
        return Exemplars(built_in, _read_shots(built_in))
    return Exemplars(users, _read_shots(users), hashlib.sha256(users.read_bytes()).hexdigest()[:8])


def has_exemplars(name: str) -> bool:
    """Return whether the user's folder of prompts (``CLEW_PROMPTS``) has exemplars of this name."""
    folder = prompts_path()
    return folder is not None and (folder / "exemplars" / f"{name}.jsonl").is_file()


def _read_shots(path: Path) -> list[Mapping[str, str]]:
    shots: list[Mapping[str, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            shot = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{path}: line {number} is not JSON: {error}") from error
        if not isinstance(shot, dict) or not all(isinstance(value, str) for value in shot.values()):
            raise UsageError(f"{path}: line {number} is not an object whose values are texts")
        if any("{{" in value for value in shot.values()):
            raise UsageError(f"{path}: line {number} contains '{{{{'", "That would be read as a variable")
        shots.append(shot)
    return shots


_BUILT_IN = Path(__file__).parent
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_FILE = re.compile(r"\A---\n(?P<header>.*?)\n---\n(?P<body>.*)\Z", re.DOTALL)
_PART = re.compile(r"^# (system|user|exemplar)[ \t]*$", re.MULTILINE)
_KEYS = {"role", "variables", "max_tokens", "stop", "exemplars", "form"}
#: Where the exemplars of a few-shot prompt go.
_SHOTS = re.compile(r"\{\{\s*exemplars\s*\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with variables to fill in.

    ``name`` is ``read-cited.v2``; for a user's own file it ends with the hash of its content, so that a trail
    distinguishes the two. ``form`` is the form of a reply that is no free text, as
    :class:`~clew.core.protocols.Prompt` has it; ``shots`` are the exemplars that it shows.
    """

    name: str
    role: str
    user: str
    system: str = ""
    max_tokens: int = 512
    stop: tuple[str, ...] = ()
    schema: Mapping[str, Any] | None = None
    form: str = ""
    shots: tuple[str, ...] = ()

    @property
    def variables(self) -> frozenset[str]:
        """The variables that the prompt uses."""
        return frozenset(_VARIABLE.findall(self.system + self.user))

    def render(self, **variables: str) -> Prompt:
        """Return the prompt with its variables filled in. Raises UsageError for missing or unknown variables.

        Values are inserted as they are: braces in a value have no meaning.
        """
        _check_variables(f"prompt '{self.name}' is filled in", set(variables), self.variables)

        return Prompt(
            user=_fill(self.user, variables),
            system=_fill(self.system, variables),
            role=self.role,
            schema=self.schema,
            max_tokens=self.max_tokens,
            stop=self.stop,
            form=self.form,
            # The last ones may go first: exemplars are in the order of their use.
            optional=tuple(f"{shot}\n\n" for shot in reversed(self.shots)),
        )

    def parse(self, reply: str) -> Any:
        """Return the JSON value in a reply, valid by the schema. Raises BadCompletion."""
        return parse_json(reply, self.schema or {})


def load_prompt(
    name: str,
    *,
    folder: str | Path | None = None,
    shots: int | None = None,
    exemplars: str | None = None,
) -> Template:
    """Return a prompt in its newest version: the user's file where ``folder`` or ``CLEW_PROMPTS`` has one, else the
    built-in one.

    ``shots`` is the number of exemplars that a few-shot prompt shows, and ``exemplars`` the name of their file; both
    are by default those of the prompt's header. Raises UsageError for an unknown name, a damaged file, variables that
    do not match, a file of an earlier version, or more shots than there are.
    """
    file = max((path.name for path in _BUILT_IN.glob(f"{name}.v?.md")), default="")
    if not file:
        raise unknown_name_error(
            "prompt", name, {path.name.partition(".v")[0] for path in _BUILT_IN.glob("*.v?.md")}
        )
    place = Path(folder).expanduser() if folder is not None else prompts_path()
    if place is not None and not place.is_dir():
        raise UsageError(
            f"no folder of prompts at {place}", "CLEW_PROMPTS names it; unset it to use the built-in prompts"
        )
    built_in = _read(_BUILT_IN / file, place, _ShotOptions(shots, exemplars))
    schema = (_BUILT_IN / file).with_suffix(".json")
    if schema.is_file():
        built_in = replace(built_in, schema=json.loads(schema.read_text(encoding="utf-8")))
    if place is None or not (place / file).is_file():
        if place is not None and (earlier := next(place.glob(f"{name}.v?.md"), None)):
            raise UsageError(f"prompt file {earlier} is of an earlier version", f"clew reads '{file}' now")
        return built_in
    users = _read(place / file, place, _ShotOptions(shots, exemplars))
    _check_variables(f"prompt file {place / file} is written", users.variables, built_in.variables)
    if users.role != built_in.role:
        raise UsageError(
            f"prompt file {place / file} has role '{users.role}'", f"It must be '{built_in.role}'"
        )
    digest = hashlib.sha256((place / file).read_bytes()).hexdigest()[:8]
    return replace(users, name=f"{users.name}@{digest}", schema=built_in.schema)


@dataclass(frozen=True, slots=True)
class _ShotOptions:
    """The number of exemplars and the name of their file, where they differ from the header's."""

    shots: int | None = None
    exemplars: str | None = None


def _read(path: Path, folder: Path | None, shown: _ShotOptions) -> Template:
    match = _FILE.match(path.read_text(encoding="utf-8").replace("\r\n", "\n"))
    if match is None:
        raise UsageError(f"prompt file {path} has no header", "It starts with lines between '---' and '---'")
    header = _header(path, match["header"])
    pieces = _PART.split(match["body"])
    parts = dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))
    if pieces[0].strip() or not parts.get("user"):
        raise UsageError(f"prompt file {path} has no '# user' part", "It needs one, after the header")
    limit = header.get("max_tokens", "512")
    if not limit.isdigit():
        raise UsageError(f"prompt file {path}: max_tokens is '{limit}'", "It must be a whole number")
    name, user = path.name.removesuffix(".md"), parts["user"]
    shots: tuple[str, ...] = ()
    if "exemplars" in header:
        user, shots, digest = _with_exemplars(path, header["exemplars"], parts, folder, shown)
        name += "".join(f"+{suffix}" for suffix in (shown.exemplars, digest) if suffix)
    template = Template(
        name=name,
        role=header["role"],
        user=user,
        system=parts.get("system", ""),
        max_tokens=int(limit),
        stop=tuple(word.replace("\\n", "\n") for word in header.get("stop", "").split()),
        form=header.get("form", ""),
        shots=shots,
    )
    _check_variables(f"prompt file {path} is declared", set(header["variables"].split()), template.variables)
    return template


def _with_exemplars(
    path: Path, declared: str, parts: Mapping[str, str], folder: Path | None, shown: _ShotOptions
) -> tuple[str, tuple[str, ...], str]:
    """Return the user part with its exemplars filled in, these, and the digest of their file if it is a user's."""
    name, _, number = declared.partition(" ")
    if "exemplar" not in parts or not _SHOTS.search(parts["user"]) or not number.strip().isdigit():
        raise UsageError(
            f"prompt file {path} does not declare how its exemplars are shown",
            "It needs 'exemplars: NAME NUMBER', a part '# exemplar', and {{exemplars}} in '# user'",
        )
    exemplars = load_exemplars(shown.exemplars or name, folder)
    count = min(int(number), len(exemplars.shots)) if shown.shots is None else shown.shots
    if count > len(exemplars.shots):
        raise UsageError(f"{count} exemplars are requested and {exemplars.path} has {len(exemplars.shots)}")
    required = set(_VARIABLE.findall(parts["exemplar"]))
    for place, shot in enumerate(exemplars.shots[:count], 1):
        if missing := sorted(required - shot.keys()):
            raise UsageError(
                f"{exemplars.path}: exemplar {place} has no '{missing[0]}'", f"{path.name} shows it"
            )
    texts = tuple(_fill(parts["exemplar"], shot) for shot in exemplars.shots[:count])
    written = "\n\n".join(texts)
    return _SHOTS.sub(lambda _: written, parts["user"]).strip(), texts, exemplars.digest


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda variable: values[variable[1]], text)


def _header(path: Path, text: str) -> dict[str, str]:
    lines = [line.partition(":") for line in text.splitlines() if line.strip()]
    header = {key.strip(): value.strip() for key, _, value in lines}
    if wrong := sorted(header.keys() - _KEYS) or sorted({"role", "variables"} - header.keys()):
        raise UsageError(
            f"prompt file {path}: wrong or missing in the header: {', '.join(wrong)}",
            f"The keys are {', '.join(sorted(_KEYS))}",
        )
    return header


def _check_variables(
    what: str, given: set[str] | frozenset[str], required: set[str] | frozenset[str]
) -> None:
    problems = [f"without '{name}'" for name in sorted(required - given)]
    problems += [f"with '{name}', which the prompt does not have" for name in sorted(given - required)]
    if problems:
        raise UsageError(
            f"{what} {' and '.join(problems)}", f"Its variables are {', '.join(sorted(required))}"
        )
