"""A server that cannot start says why, before it says where it is; one base has one server that writes to it."""

import http.client
import json
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import closing

import pytest
from typer.testing import CliRunner

from clew.app.cli.commands import app as command
from clew.app.web.application import RunningServer
from clew.app.web.settings import Settings
from clew.core.errors import Locked
from scripted import ScriptedServer
from serve_app import PATIENCE, QUESTION, ServedApp


def start_and_fail(*arguments):
    result = CliRunner().invoke(command, ["serve", "--port", "0", *map(str, arguments)])
    assert result.exit_code != 0 and not result.stdout and "Traceback" not in result.stderr
    return result.stderr


def test_a_base_that_cannot_be_opened_is_named_and_no_address(tmp_path):
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "base.sqlite").write_text("no database")
    assert "base.sqlite is damaged" in start_and_fail("--kb", tmp_path / "fine", "--kb", tmp_path / "damaged")
    (tmp_path / "file").write_text("no folder")
    assert "no knowledge base can be made" in start_and_fail("--kb", tmp_path / "file" / "kb")
    # What was opened before is free again.
    with ServedApp(tmp_path / "fine", encoder="none") as app:
        assert app.get("/api/bases")[0] == 200


def test_a_model_that_cannot_be_used_is_named_before_anything_is_opened(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    base = ("--kb", tmp_path / "kb")
    assert "needs a key" in start_and_fail(*base, "--llm", "openai:gpt-4o-mini")
    limited = start_and_fail(*base, "--llm", "http://127.0.0.1:9/v1#own", "--budget-money", "1")
    assert "no price is known" in limited
    assert not (tmp_path / "kb").exists()


@pytest.mark.slow
def test_of_two_servers_over_one_base_the_second_only_reads(tmp_path):
    with ServedApp(tmp_path / "kb", encoder="none") as app:
        app.upload("mill.md", b"# Mill\n\nThe mill at Oxlade grinds barley.\n")
        assert "another clew serve has the knowledge base" in start_and_fail("--kb", tmp_path / "kb")
        with ServedApp(tmp_path / "kb", encoder="none", read_only=True) as second:
            assert second.ask("What does the mill at Oxlade grind?")["evidence"]
            assert second.send_files(("a.md", b"text"))[0] == 403
        assert app.upload("ferry.md", b"# Ferry\n\nThe ferry carries nine.\n")["state"] == "done"
    # The lock goes with the server.
    with ServedApp(tmp_path / "kb", encoder="none") as again:
        assert len(again.get(f"{again.api}/documents")[1]["documents"]) == 2


def test_a_server_that_was_made_and_never_ran_lets_go_of_its_base(tmp_path):
    settings = Settings({"kb": tmp_path / "kb"}, encoder="none", port=0)
    with RunningServer(settings), pytest.raises(Locked):
        RunningServer(settings)
    with RunningServer(settings):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals as on Unix")
def test_ctrl_c_ends_a_server_whose_model_does_not_reply(made_base, tmp_path, monkeypatch):
    """A thread that waits for a reply cannot be woken; the server does not wait with it."""
    monkeypatch.setenv("CLEW_CACHE", str(tmp_path / "cache"))
    shutil.copytree(made_base, tmp_path / "kb")
    reached, free = threading.Event(), threading.Event()

    def hanging(request):
        reached.set()
        free.wait(PATIENCE)
        return {"quotes": [], "answer": "", "abstain": True}

    with ScriptedServer(hanging) as model:
        line = [
            "-c",
            "from clew.app.cli.commands import app; app()",
            "serve",
            "--kb",
            tmp_path / "kb",
            "--port",
            "0",
        ]
        command = [sys.executable, *map(str, line), "--llm", model.llm]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            port = int(server.stdout.readline().rpartition(":")[2])
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
                asked = json.dumps({"question": QUESTION, "recipe": "read"})
                headers = {"Content-Type": "application/json"}
                connection.request("POST", "/api/bases/kb/questions", asked, headers)
                assert connection.getresponse().status == 202
            assert reached.wait(PATIENCE)
            server.send_signal(signal.SIGINT)
            _, errors = server.communicate(timeout=PATIENCE)  # the model has not replied
        finally:
            free.set()
            server.kill()
            server.wait()
    assert server.returncode == 130 and "Traceback" not in errors
    with ServedApp(tmp_path / "kb", encoder="none", read_only=True) as app:
        (entry,) = app.get(f"{app.api}/questions")[1]["questions"]
        assert entry["state"] == "interrupted"
