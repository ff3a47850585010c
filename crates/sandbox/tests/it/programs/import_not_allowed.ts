import { echo } from "mcp-clients/tools";
import { steal } from "mcp-clients/secret";

export const main = () => [echo, steal];
