// Tools of another server, found and called through ours, by the TypeScript SDK.
//
//   node upstream.mjs WAY SERVER
//
// WAY and SERVER are as in `connect.mjs`. The registry names `notes`, and `vault`, which is the same server and asks for
// a confirmation of each call.

import assert from "node:assert/strict";
import { connect } from "./connect.mjs";

const [way, server] = process.argv.slice(2);
const complaints = [];
const complain = (error) => complaints.push(error);

// What a user fills in, by what they are asked for.
async function asked({ params }) {
  console.log(`  asked: ${params.message.replace(/\s+/g, " ")}`);
  const content = "name" in params.requestedSchema.properties ? { name: "Ada" } : {};
  return { action: "accept", content };
}

const { client, revision } = await connect(way, server, { asked, complain });
const { name, version } = client.getServerVersion();
console.log(`${name} ${version}, revision ${revision}`);

const { tools } = await client.listTools();
console.log(`tools: ${tools.map((tool) => tool.name).slice(-4).join(", ")}`);

async function call(name, parameters) {
  const { isError, content, structuredContent } = await client.callTool({ name, arguments: parameters });
  return { isError, text: content[0].text, kinds: content.map((block) => block.type), structuredContent };
}

const found = JSON.parse((await call("list_mcp_capabilities", { query: "say a text back" })).text);
const best = found.tools.find((tool) => tool.server === "notes");
console.log(`found: ${best.server} ${best.tool}, ${best.description}`);
const described = JSON.parse((await call("describe_mcp", { id: best.server, tool: best.tool })).text);
console.log(`takes: ${described.tools[0].inputSchema.required.join(", ")}`);

const through = (server, tool, parameters = {}) => call("call_mcp_tool", { server, tool, arguments: parameters });
const echoed = await through("notes", "echo", { text: "hello" });
console.log(`called: ${echoed.text}, ${JSON.stringify(echoed.structuredContent)}`);
console.log(`confirmed: ${(await through("vault", "echo", { text: "hello" })).text}`);
console.log(`answered: ${(await through("notes", "asks")).text}`);
console.log(`kinds: ${(await through("notes", "everything")).kinds.join(", ")}`);
const refused = await through("notes", "echo", { text: 7 });
assert(refused.isError);
console.log(`refused: ${refused.text.split("\n")[0]}`);
const failed = await through("notes", "fails");
assert(failed.isError);
console.log(`failed: ${failed.text}`);

const { resources } = await client.listResources();
const uris = resources.map((resource) => resource.uri).filter((uri) => uri.startsWith("mcp+notes:"));
console.log(`resources: ${uris.join(", ")}`);
const { contents } = await client.readResource({ uri: uris[0] });
console.log(`read ${contents[0].uri}: ${contents[0].text}`);
await client.close();
assert.deepEqual(complaints, [], "the SDK has nothing to complain about");
