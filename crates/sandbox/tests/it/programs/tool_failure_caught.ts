import { fail } from "mcp-clients/tools";

try {
  await fail({ message: "not found", data: { status: 404 } });
} catch (error: any) {
  console.error(error);
  console.log(error.kind, error.data.status);
}
