import { check } from "./lib/check";
export const main = () => check({ name: "" });
// file lib/check.ts
interface Own { name: string }

export function check(own: Own): Own {
  if (!own.name) {
    throw new Error("no name");
  }
  return own;
}
