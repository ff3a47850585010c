"""An agent's session up to a step that a person has to confirm, and beyond, by the Python SDK: first with a client
that can ask its user, then with one that cannot. `gate.mjs` and `gate.rs` do the same and must print the same.

    python gate.py MODE SERVER

MODE and SERVER are as in `walk.py`.
"""

import asyncio
import logging
import sys
import warnings

from anyio import BrokenResourceError, ClosedResourceError
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

warnings.simplefilter("error")


def is_worth_saying(record):
    """What arrives over HTTP while a client closes finds nobody to read it, and the SDK complains."""
    kind = record.exc_info and record.exc_info[0]
    return kind not in (BrokenResourceError, ClosedResourceError)


logging.getLogger("mcp.client.streamable_http").addFilter(is_worth_saying)


def user(*decisions):
    """What a user decides, one time after the other."""
    decisions = iter(decisions)

    async def asked(context, params):
        content = next(decisions)
        print(f"  asked: {' '.join(params.message.split())}")
        print(f"  says: {', '.join(content.values())}")
        return ElicitResult(action="accept", content=content)

    return asked


def place(answer):
    at = "complete" if answer["isComplete"] else f"at {answer['step']['id']}"
    return f"revision {answer['revision']}, {at}"


class Agent:
    """A client, and the session that it works on."""

    def __init__(self, client, session=None):
        self.client, self.session = client, session

    async def call(self, name, arguments):
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, f"{name}: {result.content}"
        self.session = result.structured_content["sessionId"]
        return result.structured_content

    async def start(self, workflow="letter"):
        started = await self.call("workflow_start", {"workflowId": workflow, "goal": "thank Ada"})
        print(f"  start: {place(started)}")

    def handing_in(self, revision, step, output):
        return {"sessionId": self.session, "revision": revision, "stepId": step, "output": output}

    async def advance(self, revision, step, output, **context):
        given = self.handing_in(revision, step, output) | {"context": context}
        answer = await self.call("workflow_advance", given)
        if "waiting" in answer:
            checked = f"waits, {answer['waiting']['reason']}"
        elif answer["accepted"]:
            checked = "accepted"
        else:
            checked = f"not accepted, {', '.join(answer['issues'])}"
        print(f"  {step}: {checked}; {place(answer)}")

    async def status(self):
        status = await self.call("workflow_status", {"sessionId": self.session})
        print(f"  status: {'waits' if 'waiting' in status else 'goes on'}; {place(status)}")

    async def resume(self, step):
        """What an agent reads that has lost everything else."""
        status = await self.call("workflow_status", {"sessionId": self.session})
        print(f"  to do: {status['instruction'].splitlines()[2]}")
        arguments = status["next"]["arguments"]
        print(f"  next: {status['next']['tool']}, revision {arguments['revision']}, {arguments['stepId']}")
        read = await self.call("workflow_status", {"sessionId": self.session, "stepId": step})
        print(f"  {step}, {read['outcome']}: {read['output']}")


async def main(mode, server):
    is_url = server.startswith("http:")
    where = server if is_url else StdioServerParameters(command=server, args=["serve"])

    def connect(asked=None):
        return Client(where, mode=mode, elicitation_callback=asked)

    too_slow = {"decision": "reject", "reason": "too slow"}
    async with connect(user(too_slow, {"decision": "approve"})) as client:
        info = client.server_info
        print(f"{info.name} {info.version}, revision {client.protocol_version}")
        print("with a user who can be asked:")
        agent = Agent(client)
        await agent.start()
        await agent.advance(0, "write-it", "Hey")
        await agent.advance(1, "write-it", "Dear Ada")
        await agent.advance(2, "send-it", "by post")
        await agent.advance(3, "send-it", "by pigeon")
        await agent.advance(4, "file-it", "filed")

    print("without:")
    async with connect() as client:
        agent = Agent(client)
        await agent.start()
        await agent.advance(0, "write-it", "Dear Ada")
        await agent.advance(1, "send-it", "by post")
        skip = agent.handing_in(1, "file-it", "filed")
        refused = await client.call_tool("workflow_advance", skip)
        assert refused.is_error
        print(f"  refused: {refused.content[0].text.replace(agent.session, '[SESSION]')}")
        await agent.status()
        print("somebody else, who can be asked, makes the same call:")
        async with connect(user({"decision": "approve", "reason": "good"})) as other:
            await Agent(other, agent.session).advance(1, "send-it", "by post")
        print("the first one goes on:")
        await agent.status()
        await agent.advance(2, "file-it", "filed")
        print("with a variable that a later step depends on:")
        await agent.start("parcel")
        await agent.advance(0, "weigh", "Weighed.")
        await agent.advance(1, "weigh", "Weighed.", size="Large")
        await agent.advance(2, "weigh", "Weighed: two kilos.", size="large")
        await agent.resume("weigh")


asyncio.run(main(*sys.argv[1:]))
