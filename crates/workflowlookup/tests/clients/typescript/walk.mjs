// An agent's session with the server, by the TypeScript SDK: lists everything, walks a workflow to its
// end, meets errors, and prints what it saw. `walk.py` and `rmcp.rs` do the same and must print the same.
//
//   node walk.mjs WAY SERVER WALK
//
// WAY and SERVER are as in `connect.mjs`. WALK is JSON; `clients.rs` makes it.

import assert from "node:assert/strict";
import { connect } from "./connect.mjs";

const [way, server, walkText] = process.argv.slice(2);
const { workflow, outputs, learned } = JSON.parse(walkText);
// More steps than the walk has: beyond, it does not end.
const STEPS_MAX = 20;
let validated = 0;
// A message that the SDK cannot use shows here only.
const complaints = [];
const complain = (error) => complaints.push(error);

// The SDK's own validator, with a count that shows that it was asked.
function counting(validator) {
  return {
    getValidator(schema) {
      const validate = validator.getValidator(schema);
      return (value) => {
        validated += 1;
        return validate(value);
      };
    },
  };
}

const { client, revision } = await connect(way, server, { validating: counting, complain });

// Every page of a list.
async function all(method, key) {
  const items = [];
  let cursor;
  do {
    const page = await client[method](cursor === undefined ? {} : { cursor });
    items.push(...page[key]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

// A call that must succeed. The SDK throws where the structured result does not fit the output schema.
let called = 0;
async function call(name, parameters) {
  const result = await client.callTool({ name, arguments: parameters });
  assert(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  assert(result.structuredContent, `${name} has no structured result`);
  called += 1;
  return result.structuredContent;
}

const { name, version } = client.getServerVersion();
console.log(`${name} ${version}, revision ${revision}`);

const tools = await all("listTools", "tools");
assert(tools.every((tool) => tool.outputSchema), "every tool has an output schema");
console.log(`tools: ${tools.map((tool) => tool.name).join(", ")}`);
const resources = await all("listResources", "resources");
console.log(`resources: ${resources.length}, first ${resources[0].uri}`);
const templates = await all("listResourceTemplates", "resourceTemplates");
console.log(`templates: ${templates.map((template) => template.uriTemplate).join(", ")}`);
const prompts = await all("listPrompts", "prompts");
console.log(`prompts: ${prompts.map((prompt) => prompt.name).join(", ")}`);

const uri = `workflow://${workflow}`;
const [content] = (await client.readResource({ uri })).contents;
console.log(`read ${content.uri}: ${content.mimeType}, ${JSON.parse(content.text).name}`);
const prompt = await client.getPrompt({ name: workflow, arguments: { q1: "Operators." } });
const settled = prompt.messages[0].content.text.split("\n").find((line) => line.endsWith("Operators."));
console.log(`prompt: ${settled}`);
const ref = { type: "ref/resource", uri: "workflow://{id}" };
const argument = { name: "id", value: "write" };
const { completion } = await client.complete({ ref, argument });
console.log(`completions of write: ${completion.values.join(", ")}`);

const { workflows } = await call("workflow_list", {});
console.log(`workflow_list: ${workflows.length} workflows`);
const definition = await call("workflow_get", { id: workflow });
console.log(`workflow_get: ${definition.name}`);
const lint = await call("workflow_lint", { definition: "id: x" });
console.log(`workflow_lint: ${lint.usable ? "usable" : "not usable"}`);

console.log(`walk of ${workflow}:`);
const completedSteps = [];
let context = {};
for (let count = 0; ; count += 1) {
  assert(count < STEPS_MAX, "the walk does not end");
  const next = await call("workflow_next", { workflowId: workflow, completedSteps, context });
  if (next.isComplete) {
    break;
  }
  const stepId = next.step.id;
  context = { ...context, ...next.state, ...learned[stepId] };
  const check = (output) =>
    call("workflow_validate", { workflowId: workflow, stepId, output, context });
  const lazy = await check("Done.");
  const honest = await check(outputs[stepId]);
  const verdict = ({ valid, issues }) => (valid ? "valid" : `not valid (${issues.length})`);
  console.log(`  ${stepId}: ${verdict(lazy)}, then ${verdict(honest)}`);
  if (!completedSteps.includes(stepId)) {
    completedSteps.push(stepId);
  }
}
console.log("  complete");
assert.equal(validated, called, "the SDK validates each structured result");
console.log(`structured results that fit their schemas: ${called}`);

const misspelt = workflow.slice(0, -1);
const refused = await client.callTool({ name: "workflow_get", arguments: { id: misspelt } });
assert(refused.isError && !refused.structuredContent);
console.log(`refused: ${refused.content[0].text}`);
await assert.rejects(client.callTool({ name: "workflow_lost", arguments: {} }), (error) => {
  console.log(`unknown tool: ${error.code}, ${error.data.details}`);
  return true;
});

await client.close();
assert.deepEqual(complaints, [], "the SDK has nothing to complain about");
