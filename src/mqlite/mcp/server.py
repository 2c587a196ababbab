"""The MCP server itself: the tools on the official SDK, over standard input and output."""

from __future__ import annotations

from typing import Any, Final

import anyio
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server

from mqlite import __version__
from mqlite.mcp.arguments import schema
from mqlite.mcp.broker import Broker, tool_error
from mqlite.mcp.forwarding import Tool, call
from mqlite.mcp.tools import INSTRUCTIONS, TOOLS

NAME: Final = "mqlite-mcp"

_BY_NAME: Final = {tool.name: tool for tool in TOOLS}

Context = ServerRequestContext[Any]


def server(broker: Broker) -> Server[Any]:
    """A server whose tools forward to `broker`.

    The SDK's low-level one: it advertises our schemas as they are, and only tools, and leaves
    the text of a failed call alone. (`MCPServer` begins it with "Error executing tool".)
    """

    async def list_tools(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_listing(tool) for tool in TOOLS])

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = _BY_NAME.get(params.name)
        try:
            if tool is None:
                raise tool_error("invalid_argument", f"there is no tool {params.name!r}")
            return _result(await call(broker, tool, params.arguments or {}))
        except ToolError as failure:
            return _result(str(failure), is_error=True)

    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def serve(broker: Broker) -> None:
    """Serve one host on standard input and output, until it closes the input."""
    anyio.run(_serve, server(broker))


async def _serve(served: Server[Any]) -> None:
    async with stdio_server() as (reading, writing):
        await served.run(reading, writing, served.create_initialization_options())


def _listing(tool: Tool) -> types.Tool:
    effect = tool.effect
    return types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=schema(tool.arguments),
        annotations=types.ToolAnnotations(
            read_only_hint=effect.reads,
            destructive_hint=effect.destroys,
            idempotent_hint=effect.repeats,
            open_world_hint=False,
        ),
    )


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], is_error=is_error
    )
