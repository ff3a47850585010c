import * as metrics__ from "mcp-clients/metrics";

type Point__ = [at: number, value: number];
type Series__ = { name: string; labels: Readonly<Record<string, string>>; points: Point__[] };
type Summary__ = Pick<Series__, "name"> & { mean: number; p95: number; worst?: { at: string; value: number } };
type Keys__<T> = { [K in keyof T as T[K] extends number ? K : never]: T[K] };

const QUERIES__ = {
  latency: 'histogram_quantile(0.95, rate(http_request_seconds_bucket{job="api"}[5m]))',
  errors: 'sum(rate(http_requests_total{job="api",code=~"5.."}[5m]))',
  memory: 'process_resident_memory_bytes{job="api"}',
} as const;

type Query__ = keyof typeof QUERIES__;

function quantile__(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * part;
  const [low, high] = [Math.floor(at), Math.ceil(at)];
  return sorted[low]! + (sorted[high]! - sorted[low]!) * (at - low);
}

function summary__(series: Series__): Summary__ {
  const values = series.points.map(([, value]) => value).filter(Number.isFinite);
  if (values.length === 0) return { name: series.name, mean: 0, p95: 0 };
  // The worst is said with its time, so that somebody can look there.
  const worst = series.points.reduce((most, point) => (point[1] > most[1] ? point : most));
  return {
    name: `${series.name}{${Object.entries(series.labels).map(([key, value]) => `${key}="${value}"`).join(",")}}`,
    mean: values.reduce((sum, value) => sum + value, 0) / values.length,
    p95: quantile__(values, 0.95),
    worst: { at: new Date(worst[0] * 1000).toISOString(), value: worst[1] },
  };
}

async function ask__(query: Query__, hours: number): Promise<Summary__[]> {
  const end = Math.floor(Date.now() / 1000);
  const answer = (await metrics__.query_range({
    query: QUERIES__[query],
    start: end - hours * 3600,
    end,
    step: hours > 24 ? "15m" : "1m",
  })) as unknown as { result: Series__[] } | null;
  return (answer?.result ?? []).map(summary__);
}

export async function report__(input: { hours?: number } = {}): Promise<Partial<Record<Query__, Summary__[]>>> {
  const hours = input.hours ?? 6;
  const report: Partial<Record<Query__, Summary__[]>> = {};
  const names = Object.keys(QUERIES__) as Query__[];
  const settled = await Promise.allSettled(names.map((name) => ask__(name, hours)));
  settled.forEach((result, at) => {
    const name = names[at] as Query__;
    switch (result.status) {
      case "fulfilled":
        report[name] = result.value.filter(({ mean }) => mean > 0).slice(0, 10);
        break;
      case "rejected":
        console.warn(`nothing is known of ${name}:`, (result.reason as Error).message);
        break;
    }
  });
  return report;
}
