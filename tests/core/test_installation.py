"""What to type to install an extra: for each way in which clew can have been installed, as pip records it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GIT, COMMIT = "https://git.example.org/clew.git", "0" * 40
#: What pip writes for each origin (PEP 610), and the commands for the extra ocr, for clew, and for a newer clew.
ORIGINS: dict[str, tuple[Any, tuple[str, str, str]]] = {
    "index": (
        None,
        ("pip install 'clew[ocr]'", "pip install clew", "pip install --upgrade clew"),
    ),
    "folder": (
        {"url": "file:///home/ines/clew", "dir_info": {}},
        ("pip install '.[ocr]'", "pip install .", "pip install --upgrade ."),
    ),
    "editable folder": (
        {"url": "file:///home/ines/clew", "dir_info": {"editable": True}},
        ("pip install -e '.[ocr]'", "pip install -e .", "pip install --upgrade -e ."),
    ),
    "repository": (
        {"url": GIT, "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
        (
            f"pip install 'clew[ocr] @ git+{GIT}'",
            f"pip install 'clew @ git+{GIT}'",
            f"pip install --upgrade 'clew @ git+{GIT}'",
        ),
    ),
    "branch and folder of a repository": (
        {
            "url": GIT,
            "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": COMMIT},
            "subdirectory": "python",
        },
        (
            f"pip install 'clew[ocr] @ git+{GIT}@main#subdirectory=python'",
            f"pip install 'clew @ git+{GIT}@main#subdirectory=python'",
            f"pip install --upgrade 'clew @ git+{GIT}@main#subdirectory=python'",
        ),
    ),
    "wheel": (
        {"url": "file:///tmp/clew-0.2.0-py3-none-any.whl", "archive_info": {"hash": "sha256=0"}},
        (
            "pip install 'clew[ocr] @ file:///tmp/clew-0.2.0-py3-none-any.whl'",
            "pip install 'clew @ file:///tmp/clew-0.2.0-py3-none-any.whl'",
            "pip install --upgrade 'clew @ file:///tmp/clew-0.2.0-py3-none-any.whl'",
        ),
    ),
}
#: Prints what those say who cannot go on without a package.
SCRIPT = """
from clew.core.errors import MissingExtra
from clew.core.installation import find_sources, format_install_command
from clew.parse.documents.pdf.recognition import describe_recognition

print(format_install_command("ocr"), format_install_command(), format_install_command(upgrade=True), sep="\\n")
print(MissingExtra("DuckDB", "ocr").hint)
print(describe_recognition())
print(find_sources())
"""


def install(folder: Path, record: Any) -> Path:
    """Write what pip leaves of an installation; return the folder for PYTHONPATH."""
    information = folder / "clew-0.2.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: clew\nVersion: 0.2.0\n")
    if record is not None:
        (information / "direct_url.json").write_text(json.dumps(record))
    return folder


def run_python(*arguments: str, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(path), "CLEW_CACHE": str(cwd / "cache")}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=cwd, capture_output=True, text=True
    )


@pytest.mark.parametrize("name", ORIGINS)
def test_each_installation_gets_its_own_command(name: str, tmp_path: Path) -> None:
    record, commands = ORIGINS[name]
    run = run_python("-c", SCRIPT, path=install(tmp_path / "installed", record), cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert tuple(lines[:3]) == commands
    assert lines[3] == f"Install it: {commands[0]}"
    assert lines[4] == f"To read text in pictures: {commands[0]}"
    assert lines[5] == "None"  # the folders above are not on this machine
    # pip reads it: a path, or a requirement.
    for command in commands:
        argument = shlex.split(command)[-1]
        assert argument.startswith(".") or Requirement(argument).name == "clew"


def test_sources_that_were_never_installed_are_a_folder(tmp_path: Path) -> None:
    script = f"""
import sys
sys.path[:] = [{str(ROOT / "src")!r}, *(place for place in sys.path if "site-packages" not in place)]
from clew.core.installation import find_sources, format_install_command
print(format_install_command("serve"), find_sources())
"""
    run = run_python("-I", "-c", script, path=tmp_path, cwd=tmp_path)
    assert run.stdout == f"pip install '.[serve]' {ROOT}\n", run.stderr


@pytest.mark.parametrize(
    ("elsewhere", "record"),
    [
        (True, {"dir_info": {}}),
        (True, {"dir_info": {"editable": True}}),
        (False, {"dir_info": {}}),
        (True, None),
    ],
)
def test_a_command_for_a_folder_says_which(elsewhere: bool, record: Any, tmp_path: Path) -> None:
    sources, work = tmp_path / "sources of clew", tmp_path / "work"
    sources.mkdir()
    work.mkdir()
    record = record and {"url": sources.as_uri(), **record}
    path = install(tmp_path / "installed", record)
    run = run_python("-m", "clew", "cluster", "up", path=path, cwd=work if elsewhere else sources)
    if "is not installed" not in run.stderr:
        pytest.skip("the extra scale is installed here")
    assert run.returncode == 2
    origin = "clew" if record is None else "-e ." if record["dir_info"] else "."
    hint = "pip install " + ("-e '.[scale]'" if origin == "-e ." else f"'{origin}[scale]'")
    assert f"Install it: {hint}\n" in run.stderr
    assert (f"In the folder {sources}\n" in run.stderr) == (elsewhere and record is not None), run.stderr


def test_no_other_text_of_clew_says_how_to_install() -> None:
    """A line that is written anywhere else is wrong for some installation."""
    texts = [
        path for path in (ROOT / "src").rglob("*") if path.suffix in {".py", ".html", ".js", ".po", ".md"}
    ]
    assert len(texts) > 400
    lines = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts
        if path.name != "installation.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"\bpip3? install\b|\bclew\\?\[\w", line)
    ]
    # How a hint of an installation is recognised.
    assert lines == ["src/clew/app/cli/command_group.py: " + lines[0].split(": ", 1)[1]]
    assert '"pip install" in error.hint' in lines[0]


def test_every_extra_that_is_named_exists() -> None:
    extras = PROJECT["optional-dependencies"]
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r'format_install_command\(["\'](\w[\w-]*)["\']\)', text))
        named |= set(re.findall(r'require_packages\("([\w-]+)"', text))
        named |= set(re.findall(r'MissingExtra\([^()]*, "([\w-]+)"\)', text))
    assert {"serve", "tables", "ocr", "scale", "rdf", "local", "train"} <= named <= set(extras)
