"""A base is made with all its settings or not at all, and the doctor knows what it should have."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.knowledge_base.knowledge_base import ENCODER_SETTING
from clew.store.store import PASSAGES_SETTING, Store
from soak import without_processes
from system_calls import Interference, can_trace, run_traced

needs_tracing = pytest.mark.skipif(not can_trace(), reason="a process cannot be traced here")


@pytest.fixture
def simple_encoders():
    with without_processes():
        yield


def settings_of(folder: Path) -> dict[str, str]:
    with Store.open(folder) as base, base.database.read_transaction() as connection:
        return dict(connection.execute("SELECT name, value FROM setting").fetchall())


@needs_tracing
@pytest.mark.parametrize(
    ("passages", "settings"),
    [(None, {}), ("sentence", {ENCODER_SETTING: "st:first"}), ("paragraph", {"title": "My mills"})],
)
def test_a_base_whose_making_is_killed_has_all_settings_or_is_not_there(
    tmp_path, simple_encoders, passages, settings
):
    """At every call that changes a file."""
    expected = {PASSAGES_SETTING: passages or "paragraph", ENCODER_SETTING: "none", **settings}
    made = 0
    for point in range(1, 500):
        folder = tmp_path / "base"
        shutil.rmtree(folder, ignore_errors=True)

        def make(folder=folder):
            clew.open(folder, create=True, passages=passages, settings=settings).close()

        killed = run_traced(make, Interference(point)).killed
        if Store.exists(folder):
            made += 1
            assert settings_of(folder) == expected, f"killed at point {point}"
        make()
        assert settings_of(folder) == expected, f"made again after point {point}"
        if not killed:
            break
    assert point > 10 and made > 0


@pytest.fixture
def base(tmp_path, simple_encoders):
    (tmp_path / "docs").mkdir()
    for name in ("mill", "bridge", "toll"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# The {name}\n\nThe {name} stands at the river.\n")
    with clew.open(tmp_path / "base", create=True, settings={ENCODER_SETTING: "st:first"}) as opened:
        opened.add([tmp_path / "docs"])
        yield opened


def delete_settings(base, *names):
    with base.store.database.write_transaction() as connection:
        connection.executemany("DELETE FROM setting WHERE name = ?", [(name,) for name in names])


@pytest.mark.parametrize(
    "lacking", [[ENCODER_SETTING], [PASSAGES_SETTING], [ENCODER_SETTING, PASSAGES_SETTING]]
)
def test_the_doctor_sets_what_a_base_lacks(base, monkeypatch, lacking):
    monkeypatch.setenv("CLEW_ENCODER", "st:first")
    delete_settings(base, *lacking)
    assert {finding.what for finding in base.doctor(repair=False)} == {"settings"}
    assert base.store.get_setting(lacking[0]) is None
    findings = base.doctor()
    assert len(findings) == len(lacking) and all(finding.repaired for finding in findings)
    assert base.encoding.name == "st:first" and base.store.passage_unit == "paragraph"
    assert base.doctor() == []


@pytest.mark.parametrize("lost", ["all", "last", "other"])
def test_the_doctor_makes_vectors_that_are_missing(base, tmp_path, lost):
    before = base.search("toll", k=3)
    if lost == "all":
        shutil.rmtree(base.store.derived / "vectors")
    elif lost == "other":
        base.encoding.set("st:second")
    else:
        (tmp_path / "docs" / "new.md").write_text("# The ferry\n\nThe ferry crosses the river.\n")
        ferry = clew.open(tmp_path / "base")
        ferry.encoding.set(None)  # as a process that is killed before it encodes
        ferry.add([tmp_path / "docs"])
        ferry.encoding.set("st:first")
        ferry.close()
    missing = base.encoding.count_missing()
    assert missing > 0
    (finding,) = base.doctor(repair=False)
    assert finding.what == "vectors" and str(missing) in finding.problem and not finding.repaired
    assert [finding.repaired for finding in base.doctor()] == [True]
    assert base.encoding.count_missing() == 0 and base.doctor() == []
    assert base.search("toll", k=1)[0].node.id == before[0].node.id


def test_a_later_add_completes_a_base_that_lost_its_encoder(base, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_ENCODER", "st:first")
    delete_settings(base, ENCODER_SETTING)
    shutil.rmtree(base.store.derived / "vectors")
    with clew.open(tmp_path / "base", create=True) as again:
        again.add([tmp_path / "docs"])
        assert again.encoding.name == "st:first" and again.encoding.count_missing() == 0


@pytest.mark.parametrize("encoder", [None, "st:first"])
def test_a_base_that_has_what_it_should_is_left_alone(base, encoder):
    base.encoding.set(encoder)
    digest = base.store.digest()
    assert base.doctor() == [] and base.store.digest() == digest


@pytest.mark.parametrize("name", ["onnx:/nowhere/at/all", "nonsense:x"])
def test_the_doctor_names_an_encoder_that_cannot_be_loaded(tmp_path, name):
    with clew.open(tmp_path / "base", create=True, settings={ENCODER_SETTING: name}) as base:
        (finding,) = base.doctor()
        assert finding.what == "encoder" and name in finding.problem and not finding.repaired


def test_the_doctor_sends_nothing_to_another_machine(base):
    base.store.set_setting(ENCODER_SETTING, "openai:text-embedding-3-small@http://203.0.113.1/v1")
    (finding,) = base.doctor()
    assert not finding.repaired


def test_a_base_that_a_command_makes_has_the_encoder_that_it_names(tmp_path):
    """The command line, with an encoder that there is not: nothing is made."""
    (tmp_path / "a.md").write_text("# A\n\nThe mill stands.\n")
    command = [sys.executable, "-m", "clew", "add", str(tmp_path / "a.md"), "--kb", str(tmp_path / "kb")]
    done = subprocess.run([*command, "--encoder", "nonsense:x"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "nonsense" in done.stderr
    assert not Store.exists(tmp_path / "kb")
