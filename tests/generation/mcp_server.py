"""An MCP server as users write them, for tests: `mcp_server.py stdio`, or `mcp_server.py streamable-http PORT`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Image, MCPServer
from mcp.types import BlobResourceContents, CallToolResult, EmbeddedResource, TextContent, TextResourceContents

server = MCPServer("arithmetic", version="1.2")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(name="files.read")
def read_file(name: str) -> str:
    """Reads a file that is not there."""
    return f"contents of {name}"


@server.tool()
def refuse(reason: str) -> CallToolResult:
    """Says no."""
    return CallToolResult(content=[TextContent(type="text", text=reason)], is_error=True)


meeting = asyncio.Barrier(3)


@server.tool()
async def meet() -> str:
    """Waits until three have come."""
    await meeting.wait()
    return "met"


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG\r\n", format="png")


@server.tool()
def documents() -> CallToolResult:
    """A text and a file."""
    text = TextResourceContents(uri="memo://1", text="a memo", mime_type="text/plain")
    blob = BlobResourceContents(uri="memo://2", blob="QUJD", mime_type="application/pdf")
    return CallToolResult(
        content=[EmbeddedResource(type="resource", resource=text), EmbeddedResource(type="resource", resource=blob)]
    )


@server.tool()
def die(marks: str, times: int) -> str:
    """Ends the server, so many times."""
    died = len(os.listdir(marks))
    if died >= times:
        return f"alive after {died} deaths"
    Path(marks, str(died)).touch()
    print("cannot go on", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def tell_environment(name: str) -> str:
    """What a variable is."""
    return os.environ.get(name, "not set")


if __name__ == "__main__":
    transport, *port = sys.argv[1:]
    server.run(transport, **({"port": int(port[0])} if port else {}))
