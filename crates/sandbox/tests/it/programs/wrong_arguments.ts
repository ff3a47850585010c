import { echo } from "mcp-clients/tools";

export async function main() {
  return await echo("text" as any);
}
