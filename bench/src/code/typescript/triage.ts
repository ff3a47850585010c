import { search_issues as search__, list_labels, type Issue as Found__ } from "mcp-clients/tracker";
import { search_code as code__ } from "mcp-clients/github";

declare const input: { repository: `${string}/${string}`; since: string; labels?: string[] };

const enum Weights__ {
  crash = 10,
  regression = crash / 2,
  question = -3,
}

interface Scored__ extends Found__ {
  score: number;
  reasons: string[];
}

const WORDS__: ReadonlyArray<readonly [pattern: RegExp, weight: number, reason: string]> = [
  [/\b(?:crash|panic|segfault|abort)(?:s|ed|ing)?\b/i, Weights__.crash, "it crashes"],
  [/\b(?:used to work|since (?:v?\d+\.)+\d+|regression)\b/i, Weights__.regression, "it worked before"],
  [/\bhow (?:do|can|should) (?:i|we)\b|\?\s*$/i, Weights__.question, "it is a question"],
];

function score__(issue: Found__): Scored__ {
  const text = `${issue.title}\n${issue.body ?? ""}`;
  let score = Math.log2(1 + (issue.reactions?.total ?? 0));
  const reasons: string[] = [];
  for (const [pattern, weight, reason] of WORDS__) {
    if (!pattern.test(text)) continue;
    score += weight;
    reasons.push(reason);
  }
  return { ...issue, score, reasons };
}

function grouped__<K extends string, V>(values: readonly V[], key: (value: V) => K): Map<K, V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) {
    const group = groups.get(key(value));
    group ? group.push(value) : groups.set(key(value), [value]);
  }
  return groups;
}

export async function triage__(): Promise<{ label: string; issues: Pick<Scored__, "number" | "title" | "score">[] }[]> {
  const { repository, since, labels: wanted } = input;
  const known = new Set((await list_labels({ repository })).map((label: { name: string }) => label.name));
  const missing = wanted?.filter((label) => !known.has(label)) ?? [];
  if (missing.length > 0) throw new RangeError(`there are no labels ${missing.join(", ")}`);
  const issues: Found__[] = await search__({ query: `repo:${repository} is:open created:>=${since}`, limit: 100 });
  const scored = issues.map(score__).filter(({ score }) => score > 0);
  await Promise.all(
    scored.slice(0, 10).map(async (issue: Scored__) => {
      const [, name] = /`([A-Za-z_]\w{3,})`/.exec(issue.body ?? "") ?? [];
      if (!name) return;
      const places = await code__({ query: `${name} repo:${repository}`, limit: 3 });
      issue.reasons.push(...places.map(({ path, line }: { path: string; line: number }) => `see ${path}:${line}`));
    }),
  );
  return [...grouped__(scored, (issue) => issue.labels[0] ?? "none")].map(([label, own]) => ({
    label,
    issues: own.sort((a, b) => b.score - a.score).map(({ number, title, score }) => ({ number, title, score })),
  }));
}
