import os
from pathlib import Path

from clew.core.types import Document
from clew.knowledge_base.ingest.plan import plan_files, scan_paths
from clew.parse.documents.builder import document_key

TYPE, PARSER = "text/plain", "plain/1(passages=paragraph)"


class Shelf:
    """A folder and what a base would say of it after adding everything in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.located = {}
        self.documents = {}

    def write(self, name: str, text: str) -> Path:
        (self.folder / name).write_text(text)
        return self.folder / name

    def files(self):
        return scan_paths([self.folder], lambda path: True).files

    def add(self) -> None:
        for file in self.files():
            key = document_key(Path(file.path).read_bytes(), TYPE, PARSER)
            self.located[file.path] = (file, key)
            self.documents[key] = Document(key, Path(file.path).name, "", TYPE, PARSER, 0, 1, (file.path,))

    def plan(self, **options):
        result = plan_files(self.files(), self.located, self.documents.values(), **options)
        parse = [Path(file.path).name for file in result.to_parse]
        known = [(Path(file.path).name, key) for file, key in result.known]
        twins = {Path(p).name: [Path(t.path).name for t in ts] for p, ts in result.duplicates.items()}
        return result.unchanged, known, parse, twins


def test_everything_is_read_the_first_time(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.write("b.txt", "one"), shelf.write("a.txt", "three")
    assert shelf.plan() == (0, [], ["a.txt", "b.txt"], {})


def test_nothing_is_opened_the_second_time(tmp_path):
    shelf = Shelf(tmp_path)
    for name in "abc":
        shelf.write(f"{name}.txt", name)
    shelf.add()
    # An unreadable path would be planned for reading if anything looked at bytes.
    (tmp_path / "a.txt").chmod(0)
    assert shelf.plan() == (3, [], [], {})


def test_a_changed_file_is_read(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.write("a.txt", "old"), shelf.write("b.txt", "stays")
    shelf.add()
    shelf.write("a.txt", "new")  # of the same size
    os.utime(tmp_path / "a.txt", ns=(1, 1))
    assert shelf.plan() == (1, [], ["a.txt"], {})


def test_a_touched_file_is_recognised_by_its_bytes(tmp_path):
    shelf = Shelf(tmp_path)
    path = shelf.write("a.txt", "same")
    shelf.add()
    os.utime(path, ns=(1, 1))
    [(name, key)] = shelf.plan()[1]
    assert (name, key) == ("a.txt", shelf.located[str(path)][1])


def test_only_checksum_sees_a_change_that_left_no_trace(tmp_path):
    shelf = Shelf(tmp_path)
    path = shelf.write("a.txt", "old")
    shelf.write("b.txt", "fine")
    shelf.add()
    before = path.stat()
    path.write_text("new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert shelf.plan() == (2, [], [], {})
    assert shelf.plan(checksum=True) == (1, [], ["a.txt"], {})


def test_a_renamed_file_needs_no_reading(tmp_path):
    shelf = Shelf(tmp_path)
    path = shelf.write("a.txt", "same")
    shelf.add()
    [key] = shelf.documents
    path.rename(tmp_path / "z.txt")
    assert shelf.plan() == (0, [("z.txt", key)], [], {})


def test_the_same_bytes_as_another_type_are_read(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.write("a.txt", "# same")
    shelf.add()
    shelf.write("a.md", "# same")
    assert shelf.plan() == (1, [], ["a.md"], {})


def test_duplicates_are_read_once(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.write("c.txt", "same"), shelf.write("a.txt", "same")
    shelf.write("b.txt", "diff"), shelf.write("d.md", "same"), shelf.write("e.txt", "longer")
    assert shelf.plan() == (0, [], ["a.txt", "b.txt", "d.md", "e.txt"], {"a.txt": ["c.txt"]})


def test_another_file_of_the_same_size_is_not_taken_for_a_known_one(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.write("a.txt", "one")
    shelf.add()
    shelf.write("b.txt", "two")
    assert shelf.plan() == (1, [], ["b.txt"], {})
