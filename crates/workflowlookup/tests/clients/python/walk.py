"""An agent's session with the server, by the Python SDK: lists everything, walks a workflow to its end,
meets errors, and prints what it saw. `walk.mjs` and `rmcp.rs` do the same and must print the same.

    python walk.py MODE SERVER WALK

MODE is `legacy` (with a handshake) or `auto` (the SDK finds out whether the server speaks the revision
without one). SERVER is a command to start, or the URL of a server that runs already. WALK is JSON; `clients.rs`
makes it.
"""

import asyncio
import json
import sys
import warnings

import jsonschema
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import ResourceTemplateReference, TextContent, TextResourceContents

# More steps than the walk has: beyond, it does not end.
STEPS_MAX = 20

warnings.simplefilter("error")


async def everything(method, key):
    """Every page of a list."""
    items, cursor = [], None
    while True:
        page = await method(cursor=cursor)
        items.extend(getattr(page, key))
        cursor = page.next_cursor
        if cursor is None:
            return items


def verdict(answer):
    return "valid" if answer["valid"] else f"not valid ({len(answer['issues'])})"


async def session(client, workflow, outputs, learned):
    server = client.server_info
    print(f"{server.name} {server.version}, revision {client.protocol_version}")

    tools = await everything(client.list_tools, "tools")
    schemas = {tool.name: tool.output_schema for tool in tools}
    assert all(schemas.values()), "every tool has an output schema"
    print(f"tools: {', '.join(schemas)}")
    resources = await everything(client.list_resources, "resources")
    print(f"resources: {len(resources)}, first {resources[0].uri}")
    templates = await everything(client.list_resource_templates, "resource_templates")
    print(f"templates: {', '.join(template.uri_template for template in templates)}")
    prompts = await everything(client.list_prompts, "prompts")
    print(f"prompts: {', '.join(prompt.name for prompt in prompts)}")

    [content] = (await client.read_resource(f"workflow://{workflow}")).contents
    assert isinstance(content, TextResourceContents)
    print(f"read {content.uri}: {content.mime_type}, {json.loads(content.text)['name']}")
    prompt = await client.get_prompt(workflow, {"q1": "Operators."})
    lines = prompt.messages[0].content.text.splitlines()
    print(f"prompt: {next(line for line in lines if line.endswith('Operators.'))}")
    template = ResourceTemplateReference(uri="workflow://{id}")
    completion = (await client.complete(template, {"name": "id", "value": "write"})).completion
    print(f"completions of write: {', '.join(completion.values)}")

    called = 0

    async def call(name, arguments):
        """A call that must succeed. The SDK raises where the structured result does not fit the output
        schema, but only if it knows that; we look ourselves too."""
        nonlocal called
        result = await client.call_tool(name, arguments)
        assert not result.is_error, f"{name}: {result.content}"
        assert result.structured_content is not None, f"{name} has no structured result"
        jsonschema.validate(result.structured_content, schemas[name])
        called += 1
        return result.structured_content

    listed = await call("workflow_list", {})
    print(f"workflow_list: {len(listed['workflows'])} workflows")
    definition = await call("workflow_get", {"id": workflow})
    print(f"workflow_get: {definition['name']}")
    lint = await call("workflow_lint", {"definition": "id: x"})
    print(f"workflow_lint: {'usable' if lint['usable'] else 'not usable'}")

    print(f"walk of {workflow}:")
    completed, context = [], {}
    for _ in range(STEPS_MAX):
        asked = {"workflowId": workflow, "completedSteps": completed, "context": context}
        answer = await call("workflow_next", asked)
        if answer["isComplete"]:
            break
        step = answer["step"]["id"]
        context = {**context, **answer.get("state", {}), **learned.get(step, {})}
        made = {"workflowId": workflow, "stepId": step, "context": context}
        lazy = await call("workflow_validate", {**made, "output": "Done."})
        honest = await call("workflow_validate", {**made, "output": outputs[step]})
        print(f"  {step}: {verdict(lazy)}, then {verdict(honest)}")
        if step not in completed:
            completed.append(step)
    else:
        raise AssertionError("the walk does not end")
    print("  complete")
    print(f"structured results that fit their schemas: {called}")

    refused = await client.call_tool("workflow_get", {"id": workflow[:-1]})
    assert refused.is_error and refused.structured_content is None
    assert isinstance(refused.content[0], TextContent)
    print(f"refused: {refused.content[0].text}")
    try:
        await client.call_tool("workflow_lost", {})
    except MCPError as error:
        print(f"unknown tool: {error.error.code}, {error.error.data['details']}")
    else:
        raise AssertionError("an unknown tool is an error")


async def main(mode, server, walk):
    is_url = server.startswith("http:")
    where = server if is_url else StdioServerParameters(command=server, args=["serve"])
    async with Client(where, mode=mode) as client:
        await session(client, **json.loads(walk))


asyncio.run(main(*sys.argv[1:]))
