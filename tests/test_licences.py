"""Every package that clew or one of its extras brings has a permissive licence."""

import re
from importlib.metadata import PackageNotFoundError, distribution

PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software|Unlicense|Zlib|HPND|CC0|MPL|Mozilla|Public Domain"
)
COPYLEFT = re.compile(r"GPL|General Public")


def licence(package: str) -> str:
    metadata = distribution(package).metadata
    classifiers = [
        text.rpartition("::")[2].strip() for text in metadata.get_all("Classifier") or () if "License" in text
    ]
    return metadata["License-Expression"] or " ".join(classifiers) or (metadata["License"] or "")[:80]


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
