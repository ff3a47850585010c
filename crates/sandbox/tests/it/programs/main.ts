// input {"names": ["Ada", "Grace"]}
type Input = { names: string[] };
enum Greeting { Hello = "hello" }

export function main(input: Input): string[] {
  return input.names.map((name) => `${Greeting.Hello}, ${name}`);
}
