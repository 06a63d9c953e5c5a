"""The official Python client, 1.x (starts with `initialize`)."""

import asyncio

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client

from flow import HEADERS, URL, check


class Session:
    protocol_error = McpError

    def __init__(self, session):
        self.session = session

    async def list_tools(self):
        page = await self.session.list_tools()
        assert page.nextCursor is None, "all tools fit one page, since many clients read only one"
        return [(t.name, t.description, t.outputSchema) for t in page.tools]

    async def call(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        return result.isError, result.structuredContent, result.content[0].text if result.content else ""


async def main():
    async with streamablehttp_client(URL, headers=HEADERS) as (read, write, _), ClientSession(read, write) as session:
        opened = await session.initialize()
        print(f"revision {opened.protocolVersion}, {await check(Session(session))}")


asyncio.run(main())
