import os
from pathlib import Path

import pytest

from clew.knowledge_base.ingest.plan import scan_paths


def texts(path: Path) -> bool:
    return path.suffix in {".txt", ".md"}


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def names(scan, folder: Path) -> list[str]:
    return [os.path.relpath(file.path, folder) for file in scan.files]


def test_scanned_files_are_sorted_and_listed_once(tmp_path):
    write(tmp_path, "b/z.txt", "b/a.txt", "a.md", "c.txt")
    scan = scan_paths([tmp_path / "c.txt", tmp_path, tmp_path / "b"], texts)
    assert names(scan, tmp_path) == ["a.md", "b/a.txt", "b/z.txt", "c.txt"]
    assert not scan.failed


def test_locations_carry_what_tells_a_later_visit_apart(tmp_path):
    write(tmp_path, "a.txt")
    [file] = scan_paths([tmp_path], texts).files
    status = (tmp_path / "a.txt").stat()
    assert (file.size, file.mtime_ns, file.inode) == (5, status.st_mtime_ns, status.st_ino)
    assert (file.path, file.root) == (str(tmp_path / "a.txt"), str(tmp_path))


def test_hidden_unsupported_and_special_are_counted_not_taken(tmp_path):
    write(tmp_path, ".hidden.txt", ".git/a.txt", "~$a.txt", "a.exe", "b.exe", "a.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    scan = scan_paths([tmp_path], texts)
    assert names(scan, tmp_path) == ["a.txt"]
    assert scan.skipped == {"hidden": 3, "unsupported type": 2, "not a regular file": 1, "broken link": 1}
    assert len(scan.unsupported) == 2


def test_a_file_that_is_named_is_taken_whatever_its_name(tmp_path):
    write(tmp_path, ".hidden", "b.exe")
    scan = scan_paths([tmp_path / ".hidden", tmp_path / "b.exe"], texts)
    assert names(scan, tmp_path) == [".hidden", "b.exe"]


def test_link_loops_end_and_real_paths_win(tmp_path):
    write(tmp_path, "real/deep/a.txt")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    (tmp_path / "real/deep/up").symlink_to(tmp_path)
    (tmp_path / "real/self").symlink_to(tmp_path / "real")
    assert names(scan_paths([tmp_path], texts), tmp_path) == ["real/deep/a.txt"]


def test_links_to_elsewhere_are_followed(tmp_path):
    write(tmp_path, "outside/a.txt", "outside/dir/b.txt")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file.txt").symlink_to(tmp_path / "outside/a.txt")
    (inside / "folder").symlink_to(tmp_path / "outside/dir")
    assert names(scan_paths([inside], texts), inside) == ["file.txt", "folder/b.txt"]


def test_the_base_itself_is_left_out(tmp_path):
    write(tmp_path, "base/store.txt", "a.txt")
    assert names(scan_paths([tmp_path], texts, exclude=tmp_path / "base"), tmp_path) == ["a.txt"]


def test_a_missing_path_is_named_and_the_rest_is_found(tmp_path):
    write(tmp_path, "a.txt")
    scan = scan_paths([tmp_path / "none", tmp_path], texts)
    assert [str(failure) for failure in scan.failed] == [f"{tmp_path / 'none'}: no such file or folder"]
    assert scan.roots == [str(tmp_path)]
    assert names(scan, tmp_path) == ["a.txt"]


@pytest.mark.skipif(os.name == "nt", reason="file names are Unicode there")
def test_a_file_name_that_is_not_unicode_is_named_legibly(tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "w") as file:  # noqa: PTH123 - a path of bytes
        file.write("x")
    scan = scan_paths([tmp_path], texts)
    assert not scan.files
    assert scan.failed[0].path.endswith("caf?.txt") and "Unicode" in scan.failed[0].reason
    scan.failed[0].path.encode()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_named(tmp_path):
    write(tmp_path, "locked/a.txt", "b.txt")
    (tmp_path / "locked").chmod(0)
    try:
        scan = scan_paths([tmp_path], texts)
    finally:
        (tmp_path / "locked").chmod(0o700)
    assert [failure.reason for failure in scan.failed] == ["permission denied"]
    assert names(scan, tmp_path) == ["b.txt"]
