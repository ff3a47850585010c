export async function main() {
  await new Promise(() => {});
}
