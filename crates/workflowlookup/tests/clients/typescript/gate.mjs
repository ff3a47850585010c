// An agent's session up to a step that a person has to confirm, and beyond, by the TypeScript SDK: first with a client
// that can ask its user, then with one that cannot. `gate.py` and `gate.rs` do the same and must print the same.
//
//   node gate.mjs WAY SERVER
//
// WAY and SERVER are as in `connect.mjs`.

import assert from "node:assert/strict";
import { connect } from "./connect.mjs";

const [way, server] = process.argv.slice(2);
const complaints = [];
const complain = (error) => complaints.push(error);

// What a user decides, one time after the other.
function user(...decisions) {
  return async ({ params }) => {
    const content = decisions.shift();
    console.log(`  asked: ${params.message.replace(/\s+/g, " ")}`);
    console.log(`  says: ${Object.values(content).join(", ")}`);
    return { action: "accept", content };
  };
}

// A client, and the session that it works on.
async function open(asked, sessionId) {
  const { client, revision } = await connect(way, server, { asked, complain });
  // The SDK looks at structured results only where it has seen the schemas.
  await client.listTools();
  const agent = { client, sessionId, protocol: revision };
  agent.ask = (name, parameters) => client.callTool({ name, arguments: parameters });
  agent.call = async (name, parameters) => {
    const { isError, content, structuredContent } = await agent.ask(name, parameters);
    assert(!isError, `${name}: ${JSON.stringify(content)}`);
    agent.sessionId = structuredContent.sessionId;
    return structuredContent;
  };
  const place = ({ revision, isComplete, step }) =>
    `revision ${revision}, ${isComplete ? "complete" : `at ${step.id}`}`;
  agent.start = async (workflowId = "letter") => {
    const started = await agent.call("workflow_start", { workflowId, goal: "thank Ada" });
    console.log(`  start: ${place(started)}`);
  };
  agent.advance = async (revision, stepId, output, context = {}) => {
    const given = { sessionId: agent.sessionId, revision, stepId, output, context };
    const answer = await agent.call("workflow_advance", given);
    const { waiting, accepted, issues } = answer;
    const checked = accepted ? "accepted" : `not accepted, ${issues?.join(", ")}`;
    console.log(`  ${stepId}: ${waiting ? `waits, ${waiting.reason}` : checked}; ${place(answer)}`);
  };
  agent.status = async () => {
    const status = await agent.call("workflow_status", { sessionId: agent.sessionId });
    console.log(`  status: ${status.waiting ? "waits" : "goes on"}; ${place(status)}`);
  };
  // What an agent reads that has lost everything else.
  agent.resume = async (stepId) => {
    const { instruction, next } = await agent.call("workflow_status", { sessionId: agent.sessionId });
    console.log(`  to do: ${instruction.split("\n")[2]}`);
    console.log(`  next: ${next.tool}, revision ${next.arguments.revision}, ${next.arguments.stepId}`);
    const { output, outcome } = await agent.call("workflow_status", { sessionId: agent.sessionId, stepId });
    console.log(`  ${stepId}, ${outcome}: ${output}`);
  };
  return agent;
}

const slow = { decision: "reject", reason: "too slow" };
const asking = await open(user(slow, { decision: "approve" }));
const { name, version } = asking.client.getServerVersion();
console.log(`${name} ${version}, revision ${asking.protocol}`);
console.log("with a user who can be asked:");
await asking.start();
await asking.advance(0, "write-it", "Hey");
await asking.advance(1, "write-it", "Dear Ada");
await asking.advance(2, "send-it", "by post");
await asking.advance(3, "send-it", "by pigeon");
await asking.advance(4, "file-it", "filed");
await asking.client.close();

console.log("without:");
const agent = await open();
await agent.start();
await agent.advance(0, "write-it", "Dear Ada");
await agent.advance(1, "send-it", "by post");
const skip = { sessionId: agent.sessionId, revision: 1, stepId: "file-it", output: "filed" };
const refused = await agent.ask("workflow_advance", skip);
assert(refused.isError);
console.log(`  refused: ${refused.content[0].text.replaceAll(agent.sessionId, "[SESSION]")}`);
await agent.status();
console.log("somebody else, who can be asked, makes the same call:");
const other = await open(user({ decision: "approve", reason: "good" }), agent.sessionId);
await other.advance(1, "send-it", "by post");
await other.client.close();
console.log("the first one goes on:");
await agent.status();
await agent.advance(2, "file-it", "filed");
console.log("with a variable that a later step depends on:");
await agent.start("parcel");
await agent.advance(0, "weigh", "Weighed.");
await agent.advance(1, "weigh", "Weighed.", { size: "Large" });
await agent.advance(2, "weigh", "Weighed: two kilos.", { size: "large" });
await agent.resume("weigh");
await agent.client.close();
assert.deepEqual(complaints, [], "the SDK has nothing to complain about");
