export async function main() {
  setTimeout(() => {
    throw new Error("in a timer");
  }, 1);
  await new Promise((resolve) => setTimeout(resolve, 100));
}
