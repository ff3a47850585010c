type Issue = { title: string };

function first(issues: Issue[]): Issue {
  if (issues.length === 0) throw new RangeError("there are no issues");
  return issues[0]!;
}

export const main = () => first([]).title;
