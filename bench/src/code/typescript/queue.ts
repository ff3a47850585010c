/** Work that is done a few at a time, tried again where that may help, and given up in the end. */
export abstract class Task__<In, Out = unknown> {
  protected tries = 0;
  private last?: Error;

  constructor(
    public readonly name: string,
    protected readonly input: In,
    private readonly most: number = 3,
  ) {}

  abstract run(input: In): Promise<Out>;

  get failure(): Error | undefined {
    return this.last;
  }

  async attempt(): Promise<Out | undefined> {
    while (this.tries < this.most) {
      this.tries += 1;
      try {
        return await this.run(this.input);
      } catch (error: unknown) {
        this.last = error instanceof Error ? error : new Error(String(error));
        const data = (error as { data?: { retryable?: boolean; retryAfterMs?: number } }).data;
        if (data?.retryable !== true) break;
        await new Promise<void>((resolve) => setTimeout(resolve, data.retryAfterMs ?? 50 * 2 ** this.tries));
      }
    }
    return undefined;
  }
}

export class Call__<T extends object> extends Task__<T, string> {
  declare readonly kind: "call";
  static readonly NONE: readonly string[] = [];

  constructor(name: string, input: T, private readonly tool: (given: T) => Promise<string>) {
    super(name, input);
  }

  override async run(input: T): Promise<string> {
    const text = await this.tool(input);
    if (text.length === 0) throw new TypeError(`${this.name} said nothing`);
    return text.replace(/\s+/gu, " ").trim();
  }
}

export type Outcome__<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: string };

export async function all__<T>(tasks: Iterable<Task__<any, T>>, atOnce = 4): Promise<Record<string, Outcome__<T>>> {
  const waiting = [...tasks];
  const outcomes: Record<string, Outcome__<T>> = Object.create(null);
  const worker = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
      const value = await task.attempt();
      outcomes[task.name] = value === undefined
        ? { ok: false, why: task.failure?.message ?? "no reason was given" }
        : { ok: true, value };
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, waiting.length) }, worker));
  return outcomes;
}

export const isGood__ = <T,>(outcome: Outcome__<T>): outcome is Extract<Outcome__<T>, { ok: true }> => outcome.ok;
