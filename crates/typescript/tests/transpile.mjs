// Runs programs as the TypeScript compiler makes them: a list of { source, value } comes in on standard input, and what
// each comes to goes out. The first argument is where the compiler is installed, the second a folder to write to.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [compiler, folder] = process.argv.slice(2);
const ts = createRequire(join(compiler, "package.json"))("typescript");
const { library, programs } = JSON.parse(readFileSync(0, "utf8"));

const packages = join(folder, "node_modules", "library");
mkdirSync(packages, { recursive: true });
writeFileSync(join(packages, "package.json"), JSON.stringify({ type: "module", main: "index.js" }));
writeFileSync(join(packages, "index.js"), library);

// The last expression is exported, by the compiler's own notion of where it is.
function withValue(source) {
  const tree = ts.createSourceFile("program.ts", source, ts.ScriptTarget.ESNext, true);
  const last = tree.statements.filter(ts.isExpressionStatement).at(-1);
  const expression = source.slice(last.expression.getStart(), last.expression.getEnd());
  const before = source.slice(0, last.getStart());
  return `${before};export const $value = (${expression});${source.slice(last.getEnd())}`;
}

function transpile(source) {
  const options = { target: "ESNext", module: "ESNext" };
  return ts.transpileModule(source, { compilerOptions: options }).outputText;
}

async function run({ source, kind, exportsMain }, number) {
  const file = join(folder, `program-${number}.mjs`);
  const whole = (kind === "value" ? withValue(source) : source) + (exportsMain ? "\nexport { main };" : "");
  writeFileSync(file, transpile(whole));
  const exports = await import(pathToFileURL(file));
  const value = kind === "main" ? exports.main() : kind === "value" ? exports.$value : exports.default;
  return JSON.stringify(await value) ?? "undefined";
}

const values = [];
for (const [number, program] of programs.entries()) {
  values.push(await run(program, number).catch((error) => String(error)));
}
process.stdout.write(JSON.stringify(values));
