import { helper } from "./helpers";
export const main = () => helper();
// file helper.ts
export const helper = () => 1;
