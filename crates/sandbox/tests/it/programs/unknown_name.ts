export async function main() {
  return await fetch("https://example.com");
}
