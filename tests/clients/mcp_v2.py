"""The official Python client, 2.x. Argument: legacy (starts with `initialize`) or auto (negotiates the revision)."""

import asyncio
import sys

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from flow import HEADERS, URL, check

MODE = sys.argv[1] if len(sys.argv) > 1 else "auto"


class Session:
    protocol_error = MCPError

    def __init__(self, client):
        self.client = client

    async def list_tools(self):
        page = await self.client.list_tools()
        assert page.next_cursor is None, "all tools fit one page, since many clients read only one"
        return [(t.name, t.description, t.output_schema) for t in page.tools]

    async def call(self, name, arguments):
        result = await self.client.call_tool(name, arguments)
        return result.is_error, result.structured_content, result.content[0].text if result.content else ""


async def main():
    async with (
        httpx2.AsyncClient(headers=HEADERS) as http,
        Client(streamable_http_client(URL, http_client=http), mode=MODE) as client,
    ):
        revision = client.protocol_version
        assert revision == ("2025-11-25" if MODE == "legacy" else "2026-07-28"), revision
        print(f"revision {revision}, {await check(Session(client))}")


asyncio.run(main())
