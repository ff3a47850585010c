// What a client does, and an agent in it, that opens a folder of a stranger's, by the TypeScript SDK. Prints all that it was told.
//
//   node open.mjs WAY SERVER REQUESTS
//
// WAY and SERVER are as in `connect.mjs`. REQUESTS is JSON; `hostile.rs` makes it: tools to call with their arguments, and
// resources to read.

import { connect } from "./connect.mjs";

const [way, server, requests] = process.argv.slice(2);
const { calls, uris } = JSON.parse(requests);
const { client, revision } = await connect(way, server, {});
console.log(`revision ${revision}`);

// A refusal is something that it was told.
async function told(request) {
  try {
    console.log(JSON.stringify(await request));
  } catch (error) {
    console.log(`${error.message} ${JSON.stringify(error.data)}`);
  }
}

await told(client.listTools());
await told(client.listResources());
await told(client.listResourceTemplates());
await told(client.listPrompts());
for (const [name, parameters] of calls) {
  await told(client.callTool({ name, arguments: parameters }));
}
for (const uri of uris) {
  await told(client.readResource({ uri }));
}
await client.close();
