// Programs that call tools of real servers, run through ours, by the TypeScript SDK.
//
//   node code.mjs WAY SERVER
//
// WAY and SERVER are as in `connect.mjs`. The registry names `everything`, the reference server of the protocol's
// authors, and `own`, which is our own program.

import assert from "node:assert/strict";
import { connect } from "./connect.mjs";

const [way, server] = process.argv.slice(2);
const complaints = [];
const complain = (error) => complaints.push(error);
const { client, revision } = await connect(way, server, { complain });
const { name, version } = client.getServerVersion();
console.log(`${name} ${version}, revision ${revision}`);

async function call(name, parameters) {
  const { isError, content } = await client.callTool({ name, arguments: parameters });
  assert(!isError, content[0].text);
  assert.equal(content.length, 1);
  return JSON.parse(content[0].text);
}

async function run(title, code, more = {}) {
  const { result, logs, calls, error } = await call("execute_mcp_code", {
    code,
    allowedMcpIds: ["everything", "own"],
    ...more,
  });
  const counted = calls.map(({ server, tool, ok, count = 1 }) => `${count} × ${server}.${tool}${ok ? "" : " failed"}`);
  const place = error?.line ? ` at ${error.file}:${error.line}:${error.column}` : "";
  const ended = error ? `${error.kind}${place}: ${error.message.split("\n")[0]}` : JSON.stringify(result);
  console.log(`${title}: ${ended}`);
  for (const line of logs) console.log(`  log: ${line}`);
  for (const line of counted) console.log(`  ${line}`);
}

const { types } = await call("describe_mcp", { id: "everything", tool: "get-sum", detail: "types" });
console.log(types.split("\n").filter((line) => line.startsWith("export function")).join("\n"));

await run("an aggregation of 30 calls", `
  import * as everything from "mcp-clients/everything";
  interface Row { a: number; sum: number }
  export async function main({ upTo }: { upTo: number }) {
    const rows: Row[] = await Promise.all(Array.from({ length: upTo }, async (_, a): Promise<Row> => {
      const text = await everything.get_sum({ a, b: 1 }) as string;
      return { a, sum: Number(text.match(/is (\\d+)/)![1]) };
    }));
    console.log("rows", rows.length);
    return rows.reduce((total: number, row) => total + row.sum, 0);
  }`, { input: { upTo: 30 } });

await run("one after the other", `
  import { echo, get_sum } from "mcp-clients/everything";
  let text = await echo({ message: "a" }) as string;
  for (const message of ["b", "c"]) text += "," + await echo({ message });
  text;`);

await run("errors are caught, or not", `
  import * as everything from "mcp-clients/everything";
  const kinds: string[] = [];
  try { await everything.get_sum({ a: "one", b: 2 } as any); } catch (error: any) {
    kinds.push(error.kind, error.data.problems[0].pointer);
  }
  console.warn(kinds);
  await everything.get_resource_reference({ resourceType: "None", resourceId: 1 } as any);`);

await run("what is no text", `
  import { get_tiny_image } from "mcp-clients/everything";
  const blocks = await get_tiny_image() as { type: string }[];
  blocks.map((block) => typeof block === "string" ? "text" : block.type);`);

await run("pages of another server of ours", `
  import * as own from "mcp-clients/own";
  export async function main() {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page: any = await own.workflow_list(cursor ? { cursor } : {});
      ids.push(...page.workflows.map((workflow: { id: string }) => workflow.id));
      cursor = page.nextCursor;
    } while (cursor);
    return { workflows: ids.filter((id) => id.startsWith("many-")).length, twice: ids.length - new Set(ids).size };
  }`);

await run("a stateless walk", `
  import { workflow_next } from "workflowlookup";
  const seen = new Set<string>();
  let context: Record<string, unknown> = {};
  for (let turn = 0; turn < 50; turn++) {
    const next: any = await workflow_next({
      workflowId: "write-documentation", completedSteps: [...seen], context,
    });
    if (next.isComplete) break;
    seen.add(next.step.id);
    context = { ...context, ...next.state };
  }
  seen.size > 2;`);

await client.close();
assert.deepEqual(complaints, [], "the SDK has nothing to complain about");
