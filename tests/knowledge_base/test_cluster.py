"""Work on a cluster whose tasks run in this process: what comes back, in whatever order, and what is lost on the way.

With the real Ray: test_ray.py.
"""

import json
import pickle
import random
import shutil

import numpy as np
import pytest

from clew.core.errors import MissingExtra, RemoteError, UsageError
from clew.evaluate import cluster as evaluate_cluster
from clew.evaluate.cluster import ClusterRun
from clew.evaluate.run_folder import evaluate_recipes
from clew.evaluate.setup import EvaluationSettings, load_questions
from clew.knowledge_base import cluster as clusters
from clew.knowledge_base import ingest, local_cluster
from clew.knowledge_base.cluster import Cluster, ClusterEncoder, WorkerLost, connect_cluster, describe_cluster
from clew.knowledge_base.local_cluster import LocalCluster, read_local_cluster
from clew.parse.documents.reader import read_file
from clew.store.store import Store
from command_line import run
from kb_documents import HashEncoder
from ray_cluster import write_documents

WORDS = "lighter quay ledger tide pilot crane barge mill bridge charter".split()


class ScriptedExecutor:
    """Runs tasks in this process, in a random order, through pickle as Ray does. ``fault`` is called with the number
    of each task, and may raise."""

    def __init__(self, seed=0, cores=2, fault=lambda number: None):
        self.rng, self.count, self.fault = random.Random(seed), cores, fault
        self.submitted, self.most = 0, 0

    def submit(self, function, *arguments):
        self.submitted += 1
        return self.submitted, pickle.dumps((function, arguments))

    def put(self, value):
        return value

    def wait(self, tasks):
        self.most = max(self.most, len(tasks))
        return [self.rng.choice(tasks)]

    def result(self, task):
        number, content = task
        self.fault(number)
        function, arguments = pickle.loads(content)
        return pickle.loads(pickle.dumps(function(*arguments)))

    def cores(self):
        return self.count

    def describe(self):
        return {"address": "scripted"}


class DirectPool:
    """Parses in this process; the real one is tested where it is."""

    def read_files(self, paths, unit, options):
        from clew.core.errors import UnreadableFile

        for path in paths:
            try:
                yield path, read_file(path, unit=unit, **options[path])
            except UnreadableFile as error:
                yield path, error


@pytest.fixture
def parsers(monkeypatch, tmp_path):
    """Workers of tasks parse in this process."""
    (tmp_path / "worker").mkdir()
    monkeypatch.setattr(clusters, "_open_pool", lambda *limits: (DirectPool(), tmp_path / "worker"))
    return tmp_path / "worker"


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "documents"
    write_documents(folder, 10, samples=("gauge-keepers-diary.txt", "merrowgate-charter.md"))
    (folder / "empty.txt").write_text("")
    shutil.copy(folder / "note-001.md", folder / "twice.md")
    return folder


def add(path, folder, executor, encoder=None):
    cluster = Cluster(executor)
    with Store.open(path, create=True) as store:
        report = ingest.add(
            store,
            [folder, folder / "missing.txt"],
            cluster=cluster,
            encoder=lambda: encoder and ClusterEncoder(encoder, cluster, "scripted"),
        )
        return report, (store.digest(), sorted(store.locations()))


def test_any_order_and_any_loss_give_the_same_base(documents, parsers, tmp_path):
    report, base = add(tmp_path / "whole.clew", documents, whole := ScriptedExecutor())
    assert {place.rpartition("/")[2] for place in report.added} >= {"gauge-keepers-diary.txt", "mail.eml"}
    assert any("list.txt" in place for place in base[1]) and any(
        place.endswith("twice.md") for place in base[1]
    )
    problems = {failure.path.rpartition("/")[2]: failure.reason for failure in report.failed}
    assert problems == {"empty.txt": "is empty", "missing.txt": "no such file or folder"}
    assert whole.most == 4  # two tasks for each core, though there are 16 files
    assert [path.name for path in parsers.iterdir()] == []
    for seed in (1, 3):

        def lose(number, seed=seed):
            if number == 4 * seed:
                raise WorkerLost("its workers were lost") if seed > 2 else RemoteError("the cluster failed")

        path = tmp_path / f"{seed}.clew"
        with pytest.raises(RemoteError, match="were lost" if seed > 2 else "failed"):
            add(path, documents, ScriptedExecutor(seed, 3, lose))
        again, result = add(path, documents, ScriptedExecutor(seed))
        assert result == base and len(again.failed) == 2
    assert again.unchanged
    assert add(path, documents, nothing := ScriptedExecutor())[1] == base
    assert nothing.submitted == 1  # the empty file is tried again


def test_vectors_are_those_of_the_encoder(documents, parsers, tmp_path, monkeypatch):
    encoder = HashEncoder()
    monkeypatch.setattr(clusters, "_load_encoder", lambda requested: encoder)
    monkeypatch.setattr(clusters, "TEXTS_PER_TASK", 8)
    texts = [f"{word} {number}" for word in WORDS for number in range(10)]
    spread = ClusterEncoder(encoder, Cluster(executor := ScriptedExecutor(5)), "scripted")
    assert np.array_equal(spread.encode(texts), HashEncoder().encode(texts))
    assert np.array_equal(spread.encode(texts[:3], query=True), HashEncoder().encode(texts[:3]))
    assert executor.submitted == 13 and executor.most == 4
    assert (spread.batch, spread.contrast, spread.objective, spread.dimension) == (32, 1.0, "", 16)
    assert spread.encode([]).shape == (0, 16)
    report, _ = add(tmp_path / "a.clew", documents, ScriptedExecutor(), encoder)
    with Store.open(tmp_path / "a.clew") as store:
        assert store.snapshot().vectors(encoder.name, 16).missing_count() == 0 < report.encoded

    def lose(number):
        raise WorkerLost("its worker was lost 4 times")

    with pytest.raises(WorkerLost):
        ClusterEncoder(encoder, Cluster(ScriptedExecutor(fault=lose)), "scripted").encode(texts)
    with pytest.raises(RemoteError, match="the cluster's encoder is hash-encoder, not other"):
        other = HashEncoder()
        other.name = "other"
        ClusterEncoder(other, Cluster(ScriptedExecutor()), "scripted").encode(texts)


