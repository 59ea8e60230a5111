"""The folder of a training: what continues it, what it refuses, and which checkpoint is the last."""

import json

import pytest

from clew.core.errors import UsageError
from clew.train.training_folder import FINISHED, TrainingFolder

DESCRIPTION = {"model": "m", "settings": {"epochs": 3, "seed": 0}}


@pytest.fixture
def folder(tmp_path):
    return TrainingFolder(tmp_path / "out", "clew-training.json")


def test_only_the_same_command_continues(folder):
    assert folder.read() == {} and folder.begin(DESCRIPTION) == DESCRIPTION
    folder.check()
    assert folder.begin(DESCRIPTION) == DESCRIPTION
    with pytest.raises(UsageError, match="another epochs: 3 there, 4 now"):
        folder.begin(DESCRIPTION | {"settings": {"epochs": 4, "seed": 0}})


def test_a_folder_of_something_else_is_refused(folder, tmp_path):
    folder.path.mkdir()
    (folder.path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match="something else"):
        folder.check()
    with pytest.raises(UsageError, match="is a file"):
        TrainingFolder(folder.path / "notes.txt", folder.name).check()
    for text in ("{", "[]"):
        (folder.path / folder.name).write_text(text)
        with pytest.raises(UsageError, match="damaged"):
            folder.read()


def test_the_last_checkpoint_that_is_complete_counts_and_goes_at_the_end(folder):
    folder.begin(DESCRIPTION)
    assert folder.last_checkpoint() == (None, 0)
    for step, text in ((25, '{"global_step": 25}'), (50, '{"global_step": 50}'), (75, '{"global')):
        (folder.checkpoints / f"checkpoint-{step}").mkdir(parents=True)
        (folder.checkpoints / f"checkpoint-{step}" / "trainer_state.json").write_text(text)
    assert folder.last_checkpoint() == (folder.checkpoints / "checkpoint-50", 50)
    assert not (folder.checkpoints / "checkpoint-75").exists()
    folder.finish(DESCRIPTION | {FINISHED: {"loss": 0.5}})
    assert not folder.checkpoints.exists() and json.loads((folder.path / folder.name).read_text())[FINISHED]
