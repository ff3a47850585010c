export const main = () => Buffer.from("x");
