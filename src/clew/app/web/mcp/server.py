"""A server of the Model Context Protocol over standard input and output, by the official SDK (extra ``serve``).

It serves one client, which started this process. All tools only read. Questions are answered in threads, so that a
search need not wait for them; their steps are sent as progress where the client asked for it, and a call that the
client cancels is stopped before its next step. Documents are resources, and three prompts say how to ask.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from clew.app.answers.citations import summarise_step
from clew.app.answers.view import StepView
from clew.app.web.events import stream_steps
from clew.app.web.mcp.lookups import ToolResult
from clew.app.web.mcp.resources import PAGE_TEMPLATE, PROMPTS, list_resources, read_resource
from clew.app.web.mcp.tools import Tool, ToolContext, ask_result, make_tools, run_ask, run_search, run_show
from clew.core.errors import ClewError
from clew.core.text import read_count
from clew.core.types import Answer
from clew.knowledge_base.knowledge_base import KnowledgeBase

#: Questions that are answered at once; more wait for their turn.
_MAX_QUESTIONS = 4
#: The tools that reply at once, without steps.
_LOOKUPS = {"search": run_search, "show": run_show}
_INSTRUCTIONS = (
    "clew answers questions from the user's own documents and knowledge graphs, with the exact place of "
    "everything it says. Use ask for a question, search to read for yourself, show to see what there is. Cite "
    "the document and page that a reply names. A reply that begins with 'Perhaps' is not sure: say so. If ask finds "
    "nothing, the documents do not hold the answer: say so instead of guessing."
)


def serve_stdio(context: ToolContext) -> None:
    """Serve until the client closes our standard input, or the process is interrupted."""
    # The thread that waits for standard input cannot be woken, so Python's KeyboardInterrupt would wait for one more
    # line. Nothing is written here that the default handler's immediate end could damage.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_serve, context)
    finally:
        signal.signal(signal.SIGINT, before)


async def _serve(context: ToolContext) -> None:
    with ThreadPoolExecutor(_MAX_QUESTIONS, thread_name_prefix="ask") as executor:
        server = make_server(context, executor)
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


def make_server(context: ToolContext, executor: ThreadPoolExecutor) -> Server:
    """Return the server of the tools, resources and prompts; the threads of ``executor`` answer questions."""
    tools = {tool.name: tool for tool in make_tools(context)}
    library = _Library(context.bases)
    listing = types.ListToolsResult(tools=[_describe(tool) for tool in tools.values()])

    async def on_list(
        request: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listing

    async def on_call(
        request: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(
                types.INVALID_PARAMS, f"no tool named '{params.name}'; there are {', '.join(tools)}"
            )
        try:
            result = await _call(context, tool, params.arguments or {}, request, executor)
        except ClewError as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        return types.CallToolResult(
            content=[types.TextContent(text=result.text)], structured_content=result.structure
        )

    return Server(
        "clew",
        version=version("clew"),
        title="clew: answers from your documents",
        instructions=_INSTRUCTIONS,
        on_list_tools=on_list,
        on_call_tool=on_call,
        on_list_resources=library.list_resources,
        on_list_resource_templates=library.list_templates,
        on_read_resource=library.read_resource,
        on_list_prompts=library.list_prompts,
        on_get_prompt=library.get_prompt,
    )


@dataclass(frozen=True, slots=True)
class _Library:
    """The documents of the bases as resources, and the prompts, in the protocol's types."""

    bases: Mapping[str, KnowledgeBase]

    async def list_resources(
        self, request: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        start = _read_cursor(params)
        resources, following = await asyncio.to_thread(list_resources, self.bases, start)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    name=item.document.name,
                    title=item.document.title or None,
                    uri=item.uri,
                    description=f"Outline of {item.document.name}",
                    mime_type="text/plain",
                )
                for item in resources
            ],
            next_cursor=None if following is None else str(following),
        )

    async def list_templates(
        self, request: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        page = types.ResourceTemplate(
            name="page",
            title="A page of a document",
            uri_template=PAGE_TEMPLATE,
            description="The text of a page; base and key as in the address of the document",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[page])

    async def read_resource(
        self, request: ServerRequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = await asyncio.to_thread(read_resource, self.bases, uri)
        except ClewError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)]
        )

    async def list_prompts(
        self, request: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=prompt.name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        types.PromptArgument(name=name, description=text, required=True)
                        for name, text in prompt.arguments.items()
                    ],
                )
                for prompt in PROMPTS
            ]
        )

    async def get_prompt(
        self, request: ServerRequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        prompt = next((prompt for prompt in PROMPTS if prompt.name == params.name), None)
        if prompt is None:
            names = ", ".join(prompt.name for prompt in PROMPTS)
            raise MCPError(types.INVALID_PARAMS, f"no prompt named '{params.name}'; there are {names}")
        try:
            text = prompt.render(params.arguments or {})
        except ClewError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(description=prompt.description, messages=[message])


def _read_cursor(params: types.PaginatedRequestParams | None) -> int:
    cursor = params.cursor if params is not None else None
    if cursor is None:
        return 0
    place = read_count(cursor)
    if place is None:
        raise MCPError(types.INVALID_PARAMS, f"'{cursor[:40]}' is no cursor of this server")
    return place


async def _call(
    context: ToolContext,
    tool: Tool,
    arguments: Mapping[str, object],
    request: ServerRequestContext,
    executor: ThreadPoolExecutor,
) -> ToolResult:
    """Return the result of a tool; report the steps of an answer as progress. Raises ClewError."""
    tool.check_arguments(arguments)
    if tool.name in _LOOKUPS:
        return await asyncio.to_thread(_LOOKUPS[tool.name], context, arguments)
    number = 0
    async with aclosing(stream_steps(partial(run_ask, context, arguments), executor)) as events:
        async for event in events:
            if isinstance(event, Answer):
                return ask_result(context, arguments, event)
            number += 1
            await request.session.report_progress(number, None, summarise_step(StepView.from_step(event)))
    raise RuntimeError("work ended without an answer")


def _describe(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
