"""Sources and names as callers give them."""

from pathlib import Path, PurePosixPath
from urllib.parse import urlparse, urlsplit

import httpx
import pytest

from clew.core.errors import UsageError
from clew.core.sources import (
    SYSTEM_FOLDERS,
    expand_path,
    list_paths,
    list_sources,
    read_source,
    refuse_system_folders,
)

PAGE = "https://example.org/a?b=c"


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        ("ab", ["ab"]),
        (Path("a/b"), ["a/b"]),
        (PurePosixPath("a b"), ["a b"]),
        (["ab", Path("c")], ["ab", "c"]),
        (("ab",), ["ab"]),
        ({"ab": 1}, ["ab"]),
        (frozenset({"ab"}), ["ab"]),
        ((text for text in ("ab", "c")), ["ab", "c"]),
        ([], []),
        (PAGE, [PAGE]),
        (urlsplit(PAGE), [PAGE]),
        (urlparse(PAGE), [PAGE]),
        (httpx.URL(PAGE), [PAGE]),
        ([httpx.URL(PAGE), "ab"], [PAGE, "ab"]),
        ("file:///a/b%20c.md", ["/a/b c.md"]),
        ("FILE://localhost/a", ["/a"]),
        (" ", [" "]),
        ("upload:key/name.md", ["upload:key/name.md"]),
    ],
)
def test_a_lone_source_is_one_and_a_series_keeps_its_order(given, texts) -> None:
    assert list_sources(given) == texts


def test_several_arguments_are_one_list() -> None:
    assert list_sources("ab", Path("c"), ["d", "ef"]) == ["ab", "c", "d", "ef"]


@pytest.mark.parametrize("given", [None, 3, b"ab", "", "a\0b", ["a", None], [["a", "b"]], [b"a"], object()])
def test_what_is_no_source_is_refused(given) -> None:
    with pytest.raises(UsageError, match="no path, address or name: "):
        list_sources(given)


def test_a_series_is_not_read_where_there_is_one_source() -> None:
    with pytest.raises(UsageError, match="no path, address or name: "):
        read_source(["a", "b"])
    with pytest.raises(UsageError, match="on another machine"):
        read_source("file://server/share/a.md")


def test_a_path_is_absolute_without_dots_and_its_links_stay(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert expand_path("link/../link/a.md") == tmp_path / "link" / "a.md"
    assert expand_path(Path("~/a.md")) == expand_path("a.md") == tmp_path / "a.md"
    assert expand_path("~nobody-of-that-name/a") == tmp_path / "~nobody-of-that-name" / "a"
    assert list_paths("~/a.tsv") == (tmp_path / "a.tsv",)
    assert list_paths(["a.tsv", Path("~nobody-of-that-name/b")]) == (
        Path("a.tsv"),
        Path("~nobody-of-that-name/b"),
    )


@pytest.mark.parametrize(
    "folder", [folder for folder in SYSTEM_FOLDERS if Path(folder).expanduser().is_dir()]
)
def test_a_system_folder_is_refused_by_every_path_to_it(folder, tmp_path) -> None:
    (tmp_path / "link").symlink_to(Path(folder).expanduser())
    whole = str(Path(folder).expanduser())
    for path in (
        folder,
        Path(whole),
        f"{whole}/.",
        f"{whole}/nothing/..",
        tmp_path / "link",
        f"file://{whole}",
    ):
        with pytest.raises(UsageError, match="--anyway"):
            refuse_system_folders(path)
        with pytest.raises(UsageError, match="--anyway"):
            refuse_system_folders([tmp_path, path])


def test_files_and_folders_within_them_are_not(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "papers").mkdir()
    (tmp_path / "a.md").write_text("text")
    refuse_system_folders(
        ["/etc/passwd", "/usr/lib", "~/papers", "~/a.md", "/nothing/there", "https://example.org/"]
    )
    with pytest.raises(UsageError, match="your home folder"):
        refuse_system_folders("~")
