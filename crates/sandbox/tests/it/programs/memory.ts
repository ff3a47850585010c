export function main() {
  const rows: string[] = [];
  for (;;) rows.push("x".repeat(100_000) + rows.length);
}