def test_a_cluster_with_other_software_is_refused(documents, parsers, tmp_path, monkeypatch):
    class Older(ScriptedExecutor):
        def submit(self, function, software, *arguments):
            return super().submit(function, ("clew 0.0.1", *software[1:]), *arguments)

    with pytest.raises(RemoteError, match=r"other software: clew 0\.2\.0 there, clew 0\.0\.1 here"):
        add(tmp_path / "a.clew", documents, Older())
    assert "other software" in describe_cluster(Cluster(Older()))["software"]
    assert "the same as here" in describe_cluster(Cluster(ScriptedExecutor()))["software"]


@pytest.fixture
def data(tmp_path):
    """Three questions in the form of HotpotQA."""
    records = [
        {
            "_id": f"q{number}",
            "question": f"Who built the {word} bridge?",
            "answer": f"Orla {word}",
            "type": "bridge",
            "supporting_facts": [[f"{word} bridge", 0]],
            "context": [
                [f"{word} bridge", [f"It was built by Orla {word}. "]],
                [f"Noise {number}", ["A town."]],
            ],
        }
        for number, word in enumerate(WORDS[:3])
    ]
    path = tmp_path / "bridges.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    return f"hotpotqa={path}"


def answers(folder, recipe):
    records = list(folder.result_file(recipe).records())
    return {record["id"]: {**record, "seconds": 0} for record in records}, len(records)


def test_questions_are_answered_once_and_as_in_one_process(data, tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    recipes = ["read(retriever=bm25)", "golden"]
    with Store.open(tmp_path / "kb", create=True):
        pass
    for corpus in ("own", "question", str(tmp_path / "kb")):
        questions = load_questions(data, corpus, None, 0)
        here = evaluate_recipes(tmp_path / "here", questions, recipes, EvaluationSettings())

        def lose(number):
            if number == 2:
                raise WorkerLost("its worker was lost 4 times")

        work = ClusterRun(Cluster(ScriptedExecutor(1, fault=lose)))
        there = evaluate_recipes(tmp_path / "there", questions, recipes, EvaluationSettings(), cluster=work)
        records, count = answers(there, recipes[0])
        assert count == 3 and sum("error" in record for record in records.values()) == 1
        whole = ClusterRun(Cluster(ScriptedExecutor(2)))
        evaluate_recipes(tmp_path / "there", questions, recipes, EvaluationSettings(), cluster=whole)
        for recipe in recipes:
            assert answers(there, recipe)[0] == answers(here, recipe)[0], (corpus, recipe)
            assert not any("error" in record for record in answers(there, recipe)[0].values())
    evaluate_cluster._OPEN.resources.close()
    evaluate_cluster._OPEN.key = ""
    other = ClusterRun(Cluster(ScriptedExecutor()))
    monkeypatch.setattr(evaluate_cluster, "base_folder", lambda corpus: tmp_path / "other")
    with Store.open(tmp_path / "other", create=True) as store:
        store.set_setting("tags", "[]")
    with pytest.raises(RemoteError, match="another knowledge base on the cluster"):
        evaluate_recipes(
            tmp_path / "elsewhere", load_questions(data, str(tmp_path / "kb"), None, 0), ["golden"],
            EvaluationSettings(), cluster=other,
        )  # fmt: skip


def test_the_place_of_a_cluster(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path))
    for place, problem in (
        ("local", "no cluster runs on this machine"),
        ("http://host:1", "no cluster at 'http://host:1'"),
        ("ray:10001", "no cluster at 'ray:10001'"),
    ):
        with pytest.raises(UsageError, match=problem), connect_cluster(place):
            pass
    monkeypatch.setattr("clew.core.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="Ray is not installed"), connect_cluster("ray://127.0.0.1:1"):
        pass
    assert "[scale]'" in run("add", "x", "--on", "ray://127.0.0.1:1", "--kb", tmp_path / "a", status=2).output
    assert "[scale]'" in run("cluster", "up", status=2).output
    assert "no cluster runs" in run("cluster", "down").output
    assert json.loads(run("cluster", "down", "--json").output) == {"stopped": None}
    assert "clew cluster up" in run("cluster", "status", status=2).output
    # A cluster that was killed is none; its folder goes with the next.
    (tmp_path / "old").mkdir()
    gone = LocalCluster(2**22 + 1, 1, "secret", str(tmp_path / "old"))
    local_cluster._write_state(gone)
    assert local_cluster.state_file().stat().st_mode & 0o77 == 0
    assert read_local_cluster() is None and (tmp_path / "old").exists()
    assert "stopped ray://127.0.0.1:1" in run("cluster", "down").output
    assert not (tmp_path / "old").exists() and not local_cluster.state_file().exists()


def test_folders_of_killed_workers_are_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    clusters._make_scratch_folder.cache_clear()
    folder, lock = clusters._make_scratch_folder()
    left = folder.parent / "left"
    left.mkdir()
    (left / "text").write_text("of a document")
    clusters._make_scratch_folder.cache_clear()
    second, other = clusters._make_scratch_folder()
    assert folder.exists() and second.exists() and not left.exists()
    lock.release()
    other.release()
    clusters._make_scratch_folder.cache_clear()
