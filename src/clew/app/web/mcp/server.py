"""A server of the Model Context Protocol over standard input and output, by the official SDK (extra ``serve``).

One client, which started this process. Every tool only reads. Answers are made in threads, so that a search need not
wait for a question; their steps are sent as progress where the client asked for it, and a call that the client
cancels is stopped before its next step.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from importlib.metadata import version

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ToolShape

from clew.app.answers.citations import summarise_step
from clew.app.web.mcp import tools as desks
from clew.app.web.mcp.lookups import ToolResult
from clew.app.web.mcp.tools import Tool, ToolContext
from clew.app.web.step_stream import stream_steps
from clew.core.errors import ClewError
from clew.core.types import Answer

#: Questions that are answered at once; more wait for their turn.
_AT_ONCE = 4
#: The tools that take no long time.
_LOOKS = {"search": desks.run_search, "show": desks.run_show}
_INSTRUCTIONS = (
    "clew answers questions from the user's own documents and knowledge graphs, with the exact place of "
    "everything it says. Use ask for a question, search to read for yourself, show to see what there is. Cite "
    "the document and page that a reply names. If ask abstains, the documents do not hold the answer: say so "
    "instead of guessing."
)


def serve_stdio(desk: ToolContext) -> None:
    """Serve until the client closes our standard input, or the process is interrupted."""
    # The thread that waits for standard input cannot be woken, so an interrupt that were raised would wait with it
    # for one more line. Nothing is written here that an end at any instant could harm.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_serve, desk)
    finally:
        signal.signal(signal.SIGINT, before)


async def _serve(desk: ToolContext) -> None:
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ask") as executor:
        served = make_server(desk, executor)
        async with stdio_server() as (incoming, outgoing):
            await served.run(incoming, outgoing, served.create_initialization_options())


def make_server(desk: ToolContext, executor: ThreadPoolExecutor) -> Server:
    """Return the server of a desk; questions are answered by the threads of ``executor``."""
    known = {tool.name: tool for tool in desks.make_tools(desk)}
    listed = ListToolsResult(tools=[_shape(tool) for tool in known.values()])

    async def on_list(
        context: ServerRequestContext, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return listed

    async def on_call(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        tool = known.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"no tool named '{params.name}'; there are {', '.join(known)}")
        try:
            said = await _called(desk, tool, params.arguments or {}, context, executor)
        except ClewError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return CallToolResult(content=[TextContent(text=said.text)], structured_content=said.structure)

    return Server(
        "clew",
        version=version("clew"),
        title="clew: answers from your documents",
        instructions=_INSTRUCTIONS,
        on_list_tools=on_list,
        on_call_tool=on_call,
    )


async def _called(
    desk: ToolContext,
    tool: Tool,
    arguments: Mapping[str, object],
    context: ServerRequestContext,
    executor: ThreadPoolExecutor,
) -> ToolResult:
    """Return what a tool says. Raises ClewError."""
    tool.check_arguments(arguments)
    if tool.name != "ask":
        return await asyncio.to_thread(_LOOKS[tool.name], desk, arguments)
    number = 0
    async with aclosing(stream_steps(partial(desks.run_ask, desk, arguments), executor)) as events:
        async for event in events:
            if isinstance(event, Answer):
                return desks.ask_result(desk, arguments, event)
            number += 1
            await context.session.report_progress(number, None, summarise_step(event))
    raise RuntimeError("work ended without an answer")


def _shape(tool: Tool) -> ToolShape:
    return ToolShape(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
