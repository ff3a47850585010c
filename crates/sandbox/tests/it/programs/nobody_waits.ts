import { echo, fail } from "mcp-clients/tools";

fail({ message: "nobody hears this" });
echo({}).then(() => console.log("echoed"));
Promise.reject(new TypeError("nor this"));

export const main = () => "done";
