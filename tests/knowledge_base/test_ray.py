"""The real Ray on loopback: the same bases and answers, nobody else let in, and nothing left when it stops.

They run where the extra scale is installed: ``make cluster``. More instants: ``benchmarks/cluster.py kills``.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from object_server import free_port, missing_package
from ray_cluster import (
    ROOT,
    SAMPLES,
    lose_processes,
    missing_ray,
    processes,
    read_base,
    serve_cluster,
    write_documents,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(missing_ray() is not None, reason=f"{missing_ray()} is not installed: make cluster"),
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
PAGE = (ROOT / "docs" / "how-to" / "cluster.md").read_text()


# Two clusters on one machine take each other's ports, so these come before that of the others.


def test_nothing_is_left_of_a_cluster(tmp_path):
    with serve_cluster(tmp_path, 1) as cluster:
        folder = cluster.state["folder"]
        cluster.run("add", SAMPLES / "merrowgate-charter.md", "--kb", tmp_path / "a", "--on", "local")
    assert not Path(folder).exists()
    assert not [words for _, words in processes() if folder in " ".join(words)]


@pytest.mark.skipif(missing_package() is not None, reason=f"{missing_package()} is not installed")
def test_the_path_of_a_newcomer(tmp_path):
    """The commands of the page, in its order, as they stand there; the environment is installed already."""
    (block,) = re.findall(r"## From nothing.*?```sh\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"It prints.*?```text\n(.*?)```", PAGE, re.DOTALL)
    lines = [
        line for line in block.splitlines() if not line.startswith(("python3 -m venv", ". ", "pip install"))
    ]
    assert len(lines) > 8
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    port = free_port()
    script = "\n".join(lines).replace(":5000", f":{port}").replace("-p 5000", f"-p {port}")
    script = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + script.replace(
        "up --cpus", f"up --port {free_port()} --cpus"
    )
    environment = {
        **{
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RAY_", "AWS_", "CLEW_"))
        },
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CLEW_CACHE": str(tmp_path / "cache"),
    }
    words = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 400}
    try:
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", script], **words)
    finally:
        subprocess.run(["clew", "cluster", "down"], **words)
    assert result.returncode == 0, result.stdout + result.stderr
    printed = " ".join(result.stdout.split())
    for line in shown.splitlines():
        assert " ".join(line.split()) in printed, f"{line}\n{result.stdout}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with serve_cluster(tmp_path_factory.mktemp("cluster"), RAY_CLIENT_RECONNECT_GRACE_PERIOD="3") as cluster:
        yield cluster


def test_documents_read_on_ray_make_the_same_base(cluster, tmp_path):
    documents = tmp_path / "documents"
    write_documents(documents, 2)
    (documents / "empty.pdf").write_bytes(b"%PDF-1.4 nothing")
    reports = []
    for name, words in (("here.clew", ()), ("there.clew", ("--on", "local"))):
        # The damaged file is reported, and the others are added.
        report = json.loads(
            cluster.run("add", documents, "--kb", tmp_path / name, "--json", *words, status=1)
        )
        reports.append({**report, "seconds": 0, "added": sorted(report["added"])})
    assert reports[0] == reports[1] and len(reports[0]["failed"]) == 1
    here, there = read_base(tmp_path / "here.clew"), read_base(tmp_path / "there.clew")
    assert here == there and here[3] > 400
    asked = [
        cluster.run("ask", "In what year was the Bittern built?", "--kb", tmp_path / name, "--json")
        for name in ("here.clew", "there.clew")
    ]
    first, second = (json.loads(answer) for answer in asked)
    assert "1919" in first["answer"] == second["answer"] and first["evidence"] == second["evidence"]


@pytest.mark.parametrize("corpus", ["pooled", "question", "kb"])
def test_questions_answered_on_ray_have_the_same_records(cluster, tmp_path, corpus):
    data = tmp_path / "questions.jsonl"
    names = ["quay", "mill", "lock", "weir"]
    records = [
        {
            "_id": name,
            "question": f"Where was the builder of the {name} bridge born?",
            "answer": f"{name}ford",
            "type": "bridge",
            "supporting_facts": [[f"{name} bridge", 0], [f"Orla {name}", 0]],
            "context": [
                [f"{name} bridge", [f"It was built by Orla {name}."]],
                [f"Orla {name}", [f"She was born in {name}ford."]],
            ],
        }
        for name in names
    ]
    data.write_text("\n".join(map(json.dumps, records)) + "\n")
    if corpus == "kb":
        write_documents(tmp_path / "documents", 4, ())
        cluster.run("add", tmp_path / "documents", "--kb", tmp_path / "kb", "--json")
        corpus = str(tmp_path / "kb")
    results = []
    for out, words in (("here", ()), ("there", ("--on", "local"))):
        options = ("--data", f"hotpotqa={data}", "-r", "default", "-r", "read(retriever=bm25)")
        cluster.run("eval", "run", *options, "--corpus", corpus, "--out", tmp_path / out, *words)
        files = sorted((tmp_path / out).rglob("*.jsonl"))
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        timed = ({**line, "seconds": 0, "walk_seconds": 0} for line in lines)
        results.append(sorted(timed, key=json.dumps))
    assert results[0] == results[1] and len(results[0]) == 8
    assert not any("error" in record for record in results[0])


@pytest.mark.parametrize("kind", ["worker", "driver"])
def test_processes_that_are_killed_cost_nothing(cluster, kind):
    tally = lose_processes(cluster, kind, 3, 7, 4.0, lambda line: None)
    assert tally.instants == 3 and (kind == "driver") == bool(tally.ended)


def test_only_this_machine_and_this_user_are_let_in(cluster):
    state = cluster.state
    listening = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=True).stdout
    holders = {number for number, words in processes() if state["folder"] in " ".join(words)}
    places = [
        line.split()[3]
        for line in listening.splitlines()
        if any(f"pid={number}," in line for number in holders)
    ]
    assert places and all("127.0.0.1" in place for place in places), places
    address = f"ray://127.0.0.1:{state['port']}"
    # Whoever does not know the token waits for an answer that does not come.
    child = cluster.start_command("cluster", "status", address)
    _, errors = child.communicate(timeout=120)
    assert child.returncode == 2 and "cannot be reached" in errors, errors
    assert "Ray" in cluster.run("cluster", "status")
    taken = cluster.start_command("cluster", "up", "--port", free_port())
    assert "a cluster runs on this machine" in taken.communicate(timeout=60)[1]
    for path in (Path(state["folder"]), cluster.folder / "cache" / "cluster.json"):
        assert path.stat().st_mode & 0o77 == 0
