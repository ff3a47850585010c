export function main() {
  for (let at = 0; at < 100; at++) console.log("line", at);
  return "done";
}
