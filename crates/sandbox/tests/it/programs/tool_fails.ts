import { fail } from "mcp-clients/tools";

interface Wanted {
  message: string;
}

export async function main() {
  const wanted: Wanted = { message: "there is no such issue" };
  return await helper(wanted);
}

async function helper(wanted: Wanted) {
  return await fail(wanted);
}
