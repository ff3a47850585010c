"""What a client does, and an agent in it, that opens a folder of a stranger's, by the Python SDK. Prints all that it was told.

    python open.py MODE SERVER REQUESTS

MODE and SERVER are as in `walk.py`. REQUESTS is JSON; `hostile.rs` makes it: tools to call with their arguments, and
resources to read.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


async def told(request):
    """A refusal is something that it was told."""
    try:
        print((await request).model_dump_json())
    except MCPError as error:
        print(error)


async def main(mode, server, requests):
    target = StdioServerParameters(command=server, args=["serve"])
    async with Client(target, mode=mode) as client:
        print(f"revision {client.protocol_version}")
        await told(client.list_tools())
        await told(client.list_resources())
        await told(client.list_resource_templates())
        await told(client.list_prompts())
        for name, arguments in requests["calls"]:
            await told(client.call_tool(name, arguments))
        for uri in requests["uris"]:
            await told(client.read_resource(uri))


asyncio.run(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))
