export function main() {
  const issue: any = undefined;
  return issue.title;
}
