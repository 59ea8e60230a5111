"""The MCP server as a client meets it: a process, driven by the official client over its standard streams."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from typer.testing import CliRunner

import clew
from chain_bases import DIRECTOR, FILM, TOWN, fill
from clew.app.cli.commands import app
from clew.app.web.mcp.server import make_server
from clew.app.web.mcp.tools import ToolContext
from clew.app.web.method_choices import DEFAULT, evidence_methods, validate_recipes
from clew.core.errors import MissingExtra
from clew.store.store import Store
from scripted import ScriptedServer

BORN = f"Where was {DIRECTOR} born?"


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """A base of fifteen documents and the graph ``films``."""
    folder = tmp_path_factory.mktemp("mcp") / "films.clew"
    with Store.open(folder, create=True) as store:
        fill(store, folder.parent)
    return folder


@contextlib.asynccontextmanager
async def connect_client(*words, mode="auto"):
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "clew", "mcp", *map(str, words)],
        env={"PYTHONPATH": ":".join(sys.path), "CLEW_ENCODER": "none", "CLEW_READER": "none"},
    )
    async with Client(server, mode=mode) as client:
        yield client


def result_text(result):
    return "\n".join(part.text for part in result.content)


@pytest.mark.slow
def test_a_client_finds_three_tools_asks_searches_and_shows(kb):
    steps = []

    async def step(progress, total, message):
        steps.append((progress, message))

    async def talk():
        async with connect_client("--kb", kb) as client:
            assert "is not sure" in client.instructions
            await tools_are_described(client)
            answer = await client.call_tool("ask", {"question": BORN}, progress_callback=step)
            is_cited(answer)
            await searched_and_shown(client)
            await check_resources_and_prompts(client, kb)
            await check_add_is_refused(client)

    anyio.run(talk)
    assert [number for number, _ in steps] == list(range(1, len(steps) + 1)) and len(steps) >= 2
    assert steps[-1][1].startswith("read: reader extractive")


def test_a_client_in_this_process_asks_searches_and_shows(kb):
    async def talk():
        with clew.open(kb) as base, ThreadPoolExecutor(2) as pool:
            recipes = validate_recipes([DEFAULT, *evidence_methods(model=False)])
            async with Client(make_server(ToolContext({"films": base}, recipes), pool)) as client:
                await tools_are_described(client)
                is_cited(await client.call_tool("ask", {"question": BORN}))
                await searched_and_shown(client)
                await check_resources_and_prompts(client, kb)
                await check_add_is_refused(client)

    anyio.run(talk)


async def check_resources_and_prompts(client, kb):
    with clew.open(kb) as base:
        names = [document.name for document in base.documents()]
    listing = await client.list_resources()
    first = listing.resources[0]
    assert [item.name for item in listing.resources] == names and listing.next_cursor is None
    assert str(first.uri).startswith("clew://films/")
    outline = (await client.read_resource(str(first.uri))).contents[0].text
    assert first.name in outline
    for uri in ("clew://nowhere/x", f"{first.uri}/page/x", f"{first.uri}/page/999", "file:///etc/passwd"):
        with pytest.raises(MCPError):
            await client.read_resource(uri)
    templates = (await client.list_resource_templates()).resource_templates
    assert templates[0].uri_template == "clew://{base}/{key}/page/{page}"
    prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert set(prompts) == {"answer", "check", "compare"}
    filled = await client.get_prompt("answer", {"question": BORN})
    assert BORN in filled.messages[0].content.text and "abstains" in filled.messages[0].content.text
    for name, arguments in (("answer", {}), ("poem", {})):
        with pytest.raises(MCPError):
            await client.get_prompt(name, arguments)


async def tools_are_described(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["ask", "search", "show"]
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())
    arguments = tools["ask"].input_schema
    assert arguments["required"] == ["question"] and "llm" not in arguments["properties"]
    methods = arguments["properties"]["recipe"]["enum"]
    assert methods[0] == "default" and "kgp" in methods
    assert not {"chain", "golden", "none"} & set(methods)  # no model is set; no evidence


def is_cited(answer):
    result = answer.structured_content  # valid by its schema: the client checks that
    assert (
        not answer.is_error
        and result["way"] == "perhaps"
        and result["abstained"]
        and TOWN in result["answer"]
    )
    [citation] = result["citations"]
    assert citation["document"] == f"{DIRECTOR}.txt"
    assert citation["quotes"][0]["text"] == f"{DIRECTOR} was born in {TOWN} by the water."
    assert result["usage"]["calls"] == 0 and result["steps"]
    text = result_text(answer)
    assert text.startswith(f"Perhaps: {DIRECTOR} was born in {TOWN} by the water. [1]")
    assert f"Sources:\n[1] {DIRECTOR}.txt\n" in text and "no language model wrote them" in text


async def searched_and_shown(client):
    hits = await client.call_tool("search", {"query": "mayor of the small town", "k": 3})
    [first, *_] = hits.structured_content["hits"]
    assert len(hits.structured_content["hits"]) == 3 and "mayor" in first["text"]
    passage = await client.call_tool("show", {"what": first["id"]})
    assert first["text"] in result_text(passage)
    outline = await client.call_tool("show", {"what": first["document"]})
    assert first["id"] in [node["id"] for node in outline.structured_content["nodes"]]
    everything = (await client.call_tool("show", {})).structured_content
    assert len(everything["documents"]) == 16 and everything["graphs"][0]["graph"] == "films"
    film = await client.call_tool("show", {"what": f"films:{FILM}"})
    assert f"{FILM} >> directed_by >> {DIRECTOR}" in result_text(film)
    director = await client.call_tool("show", {"graph": "films", "what": DIRECTOR.upper()})
    assert director.structured_content["entities"][0]["id"] == f"films:{DIRECTOR}"


async def check_add_is_refused(client):
    for tool, arguments, problem in [
        ("ask", {"question": BORN, "documents": ["nowhere.pdf"]}, "no document named 'nowhere.pdf'. See:"),
        ("ask", {"question": BORN, "graphs": ["filns"]}, "Did you mean 'films'?"),
        ("ask", {"question": BORN, "recipe": "none"}, "'none' is not one of ['default'"),
        ("ask", {"question": BORN, "llm": "openai:gpt-4o"}, "'llm' was unexpected"),
        ("ask", {"question": "  "}, "the question is empty"),
        ("search", {"query": "mayor", "k": 1000}, "k: 1000 is greater than the maximum"),
        ("show", {"what": f"{DIRECTOR}.txt", "page": 1}, "has no pages"),
        ("show", {"what": "~nobody/../../etc/passwd"}, "no document named"),
        ("show", {"page": 1}, "'what' is a dependency of 'page'"),
    ]:
        result = await client.call_tool(tool, arguments)
        assert result.is_error and problem in result_text(result), result_text(result)
    # What was sent is not sent back whole.
    long = await client.call_tool("ask", {"question": "x" * 100_000})
    assert long.is_error and "question: 'xxx" in result_text(long) and len(result_text(long)) < 500
    with pytest.raises(MCPError, match="no tool named 'add'"):
        await client.call_tool("add", {})


@pytest.mark.slow
def test_of_several_bases_each_call_names_one_and_a_cancelled_question_is_stopped(kb, tmp_path):
    """By the older handshake. The model does not answer until the cancellation has arrived."""
    asked, go_on = threading.Event(), threading.Event()
    with clew.open(tmp_path / "notes", create=True):
        pass

    def script(request):
        asked.set()
        assert go_on.wait(60)
        return f"Thought {len(server.requests)} names {DIRECTOR}."

    async def talk():
        bases = ["--kb", kb, "--kb", f"empty={tmp_path / 'notes'}"]
        recipes = ["--recipe", "read(reader=extractive)", "--recipe", "ircot(each=1)"]
        async with connect_client(*bases, *recipes, "--llm", server.llm, mode="legacy") as client:
            await a_base_is_named(client)
            question = {"base": "films", "question": BORN, "recipe": "ircot(each=1)"}
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "ask", question)
                assert await anyio.to_thread.run_sync(asked.wait, 60)
                group.cancel_scope.cancel()
            # Messages are read in order: where this one is answered, the one before has arrived.
            hits = await client.call_tool("search", {"base": "films", "query": "mayor"})
            assert hits.structured_content["hits"]
            go_on.set()

    with ScriptedServer(script) as server:
        anyio.run(talk)
        # The process has ended, so this is all that it will ever ask: the thought that was under way. Not stopped, it
        # thinks eight times and reads what was found.
        [thought] = server.requests
        assert "in less than 6 words" not in thought.prompt


async def a_base_is_named(client):
    [ask, *_] = (await client.list_tools()).tools
    assert ask.input_schema["properties"]["base"]["enum"] == ["films", "empty"]
    assert ask.input_schema["properties"]["recipe"]["enum"] == ["read(reader=extractive)", "ircot(each=1)"]
    unnamed = await client.call_tool("ask", {"question": BORN})
    assert unnamed.is_error and "'base' is a required property" in result_text(unnamed)
    here = await client.call_tool("ask", {"base": "films", "question": BORN})
    there = await client.call_tool("ask", {"base": "empty", "question": BORN})
    assert TOWN in result_text(here)
    assert there.structured_content["abstained"] and not there.is_error


def test_what_a_client_needs_is_printed_and_starts_the_server(kb):
    result = CliRunner().invoke(app, ["mcp", "--kb", str(kb), "--config"])
    [server] = json.loads(result.stdout)["mcpServers"].values()
    assert server["command"] == sys.executable and server["args"][-1] == f"films={kb}"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_an_interrupt_ends_it_though_its_input_is_open(kb):
    initialize = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}
    command = [sys.executable, "-m", "clew", "mcp", "--kb", str(kb)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        child.stdin.write(json.dumps(hello) + "\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["result"]["serverInfo"]["name"] == "clew"
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == -signal.SIGINT


def test_two_bases_of_one_name_are_refused(kb, tmp_path):
    result = CliRunner().invoke(app, ["mcp", "--kb", str(kb), "--kb", str(tmp_path / "films")])
    assert result.exit_code == 2 and "two knowledge bases are named 'films'" in result.stderr


def test_a_recipe_that_makes_no_sense_is_refused_before_anything_is_served(kb):
    result = CliRunner().invoke(app, ["mcp", "--kb", str(kb), "--recipe", "kgb"])
    assert result.exit_code == 2 and "Did you mean 'kgp'?" in result.stderr


def test_without_the_extra_it_says_what_to_install(kb, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = CliRunner().invoke(app, ["mcp", "--kb", str(kb)])
    assert result.exit_code == 2 and MissingExtra("", "serve").hint in result.stderr


@pytest.mark.slow
def test_the_command_line_does_not_import_the_sdk():
    code = "import sys, clew.app.cli.commands; print([m for m in ('mcp', 'fastapi', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
