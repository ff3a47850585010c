import { double } from "./lib/double.js";
export const main = () => double(21);
// file lib/double.ts
import { two } from "..";
export const double = (number: number): number => number * two;
// file index.ts
export const two = 2;
