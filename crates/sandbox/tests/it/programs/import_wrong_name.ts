import { ecco } from "mcp-clients/tools";

export const main = () => ecco({});
