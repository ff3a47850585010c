import { echo } from "mcp-clients/tools";
import * as other from "mcp-clients/other";

export async function main() {
  const first = await echo({ text: "one" });
  const both = await Promise.all([echo({ text: "two" }), other.echo({ text: "three" })]);
  return [first, ...both];
}
