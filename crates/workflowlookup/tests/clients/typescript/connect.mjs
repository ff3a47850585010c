// A connection by the TypeScript SDK, in one of the ways in which it can be made: `v1` (the old package), `v2` (the
// new one as it comes) or `v2-auto` (the new one, told to find out whether the server speaks the revision without a
// handshake).

// `server` is a command to start, or the URL of a server that runs already. `validating` may wrap the SDK's validator.
// `asked` answers for the user; without it the client cannot ask. `complain` hears of messages that the SDK cannot use.
export async function connect(way, server, { validating = (validator) => validator, asked, complain }) {
  const info = { name: "walk", version: "1.0.0" };
  const capabilities = asked ? { elicitation: {} } : {};
  if (way === "v1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { AjvJsonSchemaValidator } = await import("@modelcontextprotocol/sdk/validation/ajv");
    const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
    const jsonSchemaValidator = validating(new AjvJsonSchemaValidator());
    const client = new Client(info, { capabilities, jsonSchemaValidator });
    const transport = to(server, StdioClientTransport, StreamableHTTPClientTransport);
    // This package tells the revision to the transport only.
    let revision;
    const told = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
      revision = version;
      told?.(version);
    };
    client.onerror = complain;
    if (asked) {
      client.setRequestHandler(ElicitRequestSchema, asked);
    }
    await client.connect(transport);
    return { client: polite(client, transport), revision };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const { AjvJsonSchemaValidator } = await import("@modelcontextprotocol/client/validators/ajv");
  const client = new Client(info, {
    capabilities,
    jsonSchemaValidator: validating(new AjvJsonSchemaValidator()),
    versionNegotiation: { mode: way === "v2-auto" ? "auto" : "legacy" },
  });
  client.onerror = complain;
  if (asked) {
    client.setRequestHandler("elicitation/create", asked);
  }
  const transport = to(server, StdioClientTransport, StreamableHTTPClientTransport);
  await client.connect(transport);
  return { client: polite(client, transport), revision: client.getNegotiatedProtocolVersion() };
}

function to(server, Stdio, Http) {
  return server.startsWith("http:") ? new Http(new URL(server)) : new Stdio({ command: server, args: ["serve"] });
}

// Over HTTP, a client that goes says so. That its streams end then is no reason to complain.
function polite(client, transport) {
  const close = client.close.bind(client);
  client.close = async () => {
    client.onerror = undefined;
    await transport.terminateSession?.();
    await close();
  };
  return client;
}
