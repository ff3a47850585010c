//// pages of a list, grouped and counted
//// => {"ada":["#1 one","#3 three"],"bob":["#2 two"],"total":3}
interface Issue {
  readonly number: number;
  title: string;
  author?: { login: string } | null;
}
type Page<T> = { items: T[]; next?: number };
type Groups = Record<string, string[]> & { total?: number };

const all: Issue[] = [
  { number: 1, title: "one", author: { login: "ada" } },
  { number: 2, title: "two", author: { login: "bob" } },
  { number: 3, title: "three", author: { login: "ada" } },
];

async function list<T>(source: readonly T[], cursor: number = 0, size = 2): Promise<Page<T>> {
  const items = source.slice(cursor, cursor + size) as T[];
  return cursor + size < source.length ? { items, next: cursor + size } : { items };
}

async function* pages<T>(source: T[]): AsyncGenerator<T[], void, undefined> {
  for (let cursor: number | undefined = 0; cursor !== undefined; ) {
    const page: Page<T> = await list<T>(source, cursor);
    yield page.items;
    cursor = page.next;
  }
}

export async function main(): Promise<Groups> {
  const groups = {} as Groups;
  let total = 0;
  for await (const items of pages(all)) {
    for (const { number, title, author } of items) {
      ((groups[author?.login ?? "nobody"] ??= []) as string[]).push(`#${number} ${title}`);
      total++;
    }
  }
  return { ...groups, total } satisfies Groups as Groups;
}
//// a cache, a queue and an error of its own
//// => {"values":[1,4,9],"hits":1,"failed":"too large: 99","level":"High"}
enum Level { Low = 1, High = Low << 2 }

class TooLarge extends Error {
  constructor(public readonly value: number, message: string = `too large: ${value}`) {
    super(message);
    this.name = "TooLarge";
  }
}

abstract class Source<K extends number, V> {
  private readonly cache = new Map<K, Promise<V>>();
  hits = 0;
  protected abstract load(key: K): Promise<V>;
  get(key: K): Promise<V> {
    const known = this.cache.get(key);
    if (known) { this.hits++; return known }
    const value = this.load(key);
    this.cache.set(key, value);
    return value;
  }
}

class Squares extends Source<number, number> {
  constructor(private limit: number) { super() }
  protected override async load(key: number): Promise<number> {
    if (key > this.limit) throw new TooLarge(key);
    return key ** 2;
  }
}

const isTooLarge = (error: unknown): error is TooLarge => error instanceof TooLarge;

async function main() {
  const squares = new Squares(10);
  const values = await Promise.all([1, 2, 3].map((x): Promise<number> => squares.get(x)));
  await squares.get(3);
  let failed: string | undefined;
  try {
    await squares.get(99);
  } catch (error: unknown) {
    if (!isTooLarge(error)) throw error;
    failed = error.message;
  }
  return { values, hits: squares.hits, failed, level: Level[Level.High] as keyof typeof Level };
}

main().then((result: object) => result)
//// events with types that depend on each other
//// => ["open:a","close:3"]
type Events = { open: [name: string]; close: [code: number, reason?: string] };
type Handler<A extends unknown[]> = (...args: A) => void;

class Emitter<E extends { [K in keyof E]: unknown[] }> {
  #handlers: { [K in keyof E]?: Array<Handler<E[K]>> } = {};
  on<K extends keyof E>(event: K, handler: Handler<E[K]>): () => void {
    (this.#handlers[event] ||= []).push(handler);
    return () => void (this.#handlers[event] = this.#handlers[event]!.filter((other) => other !== handler));
  }
  emit<const K extends keyof E>(event: K, ...args: E[K]): void {
    for (const handler of this.#handlers[event] ?? []) handler(...args);
  }
}

const seen: string[] = [];
const emitter = new Emitter<Events>();
const off = emitter.on("open", (name) => { seen.push(`open:${name}`) });
emitter.on("close", function (this: void, code: number, reason?: string): void { seen.push(`close:${code}${reason ?? ""}`) });
emitter.emit("open", "a");
off();
emitter.emit("open", "b");
emitter.emit("close", 3);
seen as readonly string[]
